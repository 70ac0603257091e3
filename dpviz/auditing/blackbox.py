"""The audit of any function.

Three answers stand side by side, and together hold with the stated confidence:

- the audit of `dpviz.auditing.run` at the dimension that a pilot finds most telling, on the tables
  that are worst for eigenvectors: near ties that one row decides, and rows of one direction;
- the bound from runs that each hide many rows (Steinke, Nasr and Jagielski 2023), which slow
  functions afford;
- beside them a normal fit to the scores, which is no bound but says what more draws may show.

What so many draws could see at best is stated before the verdict is believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpviz.accounting.gaussian import epsilon_of
from dpviz.auditing.bounds import hidden_rows_bound, least_seen
from dpviz.auditing.neighbours import Pair, eigenvector_pairs
from dpviz.auditing.result import Audit, AuditVerdict
from dpviz.auditing.run import OnStep, Run, audit
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Release
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.mechanisms import Mechanism
from dpviz.simulation.simulate import Batch, Trials, simulate

DIMENSIONS = (3, 10, 30)
"""Features of the tables that are tried."""

_HIDDEN_SHARE = 0.1  # of the error that is allowed goes to the bound from hidden rows
_LEAST_RUNS = 20
_FIT_DELTA = 1e-5  # where a normal fit is read off a claim without delta, which no normal law keeps


@dataclass(frozen=True)
class NormalFit:
    """A normal law fitted to the scores of both tables.

    Attributes
    ----------
    mu : float
        Distance of the means in standard deviations.
    epsilon : float
        Of a Gaussian mechanism that far apart, at ``delta``.
    delta : float
    normal : bool
        Whether skewness and kurtosis are those of a normal law, as far as the draws tell.
    """

    mu: float
    epsilon: float
    delta: float
    normal: bool


@dataclass(frozen=True)
class HiddenRows:
    """Guesses of which rows each run included.

    Attributes
    ----------
    runs, guesses, right : int
    epsilon_lower : float
        At the claimed delta.
    """

    runs: int
    guesses: int
    right: int
    epsilon_lower: float


@dataclass(frozen=True, eq=False)
class BlackBox:
    """The result of an audit of a function.

    Attributes
    ----------
    audit : Audit
        On the tables that told most.
    dimensions : tuple of int
        Features of the tables that were tried.
    sees : float
        With so many draws, the least epsilon that is refuted with a chance of 0.9, if the most
        telling event there can be is found.
    fit : NormalFit
    hidden : HiddenRows
    """

    audit: Audit
    dimensions: tuple[int, ...]
    sees: float
    fit: NormalFit
    hidden: HiddenRows

    @property
    def epsilon_lower(self) -> float:
        """The larger of the two bounds from below."""
        return max(self.audit.epsilon_lower, self.hidden.epsilon_lower)

    @property
    def verdict(self) -> AuditVerdict:
        """Refuted if one of the bounds is above the claim."""
        claim = self.audit.claim
        if claim is not None and self.hidden.epsilon_lower > claim.epsilon:
            return AuditVerdict.REFUTED
        return self.audit.verdict


def audit_function(
    mechanism: Mechanism,
    budget: Budget,
    *,
    dimensions: Sequence[int],
    k: int,
    relation: Relation,
    n: int,
    seed: int,
    trials: int,
    confidence: float,
    progress: OnStep,
) -> BlackBox:
    """Return the audit of a function, made a mechanism, on rows of length at most 1.

    Parameters
    ----------
    mechanism : Mechanism
    budget : Budget
        What is claimed.
    dimensions : sequence of int
        Features of the tables to try; the most telling is audited.
    k, n : int
        Components and rows.
    relation : Relation
    seed, trials, confidence
        As in `dpviz.auditing.run.audit`.
    progress : callable
        Told the name of each step.

    Raises
    ------
    CannotRun, InvalidSetting
        As in `dpviz.auditing.run.audit`.
    """
    error = 1 - confidence
    best: tuple[tuple[float, float], Pair] | None = None
    chosen = [d for d in dimensions if d > k]
    with one_blas_thread():
        for d in chosen:
            problem = Problem(n, d, k, relation, Domain.ball(d))
            mechanism.check(problem, budget)
            run = Run(mechanism, mechanism.calibrate(problem, budget), seed, progress, problem)
            value, pair = run.most_telling(eigenvector_pairs(problem), budget.delta, trials)
            if best is None or value > best[0]:
                best = value, pair
        assert best is not None, "the caller says a dimension above k"
        pair = best[1]
        audited = audit(
            mechanism, budget, d=len(pair.first), k=k, relation=relation, n=n, seed=seed,
            trials=trials, confidence=1 - error * (1 - _HIDDEN_SHARE), pairs=[pair],
            plant=True, progress=progress,
        )  # fmt: skip
        progress("hidden rows")
        hidden = _hidden(audited, max(_LEAST_RUNS, trials // 20), error * _HIDDEN_SHARE)
    level = error * (1 - _HIDDEN_SHARE) / 4  # that of the event for epsilon
    sees = least_seen(budget, 2 * trials, level)
    return BlackBox(
        replace(audited, confidence=confidence), tuple(chosen), sees, _fitted(audited), hidden
    )


def _fitted(found: Audit) -> NormalFit:
    """Return the normal fit to the scores of the second half."""
    first, second = found.measured.first, found.measured.second
    spread = math.sqrt((float(first.var(ddof=1)) + float(second.var(ddof=1))) / 2)
    delta = found.budget.delta or _FIT_DELTA
    if spread == 0:
        same = bool(first[0] == second[0])
        return NormalFit(0.0 if same else math.inf, 0.0 if same else math.inf, delta, False)
    mu = abs(float(first.mean() - second.mean())) / spread
    return NormalFit(mu, epsilon_of(delta, mu) if mu > 0 else 0.0, delta,
                     _is_normal(first) and _is_normal(second))  # fmt: skip


def _is_normal(scores: FloatArray) -> bool:
    """Return whether skewness and kurtosis are within 4 standard errors of a normal law's."""
    spread = float(scores.std())
    if spread == 0:
        return False
    scaled = (scores - scores.mean()) / spread
    skew, kurtosis = float((scaled**3).mean()), float((scaled**4).mean()) - 3
    room = 4 / math.sqrt(len(scores))
    return abs(skew) < room * math.sqrt(6) and abs(kurtosis) < room * math.sqrt(24)


