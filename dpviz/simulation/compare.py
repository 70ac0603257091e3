"""What a run found: one variant in one setting, and every chosen one side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dpviz.accounting.accounting import Spent
from dpviz.core.arrays import FloatArray, on_the_simplex
from dpviz.core.cancelling import in_threads
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
from dpviz.simulation.simulate import Cell, simulate, unless_failed

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
    moment = prepared.moment if target is data else target
    if moment is reference:
        return 1.0
    V = moment.top(cell.problem.k)
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

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Summary of each metric over the draws."""
        return {key: summarise(values) for key, values in self.metrics.items()}


def run_cell(
    cell: Cell, prepared: Measured, metrics: Iterable[str | Metric] = tuple(METRICS)
) -> Result:
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
            outcome = processed(cell, part, outcome)
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


def attempt(
    cell: Cell, prepared: Measured, metrics: Iterable[str | Metric] = tuple(METRICS)
) -> Result | CannotRun:
    """Return what `run_cell` does, or why somebody else's mechanism fails in a draw."""
    return unless_failed(cell.mechanism, lambda: run_cell(cell, prepared, metrics))


class TooLong(CannotRun):
    """Draws would take longer than they may."""


Draw = Callable[[Cell, Measured, Sequence[str | Metric]], Result | CannotRun]
"""What draws a cell and measures it."""


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


def processed(cell: Cell, part: CellTrials, outcome: Outcome) -> Outcome:
    """Return an outcome of a cell after post-processing.

    Behind a private preparation each draw has a noise and a bound of its own: variances are only
    kept from being negative there.

    """
    # the exact answer is there to compare with: it stays as it is
    if cell.mechanism.info.guarantee == "none":
        return outcome
    release = outcome.release
    most = np.full(len(release.components), math.inf)
    if cell.private is None:
        release = weighed(cell.mechanism, part.calibration, release)
        # rows clipped at a radius are no longer than that
        reach = cell.problem.domain.radius if release.radius is None else release.radius
        most[:] = np.square(reach)
    if release.matrix is None:
        return replace(outcome, release=release)
    values, vectors = np.linalg.eigh(release.matrix)
    nonnegative = on_the_simplex(values, most)
    matrix = (vectors * nonnegative[:, None, :]) @ vectors.transpose(0, 2, 1)
    release = replace(release, matrix=matrix, eigenvalues=nonnegative[:, ::-1].copy())
    return replace(outcome, release=release)


