"""The board's renderer: plain JavaScript and CSS, and a page that holds all of it.

The modules here, joined by `assets`, define one global, ``DpvizBoard``, with one function::

    board = DpvizBoard.mount(element, payload, options)

``payload`` is `dpviz.report.tables.payload.Payload`. All options may be left out: ``rows`` (of
picture, spectrum, distance, recovery), ``keys`` (only these mechanisms), ``controls`` (of scrub,
play, pin, draws, fresh, view, present; an empty list hides the bar), ``strip``, ``answer`` and
``exact`` (whether to show recovery against epsilon, the sentence on top, the exact column),
``label`` (its name for those who do not see it), ``masked`` (hide what mechanisms do until
``board.reveal()``), ``large`` (texts for a hall), ``phoneBelow`` (pixels of width under which
columns are swiped, 640), and the callbacks ``onScrub(epsilon)`` while epsilon moves,
``onCommit(epsilon)`` when it is let go, ``onOpen(key or null)``,
``onPin("pin", "unpin" or "swap")``, ``onFresh()``, ``onDraws(epsilon)`` and ``onLink(name)``.

The board has ``epsilon``, ``setEpsilon``, ``addFrames``, ``setPayload``, ``setPin``, ``setDraws``,
``play``, ``stop``, ``present``, ``setPublishable``, ``open``, ``reveal``, ``mask`` and ``destroy``.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dpviz.mechanisms import Mechanism
from dpviz.report.figures.theme import colour_of
from dpviz.report.tables.payload import BoardColumn, Payload


@dataclass(frozen=True)
class Assets:
    """What draws the board.

    Attributes
    ----------
    js, css : str
        Texts to be put into a page.
    """

    js: str
    css: str


@cache
def assets() -> Assets:
    """Return the renderer's script and style."""
    folder = Path(__file__).parent
    return Assets(
        script("const DpvizBoard", folder / "board.js", "{ mount }"),
        (folder / "board.css").read_text(encoding="utf-8"),
    )


_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.\.?/[\w./]+)";\n', re.MULTILINE)
_TYPES = re.compile(r"^ */\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?=(?:const|function|class) )", re.MULTILINE)


def script(name: str, entry: Path, given: str) -> str:
    """Return a script that declares a name for what a module and all it imports give."""
    modules = "\n".join(in_one_scope(entry))
    return f"{name} = (() => {{\n{modules}\nreturn {given};\n}})();\n"


def in_one_scope(entry: Path) -> list[str]:
    """Return the texts of a module and of all that it imports, each after what it needs.

    Modules so that a reader, a checker of types and a test may take one alone; one script for a
    page, without a build step: what they import and export are the same names in one scope. Types
    and notes between ``/**`` and ``*/`` stay with the reader: a fifth of the text.

    Parameters
    ----------
    entry : Path
        A module that imports by name from folders beside it, and exports declarations.
    """
    texts: dict[Path, str] = {}

    def add(path: Path) -> None:
        if path in texts:
            return
        source = path.read_text(encoding="utf-8")
        for name in _IMPORT.findall(source):
            add((path.parent / name).resolve())
        texts[path] = _EXPORT.sub("", _TYPES.sub("", _IMPORT.sub("", source)))

    add(entry)
    return list(texts.values())


def written(payload: Payload | Mapping[str, Any]) -> str:
    """Return a payload as JSON that may stand inside a script element."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c")


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{css}
body {{ margin: 0; background: #ffffff; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #030508; }} }}
main {{ max-width: 1400px; margin: 0 auto; padding: 10px 16px; }}
.note {{ font: 14px/1.45 system-ui, sans-serif; color: #55616d; max-width: 62em; }}
h1 {{ font: 600 20px/1.3 system-ui, sans-serif; margin: 0 0 6px; color: #1c2530; }}
@media (prefers-color-scheme: dark) {{ h1 {{ color: #dce2e9; }} .note {{ color: #a3afbb; }} }}
</style>
<main>
<h1>{title}</h1>
<div id="board"></div>
<p class="note">{note}</p>
</main>
<script id="payload" type="application/json">{payload}</script>
<script>
{js}
const payload = JSON.parse(document.getElementById("payload").textContent);
const options = {options};
globalThis.board = DpvizBoard.mount(document.getElementById("board"), payload, options);
</script>
</html>
"""


def board_html(
    payload: Payload,
    *,
    title: str = "What does privacy cost this PCA?",
    note: str = "",
    options: Mapping[str, Any] | None = None,
) -> str:
    """Return one page that shows a board without a server or a network.

    Parameters
    ----------
    payload : Payload
        With every frame.
    title, note : str
        Plain texts above and below.
    options : mapping, optional
        Of the renderer; no callbacks.
    """
    used = assets()
    return _PAGE.format(
        title=html.escape(title),
        note=html.escape(note),
        css=used.css,
        js=used.js,
        payload=written(payload),
        options=written(options or {}),
    )


def shown(mechanisms: Iterable[Mechanism]) -> list[BoardColumn]:
    """Return what the heads of mechanisms' columns say, in their order."""
    return [
        {
            "key": mechanism.text,
            "label": mechanism.label,
            "summary": mechanism.info.summary,
            "paper": mechanism.info.paper,
            "guarantee": mechanism.info.guarantee,
            "release": mechanism.info.release,
            "redraws": mechanism.info.redraws,
            "colour": colour_of(mechanism),
        }
        for mechanism in mechanisms
    ]
