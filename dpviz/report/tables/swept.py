"""A sweep's table along one of its axes, as bands that a figure draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from dpviz.core.problem import Budget
from dpviz.core.settings import Settings
from dpviz.metrics import summarise
from dpviz.preparation.prepared import Measured
from dpviz.preparation.steps import wanted_of
from dpviz.report.tables.curves import BAND_COLUMNS
from dpviz.simulation.cells import account_of, variants_of


def band_table_of_sweep(
    table: pd.DataFrame, rows: Measured, settings: Settings, axis: str, metric: str
) -> pd.DataFrame:
    """Return mean, standard error and range of one metric along one axis.

    Parameters
    ----------
    table : DataFrame
        `dpviz.simulation.compare.TABLE_COLUMNS`, with one value on every other axis.
    rows : Measured
        What was swept.
    settings : Settings
    axis, metric : str

    Returns
    -------
    DataFrame
        Columns `dpviz.report.tables.curves.BAND_COLUMNS`; low and high hold the central 95 % of the
        draws.
    """
    found = []
    paid = wanted_of(settings)
    chosen = table[table["metric"] == metric]
    known = {mechanism.text: mechanism for mechanism in variants_of(settings)}
    for (text, x), part in chosen.groupby(["mechanism", axis], sort=False):
        mechanism, first = known[str(text)], part.iloc[0]
        # The row bound is the unit of A, so no problem depends on it.
        problem = replace(rows.problem(settings), n=int(first["n"]), k=int(first["k"]))
        budget = Budget(float(first["epsilon"]), float(first["delta"]))
        verdict = account_of(mechanism, problem, budget, paid).status.verdict
        seen = summarise(part["value"].to_numpy(dtype=float))
        found.append(
            (str(text), x, seen.mean, seen.se, seen.low, seen.high, len(part), str(verdict))
        )
    bands = pd.DataFrame(found, columns=list(BAND_COLUMNS))
    return bands.sort_values(["mechanism", "x"], ignore_index=True)


def at_one_value(table: pd.DataFrame, fixed: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a sweep's table at given values of some of its columns."""
    kept = pd.Series(True, index=table.index)
    for axis, value in fixed.items():
        kept &= table[axis] == value
    return table[kept]
