"""A parsed file before anything is decided: columns with kinds, then a `Table`.

Parsing is dear and done once; `RawTable.to_table` is cheap, so a page may call
it again whenever the label column or the treatment of gaps changes.
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
from dpviz.core.errors import InvalidSetting, InvalidTable, printable
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
from dpviz.datasets.table import PLAINLY, ReadOptions, Table

_MAX_LABEL_LETTERS = 100

_FILL_ROWS = 1 << 14

CELLS = 1 << 26
"""The most cells that are held in memory: larger files are read in batches."""

UPLOADED_CELLS = 1 << 25
"""The most that a page takes: 33 million cells."""


def _fill_gaps(rows: FloatArray, numbers: Sequence[RawColumn], assumed: list[str]) -> list[str]:
    """Fill each gap with its column's median; return what had none, and add what was taken."""
    notes = []
    filled = [j for j, column in enumerate(numbers) if column.missing]
    for j in filled:
        gap = np.isnan(rows[:, j])
        if not gap.all():
            rows[gap, j] = np.median(rows[~gap, j])
        else:
            # there is no median to take; a constant is dropped later
            rows[:, j] = 0.0
            notes.append(
                f"'{numbers[j].name}' has values only in rows without a label: it was set to 0."
            )
    if filled:
        names = listed([numbers[j].name for j in filled])
        assumed.append(f"the medians that replaced missing cells in {names}")
    return notes


def _check_choices(reading: ReadOptions) -> None:
    if reading.categorical not in ("drop", "onehot"):
        raise InvalidSetting("categorical", "drop or onehot", reading.categorical)
    if reading.missing not in ("drop", "median"):
        raise InvalidSetting("missing", "drop or median", reading.missing)


def _remarks_on(numbers: Sequence[RawColumn], rows: FloatArray) -> list[str]:
    """Return what is to be said of the numbers themselves."""
    notes = []
    booleans = [column.name for column in numbers if column.kind is Kind.BOOLEAN]
    if booleans:
        notes.append(f"True and false became 1 and 0 in {listed(booleans)}.")
    coded = [column.name for j, column in enumerate(numbers) if sentinel(rows[:, j])[1]]
    if coded:
        notes.append(f"Some cells of {listed(coded)} {WARNING}")
    return notes


