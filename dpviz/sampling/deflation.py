"""Exact Bingham directions when every repetition has its own spectrum.

Mechanisms that release directions one after the other remove each direction before the next. So
from the second direction on no two repetitions share a matrix. `bingham_each` samples one direction
per spectrum; `Complements` holds the matrices restricted to the remaining subspaces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import Draws
from dpviz.sampling.bingham import IntArray, first_accepted, scaled, unit_rows


def _best_shifts(double_gaps: FloatArray) -> FloatArray:
    """Return, for each row of 2a with least entry 0, the beta > 0 with sum 1/(beta + 2a) = 1."""
    shifts = np.ones(len(double_gaps))
    climbing = np.ones(len(double_gaps), dtype=np.bool_)
    for _ in range(200):
        inverse = 1.0 / (shifts[:, None] + double_gaps)
        total = inverse.sum(axis=1)
        # Newton's method on 1/total climbs without overshooting. A row that has converged does not
        # move any more, so its bytes do not depend on the other rows of the batch.
        step = np.where(climbing, total * (total - 1.0) / np.square(inverse).sum(axis=1), 0.0)
        shifts += step
        climbing &= step > 1e-12 * shifts
        if not climbing.any():
            break
    return shifts


def bingham_each(eigenvalues: FloatArray, draws: Draws) -> FloatArray:
    """Return one exact sample x per row, with density exp(x' diag(row) x) on the sphere.

    Parameters
    ----------
    eigenvalues : ndarray of shape (size, q)
        Eigenvalues, finite, q >= 1, in any order.
    draws : Draws

    Returns
    -------
    ndarray of shape (size, q)
        Unit vectors as rows, in the order of the eigenvalues given.

    Raises
    ------
    InvalidSetting
        If eigenvalues are not finite, or do not form one row per repetition.

    Source
    ------
    Kent, Ganeiber and Mardia 2018; see `dpviz.sampling.bingham` for the envelope.
    """
    if (
        eigenvalues.ndim != 2
        or len(eigenvalues) != draws.size
        or eigenvalues.shape[1] < 1
        or not np.isfinite(eigenvalues).all()
    ):
        raise InvalidSetting(
            "eigenvalues", "one row of finite numbers for each sample", f"shape {eigenvalues.shape}"
        )
    q = eigenvalues.shape[1]
    double_gaps = 2.0 * (eigenvalues.max(axis=1, keepdims=True) - eigenvalues)
    scale = 1.0 / np.sqrt(_best_shifts(double_gaps)[:, None] + double_gaps)
    # Acceptance of a concentrated law is about sqrt(2/(e q)). The block size depends on q alone, so
    # that each repetition uses its stream in the same way, whatever the others need.
    block = 1 + math.ceil(1.4 * math.sqrt(math.e * q / 2.0))

    def propose(streams: Draws, todo: IntArray) -> tuple[FloatArray, FloatArray]:
        return scaled(streams.normal(block, q), scale[todo][:, None, :])

    return unit_rows(first_accepted(draws, (q,), block, propose)[0])


@dataclass(frozen=True, eq=False)
class Complements:
    """A symmetric matrix restricted to one subspace per repetition, in diagonal form.

    Attributes
    ----------
    values : ndarray of shape (size, m)
        Eigenvalues of the restricted matrices.
    basis : ndarray of shape (size, d, m) or (1, d, m)
        Orthonormal eigenvectors, as vectors of the whole space.
    """

    values: FloatArray
    basis: FloatArray

    @classmethod
    def whole(cls, values: FloatArray, vectors: FloatArray, size: int) -> Complements:
        """Return the unrestricted matrix, given its eigenvalues (d,) and eigenvectors (d, d)."""
        return cls(np.repeat(values[None], size, axis=0), vectors[None])

    def lift(self, x: FloatArray) -> FloatArray:
        """Return vectors of the whole space (size, d), given coordinates (size, m)."""
        vectors: FloatArray = (self.basis @ x[:, :, None])[:, :, 0]
        return vectors

    def without(self, x: FloatArray) -> Complements:
        """Return the restriction to the orthogonal complement of unit coordinates (size, m).

        The reflection H = I - b w w' with w = x + sign(x_1) e_1 and b = 1/(1 + |x_1|) turns e_1
        into -sign(x_1) x. So its other columns are a basis of the complement. H diag(values) H
        differs from the diagonal by rank 2, so only its diagonalisation costs m^3.
        """
        sign = np.where(x[:, 0] < 0, -1.0, 1.0)
        w = x.copy()
        w[:, 0] += sign
        b = 1.0 / (1.0 + np.abs(x[:, 0]))
        products = self.values * w
        energy = (products * w).sum(axis=1)
        side = (b[:, None] * products - (0.5 * b * b * energy)[:, None] * w)[:, 1:]
        w_rest = w[:, 1:]
        matrix = -(side[:, :, None] * w_rest[:, None, :])
        matrix += matrix.transpose(0, 2, 1).copy()
        m = self.values.shape[1]
        diagonal = np.arange(m - 1)
        matrix[:, diagonal, diagonal] += self.values[:, 1:]
        values, turn = np.linalg.eigh(matrix)
        basis = (
            self.basis[:, :, 1:]
            - (self.basis @ (b[:, None] * w)[:, :, None]) * (w_rest[:, None, :])
        )
        return Complements(values, basis @ turn)
