"""Xu, Yang and Bai 2019, Figure 3: the error of LIP relative to LOP's error, along k."""

from __future__ import annotations

from typing import ClassVar

from dpviz.papers.experiment import Effort, Part
from dpviz.papers.measurements import Measurements
from dpviz.papers.xu import _shared as _xu
from dpviz.preparation.prepared import Measured

EPSILON = 1.0


class XuFigure3(_xu.MomentsExperiment):
    """Eta = ||Z1 - X||_F / ||Z2 - X||_F against k, at a fixed epsilon."""

    pictures: ClassVar = {"eta-k": _xu.ETAS, "error-k": _xu.ERRORS}

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts with several runs on each data set, with each mechanism's components."""
        return [*_xu.run_parts(effort, mechanisms=_xu.PROJECTED)]

    def run(self, part: _xu.Runs, shared: Measured, seed: int) -> Measurements:
        """Return eta along k."""
        ks = _xu.k_values(shared.d, _xu.least_k(shared.moment.eigenvalues))
        factor = _xu.BY_KEY[part.data].by_k
        return _xu.eta_draws(part, shared, seed, ks, (EPSILON,), factor)
