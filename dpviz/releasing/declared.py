"""What a caller declares of the rows, checked, and what the preparation takes for public."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import lengths_of
from dpviz.core.entries import (
    FROM_DATA,
    MIDPOINT,
    PRIVATE,
    PUBLIC,
    UNDECLARED,
    Entries,
    Entry,
    FeatureBounds,
    bounds_of,
    center_of,
    pair_of,
    row_bound_of,
    scale_of,
)
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.datasets import read_bounds
from dpviz.datasets.raw import unit_words
from dpviz.preparation.account import PreparedMechanism
from dpviz.preparation.bounding import PADDED, PEOPLE
from dpviz.preparation.draws import noise_edge
from dpviz.preparation.steps import (
    BOUND,
    COUNT,
    DEFAULT_SHARES,
    MEAN,
    RANGE,
    SCALE,
    check_shares,
)
from dpviz.preparation.transform import Transform
from dpviz.releasing.rows import Reduced, Rows

AUTO, NONE = "auto", UNDECLARED
CENTERS = (NONE, MIDPOINT, PRIVATE, FROM_DATA)
SCALES = (NONE, PRIVATE, FROM_DATA)
BOUND_ALLOWED = (
    "a number from 1e-100 to 1e100 that was known before anybody looked at the data, "
    f"{PRIVATE!r}, 'adaptive', {FROM_DATA!r}, or None for mechanisms that need none"
)
_BOUNDS_WORDS = f"LOW:HIGH, the path of a CSV or Parquet file, {PRIVATE!r} or {FROM_DATA!r}"


class PrivacyWarning(UserWarning):
    """Something that the guarantee of a release does not cover.

    Examples
    --------
    >>> import warnings, dpviz
    >>> warnings.simplefilter("ignore", dpviz.PrivacyWarning)  # for who has read them
    """


def checked(
    center: str | None,
    scale: str,
    row_bound: float | str | None,
    bounds: Any,
    count: str = PUBLIC,
    shares: Mapping[str, float] | None = None,
) -> Entries:
    """Return what an estimator's parameters declare of the rows, without its data.

    Raises
    ------
    InvalidSetting
        If one is wrong, or asks for bounds that are not stated.
    """
    stated = None if bounds is None else _stated(bounds)
    if center is None:
        center = NONE if stated is None or stated in (PRIVATE, "max") else MIDPOINT
    # here a budget is spent: the short words of a comparison (mean, max) take nothing from data
    if center not in CENTERS:
        raise InvalidSetting("center", f"one of {', '.join(CENTERS)}", center)
    if count not in (PUBLIC, PRIVATE):
        raise InvalidSetting("count", f"{PUBLIC} or {PRIVATE}", count)
    if scale not in SCALES:
        raise InvalidSetting("scale", f"one of {', '.join(SCALES)}", scale)
    try:
        radius = UNDECLARED if row_bound is None else row_bound_of(row_bound)
    except InvalidSetting:
        raise InvalidSetting("row_bound", BOUND_ALLOWED, row_bound) from None
    if row_bound != FROM_DATA and radius.startswith(("max", "quantile")):
        raise InvalidSetting("row_bound", BOUND_ALLOWED, row_bound)
    # what is bought has to know how far one row reaches, and the bounds say it
    if stated is None:
        for name, value in (("center", center), ("scale", scale), ("row_bound", row_bound)):
            if value == MIDPOINT or str(value).startswith((PRIVATE, "adaptive")):
                raise InvalidSetting("bounds", f"given where {name} is {value!r}", None)
    check_shares(shares or {})
    share = {**DEFAULT_SHARES, **(shares or {})}
    return Entries(
        Entry.of_bounds(stated, share[RANGE]),
        Entry.written(center_of(center), share[MEAN]),
        Entry.written(scale_of(scale), share[SCALE]),
        Entry.written(radius, share[BOUND]),
        Entry.written(count, share[COUNT]),
    )


def public_part(
    stated: Entries,
    rows: Rows | None,
    d: int,
    whole: PreparedMechanism | None,
    names: Sequence[str] = (),
) -> tuple[Transform, tuple[str, ...]]:
    """Return what the preparation takes for public, and the list of it.

    Parameters
    ----------
    stated : Entries
    rows : Rows or None
        None where they are not at hand; nothing may then be taken from them.
    d : int
    whole : PreparedMechanism or None
        None where it is not known yet; nothing may then be paid for.
    names : sequence of str
        Of the features, where they have any.
    """
    low, high = stated.limits(names or [f"column {j + 1}" for j in range(d)])
    private_count = whole is not None and COUNT in whole.preparation.noises
    # rows come without a word on whose they are
    assumed = [PADDED if private_count else PEOPLE, unit_words(None)]
    if stated.bounds.source == FROM_DATA:
        assert rows is not None
        low, high = _range(rows)
        assumed.append("the feature bounds (smallest and largest value of each feature)")
        _warn("bounds")
    elif stated.bounds != Entry() and stated.bounds.source == PUBLIC:
        assumed.append("the feature bounds, as given")
    middle, spread, radius = np.zeros(d), np.ones(d), np.inf
    cut = Transform(low, high, middle, spread, np.inf)
    centered = stated.center.source == FROM_DATA
    if stated.center.value == MIDPOINT and stated.bounds.source != PRIVATE:
        middle = (low + high) / 2
    elif centered:
        assert rows is not None
        middle = _mean(rows, cut.cut)
        assumed.append("the feature means")
        _warn("center")
    if stated.scale.source == FROM_DATA:
        assert rows is not None
        mean = _mean(rows, cut.cut)
        spread = np.sqrt(_mean(rows, lambda block: (cut.cut(block) - mean) ** 2))
        # a constant feature stays as it is, as in scikit-learn's scaler
        spread[spread == 0] = 1.0
        assumed.append("the feature scales (standard deviations)")
        _warn("scale")
    if stated.row_bound.source == FROM_DATA:
        assert rows is not None
        radius = _longest(rows, Transform(low, high, middle, spread, np.inf).unbounded)
        assumed.append("the row bound R (largest row norm)")
        _warn("row_bound")
    elif stated.row_bound.source == PRIVATE:
        radius = 1.0  # another is bought
    elif stated.row_bound != Entry():
        radius = stated.row_bound.value
        assumed.append("the row bound R, as given")
    edge = 0.0 if whole is None else _edge(whole, d)
    return Transform(low, high, middle, spread, radius, centered, edge), tuple(assumed)


def _edge(whole: PreparedMechanism, d: int) -> float:
    """Return the expected largest eigenvalue of the noise on X'X, in squared row bounds."""
    edges = whole.mechanism.spectrum_edges(whole.mechanism.calibrate(whole.problem, whole.rest))
    if edges is not None:
        return max(abs(edges[0]), abs(edges[1])) * whole.problem.n
    # of a mechanism without an edge of its own, that of Gaussian noise stands in its place
    mu = mu_of(whole.rest) if whole.rest.delta > 0 else whole.rest.epsilon
    return noise_edge(d, whole.problem.relation, mu)


