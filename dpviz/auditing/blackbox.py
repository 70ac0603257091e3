"""A black-box audit of any function.

The audit gives three results, whose bounds together hold with the stated confidence:

- the audit of `dpviz.auditing.run` at the dimension that a pilot finds most telling, on the tables
  that are worst for eigenvectors: near ties that one row decides, and rows that share one
  direction;
- the bound from runs that each hide many rows (Steinke, Nasr and Jagielski 2023), which suits slow
  functions;
- a normal fit to the scores, which is not a bound but shows what more releases may reveal.

``BlackBox.sees`` states the least epsilon that this number of releases can detect. Check it first.
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
"""Numbers of features of the tables to try."""

_HIDDEN_SHARE = 0.1  # This share of the allowed error is for the bound from hidden rows.
_LEAST_RUNS = 20
_FIT_DELTA = 1e-5  # Use this delta for a normal fit if the claim has none; normal noise needs one.


@dataclass(frozen=True)
class NormalFit:
    """A normal law fitted to the scores of both tables.

    Attributes
    ----------
    mu : float
        Distance between the two means, in standard deviations.
    epsilon : float
        Epsilon of a Gaussian mechanism with this ``mu``, at ``delta``.
    delta : float
    normal : bool
        Whether the scores' skewness and kurtosis are compatible with a normal law.
    """

    mu: float
    epsilon: float
    delta: float
    normal: bool


@dataclass(frozen=True)
class HiddenRows:
    """Guesses about the rows that each run included.

    Attributes
    ----------
    runs, guesses, right : int
    epsilon_lower : float
        Lower bound at the claimed delta.
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
        Audit on the tables that reveal most.
    dimensions : tuple of int
        Numbers of features of the tables that the audit tried.
    sees : float
        Least true epsilon at which these releases refute the claim with probability 0.9, if the
        most telling possible event is found.
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
        """The larger of the two lower bounds on epsilon."""
        return max(self.audit.epsilon_lower, self.hidden.epsilon_lower)

    @property
    def verdict(self) -> AuditVerdict:
        """The verdict: refuted if a lower bound exceeds the claim."""
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
    """Audit a function, wrapped as a mechanism, on rows of length at most 1.

    Parameters
    ----------
    mechanism : Mechanism
    budget : Budget
        The claim.
    dimensions : sequence of int
        Numbers of features to try; the table that reveals most is audited.
    k, n : int
        Numbers of components and rows.
    relation : Relation
    seed, trials, confidence
        Seed, trials and confidence as in `dpviz.auditing.run.audit`.
    progress : callable
        A function that is called with the name of each step.

    Raises
    ------
    CannotRun, InvalidSetting
        Seed, trials and confidence as in `dpviz.auditing.run.audit`.
    """
    error = 1 - confidence
    best: tuple[tuple[float, float], Pair] | None = None
    sizes = [d for d in dimensions if d > k]
    with one_blas_thread():
        for d in sizes:
            problem = Problem(n, d, k, relation, Domain.ball(d))
            mechanism.check(problem, budget)
            run = Run(mechanism, mechanism.calibrate(problem, budget), seed, progress, problem)
            value, pair = run.most_telling(eigenvector_pairs(problem), budget.delta, trials)
            if best is None or value > best[0]:
                best = value, pair
        assert best is not None, "the caller must give a dimension above k"
        pair = best[1]
        result = audit(
            mechanism, budget, d=len(pair.first), k=k, relation=relation, n=n, seed=seed,
            trials=trials, confidence=1 - error * (1 - _HIDDEN_SHARE), pairs=[pair],
            plant=True, progress=progress,
        )  # fmt: skip
        progress("hidden rows")
        hidden = _hidden(result, max(_LEAST_RUNS, trials // 20), error * _HIDDEN_SHARE)
    level = error * (1 - _HIDDEN_SHARE) / 4  # This is the error level for the bound on epsilon.
    sees = least_seen(budget, 2 * trials, level)
    return BlackBox(
        replace(result, confidence=confidence), tuple(sizes), sees, _fitted(result), hidden
    )


def _fitted(result: Audit) -> NormalFit:
    """Return the normal fit to the scores of the second half."""
    first, second = result.measured.first, result.measured.second
    spread = math.sqrt((float(first.var(ddof=1)) + float(second.var(ddof=1))) / 2)
    delta = result.budget.delta or _FIT_DELTA
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
    z_scores = (scores - scores.mean()) / spread
    skew, kurtosis = float((z_scores**3).mean()), float((z_scores**4).mean()) - 3
    room = 4 / math.sqrt(len(scores))
    return abs(skew) < room * math.sqrt(6) and abs(kurtosis) < room * math.sqrt(24)


def _hidden(result: Audit, runs: int, alpha: float) -> HiddenRows:
    """Return the bound from runs in which a coin flip per row decides whether the row is zeroed."""
    problem, budget, mechanism = result.problem, result.budget, result.mechanism
    rng = generator(result.seed, "audit", mechanism.text, "hidden rows")
    third = problem.n // 3
    calibration = mechanism.calibrate(problem, budget)
    right = 0
    for _ in range(runs):
        rows = rng.standard_normal((problem.n, problem.d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        present = rng.random(problem.n) < 0.5
        table = rows * present[:, None]
        moment = SecondMoment(table.T @ table / problem.n, problem.n, table)
        task = Trials(mechanism, calibration, moment, Batch(rng, 1))
        (score,) = simulate([task], lambda _, release, rows=rows: _scores(release, rows))  # type: ignore[misc]
        order = np.argsort(score, kind="stable")
        right += int(present[order[problem.n - third :]].sum() + (~present[order[:third]]).sum())
    guesses = 2 * third * runs
    least = hidden_rows_bound(problem.n * runs, guesses, right, budget.delta, alpha)
    return HiddenRows(runs, guesses, right, least)


def _scores(release: Release, rows: FloatArray) -> FloatArray:
    """Return each row's squared length along the release, shape (n,)."""
    if release.matrix is not None:
        along: FloatArray = np.einsum("ij,jk,ik->i", rows, release.matrix[0], rows)
        return along
    inside: FloatArray = np.square(rows @ release.components[0]).sum(axis=1)
    return inside
