"""The question `schema`: how a table would be read by a release."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.core.entries import FeatureBounds, bounds_of, pair_of
from dpviz.core.errors import InvalidSetting
from dpviz.core.params import Declared, inherit, text
from dpviz.core.settings import Settings, levels_in
from dpviz.releasing.drafting import draft
from dpviz.releasing.making import table_input
from dpviz.releasing.schema import FROM_DATA, PUBLIC, Schema
from dpviz.studies import Answer
from dpviz.studies.options import asks


def _bounds(given: Any) -> str | FeatureBounds:
    if isinstance(given, str) and given in ("data", "none"):
        return given
    found: str | FeatureBounds = bounds_of(given)
    # a board's word for bounds from the data; a schema has its own for it
    if found == "max":
        return "data"
    # the name of a file is a legal bound of a board: a schema is such a file itself
    if isinstance(found, str) and pair_of(found) is None:
        raise InvalidSetting("bounds", "data, none or LOW:HIGH", given, "--bounds")
    return found


@dataclass(frozen=True)
class SchemaOptions(Declared):
    """What a first schema takes from the table."""

    table: str = text(
        "digits",
        label="Table",
        help="Built-in table, or the path of a CSV, Parquet or xlsx file.",
        flag="TABLE",
    )
    sheet: str = inherit(
        Settings, "sheet", help="Sheet of a workbook, by name; its only one if not given."
    )
    bounds: str | FeatureBounds = text(  # noqa: RUF009
        "data",
        label="Bounds",
        help="Each column's smallest and largest number (data), nothing (none), or LOW:HIGH, the "
        "same for every column.",
        reads=_bounds,
        objects=True,
        examples=("none", "0:1"),
    )
    levels: str = inherit(Settings, "levels")


@dataclass(frozen=True, eq=False, repr=False)
class Draft(Answer):
    """A first schema of a table.

    Attributes
    ----------
    schema : dpviz.releasing.schema.Schema
    """

    schema: Schema

    def summary(self) -> str:
        """Return how many columns are used, and what is to be done before a release."""
        found = self.schema
        said = f"{len(found.used)} of {len(found.columns)} columns are used."
        if found.from_data:
            said += (
                f" The schema is marked {FROM_DATA!r}: put in what was known before anybody looked "
                f"at the table, then write {PUBLIC!r} there."
            )
        return said

    def table(self) -> pd.DataFrame:
        """Return one row per column of the table."""
        return pd.DataFrame(self.data()["columns"])

    def data(self) -> dict[str, Any]:
        """Return the schema as its file holds it."""
        found: dict[str, Any] = json.loads(self.schema.to_text())
        return found

    def to_json(self) -> str:
        """Return the text of the schema's file, without the end of its last line."""
        return self.schema.to_text().rstrip("\n")

    def write_schema(self, path: str | PathLike[str]) -> None:
        """Write the file that a release reads the table by."""
        self.schema.write(Path(path))


@asks("write a first schema of a table: what a release reads it by", SchemaOptions)
def schema(table: str | PathLike[str] = "digits", **options: Any) -> Draft:
    """Draft how a table is read by a release: names, bounds, typical values, how it is written.

    Parameters
    ----------
    table : str or path
        A built-in table, or a file.
    **options
        What is taken from it.

    Returns
    -------
    Draft
        ``to_json()`` writes the bytes of ``dpviz schema``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable
        If an argument is none of these or out of its range, or the table cannot be read.

    See Also
    --------
    release : Reads a table under a schema.

    Notes
    -----
    Bounds that come from the data are not public: the schema says so, and a release refuses it
    until somebody has put in what was known before. docs/schema.json is the format.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.schema("iris", bounds="0:10")
    >>> len(found.table()) >= 4
    True
    """
    chosen = SchemaOptions(table=fspath(table), **options)
    stated = chosen.bounds
    bounds = (pair_of(stated) or stated) if isinstance(stated, str) else stated
    levels = levels_in(chosen.levels)
    source = table_input(chosen.table, chosen.sheet)
    return Draft(draft(source, Path(chosen.table).name, bounds, levels=levels))
