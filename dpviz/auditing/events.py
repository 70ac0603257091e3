"""Scores that an attacker computes from a raw release, and the choice of one event.

An `EventView` knows both tables and turns a batch of releases into named scores, one number per
release. An `Event` is one score beyond one threshold. The choice of scores and thresholds may use
the tables and the first half of the releases: validity depends on the other half alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpviz.accounting.losses import LogRatio
from dpviz.auditing.bounds import delta_bound, epsilon_bound
from dpviz.auditing.neighbours import Pair
from dpviz.core.arrays import FloatArray
from dpviz.core.release import Release

Scores = Mapping[str, FloatArray]

# The learned score needs small matrices; larger ones use only the built-in scores.
_LEARNED_ENTRIES = 150
_TAIL_STEPS = 120
_LARGEST = 1e250
_CLIP = 8.0
_RIDGE = 1e-3
# A matrix counts as below another matrix if it is lower by this share of the noise.
SUPPORT_ROOM = 1e-9
QUANTUM = 1e-10


@dataclass(frozen=True, eq=False)
class EventView:
    """The knowledge of the attacker: everything except which of the two tables was used.

    Attributes
    ----------
    pair : Pair
    k : int
        Number of components the mechanism releases.
    quantum : float
        Scores are rounded to multiples of ``quantum``. Floating-point errors depend on the table,
        so the last digits would distinguish scores that tie in theory (a whole region where a
        likelihood ratio is constant). The audit assumes ideal noise, so it removes these digits.
    ratio : callable or None
        The log likelihood ratio, if it is known and no other score equals it.
    """

    pair: Pair
    k: int
    quantum: float = QUANTUM
    ratio: LogRatio | None = None

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        first, second = self.pair.tables()
        return first.A, second.A

    @cached_property
    def _tops(self) -> tuple[FloatArray, FloatArray]:
        first, second = self.pair.tables()
        return first.eigenvectors[:, : self.k], second.eigenvectors[:, : self.k]

    @cached_property
    def _directions(self) -> tuple[FloatArray, FloatArray]:
        """Directions along which the difference D is largest and smallest."""
        _, vectors = np.linalg.eigh(self.pair.difference)
        return vectors[:, -1], vectors[:, 0]

    def scores(self, release: Release) -> dict[str, FloatArray]:
        """Return all scores of a batch, each of shape (size,)."""
        by_name: dict[str, FloatArray] = {}
        for name, block in self._blocks(release).items():
            size, d = len(block), len(self.pair.first)
            if block.shape[1:] == (d, d) and name != "frame":
                by_name |= self._of_matrices(block, name)
            elif block.shape[1:] == (d, self.k) and name == "frame":
                by_name |= self._of_frames(block)
            elif block.ndim == 3 and block.shape[2] == d:
                by_name |= self._of_rows(block)
            else:
                by_name |= {
                    f"{name} {i}": c for i, c in enumerate(block.reshape(size, -1)[:, :8].T)
                }
        if self.ratio is not None:
            by_name["likelihood ratio"] = self.ratio(release)
        # Round all scores in one call, because an audit's first round has dozens of scores.
        return dict(zip(by_name, self._rounded(np.array([*by_name.values()])), strict=True))

    def _rounded(self, values: FloatArray) -> FloatArray:
        grid_values: FloatArray = np.round(_plain(values) / self.quantum) * self.quantum
        return grid_values

    def entries(self, release: Release) -> FloatArray:
        """Return raw numbers for the learner, shape (size, at most 150), or none."""
        d = len(self.pair.first)
        parts = []
        for name, block in self._blocks(release).items():
            size = len(block)
            if name == "frame":
                # Components have no sign, so use the projector, which does not depend on signs.
                upper = np.triu_indices(d)
                parts.append((block @ block.transpose(0, 2, 1))[:, upper[0], upper[1]])
            elif block.ndim == 3 and block.shape[2] == d and block.shape[1] != d:
                parts.append(block[:, 0])
            else:
                parts.append(block.reshape(size, -1))
        small = [part for part in parts if part.shape[1] <= _LEARNED_ENTRIES]
        return np.concatenate(small, axis=1) if small else np.empty((len(release.raw), 0))

    def _blocks(self, release: Release) -> dict[str, FloatArray]:
        """Return the release as blocks in shapes for which scores exist.

        Components and the symmetric estimate are functions of the raw release, so an attacker could
        compute them too. The scores use them if the raw release has no usable shape.
        """
        raw, d = release.raw, len(self.pair.first)
        frame = raw.shape == release.components.shape and raw.shape[1:] == (d, self.k)
        if frame and self.k < d and release.matrix is None:
            return {"frame": raw}
        blocks = {"release": raw}
        if release.radius is not None:
            blocks["radius"] = np.log(release.radius)[:, None]
        if raw.shape[1:] == (d, d):
            return blocks
        blocks["frame"] = release.components
        if raw.ndim == 3 and raw.shape[2] == d:
            gram = raw.transpose(0, 2, 1) @ raw
            blocks["gram"] = gram / raw.shape[1]
        return blocks

    def _of_matrices(self, block: FloatArray, name: str) -> dict[str, FloatArray]:
        symmetric = (block + block.transpose(0, 2, 1)) / 2
        first, second = self._moments
        difference = self.pair.difference
        p, q = self._directions
        along_p, along_q = _quadratic(symmetric, p), _quadratic(symmetric, q)
        middle = (first + second) / 2
        up, down = along_p - p @ middle @ p, along_q - q @ middle @ q
        upper = np.triu_indices(len(p))
        triangle = block[:, upper[0], upper[1]]
        far_first = np.abs(triangle - first[upper]).sum(axis=1)
        far_second = np.abs(triangle - second[upper]).sum(axis=1)
        scores = {
            "linear score": np.tensordot(symmetric, difference, 2),
            "upper-triangle score": triangle @ difference[upper],
            "l1 score": far_second - far_first,
            "quadratic form along the gain": along_p,
            "quadratic form along the loss": along_q,
            "quadrant": np.minimum(up, -down),
            "outer quadrant": np.maximum(up, -down),
            "trace": np.trace(symmetric, axis1=1, axis2=2),
        }
        for label, table in (("first", first), ("second", second)):
            values, vectors = np.linalg.eigh(symmetric - table)
            scores[f"smallest eigenvalue above the {label} table"] = values[:, 0]
            scores[f"largest eigenvalue above the {label} table"] = values[:, -1]
            scores[f"nuclear norm from the {label} table"] = np.abs(values).sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(np.abs(values)).sum(axis=1)
                scores[f"log determinant above the {label} table"] = _plain(logs)
                for side, direction in (("gain", p), ("loss", q)):
                    weights = np.square(direction @ vectors)
                    scores[f"depth along the {side} above the {label} table"] = 1 / (
                        weights / values
                    ).sum(axis=1)
        scores["nuclear score"] = (
            scores.pop("nuclear norm from the second table")
            - scores["nuclear norm from the first table"]
        )
        scores["determinant score"] = (
            scores.pop("log determinant above the second table")
            - scores["log determinant above the first table"]
        )
        if name == "release":
            return scores
        return {f"{label} of the {name}": values for label, values in scores.items()}

    def _of_frames(self, frames: FloatArray) -> dict[str, FloatArray]:
        p, q = self._directions
        at_p, at_q = np.square(p @ frames), np.square(q @ frames)
        share_p, share_q = at_p.sum(axis=1), at_q.sum(axis=1)
        forms = frames.transpose(0, 2, 1) @ self.pair.difference @ frames
        scores = {
            "score of the subspace": np.trace(forms, axis1=1, axis2=2),
            "share along the gain": share_p,
            "share along the loss": share_q,
            "gain without loss": share_p - share_q,
            "first column along the gain": at_p[:, 0],
            "first column along the loss": at_q[:, 0],
            "first column, gain without loss": at_p[:, 0] - at_q[:, 0],
            "last column, gain without loss": at_p[:, -1] - at_q[:, -1],
        }
        for label, top in zip(("first", "second"), self._tops, strict=True):
            inside = np.square(top.T @ frames).sum(axis=(1, 2))
            scores[f"overlap with the {label} table's components"] = inside
        return scores

    def _of_rows(self, rows: FloatArray) -> dict[str, FloatArray]:
        v, w = self.pair.first, self.pair.second
        scores = {
            "changed row, linear score": rows[:, 0] @ (v - w),
            "changed row, l1 score": (
                np.abs(rows[:, 0] - w).sum(axis=1) - np.abs(rows[:, 0] - v).sum(axis=1)
            ),
        }
        total = np.square(rows).sum(axis=(1, 2))
        for label, top in zip(("first", "second"), self._tops, strict=True):
            outside = rows - (rows @ top) @ top.T
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.square(outside).sum(axis=(1, 2)) / total
            # Add 1e-20, so that rounding errors do not rank scores that are equal.
            scores[f"rows outside the {label} table's components"] = np.log10(share + 1e-20)
        return scores


def _quadratic(matrices: FloatArray, direction: FloatArray) -> FloatArray:
    form: FloatArray = (matrices @ direction) @ direction
    return form


def _plain(values: FloatArray) -> FloatArray:
    return np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)


@dataclass(frozen=True, eq=False)
class LearnedScores:
    """A linear score by regularised discriminant analysis of the first half of the releases.

    Columns are scaled by robust statistics and clipped, so that heavy tails do not dominate.
    """

    center: FloatArray
    spread: FloatArray
    direction: FloatArray

    @classmethod
    def fit(cls, first: FloatArray, second: FloatArray) -> LearnedScores:
        """Return the direction that separates two samples of shape (size, columns)."""
        both = np.concatenate([first, second])
        center = np.median(both, axis=0)
        spread = np.quantile(np.abs(both - center), 0.7, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        blank = cls(center, spread, np.zeros(both.shape[1]))
        one, two = blank._scaled(first), blank._scaled(second)
        within = (np.cov(one, rowvar=False) + np.cov(two, rowvar=False)) / 2
        within = np.atleast_2d(within) + _RIDGE * np.eye(both.shape[1])
        direction = np.linalg.solve(within, one.mean(axis=0) - two.mean(axis=0))
        return cls(center, spread, direction)

    def _scaled(self, features: FloatArray) -> FloatArray:
        return np.clip((features - self.center) / self.spread, -_CLIP, _CLIP)

    def __call__(self, features: FloatArray) -> FloatArray:
        """Return the score of each row, shape (size,)."""
        scores: FloatArray = self._scaled(features) @ self.direction
        return scores


@dataclass(frozen=True)
class Event:
    """The attacker's decision on one score: the first table, the second, or neither.

    Attributes
    ----------
    score : str
        Name in `EventView.scores`, or ``learned score``.
    sign : int
        1 if high scores point to the first table, -1 if low scores do.
    for_first, for_second : float or None
        The attacker names the first table if sign * score is above ``for_first``, and the second if
        it is below ``for_second``; None means that the table is never named. One threshold gives an
        ordinary event. Two give the event and its mirror image, with the order of the pair
        reversed. Every privacy claim bounds the sums of both as it bounds each.
    """

    score: str
    sign: int
    for_first: float | None
    for_second: float | None

    def names(self, values: FloatArray) -> tuple[int, int]:
        """Return how often the attacker names the first and the second table."""
        scores = self.sign * values
        first = 0 if self.for_first is None else int((scores > self.for_first).sum())
        second = 0 if self.for_second is None else int((scores < self.for_second).sum())
        return first, second

    def count(self, first: FloatArray, second: FloatArray) -> tuple[int, int, int]:
        """Return the numbers of right and wrong decisions, and of releases.

        With one threshold, right decisions come from the releases of one table, and so do wrong
        ones. With two thresholds, both tables' releases count: a sum of two binomial counts. The
        tails of the sum are no heavier than the binomial's with the mean probability (Hoeffding
        1956, Theorem 4), so the limits hold.
        """
        right_first, wrong_first = self.names(first)
        wrong_second, right_second = self.names(second)
        both = self.for_first is not None and self.for_second is not None
        return (
            right_first + right_second,
            wrong_first + wrong_second,
            2 * len(first) if both else len(first),
        )

    @property
    def words(self) -> str:
        """The event in words, without thresholds, because their scale differs between tables."""
        up, down = ("high", "low") if self.sign > 0 else ("low", "high")
        if self.for_first is not None and self.for_second is not None:
            return f"a guess from the {self.score}"
        return f"a {up if self.for_first is not None else down} {self.score}"


Value = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Counts of the events at every threshold, for one score and one sign.

    Attributes
    ----------
    score : str
    sign : int
    thresholds, mirrors : ndarray of shape (thresholds,)
        Thresholds, ascending, and their mirrors in two-sided events.
    right, wrong : ndarray of shape (3, thresholds)
        Numbers of right and wrong decisions above, below, and on both sides.
    size : int
        Number of releases of each table.
    """

    score: str
    sign: int
    thresholds: FloatArray
    mirrors: FloatArray
    right: NDArray[np.intp]
    wrong: NDArray[np.intp]
    size: int

    @classmethod
    def of(
        cls,
        score: str,
        sign: int,
        thresholds: FloatArray,
        counts: tuple[NDArray[np.intp], ...],
        size: int,
    ) -> Shapes:
        """Return event counts, from each table's releases above and below each threshold."""
        right, wrong, wrong_low, right_low = counts
        # The mirror threshold has as many releases of both tables below it as this threshold has
        # above it. If two fit, take the first.
        above, below = right + wrong, right_low + wrong_low
        next_up = np.minimum(below.searchsorted(above), len(below) - 1)
        next_down = below.searchsorted(below[np.maximum(next_up - 1, 0)])
        nearer = np.abs(above - below[next_down]) <= np.abs(above - below[next_up])
        mirror = np.where(nearer, next_down, next_up)
        mirrors = thresholds[mirror]
        apart = mirrors <= thresholds
        both = np.where(apart, right + right_low[mirror], 0)
        neither = np.where(apart, wrong + wrong_low[mirror], 2 * size)
        return cls(
            score,
            sign,
            thresholds,
            mirrors,
            np.array([right, right_low, both]),
            np.array([wrong, wrong_low, neither]),
            size,
        )

    def event(self, kind: int, place: int) -> Event:
        """Return the event above, below or on both sides of the threshold at index ``place``."""
        threshold = float(self.thresholds[place])
        return Event(
            self.score,
            self.sign,
            None if kind == 1 else threshold,
            None if kind == 0 else float(self.mirrors[place]) if kind == 2 else threshold,
        )


