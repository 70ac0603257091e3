"""Xu, Yang and Bai 2019, Figure 2: the noise of LIP against that of LOP, along n."""

from __future__ import annotations

from dpviz.prepare.prepared import Measured
from dpviz.reproduce.experiment import Chart, Effort, Info, Part
from dpviz.reproduce.lines import Line
from dpviz.reproduce.measurements import Measurements
from dpviz.reproduce.verdicts import Claim, judged, of_item
from dpviz.reproduce.xu import _noise as _xu_noise
from dpviz.reproduce.xu import _shared as _xu

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class XuFigure2(_xu.MomentsExperiment):
    """Theta = ||E1||_F / ||E2||_F against n, k fixed."""

    info = Info(
        title="Noise of LIP over that of LOP, against n",
        paper=_xu.PAPER,
        url=_xu.URL,
        place="Figure 2",
        about="The same ratio of noise as in Figure 1, along the number of rows: the paper finds "
        "it below 1 and falling in n.",
        settings=(*_xu.SETTINGS, "k fixed, n varied"),
        choices=(
            *_xu_noise.CHOICES,
            "k is the least with 85 % of the variance of the whole table; n runs over tenths of "
            "the table. Noise depends on how many rows there are and not on which.",
            "The text states its factors for the one picture of Figure 1; whether the five of "
            "Figure 2 are scaled too it does not say. The line of the factor is drawn, and below "
            "it is not counted as a statement.",
            *_xu.CHOICES,
        ),
        cautions=(_xu_noise.CAUTION, _xu.LOP_CAUTION),
        slot=31,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return some runs on each data set."""
        return [*_xu.run_parts(effort)]

    def run(self, part: Part, shared: Measured, seed: int) -> Measurements:
        """Return theta along n."""
        assert isinstance(part, _xu.Runs)
        k = _xu.least_k(shared.moment.eigenvalues)
        sizes = [round(share * shared.n) for share in SHARES]
        return _xu_noise.theta_draws(part, shared, seed, [(n, k, n) for n in sizes])

    def lines(self, found: Measurements) -> list[Line]:
        """Return what the paper says of theta and n."""
        lines = []
        for data in _xu.SETS:
            known = _xu.facts(found, data.label)
            curve = found.curve(data.label, _xu_noise.SIMULATED, _xu_noise.THETA)
            lines += [
                _xu.k_line(found, data.label),
                *_xu_noise.theta_lines(data.label, curve, "n", -3.0),
                _xu_noise.enough_rows_line(data, known),
            ]
        return lines

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers to what the text says of the figure."""
        lines = self.lines(found)
        return [
            judged(
                "theta is below 1",
                of_item(lines, "theta below 1 at every n"),
                because="On every data set at hand, from a tenth of its rows on.",
            ),
            judged(
                "theta falls as n grows",
                of_item(lines, "theta falls from each n to the next"),
                because="From each n to the next.",
            ),
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return the figure, one panel for each data set."""
        return (_xu_noise.theta_chart("n", "n (rows)"),)