def _mean(rows: Rows, of: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return the mean over all rows of a function of each."""
    # less the first row: sums of numbers far from zero would lose their last digits
    origin = of(rows.source.fold(lambda: Reduced(lambda block: block[:1], _first)).value)[0]
    total = rows.source.fold(lambda: Reduced(lambda block: (of(block) - origin).sum(0), np.add))
    mean: FloatArray = origin + total.value / rows.n
    return mean


def _longest(rows: Rows, of: Callable[[FloatArray], FloatArray]) -> float:
    """Return the largest length of a row after a change of each; 1 where all are zero."""
    found = rows.source.fold(lambda: Reduced(lambda block: lengths_of(of(block)).max(), np.maximum))
    return float(found.value) or 1.0


def _range(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each feature."""
    low = rows.source.fold(lambda: Reduced(lambda block: block.min(axis=0), np.minimum)).value
    high = rows.source.fold(lambda: Reduced(lambda block: block.max(axis=0), np.maximum)).value
    if not (low < high).all():
        raise InvalidTable(
            "X must have columns that vary where bounds are taken from the data: nothing was spent."
        )
    return low, high


def _stated(bounds: Any) -> str | FeatureBounds:
    """Return bounds as settings keep them; those of a file are read."""
    found: str | FeatureBounds = bounds_of(bounds, _BOUNDS_WORDS)
    if isinstance(found, FeatureBounds) or found == PRIVATE or pair_of(found) is not None:
        return found
    if isinstance(bounds, str) and bounds == FROM_DATA:
        return found
    if not Path(found).is_file():
        raise InvalidSetting("bounds", _BOUNDS_WORDS, found)
    return FeatureBounds.named(read_bounds(found), found)


def _first(first: FloatArray, second: FloatArray) -> FloatArray:
    return first


def _warn(name: str) -> None:
    warnings.warn(
        f"{name} is taken from the data and is not private: the guarantee is for people who "
        "could not change it.",
        PrivacyWarning,
        stacklevel=4,
    )
