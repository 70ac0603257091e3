r"""A whole release drawn again: the mean that it centres on, its count, its matrix.

What is said of a release, before it (`dpviz.releasing.predicting`, from the rows) or after it
(`dpviz.releasing.reading`, from its file), is counted over releases that are drawn here, all noise
of each from one named stream. Noise is continuous in the place of discrete.

An interval from B of them is closed by order statistics: of B + 1 numbers in random order the last
one lies below the r-th smallest of the others with a chance of r/(B + 1), whatever their law.

The error e of a released mean is common to all rows. Where no row is longer than the row bound, the
moment about the mean that was released is :math:`\Sigma + ee'`, whose second part has a known law.
Where rows are cut to a length, e turns every row, and by how much in which direction is a matter of
how rows lie, which no release tells. Then nothing is said of a component by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.entries import PRIVATE
from dpviz.core.problem import Budget, Relation
from dpviz.core.seeding import generator
from dpviz.preparation.transform import Transform
from dpviz.releasing.grid import OTHER_WEIGHT
from dpviz.releasing.noise import (
    COUNT,
    COUNT_SHARE,
    MEAN,
    Law,
    mean_side,
    sensitivity_l1,
    sensitivity_l2,
)
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.schema import Schema
from dpviz.simulation.bounds import noise_edge

CONFIDENCE = 0.95
_BITS = 20


@dataclass(frozen=True)
class Size:
    """How large noise is: on the sum of rows, on their count and on X'X, in row bounds.

    Each over n is what is added; of a law of scale 1, but for `off`, which is the standard
    deviation on X'X off the diagonal.
    """

    law: Law
    mean: float
    count: float
    entry: float

    @property
    def off(self) -> float:
        """Standard deviation of X'X's noise off the diagonal; a Laplace has variance 2."""
        return self.entry if self.law is Law.NORMAL else math.sqrt(2) * self.entry

    @classmethod
    def of(cls, options: ReleaseOptions, schema: Schema, d: int) -> Size:
        """Return the noise of a release that could be made."""
        law = Law.NORMAL if options.stated_delta > 0 else Law.LAPLACE
        relation, rows = Relation(options.relation), schema.rows_a_person or 1
        share = options.mean_share if options.center == PRIVATE else 0.0
        of_count = COUNT_SHARE if schema.person else 0.0
        left = 1 - share - of_count - options.picture
        # whatever the grid is: it cancels
        length = mean_side(law, relation, d, _BITS, rows, share=share).sensitivity
        of_mean = length / (OTHER_WEIGHT << (2 * _BITS))
        if law is Law.NORMAL:
            mu = mu_of(Budget(options.epsilon, options.stated_delta))
            entry = rows * sensitivity_l2(relation, _BITS) / (OTHER_WEIGHT << (2 * _BITS))

            def scaled(length: float, part: float) -> float:
                return length / (mu * math.sqrt(part)) if part else 0.0
        else:
            entry = rows * sensitivity_l1(relation, d, _BITS) / 4.0**_BITS

            def scaled(length: float, part: float) -> float:
                return length / (options.epsilon * part) if part else 0.0

        return cls(law, scaled(of_mean, share), scaled(rows, of_count), scaled(entry, left))

    @classmethod
    def of_release(cls, release: Mapping[str, Any]) -> Size:
        """Return the noise of a release that was made, from its file."""
        noise, beside = release["noise"], {}
        law, unit = Law(noise["law"]), OTHER_WEIGHT * 4.0 ** noise["grid_bits"]
        for side in release.get("beside", ()):
            beside[side["name"]] = side["scale"] / unit
        entry = noise["scale"] / (unit if law is Law.NORMAL else unit / OTHER_WEIGHT)
        return cls(law, beside.get(MEAN, 0.0), beside.get(COUNT, 0.0), entry)

    def edge(self, d: int, people: int, how: Transform | None) -> float:
        """Return how long a step between eigenvalues all noise together may have made.

        Parameters
        ----------
        d : int
        people : int
            About as many rows as count.
        how : Transform or None
            How rows are bounded around the centre that is released; None where it was stated.

        Returns
        -------
        float
            In squared row bounds: the noise edge of the matrix and, where the mean is released,
            the squared length of its error, which 95 of 100 do not pass. Infinite where the error
            turned rows that are cut to a length.
        """
        of_matrix = noise_edge(self.off / people, d)
        if how is None:
            return of_matrix
        farthest = np.maximum(how.high - how.center, how.center - how.low) / how.scale
        if how.unit or float(np.linalg.norm(farthest)) > 1:
            return math.inf
        errors = [np.square(_standard(self.law, d, at)[0][:d]).sum() for at in range(199)]
        return of_matrix + float(below(np.array(errors))) * (self.mean / people) ** 2


def simulated(
    moment: Callable[[FloatArray], FloatArray],
    size: Size,
    d: int,
    people: int,
    k: int,
    draws: range,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield k + 1 eigenvalues, or all d, and k components of releases; both descending.

    Parameters
    ----------
    moment : callable
        From the noise on the sum of rows and, at its end, on their count, both over ``people``,
        shape (d + 1,), to the moment about the centre that follows; shape (d, d).
    size : Size
    d, people, k : int
    draws : range
        Which ones; every epsilon and every pipeline meets the same noise.
    """
    shown = min(k + 1, d)
    for at in draws:
        check_cancelled()
        vector, matrix = _standard(size.law, d, at)
        beside = np.append(size.mean * vector[:d], size.count * vector[d]) / people
        noisy = moment(beside) + size.entry * matrix / people
        # the first ones alone: LAPACK orders them ascending
        heights, bases = scipy.linalg.eigh(noisy, subset_by_index=(d - shown, d - 1))
        yield heights[::-1], bases[:, ::-1][:, :k]


def below(draws: FloatArray, share: float = CONFIDENCE) -> Any:
    """Return what one more draw exceeds with a chance of at most 1 - share, along the first axis.

    Parameters
    ----------
    draws : ndarray of shape (B, ...)
    share : float
        The chance is exactly that where share (B + 1) is whole.
    """
    rank = min(math.ceil(share * (len(draws) + 1) - 1e-9), len(draws))
    return np.sort(draws, axis=0)[rank - 1]


def between(draws: FloatArray) -> tuple[Any, Any]:
    """Return where one more draw lies with a chance of 95 in 100, as much above as below."""
    tail = (1 + CONFIDENCE) / 2
    return -below(-draws, tail), below(draws, tail)


def turned_to(truth: FloatArray, components: FloatArray) -> FloatArray:
    """Return components turned to the side of others, as none has a sign of its own."""
    signs = np.sign((components * truth).sum(0))
    return np.asarray(components * np.where(signs == 0, 1, signs))


def _standard(law: Law, d: int, draw: int) -> tuple[FloatArray, FloatArray]:
    """Return one draw of standard noise: d + 1 numbers for the rows' sum and count, and X'X's."""
    # one stream a draw, so that every epsilon and every pipeline meets the same noise
    rng = generator(0, "a release that may be", draw)
    if law is Law.NORMAL:
        # with its transpose: standard deviation 1 off the diagonal, sqrt 2 on it
        square = rng.standard_normal((d, d)) / math.sqrt(2)
        return rng.standard_normal(d + 1), square + square.T
    upper = np.triu(rng.laplace(size=(d, d)))
    return rng.laplace(size=d + 1), upper + np.triu(upper, 1).T
