"""Evaluate mechanisms on a prepared table: cells in, results out.

A cell is one variant in one setting; `evaluate` is the only place where a
mechanism meets data. `compare` evaluates every chosen variant in one setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from dpviz.blas import one_blas_thread
from dpviz.errors import CannotRun
from dpviz.measured import Measured
from dpviz.mechanisms import ALL, Mechanism, parse_variant, parse_variants
from dpviz.metrics import METRICS, Outcome, Summary, measure, optimum, summarise
from dpviz.moments import FloatArray
from dpviz.privacy.accounting import Spent
from dpviz.problem import Budget, Problem
from dpviz.release import Calibration, Status
from dpviz.seeding import Draws
from dpviz.settings import Settings

TABLE_COLUMNS = (
    "table", "mechanism", "epsilon", "delta", "k", "n", "row_bound", "relation",
    "trial", "metric", "value",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One variant in one setting, with the trials to draw.

    Attributes
    ----------
    mechanism : Mechanism
        The variant.
    problem : Problem
    budget : Budget
    seed : int
    trials : range
        Which named trials; chunks of trials join without a seam.
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    seed: int
    trials: range


@dataclass(frozen=True)
class Account:
    """What is known of a variant in one setting before anything is drawn.

    Attributes
    ----------
    calibration : Calibration
    claimed : Budget or None
    spent : Spent or None
    status : Status
    edges : (float, float) or None
        Limits of the noise's own spectrum.
    """

    calibration: Calibration
    claimed: Budget | None
    spent: Spent | None
    status: Status
    edges: tuple[float, float] | None


@lru_cache(maxsize=1024)
def account_of(mechanism: Mechanism, problem: Problem, budget: Budget) -> Account:
    """Return the account of a variant; kept, as every chunk of draws asks for it again."""
    calibration = mechanism.calibrate(problem, budget)
    spent = mechanism.spent(problem, budget)
    return Account(
        calibration=calibration,
        claimed=mechanism.claim(problem, budget),
        spent=spent,
        status=mechanism.judged(problem, budget, spent),
        edges=mechanism.spectrum_edges(calibration),
    )


def evaluate(cell: Cell, prepared: Measured) -> Outcome:
    """Run one cell: calibrate, release, and set beside the reference.

    BLAS runs on one thread.

    Raises
    ------
    CannotRun
        If the mechanism cannot run on this problem and budget.
    """
    mechanism = cell.mechanism
    mechanism.check(cell.problem, cell.budget, rows=prepared.has_rows)
    calibration = account_of(mechanism, cell.problem, cell.budget).calibration
    data = prepared.moment_with_rows if mechanism.info.needs_rows else prepared.moment
    draws = Draws.trials(cell.seed, mechanism.key, cell.trials)
    with one_blas_thread():
        release = mechanism.release_many(data, calibration, draws)
        return Outcome(prepared.reference, prepared.moment, release)


@dataclass(frozen=True, eq=False)
class Result:
    """What one variant did in one setting.

    Attributes
    ----------
    mechanism : Mechanism
    claimed : Budget or None
    spent : Spent or None
    status : Status
    metrics : dict of str to ndarray of shape (trials,)
    eigenvalues : ndarray of shape (trials, d) or None
        Of the released matrices.
    captured_each : ndarray of shape (trials, k)
        Variance along each released direction.
    angles : ndarray of shape (trials, k)
        Principal angles, radians, ascending.
    components : ndarray of shape (trials, d, k)
    edges : (float, float) or None
        Limits of the noise's own spectrum.
    trace : ndarray of shape (trials, steps) or None
        Of a sampler that only converges.
    """

    mechanism: Mechanism
    claimed: Budget | None
    spent: Spent | None
    status: Status
    metrics: dict[str, FloatArray]
    eigenvalues: FloatArray | None
    captured_each: FloatArray
    angles: FloatArray
    components: FloatArray
    edges: tuple[float, float] | None
    trace: FloatArray | None

    @property
    def diagnostics(self) -> dict[str, float]:
        """What a reader needs to judge an approximate sampler, by name."""
        return {} if self.trace is None else self.mechanism.diagnose(self.trace)

    @property
    def summaries(self) -> dict[str, Summary]:
        """Summary of each metric over the draws."""
        return {key: summarise(values) for key, values in self.metrics.items()}


def run_cell(cell: Cell, prepared: Measured, metrics: Iterable[str] = tuple(METRICS)) -> Result:
    """Evaluate a cell and measure it."""
    outcome = evaluate(cell, prepared)
    account = account_of(cell.mechanism, cell.problem, cell.budget)
    with one_blas_thread():
        measured = measure(outcome, metrics)
        angles = outcome.angles
    return Result(
        mechanism=cell.mechanism,
        claimed=account.claimed,
        spent=account.spent,
        status=account.status,
        metrics=measured,
        eigenvalues=outcome.release.eigenvalues,
        captured_each=outcome.captured_each,
        angles=angles,
        components=outcome.release.components,
        edges=account.edges,
        trace=outcome.release.trace,
    )


def joined(chunks: Sequence[Result]) -> Result:
    """Return one result from chunks of trials of the same cell, in order."""
    if len(chunks) == 1:
        return chunks[0]

    def together(parts: Sequence[FloatArray | None]) -> FloatArray | None:
        present = [part for part in parts if part is not None]
        return np.concatenate(present) if present else None

    return replace(
        chunks[0],
        metrics={
            key: np.concatenate([chunk.metrics[key] for chunk in chunks])
            for key in chunks[0].metrics
        },
        eigenvalues=together([chunk.eigenvalues for chunk in chunks]),
        captured_each=np.concatenate([chunk.captured_each for chunk in chunks]),
        angles=np.concatenate([chunk.angles for chunk in chunks]),
        components=np.concatenate([chunk.components for chunk in chunks]),
        trace=together([chunk.trace for chunk in chunks]),
    )


@dataclass(frozen=True)
class Skipped:
    """A variant that could not run, and why."""

    mechanism: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """Which cells a setting asks for, and which variants cannot run."""

    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]


def plan(prepared: Measured, settings: Settings, *, strict: bool = True) -> Plan:
    """Return the cells of one setting.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
    strict : bool
        Whether a variant that was named and cannot run is an error; otherwise,
        like one that was not named, it is skipped with its reason.

    Raises
    ------
    CannotRun
        If ``strict`` and a named variant cannot run.
    """
    problem, budget = prepared.problem(settings), prepared.budget(settings)
    named = {parse_variant(text) for text in settings.mechanisms if text != ALL}
    cells, skipped = [], []
    for mechanism in parse_variants(settings.mechanisms):
        reason = mechanism.unable(problem, budget, rows=prepared.has_rows)
        if reason is None:
            cells.append(Cell(mechanism, problem, budget, settings.seed, range(settings.trials)))
        elif strict and mechanism in named:
            raise CannotRun(mechanism.text, reason)
        else:
            skipped.append(Skipped(mechanism.text, reason))
    return Plan(tuple(cells), tuple(skipped))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every chosen variant side by side in one setting."""

    prepared: Measured
    settings: Settings
    problem: Problem
    budget: Budget
    results: tuple[Result, ...]
    skipped: tuple[Skipped, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as the command line prints it."""
        prepared, budget = self.prepared, self.budget
        best = optimum(prepared.reference, self.problem.k)
        return {
            "dataset": {
                "name": prepared.name,
                "n": prepared.n,
                "d": prepared.d,
                "row_bound": prepared.row_bound,
                "domain": prepared.domain.kind,
            },
            "assumed_public": list(prepared.assumed_public),
            "notes": list(prepared.notes),
            "settings": self.settings.to_json() | {"delta": budget.delta},
            "reference": {
                "eigenvalues": prepared.reference.eigenvalues.tolist(),
                "captured": best,
                "captured_total": best / prepared.reference.total,
            },
            "results": [_result_json(result) for result in self.results],
            "skipped": [
                {"mechanism": item.mechanism, "reason": item.reason} for item in self.skipped
            ],
        }

    def table(self) -> pd.DataFrame:
        """Return one row per variant, trial and metric, with `TABLE_COLUMNS`."""
        return tidy_table(self.prepared, self.problem, self.budget, self.results)

    def summary_table(self) -> pd.DataFrame:
        """Return one row per variant: status, account and each metric's mean."""
        rows = []
        for result in self.results:
            row: dict[str, Any] = {
                "mechanism": result.mechanism.text,
                "status": str(result.status.verdict),
                "claimed_epsilon": result.claimed.epsilon if result.claimed else None,
                "claimed_delta": result.claimed.delta if result.claimed else None,
                "spent_epsilon": result.spent.epsilon if result.spent else None,
                "spent_delta": result.spent.delta if result.spent else None,
                "delta_at_claimed_epsilon": (
                    result.spent.delta_at_epsilon if result.spent else None
                ),
            }
            for key, summary in result.summaries.items():
                row[key] = summary.mean
                row[f"{key}_low"], row[f"{key}_high"] = summary.low, summary.high
            rows.append(row)
        return pd.DataFrame(rows)


def _result_json(result: Result) -> dict[str, Any]:
    spent, claimed = result.spent, result.claimed
    return {
        "mechanism": result.mechanism.text,
        "status": str(result.status.verdict),
        "evidence": result.status.evidence,
        "claimed": claimed and {"epsilon": claimed.epsilon, "delta": claimed.delta},
        "spent": spent
        and {
            "epsilon": spent.epsilon,
            "delta": spent.delta,
            "source": spent.source,
            "exact": spent.exact,
            "delta_at_claimed_epsilon": spent.delta_at_epsilon,
        },
        "metrics": {
            key: {"mean": s.mean, "se": s.se, "low": s.low, "high": s.high}
            for key, s in result.summaries.items()
        },
        "diagnostics": result.diagnostics,
    }


def tidy_table(
    prepared: Measured, problem: Problem, budget: Budget, results: Sequence[Result]
) -> pd.DataFrame:
    """Return the draws of all results as one tidy table.

    Returns
    -------
    DataFrame
        Columns `TABLE_COLUMNS`; one row per variant, trial and metric.
    """
    parts = []
    for result in results:
        for key, values in result.metrics.items():
            parts.append(
                pd.DataFrame(
                    {
                        "table": prepared.name,
                        "mechanism": result.mechanism.text,
                        "epsilon": budget.epsilon,
                        "delta": budget.delta,
                        "k": problem.k,
                        "n": problem.n,
                        "row_bound": prepared.row_bound,
                        "relation": str(problem.relation),
                        "trial": np.arange(len(values)),
                        "metric": key,
                        "value": values,
                    },
                    columns=list(TABLE_COLUMNS),
                )
            )
    if not parts:
        return pd.DataFrame(columns=list(TABLE_COLUMNS))
    return pd.concat(parts, ignore_index=True)


def compare(
    prepared: Measured,
    settings: Settings,
    progress: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Run every chosen mechanism in one setting.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
    progress : callable, optional
        Called with (done, total, what comes next) before each cell.
    """
    chosen = plan(prepared, settings)
    results = []
    for done, cell in enumerate(chosen.cells):
        if progress is not None:
            progress(done, len(chosen.cells), cell.mechanism.text)
        results.append(run_cell(cell, prepared))
    return Comparison(
        prepared,
        settings,
        prepared.problem(settings),
        prepared.budget(settings),
        tuple(results),
        chosen.skipped,
    )


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
        values = result.eigenvalues if result.eigenvalues is not None else result.captured_each
        count = values.shape[1]
        parts.append(
            pd.DataFrame(
                {
                    "mechanism": result.mechanism.text,
                    "component": np.arange(1, count + 1),
                    "true": true[:count],
                    "median": np.median(values, axis=0),
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
