"""Every cached call. Arguments are texts, numbers and tuples of them only.

A dataclass nested in an argument would lose its class in the cache key, and a
generator has none: pass texts and seeds. Results of uploads stay within the
session that uploaded.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz import datasets, reproduce
from dpviz.base.arrays import FloatArray
from dpviz.base.params import params_of
from dpviz.claims import exhibits as refutations
from dpviz.claims import finds
from dpviz.claims.account import account_view
from dpviz.claims.audit import Audit, audit
from dpviz.datasets import RawTable, Table
from dpviz.errors import CannotRun, DpvizError, InvalidSetting, InvalidTable
from dpviz.mechanisms import Mechanism, parse_variant, parse_variants
from dpviz.narrative import explore as narrative
from dpviz.paid.steps import Wanted
from dpviz.prepare.bounding import Prepared, prepare
from dpviz.prepare.prepared import Measured
from dpviz.releasing.making import float_safe
from dpviz.releasing.noise import Law
from dpviz.reproduce import Effort, Experiment, Step
from dpviz.run import cells as sweeps
from dpviz.run.cells import Cell, Plan, Result, Skipped
from dpviz.run.compare import Comparison
from dpviz.run.store import Store, default_folder
from dpviz.run.waterfall import mechanism_of, stages, waterfall_table
from dpviz.settings import Settings
from dpviz.targets.goal import Goal
from dpviz.targets.least import Predicted, Target, least, measured_need, predicted_target
from dpviz.tasks import Task, TaskPlan, plan_task
from dpviz.theory.growth import growth_table
from dpviz.tidy import curves
from dpviz.values.allocation import UNIFORM
from dpviz.values.problem import Budget, Domain, Problem, Relation
from pages.ui import limits
from pages.ui.turns import turns

_PREPARATION = ("center", "scale", "row_bound", "count", "domain", "bounds")

# A run can only be stopped between Streamlit calls; chunks keep that short.
CHUNK_SECONDS = 0.15
# Where all draws take longer than this, the first of each mechanism is shown before the others.
FIRST_AFTER = 2.0

# Of this thread alone, where the system counts that (a browser's does not).
_own_time = getattr(time, "thread_time", time.process_time)


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading the file", show_time=True)
def _parsed(file_id: str, name: str, decimal: str, _file: object) -> RawTable | str:
    # Streamlit forgets a call that raised: a zip bomb would be unpacked again on every run.
    try:
        return datasets.read_raw(
            _file,  # type: ignore[arg-type]
            name=name,
            decimal=decimal,
            limits=datasets.UPLOADED,
        )
    except DpvizError as error:
        return str(error)


def raw_table(file_id: str, name: str, file: object, decimal: str = "auto") -> RawTable:
    """Return the parsed upload, or raise InvalidTable saying why there is none."""
    found = _parsed(file_id, name, decimal, file)
    if isinstance(found, str):
        raise InvalidTable(found)
    return found


@st.cache_resource(max_entries=16, show_spinner=False)
def builtin(key: str) -> Table:
    """Return a built-in table."""
    return datasets.load(key)


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading columns", show_time=True)
def uploaded(
    file_id: str,
    label: str | None,
    categorical: str,
    missing: str,
    decimal: str,
    leave_out: tuple[str, ...],
    _raw: RawTable,
) -> Table:
    """Return the upload as a numeric table."""
    return _raw.to_table(label=label, categorical=categorical, missing=missing, leave_out=leave_out)


@st.cache_resource(scope="session", max_entries=4, show_spinner="Preparing", show_time=True)
def prepared(
    table_key: str,
    columns: tuple[str, ...],
    preparation: tuple[tuple[str, str], ...],
    bounds: tuple[tuple[str, tuple[float, float]], ...],
    _table: Table,
    _settings: Settings,
) -> Prepared:
    """Return the prepared table; ``preparation`` names what it depends on."""
    return prepare(_table.select(columns) if columns else _table, _settings, dict(bounds) or None)


@st.cache_data(scope="session", max_size="96MB", show_spinner="Drawing releases", show_time=True)
def chunk(
    data_key: tuple[str, ...],
    variant: str,
    budget: tuple[float, float],
    problem: str,
    seed: int,
    start: int,
    stop: int,
    _cell: Cell,
    _measured: Measured,
    _took: list[float],
) -> Result:
    """Return one chunk of trials of one variant, in a turn; add what it took to ``_took``."""
    with turns().one(), limits.deadline(limits.CHUNK_LIMIT):
        began = _own_time()
        found = sweeps.run_cell(_cell, _measured)
        _took.append(_own_time() - began)
    return found


def chunk_size(d: int) -> int:
    """Return how many trials take about `CHUNK_SECONDS` at dimension d.

    Three symmetric eigenvalue problems a trial; their cost is measured in
    ``benchmarks/explore.py``.
    """
    seconds = 3 * (5e-5 + 4e-7 * d**2 + 6e-10 * d**3)
    return max(1, math.floor(CHUNK_SECONDS / seconds))


@dataclass
class _Paces:
    """What trials take in this session, by what is drawn.

    Attributes
    ----------
    sizes : dict
        Trials a chunk.
    refused : dict
        Why something is not drawn at all.
    seconds : dict
        What all its trials took on one core.
    """

    sizes: dict[tuple[str, ...], int]
    refused: dict[tuple[str, ...], str]
    seconds: dict[tuple[str, ...], float]


@st.cache_resource(scope="session", show_spinner=False)
def _paces() -> _Paces:
    return _Paces({}, {}, {})


class Late(Skipped):
    """A variant that is not drawn because it would take longer than a page may."""


def seconds_of(comparison: Comparison) -> float:
    """Return what the draws of a comparison took on one core, as far as this session made them."""
    known = _paces().seconds
    return sum(known.get(_what(cell), 0.0) for cell in comparison.plan.cells)


def _what(cell: Cell) -> tuple[str, ...]:
    return cell.mechanism.text, _problem_text(cell), repr(cell.budget)


def _problem_text(cell: Cell) -> str:
    # All of it: k, relation, domain; but the allocation only where noise follows it, so that
    # moving shares draws nobody else again.
    follows = cell.mechanism.follows_allocation
    return repr(cell.problem if follows else replace(cell.problem, allocation=UNIFORM))


def in_chunks(
    data_key: tuple[str, ...],
    cell: Cell,
    measured: Measured,
    between: Callable[[float], object],
    only_first: bool = False,
) -> Result:
    """Return the result of a cell, chunk by chunk.

    Parameters
    ----------
    data_key : tuple of str
        Everything the data depends on.
    cell : Cell
    measured : Measured
    between : callable
        Called with the share done before each chunk; it must make a Streamlit
        call, which is where a run that is no longer wanted stops.
    only_first : bool
        Whether the first chunk, of one trial, is all that is wanted yet.

    Raises
    ------
    CannotRun
        If it would take longer than a page may.
    """
    parts = []
    problem, what, pace = _problem_text(cell), _what(cell), _paces()
    spent = 0.0
    if what in pace.refused:
        raise CannotRun(cell.mechanism.text, pace.refused[what])
    start = cell.trials.start
    while start < cell.trials.stop:
        # One trial first: k, the sampler and its sweeps decide what it takes. What was measured
        # is kept, so that the next run asks for the same chunks.
        size = pace.sizes.get(what, 1) if start > cell.trials.start else 1
        stop = min(start + size, cell.trials.stop)
        between((start - cell.trials.start) / max(len(cell.trials), 1))
        took: list[float] = []
        try:
            part = chunk(
                data_key,
                cell.mechanism.text,
                (cell.budget.epsilon, cell.budget.delta),
                problem,
                cell.seed,
                start,
                stop,
                replace(cell, trials=range(start, stop)),
                measured,
                took,
            )
        except limits.TooSlow:
            pace.refused[what] = limits.too_slow(math.inf)
            raise CannotRun(cell.mechanism.text, pace.refused[what]) from None
        parts.append(part)
        spent += sum(took)
        if what not in pace.sizes:
            # neither other sessions nor the wait for a turn make it slow
            seconds = max(sum(took), 1e-6)
            expected = seconds * (cell.trials.stop - stop)
            if expected > limits.caps().work:
                pace.refused[what] = limits.too_slow(expected)
                raise CannotRun(cell.mechanism.text, pace.refused[what])
            # powers of two: a noisy clock mostly leads to the same chunks
            rate = math.floor(math.log2(max(CHUNK_SECONDS / seconds, 1.0)))
            pace.sizes[what] = min(2**rate, chunk_size(cell.problem.d))
        if only_first:
            break
        start = stop
    if spent:
        pace.seconds[what] = spent
    return sweeps.joined(parts)


class Progress:
    """A progress bar that shows itself only when work takes longer than a moment."""

    def __init__(self) -> None:
        self._place = st.empty()
        self._started = time.monotonic()

    def __call__(self, share: float, words: str) -> None:
        """Show how much is done; a call is where Streamlit may end the run."""
        if time.monotonic() - self._started > 0.5:
            self._place.progress(min(share, 1.0), words)
        else:
            self._place.empty()

    def close(self) -> None:
        """Take the bar away."""
        self._place.empty()


def results(
    data_key: tuple[str, ...], chosen: Plan, ready: Prepared
) -> tuple[tuple[Result, ...], tuple[Skipped, ...]]:
    """Return the result of every cell of a plan, and what would take too long."""
    progress = Progress()
    first = st.empty()
    if _seconds(chosen) > FIRST_AFTER:
        seen = []
        for number, cell in enumerate(chosen.cells):
            progress(number / len(chosen.cells), f"First draw: {cell.mechanism.label}")
            with suppress(CannotRun):  # said below, where it is left out
                seen.append(in_chunks(data_key, cell, ready, lambda share: None, only_first=True))
        first.markdown(narrative.first_draw(seen, chosen.settings.trials))
    found = []
    slow = []
    for number, cell in enumerate(chosen.cells):

        def tell(share: float, number: int = number, label: str = cell.mechanism.label) -> None:
            progress((number + share) / len(chosen.cells), f"Drawing releases: {label}")

        try:
            found.append(in_chunks(data_key, cell, ready, tell))
        except CannotRun as error:
            slow.append(Late(error.mechanism, error.reason))
    progress.close()
    first.empty()
    return tuple(found), tuple(slow)


def _seconds(chosen: Plan) -> float:
    """Return about what the draws of a plan take."""
    each = CHUNK_SECONDS / chunk_size(chosen.problem.d)
    return len(chosen.cells) * chosen.settings.trials * each


def comparison(data_key: tuple[str, ...], ready: Prepared, settings: Settings) -> Comparison:
    """Return the comparison of one view, from the cache where it can be."""
    chosen = sweeps.plan(ready, settings, strict=False)
    found, slow = results(data_key, chosen, ready)
    late = {item.mechanism for item in slow}
    drawn = replace(
        chosen,
        cells=tuple(cell for cell in chosen.cells if cell.mechanism.text not in late),
        skipped=(*chosen.skipped, *slow),
    )
    return Comparison(drawn, found)


@st.cache_data(scope="session", max_entries=2_000, show_spinner="Predicting", show_time=True)
@st.cache_data(scope="session", max_entries=2_000, show_spinner="Predicting", show_time=True)
def _spectrum(key: tuple[str, ...], _measured: Measured, _settings: Settings) -> list[float] | None:
    return curves.predicted_spectrum(_measured, _settings, parse_variant(key[-1]))


def predicted_spectra(data_key: tuple[str, ...], comparison: Comparison) -> dict[str, list[float]]:
    """Return the predicted noisy spectrum of each variant that has one."""
    found = {}
    for result in comparison.results:
        text = result.mechanism.text
        key = (*data_key, repr(comparison.problem), repr(comparison.budget), text)
        spectrum = _spectrum(key, comparison.prepared, comparison.settings)
        if spectrum is not None:
            found[text] = spectrum
    return found


def preparation_of(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return what a preparation depends on, as text.

    Which steps are paid for depends on the relation too, and every draw on their shares.
    """
    params = params_of(Settings)
    chosen = ((name, params[name].format(getattr(settings, name))) for name in _PREPARATION)
    return (*chosen, ("paid", repr(settings.paid_shares)))


