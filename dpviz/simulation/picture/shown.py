"""Chart contents of a published picture: post-processing that reads only the picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpviz.core.arrays import FloatArray, on_the_simplex
from dpviz.core.seeding import generator
from dpviz.simulation.picture.account import CELLS, ELLIPSES
from dpviz.simulation.picture.counting import Picture

GREY = -1
"""Mark for no label, if noise hides which label leads in a cell."""

_CLEAR = 1.64 * math.sqrt(2)  # A larger difference of counts is chance in 1 of 20 cases.
_LEAST_SPREAD = 1e-3  # An ellipse has at least this variance, with the frame as unit.


@dataclass(frozen=True, eq=False)
class Points:
    """Points that represent the people of a picture; no point is a real person's position.

    Attributes
    ----------
    places : ndarray of shape (count, axes)
    kinds : ndarray of int, shape (count,)
        The label from which each point was sampled.
    colours : ndarray of int, shape (count,)
        The label that the point's cell shows, or `GREY`.
    """

    places: FloatArray
    kinds: NDArray[np.intp]
    colours: NDArray[np.intp]


def shares(picture: Picture) -> FloatArray:
    """Return the nearest valid shares of people by label and cell, or by label.

    Counts are moved to the nearest non-negative counts that sum to n, which is public. Many small
    noisy counts of empty cells thus do not add up to a crowd. Counts that passed a threshold are
    only scaled to a sum of 1.
    """
    form, noisy = picture.plan.options.form, picture.noisy
    counts = noisy[:, 0] if form == ELLIPSES else noisy
    flat = np.maximum(counts.reshape(1, -1), 0.0)
    if form == CELLS:
        flat = on_the_simplex(counts.reshape(1, -1), np.array([float(picture.plan.n)]))
    total = flat.sum()
    if not total > 0:  # Only noise is left, so nothing is known about positions.
        flat, total = np.ones_like(flat), float(flat.size)
    shares_of_cells: FloatArray = (flat / total).reshape(counts.shape)
    return shares_of_cells


def colours(picture: Picture) -> NDArray[np.intp]:
    """Return the label that each cell shows, or `GREY`; shape of the cells.

    The largest count must exceed the second by 1.64 sqrt 2 standard deviations, and its share must
    be above 0.
    """
    plan, noisy = picture.plan, picture.noisy
    top: NDArray[np.intp] = noisy.argmax(axis=0)
    if plan.kinds == 1:
        return top
    second, first = np.partition(noisy, -2, axis=0)[-2:]
    has_rows = np.take_along_axis(shares(picture), top[None], axis=0)[0] > 0
    return np.where((first - second > _CLEAR * plan.std) & has_rows, top, GREY)


def drowned(picture: Picture) -> list[int]:
    """Return the labels that no cell shows, because noise hides them.

    Only noisy counts and their standard deviation affect this choice.
    """
    plan = picture.plan
    if plan.kinds == 1:
        return []
    if plan.options.form == ELLIPSES:
        clear = _CLEAR * plan.std / math.sqrt(2)
        return [kind for kind in range(plan.kinds) if picture.noisy[kind, 0] <= clear]
    visible = set(colours(picture).ravel().tolist())
    return [kind for kind in range(plan.kinds) if kind not in visible]


def mirrored(picture: Picture, turned: Sequence[bool]) -> Picture:
    """Return a picture with some axes reversed, because directions were reversed.

    Parameters
    ----------
    picture : Picture
    turned : sequence of bool
        Whether each axis is reversed.
    """
    noisy = picture.noisy.copy()
    if picture.plan.options.form == ELLIPSES:
        signs = np.where(turned, -1.0, 1.0)
        noisy[:, 1 : 1 + len(signs)] *= signs
        noisy[:, 1 + 2 * len(signs) :] *= signs.prod()
    else:
        noisy = np.flip(noisy, tuple(1 + axis for axis, one in enumerate(turned) if one)).copy()
    return replace(picture, noisy=noisy)


def steady(count: int) -> FloatArray:
    """Return the same random numbers in (0, 1) for every picture, shape (count, 3).

    The first column is evenly spaced and sorted, and chooses the label. Similar pictures then have
    similar points.
    """
    numbers = generator(0, "points").random((count, 3))
    numbers[:, 0] = (np.arange(count) + 0.5) / count
    return numbers


def points(picture: Picture, numbers: FloatArray) -> Points:
    """Return a picture's points; positions change continuously with the counts, labels do not.

    On the first axis, a point's number is a quantile of its label's distribution, uniform within a
    cell. On the second axis, the number is a quantile within the point's column.

    Parameters
    ----------
    picture : Picture
    numbers : ndarray of shape (count, 3)
        Numbers in (0, 1) for the label and both axes; see `steady`.
    """
    plan, share = picture.plan, shares(picture)
    kinds = _chosen(share.reshape(plan.kinds, -1).sum(axis=1), numbers[:, 0])
    if plan.options.form == ELLIPSES:
        return Points(_in_ellipses(picture, kinds, numbers[:, 1:]), kinds, kinds.copy())
    # The first axis needs only the share of each whole column of cells.
    columns = share.sum(axis=2) if plan.axes == 2 else share
    along = [_quantile(columns[kinds], numbers[:, 1])]
    cells = [np.minimum(along[0].astype(np.intp), plan.cells - 1)]
    if plan.axes == 2:
        along.append(_quantile(share[kinds, cells[0]], numbers[:, 2]))
        cells.append(np.minimum(along[1].astype(np.intp), plan.cells - 1))
    places = (np.stack(along, axis=1) * (2 / plan.cells) - 1) * picture.frame
    return Points(places, kinds, colours(picture)[tuple(cells)])


def _chosen(weights: FloatArray, numbers: FloatArray) -> NDArray[np.intp]:
    totals = np.cumsum(weights)
    place = np.searchsorted(totals, numbers * totals[-1], side="right")
    places: NDArray[np.intp] = np.minimum(place, len(weights) - 1)
    return places


def _quantile(weights: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return each number's quantile in its row's distribution, in cells from 0, even in a cell."""
    totals = np.cumsum(weights, axis=1)
    targets = (numbers * totals[:, -1])[:, None]
    cell = np.minimum((totals <= targets).sum(axis=1), weights.shape[1] - 1)
    each = np.arange(len(weights))
    weight = weights[each, cell]
    before = totals[each, cell] - weight
    within = (targets[:, 0] - before) / np.where(weight > 0, weight, 1.0)
    place: FloatArray = cell + np.clip(within, 0.0, 1.0)
    return place


def _in_ellipses(picture: Picture, kinds: NDArray[np.intp], numbers: FloatArray) -> FloatArray:
    """Return points of a normal law for each label, with its noisy mean and covariance."""
    axes, moments = picture.plan.axes, picture.noisy
    normals = ndtri(numbers[:, :axes])
    count = np.maximum(moments[:, 0], 1.0)[:, None]
    means = np.clip(moments[:, 1 : 1 + axes] / count, -1.0, 1.0)
    second = moments[:, 1 + axes :] / count
    places = np.empty((len(kinds), axes))
    for kind in np.unique(kinds):
        square = np.diag(second[kind, :axes])
        if axes == 2:
            square[0, 1] = square[1, 0] = second[kind, 2] / math.sqrt(2)
        values, vectors = np.linalg.eigh(square - np.outer(means[kind], means[kind]))
        root = vectors * np.sqrt(np.clip(values, _LEAST_SPREAD, 1.0)) @ vectors.T
        of_kind = kinds == kind
        places[of_kind] = means[kind] + normals[of_kind] @ root
    return places * picture.frame
