"""The inverse question: how little privacy loss, or how many people, reach a goal.

The answer is searched on a fine logarithmic lattice by tests on simulated
draws, not read off a grid. At each point tried, a game of bets decides whether
the expected measure lies above or below the goal: a player who is right grows
rich, and by Ville's inequality a player who is wrong reaches ``1/alpha`` times
the stake with probability at most alpha, however long the game runs (Shafer and
Vovk 2019; Waudby-Smith and Ramdas 2024). The bets are a fixed mixture, so the
player's capital rises with every value seen.

Two ways keep the whole search at its confidence:

* **Monotone draws.** Where the release is A + t N with one N per draw, a draw's
  captured variance never rises with t. For t1 < t2 let q and r be tr(V'AV) and
  tr(V'NV) of the top k of A + t N. Each space is the best for its own matrix:
  ``q1 + t1 r1 >= q2 + t1 r2`` and ``q2 + t2 r2 >= q1 + t2 r1``. Their sum gives
  ``r2 >= r1``, and then the first gives ``q1 - q2 >= t1 (r2 - r1) >= 0``. So with
  the same draws at every point, the capital is monotone along the lattice as
  well; an error anywhere implies an error at the crossing itself, and no price
  is paid for looking at many points.
* **Fresh draws.** Elsewhere every test has draws of its own, and test j is run
  at level ``alpha/(j (j + 1))``, which sums to alpha. That the expected measure
  is monotone is then an assumption; it is tested at a few points further out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpviz.datasets import load
from dpviz.datasets.builtin import builtin_tables
from dpviz.errors import CannotRun, InvalidSetting
from dpviz.measured import Measured
from dpviz.mechanisms import Mechanism, parse_variants
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.metrics import METRICS, Metric
from dpviz.moments import FloatArray, SecondMoment
from dpviz.params import format_number
from dpviz.predict import predict
from dpviz.prepare import prepare
from dpviz.problem import EPSILON_RANGE, Budget, Domain, Problem
from dpviz.release import Status, Verdict
from dpviz.settings import Settings, default_delta
from dpviz.sweeps import Cell, evaluate

PEOPLE_RANGE = (10, 10**12)
_STEP = 0.02  # of the lattice, in the logarithm
_FIRST_DRAWS = 16
_ENTRIES = 1_000_000  # of the matrices that are drawn at a time
# Shares of the largest bet that cannot bankrupt, and how the stake is spread over them.
_BETS = 0.95 * np.logspace(0, -2.5, 10)
_STAKES = 0.7 ** np.arange(10) / (0.7 ** np.arange(10)).sum()
_MANY_TESTS = 20  # more than a search makes, as a rule
_CHECKS = (round(math.log(4) / _STEP), round(math.log(64) / _STEP))

Sampler = Callable[[float, range], FloatArray]


# Goals ---------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """What is to be reached.

    Attributes
    ----------
    metric : str
        Key of `dpviz.metrics.METRICS`, one that has a better direction.
    value : float
        In the metric's unit; reached from above or below as the metric asks.
    of_draws : float or None
        None: the mean over releases reaches the value. A number between 0 and
        1: at least that share of releases does; the only form for a metric
        without an upper limit.
    """

    metric: str = "captured_share"
    value: float = 0.9
    of_draws: float | None = None

    def __post_init__(self) -> None:
        if self.metric not in METRICS or METRICS[self.metric].better == "neither":
            known = ", ".join(key for key, m in METRICS.items() if m.better != "neither")
            raise InvalidSetting("the goal's metric", f"one of {known}", self.metric)
        if not 0 < self.value < math.inf:
            raise InvalidSetting("the goal", "a positive number", self.value)
        if self.of_draws is not None and not 0 < self.of_draws < 1:
            raise InvalidSetting("the share of releases", "above 0 and below 1", self.of_draws)

    @property
    def measure(self) -> Metric:
        """The metric of the goal."""
        return METRICS[self.metric]

    def check(self, problem: Problem) -> None:
        """Raise InvalidSetting if the goal makes no sense for this problem."""
        upper = self.measure.upper(problem.d, problem.k)
        if math.isinf(upper):
            if self.of_draws is None:
                raise InvalidSetting(
                    "the share of releases",
                    f"given for {self.measure.label}, which has no upper limit",
                    "none",
                )
        elif not self.value < upper:
            raise InvalidSetting("the goal", f"above 0 and below {upper:g}", self.value)

    def unit_values(self, values: FloatArray, problem: Problem) -> FloatArray:
        """Return values mapped to [0, 1], more being better."""
        higher = self.measure.better == "higher"
        if self.of_draws is not None:
            met = values >= self.value if higher else values <= self.value
            return met.astype(float)
        upper = self.measure.upper(problem.d, problem.k)
        unit = np.clip(values / upper, 0.0, 1.0)
        return unit if higher else 1 - unit

    def unit_threshold(self, problem: Problem) -> float:
        """Return what the mean of the mapped values must reach."""
        if self.of_draws is not None:
            return self.of_draws
        unit = self.value / self.measure.upper(problem.d, problem.k)
        return unit if self.measure.better == "higher" else 1 - unit

    def reached_by(self, value: float) -> bool:
        """Return whether one value of the metric reaches the goal."""
        return value >= self.value if self.measure.better == "higher" else value <= self.value


# Bets ----------------------------------------------------------------------


class Bets:
    """Two players, on a mean above and below a threshold, over draws in [0, 1].

    Both start with 1. If the mean is at most the threshold, the capital on
    ``above`` is a supermartingale whatever the law of the draws, and the other
    way round. Bets are a mixture fixed in advance, so capital is monotone in
    every draw.

    Parameters
    ----------
    threshold : float
        Above 0 and below 1.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._logs = np.zeros((2, len(_BETS)))
        self.best = np.zeros(2)  # largest log capital so far, above and below

    def see(self, values: FloatArray) -> None:
        """Play on a batch of draws, in order."""
        gain = values - self.threshold
        sizes = np.stack([_BETS / self.threshold, -_BETS / (1 - self.threshold)])
        steps = np.log1p(sizes[:, :, None] * gain)
        path = self._logs[:, :, None] + np.cumsum(steps, axis=2)
        capital = np.logaddexp.reduce(path + np.log(_STAKES)[:, None], axis=1)
        self.best = np.maximum(self.best, capital.max(axis=1))
        self._logs = path[:, :, -1]

    def verdict(self, log_needed: float) -> int:
        """Return 1 if the mean is above, -1 if below, 0 if not yet known."""
        above, below = self.best >= log_needed
        if above and below:  # each is an error of probability alpha at most
            return 0
        return int(above) - int(below)