def second(key: str, settings: Settings) -> tuple[Prepared, tuple[str, ...]]:
    """Return another built-in table, prepared as the first one is."""
    preparation = preparation_of(settings)
    ready = prepared(key, (), preparation, (), builtin(key), settings)
    return ready, (key, *(value for _, value in preparation))


@st.cache_data(scope="session", max_entries=50, show_spinner="Searching", show_time=True)
def _target(key: tuple[str, ...], _rows: Measured, _settings: Settings, _goal: Goal) -> Target:
    return least(_rows, _settings, parse_variant(key[-2]), _goal, key[-1])


def targets(
    data_key: tuple[str, ...], rows: Measured, settings: Settings, goal: Goal, what: str
) -> list[Target]:
    """Return the least epsilon or n of every chosen variant, sorted."""
    found = [
        _target((*data_key, repr(settings), repr(goal), mechanism.text, what), rows, settings, goal)
        for mechanism in parse_variants(settings.mechanisms)
    ]
    return sorted(found, key=lambda target: (not target.counts, target.estimate))


# Made-up tables only from here on: nothing of a session's data, so all sessions share them.


@st.cache_data(max_entries=100, show_spinner=False)
def support(d: int, epsilon: float, seed: int) -> pd.DataFrame:
    """Return how often one-sided noise betrays its table."""
    return refutations.support_table(d, epsilon, seed)