def unit_words(rows_a_person: int | None) -> str:
    """Return what is taken for public of the rows that one person has."""
    if rows_a_person is None:
        return "that nobody has a second row: this protects one ROW, not a person"
    if rows_a_person == 1:
        return "that no person has more than 1 row"
    return f"that no person has more than {rows_a_person} rows: what is claimed is a person's"


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
    most_cells : int
        What the table made of it may have.
    sheets : tuple of str
        Sheets of the workbook that it was read from.
    sheet : str
        The one that was read.
    """

    name: str
    columns: tuple[RawColumn, ...]
    notes: tuple[str, ...]
    data: Any = field(repr=False)
    most_cells: int = CELLS
    sheets: tuple[str, ...] = ()
    sheet: str = ""

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

    def to_table(self, reading: ReadOptions = PLAINLY) -> Table:
        """Return the numeric table that a reading makes of it.

        Parameters
        ----------
        reading : ReadOptions
            Its ``decimal``, ``encoding`` and ``sheet`` have done their work already.

        Raises
        ------
        InvalidTable
            When fewer than 2 rows or 2 features remain, the label cannot be one,
            or the table would not fit in memory.
        """
        _check_choices(reading)
        label = None if reading.label is None else self._label_column(reading.label)
        self.check_names("a column left out", reading.leave_out or ())
        # who names the column of the person and no number means one row each
        most = reading.rows_a_person if reading.person is None else reading.rows_a_person or 1
        numbers, encoded, notes = self._features(reading, label)
        used = [*numbers, *encoded]

        # A label is always needed; a gap elsewhere costs the row only where nothing fills it.
        needed = [*(used if reading.missing == "drop" else []), *([label] if label else [])]
        keep = self._complete(needed)
        notes += self._missing_notes(used, label, reading.missing, keep)
        if reading.person is not None and most is not None:
            self.check_names("the column of the person", [reading.person])
            first = self._first_rows(reading.person, most)
            counts = "row counts" if most == 1 else f"{most} rows count"
            notes.append(
                f"Of each person in '{reading.person}' the first {counts}: "
                f"{int(np.count_nonzero(~first)):,} of {len(first):,} rows were left out."
            )
            keep = first if keep is None else keep & first
        kept = self._kept(keep, [*used, *([label] if label else [])])

        names, rows = self._filled(numbers, encoded, keep, kept)
        assumed = [unit_words(most)]
        if reading.missing == "median":
            notes += _fill_gaps(rows, numbers, assumed)
        if encoded:
            where = listed([column.name for column in encoded])
            notes.append(f"Categories became one 0/1 feature each in {where}.")
            assumed.append(f"the list of categories in {where}")
        return Table(
            self.name,
            rows,
            distinct(names)[0],
            None if label is None else self._labels(label, keep),
            None if label is None else label.name,
            (*notes, *_remarks_on(numbers, rows)),
            tuple(assumed),
        )

    def _features(
        self, reading: ReadOptions, label: RawColumn | None
    ) -> tuple[list[RawColumn], list[RawColumn], list[str]]:
        """Return the columns of numbers, those that categories are made of, and what is said."""
        out = list(reading.leave_out or ())
        # a number of a patient is no feature; as a label it was asked for
        if reading.person is not None and reading.person not in (*out, reading.label):
            out.append(reading.person)
        others = [
            column for column in self.columns if column is not label and column.name not in out
        ]
        numbers = [column for column in others if column.is_feature]
        onehot = reading.categorical == "onehot"
        encoded = [column for column in others if column.can_encode] if onehot else []
        self._check_width(numbers, encoded, label)
        notes = [*self.notes, *_left_out(others, [*numbers, *encoded], reading.categorical)]
        if out:
            notes.append(f"Left out as asked: {listed(out)}.")
        return numbers, encoded, notes

    def _filled(
        self,
        numbers: list[RawColumn],
        encoded: list[RawColumn],
        keep: NDArray[np.bool_] | None,
        kept: int,
    ) -> tuple[list[str], FloatArray]:
        """Return the names and the values of all features, gaps in numbers as NaN."""
        codes = {column.name: self._codes(column, keep) for column in encoded}
        names = [
            *(column.name for column in numbers),
            *(f"{name}={category}" for name, (present, _) in codes.items() for category in present),
        ]
        self._check_cells(kept, len(names))
        rows = np.empty((kept, len(names)))
        self._fill(rows[:, : len(numbers)], numbers, keep)
        at = len(numbers)
        for present, code in codes.values():
            # a gap has the code -1, which equals no category: all of its features are 0
            rows[:, at : at + len(present)] = code[:, None] == np.arange(len(present))
            at += len(present)
        return names, rows

    def _kept(self, keep: NDArray[np.bool_] | None, used: Sequence[RawColumn]) -> int:
        """Return how many rows are kept, of which a table needs two."""
        kept = self.data.num_rows if keep is None else int(np.count_nonzero(keep))
        if kept < 2:
            worst = max(used, key=lambda column: column.missing)
            raise InvalidTable(
                f"{self.name} keeps {counted(kept, 'row')} of {self.data.num_rows} when rows with "
                f"missing cells are left out, and at least 2 are needed; '{worst.name}' has the "
                "most missing cells."
            )
        return kept

    def _check_cells(self, rows: int, features: int) -> None:
        """Raise `InvalidTable` where the table would not fit in memory."""
        if rows * features > self.most_cells:
            raise InvalidTable(
                f"{self.name} would need {rows} x {features} numbers, more than the "
                f"{self.most_cells} that are allowed; keep fewer rows or columns."
            )

    def words(self, column: RawColumn) -> tuple[str, ...]:
        """Return the words of a text column that may be a scale of 3 to 7; empty for another."""
        if column.categories is None or not 3 <= column.categories <= 7 or not column.can_encode:
            return ()
        return tuple(plain_word(word) for word in self._coded(column).dictionary.to_pylist())

    def stated(self, reading: ReadOptions) -> RawTable:
        """Return the table with columns read as stated.

        Parameters
        ----------
        reading : ReadOptions
            Its ``read_as``; ``codes``, numbers and words that count as missing in every column; and
            ``levels``: a text column is read by the first scale that has all of its words,
            whatever their case. A scale may have words that nobody chose.
        """
        self.check_names("a column that is read in another way", reading.read_as)
        numbers = [code for code in reading.codes if not isinstance(code, str)]
        words = [code.lower() for code in reading.codes if isinstance(code, str)]
        ranks = [{plain_word(w): at for at, w in enumerate(one, 1)} for one in reading.levels]
        marks = {column.mark for column in self.columns} - {None}
        decimal = marks.pop() if len(marks) == 1 else None
        data, columns, notes, cells, ordered = self.data, [], [], 0, []
        for j, column in enumerate(self.columns):
            found = begun = Judged(column, data.column(j))
            wanted = reading.read_as.get(column.name)
            if column.is_text and (wanted == "number" or _holds(found, words)):
                found, said = judge_again(
                    self.name, found, words, decimal, as_number=wanted == "number"
                )
                notes += said
            elif column.is_feature and wanted == "category":
                found = as_texts(self.name, found)
                notes.append(f"Numbers of '{column.name}' were read as categories.")
            if found.column.kind is Kind.NUMERIC and numbers:
                found, lost = _without_codes(found, numbers)
                cells += lost
            if found.column.kind in (Kind.CATEGORICAL, Kind.REMARK) and ranks:
                found = _ranked(found, ranks)
                ordered += [column.name] if found.column.is_feature else []
            if found is not begun:
                data = data.set_column(j, column.name, found.values)
            columns.append(found.column)
        if cells:
            meant = listed([format(code, "g") for code in numbers])
            notes.append(f"{counted(cells, 'cell')} of {meant} count as missing.")
        if ordered:
            notes.append(f"Words in order became numbers from 1 in {listed(ordered)}.")
        if data is self.data:
            return self
        return replace(self, data=data, columns=tuple(columns), notes=(*self.notes, *notes))

    def _first_rows(self, person: str, most: int) -> NDArray[np.bool_]:
        """Return which rows are among the first of their person; a row of nobody never is."""
        values = self.data[person]
        coded = values.chunk(0) if pa.types.is_dictionary(values.type) else None
        indices = values.combine_chunks().dictionary_encode().indices if coded is None else None
        code = to_numpy(pc.fill_null(indices if coded is None else coded.indices, -1))
        # the first rows of a person are those of the file, whatever its order
        order = np.argsort(code, kind="stable")
        starts = np.r_[True, np.diff(code[order]) != 0]
        at = np.arange(len(code))
        place = np.empty(len(code), dtype=np.int64)
        place[order] = at - np.maximum.accumulate(np.where(starts, at, 0))
        return (place < most) & (code >= 0)

    def check_names(self, what: str, names: Collection[str]) -> None:
        """Raise `InvalidTable` where a name is none of its columns."""
        known = [column.name for column in self.columns]
        for name in names:
            if name not in known:
                raise InvalidTable(
                    f"{what} must be a column of {self.name}, one of {listed(known)}; "
                    f"got {printable(name)!r}."
                )

    def _label_column(self, label: str) -> RawColumn:
        self.check_names("label", [label])
        found = next(column for column in self.columns if column.name == label)
        if found.kind is Kind.EMPTY:
            raise InvalidTable(f"label column '{label}' of {self.name} has no values.")
        if found.kind is Kind.IDENTIFIER:
            raise InvalidTable(
                f"label column '{label}' of {self.name} has a different text in every row, "
                "so it groups nothing."
            )
        if found.kind in (Kind.CATEGORICAL, Kind.DATE, Kind.REMARK):
            # labels are names in a legend; a long text is somebody's words
            longest = pc.max(pc.utf8_length(self._coded(found).dictionary)).as_py()
            if longest > _MAX_LABEL_LETTERS:
                raise InvalidTable(
                    f"label column '{label}' of {self.name} holds texts of more than "
                    f"{_MAX_LABEL_LETTERS} letters, too long for labels."
                )
        return found

    def _check_width(
        self, numbers: list[RawColumn], encoded: list[RawColumn], label: RawColumn | None
    ) -> None:
        width = len(numbers) + sum(column.categories or 0 for column in encoded)
        if width >= 2:
            return
        besides = "" if label is None else f" besides the label '{label.name}'"
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
        """Return what gaps did: where they are, what filled them, and the rows they cost."""
        notes = []
        holed = [column for column in used if column.missing]
        if holed:
            cells = counted(sum(column.missing for column in holed), "cell")
            verb = "is" if cells == "1 cell" else "are"
            where = listed([column.name for column in holed])
            notes.append(f"{cells} {verb} missing in {where}.")
            notes += _filled_notes(holed) if missing == "median" else []
        lost = 0 if keep is None else int(len(keep) - np.count_nonzero(keep))
        if lost:
            why = "a label" if missing == "median" or not holed else "a value or a label"
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
                values = to_numpy(block.column(j))[mask]
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
        code = to_numpy(pc.fill_null(coded.indices, -1)).astype(np.int64)
        code = code if keep is None else code[keep]
        # of the kept rows alone: a category that only left-out rows have is no feature
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
            labels = to_numpy(present)
            return labels.astype(np.int64) if whole else labels.astype(np.float64)
        present, code = self._codes(column, keep)
        texts: NDArray[Any] = np.array(present, dtype=np.str_)
        return texts[code]


def _holds(judged: Judged, words: Collection[str]) -> bool:
    """Return whether a column of texts holds one of some words, which are in lower case."""
    texts = pc.utf8_lower(judged.values.chunk(0).dictionary)
    return bool(pc.any(pc.is_in(texts, pa.array([*words], pa.large_string()))).as_py())


def _without_codes(judged: Judged, codes: Sequence[float]) -> tuple[Judged, int]:
    """Return a column of numbers with some of them read as missing, and in how many cells."""
    column, values = judged.column, judged.values
    # whole numbers beyond 2^53 are rounded here, and are no codes
    at = pc.is_in(values.cast(pa.float64(), safe=False), pa.array(codes, pa.float64()))
    found = pc.sum(at).as_py() or 0
    if not found:
        return judged, 0
    values = pc.if_else(at, pa.scalar(None, values.type), values)
    ends = pc.min_max(values)
    constant = ends["min"].as_py() == ends["max"].as_py()
    words = tuple(format(code, "g") for code in codes)
    column = replace(
        column, missing=column.missing + found, constant=constant, words=(*column.words, *words)
    )
    # all of it was the code: nothing is left that could be a feature
    if column.missing == len(values):
        column, values = replace(column, kind=Kind.EMPTY), pa.nulls(len(values))
    return Judged(column, values), found


def _ranked(judged: Judged, ranks: Sequence[Mapping[str, int]]) -> Judged:
    """Return words of a scale as 1, 2, ...; a word more, and the column is no answer on it."""
    coded = judged.values.chunk(0)
    words = [plain_word(word) for word in coded.dictionary.to_pylist()]
    rank = next((rank for rank in ranks if words and set(words) <= set(rank)), None)
    if rank is None:
        return judged
    at = pa.array([rank[word] for word in words], pa.int64())
    column = replace(judged.column, kind=Kind.NUMERIC, categories=None)
    return Judged(column, pa.chunked_array([at.take(coded.indices)]))


def _filled_notes(holed: list[RawColumn]) -> list[str]:
    """Return what stands in the place of gaps."""
    notes = []
    numbers = [column.name for column in holed if column.is_feature]
    texts = [column.name for column in holed if not column.is_feature]
    if numbers:
        notes.append(f"Missing numbers became their column's median in {listed(numbers)}.")
    if texts:
        notes.append(f"A missing category is 0 in all features made of {listed(texts)}.")
    return notes


def _left_out(others: list[RawColumn], used: list[RawColumn], categorical: str) -> list[str]:
    """Return the sentences on columns that became no feature."""
    notes = []
    kept = {column.name for column in used}
    out = [column for column in others if column.name not in kept]
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
