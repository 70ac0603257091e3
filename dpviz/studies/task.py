"""The question `task`: what can still be learned after a private projection or release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pandas as pd

from dpviz.core.allocation import is_file
from dpviz.core.cancelling import check_cancelled
from dpviz.core.params import params_of
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.datasets import ReadOptions, name_of, read_in_memory
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.load import with_bounds_read
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences import tasks as words
from dpviz.report.sentences.phrases import left_out
from dpviz.simulation.cells import Skipped, variants_of
from dpviz.simulation.jobs import Progress, Storage
from dpviz.simulation.store import Store
from dpviz.simulation.tasks import (
    Task,
    TaskPlan,
    TaskStep,
    band_table,
    plan_task,
    score_table,
    work,
)
from dpviz.studies import Answer
from dpviz.studies.columns import ASIDE, NUMBERS, SKIPPED, Column, printed
from dpviz.studies.options import asks, settings_of, shares_of

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure

_OWN = params_of(Task)


SCORES = (
    Column("mechanism", "Mechanism or floor", type=str),
    Column("source", type=str, show=NUMBERS),
    Column("epsilon", help="Null for baselines, which are not private."),
    Column("mean"),
    Column("low", "Band from"),
    Column("high", "to"),
    Column("rounds", type=int),
    Column("verdict", "Claim", type=str),
)
"""Columns of the scores of one mechanism at one epsilon."""


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Answer):
    """Scores along epsilon, beside the score without privacy and by chance.

    Attributes
    ----------
    results : dpviz.simulation.tasks.TaskStep
        Numbers of the finished rounds.
    plan : dpviz.simulation.tasks.TaskPlan
    """

    figures: ClassVar[tuple[str, ...]] = ("scores",)
    columns: ClassVar[tuple[Column, ...]] = SCORES

    settings: Settings
    task: dict[str, str | float | None]
    assumed_public: tuple[str, ...]
    results: TaskStep
    skipped: Annotated[tuple[Skipped, ...], SKIPPED]
    plan: Annotated[TaskPlan, ASIDE]

    @classmethod
    def of(cls, plan: TaskPlan, step: TaskStep) -> Learned:
        """Return the answer for the finished rounds of a plan."""
        options = {name: getattr(plan.task, name) for name in _OWN}
        learner = {"learner": plan.learner.key, "score": plan.learner.score.label}
        public, skipped = tuple(plan.assumed_public), tuple(plan.skipped)
        return cls(plan.settings, options | learner, public, step, skipped, plan)

    @property
    def progress(self) -> Progress:
        """Number of the finished rounds."""
        return self.results.progress

    @property
    def share(self) -> float:
        """Complete share of the answer."""
        return self.progress.done / max(self.progress.total, 1)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The bands of the scores, with one band per row."""
        by_key: dict[str, Any] = {one.text: one for one in self.plan.mechanisms}
        return [
            {str(key): value for key, value in row.items()}
            | {
                "mechanism": by_key.get(row["mechanism"], row["mechanism"]),
                "verdict": Verdict(row["verdict"]) if row["verdict"] else "",
            }
            for row in self.bands.to_dict("records")
        ]

    def all_columns(self) -> tuple[Column, ...]:
        """Return the columns of the bands; the column of the mean is named after the score."""
        score = self.plan.learner.score
        label = f"Mean {score.label} {'↑' if score.better == 'higher' else '↓'}"
        by_name = {"mean": replace(SCORES[3], label=label, help=score.help)}
        return tuple(by_name.get(column.name, column) for column in self.columns)

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per mechanism, epsilon and round: `dpviz.simulation.tasks.TASK_COLUMNS`."""
        return score_table(self.plan, self.results.scores)

    @cached_property
    def bands(self) -> pd.DataFrame:
        """One row per mechanism and epsilon: `dpviz.simulation.tasks.TASK_BAND_COLUMNS`."""
        return band_table(self.plan, self.rounds)

    def _looked_at(self) -> Measured | None:
        rows = getattr(self.plan.data(0), "measured", None)
        return rows if isinstance(rows, Measured) else None

    def summary(self) -> str:
        """Return the verdict, the training data, and what the privacy covers and omits."""
        plan = self.plan
        lines = [words.verdict(plan, self.bands), words.facts(plan), *plan.notes]
        lines += [f"Protected: {item}" for item in words.protected(plan)]
        lines += [f"Not protected: {item}" for item in words.unprotected(plan)]
        lines += left_out(plan.skipped)
        lines.append("Assumed public: " + "; ".join(plan.assumed_public) + ".")
        return "\n".join(lines)

    def printed(self) -> str:
        """Return the facts and a line per mechanism and epsilon, as the command prints them."""
        plan = self.plan
        lines = [
            words.facts(plan),
            *(f"note: {note}" for note in plan.notes),
            *(f"protected: {item}" for item in words.protected(plan)),
            *(f"not protected: {item}" for item in words.unprotected(plan)),
            "assumed public: " + "; ".join(plan.assumed_public),
            f"score: {plan.learner.score.label}",
            "",
        ]
        lines.append(printed(self.columns, self.rows))
        lines += left_out(plan.skipped)
        return "\n".join(lines)

    def table(self) -> pd.DataFrame:
        """Return a row per mechanism, epsilon and round: `dpviz.simulation.tasks.TASK_COLUMNS`."""
        return self.rounds

    def figure(self, name: str | None = None) -> Figure:
        """Plot the mean and the central 95 % of the scores along epsilon.

        Parameters
        ----------
        name : {"scores"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        self._figure_name(name)
        from dpviz.report.figures.tasks import task_figure
        from dpviz.report.figures.theme import panels_of

        plan = self.plan
        variants = panels_of(plan.mechanisms, *plan.problem_and_budget(0, plan.shown_epsilon))
        return task_figure(
            self.bands,
            variants,
            score=plan.learner.score,
            epsilons=plan.epsilons,
            now=plan.settings.epsilon,
        )


@asks("train a model on private components, or on released data", Settings, Task, noun="round")
def task(
    table: Any = "digits",
    *,
    cache: str | PathLike[str] | Store | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Learned:
    """Measure what can still be learned: classes, numbers or clusters, along epsilon.

    Parameters
    ----------
    table
        A table as in `compare`, with a label and its rows in memory; no plan.
    cache : path or Store, optional
        Folder in which finished rounds are saved and found again; by default none.
    progress : callable, optional
        Function that is called with a `dpviz.simulation.jobs.Progress` after each part.
    **options
        Options as in `compare`, and the options of the task.

    Returns
    -------
    Learned
        ``table()`` has a row for each round; ``to_json()`` writes the bytes of
        ``dpviz task --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        For the reasons listed in `compare`, and if the table has no label that can be learned.

    See Also
    --------
    compare : What becomes of the subspace itself.

    Notes
    -----
    Projecting test rows on a private subspace is post-processing; then the labels of the training
    rows are not protected. Scores of the test rows are compared with the truth, so the answer is
    not a release.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.task(
    ...     "iris", mechanisms="gaussian", epsilons="1,10", trials=2, tuning="fixed"
    ... )
    >>> found.table()["mechanism"].unique().tolist()[-1]
    'gaussian'
    """
    for answer in steps(table, cache=cache, **options):
        if progress is not None:
            progress(answer.progress)
    return answer


def steps(
    table: Any = "digits",
    *,
    cache: str | PathLike[str] | Storage | None = None,
    strict: bool = True,
    **options: Any,
) -> Iterator[Learned]:
    """Yield the facts of `task` that need no learning, and a new answer after each part.

    Parameters are those of `task`; the table may be prepared already. Unless the option ``strict``
    is set, a mechanism that can run nowhere is left out.
    """
    store = Store(Path(cache)) if isinstance(cache, (str, PathLike)) else cache
    own = {name: options.pop(name) for name in _OWN if name in options}
    # If a caller states one epsilon, use it instead of the default axis of several epsilons.
    if "epsilon" in options and "epsilons" not in own:
        own["epsilons"] = _OWN["epsilons"].format(options["epsilon"])
    question = Task(**own)
    if isinstance(table, Prepared):
        rows, settings = table.table, table.stating(settings_of(table.name, options))
    else:
        settings = with_bounds_read(settings_of(name_of(table), options))
        rows = read_in_memory(table, ReadOptions.of(settings))
        # If the caller states a name, every page shows it instead of the file name.
        rows = replace(rows, name=settings.name or rows.name)
    shares = shares_of(options)
    if shares is not None or is_file(settings.allocation):
        # The shares belong to the columns that are released, so find these columns first.
        plain = plan_task(rows, replace(settings, allocation="uniform"), question)
        settings = plain.data(0).measured.with_shares(settings, shares)
    plan = plan_task(rows, settings, question, None, variants_of(settings), strict=strict)
    for step in work(plan, store, check_cancelled):
        yield Learned.of(plan, step)
    if isinstance(store, Store):
        # Prune the store only once at the end, because pruning looks at every file.
        store.prune()
