"""One person dragged: the picture's script and style."""

from __future__ import annotations

from pathlib import Path

from dpviz.core import number_text
from dpviz.report.figures import board

_FOLDER = Path(__file__).parent

# Streamlit calls this again whenever it sends data; the same data keeps what the reader has moved.
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
    # the laws of directions are given for those who check them
    given = "{ dpvizPerson, DpvizDirections: { alarm, draws, moment } }"
    made = board.script("const { dpvizPerson, DpvizDirections }", _FOLDER / "person.js", given)
    return f"{number_text.script()}\n{made}"


def component_script(prepare: str = "") -> str:
    """Return the script as a module that a Streamlit component mounts.

    Parameters
    ----------
    prepare : str
        Name of a function that is given the root element before anything is drawn.
    """
    start = f"{prepare}(root);\n  " if prepare else ""
    return script() + _MOUNT.replace("const sent =", f"{start}const sent =")
