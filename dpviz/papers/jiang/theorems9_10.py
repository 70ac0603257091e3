"""Jiang, Xie and Zhang 2016, Theorems 9 and 10: error of the rank k matrix beyond lambda_(k+1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.jiang._shared import DELTA, DIFFERENCE, GAUSSIAN, LAPLACE, WISHART
from dpviz.papers.measurements import Measurements, Point
from dpviz.preparation.load import planned
from dpviz.simulation.bounds import StatedGrowth, low_rank_error_scaling, pure_error_floor_scaling
from dpviz.simulation.compare import run_cell
from dpviz.simulation.simulate import Cell

N, EPSILON, K = 10_000, 1.0, 2
DIMENSIONS = (10, 20, 40, 80, 160)
KS, K_DIMENSION, K_EACH = (1, 2, 4, 8, 16, 32), 60, 0.025
RANK, TAIL, HARD = "rank 2", "lambda_3 to lambda_6 are .01", "eigenvalues at 4 d/(n epsilon)"
SPECTRA = (RANK, TAIL, HARD)
BY_K = f"rank k: k eigenvalues of {K_EACH}, d = {K_DIMENSION}"
MECHANISMS = (WISHART, LAPLACE, DIFFERENCE, GAUSSIAN)

EXCESS = "error beyond lambda_(k+1), times n epsilon"
EXCESS_K = "error beyond lambda_(k+1), times n epsilon, by k"
SHARE = "excess over twice the norm of the noise"
UPPER, FLOOR = "Theorem 9: d ln d, scaling only", "Theorem 10: d, scaling only"
THEOREM_9 = StatedGrowth("d ln d", 1.0, 1.0)


def spectrum_of(name: str, d: int, k: int) -> list[float]:
    """Return the eigenvalues of A, in units of the squared row-norm bound."""
    top = {
        RANK: [0.4, 0.2],
        TAIL: [0.4, 0.2, 0.01, 0.01, 0.01, 0.01],
        # The proof of Theorem 10 needs k equal eigenvalues of nA, of the order of d/epsilon.
        HARD: [4 * d / (N * EPSILON)] * k,
        BY_K: [K_EACH] * k,
    }[name]
    return top + [0.0] * (d - len(top))


class ErrorPart(Part):
    """One mechanism on one family of eigenvalue spectra."""

    spectrum: str = ""
    mechanism: str = ""
    draws: int = 0


class JiangTheorems910(Experiment):
    """Error of the noisy rank k matrix against d and k; see `info`."""

    named: ClassVar = {"d": K_DIMENSION}
    pictures: ClassVar = {
        "excess": (EXCESS, *MECHANISMS, UPPER, FLOOR),
        "excess-by-k": (EXCESS_K, WISHART, DIFFERENCE),
    }

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each family of spectra and mechanism."""
        draws = 20 if effort is Effort.QUICK else 100
        pairs = [(name, item) for name in SPECTRA for item in MECHANISMS]
        pairs += [(BY_K, item) for item in (WISHART, DIFFERENCE)]
        return [ErrorPart("", name, item.text, draws) for name, item in pairs]

    def run(self, part: ErrorPart, shared: None, seed: int) -> Measurements:
        """Return the excess error, and the excess over twice the noise's norm, by d or k."""
        mechanism, name = parse_variant(part.mechanism), part.spectrum
        draws: dict[Point, FloatArray] = {}
        if name == BY_K:
            for k in KS:
                excess, over = _excess(name, K_DIMENSION, k, mechanism, part.draws, seed)
                draws[Point(name, mechanism.label, EXCESS_K, float(k))] = excess
                draws[Point(name, mechanism.label, SHARE, float(k))] = over
            return Measurements(draws)
        for d in DIMENSIONS:
            excess, over = _excess(name, d, K, mechanism, part.draws, seed)
            draws[Point(name, mechanism.label, EXCESS, float(d))] = excess
            draws[Point(name, mechanism.label, SHARE, float(d))] = over
        if name != TAIL and mechanism in _SCALED:
            draws |= _scaling(name, mechanism, draws)
        return Measurements(draws)


def _theorem9(d: int) -> float:
    return low_rank_error_scaling(d, N, EPSILON, 0.0)


def _theorem10(d: int) -> float:
    return pure_error_floor_scaling(d, N, EPSILON)


# Each rate that a theorem states is drawn as a curve, scaled to its mechanism's value at one d.
_SCALED = {
    WISHART: (UPPER, _theorem9, DIMENSIONS[0]),
    DIFFERENCE: (FLOOR, _theorem10, DIMENSIONS[-1]),
}


def _scaling(
    name: str, mechanism: Mechanism, draws: Mapping[Point, FloatArray]
) -> dict[Point, FloatArray]:
    """Return the stated rate as a curve for comparison with a mechanism."""
    series, rate, at = _SCALED[mechanism]
    unit = float(draws[Point(name, mechanism.label, EXCESS, float(at))].mean()) / rate(at)
    return {Point(name, series, EXCESS, float(d)): np.array([unit * rate(d)]) for d in DIMENSIONS}


def _excess(
    name: str, d: int, k: int, mechanism: Mechanism, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return (||A - A^_k|| - lambda_(k+1)) times n epsilon, and over twice the noise's norm."""
    measured = planned(spectrum_of(name, d, k), N, f"{name}, d = {d}")
    settings = Settings(table=measured.name, epsilon=EPSILON, delta=DELTA, k=k, seed=seed)
    problem, budget = measured.problem(settings), measured.budget(settings)
    cell = Cell(mechanism, problem, budget, seed, range(draws))
    metrics = run_cell(cell, measured, ["low_rank_error", "noise_spectral"]).metrics
    excess = metrics["low_rank_error"] - float(measured.moment.eigenvalues[k])
    return excess * (N * EPSILON), excess / (2 * metrics["noise_spectral"])
