"""The question `waterfall`: what a private preparation costs, step by step."""

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
_BOUND = "row bound"
_ROUNDING = 1e-12  # a change that means of doubles between 0 and 1 leave by themselves
BASE = Settings(relation=str(Relation.ZERO_OUT), bounds="known", trials=20)
"""What the command starts from: neighbours of whom a count can be private, and public bounds."""
PRIVATE_BOUND: str = row_bound_of(PRIVATE)
"""The private row bound of a waterfall whose settings name none."""


def default_mechanism() -> str:
    """Return the key of the Gaussian mechanism that a real release would use."""
    return next(
        key
        for key, cls in all_mechanisms().items()
        if cls.info.discrete and cls.info.guarantee == "approximate"
    )


@dataclass(frozen=True, eq=False)
class Stage:
    """One bar: some steps are private, the others are assumed public.

    A comparison like any other, with one more step private than the bar before.

    Attributes
    ----------
    step : str
        What became private here; the first bar has everything public.
    settings : Settings
        With which ``compare`` gives the same numbers.
    result : Result
    rest : Budget
        What the preparation leaves to the mechanism.
    assumed_public : tuple of str
    """

    step: str
    settings: Settings
    result: Result
    rest: Budget
    assumed_public: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Bar:
    """A stage beside the one before.

    Attributes
    ----------
    stage : Stage
    change : float
        Of recovery from the stage before; not a number at the first.
    """

    stage: Stage
    change: float

    @property
    def recovery(self) -> Summary:
        """Recovery over the draws."""
        return self.stage.result.summaries["recovery"]


BARS = (
    Column("step", "One more step private", lambda bar: bar.stage.step, type=str),
    Column("recovery", type=Share),
    Column("se", "Standard error", lambda bar: bar.recovery.se),
    Column("low", of=lambda bar: bar.recovery.low, type=float, show=NUMBERS),
    Column("high", of=lambda bar: bar.recovery.high, type=float, show=NUMBERS),
    Column("change", show=NUMBERS, help="Change of recovery from the step before."),
    Column("epsilon_left", of=lambda bar: bar.stage.rest.epsilon, type=float),
    Column("assumed_public", of=lambda bar: bar.stage.assumed_public, type=tuple[str, ...]),
    Column("spent", of=lambda bar: bar.stage.result.spent, show=frozenset({"json"}),
           type=Annotated[Any, SOURCED] | None),
)  # fmt: skip
"""One more step of the preparation private."""


def steps_of(settings: Settings) -> list[tuple[str, Settings]]:
    """Return the bars in order: all public, then mean, scale, bound and count private.

    Whichever steps the settings pay for already: what they say of shares, of the private row
    bound and of scaling is kept. The public row bound is the same quantile that is then paid for:
    bars that differ in what is cut would not say what paying costs.
    """
    private = settings.row_bound.startswith(PRIVATE)
    wanted = settings.row_bound if private else PRIVATE_BOUND
    # a private quantile is compared with the public one of the same share, so the bar shows its
    # price alone
    same = "max" if wanted == ADAPTIVE else wanted.replace(PRIVATE, "quantile", 1)
    public = replace(
        settings,
        center=None,  # the mean
        scale="none" if settings.scale == "none" else "standardize",
        row_bound=same if private or settings.row_bound == "max" else settings.row_bound,
        count="public",
        bounds="max" if settings.bounds == PRIVATE else settings.bounds,
    )
    found = [(EVERYTHING, public)]

    def more(step: str, **changed: Any) -> None:
        found.append((f"{step} private", replace(found[-1][1], **changed)))

    more("mean", center=PRIVATE)
    if settings.bounds == PRIVATE:
        more("bounds", bounds=PRIVATE)
    if settings.scale != "none":
        more("scale", scale=PRIVATE)
    more(_BOUND, row_bound=wanted)
    # under replace n is public by definition, and there is nothing to pay for
    if settings.relation == Relation.ZERO_OUT:
        more("count", count=PRIVATE)
    return found


def mechanism_of(settings: Settings) -> Mechanism:
    """Return the variant of the waterfall: the first that the settings name, or the default."""
    return parse_variant(settings.mechanisms[0] if settings.mechanisms else default_mechanism())


def stages(prepared: Prepared, settings: Settings) -> list[Stage]:
    """Return the bars for the first mechanism that the settings name.

    Parameters
    ----------
    prepared : Prepared
        The table, by these settings or by any others.
    settings : Settings

    Raises
    ------
    DpvizError
        If the settings do not fit the table, or leave nothing for the mechanism.

    Notes
    -----
    Recovery compares with the exact components of the exactly prepared table, so this is for
    teaching: it looks at the true answer.
    """
    mechanism = mechanism_of(settings)
    found = []
    for step, here in steps_of(settings):
        ready = prepare(prepared.table, prepared.stating(here))
        if nothing_to_recover(chance_share(ready.reference, here.k)):
            allowed = f"a whole number from 1 to {ready.d - 1} that leaves something to recover"
            raise InvalidSetting("k", allowed, here.k, "--k")
        one = compare(ready, replace(here, mechanisms=(mechanism,)), metrics=("recovery",))
        (cell,), (result,) = one.plan.cells, one.results
        whole = behind_preparation(mechanism, cell.problem, cell.budget, cell.private, cell.picture)
        found.append(Stage(step, here, result, whole.rest, ready.assumed_public))
    return found


