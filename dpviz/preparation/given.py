"""Whatever a caller has, prepared: a name, a path, a plan, a frame, an array or rows at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from dpviz.core.errors import InvalidSetting, InvalidTable, WrongArgument
from dpviz.core.settings import Settings, codes_in, levels_in, names_in
from dpviz.datasets import relabelled, without
from dpviz.datasets.frames import is_frame, read_frame, table_of_array
from dpviz.datasets.table import Table
from dpviz.preparation.bounding import BoundedRows, prepare, prepare_batches
from dpviz.preparation.frames import SparseRows
from dpviz.preparation.load import load_measured, with_bounds_read
from dpviz.preparation.plan import Planned

TABLE_ALLOWED = (
    "a built-in key, a path, a plan such as plan:n=1e5,spectrum=power:d=50,exponent=1.5,total=0.5, "
    "a data frame (pandas, polars, Arrow, Dask), an array of shape (n, d) (NumPy, Dask, SciPy's "
    "sparse ones, or a list of rows) or a Bunch"
)


def name_of(given: object) -> str:
    """Return what `Settings.table` says of a table.

    Raises
    ------
    WrongArgument
        If it is nothing that `prepare_given` takes.
    """
    if isinstance(given, (str, Path)):
        return str(given)
    if isinstance(given, (Table, BoundedRows, Planned)):
        return given.name
    if _is_array(given) or _is_dask_array(given) or _is_sparse(given):
        return "array"
    if is_frame(given) or _is_dask(given) or _is_lazy(given) or _is_bunch(given):
        return "frame"
    article = "an" if type(given).__name__[0].lower() in "aeiou" else "a"
    raise WrongArgument(
        f"table must be {TABLE_ALLOWED}; got {article} {type(given).__name__[:40]}."
    )


def prepare_given(given: Any, settings: Settings) -> BoundedRows | Planned:
    """Return a table prepared by its settings.

    Parameters
    ----------
    given : str, Path, DataFrame, ndarray, Table, BoundedRows or Planned
        Rows that are prepared already, and plans, are returned as they are.
    settings : Settings
        Its ``table`` is the name or path, where there is one.

    Raises
    ------
    DpvizError
        If the table cannot be read or used with these settings.
    """
    name_of(given)  # refuses what is nothing to read
    if isinstance(given, (BoundedRows, Planned)):
        return given
    if isinstance(given, (str, Path)):
        return load_measured(settings)
    settings = with_bounds_read(settings)
    if _is_dask_array(given):
        given = _frame_of(given)
    if _is_sparse(given):
        for name, value in (("label", settings.label), ("leave out", settings.leave_out)):
            if value:
                allowed = "left out for a sparse matrix, whose columns have no names"
                raise InvalidSetting(name, allowed, value)
        given = SparseRows(given)
    if _is_dask(given) or isinstance(given, SparseRows):
        if settings.label is not None:
            raise InvalidSetting("label", "None for a Dask frame: drop the column", settings.label)
        return prepare_batches(given, settings)
    return prepare(_table_of(given, settings), settings)


def table_given(given: Any, settings: Settings) -> Table:
    """Return a table whose rows are in memory, with its label, before any preparation.

    Parameters
    ----------
    given : DataFrame, ndarray or Table
        Or a Dask frame or array, which is computed.
    settings : Settings
        What is read of it.

    Raises
    ------
    DpvizError
        If it is none of these, or cannot be read.
    """
    name_of(given)
    if _is_sparse(given):
        given = given.toarray()
    return _table_of(given.compute() if _is_dask(given) else given, settings)


def _table_of(given: Any, settings: Settings) -> Table:
    if _is_lazy(given):
        given = given.collect()
    if _is_bunch(given):
        given = _frame_of_bunch(given, settings.label)
    if isinstance(given, Table) or _is_array(given):
        table = given if isinstance(given, Table) else table_of_array(_array_of(given))
        return without(relabelled(table, settings.label), names_in(settings.leave_out))
    return (
        read_frame(given, name_of(given))
        .recoded(codes_in(settings.codes))
        .ordered(levels_in(settings.levels))
        .to_table(
            label=settings.label,
            categorical=settings.categorical,
            missing=settings.missing,
            leave_out=names_in(settings.leave_out),
            rows_a_person=settings.rows_a_person,
            person=settings.person,
        )
    )


def _is_dask(given: object) -> bool:
    kind = type(given)  # a delayed value would promise any attribute
    return kind.__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(kind, "to_delayed")


def _is_sparse(given: object) -> bool:
    return bool(sparse.issparse(given))


def _is_dask_array(given: object) -> bool:
    return _is_dask(given) and not hasattr(type(given), "columns")


def _frame_of(array: Any) -> Any:
    """Return a Dask array of shape (n, d) as a frame, a block of rows a partition.

    Raises
    ------
    InvalidTable
        If it has another shape, or holds no real numbers.
    """
    if getattr(array, "ndim", None) != 2:
        found = getattr(array, "ndim", "no")
        raise InvalidTable(f"array must have the shape (n, d); it has {found} dimensions.")
    if array.dtype.kind not in "biuf":
        raise InvalidTable(f"array must hold real numbers; its dtype is {array.dtype}.")
    from dask.dataframe import from_dask_array

    return from_dask_array(array.rechunk({1: -1}), columns=_titles(array.shape[1]))


def _is_array(given: object) -> bool:
    """Return whether it is rows of numbers: NumPy's, a list's, or another library's."""
    if isinstance(given, (np.ndarray, list, tuple)):
        return True
    # one column is an array too; asked of the value, whose shape says it
    return (
        hasattr(type(given), "__array__")
        and len(getattr(given, "shape", ())) == 2
        and (not is_frame(given))
    )


def _array_of(given: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(given)
    except ValueError:  # rows of different lengths
        raise InvalidTable("each row of a list must be as long as the others.") from None


def _is_lazy(given: object) -> bool:
    kind = type(given)
    return kind.__module__.partition(".")[0] == "polars" and kind.__name__ == "LazyFrame"


def _is_bunch(given: object) -> bool:
    """Return whether it is what scikit-learn's loaders return."""
    return isinstance(given, dict) and type(given) is not dict and "data" in given


def _frame_of_bunch(bunch: Any, label: str | None) -> pd.DataFrame:
    """Return the features of a Bunch, and its target where that is the label."""
    data = bunch["data"]
    if _is_sparse(data):  # its columns have names, so it is a frame
        data = data.toarray()
    if not isinstance(data, pd.DataFrame):
        rows = table_of_array(_array_of(data)).rows
        names = bunch.get("feature_names")
        titles = list(names) if names is not None else None
        data = pd.DataFrame(rows, columns=titles if titles else _titles(rows.shape[1]))
    if label != _TARGET or bunch.get("target") is None:
        return data
    return data.assign(**{_TARGET: np.asarray(bunch["target"])})


def _titles(d: int) -> list[str]:
    return [f"column {j + 1}" for j in range(d)]


_TARGET = "target"
"""What the label of a Bunch is called."""
