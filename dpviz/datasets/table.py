"""The value type every source of data ends in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.entries import OTHER, kinds_of
from dpviz.core.errors import InvalidTable

NAMELESS = "table"
"""What results call a table that was read from a file, unless the user says a name."""

WORKING_VIEW = "working view of real rows: nothing here may leave the room"
"""What every picture of rows carries that are not public."""


MOST_KINDS = 10
"""Whole numbers beyond so many are numbers and no kinds."""


def label_text(cell: object) -> str:
    """Return a label as a line of text would have it; whole numbers plain, nothing for a gap."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None else str(cell).strip()


@dataclass(frozen=True)
class Table:
    """A numeric table, its optional labels, and everything done to get there.

    Attributes
    ----------
    name : str
        Built-in key, or what the user calls it; never a file's name.
    rows : ndarray of shape (n, d), float64
        Finite, in the data's own units; n >= 2, d >= 2; read-only.
    columns : tuple of str
        One distinct name per feature.
    labels : ndarray of shape (n,) or None
        What colours the picture and what tasks predict: strings or numbers.
    label_name : str or None
    notes : tuple of str
        Every change made on the way, as sentences for the user.
    assumed_public : tuple of str
        What was taken from the data without protection.
    bounds : ndarray of shape (d, 2) or None
        Public lower and upper bound of each feature, where they are known
        without looking at the data.
    public : bool
        Whether its rows are anybody's to see: built-in tables and published data sets.
    categories : tuple of str
        What somebody declared to be the public categories of the labels; none where nobody did.
    """

    name: str
    rows: NDArray[np.float64]
    columns: tuple[str, ...]
    labels: NDArray[Any] | None = None
    label_name: str | None = None
    notes: tuple[str, ...] = ()
    assumed_public: tuple[str, ...] = ()
    bounds: NDArray[np.float64] | None = None
    public: bool = False
    categories: tuple[str, ...] = ()

    @property
    def ribbon(self) -> str | None:
        """What every picture of its rows carries; None where they are public."""
        return None if self.public else WORKING_VIEW

    @property
    def kinds(self) -> tuple[tuple[str, ...], NDArray[np.intp]] | None:
        """Names of the kinds of labels, and each row's place among them; None for numbers.

        Where categories are declared each row's place follows from its own label alone.
        """
        if self.labels is None:
            return None
        labels = np.asarray(self.labels)
        if self.categories:
            declared = kinds_of(self.categories)
            places = {name: at for at, name in enumerate(declared)}
            found = (places.get(label_text(x), places[OTHER]) for x in labels.tolist())
            return declared, np.fromiter(found, np.intp, len(labels))
        whole = labels.dtype.kind in "iu"
        if labels.dtype.kind == "f" or (whole and len(np.unique(labels)) > MOST_KINDS):
            return None
        names, codes = np.unique(labels.astype(str), return_inverse=True)
        return tuple(names.tolist()), codes.astype(np.intp)

    def __post_init__(self) -> None:
        n, d = self.rows.shape
        if n < 2:
            raise InvalidTable(f"{self.name} must have at least 2 rows; it has {n}.")
        if d < 2:
            raise InvalidTable(f"{self.name} must have at least 2 numeric columns; it has {d}.")
        self.rows.setflags(write=False)

    def noting(self, notes: Sequence[str]) -> Table:
        """Return the table with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def select(self, columns: Sequence[str]) -> Table:
        """Return the table with only these columns, in the table's order."""
        chosen = set(columns)
        index = [i for i, name in enumerate(self.columns) if name in chosen]
        return replace(
            self,
            rows=self.rows[:, index],
            columns=tuple(self.columns[i] for i in index),
            bounds=None if self.bounds is None else self.bounds[index],
        )
