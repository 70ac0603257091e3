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
from dataclasses import dataclass, replace

import numpy as np

from dpviz.auditing.bounds import delta_bound, epsilon_bound, lower_limit, upper_limit
from dpviz.auditing.events import (
    QUANTUM,
    SUPPORT_ROOM,
    Event,
    EventView,
    LearnedScores,
    chosen,
    delta_value,
    distance,
    epsilon_value,
    shapes_of,
)
from dpviz.auditing.neighbours import Pair, candidates, moved
from dpviz.auditing.result import Audit, Count, Sampled
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, inherit, integer, number, text
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, featured, parse_variant
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.simulation.simulate import Batch, Trials, simulate

DEFAULT_N = 100
DEFAULT_D = 5
DEFAULT_K = 1
DEFAULT_DELTA = 1e-5
DEFAULT_TRIALS = 40_000
DEFAULT_CONFIDENCE = 0.999
LEAST_TRIALS = 200

MOST_EPSILON = 10.0
"""The largest epsilon at which delta is asked for, unless more is claimed."""
_CHUNK_ENTRIES = 1 << 20
_LEAST_PILOT = 100
_PILOT_ALPHA = 1e-6
# Events are chosen at stricter limits than they are counted at: of two that look alike, the one
# seen more often is less of a lucky find.
_CAUTION = 1e-3
_FINALISTS = 4
_ENDLESS = 1e6
_SEARCH_STEPS = (0.5, 0.25, 0.12)
_LEARN_FROM = 10_000
_LEARNED = "learned score"

OnStep = Callable[[str], None]


