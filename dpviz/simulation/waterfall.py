"""What each step of a preparation costs when it is paid for: one waterfall.

Every bar is a comparison like any other, with one more step private than the bar before.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dpviz.core.entries import ADAPTIVE, PRIVATE, row_bound_of
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.number_text import percent
from dpviz.core.problem import Budget, Relation
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.metrics import FLAT, chance_share
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.cells import Result, account_of, cell_at, run_cell

COLUMNS = ("step", "recovery", "se", "low", "high", "change", "epsilon_left", "assumed_public")
EVERYTHING = "everything public"
_BOUND = "row bound"
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
    paid = settings.row_bound.startswith(PRIVATE)
    wanted = settings.row_bound if paid else PRIVATE_BOUND
    same = "max" if wanted == ADAPTIVE else wanted.replace(PRIVATE, "quantile", 1)
    public = replace(
        settings,
        center=None,  # the mean
        scale="none" if settings.scale == "none" else "standardize",
        row_bound=same if paid or settings.row_bound == "max" else settings.row_bound,
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
    if settings.relation == Relation.ZERO_OUT:
        more("count", count=PRIVATE)
    return found


def mechanism_of(settings: Settings) -> str:
    """Return the variant of the waterfall: the first that the settings name, or the default."""
    return settings.variants[0] if settings.mechanisms else default_mechanism()


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
    mechanism = parse_variant(mechanism_of(settings))
    found = []
    for step, here in steps_of(settings):
        ready = prepare(prepared.table, prepared.stating(here))
        if here.k > ready.d - 1 or 1 - chance_share(ready.reference, here.k) < FLAT:
            allowed = f"a whole number from 1 to {ready.d - 1} that leaves something to recover"
            raise InvalidSetting("k", allowed, here.k, "--k")
        cell = cell_at(ready, here, mechanism, range(here.trials))
        if isinstance(cell, str):
            raise CannotRun(mechanism.text, cell)
        account = account_of(mechanism, cell.problem, cell.budget, cell.paid)
        result = run_cell(cell, ready, ("recovery",))
        found.append(Stage(step, here, result, account.calibration.budget, ready.assumed_public))
    return found


def waterfall_table(found: Sequence[Stage]) -> pd.DataFrame:
    """Return one row per bar with `COLUMNS`; low and high are the central 95 % of the draws."""
    rows = []
    before = math.nan
    for stage in found:
        values = stage.result.summaries["recovery"]
        rows.append(
            {
                "step": stage.step,
                "recovery": values.mean,
                "se": values.se,
                "low": values.low,
                "high": values.high,
                "change": values.mean - before,
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
    dearest = min(steps, key=lambda at: float(rows[at]["change"]))
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
