"""A workbook's cells as text, read by a process of its own, which may die of it without harm.

The reader is compiled. It makes room for the rectangle that a file claims to have, and where there
is no such room it aborts, which no ``except`` catches. So `dpviz.datasets.formats` runs this file
as a script, and it imports nothing of dpviz.
"""

from __future__ import annotations

import ctypes
import datetime
import io
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

PROTECTED, TOO_LARGE = 40, 41
"""The script's status where a password protects the workbook, and where its text is too long."""
SECONDS = 300
"""The most of a processor's time that reading a file gets; 67 million cells take a third of it."""

_BASE_BYTES = 1 << 30
_DIES_WITH_PARENT = 1  # of prctl(2)
_CELL_BYTES = 160
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def cell_text(value: object) -> str:
    """Return a cell as text: a number in full, a date as 2024-01-31.

    Parameters
    ----------
    value : object
        As python-calamine or pandas have it.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # workbooks hold every number as a float; above 1e15 its digits are no longer all its own
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        # a date is held as midnight of its day
        return str(value.date() if value.time() == datetime.time() else value)
    return str(value).strip()


def limited(cells: int) -> None:
    """Let this process end where memory or time runs short, or with the thread that started it.

    Parameters
    ----------
    cells : int
        The most that it may take memory for.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would put the data on disk
        most = _BASE_BYTES + _CELL_BYTES * cells
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    with suppress(AttributeError, OSError, TypeError):
        # Linux alone; compiled code looks up nowhere
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _read(data: bytes, sheet: str, whole: bool) -> tuple[list[str], str, list[list[str]]]:
    """Return the names of the visible sheets, the one that was chosen, and its rows.

    The whole sheet, if it is named or the only one, or what it holds without rows and columns
    that hold nothing at all, if it is named or the first that can be a table.
    """
    import python_calamine as calamine  # here, as dpviz imports this file for its text alone

    try:
        book = calamine.load_workbook(io.BytesIO(data))
        names = [
            found.name
            for found in book.sheets_metadata
            if found.typ == calamine.SheetTypeEnum.WorkSheet
            and found.visible == calamine.SheetVisibleEnum.Visible
        ]
        tried = [name for name in names if name == sheet or not sheet]
        if whole and len(tried) > 1:
            return names, "", []
        chosen = ""
        rows: list[list[Any]] = []
        for chosen in tried:
            rows = book.get_sheet_by_name(chosen).to_python(skip_empty_area=not whole)
            for row in rows:  # in place, as either takes much memory
                row[:] = map(cell_text, row)
            if whole:
                break
            rows = [row for row in rows if any(row)]
            held = [j for j, column in enumerate(zip(*rows, strict=True)) if any(column)]
            rows = [[row[j] for j in held] for row in rows]
            # many books begin with a cover
            if len(rows) >= 2 and len(held) >= 2:
                break
    except calamine.CalamineError as error:
        # of a protected xlsx the reader says only that it does not know what it is
        if isinstance(error, calamine.PasswordError) or _ENCRYPTED in data:
            sys.exit(PROTECTED)
        raise
    return names, chosen, rows


def _main() -> None:
    """Answer what is asked by one line on the standard input, with the workbook behind it."""
    sheet, whole, cells, letters = json.loads(sys.stdin.buffer.readline())
    limited(cells)
    names, chosen, rows = _read(sys.stdin.buffer.read(), sheet, whole)
    # many cells of a small file may share one long text
    if sum(len(text) for row in rows for text in row) > letters:
        sys.exit(TOO_LARGE)
    for line in ([names, chosen], *rows):
        sys.stdout.buffer.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


if __name__ == "__main__":
    _main()
