"""The question `board`: mechanisms side by side along epsilon, as one file without a network."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack, cast

import pandas as pd

from dpviz.core import VERSION
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import atomic_write
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.lessons import decide
from dpviz.lessons.questions import Answers
from dpviz.lessons.risk import risk
from dpviz.preparation.bounding import BoundedTable
from dpviz.preparation.load import PlannedTable, without_paths
from dpviz.report.tables.payload import Payload
from dpviz.simulation.compare import compare
from dpviz.simulation.defaults import with_featured
from dpviz.studies import Answer
from dpviz.studies.options import YOUR_FILE, Options, asks, ready

Told = Callable[[int, int, str], None]
Levels = Literal["50", "75", "90", "95"]
ENDINGS = (".html", ".py", ".ipynb")


_FRAME = 860
"""Height in a notebook, pixels: the board without scrolling inside."""


class Board(Answer):
    """The board of one table and setting; its numbers compare with the rows and are not private.

    A file of it, and what a notebook shows, holds published pictures alone where the table is not
    public, unless the working view was asked for.

    Attributes
    ----------
    prepared : BoundedTable or PlannedTable
    settings : Settings
    working_view : bool
        Whether files hold rows that are not public, and what compares with them.
    """

    def __init__(
        self,
        prepared: BoundedTable | PlannedTable,
        settings: Settings,
        progress: Told | None,
        *,
        working_view: bool = False,
    ) -> None:
        self.prepared, self.settings, self._progress = prepared, settings, progress
        self.working_view = working_view
        self._written = without_paths(settings, YOUR_FILE)

    @cached_property
    def payload(self) -> Payload:
        """All that the working view is drawn from; its format is docs/board.schema.json."""
        from dpviz.report.figures.boardfile import full_payload, in_memory

        return full_payload(in_memory(self.prepared), self.settings, self._progress)

    def summary(self) -> str:
        """Return the headline at the setting's epsilon."""
        now = self.payload["now"]
        frames = self.payload["frames"]
        at = min(frames, key=lambda frame: abs(frame["epsilon"] - now))
        said = [at["answer"]["recovery"], at["answer"]["risk"] or ""]
        return "\n".join(line for line in said if line)

    def table(self) -> pd.DataFrame:
        """Return one row per epsilon and mechanism: the recovery, its range, and the distance."""
        rows = []
        for frame in self.payload["frames"]:
            for key, cell in frame["cells"].items():
                mean, low, high, _ = cell["recovery"] or (None,) * 4
                distance = cell["distance"][0]
                row = (frame["epsilon"], key, cell["status"]["verdict"], mean, low, high, distance)
                rows.append(row)
        columns = ["epsilon", "mechanism", "status", "recovery", "low", "high", "distance"]
        return pd.DataFrame(rows, columns=columns)

    def data(self) -> dict[str, Any]:
        """Return the payload."""
        return cast(dict[str, Any], self.payload)

    def html(self, command: str = "") -> str:
        """Return one page that shows the board offline.

        Parameters
        ----------
        command : str
            What makes the file again, for its foot.
        """
        from dpviz.report.figures.boardfile import board_file, in_memory

        made = command or self._written.command(verb="board")
        prepared = in_memory(self.prepared)
        return board_file(
            prepared,
            self.settings,
            self._progress,
            command=made,
            working_view=self.working_view,
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the file, in a frame of its own."""
        page = html.escape(self.html(), quote=True)
        return (
            f'<iframe title="the board" srcdoc="{page}" style="width:100%;height:{_FRAME}px;'
            'border:0" sandbox="allow-scripts"></iframe>'
        )

    def report(self, card: Levels | None = None) -> str:
        """Return a page to print: settings, board, claims, assumptions and papers.

        Parameters
        ----------
        card : {"50", "75", "90", "95"}, optional
            Also the least epsilon of each mechanism that keeps so many percent of the structure.

        Raises
        ------
        InvalidSetting
            If there is to be a card of a table that is not public, without the working view.
        """
        from dpviz.report.figures.boardfile import anybodys
        from dpviz.report.figures.handout import report_page

        # what survives is a comparison with the exact result, which the publishable view never
        # makes
        if card is not None and not (self.working_view or anybodys(self.prepared)):
            allowed = "given with the working view where the table is not public: it compares with "
            raise InvalidSetting("card", f"{allowed}the exact result", card, "--card")
        found = compare(self.prepared, self.settings, self._progress)
        # the page says settings by what may be written down, without where files lie
        found = replace(found, plan=replace(found.plan, settings=self._written))
        return report_page(
            found,
            command=self._written.command(),
            link="",
            card=self._card(card),
            working_view=self.working_view,
        )

    def _card(self, survive: str | None) -> str:
        """Return what Decide answers as HTML; nothing where it is not asked."""
        if survive is None:
            return ""
        from dpviz.lessons.card import card_html

        def tell(step: decide.NextStep) -> None:
            if self._progress is not None:
                self._progress(step.place, step.total, step.words)

        card = decide.card(self.prepared, self.settings, Answers(survive=survive), tell)
        seen = None if card.best is None else risk(card, card.best)
        return card_html(card, seen, without_paths(card.settings, YOUR_FILE).command(), "")

    def script(self) -> str:
        """Return a Python script that computes the view."""
        return script(self._written)

    def notebook(self) -> str:
        """Return a Jupyter notebook that computes the view."""
        return notebook(self._written)

    def write(
        self, path: str | PathLike[str], *, report: bool = False, card: Levels | None = None
    ) -> None:
        """Write the board, a report of it, or what computes it, by the ending.

        Parameters
        ----------
        path : str or path
            FILE.html; FILE.py or FILE.ipynb for a script or a notebook that computes the view.
        report : bool
            Whether a page is the report and not the board.
        card : str, optional
            As in `report`.

        Raises
        ------
        InvalidSetting
            If the ending is another, or the folder is not there.
        """
        out = Path(path)
        if out.suffix not in ENDINGS or not out.resolve().parent.is_dir():
            allowed = f"a file in a folder that is there, ending in {', '.join(ENDINGS)}"
            raise InvalidSetting("out", allowed, str(path), "--out")
        if out.suffix == ".py":
            text = self.script()
        elif out.suffix == ".ipynb":
            text = self.notebook()
        elif report:
            text = self.report(card)
        else:
            flag = " --working-view" if self.working_view else ""
            text = self.html(f"{self._written.command(verb='board')}{flag} --out {out.name}")
        with atomic_write(out) as aside:
            aside.write_text(text, encoding="utf-8")


@asks("write the board as one file that needs no network, or a report of it", Settings)
def board(
    table: Any = "digits",
    *,
    working_view: bool = False,
    progress: Told | None = None,
    **options: Unpack[Options],
) -> Board:
    """Assemble the board: mechanisms side by side along epsilon, to be scrubbed without a network.

    Parameters
    ----------
    table
        As in `compare`; its rows must be in memory.
    working_view : bool
        Whether files of a table that is not public hold its rows, and what compares with them; else
        they hold published pictures alone, one of each mechanism, at one epsilon.
    progress : callable, optional
        Told (done, total, what comes next) before each frame.
    **options
        As in `compare`; the featured mechanisms that can run if none are named.

    Returns
    -------
    Board
        ``write(path)`` writes the file of ``dpviz board``, or a script or notebook, by the ending;
        ``to_json()`` its payload.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and where the rows are not in memory or the file would be too large.

    See Also
    --------
    compare : One epsilon, with every measure.

    Notes
    -----
    Its numbers, and the working view, compare with the rows and are not private.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.board("iris", mechanisms="gaussian", trials=2)
    >>> found.table()["mechanism"].unique().tolist()
    ['gaussian']
    >>> "<html" in found.html()
    True
    """
    prepared, settings = ready(table, options)
    # raises where k does not fit the table: the board itself skips what cannot run
    prepared.problem(settings)
    return Board(prepared, with_featured(prepared, settings), progress, working_view=working_view)


# The same view as a script or a notebook ----------------------------------------------------------


FIGURES = ("spectrum", "distance", "projection")


def arguments(settings: Settings, table: str) -> str:
    """Return what `dpviz.compare` is called with: every setting, defaults included.

    Parameters
    ----------
    settings : Settings
    table : str
        What to write for the table, where it has no name of its own.
    """
    values: dict[str, Any] = {
        name: getattr(settings, name) for name in params_of(Settings) if name != "table"
    }
    values["mechanisms"] = list(settings.variants)
    lines = [f"    {table!r},", *(f"    {name}={value!r}," for name, value in values.items())]
    return "\n".join(lines)


def _heading(settings: Settings, table: str) -> str:
    return (
        f"{table}: what privacy costs this PCA. Made by dpviz {VERSION}, seed "
        f"{settings.seed}: the same version and seed give the same numbers."
    )


def script(settings: Settings, table: str | None = None) -> str:
    """Return a Python script that prints the view's numbers and writes its figures as files."""
    name = settings.table if table is None else table
    shown = "\n".join(
        f'    found.figure("{figure}").write_html("dpviz-{figure}.html")' for figure in FIGURES
    )
    return (
        f'"""{_heading(settings, name)}"""\n\n'
        "import dpviz\n\n"
        f"found = dpviz.compare(\n{arguments(settings, name)}\n)\n"
        "print(found.summary())\n"
        "print(found.table().to_string())\n\n"
        'if __name__ == "__main__":\n'
        f"{shown}\n"
    )


def notebook(settings: Settings, table: str | None = None) -> str:
    """Return a Jupyter notebook that shows the view again, as its file's text."""
    name = settings.table if table is None else table
    cells = [
        _cell("markdown", f"# dpviz\n\n{_heading(settings, name)}"),
        _cell("code", f"import dpviz\n\nfound = dpviz.compare(\n{arguments(settings, name)}\n)"),
        _cell("code", "print(found.summary())"),
        _cell("code", "found.table()"),
        *(_cell("code", f'found.figure("{figure}")') for figure in FIGURES),
    ]
    for place, cell in enumerate(cells):
        # numbered and not random, so that the same view is the same file
        cell["id"] = f"dpviz-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {
            "cells": cells,
            "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=1,
    )


def _cell(kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": "", "metadata": {}, "source": source}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell
