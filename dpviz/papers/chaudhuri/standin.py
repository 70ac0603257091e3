"""Chaudhuri, Sarwate and Sinha 2012, Figure 1 on tables that replace absent data."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator
from dpviz.mechanisms import Mechanism
from dpviz.papers.chaudhuri._shared import (
    BUDGET,
    DATA_SETS,
    NON_PRIVATE,
    PPCA,
    STUDIED,
    DataSet,
    UnitRows,
)
from dpviz.papers.chaudhuri.figure1 import UTILITY
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

ALIKE, SKEWED = "alike", "skewed"
WEIGHTS = (ALIKE, SKEWED)
UNIFORM, BELL, CORNERS = "uniform numbers", "bell-shaped numbers", "numbers in corners"
SHAPES = (UNIFORM, BELL, CORNERS)
RECALLED = (
    32_710, 2_973, 6_168, 54_480, 1_706, 27_244, 18_361, 5_210, 11_779, 1_381, 2_848,
)  # fmt: skip
"""Rows of each activity of localization, recalled from memory. No source is available, so they are
only one of the readings. The counts add up to the number of rows."""
ACTIVITIES = ("activities alike", "activities skewed", "activities as recalled")

LOCALIZATION = [
    f"localization: {shape}, categories {weight}, {activity}"
    for shape in SHAPES
    for weight in WEIGHTS
    for activity in ACTIVITIES
]
CENSUS = [
    f"census: {shape}, fields {size}, categories {weight}"
    for shape in (UNIFORM, CORNERS)
    for size in WEIGHTS
    for weight in WEIGHTS
]
MEMBERS = {"census": CENSUS, "localization": LOCALIZATION}
"""For each data set, the names of tables that share its published facts."""

_CENSUS_NUMBERS, _CENSUS_FIELDS = 8, 34


class MemberPart(Part):
    """One member of a family of tables, with the number of releases of each mechanism."""

    member: str = ""
    draws: int = 0
    chains: int = 0


class ChaudhuriStandin(Experiment):
    """Figure 1 on every member of two families of tables."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each member."""
        if effort is Effort.QUICK:
            return [MemberPart("", LOCALIZATION[0], 20, 2)]
        return [
            MemberPart("", member, 100, 20)
            for data, members in MEMBERS.items()
            for member in members
        ]

    def run(self, part: MemberPart, shared: None, seed: int) -> Measurements:
        """Return the variance that each mechanism captures at the least and the largest n."""
        data = DATA_SETS[part.member.partition(":")[0]]
        rows = member(part.member, data, seed)
        found: dict[Point, FloatArray] = {}
        for moment in rows.prefixes(rows.order(seed, 0), (data.sizes[0], data.sizes[-1])):
            measured, problem = rows.measured(moment), rows.problem(moment.n, data.k)
            for mechanism in STUDIED:
                cell = Cell(mechanism, problem, BUDGET, seed, range(_draws(mechanism, part)))
                captured = evaluate(cell, measured).captured_each.sum(axis=1)
                found[Point(part.member, mechanism.label, UTILITY, moment.n)] = captured
        return Measurements(found)


def _draws(mechanism: Mechanism, part: MemberPart) -> int:
    if mechanism == NON_PRIVATE:
        return 1
    return part.chains if mechanism == PPCA else part.draws


def member(name: str, data: DataSet, seed: int) -> UnitRows:
    """Return a table with the published facts; its name states the other facts."""
    shape, second, third = name.partition(": ")[2].split(", ")
    rng = generator(seed, "reproduce", "chaudhuri", "stand-in", name)
    if data.key == "localization":
        numbers, sizes, weight = 4, [25, 4], second
        activity = {
            ACTIVITIES[0]: np.ones(len(RECALLED)),
            ACTIVITIES[1]: _falling(len(RECALLED), SKEWED),
            ACTIVITIES[2]: np.array(RECALLED, dtype=float),
        }[third]
    else:
        numbers, weight = _CENSUS_NUMBERS, third
        sizes = _sizes(data.d - numbers, _CENSUS_FIELDS, second.rpartition(" ")[2])
        activity = None
    shares = [_falling(size, weight.rpartition(" ")[2]) for size in sizes]
    shares += [] if activity is None else [activity]
    scaled = _numbers(shape, (data.n, numbers), rng)
    scaled = (scaled - scaled.min(axis=0)) / np.ptp(scaled, axis=0)
    # The table is created as a sparse matrix, because a dense census table would take 800 MB.
    blocks = [sparse.csr_array(scaled)]
    for each in shares:
        chosen = rng.choice(len(each), data.n, p=each / each.sum())
        cells = (np.ones(data.n), chosen, np.arange(data.n + 1))
        blocks.append(sparse.csr_array(cells, shape=(data.n, len(each))))
    rows = sparse.hstack(blocks, format="csr")
    assert rows.shape == (data.n, data.d)
    rows.data /= np.sqrt(rows.multiply(rows).sum(axis=1).max())
    return UnitRows(name, tuple(f"x{place}" for place in range(data.d)), rows, None)


def _falling(size: int, weight: str) -> FloatArray:
    """Return category frequencies: all equal, or each 0.7 times the frequency before it."""
    values: FloatArray = np.power(0.7 if weight == SKEWED else 1.0, np.arange(size, dtype=float))
    return values


def _sizes(total: int, count: int, weight: str) -> list[int]:
    """Return each field's number of categories: all equal, or growing from 2 by a tenth each."""
    grown = np.power(1.1 if weight == SKEWED else 1.0, np.arange(count, dtype=float))
    sizes = np.maximum(np.floor(grown / grown.sum() * total).astype(int), 2)
    sizes[-1] += total - sizes.sum()
    return [int(size) for size in sizes]


def _numbers(shape: str, size: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    values: FloatArray = {
        UNIFORM: lambda: rng.random(size),
        BELL: lambda: rng.standard_normal(size),
        CORNERS: lambda: rng.beta(0.5, 0.5, size),
    }[shape]()
    return values
