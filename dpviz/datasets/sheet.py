"""A sheet of a workbook as a release reads it: text, in which each cell follows from itself."""

from __future__ import annotations

import csv
import io

from dpviz.core.errors import InvalidTable
from dpviz.datasets.files import open_file
from dpviz.datasets.process import Given
from dpviz.datasets.raw import CELLS
from dpviz.datasets.reader import ZIP_MAGIC
from dpviz.datasets.source import Source


class SheetText(io.BytesIO):
    """A sheet of a workbook as the text that is released.

    Attributes
    ----------
    formulas : int
        Cells that are missing in it, as they hold formulas.
    """

    formulas: int = 0


def is_workbook(name: str, sheet: str = "") -> bool:
    """Return whether a file is a workbook to a release, for which its bytes say nothing."""
    return bool(sheet) or name.lower().endswith((".xlsx", ".xlsm"))


def sheet_text(given: Given, name: str, sheet: str = "", *, cells: int = CELLS) -> SheetText:
    """Return a sheet as UTF-8 text with commas, where each cell follows from itself alone.

    Row i of the sheet is line i, from its first one to the last that holds anything, and column j
    is cell j: an empty row is an empty line. A number is written in full, however the sheet formats
    it, a date as 2024-01-31, a line break as a blank, an error as nothing; of merged cells the
    first holds what they hold. A formula may look at other rows, so its cell is empty. Where
    formulas stand and how far the sheet reaches counts as public, as names do.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
    name : str
        What messages call it.
    sheet : str
        By name; the only visible one if empty.
    cells : int
        The most that it may hold.

    Raises
    ------
    InvalidTable
        If it is no xlsx, is damaged or too large, or the sheet is none or one of several.
    """
    if Source(given, name).head(4) != ZIP_MAGIC:
        raise InvalidTable(f"{name} is no xlsx workbook; save it as one, or as CSV.")
    return _whole(given, name, sheet, cells)


def sheet_cells(given: Given, name: str, sheet: str) -> list[list[str]]:
    """Return the cells of a sheet of an xlsx or xls, empty ones too; as `sheet_text`."""
    lines = io.TextIOWrapper(_whole(given, name, sheet, CELLS), encoding="utf-8", newline="")
    return [*csv.reader(lines)]


def _whole(given: Given, name: str, sheet: str, cells: int) -> SheetText:
    with open_file(given, name, sheet=sheet, whole=True, cells=cells) as file:
        table = file.table({})
        text = SheetText(table["text"][0].as_py())
        text.formulas = file.about["formulas"]
    return text
