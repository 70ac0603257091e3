"""Jiang, Xie and Zhang 2016, Theorems 7 and 8: people needed to find the first component."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpviz.datasets import load
from dpviz.mechanisms import parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.jiang._shared import (
    ETA,
    MAIN,
    MECHANISMS,
    RHO,
    STATEMENTS,
    met,
    need,
    settings_of,
)
from dpviz.papers.measurements import Measurements, Point
from dpviz.preparation.bounding import prepare

TABLES = ("spiked", "wine", "breast_cancer")
FRACTIONS = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
SHARE = f"share of releases with an overlap of at least {RHO}"
STATED, FEW, ENOUGH = "people stated", "people shown to be too few", "people shown to be enough"


class NeedPart(Part):
    """One mechanism on one table."""

    table: str = ""
    mechanism: str = ""
    draws: int = 0


class JiangTheorems78(Experiment):
    """Stated sample sizes and the people actually needed, on tables; see `info`."""

    named: ClassVar = {"overlap": RHO, "promised": 1 - ETA}
    pictures: ClassVar = {"share": (SHARE, *MECHANISMS)}

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each table and mechanism."""
        # If 72 of 72 releases are good, the probability of a good release is at least .95.
        draws = 80 if effort is Effort.QUICK else 2_000
        return [
            NeedPart("", table, mechanism.text, draws)
            for table in TABLES
            for mechanism in MECHANISMS
        ]

    def run(self, part: NeedPart, shared: None, seed: int) -> Measurements:
        """Return how often fractions of the stated n are enough, and the people needed."""
        mechanism = parse_variant(part.mechanism)
        measured = prepare(load(part.table), settings_of(part.table, seed))
        label = mechanism.label
        low, high = need(measured, mechanism, seed)
        draws = {
            Point(part.table, label, FEW): np.array([low]),
            Point(part.table, label, ENOUGH): np.array([high]),
        }
        whole = MAIN[mechanism].people(measured)
        for fraction in FRACTIONS:
            n = max(2, math.ceil(whole * fraction))
            found = met(measured, mechanism, n, part.draws, seed)
            draws[Point(part.table, label, SHARE, fraction)] = found
        for statement in STATEMENTS:
            if statement.mechanism == mechanism:
                people = statement.people(measured)
                found = met(measured, mechanism, people, part.draws, seed)
                draws[Point(part.table, statement.name, STATED)] = np.array([float(people)])
                draws[Point(part.table, statement.name, SHARE)] = found
        return Measurements(draws)
