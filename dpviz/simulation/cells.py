"""One setting, resolved: its cells, what is known of each before a draw, and what a run found.

`parts_of` says what of it is to be drawn, for
`dpviz.simulation.simulate`; `run_cell` measures what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.core.arrays import FloatArray
from dpviz.core.blas import one_blas_thread
from dpviz.core.eigen import BATCHED_BELOW
from dpviz.core.errors import CannotRun
from dpviz.core.memory import too_much
from dpviz.core.number_text import percent
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Aim, Calibration, Release, Status
from dpviz.core.seeding import Draws
from dpviz.core.settings import FREE, Settings
from dpviz.mechanisms import ALL, Mechanism, parse_variant, parse_variants
from dpviz.mechanisms._suppliers import check_supplier
from dpviz.metrics import (
    FLAT,
    METRICS,
    Outcome,
    Summary,
    chance_share,
    measure,
    optimum,
    recovery_of,
    summarise,
)
from dpviz.picture.account import PictureOptions, PicturePlan, chain_of, with_picture
from dpviz.picture.counting import Picture, PictureNoise, publish
from dpviz.picture.quality import Pictured
from dpviz.preparation.prepared import Measured
from dpviz.preparation.steps import BOUND, Wanted, wanted_of
from dpviz.simulation.chains import PaidDraws, paid_draws
from dpviz.simulation.lunch import processed
from dpviz.simulation.simulate import Cell, Named, Trials, simulate

_BLOCK_ENTRIES = 1 << 21
"""Most entries of released matrices held at once where they are decomposed one by one."""


_ASK_FROM = 1 << 28
"""Bytes from which a cell is held against the memory that is free."""


@dataclass(frozen=True)
class CellAccount:
    """What is known of a variant in one setting before anything is drawn.

    Attributes
    ----------
    calibration : Calibration
        Of the mechanism, on what a paid preparation and a picture leave of the budget.
    claimed : Budget or None
    spent : Spent or None
        Of preparation, release and picture together.
    status : Status
    edges : (float, float) or None
        Limits of the noise's own spectrum; None where a private row bound makes them random.
    threshold : float or None
        Variance below which the noise hides a lone component; None likewise.
    plan : PicturePlan or None
        Of the picture, where one is published: never behind a broken claim.
    """

    calibration: Calibration
    claimed: Budget | None
    spent: Spent | None
    status: Status
    edges: tuple[float, float] | None
    threshold: float | None
    plan: PicturePlan | None = None


@lru_cache(maxsize=1024)
def account_of(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    paid: Wanted | None = None,
    picture: PictureOptions | None = None,
) -> CellAccount:
    """Return the account of a variant; kept, as every chunk of draws asks for it again.

    Raises
    ------
    CannotRun
        If a paid preparation or a picture leaves nothing usable.
    """
    if paid is not None or picture is not None:
        whole = chain_of(mechanism, problem, budget, paid, picture)
        calibration, spent = mechanism.calibrate(problem, whole.rest), whole.spent
        fixed = paid is None or BOUND not in paid.steps
        plan = None
        if picture is not None:
            pictured = with_picture(mechanism, problem, budget, picture, paid)
            plan = pictured.plan if pictured.status.verdict.counts else None
        return CellAccount(
            calibration=calibration,
            claimed=whole.claimed,
            spent=spent,
            status=whole.status(spent),
            edges=mechanism.spectrum_edges(calibration) if fixed else None,
            threshold=mechanism.detection_threshold(calibration) if fixed else None,
            plan=plan,
        )
    calibration = mechanism.calibrate(problem, budget)
    spent = mechanism.spent(problem, budget)
    return CellAccount(
        calibration=calibration,
        claimed=mechanism.claim(problem, budget),
        spent=spent,
        status=mechanism.judged(problem, budget, spent),
        edges=mechanism.spectrum_edges(calibration),
        threshold=mechanism.detection_threshold(calibration),
    )


def why_not(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    paid: Wanted | None,
    picture: PictureOptions | None = None,
    *,
    rows: bool = True,
) -> str | None:
    """Return why a variant cannot run with all that is paid beside it, or None if it can."""
    reason = mechanism.why_not(problem, budget, rows=rows)
    if reason is None and (paid is not None or picture is not None):
        try:
            chain_of(mechanism, problem, budget, paid, picture)
        except CannotRun as error:
            return error.reason
    return reason


NO_ROWS = "a picture needs the rows themselves in memory"


def picture_of(measured: Measured, settings: Settings) -> PictureOptions | None:
    """Return the picture that settings pay for, or None."""
    if not settings.picture:
        return None
    kinds = 1 if measured.labels is None else len(measured.labels.kinds)
    return PictureOptions(settings.picture, settings.picture_form, kinds)


def memory_of(cell: Cell, measured: Measured) -> float:
    """Return about the most bytes that a cell takes beside its table."""
    draws = len(in_blocks(cell)[0].trials)
    thin = measured.moment.root is not None
    # a second decomposition, and what it makes
    after = 8.0 * cell.problem.d**2 * 4 * draws if cell.free else 0.0
    return cell.mechanism.memory(cell.problem, draws, thin=thin) + after


def too_large(cell: Cell, measured: Measured) -> str | None:
    """Return why this machine has not the memory for a cell, or None if it has."""
    size = memory_of(cell, measured)
    # what is always there need not be asked for before every cell
    reason = too_much(size) if size > _ASK_FROM else None
    return None if reason is None else f"it takes {reason}: leave columns out, or draw less"


def cell_at(
    measured: Measured, settings: Settings, mechanism: Mechanism, trials: range
) -> Cell | str:
    """Return the cell of one variant in one setting, or why it cannot run."""
    problem, budget = measured.problem(settings), measured.budget(settings)
    paid, picture = wanted_of(settings), picture_of(measured, settings)
    if picture is not None and not measured.has_rows:
        return NO_ROWS
    reason = why_not(mechanism, problem, budget, paid, picture, rows=measured.serves(mechanism))
    if reason is not None:
        return reason
    free = settings.post == FREE
    cell = Cell(mechanism, problem, budget, settings.seed, trials, paid, free, picture)
    return too_large(cell, measured) or cell


@dataclass(frozen=True, eq=False)
class CellTrials(Trials):
    """Trials of a cell, with what their releases are compared with.

    Attributes
    ----------
    prepared : Measured
    paid : PaidDraws or None
        The preparation of each trial, where it is paid for.
    plan : PicturePlan or None
        Of the picture that each trial publishes.
    """

    prepared: Measured = field(kw_only=True)
    paid: PaidDraws | None = field(default=None, kw_only=True)
    plan: PicturePlan | None = field(default=None, kw_only=True)

    def outcome(self, release: Release) -> Outcome:
        """Return a batch of releases beside what they estimate.

        A private row bound is another unit in each draw: what is released is brought back to that
        of the reference, by a factor that is released too.
        """
        reference, moment = self.prepared.reference, self.prepared.moment
        pictured = self.pictured(release)
        if self.paid is None:
            return Outcome(reference, moment, release, pictured=pictured)
        units = self.paid.units
        seen = units[:, None, None] * self.paid.made.moments
        return Outcome(reference, moment, release.times(units), seen, pictured)

    def pictured(self, release: Release) -> Pictured | None:
        """Return what each release publishes of the rows, in that draw's own units, if anything."""
        plan = self.plan
        if plan is None:
            return None
        kept = None if self.paid is not None else self.prepared.moment_with_rows.rows

        def rows(index: int) -> FloatArray:
            found = kept if self.paid is None else self.paid.rows(index)
            assert found is not None, "`why_not` says so beforehand"
            return found

        codes = None if self.prepared.labels is None else self.prepared.labels.codes
        true = self.prepared.reference.top(plan.axes)
        if not plan.cells:
            return Pictured((), release.components, rows, true, codes)
        assert isinstance(self.streams, Named)
        label = f"picture of {self.streams.label}"
        draws = Draws.trials(self.streams.seed, label, self.streams.trials)
        noise, law = PictureNoise.drawn(plan, draws), self.mechanism.free_noise(self.calibration)
        values = release.eigenvalues
        pictures = tuple(
            publish(
                rows(index), codes, directions, plan, noise, index,
                None if values is None else values[index], law,
            )
            for index, directions in enumerate(release.components)
        )  # fmt: skip
        return Pictured(pictures, release.components, rows, true, codes)


