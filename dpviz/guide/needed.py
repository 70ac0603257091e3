"""How many people a goal needs, from a plan alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.mechanisms import Mechanism
from dpviz.metrics import chance_share
from dpviz.prepare.load import load_measured
from dpviz.prepare.prepared import Measured
from dpviz.settings import Settings
from dpviz.targets.goal import Goal
from dpviz.targets.least import predicted_crossing

GOAL = 0.9
"""The recovery that lesson 7 asks for."""

NEEDED_COLUMNS = ("epsilon", "people")
_EPSILONS = tuple(float(value) for value in np.geomspace(0.05, 10.0, 9))


def goal_of(measured: Measured, k: int, recovery: float) -> Goal:
    """Return the goal of a recovery on one table or plan."""
    return Goal.of_recovery(recovery, chance_share(measured.reference, k))


def people_needed(settings: Settings, mechanism: Mechanism, recovery: float = GOAL) -> float:
    """Return the fewest people at which the predicted recovery reaches a goal."""
    measured = load_measured(settings)
    goal = goal_of(measured, settings.k, recovery)
    found = predicted_crossing(measured, settings, mechanism, goal, "n")
    if found is None:
        raise RuntimeError(f"{mechanism.text} has no prediction")
    return found


def needed_table(settings: Settings, mechanism: Mechanism, recovery: float = GOAL) -> pd.DataFrame:
    """Return the people needed along epsilon.

    Returns
    -------
    DataFrame
        `NEEDED_COLUMNS`, epsilon ascending.
    """
    rows = [
        (epsilon, people_needed(replace(settings, epsilon=epsilon), mechanism, recovery))
        for epsilon in _EPSILONS
    ]
    return pd.DataFrame(rows, columns=list(NEEDED_COLUMNS))
