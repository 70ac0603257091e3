"""Tidy tables of one setting: spectra, distances and angles as drawn, and all that is predicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpviz.core.metrics import METRICS
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Status, Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured, reference_variances
from dpviz.report.tables.curves import SQUARED_BOUND
from dpviz.simulation.axes import settings_at, where
from dpviz.simulation.cells import Skipped, account_of
from dpviz.simulation.compare import Result
from dpviz.simulation.predict import Prediction, predict

SPECTRUM_COLUMNS = (
    "mechanism", "component", "true", "median", "low", "high", "released",
)  # fmt: skip


def spectrum_table(prepared: Measured, results: Sequence[Result]) -> pd.DataFrame:
    """Return each mechanism's eigenspectrum over the draws, beside the true one.

    Returns
    -------
    DataFrame
        Columns `SPECTRUM_COLUMNS`, one row per component; low and high are the
        extremes of the draws. Where only a subspace is released the rows are
        the variance along each released direction, and ``released`` is False.
    """
    true = prepared.reference.eigenvalues
    parts = []
    for result in results:
        released = result.eigenvalues is not None
        # a subspace has no spectrum: shown is the variance it captures, marked as not released
        values = result.eigenvalues if result.eigenvalues is not None else result.captured_each
        count = values.shape[1]
        parts.append(
            pd.DataFrame(
                {
                    "mechanism": result.mechanism.text,
                    "component": np.arange(1, count + 1),
                    "true": true[:count],
                    "median": np.median(values, axis=0),
                    # of all draws and not of most: one draw is what a release is
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
    """Return the subspace distance and principal angles of every draw.

    Returns
    -------
    DataFrame
        Columns `ANGLE_COLUMNS`; ``angle`` counts from 1, the smallest; the
        distance is repeated for each angle of its trial.
    """
    parts = []
    for result in results:
        trials, k = result.angles.shape
        parts.append(
            pd.DataFrame(
                {
                    "mechanism": result.mechanism.text,
                    # one row for each angle, k of them to a trial
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
    """Return mean and range of one metric for each variant that has it.

    Returns
    -------
    DataFrame
        Columns `MEASURE_COLUMNS`; low and high hold the central 95 % of the draws.
    """
    found = [(r.mechanism.text, r.summaries[metric]) for r in results if metric in r.metrics]
    rows = [(key, summary.mean, summary.low, summary.high) for key, summary in found]
    return pd.DataFrame(rows, columns=list(MEASURE_COLUMNS))


EVERY_MEASURE_COLUMNS = ("measure", "mean", "se", "low", "high")


def every_measure_table(result: Result) -> pd.DataFrame:
    """Return each measure of one variant over its draws.

    Returns
    -------
    DataFrame
        Columns `EVERY_MEASURE_COLUMNS`; low and high hold the central 95 % of the draws.
    """
    rows = [
        (METRICS[key].label, summary.mean, summary.se, summary.low, summary.high)
        for key, summary in result.summaries.items()
    ]
    return pd.DataFrame(rows, columns=list(EVERY_MEASURE_COLUMNS))


# What is expected of each mechanism in one setting, without a draw ------------------------------


@dataclass(frozen=True, eq=False)
class PredictedVariant:
    """One variant's prediction, with its noise's edges and threshold and its claim's status."""

    mechanism: Mechanism
    prediction: Prediction
    status: Status
    edges: tuple[float, float] | None
    threshold: float | None


def expectations(
    measured: Measured, settings: Settings, mechanisms: Iterable[Mechanism]
) -> tuple[list[PredictedVariant], list[Skipped]]:
    """Return the prediction of every variant that has one, and why the others have none."""
    problem, budget = measured.problem(settings), measured.budget(settings)
    found, skipped = [], []
    for mechanism in mechanisms:
        reason = mechanism.why_not(problem, budget, rows=measured.serves(mechanism))
        if reason is not None:
            skipped.append(Skipped(mechanism.text, reason))
            continue
        if measured.raw is not None:
            # each draw prepares the table anew, so that there is no one matrix to predict from
            reason = "a paid preparation has no limiting law to predict from"
            skipped.append(Skipped(mechanism.text, reason))
            continue
        # calibrated once, for the noise and for what is judged of it
        account = account_of(mechanism, problem, budget)
        noise = mechanism.free_noise(account.calibration)
        if noise is None:
            reason = "there is no limiting law of the noise to predict from"
            skipped.append(Skipped(mechanism.text, reason))
            continue
        seen = predict(measured.moment.eigenvalues, problem.k, noise, reference_variances(measured))
        found.append(
            PredictedVariant(mechanism, seen, account.status, account.edges, account.threshold)
        )
    return found, skipped


