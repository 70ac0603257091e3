"""Private preparation: the only code where a private step reads rows.

Rows are clipped to public bounds and mapped to u in [-1, 1]^d; every step reads a sum of u and adds
its noise. No other function of the rows is used: centre, scale, radius and count are functions of
earlier results. Numbers are doubles (idealised numerics, as for every mechanism here).
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

_RADII, _STEP = 256, 2**-0.0625  # Number of radii for a private quantile, and the step of radii.
_CLIPS = 64
_NEAR = 1 << 15  # Maximum number of numbers in a block, so that it fits the processor's cache.
_OCTAVES = 64  # Exponents of 2 for the private range of the features, on either side of 0.
_HALVING = 2**-0.5  # Factor between radii of the adaptive clip: their squares halve.
_CUTS: FloatArray = 2.0 ** (np.arange(-(2 ** (RADIUS_COUNTS - 1)), 2 ** (RADIUS_COUNTS - 1)) / 4)
_LEAST_SPREAD = 1e-3  # Share of a feature's half width: a smaller spread is only noise.


@dataclass(frozen=True, eq=False)
class PreparedDraws:
    """One preparation for each repetition, released together with the components.

    Attributes
    ----------
    center, scale : ndarray of shape (size, d)
        Center and scale, in units of the table.
    row_bound : ndarray of shape (size,)
        Row-norm bounds in scaled units; infinite if no bound is declared.
    count : ndarray of shape (size,)
        The number of people present that means, spreads and ranks use.
    moments : ndarray of shape (size, d, d)
        X'X/n of the bounded rows, in squared row-norm bounds: the mechanism's input, not released.
        n is the public size of the padded table, so the mean includes absent people's zero rows.
    reach : ndarray of shape (size,) or None
        If bounds are private, every feature lies between minus and plus this value.
    """

    center: FloatArray
    scale: FloatArray
    row_bound: FloatArray
    count: FloatArray
    moments: FloatArray
    reach: FloatArray | None = None

    @property
    def unit(self) -> FloatArray:
        """Length unit of the rows in scaled units: the row-norm bound, or 1 without a bound."""
        # Without a bound on their length, rows stay in the units in which they were scaled.
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
            The rows that were passed to `run`.
        public : Transform
        index : int
            Number of the repetition.
        present : ndarray of bool, shape (n,), optional
            True for people who have not withdrawn; all other rows are zero.
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
        Rows in units of the table. Rows outside memory are read several times.
    public : Transform
    plan : Preparation
    draws : Draws
    present : ndarray of bool, shape (n,), optional
        True for people who have not withdrawn (zero-out); by default all.
    people : int, optional
        Number of people that the rows represent in equal parts, if it differs from their number.
    moments : bool
        Whether to compute the moments; else they are empty.
    """
    source = InBlocks(rows) if isinstance(rows, np.ndarray) else rows
    n = len(rows) if isinstance(rows, np.ndarray) else plan.n
    table = _Table(source, n, len(public.low), present, people, moments)
    if RANGE in plan.noises:
        return _in_found_bounds(table, public, plan, draws)
    return _with_noise(table, public, plan, _Noise.drawn(plan, draws, table.d))