# Side by side ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every chosen variant side by side in one setting.

    Attributes
    ----------
    plan : ResolvedSetting
    results : tuple of Result
    share : float
        How much of the work is done; 1 where it is whole.
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
        """The variants that cannot run, and why."""
        return self.plan.skipped

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """What was taken from the data without protection, or is shown beside the releases."""
        shown = (item for result in self.results for item in result.mechanism.assumed_public)
        return (*self.prepared.assumed_public, *shown)

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
        setting = {
            "table": self.prepared.name,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "k": self.problem.k,
            "n": self.problem.n,
            "row_bound": self.prepared.row_bound,
            "relation": str(self.problem.relation),
        }
        parts = [
            pd.DataFrame(
                setting
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


def _beside(chosen: ResolvedSetting, found: Sequence[Result | CannotRun]) -> Comparison:
    """Return what the first cells of a setting did, side by side; who failed is skipped."""
    ran = [(cell, one) for cell, one in zip(chosen.cells, found, strict=False)
           if isinstance(one, Result)]  # fmt: skip
    failed = [
        Skipped(one.mechanism, one.reason, isinstance(one, TooLong))
        for one in found
        if isinstance(one, CannotRun)
    ]
    skipped = (*chosen.skipped, *failed)
    chosen = replace(chosen, cells=tuple(cell for cell, _ in ran), skipped=skipped)
    return Comparison(chosen, tuple(one for _, one in ran))


def with_others(chosen: ResolvedSetting, moved: Comparison, equal: Comparison) -> Comparison:
    """Return the comparison of a setting from two: of noise that follows its shares, and the rest.

    Parameters
    ----------
    chosen : ResolvedSetting
    moved : Comparison
        With its shares, of the mechanisms whose noise follows them.
    equal : Comparison
        With equal shares; the noise of the others is the same in both.
    """
    still = [one for one in equal.results if not one.mechanism.follows_allocation]
    results = {one.mechanism: one for one in (*still, *moved.results)}
    cells = tuple(cell for cell in chosen.cells if cell.mechanism in results)
    follow = {one.text for one in variants_of(chosen.settings) if one.follows_allocation}
    skipped = [one for one in equal.skipped if one.mechanism not in follow]
    chosen = replace(chosen, cells=cells, skipped=(*skipped, *moved.skipped))
    return Comparison(chosen, tuple(results[cell.mechanism] for cell in cells))


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
        Called with (done, total, what comes next) before each cell.
    on_estimate : callable, optional
        Called once with the seconds that the rest is expected to take, judged by the first draws
        of every mechanism, which count among the results; where there are too few draws for that
        and many features, by a smaller matrix, before anything is drawn.
    memory : callable, optional
        Called once, before anything is drawn, with about the most bytes that it takes beside the
        table. What this machine has not the memory for cannot run.
    metrics : sequence of str or Metric
        What is measured: names of `dpviz.core.metrics.METRICS`, or others.
    strict : bool
        Whether a named mechanism that cannot run is an error; otherwise it is among the skipped.
    draw : callable
        Draws a cell, or finds it where it is kept; `attempt` if not given.

    Raises
    ------
    CannotRun
        If ``strict`` and a named mechanism cannot run, or none is left: one of somebody else that
        fails in a draw is among the skipped, with its reason.
    """
    chosen = plan(prepared, settings, strict=strict)
    if memory is not None and chosen.cells:
        memory(max(memory_of(cell, prepared) for cell in chosen.cells))
    few = pilot_draws(prepared.d, settings.trials) if on_estimate is not None else 0
    if on_estimate is not None and not few and prepared.d >= _LARGE:
        on_estimate(_by_size(prepared.d, sum(len(cell.trials) for cell in chosen.cells)))
    started = time.monotonic()
    # before and after the first draws, and after every cell
    for done, grown in enumerate(steps(chosen, metrics, first=few, draw=draw), start=-bool(few)):
        answer = grown
        if on_estimate is not None and few and not done:
            on_estimate((time.monotonic() - started) * (settings.trials - few) / few)
        if progress is not None and 0 <= done < len(chosen.cells):
            progress(done, len(chosen.cells), chosen.cells[done].mechanism.text)
    if strict and chosen.cells and not answer.results:
        failed = answer.skipped[len(chosen.skipped)]  # nothing is left to compare
        raise CannotRun(failed.mechanism, failed.reason)
    return answer


def steps(
    chosen: ResolvedSetting,
    metrics: Sequence[str | Metric] = tuple(METRICS),
    *,
    first: int = 0,
    most: int | None = None,
    draw: Draw = attempt,
) -> Iterator[Comparison]:
    """Yield the comparison of a setting as it grows, from nothing on; the last is whole.

    Parameters
    ----------
    chosen : ResolvedSetting
        Of `dpviz.simulation.cells.plan`.
    metrics : sequence of str or Metric
    first : int
        Draws of every mechanism that are made before all others, and are yielded first.
    most : int, optional
        Draws between two answers; those of one mechanism if not given.
    draw : callable
        As in `compare`.
    """
    prepared, cells = chosen.prepared, chosen.cells
    results: list[Result | CannotRun] = []
    yield replace(_beside(chosen, results), share=0.0 if cells else 1.0)
    if first:
        early = [replace(cell, trials=cell.trials[:first]) for cell in cells]
        results += [draw(cell, prepared, metrics) for cell in early]
        yield replace(_beside(chosen, results), share=0.01 if cells else 1.0)
    for place, cell in enumerate(cells):
        parts = results[place : place + 1]
        rest = replace(cell, trials=cell.trials[first:])
        for block in in_blocks(rest, most or max(len(rest.trials), 1)):
            if parts and isinstance(parts[-1], CannotRun):
                break
            parts.append(draw(block, prepared, metrics))
            if most and block.trials.stop < cell.trials.stop:
                share = max(0.01, (place + block.trials.stop / cell.trials.stop) / len(cells))
                yield replace(_beside(chosen, results), share=share)
        last = parts[-1]
        whole = [part for part in parts if isinstance(part, Result)]
        results[place : place + 1] = [last if isinstance(last, CannotRun) else joined(whole)]
        yield replace(_beside(chosen, results), share=(place + 1) / len(cells))


def _by_size(d: int, draws: int) -> float:
    """Return about what so many draws take, from one decomposition of a smaller matrix."""
    matrix = generator(0, "foretell").standard_normal((1, _SMALLER, _SMALLER))
    started = time.monotonic()
    top_eigen(matrix + matrix.transpose(0, 2, 1), 2)
    # noise, two norms and a rotation take about as long again as the decomposition
    return 2 * draws * (time.monotonic() - started) * (d / _SMALLER) ** 3


# Along epsilon ----------------------------------------------------------------------------------


def along(
    prepared: Measured,
    settings: Settings,
    epsilons: Sequence[float],
    metrics: Sequence[str | Metric] = tuple(METRICS),
    *,
    workers: int = 1,
) -> Iterator[Comparison]:
    """Yield every mechanism side by side at each epsilon, in order.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
        All but epsilon. What cannot run is skipped, named or not, as is what fails in a draw.
    epsilons : sequence of float
    metrics : sequence of str or Metric
    workers : int
        Threads, which share the mechanisms of all epsilons, so that none waits for a slow one at
        each. LAPACK lets others run while it works, and the numbers do not change. With one each
        epsilon is drawn when it is asked for.
    """
    at = [replace(settings, epsilon=epsilon) for epsilon in epsilons]
    draw: Draw = attempt
    if workers > 1:
        alike: dict[Mechanism, list[Cell]] = {}
        for setting in at:
            for cell in plan(prepared, setting, strict=False).cells:
                alike.setdefault(cell.mechanism, []).append(cell)
        # Samplers take the longest: with them last one thread would end alone.
        shared = sorted(
            alike.values(), key=lambda cells: cells[0].mechanism.info.release == "matrix"
        )
        with one_blas_thread():
            parts = in_threads(
                lambda cells: [(cell, attempt(cell, prepared, metrics)) for cell in cells],
                shared,
                workers,
            )
        drawn = dict(pair for part in parts for pair in part)

        def draw(cell: Cell, prepared: Measured, metrics: Sequence[str | Metric]) -> Any:
            return drawn[cell]

    for setting in at:
        yield compare(prepared, setting, metrics=metrics, strict=False, draw=draw)


def pictured(comparison: Comparison) -> dict[Mechanism, Result]:
    """Return what each mechanism publishes where a picture shares its budget: one draw of it."""
    prepared, settings = comparison.prepared, comparison.settings
    if not isinstance(prepared, Prepared):
        return {}
    if settings.picture:
        return {result.mechanism: result for result in comparison.results}
    private = math.fsum(settings.private_shares.values())
    # of what a preparation leaves, and the directions keep what they need
    share = min(SHARE * (1 - private), MOST_SHARED - private)
    # a claim that fails protects no picture either; and a numeric account takes seconds at each of
    # some thirty epsilons: who asks for a picture by the settings waits
    chosen = tuple(
        result.mechanism
        for result in comparison.results
        if result.status.verdict.counts
        and not is_numeric(result.mechanism, comparison.problem, comparison.budget)
    )
    if share <= 0 or not chosen:
        return {}
    settings = replace(settings, picture=share, mechanisms=chosen, trials=1)
    compared = compare(prepared, settings, metrics=("fidelity", "class_picture"), strict=False)
    return {result.mechanism: result for result in compared.results}


def errors_of_pictures(published: Mapping[Mechanism, Result]) -> dict[Mechanism, float]:
    """Return how far noise may put each published picture off, from its numbers alone.

    A simulation, a tenth of a second each; of ellipses nothing that is released says it.
    """
    errors = {}
    for mechanism, result in published.items():
        for picture in result.pictures[:1]:
            # a stream of its own: what is said of a picture draws nothing from its noise
            rng = generator(0, "expected", picture.plan.cells)
            error = quality.expected(picture, rng)
            if error is not None:
                errors[mechanism] = error
    return errors
