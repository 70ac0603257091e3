"""One setting, resolved: its cells, and what is known of each before a draw.

`parts_of` says what of it is to be drawn, for `dpviz.simulation.simulate`;
`dpviz.simulation.compare.run_cell` measures what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray
from dpviz.core.eigen import BATCHED_BELOW
from dpviz.core.errors import CannotRun
from dpviz.core.metrics import (
    Outcome,
)
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release, Status
from dpviz.core.resources import one_blas_thread, too_much
from dpviz.core.seeding import Draws
from dpviz.core.settings import FREE, Settings
from dpviz.mechanisms import ALL, Mechanism, parse_variant, parse_variants
from dpviz.mechanisms._suppliers import check_supplier
from dpviz.preparation.draws import PreparedDraws as PrivateRows
from dpviz.preparation.draws import noise_edge, run
from dpviz.preparation.prepared import Measured
from dpviz.preparation.steps import BOUND, PrivateSteps, private_steps
from dpviz.preparation.transform import Transform
from dpviz.simulation.picture.account import (
    PictureOptions,
    PicturePlan,
    behind_preparation,
    with_picture,
)
from dpviz.simulation.picture.counting import PictureNoise, publish
from dpviz.simulation.picture.quality import Pictured
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
        Of the mechanism, on what a private preparation and a picture leave of the budget.
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
    private: PrivateSteps | None = None,
    picture: PictureOptions | None = None,
) -> CellAccount:
    """Return the account of a variant; kept, as every chunk of draws asks for it again.

    Raises
    ------
    CannotRun
        If a private preparation or a picture leaves nothing usable.
    """
    if private is not None or picture is not None:
        whole = behind_preparation(mechanism, problem, budget, private, picture)
        calibration, spent = mechanism.calibrate(problem, whole.rest), whole.spent
        # a row bound that is bought is another unit in each draw: no single edge
        fixed = private is None or BOUND not in private.steps
        plan = None
        if picture is not None:
            pictured = with_picture(mechanism, problem, budget, picture, private)
            # noise of a claim that fails hides nobody: no picture is made of it
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
    private: PrivateSteps | None,
    picture: PictureOptions | None = None,
    *,
    rows: bool = True,
) -> str | None:
    """Return why a variant cannot run with all that is paid beside it, or None if it can."""
    reason = mechanism.why_not(problem, budget, rows=rows)
    if reason is None and (private is not None or picture is not None):
        try:
            behind_preparation(mechanism, problem, budget, private, picture)
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
    measured: Measured,
    settings: Settings,
    mechanism: Mechanism,
    trials: range,
    *,
    serves: bool | None = None,
    has_rows: bool | None = None,
) -> Cell | str:
    """Return the cell of one variant in one setting, or why it cannot run.

    Parameters
    ----------
    measured : Measured
    settings : Settings
    mechanism : Mechanism
    trials : range
    serves, has_rows : bool, optional
        What `Measured` says of those names, where the rows themselves are added later.
    """
    problem, budget = measured.problem(settings), measured.budget(settings)
    private, picture = private_steps(settings), picture_of(measured, settings)
    if picture is not None and not (measured.has_rows if has_rows is None else has_rows):
        return NO_ROWS
    rows = measured.serves(mechanism) if serves is None else serves
    reason = why_not(mechanism, problem, budget, private, picture, rows=rows)
    if reason is not None:
        return reason
    free = settings.post == FREE
    cell = Cell(mechanism, problem, budget, settings.seed, trials, private, free, picture)
    return too_large(cell, measured) or cell


@dataclass(frozen=True, eq=False)
class CellTrials(Trials):
    """Trials of a cell, with what their releases are compared with.

    Attributes
    ----------
    prepared : Measured
    private : PaidDraws or None
        The preparation of each trial, where it is paid for.
    plan : PicturePlan or None
        Of the picture that each trial publishes.
    """

    prepared: Measured = field(kw_only=True)
    private: PrivateDraws | None = field(default=None, kw_only=True)
    plan: PicturePlan | None = field(default=None, kw_only=True)

    def outcome(self, release: Release) -> Outcome:
        """Return a batch of releases beside what they estimate.

        A private row bound is another unit in each draw: what is released is brought back to that
        of the reference, by a factor that is released too.
        """
        reference, moment = self.prepared.reference, self.prepared.moment
        pictured = self.pictured(release)
        if self.private is None:
            return Outcome(reference, moment, release, pictured=pictured)
        units = self.private.units
        true_moments = units[:, None, None] * self.private.made.moments
        return Outcome(reference, moment, release.times(units), true_moments, pictured)

    def pictured(self, release: Release) -> Pictured | None:
        """Return what each release publishes of the rows, in that draw's own units, if anything."""
        plan = self.plan
        if plan is None:
            return None
        public_rows = None if self.private is not None else self.prepared.moment_with_rows.rows

        def rows(index: int) -> FloatArray:
            row_values = public_rows if self.private is None else self.private.rows(index)
            assert row_values is not None, "`why_not` says so beforehand"
            return row_values

        codes = None if self.prepared.labels is None else self.prepared.labels.codes
        true = self.prepared.reference.top(plan.axes)
        if not plan.cells:
            return Pictured((), release.components, rows, true, codes)
        assert isinstance(self.streams, Named)
        # a stream of its own: a picture changes no number of the directions
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
    # by key and not by variant or epsilon: one draw serves every setting of a mechanism
    streams = Named(cell.seed, mechanism.key, cell.trials)
    if cell.private is not None:
        private = private_draws(cell, prepared)
        return CellTrials(
            mechanism,
            private.calibration,
            private.sees,
            streams,
            prepared=prepared,
            private=private,
            # a search has many budgets, and what each of them costs takes long
            plan=None if cell.picture is None else _account(cell).plan,
        )
    account = _account(cell)
    return CellTrials(
        mechanism,
        account.calibration,
        prepared.moment_with_rows if mechanism.needs_rows else prepared.moment,
        streams,
        keeps_noise=True,
        prepared=prepared,
        plan=account.plan,
    )


