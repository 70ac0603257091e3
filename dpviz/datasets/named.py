"""Small files that give numbers to features by name: public bounds and shares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from dpviz.core.csv_text import unguarded
from dpviz.core.errors import InvalidTable
from dpviz.datasets.files import read_raw


def read_bounds(source: str | Path | BinaryIO, *, name: str = "") -> dict[str, tuple[float, float]]:
    """Return low and high of each feature from a CSV or Parquet file.

    Parameters
    ----------
    source : str, Path or binary file
        With the columns feature, low and high, one row per feature.
    name : str
        What messages call it; by default the file's name.

    Raises
    ------
    InvalidTable
        If the file is not there, its columns are others, a name is repeated or
        a bound is not a number.
    """
    rows = _read_named(source, name, ("feature",), ("low", "high"), "bounds file")
    return {feature: (low, high) for feature, (low, high) in rows.items()}


def read_thetas(source: str | Path | BinaryIO, *, name: str = "") -> dict[str, float]:
    """Return the share of each feature or direction from a CSV or Parquet file.

    Parameters
    ----------
    source : str, Path or binary file
        With the columns theta and feature, or theta and direction.
    name : str
        What messages call it; by default the file's name.

    Raises
    ------
    InvalidTable
        As `read_bounds`.
    """
    rows = _read_named(source, name, ("feature", "direction"), ("theta",), "allocation file")
    return {direction: theta for direction, (theta,) in rows.items()}


def _read_named(
    source: str | Path | BinaryIO,
    name: str,
    keys: Sequence[str],
    numbers: Sequence[str],
    what: str,
) -> dict[str, tuple[float, ...]]:
    """Return the numbers of each row by the name in its key column."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        name = name or path.name
        if not path.is_file():
            raise InvalidTable(f"The {what} must exist; {name[:60]!r} does not.")
        source = path
    raw = read_raw(source, name=name)
    columns = {column.name: column for column in raw.columns}
    key = next((name for name in keys if name in columns), None)
    if key is None or not set(numbers) <= set(columns):
        needed = " (or ".join(keys) + (")" if len(keys) > 1 else "")
        raise InvalidTable(
            f"{name} must have the columns {needed}, {' and '.join(numbers)}; it has "
            f"{', '.join(sorted(columns))[:80]}."
        )
    incomplete = columns[key].missing or any(
        not columns[number].is_feature or columns[number].missing for number in numbers
    )
    if incomplete:
        raise InvalidTable(
            f"{name} must have a name and a number for {' and '.join(numbers)} in every row."
        )
    # The parsed columns and not a Table: names may be as many as rows.
    names = [_name(value) for value in raw.data[key].to_pylist()]
    if len(set(names)) != len(names):
        raise InvalidTable(f"{name} must name each {key} once; one is repeated.")
    values = zip(*(raw.data[number].to_pylist() for number in numbers), strict=True)
    return {
        name: tuple(float(value) for value in row) for name, row in zip(names, values, strict=True)
    }


def _name(value: object) -> str:
    """Return a cell as a name; whole numbers lose the point that parsing gave them."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return unguarded(str(value))
