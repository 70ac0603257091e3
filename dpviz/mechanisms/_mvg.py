"""The precision budget of the matrix-variate Gaussian mechanism, as its paper states it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpviz.core.params import choice
from dpviz.core.problem import Budget, Problem, Relation

TAILS: Mapping[str, str] = {
    "published": "zeta, as published",
    "tight": "sqrt(zeta), which the same tail bound allows",
}


def tail_param() -> Any:
    """Declare which tail bound of the noise's norm the theorem uses."""
    return choice(
        "published",
        TAILS,
        label="Tail",
        help="Bound on the noise's norm in the theorem. The published bound uses zeta. The tight "
        "bound uses the root of zeta, as Laurent and Massart bound the squared norm.",
        examples=("tight",),
    )


def harmonic(r: int, power: float = 1.0) -> float:
    """Return the sum of i^-power for i from 1 to r."""
    total: float = (1.0 / np.arange(1, r + 1, dtype=np.float64) ** power).sum()
    return float(total)


def zeta(entries: int, delta: float, tail: str) -> float:
    """Return the paper's zeta for a matrix of ``entries``, or its root for the tight tail.

    zeta = 2 sqrt(-mn ln delta) - 2 ln delta + mn bounds the squared Frobenius
    norm of mn standard normals with probability 1 - delta (Laurent and Massart
    2000); the theorem's beta needs the norm.
    """
    log = math.log(delta)
    bound = 2 * math.sqrt(-entries * log) - 2 * log + entries
    return math.sqrt(bound) if tail == "tight" else bound


def precision_of_theorem(
    rows: int,
    columns: int,
    budget: Budget,
    *,
    largest: float,
    sensitivity: float,
    theorem: str,
    tail: str,
) -> float:
    """Return B, the bound of Theorem 2 or 3 on the product of precision norms.

    Parameters
    ----------
    rows, columns : int
        Shape (m, n') of the query.
    budget : Budget
        The budget; its delta must be above 0.
    largest : float
        Gamma, the supremum of the query's Frobenius norm.
    sensitivity : float
        The query's l2 sensitivity s2.
    theorem : {"2", "3"}
        The theorem; 3 needs a symmetric positive semi-definite query and equal covariances.
    tail : {"published", "tight"}

    Returns
    -------
    float
        (-beta + sqrt(beta^2 + 8 alpha epsilon))^2 / (4 alpha^2), with omega in place of alpha in
        Theorem 3. The code avoids cancellation at small epsilon.

    Source
    ------
    Chanyaswad et al. 2018, Theorems 2 and 3.
    """
    r = min(rows, columns)
    h = harmonic(r)
    bound = zeta(rows * columns, budget.delta, tail)
    if theorem == "3":
        alpha = 4 * h * largest * sensitivity
        beta = 2 * math.sqrt(r) * bound * h * sensitivity
    else:
        alpha = (h + harmonic(r, 0.5)) * largest**2 + 2 * h * largest * sensitivity
        beta = 2 * (rows * columns) ** 0.25 * bound * h * sensitivity
    root = 4 * budget.epsilon / (beta + math.sqrt(beta**2 + 8 * alpha * budget.epsilon))
    return root**2


def covariance_sensitivity(problem: Problem) -> float:
    """Return s2 of A: on the box the paper's 2R^2/n (replace), else the exact value.

    The paper bounds ||vv' - ww'|| by the triangle inequality, for replaced rows in a box. The paper
    does not treat zero-out or the ball.
    """
    replace = problem.relation is Relation.REPLACE
    if problem.domain.kind == "box":
        return (2.0 if replace else 1.0) * problem.domain.radius**2 / problem.n
    return (math.sqrt(2) if replace else 1.0) / problem.n
