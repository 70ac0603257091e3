"""The platform and environment in which dpviz runs.

Only this module distinguishes a browser from a machine with processes and sockets. All messages
about missing features come from this file. The module also reads every server switch once; paths
(`DPVIZ_DATA`, `DPVIZ_LEDGERS`, `DPVIZ_LESSONS`) are read where they are used.
"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from dpviz.core.errors import InvalidSetting, NotAvailable

# --- a browser or a machine -----------------------------------------------------------------------


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
_DOWNLOADS = ("pooch>=1.8.2,<2", "unlzw3>=0.2.2,<1")
_MORE = {
    "streamlit": (
        "the dashboard",
        "Streamlit",
        ("plotly>=6.3,<8", "segno>=1.6.1,<2", "streamlit>=1.67,<2"),
    ),
    "matplotlib": ("a picture for print", "Matplotlib", ("matplotlib>=3.10,<4",)),
    "plotly": ("a figure", "Plotly", ("plotly>=6.3,<8",)),
    "pooch": ("a download", "Pooch", _DOWNLOADS),
    "unlzw3": ("a file of the program compress", "unlzw3", _DOWNLOADS),
    "python_calamine": ("a workbook", "python-calamine", ("python-calamine>=0.5.4,<1",)),
    "xlsxwriter": ("a workbook of a release", "XlsxWriter", ("xlsxwriter>=3.2,<4",)),
    "pyreadstat": ("an SPSS file", "pyreadstat", ("pyreadstat>=1.3.3,<2",)),
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
    """Raise `NotAvailable` if an optional library is not installed.

    Parameters
    ----------
    library : {"streamlit", "plotly", "matplotlib", "pooch", "unlzw3", "python_calamine",
        "pyreadstat", "xlsxwriter"}
        Its import name.
    """
    if find_spec(library) is None:
        what, name, wanted = _MORE[library]
        packages = " ".join(f'"{one}"' for one in wanted)
        raise NotAvailable(
            f"{what[:1].upper()}{what[1:]} needs {name}, which is not installed here: "
            f"python -m pip install {packages}"
        )


def can_release() -> bool:
    """Return whether the library that samples a release's noise is installed."""
    return find_spec("opendp") is not None


# --- the environment of a server ------------------------------------------------------------------


_WORDS = {
    "on": True, "1": True, "true": True, "yes": True,
    "off": False, "0": False, "false": False, "no": False,
}  # fmt: skip
_NAME = re.compile(r"\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")


def switch(name: str, default: bool = False) -> bool:
    """Return whether a switch is on.

    Parameters
    ----------
    name : str
        Name of the variable. Its value is on, off, 1, 0, true, false, yes or no, in any case.
    default : bool
        Result if the variable is missing or empty.

    Raises
    ------
    InvalidSetting
        If the variable has any other value.
    """
    written = os.environ.get(name, "").strip()
    if not written:
        return default
    if written.lower() not in _WORDS:
        raise InvalidSetting(name, "on or off (or 1, 0, true, false, yes, no)", written)
    return _WORDS[written.lower()]


@dataclass(frozen=True)
class ServerOptions:
    """Server options, set by environment variables.

    Attributes
    ----------
    public : bool
        ``DPVIZ_PUBLIC``: strangers use the server, so nobody may upload data or make a release.
    uploads : bool
        ``DPVIZ_UPLOADS``: files may be uploaded; never on a public server.
    release : bool
        ``DPVIZ_RELEASE``: real releases may be made; never on a public server.
    sessions : int
        ``DPVIZ_SESSIONS``: maximum number of people at a time.
    hosts : tuple of str
        ``DPVIZ_HOSTS``: host names of the server, besides the names of this machine;
        ``*.example.org`` is any name below one, ``*`` is any name.
    temporary_ledgers : bool
        ``DPVIZ_LEDGERS_TEMPORARY``: a ledger known by a name may be in a temporary place.
    one_ledger : bool
        ``DPVIZ_ONE_LEDGER``: refuse a table if another ledger in the folder tracks its budget.
    """

    public: bool = False
    uploads: bool = True
    release: bool = True
    sessions: int = 20
    hosts: tuple[str, ...] = ()
    temporary_ledgers: bool = False
    one_ledger: bool = False


def server_options() -> ServerOptions:
    """Return the server's options from the environment.

    Raises
    ------
    InvalidSetting
        If a variable has a value that is not allowed.
    """
    public = switch("DPVIZ_PUBLIC")
    uploads = switch("DPVIZ_UPLOADS", True)
    release = switch("DPVIZ_RELEASE", True)
    return ServerOptions(
        public,
        uploads and not public,
        release and not public,
        _people("DPVIZ_SESSIONS", ServerOptions.sessions),
        _hosts("DPVIZ_HOSTS"),
        switch("DPVIZ_LEDGERS_TEMPORARY"),
        switch("DPVIZ_ONE_LEDGER"),
    )


def _people(name: str, default: int) -> int:
    written = os.environ.get(name, "").strip()
    if not written:
        return default
    if not (written.isascii() and written.isdigit() and 0 < int(written) < 10_000):
        raise InvalidSetting(name, "a whole number from 1 to 9999", written)
    return int(written)


def _hosts(name: str) -> tuple[str, ...]:
    names = os.environ.get(name, "").lower().replace(",", " ").split()
    for written in names:
        if not (_NAME.fullmatch(written) or _is_address(written)):
            raise InvalidSetting(
                name, "names such as dpviz.example.org, *.example.org or *, with commas", written
            )
    return tuple(names)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
