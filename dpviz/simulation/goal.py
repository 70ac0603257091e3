"""A target: a metric and the value that it must reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import METRICS, Metric, share_at_recovery
from dpviz.core.number_text import numeral
from dpviz.core.problem import (
    Problem,
)

SURE = 0.95
"""Share of releases that must reach a requested recovery; a mean goal would let half miss it."""


@dataclass(frozen=True)
class Goal:
    """A metric and the value that it must reach.

    Attributes
    ----------
    metric : str
        Key of `dpviz.core.metrics.METRICS`, of a metric with a better direction.
    value : float
        The value in the metric's unit, to be reached from above or below, as the metric requires.
    of_draws : float or None
        None: the mean over releases must reach the value. A number between 0 and 1: at least that
        share of releases must reach it, the only form for a metric without an upper limit.
    recovery : float or None
        The recovery in which the goal was stated and is shown; see `of_recovery`.
    """

    metric: str = "captured_share"
    value: float = 0.9
    of_draws: float | None = None
    recovery: float | None = None

    def __post_init__(self) -> None:
        keys = [key for key, m in METRICS.items() if m.better != "neither" and m.lower == 0]
        if self.metric not in keys:
            raise InvalidSetting("the goal's metric", f"one of {', '.join(keys)}", self.metric)
        if not 0 < self.value < math.inf:
            raise InvalidSetting("the goal", "a positive number", self.value)
        if self.of_draws is not None and not 0 < self.of_draws < 1:
            raise InvalidSetting("the share of releases", "above 0 and below 1", self.of_draws)

    @classmethod
    def of_recovery(cls, recovery: float, chance: float) -> Goal:
        """Return the goal that a share `SURE` of releases reaches a recovery.

        The goal is stored as the equivalent captured share.

        Parameters
        ----------
        recovery : float
            Above 0 and below 1.
        chance : float
            Result of `dpviz.core.metrics.chance_share`; below 1.
        """
        if not 0 < recovery < 1:
            raise InvalidSetting("the recovery", "above 0 and below 1", recovery)
        share = share_at_recovery(recovery, chance)
        return cls("captured_share", share, of_draws=SURE, recovery=recovery)

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
            raise InvalidSetting("the goal", f"above 0 and below {numeral(upper, 6)}", self.value)

    def unit_values(self, values: FloatArray, problem: Problem) -> FloatArray:
        """Map values to [0, 1], in which more is better."""
        higher = self.measure.better == "higher"
        if self.of_draws is not None:
            hits = values >= self.value if higher else values <= self.value
            return hits.astype(float)
        upper = self.measure.upper(problem.d, problem.k)
        unit = np.clip(values / upper, 0.0, 1.0)
        return unit if higher else 1 - unit

    def unit_threshold(self, problem: Problem) -> float:
        """Return the threshold for the mean of the mapped values."""
        if self.of_draws is not None:
            return self.of_draws
        unit = self.value / self.measure.upper(problem.d, problem.k)
        return unit if self.measure.better == "higher" else 1 - unit

    def reached_by(self, value: float) -> bool:
        """Return whether one value of the metric reaches the goal."""
        return value >= self.value if self.measure.better == "higher" else value <= self.value


# Where simulations reach the goal -----------------------------------------------------------------

RELEASES = 119
"""Releases simulated at each value tried, with the same random numbers."""

_FIRST_LOOK = 16  # The first few releases show at once if a value is too small.


def releases_at(d: int, *, quick: bool = True) -> int:
    """Return how many releases to simulate in d dimensions: at large d a metric hardly varies."""
    most = 4_000 * RELEASES // (d * d)
    return max(4, min(RELEASES, most if quick else most // 4))


def may_miss(share: float, releases: int) -> int:
    """Return how many simulated releases may miss a goal that a share of releases must reach.

    Another release reaches it with probability at least that share, and exactly that share if (1 -
    share)(releases + 1) is whole. Of releases + 1 numbers in random order, the last is below the
    r-th smallest of the others with probability r/(releases + 1). If releases are few, none may
    miss.
    """
    return max(math.floor((1 - share) * (releases + 1) + 1e-9), 1) - 1


def enough(sample: Callable[[range], FloatArray], missing: float, releases: int) -> bool:
    """Return whether simulated releases reach a goal; stop early if too few releases do.

    Parameters
    ----------
    sample : callable
        A function from release numbers to 1 for each release that reaches the goal, or to its
        metric in [0, 1].
    missing : float
        How far the sum over all releases may be below its maximum, for success.
    releases : int
    """
    first = min(_FIRST_LOOK, releases)
    short = float((1 - sample(range(first))).sum())
    if first < releases and short <= missing:
        short += float((1 - sample(range(first, releases))).sum())
    return short <= missing + 1e-9


def first_enough(count: int, reached: Callable[[int], bool], start: int | None = None) -> int:
    """Return the first position below ``count`` that is enough, or ``count`` if none is.

    Parameters
    ----------
    count : int
    reached : callable
        A function that tells whether a position is enough; all later positions are then enough too.
    start : int, optional
        A guess of the result; without a guess, the search halves the range.
    """
    low, high, step = -1, count, 1
    at = None if start is None else min(start, count - 1)
    while high - low > 1:
        # Take growing steps from the guess while all positions tried lie on one side.
        place = at if at is not None and low < at < high else (low + high) // 2
        if reached(place):
            high, at = place, (place - step if low < 0 and at is not None else None)
        else:
            low, at = place, (place + step if high == count and at is not None else None)
        step *= 2
    return high


# Search by tests for where the goal is reached ----------------------------------------------------


SEARCH_STEP = 0.02  # Neighbouring lattice points differ by this in the axis' logarithm.
_FIRST_DRAWS = 16
# Bets are shares of the largest bet that cannot lose all capital. Stakes are the capital on each.
_BETS = 0.95 * np.logspace(0, -2.5, 10)
_STAKES = 0.7 ** np.arange(10) / (0.7 ** np.arange(10)).sum()
_MANY_TESTS = 20  # Searches usually make fewer tests than this.
WITHIN = 1.15
"""Ends of an interval within this ratio are not narrowed by more samples."""
_PATIENCE = 32  # Narrowing may use this many times the usual samples.
_NARROWINGS = 16  # At most this many points get extra samples.
# Extra samples are made within this many lattice steps of where the goal is reached. Above it more
# are allowed, because bounded values with a mean near 1 take longer to test.
_BELOW, _ABOVE = 2, 4
_CHECKS = (round(math.log(4) / SEARCH_STEP), round(math.log(64) / SEARCH_STEP))

Sampler = Callable[[float, range], FloatArray]


# Tests by betting against a threshold --------------------------------------


class Bets:
    """Two bettors, on a mean above and below a threshold, for samples in [0, 1].

    Both bettors start with capital 1. If the mean is at most the threshold, the capital on
    ``above`` is a supermartingale whatever the samples' law; ``below`` is the mirror case. Bets are
    a mixture fixed in advance, so capital is monotone in every sample.

    Parameters
    ----------
    threshold : float
        Above 0 and below 1.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._logs = np.zeros((2, len(_BETS)))
        self.best = np.zeros(2)  # This is the largest log capital so far of both bettors.

    def see(self, values: FloatArray) -> None:
        """Bet on a batch of samples, in order."""
        gain = values - self.threshold
        sizes = np.stack([_BETS / self.threshold, -_BETS / (1 - self.threshold)])
        steps = np.log1p(sizes[:, :, None] * gain)
        path = self._logs[:, :, None] + np.cumsum(steps, axis=2)
        capital = np.logaddexp.reduce(path + np.log(_STAKES)[:, None], axis=1)
        self.best = np.maximum(self.best, capital.max(axis=1))
        self._logs = path[:, :, -1]

    def verdict(self, log_needed: float) -> int:
        """Return 1 if the mean is shown above, -1 if shown below, 0 if not yet known."""
        above, below = self.best >= log_needed
        if above and below:  # Each of the two is wrong with probability at most alpha.
            return 0
        return int(above) - int(below)


