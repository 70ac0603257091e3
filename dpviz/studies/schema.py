"""The question `schema`: how a release would read a table."""

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


def _bounds(value: Any) -> str | FeatureBounds:
    if isinstance(value, str) and value in ("data", "none"):
        return value
    bounds: str | FeatureBounds = bounds_of(value)
    # Comparisons name bounds from the data "max", but schemas name them "data".
    if bounds == "max":
        return "data"
    # A comparison accepts a file of bounds. A schema does not, because it is itself such a file.
    if isinstance(bounds, str) and pair_of(bounds) is None:
        raise InvalidSetting("bounds", "data, none or LOW:HIGH", value, "--bounds")
    return bounds


@dataclass(frozen=True)
class SchemaOptions(Declared):
    """Parts of the table that a draft schema uses."""

    table: str = text(
        "digits",
        label="Table",
        help="Built-in table, or the path of a CSV, Parquet or xlsx file.",
        flag="TABLE",
    )
    sheet: str = inherit(
        Settings, "sheet", help="Name of a sheet of the workbook; default: the only sheet."
    )
    bounds: str | FeatureBounds = text(  # noqa: RUF009
        "data",
        label="Bounds",
        help="Limits of columns: each column's smallest and largest number (data), no limits "
        "(none), or LOW:HIGH for every column.",
        reads=_bounds,
        objects=True,
        examples=("none", "0:1"),
    )
    levels: str = inherit(Settings, "levels")


@dataclass(frozen=True, eq=False, repr=False)
class Draft(Answer):
    """A draft schema of a table.

    Attributes
    ----------
    schema : dpviz.releasing.schema.Schema
    """

    schema: Schema

    def summary(self) -> str:
        """Return how many columns are used, and the remaining tasks before a release."""
        schema = self.schema
        text = f"{len(schema.used)} of {len(schema.columns)} columns are used."
        if schema.from_data:
            text += (
                f" The schema is marked {FROM_DATA!r}. Enter limits that were known before anybody "
                f"looked at the table, then change the mark to {PUBLIC!r}."
            )
        return text

    def table(self) -> pd.DataFrame:
        """Return one row per column of the table."""
        return pd.DataFrame(self.data()["columns"])

    def data(self) -> dict[str, Any]:
        """Return the schema in the form of its file."""
        content: dict[str, Any] = json.loads(self.schema.to_text())
        return content

    def to_json(self) -> str:
        """Return the text of the schema's file, without the final line break."""
        return self.schema.to_text().rstrip("\n")

    def write_schema(self, path: str | PathLike[str]) -> None:
        """Write the file with which a release reads the table."""
        self.schema.write(Path(path))


@asks("draft a schema, which says how a release reads the table", SchemaOptions)
def schema(table: str | PathLike[str] = "digits", **options: Any) -> Draft:
    """Draft how a release would read a table: names, bounds, typical values, notation.

    Parameters
    ----------
    table : str or path
        A built-in table, or a file.
    **options
        Parts of the draft that are taken from the table.

    Returns
    -------
    Draft
        Draft schema; ``to_json()`` writes the bytes of ``dpviz schema``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable
        If an argument is unknown or out of its range, or the table cannot be read.

    See Also
    --------
    release : Reads a table under a schema.

    Notes
    -----
    Bounds from the data are not public. The schema states this, and a release refuses it until
    somebody has entered bounds that were known before. docs/schema.json describes the format.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.schema("iris", bounds="0:10")
    >>> len(found.table()) >= 4
    True
    """
    choices = SchemaOptions(table=fspath(table), **options)
    value = choices.bounds
    bounds = (pair_of(value) or value) if isinstance(value, str) else value
    levels = levels_in(choices.levels)
    source = table_input(choices.table, choices.sheet)
    return Draft(draft(source, Path(choices.table).name, bounds, levels=levels))
