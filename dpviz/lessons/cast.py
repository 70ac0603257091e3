"""Which mechanism plays which part in a lesson, found by what it says of itself."""

from __future__ import annotations

from functools import cache

from dpviz.auditing.exhibits import moving_cone, repaired_cone
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.mechanisms._base import AdditiveMechanism

_BUDGET = Budget(1.0, 1e-6)
_N, _D = 1_000, 4
_GOOD = (Verdict.HOLDS, Verdict.LOOSE)


def _used(mechanism: Mechanism, domain: Domain) -> float:
    """Return the epsilon that a claim which holds makes use of, 0 where it does not hold."""
    problem = Problem(_N, _D, 1, Relation.REPLACE, domain)
    if mechanism.why_not(problem, _BUDGET) is not None:
        return 0.0
    spent = mechanism.spent(problem, _BUDGET)
    if spent is None or mechanism.judged(problem, _BUDGET, spent).verdict not in _GOOD:
        return 0.0
    return spent.epsilon


@cache
def plain() -> AdditiveMechanism:
    """Return the additive mechanism with a delta that uses its whole budget."""
    found = [
        mechanism
        for mechanism in (cls() for cls in all_mechanisms().values())
        if mechanism.info.featured
        and mechanism.info.guarantee == "approximate"
        and isinstance(mechanism, AdditiveMechanism)
    ]
    return max(found, key=lambda mechanism: _used(mechanism, Domain.ball(_D)))


@cache
def shaped() -> Mechanism:
    """Return the mechanism with a delta that follows the allocation and uses its whole budget."""
    found = [
        mechanism
        for mechanism in (cls() for cls in all_mechanisms().values())
        if mechanism.follows_allocation
        and mechanism.info.guarantee == "approximate"
        and mechanism.info.release == "matrix"
    ]
    return max(found, key=lambda mechanism: _used(mechanism, Domain.box(_D)))


def pure() -> AdditiveMechanism:
    """Return the additive mechanism without a delta whose claim is proved."""
    return repaired_cone()


def published() -> AdditiveMechanism:
    """Return the additive mechanism whose support moves with the data."""
    return moving_cone()
