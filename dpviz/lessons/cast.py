"""Who plays in lessons: mechanisms, by what they say of themselves, and the invented class.

The class is a cloud in space, seen from where it is widest: that view is its PCA picture.
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


def _used(mechanism: Mechanism, domain: Domain) -> float:
    """Return the epsilon that a claim which holds makes use of, 0 where it does not hold."""
    problem = Problem(_N, _D, 1, Relation.REPLACE, domain)
    if mechanism.why_not(problem, _BUDGET) is not None:
        return 0.0
    spent = mechanism.spent(problem, _BUDGET)
    if spent is None or mechanism.judged(problem, _BUDGET, spent).verdict not in _GOOD:
        return 0.0
    return spent.epsilon


@cache
def plain() -> AdditiveMechanism:
    """Return the additive mechanism with a delta that uses its whole budget."""
    found = [
        mechanism
        for mechanism in (cls() for cls in all_mechanisms().values())
        if mechanism.info.featured
        and mechanism.info.guarantee == "approximate"
        and isinstance(mechanism, AdditiveMechanism)
    ]
    return max(found, key=lambda mechanism: _used(mechanism, Domain.ball(_D)))


@cache
def shaped() -> Mechanism:
    """Return the mechanism with a delta that follows the allocation and uses its whole budget."""
    found = [
        mechanism
        for mechanism in (cls() for cls in all_mechanisms().values())
        if mechanism.follows_allocation
        and mechanism.info.guarantee == "approximate"
        and mechanism.info.release == "matrix"
    ]
    # on the ball no shape of noise follows the shares
    return max(found, key=lambda mechanism: _used(mechanism, Domain.box(_D)))


def pure() -> AdditiveMechanism:
    """Return the additive mechanism without a delta whose claim is proved."""
    return repaired_cone()


def published() -> AdditiveMechanism:
    """Return the additive mechanism whose support moves with the data."""
    return moving_cone()


_REACH = 2.5
"""Hours of the row bound that the class is prepared with; a longer row is shortened to it."""

_IN_THE_DISK = ("sport", "phone")


@dataclass(frozen=True, eq=False)
class Cloud:
    """The class round its own mean, and its exact components.

    Attributes
    ----------
    features : tuple of str
    rows : ndarray of shape (people, 3)
        Hours a day less their mean; the last is hers.
    components : ndarray of shape (3, 3)
        In columns, the one along which the rows spread most first.
    kept : float
        The share of the variance that a picture of the first two shows.
    """

    features: tuple[str, ...]
    rows: FloatArray
    components: FloatArray
    kept: float


def cloud() -> Cloud:
    """Return the class as a cloud."""
    features, rows = the_class()
    # exact, as the class is invented: no release is behind this picture
    centred = rows - rows.mean(axis=0)
    _, lengths, turned = np.linalg.svd(centred, full_matrices=False)
    spread = np.square(lengths)
    return Cloud(features, centred, turned.T, float(spread[:2].sum() / spread.sum()))


def in_the_disk() -> FloatArray:
    """Return two features of the class as a release sees them, shape (people, 2), hers last.

    Centred on what is typical, shortened to the row bound, in units of it: each row is in the unit
    disk, and nothing about this preparation comes from the rows.
    """
    features, rows = the_class()
    chosen = [features.index(name) for name in _IN_THE_DISK]
    centred = (rows[:, chosen] - TYPICAL[chosen]) / _REACH
    shortened: FloatArray = centred / np.maximum(1.0, np.linalg.norm(centred, axis=1))[:, None]
    return shortened
