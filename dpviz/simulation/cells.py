"""Resolve one setting into cells, one for each variant, with the facts known before simulation.

`parts_of` yields the parts that `dpviz.simulation.simulate` runs;
`dpviz.simulation.compare.run_cell` measures the results.
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
"""Maximum number of entries of released matrices in memory at once, if decomposed one by one."""


_ASK_FROM = 1 << 28
"""Size in bytes from which a cell's memory need is checked against free memory."""


@dataclass(frozen=True)
class CellAccount:
    """Facts about a variant in one setting, known before simulation.

    Attributes
    ----------
    calibration : Calibration
        Calibration of the mechanism, on the budget left by private preparation and published chart.
    claimed : Budget or None
    spent : Spent or None
        Privacy loss of preparation, release and published chart together.
    status : Status
    edges : (float, float) or None
        Limits of the noise spectrum; None if a private row-norm bound makes the limits random.
    threshold : float or None
        Variance below which noise hides a single component; None if ``edges`` is None.
    plan : PicturePlan or None
        Plan of the published chart, if there is one; never with a broken claim.
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
    """Return the privacy accounting of a variant, cached because every block of trials needs it.

    Raises
    ------
    CannotRun
        If a private preparation or a published chart leaves no usable budget.
    """
    if private is not None or picture is not None:
        whole = behind_preparation(mechanism, problem, budget, private, picture)
        calibration, loss = mechanism.calibrate(problem, whole.rest), whole.spent
        # A private row-norm bound differs in each trial, so the noise has no single edge.
        scale_is_public = private is None or BOUND not in private.steps
        plan = None
        if picture is not None:
            picture_account = with_picture(mechanism, problem, budget, picture, private)
            # If the privacy claim fails, noise protects nobody, so publish no chart.
            plan = picture_account.plan if picture_account.status.verdict.counts else None
        return CellAccount(
            calibration=calibration,
            claimed=whole.claimed,
            spent=loss,
            status=whole.status(loss),
            edges=mechanism.spectrum_edges(calibration) if scale_is_public else None,
            threshold=mechanism.detection_threshold(calibration) if scale_is_public else None,
            plan=plan,
        )
    calibration = mechanism.calibrate(problem, budget)
    loss = mechanism.spent(problem, budget)
    return CellAccount(
        calibration=calibration,
        claimed=mechanism.claim(problem, budget),
        spent=loss,
        status=mechanism.judged(problem, budget, loss),
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
    """Return why a variant cannot run beside preparation and chart, or None if it can."""
    reason = mechanism.why_not(problem, budget, rows=rows)
    if reason is None and (private is not None or picture is not None):
        try:
            behind_preparation(mechanism, problem, budget, private, picture)
        except CannotRun as error:
            return error.reason
    return reason


NO_ROWS = "a picture needs the rows themselves in memory"


def picture_of(measured: Measured, settings: Settings) -> PictureOptions | None:
    """Return the published chart that the settings request, or None."""
    if not settings.picture:
        return None
    kinds = 1 if measured.labels is None else len(measured.labels.kinds)
    return PictureOptions(settings.picture, settings.picture_form, kinds)


def memory_of(cell: Cell, measured: Measured) -> float:
    """Estimate the maximum number of bytes that a cell needs beside its table."""
    draws = len(in_blocks(cell)[0].trials)
    thin = measured.moment.root is not None
    # Post-processing adds a second eigenvalue decomposition, and its results.
    after = 8.0 * cell.problem.d**2 * 4 * draws if cell.free else 0.0
    return cell.mechanism.memory(cell.problem, draws, thin=thin) + after


def cell_at(
    measured: Measured, settings: Settings, mechanism: Mechanism, trials: range
) -> Cell | str:
    """Return the cell of one variant in one setting, or the reason why the variant cannot run."""
    problem, budget = measured.problem(settings), measured.budget(settings)
    private, picture = private_steps(settings), picture_of(measured, settings)
    if picture is not None and not measured.has_rows:
        return NO_ROWS
    rows = measured.serves(mechanism)
    reason = why_not(mechanism, problem, budget, private, picture, rows=rows)
    if reason is not None:
        return reason
    free = settings.post == FREE
    cell = Cell(mechanism, problem, budget, settings.seed, trials, private, free, picture)
    size = memory_of(cell, measured)
    # Small cells always fit into memory, so they need no memory check.
    too_large = too_much(size) if size > _ASK_FROM else None
    return f"it takes {too_large}: leave columns out, or draw less" if too_large else cell


@dataclass(frozen=True, eq=False)
class CellTrials(Trials):
    """Trials of a cell, with the reference for their releases.

    Attributes
    ----------
    prepared : Measured
    private : PaidDraws or None
        Private preparation of each trial, if there is one.
    plan : PicturePlan or None
        Plan of the chart that each trial publishes.
    """

    prepared: Measured = field(kw_only=True)
    private: PrivateDraws | None = field(default=None, kw_only=True)
    plan: PicturePlan | None = field(default=None, kw_only=True)

    def outcome(self, release: Release) -> Outcome:
        """Return a batch of releases with the moment that they estimate.

        A private row-norm bound is a different unit in each trial. Released values are rescaled to
        the reference's unit, by a factor that is released too.
        """
        reference, moment = self.prepared.reference, self.prepared.moment
        view = self.pictured(release)
        if self.private is None:
            return Outcome(reference, moment, release, pictured=view)
        units = self.private.units
        true_moments = units[:, None, None] * self.private.made.moments
        return Outcome(reference, moment, release.times(units), true_moments, view)

    def pictured(self, release: Release) -> Pictured | None:
        """Return the public data on rows in each release, in its own units; None without any."""
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
        # Use a separate stream, so that a published chart never changes the directions.
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
    """Return the trials of a cell as one block.

    Raises
    ------
    CannotRun
        If the mechanism cannot run on this problem and budget.
    """
    mechanism = cell.mechanism
    mechanism.check(cell.problem, cell.budget, rows=prepared.serves(mechanism))
    # Name random streams by the mechanism alone, so that all its settings use the same numbers.
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
            # Without a published chart skip accounting, which is slow at a search's many budgets.
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
    """Yield the trials of a cell, block by block; see `in_blocks`."""
    for block in in_blocks(cell, most):
        yield part_of(block, prepared)


def evaluate(cell: Cell, prepared: Measured) -> Outcome:
    """Return all trials of a cell with their reference, all in memory at once.

    Raises
    ------
    CannotRun
        If the mechanism cannot run on this problem and budget.
    """
    (outcome,) = simulate([part_of(cell, prepared)], CellTrials.outcome)
    return outcome


def in_blocks(cell: Cell, most: int | None = None) -> list[Cell]:
    """Split the trials of a cell into parts that run one after the other.

    Large matrices are simulated a few at a time, so that their memory is reused. The numbers stay
    the same, because every trial has its own stream.

    Parameters
    ----------
    cell : Cell
    most : int, optional
        Number of trials in a part; by default as many as fit in memory.
    """
    d, trials = cell.problem.d, cell.trials
    if most is None:
        large = cell.mechanism.info.release == "matrix" and d >= BATCHED_BELOW
        most = max(1, _BLOCK_ENTRIES // d**2) if large else max(1, len(trials))
    return [
        replace(cell, trials=trials[start : start + most]) for start in range(0, len(trials), most)
    ]


def pilot_draws(d: int, trials: int) -> int:
    """Return how many trials to time first, or 0 if all are fast."""
    few = 1 if d >= BATCHED_BELOW else 20
    return few if trials >= 5 * few and trials * d**2 >= 1_000_000 else 0


@dataclass(frozen=True)
class Skipped:
    """A variant that could not run, and the reason.

    Attributes
    ----------
    mechanism : str
        Text of the variant.
    reason : str
    late : bool
        Whether the variant could run but would exceed the time limit.
    """

    mechanism: str
    reason: str
    late: bool = False


@dataclass(frozen=True, eq=False)
class ResolvedSetting:
    """One resolved setting, from which all later steps take their values.

    Attributes
    ----------
    prepared : Measured
    settings : Settings
    problem : Problem
    budget : Budget
    cells : tuple of Cell
        One cell for each variant that can run.
    skipped : tuple of Skipped
        Variants that cannot run, and the reasons.
    """

    prepared: Measured
    settings: Settings
    problem: Problem
    budget: Budget
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]

    @property
    def place(self) -> dict[str, str | float]:
        """The columns that identify the setting in a table of trials."""
        return {
            "table": self.prepared.name,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "k": self.problem.k,
            "n": self.problem.n,
            "row_bound": self.prepared.row_bound,
            "relation": str(self.problem.relation),
        }


def takes_rows(measured: Measured, settings: Settings) -> bool:
    """Return whether a variant or the published chart needs rows and the table has them.

    Rows for another n are generated only if this is true.
    """
    asks = any(one.needs_rows and measured.serves(one) for one in variants_of(settings))
    return asks or (bool(settings.picture) and measured.has_rows)


def variants_of(settings: Settings) -> list[Mechanism]:
    """Return the variants that a setting names, after checking the supplier of directions.

    Raises
    ------
    InvalidSetting
        If a variant is not legal, or the named supplier can never supply directions.
    """
    check_supplier(settings.directions)
    return parse_variants(settings.mechanisms)


def plan(prepared: Measured, settings: Settings, *, strict: bool = True) -> ResolvedSetting:
    """Resolve one setting into its problem, budget and cells.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
    strict : bool
        Whether a named variant that cannot run is an error. Otherwise the variant is skipped with
        its reason, like one that was not named.

    Raises
    ------
    CannotRun
        If ``strict`` and a named variant cannot run.
    """
    problem, budget = prepared.problem(settings), prepared.budget(settings)
    trials = range(settings.trials)
    # Take all mechanisms that can run. If a named mechanism cannot run, give the reason.
    choices = {parse_variant(text) for text in settings.mechanisms if text != ALL}
    cells: list[Cell] = []
    skips: list[Skipped] = []
    for mechanism in variants_of(settings):
        cell = cell_at(prepared, settings, mechanism, trials)
        if isinstance(cell, Cell):
            cells.append(cell)
        elif strict and mechanism in choices:
            raise CannotRun(mechanism.text, cell)
        else:
            skips.append(Skipped(mechanism.text, cell))
    return ResolvedSetting(prepared, settings, problem, budget, tuple(cells), tuple(skips))


# Private preparations ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PrivateDraws:
    """One private preparation per trial, and the mechanism that follows it.

    Attributes
    ----------
    mechanism : Mechanism
    calibration : Calibration
        Calibration of the mechanism, on the budget left by the preparation.
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
        """Squared row-norm bound of each trial over the reference's, shape (trials,)."""
        unit = self.public.row_bound if np.isfinite(self.public.row_bound) else 1.0
        units: FloatArray = np.square(self.made.unit / unit)
        return units

    def rows(self, index: int) -> FloatArray:
        """Return the bounded rows of one trial, shape (n, d)."""
        return self.made.bounded(self.raw, self.public, index)

    def transform(self, index: int, before: Transform) -> Transform:
        """Return one trial's preparation of other rows, as far as the preparation is released."""
        scale = self.made.scale[index] * self.made.unit[index]
        return replace(before, center=self.made.center[index], scale=scale)


def private_draws(cell: Cell, prepared: Measured) -> PrivateDraws:
    """Return the private preparation of each trial of a cell.

    Raises
    ------
    CannotRun
        If the preparation leaves no usable budget.
    """
    if cell.private is None or prepared.raw is None or prepared.public is None:
        raise RuntimeError("the table must be loaded with the settings of the private preparation")
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
        rows = run(raw, public, whole.preparation, steps, people=problem.n)
    return PrivateDraws(mechanism, calibration, raw, public, rows)
