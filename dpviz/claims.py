"""The claims table: every mechanism, what it promises under each relation, and what an audit saw.

Recomputed from scratch: nothing in it is written down beforehand.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields

import pandas as pd

from dpviz.errors import InvalidSetting
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.privacy.audit import DEFAULT_D, DEFAULT_K, DEFAULT_N, Audit, audit, default_budget
from dpviz.privacy.audit.run import LEAST_TRIALS
from dpviz.problem import Budget, Domain, Problem, Relation

DEFAULT_TRIALS = 10_000
"""Fewer than a single audit's, so that the whole table takes minutes."""

# A claim is audited at the first of these at which the mechanism runs at all.
_EPSILONS = (1.0, 0.5, 0.1)

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Claim:
    """One row: one mechanism under one relation.

    Attributes
    ----------
    mechanism, label, paper : str
        Key, display name and source.
    relation : str
    claimed_epsilon, claimed_delta : float or None
        What the source promises at the audited setting; None where it promises nothing.
    status : str
        What is known of the claim, from its proof or its refutation.
    why : str
        The sentence behind the status.
    evidence : str
        ``exact`` where an exact account settles the verdict, ``measured`` where draws do, ``none``
        where the mechanism cannot run.
    verdict : str
        The audit's: ``refuted``, ``consistent`` or ``tight``; empty where it cannot run.
    epsilon_lower, delta_lower, at_epsilon : float or None
        The audit's bounds.
    found : str
        The audit's sentence, or why there is none.
    command : str
        What recomputes the row.
    """

    mechanism: str
    label: str
    paper: str
    relation: str
    claimed_epsilon: float | None
    claimed_delta: float | None
    status: str
    why: str
    evidence: str
    verdict: str
    epsilon_lower: float | None
    delta_lower: float | None
    at_epsilon: float | None
    found: str
    command: str


COLUMNS = tuple(field.name for field in fields(Claim))


def claims_table(
    seed: int = 0, trials: int = DEFAULT_TRIALS, progress: Progress | None = None
) -> pd.DataFrame:
    """Return one row for each mechanism and relation, in the order of mechanisms.

    Parameters
    ----------
    seed : int
        Same seed, same table.
    trials : int
        Of each audit; see `dpviz.privacy.audit.audit`.
    progress : callable, optional
        Told (done, total, name) before each row.

    Returns
    -------
    DataFrame
        With the columns of `Claim`.
    """
    if trials < LEAST_TRIALS:
        raise InvalidSetting("trials", f"at least {LEAST_TRIALS}", trials, "--trials")
    cells = [(cls(), relation) for cls in all_mechanisms().values() for relation in Relation]
    rows = []
    for done, (mechanism, relation) in enumerate(cells):
        if progress is not None:
            progress(done, len(cells), f"{mechanism.text}, {relation}")
        rows.append(claim_of(mechanism, relation, seed, trials))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def claim_of(
    mechanism: Mechanism, relation: Relation, seed: int = 0, trials: int = DEFAULT_TRIALS
) -> Claim:
    """Return the row of one mechanism under one relation."""
    problem = Problem(DEFAULT_N, DEFAULT_D, DEFAULT_K, relation, Domain.ball(DEFAULT_D))
    budgets = [default_budget(mechanism, epsilon) for epsilon in _EPSILONS]
    reasons = [mechanism.unable(problem, budget) for budget in budgets]
    runs = [b for b, reason in zip(budgets, reasons, strict=True) if reason is None]
    budget = runs[0] if runs else budgets[0]
    found = None
    if runs:
        found = audit(mechanism, budget, relation=relation, seed=seed, trials=trials)
    return _row(mechanism, problem, budget, found, reasons[0] or "", seed, trials)


def _row(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    found: Audit | None,
    reason: str,
    seed: int,
    trials: int,
) -> Claim:
    claim = mechanism.claim(problem, budget)
    status = mechanism.status(problem, budget)
    return Claim(
        mechanism=mechanism.text,
        label=mechanism.label,
        paper=mechanism.info.paper,
        relation=str(problem.relation),
        claimed_epsilon=None if claim is None else claim.epsilon,
        claimed_delta=None if claim is None else claim.delta,
        status=str(status.verdict),
        why=status.evidence,
        evidence="none" if found is None else _kind(found),
        verdict="" if found is None else str(found.verdict),
        epsilon_lower=None if found is None else found.epsilon_lower,
        delta_lower=None if found is None else found.delta_lower,
        at_epsilon=None if found is None else found.at_epsilon,
        found=f"cannot be audited here: {reason}" if found is None else found.evidence,
        command=_command(mechanism, problem.relation, budget, seed, trials),
    )


def _kind(found: Audit) -> str:
    """Return what settles the verdict."""
    return "exact" if found.exact is not None else "measured"


def _command(
    mechanism: Mechanism, relation: Relation, budget: Budget, seed: int, trials: int
) -> str:
    words = ["python", "-m", "dpviz", "audit", mechanism.text, "--epsilon", f"{budget.epsilon:g}"]
    words += ["--relation", str(relation), "--seed", str(seed), "--trials", str(trials)]
    return shlex.join(words)
