"""What a run found: one variant in one setting, and every chosen one side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpviz.accounting.accounting import Spent
from dpviz.core.arrays import FloatArray, on_the_simplex
from dpviz.core.eigen import top_eigen
from dpviz.core.metrics import (
    METRICS,
    Summary,
    chance_share,
    measure,
    nothing_to_recover,
    optimum,
    recovery_of,
    summarise,
)
from dpviz.core.number_text import percent
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Aim, Calibration, Release, Status
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms._weighing import weighed
from dpviz.preparation.load import without_paths
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import (
    CellTrials,
    ResolvedSetting,
    Skipped,
    account_of,
    memory_of,
    parts_of,
    pilot_draws,
    plan,
)
from dpviz.simulation.picture.counting import Picture
from dpviz.simulation.picture.quality import Pictured
from dpviz.simulation.predict import components_found
from dpviz.simulation.simulate import Cell, simulate

TABLE_COLUMNS = (
    "table", "mechanism", "epsilon", "delta", "k", "n", "row_bound", "relation",
    "trial", "metric", "value",
)  # fmt: skip

_LARGE = 1_000
_SMALLER = 800


# What one variant did -------------------------------------------------------------------------


_ALL_THE_WAY = 0.995
"""From here on a bias is shown as 100 per cent, and not spoken of."""


def bias_of(cell: Cell, prepared: Measured) -> float | None:
    """Return the recovery of a release of a cell without noise, see `Result.bias`."""
    chance = chance_share(prepared.reference, cell.problem.k)
    if cell.private is not None or nothing_to_recover(chance):
        return None
    mechanism, reference = cell.mechanism, prepared.reference
    data = prepared.moment_with_rows if mechanism.needs_rows else prepared.moment
    target = mechanism.target(data, cell.problem, cell.budget)
    if target is None:
        return None
    # the moment keeps its own components
    seen = prepared.moment if target is data else target
    if seen is reference:
        return 1.0
    V = seen.top(cell.problem.k)
    share = float(np.einsum("ij,ij->", V, reference.times(V))) / optimum(reference, cell.problem.k)
    return float(recovery_of(share, chance))


def hint_of(aim: Aim, bias: float | None) -> str | None:
    """Return an aim and its bias in words, None where it leads all the way or nothing is known."""
    if bias is None or bias >= _ALL_THE_WAY:
        return None
    what = "rows within their bound" if aim is Aim.COMPONENTS else str(aim)
    return f"aims at {what}: at best {percent(max(bias, 0.0))} here"


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
    threshold : float or None
        Variance below which the noise hides a lone component, for large d.
    trace : ndarray of shape (trials, steps) or None
        Of a sampler that only converges.
    aim : Aim
        What a release would hold without noise.
    bias : float or None
        Recovery of such a release, which no epsilon lifts while it aims at the same; None where
        nothing is aimed at or can be recovered, and behind a private preparation.
    before : dict of str to ndarray of shape (trials,), or None
        The same metrics of the same releases as they were, where all else is after post-processing.
    pictures : tuple of Picture
        What each draw publishes of the rows; empty where nothing is.
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
    threshold: float | None
    trace: FloatArray | None
    aim: Aim
    bias: float | None
    before: dict[str, FloatArray] | None = None
    pictures: tuple[Picture, ...] = ()

    @property
    def hint(self) -> str | None:
        """What it aims at and how far that can lead, where it is not all the way; else None."""
        return hint_of(self.aim, self.bias)

    @property
    def diagnostics(self) -> dict[str, float]:
        """What a reader needs to judge an approximate sampler, by name."""
        return {} if self.trace is None else self.mechanism.diagnose(self.trace)

    @property
    def summaries(self) -> dict[str, Summary]:
        """Summary of each metric over the draws."""
        return {key: summarise(values) for key, values in self.metrics.items()}


def run_cell(cell: Cell, prepared: Measured, metrics: Iterable[str] = tuple(METRICS)) -> Result:
    """Draw the trials of a cell and measure them."""
    account = account_of(cell.mechanism, cell.problem, cell.budget, cell.private, cell.picture)
    wanted = [*metrics]
    aim = cell.mechanism.aims_at(cell.problem, cell.budget)
    # the same bytes whatever the number of workers, as for the draws
    with one_blas_thread():
        bias = bias_of(cell, prepared)

    def found(part: CellTrials, release: Release) -> Result:
        outcome, before = part.outcome(release), None
        pictured = outcome.pictured
        if cell.free:
            before = measure(outcome, wanted)
            release = processed(cell, part.calibration, outcome.release)
            outcome = replace(outcome, release=release)
        return Result(
            mechanism=cell.mechanism,
            claimed=account.claimed,
            spent=account.spent,
            status=account.status,
            metrics=measure(outcome, wanted),
            eigenvalues=outcome.release.eigenvalues,
            captured_each=outcome.captured_each,
            angles=outcome.angles,
            components=outcome.release.components,
            edges=account.edges,
            threshold=account.threshold,
            trace=outcome.release.trace,
            aim=aim,
            bias=bias,
            before=before,
            pictures=pictured.pictures if isinstance(pictured, Pictured) else (),
        )

    return joined(list(simulate(parts_of(cell, prepared), found)))


def first_draws(result: Result, most: int) -> Result:
    """Return a result as if only its first draws had been made."""

    def of(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else values[:most]

    return replace(
        result,
        metrics={key: values[:most] for key, values in result.metrics.items()},
        before=result.before and {key: values[:most] for key, values in result.before.items()},
        eigenvalues=of(result.eigenvalues),
        captured_each=result.captured_each[:most],
        angles=result.angles[:most],
        components=result.components[:most],
        trace=of(result.trace),
        pictures=result.pictures[:most],
    )


def joined(chunks: Sequence[Result]) -> Result:
    """Return one result from chunks of trials of the same cell, in order."""
    first = chunks[0]
    if len(chunks) == 1:
        return first

    def by_name(parts: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def together(parts: Sequence[FloatArray | None]) -> FloatArray | None:
        present = [part for part in parts if part is not None]
        return np.concatenate(present) if present else None

    return replace(
        first,
        metrics=by_name([chunk.metrics for chunk in chunks]),
        before=first.before and by_name([chunk.before or {} for chunk in chunks]),
        eigenvalues=together([chunk.eigenvalues for chunk in chunks]),
        captured_each=np.concatenate([chunk.captured_each for chunk in chunks]),
        angles=np.concatenate([chunk.angles for chunk in chunks]),
        components=np.concatenate([chunk.components for chunk in chunks]),
        trace=together([chunk.trace for chunk in chunks]),
        pictures=tuple(picture for chunk in chunks for picture in chunk.pictures),
    )


# What post-processing adds: after a release it costs no privacy. Directions: where the noise along
# directions is known, features are weighed by the released diagonal (`dpviz.mechanisms._weighing`).
# No rule that turns with its input does better under rotation-invariant noise than the leading
# eigenvectors of the noisy matrix, so the basis, in which features differ, is all there is to gain
# from. Variances: a released matrix is brought to the nearest one without negative eigenvalues
# whose trace is one that rows within their bound can have. Its eigenvectors stay, and as both
# conditions are convex and hold for what was released with noise, it is never farther from that in
# the Frobenius norm than before.

WHY_THE_BASIS = (
    "No rule that treats all directions alike does better than the leading directions of the noisy "
    "matrix: only features that differ in size leave something to gain."
)


def processed(cell: Cell, calibration: Calibration, release: Release) -> Release:
    """Return releases of a cell after post-processing.

    Behind a private preparation each draw has a noise and a bound of its own: variances are only
    kept from being negative there.

    """
    # the exact answer is there to compare with: it stays as it is
    if cell.mechanism.info.guarantee == "none":
        return release
    most = np.full(len(release.components), math.inf)
    if cell.private is None:
        release = weighed(cell.mechanism, calibration, release)
        # rows clipped at a radius are no longer than that
        reach = cell.problem.domain.radius if release.radius is None else release.radius
        most[:] = np.square(reach)
    if release.matrix is None:
        return release
    values, vectors = np.linalg.eigh(release.matrix)
    kept = on_the_simplex(values, most)
    matrix = (vectors * kept[:, None, :]) @ vectors.transpose(0, 2, 1)
    return replace(release, matrix=matrix, eigenvalues=kept[:, ::-1].copy())


# Side by side ---------------------------------------------------------------------------------


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
            "settings": without_paths(self.settings).to_json() | {"delta": budget.delta},
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

        As predicted without a draw (`dpviz.simulation.predict.components_found`); None for releases
        that are no matrix, for noise without a limiting law and behind a private preparation.
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
        return draws_table(self.prepared, self.problem, self.budget, self.results)

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


def draws_table(
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
    on_estimate: Callable[[float], None] | None = None,
    memory: Callable[[float], None] | None = None,
) -> Comparison:
    """Run every chosen mechanism in one setting.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
    progress : callable, optional
        Called with (done, total, what comes next) before each cell.
    on_estimate : callable, optional
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
    few = pilot_draws(prepared.d, settings.trials) if on_estimate is not None else 0
    first: dict[int, Result] = {}
    if on_estimate is not None and few:
        started = time.monotonic()
        for number, cell in enumerate(chosen.cells):
            first[number] = run_cell(replace(cell, trials=cell.trials[:few]), prepared)
        on_estimate((time.monotonic() - started) * (settings.trials - few) / few)
    elif on_estimate is not None and prepared.d >= _LARGE:
        on_estimate(_by_size(prepared.d, sum(len(cell.trials) for cell in chosen.cells)))
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
