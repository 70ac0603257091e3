"""The published map of a release: whole-number counts of cells along the released components.

Given the released components and the frame, a row's cell and label depend on this row alone. Cells
are found in whole numbers: components are rounded to multiples of 2^-30, and their products with
certified rows are exact. A row of zeros stands for nobody and lies in no cell. So

* Replacing a row takes one from one count and adds one to another: sqrt 2 in l2 and 2 in l1.
  Zeroing a row takes one: 1 and 1. The label is a part of the row, so this holds with labels.
* A search for the frame asks how many rows lie beyond a place on an axis. One row moves this number
  by at most 1, under both relations. Ten answers move by sqrt 10 in l2 and 10 in l1.
* A person with m rows changes these rows one after the other, which gives m times each bound.

Each answer depends on the rows only through earlier releases and its own noise. So squared mus (or
pure epsilons) of the matrix, the mean, the searches and the counts add up to the whole budget,
which `dpviz.releasing.noise.calibrated` meets. Counts are multiplied by 99 4^bits (or four times
that) before discrete noise is added, so that their noise is as fine as the matrix's. Rounding to
people is post-processing. If delta is 0, counts are not multiplied.

The shares, the grid of the frame and the number of cells follow `dpviz.simulation.picture.account`,
with two differences. A search knows that no row exceeds the row-norm bound, so four counts find the
octave of its median. Searches also have noise if all noise is pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Relation
from dpviz.core.seeding import generator
from dpviz.preparation.transform import Transform
from dpviz.releasing.grid import OTHER_WEIGHT, IntArray, quantised
from dpviz.releasing.noise import (
    Law,
    Noise,
    Side,
    off_diagonal_std,
)
from dpviz.releasing.records import Codes
from dpviz.sampling.limits import SemiCircle
from dpviz.simulation.picture.account import (
    BEYOND,
    CLEAR,
    DISK,
    FRAME_SHARE,
    LEAST_SIGNAL,
    MARGIN,
    MEDIAN_SHARE,
    RELEASED,
    SEARCHED,
    PictureOptions,
    PicturePlan,
    cells_along,
)
from dpviz.simulation.picture.counting import Picture, counts_in, frame_from
from dpviz.simulation.picture.quality import expected
from dpviz.simulation.picture.shown import drowned, points, steady

STAMP = "nobody's row"
"""Stamp on every published map: points stand for people, but no point is a person."""
MEDIAN, EDGE, COUNTS = "median of the frame", "edge of the frame", "picture"
"""Names of the queries of a map, in addition to the matrix."""

_FINE = 30  # Number of bits of each number of a component.
_MEDIAN_COUNTS, _EDGE_COUNTS = 4, 4
_POINTS = 300


@dataclass(frozen=True)
class Counting:
    """How the rows of a release are counted for the map; it depends only on public numbers.

    Attributes
    ----------
    plan : PicturePlan
        Plan of the map; after calibration, `std` gives the noise.
    categories, kinds : tuple of str
        Declared labels, and the labels that are counted separately: all of them, or none if noise
        would hide them.
    weight : int
        Factor of the counts before noise is added.
    sides : tuple of Side
        Queries to calibrate: the searches for the frame, if they use budget, and the counts.
    bits : int
        Number of bits of the rows' grid.
    """

    plan: PicturePlan
    categories: tuple[str, ...]
    kinds: tuple[str, ...]
    weight: int
    sides: tuple[Side, ...]
    bits: int

    def among(self, n: int) -> Counting:
        """Return the same counting for n used rows."""
        return replace(self, plan=replace(self.plan, n=n))

    @property
    def unit(self) -> int:
        """One row-norm bound, in the whole-number unit of coordinates."""
        return 1 << (self.bits + _FINE)

    def std(self, noise: Noise, name: str) -> float:
        """Return the standard deviation of a query's answers, in people."""
        side = noise.side(name)
        assert side is not None
        if noise.law is Law.LAPLACE:  # A discrete Laplace has at most this standard deviation.
            return math.sqrt(2) * side.scale
        return math.hypot(side.scale / self.weight, 1 / math.sqrt(12))  # Rounding adds variance.


