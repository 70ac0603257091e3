"""Every chosen variant side by side in one setting."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpviz.core.eigen import top_eigen
from dpviz.core.problem import Budget, Problem
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.metrics import optimum
from dpviz.preparation.load import handed_on
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import (
    ResolvedSetting,
    Result,
    Skipped,
    joined,
    memory_of,
    plan,
    run_cell,
    taste,
)
from dpviz.theory.predict import components_found

TABLE_COLUMNS = (
    "table", "mechanism", "epsilon", "delta", "k", "n", "row_bound", "relation",
    "trial", "metric", "value",
)  # fmt: skip

_LARGE = 1_000
_SMALLER = 800


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every chosen variant side by side in one setting."""

    plan: ResolvedSetting
    results: tuple[Result, ...]

    @property
    def prepared(self) -> Measured:
        """The table that every mechanism saw."""
        return self.plan.prepared

    @property
    def settings(self) -> Settings:
        """The setting."""
        return self.plan.settings

    @property
    def problem(self) -> Problem:
        """Shapes, relation and domain."""
        return self.plan.problem

    @property
    def budget(self) -> Budget:
        """Epsilon and delta."""
        return self.plan.budget

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The variants that cannot run, and why."""
        return self.plan.skipped

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """What was taken from the data without protection, or is shown beside the releases."""
        shown = (item for result in self.results for item in result.mechanism.assumed_public)
        return (*self.prepared.assumed_public, *shown)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as the command line prints it."""
        prepared, budget = self.prepared, self.budget
        best = optimum(prepared.reference, self.problem.k)
        return {
            "dataset": {
                "name": prepared.name,
                "n": prepared.n,
                "d": prepared.d,
                "row_bound": prepared.row_bound if prepared.domain.bounded else None,
                "domain": prepared.domain.kind,
            },
            "assumed_public": list(self.assumed_public),
            "notes": list(prepared.notes),
            "settings": handed_on(self.settings).to_json() | {"delta": budget.delta},
            "reference": {
                "eigenvalues": prepared.reference.eigenvalues.tolist(),
                "captured": best,
                "captured_total": best / prepared.reference.total,
            },
            "results": [
                _result_json(result) | {"components_found": self.components_found(result)}
                for result in self.results
            ],
            "skipped": [
                {"mechanism": item.mechanism, "reason": item.reason} for item in self.skipped
            ],
        }

    def components_found(self, result: Result) -> int | None:
        """Return how many components a noisy matrix shows turned by less than 45 degrees.

        As predicted without a draw (`dpviz.theory.predict.components_found`); None for releases
        that are no matrix, for noise without a limiting law and behind a paid preparation.
        """
        mechanism = result.mechanism
        if mechanism.info.release != "matrix" or self.prepared.raw is not None:
            return None
        noise = mechanism.free_noise(mechanism.calibrate(self.problem, self.budget))
        if noise is None:
            return None
        return components_found(self.prepared.moment.eigenvalues, noise)

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
                "aims_at": str(result.aim),
                "bias": result.bias,
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
            **spent.to_json(),
            "exact": spent.exact,
            "delta_at_claimed_epsilon": spent.delta_at_epsilon,
        },
        "metrics": {
            key: {"mean": s.mean, "se": s.se, "low": s.low, "high": s.high}
            for key, s in result.summaries.items()
        },
        "diagnostics": result.diagnostics,
        "aims_at": str(result.aim),
        "bias": result.bias,
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
    foretell: Callable[[float], None] | None = None,
    memory: Callable[[float], None] | None = None,
) -> Comparison:
    """Run every chosen mechanism in one setting.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
    progress : callable, optional
        Called with (done, total, what comes next) before each cell.
    foretell : callable, optional
        Called once with the seconds that the rest is expected to take, judged by the first draws
        of every mechanism, which count among the results; where there are too few draws for that
        and many features, by a smaller matrix, before anything is drawn.
    memory : callable, optional
        Called once, before anything is drawn, with about the most bytes that it takes beside the
        table. What this machine has not the memory for cannot run.
    """
    chosen = plan(prepared, settings)
    if memory is not None and chosen.cells:
        memory(max(memory_of(cell, prepared) for cell in chosen.cells))
    few = taste(prepared.d, settings.trials) if foretell is not None else 0
    first: dict[int, Result] = {}
    if foretell is not None and few:
        started = time.monotonic()
        for number, cell in enumerate(chosen.cells):
            first[number] = run_cell(replace(cell, trials=cell.trials[:few]), prepared)
        foretell((time.monotonic() - started) * (settings.trials - few) / few)
    elif foretell is not None and prepared.d >= _LARGE:
        foretell(_by_size(prepared.d, sum(len(cell.trials) for cell in chosen.cells)))
    results = []
    for done, cell in enumerate(chosen.cells):
        if progress is not None:
            progress(done, len(chosen.cells), cell.mechanism.text)
        if done in first:
            rest = run_cell(replace(cell, trials=cell.trials[few:]), prepared)
            results.append(joined([first[done], rest]))
        else:
            results.append(run_cell(cell, prepared))
    return Comparison(chosen, tuple(results))


def _by_size(d: int, draws: int) -> float:
    """Return about what so many draws take, from one decomposition of a smaller matrix."""
    matrix = generator(0, "foretell").standard_normal((1, _SMALLER, _SMALLER))
    started = time.monotonic()
    top_eigen(matrix + matrix.transpose(0, 2, 1), 2)
    # noise, two norms and a rotation take about as long again as the decomposition
    return 2 * draws * (time.monotonic() - started) * (d / _SMALLER) ** 3