@st.cache_data(max_entries=100, show_spinner=False)
def cone(epsilon: float, seed: int) -> pd.DataFrame:
    """Return the releases of the picture of the cone."""
    return refutations.cone_table(epsilon, seed)


@st.cache_data(max_entries=100, show_spinner=False)
def true_deltas(delta: float) -> pd.DataFrame:
    """Return the true delta of Gaussian releases that give more than they claim."""
    return refutations.delta_table(delta)


@st.cache_data(max_entries=100, show_spinner=False)
def gibbs(epsilon: float, seed: int) -> pd.DataFrame:
    """Return the mean score of Gibbs chains beside the exact one."""
    return refutations.gibbs_table(epsilon, seed)


@st.cache_data(max_entries=20, show_spinner=False)
def samplers(seed: int) -> pd.DataFrame:
    """Return the first coordinate's mean square by dpviz's sampler and by two libraries."""
    return finds.sampler_table(seed)


@st.cache_resource(max_entries=20, show_spinner="Releasing two made-up tables again and again")
def audited(
    variant: str,
    budget: tuple[float, float],
    d: int,
    k: int,
    relation: str,
    seed: int,
    trials: int,
) -> Audit:
    """Return the audit of one variant."""
    return audit(
        parse_variant(variant),
        Budget(*budget),
        d=d,
        k=k,
        relation=Relation(relation),
        seed=seed,
        trials=trials,
    )