def _account(cell: Cell) -> CellAccount:
    return account_of(cell.mechanism, cell.problem, cell.budget, cell.private, cell.picture)


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


def pilot_draws(d: int, trials: int) -> int:
    """Return how many draws tell what the others take, or 0 where all are done in no time."""
    few = 1 if d >= BATCHED_BELOW else 20
    return few if trials >= 5 * few and trials * d**2 >= 1_000_000 else 0


@dataclass(frozen=True)
class Skipped:
    """A variant that could not run, and why.

    Attributes
    ----------
    mechanism : str
        Text of the variant.
    reason : str
    late : bool
        Whether it could run and would take longer than it may.
    """

    mechanism: str
    reason: str
    late: bool = False


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
    # who asks for all gets all that can run; who names one wants that one, or to hear why not
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


# Private preparations ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PrivateDraws:
    """One private preparation for each draw, and the mechanism that comes after it.

    Attributes
    ----------
    mechanism : Mechanism
    calibration : Calibration
        Of the mechanism, on what the preparation leaves.
    raw : ndarray of shape (n, d)
    public : Transform
    made : dpviz.preparation.draws.PreparedDraws
    """

    mechanism: Mechanism
    calibration: Calibration
    raw: FloatArray
    public: Transform
    made: PrivateRows

    def sees(self, index: int) -> SecondMoment:
        """Return the moment that the mechanism sees in one repetition."""
        if self.mechanism.needs_rows:
            return self.made.moment_with_rows(self.raw, self.public, index)
        return self.made.moment(index, self.calibration.problem.n)

    @property
    def units(self) -> FloatArray:
        """The squared row bound of each draw in those of the reference, shape (trials,)."""
        unit = self.public.row_bound if np.isfinite(self.public.row_bound) else 1.0
        squared: FloatArray = np.square(self.made.unit / unit)
        return squared

    def rows(self, index: int) -> FloatArray:
        """Return the bounded rows of one draw, shape (n, d)."""
        return self.made.bounded(self.raw, self.public, index)

    def transform(self, index: int, before: Transform) -> Transform:
        """Return how other rows are prepared in one draw, as far as that is released."""
        scale = self.made.scale[index] * self.made.unit[index]
        return replace(before, center=self.made.center[index], scale=scale)


def private_draws(cell: Cell, prepared: Measured) -> PrivateDraws:
    """Return the private preparation of each trial of a cell.

    Raises
    ------
    CannotRun
        If the preparation leaves nothing usable.
    """
    if cell.private is None or prepared.raw is None or prepared.public is None:
        raise RuntimeError("a private preparation needs a table that was prepared for it")
    mechanism, problem, raw = cell.mechanism, cell.problem, prepared.raw
    whole = behind_preparation(mechanism, problem, cell.budget, cell.private, cell.picture)
    calibration = mechanism.calibrate(problem, whole.rest)
    edges = mechanism.spectrum_edges(calibration)
    if edges is not None:
        edge = problem.n * max(abs(edges[0]), abs(edges[1]))
    else:
        mu = mu_of(whole.rest) if whole.rest.delta > 0 else whole.rest.epsilon
        edge = noise_edge(problem.d, problem.relation, mu / problem.together)
    public = replace(prepared.public, edge=edge)
    steps = Draws.trials(cell.seed, "prepare", cell.trials)
    with one_blas_thread():
        made = run(raw, public, whole.preparation, steps, people=problem.n)
    return PrivateDraws(mechanism, calibration, raw, public, made)
