"""What exploring gives away: means and bounds taken from the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.auditing.exhibits import WITH, WITHOUT
from dpviz.core.arrays import FloatArray
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.preparation.bounding import prepare

MEAN_COLUMNS = ("feature", "sum_of_known", "published_mean", "recovered", "true")
BOUND_COLUMNS = ("table", "largest_known", "published_bound")


# What exploring gives away -----------------------------------------------------------

# Six invented people; the attacker knows all rows but the last.
_PEOPLE = np.array(
    [
        [34.0, 2.1, 3.0],
        [51.0, 3.4, 7.0],
        [29.0, 1.8, 2.0],
        [45.0, 2.9, 9.0],
        [38.0, 2.5, 4.0],
        [62.0, 9.7, 24.0],
    ]
)
_FEATURES = ("age", "income", "visits")


def people() -> tuple[tuple[str, ...], FloatArray]:
    """Return the features and the rows of the invented people; the last row is the unknown one."""
    return _FEATURES, _PEOPLE.copy()


def _published(rows: FloatArray, center: str) -> tuple[FloatArray, float]:
    """Return the mean and the row bound that preparing a table makes public."""
    settings = replace(Settings(), center=center, row_bound="max", scale="none", domain="ball")
    prepared = prepare(Table("invented people", rows.copy(), _FEATURES), settings)
    return prepared.transform.center, prepared.row_bound


def mean_leak_table() -> pd.DataFrame:
    """Return how the mean of a table gives the last row away to who knows the others.

    Returns
    -------
    DataFrame
        `MEAN_COLUMNS`: n times the published mean less the sum of the known rows is the last row.
    """
    mean, _ = _published(_PEOPLE, "mean")
    known = _PEOPLE[:-1].sum(axis=0)
    recovered = len(_PEOPLE) * mean - known
    return pd.DataFrame(
        {
            "feature": _FEATURES,
            "sum_of_known": known,
            "published_mean": mean,
            "recovered": recovered,
            "true": _PEOPLE[-1],
        }
    )[list(MEAN_COLUMNS)]


def bound_leak_table() -> pd.DataFrame:
    """Return how a row bound taken from the data tells whether the last person is in it.

    Returns
    -------
    DataFrame
        `BOUND_COLUMNS`: with the person the bound is the length of their row; with the row zeroed
        it is the longest known one. An observer who knows that one is never wrong.
    """
    known = float(np.linalg.norm(_PEOPLE[:-1], axis=1).max())
    zeroed = _PEOPLE.copy()
    zeroed[-1] = 0.0
    rows = [
        (table, known, _published(people, "none")[1])
        for table, people in ((WITH, _PEOPLE), (WITHOUT, zeroed))
    ]
    return pd.DataFrame(rows, columns=list(BOUND_COLUMNS))