def shapes_of(first: Scores, second: Scores) -> list[Shapes]:
    """Return the candidate events of each score, from equally many releases of both tables."""
    shapes = []
    for name, ones in first.items():
        a, b = np.sort(ones), np.sort(second[name])
        size = len(a)
        thresholds = _thresholds(np.concatenate([a, b]))
        above = [size - each.searchsorted(thresholds, "right") for each in (a, b)]
        below = [each.searchsorted(thresholds) for each in (a, b)]
        shapes.append(Shapes.of(name, 1, thresholds, (*above, *below), size))
        # For the negated score, events below and above a threshold swap, in reverse order.
        reverse = tuple(each[::-1] for each in (*below, *above))
        shapes.append(Shapes.of(name, -1, 0.0 - thresholds[::-1], reverse, size))
    return shapes


def chosen(shapes: Sequence[Shapes], alpha: float, value: Value) -> tuple[Event, float]:
    """Return the event with the largest value on the first half of the releases.

    Parameters
    ----------
    shapes : sequence of Shapes
        Result of `shapes_of`, with an entry for each score and sign.
    alpha : float
        Level of each limit while choosing; it guards against chance results from few releases.
    value : callable
        Function of the lower limit of one probability and the upper limit of the other.

    Returns
    -------
    (event, value)
    """
    reach, size = -float(ndtri(alpha)), shapes[0].size  # Every audit has scores, so index 0 exists.
    trials = np.array([[size], [size], [2 * size]])
    right, wrong = (
        np.concatenate([getattr(shape, side) for shape in shapes], axis=1)
        for side in ("right", "wrong")
    )
    values = value(_rough(right, trials, -reach), _rough(wrong, trials, reach))
    best, most, start = shapes[0].event(0, 0), -math.inf, 0
    for shape in shapes:
        values_of_shape = values[:, start : start + len(shape.thresholds)]
        start += len(shape.thresholds)
        kind, place = divmod(int(values_of_shape.argmax()), values_of_shape.shape[1])
        if values_of_shape[kind, place] > most:
            best, most = shape.event(kind, place), float(values_of_shape[kind, place])
    return best, most


