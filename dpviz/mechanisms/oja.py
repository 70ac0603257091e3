"""Oja's method on batches of rows: one pass, or private stochastic gradient steps."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting import accounting
from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import projected_frobenius
from dpviz.accounting.subsampled import SubsampledGaussian, least_epsilon, least_multiplier
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.cancelling import check_cancelled
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import choice, integer
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.reference import paper
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo

_MOST_STEPS = 200
_LEAST_BATCH = 8
_AIM = 0.015  # noise of a step, in squared row bounds, that the automatic steps allow
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
    zero-out this is T subsampled Gaussian steps (`dpviz.accounting.subsampled`); noise then grows
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
        slot=29,
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
            return f"its steps must be at most n = {problem.n}; got {self.steps}"
        if self.sampling != "poisson":
            return None
        if problem.relation is not Relation.ZERO_OUT:
            return "its account by subsampling is proved under zero-out only; got replace"
        least = least_epsilon(budget.delta)
        if budget.epsilon <= least:
            return f"its Renyi account needs epsilon above {numeral(least)} at this delta"
        return None

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the std of one step over all rows, and that of the steps taken."""
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
            found = profile.spent(problem, budget, source)
            return dataclasses.replace(found, exact=False)
        bound = accounting.spent(self.calibrate(problem, budget).parts, budget)
        source = f"{bound.source} of the one batch a row is in"
        return dataclasses.replace(bound, source=source)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the last frame of each draw, its columns in order of growth."""
        assert data.rows is not None
        frames = [self._one(data.rows, calibration, single) for single in draws.single()]
        stacked = np.stack(frames)
        return Release(raw=stacked, components=fix_signs(stacked))

    def _one(self, rows: FloatArray, calibration: Calibration, draws: Draws) -> FloatArray:
        problem, values = calibration.problem, calibration.values
        steps, n, d, k = int(values["steps"]), problem.n, problem.d, problem.k
        frame = np.linalg.qr(draws.normal(d, k)[0]).Q
        moved = frame
        rate = min(1 / (values["step_std"] * math.sqrt(d)), _MOST_RATE / problem.domain.radius**2)
        if self.sampling == "pass":
            # a random deal that looks at no row: neighbours then differ in one batch alone
            batches = np.array_split(np.argsort(draws.uniform(n)[0]), steps)
        for step in range(steps):
            check_cancelled()
            if self.sampling == "pass":
                batch = batches[step]
                size = float(len(batch))
                # the last batches are one row shorter than n/T rounded up
                std = values["step_std"] * n / (steps * size)
            else:
                batch = np.flatnonzero(draws.uniform(n)[0] < 1 / steps)
                size, std = n / steps, values["step_std"]
            taken = rows[batch]
            # no clipping: ||x x'W||_F is at most R^2 for every frame
            gradient = taken.T @ (taken @ frame) / size
            gradient += std * draws.normal(d, k)[0]
            moved = frame + rate / (1 + _DECAY * step / steps) * gradient
            frame = np.linalg.qr(moved).Q
        last: FloatArray = np.linalg.svd(moved, full_matrices=False).U
        return last

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
