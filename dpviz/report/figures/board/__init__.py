"""Renderer of the comparison figure: plain JavaScript and CSS, and a page that holds both.

The modules here, joined by `assets`, define one global, ``DpvizBoard``, with one function::

    board = DpvizBoard.mount(element, payload, options)

``payload`` is `dpviz.report.tables.payload.Payload`. All options may be left out: ``rows`` (any of
picture, spectrum, distance, recovery), ``keys`` (only these mechanisms), ``controls`` (any of
scrub, play, pin, draws, fresh, view, present; an empty list hides the bar), ``strip``, ``answer``
and ``exact`` (whether to show recovery against epsilon, the sentence on top, the exact column),
``label`` (name for screen readers), ``masked`` (hide results until ``board.reveal()``), ``large``
(text size for a hall), ``phoneBelow`` (width in pixels below which readers swipe columns, default
640). Callbacks: ``onScrub(epsilon)`` while epsilon moves, ``onCommit(epsilon)`` when the reader
releases the slider, ``onOpen(key or null)``, ``onPin("pin", "unpin" or "swap")``, ``onFresh()``,
``onDraws(epsilon)`` and ``onLink(name)``.

The result has ``epsilon``, ``setEpsilon``, ``addFrames``, ``setPayload``, ``setPin``, ``setDraws``,
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
    """Script and style that draw the comparison figure.

    Attributes
    ----------
    js, css : str
        Texts of the script and the style, to insert into a page.
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


def script(name: str, entry: Path, exports: str) -> str:
    """Bundle a module with all its imports into a script that declares ``name`` as ``given``."""
    modules = "\n".join(in_one_scope(entry))
    return f"{name} = (() => {{\n{modules}\nreturn {exports};\n}})();\n"


def in_one_scope(entry: Path) -> list[str]:
    """Return the texts of a module and its imports, each after the modules that it needs.

    Separate modules let a reader, a type checker or a test use one module alone. A page gets one
    script without a build step, because imports and exports keep their names in one scope. Notes
    between ``/**`` and ``*/``, a fifth of the text, are left out.

    Parameters
    ----------
    entry : Path
        A module that has only named imports from nearby folders, and exported declarations.
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
    """Return a payload as JSON that is safe inside a script element."""
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
    """Return one page that shows a comparison figure without a server or a network.

    Parameters
    ----------
    payload : Payload
        Payload with every frame.
    title, note : str
        Plain texts above and below the figure.
    options : mapping, optional
        Options of the renderer, without callbacks.
    """
    files = assets()
    return _PAGE.format(
        title=html.escape(title),
        note=html.escape(note),
        css=files.css,
        js=files.js,
        payload=written(payload),
        options=written(options or {}),
    )


def shown(mechanisms: Iterable[Mechanism]) -> list[BoardColumn]:
    """Return the contents of the mechanisms' column heads, in the given order."""
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
