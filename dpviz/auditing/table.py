"""The one table of claims, for the page, the command and the listing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpviz.auditing import (
    DEFAULT_D,
    DEFAULT_K,
    DEFAULT_N,
    DEFAULT_TRIALS,
    Audit,
    audit,
    default_budget,
)
from dpviz.auditing.run import LEAST_TRIALS
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import parseable
from dpviz.core.plugins import shell_command
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.mechanisms import Mechanism, all_mechanisms

TABLE_TRIALS = 10_000
"""Fewer than a single audit's, so that the whole table takes minutes."""

# A claim is audited at the first of these at which the mechanism runs at all.
_EPSILONS = (1.0, 0.5, 0.1)

OnRow = Callable[[int, int, str], None]


@dataclass(frozen=True)
class ClaimRow:
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


def claims_table(
    seed: int = 0,
    trials: int = TABLE_TRIALS,
    progress: OnRow | None = None,
    mechanisms: Sequence[Mechanism] = (),
) -> list[ClaimRow]:
    """Return one row for each mechanism and relation, in the order of mechanisms.

    Parameters
    ----------
    seed : int
        Same seed, same table.
    trials : int
        Of each audit; see `dpviz.auditing.audit`.
    progress : callable, optional
        Told (done, total, name) before each row.
    mechanisms : sequence of Mechanism
        Whose claims; those of all if there are none.

    """
    if trials < LEAST_TRIALS:
        raise InvalidSetting("trials", f"at least {LEAST_TRIALS}", trials, "--trials")
    chosen = mechanisms or [cls() for cls in all_mechanisms().values()]
    cells = [(mechanism, relation) for mechanism in chosen for relation in Relation]
    rows = []
    for done, (mechanism, relation) in enumerate(cells):
        if progress is not None:
            progress(done, len(cells), f"{mechanism.text}, {relation}")
        rows.append(claim_of(mechanism, relation, seed, trials))
    return rows


def claim_of(
    mechanism: Mechanism, relation: Relation, seed: int = 0, trials: int = TABLE_TRIALS
) -> ClaimRow:
    """Return the row of one mechanism under one relation."""
    problem = Problem(DEFAULT_N, DEFAULT_D, DEFAULT_K, relation, Domain.ball(DEFAULT_D))
    budgets = [default_budget(mechanism, epsilon) for epsilon in _EPSILONS]
    reasons = [mechanism.why_not(problem, budget) for budget in budgets]
    runs = [b for b, reason in zip(budgets, reasons, strict=True) if reason is None]
    budget = runs[0] if runs else budgets[0]
    audited = None
    if runs:
        audited = audit(mechanism, budget, relation=relation, seed=seed, trials=trials)
    return _row(mechanism, problem, budget, audited, reasons[0] or "", seed, trials)


def _row(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    found: Audit | None,
    reason: str,
    seed: int,
    trials: int,
) -> ClaimRow:
    claim = mechanism.claim(problem, budget)
    status = mechanism.status(problem, budget)
    return ClaimRow(
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
        command=audit_command(mechanism, problem, budget, trials=trials, seed=seed),
    )


def _kind(found: Audit) -> str:
    """Return what settles the verdict."""
    return "exact" if found.exact is not None else "measured"


# The setting at which `mechanisms` states status and evidence.
_LISTING_N, _LISTING_D, _LISTING_K = 1_000, 10, 2
_LISTING_BUDGET = Budget(1.0, 1e-6)


def listing_rows() -> list[dict[str, Any]]:
    """Return one row per mechanism and relation: what it claims and what holds."""
    domain = Domain.ball(_LISTING_D)
    rows = []
    for key, cls in all_mechanisms().items():
        for relation in Relation:
            problem = Problem(_LISTING_N, _LISTING_D, _LISTING_K, relation, domain)
            status = cls().status(problem, _LISTING_BUDGET)
            rows.append(
                {
                    "key": key,
                    "label": cls.info.label,
                    "paper": cls.info.paper,
                    "relation": str(relation),
                    "release": cls.info.release,
                    "guarantee": cls.info.guarantee,
                    "status": str(status.verdict),
                    "evidence": status.evidence,
                }
            )
    return rows


