"""In or out: each phone of a class has one release, of a table with her or without, and says which.

The taps are a membership attack on a mechanism of dpviz, and what its account proves of every such
attack is a line through them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import bdtr

from dpviz.auditing.attack import both_worlds
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget
from dpviz.core.quantity import Kind, Quantity
from dpviz.core.seeding import generator
from dpviz.lessons.cast import pure
from dpviz.lessons.languages import ASKED_WORDS, words
from dpviz.lessons.lesson import ShownQuestion
from dpviz.lessons.person import EPSILONS, HER, others, table
from dpviz.mechanisms import Mechanism
from dpviz.simulation.simulate import Batch, Named, Trials, simulate

ROUNDS = 99
"""A class plays at most so many rounds at one epsilon."""

BLOCK = 10
"""Of so many releases in a row, half are with her."""

_CLOUD = 100
_GRAIN = 1_000
_DELTA = 1e-5
"""Of a mechanism that needs a delta."""
_SELDOM = 0.95
"""So many of all classes at the limit have at most what `Round.luck` says."""


@dataclass(frozen=True, eq=False)
class Round:
    """One round: who is dealt what, and what nobody gets beyond.

    Parameters
    ----------
    name : str
        Of its random streams; who does not know it cannot draw them again.
    epsilon : float
        One of `EPSILONS`.
    number : int
        From 1 to `ROUNDS`; another number deals afresh.
    language : str
    mechanism : Mechanism
        Releases matrices; by default the one of the lessons without a delta.

    Raises
    ------
    InvalidSetting
        For another epsilon or number.
    """

    name: str
    epsilon: float = 1.0
    number: int = 1
    language: str = "en"
    mechanism: Mechanism = field(default_factory=pure)

    def __post_init__(self) -> None:
        if self.epsilon not in EPSILONS:
            allowed = "one of " + ", ".join(map(numeral, EPSILONS))
            raise InvalidSetting("epsilon", allowed, self.epsilon)
        if not 1 <= self.number <= ROUNDS:
            raise InvalidSetting("round", f"from 1 to {ROUNDS}", self.number)

    @property
    def step(self) -> str:
        """What it is called among the steps of a room."""
        return f"in or out {numeral(self.epsilon)} {self.number}"

    @property
    def question(self) -> ShownQuestion:
        """The question; what is right differs from phone to phone."""
        said = words(self.language)
        ask, *options = (said.get(text, text) for text in ASKED_WORDS)
        return ShownQuestion(ask, tuple(options), ("", ""), None, -1, "")

    def within(self, place: int) -> bool:
        """Return whether the release that is dealt at a place, from 0, is of the table with her."""
        block, at = divmod(place, BLOCK)
        # half of each block, so that any class that is nearly whole sees both worlds alike
        dealt = generator(0, "in or out", self.name, self.step, "worlds", block).permutation(BLOCK)
        return bool(dealt[at] < BLOCK // 2)

    def release(self, place: int) -> list[int]:
        """Return the release that is dealt at a place, from 0, as a point of `picture`."""
        label = f"in or out {self.name} {self.step} releases"
        return self._points(self.within(place), Named(0, label, range(place, place + 1)))[0]

    @cached_property
    def picture(self) -> dict[str, Any]:
        """What everybody sees beside a release: others with her, others without, and both centres.

        A point is what a release says of her, the other rows' share taken off: along her row, and
        across it. ``reach`` is where the square picture begins and half its side; points beyond lie
        on its rim.
        """
        centre = [round(_GRAIN * float(HER @ HER)), 0]
        return {
            "within": self._cloud(True),
            "out": self._cloud(False),
            "centres": [[0, 0], centre],
            "reach": self._reach,
        }

    @property
    def limit(self) -> float:
        """The share of right taps, over both worlds alike, that nobody passes but by luck.

        Sensitivity plus specificity is at most one and the total variation, halved.
        """
        return both_worlds(self.mechanism.spent(table(), self._budget)).value

    @property
    def limit_text(self) -> str:
        """`limit` as whole taps of a hundred, rounded up."""
        return Quantity(self.limit, Kind.UPPER_BOUND).of_hundred()

    def luck(self, taps: int) -> int:
        """Return how many of so many taps are right at most in 95 of 100 classes at the limit.

        Were worlds guessed with different rates, the sum would spread less (Hoeffding 1956).
        """
        return int(np.argmax(bdtr(np.arange(taps + 1), taps, self.limit) >= _SELDOM))

    def counted(self, taps: dict[int, float]) -> dict[str, Any]:
        """Return right taps and all taps of each world, and the limit, of taps by place."""
        # both worlds by themselves: who always says "in" is right in one and wrong in the other
        hits = {"within": [0, 0], "out": [0, 0]}
        for place, tap in taps.items():
            world = hits["within" if self.within(place) else "out"]
            world[0] += bool(tap) == self.within(place)
            world[1] += 1
        return {
            "hits": hits,
            "limit": int(self.limit_text),
            "limitText": self.limit_text,
            "luck": self.luck(len(taps)),
        }

    @property
    def _budget(self) -> Budget:
        return Budget(self.epsilon, _DELTA)

    @cached_property
    def _reach(self) -> list[int]:
        """Return the least and largest coordinate of the picture, which is a square."""
        drawn = np.concatenate([self._drawn(bool(one), self._stream(one)) for one in (0, 1)])
        middle = float(HER @ HER) / 2
        # without the farthest, which would press all others into the middle
        half = float(np.quantile(np.abs(drawn - [middle, 0.0]), 0.98))
        # both centres have to be inside, however little noise there is
        half = max(half, 1.5 * middle)
        return [round(_GRAIN * (middle - half)), round(_GRAIN * half)]

    def _stream(self, world: int) -> Batch:
        rng = generator(0, "in or out", self.name, self.step, "cloud", world)
        return Batch(rng, _CLOUD)

    def _cloud(self, within: bool) -> list[list[int]]:
        return self._points(within, self._stream(int(within)))

    def _points(self, within: bool, streams: Named | Batch) -> list[list[int]]:
        left, half = self._reach
        drawn = np.rint(_GRAIN * self._drawn(within, streams))
        # points beyond lie on the rim and still count as what they are
        low, high = [left, -half], [left + 2 * half, half]
        points: list[list[int]] = np.clip(drawn, low, high).astype(int).tolist()
        return points

    def _drawn(self, within: bool, streams: Named | Batch) -> FloatArray:
        """Return releases less the other rows' share, along her row and across it."""
        problem, known = table(), others()
        rows = np.vstack([known, HER if within else 0 * HER])
        data = SecondMoment(rows.T @ rows / problem.n, problem.n, rows)
        calibration = self.mechanism.calibrate(problem, self._budget)
        trials = Trials(self.mechanism, calibration, data, streams)
        (found,) = simulate([trials], lambda _, release: release.matrix)
        assert found is not None
        # the attacker knows all rows but hers, and takes their share off
        hers = problem.n * found - known.T @ known
        along = HER / np.linalg.norm(HER)
        turned = np.stack([along, np.array([-along[1], along[0]])])
        sides: FloatArray = np.einsum("ai,kij,aj->ka", turned, hers, turned)
        return sides
