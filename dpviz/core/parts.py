"""What was done to the data: the parts of a release, apart from who accounts for them.

dp-accounting calls one an event. Here an event is a set of outcomes, as in the definition of
privacy and in audits, so a release has parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    """

    epsilon: float
    reason: str
    attained: bool = False
    width: float = math.inf

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:  # also true for NaN
            raise InvalidSetting("epsilon of a part", "a number of at least 0", self.epsilon)
        if not self.width >= self.epsilon:
            raise InvalidSetting("width of a part", "at least its epsilon", self.width)

    @property
    def ranged(self) -> bool:
        """Whether the width says more than the epsilon does."""
        return self.width < 2 * self.epsilon


@dataclass(frozen=True)
class ApproximatePart:
    """A release of which nothing is known but that it is (epsilon, delta)-private.

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


def _ratio(sensitivity: float, scale: float) -> float:
    if sensitivity == 0:
        return 0.0
    return math.inf if scale == 0 else sensitivity / scale


def _check_noise(sensitivity: float, name: str, scale: float) -> None:
    if not (0 <= sensitivity < math.inf):
        raise InvalidSetting("sensitivity", "a finite number of at least 0", sensitivity)
    if not (0 <= scale < math.inf):
        raise InvalidSetting(name, "a finite number of at least 0", scale)