CLAIM_COLUMNS = (
    "key", "mechanism", "claim", "relation", "status", "verdict", "claimed_epsilon",
    "spent_epsilon", "exact", "claimed_delta", "true_delta", "evidence", "command",
)  # fmt: skip

CANNOT_RUN = "cannot run here"


def every_mechanism() -> list[Mechanism]:
    """Return each mechanism with its default parameters, in their order."""
    return [cls() for cls in all_mechanisms().values()]


# Claims ---------------------------------------------------------------------------


def claims_now(problem: Problem, budget: Budget) -> pd.DataFrame:
    """Return every mechanism's claim and actual privacy loss in one setting.

    Returns
    -------
    DataFrame
        `CLAIM_COLUMNS`. Missing numbers are None: no claim, or no epsilon that describes the
        release, or a mechanism that cannot run, whose reason is in the evidence; ``exact`` says
        whether the epsilon spent is more than an upper bound.
    """
    rows = [_claim_row(mechanism, problem, budget) for mechanism in every_mechanism()]
    return pd.DataFrame(rows, columns=list(CLAIM_COLUMNS))


def _claim_row(mechanism: Mechanism, problem: Problem, budget: Budget) -> dict[str, object]:
    reason, claim = mechanism.why_not(problem, budget), mechanism.claim(problem, budget)
    spent = status = None
    if reason is None:
        spent = mechanism.spent(problem, budget)
        status = mechanism.judged(problem, budget, spent)
        if spent is not None and not math.isfinite(spent.epsilon):
            spent = None  # no epsilon describes the release
    return {
        "key": mechanism.key,
        "mechanism": mechanism.label,
        "claim": "no claim" if claim is None else _guarantee_words(mechanism),
        "relation": str(problem.relation),
        "status": CANNOT_RUN if status is None else status.marked,
        "verdict": "" if status is None else str(status.verdict),
        "claimed_epsilon": None if claim is None else claim.epsilon,
        "spent_epsilon": None if spent is None else spent.epsilon,
        "exact": spent is not None and spent.exact,
        "claimed_delta": None if claim is None else claim.delta,
        "true_delta": None if spent is None else spent.delta_at_epsilon,
        "evidence": f"Cannot run here: {reason}." if status is None else status.evidence,
        "command": audit_command(mechanism, problem, budget),
    }


def _guarantee_words(mechanism: Mechanism) -> str:
    pure = mechanism.info.guarantee == "pure"
    return "pure epsilon" if pure else "epsilon and delta"


def audit_command(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    *,
    d: int = DEFAULT_D,
    trials: int = DEFAULT_TRIALS,
    seed: int = 0,
) -> str:
    """Return the command that audits a mechanism at a budget, on synthetic tables.

    Parameters
    ----------
    mechanism : Mechanism
    problem : Problem
        Its relation and k are asked for; its n and d are not, since worst cases are made up.
    budget : Budget
    d, trials, seed : int
        Of the audit.
    """
    words = ["audit", mechanism.text, "--epsilon", parseable(budget.epsilon, 6)]
    if mechanism.info.guarantee == "approximate" and budget.delta > 0:
        words += ["--delta", parseable(budget.delta, 6)]
    if d != DEFAULT_D:
        words += ["--dimension", str(d)]
    if trials != DEFAULT_TRIALS:
        words += ["--trials", str(trials)]
    if seed != 0:
        words += ["--seed", str(seed)]
    words += ["--k", str(min(problem.k, d - 1)), "--relation", str(problem.relation)]
    if problem.rows_a_person is not None:
        words += ["--rows-a-person", str(problem.rows_a_person)]
    return shell_command(*words)
