"""Parts of a release, as accounts compose them.

dp-accounting calls one an event. Here an event is a set of outcomes, as in the definition of
privacy and in audits, so a release has parts.
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
        Standard deviation of each coordinate's noise, in the same units; 0 is no noise.
    attained : bool
        Whether some neighbours come arbitrarily close to the sensitivity in what is released; else
        it is a bound, also where the query is released in part only.
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
        Scale b of the density exp(-|x|/b) / (2b), in the same units; 0 is no noise.
    attained : bool
        As of `GaussianPart`.
    """

    sensitivity: float
    scale: float
    attained: bool = True

    def __post_init__(self) -> None:
        _check_noise(self.sensitivity, "scale", self.scale)

    @property
    def epsilon(self) -> float:
        """Pure epsilon: sensitivity divided by scale; infinite without noise.

        Tight if the sensitivity is attained: far out in the tails the log density ratio equals it.
        """
        return _ratio(self.sensitivity, self.scale)


@dataclass(frozen=True)
class PurePart:
    """A release with a proved bound on its log density ratio.

    Attributes
    ----------
    epsilon : float
        The bound, at least 0; may be infinite.
    reason : str
        What proves it, in a phrase: exponential mechanism, matrix Laplace.
    attained : bool
        Whether some neighbours and what is released come arbitrarily close to the bound.
    width : float
        The log density ratio of any two neighbours ranges over an interval of at most this length:
        ``epsilon`` for an exponential mechanism; where nothing is known it is twice ``epsilon``.
    apart : float
        An upper limit of the total variation of neighbours, where more is known of it than the
        epsilon says; it may be one with a confidence.
    """

    epsilon: float
    reason: str
    attained: bool = False
    width: float = math.inf
    apart: float = 1.0

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:  # also true for NaN
            raise InvalidSetting("epsilon of a part", "a number of at least 0", self.epsilon)
        if not self.width >= self.epsilon:
            raise InvalidSetting("width of a part", "at least its epsilon", self.width)

    @property
    def ranged(self) -> bool:
        """Whether the width gives a tighter account than epsilon."""
        return self.width < 2 * self.epsilon


@dataclass(frozen=True)
class ApproximatePart:
    """A release known only to be (epsilon, delta)-private.

    Attributes
    ----------
    epsilon : float
        At least 0; may be infinite.
    delta : float
        From 0 to below 1.
    reason : str
        What proves it, in a phrase.
    """

    epsilon: float
    delta: float
    reason: str

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:  # also true for NaN
            raise InvalidSetting("epsilon of a part", "a number of at least 0", self.epsilon)
        if not (0 <= self.delta < 1):
            raise InvalidSetting("delta of a part", "at least 0 and below 1", self.delta)


Part: TypeAlias = GaussianPart | LaplacePart | PurePart | ApproximatePart


def for_person(part: Part, rows: int) -> Part:
    """Return the part for a person's rows, from the part for one row.

    Parameters
    ----------
    part : Part
    rows : int
        Most rows of one person, at least 1.

    Notes
    -----
    Let tables T_0, ..., T_m differ in one of the person's rows each, so that T_0 and T_m are
    neighbours for the person, and let all that earlier parts released be fixed.

    *Gaussian and Laplace.* The query at T_0 and T_m differs by at most m sensitivities (triangle
    inequality), and by as much where m equal pairs of rows attain the sensitivity. So mu, or
    epsilon, is m times that of a row.

    *Pure.* The log density ratio of T_0 and T_m is the sum of m ratios of rows: at most m epsilon,
    within a range of m widths. Total variations add (triangle inequality).

    Each part so stays a bound given those before it, which is all that adaptive composition asks.
    An approximate part may hold for tables near T_0 alone, as a tested bound does, and T_1 need not
    be one of them: what has such a part is bounded as a whole (`dpviz.core.problem.group_budget`).
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
