"""Xu, Yang and Bai 2019: equations, guarantees and side remarks, each with its own test."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.datasets import load
from dpviz.mechanisms import parse_variant
from dpviz.papers.by_statement import Drawn, StatementsExperiment
from dpviz.papers.measurements import Point
from dpviz.papers.xu import _shared as _xu
from dpviz.papers.xu._shared import LIP, LOP
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

EPSILON = 1.0
EPSILON_PANEL = f"epsilon {EPSILON:g}"
ADVANTAGE = "advantage of a test over the most that epsilon allows"
BY_SCORE = "share of its noise that a score draws"
SPENT = "epsilon spent over epsilon claimed"
RATIO = "ratio"
SIDE = "side of the equation"
SHARE = "share of releases"
LARGEST, SMALLEST = "largest multiple", "smallest multiple"
_SHAPES = ((1_000, 20), (476, 166), (5_000, 21))
SHAPES = [f"n = {n:,}, d = {d}" for n, d in _SHAPES]
TABLES = ["wine", "digits"]
EVEN = "equal eigenvalues"
MORE_TABLES = [*TABLES, EVEN]
AG = parse_variant("analyze_gauss")
_DIMENSIONS = (5, 20, 80)
_GRID = ((10, 2), (100, 50), (100, 99), (1_000, 10), (1_000, 999))
_K = 2
_MAY = math.tanh(EPSILON / 2)
"""The largest advantage of any test between neighbours under (epsilon, 0): (e - 1)/(e + 1)."""


def _scores(draws: int, seed: int) -> Drawn:
    problem = Problem(1_000, 20, 1, Relation.REPLACE, Domain.ball(20))
    parts = parse_variant("mod_sulq").calibrate(problem, Budget(EPSILON, 1e-6)).parts
    # The parts that a mechanism declares show whether it adds noise to a matrix or uses a score.
    share = sum(not isinstance(part, GaussianPart) for part in parts) / len(parts)
    return {Point("", "MOD-SULQ", BY_SCORE): share}


def _spent(draws: int, seed: int) -> Drawn:
    found = {}
    for panel, (n, d) in zip(SHAPES, _SHAPES, strict=True):
        problem = Problem(n, d, 1, Relation.REPLACE, Domain.ball(d))
        spent = LIP.spent(problem, Budget(EPSILON))
        assert spent is not None
        found[Point(panel, LIP.label, SPENT)] = spent.epsilon / EPSILON
    return found


def _axes(*counts: int) -> FloatArray:
    """Return rows along the first of four axes, with the given number of rows on each axis."""
    found: FloatArray = np.repeat(np.eye(4)[: len(counts)], counts, axis=0)
    return found


def _advantages(draws: int, seed: int) -> Drawn:
    """Return by how much a test says yes more often for one table than for its neighbour."""
    zeroed = _axes(6, 5)
    zeroed[0] = 0.0
    pairs: dict[str, tuple[FloatArray, FloatArray, Callable[[FloatArray, int], bool]]] = {
        # The first row is zero in one of the two tables only.
        "Z1": (
            _axes(6, 5),
            zeroed,
            lambda rows, trial: bool(np.any(_z1(rows, trial, seed)[0] != 0)),
        ),
        # One replaced row moves the top component from the first axis to the second axis.
        "Z2": (
            _axes(5, 6),
            _axes(6, 5),
            lambda rows, trial: bool(np.abs(_z2(rows, trial, seed)[:, 0]).max() < 1e-9),
        ),
    }
    found = {}
    for name, (one, other, test) in pairs.items():
        # The two tables must be neighbours; otherwise the test would prove nothing.
        assert np.any(one != other, axis=1).sum() == 1
        yes = [
            # Both tables use the same random streams, so only the changed row makes a difference.
            np.array([float(test(rows, trial)) for trial in range(draws)])
            for rows in (one, other)
        ]
        found[Point(EPSILON_PANEL, name, ADVANTAGE)] = (yes[0] - yes[1]) / _MAY
    problem = Problem(1_000, 20, 1, Relation.REPLACE, Domain.ball(20))
    spent = AG.spent(problem, Budget(EPSILON, 1e-6))
    assert spent is not None
    # To first order, a claim of (epsilon, delta) allows delta more advantage than epsilon alone.
    most = math.tanh(spent.epsilon / 2) + spent.delta
    found[Point(EPSILON_PANEL, "AG", ADVANTAGE)] = most / _MAY
    return found


def _top(matrix: FloatArray, k: int) -> FloatArray:
    vectors: FloatArray = np.linalg.eigh(matrix)[1][:, ::-1][:, :k]
    return vectors


def _z1(rows: FloatArray, trial: int, seed: int, k: int = 1) -> FloatArray:
    """Return the table that Algorithm 1 would publish."""
    n, d = rows.shape
    domain, moment = Domain.ball(d), SecondMoment(rows.T @ rows / n, n)
    columns = tuple(f"x{place}" for place in range(d))
    measured = Measured("rows", columns, domain, 1.0, moment, moment, 0, (), ())
    problem = Problem(n, d, k, Relation.REPLACE, domain)
    cell = Cell(LIP, problem, Budget(EPSILON), seed, range(trial, trial + 1))
    frame = evaluate(cell, measured).release.components[0]
    table: FloatArray = rows @ frame @ frame.T
    return table


def _noise(rows: FloatArray, trial: int, seed: int, k: int = 1) -> FloatArray:
    n, d = rows.shape
    rng = generator(seed, "reproduce", "xu", "statements", LOP.key, trial)
    noise: FloatArray = rng.laplace(scale=2 * d / EPSILON, size=(n, k))
    return noise


def _z2(rows: FloatArray, trial: int, seed: int, k: int = 1) -> FloatArray:
    """Return the table that Algorithm 2 would publish."""
    frame = _top(rows.T @ rows, k)
    table: FloatArray = (rows @ frame + _noise(rows, trial, seed, k)) @ frame.T
    return table


def _ratios(draws: int, seed: int) -> Drawn:
    """Return N1/N2 for d < n, and Laplace noise over Gaussian noise on X'X, by d."""
    found = {
        Point("", "d < n", RATIO, float(place)): _variances(n, d)
        for place, (n, d) in enumerate(_GRID)
    }
    budget = Budget(EPSILON, 1e-6)
    for d in _DIMENSIONS:
        laplace = math.sqrt(2) * 2 * d / EPSILON
        gaussian = math.sqrt(2 * math.log(1.25 / budget.delta)) / EPSILON
        found[Point("", "Laplace over Gaussian", RATIO, float(d))] = laplace / gaussian
    return found


