"""Find the least privacy loss, or the fewest people, sufficient to reach a goal.

The answer is searched on a fine logarithmic lattice by tests on simulated releases, not read off a
grid. At each point tried, a game of bets decides whether the expected measure lies above or below
the goal. A player who bets correctly grows rich. By Ville's inequality, a wrong player reaches
``1/alpha`` times the stake with probability at most alpha, however long the game runs (Shafer and
Vovk 2019; Waudby-Smith and Ramdas 2024). The bets are a fixed mixture, so the capital is monotone
in every value seen.

Two methods ensure the confidence of the whole search:

* **Monotone trials.** If the release is A + t N with one N per trial, a trial's captured variance
  never rises with t. For t1 < t2 let q and r be tr(V'AV) and tr(V'NV) of the top k of A + t N. Each
  top-k space is the best for its own matrix: ``q1 + t1 r1 >= q2 + t1 r2`` and ``q2 + t2 r2 >= q1 +
  t2 r1``. Their sum gives ``r2 >= r1``, and then the first gives ``q1 - q2 >= t1 (r2 - r1) >= 0``.
  With the same trials at every point, the capital is then monotone along the lattice too. An error
  anywhere implies an error at the crossing itself, so testing many points costs no confidence.
* **Fresh trials.** Otherwise every test has its own trials, and test j is run at level ``alpha/(j
  (j + 1))``, which sums to alpha. The expected measure is then assumed to be monotone, which is
  tested at a few points further out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.problem import EPSILON_RANGE, Budget, Problem, default_delta
from dpviz.core.release import Release, Status, Verdict
from dpviz.core.settings import FREE, Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, featured, parse_variants
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.preparation.account import leaves_nothing
from dpviz.preparation.prepared import Measured, reference_variances
from dpviz.preparation.steps import private_steps
from dpviz.simulation.cells import (
    NO_ROWS,
    CellTrials,
    account_of,
    parts_of,
    picture_of,
    variants_of,
)
from dpviz.simulation.compare import processed
from dpviz.simulation.goal import (
    SEARCH_STEP,
    Goal,
    crossing,
    draws_of_a_test,
    enough,
    first_enough,
    may_miss,
    releases_at,
)
from dpviz.simulation.predict import predict
from dpviz.simulation.simulate import Cell, simulate


def measured_need(
    measured: Measured, settings: Settings, mechanism: Mechanism, rho: float, eta: float
) -> Target:
    """Return the number of people at which the first component is found, by simulation.

    At k = 1 the projection distance is ``sqrt(2 (1 - <v^_1, v_1>^2))``.
    """
    goal = Goal("projection_distance", math.sqrt(2 * (1 - rho**2)), of_draws=1 - eta)
    return least(measured, replace(settings, k=1), mechanism, goal, "n")


PEOPLE_RANGE = (10, 10**12)
_ENTRIES = 1_000_000  # Matrices simulated at a time have this many numbers in all.
# The first guess by `about` uses its own trial numbers, separate from the trials of the tests.
_GUESS_FROM = 10**9
_EVERY = 2  # Use every second point, because few releases cannot resolve less than 4 %.
_TIMED_FROM, _TIMED = 2 * _GUESS_FROM, 32  # Measuring the time uses trials of its own.
_TESTS = 16  # A search usually makes this many tests of the longest duration.
NEAR = 1.25
"""Mechanisms predicted to need more than this times the least value are not searched."""


# Targets of a search -------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """The least epsilon or n at which one mechanism reaches a goal.

    Attributes
    ----------
    mechanism : Mechanism
    what : {"epsilon", "n"}
    goal : Goal
    low, high : float or None
        The answer lies above ``low``, the largest value shown to miss the goal, and at or below
        ``high``, the smallest value shown to reach it.
    first, last : float
        Ends of the searched range.
    never : bool
        Whether even the end of the range was shown to miss the goal.
    confidence : float
    proved : bool
        Whether every trial is proved to be monotone; otherwise the mean is assumed to be monotone.
    monotone : bool
        False if the trials contradict a monotone mean, so that no single answer exists.
    predicted : float or None
        The answer predicted without simulation, or None.
    status : Status or None
        Status of the claim at ``high``, or at the end of the range.
    tests, draws : int
    reason : str or None
        Why the mechanism cannot answer, or was not searched; all other fields are then empty.
    searched : bool
        False if the settings do not name the mechanism and others are predicted to need less.
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
    searched: bool = True

    @property
    def estimate(self) -> float:
        """A number for sorting: the middle of the interval, infinite if the goal is not reached."""
        if self.reason is not None or not self.monotone or self.high is None:
            return math.inf
        return self.high if self.low is None else math.sqrt(self.low * self.high)

    @property
    def counts(self) -> bool:
        """Whether the answer is reliable: the claim is not refuted, and there is one crossing."""
        is_refuted = self.status is not None and self.status.verdict.fails
        return math.isfinite(self.estimate) and not is_refuted


