"""Xu, Yang and Bai 2019, Figure 1: the noise of LIP relative to LOP's noise, along k."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpviz.papers.experiment import Effort, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.xu import _shared as _xu
from dpviz.preparation.prepared import Measured


class XuFigure1(_xu.MomentsExperiment):
    """Theta = ||E1||_F / ||E2||_F against k, at a fixed n."""

    pictures: ClassVar = {"k": _xu.CURVES}

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts with several runs on each data set."""
        sets = [data for data in _xu.SETS if data.label not in _xu.BY_SHAPE]
        return [*_xu.run_parts(effort, sets), *_xu.shape_parts(effort)]

    def run(self, part: _xu.Runs | _xu.ShapeRuns, shared: Measured, seed: int) -> Measurements:
        """Return theta along k."""
        if isinstance(part, _xu.ShapeRuns):
            return part.draws(seed, lambda n, d: [(n, k, k) for k in _xu.k_values(d, d // 3)])
        ks = _xu.k_values(shared.d, _xu.least_k(shared.moment.eigenvalues))
        found = _xu.theta_draws(part, shared, seed, [(shared.n, k, k) for k in ks])
        if part.first == 0:
            values, k = shared.moment.eigenvalues, _xu.least_k(shared.moment.eigenvalues)
            share = np.array([float(values[:k].sum() / values.sum())])
            found.draws[Point(_xu.BY_KEY[part.data].label, "table", _xu.HELD)] = share
        return found
