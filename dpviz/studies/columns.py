"""Columns of tables, each declared once for tables, JSON, print, pages and papers.

`frame` creates the table (and its CSV), `as_json` the JSON, `printed` the text of a terminal,
`typeset` the cells of a paper; a page's grid calls `Column.on_page`. The type of a value determines
how it is written: a mechanism, a status, a number with its kind, or a summary of releases.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import pandas as pd

from dpviz.core.metrics import Summary
from dpviz.core.number_text import numeral, parseable
from dpviz.core.quantity import Kind, Quantity
from dpviz.core.release import VERDICT_MARKS, VERDICT_WORDS, Status, Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.load import without_paths
from dpviz.report.sentences.phrases import text_table

Number = float | None
NUMERIC = (float, Number)
Share = NewType("Share", float)
"""A share, for which 1 is the whole; pages show it in per cent."""
Sentence = NewType("Sentence", str)
"""A text as long as a sentence, which a page's grid shows in a wide column at the end."""

EVERYWHERE = frozenset({"table", "json", "print", "page", "paper"})
NUMBERS = frozenset({"table", "json"})
"""Outputs that show columns for programs only."""

ABSENT: Any = object()
"""Value of a column that does not apply to the row."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        Name of the column in tables, JSON and print.
    label : str
        Heading on pages and in papers; by default derived from the name.
    of : callable, optional
        Function from a row to its value; by default the attribute or entry with the column's name.
    digits : int
        Number of digits that people read.
    help : str
        Explanation in one sentence, for pages and the schema.
    show : set of str
        Outputs that show the column: some of table, json, print, page and paper.
    type : type
        Type of the column's values in JSON.
    kind : Kind, optional
        Kind of the column's numbers, if the numbers do not carry a kind.
    """

    name: str
    label: str = ""
    of: Callable[[Any], Any] | None = None
    digits: int = 4
    help: str = ""
    show: frozenset[str] = EVERYWHERE
    type: Any = Number
    kind: Kind | None = None

    @property
    def heading(self) -> str:
        """The heading on a page and in a paper."""
        return self.label or self.name.replace("_", " ").capitalize()

    def value(self, row: Any) -> Any:
        """Return a row's value in this column; a number is returned with its kind."""
        if self.of is not None:
            value = self.of(row)
        else:
            value = row[self.name] if isinstance(row, Mapping) else getattr(row, self.name)
        if self.kind is not None and isinstance(value, (int, float)):
            return Quantity(value, self.kind)
        return value

    def on_page(self, row: Any) -> Any:
        """Return the value for a page's grid: labels and marks for people, numbers for sorting."""
        match self.value(row):
            case Mechanism() as mechanism:
                return mechanism.label
            case Status() as status:
                return status.marked
            case Verdict() as verdict:
                return f"{VERDICT_MARKS[verdict]} {VERDICT_WORDS[verdict]}".strip()
            case found:
                return None if found is ABSENT else plain(found)


def of_pair(pair: Any, name: str) -> Any:
    """Return an attribute of an object, or None if the object, such as a claim, is missing."""
    return None if pair is None else getattr(pair, name)


def seen(columns: Iterable[Column], place: str, rows: Sequence[Any]) -> list[Column]:
    """Return the columns that an output shows, except columns that apply to no row.

    In a paper, a column must apply to every row, because its tables have no dashes.
    """
    some = all if place == "paper" else any
    return [
        column
        for column in columns
        if place in column.show
        and (not rows or some(column.value(row) is not ABSENT for row in rows))
    ]


def plain(value: Any) -> Any:
    """Return a value for programs: a text, a number or None."""
    match value:
        case Mechanism():
            return value.text
        case Status():
            return str(value.verdict)
        case Summary():
            return value.mean
        case Quantity():
            return value.value
        case Enum():
            return str(value)
        case np.generic():
            return value.item()
    return None if value is ABSENT else value


def frame(columns: Sequence[Column], rows: Sequence[Any], place: str = "table") -> pd.DataFrame:
    """Return the rows as a data frame."""
    return pd.DataFrame(
        {
            column.name: pd.Series(
                [_cell(column, row) for row in rows],
                # Set the type, because a column of missing values would otherwise hold objects.
                dtype=float if column.type in NUMERIC else None,
            )
            for column in seen(columns, place, rows)
        }
    )


def _cell(column: Column, row: Any) -> Any:
    value = plain(column.value(row))
    # Join a list into one text and write mixed types as text, because a file stores texts.
    return (
        "; ".join(value)
        if isinstance(value, tuple)
        else str(value)
        if column.type is Any
        else value
    )


# Printed and typeset tables -----------------------------------------------------------------------


def printed(columns: Sequence[Column], rows: Sequence[Any]) -> str:
    """Return the table as text for a terminal, in columns of equal width."""
    visible = seen(columns, "print", rows)
    cells = [[_text_of(column.value(row), column.digits) for column in visible] for row in rows]
    return text_table([column.name for column in visible], cells)


