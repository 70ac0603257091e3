"""Private preparation: the only code where a private step reads rows.

Rows are cut to public bounds and mapped to u in [-1, 1]^d; every step reads a sum of u and adds
its noise. Nothing else of the rows is used: centre, scale, radius and count are functions of what
was released before. Numbers are doubles (idealised numerics, as for every mechanism here).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import Foldable, InBlocks, lengths_of
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Relation
from dpviz.core.seeding import Draws
from dpviz.mechanisms._clipped import Lengths, climb, drawn
from dpviz.preparation.steps import (
    BOUND,
    COUNT,
    MEAN,
    RADIUS,
    RADIUS_COUNTS,
    RANGE,
    SCALE,
    TRACE,
    VARIANCE,
    Preparation,
)
from dpviz.preparation.transform import Transform

_RADII, _STEP = 256, 2**-0.0625  # that a private quantile may choose among
_CLIPS = 64
_NEAR = 1 << 15  # numbers at once: what the processor keeps near
_OCTAVES = 64  # of ranges that a private one may choose among, on either side of 1
_HALVING = 2**-0.5  # of the radii that the adaptive clip tries in turn: squares halve
_CUTS: FloatArray = 2.0 ** (np.arange(-(2 ** (RADIUS_COUNTS - 1)), 2 ** (RADIUS_COUNTS - 1)) / 4)
_LEAST_SPREAD = 1e-3  # of a feature's half width: below it a spread is taken for noise


@dataclass(frozen=True, eq=False)
class PreparedDraws:
    """One preparation for each repetition, released beside the components.

    Attributes
    ----------
    center, scale : ndarray of shape (size, d)
        In units of the table.
    row_bound : ndarray of shape (size,)
        In scaled units; infinite where none is declared.
    count : ndarray of shape (size,)
        The number of people present that means, spreads and ranks use.
    moments : ndarray of shape (size, d, d)
        X'X/n of the bounded rows, in squared row bounds: what the mechanism sees, not released. n
        is that of the padded table, which is public: the mean goes over absent people's zero rows.
    reach : ndarray of shape (size,) or None
        Where bounds were bought: every feature lies between minus and plus this.
    """

    center: FloatArray
    scale: FloatArray
    row_bound: FloatArray
    count: FloatArray
    moments: FloatArray
    reach: FloatArray | None = None

    @property
    def unit(self) -> FloatArray:
        """Length unit of the rows in scaled units: the row-norm bound, or 1 without one."""
        # without a bound rows keep the unit of the scale
        unit: FloatArray = np.where(np.isfinite(self.row_bound), self.row_bound, 1.0)
        return unit

    def moment(self, index: int, n: int) -> SecondMoment:
        """Return the moment that the mechanism sees in one repetition."""
        return SecondMoment(self.moments[index], n)

    def transform(self, public: Transform, index: int) -> Transform:
        """Return one repetition's transform of a row, to units of its row-norm bound."""
        if self.reach is not None:
            public = public.within(float(self.reach[index]))
        return replace(
            public,
            center=self.center[index],
            scale=self.scale[index],
            row_bound=float(self.row_bound[index]),
        )

    def bounded(self, rows: FloatArray, public: Transform, index: int) -> FloatArray:
        """Return rows as one repetition prepares them, in units of its row-norm bound."""
        return self.transform(public, index).inside(rows)

    def moment_with_rows(
        self,
        rows: FloatArray,
        public: Transform,
        index: int,
        present: NDArray[np.bool_] | None = None,
    ) -> SecondMoment:
        """Return one repetition's moment with the bounded rows, for mechanisms that need them.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
            As they were prepared.
        public : Transform
        index : int
            Which draw.
        present : ndarray of bool, shape (n,), optional
            Who has not been withdrawn; the row of everybody else is zero.
        """
        bounded = self.bounded(rows, public, index)
        if present is not None:
            bounded = bounded * present[:, None]
        return SecondMoment(self.moments[index], len(rows), bounded)


