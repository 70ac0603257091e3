"""The picture of a release: whole-number counts of cells along the released components.

Given the released components and the frame, which cell of which label a row is in is a function of
that row alone, found in whole numbers: components are cut to multiples of 2^-30, and their products
with certified rows are exact. A row of zeros is nobody and is in none. So

* a replaced row takes one from one count and adds one to another: sqrt 2 in l2 and 2 in l1; a row
  that is zeroed out takes one: 1 and 1. The label is a part of the row, so this holds with labels.
* A search of the frame asks how many rows lie beyond a place on an axis: one row moves that by at
  most 1, under both relations. Ten answers are sqrt 10 in l2 and 10 in l1.
* A person with m rows changes them one after the other: m times as much of each.

Each answer depends on the rows through what was released before it and its own noise. Squared mus
(or pure epsilons) of the matrix, the mean, the searches and the counts therefore add up to those of
the whole, which `dpviz.releasing.noise.calibrated` meets. Counts are multiplied by 99 4^bits (or
four times that) before discrete noise is drawn, so that it is as fine as that of the matrix, and
are rounded to people afterwards: post-processing. Where delta is 0 they are counted as they are.

The shares, the grid of the frame and the number of cells follow
`dpviz.simulation.picture.account`; here a search knows that no row is longer than the row
bound, so four counts find the octave of its median, and where all is pure it counts with noise too.
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
"""What every published picture is stamped with: points stand for people, none is one."""
MEDIAN, EDGE, COUNTS = "median of the frame", "edge of the frame", "picture"
"""Names of the parts of a picture among what is released beside the matrix."""

_FINE = 30  # bits of a component
_MEDIAN_COUNTS, _EDGE_COUNTS = 4, 4
_POINTS = 300


@dataclass(frozen=True)
class Counting:
    """How the rows of a release are counted: from public numbers alone.

    Attributes
    ----------
    plan : PicturePlan
        Its noise is told by `std`, once it is calibrated.
    categories, kinds : tuple of str
        Labels that were declared, and those that are told apart: all of them, or none where they
        would drown.
    weight : int
        By which counts are multiplied before noise is drawn.
    sides : tuple of Side
        To be calibrated: the searches of the frame, if they are paid for, and the counts.
    bits : int
        Of the grid of the rows.
    """

    plan: PicturePlan
    categories: tuple[str, ...]
    kinds: tuple[str, ...]
    weight: int
    sides: tuple[Side, ...]
    bits: int

    def among(self, n: int) -> Counting:
        """Return the same, of about so many rows that count."""
        return replace(self, plan=replace(self.plan, n=n))

    @property
    def unit(self) -> int:
        """One row bound, in the whole numbers that places are told in."""
        return 1 << (self.bits + _FINE)

    def std(self, noise: Noise, name: str) -> float:
        """Return the standard deviation of a part's numbers, in people."""
        side = noise.side(name)
        assert side is not None
        if noise.law is Law.LAPLACE:  # a discrete Laplace is at most as wide
            return math.sqrt(2) * side.scale
        return math.hypot(side.scale / self.weight, 1 / math.sqrt(12))  # and rounded


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
    """Return how a picture is counted, with the parts that are to be calibrated.

    Parameters
    ----------
    share : float
        Of squared mu, or of epsilon for Laplace noise.
    law : Law
    budget : Budget
        Of the whole release.
    relation : Relation
    n, k : int
    kinds : sequence of str
        Public names of labels.
    bits : int
        Of the grid of the rows.
    rows : int
        Most rows that change together.

    Raises
    ------
    CannotRun
        If all of the picture would drown: then it is not to be paid for.
    """
    axes, pure = min(k, 2), law is Law.LAPLACE
    weight = 1 if pure else OTHER_WEIGHT << (2 * bits)
    if not pure and n * weight < 1 << 59:  # finer yet, so that a large share is not wasted
        weight *= 4
    changed = 2 if relation is Relation.REPLACE else 1

    def side(name: str, part: float, moved: int, entries: int) -> Side:
        """Return a part whose squared l2 length, or l1 length, one row moves by ``moved``."""
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
    # by n and the budget alone, so that the refusal tells nothing of the rows
    signal = n / std(whole)
    if signal < LEAST_SIGNAL:
        raise CannotRun(
            "the picture",
            f"it would drown: {n:,} rows are {numeral(signal, 2)} standard deviations of a count, "
            f"and {numeral(LEAST_SIGNAL, 2)} are needed; nothing was spent",
        )
    # categories that would drown are not told apart, and counts are then of everybody
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
    """Return where rows lie along released components, and their labels; rows of zeros lie nowhere.

    Products are of whole numbers, at most 2^54 by the lengths of both, so no order of adding them
    up changes one; what is divided is divided row by row.

    Parameters
    ----------
    whole : ndarray of shape (m, d), int64
        Certified rows.
    codes : ndarray of int, shape (m,)
    components : ndarray of shape (d, k)
    made : Counting
    disk : bool
        Whether places are in units of each row's own length.

    Returns
    -------
    ndarray of shape (somebody's rows, axes), int64
        In ``made.unit``.
    ndarray of int, shape (somebody's rows,)
    """
    # a row of zeros is an absent person's, or too many of one
    here = np.any(whole != 0, axis=1)
    directions = np.rint(components[:, : made.plan.axes] * 2.0**_FINE).astype(np.int64)
    found: IntArray = whole[here] @ directions
    if disk:
        lengths = np.sqrt((whole[here] ** 2).sum(axis=1).astype(np.float64))
        found = np.trunc(found / lengths[:, None] * 2.0**made.bits).astype(np.int64)
    return found, codes[here]


