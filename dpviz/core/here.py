"""Where dpviz runs: the one place that tells a browser from a machine with processes and sockets.

What cannot be done somewhere is said with the sentences of this file and with no others.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from dpviz.core.errors import NotAvailable

NO_DOWNLOADS = (
    "Inside a browser no data set can be downloaded, as the page asks no other host for anything; "
    "an installed dpviz can fetch it."
)
NO_LEDGER = (
    "Inside a browser no real release can be made, as its ledger has to outlive the page and a "
    "browser may clear what it keeps; an installed dpviz can make it."
)
NO_OPENDP = (
    "a release needs OpenDP, which is not installed here: python -m pip install "
    '"opendp>=0.14,<0.17"'
)
NO_WORKBOOKS = "Inside a browser no workbook can be read; save its sheet as CSV."
_MORE = {
    "streamlit": (
        "the dashboard",
        "Streamlit",
        ("pillow>=11", "plotly>=6,<8", "segno>=1.6.1,<2", "streamlit>=1.67,<2"),
    ),
    "plotly": ("a figure", "Plotly", ("plotly>=6,<8",)),
    "pooch": ("a download", "Pooch", ("pooch>=1.8.2,<2", "xlrd>=2.0.1,<3")),
    "xlrd": ("a table in the old Excel format", "xlrd", ("pooch>=1.8.2,<2", "xlrd>=2.0.1,<3")),
    "python_calamine": ("a workbook", "python-calamine", ("python-calamine>=0.4,<1",)),
    "xlsxwriter": ("a workbook of a release", "XlsxWriter", ("xlsxwriter>=3.2,<4",)),
    "pyreadstat": ("an SPSS file", "pyreadstat", ("pyreadstat>=1.3,<2",)),
}
ONE_PROCESS = "Inside a browser everything runs in one process: slower, and with the same numbers."
UPLOADS_STAY = (
    "The file stays in the memory of this page: it is sent nowhere, and goes when the page is "
    "closed or reloaded."
)


def in_browser() -> bool:
    """Return whether this Python runs inside a browser."""
    return sys.platform == "emscripten"


def need(library: str) -> None:
    """Raise `NotAvailable` where a library that `dpviz` does without is not installed.

    Parameters
    ----------
    library : {"streamlit", "plotly", "pooch", "xlrd", "python_calamine", "pyreadstat",
        "xlsxwriter"}
        Its import name.
    """
    if find_spec(library) is None:
        what, name, wanted = _MORE[library]
        asked = " ".join(f'"{one}"' for one in wanted)
        raise NotAvailable(
            f"{what[:1].upper()}{what[1:]} needs {name}, which is not installed here: "
            f"python -m pip install {asked}"
        )


def can_release() -> bool:
    """Return whether the library that draws a release's noise is installed."""
    return find_spec("opendp") is not None