def _variances(n: int, d: int, k: int = 1) -> float:
    """Return the ratio of the summed variances of E1 and E2, from the calibrated scales."""
    problem = Problem(n, d, k, Relation.REPLACE, Domain.ball(d))
    inside, outside = (m.calibrate(problem, Budget(EPSILON)).scale for m in (LIP, LOP))
    return (d * inside) ** 2 / (n * k * outside**2)


def _tables() -> dict[str, FloatArray]:
    rows = {}
    for name in TABLES:
        moment = _xu.prepared(load(name))
        known = moment.moment_with_rows.rows
        assert known is not None
        rows[name] = known
    # If all directions have equal variance, no subspace is better than the released one.
    rows[EVEN] = np.tile(np.eye(4), (5, 1))
    return rows


def _errors(draws: int, seed: int) -> Drawn:
    """Return both sides of Eq. 29, and how the releases compare with Eq. 31, 34 and 35."""
    found: Drawn = {}
    for name, rows in _tables().items():
        values = np.linalg.eigvalsh(rows.T @ rows)[::-1]
        frame = _top(rows.T @ rows, _K)
        left = float(np.linalg.norm(rows @ frame @ frame.T - rows) ** 2)
        right = float(values[_K:].sum() / values.sum() * np.linalg.norm(rows) ** 2)
        found |= {Point(name, "left", SIDE): left, Point(name, "right", SIDE): right}
        strict, bounds, etas = [], [], []
        for trial in range(min(draws, 200)):
            first = float(np.linalg.norm(_z1(rows, trial, seed, _K) - rows))
            second = float(np.linalg.norm(_z2(rows, trial, seed, _K) - rows))
            noise = float(np.linalg.norm(_noise(rows, trial, seed, _K)))
            least = math.sqrt(left)
            # A value above the bound only by rounding does not count as above it.
            strict.append(float(first > least * (1 + 1e-9)))
            bounds.append(second / (least + noise))
            etas.append(first / second * (1 + noise / least))
        found[Point(name, "strictly", SHARE)] = np.array(strict)
        found[Point(name, "LOP over bound", LARGEST)] = max(bounds)
        found[Point(name, "eta over bound", SMALLEST)] = min(etas)
    return found


class XuStatements(StatementsExperiment):
    """Each statement, tested on the smallest table that decides it."""

    looks: ClassVar = (_scores, _spent, _advantages, _ratios, _errors)
    draws = (50, 1_000)

    def source(self, seed: int, what: str) -> int:
        """Return the seed; the mechanisms name their own random streams."""
        return seed
