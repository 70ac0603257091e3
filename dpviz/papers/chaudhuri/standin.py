"""Chaudhuri, Sarwate and Sinha 2012, Figure 1 on tables with published facts of localization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator
from dpviz.datasets.table import Table
from dpviz.papers.chaudhuri._shared import (
    BUDGET,
    DATA_SETS,
    NON_PRIVATE,
    RANDOM,
    SULQ,
    UnitRows,
    unit_rows,
)
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

DATA = DATA_SETS["localization"]
SEQUENCES, TAGS, COORDINATES = 25, 4, 3
ACTIVITIES = (
    32_710, 2_973, 6_168, 54_480, 1_706, 27_244, 18_361, 5_210, 11_779, 1_381, 2_848,
)  # fmt: skip
"""Rows of each activity, as published with the data set: walking, falling, lying down, ..."""

UNIFORM, BELL, CORNERS = "uniform coordinates", "bell-shaped coordinates", "coordinates in corners"
EQUAL, SKEWED = "sequences and tags equally frequent", "sequences and tags skewed"
MEMBERS = [f"{shape}, {weight}" for shape in (UNIFORM, BELL, CORNERS) for weight in (EQUAL, SKEWED)]
HEIGHT = "share of the way from random subspaces to exact PCA"
UTILITY = "q_F(U)"


@dataclass(frozen=True)
class MemberPart(Part):
    """One member of the family."""

    member: str = ""
    draws: int = 0


class ChaudhuriStandin(Experiment):
    """MOD-SULQ on every member of a family of tables."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each member."""
        draws = 20 if effort is Effort.QUICK else 100  # the paper: 100
        return [MemberPart("", member, draws) for member in MEMBERS]

    def run(self, part: Part, shared: None, seed: int) -> Measurements:
        """Return what MOD-SULQ captures at each n, as a share of the way."""
        assert isinstance(part, MemberPart)
        rows = member(part.member, seed)
        order = rows.order(seed, 0)
        sizes = (DATA.sizes[0], DATA.sizes[-1])
        found: dict[Point, FloatArray] = {}
        for moment in rows.prefixes(order, sizes):
            measured, n = rows.measured(moment), moment.n
            problem = rows.problem(n, DATA.k)
            captured = {
                mechanism: evaluate(
                    Cell(mechanism, problem, BUDGET, seed, range(part.draws)), measured
                ).captured_each.sum(axis=1)
                for mechanism in (NON_PRIVATE, RANDOM, SULQ)
            }
            floor = float(captured[RANDOM].mean())
            ceiling = float(captured[NON_PRIVATE].mean())
            found[Point(part.member, SULQ.label, HEIGHT, n)] = (captured[SULQ] - floor) / (
                ceiling - floor
            )
            for mechanism, values in captured.items():
                found[Point(part.member, mechanism.label, UTILITY, n)] = values
        return Measurements(found)


def member(name: str, seed: int) -> UnitRows:
    """Return a table with the published facts, and with what its name says of the rest."""
    shape, _, weight = name.partition(", ")
    rng = generator(seed, "reproduce", "chaudhuri", "localization", name)
    n = DATA.n
    # a skewed block has frequencies that fall by a tenth from each to the next
    ratio = 0.9 if weight == SKEWED else 1.0
    blocks = []
    for size, shares in (
        (SEQUENCES, ratio ** np.arange(SEQUENCES)),
        (TAGS, ratio ** np.arange(TAGS)),
        (len(ACTIVITIES), np.array(ACTIVITIES, dtype=float)),
    ):
        chosen = rng.choice(size, n, p=shares / shares.sum())
        blocks.append(np.eye(size)[chosen])
    blocks.append(rng.random((n, 1)))  # the time: from the first row to the last
    blocks.append(
        {
            UNIFORM: lambda: rng.random((n, COORDINATES)),
            BELL: lambda: rng.standard_normal((n, COORDINATES)),
            CORNERS: lambda: rng.beta(0.5, 0.5, (n, COORDINATES)),
        }[shape]()
    )
    table = np.hstack(blocks)
    assert table.shape == (DATA.n, DATA.d)
    return unit_rows(Table(name, table, tuple(f"x{place}" for place in range(DATA.d))))
