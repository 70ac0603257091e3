"""A table, a path or a plan, loaded and prepared by its settings.

A plan, ``plan:n=1e5,spectrum=FILE``, replaces a table by a spectrum and a number of people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import BOUNDS_ALLOWED, FeatureBounds, names_file
from dpviz.core.errors import InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import format_number, params_of, text_of
from dpviz.core.problem import Domain
from dpviz.core.settings import Settings
from dpviz.datasets import ReadOptions, builtin_tables, load, read_bounds, read_table
from dpviz.datasets.table import NAMELESS, Table
from dpviz.preparation.bounding import BoundedTable, prepare, prepare_batches
from dpviz.preparation.prepared import Measured

PREFIX = "plan:"
_FORM = (
    "plan:n=NUMBER,spectrum=FILE with one eigenvalue a line, or a spectrum such as "
    "power:d=50,exponent=1.5,total=0.5"
)
NEED_ROWS = ("label", "center", "scale", "row_bound", "count", "domain", "bounds")


def settings_of_plan(settings: Settings, n: int, spectrum: str) -> Settings:
    """Return settings whose table is a plan, with settings about rows reset to defaults.

    Parameters
    ----------
    settings : Settings
    n : int
    spectrum : str
        The spectrum as typed; see `dpviz.preparation.load.spectrum_of`.
    """
    params = params_of(Settings)
    plain: dict[str, Any] = {name: params[name].default for name in NEED_ROWS}
    return replace(settings, table=f"{PREFIX}n={n},spectrum={spectrum.strip()}", **plain)


def plan_of(text: str) -> PlannedTable:
    """Return the plan that ``plan:n=...,spectrum=...`` describes.

    The spectrum is the path of a CSV file with one eigenvalue of A a line, in squared row-norm
    bounds, or a text of `dpviz.preparation.load.spectrum_of`.
    """
    numbers, comma, spectrum = text.removeprefix(PREFIX).partition(",")
    name, equals, people = numbers.partition("=")
    key, second_equals, written = spectrum.partition("=")
    named = (name.strip(), key.strip()) == ("n", "spectrum")
    if not (comma and equals and second_equals and named and written.strip()):
        raise InvalidSetting("a plan", _FORM, text)
    n = whole_people(people)
    written = written.strip()
    path = Path(written)
    if path.is_file():
        return planned(spectrum_file(path), n)
    if path.suffix.lower() in (".csv", ".txt"):
        raise InvalidSetting("spectrum", "a file that exists", written)
    return planned(spectrum_of(written), n, "plan")


def plan_with(settings: Settings) -> PlannedTable:
    """Return the plan in settings that replaces a table, with the name that settings give it.

    Raises
    ------
    InvalidSetting
        If the plan has a wrong form, or settings concern rows.
    """
    params = params_of(Settings)
    for name in NEED_ROWS:
        value, param = getattr(settings, name), params[name]
        if value != param.default:
            allowed = "left out, because a plan has no rows"
            raise InvalidSetting(name, allowed, param.format(value), param.flag)
    plan = plan_of(settings.table)
    return replace(plan, name=settings.name or plan.name)


def whole_people(written: str) -> int:
    """Return a typed number of people, such as 100000 or 1e5."""
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not (2 <= value <= 1e15 and value == int(value)):
        raise InvalidSetting("n", "a whole number from 2 to 1e15", written)
    return int(value)


@dataclass(frozen=True, eq=False)
class PlannedTable(Measured):
    """A spectrum and a number of people instead of a table."""

    def with_n(self, n: int, seed: int, *, with_rows: bool = False) -> Measured:
        """Return the same spectrum with another number of people.

        Parameters
        ----------
        n : int
        seed : int
            Unused, because there are no rows to choose from.
        with_rows : bool
            Must be False.
        """
        if with_rows:
            raise RuntimeError("a plan without data has no rows")
        moment = SecondMoment(self.moment.A, n)
        return PlannedTable(**{**vars(self), "moment": moment})

    def rebound(self, row_bound: str) -> PlannedTable:
        """Raise InvalidSetting: there are no rows to bound."""
        raise InvalidSetting(
            "the varied quantity",
            "epsilon, delta, k or n, because a plan without data has no rows to bound",
            f"row-norm bound {row_bound}",
            "--over",
        )


def planned(eigenvalues: Sequence[float] | FloatArray, n: int, name: str = "plan") -> PlannedTable:
    """Return a problem without a table: a spectrum and a number of people.

    No private data is read. The rows lie in the unit ball, so all quantities are in squared
    row-norm bounds.

    Parameters
    ----------
    eigenvalues : sequence of float
        Eigenvalues of A = X'X/n, at least two, at least 0. The sum, which is the mean squared row
        norm, is above 0 and at most 1.
    n : int
        Number of people, at least 2.
    """
    values = np.sort(np.asarray(eigenvalues, dtype=float))[::-1]
    if not 2 <= len(values) <= MOST_PLANNED:
        raise InvalidSetting("spectrum", f"a list of 2 to {MOST_PLANNED} eigenvalues", len(values))
    if not (np.isfinite(values).all() and values[-1] >= 0):
        raise InvalidSetting("spectrum", "finite numbers of at least 0", "other numbers")
    total = float(values.sum())
    if not 0 < total <= 1 + 1e-9:
        raise InvalidSetting(
            "spectrum",
            "eigenvalues whose sum is above 0 and at most 1, in squared row-norm bounds",
            numeral(total, 6),
        )
    d = len(values)
    # A plan states no directions, so its spectrum lies along the coordinate axes.
    moment = SecondMoment(np.diag(values), n)
    return PlannedTable(
        name=name,
        columns=tuple(f"direction {j + 1}" for j in range(d)),
        domain=Domain.ball(d),
        row_bound=1.0,
        moment=moment,
        reference=moment,
        bounded_rows=0,
        notes=("This is a plan: dpviz read no table and no private data.",),
        assumed_public=("the spectrum and the number of people n, as typed",),
    )


# Functions that read spectra ----------------------------------------------------------------------


def spectrum_file(path: Path) -> FloatArray:
    """Return the eigenvalues in a file, one a line; a first line of words is skipped.

    Raises
    ------
    InvalidSetting
        If a line is not a number of at least 0, or there are too few or too many.
    """
    values: list[float] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                written = line.strip().rstrip(",")
                if not written:
                    continue
                value = _number(written)
                if value is None and number == 1:
                    continue
                if value is None or len(values) == MOST_PLANNED:
                    allowed = f"2 to {MOST_PLANNED} numbers from 0, one a line"
                    raise InvalidSetting("spectrum", allowed, f"a different value in line {number}")
                values.append(value)
    except (OSError, UnicodeDecodeError):
        raise InvalidSetting("spectrum", "a text file that can be read", path.name) from None
    return np.array(values)


def _number(written: str) -> float | None:
    """Return a finite number of at least 0, or None."""
    try:
        value = float(written)
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


# Plans: a spectrum without a table -----------------------------------------


MOST_PLANNED = 2_000
"""Maximum number of features of a plan, whose matrices are d by d."""


_SPECTRUM_FORMS = {
    "power": ("d", "exponent", "total"),
    "exponential": ("d", "rate", "total"),
    "rank": ("d", "rank", "signal", "noise"),
}
_SPECTRUM_ALLOWED = (
    "a list such as 0.4,0.2,0.1; power:d=50,exponent=1.5,total=0.5; "
    "exponential:d=50,rate=0.3,total=0.5; rank:d=50,rank=3,signal=0.1,noise=0.002; or builtin:NAME"
)


def spectrum_of(text: str) -> FloatArray:
    """Return the eigenvalues that a text describes, descending, in squared row-norm bounds.

    * ``0.4,0.2,0.1``: typed, with ``VALUExCOUNT`` for repeats;
    * ``power:d=50,exponent=1.5,total=0.5``: proportional to j^-exponent;
    * ``exponential:d=50,rate=0.3,total=0.5``: proportional to exp(-rate j);
    * ``rank:d=50,rank=3,signal=0.1,noise=0.002``: ``rank`` eigenvalues of signal + noise, the
      others of noise alone;
    * ``builtin:digits``: a built-in table's spectrum, prepared by default.

    Raises
    ------
    InvalidSetting
        If the text has another form or a number is out of range.
    InvalidTable
        If no built-in table has that name.
    """
    form, colon, rest = text.strip().partition(":")
    if not colon:
        return _typed(text)
    if form == "builtin":
        if rest not in builtin_tables():
            raise InvalidSetting("spectrum", f"builtin: and {', '.join(builtin_tables())}", rest)
        eigenvalues: FloatArray = prepare(load(rest), Settings(table=rest)).moment.eigenvalues
        return eigenvalues
    if form not in _SPECTRUM_FORMS:
        raise InvalidSetting("spectrum", _SPECTRUM_ALLOWED, text)
    given = _numbers(form, rest, text)
    d = _whole("d", given["d"], 2, 100_000)
    j = np.arange(d)
    if form == "rank":
        rank = _whole("rank", given["rank"], 1, d)
        if not (given["signal"] > 0 and given["noise"] >= 0):
            raise InvalidSetting("spectrum", "given with signal above 0 and noise at least 0", text)
        spectrum: FloatArray = np.where(j < rank, given["signal"], 0.0) + given["noise"]
        return spectrum
    if not 0 < given["total"] <= 1:
        raise InvalidSetting("total", "above 0 and at most 1", format_number(given["total"]))
    decay = given["exponent" if form == "power" else "rate"]
    if not 0 <= decay <= 100:
        raise InvalidSetting("decay", "a number from 0 to 100", format_number(decay))
    shape = (j + 1.0) ** -decay if form == "power" else np.exp(-decay * j)
    spectrum = shape * (given["total"] / shape.sum())
    return spectrum


def _typed(text: str) -> FloatArray:
    values: list[float] = []
    for item in text.split(","):
        value, times, count = item.strip().partition("x")
        try:
            number, repeats = float(value), int(count) if times else 1
        except ValueError:
            raise InvalidSetting("spectrum", _SPECTRUM_ALLOWED, text) from None
        if not (0 <= number < math.inf and 1 <= repeats <= 100_000):
            raise InvalidSetting("spectrum", "numbers from 0 up, with counts from 1", item.strip())
        values += [number] * repeats
    listed: FloatArray = np.sort(np.array(values))[::-1]
    return listed


def _numbers(form: str, rest: str, text: str) -> dict[str, float]:
    given: dict[str, float] = {}
    for item in rest.split(","):
        name, equals, value = item.partition("=")
        try:
            given[name.strip()] = float(value) if equals else math.nan
        except ValueError:
            raise InvalidSetting("spectrum", _SPECTRUM_ALLOWED, text) from None
    finite = all(math.isfinite(value) for value in given.values())
    if set(given) != set(_SPECTRUM_FORMS[form]) or not finite:
        raise InvalidSetting("spectrum", _SPECTRUM_ALLOWED, text)
    return given


def _whole(name: str, value: float, low: int, high: int) -> int:
    if not (low <= value <= high and value == int(value)):
        raise InvalidSetting(name, f"a whole number from {low} to {high}", format_number(value))
    return int(value)


def without_paths(settings: Settings, file: str = NAMELESS) -> Settings:
    """Return settings without file paths, for results that may be shared.

    Parameters
    ----------
    settings : Settings
    file : str
        Text that replaces a table's or plan's file.

    Returns
    -------
    Settings
        Settings; the same object if they name no file.
    """
    changed: dict[str, Any] = {}
    # The name of a plan may contain the path of a file with its spectrum.
    if settings.table.startswith(PREFIX):
        head, equals, spectrum = settings.table.partition("spectrum=")
        if Path(spectrum).is_file():
            changed["table"] = f"{head}{equals}{file}"
    elif settings.table not in builtin_tables() and Path(settings.table).is_file():
        changed["table"] = file
    if names_file(settings.bounds) and Path(text_of(settings.bounds)).is_file():
        changed["bounds"] = "bounds.csv"
    return replace(settings, **changed) if changed else settings


def prepared_of(table: Any, settings: Settings) -> BoundedTable | PlannedTable:
    """Return the table prepared by settings.

    Parameters
    ----------
    table : str, Path, DataFrame, ndarray, Table, BoundedTable or PlannedTable
        Any input of `dpviz.datasets.read_table`, or the text of a plan. Prepared rows and plans are
        returned unchanged.
    settings : Settings

    Raises
    ------
    DpvizError
        If the table cannot be read or used with these settings, or a plan comes with settings that
        concern rows.
    """
    if isinstance(table, (BoundedTable, PlannedTable)):
        return table
    if isinstance(table, str) and table.startswith(PREFIX):
        return plan_with(settings)
    # Bounds are read first, so that a missing file is reported before a large table is read.
    settings = with_bounds_read(settings)
    table = read_table(table, ReadOptions.of(settings))
    return (prepare if isinstance(table, Table) else prepare_batches)(table, settings)


def load_measured(settings: Settings) -> BoundedTable | PlannedTable:
    """Return the prepared table, or the plan, that settings name."""
    return prepared_of(settings.table, settings)


def load_prepared(settings: Settings) -> BoundedTable:
    """Return the prepared table that settings name; plans are not allowed."""
    table = prepared_of(settings.table, settings)
    assert isinstance(table, BoundedTable)
    return table


def with_bounds_read(settings: Settings) -> Settings:
    """Return settings with the public bounds read from their file, if any."""
    named = settings.bounds
    if isinstance(named, FeatureBounds) or not names_file(named):
        return settings
    if not Path(named).is_file():
        raise InvalidSetting("feature bounds", BOUNDS_ALLOWED, named, "--bounds")
    return replace(settings, bounds=FeatureBounds.named(read_bounds(named), named))
