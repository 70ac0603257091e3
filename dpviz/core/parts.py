"""Parts of a release, the units of privacy accounting.

dp-accounting calls a part an event. In dpviz an event is a set of outcomes, as in the definition of
privacy and in audits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from dpviz.core.errors import InvalidSetting


@dataclass(frozen=True)
class GaussianPart:
    """Independent Gaussian noise on every coordinate of a query.

    Attributes
    ----------
    sensitivity : float
        l2 distance between the query's values on the worst neighbours, at least 0.
    std : float
        Standard deviation of each coordinate's noise, in the same units; 0 means no noise.
    attained : bool
        Whether some neighbours come arbitrarily close to the sensitivity in the released result.
        Otherwise the sensitivity is a bound, also if only part of the query is released.
    """

    sensitivity: float
    std: float
    attained: bool = True

    def __post_init__(self) -> None:
        _check_noise(self.sensitivity, "std", self.std)

    @property
    def mu(self) -> float:
        """Sensitivity divided by standard deviation; infinite without noise."""
        return _ratio(self.sensitivity, self.std)


@dataclass(frozen=True)
class LaplacePart:
    """Independent Laplace noise on every coordinate of a query.

    Attributes
    ----------
    sensitivity : float
        l1 distance between the query's values on the worst neighbours, at least 0.
    scale : float
        Scale b of the density exp(-|x|/b) / (2b), in the same units; 0 means no noise.
    attained : bool
        Whether the sensitivity is attained, as in `GaussianPart`.
    """

    sensitivity: float
    scale: float
    attained: bool = True

    def __post_init__(self) -> None:
        _check_noise(self.sensitivity, "scale", self.scale)

    @property
    def epsilon(self) -> float:
        """Pure epsilon: sensitivity divided by scale; infinite without noise.

        The value is tight if the sensitivity is attained: the log ratio far in the tails equals it.
        """
        return _ratio(self.sensitivity, self.scale)


@dataclass(frozen=True)
class PurePart:
    """A release with a proved bound on its log density ratio.

    Attributes
    ----------
    epsilon : float
        Bound on the log density ratio, at least 0; may be infinite.
    reason : str
        Name of the proof, such as exponential mechanism or matrix Laplace.
    attained : bool
        Whether some neighbours and results come arbitrarily close to the bound.
    width : float
        The log density ratio of any two neighbours ranges over an interval of at most this length:
        ``epsilon`` for an exponential mechanism, twice ``epsilon`` if nothing is known.
    apart : float
        An upper limit of the total variation of neighbours, if a better limit than epsilon's is
        known; the limit may hold only with a confidence.
    """

    epsilon: float
    reason: str
    attained: bool = False
    width: float = math.inf
    apart: float = 1.0

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:  # This condition also catches NaN.
            raise InvalidSetting("epsilon of a noise part", "a number of at least 0", self.epsilon)
        if not self.width >= self.epsilon:
            raise InvalidSetting("width of a noise part", "at least the part's epsilon", self.width)

    @property
    def ranged(self) -> bool:
        """Whether the width gives a tighter bound than epsilon."""
        return self.width < 2 * self.epsilon


@dataclass(frozen=True)
class ApproximatePart:
    """A release known only to be (epsilon, delta)-private.

    Attributes
    ----------
    epsilon : float
        Epsilon, at least 0; may be infinite.
    delta : float
        Delta, from 0 to below 1.
    reason : str
        Name of the proof that the release is private.
    """

    epsilon: float
    delta: float
    reason: str

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:  # This condition also catches NaN.
            raise InvalidSetting("epsilon of a noise part", "a number of at least 0", self.epsilon)
        if not (0 <= self.delta < 1):
            raise InvalidSetting("delta of a noise part", "at least 0 and below 1", self.delta)


Part: TypeAlias = GaussianPart | LaplacePart | PurePart | ApproximatePart


def for_person(part: Part, rows: int) -> Part:
    """Return the part that protects all rows of a person, given the part for one row.

    Parameters
    ----------
    part : Part
    rows : int
        Maximum number of rows of one person, at least 1.

    Notes
    -----
    Let tables T_0, ..., T_m differ in one of the person's rows each, so that T_0 and T_m are
    neighbours for the person, and fix all results of earlier parts.

    *Gaussian and Laplace.* The query at T_0 and T_m differs by at most m sensitivities (triangle
    inequality), and by exactly m if m equal pairs of rows attain it. So mu, or epsilon, is m times
    the value for a row.

    *Pure.* The log density ratio of T_0 and T_m is a sum of m log ratios, one for each changed row:
    at most m epsilon, with m times the range. Total variations add (triangle inequality).

    So each part stays a bound given the parts before it, as adaptive composition requires. An
    approximate part may hold only for tables near T_0, as a tested bound does, and T_1 need not be
    near. So a release with such a part is bounded as a whole (`dpviz.core.problem.group_budget`).
    """
    if rows == 1:
        return part
    if isinstance(part, PurePart):
        apart = min(1.0, rows * part.apart)
        return replace(part, epsilon=rows * part.epsilon, width=rows * part.width, apart=apart)
    assert not isinstance(part, ApproximatePart), "its whole release is bounded instead"
    return replace(part, sensitivity=rows * part.sensitivity)


def _ratio(sensitivity: float, scale: float) -> float:
    if sensitivity == 0:
        return 0.0
    return math.inf if scale == 0 else sensitivity / scale


def _check_noise(sensitivity: float, name: str, scale: float) -> None:
    if not (0 <= sensitivity < math.inf):
        raise InvalidSetting("sensitivity", "a finite number of at least 0", sensitivity)
    if not (0 <= scale < math.inf):
        raise InvalidSetting(name, "a finite number of at least 0", scale)
