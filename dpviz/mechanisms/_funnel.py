"""A second look in fewer dimensions: what the two funnels share.

First the second moment of unit rows is released with noise. B holds its leading m eigenvectors,
a function of that release alone. Then rows are seen inside B: z = B'u/|B'u| (zero stays zero), unit
vectors again, so one person moves their second moment M2 by no more than before, while its noise
has m dimensions in place of d. Both looks estimate the same directions; they are averaged by their
noise, and the top k are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.problem import Problem
from dpviz.core.release import Calibration, Release
from dpviz.mechanisms._clipped import OfDirections, unit_moment
from dpviz.mechanisms._weighing import Weighing, feature_sizes, held_back

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


@dataclass(frozen=True)
class TwoLooks(OfDirections, Weighing):
    """A mechanism that looks at unit rows twice, the second time inside what it found."""

    @property
    def looks_again(self) -> bool:
        """Yes: inside the directions that weighing leaves."""
        return True

    def looked(
        self,
        calibration: Calibration,
        unit: FloatArray,
        first: FloatArray,
        second_noise: FloatArray,
        second_std: float,
        roots: FloatArray | None = None,
    ) -> Release:
        """Return the release of both looks together.

        Parameters
        ----------
        calibration : Calibration
        unit : ndarray of shape (n, d)
            Rows of length one.
        first : ndarray of shape (size, d, d)
            The first look of each draw.
        second_noise : ndarray of shape (size, m, m)
        second_std : float
            Of the second look's noise along a direction.
        roots : ndarray of shape (size, d), optional
            Noisy means of |u_j|, with the noise ``sizes_std`` of the calibration.
        """
        stds = (self.weighing_std(calibration), second_std)
        frames = [
            looked_again(
                unit,
                one,
                second_noise[index],
                stds,
                calibration.problem.k,
                self._held(one, calibration, None if roots is None else roots[index]),
            )
            for index, one in enumerate(first)
        ]
        return Release(raw=first, components=fix_signs(np.stack(frames)))

    def _held(
        self, first: FloatArray, calibration: Calibration, roots: FloatArray | None
    ) -> FloatArray | None:
        """Return what is held back of each feature, as `Weighing` does."""
        if not self.weighs:
            return None
        noisy = np.diagonal(first) - (np.trace(first) - 1) / len(first)
        seen = None if roots is None else (roots, calibration.values["sizes_std"])
        sizes = feature_sizes(noisy, self.weighing_std(calibration), 1.0, seen)
        return held_back(calibration.problem.k, sizes)
