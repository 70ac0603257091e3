"""The question `waterfall`: what a private preparation costs, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import pandas as pd

from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import decimals, numeral
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.load import handed_on
from dpviz.report.sentences.phrases import text_table
from dpviz.simulation.waterfall import BASE, Stage, stages, told, waterfall_table
from dpviz.studies import Answer
from dpviz.studies.asked import Options, asks, ready

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure


class Waterfall(Answer):
    """Recovery with one more step of the preparation private at each bar.

    Attributes
    ----------
    stages : tuple of dpviz.simulation.waterfall.Stage
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
        """Return one row per bar: `dpviz.simulation.waterfall.COLUMNS`."""
        return waterfall_table(self.stages)

    def data(self) -> dict[str, Any]:
        """Return the object that ``dpviz waterfall --format json`` prints."""
        records = self.table().to_dict("records")
        return {
            "table": self.prepared.name,
            "settings": handed_on(self.settings).to_json(),
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
    loaded = asked if "bounds" in options else {**asked, "bounds": "max"}
    prepared, settings = ready(table, loaded)
    if not isinstance(prepared, Prepared):
        raise InvalidSetting("table", "rows in memory, to prepare privately", settings.table)
    if "bounds" not in options and prepared.table.bounds is not None:
        settings = replace(settings, bounds=BASE.bounds)
    # nobody stated any: taken from the data, which every step then lists
    return Waterfall(stages(prepared, settings), prepared, settings)
