"""The board as a built-in table begins, in the page that Streamlit then starts in.

A browser takes a second to load Streamlit's pages and to be sent anything. What ships of a first
look (`pages.ui.first_sight`) is drawn meanwhile, by the script that draws the board: the component
takes the drawn board over where it is about the same, and it goes where anything else comes.
A link that asks for anything but a built-in table gets Streamlit's page as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dpviz.core.settings import Settings
from dpviz.datasets import builtin_tables
from dpviz.report.figures.board import assets
from pages.ui import limits, link
from pages.ui.first_sight import ARCHIVE, BOARDS, board_key, item
from pages.ui.looks import FRAME, IN_A_PAGE
from pages.ui.page_options import page_defaults

_INDEX = Path(st.__file__).parent / "static" / "index.html"
_HISTORY = Path(__file__).with_name("history.js")
_SCRIPT = Path(__file__).with_name("first_picture.js")
_KEPT = {"cache-control": f"public, immutable, max-age={365 * 24 * 60 * 60}"}
_MOST = 2_000
"""Letters of a link that are looked at."""

# Where the board of a page stands, and how the page looks until Streamlit's style has come. The
# frame's would come with the code of an element, and a phone's row above push the board down.
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
_FIRST = (
    "<./first/board.VERSION.js>; rel=modulepreload, "
    "<./first/TABLE.VERSION.json>; rel=preload; as=fetch; crossorigin"
)
_COLOURS = {
    "text": "textColor", "background": "backgroundColor", "border": "borderColor",
    "secondary-background": "secondaryBackgroundColor", "primary": "primaryColor",
}  # fmt: skip
"""Of a theme: how a component knows them, and how Streamlit's settings do."""
_WHERE = """<div id="first-picture"></div>
<script async type="module" id="first-picture-script" src="./first/board.VERSION.js"
 data-told="./first/TABLE.VERSION.json" data-followed="./first/TABLE.VERSION.frames"></script>
"""


def page(query: bytes) -> Response | None:
    """Return Streamlit's page with the picture that a link asks for, or None where it has none.

    Parameters
    ----------
    query : bytes
        Of the address of Explore.
    """
    table = table_asked_for(query)
    if table is None or told(table) is None:
        return None
    # before all that Streamlit needs: a browser asks in this order, a few at a time
    links = _of(_FIRST, table)
    return Response(_page(table), 200, {"cache-control": "no-cache", "link": links}, "text/html")


def table_asked_for(query: bytes) -> str | None:
    """Return the built-in table that a link asks for, if it asks for nothing else."""
    if len(query) > _MOST:
        return None
    said = link.read(dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)))
    table, plain = said.settings.table, link.read({})
    if said != replace(plain, settings=replace(plain.settings, table=table)):
        return None
    known = table in builtin_tables() and plain.settings.trials <= limits.caps().trials
    return table if known else None


@lru_cache(maxsize=64)
def told(table: str) -> bytes | None:
    """Return what a table's first board is drawn from, as JSON; None where it does not ship."""
    board = BOARDS.get(board_key(_settings(table)))
    if board is None:
        return None
    return _written({name: board[name] for name in ("token", "shape", "payload")})


@lru_cache(maxsize=64)
def followed(table: str) -> bytes | None:
    """Return what a session sends to that board: its other frames, and what is expected."""
    board = BOARDS.get(board_key(_settings(table)))
    if board is None:
        return None
    parts = {board["told"]["part"]: board["told"]}
    for part, name in board["parts"].items():
        frames = item(name)
        parts[part] = {"frames": [] if frames is None else json.loads(frames)}
    return _written({"token": board["token"], "parts": parts})


def _settings(table: str) -> Settings:
    return replace(page_defaults(), table=table)


def _written(what: dict[str, Any]) -> bytes:
    return json.dumps(what, separators=(",", ":"), allow_nan=False).encode()


@cache
def _page(table: str) -> bytes:
    text = _INDEX.read_text(encoding="utf-8")
    font = re.search(r'href="([^"]+[.]woff2)"', text)
    place = _PLACE.replace("FONT", font[1] if font else "").replace("FRAME", FRAME)
    for theme in ("light", "dark"):
        place = place.replace(theme.upper(), _variables(theme))
    # before Streamlit's own code: the first that a session says is a step else
    place += f"<script>{_HISTORY.read_text(encoding='utf-8')}</script>"
    for before, what in (("</head>", place), ("</body>", _of(_WHERE, table))):
        text = text.replace(before, f"{what}{before}", 1)
    return text.encode()


def _of(text: str, table: str) -> str:
    return text.replace("TABLE", table).replace("VERSION", _version())


def _variables(theme: str) -> str:
    """Return a theme as Streamlit tells it to components, in CSS."""
    said = {name: st.get_option(f"theme.{theme}.{option}") for name, option in _COLOURS.items()}
    colours = "".join(f"--st-{name}-color: {colour}; " for name, colour in said.items() if colour)
    return f'{colours}--st-font: "Source Sans", sans-serif;'


@cache
def _version() -> str:
    """Return the digest of what pictures are drawn from, and by."""
    digest = hashlib.blake2b(ARCHIVE.read_bytes() + script(), digest_size=12)
    return digest.hexdigest()


@cache
def script() -> bytes:
    """Return the module that draws the picture."""
    style = json.dumps(assets().css + IN_A_PAGE)
    return f"{assets().js}\nconst STYLE = {style};\n{_SCRIPT.read_text(encoding='utf-8')}".encode()


def _answer(request: Request) -> Response:
    name, version, kind = (request.path_params[part] for part in ("name", "version", "kind"))
    content = None
    if version == _version():
        if (name, kind) == ("board", "js"):
            return Response(script(), 200, _KEPT, "text/javascript")
        if name in builtin_tables() and kind in _TOLD:
            content = _TOLD[kind](name)
    if content is None:
        return PlainTextResponse("There is no such picture.\n", 404)
    return Response(content, 200, _KEPT, "application/json")


_TOLD = {"json": told, "frames": followed}
ROUTES = [Route("/first/{name:str}.{version:str}.{kind:str}", _answer)]
"""Of what a picture is drawn from, and by."""
