"""What is expected along an axis without a draw, for every metric at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.metrics import METRICS
from dpviz.preparation.prepared import Measured, worth
from dpviz.report.tables.curves import SQUARED_BOUND
from dpviz.simulation.axes import settings_at, where
from dpviz.theory.predict import Prediction, predict

PREDICTION_COLUMNS = ("mechanism", "x", "value", "verdict")


@dataclass(frozen=True)
class Spot:
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


def spot_at(rows: Measured, measured: Measured, settings: Settings, axis: str, value: Any) -> Spot:
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
    return Spot(x, unit, measured, measured.problem(here), measured.budget(here))


@dataclass(frozen=True)
class Foretold:
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


def foretell(mechanism: Mechanism, spot: Spot) -> Foretold | None:
    """Return the prediction of one variant at one value, None where there is none.

    There is none behind a paid preparation.
    """
    measured, problem, budget = spot.measured, spot.problem, spot.budget
    if measured.raw is not None:
        return None
    if mechanism.why_not(problem, budget, rows=measured.serves(mechanism)) is not None:
        return None
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    if noise is None:
        return None
    seen = predict(measured.moment.eigenvalues, problem.k, noise, worth(measured))
    verdict = mechanism.status(problem, budget).verdict
    return Foretold(spot.x, spot.unit, problem.k, seen, verdict)


def prediction_rows(
    mechanism: Mechanism, line: Iterable[Foretold | None], metric: str
) -> list[tuple[str, float, float, str]]:
    """Return rows of `PREDICTION_COLUMNS` of one variant's predictions."""
    rows = []
    for point in line:
        value = None if point is None else point.prediction.metric(metric, point.k)
        if point is None or value is None:
            continue
        scale = point.unit if METRICS[metric].unit == SQUARED_BOUND else 1.0
        rows.append((mechanism.text, point.x, value * scale, str(point.verdict)))
    return rows
