"""How good a published picture is: beside the true places of the same rows, or as expected.

`Pictured` reads private rows: it is for the working view, and nothing that is published prints it.
`expected` reads what is released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator
from dpviz.simulation.picture.account import ELLIPSES, SPARSE
from dpviz.simulation.picture.counting import Codes, Picture, exact_answers, places
from dpviz.simulation.picture.shown import Points, points, shares, steady

NEIGHBOURS = 15
MOST_ROWS = 2_000
"""Of a large table a fixed sample is compared, with as many points."""

_LEAST_GAIN = 0.01  # of the exact picture over chance, else there is nothing to be told
_ANGLES, _LEVELS = 40, np.linspace(0.005, 0.995, 200)


def _levels(points: FloatArray) -> FloatArray:
    """Return 200 quantiles along each direction, shape (levels, directions), as `np.quantile` does.

    By sorting once: so many levels make its partial sorts the slower ones by far.
    """
    angles = np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
    ways = np.stack([np.cos(angles), np.sin(angles)])
    if points.shape[1] == 1:
        ways = np.ones((1, 1))
    along = np.sort(np.ascontiguousarray((points @ ways).T), axis=1)
    place = _LEVELS * (len(points) - 1)
    low = np.floor(place).astype(np.intp)
    share = place - low
    under = along[:, low]
    over = along[:, np.minimum(low + 1, len(points) - 1)]
    # from the nearer end, as there: to the last bit
    near, far = under + (over - under) * share, over - (over - under) * (1 - share)
    found = np.where(share < 0.5, near, far)
    return np.ascontiguousarray(found.T)


def shape_error(shown: FloatArray, true: FloatArray) -> float:
    """Return the distance of points shown to the true ones, over that of a single point.

    The sliced Wasserstein distance: the mean over 40 even directions of the mean difference of 200
    quantiles (Bonneel, Rabin, Peyre and Pfister 2015, at p = 1).
    0 where they are spread alike; 1 is as bad as everybody in the origin. Not a number where all
    true points are there.
    """
    there = _levels(true)
    alone = float(np.abs(there).mean())
    return float(np.abs(_levels(shown) - there).mean()) / alone if alone > 0 else float("nan")


def right_share(
    shown: FloatArray,
    kinds: NDArray[np.intp],
    true: FloatArray,
    codes: NDArray[np.intp],
    count: int,
) -> float:
    """Return the share of true points whose label the nearest points shown give them.

    Parameters
    ----------
    shown, true : ndarray of shape (m, axes) and (n, axes)
    kinds, codes : ndarray of int, shape (m,) and (n,)
        Their labels.
    count : int
        How many labels there are.
    """
    from scipy.spatial import cKDTree  # a tenth of a start, and few tables have labels

    near = min(NEIGHBOURS, len(shown))
    _, index = cKDTree(shown).query(true, k=near)
    votes = np.zeros((len(true), count))
    each = np.repeat(np.arange(len(true)), near)
    np.add.at(votes, (each, kinds[np.asarray(index).reshape(-1)]), 1.0)
    return float((votes.argmax(axis=1) == codes).mean())


@dataclass(frozen=True, eq=False)
class Pictured:
    """Published pictures beside the true places of a sample of the same rows.

    Attributes
    ----------
    pictures : tuple of Picture
        One a draw; none where all of them would drown, which tells nothing: both measures are 0.
    directions : ndarray of shape (size, d, k)
        Released.
    rows : callable
        The number of a draw to its bounded rows, shape (n, d).
    true : ndarray of shape (d, k)
        True components, for the exact picture.
    codes : ndarray of int, shape (n,), or None
        Labels that are public categories.
    """

    pictures: tuple[Picture, ...]
    directions: FloatArray
    rows: Callable[[int], FloatArray]
    true: FloatArray
    codes: Codes | None

    @cached_property
    def _sample(self) -> NDArray[np.intp]:
        n = len(self.rows(0))
        if n <= MOST_ROWS:
            return np.arange(n)
        return np.sort(generator(0, "quality", n).choice(n, MOST_ROWS, replace=False))

    @cached_property
    def _beside(self) -> list[tuple[Points, FloatArray]]:
        """Points and true places of each draw."""
        numbers = steady(len(self._sample))
        return [
            (
                points(picture, numbers),
                places(
                    self.rows(index)[self._sample],
                    self.directions[index][:, : picture.plan.axes],
                    disk=picture.disk,
                ),
            )
            for index, picture in enumerate(self.pictures)
        ]

    @cached_property
    def fidelity(self) -> FloatArray:
        """1 less `shape_error`, at least 0; shape (size,)."""
        if not self.pictures:
            return np.zeros(len(self.directions))
        errors = [shape_error(shown.places, true) for shown, true in self._beside]
        return np.array([max(1 - error, 0.0) for error in errors])

    @cached_property
    def class_picture(self) -> FloatArray | None:
        """`right_share` from 0, the largest label or less, to 1, the exact picture's or more."""
        if self.codes is None:
            return None
        codes = self.codes[self._sample]
        count = int(self.codes.max()) + 1
        exact = self.rows(0)[self._sample] @ self.true[:, :2]
        best = right_share(exact, codes, exact, codes, count)
        chance = float(np.bincount(codes).max()) / len(codes)
        if best - chance < _LEAST_GAIN:
            return None
        if not self.pictures:
            return np.zeros(len(self.directions))
        found = [
            right_share(shown.places, shown.kinds, true, codes, count)
            if picture.plan.kinds > 1
            else chance  # a picture without labels leaves no better guess
            for picture, (shown, true) in zip(self.pictures, self._beside, strict=True)
        ]
        return np.clip((np.array(found) - chance) / (best - chance), 0.0, 1.0)


