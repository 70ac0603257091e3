"""Results of a run: one variant in one setting, and all chosen variants side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from dpviz.accounting.accounting import Spent
from dpviz.core.arrays import FloatArray, on_the_simplex
from dpviz.core.eigen import top_eigen
from dpviz.core.errors import CannotRun
from dpviz.core.metrics import (
    METRICS,
    Metric,
    Outcome,
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
from dpviz.core.release import Aim, Release, Status
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import MOST_SHARED, Settings
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms._weighing import weighed
from dpviz.preparation.account import is_numeric
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import (
    CellTrials,
    ResolvedSetting,
    Skipped,
    account_of,
    in_blocks,
    memory_of,
    parts_of,
    pilot_draws,
    plan,
    variants_of,
)
from dpviz.simulation.picture import quality
from dpviz.simulation.picture.account import SHARE
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


# Results of one variant -----------------------------------------------------------------------


_ALL_THE_WAY = 0.995
"""A bias from this value on is shown as 100 per cent, without a hint."""


def bias_of(cell: Cell, prepared: Measured) -> float | None:
    """Return the recovery of a cell's release without noise; see `Result.bias`."""
    chance = chance_share(prepared.reference, cell.problem.k)
    if cell.private is not None or nothing_to_recover(chance):
        return None
    mechanism, reference = cell.mechanism, prepared.reference
    data = prepared.moment_with_rows if mechanism.needs_rows else prepared.moment
    target = mechanism.target(data, cell.problem, cell.budget)
    if target is None:
        return None
    # Use `prepared.moment`, because it caches its eigenvectors.
    moment = prepared.moment if target is data else target
    if moment is reference:
        return 1.0
    V = moment.top(cell.problem.k)
    share = float(np.einsum("ij,ij->", V, reference.times(V))) / optimum(reference, cell.problem.k)
    return float(recovery_of(share, chance))


def hint_of(aim: Aim, bias: float | None) -> str | None:
    """Describe an aim and its bias; None if the bias is negligible or unknown."""
    if bias is None or bias >= _ALL_THE_WAY:
        return None
    what = "rows within their bound" if aim is Aim.COMPONENTS else str(aim)
    return f"aims at {what}: at best {percent(max(bias, 0.0))} here"


@dataclass(frozen=True, eq=False)
class Result:
    """The results of one variant in one setting.

    Attributes
    ----------
    mechanism : Mechanism
    claimed : Budget or None
    spent : Spent or None
    status : Status
    metrics : dict of str to ndarray of shape (trials,)
    eigenvalues : ndarray of shape (trials, d) or None
        Eigenvalues of the released matrices.
    captured_each : ndarray of shape (trials, k)
        Variance along each released direction.
    angles : ndarray of shape (trials, k)
        Principal angles, radians, ascending.
    components : ndarray of shape (trials, d, k)
    edges : (float, float) or None
        Limits of the noise spectrum.
    threshold : float or None
        Variance below which the noise hides a single component, for large d.
    trace : ndarray of shape (trials, steps) or None
        Trace of the chains of a sampler that only converges.
    aim : Aim
        The release without noise.
    bias : float or None
        Recovery of a release without noise, which no epsilon exceeds with the same aim. None if the
        release has no aim, nothing can be recovered, or the preparation is private.
    before : dict of str to ndarray of shape (trials,), or None
        The metrics before post-processing, if the other fields are post-processed.
    pictures : tuple of Picture
        Published rows of each trial; empty if none.
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
        """The aim and the recovery that it can reach, if that is not full recovery; else None."""
        return hint_of(self.aim, self.bias)

    @property
    def diagnostics(self) -> dict[str, float]:
        """Values for judging an approximate sampler, keyed by name."""
        return {} if self.trace is None else self.mechanism.diagnose(self.trace)

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Summary of each metric over the trials."""
        return {key: summarise(values) for key, values in self.metrics.items()}


