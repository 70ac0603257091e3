"""The answer of `dpviz.least`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpviz.core.number_text import numeral
from dpviz.core.settings import Settings
from dpviz.metrics import METRICS
from dpviz.preparation.load import handed_on
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.targets import sentence
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import Target
from dpviz.studies import Answer

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure

TARGET_COLUMNS = (
    "mechanism", "least", "low", "high", "predicted", "status", "counts", "evidence", "reason",
)  # fmt: skip


class Needed(Answer):
    """The least epsilon, or the fewest people, at which each mechanism reaches a goal.

    Attributes
    ----------
    targets : tuple of dpviz.simulation.least.Target
        Those that count first, the least first.
    asked : (str, float)
        The metric asked for, and the value to reach.
    goal : dpviz.simulation.goal.Goal
        What was searched: a recovery is searched as the captured share that means the same.
    prepared : Measured
    settings : Settings
    """

    figures: ClassVar[tuple[str, ...]] = ("least",)

    def __init__(
        self, targets: Sequence[Target], asked: tuple[str, float], goal: Goal, what: str,
        prepared: Measured, settings: Settings,
    ) -> None:  # fmt: skip
        self.targets, self.asked, self.goal, self.what = tuple(targets), asked, goal, what
        self.prepared, self.settings = prepared, settings

    def summary(self) -> str:
        """Return the goal, and one sentence per mechanism, those that count first."""
        metric, value = self.asked
        side = "at least" if METRICS[metric].better == "higher" else "at most"
        goal = f"The least {'n' if self.what == 'n' else 'epsilon'} for a "
        goal += f"{METRICS[metric].label} of {side} {numeral(value, 6)}"
        if metric != self.goal.metric:
            goal += f" (a {METRICS[self.goal.metric].label} of {numeral(self.goal.value, 3)} here)"
        sentences = [sentence(target, self.settings.k) for target in self.targets]
        return "\n".join([f"{goal}.", *sentences])

    def table(self) -> pd.DataFrame:
        """Return one row per mechanism.

        ``least`` is the middle of the interval from ``low`` to ``high`` that holds the answer at
        the confidence asked for; missing where there is none. ``status`` is judged at ``high``,
        and ``counts`` says whether the claim is one to rely on there.
        """
        rows = [self._row(target) for target in self.targets]
        return pd.DataFrame(rows, columns=list(TARGET_COLUMNS))

    def _row(self, target: Target) -> dict[str, Any]:
        status = target.status
        predicted = target.predicted
        return {
            "mechanism": target.mechanism.text,
            "least": target.estimate if math.isfinite(target.estimate) else None,
            "low": target.low,
            "high": target.high,
            "predicted": predicted if predicted is not None and math.isfinite(predicted) else None,
            "status": None if status is None else str(status.verdict),
            "counts": target.counts,
            "evidence": sentence(target, self.settings.k),
            "reason": target.reason,
        }

    def data(self) -> dict[str, Any]:
        """Return the goal, the settings and the rows of `table`."""
        goal = {"metric": self.asked[0], "value": self.asked[1]}
        return {
            "goal": goal | {"of_draws": self.goal.of_draws},
            "what": self.what,
            "settings": handed_on(self.settings).to_json(),
            "answers": [self._row(target) for target in self.targets],
        }

    def figure(self, name: str | None = None) -> Figure:
        """Draw the answer of each mechanism as a point in its interval, on a log axis.

        Parameters
        ----------
        name : {"least"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        from dpviz.report.figures.targets import targets_figure
        from dpviz.report.figures.theme import panels_of

        self._named(name)
        problem = self.prepared.problem(self.settings)
        budget = self.prepared.budget(self.settings)
        shown = panels_of([target.mechanism for target in self.targets], problem, budget)
        return targets_figure(self.table(), shown, self.what)

    def _shown(self) -> pd.DataFrame:
        return self.table().drop(columns=["evidence"])

    def _picture(self) -> str:
        from dpviz.report.figures.small import ranges_image
        from dpviz.report.figures.theme import panels_of

        problem = self.prepared.problem(self.settings)
        budget = self.prepared.budget(self.settings)
        shown = panels_of([target.mechanism for target in self.targets], problem, budget)
        ends = self.table().rename(columns={"least": "mean"})
        ends = ends.astype({"mean": float, "low": float, "high": float})
        for end in ("low", "high"):  # one of them is missing where the answer is an end itself
            ends[end] = ends[end].fillna(ends["mean"])
        words = "people" if self.what == "n" else "epsilon"
        return ranges_image(ends, shown, f"least {words}", log=True)
