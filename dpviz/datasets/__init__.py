"""Tables: built-in ones, generators, files and remote sets. `load` takes a name or a path."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from dpviz.core.errors import InvalidTable, did_you_mean, printable
from dpviz.datasets import remote
from dpviz.datasets.builtin import BuiltIn, builtin_tables, dataset_rows, load_builtin
from dpviz.datasets.check import (
    USES,
    ColumnCheck,
    check_columns,
    identifier_notes,
    rows_lost,
    suggested_drops,
)
from dpviz.datasets.columns import Kind, RawColumn, listed
from dpviz.datasets.files import read_bounds, read_raw, read_thetas
from dpviz.datasets.raw import RawTable
from dpviz.datasets.source import UPLOADED, Limits
from dpviz.datasets.table import NAMELESS, Table

__all__ = [
    "UPLOADED",
    "USES",
    "BuiltIn",
    "ColumnCheck",
    "Kind",
    "Limits",
    "RawColumn",
    "RawTable",
    "Table",
    "builtin_tables",
    "check_columns",
    "dataset_rows",
    "is_remote",
    "load",
    "load_builtin",
    "read_bounds",
    "read_raw",
    "read_thetas",
    "relabelled",
    "remote",
    "rows_lost",
    "suggested_drops",
    "without",
]


def load(
    name_or_path: str,
    *,
    label: str | None = None,
    categorical: str = "drop",
    missing: str = "drop",
    decimal: str = "auto",
    encoding: str = "auto",
    sheet: str = "",
    leave_out: Collection[str] = (),
    codes: Collection[float] = (),
    levels: Collection[Sequence[str]] = (),
    rows_a_person: int | None = None,
    person: str | None = None,
) -> Table:
    """Return a built-in table by its key, the table in a file, or a remote set by its key.

    Parameters
    ----------
    name_or_path : str
        Built-in key, path of a file that `read_raw` takes, or key of a
        remote set: what comes first of these counts. A remote set that is not at
        hand is downloaded.
    label, categorical, missing, leave_out, rows_a_person, person
        As in `RawTable.to_table`. A built-in table and a remote set have no
        categories or gaps; their label may be their own or one of their
        features, which then is none.
    decimal, encoding, sheet
        As in `read_raw`.
    codes : collection of float
        As in `RawTable.recoded`.
    levels : collection of sequence of str
        As in `RawTable.ordered`.

    Raises
    ------
    InvalidTable
        When there is no such table or file, or it cannot be used.
    NotAvailable
        When a remote set cannot be got.
    """
    if name_or_path in builtin_tables():
        return without(relabelled(load_builtin(name_or_path), label), leave_out)
    if is_remote(name_or_path):
        return without(relabelled(remote.load(name_or_path), label), leave_out)
    path = Path(name_or_path)
    shown = printable(path.name)
    if not path.is_file():
        what = "a folder" if path.is_dir() else "neither"
        raise InvalidTable(
            f"table must be one of {', '.join(builtin_tables())}, a remote data set "
            f"({', '.join(remote.sets())}) or the path of a CSV or Parquet file; {shown!r} is "
            f"{what}{did_you_mean(shown, [*builtin_tables(), *remote.sets()])}."
        )
    raw = read_raw(path, name=path.name, decimal=decimal, encoding=encoding, sheet=sheet)
    raw = raw.recoded(codes).ordered(levels)
    table = raw.to_table(
        label=label,
        categorical=categorical,
        missing=missing,
        leave_out=leave_out,
        rows_a_person=rows_a_person,
        person=person,
    ).noting(identifier_notes(raw, {*leave_out, label, person}))
    return replace(table, name=NAMELESS)


def is_remote(name: str) -> bool:
    """Return whether `load` takes a name for a remote set: no built-in table or file has it."""
    return name in remote.sets() and name not in builtin_tables() and not Path(name).is_file()


def without(table: Table, names: Collection[str]) -> Table:
    """Return a table without some of its features."""
    for name in names:
        if name not in table.columns:
            raise InvalidTable(
                f"a column left out must be a column of {table.name}, one of "
                f"{listed(table.columns)}; got {printable(name)!r}."
            )
    return table.select([name for name in table.columns if name not in names]) if names else table


def relabelled(table: Table, label: str | None) -> Table:
    """Return a table that has its label with the one asked for."""
    if label is None or label == table.label_name:
        return table
    if label not in table.columns:
        own = [] if table.label_name is None else [table.label_name]
        names = listed([*own, *table.columns])
        raise InvalidTable(
            f"label must be a column of {table.name}: {names}; got {printable(label)!r}."
        )
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
