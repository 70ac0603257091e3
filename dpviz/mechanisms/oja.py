"""Oja's method on batches of rows: one pass, or private stochastic gradient steps.

The private steps are accounted for as a subsampled Gaussian mechanism, by Renyi orders.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
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
"""The Renyi orders that are tried; the largest order limits how small an epsilon is provable."""

_NEAR, _MOMENTS = 1 << 15, 1 << 24  # Limits on row entries, and on moment entries, in memory.
_Batches = list[NDArray[np.intp]]
_Deal = Callable[[], Callable[[int], _Batches]]  # Splits the next rows into the steps' batches.
_ROUNDING = 1e-12  # Each sum has thousands of terms, so allow for its rounding errors.


@dataclass(frozen=True)
class SubsampledGaussian(RowProfile):
    """Bound on the profile of a row against the zero row, by `ORDERS`.

    Attributes
    ----------
    rate, multiplier : float
        q in (0, 1], z above 0.
    steps : int
        T, the number of steps, at least 1.

    Notes
    -----
    Each of T steps takes every row with probability q, independently. The step sums a query of
    sensitivity 1 over the rows taken and adds N(0, z^2) noise. A row against the zero row changes
    one step from N(0, z^2) to (1 - q) N(0, z^2) + q N(1, z^2) in the worst case, so the bound is
    for zero-out neighbours. For whole orders a > 1 the Renyi divergence of this pair is at most

        1/(a - 1) ln sum_k C(a, k) (1 - q)^(a - k) q^k exp((k^2 - k)/(2 z^2))

    in both directions (Mironov, Talwar and Zhang 2019, section 3.3). Steps add, and for every order

        epsilon <= T rdp(a) + ln((a - 1)/a) - (ln delta + ln a)/(a - 1)

    (Canonne, Kamath and Steinke 2020, Proposition 12). Tests compare it with dp-accounting.

    `with_row` solves this conversion for delta and takes the least delta over all orders. No
    event's probability differs by more than T q (2 Phi(1/(2 z)) - 1), the sum over all steps, a
    smaller bound at small epsilon. Both orders of the neighbours have this bound.
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
        """Return the bound of `with_row`, which holds for both orders of the neighbours."""
        return self.with_row(epsilon)

    def replaced(self, epsilon: FloatArray) -> FloatArray:
        """Raise an error, because the bound is not proved for replaced rows."""
        raise NotImplementedError("subsampled steps are proved for zero-out neighbours only")

    def epsilon(self, relation: Relation, delta: float) -> float:
        """Return the epsilon at a delta, rounded up."""
        return epsilon_of_steps(delta, self.rate, self.multiplier, self.steps)

    def repeated(self, releases: int) -> SubsampledGaussian:
        """Return the profile of ``releases`` times as many steps."""
        return replace(self, steps=self.steps * releases)

    def renyi(self, order: float) -> float:
        """Return the divergence at the next whole order, which is never smaller."""
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
    """Return the bound on the Renyi divergence of one step, for a whole order from 2 on.

    Parameters
    ----------
    order : int
    rate : float
        q, the probability of a row in a step, in (0, 1].
    multiplier : float
        z, the noise std over the sensitivity, above 0.
    """
    # If every step uses every row, the exact divergence of Gaussian noise applies.
    if rate == 1:
        return order / (2 * multiplier**2)
    k = np.arange(order + 1)
    # The sum is taken in logarithms, because its terms overflow at orders in the thousands.
    terms = _binomials(order) + (order - k) * math.log1p(-rate) + k * math.log(rate)
    terms = terms + k * (k - 1.0) / (2 * multiplier**2)
    top = float(terms.max())
    return max(0.0, top + math.log(float(np.exp(terms - top).sum()))) / (order - 1)


def epsilon_of_steps(delta: float, rate: float, multiplier: float, steps: int) -> float:
    """Return an upper bound on the epsilon of ``steps`` steps at a delta.

    Parameters
    ----------
    delta : float
        Delta, above 0.
    rate, multiplier : float
    steps : int
    """
    best = math.inf
    for order, one in zip(ORDERS, _renyi_orders(rate, multiplier), strict=True):
        total = steps * float(one) * (1 + _ROUNDING) + _ROUNDING
        # Proposition 12 gives a bound at each order. The least of these bounds is valid too.
        bound = total + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, bound)
    return max(0.0, best)


