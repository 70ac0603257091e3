"""A parsed file before anything is decided: columns with kinds, then a `Table`.

Parsing is dear and done once; `RawTable.to_table` is cheap, so a page may call
it again whenever the label column or the treatment of gaps changes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.datasets import numerals
from dpviz.datasets.delimited import MISSING_MARKERS
from dpviz.datasets.numerals import COMMA, NO_NUMERALS, Numerals
from dpviz.datasets.sentinels import WARNING, sentinel_rows
from dpviz.datasets.source import IN_MEMORY, Limits, readable
from dpviz.datasets.table import Table
from dpviz.errors import QUOTED, InvalidSetting, InvalidTable, printable

MAX_MAGNITUDE = 1e100
"""Largest absolute value of a cell: squares and sums of it stay finite."""

MAX_CATEGORIES = 50
"""Most categories of a column that one-hot encoding expands."""

_MAX_LABEL_LETTERS = 100
_FILL_ROWS = 1 << 14


class Kind(StrEnum):
    """What a column holds.

    ``IDENTIFIER`` is text that differs in every row, with more than
    `MAX_CATEGORIES` rows; ``EMPTY`` has no value at all.
    """

    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    CATEGORICAL = "categorical"
    DATE = "date"
    IDENTIFIER = "identifier"
    EMPTY = "empty"


@dataclass(frozen=True)
class RawColumn:
    """One column of a parsed file.

    Attributes
    ----------
    name : str
        Distinct within the table.
    kind : Kind
    missing : int
        Cells without a value.
    constant : bool
        Whether all values are equal.
    categories : int or None
        Number of different texts; None for numbers.
    """

    name: str
    kind: Kind
    missing: int
    constant: bool
    categories: int | None = None

    @property
    def is_feature(self) -> bool:
        """Whether the column is a feature without being encoded."""
        return self.kind in (Kind.NUMERIC, Kind.BOOLEAN)

    @property
    def can_encode(self) -> bool:
        """Whether one-hot encoding expands the column."""
        return (
            self.kind in (Kind.CATEGORICAL, Kind.DATE)
            and self.categories is not None
            and 2 <= self.categories <= MAX_CATEGORIES
        )

    @property
    def can_label(self) -> bool:
        """Whether the column can be the label."""
        return self.kind not in (Kind.EMPTY, Kind.IDENTIFIER)


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words: as many as fit in `QUOTED` letters, and how many more."""
    shown: list[str] = []
    room = QUOTED
    for name in names:
        seen = printable(name, room if not shown else QUOTED)
        room -= len(seen)
        if shown and room < 0:
            break
        shown.append(f"'{seen}'")
    more = len(names) - len(shown)
    if more:
        return ", ".join(shown) + f" and {more} more"
    if len(shown) > 1:
        return ", ".join(shown[:-1]) + f" and {shown[-1]}"
    return shown[0]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@dataclass(frozen=True)
