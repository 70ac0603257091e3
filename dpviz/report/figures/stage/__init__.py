"""The animation page: a chart, a sentence, a control and a filmstrip, on a page or in a file.

``DpvizStage.mount(element, payload, tell)`` shows the payload of `dpviz.lessons.scene.stage` with
``bet``, ``made``, ``present`` and ``tally``; ``tell(name, value)`` receives ``bet``, ``made``,
``go``, ``leave`` and ``present``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dpviz.report.figures import board, person

_FOLDER = Path(__file__).parent


@cache
def assets() -> board.Assets:
    """Return the script and style of the animation page, including its charts."""
    files = board.assets()
    style = (_FOLDER / "stage.css").read_text(encoding="utf-8")
    # The script of the person chart includes the number formatting that the animation page uses.
    script = board.script("const DpvizStage", _FOLDER / "stage.js", "{ mount }")
    return board.Assets(
        "\n".join([person.script(), files.js, script]), files.css + person.style() + style
    )
