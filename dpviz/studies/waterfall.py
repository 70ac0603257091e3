"""The question `waterfall`: the cost of a private preparation, step by step."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Unpack

import pandas as pd

from dpviz.core.entries import ADAPTIVE, PRIVATE, row_bound_of
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import Summary, chance_share, nothing_to_recover
from dpviz.core.number_text import percent
from dpviz.core.problem import Budget, Relation
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.compare import Result, compare
from dpviz.simulation.picture.account import behind_preparation
from dpviz.studies import Answer
from dpviz.studies.columns import ASIDE, NUMBERS, SOURCED, Column, Share
from dpviz.studies.options import Options, asks, ready

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure


EVERYTHING = "everything public"
_BOUND = "row-norm bound"
_ROUNDING = 1e-12  # Smaller changes may be rounding, because means lie from 0 to 1.
BASE = Settings(relation=str(Relation.ZERO_OUT), bounds="known", trials=20)
"""Default settings, with neighbours that allow a private count, and public bounds."""
PRIVATE_BOUND: str = row_bound_of(PRIVATE)
"""The private row-norm bound of a waterfall if its settings state no private bound."""


def default_mechanism() -> str:
    """Return the key of the Gaussian mechanism that a real release would use."""
    return next(
        key
        for key, cls in all_mechanisms().items()
        if cls.info.discrete and cls.info.guarantee == "approximate"
    )


@dataclass(frozen=True, eq=False)
class Stage:
    """One bar, in which some steps are private and the other steps are assumed public.

    A bar is a comparison with one more private step than the previous bar.

    Attributes
    ----------
    step : str
        Name of the step that became private; in the first bar everything is public.
    settings : Settings
        Settings for which ``compare`` gives the same numbers.
    result : Result
    rest : Budget
        The budget that remains for the mechanism after the preparation.
    assumed_public : tuple of str
    """

    step: str
    settings: Settings
    result: Result
    rest: Budget
    assumed_public: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Bar:
    """Columns of a stage, compared with the previous stage.

    Attributes
    ----------
    stage : Stage
    change : float
        Change of recovery from the previous stage; not a number for the first stage.
    """

    stage: Stage
    change: float

    @property
    def recovery(self) -> Summary:
        """Recovery over the simulated releases."""
        return self.stage.result.summaries["recovery"]


BARS = (
    Column("step", "One more step private", lambda bar: bar.stage.step, type=str),
    Column("recovery", type=Share),
    Column("se", "Standard error", lambda bar: bar.recovery.se),
    Column("low", of=lambda bar: bar.recovery.low, type=float, show=NUMBERS),
    Column("high", of=lambda bar: bar.recovery.high, type=float, show=NUMBERS),
    Column("change", show=NUMBERS, help="Change of recovery since the previous step."),
    Column("epsilon_left", of=lambda bar: bar.stage.rest.epsilon, type=float),
    Column("assumed_public", of=lambda bar: bar.stage.assumed_public, type=tuple[str, ...]),
    Column("spent", of=lambda bar: bar.stage.result.spent, show=frozenset({"json"}),
           type=Annotated[Any, SOURCED] | None),
)  # fmt: skip
"""Columns of a bar, which has one more private step than the previous bar."""


def steps_of(settings: Settings) -> list[tuple[str, Settings]]:
    """Return the bars in order: all public, then mean, scale, bound and count private.

    The bars are the same, whichever steps the settings make private. Shares, the private row-norm
    bound and scaling come from the settings. The public row-norm bound is the same quantile as the
    private bound, because bars that clip different rows would not show the cost of privacy.
    """
    private = settings.row_bound.startswith(PRIVATE)
    bound = settings.row_bound if private else PRIVATE_BOUND
    # Compare the private quantile with the public quantile of the same share, so that the bar shows
    # only the cost of privacy.
    same = "max" if bound == ADAPTIVE else bound.replace(PRIVATE, "quantile", 1)
    public = replace(
        settings,
        center=None,  # With None, the center is the mean.
        scale="none" if settings.scale == "none" else "standardize",
        row_bound=same if private or settings.row_bound == "max" else settings.row_bound,
        count="public",
        bounds="max" if settings.bounds == PRIVATE else settings.bounds,
    )
    steps = [(EVERYTHING, public)]

    def more(step: str, **changes: Any) -> None:
        steps.append((f"{step} private", replace(steps[-1][1], **changes)))

    more("mean", center=PRIVATE)
    if settings.bounds == PRIVATE:
        more("bounds", bounds=PRIVATE)
    if settings.scale != "none":
        more("scale", scale=PRIVATE)
    more(_BOUND, row_bound=bound)
    # Under the relation "replace", n is public by definition, so releasing it uses no budget.
    if settings.relation == Relation.ZERO_OUT:
        more("count", count=PRIVATE)
    return steps


def mechanism_of(settings: Settings) -> Mechanism:
    """Return the variant of the waterfall: the first variant in the settings, or the default."""
    return parse_variant(settings.mechanisms[0] if settings.mechanisms else default_mechanism())


def stages(prepared: Prepared, settings: Settings) -> list[Stage]:
    """Return the bars for the first mechanism that the settings name.

    Parameters
    ----------
    prepared : Prepared
        The table, prepared with the given settings or with any others.
    settings : Settings

    Raises
    ------
    DpvizError
        If the settings do not fit the table, or leave no budget for the mechanism.

    Notes
    -----
    Recovery compares with the exact components of the exactly prepared table. The bars therefore
    look at the true answer and serve for teaching.
    """
    mechanism = mechanism_of(settings)
    results = []
    for step, here in steps_of(settings):
        ready = prepare(prepared.table, prepared.stating(here))
        if nothing_to_recover(chance_share(ready.reference, here.k)):
            rule = f"a whole number from 1 to {ready.d - 1} that leaves something to recover"
            raise InvalidSetting("k", rule, here.k, "--k")
        one = compare(ready, replace(here, mechanisms=(mechanism,)), metrics=("recovery",))
        (cell,), (result,) = one.plan.cells, one.results
        whole = behind_preparation(mechanism, cell.problem, cell.budget, cell.private, cell.picture)
        results.append(Stage(step, here, result, whole.rest, ready.assumed_public))
    return results


def bars(stages: Sequence[Stage]) -> tuple[Bar, ...]:
    """Return the bars of the given stages."""
    rows: list[Bar] = []
    before = math.nan
    for stage in stages:
        mean = stage.result.summaries["recovery"].mean
        change = 0.0 if abs(mean - before) < _ROUNDING else mean - before
        rows.append(Bar(stage, change))
        before = mean
    return tuple(rows)


def told(table: pd.DataFrame) -> str:
    """Return a summary of the waterfall in one sentence."""
    rows = table.to_dict("records")
    sentence = (
        f"Recovery is {percent(rows[0]['recovery'])} if only the rows are private, and "
        f"{percent(rows[-1]['recovery'])} if the whole preparation uses part of the budget"
    )
    steps = range(1, len(rows))
    # Each step's change counts as a gain, so the most expensive step has the smallest change.
    dearest = min(steps, key=lambda at: float(rows[at]["change"]))
    # Do not report a loss that is smaller than the error of the two bars compared.
    if rows[dearest]["change"] < -_change_range(rows, dearest):
        sentence += f"; the most expensive step is the {_name(rows[dearest])}"
    sentence += "."
    bound = next((at for at in steps if _name(rows[at]) == _BOUND), None)
    if bound is not None and rows[bound]["change"] > _change_range(rows, bound):
        sentence += (
            " Recovery rises with the row-norm bound: the private bound clips the longest rows, "
            "and shorter rows need less noise."
        )
    return sentence


def _name(row: dict[Hashable, Any]) -> str:
    return str(row["step"]).removesuffix(" private")


def _change_range(rows: Sequence[dict[Hashable, Any]], at: int) -> float:
    """Return two standard errors of the change between a bar and the previous bar."""
    return 2 * math.hypot(rows[at]["se"], rows[at - 1]["se"])


@dataclass(frozen=True, eq=False, repr=False)
class Waterfall(Answer):
    """Recovery in bars, each with one more private step of the preparation.

    Attributes
    ----------
    table_ : str
        Name of the prepared table.
    steps : tuple of dpviz.studies.waterfall.Bar
    prepared : Prepared
        The table prepared with everything public.
    """

    figures: ClassVar[tuple[str, ...]] = ("waterfall",)
    listed: ClassVar[str] = "steps"
    columns: ClassVar[tuple[Column, ...]] = BARS

    table_: str
    settings: Settings
    steps: tuple[Bar, ...]
    prepared: Annotated[Prepared, ASIDE]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, one for each bar."""
        return tuple(bar.stage for bar in self.steps)

    def summary(self) -> str:
        """Return the first and the last bar, and the most expensive step."""
        return told(self.table())

    def figure(self, name: str | None = None) -> Figure:
        """Plot the bars as a waterfall.

        Parameters
        ----------
        name : {"waterfall"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        self._figure_name(name)
        from dpviz.report.figures.waterfall import waterfall as waterfall_figure

        return waterfall_figure(self.table())


@asks("show the cost of a private mean, scale, bound and count, step by step", Settings, base=BASE,
      command="account steps")  # fmt: skip
def waterfall(table: Any = "digits", **options: Unpack[Options]) -> Waterfall:
    """Show the cost of each step of a preparation if the step is private.

    Parameters
    ----------
    table
        A table as in `compare`; its rows must be in memory.
    **options
        Options as in `compare`; by default with neighbours that allow a private count, public
        bounds and 20 trials. Only the first of ``mechanisms`` is run.

    Returns
    -------
    Waterfall
        ``table()`` has a row for each bar; ``to_json()`` writes the bytes of
        ``dpviz account steps --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        For the reasons listed in `compare`, and if the rows are not in memory.

    See Also
    --------
    compare : One setting, with every figure.
    account : What the whole chain costs.

    Notes
    -----
    If a table has no public bounds, they come from the data, and every bar lists this. Recovery
    compares with the exact components, so the answer serves for teaching and is not a release.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.waterfall("iris", k=1, trials=4)
    >>> found.table()["step"].tolist()[:2]
    ['everything public', 'mean private']
    """
    base: Mapping[str, Any] = {
        name: getattr(BASE, name) for name in ("relation", "bounds", "trials")
    } | dict(options)
    # Load the table first, because only the table tells whether it declares bounds.
    options_read = base if "bounds" in options else {**base, "bounds": "max"}
    prepared, settings = ready(table, options_read)
    if not isinstance(prepared, Prepared):
        raise InvalidSetting("table", "a table that fits in memory", settings.table)
    if "bounds" not in options and prepared.table.bounds is not None:
        settings = replace(settings, bounds=BASE.bounds)
    # If nobody stated bounds, they come from the data, and every step says so.
    return Waterfall(prepared.name, settings, bars(stages(prepared, settings)), prepared)
