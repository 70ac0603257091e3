"""What a caller declares of the rows, checked, and what the preparation takes for public."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import lengths_of
from dpviz.core.errors import InvalidSetting
from dpviz.preparation.account import Chain
from dpviz.preparation.bounding import PADDED, PEOPLE
from dpviz.preparation.chain import Public, noise_edge
from dpviz.preparation.steps import BOUND, COUNT, MEAN, RANGE, SCALE, STEPS, Wanted
from dpviz.releasing.rows import Reduced, Rows

FROM_DATA = "from data (not private)"
PRIVATE, ADAPTIVE, AUTO, NONE, MIDPOINT = "private", "adaptive", "auto", "none", "midpoint"
PUBLIC = "public"
CENTERS = (NONE, MIDPOINT, PRIVATE, FROM_DATA)
SCALES = (NONE, PRIVATE, FROM_DATA)
BOUND_ALLOWED = (
    f"a number above 0 that was known before anybody looked at the data, {PRIVATE!r}, "
    f"{ADAPTIVE!r}, {FROM_DATA!r}, or None for mechanisms that need none"
)


class PrivacyWarning(UserWarning):
    """Something that the guarantee of a release does not cover.

    Examples
    --------
    >>> import warnings, dpviz
    >>> warnings.simplefilter("ignore", dpviz.PrivacyWarning)  # for who has read them
    """


@dataclass(frozen=True, eq=False)
class Declared:
    """How rows are to be prepared; made of an estimator's parameters, without its data.

    Attributes
    ----------
    center, scale : str
        In force, with defaults resolved.
    row_bound : float, str or None
    bounds : pair of array-like or None
    count : str
    """

    center: str
    scale: str
    row_bound: float | str | None
    bounds: tuple[ArrayLike, ArrayLike] | str | None
    count: str = PUBLIC

    @classmethod
    def checked(
        cls,
        center: str | None,
        scale: str,
        row_bound: float | str | None,
        bounds: tuple[ArrayLike, ArrayLike] | str | None,
        count: str = PUBLIC,
    ) -> Declared:
        """Return what is declared, or raise `InvalidSetting`."""
        if center is None:
            center = NONE if bounds is None or isinstance(bounds, str) else MIDPOINT
        if center not in CENTERS:
            raise InvalidSetting("center", f"one of {', '.join(CENTERS)}", center)
        if count not in (PUBLIC, PRIVATE):
            raise InvalidSetting("count", f"{PUBLIC} or {PRIVATE}", count)
        if scale not in SCALES:
            raise InvalidSetting("scale", f"one of {', '.join(SCALES)}", scale)
        if isinstance(row_bound, str):
            if row_bound not in (PRIVATE, ADAPTIVE, FROM_DATA):
                raise InvalidSetting("row_bound", BOUND_ALLOWED, row_bound)
        elif row_bound is not None and not 0 < row_bound < np.inf:
            raise InvalidSetting("row_bound", BOUND_ALLOWED, row_bound)
        if isinstance(bounds, str) and bounds != PRIVATE:
            raise InvalidSetting(
                "bounds", f"a pair of numbers or of arrays, or {PRIVATE!r}", bounds
            )
        if bounds is None:
            for name, value in (("center", center), ("scale", scale), ("row_bound", row_bound)):
                if value in (MIDPOINT, PRIVATE, ADAPTIVE):
                    raise InvalidSetting("bounds", f"given where {name} is {value!r}", None)
        return cls(center, scale, row_bound, bounds, count)

    def wanted(self, shares: Mapping[str, float] | None) -> Wanted:
        """Return the steps that are paid for, and the share of each."""
        steps = [
            step
            for step, value in (
                (COUNT, self.count),
                (MEAN, self.center),
                (SCALE, self.scale),
                (BOUND, self.row_bound),
            )
            if value in (PRIVATE, ADAPTIVE)
        ]
        if isinstance(self.bounds, str):
            steps.append(RANGE)
        steps.sort(key=STEPS.index)
        how = ADAPTIVE if self.row_bound == ADAPTIVE else "quantile"
        return Wanted(tuple(steps), tuple(sorted((shares or {}).items())), how)

    def limits(self, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of each feature, shape (d,) each; infinite where there are none."""
        if self.bounds is None or isinstance(self.bounds, str):
            return np.full(d, -np.inf), np.full(d, np.inf)
        try:
            low, high = self.bounds
            limits = [
                np.broadcast_to(np.asarray(side, dtype=np.float64), (d,)) for side in (low, high)
            ]
        except (TypeError, ValueError):
            raise InvalidSetting(
                "bounds", f"a pair of numbers or of arrays of {d} numbers", self.bounds
            ) from None
        if not (np.isfinite(limits).all() and (limits[0] < limits[1]).all()):
            raise InvalidSetting("bounds", "finite numbers with low below high", "others")
        return limits[0], limits[1]

    def public(
        self, rows: Rows | None, d: int, whole: Chain | None
    ) -> tuple[Public, tuple[str, ...]]:
        """Return what the preparation takes for public, and the list of it.

        Parameters
        ----------
        rows : Rows or None
            None where they are not at hand; nothing may then be taken from them.
        d : int
        whole : Chain or None
            None where it is not known yet; nothing may then be paid for.
        """
        low, high = self.limits(d)
        private_count = whole is not None and COUNT in whole.preparation.noises
        assumed = [PADDED if private_count else PEOPLE]
        if self.bounds is not None and not isinstance(self.bounds, str):
            assumed.append("the feature bounds, as given")
        middle, spread, radius = np.zeros(d), np.ones(d), np.inf
        if self.center == MIDPOINT and not isinstance(self.bounds, str):
            middle = (low + high) / 2
        elif self.center == FROM_DATA:
            assert rows is not None
            middle = _mean(rows, lambda block: np.clip(block, low, high))
            assumed.append("the feature means")
            _warn("center")
        if self.scale == FROM_DATA:
            assert rows is not None
            mean = _mean(rows, lambda block: np.clip(block, low, high))
            spread = np.sqrt(_mean(rows, lambda block: (np.clip(block, low, high) - mean) ** 2))
            spread[spread == 0] = 1.0
            assumed.append("the feature scales (standard deviations)")
            _warn("scale")
        if self.row_bound == FROM_DATA:
            assert rows is not None
            unscaled = Public(low, high, middle, spread, np.inf, centered=False, edge=0.0)
            radius = _longest(rows, lambda block: unscaled.bounded(block, middle, spread, np.inf))
            assumed.append("the row bound R (largest row norm)")
            _warn("row_bound")
        elif isinstance(self.row_bound, str):
            radius = 1.0  # another is bought
        elif self.row_bound is not None:
            radius = float(self.row_bound)
            assumed.append("the row bound R, as given")
        edge = 0.0 if whole is None else _edge(whole, d)
        centered = self.center == FROM_DATA
        return Public(low, high, middle, spread, radius, centered, edge), tuple(assumed)

    @property
    def asks_rows(self) -> str:
        """Name of what would be found from the rows before they are summed; empty if nothing is."""
        for name, value in (
            ("center", self.center), ("scale", self.scale), ("row_bound", self.row_bound),
            ("bounds", self.bounds),
        ):  # fmt: skip
            if isinstance(value, str) and value in (PRIVATE, ADAPTIVE, FROM_DATA):
                return name
        return ""


