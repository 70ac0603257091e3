"""The value type every source of data ends in, and how one is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.entries import OTHER, kinds_of
from dpviz.core.errors import InvalidTable, printable
from dpviz.core.settings import Settings, codes_in, left_out_in, levels_in, read_as_in
from dpviz.datasets.columns import listed

NAMELESS = "table"
"""What results call a table that was read from a file, unless the user says a name."""

WORKING_VIEW = "working view of real rows: internal, do not share"
"""What every picture of rows carries that are not public."""

NOT_PUBLISHED = (
    "Not to be published: the file was read as it is explored, so that one cell can leave a row or "
    "a column out, which no noise covers. To publish, declare how it is read (dpviz schema FILE "
    "--out schema.json, then put in public bounds) and give it with --schema, or make a release."
)
"""What is said of pictures that noise covers, where nobody declared how their table is read."""


MOST_KINDS = 10
"""Whole numbers beyond so many are numbers and no kinds."""


def label_text(cell: object) -> str:
    """Return a label as a line of text would have it; whole numbers plain, nothing for a gap."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None else str(cell).strip()


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read, and which of its columns and rows count: parsed once, then handed on.

    Attributes
    ----------
    label : str or None
        Column that becomes the labels and is no feature. Rows without a label are left out.
    categorical : {"drop", "onehot"}
        Whether texts are left out or become one 0/1 feature per category.
    missing : {"drop", "median"}
        Whether rows with gaps are left out, or a gap in a number becomes its column's median and a
        gap in a category is 0 in all its features.
    decimal : {"auto", "point", "comma"}
        The decimal mark of numbers in texts; auto finds it, or asks.
    encoding, sheet : str
        As in `dpviz.datasets.files.read_raw`.
    codes : collection of float or str
        Numbers and words that are read as missing.
    read_as : mapping of str to {"number", "category"}
        What columns are read as, by name: as numbers, where what is none is missing, or as texts.
    levels : collection of sequence of str
        Scales of words, each from the least to the most, that are read as 1, 2, ...
    rows_a_person : int or None
        Most rows of one person, as the user states it; None where nobody said.
    person : str or None
        Column that names the person: no feature. Of each person the first rows count, as many as
        stated, or one.
    leave_out : collection of str or None
        Columns that become no feature and lose no rows; None for those that look like identifiers.
    """

    label: str | None = None
    categorical: str = "drop"
    missing: str = "drop"
    decimal: str = "auto"
    encoding: str = "auto"
    sheet: str = ""
    codes: Collection[float | str] = ()
    read_as: Mapping[str, str] = field(default_factory=dict)
    levels: Collection[Sequence[str]] = ()
    rows_a_person: int | None = None
    person: str | None = None
    leave_out: Collection[str] | None = None

    @classmethod
    def of(cls, settings: Settings) -> ReadOptions:
        """Return what settings say of it."""
        return cls(
            label=settings.label,
            categorical=settings.categorical,
            missing=settings.missing,
            decimal=settings.decimal,
            encoding=settings.encoding,
            sheet=settings.sheet,
            codes=codes_in(settings.codes),
            read_as=read_as_in(settings.read_as),
            levels=levels_in(settings.levels),
            rows_a_person=settings.rows_a_person,
            person=settings.person,
            leave_out=left_out_in(settings.leave_out),
        )


PLAINLY = ReadOptions()
"""Every column of numbers, no label, and no row with a gap."""


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
    declared : bool
        Whether it was read as a release reads it: under a declared schema, each cell by itself,
        every row counted, with `bounds` that no cell decides.
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
    declared: bool = False

    @property
    def publishable(self) -> bool:
        """Whether what is paid for may be shown to anybody: nothing else of a row decides it."""
        return self.public or self.declared

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
        # numbers that take many values are a scale and no kinds
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
        # tables are shared between pages and threads: what changes one makes a copy
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

    def as_read(self, reading: ReadOptions) -> Table:
        """Return a table of numbers by what a reading says of its label and columns.

        Its label may be one of its features, which then is none.
        """
        return self._labelled(reading.label)._without(reading.leave_out or ())

    def _without(self, names: Collection[str]) -> Table:
        for name in names:
            if name not in self.columns:
                raise InvalidTable(
                    f"a column left out must be a column of {self.name}, one of "
                    f"{listed(self.columns)}; got {printable(name)!r}."
                )
        return self.select([name for name in self.columns if name not in names]) if names else self

    def _labelled(self, label: str | None) -> Table:
        # asked for what it has already
        if label is None or label == self.label_name:
            return self
        if label not in self.columns:
            own = [] if self.label_name is None else [self.label_name]
            names = listed([*own, *self.columns])
            raise InvalidTable(
                f"label must be a column of {self.name}: {names}; got {printable(label)!r}."
            )
        at = self.columns.index(label)
        others = [j for j in range(len(self.columns)) if j != at]
        return replace(
            self,
            rows=self.rows[:, others].copy(),
            columns=tuple(self.columns[j] for j in others),
            labels=self.rows[:, at].copy(),
            label_name=label,
            bounds=None if self.bounds is None else self.bounds[others],
        )