@lru_cache(maxsize=512)
def least_multiplier(budget: Budget, rate: float, steps: int) -> float:
    """Return the least z found at which the steps meet the budget, rounded up.

    Raises
    ------
    InvalidSetting
        If epsilon is below the least value that these orders can prove at this delta.
    """
    if budget.epsilon <= least_epsilon(budget.delta):
        allowed = f"above {numeral(least_epsilon(budget.delta))} here"
        raise InvalidSetting("epsilon", allowed, budget.epsilon, "--epsilon")

    def over(log_multiplier: float) -> float:
        spent = epsilon_of_steps(budget.delta, rate, math.exp(log_multiplier), steps)
        return math.log(max(spent, 1e-300) / budget.epsilon)

    # The search is in ln z, so that each step changes the noise multiplier z by a factor e.
    low = high = 0.0
    while over(high) > 0:
        high += 1.0
    while over(low) <= 0:
        low -= 1.0
    log_z = high
    if low < high:
        log_z = float(scipy.optimize.brentq(over, low, high, xtol=1e-13, rtol=1e-13))
    while over(log_z) > 0:
        log_z += 1e-12
    return math.exp(log_z)


def least_epsilon(delta: float) -> float:
    """Return the least epsilon that the accounting can prove with any amount of noise."""
    bounds: list[float] = [
        _ROUNDING + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in ORDERS
    ]
    return max(0.0, min(bounds))


_MOST_STEPS = 200
_LEAST_BATCH = 8
_AIM = 0.015  # Noise per step that automatic steps allow, in units of the squared row-norm bound.
_MOST_RATE = 100.0
_DECAY = 3.0  # Step sizes fall, so that late steps average the noise of early steps.


