"""Spherical PCA twice: on all or the useful features, then inside the subspace found first."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import frobenius
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import OfDirections, on_the_sphere, unit_rows
from dpviz.mechanisms._funnel import GUESS, averaged, dimensions, looked_again, moments_inside, top
from dpviz.mechanisms._pure import IntArray
from dpviz.mechanisms._weighing import feature_sizes, shrunk
from dpviz.sampling.ensembles import goe

# These constants were chosen at epsilon .1 on the tuning half of the tables in docs/defaults.md.
# `_CONFIRMED` was set on digits, wine and breast_cancer, so these three tables cannot test it.
_UNEQUAL = 0.4  # Spread of feature sizes, over their mean, above which features differ.
_HINT = 0.08  # Spread above which features differ if the noise has an eigenvalue above the trace.
_CONFIRMED = 0.15  # Spread above which features differ after the query of their sizes.
_LEAST_KEPT = 1 / 3  # Least share of the features that is used.
_STRENGTH = 0.03  # Assumed square of a matrix entry, divided by the sizes of its two features.
_FIRST = 0.8  # Share of the moments' squared mu for the first query, if noise is large.
_WIDE = 0.6  # Least tau sqrt(d) at which funnels help (tau of `clipped_gaussian`; docs/defaults).
_NO_TELLING = 1e3  # Standard deviation, almost infinite, of a diagonal that was not queried.


@dataclass(frozen=True)
class Funnel(OfDirections):
    """Two adaptive Gaussian steps, and a third if feature sizes have a share of the budget.

    The third step is a noisy mean of |u_j| over rows of length one. Noise is loud if not even k + 4
    dimensions fit under the guess. Then the first second moment comes before this step. If its
    diagonal shows that sizes differ, the step queries sizes, and entries are shrunk to them before
    components are taken (shrink). Otherwise the step repeats the query of the second moment
    (plain). With less noise, sizes are queried first, and only the features worth their noise are
    used (screen), or all if sizes are alike. The choice uses no budget, because it depends on
    earlier releases only.

    Notes
    -----
    **Sensitivity.** A row enters the query for sizes as |u|, of length at most one and without a
    negative entry. So ||u| - |v||^2 = |u|^2 + |v|^2 - 2 |u|'|v| <= 2: one row moves the mean by at
    most sqrt(2)/n (replace), or 1/n (zero-out). All second moments are of rows restricted to some
    features, or to a basis, and scaled to length one again. The features and the basis depend on
    earlier releases alone. So one row moves each moment by (zz' - ww')/n, at most sqrt(2)/n or 1/n
    in Frobenius norm, and the noise of each is a GOE.

    **Account.** Adaptive composition of Gaussian mechanisms is exact: mu^2 is the sum of the mu^2
    of the steps (Dong, Roth and Su 2022). This holds for adaptive queries, as each has the
    sensitivity above for every answer of the earlier ones. The order of the steps and the mu of
    each are public. The query of a step and its number of dimensions depend on such answers. A GOE
    cut to its first rows and columns is a GOE, and is sampled beforehand. Two queries of the same
    moment with noise of std a and b are averaged by their noise: one GOE with 1/std^2 = 1/a^2 +
    1/b^2, which the code samples.

    **The share for sizes** follows public numbers alone. The share is used in full, or not at all
    if the second query has half of the dimensions: the first query's diagonal then shows sizes well
    enough.
    """

    sizes: float = number(
        0.0, 0.0, 0.5, label="Share for sizes", examples=(0.25,),
        help="Share of the budget (its squared mu) that measures feature sizes: the mean of |u_j| "
        "over rows of length one. Measured sizes help raw tables at a small epsilon. If noise is "
        "large, the share is used only if it may help. With 0, sizes are not measured.",
    )  # fmt: skip

    info = MechanismInfo(
        label="Funnel",
        summary="Keeps features worth their noise, looks at them, and again inside what it found.",
        paper="dpviz, after Locantore et al. 1999",
        family="gaussian",
        release="subspace",
        guarantee="approximate",
        order=36,
        needs_rows=True,
        passes=2,
        redraws=True,
        law=r"M_1 = \frac1n \sum_i u_i u_i' + G_1,\ B = \mathrm{top}_m(M_1),\quad"
        r" M_2 = \frac1n \sum_i z_i z_i' + G_2,\ z = B'u/|B'u|",
        calibration=r"\mu_0^2 + \mu_1^2 + \mu_2^2 = \mu(\varepsilon, \delta)^2",
        complexity="n d m + d^3",
        advice="The default with a delta if noise is large in many features.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the scales of the first query, the second and sizes, and the dimensions.

        ``loud`` is 1 if not even k + 4 dimensions fit under the guess, else 0. ``plain_std`` is the
        noise of the second query if it also uses the step for sizes.
        """
        reach = frobenius(on_the_sphere(problem))
        whole = reach * noise_std(budget) * (1 + 1e-14)  # The factor rounds to the safe side.
        fitting = _fitting(math.sqrt(2) * whole)
        loud, low = fitting < problem.k + 4, fitting >= problem.d / 2
        share = 0.0 if low else self.sizes
        # The query of sizes gets its share of mu^2. Both second moments divide the rest.
        first = (1 - share) * (_FIRST if loud and share > 0 else 0.5)
        scale, second = (whole / math.sqrt(part) for part in (first, 1 - share - first))
        plain = whole / math.sqrt(1 - first) if loud else second
        stds = [scale, second]
        values = {"loud": float(loud), "second_std": second, "plain_std": plain}
        values["dimensions"] = float(dimensions(problem.d, problem.k, _fitting(plain)))
        if share > 0:
            values["sizes_std"] = whole / math.sqrt(share)
            stds.insert(int(loud), values["sizes_std"])
        # Only the subspace is released, so the accounted loss is not attained.
        parts = tuple(GaussianPart(reach, std, attained=False) for std in stds)
        return Calibration(problem, budget, scale, parts, values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the components from both queries together."""
        problem, scale, values = calibration.problem, calibration.scale, calibration.values
        first = goe(draws, problem.d)
        first *= scale
        whole = data.shortened(None).A
        if self.sizes == 0:
            first += whole
            second = goe(draws, int(values["dimensions"]))
            second *= scale
            frames = looked_again(data, first, second, (scale, scale), problem.k)
            return Release(raw=first, components=fix_signs(frames))
        second = goe(draws, problem.d if values["loud"] else int(values["dimensions"]))
        roots: FloatArray | None = None
        if "sizes_std" in values:
            sums = sum(np.abs(u).sum(axis=0) for _, u in data.blocks(unit_rows))
            roots = sums / data.n + values["sizes_std"] * draws.normal(problem.d)
        seen = [None] * draws.size if roots is None else [*roots]
        kept = [self.kept(each, calibration) for each in seen]
        # One pass over the rows serves all repetitions, each with its own selected features.
        cut = iter(moments_inside(data, [each for each in kept if len(each) < problem.d]))
        ones = []
        for features, noise in zip(kept, first, strict=True):
            among = np.ix_(features, features)
            one = whole if len(features) == problem.d else next(cut)[0]
            ones.append(one + noise[among])
            noise[:] = 0  # Of the first query, only the selected features are released.
            noise[among] = ones[-1]
        given = zip(kept, ones, second, seen, strict=True)
        draws_of = [self._second(calibration, *each) for each in given]
        looks = moments_inside(data, [next(draw) for draw in draws_of])
        frames = np.stack([draw.send(look) for draw, look in zip(draws_of, looks, strict=True)])
        return Release(raw=first, components=fix_signs(frames))

    @property
    def passes(self) -> int:
        """Two more arrays if sizes are requested: the sizes, and the features kept."""
        return 4 if self.sizes > 0 else 2

    def kept(self, roots: FloatArray | None, calibration: Calibration) -> IntArray:
        """Return the features worth their noise by their noisy mean of |u_j|, in ascending order.

        All features, if sizes were not queried, if noise leaves nothing to screen, or if sizes are
        alike.
        """
        problem, values = calibration.problem, calibration.values
        everything = np.arange(problem.d)
        if roots is None or values["loud"]:
            return everything
        unknown = np.full((1, problem.d), 1 / problem.d)
        look = roots[None], values["sizes_std"]
        sizes = feature_sizes(unknown, _NO_TELLING, np.ones(1), look)[0]
        if _spread(sizes) < _UNEQUAL:
            return everything
        order = np.lexsort((-roots, -sizes))
        least = min(max(problem.k + 4, math.ceil(problem.d * _LEAST_KEPT)), problem.d)
        counts = np.arange(least, problem.d + 1)
        edges = np.sqrt(2 * counts) * values["second_std"]
        worth = np.cumsum(sizes[order])[counts - 1] / (1 + (edges / GUESS) ** 2)
        return np.sort(order[: counts[np.argmax(worth)]])

    def _second(
        self,
        calibration: Calibration,
        kept: IntArray,
        one: FloatArray,
        noise: FloatArray,
        roots: FloatArray | None,
    ) -> Generator[FloatArray, FloatArray]:
        """Yield a repetition's basis, receive the rows' moment in it, and yield components.

        Parameters
        ----------
        calibration : Calibration
        kept : ndarray of shape (m,)
        one : ndarray of shape (m, m)
            The first query's moment, restricted to the kept features.
        noise : ndarray
            Noise of the second query, at unit scale, in the largest dimension it may need.
        roots : ndarray of shape (d,) or None
        """
        scale, values, k = calibration.scale, calibration.values, calibration.problem.k
        d, m, loud = calibration.problem.d, len(kept), bool(values["loud"])
        asked = None if loud or roots is None else (roots[None, kept], values["sizes_std"])

        def sizes_of(matrix: FloatArray, std: float) -> FloatArray:
            noisy = np.diagonal(matrix) - (np.trace(matrix) - 1) / m
            found: FloatArray = feature_sizes(noisy[None], std, np.ones(1), asked)[0]
            return np.asarray(found / found.sum())

        sizes = sizes_of(one, scale)
        # If the noise's largest eigenvalue is above the trace, a plain query would recover little.
        hopeless = math.sqrt(d) * scale >= 1
        shrinks = _spread(sizes) >= (_HINT if hopeless else _UNEQUAL)
        second = values["second_std" if shrinks else "plain_std"]
        if shrinks and loud and roots is not None:
            asked = roots[None], values["sizes_std"]
            sizes = sizes_of(one, scale)
            shrinks = _spread(sizes) >= _CONFIRMED
        size = m if shrinks and loud else min(dimensions(m, k, _fitting(second)), m)
        seen = top(shrunk(one, scale, sizes, _STRENGTH) if shrinks else one, size)
        base = np.zeros((1, d, size))
        base[0, kept] = seen
        carried = (seen.T @ one @ seen)[None]
        # One pass over the rows serves all repetitions, so each repetition waits here for the pass.
        inside = yield base
        look = inside + second * noise[None, :size, :size]
        both, variance = averaged(carried, look, (scale, second))
        if not shrinks:
            yield base[0] @ top(both[0], k)
            return
        std = math.sqrt(variance[0])
        matrix = seen @ both[0] @ seen.T
        if size == m:  # Both second moments then contain the whole diagonal.
            sizes = sizes_of(matrix, std)
        yield np.eye(d)[:, kept] @ top(shrunk(matrix, std, sizes, _STRENGTH), k)

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 3.5, above clipping, if noise is large in many features."""
        tau = frobenius(on_the_sphere(problem)) * math.sqrt(problem.d) * noise_std(budget)
        return 3.5 if tau * math.sqrt(problem.d) > _WIDE else None

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        looks = (
            "Each look is a second moment of rows of length one in a basis that was released "
            "before, so one person moves it by a known amount; Gaussian steps add in squared mu, "
            "exactly."
        )
        std = self.calibrate(problem, budget).values.get("sizes_std")
        if std is None:
            return looks
        return f"One step may ask for sizes of features, with noise of {numeral(std, 3)}. {looks}"


def _fitting(scale: float) -> float:
    """Return the number of dimensions whose GOE has its edge, sqrt(2 m) scale, at `GUESS`."""
    return 0.5 * (GUESS / scale) ** 2


def _spread(sizes: FloatArray) -> float:
    """Return the standard deviation of sizes over their mean."""
    return float(sizes.std() / sizes.mean())
