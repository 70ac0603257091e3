"""What every page's style adds for eyes, keyboards and motion: contrast, focus, stillness.

Streamlit draws captions, chosen segments and code in them with a contrast below 4.5 : 1;
tests/e2e/test_axe.py computes it on every page, light and dark.
"""

STYLE = """<style>
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {
  color: inherit !important; opacity: 1 !important;
}
[data-testid="stCaptionContainer"] { filter: opacity(.86); }
[data-testid="stBaseButton-segmented_controlActive"], [data-testid="stBaseButton-pillsActive"],
[data-testid="stBaseButton-segmented_controlActive"] p,
[data-testid="stBaseButton-pillsActive"] p { color: inherit !important; font-weight: 600; }
a:focus-visible, button:focus-visible, summary:focus-visible, [role="tab"]:focus-visible,
[role="radio"]:focus-visible, [tabindex]:focus-visible {
  outline: 2px solid currentColor !important; outline-offset: 2px;
}
h2 { font-size: 1.5rem !important; }
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after {
    animation-duration: .01ms !important; animation-iteration-count: 1 !important;
    transition-duration: .01ms !important; scroll-behavior: auto !important;
  }
}
</style>"""
