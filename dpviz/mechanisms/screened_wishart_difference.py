"""Pure privacy in two steps: select the features worth their noise, then find components."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import nuclear
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.parts import LaplacePart, PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import OfDirections, on_the_sphere, unit_rows
from dpviz.mechanisms._funnel import moments_inside, top
from dpviz.mechanisms._pure import IntArray, PureLaw, wide, wishart_differences
from dpviz.mechanisms._weighing import feature_sizes, held_back

_NOISE = PureLaw.WISHART
_DROWNED = 3.0  # Threshold of tau sqrt(d), from the tuning half of the tables in docs/defaults.md.
_MOST_NUMBERS = 2**18  # Maximum number of entries in one block of matrices.


@dataclass(frozen=True)
class ScreenedWishartDifference(OfDirections):
    """Release the top k inside the features whose noisy sizes justify their noise.

    Notes
    -----
    The sizes: the mean of u_j^2 over rows of length one. The squares of a row sum to one, so one
    row moves the sizes by at most 2/n (replace) or 1/n (zero-out) in l1 norm: Laplace noise. The m
    largest are selected. m maximises the expected share of the length in these features, over 1 +
    (edge of the noise in m dimensions/guess)^2.

    The components: rows are restricted to these features and scaled to length one again. So their
    second moment moves by at most 2/n or 1/n in nuclear norm, for every selection. The log density
    ratio of the noise is at most this norm over its scale. Pure epsilons add, also if the second
    step depends on the first. The sizes also weight the features inside
    (`dpviz.mechanisms._weighing`): post-processing.
    """

    share: float = number(
        0.2,
        0.01,
        0.9,
        label="Share for sizes",
        help="Share of epsilon for the features' sizes; if noise is large, the share is doubled.",
        examples=(0.4,),
    )
    guess: float = number(
        0.25,
        0.01,
        1.0,
        label="Guessed component",
        help="Public guess of the share of the rows' squared length along the first component.",
        examples=(0.15,),
    )

    info = MechanismInfo(
        label="Screened Wishart difference",
        summary=("Keeps features with large noisy sizes, then adds pure noise there."),
        paper="dpviz, after Locantore et al. 1999",
        family="wishart",
        release="subspace",
        guarantee="pure",
        order=38,
        needs_rows=True,
        passes=2,
        redraws=True,
        timed=True,
        law=r"\tilde s = \mathrm{mean}(u_j^2) + \mathrm{Lap}(b),\ K = \mathrm{kept}(\tilde s),"
        r"\quad \hat S = \frac1n \sum_i z_i z_i' + N,\ z = u_K/|u_K|",
        calibration=r"b = 2/(n \alpha \varepsilon),\ s = 2/(n (1 - \alpha) \varepsilon)\ "
        r"(\text{replace}),\quad \text{half of both}\ (\text{zero-out})",
        complexity="n d^2",
        advice="The default under pure privacy if noise hides all but a few large features.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the scale of the components' noise, and the scale of the sizes' noise."""
        # One row moves the sizes in l1 norm as far as it moves the second moment in nuclear norm.
        reach = nuclear(on_the_sphere(problem))
        first = self.spent_on_sizes(problem, budget.epsilon)
        sizes = math.nextafter(reach / first, math.inf)
        scale = math.nextafter(reach / (budget.epsilon * (1 - 1e-15) - first), math.inf)
        reason = "log density ratio is at most the nuclear norm over the scale"
        parts = (LaplacePart(reach, sizes), PurePart(reach / scale, reason))
        return Calibration(problem, budget, scale, parts, {"sizes_scale": sizes})

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 5, above the pure funnel, if noise hides all but a few large features."""
        return 5.0 if wide(problem, budget.epsilon) > _DROWNED else None

    def spent_on_sizes(self, problem: Problem, epsilon: float) -> float:
        """Return the epsilon of the sizes: twice the share if noise hides every component.

        Noise hides every component if the edge of the components' noise, with all of epsilon and
        all features, is above the trace of the noisy matrix. Measured on raw tables
        (`benchmarks.frontier`, epsilon .1): wine .75 to .90, breast_cancer .76 to .92.
        """
        edge = _NOISE.edge(problem.d) * nuclear(on_the_sphere(problem)) / epsilon
        return epsilon * min(self.share * (2 if edge >= 1 else 1), 0.9)

    @property
    def quick(self) -> bool:
        """False, because each repetition selects features of its own."""
        return False

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the components after both steps; each repetition has its own features."""
        problem, scale = calibration.problem, calibration.scale
        b = calibration.values["sizes_scale"]
        pair = draws.exponential(2, problem.d)
        # The difference of two standard exponential numbers has the Laplace law of scale 1.
        squares = sum(np.square(u).sum(axis=0) for _, u in data.blocks(unit_rows))
        noisy = squares / data.n + b * (pair[:, 0] - pair[:, 1])
        centred = noisy - (noisy.sum(axis=1, keepdims=True) - 1) / problem.d
        sizes = feature_sizes(centred, b * math.sqrt(2), np.ones(draws.size))
        expected = sizes / sizes.sum(axis=1, keepdims=True)
        order, counts = self.kept(expected, noisy, problem.k, scale)
        # If features are few, many repetitions select the same set. Each set is computed once.
        each = [tuple(features[:m]) for features, m in zip(order, counts, strict=True)]
        sets = dict.fromkeys(each)
        moments = dict(zip(sets, moments_inside(data, [*map(np.array, sets)]), strict=True))
        frames = np.zeros((draws.size, problem.d, problem.k))
        singles = draws.single()
        step = max(1, _MOST_NUMBERS // problem.d**2)
        for start in range(0, draws.size, step):
            part = slice(start, start + step)
            for places, matrices in wishart_differences(singles[part], counts[part]):
                which, m = start + places, matrices.shape[1]
                features = order[which, :m]
                matrices *= scale
                matrices += np.concatenate([moments[each[i]] for i in which])
                shares = sizes[which[:, None], features]
                shares /= shares.sum(axis=1, keepdims=True)
                variance = (_NOISE.direction_std(m) * scale) ** 2
                diagonal = np.einsum("sii->si", matrices)  # Writes to it also change `matrices`.
                diagonal -= variance * held_back(problem.k, shares)
                frames[which[:, None], features] = top(matrices, problem.k)
        return Release(raw=frames, components=fix_signs(frames))

    def kept(
        self, sizes: FloatArray, noisy: FloatArray, k: int, scale: float
    ) -> tuple[IntArray, IntArray]:
        """Return the order in which features are selected, and their number, by expected size.

        Parameters
        ----------
        sizes : ndarray of shape (size, d)
            Expected sizes, which sum to 1.
        noisy : ndarray of shape (size, d)
            Released sizes, which break ties.
        k : int
            Number of components, below the number of selected features.
        scale : float
            Scale of the components' noise.

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
        """Return the basis of the calibration."""
        return (
            f"Sizes cost epsilon {numeral(self.spent_on_sizes(problem, budget.epsilon), 3)} by "
            "Laplace noise; rows "
            "of the kept features have length one, and the log density ratio of the rest's noise "
            "is at most the nuclear norm that one person moves them by over the scale."
        )
