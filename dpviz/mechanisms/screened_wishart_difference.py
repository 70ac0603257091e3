"""Pure privacy in two steps: which features are worth their noise, then their components."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
from dpviz.mechanisms._clipped import OfDirections, on_the_sphere, unit_moment, unit_rows
from dpviz.mechanisms._funnel import top
from dpviz.mechanisms._pure import PureLaw
from dpviz.mechanisms._weighing import feature_sizes, held_back

IntArray = NDArray[np.intp]

_NOISE = PureLaw.WISHART
_MOST_NUMBERS = 2**18  # of moments that are remembered


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
    second moment moves by at most 2/n or 1/n in nuclear norm, whichever features were kept; the
    log density ratio of the noise is at most that over its scale. Pure epsilons add, also where
    the second step depends on the first. What the sizes say weighs features inside as well
    (`dpviz.mechanisms._weighing`): post-processing.
    """

    share: float = number(
        0.2,
        0.01,
        0.9,
        label="Share for sizes",
        help="Share of epsilon spent on the features' sizes.",
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
        advice="Raw tables whose features differ in scale, at a small epsilon without delta.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the scale of the components' noise, and that of the sizes'."""
        # in l1 norm of the sizes, and in nuclear norm of the second moment
        reach = nuclear(on_the_sphere(problem))
        first = self.share * budget.epsilon
        sizes = math.nextafter(reach / first, math.inf)
        scale = math.nextafter(reach / (budget.epsilon * (1 - 1e-15) - first), math.inf)
        reason = "log density ratio is at most the nuclear norm over the scale"
        parts = (LaplacePart(reach, sizes), PurePart(reach / scale, reason))
        return Calibration(problem, budget, scale, parts, {"sizes_scale": sizes})

    @property
    def quick(self) -> bool:
        """No: each draw has features of its own."""
        return False

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the components of both steps, each draw with features of its own."""
        assert data.rows is not None
        problem, scale = calibration.problem, calibration.scale
        b = calibration.values["sizes_scale"]
        unit = unit_rows(data.rows)
        pair = draws.exponential(2, problem.d)
        # the difference of two standard exponentials is Lap(1)
        noisy = np.square(unit).mean(axis=0) + b * (pair[:, 0] - pair[:, 1])
        frames = np.zeros((draws.size, problem.d, problem.k))
        moments: dict[bytes, FloatArray] = {}  # of few features many draws keep the same
        for index, one in enumerate(draws.single()):
            centred = noisy[index] - (noisy[index].sum() - 1) / problem.d
            sizes = feature_sizes(centred, b * math.sqrt(2), 1.0)
            kept = self.kept(sizes / sizes.sum(), noisy[index], problem.k, scale)
            m = len(kept)
            name = kept.tobytes()
            moment = moments.get(name)
            if moment is None:
                moment = unit_moment(unit[:, kept])
                if len(moments) * problem.d**2 < _MOST_NUMBERS:
                    moments[name] = moment
            matrix = moment + scale * _NOISE.draw(one, m)[0]
            variance = (_NOISE.direction_std(m) * scale) ** 2
            share = sizes[kept] / sizes[kept].sum()
            held = matrix - np.diag(variance * held_back(problem.k, share))
            frames[index, kept] = top(held, problem.k)
        return Release(raw=frames, components=fix_signs(frames))

    def kept(self, sizes: FloatArray, noisy: FloatArray, k: int, scale: float) -> IntArray:
        """Return which features are kept, by their expected sizes; more than k of them.

        Parameters
        ----------
        sizes : ndarray of shape (d,)
            Expected, of sum 1.
        noisy : ndarray of shape (d,)
            As released; it breaks ties.
        k : int
        scale : float
            Of the components' noise.
        """
        d = len(sizes)
        order = np.lexsort((-noisy, -sizes))
        counts = np.arange(min(k + 1, d), d + 1)
        edges = _NOISE.edge(1) * counts * scale
        worth = np.cumsum(sizes[order])[counts - 1] / (1 + (edges / self.guess) ** 2)
        chosen: IntArray = order[: int(counts[np.argmax(worth)])]
        return chosen

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        return (
            f"Sizes cost epsilon {numeral(budget.epsilon * self.share, 3)} by Laplace noise; rows "
            "of the kept features have length one, and the log density ratio of the rest's noise "
            "is at most the nuclear norm that one person moves them by over the scale."
        )
