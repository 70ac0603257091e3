"""The question `task`: what can still be learned after a private projection or release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpviz.core.allocation import is_file
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.datasets import ReadOptions, name_of, read_in_memory
from dpviz.preparation.load import with_bounds_read, without_paths
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences import tasks as words
from dpviz.report.sentences.phrases import left_out, text_table
from dpviz.simulation.cells import variants_of
from dpviz.simulation.jobs import Progress
from dpviz.simulation.store import Store
from dpviz.simulation.tasks import Task, TaskPlan, band_table, finish, plan_task
from dpviz.studies import Answer
from dpviz.studies.options import asks, settings_of, shares_of

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure

_OWN = params_of(Task)


class Learned(Answer):
    """Scores of what is learned, along epsilon, beside the score without privacy and by chance.

    Attributes
    ----------
    plan : dpviz.simulation.tasks.TaskPlan
    rounds : DataFrame
        One row per mechanism, epsilon and round: `dpviz.simulation.tasks.TASK_COLUMNS`.
    """

    figures: ClassVar[tuple[str, ...]] = ("scores",)

    def __init__(self, plan: TaskPlan, rounds: pd.DataFrame) -> None:
        self.plan, self.rounds = plan, rounds
        self._bands = band_table(plan, rounds)

    def _looked_at(self) -> Measured | None:
        found = getattr(self.plan.data(0), "measured", None)
        return found if isinstance(found, Measured) else None

    def summary(self) -> str:
        """Return the verdict, what was learned from, what is protected and what is not."""
        plan = self.plan
        lines = [words.verdict(plan, self._bands), words.facts(plan), *plan.notes]
        lines += [f"Protected: {item}" for item in words.protected(plan)]
        lines += [f"Not protected: {item}" for item in words.unprotected(plan)]
        lines += left_out(plan.skipped)
        lines.append("Assumed public: " + "; ".join(plan.assumed_public) + ".")
        return "\n".join(lines)

    def printed(self) -> str:
        """Return the facts and a line for each mechanism and epsilon, as the command prints it."""
        plan = self.plan
        lines = [
            words.facts(plan),
            *(f"note: {note}" for note in plan.notes),
            *(f"protected: {item}" for item in words.protected(plan)),
            *(f"not protected: {item}" for item in words.unprotected(plan)),
            "assumed public: " + "; ".join(plan.assumed_public),
            "",
        ]
        rows = [
            # floors have no epsilon: nothing private is in them
            [name, "-" if math.isnan(epsilon) else numeral(epsilon, 6), numeral(mean, 4),
             numeral(low, 4), numeral(high, 4), str(rounds), verdict or "-"]
            for name, _, epsilon, mean, low, high, rounds, verdict in self._bands.itertuples(
                index=False
            )
        ]  # fmt: skip
        score = plan.learner.score.label
        header = ("mechanism", "epsilon", score, "low", "high", "rounds", "status")
        lines.append(text_table(header, rows))
        lines += left_out(plan.skipped)
        return "\n".join(lines)

    def table(self) -> pd.DataFrame:
        """Return a row per mechanism, epsilon and round: `dpviz.simulation.tasks.TASK_COLUMNS`."""
        return self.rounds

    def data(self) -> dict[str, Any]:
        """Return settings, task, what is assumed public, and the bands of the scores."""
        plan, task = self.plan, self.plan.task
        return {
            "settings": without_paths(plan.settings).to_json(),
            "task": {name: getattr(task, name) for name in _OWN}
            | {"learner": plan.learner.key, "score": plan.learner.score.label},
            "assumed_public": list(plan.assumed_public),
            "results": self._bands.to_dict("records"),
            "skipped": [
                {"mechanism": item.mechanism, "reason": item.reason} for item in plan.skipped
            ],
        }

    def figure(self, name: str | None = None) -> Figure:
        """Draw the mean and the central 95 % of the scores along epsilon.

        Parameters
        ----------
        name : {"scores"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        self._named(name)
        from dpviz.report.figures.tasks import task_figure
        from dpviz.report.figures.theme import panels_of

        plan = self.plan
        shown = panels_of(plan.mechanisms, *plan.problem_and_budget(0, plan.shown_epsilon))
        return task_figure(
            self._bands,
            shown,
            score=plan.learner.score,
            epsilons=plan.epsilons,
            now=plan.settings.epsilon,
        )

    def _shown(self) -> pd.DataFrame:
        return self._bands


@asks(
    "learn after a private projection, or from a private data release", Settings, Task, noun="round"
)
def task(
    table: Any = "digits",
    *,
    cache: str | PathLike[str] | Store | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Learned:
    """Say what can still be learned: classes, numbers or clusters, along epsilon.

    Parameters
    ----------
    table
        As in `compare`, with a label and its rows in memory; no plan.
    cache : path or Store, optional
        Where finished rounds are kept and found again; nowhere if not said.
    progress : callable, optional
        Called with a `dpviz.simulation.jobs.Progress` after each part.
    **options
        As in `compare`, and the task's own.

    Returns
    -------
    Learned
        ``table()`` has a row for each round; ``to_json()`` writes the bytes of
        ``dpviz task --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and where the table has no label that can be learned.

    See Also
    --------
    compare : What becomes of the subspace itself.

    Notes
    -----
    Projecting test rows on a private subspace is post-processing; the labels of the training rows
    are not protected then. Scores of the test rows are compared with the truth, so this is no
    release.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.task(
    ...     "iris", mechanisms="gaussian", epsilons="1,10", trials=2, tuning="fixed"
    ... )
    >>> found.table()["mechanism"].unique().tolist()[-1]
    'gaussian'
    """
    store = cache if isinstance(cache, Store) or cache is None else Store(Path(cache))
    own = {name: options.pop(name) for name in _OWN if name in options}
    # who says one epsilon wants that one, and not the whole axis of the default
    if "epsilon" in options and "epsilons" not in own:
        own["epsilons"] = _OWN["epsilons"].format(options["epsilon"])
    chosen = Task(**own)
    settings = with_bounds_read(settings_of(name_of(table), options))
    rows = read_in_memory(table, ReadOptions.of(settings))
    # a stated name is the table's on every page, whatever its file is called
    rows = replace(rows, name=settings.name or rows.name)
    shares = shares_of(options)
    if shares is not None or is_file(settings.allocation):
        # its shares are those of the columns that are released
        plain = plan_task(rows, replace(settings, allocation="uniform"), chosen)
        settings = plain.data(0).measured.with_shares(settings, shares)
    mechanisms = variants_of(settings)
    plan = plan_task(rows, settings, chosen, None, mechanisms, strict=True)
    found = finish(plan, progress, store)
    if store is not None:
        # once, at the end: it looks at every file of the folder
        store.prune()
    return Learned(plan, found)