@st.cache_data(scope="session", max_entries=500, show_spinner="Predicting", show_time=True)
def _predicted_target(
    key: tuple[str, ...], _rows: Measured, _settings: Settings, _goal: Goal
) -> Predicted:
    return predicted_target(_rows, _settings, parse_variant(key[-2]), _goal, key[-1])


def predicted_targets(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    goal: Goal,
    mechanisms: Sequence[Mechanism],
    what: str,
) -> list[Predicted]:
    """Return the least epsilon or n that is predicted for each variant, the least first."""
    shared = (*data_key, repr(settings), repr(goal))
    found = [
        _predicted_target((*shared, mechanism.text, what), rows, settings, goal)
        for mechanism in mechanisms
    ]
    return sorted(found, key=Predicted.order)


@st.cache_data(scope="session", max_entries=50, show_spinner="Searching", show_time=True)
def _measured_need(
    key: tuple[str, ...], _rows: Measured, _settings: Settings, rho: float, eta: float
) -> Target:
    return measured_need(_rows, _settings, parse_variant(key[-1]), rho, eta)


def need(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    mechanism: Mechanism,
    rho: float,
    eta: float,
) -> Target:
    """Return the people at which one mechanism finds the first component."""
    key = (*data_key, repr(settings), mechanism.text)
    return _measured_need(key, rows, settings, rho, eta)


@st.cache_resource(show_spinner=False)
def _results_store() -> Store:
    """Return where results of experiments are kept for the next visit."""
    try:
        return Store(default_folder())
    except InvalidSetting:  # a host without a home: kept while the server runs
        return Store(Path(tempfile.mkdtemp(prefix="dpviz-")))


def kept(chosen: Experiment, effort: Effort) -> Step:
    """Return what is known of an experiment without running anything."""
    return reproduce.kept(chosen, effort, _results_store())


def reproduction_steps(chosen: Experiment, effort: Effort) -> Iterator[Step]:
    """Yield an experiment's state after each part; every part is kept on disk at once."""
    limits.refuse_in_public("runs no experiments; it shows those that were run before")
    return reproduce.work(chosen, effort, store=_results_store())


