"""Spherical PCA twice: on all features or those worth it, then inside what the first look found."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import frobenius
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.by_length import InBlocks
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

# Chosen on digits, wine and breast_cancer alone, raw and standardised, at epsilon .1.
_UNEQUAL = 0.4  # spread of sizes, over their mean, above which features differ
_HINT = 0.08  # the same where the edge of the noise is above the trace
_LEAST_KEPT = 1 / 3  # of all features
_STRENGTH = 0.1  # how much of s_i s_j an entry's square is taken to be
_LOUD_SHARE = 1 / 4  # of the share for sizes, where noise leaves little to screen
_WIDE = 0.6  # tau sqrt(d), tau of `clipped_gaussian`, above which two looks pay; docs/defaults.md
_NO_TELLING = 1e3  # standard deviation of a diagonal that was not looked at yet


@dataclass(frozen=True)
class Funnel(OfDirections):
    """Two adaptive Gaussian steps, and where a share is given for sizes one before them.

    That one is a noisy mean of |u_j| over rows of length one. Where sizes differ by it, the
    features worth their noise are kept (screen); the first second moment is taken of them, and its
    diagonal, with the mean, says again whether sizes differ: then entries are shrunk to them before
    components are taken (shrink). Else nothing is done but look twice (plain). Choosing costs
    nothing: it sees what was released alone. On standardised features the share is lost.

    Notes
    -----
    **Sensitivity.** A row enters the look as |u|, of length at most one and without a negative
    entry, so that ||u| - |v||^2 = |u|^2 + |v|^2 - 2 |u|'|v| <= 2: one row moves the mean by at most
    sqrt(2)/n (replace), or 1/n (zero-out). Both second moments are of rows cut to kept features,
    or seen inside a basis, and brought to length one again; which, depends on what was released
    before alone. So one row moves each by (zz' - ww')/n, at most sqrt(2)/n or 1/n in Frobenius
    norm, and the noise of each is a GOE.

    **Account.** Adaptive composition of Gaussian mechanisms is exact: mu^2 is the sum of the mu^2
    of the steps (Dong, Roth and Su 2022), whatever later steps ask, as each has the sensitivity
    above for every answer of the earlier ones. How many dimensions a step has is such an answer: a
    GOE cut to its first rows and columns is a GOE, and is drawn beforehand.

    **What is spent on sizes** follows public numbers alone. All of the share is where the second
    look has between k + 4 and half of the dimensions; a quarter is where noise is so loud that
    even k + 4 do not fit under the guess; none where it is so low that the first look's diagonal
    tells sizes well enough. Where features differ and noise is loud, both looks are at all of them.
    """

    sizes: float = number(
        0.0,
        0.0,
        0.5,
        label="Share for sizes",
        help="Share of squared mu for a look at feature sizes: the mean of |u_j| over rows of "
        "length one. It helps raw tables at a small epsilon, and is used only if it may help. 0 "
        "looks twice and does nothing else.",
        examples=(0.25,),
    )

    info = MechanismInfo(
        label="Funnel",
        summary="Keeps features worth their noise, looks at them, and again inside what it found.",
        paper="dpviz, after Locantore et al. 1999",
        family="gaussian",
        release="subspace",
        guarantee="approximate",
        order=36,
        needs_rows=True,
        redraws=True,
        law=r"M_1 = \frac1n \sum_i u_i u_i' + G_1,\ B = \mathrm{top}_m(M_1),\quad"
        r" M_2 = \frac1n \sum_i z_i z_i' + G_2,\ z = B'u/|B'u|",
        calibration=r"\mu_0^2 + \mu_1^2 + \mu_2^2 = \mu(\varepsilon, \delta)^2",
        complexity="n d m + d^3",
        advice="The default with a delta where noise is large in many features: two looks.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the scale of both looks, how many dimensions the second has, and what sizes get.

        ``loud`` is 1 where not even k + 4 dimensions fit under the guess, else 0.
        """
        reach = frobenius(on_the_sphere(problem))
        whole = reach * noise_std(budget) * (1 + 1e-14)  # roundings to the safe side
        fitting = _fitting(math.sqrt(2) * whole)
        loud, low = fitting < problem.k + 4, fitting >= problem.d / 2
        share = self.sizes * (_LOUD_SHARE if loud else 0.0 if low else 1.0)
        # mu^2 is shared: sizes have their share of it, and each look half of the rest
        scale = whole * math.sqrt(2 / (1 - share))
        part = GaussianPart(reach, scale, attained=False)  # the subspace alone is released
        parts: tuple[GaussianPart, ...] = (part, part)
        values = {
            "dimensions": float(dimensions(problem.d, problem.k, _fitting(scale))),
            "loud": float(loud),
        }
        if share > 0:
            values["sizes_std"] = whole / math.sqrt(share)
            parts = (GaussianPart(reach, values["sizes_std"], attained=False), *parts)
        return Calibration(problem, budget, scale, parts, values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the components of both looks together."""
        assert data.rows is not None
        problem, scale, values = calibration.problem, calibration.scale, calibration.values
        first = goe(draws, problem.d)
        first *= scale
        whole = data.shortened(None).A
        if self.sizes == 0:
            first += whole
            second = goe(draws, int(values["dimensions"]))
            second *= scale
            frames = looked_again(data.rows, first, second, (scale, scale), problem.k)
            return Release(raw=first, components=fix_signs(frames))
        second = goe(draws, problem.d if values["loud"] else int(values["dimensions"]))
        second *= scale
        roots: FloatArray | None = None
        if "sizes_std" in values:
            sums = sum(np.abs(u).sum(axis=0) for _, u in InBlocks(data.rows, unit_rows).blocks())
            roots = sums / len(data.rows) + values["sizes_std"] * draws.normal(problem.d)
        frames = np.zeros((draws.size, problem.d, problem.k))
        for i, noise in enumerate(first):
            seen = None if roots is None else roots[i]
            kept = self.kept(seen, calibration)
            some = len(kept) < problem.d
            one = moments_inside(data.rows, np.eye(problem.d)[None, :, kept])[0] if some else whole
            one = one + noise[np.ix_(kept, kept)]
            frames[i] = self._second(data.rows, calibration, kept, one, second[i], seen)
            noise[:] = 0  # what is released of the first look: the kept features' moment
            noise[np.ix_(kept, kept)] = one
        return Release(raw=first, components=fix_signs(frames))

    def kept(self, roots: FloatArray | None, calibration: Calibration) -> IntArray:
        """Return which features are worth their noise by their noisy mean of |u_j|, ascending.

        All, where nothing was asked, where noise leaves nothing to screen, or where sizes are
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
        edges = np.sqrt(2 * counts) * calibration.scale
        worth = np.cumsum(sizes[order])[counts - 1] / (1 + (edges / GUESS) ** 2)
        return np.sort(order[: counts[np.argmax(worth)]])

    def _second(
        self,
        rows: FloatArray,
        calibration: Calibration,
        kept: IntArray,
        one: FloatArray,
        noise: FloatArray,
        roots: FloatArray | None,
    ) -> FloatArray:
        """Return a draw's components after the second look, shape (d, k).

        Parameters
        ----------
        rows : ndarray of shape (n, d)
        calibration : Calibration
        kept : ndarray of shape (m,)
        one : ndarray of shape (m, m)
            The first look, at kept features.
        noise : ndarray
            Of the second look, in as many dimensions as it may have.
        roots : ndarray of shape (d,) or None
        """
        scale, values, k = calibration.scale, calibration.values, calibration.problem.k
        d, m, loud = calibration.problem.d, len(kept), bool(values["loud"])

        def sizes_of(matrix: FloatArray, std: float) -> FloatArray:
            noisy = np.diagonal(matrix) - (np.trace(matrix) - 1) / m
            look = None if roots is None else (roots[None, kept], values["sizes_std"])
            found = feature_sizes(noisy[None], std, np.ones(1), look)[0]
            shares: FloatArray = found / found.sum()
            return shares

        sizes = sizes_of(one, scale)
        # where the edge of all noise together passes the trace, a plain look has little to lose
        hopeless = math.sqrt(d) * scale >= 1
        shrinks = _spread(sizes) >= (_HINT if hopeless else _UNEQUAL)
        size = m if shrinks and loud else min(dimensions(m, k, _fitting(scale)), m)
        seen = top(shrunk(one, scale, sizes, _STRENGTH) if shrinks else one, size)
        base = np.zeros((1, d, size))
        base[0, kept] = seen
        carried = (seen.T @ one @ seen)[None]
        both, variance = averaged(rows, base, carried, noise[None, :size, :size], (scale, scale))
        if not shrinks:
            components: FloatArray = base[0] @ top(both[0], k)
            return components
        std = math.sqrt(variance[0])
        matrix = seen @ both[0] @ seen.T
        if size == m:  # both looks have this diagonal
            sizes = sizes_of(matrix, std)
        frame = np.zeros((d, k))
        frame[kept] = top(shrunk(matrix, std, sizes, _STRENGTH), k)
        return frame

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 3.5, above clipping, where noise is large in many features."""
        tau = frobenius(on_the_sphere(problem)) * math.sqrt(problem.d) * noise_std(budget)
        return 3.5 if tau * math.sqrt(problem.d) > _WIDE else None

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        looks = (
            "Each look is a second moment of rows of length one in a basis that was released "
            "before, so one person moves it by a known amount; Gaussian steps add in squared mu, "
            "exactly."
        )
        std = self.calibrate(problem, budget).values.get("sizes_std")
        if std is None:
            return looks
        return f"Sizes of features are asked first, with noise of {numeral(std, 3)}. {looks}"


def _fitting(scale: float) -> float:
    """Return the dimensions whose GOE has its edge, sqrt(2 m) scale, at the guess."""
    return 0.5 * (GUESS / scale) ** 2


def _spread(sizes: FloatArray) -> float:
    """Return the standard deviation of sizes over their mean."""
    return float(sizes.std() / sizes.mean())