def run_cell(
    cell: Cell, prepared: Measured, metrics: Iterable[str | Metric] = tuple(METRICS)
) -> Result:
    """Simulate the trials of a cell and measure them."""
    account = account_of(cell.mechanism, cell.problem, cell.budget, cell.private, cell.picture)
    keys = [*metrics]
    aim = cell.mechanism.aims_at(cell.problem, cell.budget)
    # Use one thread, as for the trials, because the bytes must not depend on the number of workers.
    with one_blas_thread():
        bias = bias_of(cell, prepared)

    def found(part: CellTrials, release: Release) -> Result:
        outcome, before = part.outcome(release), None
        view = outcome.pictured
        if cell.free:
            before = measure(outcome, keys)
            outcome = processed(cell, part, outcome)
        return Result(
            mechanism=cell.mechanism,
            claimed=account.claimed,
            spent=account.spent,
            status=account.status,
            metrics=measure(outcome, keys),
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
            pictures=view.pictures if isinstance(view, Pictured) else (),
        )

    return joined(list(simulate(parts_of(cell, prepared), found)))


def attempt(
    cell: Cell, prepared: Measured, metrics: Iterable[str | Metric] = tuple(METRICS)
) -> Result | CannotRun:
    """Return the result of `run_cell`, or why an external mechanism failed in a trial."""
    try:
        return run_cell(cell, prepared, metrics)
    except CannotRun as error:
        # dpviz's mechanisms report early that they cannot run, so a failure in a trial is a bug.
        if cell.mechanism.ours:
            raise
        return error


class TooLong(CannotRun):
    """Simulations would exceed the time limit."""


Draw = Callable[[Cell, Measured, Sequence[str | Metric]], Result | CannotRun]
"""A function that simulates a cell and measures it."""


def first_draws(result: Result, most: int) -> Result:
    """Return a result with only its first trials."""

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
    """Join the results of chunks of one cell's trials, in order."""
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


# Post-processing costs no privacy. Directions: if the noise along directions is known, features are
# weighed by the released diagonal (`dpviz.mechanisms._weighing`). Under rotation-invariant noise no
# rotation-equivariant rule beats the leading eigenvectors of the noisy matrix. So only a rule that
# treats features differently can help. Variances: a released matrix becomes the nearest matrix
# without negative eigenvalues whose trace is possible for rows within their bound. Its eigenvectors
# do not change. Both conditions are convex and hold for the matrix before noise, so the error in
# the Frobenius norm never grows.

WHY_THE_BASIS = (
    "No rule that treats all directions alike does better than the leading directions of the noisy "
    "matrix: only features that differ in size leave something to gain."
)


def processed(cell: Cell, part: CellTrials, outcome: Outcome) -> Outcome:
    """Return an outcome of a cell after post-processing.

    With a private preparation, noise and bound differ in each trial. Variances are then only made
    non-negative.

    """
    # The exact results are only for comparison, so they do not change.
    if cell.mechanism.info.guarantee == "none":
        return outcome
    release = outcome.release
    most = np.full(len(release.components), math.inf)
    if cell.private is None:
        release = weighed(cell.mechanism, part.calibration, release)
        # Rows clipped at a radius are at most as long as this radius.
        reach = cell.problem.domain.radius if release.radius is None else release.radius
        most[:] = np.square(reach)
    if release.matrix is None:
        return replace(outcome, release=release)
    values, vectors = np.linalg.eigh(release.matrix)
    nonnegative = on_the_simplex(values, most)
    matrix = (vectors * nonnegative[:, None, :]) @ vectors.transpose(0, 2, 1)
    release = replace(release, matrix=matrix, eigenvalues=nonnegative[:, ::-1].copy())
    return replace(outcome, release=release)


