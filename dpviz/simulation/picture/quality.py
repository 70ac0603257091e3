"""How good a published picture is: beside the true places of the same rows, or as expected.

`Pictured` reads private rows: it is for the working view, and nothing that is published prints it.
`expected` reads what is released, and speaks of noise alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator
from dpviz.simulation.picture.account import ELLIPSES, SPARSE
from dpviz.simulation.picture.counting import Codes, Picture, places
from dpviz.simulation.picture.shown import Points, points, shares, steady

NEIGHBOURS = 15
MOST_ROWS = 2_000
"""Of a large table a fixed sample is compared, with as many points."""

_PEOPLE, _AGAIN = 600, 39
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
    quantiles = np.where(share < 0.5, near, far)
    return np.ascontiguousarray(quantiles.T)


def shape_error(shown: FloatArray, true: FloatArray) -> float:
    """Return the distance of points shown to the true ones, over that of a single point.

    The sliced Wasserstein distance: the mean over 40 even directions of the mean difference of 200
    quantiles (Bonneel, Rabin, Peyre and Pfister 2015, at p = 1).
    0 where they are spread alike; 1 is as bad as everybody in the origin. Not a number where all
    true points are there.
    """
    true_levels = _levels(true)
    alone = float(np.abs(true_levels).mean())
    return float(np.abs(_levels(shown) - true_levels).mean()) / alone if alone > 0 else float("nan")


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
        # a declared label that no row has may still be drawn
        drawn = (picture.plan.kinds for picture in self.pictures)
        count = max(int(self.codes.max()) + 1, *drawn, 1)
        exact = self.rows(0)[self._sample] @ self.true[:, :2]
        best = right_share(exact, codes, exact, codes, count)
        chance = float(np.bincount(codes).max()) / len(codes)
        if best - chance < _LEAST_GAIN:
            return None
        if not self.pictures:
            return np.zeros(len(self.directions))
        shares_right = [
            right_share(shown.places, shown.kinds, true, codes, count)
            if picture.plan.kinds > 1
            else chance  # a picture without labels leaves no better guess
            for picture, (shown, true) in zip(self.pictures, self._beside, strict=True)
        ]
        return np.clip((np.array(shares_right) - chance) / (best - chance), 0.0, 1.0)


# What is published of it -------------------------------------------------------------------


def off_by(exact: Picture, shown: Picture) -> float:
    """Return how far a picture is from the same cells without noise: `shape_error` of its points.

    Parameters
    ----------
    exact, shown : Picture
        With the same plan and frame; the first without noise, not private.
    """
    people, drawn_points = (points(one, steady(_PEOPLE)) for one in (exact, shown))
    return shape_error(drawn_points.places, people.places)


def expected(picture: Picture, rng: np.random.Generator) -> float | None:
    """Return by how much noise puts a picture off in 95 of 100 at most, from its numbers alone.

    Pictures of the counts that this one shows are made, with noise of the same law, and each is
    compared with them. How people lie within cells is not among the numbers released, so nothing is
    said of it, nor of how many would be given their own label by the points next to them.

    Parameters
    ----------
    picture : Picture
    rng : Generator

    Returns
    -------
    float or None
        As `off_by`. None for ellipses: whether labels are normal is not among the numbers released.
    """
    if picture.plan.options.form == ELLIPSES:
        return None
    people = replace(picture, noisy=picture.plan.n * shares(picture))
    # One more lies below the largest of 39 in 39 of 40. It is drawn round counts that are noisy
    # themselves, and not round the true ones, which takes some three points of that away
    # (`benchmarks.coverage`).
    return max(off_by(people, _again(people, rng)) for _ in range(_AGAIN))


def _again(people: Picture, rng: np.random.Generator) -> Picture:
    """Return a picture of exact counts by the same plan, with noise."""
    plan, exact = people.plan, people.noisy
    law = rng.laplace if plan.pure else rng.normal
    noisy = exact + law(scale=plan.noise, size=exact.shape)
    if plan.options.form == SPARSE:
        noisy = np.where((exact > 0) & (noisy > plan.threshold), noisy, 0.0)
    return replace(people, noisy=noisy)
