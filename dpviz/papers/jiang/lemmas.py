"""Jiang, Xie and Zhang 2016: Lemmas 1 and 2, definiteness, running time and rival bounds."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import measure
from dpviz.core.problem import Budget
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.jiang._shared import DIFFERENCE, LAPLACE, WISHART
from dpviz.papers.measurements import Measurements, Point
from dpviz.preparation.bounding import prepare
from dpviz.preparation.load import planned
from dpviz.sampling.ensembles import wishart
from dpviz.simulation.bounds import wishart_tail
from dpviz.simulation.cells import evaluate
from dpviz.simulation.compare import run_cell
from dpviz.simulation.simulate import Cell

TAIL, SENSITIVITY, DEFINITE, TIME, RIVALS = (
    "Lemma 1",
    "Lemma 2",
    "positive semi-definite",
    "running time",
    "rival bounds",
)
TAIL_D = (2, 10, 50)
ETAS = (0.5, 0.1, 0.01)
BEYOND = "1 where the largest eigenvalue exceeds the bound"
SEARCH_D = (2, 3, 4, 6, 10)
L1, NUCLEAR = "l1 norm of the change of nA", "nuclear norm of the change of nA"
SEARCHES = 2_000
TABLES = ("wine", "breast_cancer", "digits")
NEGATIVE = "1 where a released matrix has a negative eigenvalue"
TIME_D = (20, 40, 80, 160, 320)
WORK = "multiplications over k d^2, subspace without forming the noise"
STEPS = "steps of subspace iteration"
K, TOLERANCE = 2, 1e-6
RIVAL_D, RIVAL_KS, EACH, N = 60, (1, 2, 4, 8, 16), 0.05, 10_000
SHARE = "share of the optimum"
RIVAL = parse_variant("kapralov_talwar")


class LemmaPart(Part):
    """One check for one dimension, table or mechanism."""

    what: str = ""
    d: int = 0
    name: str = ""
    draws: int = 0


class JiangLemmas(Experiment):
    """Statements of the paper other than its theorems; see `info`."""

    named: ClassVar = {"d": RIVAL_D}
    pictures: ClassVar = {"rivals": (SHARE, WISHART, DIFFERENCE, RIVAL)}

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each check and dimension, table or mechanism."""
        quick = effort is Effort.QUICK
        draws = 2_000 if quick else 20_000
        parts: list[Part] = [LemmaPart("", TAIL, d, "", draws) for d in TAIL_D]
        parts += [LemmaPart("", SENSITIVITY, d) for d in SEARCH_D]
        parts += [
            LemmaPart("", DEFINITE, 0, f"{table} {mechanism.text}", 50 if quick else 400)
            for table in TABLES
            for mechanism in (WISHART, LAPLACE)
        ]
        parts += [LemmaPart("", TIME, d, "", 3 if quick else 10) for d in TIME_D]
        parts += [
            LemmaPart("", RIVALS, RIVAL_D, mechanism.text, 10 if quick else 100)
            for mechanism in (WISHART, DIFFERENCE, RIVAL)
        ]
        return parts

    def run(self, part: LemmaPart, shared: None, seed: int) -> Measurements:
        """Return the measurements of one check."""
        if part.what == TAIL:
            return _tail(part.d, part.draws, seed)
        if part.what == SENSITIVITY:
            return _sensitivities(part.d, seed)
        if part.what == DEFINITE:
            table, mechanism = part.name.split(" ")
            return _definite(table, parse_variant(mechanism), part.draws, seed)
        if part.what == TIME:
            return _work(part.d, part.draws, seed)
        return _rival(parse_variant(part.name), part.draws, seed)


# --- what is measured -------------------------------------------------------------------------


def _tail(d: int, draws: int, seed: int) -> Measurements:
    """Return whether the largest eigenvalue exceeds the bound, for each simulated W_d(d + 1, I)."""
    rng = generator(seed, "reproduce", "jiang", TAIL, d)
    tops = []
    for low in range(0, draws, 1_000):
        # Matrices are sampled a thousand at a time, to limit the memory.
        batch = Draws.batch(rng, min(1_000, draws - low))
        tops.append(np.linalg.eigvalsh(wishart(batch, d, d + 1))[:, -1])
    top = np.concatenate(tops)
    return Measurements(
        {
            Point(TAIL, f"d = {d}", BEYOND, eta): (top > wishart_tail(d, d + 1, 1.0, eta)).astype(
                float
            )
            for eta in ETAS
        }
    )


