"""Oja's method on batches of rows: one pass, or private stochastic gradient steps.

The private steps have an account of their own: the subsampled Gaussian mechanism, by Renyi orders.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import gammaln

from dpviz.accounting import accounting
from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.profiles import RowProfile
from dpviz.accounting.sensitivity import projected_frobenius
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import choice, integer
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, paper

ORDERS = (
    *range(2, 21), 22, 24, 27, 30, 34, 38, 43, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512, 768,
    1024, 2048, 4096,
)  # fmt: skip
"""The orders tried; the largest bounds how small an epsilon can be shown."""

_NEAR = 1 << 15  # numbers at once: what the processor keeps near
_ROUNDING = 1e-12  # room for the roundings of sums over thousands of terms


@dataclass(frozen=True)
class SubsampledGaussian(RowProfile):
    """Bound on the profile of a row against the zero row, by the orders above.

    Attributes
    ----------
    rate, multiplier : float
        q in (0, 1], z above 0.
    steps : int
        T, at least 1.

    Notes
    -----
    Each of T steps takes every row with probability q, independently, sums a query of sensitivity 1
    over the rows taken and adds N(0, z^2) noise. A row against the zero row changes one step from
    N(0, z^2) to (1 - q) N(0, z^2) + q N(1, z^2) in the worst case, so this is the account for
    zero-out neighbours. For whole orders a > 1 the Renyi divergence of that pair is at most

        1/(a - 1) ln sum_k C(a, k) (1 - q)^(a - k) q^k exp((k^2 - k)/(2 z^2))

    in both directions (Mironov, Talwar and Zhang 2019, section 3.3). Steps add, and for every order

        epsilon <= T rdp(a) + ln((a - 1)/a) - (ln delta + ln a)/(a - 1)

    (Canonne, Kamath and Steinke 2020, Proposition 12). The tests set it beside dp-accounting.

    The conversion of one order, read for delta, and the least of all of them. No event's chance
    differs by more than T q (2 Phi(1/(2 z)) - 1), which steps add up to and is less at small
    epsilon. Both orders of the neighbours have this bound.
    """

    rate: float
    multiplier: float
    steps: int

    def with_row(self, epsilon: FloatArray) -> FloatArray:
        """Return the least delta that any order allows."""
        orders = np.asarray(ORDERS, dtype=np.float64)
        total = self.steps * _renyi_orders(self.rate, self.multiplier) * (1 + _ROUNDING)
        slack = total + _ROUNDING + np.log1p(-1 / orders)
        logs = (orders - 1) * (slack - np.asarray(epsilon)[..., None]) - np.log(orders)
        apart = self.steps * self.rate * math.erf(1 / (self.multiplier * math.sqrt(8)))
        least: FloatArray = np.exp(np.minimum(logs.min(axis=-1), 0.0)) * (1 + _ROUNDING)
        return np.minimum(least, min(1.0, apart * (1 + _ROUNDING)))

    def without_row(self, epsilon: FloatArray) -> FloatArray:
        """Return the same bound."""
        return self.with_row(epsilon)

    def replaced(self, epsilon: FloatArray) -> FloatArray:
        """Refuse: a replaced row is two such rows, which no step was proved for."""
        raise NotImplementedError("subsampled steps are accounted for under zero-out only")

    def epsilon(self, relation: Relation, delta: float) -> float:
        """Return the epsilon spent at delta, rounded up."""
        return epsilon_of_steps(delta, self.rate, self.multiplier, self.steps)

    def repeated(self, releases: int) -> SubsampledGaussian:
        """Return the profile of as many times the steps."""
        return replace(self, steps=self.steps * releases)

    def renyi(self, order: float) -> float:
        """Return the divergence at the next whole order: it never falls with the order."""
        return self.steps * renyi(math.ceil(order), self.rate, self.multiplier) * (1 + _ROUNDING)


@lru_cache(maxsize=64)
def _renyi_orders(rate: float, multiplier: float) -> FloatArray:
    divergences: FloatArray = np.array([renyi(order, rate, multiplier) for order in ORDERS])
    divergences.setflags(write=False)
    return divergences


@lru_cache(maxsize=64)
def _binomials(order: int) -> FloatArray:
    k = np.arange(order + 1)
    logs: FloatArray = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs.setflags(write=False)
    return logs


def renyi(order: int, rate: float, multiplier: float) -> float:
    """Return the bound on the Renyi divergence of one step, of a whole order from 2 on.

    Parameters
    ----------
    order : int
    rate : float
        q, in (0, 1].
    multiplier : float
        z, the noise std over the sensitivity, above 0.
    """
    # every row in every step: the Gaussian's own divergence
    if rate == 1:
        return order / (2 * multiplier**2)
    k = np.arange(order + 1)
    # in logarithms: at orders in the thousands the terms themselves overflow
    terms = _binomials(order) + (order - k) * math.log1p(-rate) + k * math.log(rate)
    terms = terms + k * (k - 1.0) / (2 * multiplier**2)
    top = float(terms.max())
    return max(0.0, top + math.log(float(np.exp(terms - top).sum()))) / (order - 1)


def epsilon_of_steps(delta: float, rate: float, multiplier: float, steps: int) -> float:
    """Return an upper bound of the epsilon spent at delta by so many steps.

    Parameters
    ----------
    delta : float
        Above 0.
    rate, multiplier : float
    steps : int
    """
    best = math.inf
    for order, one in zip(ORDERS, _renyi_orders(rate, multiplier), strict=True):
        total = steps * float(one) * (1 + _ROUNDING) + _ROUNDING
        # Proposition 12 at this order; each is a bound, so the least of them is
        bound = total + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, bound)
    return max(0.0, best)


@lru_cache(maxsize=512)
def least_multiplier(budget: Budget, rate: float, steps: int) -> float:
    """Return the least z found with which the steps meet the budget, rounded up.

    Raises
    ------
    InvalidSetting
        If the epsilon is below what these orders can show at this delta.
    """
    if budget.epsilon <= least_epsilon(budget.delta):
        raise InvalidSetting(
            "epsilon",
            f"above {numeral(least_epsilon(budget.delta))} here",
            budget.epsilon,
            "--epsilon",
        )

    def over(log_multiplier: float) -> float:
        spent = epsilon_of_steps(budget.delta, rate, math.exp(log_multiplier), steps)
        return math.log(max(spent, 1e-300) / budget.epsilon)

    # ln z: epsilon falls with z, and a bracket is found a factor e at a time
    low = high = 0.0
    while over(high) > 0:
        high += 1.0
    while over(low) <= 0:
        low -= 1.0
    log_z = (
        float(scipy.optimize.brentq(over, low, high, xtol=1e-13, rtol=1e-13))
        if low < high
        else high
    )
    while over(log_z) > 0:
        log_z += 1e-12
    return math.exp(log_z)


def least_epsilon(delta: float) -> float:
    """Return the epsilon that no noise, however large, brings the account below."""
    bounds: list[float] = [
        _ROUNDING + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in ORDERS
    ]
    return max(0.0, min(bounds))


_MOST_STEPS = 200
_LEAST_BATCH = 8
_AIM = 0.015  # noise of a step, in squared row-norm bounds, that the automatic steps allow
_MOST_RATE = 100.0
_DECAY = 3.0  # so that late steps average the noise of early ones


@dataclass(frozen=True)
class Oja(Mechanism):
    """W <- qr(W + eta (B'B W/b + G)), B a batch of b rows, for a fixed number of steps.

    Source
    ------
    Liu, Kong, Jain and Oh 2022, "DP-PCA: statistically optimal and differentially private PCA",
    their private Oja's method (k = 1). The constants of its privacy amplification by shuffling and
    of the private range estimation of DP-PCA proper were not to be had from text in reach, so this
    is our own version with an exact account; k > 1 keeps a frame in place of a vector.

    Notes
    -----
    A row's gradient x x'W has Frobenius norm at most R^2 for every frame W, so nothing is clipped,
    and replacing a row moves the mean over a batch by min(sqrt k, sqrt 2) R^2/b, zeroing one by
    R^2/b (`projected_frobenius`).

    One pass. The rows are dealt to T batches at random, without looking at them, and each is used
    once. Whatever the deal, neighbours differ in a single batch, and the steps before and after it
    are functions of what was released and of rows both tables share: T steps cost what one does.

    Private SGD. Each of T steps takes every row with probability 1/T and divides by n/T. Under
    zero-out this is T subsampled Gaussian steps (`SubsampledGaussian`); noise then grows
    with sqrt(T) where one pass pays T. Under replace the account is not ours to give.

    All frames count as released, though only the last is. The rate eta starts at 1 over the noise's
    length, sigma sqrt(d), at most 100/R^2, and falls to a quarter: it needs nothing of the data.
    """

    sampling: str = choice(
        "pass",
        {"pass": "one pass, every row once", "poisson": "private SGD, rows drawn at random"},
        label="Sampling",
        help="How each step gets its rows.",
        examples=("poisson",),
    )
    steps: int | None = integer(
        None,
        1,
        1_000,
        label="Steps",
        help="Batches; more converge further, and each adds noise.",
        optional=True,
        slider=(1, 50),
        examples=(3,),
    )

    info = MechanismInfo(
        label="Oja",
        summary="Learns directions from one batch of rows after the other, with noise on each.",
        paper="Liu, Kong, Jain and Oh 2022, private Oja (exact account by dpviz)",
        references=(
            paper(
                "Liu2022",
                "Liu, Xiyang and Kong, Weihao and Jain, Prateek and Oh, Sewoong",
                "DP-PCA: Statistically Optimal and Differentially Private PCA",
                "Advances in Neural Information Processing Systems 35",
                2022,
                eprint="2205.13709",
            ),
        ),
        url="https://arxiv.org/abs/2205.13709",
        family="iterative",
        release="subspace",
        guarantee="approximate",
        order=29,
        needs_rows=True,
        redraws=True,
        law=r"W_t = \mathrm{qr}\left(W_{t-1} + \eta\,(B_t' B_t W_{t-1}/b + G_t)\right),\quad"
        r" G_t \sim N(0, \sigma^2)\ \text{i.i.d.}",
        calibration=r"\sigma = T D\, g(\varepsilon, \delta),\quad D = \min(\sqrt k, \sqrt 2) R^2/n"
        r"\ (\text{replace}),\ R^2/n\ (\text{zero-out})",
        complexity="n d k",
        advice="For streams and d too large for a matrix; on the built-in tables gaussian does "
        "better. The paper's constants for amplification by shuffling and for its private range "
        "were not to be had: the account is our own, exact.",
    )

    def length(self, problem: Problem, budget: Budget) -> int:
        """Return T, the number of steps: more where their noise stays small."""
        if self.steps is not None:
            return self.steps
        # length of the noise in a column, of a step over all rows
        each = self._unit(problem, budget) * math.sqrt(problem.d)
        most = max(1, min(_MOST_STEPS, problem.n // _LEAST_BATCH))
        # in one pass noise grows with T, in private SGD with its root
        ratio = _AIM * problem.domain.radius**2 / each
        wanted = ratio if self.sampling == "pass" else min(ratio, 1e6) ** 2
        return max(1, min(most, max(3, round(min(wanted, 1e6)))))

    def _unit(self, problem: Problem, budget: Budget) -> float:
        """Return the std of one step over all rows."""
        return projected_frobenius(problem, problem.k) * noise_std(budget)

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return why private SGD or so many steps cannot be accounted for, if so."""
        if self.steps is not None and self.steps > problem.n:
            return f"its steps must be at most n = {problem.n:,}; got {self.steps}"
        if self.sampling != "poisson":
            return None
        if problem.relation is not Relation.ZERO_OUT:
            return "its account by subsampling is proved under zero-out only; got replace"
        least = least_epsilon(budget.delta)
        if budget.epsilon <= least:
            return f"its Renyi account needs epsilon above {numeral(least)} at this delta"
        return None

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the std of one step over all rows, and the std of the steps taken."""
        steps = self.length(problem, budget)
        scale = self._unit(problem, budget) * (1 + 1e-15)
        values = {"steps": float(steps)}
        if self.sampling == "poisson":
            # each of T steps takes a row with probability 1/T and divides by n/T
            multiplier = least_multiplier(budget, 1 / steps, steps)
            reach = projected_frobenius(problem, problem.k) * steps
            values |= {"multiplier": multiplier, "step_std": multiplier * reach}
            return Calibration(problem, budget, scale, (), values)
        # the last frame alone is released
        part = GaussianPart(projected_frobenius(problem, problem.k), scale, attained=False)
        values["step_std"] = steps * scale
        return Calibration(problem, budget, scale, (part,), values)

    def row_profile(self, problem: Problem, budget: Budget) -> SubsampledGaussian | None:
        """Return the profile of private SGD; one pass is a Gaussian part."""
        if self.sampling != "poisson":
            return None
        values = self.calibrate(problem, budget).values
        steps = int(values["steps"])
        return SubsampledGaussian(1 / steps, values["multiplier"], steps)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return a bound that counts every frame as released, though only the last is."""
        profile = self.row_profile(problem, budget)
        if profile is not None:
            source = f"Renyi account of {profile.steps} subsampled Gaussian steps"
            account = profile.spent(problem, budget, source)
            return dataclasses.replace(account, exact=False)
        bound = accounting.spent(self.calibrate(problem, budget).parts, budget)
        source = f"{bound.source} of the one batch a row is in"
        return dataclasses.replace(bound, source=source)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the last frame of each draw, its columns in order of growth."""
        assert data.rows is not None
        problem, singles = calibration.problem, draws.single()
        steps = int(calibration.values["steps"])
        # of few rows many draws go their steps at once; the bytes of a draw do not depend on it
        numbers = problem.d * max(-(-problem.n // steps), steps * problem.k)
        each = max(1, _NEAR // numbers)
        starts = range(0, len(singles), each)
        frames = [self._walked(data.rows, calibration, singles[at : at + each]) for at in starts]
        stacked = np.concatenate(frames)
        return Release(raw=stacked, components=fix_signs(stacked))

    def _walked(
        self, rows: FloatArray, calibration: Calibration, singles: list[Draws]
    ) -> FloatArray:
        """Return the last frames of a few draws, shape (size, d, k)."""
        problem, values = calibration.problem, calibration.values
        steps, n, d = int(values["steps"]), problem.n, problem.d
        drawn = [self._drawn(problem, steps, single) for single in singles]
        frame = np.linalg.qr(np.stack([start for start, _, _ in drawn])).Q
        moved = frame
        rate = min(1 / (values["step_std"] * math.sqrt(d)), _MOST_RATE / problem.domain.radius**2)
        for step in range(steps):
            check_cancelled()
            batches = [dealt[step] for _, dealt, _ in drawn]
            # no clipping: ||x x'W||_F is at most R^2 for every frame
            if self.sampling == "pass":
                taken = rows[np.stack(batches)]
                size = float(taken.shape[1])
                # the last batches are one row shorter than n/T rounded up
                std = values["step_std"] * n / (steps * size)
                gradient = taken.transpose(0, 2, 1) @ (taken @ frame)
            else:
                size, std = n / steps, values["step_std"]
                each = zip((rows[batch] for batch in batches), frame, strict=True)
                gradient = np.stack([taken.T @ (taken @ one) for taken, one in each])
            gradient /= size
            gradient += std * np.stack([noise[step] for _, _, noise in drawn])
            moved = frame + rate / (1 + _DECAY * step / steps) * gradient
            frame = np.linalg.qr(moved).Q
        last: FloatArray = np.linalg.svd(moved, full_matrices=False).U
        return last

    def _drawn(
        self, problem: Problem, steps: int, draws: Draws
    ) -> tuple[FloatArray, list[NDArray[np.intp]], list[FloatArray]]:
        """Return what one draw needs: a start, and the rows and the noise of each step."""
        n, d, k = problem.n, problem.d, problem.k
        start = draws.normal(d, k)[0]
        if self.sampling == "pass":
            # a random deal that looks at no row: neighbours then differ in one batch alone
            order, (each, longer) = np.argsort(draws.uniform(n)[0]), divmod(n, steps)
            # as np.array_split, which takes longer than all the rest
            ends = [part * each + min(part, longer) for part in range(steps + 1)]
            dealt = [order[low:high] for low, high in pairwise(ends)]
            return start, dealt, list(draws.normal(steps, d, k)[0])
        batches, noise = [], []
        for _ in range(steps):
            batches.append(np.flatnonzero(draws.uniform(n)[0] < 1 / steps))
            noise.append(draws.normal(d, k)[0])
        return start, batches, noise

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the account rests on."""
        steps = self.length(problem, budget)
        if self.sampling == "poisson":
            return (
                f"Its {steps} subsampled Gaussian steps are accounted by Renyi orders, an upper "
                "bound that other code confirms."
            )
        return (
            f"Every row is in one of {steps} batches dealt without looking, so the noisy steps "
            "cost what a single one does, exactly."
        )
