"""Chaudhuri, Sarwate and Sinha 2012: the theorems and remarks of sections 1 to 4."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import measure
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.chaudhuri._shared import ALPHA, BUDGET, DATA_SETS, DELTA, PPCA, SULQ
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.preparation.load import planned
from dpviz.simulation.bounds import mod_sulq_scaling, ppca_sample_size, pure_lower_sample_size
from dpviz.simulation.cells import evaluate
from dpviz.simulation.least import measured_need
from dpviz.simulation.simulate import Cell, Named, Trials, simulate

RHO, ETA = 0.9, 0.05
REST = 0.01  # Value of every eigenvalue of A except the first.
GAP, DIMENSION = 0.2, 10
BY_D, BY_ALPHA, BY_GAP = "d", "alpha", "the eigengap"
PLACES: Mapping[str, tuple[float, ...]] = {
    BY_D: (10, 20, 40, 80),
    BY_ALPHA: (0.05, 0.1, 0.2, 0.4),
    BY_GAP: (0.05, 0.1, 0.2, 0.4),
}
FEW, ENOUGH = "people shown to be too few", "people shown to be enough"
PEOPLE = {axis: f"people, by {axis}" for axis in PLACES}
STATED, RATE = "Theorem 3: enough", "Theorem 5: d^1.5 sqrt(ln(d/delta)), scaling only"
MET = f"1 where the overlap is at least {RHO} at the stated n"
OVERLAP = "overlap at the n of Theorem 4"
PURE = (PPCA, parse_variant("wishart_difference"), parse_variant("laplace_tight"))
HARD_D, HARD_GAP = (10, 20, 40), 0.5
SECONDS = "processor seconds for one release"
SHAPES = {key: (item.d, item.k) for key, item in DATA_SETS.items() if item.d <= 150}
COMPLEX = "1 where the largest eigenvalue in size is complex"
TURN = "distance of the two top eigenvectors"
COPIES = (1, 10, 1_000)
FAR = 10_000_000  # Number of the first release here. The search for n uses lower numbers.
_NOISY_N = 1_000  # A table with so few people loses its structure in SULQ's noise.

NEEDS, SENSITIVE, RAW, SPEED = (
    "people needed",
    "one changed row",
    "SULQ without symmetry",
    "time",
)


class TheoremPart(Part):
    """One part of the experiment on the theorems.

    Attributes
    ----------
    what : str
        Kind of the part: `NEEDS`, `SENSITIVE`, `RAW`, `SPEED`, or the names of a theorem.
    axis : str
    x : float
        Value on the axis of the part, or the dimension.
    mechanism : str
    draws : int
    """

    what: str = ""
    axis: str = ""
    x: float = 0.0
    mechanism: str = ""
    draws: int = 0


class ChaudhuriTheorems(Experiment):
    """Theorems 1 to 5, and the remarks beside them in the text; see `info`."""

    pictures: ClassVar = {"people": (PEOPLE[BY_D], PPCA, SULQ, STATED, RATE)}

    timed: ClassVar[frozenset[str]] = frozenset({SECONDS})

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each value and mechanism, and for each remark."""
        quick = effort is Effort.QUICK
        parts: list[Part] = [
            TheoremPart("", NEEDS, axis, x, mechanism.text, 80 if quick else 2_000)
            for axis, places in PLACES.items()
            for x in (places[:2] if quick else places)
            for mechanism in ((PPCA, SULQ) if axis == BY_D else (PPCA,))
        ]
        parts += [
            TheoremPart("", "Theorem 4", BY_D, d, mechanism.text, 100 if quick else 1_000)
            for d in HARD_D
            for mechanism in PURE
        ]
        parts.append(TheoremPart("", SENSITIVE))
        parts += [TheoremPart("", RAW, BY_D, d, "", 100 if quick else 1_000) for d in HARD_D]
        parts += [
            TheoremPart("", SPEED, key, 0.0, mechanism.text, 3 if quick else 30)
            for key in SHAPES
            for mechanism in (PPCA, SULQ)
        ]
        return parts

    def run(self, part: TheoremPart, shared: None, seed: int) -> Measurements:
        """Return the measurements of one part."""
        if part.what == NEEDS:
            return _needed(part, seed)
        if part.what == SENSITIVE:
            return Measurements(
                {Point(SENSITIVE, "", TURN, float(m)): np.array([_turned(m)]) for m in COPIES}
            )
        if part.what == RAW:
            return Measurements(
                {Point(RAW, "", COMPLEX, part.x): _complex(int(part.x), part.draws, seed)}
            )
        if part.what == SPEED:
            return _timed(part, seed)
        mechanism, d = parse_variant(part.mechanism), int(part.x)
        found = _overlaps(mechanism, d, HARD_GAP, _hard_n(d), part.draws, seed)
        return Measurements({Point(part.what, mechanism.label, OVERLAP, part.x): found})


# --- what is measured -------------------------------------------------------------------------


def _setting(axis: str, x: float) -> tuple[int, float, float]:
    """Return d, alpha and the eigengap at a value on an axis."""
    return (
        int(x) if axis == BY_D else DIMENSION,
        x if axis == BY_ALPHA else ALPHA,
        x if axis == BY_GAP else GAP,
    )