# Search along the lattice --------------------------------------------------


@dataclass(frozen=True)
class Crossing:
    """The place where an increasing curve crosses a threshold.

    Attributes
    ----------
    low : float or None
        Largest point shown to lie below the threshold; None if no point was.
    high : float or None
        Smallest point shown to lie above the threshold; None if no point was.
    last_is_below : bool
        Whether even the last point was shown to lie below the threshold.
    monotone : bool
        False if points were seen in the wrong order, so that no single crossing exists.
    tests, draws : int
        Work done: numbers of tests and samples.
    """

    low: float | None
    high: float | None
    last_is_below: bool
    monotone: bool
    tests: int
    draws: int


@dataclass
class _Test:
    """Findings about one point of the lattice."""

    number: int
    bets: Bets
    draws: int = 0
    total: float = 0.0
    verdict: int = 0


@dataclass
class _Search:
    """A search on a lattice of points."""

    points: FloatArray
    sample: Sampler
    threshold: float
    alpha: float
    most_draws: int
    shared: bool

    def __post_init__(self) -> None:
        self.tests: dict[int, _Test] = {}

    def test(self, index: int, most: int | None = None) -> int:
        """Return 1 if the point is above, -1 if below, 0 if undecided after ``most`` samples."""
        test = self.tests.setdefault(index, _Test(len(self.tests), Bets(self.threshold)))
        most = self.most_draws if most is None else most
        if self.shared:  # Each end of the interval uses alpha/2 once.
            log_level, first = math.log(2 / self.alpha), 0
        else:
            log_level = math.log((test.number + 1) * (test.number + 2) / self.alpha)
            first = test.number * _PATIENCE * self.most_draws
        while test.draws < most and test.verdict == 0:
            upto = min(max(2 * test.draws, _FIRST_DRAWS), most)
            trials = range(first + test.draws, first + upto)
            values = self.sample(float(self.points[index]), trials)
            test.bets.see(values)
            test.draws, test.total = upto, test.total + float(values.sum())
            test.verdict = test.bets.verdict(log_level)
        return test.verdict

    @property
    def verdicts(self) -> dict[int, int]:
        """The verdict on each point so far."""
        return {index: test.verdict for index, test in self.tests.items()}

    def run(self, start: int, step: int) -> Crossing:
        """Search from a first guess, in growing steps and then by halving."""
        top = len(self.points) - 1
        self._reach(start, step)
        low = self._last_below()
        high = self._first_above(low)
        if low >= 0 and high <= top:
            low, high = self._narrowed(low, high)
        # Without shared random numbers, monotone means are only assumed, so check far points.
        if not self.shared:
            for distance in _CHECKS:
                for far in (high + distance, low - distance):
                    if 0 <= far <= top:
                        self.test(far)
        above = [i for i, v in self.verdicts.items() if v > 0]
        below = [i for i, v in self.verdicts.items() if v < 0]
        return Crossing(
            low=float(self.points[low]) if low >= 0 else None,
            high=float(self.points[high]) if high <= top else None,
            last_is_below=low == top,
            monotone=not above or not below or max(below) < min(above),
            tests=len(self.tests),
            draws=sum(test.draws for test in self.tests.values()),
        )

    def _reach(self, start: int, step: int) -> None:
        """Test in growing steps until one point is shown above and one point below."""
        top = len(self.points) - 1
        at, width = start, step
        while self.test(at) <= 0 and at < top:
            at, width = min(at + width, top), 2 * width
        at, width = start, step
        while self.test(at) >= 0 and at > 0:
            at, width = max(at - width, 0), 2 * width

    def _last_below(self) -> int:
        """Return the largest point shown below, found by halving; -1 if there is none."""
        verdicts, beyond = self.verdicts, len(self.points)
        low = max((i for i, v in verdicts.items() if v < 0), default=-1)
        ceiling = min((i for i, v in verdicts.items() if v >= 0 and i > low), default=beyond)
        while ceiling - low > 1:
            middle = (low + ceiling) // 2
            low, ceiling = (middle, ceiling) if self.test(middle) < 0 else (low, middle)
        return low

    def _first_above(self, low: int) -> int:
        """Return the smallest point shown above, beyond ``low``; past the last point if none is."""
        verdicts, beyond = self.verdicts, len(self.points)
        high = min((i for i, v in verdicts.items() if v > 0 and i > low), default=beyond)
        floor = max((i for i, v in verdicts.items() if v <= 0 and i < high), default=-1)
        while high - floor > 1:
            middle = (floor + high) // 2
            high, floor = (middle, floor) if self.test(middle) > 0 else (high, middle)
        return high

    def _narrowed(self, low: int, high: int) -> tuple[int, int]:
        """Narrow the interval by more samples on both sides of the likely crossing."""
        most = _PATIENCE * self.most_draws
        for _ in range(_NARROWINGS):
            if self.points[high] <= WITHIN * self.points[low]:
                break
            # Give up points that are still undecided after this many samples.
            silent = [
                i for i, t in self.tests.items()
                if low < i < high and t.verdict == 0 and t.draws >= most
            ]  # fmt: skip
            first, last = min(silent, default=high), max(silent, default=low)
            middle = self._likely(low, high)
            under, over = math.floor(middle) - _BELOW, math.ceil(middle) + _ABOVE
            under = max(under, low + 1) if under < first else (low + first) // 2
            over = min(over, high - 1) if over > last else (high + last + 1) // 2
            ends = [(under - low, under)] if low < under < first else []
            ends += [(high - over, over)] if last < over < high else []
            if not ends:
                break
            place = max(ends)[1]
            sign = self.test(place, most)
            low, high = (place if sign < 0 else low), (place if sign > 0 else high)
        return low, high

    def _likely(self, low: int, high: int) -> float:
        """Return where a line fitted to the means between two points reaches the threshold."""
        places = [i for i in self.tests if low <= i <= high]
        tests = [self.tests[i] for i in places]
        weights = np.sqrt([float(test.draws) for test in tests])
        means = [test.total / test.draws for test in tests]
        slope, start = np.polyfit(np.array(places) - low, means, 1, w=weights)
        at = low + (self.threshold - start) / slope if slope > 0 else (low + high) / 2
        return float(min(max(at, low), high))


