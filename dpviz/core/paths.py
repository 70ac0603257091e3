"""Folders: the user's cache, and the dashboard's files beside the package or inside a wheel.

A checkout keeps ``app.py``, ``pages/``, ``data/`` and ``.streamlit/`` at the repository root,
where a cloud host looks for them. A wheel may not scatter files over site-packages, so the build
puts the same four under ``dpviz/_app/`` (see ``force-include`` in ``pyproject.toml``). Both places
are laid out alike: Streamlit resolves page paths and reads its settings relative to ``app.py``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package itself, the root of every room."""


def app_path() -> Path:
    """Return the absolute path of ``app.py``, the script to give to Streamlit.

    Returns
    -------
    Path
        The wheel's copy if there is one, otherwise the file beside the package.

    Raises
    ------
    FileNotFoundError
        If neither exists: the package was copied without its dashboard. This is a broken
        installation and not a user's input, so it is not a ``DpvizError``.
    """
    return _root() / "app.py"


def _root() -> Path:
    """Return the folder of ``app.py``, preferring the wheel's copy.

    The wheel's copy comes first: site-packages may hold somebody else's ``app.py``.
    """
    for folder in (PACKAGE / "_app", PACKAGE.parent):
        if (folder / "app.py").is_file():
            return folder
    raise FileNotFoundError(
        "The dashboard's files are missing: no app.py inside the dpviz package or beside it."
    )


def user_cache() -> Path:
    """Return this user's cache folder for dpviz, by the platform's custom; nothing is made."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dpviz"