class RawTable:
    """A parsed file: column names, kinds and values, and what parsing changed.

    Attributes
    ----------
    name : str
        File name, as shown.
    columns : tuple of RawColumn
    notes : tuple of str
        What reading the file changed or assumed, as sentences.
    data : pyarrow.Table
        Numbers as they were stored; texts coded, with sorted categories.
    limits : Limits
        What the table made of it may take in memory.
    """

    name: str
    columns: tuple[RawColumn, ...]
    notes: tuple[str, ...]
    data: Any = field(repr=False)
    limits: Limits = IN_MEMORY

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns as read."""
        return self.data.num_rows, len(self.columns)

    @property
    def missing(self) -> int:
        """Cells without a value, in all columns."""
        return sum(column.missing for column in self.columns)

    @property
    def label_choices(self) -> tuple[str, ...]:
        """Names of the columns that can be the label: texts first, then numbers."""
        able = [column for column in self.columns if column.can_label]
        able.sort(key=lambda column: column.is_feature)  # stable: file order within each
        return tuple(column.name for column in able)

    def to_table(
        self,
        *,
        label: str | None = None,
        categorical: str = "drop",
        missing: str = "drop",
        leave_out: Collection[str] = (),
    ) -> Table:
        """Return the numeric table.

        Parameters
        ----------
        label : str or None
            Column that becomes the labels and is no feature. Rows without a
            label are left out.
        categorical : {"drop", "onehot"}
            Whether texts are left out or become one 0/1 feature per category.
        missing : {"drop", "median"}
            Whether rows with gaps are left out, or a gap in a number becomes
            its column's median and a gap in a category is 0 in all its features.
        leave_out : collection of str
            Columns that become no feature and lose no rows.

        Raises
        ------
        InvalidTable
            When fewer than 2 rows or 2 features remain, the label cannot be one,
            or the table would not fit in memory.
        """
        if categorical not in ("drop", "onehot"):
            raise InvalidSetting("categorical", "drop or onehot", categorical)
        if missing not in ("drop", "median"):
            raise InvalidSetting("missing", "drop or median", missing)
        labelling = None if label is None else self._label_column(label)
        self._check_names("a column left out", leave_out)
        others = [
            column
            for column in self.columns
            if column is not labelling and column.name not in leave_out
        ]
        numbers = [column for column in others if column.is_feature]
        encoded = [column for column in others if categorical == "onehot" and column.can_encode]
        self._check_width(numbers, encoded, labelling)

        used = [*numbers, *encoded]
        notes = [*self.notes, *_left_out(others, used, categorical)]
        if leave_out:
            notes.append(f"Left out as asked: {listed(list(leave_out))}.")
        assumed = []
        gaps = used if missing == "drop" else []
        keep = self._complete([*gaps, *([labelling] if labelling else [])])
        notes += self._missing_notes(used, labelling, missing, keep)
        kept = self.data.num_rows if keep is None else int(np.count_nonzero(keep))
        if kept < 2:
            worst = max([*used, *([labelling] if labelling else [])], key=lambda c: c.missing)
            raise InvalidTable(
                f"{self.name} keeps {_counted(kept, 'row')} of {self.data.num_rows} when rows with "
                f"missing cells are left out, and at least 2 are needed; '{worst.name}' has the "
                "most missing cells."
            )

        codes = {column.name: self._codes(column, keep) for column in encoded}
        names = [column.name for column in numbers]
        for column in encoded:
            present, _ = codes[column.name]
            names += [f"{column.name}={category}" for category in present]
        if kept * len(names) > self.limits.cells:
            raise InvalidTable(
                f"{self.name} would need {kept} x {len(names)} numbers, more than the "
                f"{self.limits.cells} that are allowed; keep fewer rows or columns."
            )
        rows = np.empty((kept, len(names)))
        self._fill(rows[:, : len(numbers)], numbers, keep)
        if missing == "median":
            filled = [j for j, column in enumerate(numbers) if column.missing]
            for j in filled:
                gap = np.isnan(rows[:, j])
                if not gap.all():
                    rows[gap, j] = np.median(rows[~gap, j])
                else:
                    rows[:, j] = 0.0
                    notes.append(
                        f"'{numbers[j].name}' has values only in rows without a label: it was set "
                        "to 0."
                    )
            if filled:
                assumed.append(
                    "the medians that replaced missing cells in "
                    + listed([numbers[j].name for j in filled])
                )
        at = len(numbers)
        for column in encoded:
            present, code = codes[column.name]
            rows[:, at : at + len(present)] = code[:, None] == np.arange(len(present))
            at += len(present)
        if encoded:
            where = listed([column.name for column in encoded])
            notes.append(f"Categories became one 0/1 feature each in {where}.")
            assumed.append(f"the list of categories in {where}")
        booleans = [column.name for column in numbers if column.kind is Kind.BOOLEAN]
        if booleans:
            notes.append(f"True and false became 1 and 0 in {listed(booleans)}.")
        coded = [column.name for j, column in enumerate(numbers) if sentinel_rows(rows[:, j])]
        if coded:
            notes.append(f"Some cells of {listed(coded)} {WARNING}")
        return Table(
            self.name,
            rows,
            distinct(names)[0],
            None if labelling is None else self._labels(labelling, keep),
            None if labelling is None else labelling.name,
            tuple(notes),
            tuple(assumed),
        )

    def _check_names(self, what: str, names: Collection[str]) -> None:
        known = [column.name for column in self.columns]
        for name in names:
            if name not in known:
                raise InvalidTable(
                    f"{what} must be a column of {self.name}, one of {listed(known)}; "
                    f"got {printable(name)!r}."
                )

    def _label_column(self, label: str) -> RawColumn:
        self._check_names("label", [label])
        found = next(column for column in self.columns if column.name == label)
        if found.kind is Kind.EMPTY:
            raise InvalidTable(f"label column '{label}' of {self.name} has no values.")
        if found.kind is Kind.IDENTIFIER:
            raise InvalidTable(
                f"label column '{label}' of {self.name} has a different text in every row, "
                "so it groups nothing."
            )
        if found.kind in (Kind.CATEGORICAL, Kind.DATE):
            longest = pc.max(pc.utf8_length(self._coded(found).dictionary)).as_py()
            if longest > _MAX_LABEL_LETTERS:
                raise InvalidTable(
                    f"label column '{label}' of {self.name} holds texts of more than "
                    f"{_MAX_LABEL_LETTERS} letters, too long for labels."
                )
        return found

    def _check_width(
        self, numbers: list[RawColumn], encoded: list[RawColumn], labelling: RawColumn | None
    ) -> None:
        width = len(numbers) + sum(column.categories or 0 for column in encoded)
        if width >= 2:
            return
        besides = "" if labelling is None else f" besides the label '{labelling.name}'"
        found = f"only '{numbers[0].name}'" if numbers else "none"
        advice = ""
        if not encoded and any(column.can_encode for column in self.columns):
            advice = "; its text columns could be encoded as categories"
        raise InvalidTable(
            f"{self.name} must have at least 2 numeric columns{besides}; it has {found}{advice}."
        )

    def _complete(self, columns: list[RawColumn]) -> NDArray[np.bool_] | None:
        """Return which rows have a value in all these columns; None for all rows."""
        keep: NDArray[np.bool_] | None = None
        for column in columns:
            if column.missing:
                present = ~_to_numpy(pc.is_null(self.data[column.name], nan_is_null=True))
                keep = present if keep is None else keep & present
        return keep

    def _missing_notes(
        self,
        used: list[RawColumn],
        labelling: RawColumn | None,
        missing: str,
        keep: NDArray[np.bool_] | None,
    ) -> list[str]:
        notes = []
        holed = [column for column in used if column.missing]
        lost = 0 if keep is None else int(len(keep) - np.count_nonzero(keep))
        if holed:
            cells = _counted(sum(column.missing for column in holed), "cell")
            verb = "is" if cells == "1 cell" else "are"
            where = listed([column.name for column in holed])
            notes.append(f"{cells} {verb} missing in {where}.")
        if holed and missing == "median":
            numbers = [column.name for column in holed if column.is_feature]
            texts = [column.name for column in holed if not column.is_feature]
            if numbers:
                notes.append(f"Missing numbers became their column's median in {listed(numbers)}.")
            if texts:
                notes.append(f"A missing category is 0 in all features made of {listed(texts)}.")
        if lost:
            why = "a label" if missing == "median" or not holed else "a value or a label"
            why = "a value" if labelling is None or not labelling.missing else why
            were = "was" if lost == 1 else "were"
            notes.append(
                f"{_counted(lost, 'row')} of {self.data.num_rows} without {why} {were} left out."
            )
        return notes

    def _fill(
        self,
        out: NDArray[np.float64],
        columns: list[RawColumn],
        keep: NDArray[np.bool_] | None,
    ) -> None:
        """Write numeric columns, gaps as NaN, a block of rows at a time.

        By blocks because writing one whole column after another into C order
        touches every cache line of the result once per column.
        """
        at = 0
        # by position: a look-up by name reads every name
        place = {column.name: j for j, column in enumerate(self.columns)}
        data = self.data.select([place[column.name] for column in columns])
        for start in range(0, self.data.num_rows, _FILL_ROWS):
            block = data.slice(start, _FILL_ROWS)
            mask = slice(None) if keep is None else keep[start : start + _FILL_ROWS]
            stop = at
            for j in range(len(columns)):
                values = _to_numpy(block.column(j))[mask]
                stop = at + len(values)
                out[at:stop, j] = values
            at = stop

    def _coded(self, column: RawColumn) -> Any:
        """Return a text column as one DictionaryArray."""
        return self.data[column.name].chunk(0)

    def _codes(
        self, column: RawColumn, keep: NDArray[np.bool_] | None
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Return the categories left in the kept rows, and each row's; -1 for a gap."""
        coded = self._coded(column)
        code = _to_numpy(pc.fill_null(coded.indices, -1)).astype(np.int64)
        code = code if keep is None else code[keep]
        used = np.unique(code[code >= 0])
        renumbered = np.full(len(coded.dictionary) + 1, -1)
        renumbered[used] = np.arange(len(used))
        texts = coded.dictionary.to_pylist()
        return [texts[u] for u in used], renumbered[code]

    def _labels(self, column: RawColumn, keep: NDArray[np.bool_] | None) -> NDArray[Any]:
        """Return the labels of the kept rows: texts, whole numbers or numbers."""
        if column.is_feature:
            values = self.data[column.name]
            whole = pa.types.is_integer(values.type)
            present = values if keep is None else values.filter(pa.array(keep))
            labels = _to_numpy(present)
            return labels.astype(np.int64) if whole else labels.astype(np.float64)
        present, code = self._codes(column, keep)
        texts: NDArray[Any] = np.array(present, dtype=np.str_)
        return texts[code]


