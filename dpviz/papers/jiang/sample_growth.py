"""Jiang, Xie and Zhang 2016, Theorems 7 and 8: people needed as the gap and d change."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpviz.mechanisms import parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.jiang._shared import (
    FOR_DIFFERENCE,
    MECHANISMS,
    OURS,
    STATEMENTS,
    THEOREM_7,
    THEOREM_8,
    need,
)
from dpviz.papers.measurements import Measurements, Point
from dpviz.preparation.load import planned

REST = 0.01  # Value of every eigenvalue of A except the first.
BY_GAP, BY_D = "by the eigengap", "by d"
FIXED_D, FIXED_GAP = 10, 0.2
GAPS = (0.02, 0.05, 0.1, 0.2, 0.4)
DIMENSIONS = (10, 20, 40, 80)
PANELS = {BY_GAP: f"d = {FIXED_D}", BY_D: f"eigengap {FIXED_GAP}"}
PEOPLE = {BY_GAP: "people, by the eigengap", BY_D: "people, by d"}
STATED = tuple(one.name for one in (THEOREM_7, OURS, FOR_DIFFERENCE, THEOREM_8))
FEW, ENOUGH = "people shown to be too few", "people shown to be enough"


class SpectrumPart(Part):
    """One mechanism on one synthetic spectrum of eigenvalues."""

    axis: str = ""
    d: int = 0
    gap: float = 0.0
    mechanism: str = ""

    @property
    def x(self) -> float:
        """Value of the part on its axis."""
        return self.gap if self.axis == BY_GAP else float(self.d)


class JiangSampleGrowth(Experiment):
    """People needed and people stated as one number changes at a time; see `info`."""

    pictures: ClassVar = {
        "gap": (PEOPLE[BY_GAP], *MECHANISMS, *STATED),
        "dimension": (PEOPLE[BY_D], *MECHANISMS, *STATED),
    }

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each spectrum and mechanism."""
        quick = effort is Effort.QUICK
        gaps = GAPS[1::3] if quick else GAPS
        dimensions = DIMENSIONS[:2] if quick else DIMENSIONS
        places = [(BY_GAP, FIXED_D, gap) for gap in gaps]
        places += [(BY_D, d, FIXED_GAP) for d in dimensions]
        return [
            SpectrumPart("", axis, d, gap, mechanism.text)
            for axis, d, gap in places
            for mechanism in MECHANISMS
        ]

    def run(self, part: SpectrumPart, shared: None, seed: int) -> Measurements:
        """Return the people needed at one value, and the n stated for this mechanism."""
        mechanism, x = parse_variant(part.mechanism), part.x
        measured = planned([REST + part.gap, *[REST] * (part.d - 1)], 1_000)
        low, high = need(measured, mechanism, seed)
        quantity, label = PEOPLE[part.axis], mechanism.label
        panel = PANELS[part.axis]
        found = {
            (label, FEW): low,
            (label, ENOUGH): high,
            (label, quantity): math.sqrt(low * high),
        }
        for statement in STATEMENTS:
            if statement.mechanism == mechanism:
                found[statement.name, quantity] = float(statement.people(measured))
        return Measurements(
            {
                Point(panel, series, what, x): np.array([value])
                for (series, what), value in found.items()
            }
        )
