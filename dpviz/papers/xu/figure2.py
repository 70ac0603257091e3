"""Xu, Yang and Bai 2019, Figure 2: the noise of LIP relative to LOP's noise, along n."""

from __future__ import annotations

from typing import ClassVar

from dpviz.papers.experiment import Effort, Part
from dpviz.papers.measurements import Measurements
from dpviz.papers.xu import _shared as _xu
from dpviz.preparation.prepared import Measured

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class XuFigure2(_xu.MomentsExperiment):
    """Theta = ||E1||_F / ||E2||_F against n, at a fixed k."""

    pictures: ClassVar = {"n": _xu.CURVES}

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts with several runs on each data set."""
        sets = [data for data in _xu.SETS if data.label not in _xu.BY_SHAPE]
        return [*_xu.run_parts(effort, sets), *_xu.shape_parts(effort)]

    def run(self, part: _xu.Runs | _xu.ShapeRuns, shared: Measured, seed: int) -> Measurements:
        """Return theta along n."""
        if isinstance(part, _xu.ShapeRuns):
            # The paper does not state k. It cancels in the power of n, so we use two thirds of d.
            return part.draws(seed, lambda n, d: [(m, 2 * d // 3, m) for m in _sizes(n)])
        k = _xu.least_k(shared.moment.eigenvalues)
        return _xu.theta_draws(part, shared, seed, [(n, k, n) for n in _sizes(shared.n)])


def _sizes(n: int) -> list[int]:
    return [round(share * n) for share in SHARES]
