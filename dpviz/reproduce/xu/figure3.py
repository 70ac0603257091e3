"""Xu, Yang and Bai 2019, Figure 3: the error of LIP against that of LOP, along k."""

from __future__ import annotations

from dpviz.prepare.prepared import Measured
from dpviz.reproduce.experiment import Chart, Effort, Info, Part
from dpviz.reproduce.lines import Line
from dpviz.reproduce.measurements import Measurements
from dpviz.reproduce.verdicts import Claim, judged, of_item
from dpviz.reproduce.xu import _error as _xu_error
from dpviz.reproduce.xu import _shared as _xu

EPSILON = 1.0


class XuFigure3(_xu.MomentsExperiment):
    """Eta = ||Z1 - X||_F / ||Z2 - X||_F against k, epsilon fixed."""

    info = Info(
        title="Error of LIP over that of LOP, against k",
        paper=_xu.PAPER,
        url=_xu.URL,
        place="Figure 3",
        about="Z1 projects the raw rows on LIP's components; Z2 is the noisy table that LOP "
        "publishes. The paper finds the ratio of their errors, eta, below 1 and falling in k.",
        settings=(
            *_xu.SETTINGS,
            "epsilon fixed at a value that is not stated; eta is drawn times 1,000 (Secom), 100 "
            "(Covtype), 1,000 (Musk), 100 (Handwritten) and 100 (Waveform), and is below 1",
        ),
        choices=(
            "Epsilon is 1. It matters here: while LOP's noise is most of its error, eta grows "
            "in proportion to epsilon.",
            "k runs from 1 to three times the k for 85 % of the variance.",
            *_xu_error.CHOICES,
            *_xu.CHOICES,
        ),
        cautions=(_xu_error.CAUTION, _xu.LOP_CAUTION),
        slot=32,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return some runs on each data set with each mechanism's components."""
        return [*_xu.run_parts(effort, mechanisms=_xu_error.PROJECTED)]

    def run(self, part: Part, shared: Measured, seed: int) -> Measurements:
        """Return eta along k."""
        assert isinstance(part, _xu.Runs)
        ks = _xu.k_values(shared.d, _xu.least_k(shared.moment.eigenvalues))
        factor = _xu.BY_KEY[part.data].by_k
        return _xu_error.eta_draws(part, shared, seed, ks, (EPSILON,), factor)

    def lines(self, found: Measurements) -> list[Line]:
        """Return what the paper says of eta and k."""
        lines = []
        for data in _xu.SETS:
            known = _xu.facts(found, data.label)
            curve = found.curve(data.label, _xu.LIP.label, _xu_error.ETA)
            from_k = {k: draws for k, draws in curve.items() if known and k >= known.k}
            lines += [
                _xu.k_line(found, data.label),
                *_xu_error.eta_lines(
                    data,
                    found,
                    "k",
                    -1,
                    "eta and k are negatively correlated",
                    why="LOP's error falls in k where its noise on one more column is less than "
                    "what that column adds.",
                ),
                _xu_error.scaled_line(data, from_k, data.by_k),
                *_xu_error.place_lines(
                    data,
                    found,
                    None if known is None else float(known.k),
                    f"epsilon {EPSILON:g}" + ("" if known is None else f", k = {known.k}"),
                ),
            ]
        return [*lines, _xu_error.promise_line(found)]

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers to what the text says of the figure."""
        lines = self.lines(found)
        return [
            judged(
                "eta is below 1",
                of_item(lines, "eta below 1 at every k"),
                because="On every data set at hand; a random subspace in the place of LIP's "
                "components has nearly the same eta.",
            ),
            judged(
                "eta falls as k grows",
                of_item(lines, "eta falls from each k to the next"),
                because="From each k to the next.",
            ),
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return the figure and the errors behind it, one panel for each data set."""
        return _xu_error.eta_charts("k", "k")
