"""The first figure of a built-in table, inside the page in which Streamlit then starts.

A browser takes a second to load Streamlit's pages and to receive anything. Meanwhile a script draws
the shipped first comparison figure (`pages.ui.first_sight`). This figure takes no input, and is
removed when the page has drawn its own or shows anything else. A link that requests anything except
a built-in table gets Streamlit's unchanged page.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import parse_qsl

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpviz.datasets import builtin_tables
from dpviz.report.figures.board import assets
from pages.ui import limits, link
from pages.ui.first_sight import BOARDS, board_key
from pages.ui.looks import FRAME, IN_A_PAGE
from pages.ui.page_options import page_defaults

_INDEX = Path(st.__file__).parent / "static" / "index.html"
_HISTORY = Path(__file__).with_name("history.js")
_SCRIPT = Path(__file__).with_name("first_picture.js")
_KEPT = {"cache-control": f"public, immutable, max-age={365 * 24 * 60 * 60}"}
_MOST = 2_000
"""Maximum length of a link that the server reads."""

# This HTML reserves the place of the first figure, and styles the page until Streamlit's style has
# arrived. Without FRAME, a phone's row above the figure would push it down.
_PLACE = """<style>FRAME
@font-face { font-family: "Source Sans"; font-weight: 200 900; src: url("FONT"); }
body:has(> #first-picture) { margin: 0; background: var(--st-background-color); LIGHT }
@media (prefers-color-scheme: dark) { body:has(> #first-picture) { DARK } }
#first-picture {
  position: fixed; inset: 0; overflow-y: scroll; pointer-events: none; z-index: 1;
  padding: 8.65rem 1.4rem 2rem;
}
@media (max-width: 640px) { #first-picture { padding: 4.8rem 12px 5rem; } }
</style>
"""
_COLOURS = {
    "text": "textColor", "background": "backgroundColor", "border": "borderColor",
    "secondary-background": "secondaryBackgroundColor", "primary": "primaryColor",
}  # fmt: skip
"""Names of a theme's colours in components, and in Streamlit's settings."""
_PICTURE = """<div id="first-picture" inert></div>
<script type="application/json" id="first-picture-told">TOLD</script>
<script async type="module" src="SCRIPT"></script>
"""


def page(query: bytes) -> Response | None:
    """Return Streamlit's page with the figure that a link requests, or None.

    Parameters
    ----------
    query : bytes
        Query of Explore's address.
    """
    table = table_asked_for(query)
    text = None if table is None else _page(table)
    if text is None:
        return None
    # Name our script first, because a browser requests only a few files at a time, in order.
    headers = {"cache-control": "no-cache", "link": f"<{_address()}>; rel=modulepreload"}
    return Response(text, 200, headers, "text/html")


def table_asked_for(query: bytes) -> str | None:
    """Return the built-in table that a link requests, if the link requests nothing else."""
    if len(query) > _MOST:
        return None
    address = link.read(dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)))
    table, plain = address.settings.table, link.read({})
    if address != replace(plain, settings=replace(plain.settings, table=table)):
        return None
    is_builtin = table in builtin_tables() and plain.settings.trials <= limits.caps().trials
    return table if is_builtin else None


@lru_cache(maxsize=64)
def _page(table: str) -> bytes | None:
    """Return the page with a table's first figure, or None if this figure does not ship."""
    payload = BOARDS.get(board_key(replace(page_defaults(), table=table)))
    if payload is None:
        return None
    text = _INDEX.read_text(encoding="utf-8")
    font = re.search(r'href="([^"]+[.]woff2)"', text)
    place = _PLACE.replace("FONT", font[1] if font else "").replace("FRAME", FRAME)
    for theme in ("light", "dark"):
        place = place.replace(theme.upper(), _variables(theme))
    # Insert this script before Streamlit's code; otherwise a first message adds a history step.
    place += f"<script>{_HISTORY.read_text(encoding='utf-8')}</script>"
    # Escape the character <, so that no text can close the script element that contains it.
    data = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    picture = _PICTURE.replace("SCRIPT", _address()).replace("TOLD", data.replace("<", "\\u003c"))
    for before, what in (("</head>", place), ("</body>", picture)):
        text = text.replace(before, f"{what}{before}", 1)
    return text.encode()


def _variables(theme: str) -> str:
    """Return a theme as CSS, in the form in which Streamlit gives it to components."""
    tones = {name: st.get_option(f"theme.{theme}.{option}") for name, option in _COLOURS.items()}
    colours = "".join(f"--st-{name}-color: {colour}; " for name, colour in tones.items() if colour)
    return f'{colours}--st-font: "Source Sans", sans-serif;'


def _address() -> str:
    """Return the address of the script, which changes with the script's content."""
    return f"./first/{hashlib.blake2b(script(), digest_size=12).hexdigest()}.js"


@cache
def script() -> bytes:
    """Return the module that draws the first figure."""
    style = json.dumps(assets().css + IN_A_PAGE)
    return f"{assets().js}\nconst STYLE = {style};\n{_SCRIPT.read_text(encoding='utf-8')}".encode()


async def _script(request: Request) -> Response:
    return Response(script(), 200, _KEPT, "text/javascript")


ROUTES = [Route("/first/{version:str}.js", _script)]
"""Route of the script that draws the first figure."""