def counting(
    share: float,
    law: Law,
    budget: Budget,
    relation: Relation,
    n: int,
    k: int,
    kinds: Sequence[str],
    bits: int,
    rows: int = 1,
) -> Counting:
    """Return how to count a map, with the queries to calibrate.

    Parameters
    ----------
    share : float
        Share of squared mu, or of epsilon for Laplace noise.
    law : Law
    budget : Budget
        Budget of the whole release.
    relation : Relation
    n, k : int
    kinds : sequence of str
        Public names of the labels.
    bits : int
        Number of bits of the rows' grid.
    rows : int
        Maximum number of rows that change together.

    Raises
    ------
    CannotRun
        If noise would hide the whole map, which would waste its share of the budget.
    """
    axes, pure = min(k, 2), law is Law.LAPLACE
    weight = 1 if pure else OTHER_WEIGHT << (2 * bits)
    if not pure and n * weight < 1 << 59:  # Use a finer grid, so that less budget is wasted.
        weight *= 4
    changed = 2 if relation is Relation.REPLACE else 1

    def side(name: str, part: float, moved: int, entries: int) -> Side:
        """Return a query that one row moves by ``moved``: squared l2 length or l1 length."""
        square = moved * (rows * weight) ** 2
        length = moved * rows if pure else math.isqrt(square - 1) + 1
        return Side(name, part, length, entries)

    def std(one: Side) -> float:
        if pure:
            return math.sqrt(2) * one.sensitivity / (one.share * budget.epsilon)
        return one.sensitivity / weight / (math.sqrt(one.share) * mu_of(budget))

    framing = FRAME_SHARE * share
    middle = axes * _MEDIAN_COUNTS
    edge = axes * _EDGE_COUNTS
    searches = (
        side(MEDIAN, MEDIAN_SHARE * framing, middle, middle),
        side(EDGE, (1 - MEDIAN_SHARE) * framing, edge, edge),
    )
    searched = n / 2 >= CLEAR * std(searches[0])
    left = share - framing if searched else share
    whole = side(COUNTS, left, changed, 0)
    # This check uses only n and the budget, so that a refusal reveals nothing about the rows.
    signal = n / std(whole)
    if signal < LEAST_SIGNAL:
        raise CannotRun(
            "the map",
            f"noise would hide it. {n:,} rows are {numeral(signal, 2)} standard deviations of a "
            f"count's noise; at least {numeral(LEAST_SIGNAL, 2)} are needed; nothing was spent",
        )
    # If noise would hide the categories, people are counted without their categories.
    told = tuple(kinds) if kinds and signal / len(kinds) >= LEAST_SIGNAL else ()
    many = max(len(told), 1)
    cells = cells_along(signal / many, axes, many)
    plan = PicturePlan(
        PictureOptions(share, kinds=max(len(kinds), 1)),
        n,
        axes,
        relation,
        pure,
        SEARCHED if searched else RELEASED,
        1.0,
        many,
        cells,
        0.0,
    )
    whole = replace(whole, entries=math.prod(plan.shape))
    return Counting(
        plan, tuple(kinds), told, weight, (*(searches if searched else ()), whole), bits
    )


# --- the rows are met here -----------------------------------------------------------------------


def along(
    whole: IntArray, codes: Codes, components: FloatArray, made: Counting, *, disk: bool
) -> tuple[IntArray, Codes]:
    """Return coordinates of nonzero rows along released components, and the labels of these rows.

    Both lengths bound products of whole numbers by 2^54, so the order of addition changes no sum.
    Divisions are done row by row.

    Parameters
    ----------
    whole : ndarray of shape (m, d), int64
        Certified rows in whole numbers.
    codes : ndarray of int, shape (m,)
    components : ndarray of shape (d, k)
    made : Counting
    disk : bool
        Whether to measure coordinates in units of each row's own length.

    Returns
    -------
    ndarray of shape (nonzero rows, axes), int64
        Coordinates, in units of ``made.unit``.
    ndarray of int, shape (nonzero rows,)
    """
    # A row of zeros belongs to an absent person, or to a person with more rows than allowed.
    here = np.any(whole != 0, axis=1)
    directions = np.rint(components[:, : made.plan.axes] * 2.0**_FINE).astype(np.int64)
    found: IntArray = whole[here] @ directions
    if disk:
        lengths = np.sqrt((whole[here] ** 2).sum(axis=1).astype(np.float64))
        found = np.trunc(found / lengths[:, None] * 2.0**made.bits).astype(np.int64)
    return found, codes[here]


