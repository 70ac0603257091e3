"""What is drawn from a published picture: post-processing, which reads nothing else."""

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
"""Stands for no label: which one leads in a cell cannot be told from noise."""

_CLEAR = 1.64 * math.sqrt(2)  # standard deviations between two counts: one chance in twenty
_LEAST_SPREAD = 1e-3  # of an ellipse's variances, in squares of the frame


@dataclass(frozen=True, eq=False)
class Points:
    """Points that stand for the people of a picture; nobody's place is among them.

    Attributes
    ----------
    places : ndarray of shape (count, axes)
    kinds : ndarray of int, shape (count,)
        The label that each was drawn from.
    colours : ndarray of int, shape (count,)
        The label that its cell shows, or `GREY`.
    """

    places: FloatArray
    kinds: NDArray[np.intp]
    colours: NDArray[np.intp]


def shares(picture: Picture) -> FloatArray:
    """Return the share of people by label and cell, or by label: the nearest that can be.

    Counts are brought to the nearest ones that are not negative and sum to n, which is public; a
    mean of many small noisy counts thus does not make a crowd of what nobody is in. Counts that
    passed a threshold are only brought to a sum of 1.
    """
    form, noisy = picture.plan.options.form, picture.noisy
    counts = noisy[:, 0] if form == ELLIPSES else noisy
    flat = np.maximum(counts.reshape(1, -1), 0.0)
    if form == CELLS:
        flat = on_the_simplex(counts.reshape(1, -1), np.array([float(picture.plan.n)]))
    total = flat.sum()
    if not total > 0:  # noise has the last word: nothing is known of where people are
        flat, total = np.ones_like(flat), float(flat.size)
    shares_of_cells: FloatArray = (flat / total).reshape(counts.shape)
    return shares_of_cells


def colours(picture: Picture) -> NDArray[np.intp]:
    """Return the label that each cell shows, or `GREY`; shape of the cells.

    The largest count must beat the second by 1.64 sqrt 2 standard deviations, and be kept.
    """
    plan, noisy = picture.plan, picture.noisy
    top: NDArray[np.intp] = noisy.argmax(axis=0)
    if plan.kinds == 1:
        return top
    second, first = np.partition(noisy, -2, axis=0)[-2:]
    occupied = np.take_along_axis(shares(picture), top[None], axis=0)[0] > 0
    return np.where((first - second > _CLEAR * plan.std) & occupied, top, GREY)


def drowned(picture: Picture) -> list[int]:
    """Return the labels that no cell shows: they cannot be told from the others here.

    Decided from noisy counts and their standard deviation alone.
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
    """Return a picture with some of its axes turned round, as its directions may be.

    Parameters
    ----------
    picture : Picture
    turned : sequence of bool
        One for each axis.
    """
    noisy = picture.noisy.copy()
    if picture.plan.options.form == ELLIPSES:
        signs = np.where(turned, -1.0, 1.0)
        noisy[:, 1 : 1 + len(signs)] *= signs
        noisy[:, 1 + 2 * len(signs) :] *= signs.prod()  # what two axes have together
    else:
        noisy = np.flip(noisy, tuple(1 + axis for axis, one in enumerate(turned) if one)).copy()
    return replace(picture, noisy=noisy)


def steady(count: int) -> FloatArray:
    """Return the same numbers in (0, 1) for every picture, shape (count, 3).

    The first is even and in order: it chooses the label. Points of two pictures that are alike are
    then alike.
    """
    drawn = generator(0, "points").random((count, 3))
    drawn[:, 0] = (np.arange(count) + 0.5) / count
    return drawn


def points(picture: Picture, numbers: FloatArray) -> Points:
    """Return points of a picture, each a continuous function of its counts but for its label.

    A point's place along the first axis is where its number lies in the distribution of its
    label, even within a cell, and along the second the same within the column it falls in.

    Parameters
    ----------
    picture : Picture
    numbers : ndarray of shape (count, 3)
        In (0, 1): for the label and both axes; see `steady`.
    """
    plan, share = picture.plan, shares(picture)
    kinds = _chosen(share.reshape(plan.kinds, -1).sum(axis=1), numbers[:, 0])
    if plan.options.form == ELLIPSES:
        return Points(_in_ellipses(picture, kinds, numbers[:, 1:]), kinds, kinds.copy())
    # before the second axis is looked at, a column's share is all that counts
    columns = share.sum(axis=2) if plan.axes == 2 else share
    along = [_quantile(columns[kinds], numbers[:, 1])]
    cells = [np.minimum(along[0].astype(np.intp), plan.cells - 1)]
    if plan.axes == 2:
        along.append(_quantile(share[kinds, cells[0]], numbers[:, 2]))
        cells.append(np.minimum(along[1].astype(np.intp), plan.cells - 1))
    places = (np.stack(along, axis=1) * (2 / plan.cells) - 1) * picture.frame
    return Points(places, kinds, colours(picture)[tuple(cells)])


def _chosen(weights: FloatArray, numbers: FloatArray) -> NDArray[np.intp]:
    reached = np.cumsum(weights)
    place = np.searchsorted(reached, numbers * reached[-1], side="right")
    chosen: NDArray[np.intp] = np.minimum(place, len(weights) - 1)
    return chosen


def _quantile(weights: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return in cells from 0 where a number lies in each row's distribution, even in a cell."""
    reached = np.cumsum(weights, axis=1)
    wanted = (numbers * reached[:, -1])[:, None]
    cell = np.minimum((reached <= wanted).sum(axis=1), weights.shape[1] - 1)
    each = np.arange(len(weights))
    weight = weights[each, cell]
    before = reached[each, cell] - weight
    within = (wanted[:, 0] - before) / np.where(weight > 0, weight, 1.0)
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