# What is published of it -------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """How good a picture is expected to be, from its released numbers alone.

    Attributes
    ----------
    error : tuple of float
        `shape_error`, from what noise does alone to what cells may hide beside it.
    right : tuple of float or None
        `right_share` in the same way, from the worse to the better; None without labels.
    """

    error: tuple[float, float]
    right: tuple[float, float] | None


def expected(picture: Picture, rng: np.random.Generator, size: int = 600) -> Expected | None:
    """Return how good a picture is expected to be: post-processing, which reads no row.

    People are drawn from the picture, a picture is made of them with noise of the same law, and the
    two are compared. What that cannot show is how people lie within cells. It is taken to be
    between nothing and what halving the number of cells along each axis does: added to the shape's
    error in quadrature, and to the labels told, which are more where labels are parted in a cell.
    People drawn from noisy counts are also less sorted by label than those who were counted, as a
    second round is less than the first: twice the first less the second makes up for it.

    Parameters
    ----------
    picture : Picture
    rng : Generator
    size : int
        People drawn.

    Returns
    -------
    Expected or None
        None for ellipses: whether labels are normal is not among the numbers released.
    """
    if picture.plan.options.form == ELLIPSES:
        return None
    people = points(picture, _numbers(size, rng))
    again = _again(picture, people, rng)
    shown = points(again, _numbers(size, rng))
    coarse = points(_coarser(picture), _numbers(size, rng))
    noise = shape_error(shown.places, people.places)
    error = noise, math.hypot(noise, shape_error(coarse.places, people.places))
    kinds = picture.plan.kinds
    if kinds == 1:
        return Expected(error, None)

    def told(seen: Points, those: Points) -> float:
        return right_share(seen.places, seen.kinds, those.places, those.kinds, kinds)

    last = points(_again(again, shown, rng), _numbers(size, rng))
    low = 2 * told(shown, people) - told(last, shown)
    other = points(picture, _numbers(size, rng))
    high = low + max(told(other, people) - told(coarse, people), 0.0)
    return Expected(error, (min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)))


def _numbers(size: int, rng: np.random.Generator) -> FloatArray:
    found = rng.random((size, 3))
    found[:, 0] = (np.arange(size) + 0.5) / size
    return found


def _again(picture: Picture, people: Points, rng: np.random.Generator) -> Picture:
    """Return a picture of people drawn from another, by the same plan, with other noise."""
    plan, everybody = picture.plan, np.ones(len(people.kinds), dtype=bool)
    exact = exact_answers(people.places, people.kinds, everybody, picture.frame, plan)
    exact *= plan.n / len(people.kinds)
    law = rng.laplace if plan.pure else rng.normal
    noisy = exact + law(scale=plan.noise, size=exact.shape)
    if plan.options.form == SPARSE:
        noisy = np.where((exact > 0) & (noisy > plan.threshold), noisy, 0.0)
    return replace(picture, noisy=noisy)


def _coarser(picture: Picture) -> Picture:
    """Return a picture with half as many cells along each axis, and no noise but its own."""
    plan = picture.plan
    half = plan.cells // 2
    shape = (plan.kinds, *(size for _ in range(plan.axes) for size in (half, 2)))
    counts = plan.n * shares(picture).reshape(shape).sum(axis=tuple(range(2, 1 + 2 * plan.axes, 2)))
    return replace(picture, plan=replace(plan, cells=half), noisy=counts)