def _log_lattice(first: float, last: float) -> FloatArray:
    count = round((math.log(last) - math.log(first)) / SEARCH_STEP) + 1
    points: FloatArray = np.geomspace(first, last, count)
    points[0], points[-1] = first, last
    return points


@dataclass(frozen=True, eq=False)
class _Question:
    """A search for one mechanism along one lattice."""

    mechanism: Mechanism
    measured: Measured
    settings: Settings
    goal: Goal
    what: str

    @cached_property
    def _given(self) -> Problem:
        return self.measured.problem(self.settings)

    def problem(self, point: float) -> Problem:
        return replace(self._given, n=round(point)) if self.what == "n" else self._given

    def budget(self, point: float) -> Budget:
        given = self.settings.delta
        if self.what == "n":
            delta = default_delta(round(point)) if given is None else given
            return Budget(self.settings.epsilon, delta)
        return Budget(point, default_delta(self.measured.n) if given is None else given)

    def at(self, point: float) -> Measured:
        table = self.measured
        if self.what == "epsilon":
            return table
        # The population stays the same. Only the number of people and the noise change.
        moment = table.moment.with_n(round(point))
        return Measured(
            table.name, table.columns, table.domain, table.row_bound, moment, table.reference,
            table.bounded_rows, table.notes, table.assumed_public, raw=table.raw,
            public=table.public,
        )  # fmt: skip

    def not_measured(self) -> str | None:
        """Return why no release in this setting has the goal's metric, or None."""
        needs, label = self.goal.measure.needs, self.goal.measure.label
        rows = self.what == "epsilon" and self.measured.has_rows
        if picture_of(self.measured, self.settings) is not None and not rows:
            return NO_ROWS
        if needs == "picture" and not self.settings.picture:
            return "no part of the budget is left for the picture"
        if needs == "matrix" and self.mechanism.info.release == "subspace":
            return f"it releases a subspace, which has no {label}"
        return None

    @cached_property
    def able(self) -> FloatArray:
        """The points at which the mechanism can run."""
        return _possible(self, _lattice(self.what))

    @cached_property
    def foreseen(self) -> float | None:
        """Predicted point that reaches the goal; infinite if none does, None if unpredictable."""
        place = _first_reached(self.able, self.expects(self.guessed))
        return None if place is None else _value(self.able, place)

    def unable(self) -> str | None:
        """Return why the mechanism cannot answer at any point, or None if it can."""
        self.goal.check(self._given)
        reason = self.not_measured()
        if reason is None and len(self.able) == 0:
            nothing = "the preparation's shares leave no budget for it"
            return self.why_not(float(_lattice(self.what)[-1])) or nothing
        return reason

    def why_not(self, point: float) -> str | None:
        check_cancelled()  # Allow a stop here, because a lattice has a thousand points.
        rows = self.measured.serves(self.mechanism) and self.what == "epsilon"
        return self.mechanism.why_not(self.problem(point), self.budget(point), rows=rows)

    def left_nothing(self, point: float) -> bool:
        """Return whether the mechanism has no usable budget after a private preparation."""
        private, problem = private_steps(self.settings), self.problem(point)
        assert private is not None
        return leaves_nothing(self.mechanism, problem, self.budget(point), private)

    def scale(self, point: float) -> float:
        check_cancelled()
        return self.mechanism.calibrate(self.problem(point), self.budget(point)).scale

    def status(self, point: float) -> Status:
        """Return the status of the claim, including any private preparation."""
        problem, budget = self.problem(point), self.budget(point)
        return account_of(self.mechanism, problem, budget, private_steps(self.settings)).status

    def sample(self, point: float, trials: range) -> FloatArray:
        problem, budget, table = self.problem(point), self.budget(point), self.at(point)
        seed, private = self.settings.seed, private_steps(self.settings)
        picture = picture_of(table, self.settings)
        free = self.settings.post == FREE
        cell = Cell(self.mechanism, problem, budget, seed, trials, private, free, picture)

        def values(part: CellTrials, release: Release) -> FloatArray:
            outcome = part.outcome(release)
            outcome = processed(cell, part, outcome) if free else outcome
            values_of_part = self.goal.measure.compute(outcome)
            if values_of_part is None:
                raise CannotRun(self.mechanism.text, f"it has no {self.goal.measure.label}")
            return self.goal.unit_values(values_of_part, problem)

        # Simulate only a few matrices at a time, so that memory does not grow with the trials.
        size = max(1, _ENTRIES // problem.d**2)
        return np.concatenate(list(simulate(parts_of(cell, table, size), values)))

    def predicted(self, point: float) -> float | None:
        check_cancelled()
        if self.measured.raw is not None or self.settings.post == FREE:
            return None  # No formula covers private preparation or post-processing.
        return self._law(point, self.budget(point))

    def guessed(self, point: float) -> float | None:
        """Return a rough expectation with a private preparation, to start a search.

        The estimate treats the preparation as exact and gives the mechanism the remaining budget.
        """
        private = private_steps(self.settings)
        if private is None:
            return self.predicted(point)
        budget = self.budget(point)
        remaining = 1 - private.total
        epsilon = budget.epsilon * (remaining if budget.delta == 0 else math.sqrt(remaining))
        rest = replace(budget, epsilon=max(epsilon, EPSILON_RANGE[0]))
        if self.mechanism.why_not(self.problem(point), rest) is not None:
            return None
        return self._law(point, rest)

    def _law(self, point: float, budget: Budget) -> float | None:
        problem = self.problem(point)
        noise = self.mechanism.free_noise(self.mechanism.calibrate(problem, budget))
        if noise is None:
            return None
        values = self.measured.moment.eigenvalues
        prediction = predict(values, problem.k, noise, reference_variances(self.measured))
        return prediction.metric(self.goal.metric, problem.k)

    def expects(self, expected: Callable[[float], float | None]) -> Callable[[float], bool | None]:
        """Return a function that tests whether a point's expected value reaches the goal."""

        def reaches(point: float) -> bool | None:
            value = expected(point)
            return None if value is None else self.goal.reached_by(value)

        return reaches

    def enough(self, point: float) -> bool:
        """Return whether simulated releases at a point reach the goal."""
        problem = self.problem(point)
        releases = releases_at(problem.d, quick=self.mechanism.quick)
        share = self.goal.of_draws
        if share is None:
            missing = (1 - self.goal.unit_threshold(problem)) * releases
        else:
            missing = may_miss(share, releases)

        def sample(trials: range) -> FloatArray:
            return self.sample(point, range(_GUESS_FROM + trials.start, _GUESS_FROM + trials.stop))

        return enough(sample, missing, releases)

    def monotone_draws(self, points: FloatArray) -> bool:
        """Return whether the proof of the module docstring applies along these points."""
        if not isinstance(self.mechanism, AdditiveMechanism):
            return False
        if self.measured.reference is not self.measured.moment or self.measured.raw is not None:
            return False
        if self.settings.post == FREE:
            return False  # Post-processed noise need not grow along the points.
        if self.goal.metric not in ("captured_share", "captured_total"):
            return False
        scales = [self.scale(float(point)) for point in points]
        return bool((np.diff(scales) <= 0).all())


def _value(points: FloatArray, place: int) -> float:
    return math.inf if place == len(points) else float(points[place])


def _lattice(what: str) -> FloatArray:
    if what == "epsilon":
        return _log_lattice(*EPSILON_RANGE)
    if what == "n":
        return np.unique(np.round(_log_lattice(*map(float, PEOPLE_RANGE))))
    raise InvalidSetting("what", "epsilon or n", what)


def _possible(question: _Question, points: FloatArray) -> FloatArray:
    """Return the points at which the mechanism can run."""
    if question.what == "epsilon":
        # Below this epsilon, each row of a person would have less than the least epsilon.
        least = question.measured.problem(question.settings).together * EPSILON_RANGE[0]
        points = points[(points >= 1.5 * least) | (least == EPSILON_RANGE[0])]
    # A mechanism that declares no limits of its own can run at every epsilon or at none.
    alike = question.what == "epsilon" and type(question.mechanism).limits is Mechanism.limits
    sample = points[:1] if alike else points
    able = [question.why_not(float(point)) is None for point in sample]
    able *= len(points) // max(len(able), 1)
    possible: FloatArray = points[np.array(able, dtype=bool)]
    if private_steps(question.settings) is None or not len(possible):
        return possible
    # A private preparation leaves more of a larger budget, so points with too little come first.
    low, high = -1, len(possible)
    while high - low > 1:
        middle = (low + high) // 2
        if question.left_nothing(float(possible[middle])):
            low = middle
        else:
            high = middle
    return possible[high:]


def _first_reached(points: FloatArray, reaches: Callable[[float], bool | None]) -> int | None:
    """Return the first point expected to reach the goal, len(points) if none, None if unknown."""
    low, high = -1, len(points)
    while high - low > 1:
        middle = (low + high) // 2
        hit = reaches(float(points[middle]))
        if hit is None:
            return None
        low, high = (low, middle) if hit else (middle, high)
    return high


def about(
    measured: Measured,
    settings: Settings,
    mechanism: Mechanism,
    goal: Goal,
    what: str = "epsilon",
    *,
    up_to: float = math.inf,
) -> Predicted:
    """Estimate where a mechanism reaches a goal, with the same simulated releases at every point.

    Every page and `dpviz decide` take their sufficient epsilon from here. The preparation is as in
    the settings, exact if they give it no budget. The claim is judged at the answer. The estimate
    takes a small part of the work of `least`, has no confidence and is the same whatever the seed.

    Parameters
    ----------
    measured, settings, mechanism, goal, what
        The same parameters as in `least`.
    up_to : float
        Largest answer of interest. Beyond this answer infinity is returned, for most mechanisms
        after one test.
    """
    return _about(_Question(mechanism, measured, replace(settings, seed=0), goal, what), up_to)


def _about(question: _Question, up_to: float = math.inf) -> Predicted:
    points = np.intersect1d(question.able, _lattice(question.what)[::_EVERY])
    points = points[points <= up_to]
    if len(points) == 0:
        return Predicted(question.mechanism, None, None)

    def reached(place: int) -> bool:
        return question.enough(float(points[place]))

    last = len(points) - 1
    # Start at the mean predicted by a limiting law. Nearly all releases need only a little more.
    start = None if question.foreseen is None else int(np.searchsorted(points, question.foreseen))
    if start is None and not reached(last):
        return Predicted(question.mechanism, math.inf, None)
    value = _value(points, first_enough(last if start is None else last + 1, reached, start))
    status = None if math.isinf(value) else question.status(value)
    return Predicted(question.mechanism, value, status)


def candidates() -> Iterator[Mechanism]:
    """Yield every mechanism that makes a claim, as its quicker variant if one exists."""
    for cls in all_mechanisms().values():
        if cls.info.guarantee != "none":
            yield cls().quicker


def leaders(measured: Measured, settings: Settings, goal: Goal) -> dict[str, Predicted | None]:
    """Return the estimated least epsilon that reaches a goal, with its mechanism.

    Only claims that hold at the answer count. Mechanisms must be quick to simulate or named in the
    settings. If the settings name no mechanism, the featured mechanisms count as named.

    Returns
    -------
    dict
        ``least`` of all mechanisms, ``pure`` of mechanisms without a delta, and ``chosen`` of
        mechanisms that the settings name; None if no mechanism qualifies.
    """
    mechanisms = parse_variants(settings.mechanisms or featured())
    others = [one for one in candidates() if one.quick and one not in mechanisms]
    best_of: dict[str, Predicted | None] = dict.fromkeys(("least", "pure", "chosen"))
    for mechanism in (*mechanisms, *others):
        kinds = {
            "least": mechanism.info.guarantee != "none",
            "pure": mechanism.info.guarantee == "pure",
            "chosen": mechanism.info.guarantee != "none" and mechanism in mechanisms,
        }
        names = [kind for kind, asks in kinds.items() if asks]
        # Do not search above the best answer so far, so that most mechanisms need only one test.
        best = [math.inf if (one := best_of[kind]) is None else one.least for kind in names]
        if not names:
            continue
        one = about(measured, settings, mechanism, goal, up_to=max(best))
        if one.good:
            for kind, least_yet in zip(names, best, strict=True):
                best_of[kind] = one if one.least < least_yet else best_of[kind]
    return best_of


@dataclass(frozen=True, eq=False)
class _Search:
    """The prepared search of one mechanism.

    Attributes
    ----------
    question : _Question
    guess : float
        Start of the search, which changes the work but not the answer; infinite if no point is
        enough.
    shared : bool
        Whether every trial is proved to be monotone.
    """

    question: _Question
    guess: float
    shared: bool

    @classmethod
    def of(cls, question: _Question, guess: float | None = None) -> _Search | Target:
        """Return the search, or the reason why the mechanism cannot answer."""
        if (reason := question.unable()) is not None:
            return Target(question.mechanism, question.what, question.goal, reason=reason)
        if question.foreseen is not None:
            guess = question.foreseen
        elif guess is None:
            guess = _about(question).least
        return cls(question, guess, question.monotone_draws(question.able))

    @property
    def start(self) -> int:
        points = self.question.able
        return min(int(np.searchsorted(points, self.guess)), len(points) - 1)

    @property
    def threshold(self) -> float:
        question = self.question
        return question.goal.unit_threshold(question.measured.problem(question.settings))

    def seconds(self, confidence: float, most_draws: int) -> float:
        """Estimate the seconds of the search from the time of a few trials."""
        point = float(self.question.able[self.start])
        self.question.sample(point, range(_TIMED_FROM - 1, _TIMED_FROM))
        start = time.monotonic()
        self.question.sample(point, range(_TIMED_FROM, _TIMED_FROM + _TIMED))
        each = (time.monotonic() - start) / _TIMED
        return each * _TESTS * draws_of_a_test(self.threshold, confidence, self.shared, most_draws)

    def run(self, confidence: float, most_draws: int) -> Target:
        """Return the interval in which the goal is reached."""
        question, able = self.question, self.question.able
        bracket = crossing(
            able,
            question.sample,
            self.threshold,
            shared=self.shared,
            start=self.start,
            confidence=confidence,
            most_draws=most_draws,
        )
        # Judge the claim where the goal is surely reached, or else at the largest value.
        where = bracket.high if bracket.high is not None else float(able[-1])
        predictable = question.goal.of_draws is None and question.measured.raw is None
        return Target(
            mechanism=question.mechanism,
            what=question.what,
            goal=question.goal,
            low=bracket.low,
            high=bracket.high,
            first=float(able[0]),
            last=float(able[-1]),
            never=bracket.last_is_below,
            confidence=confidence,
            proved=self.shared,
            monotone=bracket.monotone,
            predicted=question.foreseen if predictable else None,
            status=question.status(where),
            tests=bracket.tests,
            draws=bracket.draws,
        )


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
        A prepared table, or a plan from `planned`.
    settings : Settings
        Only k, relation, seed, delta and, for n, epsilon are used; each n has its default delta.
    mechanism : Mechanism
    goal : Goal
    what : {"epsilon", "n"}
        For n, the population stays the same with more or fewer people; A is unchanged.
    confidence : float
    most_draws : int
        Number of trials per point; more for a goal near the end of its scale (see `crossing`).

    Raises
    ------
    InvalidSetting
        If the goal makes no sense for this d and k.
    """
    search = _Search.of(_Question(mechanism, measured, settings, goal, what))
    return search if isinstance(search, Target) else search.run(confidence, most_draws)


@dataclass(frozen=True)
class Predicted:
    """The least sufficient value, estimated by simulated releases.

    Attributes
    ----------
    mechanism : Mechanism
    value : float or None
        The least sufficient value; infinite if there is none, None if the mechanism cannot run.
    status : Status or None
        Status of the claim at that value; None if no finite value exists.
    """

    mechanism: Mechanism
    value: float | None
    status: Status | None

    @property
    def least(self) -> float:
        """The value, or infinity if no value is sufficient."""
        return math.inf if self.value is None else self.value

    @property
    def counts(self) -> bool:
        """Whether there is an answer, whose claim does not fail."""
        return self.status is not None and not self.status.verdict.fails

    @property
    def good(self) -> bool:
        """Whether there is an answer, whose claim holds."""
        return self.status is not None and self.status.verdict in (Verdict.HOLDS, Verdict.LOOSE)

    def order(self) -> tuple[bool, float]:
        """Return a sort key: the least answers first, answers that do not count last."""
        return not self.counts, self.least


def targets(
    measured: Measured,
    settings: Settings,
    goal: Goal,
    what: str = "epsilon",
    *,
    confidence: float = 0.95,
    most_draws: int = 256,
    on_estimate: Callable[[float], None] | None = None,
) -> tuple[Target, ...]:
    """Return the answer of every chosen mechanism, the least first, failed claims last.

    If the settings name no mechanism, simulated releases first estimate the least value. Only
    mechanisms estimated to need less than `NEAR` times this value are then searched.
    ``on_estimate`` is called before the first search with the expected seconds of all.
    """
    questions = [
        _Question(mechanism, measured, settings, goal, what) for mechanism in variants_of(settings)
    ]
    answers: list[Target] = []
    guesses: list[float | None] = [None] * len(questions)
    if not settings.mechanisms:
        questions, guesses, answers = _contenders(questions)
    searches = [_Search.of(*one) for one in zip(questions, guesses, strict=True)]
    if on_estimate is not None:
        able = [each for each in searches if isinstance(each, _Search)]
        on_estimate(sum(each.seconds(confidence, most_draws) for each in able))
    answers += [
        each if isinstance(each, Target) else each.run(confidence, most_draws) for each in searches
    ]
    return tuple(sorted(answers, key=lambda answer: (not answer.counts, answer.estimate)))


def _contenders(
    questions: Sequence[_Question],
) -> tuple[list[_Question], list[float | None], list[Target]]:
    """Return the mechanisms to search, their starts, and the reasons for leaving others out."""
    rest: list[Target] = []

    def left_out(question: _Question, reason: str, searched: bool = False) -> None:
        goal, what = question.goal, question.what
        rest.append(Target(question.mechanism, what, goal, reason=reason, searched=searched))

    able: list[tuple[bool, float, _Question]] = []
    for question in questions:
        if (reason := question.unable()) is not None:
            left_out(question, reason, searched=True)
            continue
        guess = math.inf if question.foreseen is None else question.foreseen
        able.append((not question.mechanism.quick, guess, question))
    best = math.inf
    candidates: list[tuple[float, _Question]] = []
    # Start with the least predicted need. Then other mechanisms usually need only one test.
    for _, _, question in sorted(able, key=lambda item: item[:2]):
        up_to = NEAR * best
        if question.status(min(up_to, float(question.able[-1]))).verdict.fails:
            left_out(question, "its claim does not hold")
            continue
        one = _about(question, up_to)
        if math.isinf(one.least) and math.isfinite(best):
            left_out(question, f"it needs {question.what} above {numeral(up_to, 3)}")
            continue
        candidates.append((one.least, question))
        best = min(best, one.least) if one.good else best
    for needs, question in candidates:
        if needs > NEAR * best:
            left_out(question, f"it needs {question.what} of about {numeral(needs, 3)}")
    near = [(question, needs) for needs, question in candidates if not needs > NEAR * best]
    return [question for question, _ in near], [needs for _, needs in near], rest
