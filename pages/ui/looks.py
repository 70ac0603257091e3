"""Style of every page for eyes, keyboards, motion and paper: contrast, focus, stillness.

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
[data-testid] :is(p, li) code { font-size: max(.875em, 15px) !important; }
/* One scale: question 30, answer and next step 21, heads 19, text 16, 15 the least. */
h1 { font-size: 30px !important; padding: .2rem 0 .4rem !important; }
h2 { font-size: 19px !important; }
h3 { font-size: 17px !important; }
:is(.st-key-page-answer, .st-key-page-next) p { font-size: 21px !important; line-height: 1.35; }
.st-key-page-next button:not(.dp-term) { min-height: 44px; }
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

# Streamlit leaves a third of a laptop's screen empty: 8 rem above a page and 5 rem beside it.
FRAME = "".join(
    (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("frame.css", "bar.css")
)
"""Style of the frame around every page."""

HERE = "background: color-mix(in srgb, currentColor 10%, transparent); font-weight: 600;"
"""Style of the menu's heading that has the open page."""

GONE = '[data-testid="stMain"] [data-stale="true"]:not(.st-key-bar *) { visibility: hidden; }'
"""Style that hides everything about another table while the chosen one is read and computed."""

IN_A_PAGE = (
    "\n.dpv { --dpv-foot: 0px; --dpv-least: 1.3em; }\n"
    "@media (max-width: 1200px) { .dpv { --dpv-least: 2.6em; } }\n"
)
"""Style of a comparison figure on a page. The page itself leaves space for the bar at the bottom of
a phone. The answer gets its second line before the line is needed."""


def names_left_out(key: str, *, now: bool = False) -> str:
    """Return the style that hides the names beside a chart's lines if there is no space.

    A chart does not know the width of its page. On a narrow page the legend has the coloured lines.

    Parameters
    ----------
    key : str
        Key of a chart, or of the container of charts.
    now : bool
        Whether the first note marks the current setting and stays.
    """
    names = ".annotation" + ':not([data-index="0"])' * now
    return f"""<style>
@media (max-width: 990px) {{
  .st-key-{key} {names} {{ display: none; }}
}}
</style>"""
