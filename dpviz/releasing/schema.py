"""Declarations about a table before anybody reads it: its format and its possible values.

A release reads every cell by itself under a schema. A cell without a number, or with a value
declared to mean "missing", becomes the column's typical value. Every value is clipped to the
column's bounds. So no cell decides how another cell is read.

A schema is a JSON file, one column a line; ``docs/schema.json`` describes it for editors.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import LARGEST, FeatureBounds, kinds_of, stated_categories
from dpviz.core.errors import DpvizError, InvalidSetting, printable
from dpviz.core.files import NamedTwice, atomic_write, strict_json
from dpviz.core.number_text import number_in, numeral
from dpviz.core.problem import Unit
from dpviz.core.settings import is_scale, plain_word
from dpviz.datasets import Table

FORMAT = 1
PUBLIC = "public"
FROM_DATA = "taken from the data, not private"
SCHEMA_PUBLIC = (
    "the schema (names, bounds, typical values, how the table is written), agreed before the table "
    "was read"
)
MIDPOINT = "midpoint"
MOST_COLUMNS = 20_000
MOST_SKIPPED = 1_000
MOST_ROWS_A_PERSON = 1_000

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar", " ": "blanks"}
DECIMALS = {".": "point", ",": "comma"}
THOUSANDS = {"": "none", ",": "comma", ".": "point", "'": "apostrophe", " ": "blank"}
ENCODINGS = ("utf-8", "cp1252", "latin-1")
"""In each of these encodings, a byte below 128 is the ASCII character, so numbers read the same."""
PACKINGS = {
    "auto": "detected from the first bytes, if the first line is not a person's row",
    "text": "text",
    "gzip": "gzipped text",
}


class SchemaError(DpvizError):
    """Raised if a schema cannot be read, or is incomplete; the message states the reason."""


@dataclass(frozen=True)
class Column:
    """The declaration of one column.

    Attributes
    ----------
    name : str
        Name as in the table's header row, one line of printable characters.
    low, high : float or None
        Public bounds; None until a person fills them in.
    typical : float or None
        Value that replaces a cell without a number; None for the middle of the bounds.
    missing : tuple of float or str
        Numbers and words that mean "missing". Such words change no number, because a cell without a
        number is missing anyway. In the person's column these words name nobody.
    use : bool
        Whether the column is used.
    log : bool
        Whether the release uses the logarithm of a cell, after clipping to bounds above 0: for
        values with a long tail.
    levels : tuple of str
        Words from the least to the most that count as 1, 2, ... instead of numbers, in upper or
        lower case: answers such as never, sometimes, often. Bounds are then 1 and the number of
        words, unless other bounds are stated.
    decimal : str
        Decimal mark of the column; empty for the mark of the table.
    """

    name: str
    low: float | None = None
    high: float | None = None
    typical: float | None = None
    missing: tuple[float | str, ...] = ()
    use: bool = True
    log: bool = False
    levels: tuple[str, ...] = ()
    decimal: str = ""

    def __post_init__(self) -> None:
        name = printable(self.name) if isinstance(self.name, str) else ""
        if not name:
            raise InvalidSetting("the name of a column", "a text that is not blank", self.name)
        shown = f"of column {name!r}"
        object.__setattr__(self, "name", name)
        for what in ("use", "log"):
            if not isinstance(getattr(self, what), bool):
                raise InvalidSetting(f"{what} {shown}", "true or false", getattr(self, what))
        if self.decimal not in ("", *DECIMALS):
            raise InvalidSetting(f"decimal {shown}", "one of '', '.', ','", self.decimal)
        for what in ("low", "high", "typical"):
            value = getattr(self, what)
            if value is not None:
                object.__setattr__(self, what, _number(f"{what} {shown}", value))
        given = self.missing if isinstance(self.missing, (tuple, list)) else (self.missing,)
        object.__setattr__(self, "missing", tuple(_marker(f"missing {shown}", x) for x in given))
        self._check_levels(shown)
        low, high = self.low, self.high
        if self.log and low is not None and not low > 0:
            raise InvalidSetting(f"low {shown}", "above 0, because its logarithm is used", low)
        if low is None or high is None:
            return
        if not low < high:
            raise InvalidSetting(f"low {shown}", f"below high, which is {numeral(high, 6)}", low)
        if self.typical is not None and not low <= self.typical <= high:
            allowed = f"within its bounds, {numeral(low, 6)} to {numeral(high, 6)}"
            raise InvalidSetting(f"typical {shown}", allowed, self.typical)

    def _check_levels(self, shown: str) -> None:
        words = self.levels if isinstance(self.levels, (tuple, list)) else (None,)
        if not words:
            return
        if not (all(isinstance(word, str) for word in words) and is_scale(words)):
            allowed = "3 to 7 different words from the least to the most"
            raise InvalidSetting(f"levels {shown}", allowed, self.levels)
        if {plain_word(word) for word in words} & {*map(plain_word, self.words)}:
            raise InvalidSetting(f"levels {shown}", "words that do not mean missing values", words)
        object.__setattr__(self, "levels", tuple(printable(word) for word in words))
        if self.low is None and self.high is None:
            # The words of a scale count as 1, 2, and so on, up to the number of words.
            object.__setattr__(self, "low", 1.0)
            object.__setattr__(self, "high", float(len(words)))

    @property
    def codes(self) -> tuple[float, ...]:
        """The numbers that mean "missing"."""
        return tuple(code for code in self.missing if not isinstance(code, str))

    @property
    def words(self) -> tuple[str, ...]:
        """The words that mean "missing"."""
        return tuple(word for word in self.missing if isinstance(word, str))

    @property
    def middle(self) -> float:
        """The middle between the bounds."""
        assert self.low is not None
        assert self.high is not None
        # The limits are halved before they are added, because their sum may overflow.
        return self.low / 2 + self.high / 2

    @property
    def stand_in(self) -> float:
        """The value that replaces a cell without a number."""
        return self.middle if self.typical is None else self.typical


@dataclass(frozen=True)
class Schema:
    """The declared format of a table and its possible values.

    Attributes
    ----------
    columns : tuple of Column
        The columns. With a header row, only the columns that matter, in any order. Without a header
        row, all columns from the first to the last used one, in the table's order.
    header : bool
        Whether a header row names the columns.
    skip : int
        Number of unread lines above the header row, or above the rows.
    delimiter, decimal, thousands : str
        Marks between cells, before decimals and between thousands; "" means none. A column may have
        its own decimal mark. If this mark is the table's thousands mark, the column has no
        thousands mark.
    encoding : str
        Encoding of the names and words in the table.
    packing : {"auto", "text", "gzip"}
        Form of the bytes. With a header row, or a line above the rows, the first bytes belong to
        nobody, so ``auto`` may inspect them.
    rows_a_person : int or None
        Maximum number of rows of one person, so that a release protects persons. None if nobody
        stated it: the release then protects rows.
    person : str
        Column that names the person. Only the first `rows_a_person` rows of each person are used;
        the rest are left out, as if they were zero. Empty if the table is declared to hold no more
        rows of anybody.
    label : str
        Column whose categories colour a published map; empty for none.
    categories : tuple of str
        Public categories of the label. A cell with another value counts as "other".
    from_data : bool
        Whether the schema was taken from the table and no person has declared it since.
    """

    columns: tuple[Column, ...]
    header: bool = True
    skip: int = 0
    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    packing: str = "auto"
    rows_a_person: int | None = None
    person: str = ""
    label: str = ""
    categories: tuple[str, ...] = ()
    from_data: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise InvalidSetting(name, f"one of {', '.join(map(repr, choices))}", value)
        for name in ("header", "from_data"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidSetting(name, "true or false", getattr(self, name))
        # In Python, True is the number 1, so it would skip one line. It is refused.
        if isinstance(self.skip, bool) or not isinstance(self.skip, int):
            raise InvalidSetting("skip", "a whole number of lines", self.skip)
        if not 0 <= self.skip <= MOST_SKIPPED:
            raise InvalidSetting("skip", f"from 0 to {MOST_SKIPPED:,} lines", self.skip)
        self._check_person()
        self._check_label()
        if self.thousands == self.decimal:
            raise InvalidSetting("thousands", "a mark other than the decimal mark", self.thousands)
        if not 1 <= len(self.columns) <= MOST_COLUMNS:
            raise InvalidSetting("columns", f"from 1 to {MOST_COLUMNS:,}", len(self.columns))
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidSetting("columns", "different names, each used once", twice)

    def _check_person(self) -> None:
        rows, name = self.rows_a_person, self.person
        if not isinstance(name, str):
            raise InvalidSetting("person", "the name of a column", name)
        name = printable(name)  # Column names have the same length limit.
        object.__setattr__(self, "person", name)
        allowed = f"a whole number of rows from 1 to {MOST_ROWS_A_PERSON:,}"
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int)):
            raise InvalidSetting("rows_a_person", allowed, rows)
        if rows is not None and not 1 <= rows <= MOST_ROWS_A_PERSON:
            raise InvalidSetting("rows_a_person", allowed, rows)
        if name and rows is None:
            raise InvalidSetting("rows_a_person", f"stated with person, as {allowed}", "nothing")
        if name and any(column.name == name for column in self.used):
            raise InvalidSetting("person", "the name of a column that is not analysed", name)

    def _check_label(self) -> None:
        if not isinstance(self.label, str):
            raise InvalidSetting("label", "the name of a column", self.label)
        object.__setattr__(self, "label", printable(self.label))
        object.__setattr__(self, "categories", stated_categories(self.categories))
        if bool(self.label) is not bool(self.categories):
            raise InvalidSetting(
                "label and categories", "stated together", self.label or "categories alone"
            )
        if self.label and self.label in (self.person, *(column.name for column in self.used)):
            raise InvalidSetting("label", "not analysed and not the person's column", self.label)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Possible labels of a row: a category, or "other"; none without a label column."""
        return kinds_of(self.categories)

    @property
    def used(self) -> tuple[Column, ...]:
        """The used columns in their order."""
        return tuple(column for column in self.columns if column.use)

    @property
    def digest(self) -> str:
        """A digest of everything that decides how a table is read, but not of the declarer."""
        found = self._json()
        for column, written in zip(self.columns, found["columns"], strict=True):
            # An omitted typical value means the middle. Both forms must have the same digest.
            if "typical" in written and column.low is not None and column.high is not None:
                written["typical"] = column.stand_in
        text = json.dumps(found, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def require(self) -> None:
        """Raise `SchemaError` if a declaration is still missing."""
        if len(self.used) < 2:
            raise SchemaError(f"the schema must use at least 2 columns; it uses {len(self.used)}.")
        for column in self.used:
            for what in ("low", "high"):
                if getattr(column, what) is None:
                    raise SchemaError(
                        f"the schema must state low and high of every column that is used; "
                        f"{what} of {column.name!r} is missing."
                    )

    @property
    def unit(self) -> Unit:
        """The protected unit: a row, or a person if the rows of one person are stated."""
        return Unit.ROW if self.rows_a_person is None else Unit.PERSON

    @property
    def limits(self) -> FloatArray:
        """Low, high and typical value of each used column, once all are stated; shape (d, 3)."""
        rows = [(column.low, column.high, column.stand_in) for column in self.used]
        return np.array(rows, dtype=np.float64)

    @property
    def limits_used(self) -> FloatArray:
        """As `limits`, but in logarithms for log columns; `filled` cells lie between them."""
        return self._logged(self.limits.T).T

    @property
    def scales(self) -> dict[str, dict[str, list[str]]]:
        """Ordered words of the columns that have such words, in the form of a release file."""
        found = {column.name: list(column.levels) for column in self.used if column.levels}
        return {"levels": found} if found else {}

    @property
    def names_used(self) -> tuple[str, ...]:
        """Names of the used columns; "log" marks columns that are used in logarithms."""
        return tuple(f"log {column.name}" if column.log else column.name for column in self.used)

    def _logged(self, values: FloatArray) -> FloatArray:
        """Take the logarithms of log columns; cells below the lower bound count as this bound."""
        for j, column in enumerate(self.used):
            if column.log and column.low is not None:
                values[:, j] = np.log(np.maximum(values[:, j], column.low))
        return values

    def filled(self, values: FloatArray, *, cut: bool = True) -> FloatArray:
        """Return cells as a release uses them; each depends only on itself and the schema.

        Parameters
        ----------
        values : ndarray of shape (n, d)
            One column for each used column; cells without a finite number count as missing.
        cut : bool
            Whether cells are clipped to the bounds, as in a release.

        Returns
        -------
        ndarray of shape (n, d)
            Finite values, within `limits_used`.

        Notes
        -----
        A logarithm depends only on its cell and the schema, like the clipping before it. So tables
        that differ in one row differ in one row afterwards. Proofs for rows between public limits
        hold for logarithms too, with the logarithms of the public limits.
        """
        gone = ~np.isfinite(values)
        for j, column in enumerate(self.used):
            for code in column.codes:
                gone[:, j] |= values[:, j] == code
        low, high, typical = self.limits.T
        found: FloatArray = np.where(gone, typical, values)
        return self._logged(np.clip(found, low, high) if cut else found)

    def to_text(self) -> str:
        """Return the schema in the form of its file, one column a line."""
        found = self._json()
        columns = found.pop("columns")
        head = {"dpviz_schema": FORMAT, "status": FROM_DATA if self.from_data else PUBLIC, **found}
        lines = [f" {json.dumps(key)}: {_dumped(value)}," for key, value in head.items()]
        body = [f"  {_dumped(column)}" for column in columns]
        return "\n".join(["{", *lines, ' "columns": [', ",\n".join(body), " ]", "}"]) + "\n"

    def write(self, out: Path) -> None:
        """Write the schema's file, as a whole or not at all."""
        with atomic_write(out) as aside:
            aside.write_text(self.to_text(), encoding="utf-8")

    def _json(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _READING}
        found["categories"] = list(self.categories)
        # Default values are left out, so that a schema without these keys keeps its digest.
        for name in ("rows_a_person", "person", "label", "categories"):
            if not found[name]:
                del found[name]
        return {**found, "columns": [_column_json(column) for column in self.columns]}

    @classmethod
    def from_text(cls, text: str | bytes, name: str = "the schema") -> Schema:
        """Return the schema from a file's content.

        Parameters
        ----------
        text : str or bytes
            Content of the file in UTF-8.
        name : str
            Name of the schema, for messages.

        Raises
        ------
        SchemaError
            If the text is not a valid schema.
        """
        try:
            found = strict_json(text if isinstance(text, str) else text.decode())
        except ValueError as error:
            why = f"it names {error}" if isinstance(error, NamedTwice) else "it is not JSON"
            raise SchemaError(f"{name} cannot be read as a schema: {why}.") from None
        try:
            return cls._from_json(found)
        except InvalidSetting as error:
            raise SchemaError(f"in {name}, {error}") from None

    @classmethod
    def read(cls, path: Path) -> Schema:
        """Return the schema in a file, or raise `SchemaError`."""
        try:
            text = path.read_bytes()
        except OSError:
            raise SchemaError(f"the schema {printable(path.name)!r} cannot be opened.") from None
        return cls.from_text(text, printable(path.name))

    @classmethod
    def _from_json(cls, found: Any) -> Schema:
        if not isinstance(found, dict) or found.get("dpviz_schema") != FORMAT:
            given = found.get("dpviz_schema", "none") if isinstance(found, dict) else "none"
            raise InvalidSetting("dpviz_schema", f"{FORMAT}, the format of schemas", given)
        status = found.get("status", PUBLIC)
        if status not in (PUBLIC, FROM_DATA):
            raise InvalidSetting("status", f"{PUBLIC!r} or {FROM_DATA!r}", status)
        written = found.get("columns")
        if not isinstance(written, list):
            raise InvalidSetting("columns", "a list", "none")
        columns = [_column_from(item) for item in written]
        rest = {k: v for k, v in found.items() if k not in ("dpviz_schema", "status", "columns")}
        _known("a schema", rest, _READING)
        return cls(tuple(columns), from_data=status == FROM_DATA, **rest)


_CHOICES: Mapping[str, Sequence[str]] = {
    "delimiter": tuple(DELIMITERS),
    "decimal": tuple(DECIMALS),
    "thousands": tuple(THOUSANDS),
    "encoding": ENCODINGS,
    "packing": tuple(PACKINGS),
}
_READING = tuple(item.name for item in fields(Schema) if item.name not in ("columns", "from_data"))
_COLUMN = tuple(item.name for item in fields(Column))


def public_schema(table: Table) -> Schema | None:
    """Return the schema of a table with public bounds, or None if the bounds are not public."""
    if table.bounds is None:
        return None
    return Schema(
        tuple(
            Column(name, float(low), float(high))
            for name, (low, high) in zip(table.columns, table.bounds, strict=True)
        ),
        **public_labels(table),
    )


def public_labels(table: Table) -> dict[str, Any]:
    """Return the schema entries for label and categories of a table of public rows, if any."""
    kinds = table.kinds if table.public and table.label_name else None
    return {} if kinds is None else {"label": str(table.label_name), "categories": kinds[0]}


def with_bounds(schema: Schema, bounds: tuple[float, float] | FeatureBounds) -> Schema:
    """Return the schema with stated bounds for every used column."""
    names = [column.name for column in schema.used]
    if isinstance(bounds, FeatureBounds):
        sides = bounds.of(names, [column.name for column in schema.columns]).T.tolist()
    else:
        sides = [bounds] * len(names)
    stated = dict(zip(names, sides, strict=True))
    columns = (
        replace(column, low=stated[column.name][0], high=stated[column.name][1], typical=None)
        if column.use
        else column
        for column in schema.columns
    )
    return replace(schema, columns=tuple(columns))


def _column_json(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name}
    if not column.use:
        found["use"] = False
    if column.use or column.low is not None or column.high is not None:
        found |= {"low": column.low, "high": column.high}
        found["typical"] = MIDPOINT if column.typical is None else column.typical
    if column.use or column.missing:
        found["missing"] = list(column.missing)
    if column.log:  # Written only if true, so that older schemas keep their digest.
        found["log"] = True
    if column.levels:
        found["levels"] = list(column.levels)
    if column.decimal:
        found["decimal"] = column.decimal
    return found


def _column_from(item: Any) -> Column:
    if not isinstance(item, dict):
        raise InvalidSetting("a column", "a JSON object with a name", "something else")
    _known("a column", item, _COLUMN)
    found = dict(item)
    if found.get("typical") == MIDPOINT:
        found["typical"] = None
    for name, what in (("missing", "numbers and words"), ("levels", "words")):
        if name in found and not isinstance(found[name], list):
            raise InvalidSetting(name, f"a list of {what}", found[name])
    return Column(**{"name": "", **found})


def _known(what: str, found: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in found:
        if name not in names:
            raise InvalidSetting(f"an entry of {what}", f"one of {', '.join(names)}", name)


def _marker(name: str, value: Any) -> float | str:
    """Return a number or a word that means "missing"; refuse a number in quotes."""
    if not isinstance(value, str):
        return _number(name, value)
    word = printable(value)
    with suppress(ValueError):
        number_in(word)
        word = ""
    if not any(letter.isalpha() for letter in word) and (not word or re.search(r"\d", word)):
        raise InvalidSetting(name, "a number without quotes, or a word", value)
    return word


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidSetting(name, "a number", value)
    if not abs(value) <= LARGEST:  # This refuses NaN as well. An int may be too large for a float.
        raise InvalidSetting(
            name, f"a number between -{numeral(LARGEST, 6)} and {numeral(LARGEST, 6)}", "another"
        )
    return float(value)


def _dumped(value: Any) -> str:
    """Return JSON on one line, with whole numbers without a point."""
    return json.dumps(_short(value), ensure_ascii=False, allow_nan=False)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 and value:
        return int(value)
    return 0 if isinstance(value, float) and value == 0 and math.copysign(1, value) > 0 else value