def part_of(cell: Cell, prepared: Measured) -> CellTrials:
    """Return what a cell draws, in one block.

    Raises
    ------
    CannotRun
        If the mechanism cannot run on this problem and budget.
    """
    mechanism = cell.mechanism
    mechanism.check(cell.problem, cell.budget, rows=prepared.serves(mechanism))
    streams = Named(cell.seed, mechanism.key, cell.trials)
    account = account_of(mechanism, cell.problem, cell.budget, cell.paid, cell.picture)
    plan = account.plan
    if cell.paid is not None:
        paid = paid_draws(cell, prepared)
        return CellTrials(
            mechanism, paid.calibration, paid.sees, streams, prepared=prepared, paid=paid, plan=plan
        )
    return CellTrials(
        mechanism,
        account.calibration,
        prepared.moment_with_rows if mechanism.needs_rows else prepared.moment,
        streams,
        keeps_noise=True,
        prepared=prepared,
        plan=plan,
    )


def parts_of(cell: Cell, prepared: Measured, most: int | None = None) -> Iterator[CellTrials]:
    """Yield what a cell draws, block by block; see `in_blocks`."""
    for block in in_blocks(cell, most):
        yield part_of(block, prepared)


def evaluate(cell: Cell, prepared: Measured) -> Outcome:
    """Return all trials of a cell beside the reference; memory is that of all of them.

    Raises
    ------
    CannotRun
        If the mechanism cannot run on this problem and budget.
    """
    (outcome,) = simulate([part_of(cell, prepared)], CellTrials.outcome)
    return outcome


