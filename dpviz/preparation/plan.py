"""Plans on the command line: ``plan:n=1e5,spectrum=FILE`` in the place of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.core.problem import Domain
from dpviz.core.settings import Settings
from dpviz.preparation.prepared import Measured
from dpviz.preparation.spectrum import MOST_PLANNED, spectrum_file, spectrum_of

PREFIX = "plan:"
_FORM = (
    "plan:n=NUMBER,spectrum=FILE with one eigenvalue a line, or a spectrum such as "
    "power:d=50,exponent=1.5,total=0.5"
)
NEED_ROWS = ("label", "center", "scale", "row_bound", "count", "domain", "bounds")


def settings_of_plan(settings: Settings, n: int, spectrum: str) -> Settings:
    """Return settings whose table is a plan; what is about rows goes back to its default.

    Parameters
    ----------
    settings : Settings
    n : int
    spectrum : str
        As it was typed; see `dpviz.preparation.spectrum.spectrum_of`.
    """
    params = params_of(Settings)
    plain: dict[str, Any] = {name: params[name].default for name in NEED_ROWS}
    return replace(settings, table=f"{PREFIX}n={n},spectrum={spectrum.strip()}", **plain)


def plan_of(text: str) -> Planned:
    """Return the plan that ``plan:n=...,spectrum=...`` describes.

    The spectrum is the path of a CSV file with one eigenvalue of A a line, in
    squared row bounds, or a text of `dpviz.preparation.spectrum.spectrum_of`.
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


@dataclass(frozen=True, eq=False)
class Planned(Measured):
    """A spectrum and a number of people in the place of a table."""

    def with_n(self, n: int, seed: int, *, with_rows: bool = False) -> Measured:
        """Return the same spectrum with another number of people.

        Parameters
        ----------
        n : int
        seed : int
            Unused: there are no rows to choose from.
        with_rows : bool
            Must be False.
        """
        if with_rows:
            raise RuntimeError("a plan has no rows")
        moment = SecondMoment(self.moment.A, n)
        return Planned(**{**vars(self), "moment": moment})

    def again(self, row_bound: str) -> Planned:
        """Raise InvalidSetting: there are no rows to bound."""
        raise InvalidSetting(
            "what is varied",
            "epsilon, delta, k or n for a plan, which has no rows to bound",
            f"row bound {row_bound}",
            "--over",
        )


def planned(eigenvalues: Sequence[float] | FloatArray, n: int, name: str = "plan") -> Planned:
    """Return a problem without a table: a spectrum and a number of people.

    Nothing private is touched. The rows lie in the unit ball, so that all
    quantities are in squared row bounds.

    Parameters
    ----------
    eigenvalues : sequence of float
        Of A = X'X/n, at least two, at least 0; their sum, the mean squared row
        norm, is above 0 and at most 1.
    n : int
        People, at least 2.
    """
    values = np.sort(np.asarray(eigenvalues, dtype=float))[::-1]
    if not 2 <= len(values) <= MOST_PLANNED:
        raise InvalidSetting("spectrum", f"of 2 to {MOST_PLANNED} eigenvalues", len(values))
    if not (np.isfinite(values).all() and values[-1] >= 0):
        raise InvalidSetting("spectrum", "finite numbers from 0", f"{len(values)} values")
    total = float(values.sum())
    if not 0 < total <= 1 + 1e-9:
        raise InvalidSetting(
            "spectrum",
            "of sum above 0 and at most 1, the squared row bound",
            numeral(total, 6),
        )
    d = len(values)
    moment = SecondMoment(np.diag(values), n)
    return Planned(
        name=name,
        columns=tuple(f"direction {j + 1}" for j in range(d)),
        domain=Domain.ball(d),
        row_bound=1.0,
        moment=moment,
        reference=moment,
        bounded_rows=0,
        notes=("A plan: no table was read and nothing private was touched.",),
        assumed_public=("the spectrum and the number of people n, as typed",),
    )
