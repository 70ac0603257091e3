"""Xu, Yang and Bai 2019, Figure 4: the error of LIP relative to LOP's error, along epsilon."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpviz.core.settings import Settings
from dpviz.datasets import remote
from dpviz.datasets.table import Table
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.xu import _shared as _xu
from dpviz.preparation.bounding import prepare
from dpviz.preparation.prepared import Measured

READINGS = {
    "k for 90 % of the variance": (False, 0.90),
    "k for 95 % of the variance, features scaled to a range of 1, over sqrt(d)": (True, 0.95),
}
"""Readings of the preparation: whether features are scaled by range, and k's variance share."""

READING_ETA = "eta in another reading"
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SHOWN = 10.0


class ReadingRuns(_xu.Runs):
    """Runs at the last epsilon in another reading of the paper's preparation."""

    reading: str = ""


def _in_reading(part: ReadingRuns, shared: dict[bool, Measured], seed: int) -> Measurements:
    """Return eta at the last epsilon in another reading of the preparation."""
    by_range, share = READINGS[part.reading]
    measured = shared[by_range]
    k = _xu.least_k(measured.moment.eigenvalues, share)
    inside = _xu.projected_errors(measured, _xu.LIP, (k,), SHOWN, seed, part.runs)[0]
    outside = _xu.lop_errors(measured, part.data, k, SHOWN, seed, part.runs)
    label = _xu.BY_KEY[part.data].label
    return Measurements({Point(label, part.reading, READING_ETA): inside / outside})


class XuFigure4(Experiment):
    """Eta = ||Z1 - X||_F / ||Z2 - X||_F against epsilon, at a fixed k."""

    pictures: ClassVar = {"eta-epsilon": _xu.ETAS, "error-epsilon": _xu.ERRORS}

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts with several runs on each data set, with each mechanism's components."""
        runs = 5 if effort is Effort.QUICK else 100
        parts: list[Part] = [*_xu.run_parts(effort, mechanisms=_xu.PROJECTED)]
        parts += [
            ReadingRuns(data.key, _xu.LIP.text, 0, runs, reading)
            for data in _xu.SETS
            for reading in READINGS
        ]
        return parts

    def shared(self, data: str) -> dict[bool, Measured]:
        """Return the second moments of a data set, without and with features scaled by range."""
        table = remote.load(data, download=False)
        spans = np.ptp(table.rows, axis=0)
        kept = spans > 0
        rows = table.rows[:, kept] / (spans[kept] * np.sqrt(kept.sum()))
        columns = tuple(name for name, one in zip(table.columns, kept, strict=True) if one)
        scaled = Table(table.name, rows, columns)
        settings = Settings(table=table.name, center="mean", row_bound="1")
        return {False: _xu.prepared(table).light(), True: prepare(scaled, settings).light()}

    def run(self, part: _xu.Runs, shared: dict[bool, Measured], seed: int) -> Measurements:
        """Return eta along epsilon, or at the last epsilon in another reading."""
        if isinstance(part, ReadingRuns):
            return _in_reading(part, shared, seed)
        measured = shared[False]
        ks = (_xu.least_k(measured.moment.eigenvalues),)
        factor = _xu.BY_KEY[part.data].by_epsilon
        return _xu.eta_draws(part, measured, seed, ks, EPSILONS, factor)
