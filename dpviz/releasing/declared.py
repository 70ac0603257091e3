"""Declarations about a fit and its rows, and the public values of the preparation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    UNDECLARED,
    Entries,
    FeatureBounds,
    FromData,
    Private,
    Public,
    bounds_of,
    pair_of,
    row_bound_of,
    source_of,
)
from dpviz.core.errors import InvalidSetting
from dpviz.core.params import Declared, given, inherit, number, quotable, texts
from dpviz.core.settings import Settings
from dpviz.datasets import read_bounds
from dpviz.datasets.raw import unit_words
from dpviz.mechanisms import Mechanism, parse_variant
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
    is_share,
)
from dpviz.preparation.transform import Transform
from dpviz.releasing.options import ACCEPT, DELTA_STATED, accepted
from dpviz.releasing.rows import Reduced, Rows

AUTO = "auto"
APPROXIMATE = "approximate-draws"
FIT_ACCEPT = ACCEPT | {
    APPROXIMATE: "its sampler follows the proved law only in the limit, but the ledger "
    "would record the epsilon of that law"
}
"""Words that a fit with a ledger must accept explicitly, and their meanings."""
_BOUND_ALLOWED = (
    "a number from 1e-100 to 1e100 that was known before anybody looked at the data, "
    f"{PRIVATE!r}, 'adaptive', {FROM_DATA!r}, or None for mechanisms that need none"
)
_BOUNDS_WORDS = f"LOW:HIGH, the path of a CSV or Parquet file, {PRIVATE!r} or {FROM_DATA!r}"
_NOBODY: Mapping[str, Any] = {"default": None, "optional": False, "required": True}
"""Options of a parameter that is None if the caller does not state it."""
# A fit cannot use a comparison's short words (mean, max), because they read data at no cost.
_WORDS = {UNDECLARED: "none", PRIVATE: "private", FROM_DATA: "of the rows"}


class PrivacyWarning(UserWarning):
    """Warning about something that the guarantee of a release does not cover.

    Examples
    --------
    >>> import warnings, dpviz
    >>> warnings.simplefilter("ignore", dpviz.PrivacyWarning)  # for who has read them
    """


def _row_bound(value: Any) -> Any:
    """Return a row-norm bound in canonical text; only `FROM_DATA` takes the bound from the data."""
    try:
        radius = row_bound_of(value)
    except InvalidSetting:
        radius = None
    found = isinstance(radius, str) and (
        radius != "max" or (isinstance(value, str) and value == FROM_DATA)
    )
    if not found or radius.startswith("quantile"):
        raise InvalidSetting("row_bound", _BOUND_ALLOWED, quotable(value))
    return radius


def _bounds(value: Any) -> str | FeatureBounds:
    """Return bounds in the form of settings, after reading them if a file is named."""
    found: str | FeatureBounds = bounds_of(value, _BOUNDS_WORDS)
    if isinstance(found, FeatureBounds) or found == PRIVATE or pair_of(found) is not None:
        return found
    if isinstance(value, str) and value == FROM_DATA:
        return found
    if not Path(found).is_file():
        raise InvalidSetting("bounds", _BOUNDS_WORDS, found)
    return FeatureBounds.named(read_bounds(found), found)


def _is_count(value: Any) -> bool:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1
    return value is None or bool(whole) or is_share(value)


def _is_seed(value: Any) -> bool:
    kinds = (int, np.integer, np.random.Generator, np.random.RandomState, type(None))
    return isinstance(value, kinds) and not (isinstance(value, (int, np.integer)) and value < 0)


@dataclass(frozen=True)
class FitOptions(Declared):
    """The options of a fit: the parameters of `dpviz.PrivatePCA`, checked when a fit begins."""

    n_components: int | float | None = given(
        2, "a whole number of at least 1, a share between 0 and 1, or None", _is_count
    )
    mechanism: str | Mechanism = given(AUTO, "a word or a Mechanism", (str, Mechanism))  # noqa: RUF009
    epsilon: float = inherit(Settings, "epsilon")
    delta: float | None = inherit(Settings, "delta", **_NOBODY)
    row_bound: str | None = inherit(
        Settings, "row_bound", reads=_row_bound, allowed_text=_BOUND_ALLOWED, **_NOBODY
    )
    relation: str = inherit(Settings, "relation")
    rows_a_person: int | None = inherit(Settings, "rows_a_person", **_NOBODY)
    center: str | None = inherit(
        Settings, "center", reads=None, choices={MIDPOINT: "", **_WORDS}, **_NOBODY
    )
    scale: str = inherit(Settings, "scale", reads=None, choices=_WORDS)
    bounds: str | FeatureBounds | None = inherit(Settings, "bounds", reads=_bounds, **_NOBODY)  # noqa: RUF009
    random_state: Any = given(None, "None, a number of at least 0 or a NumPy generator", _is_seed)  # noqa: RUF009
    ledger: str | Path | None = given(None, "a path or None", (str, Path, type(None)))  # noqa: RUF009
    spectrum: Any = given(None, "eigenvalues", (object,))  # noqa: RUF009
    shares: Mapping[str, float] | None = given(
        None, "a mapping from steps to shares, or None", (Mapping, type(None))
    )
    variance_share: float = number(
        0.1, 0.0, math.nextafter(1.0, 0.0), allowed_text="from 0 to below 1", label="", help=""
    )
    count: str = inherit(Settings, "count")
    whiten: bool = given(False, "True or False", (bool, np.bool_))
    allow_refuted: bool = given(False, "True or False", (bool, np.bool_))
    accept: tuple[str, ...] = texts((), label="", help="", check=accepted(FIT_ACCEPT, "among"))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self.shares or {})
        if self.variance_share == 0 and is_share(self.n_components):
            raise InvalidSetting(
                "variance_share", "above 0, because n_components is a share of the variance", 0
            )
        if self.ledger is not None and self.delta is None:
            raise InvalidSetting("delta", f"{DELTA_STATED}, if a ledger is given", None)
        _ = self.named  # Reading `named` raises an error for an unknown name of a mechanism.
        if self.bounds is not None:
            return
        if self.center is None:
            # Without centring, the first component is mostly the mean, however the rows vary.
            raise InvalidSetting(
                "center",
                f"stated, because no bounds are given: {UNDECLARED!r} if rows are centred "
                f"already, or {FROM_DATA!r}. If bounds are given, the mean is private",
                None,
            )
        # Private steps need to know how much one row can change a sum. Only bounds state that.
        for name in ("center", "scale", "row_bound"):
            value = getattr(self, name)
            if value == MIDPOINT or str(value).startswith(PRIVATE):
                word = value.partition(":")[0]
                raise InvalidSetting("bounds", f"given if {name} is {word!r}", None)

    @property
    def entries(self) -> Entries:
        """Declared preparation of the rows."""
        share = {**DEFAULT_SHARES, **(self.shares or {})}
        return Entries(
            source_of(self.bounds, share[RANGE]),
            source_of(self.center or PRIVATE, share[MEAN]),
            source_of(self.scale, share[SCALE]),
            source_of(self.row_bound, share[BOUND]),
            source_of(self.count, share[COUNT]),
        )

    @property
    def named(self) -> Mechanism | None:
        """The mechanism that the caller names, or None."""
        return None if self.mechanism == AUTO else parse_variant(self.mechanism)

    def from_all(self, d: int) -> bool:
        """Return whether components are chosen from a complete basis of d directions."""
        k = self.n_components
        return k is None or k == d or is_share(k)


def public_part(
    stated: Entries,
    rows: Rows | None,
    d: int,
    whole: PreparedMechanism | None,
    names: Sequence[str] = (),
) -> tuple[Transform, tuple[str, ...]]:
    """Return the public transform of the preparation, and what the fit takes as public.

    Parameters
    ----------
    stated : Entries
    rows : Rows or None
        The rows. None if they are not available; then no value may be taken from them.
    d : int
    whole : PreparedMechanism or None
        The prepared mechanism. None if it is not known yet; then no step may be private.
    names : sequence of str
        Names of the features, if the rows have names.
    """
    low, high = stated.limits(names or [f"column {j + 1}" for j in range(d)])
    private_count = whole is not None and COUNT in whole.preparation.noises
    whose = None if whole is None else whole.problem.rows_a_person
    assumed = [PADDED if private_count else PEOPLE, unit_words(whose)]

    def seen(name: str, what: str) -> Rows:
        """Return the rows from which an entry is taken, after a warning."""
        assumed.append(what)
        warnings.warn(
            f"{name} is taken from the data and is not private. The guarantee protects only "
            "people who could not change it.",
            PrivacyWarning,
            stacklevel=5,
        )
        assert rows is not None
        return rows

    if isinstance(stated.bounds, FromData):
        low, high = _range(
            seen("bounds", "the feature bounds (smallest and largest value of each feature)")
        )
    elif isinstance(stated.bounds, Public) and stated.bounds.value is not None:
        assumed.append("the feature bounds, as given")
    middle, spread, radius = np.zeros(d), np.ones(d), np.inf
    cut = Transform(low, high, middle, spread, np.inf)
    centered = isinstance(stated.center, FromData)
    if centered:
        middle = _mean(seen("center", "the feature means"), cut.cut)
    elif stated.center == Public():
        assumed.append("that the rows are centred already")
    elif stated.center.value == MIDPOINT and not isinstance(stated.bounds, Private):
        middle = (low + high) / 2
        assumed.append("the centre, the midpoint of the bounds")
    if isinstance(stated.scale, FromData):
        read = seen("scale", "the feature scales (standard deviations)")
        mean = _mean(read, cut.cut)
        spread = np.sqrt(_mean(read, lambda block: (cut.cut(block) - mean) ** 2))
        # A constant feature is not scaled, as in scikit-learn's scaler.
        spread[spread == 0] = 1.0
    if isinstance(stated.row_bound, FromData):
        read = seen("row_bound", "the row-norm bound R (largest row norm)")
        radius = _longest(read, Transform(low, high, middle, spread, np.inf).unbounded)
    elif isinstance(stated.row_bound, Private):
        radius = 1.0  # The private row-norm bound is found in a later step.
    elif stated.row_bound != Public():
        radius = stated.row_bound.value
        assumed.append("the row-norm bound R, as given")
    edge = 0.0 if whole is None else _edge(whole, d)
    return Transform(low, high, middle, spread, radius, centered, edge), tuple(assumed)


def _edge(whole: PreparedMechanism, d: int) -> float:
    """Return the expected largest eigenvalue of the noise on X'X, in squared row-norm bounds."""
    edges = whole.mechanism.spectrum_edges(whole.mechanism.calibrate(whole.problem, whole.rest))
    if edges is not None:
        return max(abs(edges[0]), abs(edges[1])) * whole.problem.n
    # If a mechanism does not state the largest eigenvalue of its noise, assume Gaussian noise.
    mu = mu_of(whole.rest) if whole.rest.delta > 0 else whole.rest.epsilon
    return noise_edge(d, whole.problem.relation, mu / whole.problem.together)


def _mean(rows: Rows, of: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return the mean over all rows of a function of each row."""
    # One row is subtracted from all, because sums of numbers far from zero would lose digits.
    origin = of(rows.source.fold(lambda: Reduced(lambda block: block[:1], _first)).value)[0]
    total = rows.source.fold(lambda: Reduced(lambda block: (of(block) - origin).sum(0), np.add))
    mean: FloatArray = origin + total.value / rows.n
    return mean


def _longest(rows: Rows, of: Callable[[FloatArray], FloatArray]) -> float:
    """Return the largest row length after a transform of each row; 1 if all rows are zero."""
    found = rows.source.fold(lambda: Reduced(lambda block: lengths_of(of(block)).max(), np.maximum))
    return float(found.value) or 1.0


def _range(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each feature."""
    low = rows.source.fold(lambda: Reduced(lambda block: block.min(axis=0), np.minimum)).value
    high = rows.source.fold(lambda: Reduced(lambda block: block.max(axis=0), np.maximum)).value
    return low, high


def _first(first: FloatArray, second: FloatArray) -> FloatArray:
    return first
