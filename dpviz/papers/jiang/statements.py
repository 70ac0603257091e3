"""Jiang, Xie and Zhang 2016: definitions, guarantees and lemmas, each with its own test."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpviz.accounting.gaussian import delta_of
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.by_statement import Drawn, StatementsExperiment
from dpviz.papers.jiang._shared import LAPLACE, WISHART
from dpviz.papers.measurements import Point
from dpviz.sampling.ensembles import goe, wishart
from dpviz.simulation.bounds import ppca_sample_size, wishart_sample_size

SPENT = "epsilon spent over epsilon claimed"
DELTA = "delta that a test shows"
LOSS = "privacy loss over epsilon"
OVER = "exact delta over the delta claimed"
RATIO = "ratio"
OVERLAP = "least overlap"
SHARE = "share of releases"
WORK = "multiplications over k d^2"
BOUND = "largest multiple of the bound"
SIDE = "side of the equation"
SULQ, AG = parse_variant("sulq"), parse_variant("analyze_gauss")
HERE, SOURCE = "a replaced row", "a row set to zero"
DIMENSIONS = (2, 10, 40)
PANELS = [f"d = {d}" for d in DIMENSIONS]
DELTAS = ("1e-05", "0.01")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 7.0, 9.0, 10.0)
_BUDGET = Budget(1.0, 1e-6)
_RHO, _ETA, _GAP = 0.9, 0.05, 0.2


def _problem(relation: Relation = Relation.REPLACE) -> Problem:
    return Problem(10_000, 100, 1, relation, Domain.ball(100))


def _accounts(draws: int, rng: np.random.Generator) -> Drawn:
    """Return three mechanisms' used share of epsilon; AG under both neighbouring relations."""

    def share(mechanism: Mechanism, relation: Relation) -> float:
        spent = mechanism.spent(_problem(relation), _BUDGET)
        assert spent is not None
        return spent.epsilon / _BUDGET.epsilon

    return {
        Point("", LAPLACE.label, SPENT): share(LAPLACE, Relation.REPLACE),
        Point("", SULQ.label, SPENT): share(SULQ, Relation.REPLACE),
        Point(SOURCE, AG.label, SPENT): share(AG, Relation.ZERO_OUT),
        Point(HERE, AG.label, SPENT): share(AG, Relation.REPLACE),
    }


def _outside(draws: int, rng: np.random.Generator) -> Drawn:
    """Return how often noise minus one row's share of A is not positive semi-definite.

    With the row zeroed, the release is A - vv'/n + W. The full table's release is A plus a positive
    definite matrix, so it never differs from A by a matrix with a negative eigenvalue.
    """
    n, found = 1_000, {}
    for d, panel in zip(DIMENSIONS, PANELS, strict=True):
        problem = Problem(n, d, 1, Relation.REPLACE, Domain.ball(d))
        scale = WISHART.calibrate(problem, Budget(1.0)).scale
        noise = scale * wishart(Draws.batch(rng, draws), d, d + 1)
        # The noise has the same law after every rotation, so a row on the first axis is enough.
        noise[:, 0, 0] -= 1 / n
        least = np.linalg.eigvalsh(noise)[:, 0]
        found[Point(panel, WISHART.label, DELTA)] = (least < 0).astype(float)
    return found


