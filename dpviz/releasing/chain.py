r"""Simulate whole releases: the released mean, the released count and the noisy matrix.

Statements about a release use simulated releases, before it (`dpviz.releasing.predicting`, from the
rows) and after it (`dpviz.releasing.reading`, from its file). Each simulated release takes all
noise from one named stream; continuous noise replaces discrete noise.

An interval from B simulated releases uses order statistics. Of B + 1 numbers in random order, the
last lies below the r-th smallest of the others with a chance of r/(B + 1), whatever their law.

The error e of a released mean is common to all rows. If no row is longer than the row-norm bound,
the moment about the released mean is :math:`\Sigma + ee'`, whose second term has a known
distribution. If rows are clipped to a length, e turns every row. The size and direction of the turn
depend on the rows, which no release reveals. Then dpviz states nothing about a single component.
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
    """Size of the noise on the sum of rows, on their count and on X'X, in row-norm bounds.

    Each size over n multiplies noise from a distribution of scale 1. Only `off` is a standard
    deviation, for X'X off the diagonal.
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
        """Return the noise size of a planned release."""
        law = Law.NORMAL if options.stated_delta > 0 else Law.LAPLACE
        relation, rows = Relation(options.relation), schema.rows_a_person or 1
        share = options.mean_share if options.center == PRIVATE else 0.0
        of_count = COUNT_SHARE if schema.person else 0.0
        left = 1 - share - of_count - options.picture
        # The number of bits of the grid cancels, so any number gives the same result.
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
        """Return the noise size of a finished release, from its file."""
        noise, beside = release["noise"], {}
        law, unit = Law(noise["law"]), OTHER_WEIGHT * 4.0 ** noise["grid_bits"]
        for side in release.get("beside", ()):
            beside[side["name"]] = side["scale"] / unit
        entry = noise["scale"] / (unit if law is Law.NORMAL else unit / OTHER_WEIGHT)
        return cls(law, beside.get(MEAN, 0.0), beside.get(COUNT, 0.0), entry)

    def edge(self, d: int, people: int, how: Transform | None) -> float:
        """Return the largest step between eigenvalues that all noise together may have made.

        Parameters
        ----------
        d : int
        people : int
            Approximate number of rows that the release uses.
        how : Transform or None
            Bounds on rows around the released centre; None if the centre was stated.

        Returns
        -------
        float
            Step in squared row-norm bounds. The step is the edge of the matrix's noise spectrum
            plus, if the mean is released, the squared length of the mean's error, which 95 in 100
            releases do not exceed. Infinite if the error turned rows that are clipped to a length.
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
    """Yield k + 1 (at most d) eigenvalues and k components of simulated releases, descending.

    Parameters
    ----------
    moment : callable
        Function that returns the moment about the resulting centre, shape (d, d), from noise of
        shape (d + 1,): on the sum of rows and, at its end, on their count, both over ``people``.
    size : Size
    d, people, k : int
    draws : range
        Numbers of the simulated releases; every epsilon and every pipeline uses the same noise.
    """
    shown = min(k + 1, d)
    for at in draws:
        check_cancelled()
        vector, matrix = _standard(size.law, d, at)
        beside = np.append(size.mean * vector[:d], size.count * vector[d]) / people
        noisy = moment(beside) + size.entry * matrix / people
        # Only the largest eigenvalues are computed. LAPACK returns them in ascending order.
        heights, bases = scipy.linalg.eigh(noisy, subset_by_index=(d - shown, d - 1))
        yield heights[::-1], bases[:, ::-1][:, :k]


def below(draws: FloatArray, share: float = CONFIDENCE) -> Any:
    """Return the limit, along axis 0, that a new value exceeds with chance at most 1 - share.

    Parameters
    ----------
    draws : ndarray of shape (B, ...)
    share : float
        The chance is exactly 1 - share if share (B + 1) is whole.
    """
    rank = min(math.ceil(share * (len(draws) + 1) - 1e-9), len(draws))
    return np.sort(draws, axis=0)[rank - 1]


def between(draws: FloatArray) -> tuple[Any, Any]:
    """Return limits that contain a new value with a chance of 95 in 100, with equal tails."""
    tail = (1 + CONFIDENCE) / 2
    return -below(-draws, tail), below(draws, tail)


def turned_to(truth: FloatArray, components: FloatArray) -> FloatArray:
    """Return components with signs matched to ``truth``, because a sign is arbitrary."""
    signs = np.sign((components * truth).sum(0))
    return np.asarray(components * np.where(signs == 0, 1, signs))


def _standard(law: Law, d: int, draw: int) -> tuple[FloatArray, FloatArray]:
    """Return standard noise: d + 1 numbers for the rows' sum and count, and a matrix for X'X."""
    rng = generator(0, "a release that may be", draw)
    if law is Law.NORMAL:
        # A matrix plus its transpose has the std 1 off the diagonal and the std sqrt 2 on it.
        square = rng.standard_normal((d, d)) / math.sqrt(2)
        return rng.standard_normal(d + 1), square + square.T
    upper = np.triu(rng.laplace(size=(d, d)))
    return rng.laplace(size=d + 1), upper + np.triu(upper, 1).T
