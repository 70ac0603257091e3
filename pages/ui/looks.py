"""What every page's style adds for eyes, keyboards, motion and paper: contrast, focus, stillness.

Streamlit draws captions and chosen segments with a contrast below 4.5 : 1; tests/e2e/test_axe.py
computes it, and walks every page by keyboard.
"""

from pathlib import Path

STYLE = """<style>
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {
  color: inherit !important; opacity: 1 !important;
}
[data-testid="stCaptionContainer"] { filter: opacity(.86); }
[data-testid="stButtonGroup"] button, [data-testid="stButtonGroup"] button * {
  color: inherit !important;
}
[data-testid="stButtonGroup"] button[kind$="Active"] { font-weight: 600; }
/* Choices that do not fit side by side take another line: none is faded out at an edge. */
[data-testid="stButtonGroup"] [role="radiogroup"] {
  flex-wrap: wrap; overflow-x: visible; mask-image: none;
}
a:focus-visible, button:focus-visible, summary:focus-visible, [role="tab"]:focus-visible,
[role="radio"]:focus-visible, [tabindex]:focus-visible {
  outline: 2px solid currentColor !important; outline-offset: 2px;
}
/* Names and ticks of charts in the page's ink: Streamlit's grey has a contrast below 4.5 : 1. */
[data-testid="stPlotlyChart"] :is([class$="tick"], [class^="g-"], .gtitle) :is(text, tspan),
[data-testid="stPlotlyChart"] .legendtext {
  fill: currentColor !important;
}
/* A name beside a line stays readable where another line runs below it. */
[data-testid="stPlotlyChart"] :is(.annotation, .textpoint) text {
  paint-order: stroke; stroke: var(--dpviz-ground, transparent); stroke-width: 4px;
  stroke-linejoin: round; filter: brightness(var(--dpviz-lift, 1)); /* in the dark lighter */
}
/* A command within a sentence is no smaller than the sentence. */
[data-testid] :is(p, li) code { font-size: max(.875em, 14px) !important; }
/* One scale: question 30, answer and next step 21, heads 19, text 16, 15 the least. */
h1 { font-size: 30px !important; padding: .2rem 0 .4rem !important; }
h2 { font-size: 19px !important; }
h3 { font-size: 17px !important; }
:is(.st-key-page-answer, .st-key-page-next) p { font-size: 21px !important; line-height: 1.35; }
.st-key-page-next button { min-height: 44px; }
@media (max-width: 640px) {
  h1 { font-size: 24px !important; }
  h2 { font-size: 18px !important; }
  :is(.st-key-page-answer, .st-key-page-next) p { font-size: 19px !important; }
  .st-key-page-lead > :first-child { min-width: 100%; } /* the next step below it */
  /* Where a finger cannot hover the tools of a chart would always lie on its title. */
  [data-testid="stPlotlyChart"] .modebar-container { display: none !important; }
}
/* A grid's own button writes other people's names as formulas (dpviz/core/files.py). */
[data-testid="stElementToolbar"] button[aria-label^="Download as CSV"] { display: none !important; }
/* Folded away it is out of sight, and would still take the focus. */
[data-testid="stSidebar"][data-collapsed="true"] { visibility: hidden; }
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after {
    animation-duration: .01ms !important; animation-iteration-count: 1 !important;
    transition: none !important; /* a short one would set off one for every change of any style */
    scroll-behavior: auto !important;
  }
}
/* A page prints as its content alone, on white, nothing cut off. */
@media print {
  [data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stToolbar"],
  [data-testid="stExpandSidebarButton"], .stDownloadButton, .stButton { display: none; }
  html, body, .stApp, [data-testid="stAppViewContainer"], [data-testid="stMain"], section.main {
    position: static !important; height: auto !important; overflow: visible !important;
    background: #fff !important; color: #000 !important;
  }
  [data-testid="stMainBlockContainer"] { padding: 0 !important; max-width: none !important; }
  [data-testid="stElementContainer"] { break-inside: avoid; }
}
</style>"""

# Streamlit keeps 8 rem of air above a page and 5 rem beside it: a third of a laptop's screen.
FRAME = """
[data-testid="stMainBlockContainer"] { padding: 3.8rem 1.4rem 2rem; }
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] { gap: .6rem; }
/* what is empty, or unseen, takes no gap between two others */
[data-testid="stLayoutWrapper"]:not(:has(:not([data-testid="stLayoutWrapper"],
  [data-testid="stVerticalBlock"], [data-testid="stElementContainer"], [data-testid="stEmpty"]))) {
  display: none;
}
div:has(> .st-key-unseen) { position: absolute; width: 1px; }
.st-key-unseen {
  position: absolute; left: 0; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
}
/* said in passing, below what one wants to move next */
[data-testid="stToastContainer"] { top: auto !important; bottom: .6rem !important; }
@media (max-width: 640px) {
  [data-testid="stMainBlockContainer"] { padding: 4.2rem 12px 11rem; }
  [data-testid="stToastContainer"] { bottom: 10rem !important; } /* above the bar of epsilon */
}
/* amber: guessed, to be corrected by a click */
.st-key-check-read {
  padding: .4rem .9rem; border-left: 6px solid #b98900; gap: .2rem;
  background: color-mix(in srgb, #b98900 12%, transparent);
}
.st-key-check-read button { min-height: 2rem; padding: .1rem .6rem; }
/* They come and go while a slider is moved, and move nothing. */
.st-key-notes {
  position: fixed; z-index: 90; bottom: .6rem; left: 1.4rem; right: 1.4rem; margin: 0 auto;
  width: auto; max-width: 52rem; gap: .4rem; pointer-events: none;
}
div:has(> .st-key-notes), div:has(> div > div:only-child > .st-key-notes) { position: absolute; }
.st-key-notes button { pointer-events: auto; }
.st-key-notes [role="alert"] {
  background: Canvas; box-shadow: 0 2px 12px #0004; padding: .6rem .9rem;
}
[data-testid="stMainBlockContainer"]:has(.st-key-notes [role="alert"]) { padding-bottom: 7rem; }
""" + (Path(__file__).parent / "bar.css").read_text(encoding="utf-8")
"""Of the frame around every page."""

IN_A_PAGE = (
    "\n.dpv { --dpv-foot: 0px; --dpv-least: 1.3em; }\n"
    "@media (max-width: 1200px) { .dpv { --dpv-least: 2.6em; } }\n"
)
"""Of a board on a page: the page itself leaves room for the bar at a phone's bottom, and the answer
gets its second line before it is known to need one."""


def names_left_out(key: str, *, now: bool = False) -> str:
    """Return the style that leaves out the names beside a chart's lines where there is no room.

    A chart does not know how wide its page is. On a narrow one the legend has what has a colour.

    Parameters
    ----------
    key : str
        Of a chart, or of the container whose children are charts.
    now : bool
        Whether the first of its notes says where one is and stays.
    """
    names = ".annotation" + ':not([data-index="0"])' * now
    return f"""<style>
@media (max-width: 990px) {{
  .st-key-{key} {names} {{ display: none; }}
}}
</style>"""
