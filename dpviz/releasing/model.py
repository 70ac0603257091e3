"""A release as a model of rows, from a fit or from a release file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dpviz.core.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class ReleasedModel:
    """Components, the centre and scale of rows, and noisy variances if they are released.

    Attributes
    ----------
    components : ndarray of shape (k, d)
    mean, scale : ndarray of shape (d,)
        Numbers that are subtracted from rows, and numbers by which rows are then divided.
    variances : ndarray of shape (k,) or None
        Variances along the components, in squared scaled units, at least 0.
    rest : float
        Mean variance along each of the other directions; 0 if there are no other directions.
    largest : float
        Largest mean variance that rows of bounded length can have.
    """

    components: FloatArray
    mean: FloatArray
    scale: FloatArray
    variances: FloatArray | None = None
    rest: float = 0.0
    largest: float = 1.0

    @classmethod
    def of_release(cls, release: Mapping[str, Any]) -> ReleasedModel:
        """Return the model of a release, from its file.

        Rows must be in units of the limits in the file's ``declared``, after logarithms.
        """
        components, declared = np.array(release["components"]), release["declared"]
        k, d = components.shape
        values = np.array(release["eigenvalues"])
        variances, rest = kept_variances(values[:k], float(values[k:].sum()), d)
        return cls(
            components,
            np.array(declared["center"]),
            np.array(declared["scale"] or [1.0] * d),
            variances,
            rest,
            declared["row_bound"] ** 2 / d,
        )

    @property
    def total(self) -> float:
        """Total variance along all directions."""
        assert self.variances is not None
        k, d = self.components.shape
        return float(self.variances.sum() + (d - k) * self.rest)

    @property
    def deviations(self) -> FloatArray:
        """Divisors for whitening; a variance of 0 after noise counts as the least above 0."""
        assert self.variances is not None
        least = self.variances[self.variances > 0].min(initial=np.inf)
        found = np.maximum(self.variances, least if np.isfinite(least) else 1.0)
        return np.asarray(np.sqrt(found))

    def transform(self, rows: Any) -> FloatArray:
        """Return coordinates of dense or sparse rows along the components; shape (n, k)."""
        stored: bool = sparse.issparse(rows)
        if stored:  # The mean is subtracted afterwards: the zeros of rows stay unstored.
            along = self.components.T / np.reshape(self.scale, (-1, 1))
            return np.asarray(rows @ along - self.mean @ along)
        return np.asarray(((rows - self.mean) / self.scale) @ self.components.T)

    def inverse_transform(self, along: FloatArray) -> FloatArray:
        """Return rows of the original space with the given coordinates; shape (n, d)."""
        return np.asarray((along @ self.components) * self.scale + self.mean)

    def covariance(self) -> FloatArray:
        """Return the covariance about the mean, in units of the table; shape (d, d)."""
        assert self.variances is not None
        return self._along(np.maximum(self.variances - self.rest, 0.0), self.rest, self.scale)

    def precision(self) -> FloatArray:
        """Return the inverse of the covariance, shape (d, d)."""
        along, rest = self._positive()
        return self._along(1 / along - 1 / rest, 1 / rest, 1 / self.scale)

    def score_samples(self, rows: FloatArray) -> FloatArray:
        """Return the log-likelihood of each row, shape (n,), under a normal distribution."""
        along, rest = self._positive()
        k, d = self.components.shape
        z = (rows - self.mean) / self.scale
        projected = z @ self.components.T
        left = np.maximum(np.square(z).sum(axis=1) - np.square(projected).sum(axis=1), 0.0)
        log_volume = np.log(along).sum() + (d - k) * math.log(rest) + 2 * np.log(self.scale).sum()
        squares = np.square(projected) @ (1 / along) + left / rest
        likelihood: FloatArray = -0.5 * (d * math.log(2 * math.pi) + log_volume + squares)
        return likelihood

    def _along(self, above: FloatArray, rest: float, scale: FloatArray) -> FloatArray:
        """Return the matrix with ``above`` plus ``rest`` along components, scaled by ``scale``."""
        matrix = (self.components.T * above) @ self.components
        matrix[np.diag_indices_from(matrix)] += rest
        return np.asarray(matrix * np.outer(scale, scale))

    def _positive(self) -> tuple[FloatArray, float]:
        """Return positive variances along the components, and along each of the other directions.

        A zero variance would make a row's likelihood unbounded. So variances below a thousandth of
        their mean are raised to that value. If all variances are 0 after noise, they become the
        largest mean variance that rows of bounded length can have.
        """
        assert self.variances is not None
        least = self.total / self.components.shape[1] / 1000 or self.largest
        rest = max(self.rest, least)
        return np.maximum(self.variances, rest), rest


def kept_variances(
    along: FloatArray, rest: float, d: int, share: float | None = None
) -> tuple[FloatArray, float]:
    """Return the variances along the leading components, and the mean of all other variances.

    Parameters
    ----------
    along : ndarray
        Noisy variances along directions, in their order; negative variances become 0.
    rest : float
        Variance of all other directions together.
    d : int
    share : float, optional
        Share of the total variance: the result has the fewest components that reach the share. By
        default, the result has all components.
    """
    reached = np.cumsum(np.maximum(along, 0.0))
    total = max(float(along.sum() + rest), float(reached[-1]))
    k = d if share is None else int(np.searchsorted(reached, share * total)) + 1
    k = min(k, len(along))
    others = (total - float(reached[k - 1])) / (d - k) if k < d else 0.0
    return np.maximum(along[:k], 0.0), others
