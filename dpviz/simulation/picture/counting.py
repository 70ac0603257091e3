"""The only code of pictures that reads rows: counts positions along directions, with noise.

All code here but `exact_answers`, `_searched` and `bought` is public or post-processing. Numbers
are doubles (idealised numerics). A row's cell is a function of that row and of released values, so
floats cost no privacy there. Counts are whole numbers that a discrete sampler can make safe.
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
"""Each row's label, as an index into the declared labels; shape (n,)."""

WIDE = 2.3  # A frame from released variances ends at this many stds.
DISK_EDGE = 0.98
_ROUND = 1.2  # A disk needs a wider frame, because it lacks a square's corners.
_STRETCH: FloatArray = 2.0 ** (np.arange(2**FINE_COUNTS) / 4 - 0.75)
_PURE_OCTAVES: FloatArray = 2.0 ** (np.arange(-64 * OCTAVES, 64 * OCTAVES) / 64)
_PURE_STRETCH: FloatArray = 2.0 ** (np.arange(24) / 8)


@dataclass(frozen=True, eq=False)
class PictureNoise:
    """Standard noise of a batch of pictures, sampled once per stream, scaled for every epsilon.

    Attributes
    ----------
    searches : ndarray of shape (size, axes, counts)
        Standard normals, or uniform numbers if all is pure.
    numbers : ndarray of shape (size, kinds, ...)
        Noise for the largest number of cells of a plan; smaller plans use the first numbers.
    scree : ndarray of shape (size, counts)
        The same numbers as in `dpviz.simulation.picture.scree.bought`.
    """

    searches: FloatArray
    numbers: FloatArray
    scree: FloatArray

    @classmethod
    def drawn(cls, plan: PicturePlan, draws: Draws) -> PictureNoise:
        """Sample the noise that any plan of the same options, axes and purity needs."""
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
        """Return the numbers of one trial in a given shape."""
        places: tuple[int | slice, ...] = (index, *(slice(size) for size in shape))
        numbers: FloatArray = self.numbers[places]
        return numbers


@dataclass(frozen=True, eq=False)
class Picture:
    """One published picture: all of it is safe to publish.

    Attributes
    ----------
    plan : PicturePlan
    frame : ndarray of shape (axes,)
        The picture extends from minus to plus this value along each released direction.
    disk : bool
        Whether positions are in units of each row's own length, so that only directions are shown;
        otherwise in units of the row-norm bound.
    noisy : ndarray of shape ``plan.shape``
        Noisy counts by label and cell, or noisy moments by label.
    scree : Scree or None
        Variances, from the released matrix or added; None if there are no variances.
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
    """Return the positions of rows in a picture, shape (n, axes); zero rows belong to nobody.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    directions : ndarray of shape (d, k)
    disk : bool
        The same values as in `Picture`.
    """
    along: FloatArray = rows @ directions[:, :2]
    if disk:
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        along /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return along


def exact_answers(
    along: FloatArray, codes: Codes, here: NDArray[np.bool_], frame: FloatArray, plan: PicturePlan
) -> FloatArray:
    """Return the exact numbers to which noise is added; they are not private.

    Parameters
    ----------
    along : ndarray of shape (n, axes)
        Positions from `places`.
    codes : ndarray of int, shape (n,)
        Labels, as indices below ``plan.kinds``.
    here : ndarray of bool, shape (n,)
        Mask of the rows that are not zero.
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
    # Count rows outside the frame in the nearest cell of the frame.
    cells = np.floor((np.clip(along, -1.0, 1.0) + 1) * (plan.cells / 2)).astype(np.int64)
    return counts_in(cells, codes, plan).astype(np.float64)


def counts_in(cells: NDArray[np.int64], codes: Codes, plan: PicturePlan) -> NDArray[np.int64]:
    """Return how many rows are in each cell of each label, shape ``plan.shape``.

    Parameters
    ----------
    cells : ndarray of int, shape (m, axes)
        Cells from 0; the end of an axis belongs to its last cell.
    codes : ndarray of int, shape (m,)
        Labels as indices below ``plan.kinds``.
    plan : PicturePlan
    """
    flat = codes.astype(np.int64)
    for axis in range(plan.axes):
        flat = flat * plan.cells + np.minimum(cells[:, axis], plan.cells - 1)
    counts = np.bincount(flat.astype(np.intp), minlength=math.prod(plan.shape))
    return counts.astype(np.int64).reshape(plan.shape)


def _searched(along: FloatArray, plan: PicturePlan, noise: FloatArray) -> float:
    """Return the reach of the frame on one axis, by two searches with noisy counts."""
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
    """Return the expected variances along the first directions of a released matrix.

    For a single component theta that is seen at K(1/theta), the released direction keeps the
    overlap -K'(1/theta)/theta^2 (`dpviz.sampling.limits`). The mean variance is added for all other
    components.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Released eigenvalues, descending.
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
    """Return whether only directions are shown, and the reach of a frame found without a search.

    Parameters
    ----------
    plan : PicturePlan
        A plan whose frame is found without a search.
    eigenvalues : ndarray of shape (d,) or None
        Released eigenvalues, descending; needed, like ``law``, if the frame follows from them.
    law : FreeNoise or None
        Law of the noise on the eigenvalues.
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
        Labels; read only if the plan distinguishes them.
    directions : ndarray of shape (d, k)
        Released.
    plan : PicturePlan
        A plan with cells.
    noise : PictureNoise
    index : int
        Index of the noise sample.
    eigenvalues : ndarray of shape (d,), optional
        Eigenvalues released with the directions, if the frame follows from them.
    law : FreeNoise, optional
        Law of the noise on the eigenvalues.
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
