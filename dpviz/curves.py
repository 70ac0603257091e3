"""Curves along one axis: default values, bands over draws, frontier, prediction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpviz.errors import InvalidSetting
from dpviz.grid import axis_param
from dpviz.measured import Measured
from dpviz.mechanisms import Mechanism
from dpviz.metrics import METRICS, optimum, summarise
from dpviz.predict import predict
from dpviz.prepare import BoundedRows
from dpviz.release import Verdict
from dpviz.settings import Settings
from dpviz.sweeps import Cell, Result
from dpviz.targets import worth
from dpviz.theory import appears_at

BAND_COLUMNS = ("mechanism", "x", "mean", "se", "low", "high", "draws", "verdict")
PREDICTION_COLUMNS = ("mechanism", "x", "value")
COARSE, FINE = 7, 13


def default_values(axis: str, rows: BoundedRows, count: int) -> list[Any]:
    """Return values that suit a table, in increasing order.

    A fine list contains the coarse one, so that refining keeps what is drawn.

    Parameters
    ----------
    axis : str
        One of `dpviz.grid.AXES`.
    rows : BoundedRows
    count : int
        `COARSE` or `FINE`.

    Raises
    ------
    InvalidSetting
        If the axis cannot be varied on this table.
    """
    axis_param(axis)
    if axis == "epsilon":
        return [_rounded(value) for value in np.geomspace(0.01, 100, count)]
    if axis == "delta":
        return [_rounded(value) for value in np.geomspace(1e-10, 1e-2, count)]
    if axis == "n":
        low, high = max(20.0, rows.n / 30), 300.0 * rows.n
        return sorted({*(int(value) for value in np.geomspace(low, high, count)), rows.n})
    if axis == "k":
        most = min(rows.d - 1, 30)
        return sorted({round(value) for value in np.geomspace(1, most, count)})
    if rows.domain.kind != "ball":
        raise InvalidSetting("row bound", "varied on a ball; a box has feature bounds", "box")
    return [f"quantile:{_rounded(level)}" for level in np.linspace(0.05, 0.95, count - 1)] + ["max"]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def default_epsilons() -> list[float]:
    """Return the fine values of epsilon."""
    return [_rounded(value) for value in np.geomspace(0.01, 100, 4 * FINE)]


def rows_at(rows: Measured, axis: str, value: Any, seed: int) -> Measured:
    """Return the table at one value of an axis; the table itself if rows do not change.

    Raises
    ------
    InvalidSetting
        If the axis needs rows and there are none.
    """
    if axis in ("n", "row_bound") and not isinstance(rows, BoundedRows):
        raise InvalidSetting("over", "epsilon, delta or k without a table", axis, "--over")
    if not isinstance(rows, BoundedRows):
        return rows
    if axis == "n":
        return rows.with_n(int(value), seed)
    if axis == "row_bound":
        return rows.again(str(value))
    return rows


def settings_at(settings: Settings, axis: str, value: Any) -> Settings:
    """Return the settings at one value of an axis; n is not a setting."""
    return settings if axis == "n" else replace(settings, **{axis: value})


def cell_at(
    measured: Measured, settings: Settings, mechanism: Mechanism, trials: range
) -> Cell | str:
    """Return the cell of one variant in one setting, or why it cannot run."""
    problem, budget = measured.problem(settings), measured.budget(settings)
    reason = mechanism.unable(problem, budget, rows=measured.has_rows)
    return reason or Cell(mechanism, problem, budget, settings.seed, trials)


@dataclass(frozen=True)
class Point:
    """One variant at one value of an axis.

    Attributes
    ----------
    x : float
        Where it is drawn: the value, or the row bound in units of the table.
    result : Result
    unit : float
        Squared row bound here over that of the base setting.
    """

    x: float
    result: Result
    unit: float = 1.0


def band_table(points: Iterable[Point], metric: str) -> pd.DataFrame:
    """Return mean, standard error and range of one metric at each point.

    Returns
    -------
    DataFrame
        Columns `BAND_COLUMNS`; low and high hold the central 95 % of the draws.
    """
    rows = []
    for point in points:
        values = point.result.metrics.get(metric)
        if values is None:
            continue
        scale = point.unit if METRICS[metric].unit == "squared row bound" else 1.0
        summary = summarise(values * scale)
        rows.append(
            (
                point.result.mechanism.text,
                point.x,
                summary.mean,
                summary.se,
                summary.low,
                summary.high,
                len(values),
                str(point.result.status.verdict),
            )
        )
    table = pd.DataFrame(rows, columns=list(BAND_COLUMNS))
    return table.sort_values(["mechanism", "x"], ignore_index=True)


def frontier(bands: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the best variant at each x among those whose claim is not false.

    Where the draws cannot tell the best from the second (their means are within
    three standard errors of the difference) there is no row.

    Returns
    -------
    DataFrame
        Rows of ``bands``; empty for a metric without a direction.
    """
    measure = METRICS[metric]
    counted = ~bands["verdict"].isin([str(Verdict.REFUTED), str(Verdict.BASELINE)])
    kept = bands[counted]
    if measure.better == "neither" or kept.empty:
        return kept.iloc[:0]
    ordered = kept.sort_values("mean", ascending=measure.better == "lower", kind="stable")
    rows = []
    for _, ranked in ordered.groupby("x"):
        best = ranked.iloc[:1]
        if len(ranked) > 1:
            mean, se = ranked["mean"].to_numpy()[:2], ranked["se"].to_numpy()[:2]
            if not abs(mean[0] - mean[1]) > 3 * math.hypot(se[0], se[1]):
                continue
        rows.append(best)
    return pd.concat(rows, ignore_index=True) if rows else kept.iloc[:0]


