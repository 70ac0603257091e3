"""Numeric rows of a Dask DataFrame, summed where its partitions are.

Dask is imported once a frame is at hand, and not before: it is an extra.
Partitions are computed by whatever scheduler the caller has set up, a cluster
or the threads of one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidTable
from dpviz.datasets.columns import listed
from dpviz.preparation.batches import complete
from dpviz.preparation.sums import Sum

S = TypeVar("S", bound=Sum)

_BLOCK_CELLS = 1 << 19


class FrameBatches:
    """The numeric rows of a Dask DataFrame; rows with gaps are left out.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    name : str
        What messages and results call it.

    Attributes
    ----------
    columns : tuple of str
        Names of the numeric columns.
    notes : tuple of str
        What was left out, as sentences.
    """

    def __init__(self, frame: Any, name: str = "frame") -> None:
        self.name = self.called = name
        numeric = [
            column
            for column, kind in frame.dtypes.items()
            if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)
        ]
        other = [str(column) for column in frame.columns if column not in set(numeric)]
        self.columns = tuple(str(column) for column in numeric)
        self.notes = (f"Left out as text or dates: {listed(other)}.",) if other else ()
        if len(self.columns) < 2:
            raise InvalidTable(
                f"{name} must have at least 2 numeric columns; it has {len(self.columns)}."
            )
        self._frame = frame[numeric]
        self._starts: list[int] | None = None

    def _partitions(self) -> list[Any]:
        """Return one delayed data frame per partition, in order."""
        return list(self._frame.to_delayed())

    def _named(self, partition: int) -> str:
        return f"partition {partition + 1} of {self.name}"

    def first(self) -> FloatArray:
        """Return the first rows without gaps; empty if there are none."""
        for number, part in enumerate(self._partitions()):
            rows = _rows(part.compute(), self._named(number), self.columns)[0]
            if len(rows):
                return rows
        return np.zeros((0, len(self.columns)))

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows: one sum per partition, merged in their order."""
        parts = self._partitions()
        # Row numbers are known after the first pass, and nothing before it asks for them.
        starts = self._starts or [0] * len(parts)
        sums: list[S] = _compute(
            _delayed(_partition_sum)(part, start, new, self._named(number), self.columns)
            for number, (part, start) in enumerate(zip(parts, starts, strict=True))
        )
        if self._starts is None:
            self._starts = [0, *np.cumsum([part.rows for part in sums])[:-1].tolist()]
        total = new()
        for part in sums:
            total.merge(part)
        return total


def _delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    import dask

    made: Callable[..., Any] = dask.delayed(function, pure=False)
    return made


def _compute(tasks: Any) -> list[Any]:
    import dask

    return list(dask.compute(*tasks))


def _rows(frame: pd.DataFrame, name: str, columns: tuple[str, ...]) -> tuple[FloatArray, int]:
    """Return the complete rows of a partition, and how many were not."""
    rows = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return complete(rows, None, name, columns, 0)


def _partition_sum(
    frame: pd.DataFrame, start: int, new: Callable[[], S], name: str, columns: tuple[str, ...]
) -> S:
    rows, dropped = _rows(frame, name, columns)
    total = new()
    total.dropped += dropped
    size = max(256, _BLOCK_CELLS // len(columns))
    for at in range(0, len(rows), size):
        total.add(rows[at : at + size], start + at)
    return total
