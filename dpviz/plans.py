"""Plans on the command line: ``plan:n=1e5,spectrum=FILE`` in the place of a table."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpviz.errors import InvalidSetting
from dpviz.moments import FloatArray
from dpviz.params import params_of
from dpviz.prepare import BoundedRows, load_prepared
from dpviz.settings import Settings
from dpviz.targets import MOST_PLANNED, Planned, planned, spectrum_of

PREFIX = "plan:"
_FORM = (
    "plan:n=NUMBER,spectrum=FILE with one eigenvalue a line, or a spectrum such as "
    "power:d=50,exponent=1.5,total=0.5"
)
_NEED_ROWS = ("label", "center", "scale", "row_bound", "domain", "bounds")


def load_measured(settings: Settings) -> BoundedRows | Planned:
    """Return the prepared table, or the plan, that settings name.

    Raises
    ------
    InvalidSetting
        If a plan is not written as it should be, or comes with settings that
        are about rows.
    """
    if not settings.table.startswith(PREFIX):
        return load_prepared(settings)
    params = params_of(Settings)
    for name in _NEED_ROWS:
        value, param = getattr(settings, name), params[name]
        if value != param.default:
            allowed = "left out of a plan, which has no rows"
            raise InvalidSetting(name, allowed, param.format(value), param.flag)
    return plan_of(settings.table)


def settings_of_plan(settings: Settings, n: int, spectrum: str) -> Settings:
    """Return settings whose table is a plan; what is about rows goes back to its default.

    Parameters
    ----------
    settings : Settings
    n : int
    spectrum : str
        As it was typed; see `dpviz.targets.spectrum_of`.
    """
    params = params_of(Settings)
    plain: dict[str, Any] = {name: params[name].default for name in _NEED_ROWS}
    return replace(settings, table=f"{PREFIX}n={n},spectrum={spectrum.strip()}", **plain)


def plan_of(text: str) -> Planned:
    """Return the plan that ``plan:n=...,spectrum=...`` describes.

    The spectrum is the path of a CSV file with one eigenvalue of A a line, in
    squared row bounds, or a text of `dpviz.targets.spectrum_of`.
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
        return planned(spectrum_file(path), n, f"plan {path.name}")
    if path.suffix.lower() in (".csv", ".txt"):
        raise InvalidSetting("spectrum", "a file that is there", written)
    return planned(spectrum_of(written), n, "plan")


def whole_people(written: str) -> int:
    """Return a number of people that was typed, such as 100000 or 1e5."""
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not (2 <= value <= 1e15 and value == int(value)):
        raise InvalidSetting("n", "a whole number from 2 to 1e15", written)
    return int(value)


def spectrum_file(path: Path) -> FloatArray:
    """Return the eigenvalues in a file, one a line; a first line of words is a heading.

    Raises
    ------
    InvalidSetting
        If a line is not a number from 0, or there are too few or too many.
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
                    raise InvalidSetting("spectrum", allowed, f"another thing in line {number}")
                values.append(value)
    except (OSError, UnicodeDecodeError):
        raise InvalidSetting("spectrum", "a text file that can be read", path.name) from None
    return np.array(values)


def _number(written: str) -> float | None:
    """Return a finite number from 0, or None."""
    try:
        value = float(written)
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None