def _classical(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the exact loss or delta over the claimed one, at the two classical noise scales."""
    found = {Point("", "Laplace", LOSS): _laplace_loss()}
    for text in DELTAS:
        delta = float(text)
        for epsilon in EPSILONS:
            mu = epsilon / math.sqrt(2 * math.log(1.25 / delta))
            found[Point("", text, OVER, epsilon)] = delta_of(epsilon, mu) / delta
    return found


def _laplace_loss() -> float:
    """Return the largest log ratio of two Laplace densities of scale s1/epsilon, s1 apart."""
    epsilon, shift = 1.0, 1.0
    # Beyond both centres the ratio is constant. Both centres lie well between these limits.
    places = np.linspace(-20.0, 20.0, 40_001)
    loss = (np.abs(places - shift) - np.abs(places)) * epsilon / shift
    return float(np.abs(loss).max() / epsilon)


def _points(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the variance of noise on points over Wishart noise's, along the top direction."""
    n, std = 200, 0.2  # Every row has the value 1 along the top direction.
    noise = std * rng.standard_normal((draws, n))
    on_points = np.square(1.0 + noise).sum(axis=1)
    appended = n + np.square(noise).sum(axis=1)
    ratio = np.var(on_points, ddof=1) / np.var(appended, ddof=1)
    return {Point("", "points over appended", RATIO): ratio}


def _chain(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the loss of a Markov chain that starts at the exact component and stops early.

    The chain is a random walk Metropolis sampler of exp((n epsilon/2) v'Av) on the circle, d = 2.
    Its distributions after some steps are compared for two tables that differ in one row.
    """
    n, epsilon, size = 10, 1.0, 120
    angles = np.pi * np.arange(size) / size
    laws = {}
    for axis in (0, 1):
        counts = np.array([5.0, 5.0])
        counts[axis] += 1.0
        score = (
            counts[0] / (n + 1) * np.cos(angles) ** 2 + counts[1] / (n + 1) * np.sin(angles) ** 2
        )
        density = np.exp((n + 1) * epsilon / 2 * score)
        # A move of the Metropolis chain from the row's to the column's state has this probability.
        accept = np.minimum(1.0, density[None, :] / density[:, None])
        step = np.zeros((size, size))
        for shift in (-1, 1):
            places = (np.arange(size) + shift) % size
            step[np.arange(size), places] += 0.5 * accept[np.arange(size), places]
        # After a rejected step the Metropolis chain stays in its state.
        np.fill_diagonal(step, 1 - step.sum(axis=1))
        law = np.zeros(size)
        # The chain starts at the table's exact component, because such a start leaks the table.
        law[int(np.argmax(density))] = 1.0
        laws[axis] = (law, step)
    found = {}
    for steps in (1_000, 10_000, 100_000):
        ends = [law @ np.linalg.matrix_power(step, steps) for law, step in laws.values()]
        loss = float(np.abs(np.log(ends[0]) - np.log(ends[1])).max())
        found[Point("", "chain", LOSS, float(steps))] = loss / epsilon
    return found


def _closeness(draws: int, rng: np.random.Generator) -> Drawn:
    """Return overlaps of the Wishart mechanism's first component at the stated n, with sign."""
    d = 10
    A = np.diag([_GAP, *[0.0] * (d - 1)])
    overlaps = {}
    for rho in (math.sqrt(0.5), _RHO):
        n = math.ceil(wishart_sample_size(d, 1.0, rho, _ETA, _GAP))
        problem = Problem(n, d, 1, Relation.REPLACE, Domain.ball(d))
        noise = WISHART.calibrate(problem, Budget(1.0)).scale * wishart(
            Draws.batch(rng, draws), d, d + 1
        )
        # The exact component is the first axis, so the overlap is a component's first entry.
        top = np.linalg.eigh(A + noise)[1][:, 0, -1]
        overlaps[rho] = np.where(rng.random(draws) < 0.5, top, -top)
    return {
        Point("", "rho = sqrt(2)/2", OVERLAP): np.abs(overlaps[math.sqrt(0.5)]).min(),
        Point("", "signed", SHARE): (overlaps[_RHO] >= _RHO).astype(float),
    }


def _sizes(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the ratio of both stated n over ln d, the rivals' rates, and the work."""
    found = {}
    for d in (10, 40, 160, 640, 2_560):
        seven = wishart_sample_size(d, 1.0, _RHO, _ETA, _GAP)
        eight = ppca_sample_size(d, 1.0, _RHO, _ETA, 2 * _GAP, _GAP)
        found[Point("", "Theorem 7 over Theorem 8", RATIO, float(d))] = seven / eight / math.log(d)
        # d (d + 1) Gaussian numbers are multiplied with themselves. The components take k d^2 more.
        k = 2
        found[Point("", "published", WORK, float(d))] = (d**2 * (d + 1) + k * d**2) / (k * d**2)
        for k in (1, 4, 16):
            rate = d * math.log(d) / (k**1.5 * d * math.log(d) ** 2)
            found[Point(f"k = {k}", "d ln d over k^1.5 d ln^2 d", RATIO, float(d))] = rate
    return found


def _lemmas(draws: int, rng: np.random.Generator) -> Drawn:
    """Return how near random pairs come to the bounds of Lemmas 3 and 4; equation sides too."""
    davis, weyl, left, right = [], [], [], []
    for d in (3, 6, 12):
        for _ in range(draws // 4):
            A, W = goe(Draws.batch(rng, 2), d)
            # The size of the noise varies from almost 0 to more than the size of A.
            W = W * float(np.exp(rng.uniform(-3, 1)))
            mine, noise = np.linalg.eigh(A), np.linalg.eigvalsh(W)[::-1]
            theirs = np.linalg.eigh(A + W)
            values, moved = mine[0][::-1], theirs[0][::-1]
            k = int(rng.integers(1, d))
            gap = values[k - 1] - moved[k]
            one, two = mine[1][:, ::-1][:, :k], theirs[1][:, ::-1][:, :k]
            if gap > 0:
                apart = np.linalg.norm(one @ one.T - two @ two.T, 2)
                davis.append(float(apart * gap / np.linalg.norm(W, 2)))
            ends = np.maximum((moved - values) / noise[0], (moved - values) / noise[-1])
            # If the noise has eigenvalues of one sign only, one of both bounds says nothing.
            weyl.append(float(ends.max()) if noise[0] > 0 > noise[-1] else 0.0)
            overlap = float((one[:, 0] @ two[:, 0]) ** 2)
            left.append(
                float(
                    np.linalg.norm(np.outer(one[:, 0], one[:, 0]) - np.outer(two[:, 0], two[:, 0]))
                )
            )
            right.append(2 - 2 * overlap)
    return {
        Point("", "Lemma 3", BOUND): max(davis),
        Point("", "Lemma 4", BOUND): max(weyl),
        Point("", "left", SIDE): np.mean(left),
        Point("", "right", SIDE): np.mean(right),
    }


def _zero(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the error of always publishing 0, if half of a table's rows have one direction."""
    d, found = 10, {}
    for n in (1_000, 10_000, 100_000):
        rows = rng.standard_normal((n, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        # The true answer is large, so that the answer 0 is as wrong as n allows.
        rows[: n // 2] = np.eye(d)[0]
        A = rows.T @ rows
        found[Point("", "always 0", RATIO, float(n))] = _beyond(A, np.zeros((d, d)), 1, 1.0)
    return found


def _beyond(A: FloatArray, released: FloatArray, k: int, epsilon: float) -> float:
    """Return a rank k matrix's error beyond lambda_(k+1), over d/epsilon."""
    error = float(np.linalg.norm(A - released, 2))
    return (error - float(np.linalg.eigvalsh(A)[-k - 1])) / (len(A) / epsilon)


class JiangStatements(StatementsExperiment):
    """Each statement, tested on the smallest case that decides it."""

    looks: ClassVar = (
        _accounts, _outside, _classical, _points, _chain, _closeness, _sizes, _lemmas, _zero,
    )  # fmt: skip
    draws = (100, 2_000)
