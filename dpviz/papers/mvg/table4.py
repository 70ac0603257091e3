"""Chanyaswad et al. 2018, Table 4: the first principal component of MovementAAL."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Problem
from dpviz.core.seeding import Draws
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part, Series
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.mvg._shared import (
    COLUMNS,
    DATA,
    EPSILON,
    LOSS,
    RIGHT,
    TAUS,
    Movement,
    favouring,
    log_pnr_of_answer,
    single,
)
from dpviz.papers.said import Stated

HELD, ONE = "half width that holds the rows", "half width 1, not private"
EVERY = "all 13,197 rows, half width that holds them"
HALVES = (HELD, ONE, EVERY)
EQUAL = 0.5
"""At tau = 2/4 the two favoured features of four get the same share as the others."""

THEOREM_2 = parse_variant("mvg")
THEOREM_3 = parse_variant("mvg[theorem=3]")
THEOREM_3_TIGHT = parse_variant("mvg[theorem=3,tail=tight]")
DIRECTIONAL = parse_variant("directional_gaussian")
MVG = (THEOREM_2, THEOREM_3, THEOREM_3_TIGHT)
SHAPED = (*MVG, DIRECTIONAL)

NON_PRIVATE, RANDOM = parse_variant("non_private"), parse_variant("random_projection")
GAUSSIAN, LAPLACE = parse_variant("analyze_gauss"), parse_variant("laplace")
EXPONENTIAL, SKETCH = parse_variant("ppca"), parse_variant("jl_transform")
ADDED = tuple(parse_variant(key) for key in ("gaussian", "laplace_tight", "wishart_difference"))
ALIKE = (ADDED[0], ADDED[2])
"""Mechanisms whose noise has the same std along every direction."""
PLAIN = (NON_PRIVATE, RANDOM, GAUSSIAN, SKETCH, LAPLACE, EXPONENTIAL, *ADDED)

NAMES = {
    NON_PRIVATE: "Non-private",
    RANDOM: "Random guess",
    THEOREM_2: "MVG, Theorem 2",
    THEOREM_3: "MVG, Theorem 3",
    THEOREM_3_TIGHT: "MVG, Theorem 3, tight tail",
    GAUSSIAN: "Gaussian (Dwork et al. 2014: Analyze Gauss)",
    SKETCH: "JL transform (Blocki et al.)",
    LAPLACE: "Laplace (2d/(n epsilon) on each entry)",
    EXPONENTIAL: "Exponential (Chaudhuri et al.: PPCA)",
}
"""The paper's names of the table's rows; other rows use mechanism labels."""

SINGULAR = "left singular vectors"
RAW_LOSS = f"{LOSS}, {SINGULAR}"
SPENT, STD = "epsilon really spent", "std of the noise on a variance"
PNR = "log PNR"

ROUNDING = 0.00005
REPORTED = {
    NON_PRIVATE: Stated(0.0, rounding=ROUNDING),
    RANDOM: Stated(0.4370, rounding=ROUNDING),
    THEOREM_2: Stated(0.2138, 0.0192, ROUNDING),
    THEOREM_3: Stated(0.1434, 0.0192, ROUNDING),
    GAUSSIAN: Stated(0.2290, 0.0185, ROUNDING),
    SKETCH: Stated(0.2258, 0.0186, ROUNDING),
    LAPLACE: Stated(0.2432, 0.0177, ROUNDING),
    EXPONENTIAL: Stated(0.1742, 0.0188, ROUNDING),
}
"""Table 4 in squared units of the file, a tenth of the printed numbers."""

_MORE = {DIRECTIONAL: 50}
"""Factors on the number of releases; at the same epsilon, shapes differ by a few hundredths."""


class MovementPart(Part):
    """One mechanism on one cube of values."""

    mechanism: str = ""
    half: str = HELD
    draws: int = 0


def name_of(mechanism: Mechanism) -> str:
    """Return the name of the table row for a mechanism."""
    return NAMES.get(mechanism, mechanism.label)


class MvgTable4(Experiment):
    """Loss Delta-rho of the first component; see `info`."""

    pictures: ClassVar = {"tau": (LOSS, *(Series(name_of(one), one.key) for one in SHAPED))}

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each mechanism and cube."""
        draws = 200 if effort is Effort.QUICK else 2_000  # The paper uses 100 simulations.
        more = {} if effort is Effort.QUICK else _MORE
        parts: list[Part] = [
            MovementPart(DATA, mechanism.text, half, draws * more.get(mechanism, 1))
            for half in HALVES
            for mechanism in (SHAPED if half == HELD else MVG)
        ]
        parts += [MovementPart(DATA, mechanism.text, HELD, draws) for mechanism in PLAIN]
        parts.append(MovementPart(DATA, RANDOM.text, EVERY, draws))
        return parts

    def shared(self, data: str) -> dict[bool, Movement]:
        """Return the second moments of the paper's centred rows and of all rows."""
        return {first: Movement.load(first) for first in (True, False)}

    def run(self, part: MovementPart, shared: dict[bool, Movement], seed: int) -> Measurements:
        """Return the loss of a mechanism, at every tau if it has one."""
        return _measured(shared[part.half != EVERY], part, seed)


