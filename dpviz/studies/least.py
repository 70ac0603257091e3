"""The question `least`: the least epsilon, or the fewest people, for a goal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import pandas as pd

from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import METRICS, chance_share, nothing_to_recover
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, as_python, choice, integer, number
from dpviz.core.quantity import Kind
from dpviz.core.settings import Settings
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.tradeoffs import sentence
from dpviz.simulation.goal import SURE, Goal
from dpviz.simulation.least import Target, leaders, targets
from dpviz.studies import Answer
from dpviz.studies.columns import ASIDE, NUMBERS, Column
from dpviz.studies.options import asks, ready

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

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
"""Keywords that state a goal; exactly one must be stated, with the value to reach."""


@dataclass(frozen=True)
class SearchOptions(Declared):
    """Goal of the search, and its confidence."""

    over: str = choice(
        "epsilon",
        {"epsilon": "least epsilon", "n": "fewest people"},
        label="Quantity",
        help="The quantity to find. For n, the same population has more or fewer people.",
    )
    of_draws: float | None = number(
        SURE, 1e-9, 1 - 1e-9, label="Share of releases", optional=True,
        help="The share of simulated releases that must reach the goal; auto: the mean of all must."
    )  # fmt: skip
    confidence: float = number(
        0.95, 1e-9, 1 - 1e-12, label="Confidence", help="Confidence of each interval."
    )
    most_draws: int = integer(
        256, 2, 1_000_000, label="Most releases", help="Releases at each value, at first."
    )


@dataclass(frozen=True)
class GoalSet:
    """The goal that mechanisms must reach.

    Attributes
    ----------
    metric : str
    value : float
    of_draws : float or None
        The share of releases that must reach the value; null if the mean of the releases must.
    """

    metric: str
    value: float
    of_draws: float | None


class Reach(NamedTuple):
    """Answer for one mechanism, and the k of the setting."""

    target: Target
    k: int


def _finite(value: float | None) -> float | None:
    # An unreachable goal has an infinite estimate, which JSON lacks. `reason` explains the null.
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, eq=False, repr=False)
class Needed(Answer):
    """The least epsilon, or the fewest people, at which each mechanism reaches a goal.

    Attributes
    ----------
    goal : GoalSet
        The goal that the caller requested.
    what : {"epsilon", "n"}
    answers : tuple of Reach
        Answers by mechanism: claims that count come first, then sorted by the least value.
    searched : dpviz.simulation.goal.Goal
        The goal of the search, in which the equivalent captured share replaces a recovery.
    prepared : Measured
    """

    figures: ClassVar[tuple[str, ...]] = ("least",)
    listed: ClassVar[str] = "answers"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("mechanism", of=lambda row: row.target.mechanism, type=str, show=NUMBERS),
        Column("least", of=lambda row: _finite(row.target.estimate), show=NUMBERS,
               help="The estimate, between low and high; null if no value is enough."),
        Column("low", of=lambda row: row.target.low, show=NUMBERS),
        Column("high", of=lambda row: row.target.high, show=NUMBERS),
        Column("predicted", of=lambda row: _finite(row.target.predicted), show=NUMBERS,
               kind=Kind.PREDICTION),
        Column("status", of=lambda row: row.target.status, type=str | None, show=NUMBERS,
               help="The status of the claim at the value high."),
        Column("counts", of=lambda row: row.target.counts, type=bool, show=NUMBERS,
               help="Whether the claim holds at the value high."),
        Column("evidence", of=lambda row: sentence(*row), type=str, show=NUMBERS),
        Column("reason", of=lambda row: row.target.reason, type=str | None, show=NUMBERS),
    )  # fmt: skip

    goal: GoalSet
    what: str
    settings: Settings
    answers: tuple[Reach, ...]
    searched: Annotated[Goal, ASIDE]
    prepared: Annotated[Measured, ASIDE]

    @property
    def targets(self) -> tuple[Target, ...]:
        """Answers of all mechanisms."""
        return tuple(row.target for row in self.answers)

    def summary(self) -> str:
        """Return the goal, and one sentence per mechanism, those whose claim counts first."""
        metric, value = self.goal.metric, self.goal.value
        side = "at least" if METRICS[metric].better == "higher" else "at most"
        goal = f"The least {'n' if self.what == 'n' else 'epsilon'} for a "
        goal += f"{METRICS[metric].label} of {side} {numeral(value, 6)}"
        if metric != self.searched.metric:
            # Here the search uses the captured share that corresponds to the stated recovery.
            here = self.searched
            goal += f" (a {METRICS[here.metric].label} of {numeral(here.value, 3)} here)"
        sentences = [sentence(target, self.settings.k) for target in self.targets]
        return "\n".join([f"{goal}.", *sentences])

    def figure(self, name: str | None = None) -> Figure:
        """Plot the answer of each mechanism as a point in its interval, on a log axis.

        Parameters
        ----------
        name : {"least"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        self._figure_name(name)
        from dpviz.report.figures.side_by_side import targets_figure

        return targets_figure(self.table(), self._panels(), self.what)

    def _panels(self) -> list[Panel]:
        from dpviz.report.figures.theme import panels_of

        problem = self.prepared.problem(self.settings)
        budget = self.prepared.budget(self.settings)
        return panels_of([target.mechanism for target in self.targets], problem, budget)

    def _notebook_table(self) -> pd.DataFrame:
        return self.table().drop(columns=["evidence"])

    def _picture(self) -> Picture:
        from dpviz.report.print import ranges

        ends = self.table().rename(columns={"least": "mean"})
        ends = ends.astype({"mean": float, "low": float, "high": float})
        for end in ("low", "high"):  # A missing end of an interval equals the answer.
            ends[end] = ends[end].fillna(ends["mean"])
        words = "people" if self.what == "n" else "epsilon"
        return ranges(ends, self._panels(), f"least {words}", log=True)


@asks("find the smallest epsilon, or the fewest people, that reach a goal", GoalOptions,
      SearchOptions, Settings, command="decide least")  # fmt: skip
def least(
    table: Any = "digits",
    *,
    over: Literal["epsilon", "n"] = "epsilon",
    of_draws: float | None = SURE,
    confidence: float = 0.95,
    most_draws: int = 256,
    on_estimate: Callable[[float], None] | None = None,
    **options: Any,
) -> Needed:
    """Find the least epsilon, or the fewest people, at which each mechanism reaches a goal.

    Parameters
    ----------
    table
        A table as in `compare`.
    over : {"epsilon", "n"}
        The quantity to find. For n, the population stays the same and only its size changes.
    of_draws : float or None
        The share of releases, above 0 and below 1, that must reach the goal; by default 95 of 100,
        as on every page. If None, the mean of the releases must reach the goal, which about half of
        the releases miss; metrics without an upper limit refuse None.
    confidence : float
        Confidence of each interval, above 0 and below 1.
    most_draws : int
        Maximum number of releases at each value at first. If the ends of an interval are still more
        than 15 % apart, the search uses up to 32 times as many.
    on_estimate : callable, optional
        Function that is called once with the expected seconds of the search. A goal close to the
        end of its scale takes many releases: a mean of .9999 some ten thousand at each value tried.
    **options
        One goal, a metric of `dpviz.core.metrics.METRICS` and the value to reach, such as
        ``recovery=0.9``; other options as in `compare`. Epsilon is used only to find n.

    Returns
    -------
    Needed
        Each answer as an interval, with the status of the claim at that answer. Mechanisms with a
        reliable claim come first, and their ``counts`` is true.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and if there is no goal, more than one, or a value out of its range.

    See Also
    --------
    sweep : The whole curve.
    predict : Without draws.

    Notes
    -----
    A sequential test by betting decides at each tried value, so the interval has the stated
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
    # Keywords state both goals and settings, so separate the two here.
    choices: dict[str, Any] = dict(options)
    goals = {name: choices.pop(name) for name in GOAL_METRICS if name in choices}
    goals = {name: value for name, value in goals.items() if value is not None}
    if len(goals) != 1:
        rule = f"one of {', '.join(GOAL_METRICS)}, with the value to reach"
        raise InvalidSetting("the goal", rule, ", ".join(goals) or "none")
    ((metric, value),) = goals.items()
    value, of_draws, confidence = map(as_python, (value, of_draws, confidence))
    if over not in ("epsilon", "n"):
        raise InvalidSetting("over", "epsilon or n", over)
    if not (isinstance(confidence, (int, float)) and 0 < confidence < 1):
        raise InvalidSetting("confidence", "above 0 and below 1", confidence)
    prepared, settings = ready(table, choices)
    goal = goal_of(metric, value, of_draws, prepared, settings.k)
    reaches = targets(
        prepared, settings, goal, over,
        confidence=confidence, most_draws=most_draws, on_estimate=on_estimate,
    )  # fmt: skip
    goal_set = GoalSet(metric, float(value), goal.of_draws)
    rows = tuple(Reach(target, settings.k) for target in reaches)
    return Needed(goal_set, over, settings, rows, goal, prepared)


def goal_of(metric: str, value: Any, of_draws: float | None, prepared: Measured, k: int) -> Goal:
    """Return the goal of a call; a recovery becomes the equivalent captured share.

    Raises
    ------
    InvalidSetting
        If the value is not a number, or out of its range.
    """
    # True is a number in Python, but it is not a valid goal.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidSetting("the goal", "a positive number", value)
    if metric != "recovery":
        return Goal(metric, float(value), of_draws)
    chance = chance_share(prepared.reference, k)
    if nothing_to_recover(chance):
        rule = f"a measure other than recovery, because any {k} directions are equally good"
        raise InvalidSetting("the goal", rule, f"recovery {numeral(value, 6)}")
    return replace(Goal.of_recovery(float(value), chance), of_draws=of_draws)


def least_epsilons(
    prepared: Measured, settings: Settings, recovery: float = 0.9
) -> dict[str, dict[str, Any] | None]:
    """Return estimates of the least epsilon at which a share is recovered.

    All estimates are None after a private preparation, which every step of the search would repeat.

    Returns
    -------
    dict
        Entries ``least``, ``pure`` and ``chosen`` as in `dpviz.simulation.least.leaders`, each with
        key, label and epsilon, or None.
    """
    chance = chance_share(prepared.reference, settings.k)
    if nothing_to_recover(chance) or prepared.raw is not None:
        return dict.fromkeys(("least", "pure", "chosen"))
    by_kind = leaders(prepared, settings, Goal.of_recovery(recovery, chance))
    return {
        kind: None
        if one is None
        else {"key": one.mechanism.text, "label": one.mechanism.label, "epsilon": one.value}
        for kind, one in by_kind.items()
    }
