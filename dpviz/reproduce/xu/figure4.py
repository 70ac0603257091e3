"""Xu, Yang and Bai 2019, Figure 4: the error of LIP against that of LOP, along epsilon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.datasets import remote
from dpviz.datasets.table import Table
from dpviz.prepare.bounding import prepare
from dpviz.prepare.prepared import Measured
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part
from dpviz.reproduce.lines import Line, beside
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.verdicts import Claim, judged, of_item
from dpviz.reproduce.xu import _error as _xu_error
from dpviz.reproduce.xu import _shared as _xu
from dpviz.settings import Settings

READINGS = {
    "k for 90 % of the variance": (False, 0.90),
    "k for 95 % of the variance, features scaled to a range of 1, over sqrt(d)": (True, 0.95),
}
"""Other readings: whether features are scaled by their range, and the share that k holds."""

READING_ETA = "eta in another reading"
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SHOWN = 10.0


@dataclass(frozen=True)
class ReadingRuns(_xu.Runs):
    """Some runs at the last epsilon in another reading of the paper's preparation."""

    reading: str = ""


def _in_reading(part: ReadingRuns, shared: dict[bool, Measured], seed: int) -> Measurements:
    """Return eta at the last epsilon in another reading."""
    by_range, share = READINGS[part.reading]
    measured = shared[by_range]
    k = _xu.least_k(measured.moment.eigenvalues, share)
    inside = _xu_error.projected_errors(measured, _xu.LIP, (k,), SHOWN, seed, part.runs)[0]
    outside = _xu_error.lop_errors(measured, part.data, k, SHOWN, seed, part.runs)
    label = _xu.BY_KEY[part.data].label
    return Measurements({Point(label, part.reading, READING_ETA): inside / outside})


class XuFigure4(Experiment):
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
        runs = 5 if effort is Effort.QUICK else 100
        parts: list[Part] = [*_xu.run_parts(effort, mechanisms=_xu_error.PROJECTED)]
        parts += [
            ReadingRuns(data.key, _xu.LIP.text, 0, runs, reading)
            for data in _xu.SETS
            for reading in READINGS
        ]
        return parts

    def shared(self, data: str) -> dict[bool, Measured]:
        """Return the second moment of a data set, as it is and with features scaled by range."""
        table = remote.load(data, download=False)
        spans = np.ptp(table.rows, axis=0)
        kept = spans > 0
        rows = table.rows[:, kept] / (spans[kept] * np.sqrt(kept.sum()))
        columns = tuple(name for name, one in zip(table.columns, kept, strict=True) if one)
        scaled = Table(table.name, rows, columns)
        settings = Settings(table=table.name, center="mean", row_bound="1")
        return {False: _xu.prepared(table).light(), True: prepare(scaled, settings).light()}

    def run(self, part: Part, shared: dict[bool, Measured], seed: int) -> Measurements:
        """Return eta along epsilon, or at the last one in another reading."""
        assert isinstance(part, _xu.Runs)
        if isinstance(part, ReadingRuns):
            return _in_reading(part, shared, seed)
        measured = shared[False]
        ks = (_xu.least_k(measured.moment.eigenvalues),)
        factor = _xu.BY_KEY[part.data].by_epsilon
        return _xu_error.eta_draws(part, measured, seed, ks, EPSILONS, factor)

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
            lines += [
                beside(
                    data.label,
                    f"eta times {data.by_epsilon:,.0f} at epsilon {SHOWN:g}: {reading}",
                    None,
                    None if values is None else data.by_epsilon * values,
                )
                for reading in READINGS
                for values in [found.get(data.label, reading, READING_ETA)]
            ]
        return [*lines, _xu_error.promise_line(found)]

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers to what the text says of the figure."""
        lines = self.lines(found)
        return [
            judged(
                "eta is below 1 even at epsilon 10",
                of_item(lines, "eta below 1 at every epsilon"),
                because="On every data set at hand.",
            ),
            judged(
                "eta rises with epsilon",
                of_item(lines, "eta rises from each epsilon to the next"),
                because="From each epsilon to the next.",
            ),
            judged(
                "because LIP's error decreases slightly and LOP's greatly",
                of_item(lines, lambda item: item.startswith("LIP's error falls by a smaller")),
                because="From each epsilon to the next.",
            ),
            judged(
                "LIP's components are close to the exact ones, whatever epsilon is",
                of_item(lines, lambda item: item.startswith("LIP's error nearer")),
            ),
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return the figure and the errors behind it, one panel for each data set."""
        return _xu_error.eta_charts("epsilon", "epsilon")