def _measured(shared: Movement, part: MovementPart, seed: int) -> Measurements:
    """Return the loss of one mechanism on the given rows."""
    mechanism = parse_variant(part.mechanism)
    if mechanism in SHAPED:
        return _shaped(shared, mechanism, part, seed)
    outcome = shared.outcome(mechanism, EPSILON, part.draws, seed)
    loss = shared.loss(outcome.release.components[:, :, 0])
    found = {Point(part.half, name_of(mechanism), LOSS): loss}
    spent = mechanism.spent(shared.problem(), shared.budget(EPSILON))
    if spent is not None:
        found[Point(part.half, name_of(mechanism), SPENT)] = single(spent.epsilon)
    if mechanism in ALIKE:
        stds = _stds(shared, mechanism, shared.problem(), part.half, seed)
        found[Point(part.half, name_of(mechanism), STD)] = single(stds[0] * shared.half**2)
    return Measurements(found)


def _shaped(shared: Movement, mechanism: Mechanism, part: MovementPart, seed: int) -> Measurements:
    half = 1.0 if part.half == ONE else shared.half
    name, found = name_of(mechanism), {}
    moment, budget = shared.measured(half).moment, shared.budget(EPSILON)
    for tau in (EQUAL, *TAUS):
        allocation = favouring(COLUMNS, RIGHT, tau)
        outcome = shared.outcome(mechanism, EPSILON, part.draws, seed, allocation, half)
        release, problem = outcome.release, shared.problem(allocation)
        found[Point(part.half, name, LOSS, tau)] = shared.loss(release.components[:, :, 0])
        if mechanism in MVG:
            left = np.linalg.svd(release.raw)[0][:, :, 0]
            found[Point(part.half, name, RAW_LOSS, tau)] = shared.loss(left)
        stds = _stds(shared, mechanism, problem, part.half, seed)
        found[Point(part.half, name, PNR, tau)] = single(log_pnr_of_answer(moment.A, stds))
        found[Point(part.half, name, STD, tau)] = single(stds[0] * half**2)
        spent = mechanism.spent(problem, budget)
        assert spent is not None
        found[Point(part.half, name, SPENT, tau)] = single(spent.epsilon)
    return Measurements(found)


def _stds(
    shared: Movement, mechanism: Mechanism, problem: Problem, half: str, seed: int
) -> FloatArray:
    """Return the noise's std on the variance along each feature, in units of the cube."""
    moment = shared.measured(1.0 if half == ONE else shared.half).moment
    calibration = mechanism.calibrate(problem, shared.budget(EPSILON))
    stds = mechanism.noise_along(moment, calibration, Draws.trials(seed, mechanism.key, [0]))
    assert stds is not None  # All mechanisms in this table state their stds.
    return stds
