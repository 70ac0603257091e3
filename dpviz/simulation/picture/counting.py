"""The one place where a picture meets rows: places along released directions, counted, with noise.

Everything here but `exact_answers`, `_searched` and `bought` is public or post-processing. Numbers
are doubles (idealised numerics); which cell a row is in is a function of that row and of what was
released, so floats cost nothing there, and counts are whole numbers that a discrete sampler can
make safe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import Draws
from dpviz.mechanisms._clipped import OCTAVES, climb, drawn
from dpviz.sampling.limits import FreeNoise
from dpviz.simulation.picture.account import (
    DISK,
    ELLIPSES,
    FINE_COUNTS,
    MOST_CELLS,
    OCTAVE_COUNTS,
    SEARCHED,
    SPARSE,
    PicturePlan,
)
from dpviz.simulation.picture.scree import Scree, bought, debiased, of_matrix, standard_numbers

Codes = NDArray[np.intp]
"""Each row's label, as a place in the list of declared ones; shape (n,)."""

WIDE = 2.3  # standard deviations that a frame from variances reaches
DISK_EDGE = 0.98
_ROUND = 1.2  # a disk leaves out the corners that a square of its width has
_STRETCH: FloatArray = 2.0 ** (np.arange(2**FINE_COUNTS) / 4 - 0.75)
_PURE_OCTAVES: FloatArray = 2.0 ** (np.arange(-64 * OCTAVES, 64 * OCTAVES) / 64)
_PURE_STRETCH: FloatArray = 2.0 ** (np.arange(24) / 8)


@dataclass(frozen=True, eq=False)
class PictureNoise:
    """Standard noise of a batch of pictures: drawn once a stream, scaled for every epsilon.

    Attributes
    ----------
    searches : ndarray of shape (size, axes, counts)
        Normals, or uniforms where all is pure.
    numbers : ndarray of shape (size, kinds, ...)
        For the most cells a plan may have; fewer use the first ones.
    scree : ndarray of shape (size, counts)
        As in `dpviz.simulation.picture.scree.bought`.
    """

    searches: FloatArray
    numbers: FloatArray
    scree: FloatArray

    @classmethod
    def drawn(cls, plan: PicturePlan, draws: Draws) -> PictureNoise:
        """Draw what any plan of the same options, axes and purity needs."""
        most, kinds = MOST_CELLS[plan.axes], plan.options.kinds
        shape = (kinds, 6) if plan.options.form == ELLIPSES else (kinds, *(most,) * plan.axes)
        if plan.pure:
            searches = draws.uniform(plan.axes, 2)
            pairs = draws.exponential(2, *shape)
            numbers = pairs[:, 0] - pairs[:, 1]
        else:
            searches = draws.normal(plan.axes, OCTAVE_COUNTS + FINE_COUNTS)
            numbers = draws.normal(*shape)
        return cls(searches, numbers, standard_numbers(draws, plan.directions, pure=plan.pure))

    def at(self, index: int, shape: tuple[int, ...]) -> FloatArray:
        """Return the numbers of one draw in a shape."""
        places: tuple[int | slice, ...] = (index, *(slice(size) for size in shape))
        numbers: FloatArray = self.numbers[places]
        return numbers


@dataclass(frozen=True, eq=False)
class Picture:
    """One published picture: all of it may be shown to anybody.

    Attributes
    ----------
    plan : PicturePlan
    frame : ndarray of shape (axes,)
        The picture reaches from minus to plus this along each released direction.
    disk : bool
        Whether places are in units of each row's own length, so that directions alone are shown;
        else in units of the row bound.
    noisy : ndarray of shape ``plan.shape``
        Noisy counts by label and cell, or noisy moments by label.
    scree : Scree or None
        Variances, from the released matrix or bought; None where neither tells them.
    """

    plan: PicturePlan
    frame: FloatArray
    disk: bool
    noisy: FloatArray
    scree: Scree | None = None

    def __post_init__(self) -> None:
        self.frame.setflags(write=False)
        self.noisy.setflags(write=False)


def places(rows: FloatArray, directions: FloatArray, *, disk: bool) -> FloatArray:
    """Return where rows lie in a picture, shape (n, axes); rows of zeros are nobody's.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    directions : ndarray of shape (d, k)
    disk : bool
        As of `Picture`.
    """
    along: FloatArray = rows @ directions[:, :2]
    if disk:
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        along /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return along


def exact_answers(
    along: FloatArray, codes: Codes, here: NDArray[np.bool_], frame: FloatArray, plan: PicturePlan
) -> FloatArray:
    """Return what is released, without noise; not private.

    Parameters
    ----------
    along : ndarray of shape (n, axes)
        From `places`.
    codes : ndarray of int, shape (n,)
        Labels, below ``plan.kinds``.
    here : ndarray of bool, shape (n,)
        Which rows are not zero.
    frame : ndarray of shape (axes,)
    plan : PicturePlan
    """
    along, codes = along[here] / frame, codes[here]
    if plan.options.form == ELLIPSES:
        length = np.sqrt(np.einsum("ij,ij->i", along, along))
        z = along / np.maximum(length, 1.0)[:, None]
        columns = [np.ones(len(z)), *z.T, *np.square(z).T]
        if plan.axes == 2:
            columns.append(math.sqrt(2) * z[:, 0] * z[:, 1])
        sums = [np.bincount(codes, weights=column, minlength=plan.kinds) for column in columns]
        return np.stack(sums, axis=1)
    # what lies outside counts in the nearest cell
    cells = np.floor((np.clip(along, -1.0, 1.0) + 1) * (plan.cells / 2)).astype(np.int64)
    return counts_in(cells, codes, plan).astype(np.float64)


