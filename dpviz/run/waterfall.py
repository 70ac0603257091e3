"""What each step of a preparation costs when it is paid for: one waterfall.

Every bar is a comparison like any other, with one more step private than the bar before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dpviz.errors import CannotRun, InvalidSetting
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.metrics import FLAT, chance_share
from dpviz.prepare.bounding import Prepared, prepare
from dpviz.run.cells import Result, account_of, cell_at, run_cell
from dpviz.settings import Settings
from dpviz.values.bounds_text import PRIVATE
from dpviz.values.problem import Budget, Relation

COLUMNS = ("step", "recovery", "se", "low", "high", "change", "epsilon_left", "assumed_public")
EVERYTHING = "everything public"
BASE = Settings(relation=str(Relation.ZERO_OUT), bounds="known", trials=20)
"""What the command starts from: neighbours under which n can be private, and public bounds."""
PRIVATE_BOUND = f"{PRIVATE}:0.9"
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
    """Return the bars in order: all public, then mean, scale, bound and n private.

    Whichever steps the settings pay for already: what they say of shares, of the private row
    bound and of scaling is kept.
    """
    public = replace(
        settings,
        center=None,  # the mean
        scale="none" if settings.scale == "none" else "standardize",
        row_bound="max" if settings.row_bound.startswith(PRIVATE) else settings.row_bound,
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
    wanted = settings.row_bound if settings.row_bound.startswith(PRIVATE) else PRIVATE_BOUND
    more("row bound", row_bound=wanted)
    if settings.relation == Relation.ZERO_OUT:
        more("n", count=PRIVATE)
    return found


def mechanism_of(settings: Settings) -> str:
    """Return the variant of the waterfall: the first that the settings name, or the default."""
    return settings.mechanisms[0] if settings.mechanisms else default_mechanism()


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
        ready = prepare(prepared.table, here, prepared.bounds)
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
        f"Recovery is {rows[0]['recovery']:.2f} where everything but the rows is public, and "
        f"{rows[-1]['recovery']:.2f} where all of it is paid for"
    )
    at = min(range(1, len(rows)), key=lambda index: float(rows[index]["change"]))
    dearest, before = rows[at], rows[at - 1]
    if dearest["change"] < -2 * math.hypot(dearest["se"], before["se"]):
        sentence += f"; the dearest step is the {str(dearest['step']).removesuffix(' private')}"
    return sentence + "."