# Comparison of all mechanisms at one setting --------------------------------------------------


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results of all chosen variants in one setting, side by side.

    Attributes
    ----------
    plan : ResolvedSetting
    results : tuple of Result
    share : float
        Share of the work that is done; 1 if complete.
    """

    plan: ResolvedSetting
    results: tuple[Result, ...]
    share: float = 1.0

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
        """The variants that cannot run, and the reasons."""
        return self.plan.skipped

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Facts taken from the data without protection, or shown with the releases."""
        facts = (item for result in self.results for item in result.mechanism.assumed_public)
        return (*self.prepared.assumed_public, *facts)

    def components_found(self, result: Result) -> int | None:
        """Return how many components of a noisy matrix are turned by less than 45 degrees.

        Predicted without simulation (`dpviz.simulation.predict.components_found`). None if the
        release is not a matrix, for noise without a limiting law and with a private preparation.
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
        parts = [
            pd.DataFrame(
                self.plan.place
                | {
                    "mechanism": result.mechanism.text,
                    "trial": np.arange(len(values)),
                    "metric": key,
                    "value": values,
                },
                columns=list(TABLE_COLUMNS),
            )
            for result in self.results
            for key, values in result.metrics.items()
        ]
        if not parts:
            return pd.DataFrame(columns=list(TABLE_COLUMNS))
        return pd.concat(parts, ignore_index=True)


def _beside(setting: ResolvedSetting, answers: Sequence[Result | CannotRun]) -> Comparison:
    """Return the comparison of the cells that have run; failed cells are skipped."""
    ran = [(cell, one) for cell, one in zip(setting.cells, answers, strict=False)
           if isinstance(one, Result)]  # fmt: skip
    failures = [
        Skipped(one.mechanism, one.reason, isinstance(one, TooLong))
        for one in answers
        if isinstance(one, CannotRun)
    ]
    skips = (*setting.skipped, *failures)
    setting = replace(setting, cells=tuple(cell for cell, _ in ran), skipped=skips)
    return Comparison(setting, tuple(one for _, one in ran))


def with_others(setting: ResolvedSetting, following: Comparison, equal: Comparison) -> Comparison:
    """Merge two comparisons of a setting: mechanisms whose noise follows its shares, and others.

    Parameters
    ----------
    setting : ResolvedSetting
    following : Comparison
        Comparison with the setting's shares, of the mechanisms whose noise follows the shares.
    equal : Comparison
        Comparison with equal shares; the noise of other mechanisms is the same in both.
    """
    still = [one for one in equal.results if not one.mechanism.follows_allocation]
    results = {one.mechanism: one for one in (*still, *following.results)}
    cells = tuple(cell for cell in setting.cells if cell.mechanism in results)
    follow = {one.text for one in variants_of(setting.settings) if one.follows_allocation}
    skips = [one for one in equal.skipped if one.mechanism not in follow]
    setting = replace(setting, cells=cells, skipped=(*skips, *following.skipped))
    return Comparison(setting, tuple(results[cell.mechanism] for cell in cells))


def compare(
    prepared: Measured,
    settings: Settings,
    progress: Callable[[int, int, str], None] | None = None,
    on_estimate: Callable[[float], None] | None = None,
    memory: Callable[[float], None] | None = None,
    metrics: Sequence[str | Metric] = tuple(METRICS),
    *,
    strict: bool = True,
    draw: Draw = attempt,
) -> Comparison:
    """Run every chosen mechanism in one setting.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
    progress : callable, optional
        A function called with (done, total, next mechanism) before each cell.
    on_estimate : callable, optional
        A function called once with the expected remaining seconds, judged by the first trials of
        every mechanism, which count as results. With too few trials and many features, the call is
        made before any simulation, judged by a smaller matrix.
    memory : callable, optional
        A function called once before any simulation, with an estimate of the most bytes needed
        beside the table. Cells that exceed this machine's memory cannot run.
    metrics : sequence of str or Metric
        Metrics to measure: names of `dpviz.core.metrics.METRICS`, or custom metrics.
    strict : bool
        Whether a named mechanism that cannot run is an error; otherwise it is skipped.
    draw : callable
        A function that simulates a cell, or returns its stored result; `attempt` if not given.

    Raises
    ------
    CannotRun
        If ``strict`` and a named mechanism cannot run, or no mechanism is left. An external
        mechanism that fails in a trial is skipped, with its reason.
    """
    setting = plan(prepared, settings, strict=strict)
    if memory is not None and setting.cells:
        memory(max(memory_of(cell, prepared) for cell in setting.cells))
    few = pilot_draws(prepared.d, settings.trials) if on_estimate is not None else 0
    if on_estimate is not None and not few and prepared.d >= _LARGE:
        on_estimate(_by_size(prepared.d, sum(len(cell.trials) for cell in setting.cells)))
    start = time.monotonic()
    # Yield a comparison before and after the first trials, and then after every cell.
    for count, comparison in enumerate(
        steps(setting, metrics, first=few, draw=draw), start=-bool(few)
    ):
        answer = comparison
        if on_estimate is not None and few and not count:
            on_estimate((time.monotonic() - start) * (settings.trials - few) / few)
        if progress is not None and 0 <= count < len(setting.cells):
            progress(count, len(setting.cells), setting.cells[count].mechanism.text)
    if strict and setting.cells and not answer.results:
        failure = answer.skipped[len(setting.skipped)]  # No mechanism could be compared.
        raise CannotRun(failure.mechanism, failure.reason)
    return answer


def steps(
    setting: ResolvedSetting,
    metrics: Sequence[str | Metric] = tuple(METRICS),
    *,
    first: int = 0,
    most: int | None = None,
    draw: Draw = attempt,
) -> Iterator[Comparison]:
    """Yield growing comparisons of a setting, from an empty to the complete one.

    Parameters
    ----------
    setting : ResolvedSetting
        Result of `dpviz.simulation.cells.plan`.
    metrics : sequence of str or Metric
    first : int
        Number of trials of every mechanism that are run and yielded before all other trials.
    most : int, optional
        Number of trials between two results; by default the trials of one mechanism.
    draw : callable
        The same parameters as in `compare`.
    """
    table, cells = setting.prepared, setting.cells
    results: list[Result | CannotRun] = []
    yield replace(_beside(setting, results), share=0.0 if cells else 1.0)
    if first:
        early = [replace(cell, trials=cell.trials[:first]) for cell in cells]
        results += [draw(cell, table, metrics) for cell in early]
        yield replace(_beside(setting, results), share=0.01 if cells else 1.0)
    for place, cell in enumerate(cells):
        parts = results[place : place + 1]
        rest = replace(cell, trials=cell.trials[first:])
        for block in in_blocks(rest, most or max(len(rest.trials), 1)):
            if parts and isinstance(parts[-1], CannotRun):
                break
            parts.append(draw(block, table, metrics))
            if most and block.trials.stop < cell.trials.stop:
                share = max(0.01, (place + block.trials.stop / cell.trials.stop) / len(cells))
                yield replace(_beside(setting, results), share=share)
        last = parts[-1]
        whole = [part for part in parts if isinstance(part, Result)]
        results[place : place + 1] = [last if isinstance(last, CannotRun) else joined(whole)]
        yield replace(_beside(setting, results), share=(place + 1) / len(cells))


def _by_size(d: int, draws: int) -> float:
    """Estimate the seconds for a number of trials, from one decomposition of a smaller matrix."""
    matrix = generator(0, "foretell").standard_normal((1, _SMALLER, _SMALLER))
    start = time.monotonic()
    top_eigen(matrix + matrix.transpose(0, 2, 1), 2)
    # Noise, two norms and a rotation take about as long as an eigenvalue decomposition.
    return 2 * draws * (time.monotonic() - start) * (d / _SMALLER) ** 3


# Charts published with a release ---------------------------------------------------------------


def pictured(comparison: Comparison) -> dict[Mechanism, Result]:
    """Return one release of each mechanism, simulated with a chart that shares its budget."""
    table, settings = comparison.prepared, comparison.settings
    if not isinstance(table, Prepared):
        return {}
    if settings.picture:
        return {result.mechanism: result for result in comparison.results}
    private = math.fsum(settings.private_shares.values())
    # Leave enough of the budget for the preparation and for the directions.
    share = min(SHARE * (1 - private), MOST_SHARED - private)
    # Show no chart for a mechanism whose claim fails, and none with numeric accounting: it takes
    # seconds at each of about thirty epsilons, for which a visitor would have to wait.
    mechanisms = tuple(
        result.mechanism
        for result in comparison.results
        if result.status.verdict.counts
        and not is_numeric(result.mechanism, comparison.problem, comparison.budget)
    )
    if share <= 0 or not mechanisms:
        return {}
    settings = replace(settings, picture=share, mechanisms=mechanisms, trials=1)
    publication = compare(table, settings, metrics=("fidelity", "class_picture"), strict=False)
    return {result.mechanism: result for result in publication.results}


def errors_of_pictures(published: Mapping[Mechanism, Result]) -> dict[Mechanism, float]:
    """Return the expected error of each published chart, from its released numbers alone.

    Each chart is simulated in a tenth of a second. Ellipses release nothing that shows the error.
    """
    errors = {}
    for mechanism, result in published.items():
        for picture in result.pictures[:1]:
            # Use a separate stream, because the estimate must not depend on the chart's noise.
            rng = generator(0, "expected", picture.plan.cells)
            error = quality.expected(picture, rng)
            if error is not None:
                errors[mechanism] = error
    return errors
