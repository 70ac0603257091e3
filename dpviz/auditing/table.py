"""Tables with every mechanism's claim and verdict."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from dpviz.auditing import DEFAULT_D, DEFAULT_TRIALS
from dpviz.core.number_text import parseable
from dpviz.core.plugins import shell_command
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.mechanisms import Mechanism, all_mechanisms

# `listing_rows` computes status and evidence for this setting.
_LISTING_N, _LISTING_D, _LISTING_K = 1_000, 10, 2
_LISTING_BUDGET = Budget(1.0, 1e-6)


def listing_rows() -> list[dict[str, Any]]:
    """Return one row per mechanism and relation, with its claim, status and evidence."""
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
    """Return each mechanism with its default parameters, in registry order."""
    return [cls() for cls in all_mechanisms().values()]


# Claims ---------------------------------------------------------------------------


def claims_now(problem: Problem, budget: Budget) -> pd.DataFrame:
    """Return every mechanism's claim and actual privacy loss in one setting.

    Returns
    -------
    DataFrame
        `CLAIM_COLUMNS`. A number is None if there is no claim, if no epsilon describes the release,
        or if the mechanism cannot run (the evidence says why). ``exact`` states whether the actual
        epsilon is a measurement and not only a bound.
    """
    rows = [_claim_row(mechanism, problem, budget) for mechanism in every_mechanism()]
    return pd.DataFrame(rows, columns=list(CLAIM_COLUMNS))


def _claim_row(mechanism: Mechanism, problem: Problem, budget: Budget) -> dict[str, object]:
    reason, claim = mechanism.why_not(problem, budget), mechanism.claim(problem, budget)
    loss = status = None
    if reason is None:
        loss = mechanism.spent(problem, budget)
        status = mechanism.judged(problem, budget, loss)
        if loss is not None and not math.isfinite(loss.epsilon):
            loss = None  # An infinite epsilon does not describe a loss, so list none.
    return {
        "key": mechanism.key,
        "mechanism": mechanism.label,
        "claim": "no claim" if claim is None else _guarantee_words(mechanism),
        "relation": str(problem.relation),
        "status": CANNOT_RUN if status is None else status.marked,
        "verdict": "" if status is None else str(status.verdict),
        "claimed_epsilon": None if claim is None else claim.epsilon,
        "spent_epsilon": None if loss is None else loss.epsilon,
        "exact": loss is not None and loss.exact,
        "claimed_delta": None if claim is None else claim.delta,
        "true_delta": None if loss is None else loss.delta_at_epsilon,
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
        The command contains the neighbouring relation and k, but not n and d, because its
        worst-case tables are synthetic.
    budget : Budget
    d, trials, seed : int
        Options of the audit.
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
