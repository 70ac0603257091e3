"""A generated file is written, or compared with what is there."""

from __future__ import annotations

import argparse
from pathlib import Path


def write_or_check(what: str | None, path: Path, made: str) -> int:
    """Write a file, or with ``--check`` say by the exit status whether it is as made.

    Parameters
    ----------
    what : str or None
        The tool's docstring; its first line is the help.
    path : Path
        The generated file.
    made : str
        What it should hold.

    Returns
    -------
    int
        0, or 1 where the file is missing or differs.
    """
    parser = argparse.ArgumentParser(description=(what or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return int(not path.exists() or path.read_text(encoding="utf-8") != made)
    path.write_text(made, encoding="utf-8")
    return 0
