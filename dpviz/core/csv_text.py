"""CSV as every command and page writes it: text that a spreadsheet would run stays text.

Names of files, columns and classes are other people's. A cell that begins with ``=``, ``+``, ``-``
or ``@`` is a formula to a spreadsheet, so it gets an apostrophe in front, as spreadsheets write
text themselves; `unguarded` takes it away again.
"""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpviz.core.errors import InvalidSetting
from dpviz.core.whole import whole

if TYPE_CHECKING:
    import pandas as pd

# Also their full-width forms, and what some programs skip before they look.
_RUN = re.compile(r"'*[\t\r\n ]*[=+\-@＝＋－＠]|'*[\t\r]")


def guarded(text: str) -> str:
    """Return text that no spreadsheet runs: with an apostrophe in front where it needs one."""
    return f"'{text}" if _RUN.match(text) else text


def unguarded(text: str) -> str:
    """Return the text that `guarded` was given."""
    return text[1:] if text.startswith("'") and _RUN.match(text) else text


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV: a line of names, a line a row, no index."""
    changed, how = _guarded_table(table)
    text: str = changed.to_csv(**how)
    return text


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table to a file, as `csv_text` would."""
    changed, how = _guarded_table(table)
    changed.to_csv(path, **how)


def _guarded_table(table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table with its texts guarded, and how it is to be written."""
    changed = table.set_axis([_cell(name) for name in table.columns], axis=1)
    texts = [str(name) for name in table.columns]
    for place, kind in enumerate(table.dtypes):
        if kind.kind in "biufcmM":  # numbers, truth values and times are never run
            continue
        found = [text for text in table.iloc[:, place].unique() if isinstance(text, str)]
        texts += found
        if any(guarded(text) != text for text in found):
            changed.isetitem(place, [_cell(cell) for cell in table.iloc[:, place]])
    # A return within a cell ends it where it is not quoted, and what follows it begins another.
    returns = any("\r" in text for text in texts)
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return changed, {"index": False, "lineterminator": "\n", "quoting": quoting}


def _cell(cell: Any) -> Any:
    return guarded(cell) if isinstance(cell, str) else cell


# Tables -------------------------------------------------------------------------------------------


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table as CSV or Parquet, by the ending; whole or not at all.

    Raises
    ------
    InvalidSetting
        If the ending is another, or the folder cannot be written.
    CannotWrite
        If the system refuses, such as a full disk.
    """
    file = check_out(path)
    with whole(file) as aside:
        if file.suffix.lower() == ".csv":
            write_csv(table, aside)
        else:
            table.to_parquet(aside, index=False)


def check_out(path: str | Path) -> Path:
    """Return the path of a table to write, or raise InvalidSetting before any work."""
    file = Path(path)
    if file.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidSetting("out", "a path that ends in .csv or .parquet", str(path), "--out")
    folder = file.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or file.is_dir():
        raise InvalidSetting("out", "in a folder that is there and writable", str(path), "--out")
    return file.absolute()
