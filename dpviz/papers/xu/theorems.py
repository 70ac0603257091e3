"""Xu, Yang and Bai 2019: Lemmas 1 and 2, and Theorems 1 to 4."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.datasets import load
from dpviz.papers.by_statement import Drawn, StatementsExperiment
from dpviz.papers.measurements import Point
from dpviz.papers.xu import _shared as _xu
from dpviz.papers.xu._shared import LIP, LOP

SEARCH_D = (2, 4, 10)
SEARCHES = 2_000
ALL_ENTRIES, COLUMN_SUMS = "largest l1 norm, all entries, times n", "largest column sum, times n"
FIXED = "largest l1 norm of the change of XV_k, V_k fixed"
MOVED = "l1 norm of the change of XV_k, V_k computed"
ROWS, FEATURES, K = 1_001, 4, 1
SHAPE = (1_000, 20, 5)  # Values of n, d and k wherever they do not vary.
AXES = {"n": (250, 500, 1_000, 2_000, 4_000), "k": (2, 4, 8, 16), "d": (10, 20, 40, 80)}
POWERS = {"n": -3.0, "k": -1.0, "d": 2.0}
VARIANCES = "N1 / N2, the ratio of summed variances"
TABLES = ("wine", "breast_cancer", "digits", "waveform40")
EPSILONS = (0.1, 1.0, 10.0, 100.0, 1_000.0)
ETA = "eta = ||Z1 - X|| / ||Z2 - X||"


def _pairs(runs: int, seed: int) -> Drawn:
    """Return the largest norms of nA's change over pairs of unit rows."""
    found = {}
    for d in SEARCH_D:
        rng = generator(seed, "reproduce", "xu", "Lemma 1", d)
        pairs = rng.standard_normal((SEARCHES, 2, d))
        first = np.arange(d) < d // 2
        a, b = math.cos(math.pi / 8), math.sin(math.pi / 8)  # Worst pair of rows known for even d.
        # A random search does not reach the worst pair of rows known, so this pair is added.
        worst = np.array([[np.where(first, a, b), np.where(first, b, -a)]])
        pairs = np.concatenate([pairs, worst])
        v, w = np.moveaxis(pairs / np.linalg.norm(pairs, axis=2, keepdims=True), 1, 0)
        change = np.abs(v[:, :, None] * v[:, None, :] - w[:, :, None] * w[:, None, :])
        for quantity, value in (
            (ALL_ENTRIES, change.sum(axis=(1, 2)).max()),
            (COLUMN_SUMS, change.sum(axis=1).max()),
        ):
            found[Point("Lemma 1", f"d = {d}", quantity)] = float(value)
    return found


def _projections(runs: int, seed: int) -> Drawn:
    """Return by how much one row moves XV_k, with V_k fixed and with V_k computed."""
    found = {}
    rng = generator(seed, "reproduce", "xu", "Lemma 2")
    for d in SEARCH_D:
        rows = rng.standard_normal((SEARCHES, 2, d))
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
        k = d // 2
        # Any frame is allowed here, because the lemma fixes the frame before it sees the rows.
        frames = np.linalg.qr(rng.standard_normal((SEARCHES, d, k)))[0]
        moved = np.abs(((rows[:, 0] - rows[:, 1])[:, None, :] @ frames)[:, 0]).sum(axis=1)
        # Rows along the sum of the frame's columns attain the bound 2 sqrt(k).
        frame = frames[0]
        along = frame.sum(axis=1) / math.sqrt(k)
        most = max(float(moved.max()), float(np.abs(2 * along @ frame).sum()))
        found[Point("Lemma 2", f"d = {d}", FIXED)] = most
    half = ROWS // 2
    before = np.zeros((ROWS, FEATURES))
    # One row decides which of two axes has more rows, and so which axis is the top component.
    before[: half + 1, 0] = before[half + 1 :, 1] = 1.0
    after = before.copy()
    after[0] = 0.0
    after[0, 1] = 1.0
    projected = []
    for rows_ in (before, after):
        top = np.linalg.eigh(rows_.T @ rows_)[1][:, -K:]
        projected.append(rows_ @ np.abs(top))  # Both axes are nonnegative, which fixes the sign.
    found[Point("Lemma 2", "", MOVED)] = float(np.abs(projected[0] - projected[1]).sum())
    return found


def _variances(runs: int, seed: int) -> Drawn:
    """Return the ratio of summed squares of the two noises, along n, k and d."""
    found = {}
    budget = Budget(1.0)
    for axis, values in AXES.items():
        for value in values:
            n, d, k = (
                value if name == axis else usual
                for name, usual in zip(("n", "d", "k"), SHAPE, strict=True)
            )
            problem = Problem(n, d, k, Relation.REPLACE, Domain.ball(d))
            inside = LIP.calibrate(problem, budget).scale * _xu.input_norms(d, seed, range(runs))
            outside = LOP.calibrate(problem, budget).scale * _xu.output_norms(
                "theorem 3", n, k, seed, range(runs)
            )
            found[Point("Theorem 3", axis, VARIANCES, float(value))] = (inside / outside) ** 2
    return found


def _etas(runs: int, seed: int) -> Drawn:
    """Return eta of built-in tables, along epsilon."""
    found = {}
    for table in TABLES:
        measured = _xu.prepared(replace(load(table), labels=None)).light()
        k, trials = _xu.least_k(measured.moment.eigenvalues), range(runs)
        for epsilon in EPSILONS:
            inside = _xu.projected_errors(measured, LIP, (k,), epsilon, seed, trials)[0]
            outside = _xu.lop_errors(measured, table, k, epsilon, seed, trials)
            found[Point(table, LIP.label, ETA, epsilon)] = inside / outside
    return found


class XuTheorems(StatementsExperiment):
    """Sensitivities, guarantees and orders as the paper states them; see `info`."""

    looks: ClassVar = (_pairs, _projections, _variances, _etas)
    draws = (10, 100)  # The paper uses 100 runs.

    def source(self, seed: int, what: str) -> int:
        """Return the seed; the mechanisms name their own random streams."""
        return seed
