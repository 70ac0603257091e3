"""The question `rerun`: whether an answer that was kept comes out the same today."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from dpviz.core.errors import InvalidSetting
from dpviz.core.files import json_text, strict_json
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, inherit, text
from dpviz.core.settings import Settings
from dpviz.datasets import builtin_tables, is_remote
from dpviz.preparation.load import PREFIX
from dpviz.studies import Answer, Made, load
from dpviz.studies.columns import ASIDE, NUMBERS, Column
from dpviz.studies.options import asks, function_named, question_of

_FIRST = 10
"""Differences that the summary names."""
_FILE = "The same of what was read from a file, or was in memory."


@dataclass(frozen=True)
class RerunOptions(Declared):
    """What is asked again."""

    path: str = text(
        "", label="File", help="A file that --save, or the save of an answer, wrote.", flag="FILE"
    )
    table: str | None = text(
        None,
        label="Table",
        help="The table, if the file names none that is available.",
        flag="--table",
        optional=True,
    )
    bounds: str | None = inherit(Settings, "bounds", default=None, optional=True, help=_FILE)
    allocation: str | None = inherit(
        Settings, "allocation", default=None, optional=True, help=_FILE
    )


class Difference(NamedTuple):
    """One number, text or length that is not what it was.

    Attributes
    ----------
    where : str
        Its place in the data, such as ``results[0].metrics.recovery.mean``.
    was, now : object
    """

    where: str
    was: Any
    now: Any


class Cause(NamedTuple):
    """What else is not what it was."""

    was: str
    now: str


@dataclass(frozen=True, eq=False, repr=False)
class Rerun(Answer):
    """An answer asked again, beside what it was.

    Attributes
    ----------
    same : bool
        Whether all of its data is what it was, to the last digit.
    causes : dict of str to Cause
        Versions, and the rows, where they are others.
    differences : tuple of Difference
    was, now : Made
        What made it then and now.
    answer : Answer
        The new one.
    """

    listed: ClassVar[str] = "differences"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("where", type=str, show=NUMBERS),
        Column("was", type=Any, show=NUMBERS),
        Column("now", type=Any, show=NUMBERS),
    )

    same: bool
    question: str
    command: str
    date: str
    causes: dict[str, Annotated[Cause, (Column("was", type=str), Column("now", type=str))]]
    differences: tuple[Difference, ...]
    was: Annotated[Made, ASIDE]
    now: Annotated[Made, ASIDE]
    answer: Annotated[Answer, ASIDE]

    @classmethod
    def of(cls, differences: tuple[Difference, ...], was: Made, now: Made, answer: Answer) -> Rerun:
        """Return the answer that differences are."""
        causes = _causes(was, now)
        said = was.question, was.command, was.date
        return cls(not differences, *said, causes, differences, was, now, answer)

    @property
    def status(self) -> int:
        """1 where anything differs."""
        return int(not self.same)

    def summary(self) -> str:
        """Return whether the numbers are the same, and what differs."""
        if self.same:
            lines = [f"Same numbers: {self.was.command} gives what it gave on {self.was.date}."]
        else:
            count = len(self.differences)
            noun = "value differs" if count == 1 else "values differ"
            lines = [f"{count} {noun} from what {self.was.command} gave on {self.was.date}."]
            # a text or a length that differs makes it infinite, and it is left unsaid
            far = max((_apart(item) for item in self.differences), default=0.0)
            if math.isfinite(far):
                lines[0] += f" Numbers differ by at most {numeral(far, 2)} of themselves."
            lines += [
                f"{item.where}: was {item.was}, is {item.now}."
                for item in self.differences[:_FIRST]
            ]
            if count > _FIRST:
                lines.append(f"And {count - _FIRST} more.")
        for name, (was, now) in self.causes.items():
            what = "The rows are others" if name == "rows" else f"{name} was {was}, is {now}"
            lines.append(f"{what}.")
        return "\n".join(lines)


def _causes(was: Made, now: Made) -> dict[str, Cause]:
    """Return what else is not what it was: versions, and the rows."""
    before = {**was.versions, "rows": was.rows or ""}
    after = {**now.versions, "rows": now.rows or ""}
    return {
        name: Cause(before.get(name, ""), after[name])
        for name in after
        if before.get(name) != after[name]
    }


@asks("ask again what made an answer that was kept, and say what differs", RerunOptions, once=True)
def rerun(
    path: str | PathLike[str],
    *,
    table: Any = None,
    bounds: Any = None,
    allocation: Any = None,
) -> Rerun:
    """Ask again what made an answer that was kept, and compare every number.

    Parameters
    ----------
    path : str or path
        A file that the ``save`` of an answer wrote.
    table : optional
        The table, as in `compare`, where the file names none that is at hand: no file says where
        another lies.
    bounds, allocation : optional
        The same of feature bounds and of an allocation.

    Returns
    -------
    Rerun
        ``same`` is true where all data is what it was, to the last digit; else ``differences`` and
        ``causes`` say what is not: numbers, versions, rows.

    Raises
    ------
    InvalidSetting
        If it is no such file, what made it is not known or may not be done again, or the table is
        to be said.

    See Also
    --------
    load : Read the answer without asking again.

    Notes
    -----
    The same seed gives the same bytes with the same versions and the same kernel of BLAS; another
    kernel moves numbers from about the eleventh digit on, those of eigenvector_sampling from the
    eighth and those of kapralov_talwar from the fourth.

    Examples
    --------
    >>> import dpviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = dpviz.predict("iris", mechanisms="gaussian").save(f"{folder}/found.json")
    ...     found = dpviz.rerun(file)
    >>> found.same
    True
    """
    kept = load(path)
    function = function_named(kept.question)
    # a release asked again would be a second release, paid for once more
    if kept.made is None or function is None or question_of(function).once:
        allowed = "an answer of a function of dpviz that may be asked again"
        raise InvalidSetting("path", allowed, kept.question or "one without a question")
    asked = dict(kept.made.options)
    given = {"table": table, "bounds": bounds, "allocation": allocation}
    asked |= {name: value for name, value in given.items() if value is not None}
    _check(asked)
    found = function(**asked)
    # through text, as what was kept went: NaN is null there, and tuples are lists
    now = strict_json(json_text(found.data()))
    return Rerun.of(tuple(_differences("", kept.data(), now)), kept.made, found.made, found)


def _check(asked: Mapping[str, Any]) -> None:
    """Raise `InvalidSetting` where what is needed again is not at hand."""
    table = asked.get("table", "")
    if "table" in asked and table is None:
        raise InvalidSetting("table", "given: it was a file or in memory", "nothing", "--table")
    # a plan is a text and needs no file; any other name has to be found here
    if isinstance(table, str) and "table" in asked and not table.startswith(PREFIX):
        known = table in builtin_tables() or is_remote(table) or Path(table).exists()
        if not known:
            allowed = f"given: {table!r} is not available under that name"
            raise InvalidSetting("table", allowed, "nothing", "--table")


def _differences(where: str, was: Any, now: Any) -> Iterator[Difference]:
    """Yield what differs in JSON data, from the top down."""
    if isinstance(was, dict) and isinstance(now, dict):
        # in the order of what was kept, so that the first differences named are its first
        for key in dict.fromkeys([*was, *now]):
            inner = f"{where}.{key}" if where else str(key)
            if key not in was or key not in now:
                yield Difference(inner, *(("there", "gone") if key in was else ("absent", "there")))
            else:
                yield from _differences(inner, was[key], now[key])
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for place, (one, two) in enumerate(zip(was, now, strict=True)):
            yield from _differences(f"{where}[{place}]", one, two)
    elif isinstance(was, list) and isinstance(now, list):
        yield Difference(f"length of {where}", len(was), len(now))
    # True equals 1 in Python
    elif was != now or isinstance(was, bool) != isinstance(now, bool):
        yield Difference(where, was, now)


def _apart(item: Difference) -> float:
    """Return by how much of itself a number differs; infinite where it is no number."""
    pair = (item.was, item.now)
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in pair):
        return math.inf
    try:
        was, now = float(item.was), float(item.now)
    except OverflowError:  # of a file that was changed
        return math.inf
    # they differ, so one of them is not 0
    return abs(now - was) / max(abs(was), abs(now))