@dataclass(frozen=True)
class Oja(Mechanism):
    """Iterate W <- qr(W + eta (B'B W/b + G)) for a fixed number of batches B of b rows.

    Source
    ------
    Liu, Kong, Jain and Oh 2022, "DP-PCA: statistically optimal and differentially private PCA",
    their private Oja's method (k = 1). The available text lacks the constants of its privacy
    amplification by shuffling and of the private range estimation of DP-PCA proper. So this is our
    own version with exact accounting; k > 1 iterates a frame instead of a vector.

    Notes
    -----
    A row's gradient x x'W has Frobenius norm at most R^2 for every frame W, so nothing is clipped.
    Replacing a row moves the mean over a batch by min(sqrt k, sqrt 2) R^2/b, zeroing one by R^2/b
    (`projected_frobenius`).

    One pass. The rows are dealt to T batches at random, without looking at them, and each batch is
    used once. For any deal, neighbours differ in a single batch. The steps before and after it are
    functions of earlier releases and of rows both tables share, so T steps cost as much as one.

    Private SGD. Each of T steps takes every row with probability 1/T and divides by n/T. Under
    zero-out this is T subsampled Gaussian steps (`SubsampledGaussian`). Noise then grows with
    sqrt(T), but in one pass with T. Under replace this accounting is not proved.

    All frames count as released, though only the last is. The rate eta starts at 1 over the noise's
    length, sigma sqrt(d), at most 100/R^2, and falls to a quarter: the rate needs no data.
    """

    sampling: str = choice(
        "pass",
        {"pass": "one pass, every row once", "poisson": "private SGD, rows drawn at random"},
        label="Sampling",
        help="How each step gets its rows.",
        examples=("poisson",),
    )
    steps: int | None = integer(
        None, 1, 1_000, label="Steps", optional=True, slider=(1, 50), examples=(3,),
        help="Number of batches. More batches converge further, but each adds noise.",
    )  # fmt: skip

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
        passes=1,
        redraws=True,
        law=r"W_t = \mathrm{qr}\left(W_{t-1} + \eta\,(B_t' B_t W_{t-1}/b + G_t)\right),\quad"
        r" G_t \sim N(0, \sigma^2)\ \text{i.i.d.}",
        calibration=r"\sigma = T D\, g(\varepsilon, \delta),\quad D = \min(\sqrt k, \sqrt 2) R^2/n"
        r"\ (\text{replace}),\ R^2/n\ (\text{zero-out})",
        complexity="n d k",
        advice="Use it for streams, or if d is too large for a matrix; otherwise gaussian "
        "does better. The exact account is ours: we could not obtain the paper's constants.",
    )

    def length(self, problem: Problem, budget: Budget) -> int:
        """Return T, the number of steps; more steps if their noise stays small."""
        if self.steps is not None:
            return self.steps
        # Expected length of one column's noise, in a step that uses all rows.
        each = self._unit(problem, budget) * math.sqrt(problem.d)
        most = max(1, min(_MOST_STEPS, problem.n // _LEAST_BATCH))
        # The noise of a step grows with T in a single pass, and with sqrt(T) in private SGD.
        ratio = _AIM * problem.domain.radius**2 / each
        wanted = ratio if self.sampling == "pass" else min(ratio, 1e6) ** 2
        return max(1, min(most, max(3, round(min(wanted, 1e6)))))

    def _unit(self, problem: Problem, budget: Budget) -> float:
        """Return the std of one step over all rows."""
        return projected_frobenius(problem, problem.k) * noise_std(budget)

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return why the steps or private SGD cannot be accounted for, or None."""
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
            # In each of T steps, a row takes part with probability 1/T. Sums are divided by n/T.
            multiplier = least_multiplier(budget, 1 / steps, steps)
            reach = projected_frobenius(problem, problem.k) * steps
            values |= {"multiplier": multiplier, "step_std": multiplier * reach}
            return Calibration(problem, budget, scale, (), values)
        # Only the last frame is released, so the accounted loss is not attained.
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
        """Return a bound that counts every frame as released, though only the last one is."""
        profile = self.row_profile(problem, budget)
        if profile is not None:
            source = f"Renyi account of {profile.steps} subsampled Gaussian steps"
            account = profile.spent(problem, budget, source)
            return dataclasses.replace(account, exact=False)
        bound = accounting.spent(self.calibrate(problem, budget).parts, budget)
        source = f"{bound.source} of the one batch a row is in"
        return dataclasses.replace(bound, source=source)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the last frame of each repetition, its columns in order of growth.

        Rows in memory are gathered for each step. Otherwise one pass over the rows sums the second
        moments of all batches, or as many passes as these need to fit into memory.
        """
        problem, singles = calibration.problem, draws.single()
        steps, d = int(calibration.values["steps"]), problem.d
        # If rows are few, many repetitions run together. Each still gives the same bytes.
        near = _NEAR // (d * max(-(-problem.n // steps), steps * problem.k))
        each = max(1, _MOMENTS // (steps * d**2) if data.rows is None else near)
        starts = range(0, len(singles), each)
        frames = [self._walked(data, calibration, singles[at : at + each]) for at in starts]
        stacked = np.concatenate(frames)
        return Release(raw=stacked, components=fix_signs(stacked))

    def _walked(
        self, data: SecondMoment, calibration: Calibration, singles: list[Draws]
    ) -> FloatArray:
        """Return the last frames of a few repetitions, shape (size, d, k)."""
        problem, values, rows = calibration.problem, calibration.values, data.rows
        steps, n, d = int(values["steps"]), problem.n, problem.d
        drawn = [self._drawn(problem, steps, single, rows is not None) for single in singles]
        frame = moved = np.linalg.qr(np.stack([start for start, _, _ in drawn])).Q
        deals = [deal for _, _, deal in drawn]
        dealt = [] if rows is None else [deal()(n) for deal in deals]
        most = max(1, _MOMENTS // d**2)
        rate = min(1 / (values["step_std"] * math.sqrt(d)), _MOST_RATE / problem.domain.radius**2)
        for step in range(steps):
            check_cancelled()
            if rows is not None:
                gradient = _gathered(rows, [batches[step] for batches in dealt], frame)
            else:
                if step % most == 0:
                    moments = _moments(data, deals, range(step, min(step + most, steps)))
                gradient = moments[:, step % most] @ frame
            size, std = n / steps, values["step_std"]
            if self.sampling == "pass":
                # If T does not divide n, later batches have one row less than earlier batches.
                size = float(n // steps + (step < n % steps))
                std = std * n / (steps * size)
            gradient /= size
            gradient += std * np.stack([noise[step] for _, noise, _ in drawn])
            moved = frame + rate / (1 + _DECAY * step / steps) * gradient
            frame = np.linalg.qr(moved).Q
        last: FloatArray = np.linalg.svd(moved, full_matrices=False).U
        return last

    def _drawn(
        self, problem: Problem, steps: int, draws: Draws, whole: bool
    ) -> tuple[FloatArray, list[FloatArray], _Deal]:
        """Return the inputs of one repetition: a start, each step's noise, and the dealer of rows.

        If rows are not dealt all at once, the random numbers of the deal are generated again for
        each pass over the rows, a block at a time.
        """
        n, d, k = problem.n, problem.d, problem.k
        (rng,) = draws.generators
        start = draws.normal(d, k)[0]
        states, noise, dealt = [deepcopy(rng)], [], []
        if self.sampling == "pass":
            numbers = draws.uniform(n)[0]
            order, (each, longer) = np.argsort(numbers), divmod(n, steps)
            # These are the batches of np.array_split, which takes longer than all other code here.
            ends = [part * each + min(part, longer) for part in range(steps + 1)]
            dealt = [order[low:high] for low, high in pairwise(ends)]
            # A row belongs to the last batch whose least random number is at most the row's own.
            least = numbers[order[ends[1:-1]]]
            noise = list(draws.normal(steps, d, k)[0])
        for _ in range(steps - len(noise)):
            dealt.append(np.flatnonzero(draws.uniform(n)[0] < 1 / steps))
            noise.append(draws.normal(d, k)[0])
            states += [] if whole else [deepcopy(rng)]
        if whole:
            return start, noise, lambda: lambda rows: dealt

        def batches(again: list[np.random.Generator], rows: int) -> _Batches:
            if self.sampling != "pass":
                return [np.flatnonzero(one.random(rows) < 1 / steps) for one in again[:steps]]
            places = np.searchsorted(least, again[0].random(rows), side="right").astype(np.uint16)
            order = np.argsort(places, kind="stable")
            return np.split(order, np.cumsum(np.bincount(places, minlength=steps))[:-1])

        return start, noise, lambda: partial(batches, deepcopy(states))

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the accounting."""
        steps = self.length(problem, budget)
        if self.sampling == "poisson":
            return (
                f"Its {steps} subsampled Gaussian steps are accounted by Renyi orders. This "
                "upper bound is confirmed by independent code."
            )
        return (
            f"Every row is in exactly one of {steps} batches, which do not depend on the "
            "data. So all noisy steps together cost exactly as much as a single step."
        )


def _gathered(rows: FloatArray, batches: _Batches, frames: FloatArray) -> FloatArray:
    """Return B'B W of each repetition's batch B and frame W, shape (size, d, k)."""
    if len({len(batch) for batch in batches}) == 1:
        taken = rows[np.stack(batches)]
        products: FloatArray = taken.transpose(0, 2, 1) @ (taken @ frames)
        return products
    each = zip((rows[batch] for batch in batches), frames, strict=True)
    return np.stack([taken.T @ (taken @ frame) for taken, frame in each])


def _moments(data: SecondMoment, deals: Sequence[_Deal], part: range) -> FloatArray:
    """Return B'B of the batches B of some steps of each repetition, in one pass over the rows."""
    sums = np.zeros((len(deals), len(part), data.d, data.d))
    dealers = [deal() for deal in deals]
    for _, block in data.blocks():
        for products, batches in zip(sums, dealers, strict=True):
            for product, batch in zip(products, batches(len(block))[part.start :], strict=False):
                taken = block[batch]
                product += taken.T @ taken
    return sums
