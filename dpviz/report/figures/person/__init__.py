"""Script and style of the chart in which readers move the row of one person."""

from __future__ import annotations

from pathlib import Path

from dpviz.core import number_text
from dpviz.report.figures import board

_FOLDER = Path(__file__).parent

# Streamlit calls this function whenever it sends data. Unchanged data changes nothing in the chart.
_MOUNT = """
export default function (component) {
  const root = component.parentElement.querySelector(".dp-root");
  const sent = JSON.stringify(component.data);
  if (root.dpvizSent === sent) return;
  root.dpvizSent = sent;
  const data = { ...component.data };
  if (root.dpvizPicture) {
    root.dpvizPicture.stop();
    data.row = root.dpvizPicture.row();
  }
  root.dpvizPicture = dpvizPerson(root, data, null);
}
"""

MARKUP = '<div class="dp-root"></div>'


def style() -> str:
    """Return the style sheet."""
    return (_FOLDER / "person.css").read_text(encoding="utf-8")


def script() -> str:
    """Return the script, which defines ``dpvizPerson(root, payload, report)``."""
    # Export the distributions of directions so that tests can check them.
    exports = "{ dpvizPerson, DpvizDirections: { alarm, draws, moment } }"
    module = board.script("const { dpvizPerson, DpvizDirections }", _FOLDER / "person.js", exports)
    return f"{number_text.script()}\n{module}"


def component_script(prepare: str = "") -> str:
    """Return the script as a module that a Streamlit component can mount.

    Parameters
    ----------
    prepare : str
        Name of a function that is called with the root element before drawing.
    """
    start = f"{prepare}(root);\n  " if prepare else ""
    return script() + _MOUNT.replace("const sent =", f"{start}const sent =")