def _text_of(value: Any, digits: int) -> str:
    if isinstance(value, Quantity) and not _missing(value.value):
        return value.cell
    match plain(value):
        case bool(found):
            return "yes" if found else "no"
        case int(found):
            return str(found)
        case float(found) if not math.isnan(found):
            return numeral(found, digits)
        case found:
            return (
                "-"
                if _missing(found)
                else "; ".join(found)
                if isinstance(found, tuple)
                else str(found)
            )


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def typeset(columns: Sequence[Column], rows: Sequence[Any]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the cells of a paper's table, in LaTeX."""
    from dpviz.report.paper import cited, latex, with_error

    def cell(value: Any, digits: int) -> str:
        match value:
            case Mechanism():
                return cited(value)
            case Status():
                return latex(value.words)
            case Summary():
                return with_error(value.mean, value.se)
            case Quantity():
                bound = {1: r"\le ", -1: r"\ge "}.get(value.kind.side, "")
                return f"${bound}{parseable(value.value, digits)}$"
            case float() | int() if not isinstance(value, bool):
                return f"${parseable(value, digits)}$"
        return "--" if _missing(value) else latex(str(value))

    visible = seen(columns, "paper", rows)
    head = [latex(column.heading).replace("epsilon", r"$\varepsilon$") for column in visible]
    return head, [[cell(column.value(row), column.digits) for column in visible] for row in rows]


# Tables as JSON data ------------------------------------------------------------------------------


ASIDE = "aside"
"""Mark of a field, ``Annotated[X, ASIDE]``, that is evidence outside the answer's JSON."""


@cache
def fields_of(kind: type) -> dict[str, Any]:
    """Return the fields that a dataclass has in JSON, and their types."""
    types = get_type_hints(kind, include_extras=True)
    kinds = {field.name: types[field.name] for field in dataclasses.fields(kind)}
    return {name: one for name, one in kinds.items() if columns_in(one) != ASIDE}


def key_of(name: str) -> str:
    """Return the JSON key of a field, without the underscore of names that would hide a method."""
    return name.rstrip("_")


def columns_in(kind: Any) -> Any:
    """Return the columns that write a type, or the type's other annotation."""
    return get_args(kind)[1] if get_origin(kind) is Annotated else None


def record(columns: Iterable[Column], row: Any) -> dict[str, Any]:
    """Return a row as JSON data."""
    cells = [(column, column.value(row)) for column in columns if "json" in column.show]
    return {
        column.name: as_json(value, column.type)
        for column, value in cells
        # If a value does not apply, write null or omit the key, if it may be omitted.
        if value is not ABSENT or get_origin(column.type) is not NotRequired
    }


def as_json(value: Any, kind: Any = Any) -> Any:
    """Return a value as JSON data: dataclasses by fields, annotated values by columns.

    Parameters
    ----------
    value : object
    kind : type
        Declared type: ``Annotated[X, columns]`` for rows or an object with columns, and
        ``Annotated[X, Y]`` for a value that is Y in JSON.
    """
    if value is None or value is ABSENT:
        return None
    origin, inside = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return as_json(value, inside[0])
    if origin in (Union, UnionType):
        (kind, *others) = [one for one in inside if one is not type(None)]
        return as_json(value, Any if others else kind)
    if origin is Annotated:
        shape, columns = inside
        if not isinstance(columns, tuple):
            return as_json(value, columns)
        several = (get_origin(shape) or shape) in (list, tuple)
        return [record(columns, row) for row in value] if several else record(columns, value)
    if isinstance(value, Settings):
        return without_paths(value).to_json()
    data = plain(value)
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return {
            name: as_json(getattr(data, name), one) for name, one in fields_of(type(data)).items()
        }
    if isinstance(data, np.ndarray):
        return data.tolist()
    if isinstance(data, pd.DataFrame):
        return data.to_dict("list" if origin is dict else "records")
    if isinstance(data, Mapping):
        return {str(key): as_json(item, inside[-1] if inside else Any)
                for key, item in data.items()}  # fmt: skip
    if isinstance(data, (list, tuple)):
        return [as_json(item, inside[0] if inside else Any) for item in data]
    return data


# Objects that several answers contain -------------------------------------------------------------


PAIR = (
    Column("epsilon", of=lambda pair: pair[0]),
    Column("delta", of=lambda pair: pair[1]),
)
"""Columns of a budget, a pair of numbers."""

SOURCED = (
    Column("epsilon"),
    Column("delta"),
    Column("kind", of=lambda loss: loss.cost.kind, type=Literal["measurement", "upper bound"],
           help="Kind of epsilon: exact (some neighbours reach it) or upper bound."),
    Column("source", type=str, help="How epsilon was computed."),
)  # fmt: skip
"""Columns of a privacy loss (`dpviz.accounting.accounting.Spent`), and how it was computed."""

SKIPPED = (Column("mechanism", type=str), Column("reason", type=str))
"""Columns of a mechanism that was left out."""
