"""The audit: releases of two neighbouring tables, and what they cost at least.

1. A pilot releases every candidate pair a few times and keeps the pair that tells most, then moves
   it about a little and keeps what tells more.
2. That pair is released many times. On the first half of the draws a linear score is learned and
   one event is chosen for each bound; the other half is looked at only through these events.
3. Clopper-Pearson limits on the counts give lower bounds on epsilon and delta that hold together
   with the stated confidence, whatever was chosen.

An exact route, where there is one, stands beside the draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from dpviz.errors import InvalidSetting
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.moments import FloatArray
from dpviz.privacy.audit.bounds import delta_bound, epsilon_bound, lower_limit, upper_limit
from dpviz.privacy.audit.events import (
    SUPPORT_ROOM,
    Event,
    Learned,
    View,
    chosen,
    delta_value,
    distance,
    epsilon_value,
)
from dpviz.privacy.audit.exact import ExactLoss, exact_loss, one_sided
from dpviz.privacy.audit.neighbours import Pair, candidates, moved
from dpviz.problem import Budget, Domain, Problem, Relation
from dpviz.release import Calibration, Release
from dpviz.seeding import Draws, generator
from dpviz.sweeps import one_blas_thread

DEFAULT_N = 100
DEFAULT_D = 5
DEFAULT_K = 1
DEFAULT_DELTA = 1e-5
DEFAULT_TRIALS = 40_000
DEFAULT_CONFIDENCE = 0.999
LEAST_TRIALS = 200

TIGHT_SHARE = 0.9
"""A lower bound of at least this share of the claim makes it tight."""

MOST_EPSILON = 10.0
"""The largest epsilon at which delta is asked for, unless more is claimed."""

# An exact route is compared with the claim beyond the roundings of a calibration.
_ROUNDING = 1e-6
_CHUNK_ENTRIES = 1 << 20
_PILOT_TRIALS = 1_000
_PILOT_ALPHA = 0.05
_SEARCH_STEPS = (0.5, 0.25, 0.12)
_SEARCH_WIDTH = 2
_LEARN_FROM = 10_000
_LEARNED = "learned score"

Progress = Callable[[str], None]


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
        Releases of each table.
    hits, misses : int
        How many fell into the event: of the table it speaks for, and of the other.
    p_low, q_high : float
        Limits of the two probabilities, each at ``alpha``.
    """

    event: Event
    trials: int
    hits: int
    misses: int
    p_low: float
    q_high: float


@dataclass(frozen=True, eq=False)
class Measured:
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
    first, second : ndarray of shape (trials/2,)
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
    measured : Measured
    exact : ExactLoss or None
    trials, seed : int
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    claim: Budget | None
    at_epsilons: tuple[float, ...]
    confidence: float
    measured: Measured
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


