"""Xu, Yang and Bai 2019, section 5: versions of Musk and Waveform that the paper may have used."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget
from dpviz.datasets import remote
from dpviz.papers.experiment import Effort, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.xu import _shared as _xu
from dpviz.papers.xu import figure4
from dpviz.preparation.prepared import Measured

ONE, TWO = "version 1", "version 2"
FOLDERS = {"Musk": {ONE: "musk", TWO: "musk2"}, "Waveform": {ONE: "waveform", TWO: "waveform2"}}
"""Data sets by the folders that the paper names."""
OF_KEY = {key: (label, name) for label, kept in FOLDERS.items() for name, key in kept.items()}
READINGS = {
    f"Musk {musk}, Waveform {waveform}": {
        "Musk": FOLDERS["Musk"][musk], "Waveform": FOLDERS["Waveform"][waveform]
    }
    for musk, waveform in product((ONE, TWO), repeat=2)
}  # fmt: skip
SPREAD = "largest over smallest of the scaled theta"
SCALED_THETA, SCALED_ETA = "theta times the paper's factor", "eta times the paper's factor"
WAY = "way from the least error to a random subspace's"


def spread(reading: str) -> float:
    """Return the largest over the smallest scaled theta of the five data sets.

    All data sets use the same k, because k cancels and is unknown without the tables.
    """
    sets = remote.sets()
    chosen = READINGS[reading]
    sizes = [
        item.noise * _xu.closed_form(known.n, known.d, 1)
        for item in _xu.SETS
        for known in [sets[chosen.get(item.label, item.key)]]
    ]
    return max(sizes) / min(sizes)


class XuVersions(_xu.MomentsExperiment):
    """The statements about Musk and Waveform on both versions of each data set."""

    pictures: ClassVar = {
        "theta": (SCALED_THETA, ONE, TWO), "eta": (SCALED_ETA, ONE, TWO), "way": (WAY, ONE, TWO)
    }  # fmt: skip

    def parts(self, effort: Effort) -> list[Part]:
        """Return a part for the sizes alone, then parts for the runs on each version."""
        runs = 5 if effort is Effort.QUICK else 100
        return [Part(), *(_xu.Runs(key, _xu.LIP.text, 0, runs) for key in OF_KEY)]

    def run(self, part: _xu.Runs, shared: Measured | None, seed: int) -> Measurements:
        """Return the ratios of scaled theta, or the scaled ratios on one version."""
        if shared is None:
            spreads = {Point(each, "", SPREAD): np.array([spread(each)]) for each in READINGS}
            return Measurements(spreads)
        panel, series = OF_KEY[part.data]
        factors, k = _xu.BY_LABEL[panel], _xu.least_k(shared.moment.eigenvalues)
        budget = Budget(_xu.EPSILON)
        units = _xu.input_norms(shared.d, seed, part.runs)
        found: dict[Point, FloatArray] = {}
        for each in _xu.k_values(shared.d, k):
            problem = _xu.problem_of(shared, each)
            inside = _xu.LIP.calibrate(problem, budget).scale * units
            norms = _xu.output_norms(part.data, shared.n, each, seed, part.runs)
            outside = _xu.LOP.calibrate(problem, budget).scale * norms
            found[Point(panel, series, SCALED_THETA, float(each))] = (
                factors.noise * inside / outside
            )
        for epsilon in figure4.EPSILONS:
            lip, random, least = (
                _xu.projected_errors(shared, mechanism, (k,), epsilon, seed, part.runs)[0]
                for mechanism in (_xu.LIP, _xu.RANDOM, _xu.EXACT)
            )
            lop = _xu.lop_errors(shared, part.data, k, epsilon, seed, part.runs)
            way = (lip - least) / (random - least)
            found[Point(panel, series, SCALED_ETA, epsilon)] = factors.by_epsilon * lip / lop
            found[Point(panel, series, WAY, epsilon)] = way
        return Measurements(found)