def run(
    rows: FloatArray | Foldable,
    public: Transform,
    plan: Preparation,
    draws: Draws,
    present: NDArray[np.bool_] | None = None,
    *,
    people: int | None = None,
    moments: bool = True,
) -> PreparedDraws:
    """Prepare the rows once for each repetition.

    Parameters
    ----------
    rows : ndarray of shape (n, d) or Foldable
        In units of the table. What need not be in memory is read several times.
    public : Transform
    plan : Preparation
    draws : Draws
    present : ndarray of bool, shape (n,), optional
        Who has not been withdrawn (zero-out); by default all.
    people : int, optional
        How many people the rows stand for, all alike, where that is another number than theirs.
    moments : bool
        Whether the moments are wanted; else they are empty.
    """
    source = InBlocks(rows) if isinstance(rows, np.ndarray) else rows
    n = len(rows) if isinstance(rows, np.ndarray) else plan.n
    table = _Table(source, n, len(public.low), present, people, moments)
    if RANGE in plan.noises:
        return _in_found_bounds(table, public, plan, draws)
    return _with_noise(table, public, plan, _Noise.drawn(plan, draws, table.d))


@dataclass(frozen=True, eq=False)
class _Table:
    """Rows that are read in blocks, and who of them is here.

    Attributes
    ----------
    source : Foldable
    n, d : int
    present : ndarray of bool, shape (n,), or None
    people : int or None
    moments : bool
    """

    source: Foldable
    n: int
    d: int
    present: NDArray[np.bool_] | None
    people: int | None
    moments: bool

    @property
    def each(self) -> float:
        """How many people each row stands for."""
        return 1.0 if self.people is None else self.people / self.n

    @property
    def here(self) -> float:
        """How many rows are present."""
        return float(self.n if self.present is None else self.present.sum())

    def sums(self, size: int | tuple[int, ...], of: Callable[[FloatArray], FloatArray]) -> _Sums:
        """Return the sum over blocks of present rows of a function of a block."""
        present = self.present
        return self.source.fold(lambda: _Sums(np.zeros(size), of, present))

    def moments_of(self, own: Sequence[Transform]) -> FloatArray:
        """Return X'X/n of the rows as each draw bounds them, shape (draws, d, d)."""

        def products(block: FloatArray) -> FloatArray:
            z = np.stack([one.inside(block) for one in own])
            return z.transpose(0, 2, 1) @ z

        moments = self.sums((len(own), self.d, self.d), products).total / self.n
        # blocks are added in an order of their own, and the two halves may differ by rounding
        symmetric: FloatArray = (moments + moments.transpose(0, 2, 1)) / 2
        return symmetric

    def longer(self, radii: FloatArray, of: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return how many people present have a number, of their row, above each radius.

        Parameters
        ----------
        radii : ndarray of shape (draws, radii)
        of : callable
            From a block to the numbers of its rows in each draw.
        """
        # sorted once, so that one pass counts for all radii
        order = np.argsort(radii, axis=1)
        ascending = np.take_along_axis(radii, order, axis=1)
        size = (len(radii), radii.shape[1] + 1)

        def counted(block: FloatArray) -> FloatArray:
            counts = np.empty(size)
            for row_counts, edges, numbers in zip(counts, ascending, of(block), strict=True):
                row_counts[:] = np.bincount(np.searchsorted(edges, numbers), minlength=size[1])
            return counts

        counts = self.sums(size, counted).total
        above = counts.sum(axis=1, keepdims=True) - np.cumsum(counts, axis=1)[:, :-1]
        counts_above = np.empty_like(radii)
        np.put_along_axis(counts_above, order, self.each * above, axis=1)
        return counts_above


def _lengths(own: Sequence[Transform]) -> Callable[[FloatArray], FloatArray]:
    """Return what finds the lengths of a block's rows in each draw's units, (draws, rows)."""
    return lambda block: np.stack([lengths_of(one.unbounded(block)) for one in own])


class _Sums:
    """A sum over blocks of rows of a function of those present."""

    def __init__(
        self,
        zero: FloatArray,
        of: Callable[[FloatArray], FloatArray],
        present: NDArray[np.bool_] | None,
    ) -> None:
        self.rows = self.dropped = 0
        self.total, self._of, self._present = zero, of, present

    def add(self, block: FloatArray, start: int) -> None:
        self.rows += len(block)
        if self._present is not None:
            # who is absent is a row of zeros, and what is summed here may not be 0 of a zero row
            block = block[self._present[start : start + len(block)]]
        if len(block):
            self.total = self.total + self._of(block)

    def merge(self, other: Self) -> None:
        self.rows += other.rows
        self.dropped += other.dropped
        self.total = self.total + other.total


@dataclass(frozen=True, eq=False)
class _Noise:
    """What is random in one preparation for each draw; None for a step that is not paid for.

    Attributes
    ----------
    size : int
        Number of draws.
    mean, scale : ndarray of shape (size, d) or None
    chances : ndarray of shape (size,) or None
        For the exponential mechanism on radii.
    laplace : ndarray of shape (size, clips + 1) or None
    trace, count : ndarray of shape (size, 1) or None
    """

    size: int
    mean: FloatArray | None
    scale: FloatArray | None
    chances: FloatArray | None
    laplace: FloatArray | None
    trace: FloatArray | None
    count: FloatArray | None

    @classmethod
    def drawn(cls, plan: Preparation, draws: Draws, d: int) -> _Noise:
        """Draw in an order in which a further step changes no number of the others."""
        mean, scale = (_noise(plan, step, draws, d) for step in (MEAN, SCALE))
        chances = laplace = None
        if BOUND in plan.noises:
            # drawn whichever way the bound is found: both ways meet the same stream
            chances = draws.uniform(1)[:, 0]
            pairs = draws.exponential(2, _CLIPS + 1)
            laplace = pairs[:, 0] - pairs[:, 1]
        trace = _noise(plan, TRACE, draws, 1)
        return cls(draws.size, mean, scale, chances, laplace, trace, _noise(plan, COUNT, draws, 1))

    @classmethod
    def joined(cls, singles: Sequence[_Noise]) -> _Noise:
        """Return the noise of several draws as one; all of the same plan."""
        names = [field.name for field in fields(cls) if field.name != "size"]
        arrays = {name: [getattr(one, name) for one in singles] for name in names}
        together = {
            name: None if parts[0] is None else np.concatenate(parts)
            for name, parts in arrays.items()
        }
        return cls(sum(one.size for one in singles), **together)


def _with_noise(
    table: _Table, public: Transform, plan: Preparation, noise: _Noise
) -> PreparedDraws:
    """Prepare the rows once for each draw, by noise that was drawn before."""
    size = noise.size
    middle, half, sums = _unit_sums(table, public, plan)
    count = np.full(size, table.n * table.each)
    if noise.count is not None:
        # two at least: a count may come out at nothing, and means divide by it
        count = np.maximum(np.rint(table.each * table.here + noise.count[:, 0]), 2.0)
    center = np.repeat(public.center[None], size, axis=0)
    if noise.mean is not None:
        means = np.clip((sums[0] + noise.mean) / count[:, None], -1.0, 1.0)
        center = middle + half * means
    scale = np.repeat(public.scale[None], size, axis=0)
    if noise.scale is not None:
        # E (u - c)^2 = E u^2 - c^2 where c is the mean; else about the middle of the bounds
        shift = (center - middle) / _width(half)
        linear = shift * shift if public.centered or MEAN in plan.noises else np.zeros(table.d)
        spread = (sums[1] + noise.scale) / count[:, None] - linear
        floor = np.maximum(_LEAST_SPREAD**2, plan.noises[SCALE] / count)[:, None]
        scale = np.where(half > 0, half * np.sqrt(np.clip(spread, floor, 4.0)), 1.0)
    row_bound = np.full(size, public.row_bound)
    moments = np.empty((size, *(2 * (table.d if table.moments else 0,))))
    # rows of the same centre and scale have the same lengths in every draw
    alike = not plan.noises.keys() & {MEAN, SCALE}
    # of few rows many draws at once; the bytes of a draw do not depend on it
    together = max(1, _NEAR // (table.n * table.d))
    for start in range(0, size, together):
        part = slice(start, start + together)
        each = zip(center[part], scale[part], strict=True)
        transforms = [replace(public, center=at, scale=unit) for at, unit in each]
        if BOUND in plan.noises and not alike:
            row_bound[part] = _bounds_of(table, transforms, plan, noise, range(size)[part], count)
        elif BOUND in plan.noises and start == 0:
            row_bound[:] = _bounds_of(table, transforms[:1], plan, noise, range(size), count)
        if table.moments:
            bounds = zip(transforms, row_bound[part].tolist(), strict=True)
            moments[part] = table.moments_of([replace(one, row_bound=r) for one, r in bounds])
    return PreparedDraws(center, scale, row_bound, count, moments)


def _unit_sums(
    table: _Table, public: Transform, plan: Preparation
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return middle and half width of the bounds, and the sums of u and of u^2, shape (2, d).

    Where no step reads them the sums are 0, and no bounds are asked for. A feature of equal bounds
    has a half width of 0, and its u is 0: it stays at its only value, whatever the noise.
    """
    d = table.d
    if not plan.noises.keys() & {MEAN, SCALE, BOUND}:
        return np.zeros(d), np.ones(d), np.zeros((2, d))
    public.require_bounds()
    middle, half = (public.low + public.high) / 2, (public.high - public.low) / 2
    if not plan.noises.keys() & {MEAN, SCALE}:
        return middle, half, np.zeros((2, d))
    to_unit = replace(public, center=middle, scale=_width(half))

    def powers(block: FloatArray) -> FloatArray:
        u = to_unit.unbounded(block)
        return np.stack([np.ones(len(u)) @ u, np.ones(len(u)) @ np.square(u)])

    return middle, half, table.each * table.sums((2, d), powers).total


def _width(half: FloatArray) -> FloatArray:
    """Return what to divide by: half widths, and 1 in the place of 0."""
    return np.where(half > 0, half, 1.0)


def _bounds_of(
    table: _Table,
    own: Sequence[Transform],
    plan: Preparation,
    noise: _Noise,
    which: range,
    count: FloatArray,
) -> list[float]:
    """Return the row bounds that draws find, in their units; ``own`` is of each, or one for all."""
    assert noise.chances is not None
    assert noise.laplace is not None
    farthest = [np.maximum(one.high - one.center, one.center - one.low) / one.scale for one in own]
    most = np.array([float(np.linalg.norm(each)) for each in farthest])
    places = range(len(own)) if len(own) > 1 else [0] * len(which)
    lengths, edge = _lengths(own), own[0].edge
    if plan.private.bound == "quantile":
        radii: FloatArray = most[:, None] * np.power(_STEP, np.arange(_RADII, dtype=np.float64))
        longer = table.longer(radii, lengths)
        return [
            _quantile(radii[at], longer[at], plan, float(count[index]), float(noise.chances[index]))
            for at, index in zip(places, which, strict=True)
        ]

    def shares(block: FloatArray) -> FloatArray:
        cut: FloatArray = np.minimum(np.square(lengths(block) / most[:, None]), 1.0)
        return np.asarray(cut.sum(axis=1))

    squares = table.each * table.sums(len(own), shares).total
    traces = [0.0 if noise.trace is None else float(noise.trace[index, 0]) for index in which]
    tried = np.stack([
        _tried(float(most[at]), float(squares[at]) + trace, plan, edge)
        for at, trace in zip(places, traces, strict=True)
    ])  # fmt: skip
    counts = table.longer(tried[:, 1:].reshape(len(own), -1), lengths)
    return [
        _adaptive(radii, longer, plan, edge, noise.laplace[index])
        for radii, longer, index in zip(tried, counts.reshape(len(which), -1), which, strict=True)
    ]


def noisy_variances(along: FloatArray, plan: Preparation, draws: Draws) -> FloatArray:
    """Return noisy variances along released directions, then the variance of the rest.

    Parameters
    ----------
    along : ndarray of shape (m + 1,)
        The exact ones, of rows of length at most 1, by `dpviz.core.by_length.squares_along`.
        Directions are orthonormal; released before, or made from what was.
    plan : Preparation
        One that buys them.
    draws : Draws

    Returns
    -------
    ndarray of shape (size, m + 1)
        In squared units of the rows; their sum is the noisy total.
    """
    noise = _noise(plan, VARIANCE, draws, len(along))
    assert noise is not None
    return along + noise / plan.n


def radius_to_cut(lengths: Lengths, plan: Preparation, draws: Draws) -> FloatArray:
    """Return the radius to which rows without a bound are clipped for variances, shape (size,).

    Cut at r, the sum of squared lengths loses that of |x|^2 - r^2 over the longer rows, and its
    noise is proportional to r^2: the two together are least where as many rows are longer as the
    noise has standard deviations or scales, in units of r^2.

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Ascending; or counts of them.
    plan : Preparation
        One that buys it.
    draws : Draws
    """
    numbers = draws.uniform(1) if plan.pure else draws.normal(RADIUS_COUNTS)
    return radius_at(lengths, plan, numbers)


def radius_at(lengths: Lengths, plan: Preparation, numbers: FloatArray) -> FloatArray:
    """Return `radius_to_cut` from given random numbers.

    Parameters
    ----------
    lengths, plan
        As there.
    numbers : ndarray of shape (size, counts)
        Standard normals, `RADIUS_COUNTS` of them; a uniform one where all is pure.
    """
    noise, rank = plan.noises[RADIUS], rank_to_cut(plan)
    if plan.pure:
        return drawn(lengths, _CUTS, rank, noise, numbers[:, 0])
    every = np.broadcast_to(_CUTS, (len(numbers), len(_CUTS)))
    return climb(lengths, every, rank, noise * numbers)


def rank_to_cut(plan: Preparation) -> float:
    """Return the public number of rows that should exceed the private radius."""
    noise = plan.noises[RADIUS]
    # the chance of any radius beyond every row is then at most 1/len(_CUTS)
    sure = 4 * math.log(len(_CUTS)) / noise if plan.pure else 1.5 * noise
    return min(plan.n / 2, plan.noises[VARIANCE] + sure)


def _in_found_bounds(
    table: _Table, public: Transform, plan: Preparation, draws: Draws
) -> PreparedDraws:
    """Prepare each draw in bounds of its own, which it buys first.

    Ranges double from 2^-64 on, and the first beyond which too few people are ends the search: the
    sparse vector technique, as in the adaptive clip. "Too few" is what noise alone may look like.
    """
    radii: FloatArray = 2.0 ** np.arange(-_OCTAVES, _OCTAVES + 1, dtype=np.float64)
    epsilon = plan.noises[RANGE]
    beyond = table.longer(radii[None], lambda block: np.abs(block).max(axis=1)[None])[0]
    threshold = 2 * math.log(2 * len(radii)) / epsilon
    rest = replace(plan, noises={step: x for step, x in plan.noises.items() if step != RANGE})
    reach = np.empty(draws.size)
    # range first, then the other steps, from one stream a trial
    noises = []
    for index, draw in enumerate(draws.single()):
        pairs = draw.exponential(2, len(radii) + 1)[0]
        laplace = pairs[0] - pairs[1]
        few = beyond + 2 / epsilon * laplace[1:] <= threshold + 2 / epsilon * laplace[0]
        reach[index] = radii[int(np.argmax(few)) if few.any() else len(radii) - 1]
        noises.append(_Noise.drawn(rest, draw, table.d))
    # few ranges are found by many draws: those of the same range are prepared together
    batches, order = [], []
    for one in np.unique(reach):
        alike = np.flatnonzero(reach == one)
        noise = _Noise.joined([noises[index] for index in alike])
        batches.append(_with_noise(table, public.within(float(one)), rest, noise))
        order.append(alike)
    back = np.argsort(np.concatenate(order))
    joined = {
        name: np.concatenate([getattr(one, name) for one in batches])[back]
        for name in ("center", "scale", "row_bound", "count", "moments")
    }
    return PreparedDraws(**joined, reach=reach)


def _noise(plan: Preparation, step: str, draws: Draws, size: int) -> FloatArray | None:
    """Return the noise of a step, shape (draws, size), or None where it is not paid for."""
    if step not in plan.noises:
        return None
    if plan.pure:
        pair = draws.exponential(2, size)
        return plan.noises[step] * (pair[:, 0] - pair[:, 1])
    return plan.noises[step] * draws.normal(size)


def _quantile(
    radii: FloatArray, longer: FloatArray, plan: Preparation, count: float, chance: float
) -> float:
    """Return a radius by the exponential mechanism on how many rows are longer than each.

    The score -|longer - (1 - level) count| moves by at most 1, so odds of exp(epsilon score/2)
    spend epsilon (McSherry & Talwar 2007).
    """
    score = -np.abs(longer - (1 - plan.private.level) * count)
    log_odds = 0.5 * plan.noises[BOUND] * (score - score.max())
    odds = np.cumsum(np.exp(log_odds))
    return float(radii[min(int(np.searchsorted(odds, chance * odds[-1])), _RADII - 1)])


def _adaptive(
    radii: FloatArray, longer: FloatArray, plan: Preparation, edge: float, laplace: FloatArray
) -> float:
    """Return the radius at which halving its square stops to pay, by the sparse vector technique.

    Noise on X'X is ``edge`` squared radii, so halving the squared radius saves edge/2 of them, and
    each of the rows that are longer loses at least that half: it pays while fewer than ``edge``
    rows are longer than the next radius. Counts move by at most 1, all the same way; threshold and
    answers have Laplace noise of scale 2/epsilon, and the first "no" ends it: epsilon in all (the
    monotone case of Lyu, Su & Li 2017; argued in `dpviz.preparation.steps`). The search starts
    where the noisy trace says that it may: at most trace/r^2 rows are longer than r, so no radius
    is skipped beyond which more than ``edge`` are. After AdaptiveCov (Dong, Liang & Yi 2022), which
    asks for the trace and then walks down radii as well, to weigh two kinds of noise against each
    other.
    """
    epsilon = plan.noises[BOUND]
    threshold = edge + 2 / epsilon * laplace[0]
    answers = longer + 2 / epsilon * laplace[1:_CLIPS]
    too_many = np.flatnonzero(answers >= threshold)
    return float(radii[int(too_many[0]) if len(too_many) else _CLIPS - 1])


def _tried(most: float, squares: float, plan: Preparation, edge: float) -> FloatArray:
    """Return the radii that an adaptive clip walks down, by the noisy sum of squared lengths."""
    # two scales of its noise above: it is seldom below the truth
    share = (squares + 2 * plan.noises[TRACE]) / max(edge, 1.0)
    start = most * math.sqrt(min(max(share, _HALVING ** (2 * _CLIPS)), 1.0))
    radii: FloatArray = start * np.power(_HALVING, np.arange(_CLIPS, dtype=np.float64))
    return radii


def noise_edge(dimension: int, relation: Relation, mu: float) -> float:
    """Return the largest eigenvalue to expect of Gaussian noise on X'X, in squared row bounds."""
    # 2 s sqrt(d), as `noise_edge` of bounds has it, for s = sensitivity / (sqrt(2) mu): off the
    # diagonal an entry of X'X counts twice in the sensitivity
    sensitivity = math.sqrt(2) if relation is Relation.REPLACE else 1.0
    return math.sqrt(2 * dimension) * sensitivity / mu
