"""The question `waterfall`: what a private preparation costs, step by step."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import pandas as pd

from dpviz.core.entries import ADAPTIVE, PRIVATE, row_bound_of
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.metrics import chance_share, nothing_to_recover
from dpviz.core.number_text import decimals, numeral, percent
from dpviz.core.problem import Budget, Relation
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.load import without_paths
from dpviz.report.sentences.phrases import text_table
from dpviz.simulation.cells import account_of, cell_at
from dpviz.simulation.compare import Result, run_cell
from dpviz.studies import Answer
from dpviz.studies.options import Options, asks, ready

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure


COLUMNS = ("step", "recovery", "se", "low", "high", "change", "epsilon_left", "assumed_public")
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
        cell = cell_at(ready, here, mechanism, range(here.trials))
        if isinstance(cell, str):
            raise CannotRun(mechanism.text, cell)
        account = account_of(mechanism, cell.problem, cell.budget, cell.private)
        result = run_cell(cell, ready, ("recovery",))
        found.append(Stage(step, here, result, account.calibration.budget, ready.assumed_public))
    return found


def waterfall_table(found: Sequence[Stage]) -> pd.DataFrame:
    """Return one row per bar with `COLUMNS`; low and high are the central 95 % of the draws."""
    rows = []
    before = math.nan
    for stage in found:
        values = stage.result.summaries["recovery"]
        change = values.mean - before
        rows.append(
            {
                "step": stage.step,
                "recovery": values.mean,
                "se": values.se,
                "low": values.low,
                "high": values.high,
                "change": 0.0 if abs(change) < _ROUNDING else change,
                "epsilon_left": stage.rest.epsilon,
                "assumed_public": "; ".join(stage.assumed_public),
            }
        )
        before = values.mean
    return pd.DataFrame(rows, columns=list(COLUMNS))


def told(table: pd.DataFrame) -> str:
    """Return the waterfall in one sentence."""
    rows = table.to_dict("records")
    sentence = (
        f"Recovery is {percent(rows[0]['recovery'])} where everything but the rows is public, and "
        f"{percent(rows[-1]['recovery'])} where all of it is paid for"
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
            " It rises with the row bound: the one that is paid for cuts the longest rows, and "
            "shorter rows need less noise."
        )
    return sentence


def _name(row: dict[Hashable, Any]) -> str:
    return str(row["step"]).removesuffix(" private")


def _seen(rows: Sequence[dict[Hashable, Any]], at: int) -> float:
    """Return the change that two standard errors of a bar and the one before leave open."""
    return 2 * math.hypot(rows[at]["se"], rows[at - 1]["se"])


class Waterfall(Answer):
    """Recovery with one more step of the preparation private at each bar.

    Attributes
    ----------
    stages : tuple of dpviz.studies.waterfall.Stage
    prepared : Prepared
        The table with everything public.
    settings : Settings
    """

    figures: ClassVar[tuple[str, ...]] = ("waterfall",)

    def __init__(self, found: list[Stage], prepared: Prepared, settings: Settings) -> None:
        self.stages, self.prepared, self.settings = tuple(found), prepared, settings

    def summary(self) -> str:
        """Return the first and last bar, and the dearest step."""
        return told(self.table())

    def printed(self) -> str:
        """Return the summary and a line for each bar, as the command prints them."""
        rows = [
            [
                row["step"],
                decimals(row["recovery"], 3),
                decimals(row["se"], 3),
                numeral(row["epsilon_left"], 4),
                row["assumed_public"],
            ]
            for row in self.table().to_dict("records")
        ]
        header = ("step", "recovery", "se", "epsilon left", "assumed public")
        return f"{self.summary()}\n\n{text_table(header, rows)}"

    def table(self) -> pd.DataFrame:
        """Return one row per bar: `dpviz.studies.waterfall.COLUMNS`."""
        return waterfall_table(self.stages)

    def data(self) -> dict[str, Any]:
        """Return the object that ``dpviz waterfall --format json`` prints."""
        records = self.table().to_dict("records")
        return {
            "table": self.prepared.name,
            "settings": without_paths(self.settings).to_json(),
            "steps": [
                {
                    **record,
                    "assumed_public": list(stage.assumed_public),
                    "spent": stage.result.spent and stage.result.spent.to_json(),
                }
                for record, stage in zip(records, self.stages, strict=True)
            ],
        }

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


@asks("what a private mean, scale, row bound and count cost, step by step", Settings, base=BASE)
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
        ``dpviz waterfall --format json``.

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
    return Waterfall(stages(prepared, settings), prepared, settings)