def _spectrum(d: int, gap: float) -> list[float]:
    return [REST + gap, *[REST] * (d - 1)]


def _needed(part: TheoremPart, seed: int) -> Measurements:
    """Return the people needed at one value, and how often Theorem 3's n is enough."""
    mechanism = parse_variant(part.mechanism)
    d, alpha, gap = _setting(part.axis, part.x)
    measured = planned(_spectrum(d, gap), 1_000)
    settings = Settings(table=measured.name, epsilon=alpha, delta=DELTA, k=1, seed=seed)
    target = measured_need(measured, settings, mechanism, RHO, ETA)
    if target.low is None or target.high is None or not target.monotone:
        raise RuntimeError(f"no crossing found for {mechanism.text} at {part.axis} {part.x:g}")
    quantity, label = PEOPLE[part.axis], mechanism.label
    found = {
        Point(part.axis, label, FEW, part.x): np.array([float(target.low)]),
        Point(part.axis, label, ENOUGH, part.x): np.array([float(target.high)]),
        Point(part.axis, label, quantity, part.x): np.array([math.sqrt(target.low * target.high)]),
    }
    if mechanism == PPCA:
        people = math.ceil(ppca_sample_size(d, alpha, RHO, ETA, REST + gap, REST))
        overlaps = _overlaps(mechanism, d, gap, people, part.draws, seed, alpha)
        found[Point(part.axis, STATED, quantity, part.x)] = np.array([float(people)])
        found[Point(part.axis, STATED, MET, part.x)] = (overlaps >= RHO).astype(float)
    elif part.axis == BY_D:
        # A full run always measures the first d, so the stated rate is scaled to its result there.
        rate = mod_sulq_scaling(d, alpha, DELTA)
        found[Point(part.axis, RATE, quantity, part.x)] = np.array([rate])
    return Measurements(found)


def _overlaps(
    mechanism: Mechanism,
    d: int,
    gap: float,
    n: int,
    draws: int,
    seed: int,
    alpha: float = ALPHA,
) -> FloatArray:
    """Return |<v^, v>| of each release at n people."""
    measured = planned(_spectrum(d, gap), n)
    problem = Problem(n, d, 1, Relation.REPLACE, Domain.ball(d))
    trials = range(FAR, FAR + draws)
    outcome = evaluate(Cell(mechanism, problem, Budget(alpha, DELTA), seed, trials), measured)
    distances = measure(outcome, ["projection_distance"])["projection_distance"]
    overlaps: FloatArray = np.sqrt(np.maximum(1 - distances**2 / 2, 0.0))
    return overlaps


def least_rho(d: int) -> float:
    """Return the least rho that Theorem 4 covers."""
    slack = math.exp(-2 * (math.log(8) + float(np.logaddexp(0, d))) / (d - 2))
    return 1 - slack / 16


def _hard_n(d: int) -> int:
    """Return the largest n at which, by Theorem 4, every pure mechanism fails."""
    bound = pure_lower_sample_size(d, ALPHA, least_rho(d) + 1e-12, HARD_GAP)
    assert bound is not None  # A bound exists for all d here and for this gap.
    return math.ceil(bound) - 1


def _turned(m: int) -> float:
    """Return the distance between top eigenvectors for m + 1 and m copies of two rows."""
    vectors = []
    for counts in ((m + 1, m), (m, m + 1)):
        A = np.diag(np.array(counts, dtype=float)) / (2 * m + 1)
        vectors.append(np.abs(np.linalg.eigh(A)[1][:, -1]))  # This fixes the eigenvector's sign.
    return float(np.linalg.norm(vectors[0] - vectors[1]))


def _complex(d: int, draws: int, seed: int) -> FloatArray:
    """Return 1 for each simulated A + N whose eigenvalue of largest size is complex."""
    std = 2 * math.sqrt(2) * d * math.log(d / DELTA) / (_NOISY_N * ALPHA)
    rng = generator(seed, "reproduce", "chaudhuri", "raw", d)
    noise = std * rng.standard_normal((draws, d, d))
    values = np.linalg.eigvals(np.diag(_spectrum(d, GAP)) + noise)
    largest = np.take_along_axis(values, np.abs(values).argmax(axis=1)[:, None], axis=1)[:, 0]
    found: FloatArray = (np.abs(np.imag(largest)) > 0).astype(float)
    return found


def _timed(part: TheoremPart, seed: int) -> Measurements:
    """Return the processor time of each of several releases."""
    mechanism = parse_variant(part.mechanism)
    d, k = SHAPES[part.axis]
    n = DATA_SETS[part.axis].n
    values = 0.5 * 0.9 ** np.arange(d)
    moment = SecondMoment(np.diag(values / values.sum()), n)
    problem = Problem(n, d, k, Relation.REPLACE, Domain.ball(d))
    calibration = mechanism.calibrate(problem, BUDGET)
    seconds = []
    for trial in range(part.draws + 1):
        streams = Named(seed, mechanism.key, range(trial, trial + 1))
        one = Trials(mechanism, calibration, moment, streams)
        started = time.process_time()
        list(simulate([one], lambda *_: None))
        seconds.append(time.process_time() - started)
    # The first release is not counted, because it also fills caches and takes longer.
    return Measurements({Point(part.axis, mechanism.label, SECONDS): np.array(seconds[1:])})
