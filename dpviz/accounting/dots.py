"""A law of losses from points of a privacy profile ("connect the dots").

A profile delta(epsilon) is a convex function of x = e^epsilon, so the chords between points of it
lie above: they are the profile of a pair of laws whose losses are those points (Doroshenko, Ghazi,
Kamath, Kumar & Manurangsi 2022, Section 4), which dominates. With both orders of the neighbours
under one curve the pair is symmetric: the second law gives the loss l the probability that the
first gives -l, which is e^-l times that of l.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray


def connected(
    places: NDArray[np.intp], deltas: FloatArray, step: float
) -> tuple[FloatArray, float]:
    """Return the masses of the loss on [-m, m] steps, and the probability that all is told.

    Parameters
    ----------
    places : ndarray of shape (points,)
        Ascending from 0 to m, in steps.
    deltas : ndarray of shape (points,)
        The profile there, of both orders of the neighbours.
    step : float
        Between two points of the grid of losses.

    Returns
    -------
    masses : ndarray of shape (2 m + 1,)
        They and the second number sum to 1 or a rounding more; read-only.
    failing : float
    """
    count = int(places[-1])
    widths = step * np.diff(places)
    # c_i = e^(epsilon_i) times the slope of chord i: what rounding did to the order of slopes is
    # raised again, from the far end on
    slopes = np.maximum(deltas[:-1] - deltas[1:], 0.0) / np.expm1(widths)
    for index in range(len(slopes) - 2, -1, -1):
        slopes[index] = max(slopes[index], slopes[index + 1] * math.exp(-widths[index]))
    above = slopes * np.exp(widths)
    above[:-1] -= slopes[1:]
    above = np.maximum(above, 0.0)  # probabilities of the losses at the places but the first
    below = above * np.exp(-step * places[1:])
    failing = float(deltas[-1])
    masses = np.zeros(2 * count + 1)
    masses[count + places[1:]] = above
    masses[count - places[1:]] = below
    masses[count] = max(0.0, 1.0 - failing - float(above.sum() + below.sum()))
    masses.setflags(write=False)
    return masses, failing
