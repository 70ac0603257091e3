"""A target: a metric and the value it must reach."""

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
"""Share of releases that must recover what is asked for: by their mean one of two would not."""


@dataclass(frozen=True)
class Goal:
    """What is to be reached.

    Attributes
    ----------
    metric : str
        Key of `dpviz.core.metrics.METRICS`, one that has a better direction.
    value : float
        In the metric's unit; reached from above or below as the metric asks.
    of_draws : float or None
        None: the mean over releases reaches the value. A number between 0 and
        1: at least that share of releases does; the only form for a metric
        without an upper limit.
    recovery : float or None
        The recovery that it was stated as, which sentences then say; see `of_recovery`.
    """

    metric: str = "captured_share"
    value: float = 0.9
    of_draws: float | None = None
    recovery: float | None = None

    def __post_init__(self) -> None:
        allowed = [key for key, m in METRICS.items() if m.better != "neither" and m.lower == 0]
        if self.metric not in allowed:
            raise InvalidSetting("the goal's metric", f"one of {', '.join(allowed)}", self.metric)
        if not 0 < self.value < math.inf:
            raise InvalidSetting("the goal", "a positive number", self.value)
        if self.of_draws is not None and not 0 < self.of_draws < 1:
            raise InvalidSetting("the share of releases", "above 0 and below 1", self.of_draws)

    @classmethod
    def of_recovery(cls, recovery: float, chance: float) -> Goal:
        """Return the goal that `SURE` of releases recover so much.

        It is stated as the captured share that means the same.

        Parameters
        ----------
        recovery : float
            Above 0 and below 1.
        chance : float
            From `dpviz.core.metrics.chance_share`; below 1.
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


# Where it is reached, by simulated releases -------------------------------------------------------

RELEASES = 119
"""Releases that are simulated at each value tried, the same at all of them."""

_FIRST_LOOK = 16  # a value far too small is seen at once


def releases_at(d: int, *, quick: bool = True) -> int:
    """Return how many releases are simulated in d dimensions: in many a measure hardly varies."""
    most = 4_000 * RELEASES // (d * d)
    return max(4, min(RELEASES, most if quick else most // 4))


def may_miss(share: float, releases: int) -> int:
    """Return how many of simulated releases may miss a goal that a share of all is to reach.

    One more release reaches it with a chance of at least that share, exactly where
    (1 - share)(releases + 1) is whole: of so many numbers in random order the last one lies below
    the r-th smallest of the others with a chance of r/(releases + 1). Of few none may.
    """
    return max(math.floor((1 - share) * (releases + 1) + 1e-9), 1) - 1


def enough(sample: Callable[[range], FloatArray], missing: float, releases: int) -> bool:
    """Return whether simulated releases reach a goal; some are spared if too few do.

    Parameters
    ----------
    sample : callable
        Numbers of releases to 1 for each that reaches the goal, or its measure in [0, 1].
    missing : float
        What all of them may fall short of 1 together.
    releases : int
    """
    first = min(_FIRST_LOOK, releases)
    short = float((1 - sample(range(first))).sum())
    if first < releases and short <= missing:
        short += float((1 - sample(range(first, releases))).sum())
    return short <= missing + 1e-9


def first_enough(count: int, reached: Callable[[int], bool], start: int | None = None) -> int:
    """Return the first of so many places in a row that is enough, ``count`` if none is.

    Parameters
    ----------
    count : int
    reached : callable
        Place to whether it is enough, as all places beyond it then are.
    start : int, optional
        About where it is; without it the row is halved.
    """
    low, high, step = -1, count, 1
    at = None if start is None else min(start, count - 1)
    while high - low > 1:
        # in growing steps from the guess as long as all lie on one side
        place = at if at is not None and low < at < high else (low + high) // 2
        if reached(place):
            high, at = place, (place - step if low < 0 and at is not None else None)
        else:
            low, at = place, (place + step if high == count and at is not None else None)
        step *= 2
    return high


# The search of where it is reached by tests -------------------------------------------------------


SEARCH_STEP = 0.02  # of the lattice, in the logarithm
_FIRST_DRAWS = 16
# Shares of the largest bet that cannot bankrupt, and how the stake is spread over them.
_BETS = 0.95 * np.logspace(0, -2.5, 10)
_STAKES = 0.7 ** np.arange(10) / (0.7 ** np.arange(10)).sum()
_MANY_TESTS = 20  # more than a search makes, as a rule
WITHIN = 1.15
"""Ends of an interval that are no further apart than this are not brought closer by more draws."""
_PATIENCE = 32  # times as many draws where they are
_NARROWINGS = 16  # points at most that get them
# Lattice steps from the crossing at which more draws are made. Bounded values prove a mean near 1
# to be above the goal more slowly than below it, so the upper end gets more room.
_BELOW, _ABOVE = 2, 4
_CHECKS = (round(math.log(4) / SEARCH_STEP), round(math.log(64) / SEARCH_STEP))

Sampler = Callable[[float, range], FloatArray]


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
class Crossing:
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
class _Test:
    """What is known of one point."""

    number: int
    bets: Bets
    draws: int = 0
    total: float = 0.0
    verdict: int = 0


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
        self.tests: dict[int, _Test] = {}

    def test(self, index: int, most: int | None = None) -> int:
        """Return 1, -1 or 0: the point is above, below or not told apart by so many draws."""
        test = self.tests.setdefault(index, _Test(len(self.tests), Bets(self.threshold)))
        most = self.most_draws if most is None else most
        if self.shared:  # alpha/2 for each of the two ends, once
            log_needed, first = math.log(2 / self.alpha), 0
        else:
            log_needed = math.log((test.number + 1) * (test.number + 2) / self.alpha)
            first = test.number * _PATIENCE * self.most_draws
        while test.draws < most and test.verdict == 0:
            upto = min(max(2 * test.draws, _FIRST_DRAWS), most)
            trials = range(first + test.draws, first + upto)
            values = self.sample(float(self.points[index]), trials)
            test.bets.see(values)
            test.draws, test.total = upto, test.total + float(values.sum())
            test.verdict = test.bets.verdict(log_needed)
        return test.verdict

    @property
    def verdicts(self) -> dict[int, int]:
        """What was found of each point so far."""
        return {index: test.verdict for index, test in self.tests.items()}

    def run(self, start: int, step: int) -> Crossing:
        """Search from a first guess, in growing steps and then by halving."""
        top = len(self.points) - 1
        self._reach(start, step)
        low = self._last_below()
        high = self._first_above(low)
        if low >= 0 and high <= top:
            low, high = self._narrowed(low, high)
        # monotone means are an assumption there: far points may contradict it
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
        """Test in growing steps up to a point shown above, and down to one shown below."""
        top = len(self.points) - 1
        at, width = start, step
        while self.test(at) <= 0 and at < top:
            at, width = min(at + width, top), 2 * width
        at, width = start, step
        while self.test(at) >= 0 and at > 0:
            at, width = max(at - width, 0), 2 * width

    def _last_below(self) -> int:
        """Return the largest point shown below, by halving from what is not; -1 for none."""
        verdicts, beyond = self.verdicts, len(self.points)
        low = max((i for i, v in verdicts.items() if v < 0), default=-1)
        ceiling = min((i for i, v in verdicts.items() if v >= 0 and i > low), default=beyond)
        while ceiling - low > 1:
            middle = (low + ceiling) // 2
            low, ceiling = (middle, ceiling) if self.test(middle) < 0 else (low, middle)
        return low

    def _first_above(self, low: int) -> int:
        """Return the smallest point shown above, beyond ``low``; past the last one for none."""
        verdicts, beyond = self.verdicts, len(self.points)
        high = min((i for i, v in verdicts.items() if v > 0 and i > low), default=beyond)
        floor = max((i for i, v in verdicts.items() if v <= 0 and i < high), default=-1)
        while high - floor > 1:
            middle = (floor + high) // 2
            high, floor = (middle, floor) if self.test(middle) > 0 else (high, middle)
        return high

    def _narrowed(self, low: int, high: int) -> tuple[int, int]:
        """Return ends that are closer by more draws on either side of the likely crossing."""
        most = _PATIENCE * self.most_draws
        for _ in range(_NARROWINGS):
            if self.points[high] <= WITHIN * self.points[low]:
                break
            # What even that many draws do not tell apart is given up.
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
        """Return where a line through the means seen between two points reaches the threshold."""
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
        Per point at first; where the ends are further apart than `WITHIN`, some points near
        the crossing get up to 32 times as many. Raised to twice what a run of perfect draws
        needs, where the threshold is close to 0 or 1: a mean above .99 cannot be shown by
        fewer than some hundred draws.
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
    """Return the most draws at a point: twice what perfect ones need to show it, at least.

    Parameters
    ----------
    threshold, confidence, shared, most_draws
        Those of `crossing`.
    """
    tests = 1 if shared else _MANY_TESTS
    log_needed = math.log(tests * (tests + 1) / (1 - confidence)) - math.log(_STAKES[0])
    farther = max(threshold, 1 - threshold)
    perfect = math.ceil(log_needed / math.log1p(_BETS[0] * (1 - farther) / farther))
    return max(most_draws, 2 * perfect)