def expected_row(item: PredictedVariant, k: int) -> dict[str, Any]:
    """Return the predicted metrics of one variant by name."""
    values = {key: item.prediction.metric(key, k) for key in METRICS}
    known = {key: value for key, value in values.items() if value is not None}
    return {"mechanism": item.mechanism.text, "status": str(item.status.verdict), **known}


def expected_spectrum(measured: Measured, found: Iterable[PredictedVariant]) -> pd.DataFrame:
    """Return the expected noisy eigenvalues beside the true ones.

    Returns
    -------
    DataFrame
        Columns `dpviz.report.tables.comparison.SPECTRUM_COLUMNS`; median, low and high are one
        number.
    """
    true = measured.reference.eigenvalues
    parts = [
        pd.DataFrame(
            {
                "mechanism": item.mechanism.text,
                "component": range(1, len(true) + 1),
                "true": true,
                # an expectation has no range: the columns are those of what is drawn
                "median": item.prediction.spectrum,
                "low": item.prediction.spectrum,
                "high": item.prediction.spectrum,
                "released": True,
            },
            columns=list(SPECTRUM_COLUMNS),
        )
        for item in found
    ]
    empty = pd.DataFrame(columns=list(SPECTRUM_COLUMNS))
    return pd.concat(parts, ignore_index=True) if parts else empty


# Along an axis ------------------------------------------------------------------------------------


PREDICTION_COLUMNS = ("mechanism", "x", "value", "verdict")


@dataclass(frozen=True)
class AxisPoint:
    """One value of an axis, as every variant meets it there.

    Attributes
    ----------
    x, unit : float
        As in `dpviz.report.tables.curves.CurvePoint`.
    measured : Measured
    problem : Problem
    budget : Budget
    """

    x: float
    unit: float
    measured: Measured
    problem: Problem
    budget: Budget


def axis_point(
    rows: Measured, measured: Measured, settings: Settings, axis: str, value: Any
) -> AxisPoint:
    """Return one value of an axis.

    Parameters
    ----------
    rows, measured : Measured
        Of the base setting and at this value.
    settings : Settings
        The base setting's.
    axis : str
    value : Any
    """
    here = settings_at(settings, axis, value)
    x, unit = where(rows, measured, axis, value)
    return AxisPoint(x, unit, measured, measured.problem(here), measured.budget(here))


@dataclass(frozen=True)
class PredictedPoint:
    """What is predicted of one variant at one value, whichever metric is asked for.

    Attributes
    ----------
    x, unit : float
        As in `dpviz.report.tables.curves.CurvePoint`.
    k : int
    prediction : Prediction
    verdict : Verdict
        On its claim there.
    """

    x: float
    unit: float
    k: int
    prediction: Prediction
    verdict: Verdict


def predicted_at(mechanism: Mechanism, spot: AxisPoint) -> PredictedPoint | None:
    """Return the prediction of one variant at one value, None where there is none.

    There is none behind a private preparation.
    """
    measured, problem, budget = spot.measured, spot.problem, spot.budget
    if measured.raw is not None:
        return None
    # a hole in the line, where others may go on
    if mechanism.why_not(problem, budget, rows=measured.serves(mechanism)) is not None:
        return None
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    if noise is None:
        return None
    seen = predict(measured.moment.eigenvalues, problem.k, noise, reference_variances(measured))
    verdict = mechanism.status(problem, budget).verdict
    return PredictedPoint(spot.x, spot.unit, problem.k, seen, verdict)


def prediction_rows(
    mechanism: Mechanism, line: Iterable[PredictedPoint | None], metric: str
) -> list[tuple[str, float, float, str]]:
    """Return rows of `PREDICTION_COLUMNS` of one variant's predictions."""
    rows = []
    for point in line:
        value = None if point is None else point.prediction.metric(metric, point.k)
        if point is None or value is None:
            continue
        # along the row bound the unit itself changes: all are told in that of the setting
        scale = point.unit if METRICS[metric].unit == SQUARED_BOUND else 1.0
        rows.append((mechanism.text, point.x, value * scale, str(point.verdict)))
    return rows
