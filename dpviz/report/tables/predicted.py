"""What is expected of each mechanism in one setting, without a draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpviz.core.release import Status
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.metrics import METRICS
from dpviz.preparation.prepared import Measured, worth
from dpviz.report.tables.comparison import SPECTRUM_COLUMNS
from dpviz.simulation.cells import Skipped, account_of
from dpviz.theory.predict import Prediction, predict


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
            reason = "a paid preparation has no limiting law to predict from"
            skipped.append(Skipped(mechanism.text, reason))
            continue
        account = account_of(mechanism, problem, budget)
        noise = mechanism.free_noise(account.calibration)
        if noise is None:
            reason = "there is no limiting law of its noise to predict from"
            skipped.append(Skipped(mechanism.text, reason))
            continue
        seen = predict(measured.moment.eigenvalues, problem.k, noise, worth(measured))
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
