"""In or out: each phone guesses whether its release came from a table with the target person.

The taps of the phones are a membership attack on a mechanism of dpviz. A line shows the bound that
privacy accounting proves for every such attack.
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
"""Maximum number of rounds that a class plays at one epsilon."""

BLOCK = 10
"""Number of consecutive releases in a block; half of them are from the table with the target."""

_CLOUD = 100
_GRAIN = 1_000
_DELTA = 1e-5
"""Delta of a mechanism that needs a positive delta."""
_SELDOM = 0.95
"""Share of classes at the limit whose right taps number at most `Round.luck`."""


@dataclass(frozen=True, eq=False)
class Round:
    """One round: each phone's release, and the limit on right guesses.

    Parameters
    ----------
    name : str
        Name of the round's random streams; nobody can reproduce the streams without it.
    epsilon : float
        Privacy parameter, one of `EPSILONS`.
    number : int
        Number of the round, from 1 to `ROUNDS`; each number gives new releases.
    language : str
    mechanism : Mechanism
        Mechanism that releases matrices; by default `dpviz.lessons.cast.pure`.

    Raises
    ------
    InvalidSetting
        If epsilon or the number is not allowed.
    """

    name: str
    epsilon: float = 1.0
    number: int = 1
    language: str = "en"
    mechanism: Mechanism = field(default_factory=pure)

    def __post_init__(self) -> None:
        if self.epsilon not in EPSILONS:
            rule = "one of " + ", ".join(map(numeral, EPSILONS))
            raise InvalidSetting("epsilon", rule, self.epsilon)
        if not 1 <= self.number <= ROUNDS:
            raise InvalidSetting("round", f"from 1 to {ROUNDS}", self.number)

    @property
    def step(self) -> str:
        """Name of the round among the steps of a room."""
        return f"in or out {numeral(self.epsilon)} {self.number}"

    @property
    def question(self) -> ShownQuestion:
        """The question of the round; the right answer differs from phone to phone."""
        by_text = words(self.language)
        ask, *options = (by_text.get(text, text) for text in ASKED_WORDS)
        return ShownQuestion(ask, tuple(options), ("", ""), None, -1, "")

    def within(self, place: int) -> bool:
        """Return whether the release at a place, from 0, comes from the table with the target."""
        block, at = divmod(place, BLOCK)
        # Half of each block shows the first table, so that a class sees both about equally often.
        dealt = generator(0, "in or out", self.name, self.step, "worlds", block).permutation(BLOCK)
        return bool(dealt[at] < BLOCK // 2)

    def release(self, place: int) -> list[int]:
        """Return the release of the phone at a place, from 0, as a point of `picture`."""
        label = f"in or out {self.name} {self.step} releases"
        return self._points(self.within(place), Named(0, label, range(place, place + 1)))[0]

    @cached_property
    def picture(self) -> dict[str, Any]:
        """The shared chart: other releases with and without the target's row, and both centres.

        A point is a release minus the other rows' share, along the target's row and across it.
        ``reach`` holds the left end of the square chart and half its side; points outside lie on
        its edge.
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
        """Upper bound on the expected share of right taps if both tables are equally likely.

        The mean of sensitivity and specificity is at most (one plus the total variation) / 2.
        """
        return both_worlds(self.mechanism.spent(table(), self._budget)).value

    @property
    def limit_text(self) -> str:
        """Value of `limit` in whole taps out of a hundred, rounded up."""
        return Quantity(self.limit, Kind.UPPER_BOUND).of_hundred()

    def luck(self, taps: int) -> int:
        """Return the number of right taps that 95 of 100 classes at the limit do not exceed.

        If right guesses had different rates by table, their sum would vary less (Hoeffding 1956).
        """
        return int(np.argmax(bdtr(np.arange(taps + 1), taps, self.limit) >= _SELDOM))

    def counted(self, taps: dict[int, float]) -> dict[str, Any]:
        """Return right taps and all taps for each table, and the limit, given the taps by place."""
        # Count the tables separately: the answer "in" is right for one table, wrong for the other.
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
        """Return the left end of the square chart, and half the length of its side."""
        draws = np.concatenate([self._releases(bool(one), self._stream(one)) for one in (0, 1)])
        middle = float(HER @ HER) / 2
        # Ignore the farthest points, because they would squeeze all other points into the middle.
        half = float(np.quantile(np.abs(draws - [middle, 0.0]), 0.98))
        # Keep both centres of the point clouds in the chart, however small the noise is.
        half = max(half, 1.5 * middle)
        return [round(_GRAIN * (middle - half)), round(_GRAIN * half)]

    def _stream(self, world: int) -> Batch:
        rng = generator(0, "in or out", self.name, self.step, "cloud", world)
        return Batch(rng, _CLOUD)

    def _cloud(self, within: bool) -> list[list[int]]:
        return self._points(within, self._stream(int(within)))

    def _points(self, within: bool, streams: Named | Batch) -> list[list[int]]:
        start, half = self._reach
        draws = np.rint(_GRAIN * self._releases(within, streams))
        # Show points outside the chart at its border; they count as before.
        low, high = [start, -half], [start + 2 * half, half]
        points: list[list[int]] = np.clip(draws, low, high).astype(int).tolist()
        return points

    def _releases(self, within: bool, streams: Named | Batch) -> FloatArray:
        """Return releases minus the other rows' share, along the target's row and across it."""
        problem, rest = table(), others()
        rows = np.vstack([rest, HER if within else 0 * HER])
        data = SecondMoment(rows.T @ rows / problem.n, problem.n, rows)
        calibration = self.mechanism.calibrate(problem, self._budget)
        trials = Trials(self.mechanism, calibration, data, streams)
        (matrix,) = simulate([trials], lambda _, release: release.matrix)
        assert matrix is not None
        # The attacker knows all other rows, so subtract their contribution.
        hers = problem.n * matrix - rest.T @ rest
        along = HER / np.linalg.norm(HER)
        basis = np.stack([along, np.array([-along[1], along[0]])])
        sides: FloatArray = np.einsum("ai,kij,aj->ka", basis, hers, basis)
        return sides