def cell_counts(along: IntArray, codes: Codes, frame: IntArray, plan: PicturePlan) -> IntArray:
    """Return exact counts by label and cell; what lies outside counts in the nearest cell.

    Parameters
    ----------
    along : ndarray of shape (m, axes), int64
    codes : ndarray of int, shape (m,)
        Below ``plan.kinds``.
    frame : ndarray of shape (axes,), int64
        In the same unit, above 0.
    plan : PicturePlan
    """
    # whole numbers throughout: no rounding moves a row across the edge of a cell
    inside = np.clip(along, -frame, frame) + frame
    return counts_in(inside * plan.cells // (2 * frame), codes, plan)


def searched(
    lengths: IntArray, made: Counting, noise: Noise, people: int = 1
) -> tuple[int, list[int]]:
    """Return how far the frame reaches on one axis, and the noisy counts that said so.

    Parameters
    ----------
    lengths : ndarray of int64, shape (m,)
        Sorted distances of rows from the origin on the axis, in ``made.unit``.
    made : Counting
    noise : Noise
    people : int
        That each row stands for; 1 in a release.
    """
    answers: list[int] = []

    def up(grid: Sequence[int], count: int, target: float, name: str) -> int:
        """Return the first place of the grid beyond which no more rows lie, as noise has it."""
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
    """Return counts with discrete noise, in people; it is drawn here, once."""
    side = noise.side(name)
    assert side is not None
    weight = made.weight
    answers = noise.added(side.scale, [int(count) * weight for count in exact])
    # to the nearest person: rounding is post-processing
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
    """Return a picture as the file of a release holds it; all of it may be shown to anybody.

    Parameters
    ----------
    made : Counting
    noise : Noise
    label : str
        Column of the labels; empty without them.
    frame : sequence of int
        How far it reaches along each component, in ``made.unit``.
    answers : sequence of sequence of int
        Noisy counts of the searches for the frame, by axis; none without searches.
    counts : ndarray of shape ``made.plan.shape``, int64
        Noisy counts by label and cell.
    disk : bool
        Whether it shows directions alone, in units of each row's own length.
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
            "unit": "length of each row" if disk else "row bound",
            "answers": list(answers),
        },
        "noise": {"weight": made.weight, "std": made.std(noise, COUNTS)},
        "counts": counts.tolist(),
    }


def frame_of(made: Counting, noise: Noise, eigenvalues: FloatArray) -> tuple[bool, list[int]]:
    """Return the frame that released variances give, and whether only directions are shown.

    Parameters
    ----------
    made : Counting
    noise : Noise
    eigenvalues : ndarray of shape (d,)
        Released, descending, in squared row bounds.
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
    """Return the picture along released components: the rows are looked at, the noise is drawn.

    Parameters
    ----------
    labelled : iterable of (ndarray of shape (m, d), ndarray of int of shape (m,))
        Rows within their limits, with their labels.
    how : Transform
        How rows are bounded around the centre that was released.
    components : ndarray of shape (d, k)
        Released.
    variances : ndarray of shape (d,)
        Released eigenvalues, descending, in squared row bounds.
    made : Counting
        Of about as many rows as count.
    noise : Noise
    label : str
        Column of the labels.
    people : int
        That each row stands for: 1 in a release, more where a sample of the rows is simulated.
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
    # without categories all points are of one kind
    if not made.kinds:
        codes = np.zeros_like(codes)
    exact = people * cell_counts(places, codes, np.array(frame, dtype=np.int64), made.plan)
    counts = np.array(counted(exact.ravel(), made, noise, COUNTS), dtype=np.int64)
    shown = counts.reshape(made.plan.shape)
    return written(made, noise, label, frame, answers, shown, disk=disk)


# --- what may be read from a file ----------------------------------------------------------------


def rows_of(release: Mapping[str, Any]) -> int:
    """Return how many rows a release averages over: about as many as count, or n."""
    return int(release.get("counted") or release["n"])


def picture_in(release: Mapping[str, Any]) -> Picture | None:
    """Return the picture that a release's file holds, None without one."""
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
    """Return what is drawn and said of the picture of a release: post-processing of its file.

    Points come from a stream that is named by nothing of the release.
    """
    picture = picture_in(release)
    if picture is None:
        return None
    found, plan = release["picture"], picture.plan
    seen = points(picture, steady(_POINTS))
    # of the frame, so that whoever draws them needs no unit
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