def counts_in(cells: NDArray[np.int64], codes: Codes, plan: PicturePlan) -> NDArray[np.int64]:
    """Return how many rows are in each cell of each label, shape ``plan.shape``.

    Parameters
    ----------
    cells : ndarray of int, shape (m, axes)
        From 0; the end of an axis is in its last cell.
    codes : ndarray of int, shape (m,)
        Below ``plan.kinds``.
    plan : PicturePlan
    """
    flat = codes.astype(np.int64)
    for axis in range(plan.axes):
        flat = flat * plan.cells + np.minimum(cells[:, axis], plan.cells - 1)
    counts = np.bincount(flat.astype(np.intp), minlength=math.prod(plan.shape))
    return counts.astype(np.int64).reshape(plan.shape)


def _searched(along: FloatArray, plan: PicturePlan, noise: FloatArray) -> float:
    """Return how far the frame reaches on one axis, by two searches with noisy counts."""
    lengths = np.sort(np.abs(along))
    half = plan.n / 2
    if plan.pure:
        middle = drawn(lengths, _PURE_OCTAVES, half, plan.octave, noise[:1])[0]
        return float(drawn(lengths, middle * _PURE_STRETCH, plan.rank, plan.fine, noise[1:])[0])
    octaves: FloatArray = np.ldexp(1.0, np.arange(-OCTAVES, OCTAVES))[None]
    first, second = noise[:OCTAVE_COUNTS], noise[OCTAVE_COUNTS:]
    middle = climb(lengths, octaves, half, plan.octave * first[None])[0]
    return float(climb(lengths, middle * _STRETCH[None], plan.rank, plan.fine * second[None])[0])


def variances_along(eigenvalues: FloatArray, law: FreeNoise, count: int) -> FloatArray:
    """Return the variance to be expected along the first directions of a released matrix.

    Of a lone component theta that is seen at K(1/theta) the released direction keeps the overlap
    -K'(1/theta)/theta^2 (`dpviz.sampling.limits`); the mean variance is added for all the others.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Released, descending.
    law : FreeNoise
    count : int
    """
    theta = debiased(eigenvalues[:count], law)
    mean = max(float(eigenvalues.mean()) - law.mean, law.spread / len(eigenvalues))
    along: FloatArray = theta * law.lone_overlap(theta) + mean
    return along


def frame_from(
    plan: PicturePlan, eigenvalues: FloatArray | None, law: FreeNoise | None
) -> tuple[bool, FloatArray]:
    """Return whether directions alone are shown, and how far a frame that costs nothing reaches.

    Parameters
    ----------
    plan : PicturePlan
        Whose frame is no search's.
    eigenvalues : ndarray of shape (d,) or None
        Released, descending, where the frame follows from them; so does the next.
    law : FreeNoise or None
        Of the noise on them.
    """
    if plan.frame != DISK:
        assert eigenvalues is not None
        assert law is not None
        if eigenvalues[plan.axes - 1] > law.edges[1]:
            return False, WIDE * np.sqrt(variances_along(eigenvalues, law, plan.axes))
    return True, np.full(plan.axes, DISK_EDGE)


def publish(
    rows: FloatArray,
    codes: Codes | None,
    directions: FloatArray,
    plan: PicturePlan,
    noise: PictureNoise,
    index: int,
    eigenvalues: FloatArray | None = None,
    law: FreeNoise | None = None,
) -> Picture:
    """Return one published picture.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    codes : ndarray of int, shape (n,), or None
        Labels; read only where the plan tells labels apart.
    directions : ndarray of shape (d, k)
        Released.
    plan : PicturePlan
        With cells.
    noise : PictureNoise
    index : int
        Which draw of the noise.
    eigenvalues : ndarray of shape (d,), optional
        Released with the directions, where the frame follows from them.
    law : FreeNoise, optional
        Of the noise on them.
    """
    scree = None
    if plan.variances is not None:
        scree = bought(rows, directions, plan.variances, noise.scree[index], plan.radius)
    elif plan.released and eigenvalues is not None and law is not None:
        scree = of_matrix(eigenvalues, law)
    disk, frame = False, np.empty(0)
    if plan.frame != SEARCHED:
        disk, frame = frame_from(plan, eigenvalues, law)
    along: FloatArray = places(rows, directions, disk=disk)
    present: NDArray[np.bool_] = np.any(rows != 0, axis=1)
    if plan.frame == SEARCHED:
        searches = noise.searches[index]
        frame = np.array(
            [_searched(along[present, axis], plan, searches[axis]) for axis in range(plan.axes)]
        )
    if plan.options.form == ELLIPSES:
        frame = _ROUND * frame
    frame = frame if disk else np.minimum(frame, plan.radius)
    labels = codes if codes is not None and plan.kinds > 1 else np.zeros(len(rows), dtype=np.intp)
    exact = exact_answers(along, labels, present, frame, plan)
    noisy = exact + plan.noise * noise.at(index, plan.shape)
    if plan.options.form == SPARSE:
        noisy = np.where((exact > 0) & (noisy > plan.threshold), noisy, 0.0)
    return Picture(plan, frame, disk, noisy, scree)