def _hidden(found: Audit, runs: int, alpha: float) -> HiddenRows:
    """Return the bound from runs in each of which every row is there or zeroed, by a coin."""
    problem, budget, mechanism = found.problem, found.budget, found.mechanism
    rng = generator(found.seed, "audit", mechanism.text, "hidden rows")
    third = problem.n // 3
    calibration = mechanism.calibrate(problem, budget)
    right = 0
    for _ in range(runs):
        rows = rng.standard_normal((problem.n, problem.d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        present = rng.random(problem.n) < 0.5
        table = rows * present[:, None]
        moment = SecondMoment(table.T @ table / problem.n, problem.n, table)
        drawn = Trials(mechanism, calibration, moment, Batch(rng, 1))
        (score,) = simulate([drawn], lambda _, release, rows=rows: _scores(release, rows))  # type: ignore[misc]
        order = np.argsort(score, kind="stable")
        right += int(present[order[problem.n - third :]].sum() + (~present[order[:third]]).sum())
    guesses = 2 * third * runs
    least = hidden_rows_bound(problem.n * runs, guesses, right, budget.delta, alpha)
    return HiddenRows(runs, guesses, right, least)


def _scores(release: Release, rows: FloatArray) -> FloatArray:
    """Return how far each row lies along what was released, shape (n,)."""
    if release.matrix is not None:
        along: FloatArray = np.einsum("ij,jk,ik->i", rows, release.matrix[0], rows)
        return along
    inside: FloatArray = np.square(rows @ release.components[0]).sum(axis=1)
    return inside
