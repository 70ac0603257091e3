"""Xu, Yang and Bai 2019, Figure 4: the error of LIP against that of LOP, along epsilon."""

from __future__ import annotations

from dpviz.prepare.prepared import Measured
from dpviz.reproduce.experiment import Chart, Effort, Info, Part
from dpviz.reproduce.lines import Line
from dpviz.reproduce.measurements import Measurements
from dpviz.reproduce.xu import _error as _xu_error
from dpviz.reproduce.xu import _shared as _xu

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SHOWN = 10.0


class XuFigure4(_xu.MomentsExperiment):
    """Eta = ||Z1 - X||_F / ||Z2 - X||_F against epsilon, k fixed."""

    info = Info(
        title="Error of LIP over that of LOP, against epsilon",
        paper=_xu.PAPER,
        url=_xu.URL,
        place="Figure 4",
        about="The same ratio of errors as in Figure 3, along epsilon: the paper finds that it "
        "rises and is below 1 even at epsilon 10, and explains it by LIP's components being "
        "close to the exact ones at every epsilon.",
        settings=(
            *_xu.SETTINGS,
            "epsilon up to 10, which the paper calls no privacy; eta is drawn times 10 (Secom), "
            "10 (Covtype), 1,000 (Musk), 1,000 (Handwritten) and 100 (Waveform)",
        ),
        choices=(
            "k is the least with 85 % of the variance. Epsilon runs from .1 to 10; where the "
            "paper starts is not in its text.",
            *_xu_error.CHOICES,
            *_xu.CHOICES,
        ),
        cautions=(_xu_error.CAUTION, _xu.LOP_CAUTION),
        slot=33,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return some runs on each data set with each mechanism's components."""
        return [*_xu.run_parts(effort, mechanisms=_xu_error.PROJECTED)]

    def run(self, part: Part, shared: Measured, seed: int) -> Measurements:
        """Return eta along epsilon."""
        assert isinstance(part, _xu.Runs)
        ks = (_xu.least_k(shared.moment.eigenvalues),)
        factor = _xu.BY_KEY[part.data].by_epsilon
        return _xu_error.eta_draws(part, shared, seed, ks, EPSILONS, factor)

    def lines(self, found: Measurements) -> list[Line]:
        """Return what the paper says of eta and epsilon."""
        lines = []
        for data in _xu.SETS:
            known = _xu.facts(found, data.label)
            curve = found.curve(data.label, _xu.LIP.label, _xu_error.ETA)
            lines += [
                _xu.k_line(found, data.label),
                *_xu_error.eta_lines(
                    data,
                    found,
                    "epsilon",
                    1,
                    "eta and epsilon are positively correlated",
                    why="LIP's error falls faster there than LOP's.",
                ),
                _xu_error.scaled_line(data, curve, data.by_epsilon),
                _xu_error.slower_line(data, found),
                _xu_error.near_line(data, found),
                *_xu_error.place_lines(
                    data, found, None if known is None else SHOWN, f"epsilon {SHOWN:g}"
                ),
            ]
        return [*lines, _xu_error.promise_line(found)]

    def charts(self) -> tuple[Chart, ...]:
        """Return the figure and the errors behind it, one panel for each data set."""
        return _xu_error.eta_charts("epsilon", "epsilon")
