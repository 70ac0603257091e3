"""Pure privacy in two steps: which features are worth their noise, then their components."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import nuclear
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.by_length import InBlocks
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.parts import LaplacePart, PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import OfDirections, on_the_sphere, unit_rows
from dpviz.mechanisms._directional import symmetrised
from dpviz.mechanisms._funnel import top
from dpviz.mechanisms._pure import IntArray, PureLaw, wide, wishart_differences
from dpviz.mechanisms._weighing import feature_sizes, held_back

_NOISE = PureLaw.WISHART
_DROWNED = 3.0  # tau sqrt(d), on the tuning half of the tables of docs/defaults.md
_MOST_NUMBERS = 2**18  # of matrices at once


@dataclass(frozen=True)
class ScreenedWishartDifference(OfDirections):
    """The top k inside the features whose noisy sizes are worth the noise they bring.

    Notes
    -----
    The sizes: the mean of u_j^2 over rows of length one. The squares of a row sum to one, so one
    row moves them by at most 2/n (replace) or 1/n (zero-out) in l1 norm: Laplace noise. Kept are
    the m largest, m where their expected share of the length, over 1 + (edge of the noise in m
    dimensions/guess)^2, is largest.

    The components: rows are cut to the kept features and brought to length one again, so their
    second moment moves by at most 2/n or 1/n in nuclear norm, whichever features were kept; the log
    density ratio of the noise is at most that over its scale. Pure epsilons add, also where the
    second step depends on the first. The sizes also weigh the features inside
    (`dpviz.mechanisms._weighing`): post-processing.
    """

    share: float = number(
        0.2,
        0.01,
        0.9,
        label="Share for sizes",
        help="Share of epsilon spent on the features' sizes; twice of it where noise is loud.",
        examples=(0.4,),
    )
    guess: float = number(
        0.25,
        0.01,
        1.0,
        label="Guessed component",
        help="Share of the rows' squared length that the first component is guessed to have: "
        "public.",
        examples=(0.15,),
    )

    info = MechanismInfo(
        label="Screened Wishart difference",
        summary="Keeps the features whose noisy sizes are worth it, then adds pure noise there.",
        paper="dpviz, after Locantore et al. 1999",
        family="wishart",
        release="subspace",
        guarantee="pure",
        order=38,
        needs_rows=True,
        redraws=True,
        timed=True,
        law=r"\tilde s = \mathrm{mean}(u_j^2) + \mathrm{Lap}(b),\ K = \mathrm{kept}(\tilde s),"
        r"\quad \hat S = \frac1n \sum_i z_i z_i' + N,\ z = u_K/|u_K|",
        calibration=r"b = 2/(n \alpha \varepsilon),\ s = 2/(n (1 - \alpha) \varepsilon)\ "
        r"(\text{replace}),\quad \text{half of both}\ (\text{zero-out})",
        complexity="n d^2",
        advice="The default under pure privacy where noise drowns all but a few large features.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the scale of the components' noise, and the scale of the sizes' noise."""
        # in l1 norm of the sizes, and in nuclear norm of the second moment
        reach = nuclear(on_the_sphere(problem))
        first = self.spent_on_sizes(problem, budget.epsilon)
        sizes = math.nextafter(reach / first, math.inf)
        scale = math.nextafter(reach / (budget.epsilon * (1 - 1e-15) - first), math.inf)
        reason = "log density ratio is at most the nuclear norm over the scale"
        parts = (LaplacePart(reach, sizes), PurePart(reach / scale, reason))
        return Calibration(problem, budget, scale, parts, {"sizes_scale": sizes})

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 5, above the pure funnel, where noise drowns all but a few large features."""
        return 5.0 if wide(problem, budget.epsilon) > _DROWNED else None

    def spent_on_sizes(self, problem: Problem, epsilon: float) -> float:
        """Return the epsilon of the sizes: twice the share where noise drowns every component.

        That is where the edge of the components' noise, with all of epsilon and all features, is
        above the trace of what it is added to. Measured there on raw tables (`benchmarks.frontier`,
        epsilon .1): wine .75 to .90, breast_cancer .76 to .92.
        """
        edge = _NOISE.edge(problem.d) * nuclear(on_the_sphere(problem)) / epsilon
        return epsilon * min(self.share * (2 if edge >= 1 else 1), 0.9)

    @property
    def quick(self) -> bool:
        """No: each draw has features of its own."""
        return False

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the components of both steps, each draw with features of its own."""
        assert data.rows is not None
        problem, scale = calibration.problem, calibration.scale
        b = calibration.values["sizes_scale"]
        pair = draws.exponential(2, problem.d)
        # the difference of two standard exponentials is Lap(1)
        squares = sum(np.square(u).sum(axis=0) for _, u in InBlocks(data.rows, unit_rows).blocks())
        noisy = squares / len(data.rows) + b * (pair[:, 0] - pair[:, 1])
        centred = noisy - (noisy.sum(axis=1, keepdims=True) - 1) / problem.d
        sizes = feature_sizes(centred, b * math.sqrt(2), np.ones(draws.size))
        expected = sizes / sizes.sum(axis=1, keepdims=True)
        order, counts = self.kept(expected, noisy, problem.k, scale)
        frames = np.zeros((draws.size, problem.d, problem.k))
        singles = draws.single()
        step = max(1, _MOST_NUMBERS // problem.d**2)
        for start in range(0, draws.size, step):
            part = slice(start, start + step)
            for places, matrices in wishart_differences(singles[part], counts[part]):
                which, m = start + places, matrices.shape[1]
                features = order[which, :m]
                # of few features many draws keep the same
                sets, of_set = np.unique(features, axis=0, return_inverse=True)
                matrices *= scale
                matrices += _moments_of(data.rows, sets)[of_set.ravel()]
                shares = sizes[which[:, None], features]
                shares /= shares.sum(axis=1, keepdims=True)
                variance = (_NOISE.direction_std(m) * scale) ** 2
                diagonal = np.einsum("sii->si", matrices)  # a view
                diagonal -= variance * held_back(problem.k, shares)
                frames[which[:, None], features] = top(matrices, problem.k)
        return Release(raw=frames, components=fix_signs(frames))

    def kept(
        self, sizes: FloatArray, noisy: FloatArray, k: int, scale: float
    ) -> tuple[IntArray, IntArray]:
        """Return the order in which features are kept, and how many are, by their expected sizes.

        Parameters
        ----------
        sizes : ndarray of shape (size, d)
            Expected, of sum 1.
        noisy : ndarray of shape (size, d)
            As released; it breaks ties.
        k : int
            Fewer than are kept.
        scale : float
            Of the components' noise.

        Returns
        -------
        order : ndarray of shape (size, d)
        counts : ndarray of shape (size,)
        """
        d = sizes.shape[1]
        order = np.lexsort((-noisy, -sizes))
        counts = np.arange(min(k + 1, d), d + 1)
        edges = _NOISE.edge(1) * counts * scale
        summed = np.cumsum(np.take_along_axis(sizes, order, axis=1), axis=1)
        worth = summed[:, counts - 1] / (1 + (edges / self.guess) ** 2)
        return order, counts[np.argmax(worth, axis=1)]

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        return (
            f"Sizes cost epsilon {numeral(self.spent_on_sizes(problem, budget.epsilon), 3)} by "
            "Laplace noise; rows "
            "of the kept features have length one, and the log density ratio of the rest's noise "
            "is at most the nuclear norm that one person moves them by over the scale."
        )


def _moments_of(rows: FloatArray, sets: NDArray[np.intp]) -> FloatArray:
    """Return the moment of directions among the features of each set, shape (sets, m, m)."""
    moments = np.zeros((len(sets), sets.shape[1], sets.shape[1]))
    for _, unit in InBlocks(rows, unit_rows).blocks():
        for features, products in zip(sets, moments, strict=True):
            short = unit_rows(unit[:, features])
            products += short.T @ short
    return symmetrised(moments / len(rows))
