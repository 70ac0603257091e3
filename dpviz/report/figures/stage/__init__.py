"""The stage: a picture, a sentence, a control and a filmstrip, on a page or in a file.

``DpvizStage.mount(element, payload, tell)`` shows the payload of `dpviz.lessons.scene.stage` with
``bet``, ``made``, ``present`` and ``tally``; ``tell(name, value)`` hears ``bet``, ``made``, ``go``,
``leave`` and ``present``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dpviz.report.figures import board, person

_FOLDER = Path(__file__).parent


@cache
def assets() -> board.Assets:
    """Return the stage's script and style, with those of the pictures that it holds."""
    held = board.assets()
    style = (_FOLDER / "stage.css").read_text(encoding="utf-8")
    # the script of a person brings the writer of numbers, which the stage uses too
    script = board.script("const DpvizStage", _FOLDER / "stage.js", "{ mount }")
    return board.Assets(
        "\n".join([person.script(), held.js, script]), held.css + person.style() + style
    )
