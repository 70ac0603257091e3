"""The quality of a published picture, measured against true positions or expected.

`Pictured` reads private rows: it is for internal views, and nothing published prints it. `expected`
reads only released numbers, and describes the effect of noise alone.
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
"""Larger tables are compared by a fixed sample of this size, with as many points."""

_PEOPLE, _AGAIN = 600, 39
_LEAST_GAIN = 0.01  # If the exact chart gains less over chance, quality cannot be shown.
_ANGLES, _LEVELS = 40, np.linspace(0.005, 0.995, 200)


def _levels(points: FloatArray) -> FloatArray:
    """Return 200 quantiles along each direction, shape (levels, directions), as `np.quantile` does.

    One sort is far faster: with this many levels, partial sorts are slow.
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
    # Interpolate from the nearer end, so that the result equals `np.quantile` to the last bit.
    near, far = under + (over - under) * share, over - (over - under) * (1 - share)
    quantiles = np.where(share < 0.5, near, far)
    return np.ascontiguousarray(quantiles.T)


def shape_error(shown: FloatArray, true: FloatArray) -> float:
    """Return the distance of shown from true points, over the distance of a single point.

    This is the sliced Wasserstein distance: the mean over 40 even directions of the mean difference
    of 200 quantiles (Bonneel, Rabin, Peyre and Pfister 2015, at p = 1). 0 means that both sets are
    spread alike; 1 is as bad as all points in the origin. The result is not a number if all true
    points are in the origin.
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
    """Return the share of true points that get their own label from the nearest shown points.

    Parameters
    ----------
    shown, true : ndarray of shape (m, axes) and (n, axes)
    kinds, codes : ndarray of int, shape (m,) and (n,)
        Labels of the points.
    count : int
        Number of labels.
    """
    from scipy.spatial import cKDTree  # This import is slow, and few tables have labels.

    near = min(NEIGHBOURS, len(shown))
    _, index = cKDTree(shown).query(true, k=near)
    votes = np.zeros((len(true), count))
    each = np.repeat(np.arange(len(true)), near)
    np.add.at(votes, (each, kinds[np.asarray(index).reshape(-1)]), 1.0)
    return float((votes.argmax(axis=1) == codes).mean())


@dataclass(frozen=True, eq=False)
class Pictured:
    """Published pictures, with the true positions of a sample of the same rows.

    Attributes
    ----------
    pictures : tuple of Picture
        One picture per trial; empty if noise would hide all of them, and then both measures are 0.
    directions : ndarray of shape (size, d, k)
        Released.
    rows : callable
        A function from a trial number to its bounded rows, shape (n, d).
    true : ndarray of shape (d, k)
        True components, used for the exact picture.
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
        """Points and true positions of each trial."""
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
        """The value 1 minus `shape_error`, at least 0; shape (size,)."""
        if not self.pictures:
            return np.zeros(len(self.directions))
        errors = [shape_error(shown.places, true) for shown, true in self._beside]
        return np.array([max(1 - error, 0.0) for error in errors])

    @cached_property
    def class_picture(self) -> FloatArray | None:
        """`right_share`, scaled from 0 (largest label, or less) to 1 (exact picture, or more)."""
        if self.codes is None:
            return None
        codes = self.codes[self._sample]
        # A declared label without rows may still appear in the chart.
        kinds = (picture.plan.kinds for picture in self.pictures)
        count = max(int(self.codes.max()) + 1, *kinds, 1)
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
            else chance  # If the chart has no labels, guess the most frequent label.
            for picture, (shown, true) in zip(self.pictures, self._beside, strict=True)
        ]
        return np.clip((np.array(shares_right) - chance) / (best - chance), 0.0, 1.0)


# Error of a published chart ----------------------------------------------------------------


def off_by(exact: Picture, shown: Picture) -> float:
    """Return the `shape_error` of a picture's points against the same cells without noise.

    Parameters
    ----------
    exact, shown : Picture
        Pictures with the same plan and frame; ``exact`` has no noise and is not private.
    """
    people, drawn_points = (points(one, steady(_PEOPLE)) for one in (exact, shown))
    return shape_error(drawn_points.places, people.places)


def expected(picture: Picture, rng: np.random.Generator) -> float | None:
    """Return the largest change of a picture by noise in 95 of 100 cases, from its numbers alone.

    Pictures are simulated from the counts shown here, with noise of the same law, and compared with
    these counts. Positions within cells are not released, so the error does not cover them, nor the
    number of people who would get their own label from nearby points.

    Parameters
    ----------
    picture : Picture
    rng : Generator

    Returns
    -------
    float or None
        As `off_by`. None for ellipses: the released numbers do not show whether labels are normal.
    """
    if picture.plan.options.form == ELLIPSES:
        return None
    people = replace(picture, noisy=picture.plan.n * shares(picture))
    # In 39 of 40 cases, one more error lies below the largest of 39. Simulating around noisy
    # instead of true counts lowers this share by some three points (`benchmarks.coverage`).
    return max(off_by(people, _again(people, rng)) for _ in range(_AGAIN))


def _again(people: Picture, rng: np.random.Generator) -> Picture:
    """Return a noisy picture of exact counts, under the same plan."""
    plan, exact = people.plan, people.noisy
    law = rng.laplace if plan.pure else rng.normal
    noisy = exact + law(scale=plan.noise, size=exact.shape)
    if plan.options.form == SPARSE:
        noisy = np.where((exact > 0) & (noisy > plan.threshold), noisy, 0.0)
    return replace(people, noisy=noisy)