# The search ----------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """Where an increasing curve crosses a threshold.

    Attributes
    ----------
    low : float or None
        Largest point shown to lie below the threshold; None if none was.
    high : float or None
        Smallest point shown to lie above it; None if none was.
    last_is_below : bool
        Whether even the last point was shown to lie below.
    monotone : bool
        False if points were seen in the wrong order, so that a single crossing
        cannot be spoken of.
    tests, draws : int
        Work done.
    """

    low: float | None
    high: float | None
    last_is_below: bool
    monotone: bool
    tests: int
    draws: int


@dataclass
class _Search:
    """One search on a lattice; see the module docstring."""

    points: FloatArray
    sample: Sampler
    threshold: float
    alpha: float
    most_draws: int
    shared: bool

    def __post_init__(self) -> None:
        self.verdicts: dict[int, int] = {}
        self.draws = 0

    def test(self, index: int) -> int:
        """Return 1, -1 or 0: the point is above, below or not told apart."""
        if index in self.verdicts:
            return self.verdicts[index]
        number = len(self.verdicts)
        if self.shared:  # alpha/2 for each of the two ends, once
            log_needed, first = math.log(2 / self.alpha), 0
        else:
            log_needed = math.log((number + 1) * (number + 2) / self.alpha)
            first = number * self.most_draws
        bets, done, verdict = Bets(self.threshold), 0, 0
        while done < self.most_draws and verdict == 0:
            upto = min(max(2 * done, _FIRST_DRAWS), self.most_draws)
            trials = range(first + done, first + upto)
            bets.see(self.sample(float(self.points[index]), trials))
            done = upto
            verdict = bets.verdict(log_needed)
        self.draws += done
        self.verdicts[index] = verdict
        return verdict

    def run(self, start: int, step: int) -> Found:
        """Search from a first guess, in growing steps and then by halving."""
        top = len(self.points) - 1
        at, width = start, step
        while self.test(at) <= 0 and at < top:
            at, width = min(at + width, top), 2 * width
        at, width = start, step
        while self.test(at) >= 0 and at > 0:
            at, width = max(at - width, 0), 2 * width

        # The largest point shown below, from what is known not to be.
        low = max((i for i, v in self.verdicts.items() if v < 0), default=-1)
        ceiling = min((i for i, v in self.verdicts.items() if v >= 0 and i > low), default=top + 1)
        while ceiling - low > 1:
            middle = (low + ceiling) // 2
            low, ceiling = (middle, ceiling) if self.test(middle) < 0 else (low, middle)
        # The smallest point shown above.
        high = min((i for i, v in self.verdicts.items() if v > 0 and i > low), default=top + 1)
        floor = max((i for i, v in self.verdicts.items() if v <= 0 and i < high), default=-1)
        while high - floor > 1:
            middle = (floor + high) // 2
            high, floor = (middle, floor) if self.test(middle) > 0 else (high, middle)

        if not self.shared:
            for distance in _CHECKS:
                for far in (high + distance, low - distance):
                    if 0 <= far <= top:
                        self.test(far)
        above = [i for i, v in self.verdicts.items() if v > 0]
        below = [i for i, v in self.verdicts.items() if v < 0]
        return Found(
            low=float(self.points[low]) if low >= 0 else None,
            high=float(self.points[high]) if high <= top else None,
            last_is_below=low == top,
            monotone=not above or not below or max(below) < min(above),
            tests=len(self.verdicts),
            draws=self.draws,
        )


def crossing(
    points: FloatArray,
    sample: Sampler,
    threshold: float,
    *,
    shared: bool,
    start: int | None = None,
    confidence: float = 0.95,
    most_draws: int = 256,
) -> Found:
    """Find where the mean of noisy values in [0, 1] rises above a threshold.

    Parameters
    ----------
    points : ndarray
        Ascending.
    sample : callable
        Point and trial numbers to one value per trial, in [0, 1]; independent
        over trials.
    threshold : float
        Above 0 and below 1.
    shared : bool
        Whether each trial's value is known to be non-decreasing along the
        points; then the same trials serve all points. Otherwise every test has
        trials of its own.
    start : int, optional
        Index of a first guess, such as a prediction's; it changes the work and
        not the guarantee.
    confidence : float
        Probability that ``low`` and ``high`` both are on their right side, for
        a non-decreasing mean.
    most_draws : int
        Per point; more draws narrow the interval. Raised to twice what a run of
        perfect draws needs, where the threshold is close to 0 or 1: a mean above
        .99 cannot be shown by fewer than some hundred draws.
    """
    if not 0 < confidence < 1:
        raise InvalidSetting("confidence", "above 0 and below 1", confidence)
    if not 0 < threshold < 1:
        raise InvalidSetting("threshold", "above 0 and below 1", threshold)
    if most_draws < _FIRST_DRAWS:
        raise InvalidSetting("draws", f"at least {_FIRST_DRAWS}", most_draws)
    most_draws = max(most_draws, 2 * _draws_to_show(threshold, confidence, shared))
    search = _Search(points, sample, threshold, 1 - confidence, most_draws, shared)
    guess, step = (len(points) // 2, len(points) // 4 + 1) if start is None else (start, 4)
    return search.run(guess, step)


def _draws_to_show(threshold: float, confidence: float, shared: bool) -> int:
    """Return how many perfect draws show a mean above the threshold, or below it."""
    tests = 1 if shared else _MANY_TESTS
    log_needed = math.log(tests * (tests + 1) / (1 - confidence)) - math.log(_STAKES[0])
    farther = max(threshold, 1 - threshold)
    return math.ceil(log_needed / math.log1p(_BETS[0] * (1 - farther) / farther))


# Targets -------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """The least epsilon or n at which one mechanism reaches a goal.

    Attributes
    ----------
    mechanism : Mechanism
    what : {"epsilon", "n"}
    goal : Goal
    low, high : float or None
        The answer lies above ``low``, the largest value shown to miss the goal,
        and at or below ``high``, the smallest shown to reach it.
    first, last : float
        Ends of the range that was searched.
    never : bool
        Whether the goal was shown to be missed at the end of the range.
    confidence : float
    proved : bool
        Whether it is proved that every draw is monotone; otherwise the mean is
        assumed to be.
    monotone : bool
        False if the draws contradict that assumption: no single answer.
    predicted : float or None
        What the prediction without draws says, where there is one.
    status : Status or None
        Of the claim at ``high`` (or the range's end).
    tests, draws : int
    reason : str or None
        Why the mechanism cannot answer, in which case all else is empty.
    """

    mechanism: Mechanism
    what: str
    goal: Goal
    low: float | None = None
    high: float | None = None
    first: float = math.nan
    last: float = math.nan
    never: bool = False
    confidence: float = 0.95
    proved: bool = False
    monotone: bool = True
    predicted: float | None = None
    status: Status | None = None
    tests: int = 0
    draws: int = 0
    reason: str | None = None

    @property
    def estimate(self) -> float:
        """One number for sorting: the middle of the interval, infinite if never reached."""
        if self.reason is not None or not self.monotone or self.high is None:
            return math.inf
        return self.high if self.low is None else math.sqrt(self.low * self.high)

    @property
    def counts(self) -> bool:
        """Whether the answer is one to rely on: a claim that is not false, and a crossing."""
        refuted = self.status is not None and self.status.verdict is Verdict.REFUTED
        return math.isfinite(self.estimate) and not refuted


def _log_lattice(first: float, last: float) -> FloatArray:
    count = round((math.log(last) - math.log(first)) / _STEP) + 1
    points: FloatArray = np.geomspace(first, last, count)
    points[0], points[-1] = first, last
    return points


@dataclass(frozen=True, eq=False)
class _Question:
    """One mechanism along one lattice."""

    mechanism: Mechanism
    measured: Measured
    settings: Settings
    goal: Goal
    what: str

    def problem(self, point: float) -> Problem:
        problem = self.measured.problem(self.settings)
        return replace(problem, n=round(point)) if self.what == "n" else problem

    def budget(self, point: float) -> Budget:
        given = self.settings.delta
        if self.what == "n":
            delta = default_delta(round(point)) if given is None else given
            return Budget(self.settings.epsilon, delta)
        return Budget(point, default_delta(self.measured.n) if given is None else given)

    def at(self, point: float) -> Measured:
        seen = self.measured
        if self.what == "epsilon":
            return seen
        moment = SecondMoment(seen.moment.A, round(point))
        return Measured(
            seen.name, seen.columns, seen.domain, seen.row_bound, moment, seen.reference,
            seen.bounded_rows, seen.notes, seen.assumed_public,
        )  # fmt: skip

    def unable(self, point: float) -> str | None:
        rows = self.measured.has_rows and self.what == "epsilon"
        return self.mechanism.unable(self.problem(point), self.budget(point), rows=rows)

    def scale(self, point: float) -> float:
        return self.mechanism.calibrate(self.problem(point), self.budget(point)).scale

    def sample(self, point: float, trials: range) -> FloatArray:
        problem, budget, seen = self.problem(point), self.budget(point), self.at(point)
        # A few matrices at a time: memory does not grow with the number of draws.
        size = max(1, _ENTRIES // problem.d**2)
        parts = []
        for first in range(trials.start, trials.stop, size):
            part = range(first, min(first + size, trials.stop))
            cell = Cell(self.mechanism, problem, budget, self.settings.seed, part)
            values = self.goal.measure.compute(evaluate(cell, seen))
            if values is None:
                raise CannotRun(self.mechanism.text, f"it has no {self.goal.measure.label}")
            parts.append(self.goal.unit_values(values, problem))
        return np.concatenate(parts)

    def predicted(self, point: float) -> float | None:
        problem = self.problem(point)
        calibration = self.mechanism.calibrate(problem, self.budget(point))
        noise = self.mechanism.free_noise(calibration)
        if noise is None:
            return None
        values = self.measured.moment.eigenvalues
        seen = predict(values, problem.k, noise, worth(self.measured))
        return seen.metric(self.goal.metric, problem.k)

    def monotone_draws(self, points: FloatArray) -> bool:
        """Return whether the proof of the module docstring applies along these points."""
        if not isinstance(self.mechanism, AdditiveMechanism):
            return False
        if self.measured.reference is not self.measured.moment:
            return False
        if self.goal.metric not in ("captured_share", "captured_total"):
            return False
        scales = [self.scale(float(point)) for point in points]
        return bool((np.diff(scales) <= 0).all())


def worth(measured: Measured) -> FloatArray | None:
    """Return the reference's variance along the moment's components, or None if they agree."""
    if measured.reference is measured.moment:
        return None
    V = measured.moment.eigenvectors
    along: FloatArray = np.einsum("ij,ij->j", V, measured.reference.A @ V)
    return along


def predicted_crossing(
    measured: Measured, settings: Settings, mechanism: Mechanism, goal: Goal, what: str = "epsilon"
) -> float | None:
    """Return the least epsilon or n by prediction alone, or None where there is none.

    Infinite where the prediction never reaches the goal. No draw is made.
    """
    question = _Question(mechanism, measured, settings, goal, what)
    points = _possible(question, _lattice(what))
    place = _predicted_index(question, points) if len(points) else None
    if place is None:
        return None
    return math.inf if place == len(points) else float(points[place])


def _lattice(what: str) -> FloatArray:
    if what == "epsilon":
        return _log_lattice(*EPSILON_RANGE)
    if what == "n":
        return np.unique(np.round(_log_lattice(*map(float, PEOPLE_RANGE))))
    raise InvalidSetting("what", "epsilon or n", what)


def _possible(question: _Question, points: FloatArray) -> FloatArray:
    """Return the points at which the mechanism can run."""
    able = [question.unable(float(point)) is None for point in points]
    possible: FloatArray = points[np.array(able)]
    return possible


def _predicted_index(question: _Question, points: FloatArray) -> int | None:
    """Return the first point predicted to reach the goal, len(points) if none, None if unknown."""

    def reaches(index: int) -> bool | None:
        value = question.predicted(float(points[index]))
        return None if value is None else question.goal.reached_by(value)

    low, high = -1, len(points)
    while high - low > 1:
        middle = (low + high) // 2
        met = reaches(middle)
        if met is None:
            return None
        low, high = (low, middle) if met else (middle, high)
    return high


def least(
    measured: Measured,
    settings: Settings,
    mechanism: Mechanism,
    goal: Goal,
    what: str = "epsilon",
    *,
    confidence: float = 0.95,
    most_draws: int = 256,
) -> Target:
    """Find the least epsilon, or the fewest people, at which a mechanism reaches a goal.

    Parameters
    ----------
    measured : Measured
        A prepared table, or `planned`.
    settings : Settings
        Reads k, relation, seed, delta and, for n, epsilon. A delta not given is
        1/n^1.1 for each n in turn.
    mechanism : Mechanism
    goal : Goal
    what : {"epsilon", "n"}
        For n: the same population, more or fewer people; A is kept.
    confidence : float
    most_draws : int
        Per point tried; more are drawn for a goal near the end of its scale
        (see `crossing`).

    Raises
    ------
    InvalidSetting
        If the goal makes no sense for d and k.
    """
    question = _Question(mechanism, measured, settings, goal, what)
    goal.check(measured.problem(settings))
    if goal.measure.needs == "matrix" and mechanism.info.release == "subspace":
        reason = f"it releases a subspace, which has no {goal.measure.label}"
        return Target(mechanism, what, goal, reason=reason)
    points = _lattice(what)
    able = _possible(question, points)
    if len(able) == 0:
        return Target(mechanism, what, goal, reason=question.unable(float(points[-1])))
    place = _predicted_index(question, able)
    shared = question.monotone_draws(able)
    found = crossing(
        able,
        question.sample,
        goal.unit_threshold(measured.problem(settings)),
        shared=shared,
        start=None if place is None else min(place, len(able) - 1),
        confidence=confidence,
        most_draws=most_draws,
    )
    predicted = None
    if place is not None and goal.of_draws is None:
        predicted = math.inf if place == len(able) else float(able[place])
    where = found.high if found.high is not None else float(able[-1])
    return Target(
        mechanism=mechanism,
        what=what,
        goal=goal,
        low=found.low,
        high=found.high,
        first=float(able[0]),
        last=float(able[-1]),
        never=found.last_is_below,
        confidence=confidence,
        proved=shared,
        monotone=found.monotone,
        predicted=predicted,
        status=mechanism.status(question.problem(where), question.budget(where)),
        tests=found.tests,
        draws=found.draws,
    )


def targets(
    measured: Measured,
    settings: Settings,
    goal: Goal,
    what: str = "epsilon",
    *,
    confidence: float = 0.95,
    most_draws: int = 256,
) -> tuple[Target, ...]:
    """Return the answer of every chosen mechanism, the least first, false claims last."""
    answers = [
        least(
            measured, settings, mechanism, goal, what, confidence=confidence, most_draws=most_draws
        )
        for mechanism in parse_variants(settings.mechanisms)
    ]
    return tuple(sorted(answers, key=lambda answer: (not answer.counts, answer.estimate)))


# Words ---------------------------------------------------------------------


def goal_words(goal: Goal, k: int) -> str:
    """Return the goal as the end of a sentence, such as "to keep 90 % of ..."."""
    noun = "one component" if k == 1 else f"{k} components"
    if goal.metric == "captured_share":
        words = f"to keep {100 * goal.value:.4g} % of the variance that {noun} can explain"
    elif goal.metric == "captured_total":
        words = f"to keep {100 * goal.value:.4g} % of all variance with {noun}"
    else:
        side = "at least" if goal.measure.better == "higher" else "at most"
        unit = f" {goal.measure.unit}" if goal.measure.unit else ""
        words = f"for a {goal.measure.label} of {side} {goal.value:.4g}{unit} with {noun}"
    if goal.of_draws is not None:
        words += f" in {100 * goal.of_draws:.4g} % of releases"
    return words


def _amount(value: float, what: str) -> str:
    return f"{value:,.0f} people" if what == "n" else f"epsilon {value:.3g}"


def sentence(target: Target, k: int) -> str:
    """Return the answer in words."""
    label, what, goal = target.mechanism.label, target.what, goal_words(target.goal, k)
    if target.reason is not None:
        return f"{label} cannot answer: {target.reason}."
    sure = f"{100 * target.confidence:g} % confidence"
    if not target.monotone:
        return (
            f"{label}: the measure does not move one way with {what}, so there is no single least "
            f"value {goal}."
        )
    if target.never:
        nothing = "no number of people up to" if what == "n" else "no epsilon up to"
        words = f"With {label}, {nothing} {target.last:,.0f} is enough {goal} ({sure})"
    elif target.high is None:
        over = f" It lies above {_amount(target.low, what)}." if target.low is not None else ""
        return f"{label}: these draws do not show any value that is enough {goal}.{over}"
    elif target.low is None:
        words = f"{label} needs at most {_amount(target.high, what)} {goal} ({sure})"
    else:
        low, high = _amount(target.low, what), _amount(target.high, what)
        words = f"{label} needs between {low} and {high} {goal} ({sure})"
    words += "."
    if target.status is not None and target.status.verdict is Verdict.REFUTED:
        words += f" Not counted: its {target.status.words}."
    return words


def predicted_sentence(mechanism: Mechanism, value: float | None, what: str, status: Status) -> str:
    """Return a crossing that `predicted_crossing` found, in words."""
    label = mechanism.label
    if value is None:
        words = f"{label}: no prediction without draws."
    elif math.isinf(value):
        last = PEOPLE_RANGE[1] if what == "n" else EPSILON_RANGE[1]
        words = f"{label}: not even {_amount(float(last), what)}."
    else:
        words = f"{label}: {_amount(value, what)}."
    if status.verdict is Verdict.REFUTED:
        words += f" Not counted: its {status.words}."
    return words


# Plans without a table -----------------------------------------------------


MOST_PLANNED = 2_000
"""Features of a plan: its matrices are d by d."""


@dataclass(frozen=True, eq=False)
class Planned(Measured):
    """A spectrum and a number of people in the place of a table."""

    def with_n(self, n: int, seed: int, *, with_rows: bool = False) -> Measured:
        """Return the same spectrum with another number of people.

        Parameters
        ----------
        n : int
        seed : int
            Unused: there are no rows to choose from.
        with_rows : bool
            Must be False.
        """
        if with_rows:
            raise RuntimeError("a plan has no rows")
        moment = SecondMoment(self.moment.A, n)
        return Planned(**{**vars(self), "moment": moment})

    def again(self, row_bound: str) -> Planned:
        """Raise InvalidSetting: there are no rows to bound."""
        raise InvalidSetting(
            "what is varied",
            "epsilon, delta, k or n for a plan, which has no rows to bound",
            f"row bound {row_bound}",
            "--over",
        )


def planned(eigenvalues: Sequence[float] | FloatArray, n: int, name: str = "plan") -> Planned:
    """Return a problem without a table: a spectrum and a number of people.

    Nothing private is touched. The rows lie in the unit ball, so that all
    quantities are in squared row bounds.

    Parameters
    ----------
    eigenvalues : sequence of float
        Of A = X'X/n, at least two, at least 0; their sum, the mean squared row
        norm, is above 0 and at most 1.
    n : int
        People, at least 2.
    """
    values = np.sort(np.asarray(eigenvalues, dtype=float))[::-1]
    if not 2 <= len(values) <= MOST_PLANNED:
        raise InvalidSetting("spectrum", f"of 2 to {MOST_PLANNED} eigenvalues", len(values))
    if not (np.isfinite(values).all() and values[-1] >= 0):
        raise InvalidSetting("spectrum", "finite numbers from 0", f"{len(values)} values")
    total = float(values.sum())
    if not 0 < total <= 1 + 1e-9:
        raise InvalidSetting(
            "spectrum", "of sum above 0 and at most 1, the squared row bound", f"{total:.6g}"
        )
    d = len(values)
    moment = SecondMoment(np.diag(values), n)
    return Planned(
        name=name,
        columns=tuple(f"direction {j + 1}" for j in range(d)),
        domain=Domain.ball(d),
        row_bound=1.0,
        moment=moment,
        reference=moment,
        bounded_rows=0,
        notes=("A plan: no table was read and nothing private was touched.",),
        assumed_public=("the spectrum and the number of people n, as typed",),
    )


_SPECTRUM_FORMS = {
    "power": ("d", "exponent", "total"),
    "exponential": ("d", "rate", "total"),
    "rank": ("d", "rank", "signal", "noise"),
}
_SPECTRUM_ALLOWED = (
    "a list such as 0.4,0.2,0.1; power:d=50,exponent=1.5,total=0.5; "
    "exponential:d=50,rate=0.3,total=0.5; rank:d=50,rank=3,signal=0.1,noise=0.002; "
    "or builtin:NAME"
)


def spectrum_of(text: str) -> FloatArray:
    """Return the eigenvalues that a text describes, descending, in squared row bounds.

    * ``0.4,0.2,0.1``: typed, with ``VALUExCOUNT`` for repeats;
    * ``power:d=50,exponent=1.5,total=0.5``: proportional to j^-exponent;
    * ``exponential:d=50,rate=0.3,total=0.5``: proportional to exp(-rate j);
    * ``rank:d=50,rank=3,signal=0.1,noise=0.002``: that many eigenvalues of
      signal + noise, the rest noise;
    * ``builtin:digits``: a built-in table's, prepared by default.

    Raises
    ------
    InvalidSetting
        If the text has another form or a number is out of range.
    InvalidTable
        If no built-in table has that name.
    """
    form, colon, rest = text.strip().partition(":")
    if not colon:
        return _typed(text)
    if form == "builtin":
        if rest not in builtin_tables():
            raise InvalidSetting("spectrum", f"builtin: and {', '.join(builtin_tables())}", rest)
        own: FloatArray = prepare(load(rest), Settings(table=rest)).moment.eigenvalues
        return own
    if form not in _SPECTRUM_FORMS:
        raise InvalidSetting("spectrum", _SPECTRUM_ALLOWED, text)
    given = _numbers(form, rest, text)
    d = _whole("d", given["d"], 2, 100_000)
    j = np.arange(d)
    if form == "rank":
        rank = _whole("rank", given["rank"], 1, d)
        if not (given["signal"] > 0 and given["noise"] >= 0):
            raise InvalidSetting("spectrum", "of signal above 0 and noise from 0", text)
        spectrum: FloatArray = np.where(j < rank, given["signal"], 0.0) + given["noise"]
        return spectrum
    if not 0 < given["total"] <= 1:
        raise InvalidSetting("total", "above 0 and at most 1", format_number(given["total"]))
    decay = given["exponent" if form == "power" else "rate"]
    if not 0 <= decay <= 100:
        raise InvalidSetting("decay", "a number from 0 to 100", format_number(decay))
    shape = (j + 1.0) ** -decay if form == "power" else np.exp(-decay * j)
    spectrum = shape * (given["total"] / shape.sum())
    return spectrum


def _typed(text: str) -> FloatArray:
    values: list[float] = []
    for item in text.split(","):
        value, times, count = item.strip().partition("x")
        try:
            number, repeats = float(value), int(count) if times else 1
        except ValueError:
            raise InvalidSetting("spectrum", _SPECTRUM_ALLOWED, text) from None
        if not (0 <= number < math.inf and 1 <= repeats <= 100_000):
            raise InvalidSetting("spectrum", "finite numbers from 0, counts from 1", item.strip())
        values += [number] * repeats
    listed: FloatArray = np.sort(np.array(values))[::-1]
    return listed


def _numbers(form: str, rest: str, text: str) -> dict[str, float]:
    given: dict[str, float] = {}
    for item in rest.split(","):
        name, equals, value = item.partition("=")
        try:
            given[name.strip()] = float(value) if equals else math.nan
        except ValueError:
            raise InvalidSetting("spectrum", _SPECTRUM_ALLOWED, text) from None
    finite = all(math.isfinite(value) for value in given.values())
    if set(given) != set(_SPECTRUM_FORMS[form]) or not finite:
        raise InvalidSetting("spectrum", _SPECTRUM_ALLOWED, text)
    return given


def _whole(name: str, value: float, low: int, high: int) -> int:
    if not (low <= value <= high and value == int(value)):
        raise InvalidSetting(name, f"a whole number from {low} to {high}", format_number(value))
    return int(value)