def _edge(whole: Chain, d: int) -> float:
    """Return the expected largest eigenvalue of the noise on X'X, in squared row bounds."""
    edges = whole.mechanism.spectrum_edges(whole.mechanism.calibrate(whole.problem, whole.rest))
    if edges is not None:
        return max(abs(edges[0]), abs(edges[1])) * whole.problem.n
    mu = mu_of(whole.rest) if whole.rest.delta > 0 else whole.rest.epsilon
    return noise_edge(d, whole.problem.relation, mu)


def _mean(rows: Rows, of: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return the mean over all rows of a function of each."""
    origin = of(rows.source.fold(lambda: Reduced(lambda block: block[:1], _first)).value)[0]
    total = rows.source.fold(lambda: Reduced(lambda block: (of(block) - origin).sum(0), np.add))
    mean: FloatArray = origin + total.value / rows.n
    return mean


def _longest(rows: Rows, of: Callable[[FloatArray], FloatArray]) -> float:
    """Return the largest length of a row after a change of each; 1 where all are zero."""
    found = rows.source.fold(lambda: Reduced(lambda block: lengths_of(of(block)).max(), np.maximum))
    return float(found.value) or 1.0


def _first(first: FloatArray, second: FloatArray) -> FloatArray:
    return first


def _warn(name: str) -> None:
    warnings.warn(
        f"{name} is taken from the data and is not private: the guarantee is for people who "
        "could not change it.",
        PrivacyWarning,
        stacklevel=4,
    )
