"""The question `rerun`: whether a repeated answer equals the saved answer."""

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
"""Maximum number of differences that the summary names."""
_FILE = "Digest of the table, if the table came from a file or from memory."


@dataclass(frozen=True)
class RerunOptions(Declared):
    """The saved answer, and its inputs."""

    path: str = text(
        "",
        label="File",
        help="A file written by --save or by an answer's method save.",
        flag="FILE",
    )
    table: str | None = text(
        None,
        label="Table",
        help="The table, if the table that the file names is not available.",
        flag="--table",
        optional=True,
    )
    bounds: str | None = inherit(Settings, "bounds", default=None, optional=True, help=_FILE)
    allocation: str | None = inherit(
        Settings, "allocation", default=None, optional=True, help=_FILE
    )


class Difference(NamedTuple):
    """One number, text or length that differs.

    Attributes
    ----------
    where : str
        Place in the data, such as ``results[0].metrics.recovery.mean``.
    was, now : object
    """

    where: str
    was: Any
    now: Any


class Cause(NamedTuple):
    """A version, or the rows, if the saved answer has another."""

    was: str
    now: str


@dataclass(frozen=True, eq=False, repr=False)
class Rerun(Answer):
    """A repeated answer, compared with the saved answer.

    Attributes
    ----------
    same : bool
        Whether all data of both answers are the same, to the last digit.
    causes : dict of str to Cause
        Versions and rows that differ.
    differences : tuple of Difference
    was, now : Made
        Records of both calls.
    answer : Answer
        The answer of the new call.
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
        """Return the answer with the differences found."""
        causes = _causes(was, now)
        call = was.question, was.command, was.date
        return cls(not differences, *call, causes, differences, was, now, answer)

    @property
    def status(self) -> int:
        """Exit status: 1 if anything differs."""
        return int(not self.same)

    def summary(self) -> str:
        """Return whether the numbers are the same, and which values differ."""
        if self.same:
            lines = [f"Same numbers: {self.was.command} still gives the answer of {self.was.date}."]
        else:
            count = len(self.differences)
            noun = "value differs" if count == 1 else "values differ"
            lines = [f"{count} {noun} from the answer of {self.was.command} on {self.was.date}."]
            # The difference is infinite if a text or a length differs. Then do not print it.
            far = max((_apart(item) for item in self.differences), default=0.0)
            if math.isfinite(far):
                lines[0] += f" The largest relative difference of a number is {numeral(far, 2)}."
            lines += [
                f"{item.where}: {item.was} before, {item.now} now."
                for item in self.differences[:_FIRST]
            ]
            if count > _FIRST:
                lines.append(f"And {count - _FIRST} more.")
        for name, (was, now) in self.causes.items():
            what = "The rows differ" if name == "rows" else f"{name} was {was}, is {now}"
            lines.append(f"{what}.")
        return "\n".join(lines)


def _causes(was: Made, now: Made) -> dict[str, Cause]:
    """Return the versions that differ, and the rows if they differ."""
    before = {**was.versions, "rows": was.rows or ""}
    after = {**now.versions, "rows": now.rows or ""}
    return {
        name: Cause(before.get(name, ""), after[name])
        for name in after
        if before.get(name) != after[name]
    }


@asks("repeat the question of a saved answer, and report differences", RerunOptions, once=True)
def rerun(
    path: str | PathLike[str],
    *,
    table: Any = None,
    bounds: Any = None,
    allocation: Any = None,
) -> Rerun:
    """Repeat the question of a saved answer, and compare all numbers.

    Parameters
    ----------
    path : str or path
        A file that an answer's ``save`` wrote.
    table : optional
        The table, as in `compare`, if the file names no available table; a file never stores the
        path of another file.
    bounds, allocation : optional
        Feature bounds or an allocation that came from a file or from memory.

    Returns
    -------
    Rerun
        ``same`` is true if all data are the same, to the last digit. Otherwise ``differences`` and
        ``causes`` list the numbers, versions or rows that differ.

    Raises
    ------
    InvalidSetting
        If ``save`` did not write the file, its question is unknown or must not be repeated, or the
        table must be stated.

    See Also
    --------
    load : Read the answer without asking again.

    Notes
    -----
    The same seed gives the same bytes with the same versions and the same kernel of BLAS. Another
    kernel changes numbers from about the eleventh digit on. The changes begin at the eighth digit
    for eigenvector_sampling, and at the fourth for kapralov_talwar.

    Examples
    --------
    >>> import dpviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = dpviz.predict("iris", mechanisms="gaussian").save(f"{folder}/found.json")
    ...     found = dpviz.rerun(file)
    >>> found.same
    True
    """
    saved = load(path)
    function = function_named(saved.question)
    # Repeating a release would make a second release, which would use budget again.
    if saved.made is None or function is None or question_of(function).once:
        rule = "an answer of a dpviz function that can be repeated"
        raise InvalidSetting("path", rule, saved.question or "an answer without its question")
    options = dict(saved.made.options)
    replacements = {"table": table, "bounds": bounds, "allocation": allocation}
    options |= {name: value for name, value in replacements.items() if value is not None}
    _check(options)
    answer = function(**options)
    # Convert through JSON text, as in the saved answer: NaN becomes null, tuples become lists.
    now = strict_json(json_text(answer.data()))
    return Rerun.of(tuple(_differences("", saved.data(), now)), saved.made, answer.made, answer)


def _check(options: Mapping[str, Any]) -> None:
    """Raise `InvalidSetting` if the table is not available."""
    table = options.get("table", "")
    if "table" in options and table is None:
        raise InvalidSetting("table", "passed again: answers do not store it", "nothing", "--table")
    # The name of a plan is enough to make it, but any other table must be available here.
    if isinstance(table, str) and "table" in options and not table.startswith(PREFIX):
        available = table in builtin_tables() or is_remote(table) or Path(table).exists()
        if not available:
            rule = f"passed again, because no table {table!r} is available"
            raise InvalidSetting("table", rule, "nothing", "--table")


def _differences(where: str, was: Any, now: Any) -> Iterator[Difference]:
    """Yield the differences between two JSON data structures, from the top down."""
    if isinstance(was, dict) and isinstance(now, dict):
        # Compare in the order of the saved answer, so that its first differences are named first.
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
    # True equals 1 in Python, so compare the types as well.
    elif was != now or isinstance(was, bool) != isinstance(now, bool):
        yield Difference(where, was, now)


def _apart(item: Difference) -> float:
    """Return the relative difference of a number; infinite if it is not a number."""
    pair = (item.was, item.now)
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in pair):
        return math.inf
    try:
        was, now = float(item.was), float(item.now)
    except OverflowError:  # An edited file may contain huge numbers.
        return math.inf
    # The two values differ, so at least one of them is not 0.
    return abs(now - was) / max(abs(was), abs(now))
