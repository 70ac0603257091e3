"""Jiang, Xie and Zhang 2016, Theorem 6: how far a noisy subspace can turn."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import Outcome, measure
from dpviz.core.release import Release
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.mechanisms import parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.jiang._shared import DELTA, DIFFERENCE, GAUSSIAN, WISHART, with_people
from dpviz.papers.measurements import Measurements, Point
from dpviz.preparation.bounding import prepare
from dpviz.preparation.prepared import Measured
from dpviz.simulation.bounds import davis_kahan
from dpviz.simulation.cells import evaluate
from dpviz.simulation.growth import noise_norms
from dpviz.simulation.simulate import Cell

CASES = (
    ("spiked", 1),
    ("spiked", 2),
    ("wine", 1),
    ("breast_cancer", 1),
    ("waveform40", 2),
    ("digits", 3),
)
MECHANISMS = (WISHART, DIFFERENCE, GAUSSIAN)
WORST = "the worst noise of the same norm"
MULTIPLES = (1.0, 1.3, 2.0, 5.0, 20.0)  # Multiples of the n at which gap is twice the mean norm.
RATIO = "distance over the bound, where the condition holds"
LARGEST = "largest distance over the bound"
MET = "share of draws that meet the condition"
_NORM_DRAWS = 100  # Number of simulations for the mean noise norm, from which n follows.


class BoundPart(Part):
    """One mechanism on one table, measured at every n."""

    table: str = ""
    k: int = 0
    mechanism: str = ""
    draws: int = 0


def panel_of(table: str, k: int) -> str:
    """Return the name of the panel for a table and k."""
    return f"{table}, k = {k}"


class JiangTheorem6(Experiment):
    """The bound of Davis and Kahan, tested on every release; see `info`."""

    pictures: ClassVar = {"ratio": (RATIO, *MECHANISMS, WORST), "met": (MET, *MECHANISMS)}

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each table and mechanism."""
        draws = 25 if effort is Effort.QUICK else 400
        return [
            BoundPart("", table, k, mechanism.text, draws)
            for table, k in CASES
            for mechanism in MECHANISMS
        ]

    def run(self, part: BoundPart, shared: None, seed: int) -> Measurements:
        """Return distance over bound, and how often the condition held, at every n."""
        table, mechanism, k = load(part.table), parse_variant(part.mechanism), part.k
        settings = Settings(table=part.table, epsilon=1.0, delta=DELTA, k=k, seed=seed)
        own = prepare(table, settings)
        values = own.moment.eigenvalues
        gap = float(values[k - 1] - values[k])
        rng = generator(seed, "reproduce", self.key, mechanism.text, own.d)
        norm = float(noise_norms(mechanism, own.d, rng, draws=_NORM_DRAWS, delta=DELTA).mean())
        panel = panel_of(part.table, k)
        draws: dict[Point, FloatArray] = {}
        for multiple in MULTIPLES:
            measured = with_people(own, math.ceil(multiple * 2 * norm / gap))
            trials = range(part.draws)
            budget = measured.budget(settings)
            cell = Cell(mechanism, measured.problem(settings), budget, seed, trials)
            outcome = evaluate(cell, measured)
            found = measure(outcome, ["noise_spectral", "projection_distance"])
            norms = found["noise_spectral"]
            over = _over_bound(k, norms, gap, found["projection_distance"])
            met = ~np.isnan(over)
            draws[Point(panel, mechanism.label, MET, multiple)] = met.astype(float)
            draws[Point(panel, mechanism.label, RATIO, multiple)] = over[met]
            draws[Point(panel, mechanism.label, LARGEST, multiple)] = over[met].max(initial=0.0)[
                None
            ]
            if mechanism == WISHART:
                worst = _worst_distances(measured, k, norms[met], gap)
                draws[Point(panel, WORST, RATIO, multiple)] = _over_bound(k, norms[met], gap, worst)
        return Measurements(draws)


def _over_bound(k: int, norms: FloatArray, gap: float, distances: FloatArray) -> FloatArray:
    """Return distance over bound for each release, or NaN if the theorem does not apply."""
    bounds = [davis_kahan(k, float(norm), gap) for norm in norms]
    over: FloatArray = distances / np.array([math.nan if b is None else b for b in bounds])
    return over


def _worst_distances(measured: Measured, k: int, norms: FloatArray, gap: float) -> FloatArray:
    """Return projection distances under noise that turns component k towards k + 1.

    In the plane of components k and k + 1 the noise is w (-cos p, sin p; sin p, cos p). It has norm
    w and turns the components by t with tan 2t = 2 w sin p/(gap - 2 w cos p). The largest turn is
    sin 2t = 2 w/gap, at cos p = 2 w/gap.
    """
    V = measured.moment.eigenvectors[:, k - 1 : k + 1]
    cosines = np.minimum(2 * norms / gap, 1.0)
    plane = np.empty((len(norms), 2, 2))
    plane[:, 0, 0], plane[:, 1, 1] = -cosines, cosines
    plane[:, 0, 1] = plane[:, 1, 0] = np.sqrt(1 - cosines**2)
    noise = V @ (plane * norms[:, None, None]) @ V.T
    release = Release.of_matrices(measured.moment.A + noise, k)
    outcome = Outcome(measured.reference, measured.moment, release)
    return measure(outcome, ["projection_distance"])["projection_distance"]