def _sensitivities(d: int, seed: int) -> Measurements:
    """Return the largest l1 and nuclear norms of vv' - ww' over pairs of unit rows."""
    rng = generator(seed, "reproduce", "jiang", SENSITIVITY, d)
    pairs = rng.standard_normal((SEARCHES, 2, d))
    # In the worst pair known for even d, each row has one value on each half of the features.
    first = np.arange(d) < d // 2
    a, b = math.cos(math.pi / 8), math.sin(math.pi / 8)
    worst = np.array([[np.where(first, a, b), np.where(first, b, -a)]])
    pairs = np.concatenate([pairs, worst])
    lengths = np.linalg.norm(pairs, axis=2, keepdims=True)
    v, w = np.moveaxis(pairs / lengths, 1, 0)
    # Replacing one unit row by another changes the sums of squares by this matrix.
    change = v[:, :, None] * v[:, None, :] - w[:, :, None] * w[:, None, :]
    entries = np.abs(change).sum(axis=(1, 2)).max()
    values = np.abs(np.linalg.eigvalsh(change)).sum(axis=1).max()
    return Measurements(
        {
            Point(SENSITIVITY, f"d = {d}", L1): np.array([float(entries)]),
            Point(SENSITIVITY, f"d = {d}", NUCLEAR): np.array([float(values)]),
        }
    )


def _definite(table: str, mechanism: Mechanism, draws: int, seed: int) -> Measurements:
    """Return whether the matrix has a negative eigenvalue, for each release."""
    settings = Settings(table=table, epsilon=1.0, k=1, seed=seed)
    measured = prepare(load(table), settings)
    cell = Cell(mechanism, measured.problem(settings), Budget(1.0), seed, range(draws))
    counts = measure(evaluate(cell, measured), ["negative_eigenvalues"])["negative_eigenvalues"]
    return Measurements(
        {Point(f"{DEFINITE}, {table}", mechanism.label, NEGATIVE): (counts > 0).astype(float)}
    )


def _work(d: int, draws: int, seed: int) -> Measurements:
    """Return the number of multiplications for the top k components of A + W, with W as factors.

    A is diagonal, applied as a full matrix, with eigenvalues that do not change with d. W = c G G',
    with G of shape (d, d + 1) and c d fixed, so that the noise is as large relative to A at every
    d.
    """
    rng = generator(seed, "reproduce", "jiang", TIME, d)
    A = np.diag(np.concatenate([[0.4, 0.2], np.zeros(d - 2)]))
    steps = []
    for _ in range(draws):
        # W is never computed: it would take d^3 multiplications, and its factors are enough.
        G = rng.standard_normal((d, d + 1)) * math.sqrt(0.005 / d)
        Q = np.linalg.qr(rng.standard_normal((d, K)))[0]
        count = 0
        while count < 1_000:
            count += 1
            P = np.linalg.qr(A @ Q + G @ (G.T @ Q))[0]
            # The motion of the plane counts, because its basis may keep turning within the plane.
            moved = math.sqrt(max(K - float(np.sum((P.T @ Q) ** 2)), 0.0))
            Q = P
            if moved < TOLERANCE:
                break
        steps.append(float(count))
    count_of_steps = np.array(steps)
    # A step multiplies k d^2 times for A Q, 2 k d (d + 1) for G(G'Q), and 2 k^2 d for the frame.
    each = K * d**2 + 2 * K * d * (d + 1) + 2 * K**2 * d
    return Measurements(
        {
            Point(TIME, "", WORK, float(d)): count_of_steps * each / (K * d**2),
            Point(TIME, "", STEPS, float(d)): count_of_steps,
        }
    )


def _rival(mechanism: Mechanism, draws: int, seed: int) -> Measurements:
    """Return the share of the optimum by k, if exactly k eigenvalues are above 0 and equal."""
    found: dict[Point, FloatArray] = {}
    for k in RIVAL_KS:
        # The table needs no rows, because only its k equal eigenvalues matter.
        measured = planned([EACH] * k + [0.0] * (RIVAL_D - k), N, f"rank {k}")
        settings = Settings(table=measured.name, epsilon=1.0, k=k, seed=seed)
        cell = Cell(mechanism, measured.problem(settings), Budget(1.0), seed, range(draws))
        values = run_cell(cell, measured, ["captured_share"]).metrics["captured_share"]
        found[Point(RIVALS, mechanism.label, SHARE, float(k))] = values
    return Measurements(found)
