"""The verdict of an audit, and the evidence in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dpviz.accounting.losses import ExactLoss
from dpviz.auditing.events import Event
from dpviz.auditing.neighbours import Pair
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Problem
from dpviz.mechanisms import Mechanism

TIGHT_SHARE = 0.9
"""A lower bound of at least this share of the claim makes it tight."""

# An exact route is compared with the claim beyond the roundings of a calibration.
_ROUNDING = 1e-6


class AuditVerdict(StrEnum):
    """What an audit can say of a claim; it never proves one."""

    REFUTED = "refuted"
    CONSISTENT = "consistent"
    TIGHT = "tight"


@dataclass(frozen=True)
class Count:
    """An event and how often it was seen on the half it was not chosen on.

    Attributes
    ----------
    event : Event
    trials : int
        Releases that could have been in the event.
    hits, misses : int
        How many named the right table, and how many the wrong one.
    p_low, q_high : float
        Limits of the two probabilities.
    """

    event: Event
    trials: int
    hits: int
    misses: int
    p_low: float
    q_high: float


@dataclass(frozen=True, eq=False)
class Sampled:
    """What the draws say: all bounds hold together with the audit's confidence.

    Attributes
    ----------
    pair : Pair
        The tables that were released.
    epsilon_lower : float
        At the claimed delta.
    deltas : tuple of float
        At the audit's ``at_epsilons``.
    counts : tuple of Count
        Of the event for epsilon, then of the event for each delta.
    support : float
        Lower limit of the probability of a release that the other table can never make, known
        where the noise is one-sided; else 0.
    first, second : ndarray of shape (trials,)
        The score of the event for epsilon on the second half, larger for the first table.
    """

    pair: Pair
    epsilon_lower: float
    deltas: tuple[float, ...]
    counts: tuple[Count, ...]
    support: float
    first: FloatArray = field(repr=False)
    second: FloatArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit.

    Attributes
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
    claim : Budget or None
        What is audited; None where nothing is claimed.
    at_epsilons : tuple of float
        Where delta was asked for, fixed before any draw; the first is the claimed epsilon.
    confidence : float
        With which all measured bounds hold together.
    measured : Sampled
    exact : ExactLoss or None
    trials, seed : int
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    claim: Budget | None
    at_epsilons: tuple[float, ...]
    confidence: float
    measured: Sampled
    exact: ExactLoss | None
    trials: int
    seed: int

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound on epsilon at the claimed delta; finite."""
        known = [self.measured.epsilon_lower]
        if self.exact is not None and math.isfinite(self.exact.epsilon):
            known.append(self.exact.epsilon)
        return max(known)

    @property
    def deltas(self) -> tuple[float, ...]:
        """The largest lower bound on delta at each of ``at_epsilons``."""
        exact = (0.0,) * len(self.at_epsilons) if self.exact is None else self.exact.deltas
        return tuple(max(pair) for pair in zip(self.measured.deltas, exact, strict=True))

    @property
    def _shown(self) -> int:
        """Which of ``at_epsilons`` is reported.

        The last at which at least half of the delta at the claimed epsilon is left, if that is
        more than claimed: a delta that no epsilon removes. Else the claimed epsilon.
        """
        deltas, allowed = self.deltas, 0.0 if self.claim is None else self.claim.delta
        lasting = [i for i, x in enumerate(deltas) if x > allowed and x >= deltas[0] / 2]
        return lasting[-1] if lasting else 0

    @property
    def at_epsilon(self) -> float:
        """The epsilon at which ``delta_lower`` is stated."""
        return self.at_epsilons[self._shown]

    @property
    def delta_lower(self) -> float:
        """The lower bound on delta at ``at_epsilon``."""
        return self.deltas[self._shown]

    @property
    def measured_refutes(self) -> bool:
        """Whether the draws alone break the claim at the stated confidence."""
        if self.claim is None:
            return False
        above = self.measured.epsilon_lower > self.claim.epsilon
        return above or any(delta > self.claim.delta for delta in self.measured.deltas)

    @property
    def exact_refutes(self) -> bool:
        """Whether an exact route breaks the claim."""
        if self.claim is None or self.exact is None:
            return False
        room = 1 + _ROUNDING
        above = self.exact.epsilon > self.claim.epsilon * room
        # at a delta of zero, what rounding leaves of a profile does not count
        return above or self.exact.deltas[0] > max(self.claim.delta * room, 1e-300)

    @property
    def verdict(self) -> AuditVerdict:
        """Refuted, tight or consistent; a claim is never proved by draws."""
        if self.measured_refutes or self.exact_refutes:
            return AuditVerdict.REFUTED
        if self.claim is not None:
            near = self.epsilon_lower >= TIGHT_SHARE * self.claim.epsilon
            if near or 0 < TIGHT_SHARE * self.claim.delta <= self.deltas[0]:
                return AuditVerdict.TIGHT
        return AuditVerdict.CONSISTENT

    @property
    def evidence(self) -> str:
        """One sentence: what was measured, how, and what an audit cannot see."""
        return _evidence(self)

    def to_json(self) -> dict[str, Any]:
        """Return the object that the command line prints."""
        claim = self.claim
        return {
            "mechanism": self.mechanism.text,
            "claimed": None if claim is None else {"epsilon": claim.epsilon, "delta": claim.delta},
            "verdict": str(self.verdict),
            "epsilon_lower": self.epsilon_lower,
            "delta_lower": self.delta_lower,
            "at_epsilon": self.at_epsilon,
            "confidence": self.confidence,
            "evidence": self.evidence,
        }


def _evidence(found: Audit) -> str:
    measured = found.measured
    main = measured.counts[0]
    claim = found.claim
    if claim is None:
        start = "No guarantee is claimed, so there is none to refute; "
    elif found.exact_refutes or found.measured_refutes:
        start = "The claim does not hold: "
    else:
        start = "No draw contradicts the claim: "
    tables = f"{found.trials:,} releases of each of two neighbouring tables ({measured.pair.name})"
    if measured.epsilon_lower > 0:
        seen = (
            f"of {tables}, {main.event.words} named the right one {main.hits:,} times and the "
            f"wrong one {main.misses:,} times, which takes an epsilon of at least "
            f"{numeral(measured.epsilon_lower, 3)}"
        )
    else:
        seen = f"{tables} were not told apart, so epsilon may be anything from 0"
    if measured.support > 0:
        share = numeral(measured.support, 3)
        seen += f", and at least {share} of the releases can come from one table only"
    elif claim is not None and claim.delta > 0:
        seen += f" at delta {numeral(claim.delta)}"
    exact = ""
    if found.exact is not None:
        worth = "no epsilon is enough"
        if math.isfinite(found.exact.epsilon):
            worth = f"epsilon {numeral(found.exact.epsilon, 3)}"
        if found.exact.deltas[0] > 0:
            at = numeral(found.at_epsilons[0], 3)
            worth += f", delta {numeral(found.exact.deltas[0])} at epsilon {at}"
        exact = f"; exactly ({found.exact.source}): {worth}"
    return (
        f"{start}{seen} (confidence {numeral(found.confidence, 4)} for all bounds "
        f"together){exact}; "
        "an audit cannot see a factor of two, and no number of draws proves a claim."
    )
