"""A parsed file with the kinds of its columns, from which a `Table` is made.

Parsing is expensive and done once. `RawTable.to_table` is cheap, so a page may call it again when
the label column or the treatment of missing values changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidTable, printable
from dpviz.core.settings import plain_word
from dpviz.datasets.columns import (
    MAX_CATEGORIES,
    WARNING,
    Judged,
    Kind,
    RawColumn,
    as_texts,
    counted,
    distinct,
    judge_again,
    listed,
    sentinel,
    to_numpy,
)
from dpviz.datasets.dialect import Layout
from dpviz.datasets.table import PLAINLY, ReadOptions, Table

_MAX_LABEL_LETTERS = 100

_FILL_ROWS = 1 << 14

CELLS = 1 << 26
"""Maximum number of cells held in memory; larger files are read in batches."""

UPLOADED_CELLS = 1 << 25
"""Maximum number of cells that a page accepts: 33 million."""


def _fill_gaps(rows: FloatArray, numbers: Sequence[RawColumn], facts: list[str]) -> list[str]:
    """Fill missing values with column medians; return notes, and add medians to the facts."""
    notes = []
    places = [j for j, column in enumerate(numbers) if column.missing]
    for j in places:
        gap = np.isnan(rows[:, j])
        if not gap.all():
            rows[gap, j] = np.median(rows[~gap, j])
        else:
            # A column without values has no median, so use 0: constant columns are dropped later.
            rows[:, j] = 0.0
            notes.append(
                f"'{numbers[j].name}' has values only in rows without a label: it was set to 0."
            )
    if places:
        names = listed([numbers[j].name for j in places])
        facts.append(f"the medians that replaced missing cells in {names}")
    return notes


def _remarks_on(numbers: Sequence[RawColumn], rows: FloatArray) -> list[str]:
    """Return notes on truth values and on numbers that may be codes."""
    notes = []
    booleans = [column.name for column in numbers if column.kind is Kind.BOOLEAN]
    if booleans:
        notes.append(f"True and false became 1 and 0 in {listed(booleans)}.")
    suspects = [column.name for j, column in enumerate(numbers) if sentinel(rows[:, j])[1]]
    if suspects:
        notes.append(f"Some cells of {listed(suspects)} {WARNING}")
    return notes


def unit_words(rows_a_person: int | None) -> str:
    """Return the assumed public facts about the rows of one person."""
    if rows_a_person is None:
        return "that nobody has a second row: this protects one ROW, not a person"
    if rows_a_person == 1:
        return "that no person has more than 1 row"
    return f"that no person has more than {rows_a_person} rows: what is claimed is a person's"


@dataclass(frozen=True)
class RawTable:
    """A parsed file: column names, kinds and values, and the changes made by parsing.

    Attributes
    ----------
    name : str
        File name, as shown to the user.
    columns : tuple of RawColumn
    notes : tuple of str
        Sentences on what reading the file changed or assumed.
    data : pyarrow.Table
        Numbers as they were stored, and texts as codes with sorted categories.
    most_cells : int
        Maximum number of cells of the table made from the file.
    sheets : tuple of str
        Sheets of the source workbook.
    sheet : str
        Name of the sheet that was read.
    layout : Layout or None
        Layout of a delimited text or a sheet.
    """

    name: str
    columns: tuple[RawColumn, ...]
    notes: tuple[str, ...]
    data: Any = field(repr=False)
    most_cells: int = CELLS
    sheets: tuple[str, ...] = ()
    sheet: str = ""
    layout: Layout | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns as read."""
        return self.data.num_rows, len(self.columns)

    @property
    def missing(self) -> int:
        """Cells without a value, in all columns."""
        return sum(column.missing for column in self.columns)

    @property
    def label_choices(self) -> tuple[str, ...]:
        """Names of the columns that can be the label: texts first, then numbers."""
        able = [column for column in self.columns if column.can_label]
        able.sort(key=lambda column: column.is_feature)  # A stable sort keeps the file's order.
        return tuple(column.name for column in able)

    def to_table(self, reading: ReadOptions = PLAINLY) -> Table:
        """Return the numeric table for a reading.

        Parameters
        ----------
        reading : ReadOptions
            Its options for the file, from ``decimal`` to ``sheet``, were applied when it was read.

        Raises
        ------
        InvalidTable
            When fewer than 2 rows or 2 features remain, a column cannot be the label, or the table
            would not fit in memory.
        """
        label = None if reading.label is None else self._label_column(reading.label)
        self.check_names("a column left out", reading.leave_out or ())
        # If a column names the person but no number of rows is stated, each person has one row.
        most = reading.rows_a_person if reading.person is None else reading.rows_a_person or 1
        numbers, categories, notes = self._features(reading, label)
        features = [*numbers, *categories]

        # A row always needs a label. If a feature is missing, the row is left out only if nothing
        # fills the gap.
        required = [*(features if reading.missing == "drop" else []), *([label] if label else [])]
        keep = self._complete(required)
        notes += self._missing_notes(features, label, reading.missing, keep)
        if reading.person is not None and most is not None:
            self.check_names("the column of the person", [reading.person])
            first = self._first_rows(reading.person, most)
            counts = "row counts" if most == 1 else f"{most} rows count"
            notes.append(
                f"Of each person in '{reading.person}' the first {counts}: "
                f"{int(np.count_nonzero(~first)):,} of {len(first):,} rows were left out."
            )
            keep = first if keep is None else keep & first
        count = self._kept(keep, [*features, *([label] if label else [])])

        names, rows = self._filled(numbers, categories, keep, count)
        facts = [unit_words(most)]
        if reading.missing == "median":
            notes += _fill_gaps(rows, numbers, facts)
        if categories:
            where = listed([column.name for column in categories])
            notes.append(f"Categories became one 0/1 feature each in {where}.")
            facts.append(f"the list of categories in {where}")
        return Table(
            self.name,
            rows,
            distinct(names)[0],
            None if label is None else self._labels(label, keep),
            None if label is None else label.name,
            (*notes, *_remarks_on(numbers, rows)),
            tuple(facts),
        )

    def _features(
        self, reading: ReadOptions, label: RawColumn | None
    ) -> tuple[list[RawColumn], list[RawColumn], list[str]]:
        """Return the numeric columns, the columns to encode, and notes."""
        out = list(reading.leave_out or ())
        # The column that names the person is not a feature, but a caller may request it as label.
        if reading.person is not None and reading.person not in (*out, reading.label):
            out.append(reading.person)
        others = [
            column for column in self.columns if column is not label and column.name not in out
        ]
        numbers = [column for column in others if column.is_feature]
        onehot = reading.categorical == "onehot"
        categories = [column for column in others if column.can_encode] if onehot else []
        self._check_width(numbers, categories, label)
        notes = [*self.notes, *_left_out(others, [*numbers, *categories], reading.categorical)]
        if out:
            notes.append(f"Left out as asked: {listed(out)}.")
        return numbers, categories, notes

    def _filled(
        self,
        numbers: list[RawColumn],
        categories: list[RawColumn],
        keep: NDArray[np.bool_] | None,
        count: int,
    ) -> tuple[list[str], FloatArray]:
        """Return names and values of all features, with NaN for missing numbers."""
        codes = {column.name: self._codes(column, keep) for column in categories}
        names = [
            *(column.name for column in numbers),
            *(f"{name}={category}" for name, (present, _) in codes.items() for category in present),
        ]
        self._check_cells(count, len(names))
        rows = np.empty((count, len(names)))
        self._fill(rows[:, : len(numbers)], numbers, keep)
        at = len(numbers)
        for present, code in codes.values():
            # A missing value has code -1, which equals no category, so all its features are 0.
            rows[:, at : at + len(present)] = code[:, None] == np.arange(len(present))
            at += len(present)
        return names, rows

    def _kept(self, keep: NDArray[np.bool_] | None, used: Sequence[RawColumn]) -> int:
        """Return how many rows remain; raise `InvalidTable` if fewer than two."""
        count = self.data.num_rows if keep is None else int(np.count_nonzero(keep))
        if count < 2:
            worst = max(used, key=lambda column: column.missing)
            raise InvalidTable(
                f"{self.name} needs at least 2 rows without missing values; it has {count} among "
                f"{counted(self.data.num_rows, 'row')}; '{worst.name}' has the most missing "
                "values."
            )
        return count

    def _check_cells(self, rows: int, features: int) -> None:
        """Raise `InvalidTable` if the table would not fit in memory."""
        if rows * features > self.most_cells:
            raise InvalidTable(
                f"{self.name} would need {rows} x {features} numbers; the limit is "
                f"{self.most_cells} numbers: keep fewer rows or columns."
            )

    def words(self, column: RawColumn) -> tuple[str, ...]:
        """Return the words of a text column that may be a scale of 3 to 7 answers; else empty."""
        if column.categories is None or not 3 <= column.categories <= 7 or not column.can_encode:
            return ()
        return tuple(plain_word(word) for word in self._coded(column).dictionary.to_pylist())

    def stated(self, reading: ReadOptions) -> RawTable:
        """Return the table with columns read as the user stated.

        Parameters
        ----------
        reading : ReadOptions
            Only ``read_as``, ``codes`` and ``levels`` are used. ``codes`` are numbers and words
            that count as missing in every column. ``levels`` are scales: a text column is read by
            the first scale with all of its words, in any case. A scale may have further words.
        """
        self.check_names("a column that is read in another way", reading.read_as)
        numbers = [code for code in reading.codes if not isinstance(code, str)]
        words = [code.lower() for code in reading.codes if isinstance(code, str)]
        ranks = [{plain_word(w): at for at, w in enumerate(one, 1)} for one in reading.levels]
        marks = {column.mark for column in self.columns} - {None}
        decimal = marks.pop() if len(marks) == 1 else None
        data, columns, notes, cells, scales = self.data, [], [], 0, []
        for j, column in enumerate(self.columns):
            item = begun = Judged(column, data.column(j))
            kind = reading.read_as.get(column.name)
            if column.is_text and (kind == "number" or _holds(item, words)):
                item, remarks = judge_again(
                    self.name, item, words, decimal, as_number=kind == "number"
                )
                notes += remarks
            elif column.is_feature and kind == "category":
                item = as_texts(self.name, item)
                notes.append(f"Numbers of '{column.name}' were read as categories.")
            if item.column.kind is Kind.NUMERIC and numbers:
                item, lost = _without_codes(item, numbers)
                cells += lost
            if item.column.kind in (Kind.CATEGORICAL, Kind.REMARK) and ranks:
                item = _ranked(item, ranks)
                scales += [column.name] if item.column.is_feature else []
            if item is not begun:
                data = data.set_column(j, column.name, item.values)
            columns.append(item.column)
        if cells:
            meant = listed([format(code, "g") for code in numbers])
            notes.append(f"{counted(cells, 'cell')} of {meant} count as missing.")
        if scales:
            notes.append(f"Words in order became numbers from 1 in {listed(scales)}.")
        if data is self.data:
            return self
        return replace(self, data=data, columns=tuple(columns), notes=(*self.notes, *notes))

    def _first_rows(self, person: str, most: int) -> NDArray[np.bool_]:
        """Return which rows are among each person's first; rows without a person are not."""
        values = self.data[person]
        codes = values.chunk(0) if pa.types.is_dictionary(values.type) else None
        indices = values.combine_chunks().dictionary_encode().indices if codes is None else None
        code = to_numpy(pc.fill_null(indices if codes is None else codes.indices, -1))
        # A stable sort keeps rows in the order of the file.
        order = np.argsort(code, kind="stable")
        starts = np.r_[True, np.diff(code[order]) != 0]
        at = np.arange(len(code))
        place = np.empty(len(code), dtype=np.int64)
        place[order] = at - np.maximum.accumulate(np.where(starts, at, 0))
        return (place < most) & (code >= 0)

    def check_names(self, what: str, names: Collection[str]) -> None:
        """Raise `InvalidTable` if a name is not one of the columns."""
        titles = [column.name for column in self.columns]
        for name in names:
            if name not in titles:
                raise InvalidTable(
                    f"{what} must be a column of {self.name}, one of {listed(titles)}; "
                    f"got {printable(name)!r}."
                )

    def _label_column(self, label: str) -> RawColumn:
        self.check_names("label", [label])
        label_column = next(column for column in self.columns if column.name == label)
        if label_column.kind is Kind.EMPTY:
            raise InvalidTable(f"label column '{label}' of {self.name} has no values.")
        if label_column.kind is Kind.IDENTIFIER:
            raise InvalidTable(
                f"label column '{label}' of {self.name} has a different text in every row, "
                "so it groups nothing."
            )
        if label_column.kind in (Kind.CATEGORICAL, Kind.DATE, Kind.REMARK):
            # Refuse long labels, which a legend would show: they may be a person's own words.
            longest = pc.max(pc.utf8_length(self._coded(label_column).dictionary)).as_py()
            if longest > _MAX_LABEL_LETTERS:
                raise InvalidTable(
                    f"label column '{label}' of {self.name} holds texts of more than "
                    f"{_MAX_LABEL_LETTERS} letters, too long for labels."
                )
        return label_column

    def _check_width(
        self, numbers: list[RawColumn], categories: list[RawColumn], label: RawColumn | None
    ) -> None:
        width = len(numbers) + sum(column.categories or 0 for column in categories)
        if width >= 2:
            return
        besides = "" if label is None else f" besides the label '{label.name}'"
        count = f"only '{numbers[0].name}'" if numbers else "none"
        advice = ""
        if not categories and any(column.can_encode for column in self.columns):
            advice = "; its text columns could be encoded as categories"
        raise InvalidTable(
            f"{self.name} must have at least 2 numeric columns{besides}; it has {count}{advice}."
        )

    def _complete(self, columns: list[RawColumn]) -> NDArray[np.bool_] | None:
        """Return which rows have a value in all given columns; None means all rows."""
        keep: NDArray[np.bool_] | None = None
        for column in columns:
            if column.missing:
                present = ~to_numpy(pc.is_null(self.data[column.name], nan_is_null=True))
                keep = present if keep is None else keep & present
        return keep

    def _missing_notes(
        self,
        used: list[RawColumn],
        label: RawColumn | None,
        missing: str,
        keep: NDArray[np.bool_] | None,
    ) -> list[str]:
        """Return notes on missing values: columns, replacements and the rows left out."""
        notes = []
        with_gaps = [column for column in used if column.missing]
        if with_gaps:
            cells = counted(sum(column.missing for column in with_gaps), "cell")
            verb = "is" if cells == "1 cell" else "are"
            where = listed([column.name for column in with_gaps])
            notes.append(f"{cells} {verb} missing in {where}.")
            notes += _filled_notes(with_gaps) if missing == "median" else []
        lost = 0 if keep is None else int(len(keep) - np.count_nonzero(keep))
        if lost:
            why = "a label" if missing == "median" or not with_gaps else "a value or a label"
            why = "a value" if label is None or not label.missing else why
            were = "was" if lost == 1 else "were"
            notes.append(
                f"{counted(lost, 'row')} of {self.data.num_rows} without {why} {were} left out."
            )
        return notes

    def _fill(
        self,
        out: NDArray[np.float64],
        columns: list[RawColumn],
        keep: NDArray[np.bool_] | None,
    ) -> None:
        """Write numeric columns block by block, with NaN for missing values.

        Copying whole columns one after another into C order would touch every cache line of the
        result once per column.
        """
        at = 0
        # Select columns by position, because each selection by name searches all names.
        place = {column.name: j for j, column in enumerate(self.columns)}
        data = self.data.select([place[column.name] for column in columns])
        for start in range(0, self.data.num_rows, _FILL_ROWS):
            block = data.slice(start, _FILL_ROWS)
            mask = slice(None) if keep is None else keep[start : start + _FILL_ROWS]
            stop = at
            for j in range(len(columns)):
                values = to_numpy(block.column(j))[mask]
                stop = at + len(values)
                out[at:stop, j] = values
            at = stop

    def _coded(self, column: RawColumn) -> Any:
        """Return a text column as a single DictionaryArray."""
        return self.data[column.name].chunk(0)

    def _codes(
        self, column: RawColumn, keep: NDArray[np.bool_] | None
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Return the categories in the remaining rows, and each row's code (-1 if missing)."""
        column_codes = self._coded(column)
        code = to_numpy(pc.fill_null(column_codes.indices, -1)).astype(np.int64)
        code = code if keep is None else code[keep]
        # Count only the remaining rows: a category that occurs only in others is not a feature.
        present = np.unique(code[code >= 0])
        new_code = np.full(len(column_codes.dictionary) + 1, -1)
        new_code[present] = np.arange(len(present))
        texts = column_codes.dictionary.to_pylist()
        return [texts[u] for u in present], new_code[code]

    def _labels(self, column: RawColumn, keep: NDArray[np.bool_] | None) -> NDArray[Any]:
        """Return the labels of the remaining rows: texts, whole numbers or numbers."""
        if column.is_feature:
            values = self.data[column.name]
            whole = pa.types.is_integer(values.type)
            present = values if keep is None else values.filter(pa.array(keep))
            labels = to_numpy(present)
            return labels.astype(np.int64) if whole else labels.astype(np.float64)
        present, code = self._codes(column, keep)
        texts: NDArray[Any] = np.array(present, dtype=np.str_)
        return texts[code]


def _holds(judged: Judged, words: Collection[str]) -> bool:
    """Return whether any cell of a text column is one of some lower-case words."""
    texts = pc.utf8_lower(judged.values.chunk(0).dictionary)
    return bool(pc.any(pc.is_in(texts, pa.array([*words], pa.large_string()))).as_py())


def _without_codes(judged: Judged, codes: Sequence[float]) -> tuple[Judged, int]:
    """Return a numeric column with the codes as missing values, and how many cells changed."""
    column, values = judged.column, judged.values
    # Conversion rounds whole numbers beyond 2^53, but such numbers are never codes.
    at = pc.is_in(values.cast(pa.float64(), safe=False), pa.array(codes, pa.float64()))
    cells = pc.sum(at).as_py() or 0
    if not cells:
        return judged, 0
    values = pc.if_else(at, pa.scalar(None, values.type), values)
    ends = pc.min_max(values)
    constant = ends["min"].as_py() == ends["max"].as_py()
    words = tuple(format(code, "g") for code in codes)
    column = replace(
        column, missing=column.missing + cells, constant=constant, words=(*column.words, *words)
    )
    # All values of this column were codes for missing, so the column is not a feature.
    if column.missing == len(values):
        column, values = replace(column, kind=Kind.EMPTY), pa.nulls(len(values))
    return Judged(column, values), cells


def _ranked(judged: Judged, ranks: Sequence[Mapping[str, int]]) -> Judged:
    """Return a scale's words as 1, 2, ...; leave a column with a word outside every scale."""
    codes = judged.values.chunk(0)
    words = [plain_word(word) for word in codes.dictionary.to_pylist()]
    rank = next((rank for rank in ranks if words and set(words) <= set(rank)), None)
    if rank is None:
        return judged
    at = pa.array([rank[word] for word in words], pa.int64())
    column = replace(judged.column, kind=Kind.NUMERIC, categories=None)
    return Judged(column, pa.chunked_array([at.take(codes.indices)]))


def _filled_notes(with_gaps: list[RawColumn]) -> list[str]:
    """Return notes on the values that replaced missing values."""
    notes = []
    numbers = [column.name for column in with_gaps if column.is_feature]
    texts = [column.name for column in with_gaps if not column.is_feature]
    if numbers:
        notes.append(f"Missing numbers became their column's median in {listed(numbers)}.")
    if texts:
        notes.append(f"A missing category is 0 in all features made of {listed(texts)}.")
    return notes


def _left_out(others: list[RawColumn], used: list[RawColumn], categorical: str) -> list[str]:
    """Return sentences on columns that became no feature."""
    notes = []
    features = {column.name for column in used}
    out = [column for column in others if column.name not in features]
    for kind, what in (
        (Kind.CATEGORICAL, "text"),
        (Kind.REMARK, "free text"),
        (Kind.DATE, "date"),
        (Kind.EMPTY, "empty"),
    ):
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