def bars(found: Sequence[Stage]) -> tuple[Bar, ...]:
    """Return the bars of stages."""
    made: list[Bar] = []
    before = math.nan
    for stage in found:
        mean = stage.result.summaries["recovery"].mean
        change = 0.0 if abs(mean - before) < _ROUNDING else mean - before
        made.append(Bar(stage, change))
        before = mean
    return tuple(made)


def told(table: pd.DataFrame) -> str:
    """Return the waterfall in one sentence."""
    rows = table.to_dict("records")
    sentence = (
        f"Recovery is {percent(rows[0]['recovery'])} if everything but the rows is public, and "
        f"{percent(rows[-1]['recovery'])} if all of it uses part of the budget"
    )
    steps = range(1, len(rows))
    # a change is the recovery gained, so that what costs most is the least
    dearest = min(steps, key=lambda at: float(rows[at]["change"]))
    # a loss within the error of two bars is not told as one
    if rows[dearest]["change"] < -_seen(rows, dearest):
        sentence += f"; the dearest step is the {_name(rows[dearest])}"
    sentence += "."
    bound = next((at for at in steps if _name(rows[at]) == _BOUND), None)
    if bound is not None and rows[bound]["change"] > _seen(rows, bound):
        sentence += (
            " It rises with the row-norm bound: the private bound clips the longest rows, and "
            "shorter rows need less noise."
        )
    return sentence


def _name(row: dict[Hashable, Any]) -> str:
    return str(row["step"]).removesuffix(" private")


def _seen(rows: Sequence[dict[Hashable, Any]], at: int) -> float:
    """Return the change that two standard errors of a bar and the one before leave open."""
    return 2 * math.hypot(rows[at]["se"], rows[at - 1]["se"])


@dataclass(frozen=True, eq=False, repr=False)
class Waterfall(Answer):
    """Recovery with one more step of the preparation private at each bar.

    Attributes
    ----------
    table_ : str
        Name of the table.
    steps : tuple of dpviz.studies.waterfall.Bar
    prepared : Prepared
        The table with everything public.
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
        """What ran at each bar."""
        return tuple(bar.stage for bar in self.steps)

    def summary(self) -> str:
        """Return the first and last bar, and the dearest step."""
        return told(self.table())

    def figure(self, name: str | None = None) -> Figure:
        """Draw the bars.

        Parameters
        ----------
        name : {"waterfall"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        self._named(name)
        from dpviz.report.figures.waterfall import waterfall as waterfall_figure

        return waterfall_figure(self.table())


@asks("what a private mean, scale, bound and count cost, step by step", Settings, base=BASE,
      command="account steps")  # fmt: skip
def waterfall(table: Any = "digits", **options: Unpack[Options]) -> Waterfall:
    """Say what each step of a preparation costs when it is paid for.

    Parameters
    ----------
    table
        As in `compare`; its rows must be in memory.
    **options
        As in `compare`, with neighbours of whom a count can be private, public bounds and 20 draws
        if not said. The first of ``mechanisms`` is the one that runs.

    Returns
    -------
    Waterfall
        ``table()`` has a row for each bar; ``to_json()`` writes the bytes of
        ``dpviz account steps --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and where the rows are not in memory.

    See Also
    --------
    compare : One setting, with every figure.
    account : What the whole chain costs.

    Notes
    -----
    A table without public bounds gets them from the data, which every bar then lists. Recovery
    compares with the exact components, so this is for teaching and no release.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.waterfall("iris", k=1, trials=4)
    >>> found.table()["step"].tolist()[:2]
    ['everything public', 'mean private']
    """
    asked: Mapping[str, Any] = {
        name: getattr(BASE, name) for name in ("relation", "bounds", "trials")
    } | dict(options)
    # to load any table first: whether it declares bounds of its own is known afterwards
    loaded = asked if "bounds" in options else {**asked, "bounds": "max"}
    prepared, settings = ready(table, loaded)
    if not isinstance(prepared, Prepared):
        raise InvalidSetting("table", "rows in memory, to prepare privately", settings.table)
    if "bounds" not in options and prepared.table.bounds is not None:
        settings = replace(settings, bounds=BASE.bounds)
    # nobody stated any: taken from the data, which every step then lists
    return Waterfall(prepared.name, settings, bars(stages(prepared, settings)), prepared)
