"""A second look in fewer dimensions: what the two funnels share.

First the second moment of unit rows is released with noise. B holds its leading m eigenvectors,
a function of that release alone. Then rows are seen inside B: z = B'u/|B'u| (zero stays zero), unit
vectors again, so one person moves their second moment M2 by no more than before, while its noise
has m dimensions in place of d. Both looks estimate the same directions; they are averaged by their
noise, and the top k are taken.
"""

from __future__ import annotations

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Problem
from dpviz.mechanisms._sphere import unit_moment

GUESS = 0.25
"""Size that a component is guessed to have, of rows of length one: the second look has as many
dimensions as leave its noise's edge at that."""
_LEAST_SHARE = 0.2  # of the rows' squared length that is taken to lie inside B


def dimensions(problem: Problem, fitting: float) -> int:
    """Return m: as many as fit under the guess, from k + 4 to half of the features."""
    least = min(problem.k + 4, problem.d - 1)
    return int(min(max(round(fitting), least), max(problem.d // 2, least)))


def top(matrices: FloatArray, count: int) -> FloatArray:
    """Return the leading eigenvectors of symmetric matrices, shape (..., d, count)."""
    vectors: FloatArray = np.linalg.eigh(matrices)[1][..., ::-1][..., :count]
    return vectors


def looked_again(
    unit: FloatArray,
    first: FloatArray,
    second_noise: FloatArray,
    stds: tuple[float, float],
    k: int,
    held: FloatArray | None,
) -> FloatArray:
    """Return the components after the second look, shape (d, k).

    Parameters
    ----------
    unit : ndarray of shape (n, d)
        Rows of length one.
    first : ndarray of shape (d, d)
        The first release.
    second_noise : ndarray of shape (m, m)
    stds : (float, float)
        Of the noise of each look along a direction.
    k : int
    held : ndarray of shape (d,) or None
        What is held back of each feature, per squared standard deviation.
    """
    m = len(second_noise)
    # what is held back: nothing, unless features are weighed
    back = np.zeros(len(first)) if held is None else held
    base = top(first - stds[0] ** 2 * np.diag(back), m)
    carried = base.T @ first @ base
    # the share of squared length inside B; M2 has trace 1, what is carried has this one
    inside = min(max(float(np.trace(carried)), _LEAST_SHARE), 1.0)
    variances = (stds[0] / inside) ** 2, stds[1] ** 2
    share = variances[1] / (variances[0] + variances[1])
    both = share * carried / inside + (1 - share) * (unit_moment(unit @ base) + second_noise)
    left = share**2 * variances[0] + (1 - share) ** 2 * variances[1]
    both -= left * (base.T @ (back[:, None] * base))
    components: FloatArray = base @ top(both, k)
    return components
