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
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.problem import EPSILON_RANGE, Budget, Problem, default_delta
from dpviz.core.release import Release, Status
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
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
from dpviz.simulation.goal import SEARCH_STEP, Goal, crossing, draws_of_a_test
from dpviz.simulation.predict import predict
from dpviz.simulation.simulate import Cell, simulate


def measured_need(
    measured: Measured, settings: Settings, mechanism: Mechanism, rho: float, eta: float
) -> Target:
    """Return the people at which the first component is found, by simulation.

    At k = 1 the projection distance is ``sqrt(2 (1 - <v^_1, v_1>^2))``.
    """
    goal = Goal("projection_distance", math.sqrt(2 * (1 - rho**2)), of_draws=1 - eta)
    return least(measured, replace(settings, k=1), mechanism, goal, "n")


PEOPLE_RANGE = (10, 10**12)
_ENTRIES = 1_000_000  # of the matrices that are drawn at a time
# Draws of a first guess where nothing is predicted, apart from those that tests are made on.
_GUESS_FROM = 10**9
_GUESSES = 48, 4  # in few and in many dimensions, where a draw is slow and its measure steady
_MANY = 64
_GUESS_EVERY = 4  # of the lattice
_TIMED_FROM, _TIMED = 2 * _GUESS_FROM, 32  # draws by which the time of a search is told
_TESTS = 16  # as long as the longest, of about what a search makes


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
        refuted = self.status is not None and self.status.verdict.fails
        return math.isfinite(self.estimate) and not refuted


