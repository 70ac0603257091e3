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
    """Return the people at which the first component is found, by simulation.

    At k = 1 the projection distance is ``sqrt(2 (1 - <v^_1, v_1>^2))``.
    """
    goal = Goal("projection_distance", math.sqrt(2 * (1 - rho**2)), of_draws=1 - eta)
    return least(measured, replace(settings, k=1), mechanism, goal, "n")


PEOPLE_RANGE = (10, 10**12)
_ENTRIES = 1_000_000  # of the matrices that are drawn at a time
# Draws of `about`, apart from those that tests are made on.
_GUESS_FROM = 10**9
_EVERY = 2  # of the lattice: a finer answer than 4 % so few releases do not give
_TIMED_FROM, _TIMED = 2 * _GUESS_FROM, 32  # draws by which the time of a search is told
_TESTS = 16  # as long as the longest, of about what a search makes
NEAR = 1.25
"""Who needs more than so many times the least that is predicted for anybody is not searched."""


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
        Why the mechanism cannot answer, or was not searched, in which case all else is empty.
    searched : bool
        False where nobody named the mechanism and others are predicted to need less.
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
        table = self.measured
        if self.what == "epsilon":
            return table
        # the same population: only the number of people, and with it the noise, changes
        moment = table.moment.with_n(round(point))
        return Measured(
            table.name, table.columns, table.domain, table.row_bound, moment, table.reference,
            table.bounded_rows, table.notes, table.assumed_public, raw=table.raw,
            public=table.public,
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

    @cached_property
    def able(self) -> FloatArray:
        """The points at which the mechanism can run."""
        return _possible(self, _lattice(self.what))

    @cached_property
    def foreseen(self) -> float | None:
        """Where a law predicts the goal to be reached; infinite if nowhere, None without a law."""
        place = _first_reached(self.able, self.expects(self.guessed))
        return None if place is None else _value(self.able, place)

    def unable(self) -> str | None:
        """Return why the mechanism can answer nowhere, or None."""
        self.goal.check(self._given)
        reason = self.not_measured()
        if reason is None and len(self.able) == 0:
            nothing = "the preparation's shares leave nothing for it"
            return self.why_not(float(_lattice(self.what)[-1])) or nothing
        return reason

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

        # A few matrices at a time: memory does not grow with the number of draws.
        size = max(1, _ENTRIES // problem.d**2)
        return np.concatenate(list(simulate(parts_of(cell, table, size), values)))

    def predicted(self, point: float) -> float | None:
        check_cancelled()
        if self.measured.raw is not None or self.settings.post == FREE:
            return None  # neither a private preparation nor post-processing has a law
        return self._law(point, self.budget(point))

    def guessed(self, point: float) -> float | None:
        """Return about what to expect behind a private preparation: a place to start a search.

        It takes the preparation for exact and leaves the mechanism what the shares do.
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
        """Return whether an expected value reaches the goal, as a function of the point."""

        def reaches(point: float) -> bool | None:
            value = expected(point)
            return None if value is None else self.goal.reached_by(value)

        return reaches

    def enough(self, point: float) -> bool:
        """Return whether so many simulated releases reach the goal as it asks for."""
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
            return False  # what follows a release is no noise that grows
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
        # below it one row of a person has less than the least epsilon
        least = question.measured.problem(question.settings).together * EPSILON_RANGE[0]
        points = points[(points >= 1.5 * least) | (least == EPSILON_RANGE[0])]
    # without limits of its own it can run at every epsilon or at none
    alike = question.what == "epsilon" and type(question.mechanism).limits is Mechanism.limits
    tried = points[:1] if alike else points
    able = [question.why_not(float(point)) is None for point in tried]
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


def about(
    measured: Measured,
    settings: Settings,
    mechanism: Mechanism,
    goal: Goal,
    what: str = "epsilon",
    *,
    up_to: float = math.inf,
) -> Predicted:
    """Return about where a mechanism reaches a goal, by the same simulated releases everywhere.

    It is the one answer to which epsilon is enough, on every page and of `dpviz decide`. The
    preparation is that of the settings, exact where they pay for none; the claim is judged at the
    answer. It costs a small part of `least`, comes without a confidence, and is the same whatever
    the seed.

    Parameters
    ----------
    measured, settings, mechanism, goal, what
        Those of `least`.
    up_to : float
        Where nobody asks for a larger answer: infinite is then returned, at a look for most.
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
    # the mean is predicted by a law where there is one: not far below what nearly all reach
    start = None if question.foreseen is None else int(np.searchsorted(points, question.foreseen))
    if start is None and not reached(last):
        return Predicted(question.mechanism, math.inf, None)
    value = _value(points, first_enough(last if start is None else last + 1, reached, start))
    status = None if math.isinf(value) else question.status(value)
    return Predicted(question.mechanism, value, status)


def candidates() -> Iterator[Mechanism]:
    """Yield every mechanism that makes a claim, as its quicker variant where it has one."""
    for cls in all_mechanisms().values():
        if cls.info.guarantee != "none":
            yield cls().quicker


def leaders(measured: Measured, settings: Settings, goal: Goal) -> dict[str, Predicted | None]:
    """Return about the least epsilon that reaches a goal, and whose it is.

    Only claims count that hold at the answer, and only mechanisms whose draws are quick, or that
    the settings name; where they name none, those that are shown first count as named.

    Returns
    -------
    dict
        ``least`` of all mechanisms, ``pure`` of those without a delta, and ``chosen`` of those that
        the settings name; None where there is none.
    """
    chosen = parse_variants(settings.mechanisms or featured())
    others = [one for one in candidates() if one.quick and one not in chosen]
    best_of: dict[str, Predicted | None] = dict.fromkeys(("least", "pure", "chosen"))
    for mechanism in (*chosen, *others):
        kinds = {
            "least": mechanism.info.guarantee != "none",
            "pure": mechanism.info.guarantee == "pure",
            "chosen": mechanism.info.guarantee != "none" and mechanism in chosen,
        }
        wanted = [kind for kind, asks in kinds.items() if asks]
        # nobody asks for more than what is known already: most answer at one look
        best = [math.inf if (one := best_of[kind]) is None else one.least for kind in wanted]
        if not wanted:
            continue
        one = about(measured, settings, mechanism, goal, up_to=max(best))
        if one.good:
            for kind, least_yet in zip(wanted, best, strict=True):
                best_of[kind] = one if one.least < least_yet else best_of[kind]
    return best_of


@dataclass(frozen=True, eq=False)
class _Search:
    """One mechanism's search, ready to start.

    Attributes
    ----------
    question : _Question
    guess : float
        Where to begin, which changes the work and not the answer; infinite if nothing is enough.
    shared : bool
        Whether it is proved that every draw is monotone.
    """

    question: _Question
    guess: float
    shared: bool

    @classmethod
    def of(cls, question: _Question, guess: float | None = None) -> _Search | Target:
        """Return the search, or why the mechanism cannot answer."""
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
        """Return about how long it takes, by the time of a few draws."""
        point = float(self.question.able[self.start])
        self.question.sample(point, range(_TIMED_FROM - 1, _TIMED_FROM))  # what comes once
        started = time.monotonic()
        self.question.sample(point, range(_TIMED_FROM, _TIMED_FROM + _TIMED))
        each = (time.monotonic() - started) / _TIMED
        return each * _TESTS * draws_of_a_test(self.threshold, confidence, self.shared, most_draws)

    def run(self, confidence: float, most_draws: int) -> Target:
        """Return where the goal is reached."""
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
        # a claim is judged where the goal is reached for sure, or at the end where it is not
        where = bracket.high if bracket.high is not None else float(able[-1])
        foreseen = question.goal.of_draws is None and question.measured.raw is None
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
            predicted=question.foreseen if foreseen else None,
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
    """About the least value that is enough: a prediction by simulated releases.

    Attributes
    ----------
    mechanism : Mechanism
    value : float or None
        The least value that is enough; infinite if none is, None where it cannot run.
    status : Status or None
        Of the claim at that value; None where there is no value.
    """

    mechanism: Mechanism
    value: float | None
    status: Status | None

    @property
    def least(self) -> float:
        """The value, infinite where there is none."""
        return math.inf if self.value is None else self.value

    @property
    def counts(self) -> bool:
        """Whether there is an answer at which the claim does not fail."""
        return self.status is not None and not self.status.verdict.fails

    @property
    def good(self) -> bool:
        """Whether there is an answer at which the claim holds."""
        return self.status is not None and self.status.verdict in (Verdict.HOLDS, Verdict.LOOSE)

    def order(self) -> tuple[bool, float]:
        """Return what sorts answers: the least first, those that do not count last."""
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
    """Return the answer of every chosen mechanism, the least first, false claims last.

    Where the settings name none, the least is predicted by simulated releases first, and only those
    are searched that are predicted to need less than `NEAR` times it. ``on_estimate`` is called
    with about the seconds that the searches take, before the first.
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
    """Return whom to search and from where, and the others with the reason why not."""
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
    # those first that a law predicts to need the least: of others one look is enough as a rule
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