def audit(
    mechanism: Mechanism,
    budget: Budget,
    *,
    d: int = DEFAULT_D,
    k: int = DEFAULT_K,
    relation: Relation = Relation.REPLACE,
    n: int = DEFAULT_N,
    domain: str = "ball",
    seed: int = 0,
    trials: int = DEFAULT_TRIALS,
    confidence: float = DEFAULT_CONFIDENCE,
    pairs: Sequence[Pair] | None = None,
    progress: OnStep | None = None,
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
    domain : {"ball", "box"}
        Rows of length at most 1, or features between -1 and 1.
    seed : int
        Same seed, same bounds.
    trials : int
        Releases of each table in each half of the draws, at least 200: so many to choose events,
        and as many to count them.
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
    rows = Domain.box(d) if domain == "box" else Domain.ball(d)
    problem = Problem(n, d, k, relation, rows)
    mechanism.check(problem, budget)
    claim = mechanism.claim(problem, budget)
    # deltas are bounded at the claim and above it, by the same counts
    at_epsilons = _at_epsilons((claim or budget).epsilon)
    delta = 0.0 if claim is None else claim.delta
    run = Run(mechanism, mechanism.calibrate(problem, budget), seed, progress or _silent)
    with one_blas_thread():
        tried = run.proposed() if pairs is None else list(pairs)
        # chosen on draws of its own: what is counted must not choose
        pair = run.pilot(tried, delta, trials, search=pairs is None)
        measured = run.measure(pair, trials, 1 - confidence, delta, at_epsilons)
        tables = [pair.tables() for pair in tried]
        exact = mechanism.exact_loss(run.calibration, delta, at_epsilons, tables)
    found = Audit(
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
    # a stranger's account is what is put to the test: it may refute itself, and prove nothing
    return found if mechanism.ours or found.exact_refutes else replace(found, exact=None)


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
class Run:
    """Releases of a calibrated mechanism, and what they tell."""

    mechanism: Mechanism
    calibration: Calibration
    seed: int
    progress: OnStep

    def _generator(self, *labels: str | int) -> np.random.Generator:
        return generator(self.seed, "audit", self.mechanism.text, *labels)

    def proposed(self) -> list[Pair]:
        """Return the pairs that geometry and chance propose."""
        return candidates(
            self.calibration.problem,
            self._generator("pairs"),
            additive=isinstance(self.mechanism, AdditiveMechanism),
            rows=self.mechanism.needs_rows or self.mechanism.info.release == "data",
        )

    def pilot(self, tried: list[Pair], delta: float, trials: int, *, search: bool) -> Pair:
        """Return the pair that releases tell apart best: a short round, a long one, a search."""
        if len(tried) == 1:
            return tried[0]
        short, long = max(_LEAST_PILOT, trials // 40), max(_LEAST_PILOT, trials // 8)
        rank = {}
        for place, pair in enumerate(tried):
            self.progress(f"pilot {place + 1} of {len(tried)}: {pair.name}")
            rank[place] = self._told(pair, delta, short, place, "short")
        finalists = sorted(rank, key=lambda place: (rank[place], -place))[-_FINALISTS:]
        told = {}
        for place in finalists:
            self.progress(f"second pilot: {tried[place].name}")
            told[place] = self._told(tried[place], delta, long, place, "long")
        # Luck must not win: chance and search have to tell clearly more than geometry.
        planned = [place for place in finalists if not tried[place].by_chance] or finalists
        winner = max(planned, key=lambda place: (told[place], -place))
        best, pair = told[winner], tried[winner]
        for place in sorted(finalists):
            if _clearly_more(told[place], best):
                best, pair = told[place], tried[place]
        if not search:
            return pair
        rng = self._generator("search")
        for place, step in enumerate(_SEARCH_STEPS):
            near = moved(pair, self.calibration.problem, step, rng)
            self.progress(f"search: {near.name}")
            here = self._told(near, delta, long, place, "search")
            if _clearly_more(here, best):
                best, pair = here, near
        return pair

    def most_telling(
        self, tried: Sequence[Pair], delta: float, trials: int
    ) -> tuple[tuple[float, float], Pair]:
        """Return what a short round tells of the pair that it tells apart best, and the pair."""
        short = max(_LEAST_PILOT, trials // 40)
        told = []
        for place, pair in enumerate(tried):
            self.progress(f"pilot {place + 1} of {len(tried)}, d {len(pair.first)}: {pair.name}")
            told.append(self._told(pair, delta, short, place, "short"))
        best = max(range(len(tried)), key=lambda place: (told[place], -place))
        return told[best], tried[best]

    def _told(
        self, pair: Pair, delta: float, trials: int, number: int, stage: str
    ) -> tuple[float, float]:
        """Return how much a pilot tells: an estimate of epsilon, and a distance where it is 0."""
        view = self._view(pair)
        sides: list[dict[str, FloatArray]] = []
        outside = 0
        for table in (0, 1):
            parts = []
            seen = 0
            for release in self._releases(
                pair, table, trials, self._generator(stage, number, table)
            ):
                parts.append(view.scores(release))
                seen += self._outside(pair, table, release)
            sides.append(_joined(parts))
            outside = max(outside, seen)
        _, value = chosen(shapes_of(*sides), _PILOT_ALPHA, epsilon_value(delta))
        apart = distance(sides[0], sides[1])
        if outside:
            # Releases that one table cannot make cost more than any epsilon: they come first.
            return _ENDLESS * outside / trials, apart
        return max(0.0, value), apart

    def _outside(self, pair: Pair, table: int, release: Release) -> int:
        """Return how many releases the other table can never make: those below it."""
        if not self.mechanism.dominates_input:
            return 0
        lowest = np.linalg.eigvalsh(release.raw - pair.tables()[1 - table].A)[:, 0]
        return int((lowest < -SUPPORT_ROOM * self.calibration.scale).sum())

    def _view(self, pair: Pair) -> EventView:
        # The scale of matrix and data releases is in units of A; a sampler's is a concentration,
        # and its frames are of order 1.
        noise = 0.0 if self.mechanism.info.release == "subspace" else self.calibration.scale
        return EventView(
            pair,
            self.calibration.problem.k,
            QUANTUM * (1 + noise),
            self.mechanism.log_ratio(self.calibration, *pair.tables()),
        )

    def _releases(
        self, pair: Pair, table: int, trials: int, rng: np.random.Generator
    ) -> Iterator[Release]:
        """Return releases of one table in blocks, so that memory does not grow with the trials."""
        problem = self.calibration.problem
        entries = problem.d * (problem.n if self.mechanism.needs_rows else problem.d)
        most = max(1, min(5_000, _CHUNK_ENTRIES // entries))
        drawn = Trials(
            self.mechanism, self.calibration, pair.tables()[table], Batch(rng, trials), most
        )
        return simulate([drawn], lambda _, release: release)

    def measure(
        self,
        pair: Pair,
        half: int,
        alpha: float,
        delta: float,
        at_epsilons: tuple[float, ...],
    ) -> Sampled:
        """Return the bounds of a pair: events are chosen on one half, and counted on the other."""
        view = self._view(pair)
        self.progress(f"choosing events: {pair.name}")
        learned, ones, twos = self._first_half(view, pair, half)
        values = [epsilon_value(delta), *(delta_value(epsilon) for epsilon in at_epsilons)]
        # Half of the error for epsilon, the rest for the deltas and the support.
        levels = [alpha / 4, *(alpha / 4 / (1 + len(at_epsilons)) for _ in at_epsilons)]
        shapes = shapes_of(ones, twos)
        events = [
            chosen(shapes, _CAUTION * level, value)[0]
            for level, value in zip(levels, values, strict=True)
        ]
        self.progress(f"counting: {pair.name}")
        first, seen_first = self._second_half(view, pair, 0, half, events, learned)
        second, seen_second = self._second_half(view, pair, 1, half, events, learned)
        counts = []
        for event, level in zip(events, levels, strict=True):
            hits, misses, among = event.count(first[event.score], second[event.score])
            p_low = float(lower_limit(hits, among, level))
            q_high = float(upper_limit(misses, among, level))
            counts.append(Count(event, among, hits, misses, p_low, q_high))
        support = 0.0
        if self.mechanism.dominates_input:
            # Releases of one table below the other: at most one table can make each, so the
            # larger count wins and its other probability is 0 by the law, not by counting.
            # Two counts, one of which is looked at: half of the last share for each.
            support = float(lower_limit(max(seen_first, seen_second), half, levels[-1]))
        deltas = [
            max(support, float(delta_bound(count.p_low, count.q_high, epsilon)))
            for count, epsilon in zip(counts[1:], at_epsilons, strict=True)
        ]
        main = counts[0]
        sign = float(main.event.sign)
        return Sampled(
            pair,
            float(epsilon_bound(main.p_low, main.q_high, delta)),
            tuple(deltas),
            tuple(counts),
            support,
            sign * first[main.event.score],
            sign * second[main.event.score],
        )

    def _first_half(
        self, view: EventView, pair: Pair, half: int
    ) -> tuple[LearnedScores, dict[str, FloatArray], dict[str, FloatArray]]:
        """Return the learned score and every score of the first half."""
        streams = [
            self._releases(pair, table, half, self._generator("first", table)) for table in (0, 1)
        ]
        scores: list[list[dict[str, FloatArray]]] = [[], []]
        features: list[list[FloatArray]] = [[], []]
        for stream, parts, blocks in zip(streams, scores, features, strict=True):
            while sum(map(len, blocks)) < _LEARN_FROM:
                release = next(stream, None)
                if release is None:
                    break
                parts.append(view.scores(release))
                blocks.append(_features(view, release, parts[-1]))
        held = [(parts[0].keys(), blocks[0].shape[1]) for parts, blocks in
                zip(scores, features, strict=True)]  # fmt: skip
        if held[0] != held[1]:
            raise CannotRun(
                self.mechanism.text,
                "it must release the same arrays of every table; of two neighbours it did not, "
                "which tells them apart",
            )
        learned = LearnedScores.fit(*(np.concatenate(blocks) for blocks in features))
        for stream, parts, blocks in zip(streams, scores, features, strict=True):
            # The learner has seen these draws; the event is counted on the other half all the same.
            for part, block in zip(parts, blocks, strict=True):
                part[_LEARNED] = learned(block)
            for release in stream:
                part = view.scores(release)
                part[_LEARNED] = learned(_features(view, release, part))
                parts.append(part)
        return learned, _joined(scores[0]), _joined(scores[1])

    def _second_half(
        self,
        view: EventView,
        pair: Pair,
        table: int,
        half: int,
        events: Sequence[Event],
        learned: LearnedScores,
    ) -> tuple[dict[str, FloatArray], int]:
        """Return the chosen scores of the second half, and how many lie below the other table."""
        names = {event.score for event in events}
        parts = []
        outside = 0
        for release in self._releases(pair, table, half, self._generator("second", table)):
            found = view.scores(release)
            if _LEARNED in names:
                found[_LEARNED] = learned(_features(view, release, found))
            parts.append({name: found[name] for name in names})
            outside += self._outside(pair, table, release)
        return _joined(parts), outside


def _clearly_more(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether one pilot told more than another by more than luck explains."""
    return one[0] > 1.1 * other[0] and one[1] > other[1]


def _features(view: EventView, release: Release, scores: dict[str, FloatArray]) -> FloatArray:
    return np.column_stack([*scores.values(), view.entries(release)])


def _joined(parts: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# Options ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditOptions(Declared):
    """What to audit, and how hard to try."""

    mechanism: str | Mechanism = text(  # noqa: RUF009, a declaration
        next(key for key in featured() if not all_mechanisms()[key].info.needs_rows),
        label="Mechanism",
        help="Mechanism or variant such as mvg[theorem=3].",
        flag="MECHANISM",
        objects=True,
    )
    epsilon: float = inherit(Settings, "epsilon", help="The epsilon that is claimed.")
    delta: float | None = inherit(
        Settings,
        "delta",
        help="The delta that is claimed; default 0 for pure claims, "
        f"{numeral(DEFAULT_DELTA, 6)} for others.",
    )
    dimension: int = integer(
        DEFAULT_D, 2, 200, label="Features d", help="Features of the made-up tables."
    )
    k: int = inherit(Settings, "k", default=DEFAULT_K, high=200, help="Components to release.")
    rows: int = integer(
        DEFAULT_N,
        2,
        100_000,
        label="Rows n",
        help="Rows of the made-up tables; more let them be more concentrated.",
    )
    relation: str = inherit(Settings, "relation", help="What one person may change.")
    domain: str = inherit(
        Settings,
        "domain",
        choices={"ball": "rows of length at most 1", "box": "features between -1 and 1"},
        help="What rows the neighbouring tables may hold.",
    )
    seed: int = inherit(Settings, "seed", help="Same seed, same bounds.")
    trials: int = integer(
        DEFAULT_TRIALS,
        LEAST_TRIALS,
        1_000_000,
        label="Draws",
        help="Releases of each table to choose events on, and as many to count them on.",
    )
    confidence: float = number(
        DEFAULT_CONFIDENCE,
        0.5,
        1 - 1e-12,
        label="Confidence",
        help="With which all bounds of one audit hold together.",
    )

    def variant(self, assignments: Sequence[str] = ()) -> Mechanism:
        """Return the mechanism, with ``[mechanism.]parameter=value`` assignments made."""
        return varied(parse_variant(self.mechanism), assignments)

    def run(self, assignments: Sequence[str] = (), progress: OnStep | None = None) -> Audit:
        """Return the audit that the options ask for."""
        mechanism = self.variant(assignments)
        return audit(
            mechanism,
            default_budget(mechanism, self.epsilon, self.delta),
            d=self.dimension,
            k=self.k,
            relation=Relation(self.relation),
            n=self.rows,
            domain=self.domain,
            seed=self.seed,
            trials=self.trials,
            confidence=self.confidence,
            progress=progress,
        )


def varied(mechanism: Mechanism, assignments: Sequence[str]) -> Mechanism:
    """Return a mechanism with ``[mechanism.]parameter=value`` assignments made."""
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        key, dot, name = path.strip().rpartition(".")
        if not equals or (dot and key != mechanism.key):
            raise InvalidSetting(
                "set", f"written {mechanism.key}.parameter=value", assignment, "--set"
            )
        mechanism = type(mechanism).from_texts(mechanism.texts() | {name: value})
    return mechanism