def shown_every(total: int) -> int:
    """Return after how many parts to draw again, so that drawing does not outweigh the work."""
    return max(1, total // 12)


@st.cache_resource(scope="session", max_entries=4, show_spinner=False)
def _task_splits(key: tuple[str, ...]) -> dict[int, Any]:
    return {}  # filled by the plans that share it


@st.cache_resource(scope="session", max_entries=6, show_spinner="Splitting", show_time=True)
def _task_plan(
    key: tuple[str, ...],
    shared: tuple[str, ...],
    _ready: Prepared,
    _settings: Settings,
    _task: Task,
    _mechanisms: Sequence[Mechanism],
) -> TaskPlan:
    return plan_task(
        _ready.table,
        _settings,
        _task,
        None,
        _mechanisms,
        bounds=_ready.bounds,
        splits=_task_splits(shared),
    )


def task_plan(
    data_key: tuple[str, ...],
    ready: Prepared,
    settings: Settings,
    task: Task,
    mechanisms: Sequence[Mechanism],
) -> TaskPlan:
    """Return what a task asks for, with the data of its splits.

    Another epsilon, mechanism or number of draws does not prepare the rows again.
    """
    names = tuple(mechanism.text for mechanism in mechanisms)
    same = replace(settings, epsilon=1.0, mechanisms=(), trials=1)
    shared = (*data_key, repr(same), repr(replace(task, epsilons="1")))
    key = (*data_key, repr(settings), repr(task), *names)
    return _task_plan(key, shared, ready, settings, task, mechanisms)


class TaskScores:
    """Scores that are kept: in the session, and on disk where the table is public.

    Parameters
    ----------
    public : bool
        Whether the table is one that dpviz brings or fetches. What is measured
        on an upload stays in the session and goes with it.
    """

    MOST = 20_000  # parts of a few numbers each

    def __init__(self, public: bool) -> None:
        self._held: dict[str, FloatArray] = st.session_state.setdefault("task_scores", {})
        self._disk = _results_store() if public else None

    def get(self, key: str) -> dict[str, FloatArray] | None:
        """Return the scores of a part."""
        if key not in self._held and self._disk is not None:
            found = self._disk.get(key)
            if found is not None:
                self._hold(key, found["score"])
        return {"score": self._held[key]} if key in self._held else None

    def put(self, key: str, metrics: Mapping[str, FloatArray]) -> None:
        """Keep the scores of a part."""
        self._hold(key, metrics["score"])
        if self._disk is not None:
            self._disk.put(key, metrics)

    def prune(self) -> None:
        """Keep the folder within its bounds."""
        if self._disk is not None:
            self._disk.prune()

    def _hold(self, key: str, scores: FloatArray) -> None:
        self._held[key] = scores
        while len(self._held) > self.MOST:
            del self._held[next(iter(self._held))]


@st.cache_data(max_entries=2, show_spinner="Measuring the noise at d from 10 to 160")
def growth() -> pd.DataFrame:
    """Return measured and stated growth of the noise in d; no data is involved."""
    return growth_table()


@st.cache_data(scope="session", max_entries=50, show_spinner="Preparing privately", show_time=True)
def _waterfall(
    key: tuple[str, ...], _prepared: Prepared, _settings: Settings
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    found = stages(_prepared, _settings)
    return waterfall_table(found), found[-1].assumed_public


def waterfall(
    data_key: tuple[str, ...], prepared: Prepared, settings: Settings
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return what each private step of a preparation costs, and what stays assumed public."""
    own = replace(settings, mechanisms=(mechanism_of(settings),))
    return _waterfall((*data_key, repr(own)), prepared, own)


@st.cache_data(max_entries=200, show_spinner=False)
def _account(
    key: tuple[str, ...],
    _mechanism: Mechanism,
    _problem: Problem,
    _budget: Budget,
    _paid: Wanted | None,
) -> tuple[str, pd.DataFrame, pd.DataFrame] | str:
    try:
        view = account_view(_mechanism, _problem, _budget, paid=_paid)
    except DpvizError as error:
        return str(error)
    numbers = [
        f"{name} {value:.4g}" for name, value in (("mu", view.mu), ("rho", view.rho)) if value
    ]
    if view.paid is not None:
        steps = ", ".join(view.paid.steps)
        left = f"preparation ({steps}) and release, which gets epsilon {view.rest.epsilon:.3g}"
        numbers.insert(0, f"The whole chain: {left}")
    return "; ".join(numbers), view.curve_table(), view.repeated_table()


def account(
    mechanism: Mechanism, problem: Problem, budget: Budget, paid: Wanted | None = None
) -> tuple[str, pd.DataFrame, pd.DataFrame] | str:
    """Return mu and rho in words, the curve, and what repeating costs; or why there is none.

    It is that of the whole chain where steps of the preparation are paid for too.
    """
    key = (mechanism.text, repr(problem), repr(budget), repr(paid))
    return _account(key, mechanism, problem, budget, paid)


def account_of_releases(
    epsilon: float, delta: float
) -> tuple[str, pd.DataFrame, pd.DataFrame] | str:
    """Return the account of the mechanism that makes real releases."""
    problem = Problem(1_000, 10, 2, Relation.REPLACE, Domain.ball(10))
    mechanism = parse_variant(next(key for key, law in float_safe().items() if law is Law.NORMAL))
    return account(mechanism, problem, Budget(epsilon, delta))
