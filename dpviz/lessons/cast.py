"""Mechanisms for lessons, chosen by their declared properties, and the synthetic class.

The class is a point cloud in 3-D. Its PCA projection is the view in which the cloud is widest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dpviz.auditing.exhibits import moving_cone, repaired_cone
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.datasets.builtin.school import TYPICAL, the_class
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.mechanisms._base import AdditiveMechanism

_BUDGET = Budget(1.0, 1e-6)
_N, _D = 1_000, 4
_GOOD = (Verdict.HOLDS, Verdict.LOOSE)


def _used_epsilon(mechanism: Mechanism, domain: Domain) -> float:
    """Return the epsilon that a mechanism uses if its claim holds, and 0 otherwise."""
    problem = Problem(_N, _D, 1, Relation.REPLACE, domain)
    if mechanism.why_not(problem, _BUDGET) is not None:
        return 0.0
    loss = mechanism.spent(problem, _BUDGET)
    if loss is None or mechanism.judged(problem, _BUDGET, loss).verdict not in _GOOD:
        return 0.0
    return loss.epsilon


@cache
def plain() -> AdditiveMechanism:
    """Return the additive (epsilon, delta) mechanism that uses its whole budget."""
    mechanisms = [
        mechanism
        for mechanism in (cls() for cls in all_mechanisms().values())
        if mechanism.info.featured
        and mechanism.info.guarantee == "approximate"
        and isinstance(mechanism, AdditiveMechanism)
    ]
    return max(mechanisms, key=lambda mechanism: _used_epsilon(mechanism, Domain.ball(_D)))


@cache
def shaped() -> Mechanism:
    """Return the (epsilon, delta) mechanism that follows allocations and uses its whole budget."""
    mechanisms = [
        mechanism
        for mechanism in (cls() for cls in all_mechanisms().values())
        if mechanism.follows_allocation
        and mechanism.info.guarantee == "approximate"
        and mechanism.info.release == "matrix"
    ]
    # With an L2-norm bound on rows, the noise does not depend on the allocation.
    return max(mechanisms, key=lambda mechanism: _used_epsilon(mechanism, Domain.box(_D)))


def pure() -> AdditiveMechanism:
    """Return the additive mechanism whose pure-epsilon claim is proved."""
    return repaired_cone()


def published() -> AdditiveMechanism:
    """Return the additive mechanism whose support moves with the data."""
    return moving_cone()


_REACH = 2.5
"""Row-norm bound of the class's preparation, in hours; a longer row is clipped to this length."""

_IN_THE_DISK = ("sport", "phone")


@dataclass(frozen=True, eq=False)
class Cloud:
    """The synthetic class centred on its own mean, with its exact components.

    Attributes
    ----------
    features : tuple of str
    rows : ndarray of shape (people, 3)
        Hours a day minus the mean of the class; the last row is the target.
    components : ndarray of shape (3, 3)
        Components as columns, in descending order of variance.
    kept : float
        Share of the variance that a projection on the first two components keeps.
    """

    features: tuple[str, ...]
    rows: FloatArray
    components: FloatArray
    kept: float


def cloud() -> Cloud:
    """Return the synthetic class as a 3-D point cloud."""
    features, rows = the_class()
    # This chart shows exact values, because the class is synthetic: nothing must be protected.
    deviations = rows - rows.mean(axis=0)
    _, lengths, axes = np.linalg.svd(deviations, full_matrices=False)
    spread = np.square(lengths)
    return Cloud(features, deviations, axes.T, float(spread[:2].sum() / spread.sum()))


def in_the_disk() -> FloatArray:
    """Return two prepared features of the class, shape (people, 2); the target's row is last.

    Rows are centred on typical values, divided by the row-norm bound and clipped to the unit disk.
    Nothing in this preparation depends on the rows.
    """
    features, rows = the_class()
    columns = [features.index(name) for name in _IN_THE_DISK]
    offsets = (rows[:, columns] - TYPICAL[columns]) / _REACH
    inner: FloatArray = offsets / np.maximum(1.0, np.linalg.norm(offsets, axis=1))[:, None]
    return inner