def _to_numpy(values: Any) -> NDArray[Any]:
    """Return an Arrow array as NumPy's, gaps in numbers as NaN."""
    if isinstance(values, pa.ChunkedArray):
        found: NDArray[Any] = values.to_numpy()
    else:
        found = values.to_numpy(zero_copy_only=False)
    return found


def _left_out(others: list[RawColumn], used: list[RawColumn], categorical: str) -> list[str]:
    """Return the sentences on columns that became no feature."""
    notes = []
    kept = {column.name for column in used}
    out = [column for column in others if column.name not in kept]
    for kind, what in ((Kind.CATEGORICAL, "text"), (Kind.DATE, "date"), (Kind.EMPTY, "empty")):
        names = [column.name for column in out if column.kind is kind]
        if names:
            why = ""
            if categorical == "onehot" and kind is not Kind.EMPTY:
                why = f" (only columns of 2 to {MAX_CATEGORIES} categories are encoded)"
            notes.append(f"Left out as {what}: {listed(names)}{why}.")
    names = [column.name for column in out if column.kind is Kind.IDENTIFIER]
    if names:
        notes.append(
            f"Left out, and never encoded, as text that differs in every row: {listed(names)}."
        )
    return notes


def distinct(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the names made distinct by a number in brackets, and the new ones."""
    taken = set(names)
    seen: set[str] = set()
    out: list[str] = []
    new: list[str] = []
    for name in names:
        shown = name
        count = 1
        while shown in seen or (shown != name and shown in taken):
            count += 1
            shown = f"{name} ({count})"
        if shown != name:
            new.append(shown)
        seen.add(shown)
        out.append(shown)
    return tuple(out), new


def clean_names(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return usable column names and sentences on what was changed.

    Blanks are tidied, a leading ``#`` goes, long names are cut, blank names are
    numbered and repeated names get a number in brackets.
    """
    tidy = [printable(name) for name in names]
    if tidy and tidy[0].startswith("#"):
        tidy[0] = tidy[0].lstrip("# ")
    notes = []
    blank = [j for j, name in enumerate(tidy) if not name]
    for j in blank:
        tidy[j] = f"column {j + 1}"
    if blank:
        were = "column without a name was" if len(blank) == 1 else "columns without names were"
        notes.append(f"{len(blank)} {were} named {listed([tidy[j] for j in blank])}.")
    unique, renamed = distinct(tidy)
    if renamed:
        notes.append(f"Repeated column names were made distinct: {listed(renamed)}.")
    return unique, notes


@dataclass
class Survey:
    """A column seen by itself, before the other columns say how to read its numbers.

    Attributes
    ----------
    name, table : str
        What messages call the column and the table.
    column : RawColumn or None
        What the column is; None for texts, which `settle` decides on.
    values : pyarrow array
        As `RawTable` keeps them; of texts, the index of each row's category, -1 for a gap.
    notes : list of str
    kind : Kind
        Of texts: date or category.
    categories : pyarrow string array, optional
        The different texts, sorted and trimmed.
    numerals : Numerals
        What the texts are as numbers.
    """

    name: str
    table: str
    column: RawColumn | None
    values: Any
    notes: list[str]
    kind: Kind = Kind.CATEGORICAL
    categories: Any = None
    numerals: Numerals = NO_NUMERALS


def survey(values: Any, name: str, table: str) -> Survey:
    """Return what can be said of a column without the others.

    Parameters
    ----------
    values : pyarrow.ChunkedArray
    name, table : str
        What messages call the column and the table.

    Raises
    ------
    InvalidTable
        On an infinite or absurdly large number, text that is not UTF-8, or values
        that Arrow cannot convert.
    """
    with readable(f"column '{name}' of {table} holds values that cannot be read."):
        return _survey(values, name, table)


def _survey(values: Any, name: str, table: str) -> Survey:
    kind = values.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        values = values.cast(kind.value_type)
        kind = values.type
    if pa.types.is_null(kind) or values.null_count == len(values):
        return _nothing(values, name, table)
    if is_number(kind):
        numbers = plain_numbers(values)
        truth = Kind.BOOLEAN if pa.types.is_boolean(kind) else Kind.NUMERIC
        column = _numeric(numbers, name, table, truth)
        if column.missing == len(values):
            return _nothing(values, name, table)
        return Survey(name, table, column, numbers, [])
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        if pa.types.is_timestamp(kind):  # the text of a time zone's local time needs its database
            values = values.cast(pa.timestamp(kind.unit))
        said = [f"Dates in '{name}' are treated as text."]
        return _texts(values.cast(pa.string()), name, table, Kind.DATE, said)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or not _is_utf8(values):
        raise InvalidTable(f"column '{name}' of {table} is not UTF-8 text; save it as UTF-8.")
    return _texts(values, name, table, Kind.CATEGORICAL, [])


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is a number or a truth value."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def plain_numbers(values: Any) -> Any:
    """Return an Arrow array of numbers in a type that NumPy has too."""
    if pa.types.is_boolean(values.type):
        return values.cast(pa.uint8())
    if pa.types.is_decimal(values.type) or pa.types.is_float16(values.type):
        return values.cast(pa.float64(), safe=False)
    return values


def _is_utf8(values: Any) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _nothing(values: Any, name: str, table: str) -> Survey:
    column = RawColumn(name, Kind.EMPTY, len(values), True)
    return Survey(name, table, column, pa.nulls(len(values)), [])


def _texts(values: Any, name: str, table: str, kind: Kind, notes: list[str]) -> Survey:
    """Return a text column coded over its sorted, trimmed categories."""
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    coded = coded.combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    code = _to_numpy(pc.fill_null(coded.indices, -1)).astype(np.int64)
    trimmed = pc.utf8_trim_whitespace(coded.dictionary.cast(pa.large_string()))
    # a marker may stand among more blanks than the parser knows, a category in no row
    in_rows = np.bincount(code[code >= 0], minlength=len(trimmed)) > 0
    marker = pc.is_in(trimmed, value_set=pa.array(MISSING_MARKERS, pa.large_string()))
    real = in_rows & ~_to_numpy(pc.fill_null(marker, True))
    merged = pc.if_else(pa.array(real), trimmed, None).dictionary_encode()
    if not len(merged.dictionary):
        return _nothing(values, name, table)
    order = _to_numpy(pc.array_sort_indices(merged.dictionary))
    categories = merged.dictionary.take(pa.array(order))
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    # index -1, for a gap, meets the -1 at the end of each table
    remap = np.append(rank[_to_numpy(pc.fill_null(merged.indices, -1))], np.int32(-1))
    found = numerals.judge(categories) if kind is Kind.CATEGORICAL else NO_NUMERALS
    if found.dates:
        kind = Kind.DATE
        notes = [*notes, f"Dates in '{name}' are treated as text."]
    return Survey(name, table, None, remap[code], notes, kind, categories, found)


def settle(
    found: Survey, proved: Collection[str], delimiter: str, decimal: str | None
) -> tuple[RawColumn, Any, list[str], str | None]:
    """Return what a column is, its values, sentences, and the mark its texts were read with.

    Parameters
    ----------
    found : Survey
    proved : collection of str
        Decimal marks that the columns of the file prove.
    delimiter : str
        Between cells; empty for Parquet.
    decimal : str or None
        The decimal mark, where the user said it.

    Raises
    ------
    InvalidTable
        When numbers can be read in two ways and nothing says in which.
    """
    if found.column is not None:
        return found.column, found.values, found.notes, None
    name, code32, categories = found.name, found.values, found.categories
    notes = list(found.notes)
    missing = int(np.count_nonzero(code32 < 0))
    if found.numerals.is_number:
        mark = found.numerals.mark(decimal, proved, delimiter)
        if mark is None:
            raise InvalidTable(
                f"column '{name}' of {found.table} writes numbers with a mark that can stand for "
                "decimals or for thousands; say which by choosing the decimal mark point or comma."
            )
        parsed = np.append(numerals.parse(categories, mark), np.nan)
        numbers = pa.chunked_array([pa.array(parsed[code32], from_pandas=True)])
        notes.append(f"Numbers stored as text in '{name}' were read as numbers.")
        notes += [f"Left out in '{name}': {extra}." for extra in found.numerals.extras]
        if numerals.groups_thousands(categories, mark):
            word = "commas" if mark != COMMA else "points"
            notes.append(f"In '{name}', {word} were read as marks between thousands.")
        return _numeric(numbers, name, found.table), numbers, notes, mark
    kind = found.kind
    numeric = np.append(numerals.numbers_among(categories), False)
    present = len(code32) - missing
    texts = present - int(np.count_nonzero(numeric[code32]))
    if found.numerals.codes:
        notes.append(
            f"'{name}' is written with leading zeros: it was read as a code, not as a number."
        )
    elif kind is Kind.CATEGORICAL and texts == 0:
        notes.append(
            f"'{name}' counts as text because its numbers are written with a decimal point in "
            "some rows and a decimal comma in others."
        )
    elif kind is Kind.CATEGORICAL and texts <= 0.1 * present:
        first = int(np.argmax((code32 >= 0) & ~numeric[code32])) + 1
        notes.append(
            f"'{name}' counts as text because {_counted(texts, 'cell')} of {present} cannot be "
            f"read as a number, first in row {first} (not counting a header)."
        )
    if pc.any(pc.match_substring(categories, "\n")).as_py():
        notes.append(f"Cells of '{name}' hold line breaks: check that every quote is closed.")
    if len(categories) == present and present > MAX_CATEGORIES:
        kind = Kind.IDENTIFIER if kind is Kind.CATEGORICAL else kind
    indices = pa.array(code32, mask=code32 < 0, type=pa.int32())
    packed = pa.DictionaryArray.from_arrays(indices, categories)
    column = RawColumn(name, kind, missing, len(categories) == 1, len(categories))
    return column, packed, notes, None


def _numeric(values: Any, name: str, table: str, kind: Kind = Kind.NUMERIC) -> RawColumn:
    """Return what a numeric column is, having refused infinite and absurd values."""
    if not pa.types.is_floating(values.type):
        ends = pc.min_max(values)
        constant = ends["min"].as_py() == ends["max"].as_py()
        return RawColumn(name, kind, values.null_count, constant)
    missing = 0
    row = 0
    lows: list[float] = []
    highs: list[float] = []
    for chunk in values.chunks:  # by chunk, so that nothing the size of the column is made
        block = _to_numpy(chunk)
        # false for NaN, true for an infinity, and within the range of narrow floats
        bad = np.abs(block) > min(MAX_MAGNITUDE, float(np.finfo(block.dtype).max))
        if bad.any():
            raise InvalidTable(
                f"column '{name}' of {table} holds an infinite number or one beyond "
                f"{MAX_MAGNITUDE:g} in row {row + int(np.argmax(bad)) + 1}, not counting a header."
            )
        gaps = int(np.count_nonzero(np.isnan(block)))
        missing += gaps
        row += len(block)
        if gaps < len(block):
            lows.append(float(np.nanmin(block)))
            highs.append(float(np.nanmax(block)))
    return RawColumn(name, kind, missing, bool(lows) and min(lows) == max(highs))