def crossing(
    points: FloatArray,
    sample: Sampler,
    threshold: float,
    *,
    shared: bool,
    start: int | None = None,
    confidence: float = 0.95,
    most_draws: int = 256,
) -> Crossing:
    """Find where the mean of noisy values in [0, 1] rises above a threshold.

    Parameters
    ----------
    points : ndarray
        Ascending.
    sample : callable
        A function from a point and trial numbers to independent values in [0, 1], one per trial.
    threshold : float
        Above 0 and below 1.
    shared : bool
        Whether each trial's value is known to be non-decreasing along the points; then the same
        trials serve all points. Otherwise every test has its own trials.
    start : int, optional
        Index of a first guess, such as a prediction; it changes the work but not the guarantee.
    confidence : float
        Probability that ``low`` and ``high`` are both on the right side, for a non-decreasing mean.
    most_draws : int
        Samples per point at first. If the ends are further apart than `WITHIN`, some points near
        the crossing get up to 32 times this number. If the threshold is close to 0 or 1, the number
        is raised to twice what perfect samples need: a mean above .99 cannot be shown by fewer than
        some hundred samples.
    """
    if not 0 < confidence < 1:
        raise InvalidSetting("confidence", "above 0 and below 1", confidence)
    if not 0 < threshold < 1:
        raise InvalidSetting("threshold", "above 0 and below 1", threshold)
    if most_draws < _FIRST_DRAWS:
        raise InvalidSetting("draws", f"at least {_FIRST_DRAWS}", most_draws)
    most_draws = draws_of_a_test(threshold, confidence, shared, most_draws)
    search = _Search(points, sample, threshold, 1 - confidence, most_draws, shared)
    guess, step = (len(points) // 2, len(points) // 4 + 1) if start is None else (start, 4)
    return search.run(guess, step)


def draws_of_a_test(threshold: float, confidence: float, shared: bool, most_draws: int) -> int:
    """Return the limit on samples at a point, at least twice what perfect samples need.

    Parameters
    ----------
    threshold, confidence, shared, most_draws
        The same parameters as in `crossing`.
    """
    tests = 1 if shared else _MANY_TESTS
    log_level = math.log(tests * (tests + 1) / (1 - confidence)) - math.log(_STAKES[0])
    farther = max(threshold, 1 - threshold)
    perfect = math.ceil(log_level / math.log1p(_BETS[0] * (1 - farther) / farther))
    return max(most_draws, 2 * perfect)