def cell_counts(along: IntArray, codes: Codes, frame: IntArray, plan: PicturePlan) -> IntArray:
    """Return exact counts by label and cell; a row outside the frame counts in the nearest cell.

    Parameters
    ----------
    along : ndarray of shape (m, axes), int64
    codes : ndarray of int, shape (m,)
        Codes of labels, below ``plan.kinds``.
    frame : ndarray of shape (axes,), int64
        Half-widths in the unit of the coordinates, above 0.
    plan : PicturePlan
    """
    # Only whole numbers are used, so that rounding cannot move a row to another cell of the chart.
    inside = np.clip(along, -frame, frame) + frame
    return counts_in(inside * plan.cells // (2 * frame), codes, plan)


def searched(
    lengths: IntArray, made: Counting, noise: Noise, people: int = 1
) -> tuple[int, list[int]]:
    """Return the reach of the frame on one axis, and the noisy counts that determined it.

    Parameters
    ----------
    lengths : ndarray of int64, shape (m,)
        Sorted distances of rows from the origin on the axis, in units of ``made.unit``.
    made : Counting
    noise : Noise
    people : int
        Number of people that each row represents; 1 in a release.
    """
    answers: list[int] = []

    def up(grid: Sequence[int], count: int, target: float, name: str) -> int:
        """Return the first grid place with at most ``target`` rows beyond it, by noisy counts."""
        low = 0
        for step in reversed(range(count)):
            at = low + (1 << step) - 1
            exact = len(lengths) - int(np.searchsorted(lengths, grid[at], side="right"))
            exact *= people
            (answer,) = counted([exact], made, noise, name)
            answers.append(answer)
            if answer > target:
                low += 1 << step
        return grid[low]

    n = made.plan.n
    octaves = [made.unit >> j for j in reversed(range(1, 2**_MEDIAN_COUNTS + 1))]
    middle = up(octaves, _MEDIAN_COUNTS, n / 2, MEDIAN)
    steps = [math.ceil(middle * 2 ** (j / 4 - 0.75)) for j in range(2**_EDGE_COUNTS)]
    rank = min(n / 2, BEYOND * n + MARGIN * made.std(noise, EDGE))
    return min(up(steps, _EDGE_COUNTS, rank, EDGE), made.unit), answers


def counted(exact: Iterable[int], made: Counting, noise: Noise, name: str) -> list[int]:
    """Return counts with discrete noise, in people; the noise is sampled here, once."""
    side = noise.side(name)
    assert side is not None
    weight = made.weight
    answers = noise.added(side.scale, [int(count) * weight for count in exact])
    # Noisy counts are rounded to whole people. This is post-processing.
    return [(answer + weight // 2) // weight for answer in answers]


def written(
    made: Counting,
    noise: Noise,
    label: str,
    frame: Sequence[int],
    answers: Sequence[Sequence[int]],
    counts: IntArray,
    *,
    disk: bool,
) -> dict[str, Any]:
    """Return a map in the form of a release's file; all of the map is safe to publish.

    Parameters
    ----------
    made : Counting
    noise : Noise
    label : str
        Column of the labels; empty if there are no labels.
    frame : sequence of int
        Reach of the frame along each component, in units of ``made.unit``.
    answers : sequence of sequence of int
        Noisy counts of the searches for the frame, by axis; none if there were no searches.
    counts : ndarray of shape ``made.plan.shape``, int64
        Noisy counts of rows by label and cell.
    disk : bool
        Whether the map shows only directions, in units of each row's own length.
    """
    plan = made.plan
    return {
        "stamp": STAMP,
        "share": plan.options.share,
        "axes": plan.axes,
        "cells": plan.cells,
        "label": label,
        "categories": list(made.categories),
        "labels": list(made.kinds),
        "frame": {
            "from": DISK if disk else plan.frame,
            "reach": [reach / made.unit for reach in frame],
            "unit": "length of each row" if disk else "row-norm bound",
            "answers": list(answers),
        },
        "noise": {"weight": made.weight, "std": made.std(noise, COUNTS)},
        "counts": counts.tolist(),
    }


def frame_of(made: Counting, noise: Noise, eigenvalues: FloatArray) -> tuple[bool, list[int]]:
    """Return whether the map shows only directions, and the frame from released variances.

    Parameters
    ----------
    made : Counting
    noise : Noise
    eigenvalues : ndarray of shape (d,)
        Released variances, descending, in squared row-norm bounds.
    """
    if made.plan.frame == SEARCHED:
        return False, []
    std = off_diagonal_std(noise.law, noise.scale, made.plan.n, made.bits)
    disk, reach = frame_from(made.plan, eigenvalues, SemiCircle(std, len(eigenvalues)))
    return disk, [max(math.ceil(min(one, 1.0) * made.unit), 1) for one in reach.tolist()]


def pictured(
    labelled: Iterable[tuple[FloatArray, Codes]],
    how: Transform,
    components: FloatArray,
    variances: FloatArray,
    made: Counting,
    noise: Noise,
    label: str = "",
    people: int = 1,
) -> dict[str, Any]:
    """Return the map along released components; this reads the rows and samples noise.

    Parameters
    ----------
    labelled : iterable of (ndarray of shape (m, d), ndarray of int of shape (m,))
        Rows within their limits, each block with its labels.
    how : Transform
        Bounds on rows around the released centre.
    components : ndarray of shape (d, k)
        Released.
    variances : ndarray of shape (d,)
        Released eigenvalues, descending, in squared row-norm bounds.
    made : Counting
        Counting for the noisy number of used rows.
    noise : Noise
    label : str
        Column of the labels.
    people : int
        Number of people that each row represents: 1 in a release, more in a simulated sample.
    """
    disk, frame = frame_of(made, noise, variances)
    found = [
        along(quantised(rows, how, made.bits), codes, components, made, disk=disk)
        for rows, codes in labelled
    ]
    places, codes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    answers = []
    if made.plan.frame == SEARCHED:
        both = [
            searched(np.sort(np.abs(places[:, axis])), made, noise, people)
            for axis in range(made.plan.axes)
        ]
        frame, answers = [reach for reach, _ in both], [said for _, said in both]
    if not made.kinds:
        codes = np.zeros_like(codes)
    exact = people * cell_counts(places, codes, np.array(frame, dtype=np.int64), made.plan)
    counts = np.array(counted(exact.ravel(), made, noise, COUNTS), dtype=np.int64)
    shown = counts.reshape(made.plan.shape)
    return written(made, noise, label, frame, answers, shown, disk=disk)


# --- what may be read from a file ----------------------------------------------------------------


def rows_of(release: Mapping[str, Any]) -> int:
    """Return the number of rows that a release averages over: the noisy count, or n."""
    return int(release.get("counted") or release["n"])


def picture_in(release: Mapping[str, Any]) -> Picture | None:
    """Return the map in a release's file, or None."""
    found = release.get("picture")
    if found is None:
        return None
    pure = release["noise"]["law"] == Law.LAPLACE
    kinds = max(len(found["labels"]), 1)
    plan = PicturePlan(
        PictureOptions(found["share"], kinds=kinds),
        rows_of(release),
        found["axes"],
        Relation(release["relation"]),
        pure,
        found["frame"]["from"],
        1.0,
        kinds,
        found["cells"],
        found["noise"]["std"] / (math.sqrt(2) if pure else 1.0),
    )
    counts = np.array(found["counts"], dtype=np.float64).reshape(plan.shape)
    reach = np.array(found["frame"]["reach"], dtype=np.float64)
    return Picture(plan, reach, found["frame"]["from"] == DISK, counts)


def shown_of(release: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what to show of a release's map, which is post-processing of the file.

    The random stream of the shown points does not depend on the release.
    """
    picture = picture_in(release)
    if picture is None:
        return None
    found, plan = release["picture"], picture.plan
    seen = points(picture, steady(_POINTS))
    # Coordinates become shares of the frame, so that a chart needs no unit.
    places = np.round(seen.places / picture.frame, 4)
    return {
        "stamp": found["stamp"],
        "cells": plan.cells,
        "labels": found["labels"],
        "label": found["label"],
        "labels_drown": bool(found["categories"]) and not found["labels"],
        "drowned": [found["labels"][kind] for kind in drowned(picture)],
        "frame": found["frame"]["from"],
        "std": plan.std,
        "error": expected(picture, generator(0, "expected", "release")),
        "points": np.column_stack(
            [places, seen.colours if plan.kinds > 1 else np.zeros(_POINTS)]
        ).tolist(),
    }
