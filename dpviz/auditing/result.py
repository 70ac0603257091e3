"""The verdict of an audit, and its evidence in words."""

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
"""A proved claim is tight if some neighbours lose at least this share of it."""

# Noise scales are rounded, so compare an exact loss with the claim within this tolerance.
_ROUNDING = 1e-6


class AuditVerdict(StrEnum):
    """The verdict of an audit on a claim; ``tight`` needs exact accounting, never samples alone."""

    REFUTED = "refuted"
    CONSISTENT = "consistent"
    TIGHT = "tight"


@dataclass(frozen=True)
class Count:
    """An event and its counts on the half of the releases that did not choose it.

    Attributes
    ----------
    event : Event
    trials : int
        Number of releases that could have been in the event.
    hits, misses : int
        Numbers of releases for which the attacker named the right and the wrong table.
    p_low, q_high : float
        Lower limit of the share of hits, and upper limit of the share of misses.
    """

    event: Event
    trials: int
    hits: int
    misses: int
    p_low: float
    q_high: float


@dataclass(frozen=True, eq=False)
class Sampled:
    """Bounds from samples, which all hold together with the audit's confidence.

    Attributes
    ----------
    pair : Pair
        The two tables whose releases were compared.
    epsilon_lower : float
        Lower bound at the claimed delta.
    deltas : tuple of float
        Lower bounds on delta at the audit's ``at_epsilons``.
    counts : tuple of Count
        Counts of the event for epsilon, then of the event for each delta.
    support : float
        Lower limit of the probability of a release that the other table can never make; 0 unless
        the noise is one-sided.
    first, second : ndarray of shape (trials,)
        Scores of the epsilon event on the second half; large scores point to the first table.
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
    """The weakest planted fault that the audit refutes. To plant a fault, release with less noise.

    Attributes
    ----------
    factor : float
        The share of the original noise, below 1, under which the audit refutes the claim.
    low, high : float
        Range of ``factor``, two standard errors; see `dpviz.auditing.run.weakest`.
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
        Claim to audit; None if the mechanism makes no claim.
    at_epsilons : tuple of float
        Epsilons at which delta is bounded, fixed before any release; the first is the claimed
        epsilon.
    confidence : float
        Confidence with which all measured bounds hold together.
    measured : Sampled
    exact : ExactLoss or None
    trials, seed : int
    planted : bool
        Whether faults were planted to test the audit's power.
    weakest : Fault or None
        Weakest detected fault; None if the claim itself is refuted, or no planted fault is
        detected.
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
        """Index of the reported epsilon in ``at_epsilons``.

        Take the last epsilon at which delta exceeds the claim and is at least half of delta at the
        claimed epsilon: no epsilon removes such a delta. Else take the claimed epsilon.
        """
        deltas, claimed_delta = self.deltas, 0.0 if self.claim is None else self.claim.delta
        lasting = [i for i, x in enumerate(deltas) if x > claimed_delta and x >= deltas[0] / 2]
        return lasting[-1] if lasting else 0

    @property
    def at_epsilon(self) -> float:
        """The epsilon to which ``delta_lower`` belongs."""
        return self.at_epsilons[self._shown]

    @property
    def delta_lower(self) -> float:
        """The lower bound on delta at ``at_epsilon``."""
        return self.deltas[self._shown]

    @property
    def measured_refutes(self) -> bool:
        """Whether the simulations alone refute the claim at the stated confidence."""
        if self.claim is None:
            return False
        above = self.measured.epsilon_lower > self.claim.epsilon
        return above or any(delta > self.claim.delta for delta in self.measured.deltas)

    @property
    def exact_refutes(self) -> bool:
        """Whether an exact loss refutes the claim."""
        if self.claim is None or self.exact is None:
            return False
        room = 1 + _ROUNDING
        above = self.exact.epsilon > self.claim.epsilon * room
        # If the claim has delta 0, ignore a delta that is only a rounding error.
        return above or self.exact.deltas[0] > max(self.claim.delta * room, 1e-300)

    @property
    def verdict(self) -> AuditVerdict:
        """Refuted, tight or consistent.

        A tight verdict needs a proof from both sides: accounting shows that the claim holds, and an
        exact loss shows that some neighbours lose nearly all of it. Simulated releases near the
        claim may come from a fault that they cannot reveal.
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
        """A sentence on the measurement, its method, and the faults that an audit cannot detect."""
        return _evidence(self)


def _evidence(result: Audit) -> str:
    sample = result.measured
    main = sample.counts[0]
    claim = result.claim
    if claim is None:
        start = "The mechanism claims no guarantee, so there is nothing to refute; "
    elif result.exact_refutes or result.measured_refutes:
        start = "The claim does not hold: "
    else:
        start = "No simulated release contradicts the claim: "
    tables = f"{result.trials:,} releases of each of two neighbouring tables ({sample.pair.name})"
    if sample.epsilon_lower > 0:
        sentence = (
            f"of {tables}, {main.event.words} identified the right table {main.hits:,} "
            f"times and the wrong table {main.misses:,} times, which is possible only if "
            f"epsilon is at least {numeral(sample.epsilon_lower, 3)}"
        )
    else:
        sentence = f"{tables} were not distinguished, so epsilon may be any number from 0"
    if sample.support > 0:
        share = numeral(sample.support, 3)
        sentence += f", and at least {share} of the releases can come from one table only"
    elif claim is not None and claim.delta > 0:
        sentence += f" at delta {numeral(claim.delta)}"
    exact = ""
    if result.exact is not None:
        worth = "no epsilon is enough"
        if math.isfinite(result.exact.epsilon):
            worth = f"epsilon {numeral(result.exact.epsilon, 3)}"
        if result.exact.deltas[0] > 0:
            at = numeral(result.at_epsilons[0], 3)
            worth += f", delta {numeral(result.exact.deltas[0])} at epsilon {at}"
        exact = f"; exactly ({result.exact.source}): {worth}"
    return (
        f"{start}{sentence} (confidence {numeral(result.confidence, 4)} for all bounds "
        f"together){exact}; {weakest_words(result)}no number of simulated releases proves a claim."
    )


def weakest_words(found: Audit) -> str:
    """Return a phrase on the weakest planted fault that the audit detects; empty without faults."""
    if not found.planted:
        return ""
    if found.weakest is None:
        return (
            "the audit found no planted fault, so these simulated releases say nothing "
            "about the claim; "
        )
    low, factor, high = (
        decimals(100 * x, 0) for x in (found.weakest.low, found.weakest.factor, found.weakest.high)
    )
    return (
        f"the weakest planted fault that this number of simulated releases refutes has {factor} % "
        f"of this noise (between {low} and {high} %), and the audit would miss a weaker fault; "
    )