def _log_lattice(first: float, last: float) -> FloatArray:
    count = round((math.log(last) - math.log(first)) / SEARCH_STEP) + 1
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
        seen = self.measured
        if self.what == "epsilon":
            return seen
        # the same population: only the number of people, and with it the noise, changes
        moment = seen.moment.with_n(round(point))
        return Measured(
            seen.name, seen.columns, seen.domain, seen.row_bound, moment, seen.reference,
            seen.bounded_rows, seen.notes, seen.assumed_public, raw=seen.raw,
            public=seen.public,
        )  # fmt: skip

    def not_measured(self) -> str | None:
        """Return why the goal's measure is of nothing that is released here, or None."""
        needs, label = self.goal.measure.needs, self.goal.measure.label
        rows = self.what == "epsilon" and self.measured.has_rows
        if picture_of(self.measured, self.settings) is not None and not rows:
            return NO_ROWS
        if needs == "picture" and not self.settings.picture:
            return "no picture is paid for"
        if needs == "matrix" and self.mechanism.info.release == "subspace":
            return f"it releases a subspace, which has no {label}"
        return None

    def why_not(self, point: float) -> str | None:
        check_cancelled()  # a lattice has a thousand points
        rows = self.measured.serves(self.mechanism) and self.what == "epsilon"
        return self.mechanism.why_not(self.problem(point), self.budget(point), rows=rows)

    def left_nothing(self, point: float) -> bool:
        """Return whether a private preparation leaves nothing that the mechanism could run on."""
        private, problem = private_steps(self.settings), self.problem(point)
        assert private is not None
        return leaves_nothing(self.mechanism, problem, self.budget(point), private)

    def scale(self, point: float) -> float:
        check_cancelled()
        return self.mechanism.calibrate(self.problem(point), self.budget(point)).scale

    def status(self, point: float) -> Status:
        """Return the status of the claim, of preparation and release together if that is paid."""
        problem, budget = self.problem(point), self.budget(point)
        return account_of(self.mechanism, problem, budget, private_steps(self.settings)).status

    def sample(self, point: float, trials: range) -> FloatArray:
        problem, budget, seen = self.problem(point), self.budget(point), self.at(point)
        seed, private = self.settings.seed, private_steps(self.settings)
        picture = picture_of(seen, self.settings)
        cell = Cell(self.mechanism, problem, budget, seed, trials, private, picture=picture)

        def values(part: CellTrials, release: Release) -> FloatArray:
            found = self.goal.measure.compute(part.outcome(release))
            if found is None:
                raise CannotRun(self.mechanism.text, f"it has no {self.goal.measure.label}")
            return self.goal.unit_values(found, problem)

        # A few matrices at a time: memory does not grow with the number of draws.
        size = max(1, _ENTRIES // problem.d**2)
        return np.concatenate(list(simulate(parts_of(cell, seen, size), values)))

    def predicted(self, point: float) -> float | None:
        check_cancelled()
        if self.measured.raw is not None:
            return None  # a private preparation has no law to predict from
        return self._law(point, self.budget(point))

    def guessed(self, point: float) -> float | None:
        """Return about what to expect behind a private preparation: a place to start a search.

        It takes the preparation for exact and leaves the mechanism what the shares do.
        """
        private = private_steps(self.settings)
        if private is None:
            return self.predicted(point)
        budget = self.budget(point)
        left = 1 - private.total
        epsilon = budget.epsilon * (left if budget.delta == 0 else math.sqrt(left))
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
        seen = predict(values, problem.k, noise, reference_variances(self.measured))
        return seen.metric(self.goal.metric, problem.k)

    def expects(self, expected: Callable[[float], float | None]) -> Callable[[float], bool | None]:
        """Return whether an expected value reaches the goal, as a function of the point."""

        def reaches(point: float) -> bool | None:
            value = expected(point)
            return None if value is None else self.goal.reached_by(value)

        return reaches

    def drawn(self, point: float) -> bool:
        """Return whether the mean of a few draws reaches the goal."""
        slow = self.measured.d > (_MANY if self.mechanism.quick else _MANY // 2)
        few = _GUESSES[slow]
        values = self.sample(point, range(_GUESS_FROM, _GUESS_FROM + few))
        return float(values.mean()) >= self.goal.unit_threshold(self.problem(point))

    def monotone_draws(self, points: FloatArray) -> bool:
        """Return whether the proof of the module docstring applies along these points."""
        if not isinstance(self.mechanism, AdditiveMechanism):
            return False
        if self.measured.reference is not self.measured.moment or self.measured.raw is not None:
            return False
        if self.goal.metric not in ("captured_share", "captured_total"):
            return False
        scales = [self.scale(float(point)) for point in points]
        return bool((np.diff(scales) <= 0).all())


def predicted_crossing(
    measured: Measured, settings: Settings, mechanism: Mechanism, goal: Goal, what: str = "epsilon"
) -> float | None:
    """Return the least epsilon or n by prediction alone, or None where there is none.

    Infinite where the prediction never reaches the goal. No draw is made.
    """
    if measured.raw is not None:
        return None  # a private preparation has no law to predict from
    question = _Question(mechanism, measured, settings, goal, what)
    points = _possible(question, _lattice(what))
    place = _first_reached(points, question.expects(question.predicted)) if len(points) else None
    return None if place is None else _value(points, place)


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
    # without limits of its own it can run at every epsilon or at none
    alike = question.what == "epsilon" and type(question.mechanism).limits is Mechanism.limits
    asked = points[:1] if alike else points
    able = [question.why_not(float(point)) is None for point in asked]
    able *= len(points) // max(len(able), 1)
    possible: FloatArray = points[np.array(able, dtype=bool)]
    if private_steps(question.settings) is None or not len(possible):
        return possible
    # What a private preparation leaves grows with the budget: too little comes first.
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
        met = reaches(float(points[middle]))
        if met is None:
            return None
        low, high = (low, middle) if met else (middle, high)
    return high


def _guess(question: _Question, points: FloatArray) -> tuple[int, bool]:
    """Return about where the goal is reached first, len(points) if nowhere, and if predicted.

    Where there is no prediction the means of a few draws are halved over: no answer, but a place
    to start at, and enough to tell what is hopeless.
    """
    place = _first_reached(points, question.expects(question.guessed))
    if place is not None:
        return place, True
    sparse = points[::_GUESS_EVERY]
    place = _first_reached(sparse, question.drawn)
    assert place is not None
    return min(place * _GUESS_EVERY, len(points)), False


def about(
    measured: Measured,
    settings: Settings,
    mechanism: Mechanism,
    goal: Goal,
    what: str = "epsilon",
    *,
    up_to: float = math.inf,
) -> Predicted:
    """Return about where a mechanism reaches a goal: by prediction, else by a few draws.

    The claim is judged there. It costs a small part of `least`, and comes without a confidence.

    Parameters
    ----------
    measured, settings, mechanism, goal, what
        Those of `least`.
    up_to : float
        Where nobody asks for a larger answer: infinite is then returned, at a look for most.
    """
    question = _Question(mechanism, measured, settings, goal, what)
    lattice = _lattice(what)
    points = _possible(question, lattice[lattice <= up_to])
    if len(points) == 0:
        return Predicted(mechanism, None, None)
    if question.expects(question.guessed)(float(points[-1])) is None and not question.drawn(
        float(points[-1])
    ):
        return Predicted(mechanism, math.inf, None)
    value = _value(points, _guess(question, points)[0])
    return Predicted(mechanism, value, None if math.isinf(value) else question.status(value))


@dataclass(frozen=True, eq=False)
class _Search:
    """One mechanism's search, ready to start.

    Attributes
    ----------
    question : _Question
    able : ndarray
        Where the mechanism can run at all.
    place : int
        The first guess, which changes the work and not the answer.
    known : bool
        Whether it is predicted.
    shared : bool
        Whether it is proved that every draw is monotone.
    """

    question: _Question
    able: FloatArray
    place: int
    known: bool
    shared: bool

    @classmethod
    def of(cls, question: _Question) -> _Search | Target:
        """Return the search, or why the mechanism cannot answer."""
        mechanism, what, goal = question.mechanism, question.what, question.goal
        goal.check(question.measured.problem(question.settings))
        if (reason := question.not_measured()) is not None:
            return Target(mechanism, what, goal, reason=reason)
        points = _lattice(what)
        able = _possible(question, points)
        if len(able) == 0:
            nothing = "the preparation's shares leave nothing for it"
            reason = question.why_not(float(points[-1])) or nothing
            return Target(mechanism, what, goal, reason=reason)
        place, known = _guess(question, able)
        return cls(question, able, place, known, question.monotone_draws(able))

    @property
    def start(self) -> int:
        return min(self.place, len(self.able) - 1)

    @property
    def threshold(self) -> float:
        question = self.question
        return question.goal.unit_threshold(question.measured.problem(question.settings))

    def seconds(self, confidence: float, most_draws: int) -> float:
        """Return about how long it takes, by the time of a few draws."""
        point = float(self.able[self.start])
        self.question.sample(point, range(_TIMED_FROM - 1, _TIMED_FROM))  # what comes once
        started = time.monotonic()
        self.question.sample(point, range(_TIMED_FROM, _TIMED_FROM + _TIMED))
        each = (time.monotonic() - started) / _TIMED
        return each * _TESTS * draws_of_a_test(self.threshold, confidence, self.shared, most_draws)

    def run(self, confidence: float, most_draws: int) -> Target:
        """Return where the goal is reached."""
        question, able = self.question, self.able
        found = crossing(
            able,
            question.sample,
            self.threshold,
            shared=self.shared,
            start=self.start,
            confidence=confidence,
            most_draws=most_draws,
        )
        # a claim is judged where the goal is reached for sure, or at the end where it is not
        where = found.high if found.high is not None else float(able[-1])
        foreseen = self.known and question.goal.of_draws is None and question.measured.raw is None
        return Target(
            mechanism=question.mechanism,
            what=question.what,
            goal=question.goal,
            low=found.low,
            high=found.high,
            first=float(able[0]),
            last=float(able[-1]),
            never=found.last_is_below,
            confidence=confidence,
            proved=self.shared,
            monotone=found.monotone,
            predicted=_value(able, self.place) if foreseen else None,
            status=question.status(where),
            tests=found.tests,
            draws=found.draws,
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
        A prepared table, or `planned`.
    settings : Settings
        Reads k, relation, seed, delta and, for n, epsilon. A delta not given is
        the default for each n in turn.
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
    search = _Search.of(_Question(mechanism, measured, settings, goal, what))
    return search if isinstance(search, Target) else search.run(confidence, most_draws)


@dataclass(frozen=True)
class Predicted:
    """An answer without a draw.

    Attributes
    ----------
    mechanism : Mechanism
    value : float or None
        The least value that is enough; infinite if none is, None without a prediction.
    status : Status or None
        Of the claim at that value; None where there is no value.
    """

    mechanism: Mechanism
    value: float | None
    status: Status | None

    @property
    def counts(self) -> bool:
        """Whether there is an answer at which the claim does not fail."""
        return self.status is not None and not self.status.verdict.fails

    def order(self) -> tuple[bool, float]:
        """Return what sorts answers: the least first, those that do not count last."""
        return not self.counts, math.inf if self.value is None else self.value


def predicted_target(
    measured: Measured, settings: Settings, mechanism: Mechanism, goal: Goal, what: str = "epsilon"
) -> Predicted:
    """Return the predicted answer of a mechanism, its claim judged at that answer.

    A claim may hold at the epsilon in the settings and fail at the answer, and the reverse.
    Parameters are those of `least`.
    """
    value = predicted_crossing(measured, settings, mechanism, goal, what)
    status = None
    if value is not None and math.isfinite(value):
        question = _Question(mechanism, measured, settings, goal, what)
        status = mechanism.status(question.problem(value), question.budget(value))
    return Predicted(mechanism, value, status)


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
    """Return the answer of every chosen mechanism, the least first, false claims last.

    ``on_estimate`` is called with about the seconds that all of them take, before any is searched.
    """
    searches = [
        _Search.of(_Question(mechanism, measured, settings, goal, what))
        for mechanism in variants_of(settings)
    ]
    if on_estimate is not None:
        able = [each for each in searches if isinstance(each, _Search)]
        on_estimate(sum(each.seconds(confidence, most_draws) for each in able))
    answers = [
        each if isinstance(each, Target) else each.run(confidence, most_draws) for each in searches
    ]
    return tuple(sorted(answers, key=lambda answer: (not answer.counts, answer.estimate)))
