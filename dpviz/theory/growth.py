"""How the noise of a mechanism grows with d, as stated, and the power of d in measured numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class StatedGrowth:
    """The growth in d of the noise's spectral norm that a paper states.

    Attributes
    ----------
    label : str
        As printed, without n and epsilon.
    exponent : float
        The power of d, logarithms left out.
    logarithm : float
        The power of ln d; measurement shows none for the Wishart.
    """

    label: str
    exponent: float
    logarithm: float

    def of(self, d: float) -> float:
        """Return the stated growth at d, **scaling only**."""
        return math.pow(d, self.exponent) * math.pow(math.log(d), self.logarithm)

    def power_over(self, dimensions: Sequence[float]) -> float:
        """Return the power of d that a fit finds for the stated growth itself.

        Over a finite range a logarithm looks like a power; this is what a
        measured power is to be compared with.
        """
        return fitted_power(dimensions, [self.of(d) for d in dimensions])[0]


# Jiang et al. 2016, Table 1: the papers' own statements, for the mechanism of that name.
JIANG_TABLE_1 = {
    "Laplace": StatedGrowth("d sqrt(d)", 1.5, 0.0),
    "SULQ": StatedGrowth("d sqrt(d ln d)", 1.5, 0.5),
    "Wishart": StatedGrowth("d ln d", 1.0, 1.0),
    "Analyze Gauss": StatedGrowth("sqrt(d)", 0.5, 0.0),
}


def fitted_power(
    dimensions: Sequence[float], values: Sequence[float], errors: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return the least-squares slope of log value in log d, and its standard error.

    Parameters
    ----------
    dimensions, values : sequence of float
        Positive; at least two different dimensions.
    errors : sequence of float, optional
        Standard errors of the values; default none.

    Notes
    -----
    Dimensions count alike in the fit: with weights by precision the largest,
    whose norms hardly vary, would decide alone.
    """
    x = np.log(np.asarray(dimensions, dtype=float))
    means = np.asarray(values, dtype=float)
    centred = x - x.mean()
    leverage = centred / (centred @ centred)
    power = float(leverage @ np.log(means))
    if errors is None:
        return power, 0.0
    relative = np.asarray(errors, dtype=float) / means
    return power, float(np.sqrt(np.sum((leverage * relative) ** 2)))