def prediction_table(
    rows: Measured,
    settings: Settings,
    mechanisms: Sequence[Mechanism],
    axis: str,
    values: Sequence[Any],
    metric: str,
) -> pd.DataFrame:
    """Return the prediction without draws, where there is one.

    Returns
    -------
    DataFrame
        Columns `PREDICTION_COLUMNS`.
    """
    found = []
    for value in values:
        measured, here = (
            rows_at(rows, axis, value, settings.seed),
            settings_at(settings, axis, value),
        )
        problem, budget = measured.problem(here), measured.budget(here)
        x, unit = where(rows, measured, axis, value)
        scale = unit if METRICS[metric].unit == "squared row bound" else 1.0
        for mechanism in mechanisms:
            if mechanism.unable(problem, budget, rows=measured.has_rows) is not None:
                continue
            noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
            if noise is None:
                continue
            predicted = predict(
                measured.moment.eigenvalues, problem.k, noise, worth(measured)
            ).metric(metric, problem.k)
            if predicted is not None:
                found.append((mechanism.text, x, predicted * scale))
    return pd.DataFrame(found, columns=list(PREDICTION_COLUMNS))


def where(rows: Measured, measured: Measured, axis: str, value: Any) -> tuple[float, float]:
    """Return where a value is drawn, and its squared row bound over the base setting's."""
    if axis == "row_bound":
        return measured.row_bound, (measured.row_bound / rows.row_bound) ** 2
    return float(value), 1.0


def now(rows: BoundedRows, settings: Settings, axis: str) -> float:
    """Return where the current setting stands on an axis."""
    here: Mapping[str, float] = {
        "epsilon": settings.epsilon,
        "delta": rows.budget(settings).delta,
        "k": settings.k,
        "n": rows.n,
        "row_bound": rows.row_bound,
    }
    return float(here[axis])


def limits(rows: Measured, settings: Settings, metric: str) -> tuple[float | None, float | None]:
    """Return (floor of a random subspace, ceiling without privacy), where known exactly."""
    best = optimum(rows.reference, settings.k)
    total = rows.reference.total
    chance = settings.k / rows.d * total
    if metric == "captured_share":
        return chance / best, 1.0
    if metric == "captured_total":
        return chance / total, best / total
    return None, None


def marks(rows: Measured, settings: Settings, mechanisms: Sequence[Mechanism]) -> pd.DataFrame:
    """Return the epsilon at which each of the first k components appears.

    Returns
    -------
    DataFrame
        Columns mechanism, component, epsilon; only finite ones, and only of
        mechanisms whose noise has a limiting law.
    """
    problem, budget = rows.problem(settings), rows.budget(settings)
    found = []
    for mechanism in mechanisms:
        if mechanism.unable(problem, budget) is not None:
            continue
        if mechanism.free_noise(mechanism.calibrate(problem, budget)) is None:
            continue
        values = rows.moment.eigenvalues[: min(settings.k, 5)]
        for number, epsilon in enumerate(
            appears_at(mechanism, problem, budget.delta, values), start=1
        ):
            if epsilon <= 100:  # beyond the axis a mark would only stretch it
                found.append((mechanism.text, number, float(epsilon)))
    return pd.DataFrame(found, columns=["mechanism", "component", "epsilon"])


def predicted_spectrum(
    measured: Measured, settings: Settings, mechanism: Mechanism
) -> list[float] | None:
    """Return the noisy eigenvalues expected without a draw, descending, or None."""
    problem, budget = measured.problem(settings), measured.budget(settings)
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    if noise is None:
        return None
    expected = predict(measured.moment.eigenvalues, problem.k, noise, worth(measured))
    return [float(value) for value in expected.spectrum]


def best_row_bound(bands: pd.DataFrame) -> pd.DataFrame:
    """Return each variant's best row bound for the captured share: its row of ``bands``."""
    best = bands.groupby("mechanism")["mean"].idxmax()
    return bands.loc[best].reset_index(drop=True)
