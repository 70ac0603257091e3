"""Outcomes, formulas of captured variance, and summaries of metrics."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.release import Release


class PicturedReleases(Protocol):
    """Metrics of the published charts in a batch of releases."""

    @property
    def fidelity(self) -> FloatArray:
        """Shape (size,)."""

    @property
    def class_picture(self) -> FloatArray | None:
        """Shape (size,); None without at least two labels."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """A batch of releases with the moments that they estimate.

    Attributes
    ----------
    reference : SecondMoment
        Reference moment, with which results are compared.
    moment : SecondMoment
        Moment that the mechanism saw; it differs from ``reference`` if rows were bounded.
    release : Release
    each : ndarray of shape (size, d, d) or None
        Moments that the mechanism saw in each repetition, if the preparation is simulated too.
    pictured : PicturedReleases or None
        Published charts of the rows, if any.
    """

    reference: SecondMoment
    moment: SecondMoment
    release: Release
    each: FloatArray | None = None
    pictured: PicturedReleases | None = None

    @property
    def seen(self) -> FloatArray:
        """Moment that the mechanism saw, shape (d, d), or (size, d, d) if repetitions differ."""
        return self.moment.A if self.each is None else self.each

    @property
    def k(self) -> int:
        """Number of released components."""
        return int(self.release.components.shape[-1])

    @cached_property
    def noise(self) -> FloatArray | None:
        """Released matrices minus the exact matrix, shape (size, d, d), or None."""
        matrix = self.release.matrix
        return None if matrix is None else matrix - self.seen

    @cached_property
    def captured_each(self) -> FloatArray:
        """Variance of the data along each released direction, shape (size, k)."""
        V = self.release.components
        captured: FloatArray = np.einsum("tij,tij->tj", V, self.reference.times(V))
        return captured

    @cached_property
    def angles(self) -> FloatArray:
        """Principal angles to the true top k, radians, ascending, shape (size, k)."""
        return principal_angles(self.reference.top(self.k), self.release.components)


def principal_angles(true: FloatArray, released: FloatArray) -> FloatArray:
    """Return the principal angles between subspaces, in radians, ascending.

    Parameters
    ----------
    true : ndarray of shape (d, k)
    released : ndarray of shape (size, d, k)
        Bases of the two subspaces, both with orthonormal columns.

    Returns
    -------
    ndarray of shape (size, k), in [0, pi/2]

    Notes
    -----
    Cosines lose small angles to rounding and sines lose right angles; each function is used where
    it is accurate (Bjorck and Golub 1973).
    """
    overlap = true.T @ released
    cosines = np.linalg.svd(overlap, compute_uv=False)
    # Project the released space out of the true space: the singular values are then the sines.
    sines = np.linalg.svd(released - true @ overlap, compute_uv=False)[..., ::-1]
    angles: FloatArray = np.where(
        # Compute the angle from the sine below 45 degrees, and from the cosine above.
        cosines > math.sqrt(0.5),
        np.arcsin(np.minimum(sines, 1)),
        np.arccos(np.minimum(cosines, 1)),
    )
    return angles


def optimum(reference: SecondMoment, k: int) -> float:
    """Return the variance that the best k components capture."""
    return float(reference.eigenvalues[:k].sum())


def chance_share(reference: SecondMoment, k: int) -> float:
    """Return the expected captured share of a uniform random k-dimensional subspace.

    E tr(U'AU) = (k/d) tr A, since E UU' = (k/d) I for uniform U; the share is 1 at k = d and for a
    spectrum without structure, such as of rows that are all 0.
    """
    d, best = len(reference.eigenvalues), optimum(reference, k)
    return k / d * reference.total / best if best > 0 else 1.0


def nothing_to_recover(chance: float) -> bool:
    """Return whether every subspace captures the same variance, up to rounding.

    All subspaces capture the same variance at k = d and for a spectrum without structure.

    Parameters
    ----------
    chance : float
        Captured share of a random subspace, from `chance_share`.
    """
    return 1 - chance < 1e-6


def recovery_of(share: FloatArray | float, chance: float) -> FloatArray | float:
    """Return recovery from a captured share: 0 is chance, 1 is exact PCA.

    Parameters
    ----------
    share : float or ndarray
        Captured share, relative to the best k components.
    chance : float
        Captured share of a random subspace, from `chance_share`; below 1.
    """
    return (share - chance) / (1 - chance)


def share_at_recovery(recovery: float, chance: float) -> float:
    """Return the captured share for a recovery: the inverse of `recovery_of`."""
    return chance + recovery * (1 - chance)


def chance_distance(d: int, k: int) -> float:
    """Return the root mean squared projection distance of a uniform random subspace.

    E||VV' - UU'||_F^2 = 2k - 2 E tr(VV'UU') and E UU' = (k/d) I for uniform U.
    """
    return math.sqrt(2 * k * (1 - k / d))


def farthest_distance(d: int, k: int) -> float:
    """Return the largest projection distance of two k-dimensional subspaces."""
    # If k is above d/2, two subspaces of dimension k share at least k - (d - k) directions.
    return math.sqrt(2 * min(k, d - k))


@dataclass(frozen=True)
class Metric:
    """A utility metric of releases.

    Attributes
    ----------
    key : str
        Name of the metric in results.
    label : str
        Name on pages.
    help : str
        Meaning of the metric, in one sentence.
    better : str
        Better direction: ``higher``, ``lower`` or ``neither``.
    needs : str
        Data that the metric needs: ``subspace`` (always available), ``matrix`` or ``picture``.
    unit : str
        Unit of the metric in words; empty for a ratio.
    upper : callable
        A function from (d, k) to the largest possible value, which may be infinite.
    compute : callable
        A function from an `Outcome` to values of shape (size,), or to None if it does not apply.
    lower : float
        The smallest possible value; minus infinity if it depends on the data.
    place : int
        Position in lists, so that a new metric does not move others.
    """

    key: str
    label: str
    help: str
    better: str
    needs: str
    unit: str
    upper: Callable[[int, int], float]
    compute: Callable[[Outcome], FloatArray | None]
    lower: float
    place: int

    @property
    def share(self) -> bool:
        """Whether the metric is a share of at most 1, shown in per cent on axes."""
        return self.upper is one


def one(d: int, k: int) -> float:
    """Return the upper limit of a share."""
    return 1.0


def unlimited(d: int, k: int) -> float:
    """Return infinity, the upper limit of an unbounded metric."""
    return math.inf


Compute = Callable[[Outcome], FloatArray | None]


def metric(
    label: str,
    *,
    better: str,
    place: int = 10_000,
    upper: Callable[[int, int], float] = unlimited,
    needs: str = "subspace",
    unit: str = "",
    lower: float = 0.0,
) -> Callable[[Compute], Metric]:
    """Turn a function of an outcome into a metric, with the name as key and docstring as help.

    If passed to `compare` or `sweep` as ``metrics``, the metric is measured by that call alone. In
    a module of `dpviz.core.metrics`, in a file that ``--plugin`` names, or behind an entry point of
    the group ``dpviz.metrics``, the metric appears in results, tables, sweeps, goals and pages.

    Parameters
    ----------
    label : str
        Name on pages.
    better : {"higher", "lower", "neither"}
    place, upper, needs, unit, lower
        The same fields as in `Metric`.

    Returns
    -------
    callable
        A decorator of a function from an `Outcome` to one value a release, or to None.

    See Also
    --------
    mechanism : Makes a mechanism of a function.
    compare : Measures mechanisms by every metric.

    Examples
    --------
    >>> import dpviz
    >>> @dpviz.metric("first angle", better="lower", unit="radians")
    ... def first_angle(outcome):
    ...     "Smallest principal angle to the true components."
    ...     return outcome.angles[:, 0]
    >>> first_angle.key, first_angle.help
    ('first_angle', 'Smallest principal angle to the true components.')
    >>> found = dpviz.compare("iris", mechanisms="gaussian", trials=5, metrics=[first_angle])
    >>> bool(found.table()["first_angle"].item() > 0)
    True
    """

    def made(compute: Compute) -> Metric:
        key, help = str(getattr(compute, "__name__", "")), inspect.getdoc(compute) or ""
        return Metric(key, label, help, better, needs, unit, upper, compute, lower, place)

    return made


@dataclass(frozen=True)
class Summary:
    """Mean of the simulated releases, its standard error, and the central 95 %."""

    mean: float
    se: float
    low: float
    high: float


def summarise(values: FloatArray) -> Summary:
    """Return the summary of a metric over simulated releases.

    ``low`` and ``high`` are the 2.5 % and 97.5 % quantiles of the releases, not a confidence
    interval of the mean. With one release the standard error is not a number.
    """
    # Divide by n - 1, because the mean comes from the same values.
    se = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    low, high = np.quantile(values, (0.025, 0.975))
    return Summary(float(values.mean()), se, float(low), float(high))
