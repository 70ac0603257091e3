"""How far one person can move what is released, by a search and by what is drawn.

No formula of dpviz is used: neighbouring rows are searched, the statistic that is released is
evaluated on them, and its distance is in units of the noise that is really drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.parts import GaussianPart, LaplacePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._base import AdditiveMechanism

_SAMPLES = 40_000


@cache
def noise_variances(mechanism: AdditiveMechanism, d: int) -> tuple[float, ...]:
    """Return the variance of each upper-triangle entry of the standard noise.

    Measured on 40,000 draws and rounded to a quarter. The standard error of a variance is at most
    sqrt(5/40,000) = 1.1 % of it (Laplace; Gaussian 0.7 %), so 0.125 is more than 6 standard errors
    for variances up to 1.8 and, for Laplace noise of variance 2, still 5.6.
    """
    domain = Domain.ball(d)
    problem = Problem(10, d, 1, Relation.REPLACE, domain)
    noise = mechanism.standard_noise(problem, Draws.batch(generator(2, "law", d), _SAMPLES))
    rows, columns = np.triu_indices(d)
    packed = noise[:, rows, columns]
    covariance = packed.T @ packed / _SAMPLES
    rounded = np.round(4 * np.diag(covariance)) / 4
    # Independent entries: correlations are within 6.1/sqrt(N) = 0.031 of zero.
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale) - np.eye(len(scale))
    if np.abs(correlation).max() > 0.031 or np.abs(np.diag(covariance) - rounded).max() > 0.13:
        raise LookupError(f"{mechanism.text} draws dependent entries; it needs its own account")
    return tuple(float(value) for value in rounded)


@cache
def worst_pair(
    kind: str, d: int, relation: Relation, norm: int, weights: tuple[float, ...]
) -> float:
    """Return the largest weighted norm of the upper triangle of D = vv' - ww' that a search finds.

    Starts are random rows, corners, coordinate vectors and their halves; each climbs by random
    steps that shrink, moving one row or both. What comes back is attained, so it is never above
    the true sensitivity.
    """
    rng = generator(4, "pairs", kind, d, str(relation), norm)
    upper = np.triu_indices(d)
    weight = np.asarray(weights)

    def inside(rows: FloatArray) -> FloatArray:
        if kind == "box":
            return np.clip(rows, -1, 1)
        drawn: FloatArray = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
        return drawn

    def size(v: FloatArray, w: FloatArray) -> FloatArray:
        moved = (v[:, :, None] * v[:, None, :] - w[:, :, None] * w[:, None, :])[:, *upper]
        measured: FloatArray = np.linalg.norm(moved * weight, ord=norm, axis=1)
        return measured

    corners = rng.choice([-1.0, 1.0], (40, d))
    coordinates = np.eye(d)[rng.integers(d, size=40)]
    starts = np.concatenate([corners, coordinates, rng.standard_normal((40, d))])
    v = inside(starts * (2.0 if kind == "ball" else 1.0))
    w = inside(starts[rng.permutation(120)] * 2.0) * (relation is Relation.REPLACE)
    if relation is Relation.REPLACE:
        # Two coordinate vectors, and two corners that agree in half of their signs.
        halves = np.where(np.arange(d) < d // 2, -1.0, 1.0)
        v = np.concatenate([v, inside(np.array([np.eye(d)[0], np.ones(d)]))])
        w = np.concatenate([w, inside(np.array([np.eye(d)[1], halves]))])
    best = size(v, w)
    for step in np.geomspace(1.0, 1e-4, 400):
        move = step * rng.standard_normal((2, *v.shape))
        single = rng.integers(d, size=len(v))[:, None] == np.arange(d)
        move *= np.where(rng.random(len(v))[:, None] < 0.5, single, True)
        v_next = inside(v + move[0])
        w_next = inside(w + move[1]) if relation is Relation.REPLACE else w
        value = size(v_next, w_next)
        better = value > best
        v[better], w[better], best[better] = v_next[better], w_next[better], value[better]
    return float(best.max())


@dataclass(frozen=True)
class Searched:
    """What a search found, in the norm of the noise that is drawn, in units of A.

    Attributes
    ----------
    declared : float
        The sensitivity that the part states, for the noise that is drawn at the calibrated scale.
    attained : float
        That of the worst pair found.
    scale : float
        Of the noise that is drawn.
    """

    declared: float
    attained: float
    scale: float


def searched(mechanism: AdditiveMechanism, problem: Problem, budget: Budget) -> Searched | None:
    """Return the search for a mechanism with one Gaussian or Laplace part, or None for others."""
    calibration = mechanism.calibrate(problem, budget)
    if len(calibration.parts) != 1:
        return None
    (part,) = calibration.parts
    kind, d, scale = problem.domain.kind, problem.d, calibration.scale
    if isinstance(part, GaussianPart):
        stds = np.sqrt(np.asarray(noise_variances(mechanism, d)))
        norm, stated = 2, part.std
    elif isinstance(part, LaplacePart):
        stds = np.sqrt(np.asarray(noise_variances(mechanism, d)) / 2)  # Lap(b) has variance 2 b^2
        norm, stated = 1, part.scale
    else:
        return None
    found = worst_pair(kind, d, problem.relation, norm, tuple((1 / stds).tolist())) / problem.n
    return Searched(part.sensitivity * scale / stated, found, scale)
