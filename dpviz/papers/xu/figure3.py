"""Xu, Yang and Bai 2019, Figure 3: the error of LIP against that of LOP, along k."""

from __future__ import annotations

from dpviz.papers.experiment import Chart, Effort, Part
from dpviz.papers.measurements import Measurements
from dpviz.papers.xu import _error as _xu_error
from dpviz.papers.xu import _shared as _xu
from dpviz.preparation.prepared import Measured

EPSILON = 1.0


class XuFigure3(_xu.MomentsExperiment):
    """Eta = ||Z1 - X||_F / ||Z2 - X||_F against k, epsilon fixed."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return some runs on each data set with each mechanism's components."""
        return [*_xu.run_parts(effort, mechanisms=_xu_error.PROJECTED)]

    def run(self, part: Part, shared: Measured, seed: int) -> Measurements:
        """Return eta along k."""
        assert isinstance(part, _xu.Runs)
        ks = _xu.k_values(shared.d, _xu.least_k(shared.moment.eigenvalues))
        factor = _xu.BY_KEY[part.data].by_k
        return _xu_error.eta_draws(part, shared, seed, ks, (EPSILON,), factor)

    def charts(self) -> tuple[Chart, ...]:
        """Return the figure and the errors behind it, one panel for each data set."""
        return tuple(self.chart(f"{name}-k", *curves) for name, curves in _xu_error.CURVES.items())