def audit(
    mechanism: Mechanism,
    budget: Budget,
    *,
    d: int = DEFAULT_D,
    k: int = DEFAULT_K,
    relation: Relation = Relation.REPLACE,
    n: int = DEFAULT_N,
    seed: int = 0,
    trials: int = DEFAULT_TRIALS,
    confidence: float = DEFAULT_CONFIDENCE,
    pairs: Sequence[Pair] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Return lower bounds on what a mechanism really costs on made-up worst neighbours.

    Parameters
    ----------
    mechanism : Mechanism
    budget : Budget
        What it is calibrated to.
    d, k, n : int
        Features, components and rows; n only limits how concentrated the tables can be.
    relation : Relation
    seed : int
        Same seed, same bounds.
    trials : int
        Releases of each table, at least 200: half to choose events, half to count them.
    confidence : float
        With which all bounds hold together, above 0 and below 1.
    pairs : sequence of Pair, optional
        Neighbours to release instead of those that geometry and search propose. The caller
        answers for their being legal.
    progress : callable, optional
        Told the name of each step.

    Raises
    ------
    CannotRun
        If the mechanism cannot run on this problem and budget.
    InvalidSetting
        If an argument is out of range.
    """
    if trials < LEAST_TRIALS:
        raise InvalidSetting("trials", f"at least {LEAST_TRIALS}", trials, "--trials")
    if not (0 < confidence < 1):
        raise InvalidSetting("confidence", "above 0 and below 1", confidence, "--confidence")
    problem = Problem(n, d, k, relation, Domain.ball(d))
    mechanism.check(problem, budget)
    claim = mechanism.claim(problem, budget)
    at_epsilons = _at_epsilons((claim or budget).epsilon)
    delta = 0.0 if claim is None else claim.delta
    # One epsilon, a delta at each epsilon and a support event; two limits each.
    alpha = (1 - confidence) / (2 * (2 + len(at_epsilons)))
    run = _Run(mechanism, mechanism.calibrate(problem, budget), seed, progress or _silent)
    with one_blas_thread():
        tried = run.proposed() if pairs is None else list(pairs)
        pair = run.pilot(tried, delta, min(_PILOT_TRIALS, trials), search=pairs is None)
        measured = run.measure(pair, trials // 2, alpha, delta, at_epsilons)
        exact = exact_loss(mechanism, run.calibration, delta, at_epsilons, tried)
    return Audit(
        mechanism,
        problem,
        budget,
        claim,
        at_epsilons,
        confidence,
        measured,
        exact,
        trials,
        seed,
    )


def default_budget(mechanism: Mechanism, epsilon: float, delta: float | None = None) -> Budget:
    """Return the budget of an audit: delta 0 for pure claims and 1e-5 for others."""
    if delta is None:
        delta = DEFAULT_DELTA if mechanism.info.guarantee == "approximate" else 0.0
    return Budget(epsilon, delta)


def _silent(step: str) -> None:
    """Report nothing."""


def _at_epsilons(claimed: float) -> tuple[float, ...]:
    if claimed >= MOST_EPSILON:
        return (claimed,)
    return claimed, math.sqrt(claimed * MOST_EPSILON), MOST_EPSILON


@dataclass(frozen=True)
class _Run:
    mechanism: Mechanism
    calibration: Calibration
    seed: int
    progress: Progress

    def _generator(self, *labels: str | int) -> np.random.Generator:
        return generator(self.seed, "audit", self.mechanism.text, *labels)

    def proposed(self) -> list[Pair]:
        return candidates(
            self.calibration.problem,
            self._generator("pairs"),
            additive=isinstance(self.mechanism, AdditiveMechanism),
            rows=self.mechanism.info.needs_rows or self.mechanism.info.release == "data",
        )

    def pilot(self, tried: list[Pair], delta: float, trials: int, *, search: bool) -> Pair:
        """Return the pair that a few releases tell apart best."""
        ranked = []
        for number, pair in enumerate(tried):
            self.progress(f"pilot {number + 1} of {len(tried)}: {pair.name}")
            ranked.append((self._told(pair, delta, trials, number), -number, pair))
        best = max(ranked, key=lambda entry: entry[:2])
        if not search:
            return best[2]
        rng = self._generator("search")
        number = len(tried)
        for step in _SEARCH_STEPS:
            for _ in range(_SEARCH_WIDTH):
                near = moved(best[2], self.calibration.problem, step, rng)
                self.progress(f"pilot {number + 1}: {near.name}")
                told = self._told(near, delta, trials, number)
                # Luck must not win: a search step has to tell clearly more.
                if told[0] > 1.1 * best[0][0] and told[1] > best[0][1]:
                    best = told, -number, near
                number += 1
        return best[2]

    def _told(self, pair: Pair, delta: float, trials: int, number: int) -> tuple[float, float]:
        """Return how much a pilot tells: an estimate of epsilon, and a distance where it is 0."""
        view = View(pair, self.calibration.problem.k)
        sides = []
        for table in (0, 1):
            parts: list[dict[str, FloatArray]] = []
            rng = self._generator("pilot", number, table)
            for release in self._releases(pair, table, trials, rng):
                parts.append(view.scores(release))
            sides.append(_joined(parts))
        _, value = chosen(sides[0], sides[1], _PILOT_ALPHA, epsilon_value(delta))
        return max(0.0, value), distance(sides[0], sides[1])

    def _releases(
        self, pair: Pair, table: int, trials: int, rng: np.random.Generator
    ) -> _Chunks:
        return _Chunks(self.mechanism, self.calibration, pair, table, trials, rng)

    def measure(
        self,
        pair: Pair,
        half: int,
        alpha: float,
        delta: float,
        at_epsilons: tuple[float, ...],
    ) -> Measured:
        view = View(pair, self.calibration.problem.k)
        self.progress(f"choosing events: {pair.name}")
        learned, ones, twos = self._first_half(view, pair, half)
        values = [epsilon_value(delta), *(delta_value(epsilon) for epsilon in at_epsilons)]
        events = [chosen(ones, twos, alpha, value)[0] for value in values]
        self.progress(f"counting: {pair.name}")
        first, seen_first = self._second_half(view, pair, 0, half, events, learned)
        second, seen_second = self._second_half(view, pair, 1, half, events, learned)
        counts = []
        for event in events:
            hits, misses = event.count(first[event.score]), event.count(second[event.score])
            if not event.from_first:
                hits, misses = misses, hits
            p_low = float(lower_limit(hits, half, alpha))
            q_high = float(upper_limit(misses, half, alpha))
            counts.append(Count(event, half, hits, misses, p_low, q_high))
        support = 0.0
        if one_sided(self.mechanism):
            # Releases of one table below the other: at most one table can make each, so the
            # larger count wins and its other probability is 0 by the law, not by counting.
            support = float(lower_limit(max(seen_first, seen_second), half, alpha))
        deltas = [
            max(support, float(delta_bound(count.p_low, count.q_high, epsilon)))
            for count, epsilon in zip(counts[1:], at_epsilons, strict=True)
        ]
        main = counts[0]
        sign = 1.0 if main.event.above == main.event.from_first else -1.0
        return Measured(
            pair,
            float(epsilon_bound(main.p_low, main.q_high, delta)),
            tuple(deltas),
            tuple(counts),
            support,
            sign * first[main.event.score],
            sign * second[main.event.score],
        )

    def _first_half(
        self, view: View, pair: Pair, half: int
    ) -> tuple[Learned | None, dict[str, FloatArray], dict[str, FloatArray]]:
        """Return the learned score and every score of the first half."""
        scores: list[dict[str, FloatArray]] = []
        features: list[FloatArray] = []
        for table in (0, 1):
            parts, blocks, kept = [], [], 0
            for release in self._releases(pair, table, half, self._generator("first", table)):
                found = view.scores(release)
                parts.append(found)
                if kept < _LEARN_FROM:
                    blocks.append(_features(view, release, found))
                    kept += len(blocks[-1])
            scores.append(_joined(parts))
            features.append(np.concatenate(blocks))
        learned = Learned.fit(*features)
        for table in (0, 1):
            # The learner has seen the start of this half; the event is still counted on the other.
            values = []
            for release in self._releases(pair, table, half, self._generator("first", table)):
                values.append(learned(_features(view, release, view.scores(release))))
            scores[table][_LEARNED] = np.concatenate(values)
        return learned, scores[0], scores[1]

    def _second_half(
        self,
        view: View,
        pair: Pair,
        table: int,
        half: int,
        events: Sequence[Event],
        learned: Learned | None,
    ) -> tuple[dict[str, FloatArray], int]:
        """Return the chosen scores of the second half, and how many lie below the other table."""
        names = {event.score for event in events}
        parts = []
        outside = 0
        other = pair.tables()[1 - table].A
        room = SUPPORT_ROOM * self.calibration.scale
        for release in self._releases(pair, table, half, self._generator("second", table)):
            found = view.scores(release)
            if learned is not None and _LEARNED in names:
                found[_LEARNED] = learned(_features(view, release, found))
            parts.append({name: found[name] for name in names})
            if one_sided(self.mechanism):
                lowest = np.linalg.eigvalsh(release.raw - other)[:, 0]
                outside += int((lowest < -room).sum())
        return _joined(parts), outside


@dataclass(frozen=True)
class _Chunks:
    """Releases of one table in chunks, so that memory does not grow with the trials."""

    mechanism: Mechanism
    calibration: Calibration
    pair: Pair
    table: int
    trials: int
    rng: np.random.Generator

    def __iter__(self) -> Iterator[Release]:
        data = self.pair.tables()[self.table]
        problem = self.calibration.problem
        entries = problem.d * (problem.n if self.mechanism.info.needs_rows else problem.d)
        size = max(1, min(5_000, _CHUNK_ENTRIES // entries))
        done = 0
        while done < self.trials:
            draws = Draws.batch(self.rng, min(size, self.trials - done))
            yield self.mechanism.release_many(data, self.calibration, draws)
            done += draws.size


def _features(view: View, release: Release, scores: dict[str, FloatArray]) -> FloatArray:
    return np.column_stack([*scores.values(), view.entries(release)])


def _joined(parts: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


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
    seen = (
        f"of {main.trials:,} releases of each of two neighbouring tables ({measured.pair.name}), "
        f"{main.event.words} was seen {main.hits:,} times on one and {main.misses:,} times on "
        f"the other, which takes an epsilon of at least {measured.epsilon_lower:.3g}"
    )
    if measured.support > 0:
        seen += (
            f", and at least {measured.support:.3g} of the releases can come from one table only"
        )
    elif claim is not None and claim.delta > 0:
        seen += f" at delta {claim.delta:.2g}"
    exact = ""
    if found.exact is not None:
        worth = "no epsilon is enough"
        if math.isfinite(found.exact.epsilon):
            worth = f"epsilon {found.exact.epsilon:.3g}"
        if found.exact.deltas[0] > 0:
            worth += f", delta {found.exact.deltas[0]:.2g} at epsilon {found.at_epsilons[0]:.3g}"
        exact = f"; exactly ({found.exact.source}): {worth}"
    return (
        f"{start}{seen} (confidence {found.confidence:.4g} for all bounds together){exact}; "
        "an audit cannot see a factor of two, and no number of draws proves a claim."
    )

