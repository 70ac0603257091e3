"""Tables: built-in ones, generators, and files. `load` takes a name or a path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dpviz.datasets.builtin import BuiltIn, builtin_tables, dataset_rows, load_builtin
from dpviz.datasets.files import read_raw
from dpviz.datasets.named import read_bounds, read_thetas
from dpviz.datasets.raw import Kind, RawColumn, RawTable
from dpviz.datasets.table import Table
from dpviz.errors import InvalidTable

__all__ = [
    "BuiltIn",
    "Kind",
    "RawColumn",
    "RawTable",
    "Table",
    "builtin_tables",
    "dataset_rows",
    "load",
    "load_builtin",
    "read_bounds",
    "read_raw",
    "read_thetas",
]


def load(
    name_or_path: str,
    *,
    label: str | None = None,
    categorical: str = "drop",
    missing: str = "drop",
) -> Table:
    """Return a built-in table by its key, or else the table in a file.

    Parameters
    ----------
    name_or_path : str
        Built-in key, or path of a CSV, gzipped CSV or Parquet file.
    label, categorical, missing
        As in `RawTable.to_table`. A built-in table has no categories or gaps;
        its label may be its own or one of its features, which then is none.

    Raises
    ------
    InvalidTable
        When there is no such table or file, or it cannot be used.
    """
    if name_or_path in builtin_tables():
        return _relabelled(load_builtin(name_or_path), label)
    path = Path(name_or_path)
    shown = path.name[:60]
    if not path.is_file():
        what = "a folder" if path.is_dir() else "neither"
        raise InvalidTable(
            f"table must be one of {', '.join(builtin_tables())} or the path of a CSV or Parquet "
            f"file; {shown!r} is {what}."
        )
    raw = read_raw(path, name=path.name)
    return raw.to_table(label=label, categorical=categorical, missing=missing)


def _relabelled(table: Table, label: str | None) -> Table:
    """Return a built-in table with the label asked for."""
    if label is None or label == table.label_name:
        return table
    if label not in table.columns:
        own = [] if table.label_name is None else [table.label_name]
        names = ", ".join([*own, *table.columns[:8]]) + (", ..." if len(table.columns) > 8 else "")
        raise InvalidTable(f"label must be a column of {table.name}: {names}; got {label[:60]!r}.")
    at = table.columns.index(label)
    others = [j for j in range(len(table.columns)) if j != at]
    return replace(
        table,
        rows=table.rows[:, others].copy(),
        columns=tuple(table.columns[j] for j in others),
        labels=table.rows[:, at].copy(),
        label_name=label,
        bounds=None if table.bounds is None else table.bounds[others],
    )
