"""Chaudhuri, Sarwate and Sinha 2012: definitions, and how the theorems depend on rho."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.by_statement import Drawn, StatementsExperiment
from dpviz.papers.chaudhuri._shared import ALPHA, BUDGET, DATA_SETS, PPCA, SULQ
from dpviz.papers.measurements import Point
from dpviz.simulation.bounds import ppca_sample_size, pure_lower_sample_size

SPENT = "epsilon spent over alpha"
NORM = "largest Frobenius norm of A"
SIDE = "side of the equation"
NEED, TIMES = "people needed", "ratio"
FULL_SULQ = parse_variant("sulq")
RHOS = (0.8, 0.9, 0.95, 0.99, 0.999)
_D, _GAP, _ETA, _REST = 10, 0.2, 0.05, 0.01
_HARD_GAP = 0.5


def _accounts(draws: int, rng: np.random.Generator) -> Drawn:
    data = DATA_SETS["kddcup99"]
    problem = Problem(data.n, data.d, 1, Relation.REPLACE, Domain.ball(data.d))

    def share(mechanism: Mechanism, budget: Budget) -> float:
        spent = mechanism.spent(problem, budget)
        assert spent is not None
        return spent.epsilon / ALPHA

    return {
        Point("", SULQ.label, SPENT): share(SULQ, BUDGET),
        Point("", FULL_SULQ.label, SPENT): share(FULL_SULQ, BUDGET),
        Point("", PPCA.label, SPENT): share(PPCA, Budget(ALPHA)),
    }


def _identities(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the largest norm of second moments of unit rows, and both sides of Eq. 4."""
    norms, left, right = [1.0], [], []
    for d in (2, 5, 20):
        for _ in range(200):
            rows = rng.standard_normal((30, d)) * 0.5 ** np.arange(d)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            A = rows.T @ rows / len(rows)
            norms.append(float(np.linalg.norm(A)))
            values, vectors = np.linalg.eigh(A)
            v = rng.standard_normal(d)
            v /= np.linalg.norm(v)
            left.append(float(v @ A @ v))
            overlaps = (v @ vectors) ** 2
            right.append(float(values[-1] * overlaps[-1] + values[:-1] @ overlaps[:-1]))
    line = np.zeros((30, 4))
    line[:, 0] = 1.0
    norms.append(float(np.linalg.norm(line.T @ line / 30)))
    return {
        Point("", "any rows", NORM): max(norms[1:]),
        Point("", "left", SIDE): np.mean(left),
        Point("", "right", SIDE): np.mean(right),
    }


def need(rho: float, gap: float = _GAP, d: int = _D) -> float:
    """Return the n at which PPCA's overlap is at least rho with probability 1 - eta, exactly.

    If all other eigenvalues are equal, the density of the squared overlap t is proportional to
    exp((n alpha/2) gap t) t^(-1/2) (1 - t)^((d - 3)/2).
    """
    from scipy import integrate, optimize

    def beyond(n: float) -> float:
        rate = n * ALPHA / 2 * gap

        def density(t: float) -> float:
            return float(math.exp(rate * (t - 1)) * t**-0.5 * (1 - t) ** ((d - 3) / 2))

        places = [1 - 10 / rate, 1 - 1 / rate, 0.5]
        whole = integrate.quad(density, 0, 1, points=[p for p in places if 0 < p < 1], limit=200)[0]
        inside = [p for p in places if rho**2 < p < 1]
        tail = integrate.quad(density, rho**2, 1, points=inside or None, limit=200)[0]
        return float(tail / whole) - (1 - _ETA)

    return float(optimize.brentq(beyond, 10.0, 1e8, xtol=1e-3))


def _correlation(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the number of people needed and the number stated, by 1/(1 - rho)."""
    found = {}
    for rho in RHOS:
        x = 1 / (1 - rho)
        needed = need(rho)
        found[Point("", PPCA.label, NEED, x)] = needed
        stated = ppca_sample_size(_D, ALPHA, rho, _ETA, _REST + _GAP, _REST)
        lower = pure_lower_sample_size(40, ALPHA, rho, _HARD_GAP)
        if lower is not None:
            found[Point("", "Theorem 4 over the need", TIMES, x)] = lower / need(rho, _HARD_GAP, 40)
        # Both theorems use the same d and the same gap here, so their ratio depends only on rho.
        found[Point("", "Theorem 3 over Theorem 4", TIMES, x)] = stated * math.sqrt(1 - rho)
    return found


class ChaudhuriStatements(StatementsExperiment):
    """One measurement for each statement of the paper; see the paper's text file."""

    looks: ClassVar = (_accounts, _identities, _correlation)
