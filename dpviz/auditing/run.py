"""Audit a mechanism: lower bounds from releases of two neighbouring tables.

1. A pilot releases every candidate pair a few times and keeps the pair that reveals most. A search
   moves this pair a little and keeps any pair that reveals more.
2. That pair is released many times. The first half of the releases trains a linear score and
   chooses one event for each bound. The other half is used only to count these events.
3. Clopper-Pearson limits on the counts give lower bounds on epsilon and delta that hold together
   with the stated confidence, however the events were chosen.

If an exact loss is known, the result also states this loss.
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
from dpviz.auditing.result import Audit, Count, Fault, Sampled
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, inherit, integer, number, text
from dpviz.core.problem import EPSILON_RANGE, Budget, Domain, Problem, Relation
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
"""The largest epsilon at which delta is bounded, unless the claim is larger."""
_CHUNK_ENTRIES = 1 << 20
_LEAST_PILOT = 100
# With fewer releases, the best pair of tables often does not reach the second round. With this
# many, the first round takes no longer than the main count.
_USUAL_PILOT = 600
_PILOT_ALPHA = 1e-6
# Choose events at a stricter error level than the count uses. Of two similar events, the more
# frequent one then wins, which is less likely to be luck.
_CAUTION = 1e-3
_FINALISTS = 4
_ENDLESS = 1e6
_SEARCH_STEPS = (0.5, 0.25, 0.12)
_LEARN_FROM = 10_000
_MOST_DOUBLINGS = 6
_PLANTED_STEPS = 4
_NEAR = math.log(2.5)
_LEAST, _MOST = EPSILON_RANGE
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
    rows_a_person: int | None = None,
    domain: str = "ball",
    seed: int = 0,
    trials: int = DEFAULT_TRIALS,
    confidence: float = DEFAULT_CONFIDENCE,
    pairs: Sequence[Pair] | None = None,
    plant: bool = False,
    progress: OnStep | None = None,
) -> Audit:
    """Return lower bounds on a mechanism's privacy loss, on synthetic worst-case neighbours.

    Parameters
    ----------
    mechanism : Mechanism
    budget : Budget
        Budget to which the mechanism is calibrated.
    d, k, n : int
        Numbers of features, components and rows; n only limits the concentration of the tables.
    relation : Relation
    rows_a_person : int, optional
        Number of rows in which neighbours differ; one row by default.
    domain : {"ball", "box"}
        Domain: rows of length at most 1, or features between -1 and 1.
    seed : int
        The same seed gives the same bounds.
    trials : int
        Releases of each table in each half, at least 200: one half to choose events, the other to
        count them.
    confidence : float
        Confidence with which all bounds hold together, above 0 and below 1.
    pairs : sequence of Pair, optional
        Neighbours to release instead of those that geometry and search propose. The caller must
        ensure that they are legal.
    plant : bool
        Whether to repeat the audit on releases with less noise, to find the weakest fault that it
        refutes; this takes several times as long.
    progress : callable, optional
        A function that is called with the name of each step.

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
    problem = Problem(n, d, k, relation, rows, rows_a_person=rows_a_person)
    if problem.together >= n:
        raise InvalidSetting(
            "rows_a_person", f"below the table's {n:,} rows", rows_a_person, "--rows-a-person"
        )
    mechanism.check(problem, budget)
    claim = mechanism.claim(problem, budget)
    # Bound delta at the claimed epsilon and at larger ones, from the same releases.
    at_epsilons = _at_epsilons((claim or budget).epsilon)
    delta = 0.0 if claim is None else claim.delta
    calibration = mechanism.calibrate(problem, budget)
    run = Run(mechanism, calibration, seed, progress or _silent, problem)
    with one_blas_thread():
        pairs_to_try = run.proposed() if pairs is None else list(pairs)
        # Choose the pair of tables with separate releases, not with the releases that are counted.
        pair = run.pilot(pairs_to_try, delta, trials, search=pairs is None)
        sample = run.measure(pair, trials, 1 - confidence, delta, at_epsilons)
        tables = [pair.tables() for pair in pairs_to_try]
        exact = mechanism.exact_loss(run.calibration, delta, at_epsilons, tables)
    result = Audit(
        mechanism,
        problem,
        budget,
        claim,
        at_epsilons,
        confidence,
        sample,
        exact,
        trials,
        seed,
    )
    # The audit tests a custom mechanism's accounting, which may refute the claim but not prove it.
    if not (mechanism.ours or result.exact_refutes):
        result = replace(result, exact=None)
    if not plant or claim is None:
        return result
    is_refuted = result.measured_refutes or result.exact_refutes
    if is_refuted:
        return result
    with one_blas_thread():
        fault = weakest(result, run, pairs_to_try if pairs is None else [pair])
        return replace(result, planted=True, weakest=fault)


