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
    """Metrics of the published charts of a batch of releases."""

    @property
    def fidelity(self) -> FloatArray:
        """Shape (size,)."""

    @property
    def class_picture(self) -> FloatArray | None:
        """Shape (size,); None without at least two labels."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """A batch of releases beside what they estimate.

    Attributes
    ----------
    reference : SecondMoment
        What results are compared with.
    moment : SecondMoment
        What the mechanism saw; it differs where rows were bounded.
    release : Release
    each : ndarray of shape (size, d, d) or None
        What the mechanism saw in each draw, where a preparation is drawn as well.
    pictured : PicturedReleases or None
        What is published of the rows beside the directions.
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
        """Released matrices minus the exact one, shape (size, d, d), or None without matrices."""
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
        Both with orthonormal columns.

    Returns
    -------
    ndarray of shape (size, k), in [0, pi/2]

    Notes
    -----
    Cosines lose small angles to rounding and sines lose right angles; each is
    used where it is accurate (Bjorck and Golub 1973).
    """
    overlap = true.T @ released
    cosines = np.linalg.svd(overlap, compute_uv=False)
    # what the true space leaves of the released one has the sines as singular values
    sines = np.linalg.svd(released - true @ overlap, compute_uv=False)[..., ::-1]
    angles: FloatArray = np.where(
        # below 45 degrees by the sine, above by the cosine
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

    E tr(U'AU) = (k/d) tr A, since E UU' = (k/d) I for uniform U; it is 1 at k = d and for a
    spectrum without structure, as that of rows that are all 0 is.
    """
    d, best = len(reference.eigenvalues), optimum(reference, k)
    return k / d * reference.total / best if best > 0 else 1.0


def nothing_to_recover(chance: float) -> bool:
    """Return whether every subspace captures the same variance, up to rounding.

    So it is at k = d and for a spectrum without structure.

    Parameters
    ----------
    chance : float
        From `chance_share`.
    """
    return 1 - chance < 1e-6


def recovery_of(share: FloatArray | float, chance: float) -> FloatArray | float:
    """Return recovery from a captured share: 0 is chance, 1 is exact PCA.

    Parameters
    ----------
    share : float or ndarray
        Captured share of the optimum.
    chance : float
        From `chance_share`; below 1.
    """
    return (share - chance) / (1 - chance)


def share_at_recovery(recovery: float, chance: float) -> float:
    """Return the captured share at which a recovery is reached: the inverse of `recovery_of`."""
    return chance + recovery * (1 - chance)


def chance_distance(d: int, k: int) -> float:
    """Return the root mean squared projection distance of a uniform random subspace.

    E||VV' - UU'||_F^2 = 2k - 2 E tr(VV'UU') and E UU' = (k/d) I for uniform U.
    """
    return math.sqrt(2 * k * (1 - k / d))


def farthest_distance(d: int, k: int) -> float:
    """Return the largest projection distance of two k-dimensional subspaces."""
    # above d/2 two subspaces must share k - (d - k) directions
    return math.sqrt(2 * min(k, d - k))


@dataclass(frozen=True)
class Metric:
    """One measure of utility.

    Attributes
    ----------
    key : str
        Name in results.
    label : str
        Name on pages.
    help : str
        What it means, in one sentence.
    better : str
        ``higher``, ``lower`` or ``neither``.
    needs : str
        ``subspace`` (always there), ``matrix`` or ``picture``.
    unit : str
        Unit in words; empty for a ratio.
    upper : callable
        (d, k) to the largest possible value, infinite if there is none.
    compute : callable
        Outcome to values of shape (size,), or None where it does not apply.
    lower : float
        The smallest possible value; minus infinity where it depends on the data.
    place : int
        Where it stands in lists; adding one moves nobody.
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
        """Whether the metric is a share of at most 1, which axes show in per cent."""
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
    """Register a function of an outcome as a metric: its name is the key, its docstring the help.

    Given to `compare` or `sweep` as ``metrics`` it is measured by that call alone.
    In a module of `dpviz.core.metrics`, in a file that ``--plugin`` names, or behind an entry point
    of the group ``dpviz.metrics`` it is in results, tables, sweeps, goals and pages.

    Parameters
    ----------
    label : str
        Name on pages.
    better : {"higher", "lower", "neither"}
    place, upper, needs, unit, lower
        As in `Metric`.

    Returns
    -------
    callable
        Takes a function of an `Outcome` to one value a draw, or None where it does not apply.

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
    """Mean, its standard error, and the central 95 % of the draws."""

    mean: float
    se: float
    low: float
    high: float


def summarise(values: FloatArray) -> Summary:
    """Return the summary of one metric over its draws.

    ``low`` and ``high`` are the 2.5 % and 97.5 % quantiles of the draws: where
    releases fall, not a confidence interval of the mean. With one draw the
    standard error is not a number.
    """
    # n - 1: the mean is estimated from the same draws
    se = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    low, high = np.quantile(values, (0.025, 0.975))
    return Summary(float(values.mean()), se, float(low), float(high))
