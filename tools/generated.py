"""Write a generated file, or compare it with the existing file."""

from __future__ import annotations

import argparse
from pathlib import Path


def write_or_check(what: str | None, path: Path, text: str) -> int:
    """Write a file; with ``--check``, return by the exit status whether it is up to date.

    Parameters
    ----------
    what : str or None
        The tool's docstring; its first line is the help.
    path : Path
        The generated file.
    text : str
        Expected content.

    Returns
    -------
    int
        0, or 1 if the file is missing or differs.
    """
    parser = argparse.ArgumentParser(description=(what or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return int(not path.exists() or path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8")
    return 0