def weakest(found: Audit, run: Run, pairs: list[Pair]) -> Fault | None:
    """Return the weakest fault that an audit would have refuted, found by planting faults.

    A fault is planted by calibrating to more than the claimed epsilon and holding the releases to
    the claim. Epsilon is doubled until the releases refute the claim, and the last doubling is
    bisected. The pair is chosen again on releases with the first detected fault, as an audit of
    that fault would choose it. Releases without a fault hardly differ, so they do not show which
    pair reveals most. The range comes from a line through all results near the threshold. The range
    is two standard errors wide, and no narrower than the last step of the search.

    Parameters
    ----------
    found : Audit
        Audit that did not refute its claim; sets the number of releases and the levels.
    run : Run
        Run that made the audit.
    pairs : list of Pair
        The candidate pairs, or the attacked pair.
    """
    assert found.claim is not None
    claim, pair, trail = found.claim, found.measured.pair, list[tuple[float, float, float]]()

    def planted(more: float) -> Calibration | None:
        """Return the calibration at ``more`` times epsilon, or None if there is none."""
        epsilon = more * found.budget.epsilon
        budget = replace(found.budget, epsilon=min(max(epsilon, _LEAST), _MOST))
        if budget.epsilon != epsilon or found.mechanism.why_not(found.problem, budget) is not None:
            return None
        return found.mechanism.calibrate(found.problem, budget)

    def reach(more: float) -> float:
        """Return the refuted share of the claim at ``more`` times epsilon; 0 if none."""
        calibration = planted(more)
        if calibration is None:
            return 0.0
        run.progress(f"planting a fault: epsilon {numeral(more * found.budget.epsilon, 3)}")
        sample = replace(run, calibration=calibration, stream=f"planted {more}").measure(
            pair, found.trials, 1 - found.confidence, claim.delta, found.at_epsilons
        )
        share = math.inf
        if sample.support <= claim.delta:
            # Each event has its own epsilon; divide the epsilon bound at the claimed delta by it.
            share = max(
                float(epsilon_bound(count.p_low, count.q_high, claim.delta)) / asked
                for count, asked in zip(
                    sample.counts, (claim.epsilon, *found.at_epsilons), strict=True
                )
            )
        trail.append((more, _noise_left(run.calibration, calibration, more), share))
        return share

    def doubled() -> float | None:
        """Return the first doubling at which the claim is refuted."""
        doublings = (2.0**power for power in range(1, _MOST_DOUBLINGS + 1))
        return next((more for more in doublings if reach(more) >= 1), None)

    high = doubled()
    louder = None if high is None else planted(high)
    if louder is not None:
        again = replace(run, calibration=louder, stream="planted").pilot(
            pairs, claim.delta, found.trials, search=True
        )
        if again is not pair:
            pair = again
            trail.clear()
            high = doubled()
    if high is None:
        return None
    low = high / 2
    for _ in range(_PLANTED_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reach(middle) >= 1 else (middle, high)
    with np.errstate(divide="ignore"):  # Allow log(0): a refuted share of 0 has the logarithm -inf.
        logs = np.log(np.array(sorted(trail)))
    centre, room = math.log(low * high) / 2, math.log(high / low) / 2
    # Near the threshold, the refuted share is a power of epsilon. So fit a line through all results
    # near the threshold, which is more certain than the last step alone.
    near = np.isfinite(logs[:, 2]) & (np.abs(logs[:, 2]) < _NEAR)
    if near.sum() > 2:
        x, y = logs[near, 0], logs[near, 2]
        slope, level = np.polyfit(x, y, 1)
        if slope > 0:
            centre = -level / slope
            spread = math.sqrt(float(np.square(y - level - slope * x).sum()) / (near.sum() - 2))
            apart = 1 / near.sum() + (centre - x.mean()) ** 2 / float(np.square(x - x.mean()).sum())
            room = max(room, 2 * spread * math.sqrt(apart) / slope)
    spots = np.array([centre, centre + room, centre - room])
    factor, least, most = np.exp(np.interp(spots, [0.0, *logs[:, 0]], [0.0, *logs[:, 1]])).tolist()
    return Fault(factor, least, most)


def _noise_left(whole: Calibration, faulty: Calibration, more: float) -> float:
    """Return the share of the noise that remains with a planted fault.

    A sampler's scale is a concentration and grows with epsilon. If the scale is unknown or
    constant, noise is taken as inversely proportional to epsilon.
    """
    if whole.scale <= 0 or faulty.scale in (0.0, whole.scale):
        return 1 / more
    ratio = faulty.scale / whole.scale
    return min(ratio, 1 / ratio)


def default_budget(mechanism: Mechanism, epsilon: float, delta: float | None = None) -> Budget:
    """Return the budget of an audit: delta 0 for pure claims and 1e-5 for other claims."""
    if delta is None:
        delta = DEFAULT_DELTA if mechanism.info.guarantee == "approximate" else 0.0
    return Budget(epsilon, delta)


def _silent(step: str) -> None:
    """Report nothing."""


def _at_epsilons(epsilon: float) -> tuple[float, ...]:
    if epsilon >= MOST_EPSILON:
        return (epsilon,)
    return epsilon, math.sqrt(epsilon * MOST_EPSILON), MOST_EPSILON


@dataclass(frozen=True)
class Run:
    """Releases of a calibrated mechanism for an audit."""

    mechanism: Mechanism
    calibration: Calibration
    seed: int
    progress: OnStep
    problem: Problem
    stream: str = ""

    def _generator(self, *labels: str | int) -> np.random.Generator:
        stream = (self.stream,) if self.stream else ()
        return generator(self.seed, "audit", self.mechanism.text, *stream, *labels)

    def proposed(self) -> list[Pair]:
        """Return the candidate pairs, from geometry and at random."""
        return candidates(
            self.problem,
            self._generator("pairs"),
            additive=isinstance(self.mechanism, AdditiveMechanism),
            rows=self.mechanism.needs_rows or self.mechanism.info.release == "data",
        )

    def pilot(self, pairs: list[Pair], delta: float, trials: int, *, search: bool) -> Pair:
        """Return the pair of tables that releases distinguish best, by two rounds and a search."""
        if len(pairs) == 1:
            return pairs[0]
        usual = min(_USUAL_PILOT, trials // len(pairs))
        short = max(_LEAST_PILOT, trials // 40, usual)
        long = max(short, trials // 8)
        rank = {}
        for place, pair in enumerate(pairs):
            self.progress(f"pilot {place + 1} of {len(pairs)}: {pair.name}")
            rank[place] = self._told(pair, delta, short, place, "short")
        finalists = sorted(rank, key=lambda place: (rank[place], -place))[-_FINALISTS:]
        values = {}
        for place in finalists:
            self.progress(f"second pilot: {pairs[place].name}")
            values[place] = self._told(pairs[place], delta, long, place, "long")
        # Random and searched pairs must beat geometric pairs by a margin, which excludes luck.
        places = [place for place in finalists if not pairs[place].by_chance] or finalists
        winner = max(places, key=lambda place: (values[place], -place))
        best, pair = values[winner], pairs[winner]
        for place in sorted(finalists):
            if _clearly_more(values[place], best):
                best, pair = values[place], pairs[place]
        if not search:
            return pair
        rng = self._generator("search")
        for place, step in enumerate(_SEARCH_STEPS):
            near = moved(pair, self.calibration.problem, step, rng)
            self.progress(f"search: {near.name}")
            value = self._told(near, delta, long, place, "search")
            if _clearly_more(value, best):
                best, pair = value, near
        return pair

    def most_telling(
        self, pairs: Sequence[Pair], delta: float, trials: int
    ) -> tuple[tuple[float, float], Pair]:
        """Return the best result of a short round, and the pair that gave it."""
        short = max(_LEAST_PILOT, trials // 40)
        values = []
        for place, pair in enumerate(pairs):
            self.progress(f"pilot {place + 1} of {len(pairs)}, d {len(pair.first)}: {pair.name}")
            values.append(self._told(pair, delta, short, place, "short"))
        best = max(range(len(pairs)), key=lambda place: (values[place], -place))
        return values[best], pairs[best]

    def _told(
        self, pair: Pair, delta: float, trials: int, number: int, stage: str
    ) -> tuple[float, float]:
        """Return a pilot's estimate of epsilon, and a distance that ranks estimates of 0."""
        view = self._view(pair)
        sides: list[dict[str, FloatArray]] = []
        outside = 0
        for table in (0, 1):
            parts = []
            outside_here = 0
            for release in self._releases(
                pair, table, trials, self._generator(stage, number, table)
            ):
                parts.append(view.scores(release))
                outside_here += self._outside(pair, table, release)
            sides.append(_joined(parts))
            outside = max(outside, outside_here)
        _, value = chosen(shapes_of(*sides), _PILOT_ALPHA, epsilon_value(delta))
        apart = distance(sides[0], sides[1])
        if outside:
            # If one table can never make a release, no epsilon covers it, so its pair comes first.
            return _ENDLESS * outside / trials, apart
        return max(0.0, value), apart

    def _outside(self, pair: Pair, table: int, release: Release) -> int:
        """Return how many releases, those below its moment, the other table can never make."""
        if not self.mechanism.dominates_input:
            return 0
        lowest = np.linalg.eigvalsh(release.raw - pair.tables()[1 - table].A)[:, 0]
        return int((lowest < -SUPPORT_ROOM * self.calibration.scale).sum())

    def _view(self, pair: Pair) -> EventView:
        # For matrices and rows, the noise scale is in units of A. For a subspace, the scale is a
        # concentration, so use 0: released entries are about 1.
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
        task = Trials(
            self.mechanism, self.calibration, pair.tables()[table], Batch(rng, trials), most
        )
        return simulate([task], lambda _, release: release)

    def measure(
        self,
        pair: Pair,
        half: int,
        alpha: float,
        delta: float,
        at_epsilons: tuple[float, ...],
    ) -> Sampled:
        """Return the bounds of a pair, with events chosen on one half and counted on the other."""
        view = self._view(pair)
        self.progress(f"choosing events: {pair.name}")
        model, ones, twos = self._first_half(view, pair, half)
        values = [epsilon_value(delta), *(delta_value(epsilon) for epsilon in at_epsilons)]
        # Half of the allowed error is for epsilon, and the rest is for the deltas and the support.
        levels = [alpha / 4, *(alpha / 4 / (1 + len(at_epsilons)) for _ in at_epsilons)]
        shapes = shapes_of(ones, twos)
        events = [
            chosen(shapes, _CAUTION * level, value)[0]
            for level, value in zip(levels, values, strict=True)
        ]
        self.progress(f"counting: {pair.name}")
        first, seen_first = self._second_half(view, pair, 0, half, events, model)
        second, seen_second = self._second_half(view, pair, 1, half, events, model)
        counts = []
        for event, level in zip(events, levels, strict=True):
            hits, misses, among = event.count(first[event.score], second[event.score])
            p_low = float(lower_limit(hits, among, level))
            q_high = float(upper_limit(misses, among, level))
            counts.append(Count(event, among, hits, misses, p_low, q_high))
        support = 0.0
        if self.mechanism.dominates_input:
            # At most one of the two tables can make releases below the other table. So use the
            # larger of two counts; its event has probability 0 under the other table. As this
            # chooses one of two, each count gets half of the last share of the error.
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
        layout = [(parts[0].keys(), blocks[0].shape[1]) for parts, blocks in
                zip(scores, features, strict=True)]  # fmt: skip
        if layout[0] != layout[1]:
            raise CannotRun(
                self.mechanism.text,
                "a mechanism must release the same set of arrays for every table. For two "
                "neighbouring tables the sets of arrays differ, which reveals the table",
            )
        model = LearnedScores.fit(*(np.concatenate(blocks) for blocks in features))
        for stream, parts, blocks in zip(streams, scores, features, strict=True):
            # The score learned from these releases, but events are counted on the other half.
            for part, block in zip(parts, blocks, strict=True):
                part[_LEARNED] = model(block)
            for release in stream:
                part = view.scores(release)
                part[_LEARNED] = model(_features(view, release, part))
                parts.append(part)
        return model, _joined(scores[0]), _joined(scores[1])

    def _second_half(
        self,
        view: EventView,
        pair: Pair,
        table: int,
        half: int,
        events: Sequence[Event],
        model: LearnedScores,
    ) -> tuple[dict[str, FloatArray], int]:
        """Return the second half's chosen scores, and how many lie below the other table."""
        names = {event.score for event in events}
        parts = []
        outside = 0
        for release in self._releases(pair, table, half, self._generator("second", table)):
            scores = view.scores(release)
            if _LEARNED in names:
                scores[_LEARNED] = model(_features(view, release, scores))
            parts.append({name: scores[name] for name in names})
            outside += self._outside(pair, table, release)
        return _joined(parts), outside


def _clearly_more(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether one pilot clearly reveals more than another, beyond chance."""
    return one[0] > 1.1 * other[0] and one[1] > other[1]


def _features(view: EventView, release: Release, scores: dict[str, FloatArray]) -> FloatArray:
    return np.column_stack([*scores.values(), view.entries(release)])


def _joined(parts: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# Options ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditOptions(Declared):
    """Options of an audit."""

    mechanism: str | Mechanism = text(  # noqa: RUF009, a declaration
        next(key for key in featured() if not all_mechanisms()[key].info.needs_rows),
        label="Mechanism",
        help="A mechanism or a variant, such as mvg[theorem=3].",
        flag="MECHANISM",
        objects=True,
    )
    epsilon: float = inherit(Settings, "epsilon", help="Epsilon that the mechanism claims.")
    delta: float | None = inherit(
        Settings,
        "delta",
        help="Delta that the mechanism claims; default 0 for pure claims, "
        f"{numeral(DEFAULT_DELTA, 6)} for other claims.",
    )
    dimension: int = integer(
        DEFAULT_D, 2, 200, label="Features d", help="Number of features of the synthetic tables."
    )
    k: int = inherit(Settings, "k", default=DEFAULT_K, high=200, help="Number of components.")
    rows: int = integer(
        DEFAULT_N,
        2,
        100_000,
        label="Rows n",
        help="Number of rows of the synthetic tables; it limits how concentrated tables can be.",
    )
    relation: str = inherit(Settings, "relation", help="How neighbouring tables differ.")
    rows_a_person: int | None = inherit(
        Settings,
        "rows_a_person",
        help="Largest number of rows that one person has; neighbouring tables then differ in all "
        "rows of one person. Without this option, neighbouring tables differ in one row.",
    )
    domain: str = inherit(
        Settings,
        "domain",
        choices={"ball": "rows of length at most 1", "box": "features between -1 and 1"},
        help="Domain of the rows of neighbouring tables.",
    )
    seed: int = inherit(Settings, "seed", help="The same seed gives the same bounds.")
    trials: int = integer(
        DEFAULT_TRIALS,
        LEAST_TRIALS,
        1_000_000,
        label="Draws",
        help="Number of simulated releases of each table to choose events; another set of the same "
        "size counts the events.",
    )
    confidence: float = number(
        DEFAULT_CONFIDENCE,
        0.5,
        1 - 1e-12,
        label="Confidence",
        help="Confidence with which all bounds of one audit hold together.",
    )

    def variant(self, assignments: Sequence[str] = ()) -> Mechanism:
        """Return the mechanism with ``[mechanism.]parameter=value`` assignments applied."""
        return varied(parse_variant(self.mechanism), assignments)

    def run(self, assignments: Sequence[str] = (), progress: OnStep | None = None) -> Audit:
        """Run the audit with these options."""
        mechanism = self.variant(assignments)
        return audit(
            mechanism,
            default_budget(mechanism, self.epsilon, self.delta),
            d=self.dimension,
            k=self.k,
            relation=Relation(self.relation),
            n=self.rows,
            rows_a_person=self.rows_a_person,
            domain=self.domain,
            seed=self.seed,
            trials=self.trials,
            confidence=self.confidence,
            plant=True,
            progress=progress,
        )


def varied(mechanism: Mechanism, assignments: Sequence[str]) -> Mechanism:
    """Return a mechanism with ``[mechanism.]parameter=value`` assignments applied."""
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        key, dot, name = path.strip().rpartition(".")
        if not equals or (dot and key != mechanism.key):
            raise InvalidSetting(
                "set", f"written {mechanism.key}.parameter=value", assignment, "--set"
            )
        mechanism = type(mechanism).from_texts(mechanism.texts() | {name: value})
    return mechanism
