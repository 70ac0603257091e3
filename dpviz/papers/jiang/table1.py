"""Jiang, Xie and Zhang 2016, Table 1: how the noise of input perturbation grows with d."""

from __future__ import annotations

from typing import ClassVar

from dpviz.core.seeding import generator
from dpviz.mechanisms import parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.jiang._shared import DELTA, DIFFERENCE, GAUSSIAN, LAPLACE, WISHART
from dpviz.papers.measurements import Measurements, Point
from dpviz.simulation.bounds import JIANG_TABLE_1
from dpviz.simulation.growth import noise_norms

SULQ, ANALYZE_GAUSS = parse_variant("sulq"), parse_variant("analyze_gauss")
STATED = (LAPLACE, SULQ, WISHART, ANALYZE_GAUSS)  # The order is as in the paper's table.
ADDED = (
    parse_variant("laplace_tight"),
    parse_variant("mod_sulq"),
    GAUSSIAN,
    DIFFERENCE,
)
DIMENSIONS = (10, 20, 40, 80, 150, 250, 400)
NORM = "spectral norm of the noise, times n epsilon"
OVER = "norm over the stated rate, 1 at d = 400"
PANEL = "Table 1"


class GrowthPart(Part):
    """One mechanism, measured at every d."""

    mechanism: str = ""
    draws: int = 0


class JiangTable1(Experiment):
    """Norms of the noise against d; see `info`."""

    pictures: ClassVar = {"norm": (NORM, *STATED, *ADDED), "over-rate": (OVER, *STATED)}

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each mechanism."""
        draws = 20 if effort is Effort.QUICK else 100
        return [GrowthPart(mechanism=item.text, draws=draws) for item in (*STATED, *ADDED)]

    def run(self, part: GrowthPart, shared: None, seed: int) -> Measurements:
        """Return the noise norms at every d, also divided by the stated rate if there is one."""
        mechanism = parse_variant(part.mechanism)
        norms = {
            d: noise_norms(
                mechanism,
                d,
                generator(seed, "reproduce", self.key, mechanism.text, d),
                draws=part.draws,
                delta=DELTA,
            )
            for d in DIMENSIONS
        }
        label = mechanism.label
        draws = {Point(PANEL, label, NORM, float(d)): values for d, values in norms.items()}
        rate = JIANG_TABLE_1.get(mechanism.info.label)
        if rate is not None:
            last = DIMENSIONS[-1]
            unit = rate.of(last) / float(norms[last].mean())
            for d, values in norms.items():
                draws[Point(PANEL, label, OVER, float(d))] = values * (unit / rate.of(d))
        return Measurements(draws)
