"""The verdict of an audit, and the evidence in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from dpviz.accounting.losses import ExactLoss
from dpviz.auditing.events import Event
from dpviz.auditing.neighbours import Pair
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import decimals, numeral
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Verdict
from dpviz.mechanisms import Mechanism

TIGHT_SHARE = 0.9
"""A proved claim of which some neighbours lose at least this share is tight."""

# An exact route is compared with the claim beyond the roundings of a calibration.
_ROUNDING = 1e-6


class AuditVerdict(StrEnum):
    """What an audit can say of a claim; ``tight`` rests on an exact account, never on draws."""

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
    """Bounds from samples; all hold together with the audit's confidence.

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


@dataclass(frozen=True)
class Fault:
    """The weakest planted fault that the same draws refute, found by releasing with less noise.

    Attributes
    ----------
    factor : float
        The share of this release's noise, below 1, under which the audit refutes the claim.
    low, high : float
        Range of ``factor``, of two standard errors; see `dpviz.auditing.run.weakest`.
    """

    factor: float
    low: float
    high: float


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
    planted : bool
        Whether faults were planted to see what the draws can see.
    weakest : Fault or None
        What they see; None where the claim is refuted as it is, or no planted fault was seen.
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
    planted: bool = False
    weakest: Fault | None = None

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound on epsilon at the claimed delta; finite."""
        bounds = [self.measured.epsilon_lower]
        if self.exact is not None and math.isfinite(self.exact.epsilon):
            bounds.append(self.exact.epsilon)
        return max(bounds)

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
        """Refuted, tight or consistent.

        Tight takes a proof from both sides: the claim holds by its account, and by an exact loss
        some neighbours lose nearly all of it. Draws near the claim are as likely to be those of a
        fault that they cannot see.
        """
        if self.measured_refutes or self.exact_refutes:
            return AuditVerdict.REFUTED
        if self.claim is not None and self.exact is not None:
            status = self.mechanism.status(self.problem, self.budget).verdict
            near = self.exact.epsilon >= TIGHT_SHARE * self.claim.epsilon
            near |= 0 < TIGHT_SHARE * self.claim.delta <= self.exact.deltas[0]
            if near and self.mechanism.ours and status is Verdict.HOLDS:
                return AuditVerdict.TIGHT
        return AuditVerdict.CONSISTENT

    @property
    def evidence(self) -> str:
        """One sentence: what was measured, how, and what an audit cannot see."""
        return _evidence(self)


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
        sentence = (
            f"of {tables}, {main.event.words} named the right one {main.hits:,} times and the "
            f"wrong one {main.misses:,} times, which takes an epsilon of at least "
            f"{numeral(measured.epsilon_lower, 3)}"
        )
    else:
        sentence = f"{tables} were not told apart, so epsilon may be anything from 0"
    if measured.support > 0:
        share = numeral(measured.support, 3)
        sentence += f", and at least {share} of the releases can come from one table only"
    elif claim is not None and claim.delta > 0:
        sentence += f" at delta {numeral(claim.delta)}"
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
        f"{start}{sentence} (confidence {numeral(found.confidence, 4)} for all bounds "
        f"together){exact}; {weakest_words(found)}no number of draws proves a claim."
    )


def weakest_words(found: Audit) -> str:
    """Return a phrase on the weakest planted fault that the audit detects; empty without one."""
    if not found.planted:
        return ""
    if found.weakest is None:
        return "no planted fault was seen, so these draws say nothing of the claim; "
    low, factor, high = (
        decimals(100 * x, 0) for x in (found.weakest.low, found.weakest.factor, found.weakest.high)
    )
    return (
        f"the weakest planted fault that so many draws refute has {factor} % of this noise "
        f"(between {low} and {high} %), and a weaker one would not be seen; "
    )
