"""Tidy tables of one setting: spectra, distances and angles of simulated releases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpviz.preparation.prepared import Measured
from dpviz.simulation.compare import Result

SPECTRUM_COLUMNS = (
    "mechanism", "component", "true", "median", "low", "high", "released",
)  # fmt: skip


def spectrum_table(prepared: Measured, results: Sequence[Result]) -> pd.DataFrame:
    """Return each mechanism's eigenspectrum over simulated releases, and the true spectrum.

    Returns
    -------
    DataFrame
        Table with `SPECTRUM_COLUMNS`, one row per component; low and high are the extremes over
        simulated releases. If only a subspace is released, the rows are the variance along each
        released direction, and ``released`` is False.
    """
    true = prepared.reference.eigenvalues
    parts = []
    for result in results:
        released = result.eigenvalues is not None
        # A subspace has no eigenvalues, so show its captured variance, marked as not released.
        values = result.eigenvalues if result.eigenvalues is not None else result.captured_each
        count = values.shape[1]
        parts.append(
            pd.DataFrame(
                {
                    "mechanism": result.mechanism.text,
                    "component": np.arange(1, count + 1),
                    "true": true[:count],
                    "median": np.median(values, axis=0),
                    # Use the extremes, because any single simulated release could be the real one.
                    "low": values.min(axis=0),
                    "high": values.max(axis=0),
                    "released": released,
                },
                columns=list(SPECTRUM_COLUMNS),
            )
        )
    return (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame(columns=list(SPECTRUM_COLUMNS))
    )


ANGLE_COLUMNS = ("mechanism", "trial", "angle", "degrees", "projection_distance")


def distance_table(results: Sequence[Result]) -> pd.DataFrame:
    """Return the subspace distance and principal angles of every simulated release.

    Returns
    -------
    DataFrame
        Table with `ANGLE_COLUMNS`; ``angle`` counts from 1, the smallest; the distance is repeated
        for each angle of its trial.
    """
    parts = []
    for result in results:
        trials, k = result.angles.shape
        parts.append(
            pd.DataFrame(
                {
                    "mechanism": result.mechanism.text,
                    # A trial fills k rows of the table, one for each angle.
                    "trial": np.repeat(np.arange(trials), k),
                    "angle": np.tile(np.arange(1, k + 1), trials),
                    "degrees": np.degrees(result.angles).ravel(),
                    "projection_distance": np.repeat(result.metrics["projection_distance"], k),
                },
                columns=list(ANGLE_COLUMNS),
            )
        )
    return (
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(ANGLE_COLUMNS))
    )


MEASURE_COLUMNS = ("mechanism", "mean", "low", "high")


def measure_table(results: Sequence[Result], metric: str) -> pd.DataFrame:
    """Return mean and range of one metric for each variant that has this metric.

    Returns
    -------
    DataFrame
        Table with `MEASURE_COLUMNS`; low and high hold the central 95 % of the simulated releases.
    """
    summaries = [(r.mechanism.text, r.summaries[metric]) for r in results if metric in r.metrics]
    rows = [(key, summary.mean, summary.low, summary.high) for key, summary in summaries]
    return pd.DataFrame(rows, columns=list(MEASURE_COLUMNS))
