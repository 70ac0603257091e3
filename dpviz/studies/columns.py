"""A table's columns, each declared once: tables, JSON, print, pages and papers walk the same tuple.

`frame` makes the table (and its CSV), `as_json` the JSON, `printed` the text of a terminal,
`typeset` the cells of a paper; a page's grid asks a column for `Column.on_page`. What a cell holds
says how it is written: a mechanism, a status, a number with its kind, the summary of draws.
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
"""A number of which 1 is all: pages write it in per cent."""
Sentence = NewType("Sentence", str)
"""A text as long as a sentence: wide, and last, in a page's grid."""

EVERYWHERE = frozenset({"table", "json", "print", "page", "paper"})
NUMBERS = frozenset({"table", "json"})
"""Where a column is seen that is for programs alone."""

ABSENT: Any = object()
"""What a row has in a column that does not apply to it."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        In tables, JSON and print.
    label : str
        Heading on pages and in papers; made of the name if not said.
    of : callable, optional
        Row to what stands there; the row's attribute or entry of this name if not said.
    digits : int
        Of a number, where it is read.
    help : str
        What it is, in a sentence: on pages and in the schema.
    show : set of str
        Where it is seen: of table, json, print, page and paper.
    type : type
        Of what stands there in JSON.
    kind : Kind, optional
        What its numbers are, where the numbers do not say it themselves.
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
        """What stands above it on a page and in a paper."""
        return self.label or self.name.replace("_", " ").capitalize()

    def value(self, row: Any) -> Any:
        """Return what a row has here: a number of a kind with its kind."""
        if self.of is not None:
            found = self.of(row)
        else:
            found = row[self.name] if isinstance(row, Mapping) else getattr(row, self.name)
        if self.kind is not None and isinstance(found, (int, float)):
            return Quantity(found, self.kind)
        return found

    def on_page(self, row: Any) -> Any:
        """Return what a page's grid holds: labels and marks for people, numbers to sort by."""
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
    """Return an attribute of what may not be there: of a claim that is not made."""
    return None if pair is None else getattr(pair, name)


def seen(columns: Iterable[Column], place: str, rows: Sequence[Any]) -> list[Column]:
    """Return the columns that are seen in a place, but those that apply to no row.

    In a paper, whose tables have no dashes, a column has to apply to every row.
    """
    some = all if place == "paper" else any
    return [
        column
        for column in columns
        if place in column.show
        and (not rows or some(column.value(row) is not ABSENT for row in rows))
    ]


def plain(value: Any) -> Any:
    """Return what a program reads: a text, a number or None."""
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
    """Return the table of rows."""
    return pd.DataFrame(
        {
            column.name: pd.Series(
                [_cell(column, row) for row in rows],
                # a column of nothing but gaps would hold objects
                dtype=float if column.type in NUMERIC else None,
            )
            for column in seen(columns, place, rows)
        }
    )


def _cell(column: Column, row: Any) -> Any:
    found = plain(column.value(row))
    # a list is words; of no type of its own, what one column of a file can hold
    return (
        "; ".join(found)
        if isinstance(found, tuple)
        else str(found)
        if column.type is Any
        else found
    )


# Printed and typeset ------------------------------------------------------------------------------


def printed(columns: Sequence[Column], rows: Sequence[Any]) -> str:
    """Return the table as a terminal shows it, in columns of equal width."""
    shown = seen(columns, "print", rows)
    cells = [[_printed(column.value(row), column.digits) for column in shown] for row in rows]
    return text_table([column.name for column in shown], cells)


def _printed(value: Any, digits: int) -> str:
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
    """Return head and cells of a paper's table, as LaTeX."""
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

    shown = seen(columns, "paper", rows)
    head = [latex(column.heading).replace("epsilon", r"$\varepsilon$") for column in shown]
    return head, [[cell(column.value(row), column.digits) for column in shown] for row in rows]


# JSON ---------------------------------------------------------------------------------------------


ASIDE = "aside"
"""Of a field of an answer, ``Annotated[X, ASIDE]``: evidence that is no part of its JSON."""


@cache
def fields_of(kind: type) -> dict[str, Any]:
    """Return the fields that a dataclass has in JSON, and their types."""
    types = get_type_hints(kind, include_extras=True)
    known = {field.name: types[field.name] for field in dataclasses.fields(kind)}
    return {name: one for name, one in known.items() if columns_in(one) != ASIDE}


def key_of(name: str) -> str:
    """Return the key of a field in JSON: a field that would hide a method ends with a line."""
    return name.rstrip("_")


def columns_in(kind: Any) -> Any:
    """Return the columns by which a type is written, or what else it is annotated with."""
    return get_args(kind)[1] if get_origin(kind) is Annotated else None


def record(columns: Iterable[Column], row: Any) -> dict[str, Any]:
    """Return a row as JSON data."""
    cells = [(column, column.value(row)) for column in columns if "json" in column.show]
    return {
        column.name: as_json(value, column.type)
        for column, value in cells
        # what does not apply is null, unless the key itself may be left out
        if value is not ABSENT or get_origin(column.type) is not NotRequired
    }


def as_json(value: Any, kind: Any = Any) -> Any:
    """Return a value as JSON data: dataclasses by their fields, what has columns by these.

    Parameters
    ----------
    value : object
    kind : type
        What it is declared as; ``Annotated[X, columns]`` for rows, or an object, with columns, and
        ``Annotated[X, Y]`` for what is Y in JSON.
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
    found = plain(value)
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        return {
            name: as_json(getattr(found, name), one) for name, one in fields_of(type(found)).items()
        }
    if isinstance(found, np.ndarray):
        return found.tolist()
    if isinstance(found, pd.DataFrame):
        return found.to_dict("list" if origin is dict else "records")
    if isinstance(found, Mapping):
        return {str(key): as_json(item, inside[-1] if inside else Any)
                for key, item in found.items()}  # fmt: skip
    if isinstance(found, (list, tuple)):
        return [as_json(item, inside[0] if inside else Any) for item in found]
    return found


# Objects that several answers hold ----------------------------------------------------------------


PAIR = (
    Column("epsilon", of=lambda pair: pair[0]),
    Column("delta", of=lambda pair: pair[1]),
)
"""A budget that is a pair of numbers."""

SOURCED = (
    Column("epsilon"),
    Column("delta"),
    Column("kind", of=lambda spent: spent.cost.kind, type=Literal["measurement", "upper bound"],
           help="Of epsilon: some neighbours cost as much, or no pair costs more."),
    Column("source", type=str, help="How it was computed, in words."),
)  # fmt: skip
"""What is spent (`dpviz.accounting.accounting.Spent`), and by which account."""

SKIPPED = (Column("mechanism", type=str), Column("reason", type=str))
"""A mechanism that was left out."""
