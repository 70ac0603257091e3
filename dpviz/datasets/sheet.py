"""Read a workbook sheet as a release does: as text, in which each cell depends only on itself."""

from __future__ import annotations

import csv
import io

from dpviz.core.errors import InvalidTable
from dpviz.datasets.files import open_file
from dpviz.datasets.process import Given
from dpviz.datasets.raw import CELLS
from dpviz.datasets.reader import ZIP_MAGIC
from dpviz.datasets.source import Source
from dpviz.datasets.table import ReadOptions


class SheetText(io.BytesIO):
    """A workbook sheet as the text that is released.

    Attributes
    ----------
    formulas : int
        Number of cells left empty because they hold formulas.
    """

    formulas: int = 0


def is_workbook(name: str, sheet: str = "") -> bool:
    """Return whether a release treats a file as a workbook; its bytes do not matter."""
    return bool(sheet) or name.lower().endswith((".xlsx", ".xlsm"))


def sheet_text(given: Given, name: str, sheet: str = "", *, cells: int = CELLS) -> SheetText:
    """Return a sheet as UTF-8 text with commas, in which each cell depends only on itself.

    Row i of the sheet, from the first row to the last filled row, becomes line i, and column j
    becomes cell j. An empty row is an empty line. A number is written in full, whatever the sheet's
    format, a date as 2024-01-31, a line break as a blank, an error as nothing. The first of merged
    cells holds their content. A formula may depend on other rows, so its cell is empty. The places
    of formulas and the sheet's extent count as public, as names do.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
    name : str
        Name of the file in messages.
    sheet : str
        Name of the sheet; if empty, the only visible sheet.
    cells : int
        Limit on the number of cells.

    Raises
    ------
    InvalidTable
        If the file is not xlsx, is damaged or too large, or the sheet does not exist or is
        ambiguous.
    """
    if Source(given, name).head(4) != ZIP_MAGIC:
        raise InvalidTable(f"{name} is not an xlsx workbook; save it as xlsx or as CSV.")
    return _whole(given, name, sheet, cells)


def sheet_cells(given: Given, name: str, sheet: str) -> list[list[str]]:
    """Return the cells of a sheet of an xlsx or xls as `sheet_text` does, with empty cells."""
    lines = io.TextIOWrapper(_whole(given, name, sheet, CELLS), encoding="utf-8", newline="")
    return [*csv.reader(lines)]


def _whole(source: Given, name: str, sheet: str, cells: int) -> SheetText:
    with open_file(source, name, ReadOptions(sheet=sheet), whole=True, cells=cells) as file:
        table = file.table({})
        text = SheetText(table["text"][0].as_py())
        text.formulas = file.about["formulas"]
    return text
