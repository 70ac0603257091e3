"""How many people a goal needs, from a plan alone."""

from __future__ import annotations

import math
from dataclasses import replace

from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.metrics import chance_share
from dpviz.preparation.load import load_measured
from dpviz.preparation.prepared import Measured
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import predicted_crossing
from dpviz.theory.predict import predict

GOAL = 0.9
"""The recovery that the lesson about people asks for."""

_COARSE = 1.05  # more than the lattice of answers is wide, which is refined


def goal_of(measured: Measured, k: int, recovery: float) -> Goal:
    """Return the goal of a recovery on one table or plan."""
    return Goal.of_recovery(recovery, chance_share(measured.reference, k))


def people_needed(settings: Settings, mechanism: Mechanism, recovery: float = GOAL) -> float:
    """Return the fewest people at which the predicted recovery reaches a goal, to the last one."""
    measured = load_measured(settings)
    goal = goal_of(measured, settings.k, recovery)
    found = predicted_crossing(measured, settings, mechanism, goal, "n")
    if found is None:
        raise RuntimeError(f"{mechanism.text} has no prediction")
    if math.isinf(found):
        return found
    low, high = int(found / _COARSE), int(found)  # not enough, enough
    while high - low > 1:
        middle = (low + high) // 2
        problem = replace(measured.problem(settings), n=middle)
        noise = mechanism.free_noise(mechanism.calibrate(problem, measured.budget(settings)))
        assert noise is not None  # or there was no prediction above
        share = predict(measured.moment.eigenvalues, settings.k, noise).captured_share
        low, high = (low, middle) if goal.reached_by(share) else (middle, high)
    return float(high)
