"""The question `least`: the least epsilon, or the fewest people, for a goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd

from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import METRICS, chance_share, nothing_to_recover
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, as_python, choice, integer, number
from dpviz.core.settings import Settings
from dpviz.preparation.load import without_paths
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.tradeoffs import sentence
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import Target, targets
from dpviz.studies import Answer
from dpviz.studies.options import asks, ready

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure, Panel


GOAL_METRICS = tuple(key for key, metric in METRICS.items() if metric.better != "neither")


def _goal(key: str) -> Any:
    metric = METRICS[key]
    words = f"{metric.help[:1].upper()}{metric.help[1:]}"
    return number(None, 0.0, 1e300, label=metric.label, help=f"The goal: {words}", optional=True)


GoalOptions = make_dataclass(
    "GoalOptions",
    [(key, float | None, _goal(key)) for key in GOAL_METRICS],
    bases=(Declared,),
    frozen=True,
)
"""One of these is the goal, with the value to reach."""


@dataclass(frozen=True)
class SearchOptions(Declared):
    """What is found for a goal, and how surely."""

    over: str = choice(
        "epsilon",
        {"epsilon": "least epsilon", "n": "fewest people"},
        label="What is found",
        help="What to find. For n the same population has more or fewer people.",
    )
    of_draws: float | None = number(
        None, 1e-9, 1 - 1e-9, label="Share of draws", optional=True,
        help="The share of releases that must reach the goal; if not said, their mean must.",
    )  # fmt: skip
    confidence: float = number(
        0.95, 1e-9, 1 - 1e-12, label="Confidence", help="With which each interval holds."
    )
    most_draws: int = integer(
        256, 2, 1_000_000, label="Most draws", help="At each value tried at first."
    )


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
            # recovery is asked for, and the search runs on the share that means it on this table
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
            # a goal out of reach has an infinite estimate, which JSON lacks; `reason` says it
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
            "settings": without_paths(self.settings).to_json(),
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
        self._named(name)
        from dpviz.report.figures.side_by_side import targets_figure

        return targets_figure(self.table(), self._panels(), self.what)

    def _panels(self) -> list[Panel]:
        from dpviz.report.figures.theme import panels_of

        problem = self.prepared.problem(self.settings)
        budget = self.prepared.budget(self.settings)
        return panels_of([target.mechanism for target in self.targets], problem, budget)

    def _shown(self) -> pd.DataFrame:
        return self.table().drop(columns=["evidence"])

    def _picture(self) -> str:
        from dpviz.report.figures.drawing import ranges_picture

        ends = self.table().rename(columns={"least": "mean"})
        ends = ends.astype({"mean": float, "low": float, "high": float})
        for end in ("low", "high"):  # one of them is missing where the answer is an end itself
            ends[end] = ends[end].fillna(ends["mean"])
        words = "people" if self.what == "n" else "epsilon"
        return ranges_picture(ends, self._panels(), f"least {words}", log=True).image()


@asks("the least epsilon, or the fewest people, for a goal", GoalOptions, SearchOptions, Settings)
def least(
    table: Any = "digits",
    *,
    over: Literal["epsilon", "n"] = "epsilon",
    of_draws: float | None = None,
    confidence: float = 0.95,
    most_draws: int = 256,
    on_estimate: Callable[[float], None] | None = None,
    **options: Any,
) -> Needed:
    """Find the least epsilon, or the fewest people, at which each mechanism reaches a goal.

    Parameters
    ----------
    table
        As in `compare`.
    over : {"epsilon", "n"}
        What to find. For n the same population has more or fewer people.
    of_draws : float, optional
        The share of releases, above 0 and below 1, that must reach the goal; if not said, their
        mean must. Metrics without an upper limit need it.
    confidence : float
        With which each interval holds, above 0 and below 1.
    most_draws : int
        Most draws at each value tried at first. Ends that are still more than 15 % apart are
        brought closer by up to 32 times as many.
    on_estimate : callable, optional
        Called once with the seconds that the search is expected to take: a goal close to the end
        of its scale takes many draws, a mean of .9999 some ten thousand at each value tried.
    **options
        One goal, a metric of `dpviz.core.metrics.METRICS` and the value to reach, such as
        ``recovery=0.9``; the rest as in `compare`. An epsilon is read for n alone.

    Returns
    -------
    Needed
        Each answer as an interval, with the status of the claim at that answer: those whose claim
        is one to rely on there come first and ``counts`` is true for them.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and where there is no goal, more than one, or one out of its range.

    See Also
    --------
    sweep : The whole curve.
    predict : Without draws.

    Notes
    -----
    A sequential test by betting decides at each value tried, so the interval holds at the stated
    confidence however long the search runs (Waudby-Smith and Ramdas 2024).

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.least("iris", recovery=0.9, k=1, mechanisms=["gaussian", "laplace"])
    >>> found.table()["mechanism"].tolist()
    ['gaussian', 'laplace']
    >>> bool(found.table()["least"].is_monotonic_increasing)
    True
    """
    # goals are named like metrics, beside the settings: they are told apart here
    asked: dict[str, Any] = dict(options)
    named = {name: asked.pop(name) for name in GOAL_METRICS if name in asked}
    named = {name: value for name, value in named.items() if value is not None}
    if len(named) != 1:
        allowed = f"one of {', '.join(GOAL_METRICS)}, with the value to reach"
        raise InvalidSetting("the goal", allowed, ", ".join(named) or "none")
    ((metric, value),) = named.items()
    value, of_draws, confidence = map(as_python, (value, of_draws, confidence))
    if over not in ("epsilon", "n"):
        raise InvalidSetting("over", "epsilon or n", over)
    if not (isinstance(confidence, (int, float)) and 0 < confidence < 1):
        raise InvalidSetting("confidence", "above 0 and below 1", confidence)
    prepared, settings = ready(table, asked)
    goal = goal_of(metric, value, of_draws, prepared, settings.k)
    found = targets(
        prepared, settings, goal, over,
        confidence=confidence, most_draws=most_draws, on_estimate=on_estimate,
    )  # fmt: skip
    return Needed(found, (metric, float(value)), goal, over, prepared, settings)


def goal_of(metric: str, value: Any, of_draws: float | None, prepared: Measured, k: int) -> Goal:
    """Return the goal that a call states; a recovery becomes the captured share that means it.

    Raises
    ------
    InvalidSetting
        If the value is not a number, or out of its range.
    """
    # True is a number in Python, and no goal
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidSetting("the goal", "a positive number", value)
    if metric != "recovery":
        return Goal(metric, float(value), of_draws)
    chance = chance_share(prepared.reference, k)
    if nothing_to_recover(chance):
        allowed = f"another measure than recovery: any {k} directions capture as much here"
        raise InvalidSetting("the goal", allowed, f"recovery {numeral(value, 6)}")
    return replace(Goal.of_recovery(float(value), chance), of_draws=of_draws)