@dataclass(frozen=True, eq=False)
class _Table:
    """Rows that are read in blocks, and the people present.

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
        """Number of people that each row represents."""
        return 1.0 if self.people is None else self.people / self.n

    @property
    def here(self) -> float:
        """Number of rows that are present."""
        return float(self.n if self.present is None else self.present.sum())

    def sums(self, size: int | tuple[int, ...], of: Callable[[FloatArray], FloatArray]) -> _Sums:
        """Return the sum over blocks of a function of their present rows."""
        present = self.present
        return self.source.fold(lambda: _Sums(np.zeros(size), of, present))

    def moments_of(self, own: Sequence[Transform]) -> FloatArray:
        """Return X'X/n of the rows as each repetition bounds them, shape (draws, d, d)."""

        def products(block: FloatArray) -> FloatArray:
            z = np.stack([one.inside(block) for one in own])
            return z.transpose(0, 2, 1) @ z

        moments = self.sums((len(own), self.d, self.d), products).total / self.n
        # Rounding may make the two halves of the matrix differ, so the matrix is made symmetric.
        symmetric: FloatArray = (moments + moments.transpose(0, 2, 1)) / 2
        return symmetric

    def longer(self, radii: FloatArray, of: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return how many people present have a number above each radius.

        Parameters
        ----------
        radii : ndarray of shape (draws, radii)
        of : callable
            A function from a block to one number for each row in each repetition.
        """
        # The radii are sorted once, so that one pass over the rows counts for all of them.
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
    """Return a function for a block's row lengths in units of each repetition, (draws, rows)."""
    return lambda block: np.stack([lengths_of(one.unbounded(block)) for one in own])


class _Sums:
    """A sum over blocks of a function of their present rows."""

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
            # The rows of absent people are zero. They are skipped: the function may not be 0 there.
            block = block[self._present[start : start + len(block)]]
        if len(block):
            self.total = self.total + self._of(block)

    def merge(self, other: Self) -> None:
        self.rows += other.rows
        self.dropped += other.dropped
        self.total = self.total + other.total


@dataclass(frozen=True, eq=False)
class _Noise:
    """Random numbers of one preparation per repetition; None for a step that is not private.

    Attributes
    ----------
    size : int
        Number of repetitions.
    mean, scale : ndarray of shape (size, d) or None
    chances : ndarray of shape (size,) or None
        Uniform numbers for the exponential mechanism on radii.
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
        """Sample in an order in which a further step leaves all other numbers unchanged."""
        mean, scale = (_noise(plan, step, draws, d) for step in (MEAN, SCALE))
        chances = laplace = None
        if BOUND in plan.noises:
            # Numbers are sampled for both kinds of bound, so that both use the same random stream.
            chances = draws.uniform(1)[:, 0]
            pairs = draws.exponential(2, _CLIPS + 1)
            laplace = pairs[:, 0] - pairs[:, 1]
        trace = _noise(plan, TRACE, draws, 1)
        return cls(draws.size, mean, scale, chances, laplace, trace, _noise(plan, COUNT, draws, 1))

    @classmethod
    def joined(cls, singles: Sequence[_Noise]) -> _Noise:
        """Join the noise of several repetitions of one plan into one object."""
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
    """Prepare the rows once for each repetition, with noise that was sampled before."""
    size = noise.size
    middle, half, sums = _unit_sums(table, public, plan)
    count = np.full(size, table.n * table.each)
    if noise.count is not None:
        # The count is at least two: a noisy count may be 0 or less, and means divide by it.
        count = np.maximum(np.rint(table.each * table.here + noise.count[:, 0]), 2.0)
    center = np.repeat(public.center[None], size, axis=0)
    if noise.mean is not None:
        means = np.clip((sums[0] + noise.mean) / count[:, None], -1.0, 1.0)
        center = middle + half * means
    scale = np.repeat(public.scale[None], size, axis=0)
    if noise.scale is not None:
        # E (u - c)^2 = E u^2 - c^2 if c is the mean. Without a mean, c is the middle of the bounds.
        shift = (center - middle) / _width(half)
        linear = shift * shift if public.centered or MEAN in plan.noises else np.zeros(table.d)
        spread = (sums[1] + noise.scale) / count[:, None] - linear
        floor = np.maximum(_LEAST_SPREAD**2, plan.noises[SCALE] / count)[:, None]
        scale = np.where(half > 0, half * np.sqrt(np.clip(spread, floor, 4.0)), 1.0)
    row_bound = np.full(size, public.row_bound)
    moments = np.empty((size, *(2 * (table.d if table.moments else 0,))))
    # If centre and scale are public, rows have the same lengths in every repetition.
    alike = not plan.noises.keys() & {MEAN, SCALE}
    # If rows are few, many repetitions are prepared together. Each still gives the same bytes.
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

    If no step reads the sums, they are 0 and no bounds are needed. A feature with equal bounds has
    half width 0 and u = 0: the feature stays at its only value, whatever the noise.
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
    """Return the divisors: half widths, with 1 in place of 0."""
    return np.where(half > 0, half, 1.0)


def _bounds_of(
    table: _Table,
    own: Sequence[Transform],
    plan: Preparation,
    noise: _Noise,
    which: range,
    count: FloatArray,
) -> list[float]:
    """Return each repetition's row-norm bound; ``own`` has one transform for all or for each."""
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
        The exact variances of rows of length at most 1, by `dpviz.core.by_length.squares_along`.
        Directions are orthonormal, and released or computed from released values.
    plan : Preparation
        A plan with noise for the variances.
    draws : Draws

    Returns
    -------
    ndarray of shape (size, m + 1)
        Variances in squared units of the rows; in each repetition they sum to the noisy total.
    """
    noise = _noise(plan, VARIANCE, draws, len(along))
    assert noise is not None
    return along + noise / plan.n


def radius_to_cut(lengths: Lengths, plan: Preparation, draws: Draws) -> FloatArray:
    """Return the radius at which rows without a bound are clipped for variances, shape (size,).

    Clipped at r, the sum of squared lengths loses |x|^2 - r^2 summed over the longer rows, and its
    noise is proportional to r^2. The sum of both is least if the number of longer rows equals the
    noise in standard deviations or scales, in units of r^2.

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Row lengths, ascending, or their counts.
    plan : Preparation
        A plan with noise for the radius.
    draws : Draws
    """
    numbers = draws.uniform(1) if plan.pure else draws.normal(RADIUS_COUNTS)
    return radius_at(lengths, plan, numbers)


def radius_at(lengths: Lengths, plan: Preparation, numbers: FloatArray) -> FloatArray:
    """Return `radius_to_cut` from given random numbers.

    Parameters
    ----------
    lengths, plan
        The same parameters as in `radius_to_cut`.
    numbers : ndarray of shape (size, counts)
        `RADIUS_COUNTS` standard normals, or one uniform number if the plan is pure.
    """
    noise, rank = plan.noises[RADIUS], rank_to_cut(plan)
    if plan.pure:
        return drawn(lengths, _CUTS, rank, noise, numbers[:, 0])
    every = np.broadcast_to(_CUTS, (len(numbers), len(_CUTS)))
    return climb(lengths, every, rank, noise * numbers)


def rank_to_cut(plan: Preparation) -> float:
    """Return the public number of rows that should exceed the private radius."""
    noise = plan.noises[RADIUS]
    # With this target, the chance of a radius above every row is at most 1/len(_CUTS).
    sure = 4 * math.log(len(_CUTS)) / noise if plan.pure else 1.5 * noise
    return min(plan.n / 2, plan.noises[VARIANCE] + sure)


def _in_found_bounds(
    table: _Table, public: Transform, plan: Preparation, draws: Draws
) -> PreparedDraws:
    """Prepare each repetition in its own private bounds, which are found first.

    Ranges double from 2^-64 on, and the search ends at the first range that too few people exceed:
    the sparse vector technique, as in the adaptive clip. "Too few" is a number that noise alone may
    produce.
    """
    radii: FloatArray = 2.0 ** np.arange(-_OCTAVES, _OCTAVES + 1, dtype=np.float64)
    epsilon = plan.noises[RANGE]
    beyond = table.longer(radii[None], lambda block: np.abs(block).max(axis=1)[None])[0]
    threshold = 2 * math.log(2 * len(radii)) / epsilon
    rest = replace(plan, noises={step: x for step, x in plan.noises.items() if step != RANGE})
    reach = np.empty(draws.size)
    # Each trial has one stream: first the noise of the features' range, then of later steps.
    noises = []
    for index, draw in enumerate(draws.single()):
        pairs = draw.exponential(2, len(radii) + 1)[0]
        laplace = pairs[0] - pairs[1]
        few = beyond + 2 / epsilon * laplace[1:] <= threshold + 2 / epsilon * laplace[0]
        reach[index] = radii[int(np.argmax(few)) if few.any() else len(radii) - 1]
        noises.append(_Noise.drawn(rest, draw, table.d))
    # Only few different feature ranges are found, so trials with equal ranges run together.
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
    """Return the noise of a step, shape (draws, size), or None if the step is not private."""
    if step not in plan.noises:
        return None
    if plan.pure:
        pair = draws.exponential(2, size)
        return plan.noises[step] * (pair[:, 0] - pair[:, 1])
    return plan.noises[step] * draws.normal(size)


def _quantile(
    radii: FloatArray, longer: FloatArray, plan: Preparation, count: float, chance: float
) -> float:
    """Return a radius by the exponential mechanism on the number of longer rows.

    The score -|longer - (1 - level) count| changes by at most 1, so odds of exp(epsilon score/2)
    use epsilon (McSherry & Talwar 2007).
    """
    score = -np.abs(longer - (1 - plan.private.level) * count)
    log_odds = 0.5 * plan.noises[BOUND] * (score - score.max())
    odds = np.cumsum(np.exp(log_odds))
    return float(radii[min(int(np.searchsorted(odds, chance * odds[-1])), _RADII - 1)])


def _adaptive(
    radii: FloatArray, longer: FloatArray, plan: Preparation, edge: float, laplace: FloatArray
) -> float:
    """Return the radius at which halving its square stops helping, by the sparse vector technique.

    Noise on X'X is ``edge`` squared radii, so halving the squared radius saves edge/2 of them, and
    each longer row loses at least that half. So halving helps while fewer than ``edge`` rows are
    longer than the next radius. Counts change by at most 1, all in the same direction. Threshold
    and answers have Laplace noise of scale 2/epsilon, and the first "no" ends the search, for
    epsilon in all (the monotone case of Lyu, Su & Li 2017; argued in `dpviz.preparation.steps`).
    The search starts where the noisy trace allows: at most trace/r^2 rows are longer than r, so it
    skips no radius that more than ``edge`` rows exceed. After AdaptiveCov (Dong, Liang & Yi 2022),
    which also uses the trace and then walks down radii, to balance two kinds of noise.
    """
    epsilon = plan.noises[BOUND]
    threshold = edge + 2 / epsilon * laplace[0]
    answers = longer + 2 / epsilon * laplace[1:_CLIPS]
    too_many = np.flatnonzero(answers >= threshold)
    return float(radii[int(too_many[0]) if len(too_many) else _CLIPS - 1])


def _tried(most: float, squares: float, plan: Preparation, edge: float) -> FloatArray:
    """Return the radii that an adaptive clip tries, from the noisy sum of squared lengths."""
    # The noisy sum is raised by two noise scales, so that it is seldom below the true sum.
    share = (squares + 2 * plan.noises[TRACE]) / max(edge, 1.0)
    start = most * math.sqrt(min(max(share, _HALVING ** (2 * _CLIPS)), 1.0))
    radii: FloatArray = start * np.power(_HALVING, np.arange(_CLIPS, dtype=np.float64))
    return radii


def noise_edge(dimension: int, relation: Relation, mu: float) -> float:
    """Return the largest expected eigenvalue of Gaussian noise on X'X, in squared norm bounds."""
    # This is 2 s sqrt(d), as in `noise_edge` of bounds, with s = sensitivity / (sqrt(2) mu). An
    # entry of X'X off the diagonal counts twice in the sensitivity.
    sensitivity = math.sqrt(2) if relation is Relation.REPLACE else 1.0
    return math.sqrt(2 * dimension) * sensitivity / mu
