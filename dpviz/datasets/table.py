"""The table type that every source of data produces, and the options for reading one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.entries import OTHER, kinds_of
from dpviz.core.errors import InvalidTable, printable
from dpviz.core.params import params_of
from dpviz.core.settings import Settings, codes_in, left_out_in, levels_in, read_as_in
from dpviz.datasets.columns import listed

NAMELESS = "table"
"""Name in results of a table read from a file, unless the user gives a name."""

WORKING_VIEW = "working view of real rows: internal, do not share"
"""Warning on every chart of rows that are not public."""

NOT_PUBLISHED = (
    "Not to be published: the file was read as it is explored, so that one cell can leave a row or "
    "a column out, which no noise covers. To publish, declare how it is read (dpviz schema FILE "
    "--out schema.json, then put in public bounds) and give it with --schema, or make a release."
)
"""Note on charts with noise, if nobody declared how their table is read."""


MOST_KINDS = 10
"""Whole numbers with more distinct values than this are numbers, not classes."""


def label_text(cell: object) -> str:
    """Return a label as text; whole numbers without a point, a missing value as empty text."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None else str(cell).strip()


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table, and which of its columns and rows to use.

    Attributes
    ----------
    label : str or None
        Column that becomes the labels instead of a feature. Rows without a label are left out.
    categorical : {"drop", "onehot"}
        Whether texts are left out or become one 0/1 feature per category.
    missing : {"drop", "median"}
        Whether rows with missing values are left out, or filled: a number with its column's median,
        a category with 0 in all its features.
    decimal : {"auto", "point", "comma"}
        Decimal mark of numbers in texts; auto detects the mark, or asks the user.
    encoding : str
        Encoding of a text; auto means UTF-8.
    delimiter : {"auto", "comma", "semicolon", "tab", "bar", "space"}
        Delimiter of a text; auto detects it.
    header : {"auto", "yes", "no"}
        Whether the first line of a text or sheet holds column names; auto detects it.
    sheet : str
        Sheet of a workbook; if empty, the first sheet that holds a table.
    codes : collection of float or str
        Numbers and words that are read as missing.
    read_as : mapping of str to {"number", "category"}
        How to read columns, by name: as numbers, with other cells as missing, or as texts.
    levels : collection of sequence of str
        Scales of words, each from the least to the most, to be read as 1, 2, ...
    rows_a_person : int or None
        Maximum number of rows of one person, as the user states; None if not stated.
    person : str or None
        Column that names the person, not a feature. Only the first rows of each person count: as
        many as stated, or one.
    leave_out : collection of str or None
        Columns that become no feature and lose no rows; None for columns that look like
        identifiers.
    """

    label: str | None = None
    categorical: str = "drop"
    missing: str = "drop"
    decimal: str = "auto"
    encoding: str = "auto"
    delimiter: str = "auto"
    header: str = "auto"
    sheet: str = ""
    codes: Collection[float | str] = ()
    read_as: Mapping[str, str] = field(default_factory=dict)
    levels: Collection[Sequence[str]] = ()
    rows_a_person: int | None = None
    person: str | None = None
    leave_out: Collection[str] | None = None

    def __post_init__(self) -> None:
        for name, param in params_of(Settings).items():
            if param.kind == "choice" and hasattr(self, name):
                param.clean(getattr(self, name))

    @classmethod
    def of(cls, settings: Settings) -> ReadOptions:
        """Return the reading options in the settings."""
        return cls(
            label=settings.label,
            categorical=settings.categorical,
            missing=settings.missing,
            decimal=settings.decimal,
            encoding=settings.encoding,
            delimiter=settings.delimiter,
            header=settings.header,
            sheet=settings.sheet,
            codes=codes_in(settings.codes),
            read_as=read_as_in(settings.read_as),
            levels=levels_in(settings.levels),
            rows_a_person=settings.rows_a_person,
            person=settings.person,
            leave_out=left_out_in(settings.leave_out),
        )


PLAINLY = ReadOptions()
"""Default reading: all numeric columns, no label, and no row with a missing value."""


@dataclass(frozen=True)
class Table:
    """A numeric table, its optional labels, and a record of how it was made.

    Attributes
    ----------
    name : str
        Built-in key, or the user's name for the table; never a file's name.
    rows : ndarray of shape (n, d), float64
        Finite values in the data's own units; n >= 2, d >= 2; read-only.
    columns : tuple of str
        Names of the features, all distinct.
    labels : ndarray of shape (n,) or None
        Labels, strings or numbers, which colour charts and which tasks predict.
    label_name : str or None
    notes : tuple of str
        Sentences for the user on every change to the table.
    assumed_public : tuple of str
        Facts taken from the data without protection.
    bounds : ndarray of shape (d, 2) or None
        Public lower and upper bound of each feature, if known without looking at the data.
    public : bool
        Whether anybody may see the rows: true for built-in tables and published data sets.
    categories : tuple of str
        Declared public categories of the labels; empty if not declared.
    declared : bool
        Whether the table was read as a release reads it: under a declared schema, each cell by
        itself, every row counted, with `bounds` that no cell decides.
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
        """Whether results covered by the budget may be published: rows have no other influence."""
        return self.public or self.declared

    @property
    def ribbon(self) -> str | None:
        """Warning on every chart of its rows; None if the rows are public."""
        return None if self.public else WORKING_VIEW

    @property
    def kinds(self) -> tuple[tuple[str, ...], NDArray[np.intp]] | None:
        """Names of the label classes, and each row's index among them; None for numbers.

        If categories are declared, each row's index depends on its own label only.
        """
        if self.labels is None:
            return None
        labels = np.asarray(self.labels)
        if self.categories:
            kinds = kinds_of(self.categories)
            places = {name: at for at, name in enumerate(kinds)}
            indices = (places.get(label_text(x), places[OTHER]) for x in labels.tolist())
            return kinds, np.fromiter(indices, np.intp, len(labels))
        # Numbers with many different values form a scale, so they are not classes.
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
        # Make the rows read-only, because pages and threads share a table.
        self.rows.setflags(write=False)

    def noting(self, notes: Sequence[str]) -> Table:
        """Return the table with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def select(self, columns: Sequence[str]) -> Table:
        """Return the table with only the given columns, in the table's order."""
        names = set(columns)
        index = [i for i, name in enumerate(self.columns) if name in names]
        return replace(
            self,
            rows=self.rows[:, index],
            columns=tuple(self.columns[i] for i in index),
            bounds=None if self.bounds is None else self.bounds[index],
        )

    def as_read(self, reading: ReadOptions) -> Table:
        """Return the table with the label and the columns of a reading.

        The label may be a feature, which is then no longer a feature.
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
        # The table already has this label, so return it unchanged.
        if label is None or label == self.label_name:
            return self
        if label not in self.columns:
            labels = [] if self.label_name is None else [self.label_name]
            names = listed([*labels, *self.columns])
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