_ALL_THE_WAY = 0.995
"""From here on a bias is shown as 100 per cent, and not spoken of."""


def bias_of(cell: Cell, prepared: Measured) -> float | None:
    """Return the recovery of a release of a cell without noise, see `Result.bias`."""
    chance = chance_share(prepared.reference, cell.problem.k)
    if cell.paid is not None or 1 - chance < FLAT:
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
        nothing is aimed at or can be recovered, and behind a paid preparation.
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
    account = account_of(cell.mechanism, cell.problem, cell.budget, cell.paid, cell.picture)
    wanted = [*metrics]
    aim = cell.mechanism.aims_at(cell.problem, cell.budget)
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


def in_blocks(cell: Cell, most: int | None = None) -> list[Cell]:
    """Return the cell in parts to be run one after the other.

    Large matrices are taken a few draws at a time, in memory that the next ones use again: the
    same numbers, as every draw has its own stream.

    Parameters
    ----------
    cell : Cell
    most : int, optional
        Trials in a part; as many as memory holds if not given.
    """
    d, trials = cell.problem.d, cell.trials
    if most is None:
        large = cell.mechanism.info.release == "matrix" and d >= BATCHED_BELOW
        most = max(1, _BLOCK_ENTRIES // d**2) if large else max(1, len(trials))
    return [
        replace(cell, trials=trials[start : start + most]) for start in range(0, len(trials), most)
    ]


def taste(d: int, trials: int) -> int:
    """Return how many draws tell what the others take, or 0 where all are done in no time."""
    few = 1 if d >= BATCHED_BELOW else 20
    return few if trials >= 5 * few and trials * d**2 >= 1_000_000 else 0


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
        before=chunks[0].before
        and {
            key: np.concatenate([(chunk.before or {})[key] for chunk in chunks])
            for key in chunks[0].before
        },
        eigenvalues=together([chunk.eigenvalues for chunk in chunks]),
        captured_each=np.concatenate([chunk.captured_each for chunk in chunks]),
        angles=np.concatenate([chunk.angles for chunk in chunks]),
        components=np.concatenate([chunk.components for chunk in chunks]),
        trace=together([chunk.trace for chunk in chunks]),
        pictures=tuple(picture for chunk in chunks for picture in chunk.pictures),
    )


@dataclass(frozen=True)
class Skipped:
    """A variant that could not run, and why."""

    mechanism: str
    reason: str


@dataclass(frozen=True, eq=False)
class ResolvedSetting:
    """One setting, resolved once: what everything after it takes its values from.

    Attributes
    ----------
    prepared : Measured
    settings : Settings
    problem : Problem
    budget : Budget
    cells : tuple of Cell
        One for each variant that can run.
    skipped : tuple of Skipped
        The variants that cannot, and why.
    """

    prepared: Measured
    settings: Settings
    problem: Problem
    budget: Budget
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]


def variants_of(settings: Settings) -> list[Mechanism]:
    """Return the variants that a setting names; who supplies its directions is checked too.

    Raises
    ------
    InvalidSetting
        If a variant is not legal, or the directions name what can never supply them.
    """
    check_supplier(settings.directions)
    return parse_variants(settings.mechanisms)


def plan(prepared: Measured, settings: Settings, *, strict: bool = True) -> ResolvedSetting:
    """Return one setting with its problem, its budget and its cells.

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
    trials = range(settings.trials)
    named = {parse_variant(text) for text in settings.mechanisms if text != ALL}
    cells: list[Cell] = []
    skipped: list[Skipped] = []
    for mechanism in variants_of(settings):
        cell = cell_at(prepared, settings, mechanism, trials)
        if isinstance(cell, Cell):
            cells.append(cell)
        elif strict and mechanism in named:
            raise CannotRun(mechanism.text, cell)
        else:
            skipped.append(Skipped(mechanism.text, cell))
    return ResolvedSetting(prepared, settings, problem, budget, tuple(cells), tuple(skipped))
