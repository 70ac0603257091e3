"""A small invented table with one row far out: what its own mean and bound give away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.auditing.leaks import bound_leak_table, mean_leak_table, people
from dpviz.core.arrays import FloatArray

DECLARED = {"age": 120.0, "income": 20.0, "visits": 60.0}
"""The largest value of each feature that somebody could declare beforehand."""


@dataclass(frozen=True, eq=False)
class Leak:
    """The table, what is printed of it, and what that tells.

    Attributes
    ----------
    features : tuple of str
    rows : ndarray of shape (people, features)
        Invented; the last is the one that the attacker does not know.
    axes : list of int
        The two features that a picture shows.
    mean, recovered : ndarray of shape (features,)
        The mean as printed, and the last row as computed from it and the others.
    bound_with, bound_without : float
        The longest row with the last one and with it zeroed.
    declared_bound : float
        The length of the longest row that the declared limits allow.
    """

    features: tuple[str, ...]
    rows: FloatArray
    axes: list[int]
    mean: FloatArray
    recovered: FloatArray
    bound_with: float
    bound_without: float
    declared_bound: float


def leak() -> Leak:
    """Return the example, computed."""
    features, rows = people()
    means, bounds = mean_leak_table(), bound_leak_table()["published_bound"]
    return Leak(
        features=features,
        rows=rows,
        axes=[0, 2],
        mean=means["published_mean"].to_numpy(),
        recovered=means["recovered"].to_numpy(),
        bound_with=float(bounds.iloc[0]),
        bound_without=float(bounds.iloc[1]),
        declared_bound=float(np.linalg.norm([DECLARED[name] for name in features])),
    )