def _rough(counts: NDArray[np.int_], trials: NDArray[np.int_], reach: float) -> FloatArray:
    """Return the Wilson limit of each probability, ``reach`` standard deviations up or down.

    Wilson limits are near Clopper-Pearson limits and hundreds of times faster. The choice of the
    event may be rough, because counting on the other half is exact.
    """
    square = reach * reach
    spread = np.sqrt(counts * (1 - counts / trials) + square / 4)
    limits: FloatArray = (counts + square / 2 + reach * spread) / (trials + square)
    return np.clip(limits, 0.0, 1.0)


def _thresholds(values: FloatArray) -> FloatArray:
    """Return midpoints between neighbouring scores, dense in both tails."""
    scores = np.sort(values)
    places = _places(len(scores))
    # If there are few distinct scores, put a threshold between every two of them.
    jumps = np.flatnonzero(np.diff(scores) > 0)
    if len(jumps) <= 2 * _TAIL_STEPS:
        places = jumps + 1
    lower, upper = scores[places - 1], scores[places]
    middle = lower / 2 + upper / 2
    return middle if len(middle) else scores[:1]


@lru_cache(maxsize=64)
def _places(size: int) -> NDArray[np.intp]:
    """Return the positions of thresholds among ``size`` sorted scores."""
    steps = np.unique(np.geomspace(1, max(2, size // 2), _TAIL_STEPS).astype(np.intp))
    places = np.unique(np.concatenate([steps, size - steps]))
    places = places[(places > 0) & (places < size)]
    places.setflags(write=False)
    return places


def epsilon_value(delta: float) -> Value:
    """Return the objective function that maximises epsilon at a delta."""

    def value(p_low: FloatArray, q_high: FloatArray) -> FloatArray:
        gain = np.maximum(p_low - delta, 1e-300)
        # Events whose bound is 0 are still ranked, by the unclipped logarithm.
        epsilons: FloatArray = np.maximum(epsilon_bound(p_low, q_high, delta), 0.0)
        return np.where(epsilons > 0, epsilons, 1e-3 * np.log(gain / q_high))

    return value


def delta_value(epsilon: float) -> Value:
    """Return the objective function that maximises delta at an epsilon."""

    def value(p_low: FloatArray, q_high: FloatArray) -> FloatArray:
        return delta_bound(p_low, q_high, epsilon)

    return value


def distance(first: Scores, second: Scores) -> float:
    """Return the largest Kolmogorov distance over the scores, to rank pairs with a bound of 0."""
    most = 0.0
    for name, ones in first.items():
        a, b = np.sort(ones), np.sort(second[name])
        both = np.concatenate([a, b])
        gap = np.abs(a.searchsorted(both, "right") - b.searchsorted(both, "right"))
        most = max(most, float(gap.max()) / len(a))
    return most if math.isfinite(most) else 0.0
