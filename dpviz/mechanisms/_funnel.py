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
from dpviz.mechanisms._clipped import OfDirections, unit_moment, unit_rows
from dpviz.mechanisms._weighing import Weighing, feature_sizes, held_back

GUESS = 0.25
"""Size that a component is guessed to have, of rows of length one: the second look has as many
dimensions as leave its noise's edge at that."""
_NEAR = 1 << 15  # numbers at once: what the processor keeps near
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
    """Return the components of each draw after the second look, shape (size, d, k).

    Parameters
    ----------
    unit : ndarray of shape (n, d)
        Rows of length one.
    first : ndarray of shape (size, d, d)
        The first release.
    second_noise : ndarray of shape (size, m, m)
    stds : (float, float)
        Of the noise of each look along a direction.
    k : int
    held : ndarray of shape (size, d) or None
        What is held back of each feature, per squared standard deviation.
    """
    m = second_noise.shape[-1]
    # what is held back: nothing, unless features are weighed
    back = np.zeros(first.shape[:2]) if held is None else held
    base = top(first - stds[0] ** 2 * (back[:, None] * np.eye(first.shape[-1])), m)
    carried = base.transpose(0, 2, 1) @ first @ base
    # the share of squared length inside B; M2 has trace 1, what is carried has this one
    inside = [min(max(float(np.trace(one)), _LEAST_SHARE), 1.0) for one in carried]
    firsts, second = [(stds[0] / one) ** 2 for one in inside], stds[1] ** 2
    shares = [second / (one + second) for one in firsts]
    left = [s**2 * one + (1 - s) ** 2 * second for s, one in zip(shares, firsts, strict=True)]
    share = _each(shares)
    both = share * carried / _each(inside)
    both += (1 - share) * (_moments_inside(unit, base) + second_noise)
    both -= _each(left) * (base.transpose(0, 2, 1) @ (back[:, :, None] * base))
    components: FloatArray = base @ top(both, k)
    return components


def _each(numbers: list[float]) -> FloatArray:
    """Return a number for each draw, in the shape that multiplies its matrix."""
    return np.array(numbers)[:, None, None]


def _moments_inside(unit: FloatArray, bases: FloatArray) -> FloatArray:
    """Return the moment of rows seen inside each basis, shape (size, m, m).

    Of few rows many draws are made at once; the bytes of a draw do not depend on it.
    """
    n, m = len(unit), bases.shape[-1]
    step = _NEAR // (n * m)
    if step < 2:
        return np.stack([unit_moment(unit @ base) for base in bases])
    found = np.empty((len(bases), m, m))
    for start in range(0, len(bases), step):
        seen = unit @ bases[start : start + step]
        rows = unit_rows(seen.reshape(-1, m)).reshape(seen.shape)
        moments = rows.transpose(0, 2, 1) @ rows / n
        found[start : start + step] = (moments + moments.transpose(0, 2, 1)) / 2
    return found


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
        held = self._held(first, calibration, roots) if self.weighs else None
        frames = looked_again(unit, first, second_noise, stds, calibration.problem.k, held)
        return Release(raw=first, components=fix_signs(frames))

    def _held(
        self, first: FloatArray, calibration: Calibration, roots: FloatArray | None
    ) -> FloatArray:
        """Return what is held back of each feature, as `Weighing` does."""
        traces = np.trace(first, axis1=1, axis2=2)
        noisy = np.diagonal(first, axis1=1, axis2=2) - ((traces - 1) / first.shape[1])[:, None]
        seen = None if roots is None else (roots, calibration.values["sizes_std"])
        sizes = feature_sizes(noisy, self.weighing_std(calibration), np.ones(len(first)), seen)
        return held_back(calibration.problem.k, sizes)
