"""What the environment says to a server: one reader for every switch, and each variable once.

Paths (`DPVIZ_DATA`, `DPVIZ_LEDGERS`, `DPVIZ_LESSONS`) are read where they are used.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass

from dpviz.core.errors import InvalidSetting

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
        The variable. It says on, off, 1, 0, true, false, yes or no, in any case.
    default : bool
        What it is where the variable is missing or empty.

    Raises
    ------
    InvalidSetting
        If it says anything else.
    """
    written = os.environ.get(name, "").strip()
    if not written:
        return default
    if written.lower() not in _WORDS:
        raise InvalidSetting(name, "on or off (or 1, 0, true, false, yes, no)", written)
    return _WORDS[written.lower()]


@dataclass(frozen=True)
class ServerOptions:
    """What whoever runs a server has said of it; a docstring a variable.

    Attributes
    ----------
    public : bool
        ``DPVIZ_PUBLIC``: strangers use it, so that nobody may put data on it or release any.
    uploads : bool
        ``DPVIZ_UPLOADS``: files may be uploaded; never where strangers come.
    release : bool
        ``DPVIZ_RELEASE``: real releases may be made; never where strangers come.
    sessions : int
        ``DPVIZ_SESSIONS``: people at a time.
    hosts : tuple of str
        ``DPVIZ_HOSTS``: names that the server is reached by, beside those of this machine;
        ``*.example.org`` is any name below one, ``*`` any at all.
    temporary_ledgers : bool
        ``DPVIZ_LEDGERS_TEMPORARY``: a ledger known by a name may lie where it does not last.
    """

    public: bool = False
    uploads: bool = True
    release: bool = True
    sessions: int = 20
    hosts: tuple[str, ...] = ()
    temporary_ledgers: bool = False


def server_options() -> ServerOptions:
    """Return what the environment says.

    Raises
    ------
    InvalidSetting
        If a variable says something that it may not.
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
    )


def _people(name: str, default: int) -> int:
    written = os.environ.get(name, "").strip()
    if not written:
        return default
    if not (written.isascii() and written.isdigit() and 0 < int(written) < 10_000):
        raise InvalidSetting(name, "a whole number from 1 to 9999", written)
    return int(written)


def _hosts(name: str) -> tuple[str, ...]:
    found = os.environ.get(name, "").lower().replace(",", " ").split()
    for written in found:
        if not (_NAME.fullmatch(written) or _is_address(written)):
            raise InvalidSetting(
                name, "names such as dpviz.example.org, *.example.org or *, with commas", written
            )
    return tuple(found)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
