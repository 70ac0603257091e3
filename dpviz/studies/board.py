"""The question `board`: mechanisms side by side along epsilon, as one offline file."""

from __future__ import annotations

import html
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Unpack, cast

from dpviz.core import VERSION
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import atomic_write
from dpviz.core.metrics import chance_share, nothing_to_recover
from dpviz.core.number_text import decimals, numeral
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.lessons.questions import Answers
from dpviz.mechanisms import parse_variants
from dpviz.preparation.bounding import BoundedTable, Prepared
from dpviz.preparation.load import PlannedTable, without_paths
from dpviz.preparation.prepared import Measured
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.schema import Schema
from dpviz.report.sentences.explore import published_words
from dpviz.report.tables import board as tables
from dpviz.report.tables import scrub
from dpviz.report.tables.board import anybodys
from dpviz.report.tables.frame import FRAME_METRICS, frame_of, said_of, short
from dpviz.report.tables.payload import BoardCell, Frame, Payload
from dpviz.report.tables.payload import Told as Expected
from dpviz.simulation.cells import Skipped, plan
from dpviz.simulation.compare import Comparison, compare, errors_of_pictures, pictured
from dpviz.simulation.defaults import with_featured
from dpviz.simulation.expectation import expect
from dpviz.simulation.sweep import along
from dpviz.studies import Answer
from dpviz.studies.columns import NUMBERS, Column
from dpviz.studies.decide import decision_of
from dpviz.studies.options import YOUR_FILE, Options, Publishing, asks
from dpviz.studies.publishing import enter, ready

Told = Callable[[int, int, str], None]
Levels = Literal["50", "75", "90", "95"]
ENDINGS = (".html", ".py", ".ipynb")


_FRAME = 860
"""Height in a notebook, in pixels; the figure fits without scrolling."""


def _recovery(at: int, row: tuple[float, str, BoardCell]) -> float | None:
    mean = row[2]["recovery"]
    return None if mean is None else mean[at]


@dataclass(frozen=True, eq=False, repr=False)
class Board(Answer):
    """The comparison figure of one table and setting, whose numbers are not private.

    For a table that is not public, files and notebooks show only noisy charts, unless the working
    view was requested. These charts may be published if a schema was given.

    Attributes
    ----------
    prepared : BoundedTable or PlannedTable
    settings : Settings
    progress : callable or None
        Value as in `board`.
    working_view : bool
        Whether files contain rows that are not public, and results compared with these rows.
    pay : callable
        Function that records the privacy cost of a file's charts in the ledger.
    """

    listed: ClassVar[str] = "cells"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("epsilon", of=lambda row: row[0], show=NUMBERS),
        Column("mechanism", of=lambda row: row[1], type=str, show=NUMBERS),
        Column("status", of=lambda row: row[2]["status"]["verdict"], type=str, show=NUMBERS),
        *(
            Column(name, of=partial(_recovery, at), show=NUMBERS)
            for at, name in enumerate(("recovery", "low", "high"))
        ),
        Column("distance", of=lambda row: row[2]["distance"][0], show=NUMBERS),
    )  # fmt: skip

    prepared: BoundedTable | PlannedTable
    settings: Settings
    progress: Told | None
    working_view: bool = False
    pay: Callable[[], None] = lambda: None

    @cached_property
    def payload(self) -> Payload:
        """All data of the working view; docs/board.schema.json describes the format."""
        return full_payload(in_memory(self.prepared), self.settings, self.progress)

    def summary(self) -> str:
        """Return the headline at the setting's epsilon."""
        now = self.payload["now"]
        frames = self.payload["frames"]
        at = min(frames, key=lambda frame: abs(frame["epsilon"] - now))
        lines = [at["answer"]["recovery"], at["answer"]["risk"] or ""]
        return "\n".join(line for line in lines if line)

    @property
    def cells(self) -> list[tuple[float, str, BoardCell]]:
        """The payload's entries for all epsilons and mechanisms."""
        return [
            (frame["epsilon"], key, cell)
            for frame in self.payload["frames"]
            for key, cell in frame["cells"].items()
        ]

    @property
    def _written(self) -> Settings:
        return without_paths(self.settings, YOUR_FILE)

    def data(self) -> dict[str, Any]:
        """Return the payload as JSON data."""
        return cast(dict[str, Any], self.payload)

    def html(self, command: str = "") -> str:
        """Return one page that shows the figure offline.

        Parameters
        ----------
        command : str
            Command that rebuilds the file, for the footer of the page.
        """
        command_line = command or self._written.command(verb="board")
        prepared = in_memory(self.prepared)
        self._enter()
        return board_file(
            prepared,
            self.settings,
            self.progress,
            command=command_line,
            working_view=self.working_view,
        )

    def _repr_html_(self) -> str:
        """Return the notebook's output: the file, in a frame of its own."""
        page = html.escape(self.html(), quote=True)
        return (
            f'<iframe title="the board" srcdoc="{page}" style="width:100%;height:{_FRAME}px;'
            'border:0" sandbox="allow-scripts"></iframe>'
        )

    def report(self, card: Levels | None = None) -> str:
        """Return a page to print: settings, comparison figure, claims, assumptions and papers.

        Parameters
        ----------
        card : {"50", "75", "90", "95"}, optional
            If stated, the page also says what can be published safely if this percentage of the
            structure must be kept.

        Raises
        ------
        InvalidSetting
            If ``survive`` is stated for a table that is not public, without the working view.
        """
        # A decision compares with the exact result, which no publishable view may show.
        if card is not None and not (self.working_view or anybodys(self.prepared)):
            rule = "given with the working view of a table that is not public: the view shows "
            raise InvalidSetting("card", f"{rule}the exact result", card, "--card")
        self._enter()
        comparison = compare(self.prepared, self.settings, self.progress)
        # The page must show the settings without the paths of files.
        comparison = replace(comparison, plan=replace(comparison.plan, settings=self._written))
        return report(
            comparison,
            command=self._written.command(),
            link="",
            card=self._card(card),
            working_view=self.working_view,
        )

    def _enter(self) -> None:
        """Record the privacy cost of a file's charts in the ledger, except for a working view."""
        if not self.working_view:
            self.pay()

    def _card(self, survive: str | None) -> str:
        """Return the answer of Decide as HTML, or an empty text if it is not requested."""
        if survive is None:
            return ""
        table = in_memory(self.prepared).table
        answers = Answers(survive=cast(Any, survive))
        return decision_of(self.prepared, table, None, self.settings, answers).fragment()

    def script(self) -> str:
        """Return a Python script that computes this comparison."""
        return script(self._written)

    def notebook(self) -> str:
        """Return a Jupyter notebook that computes this comparison."""
        return notebook(self._written)

    def write(
        self, path: str | PathLike[str], *, report: bool = False, card: Levels | None = None
    ) -> None:
        """Write the figure, a report, a script or a notebook, by the file ending.

        Parameters
        ----------
        path : str or path
            FILE.html; FILE.py or FILE.ipynb for a script or a notebook of the comparison.
        report : bool
            Whether an HTML file holds the report instead of the figure.
        card : str, optional
            Percentage of structure, as in `report`.

        Raises
        ------
        InvalidSetting
            If the ending is unknown, or the folder does not exist.
        """
        out = Path(path)
        if out.suffix not in ENDINGS or not out.resolve().parent.is_dir():
            rule = f"a file in a folder that exists, ending in {', '.join(ENDINGS)}"
            raise InvalidSetting("out", rule, str(path), "--out")
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


@asks("write the board as one file that needs no network, or write a report", Settings, Publishing)
def board(
    table: Any = "digits",
    *,
    working_view: bool = False,
    schema: str | PathLike[str] | Schema | None = None,
    ledger: str | PathLike[str] | Ledger | None = None,
    progress: Told | None = None,
    **options: Unpack[Options],
) -> Board:
    """Assemble an offline figure: mechanisms side by side, with a slider for epsilon.

    Parameters
    ----------
    table
        A table as in `compare`; its rows must be in memory.
    working_view : bool
        Whether files of a table that is not public hold its rows, and results compared with these
        rows. Otherwise the files hold only noisy charts, one of each mechanism, at one epsilon.
    schema : path or Schema, optional
        How your own file is read, as in `published`, so that a file of the figure may be published.
    ledger : path or Ledger, optional
        Ledger that records each file without the working view, before its charts are simulated.
    progress : callable, optional
        Function that is called with (done, total, what comes next) before each frame.
    **options
        Options as in `compare`; by default the featured mechanisms that can run.

    Returns
    -------
    Board
        ``write(path)`` writes the file of ``dpviz board``, or a script or notebook, by the ending;
        ``to_json()`` returns the payload.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and if the rows are not in memory or the file would be too large.

    See Also
    --------
    compare : One epsilon, with every measure.

    Notes
    -----
    The numbers and the working view are compared with the rows and are not private.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.board("iris", mechanisms="gaussian", trials=2)
    >>> found.table()["mechanism"].unique().tolist()
    ['gaussian']
    >>> "<html" in found.html()
    True
    """
    prepared, settings = ready(table, options, schema)
    # Raise an error if k does not fit the table. The figure itself would only skip mechanisms.
    prepared.problem(settings)
    settings = with_featured(prepared, settings)

    def pay() -> None:
        if ledger is not None:
            enter(ledger, table, schema, prepared, settings)

    return Board(prepared, settings, progress, working_view=working_view, pay=pay)


# Snapshots along epsilon --------------------------------------------------------------------------


def snapshot(
    comparison: Comparison, *, draw: int = 0, axes: str = "aligned", errors: bool = False
) -> Frame:  # fmt: skip
    """Return the frame of a comparison, with the charts that each mechanism publishes.

    Parameters
    ----------
    comparison : Comparison
    draw, axes
        Arguments of `dpviz.report.tables.frame.frame`.
    errors : bool
        Whether to estimate each chart's error due to noise, which takes a tenth of a second each.
    """
    published = pictured(comparison)
    off = errors_of_pictures(published) if errors else {}
    return frame_of(comparison, draw=draw, axes=axes, published=published, errors=off)


def steps(
    prepared: Prepared, settings: Settings, epsilons: Sequence[float], *, workers: int = 1
) -> Iterator[list[Frame]]:
    """Yield the list of snapshots after each new epsilon; the last list has every epsilon.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        All settings except epsilon.
    epsilons : sequence of float
    workers : int
        Argument of `dpviz.simulation.sweep.along`.
    """
    frames: list[Frame] = []
    for comparison in along(
        prepared, settings, "epsilon", epsilons, FRAME_METRICS, workers=workers
    ):
        frames.append(snapshot(comparison))
        yield frames


def predicted(
    prepared: Measured, settings: Settings, epsilons: Sequence[float]
) -> dict[str, list[Expected | None]]:
    """Return the predicted recovery at each epsilon, for mechanisms with a limiting noise law.

    An entry is the recovery as a number, as text and in words; None if the mechanism cannot run.
    """
    lines: dict[str, list[Expected | None]] = {}
    # If all directions are equally good, recovery is undefined and cannot be predicted.
    if nothing_to_recover(chance_share(prepared.reference, settings.k)):
        return lines
    for mechanism in parse_variants(settings.mechanisms):
        line: list[Expected | None] = []
        for epsilon in epsilons:
            expectation = expect(prepared, replace(settings, epsilon=epsilon), mechanism)
            value = None if isinstance(expectation, Skipped) else expectation.metric("recovery")
            line.append(None if value is None else (short(value), *said_of(value)))
        if any(value is not None for value in line):
            lines[mechanism.text] = line
    return lines


# The comparison as one file -----------------------------------------------------------------------


MOST_BYTES = 8_000_000
"""Limit in bytes, so that a file can be mailed."""

_REDRAWS = 20
"""Number of releases of each mechanism that a reader can play one after the other."""


def full_payload(prepared: Prepared, settings: Settings, progress: Told | None = None) -> Payload:
    """Return the payload with every frame and the repeated releases.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    progress : callable, optional
        Function that is called with (done, total, what comes next) before each frame.
    """
    from dpviz.report.figures.board import shown

    settings = with_featured(prepared, settings)
    plan(prepared, settings)  # If a named mechanism cannot run, raise the error now.
    epsilons = scrub.frame_epsilons(None, settings.epsilon)
    comparisons, published = [], []
    answers = along(prepared, settings, "epsilon", epsilons, FRAME_METRICS)
    for place, epsilon in enumerate(epsilons):
        if progress is not None:
            progress(place, len(epsilons), f"epsilon {numeral(epsilon, 6)}")
        comparisons.append(next(answers))
        published.append(pictured(comparisons[-1]))
    frames = scrub.frames_of(comparisons, published)
    at = frames[epsilons.index(scrub.ORDERED_AT)]
    payload = tables.payload(
        prepared,
        settings,
        shown(scrub.ordered(parse_variants(settings.mechanisms), at)),
        epsilons,
        frames,
        expected=predicted(prepared, settings, epsilons),
    )
    payload["draws"] = scrub.draws(comparisons[epsilons.index(settings.epsilon)], _REDRAWS)
    return payload


def publishable_payload(
    prepared: Prepared, settings: Settings, progress: Told | None = None
) -> Payload:
    """Return a payload without rows: one noisy chart of each mechanism at one epsilon.

    The payload may be published if the table is public or was read under a schema. It has one
    epsilon, and noise from secret seeds. Charts that share their noise, as in the figure along
    epsilon, would together reveal the counts, and so would a known seed.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        Settings of the comparison; their seed is not used.
    progress : callable, optional
        Function that is called with (done, total, what comes next) before each mechanism.
    """
    from dpviz.report.figures.board import shown

    settings = replace(with_featured(prepared, settings), trials=1)
    plan(prepared, settings)
    mechanisms = parse_variants(settings.mechanisms)
    frames = []
    for place, mechanism in enumerate(mechanisms):
        if progress is not None:
            progress(place, len(mechanisms), mechanism.text)
        own = replace(settings, mechanisms=(mechanism,), seed=secrets.randbelow(2**63))
        comparison = compare(prepared, own, metrics=FRAME_METRICS, strict=False)
        frames.append(snapshot(comparison, errors=True))
    whole = frames[0]
    for frame in frames[1:]:
        whole["cells"] |= frame["cells"]
        whole["skipped"] |= frame["skipped"]
    content = tables.payload(prepared, settings, shown(mechanisms), [settings.epsilon], [whole])
    return tables.publishable(content)


def in_memory(prepared: BoundedTable | PlannedTable) -> Prepared:
    """Return the table if its rows are in memory.

    Raises
    ------
    InvalidSetting
        If the table has no rows to plot.
    """
    if not isinstance(prepared, Prepared):
        raise InvalidSetting(
            "table", "a table in memory, because the charts show rows", prepared.name, "TABLE"
        )
    return prepared


def board_file(
    prepared: Prepared,
    settings: Settings,
    progress: Told | None = None,
    *,
    command: str = "",
    working_view: bool = False,
) -> str:
    """Return one page that shows the figure offline.

    For a table that is not public, the page holds only noisy charts.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        Settings of the figure. If they name no mechanisms, the featured mechanisms are shown.
    progress : callable, optional
        Argument of `full_payload`.
    command : str
        Command that rebuilds the file, for the footer of the page.
    working_view : bool
        Whether the file also holds rows that are not public, and results compared with these rows.

    Raises
    ------
    InvalidSetting
        If the file would be larger than `MOST_BYTES`.
    """
    from dpviz.report.figures.board import board_html

    title = f"{prepared.name}: what does privacy cost this PCA?"
    if working_view or anybodys(prepared):
        payload = full_payload(prepared, settings, progress)
        note = (
            f"Made by dpviz {VERSION}, seed {settings.seed}. This page shows rows and exact "
            "components of the table, so the page is not private."
        )
        controls = ["scrub", "play", "draws", "view", "present"]
        if command:
            note += f" Again: {command}"
    else:
        payload = publishable_payload(prepared, settings, progress)
        note = f"Made by dpviz {VERSION}. {published_words(payload, prepared)}"
        controls = ["present"]
        if command:
            note += f" Made with: {command}"
    options = {"controls": controls, "exact": controls != ["present"], "present": True}
    page = board_html(payload, title=title, note=note, options=options)
    size = len(page.encode())
    if size > MOST_BYTES:
        rule = f"few enough that the file stays below {numeral(MOST_BYTES / 1e6, 6)} MB"
        raise InvalidSetting("mechanisms", rule, f"{decimals(size / 1e6, 1)} MB", "--mechanism")
    return page


def report(
    comparison: Comparison, *, command: str, link: str, card: str = "", working_view: bool = False
) -> str:
    """Return a page to print; for a table that is not public, only with published charts.

    Parameters
    ----------
    comparison : Comparison
        The comparison to print.
    command, link : str
        Command and link that reproduce the numbers; the link may be empty.
    card : str
        A stakeholder's privacy card as HTML, if there is one.
    working_view : bool
        Whether the page also holds rows that are not public, results compared with them, and the
        statement.
    """
    from dpviz.report.figures.board import shown
    from dpviz.report.figures.handout import report_page

    prepared, settings = comparison.prepared, comparison.settings
    private = not (working_view or anybodys(prepared))
    payload = None
    mechanisms = [result.mechanism for result in comparison.results]
    if isinstance(prepared, Prepared) and private:
        payload = publishable_payload(prepared, replace(settings, mechanisms=tuple(mechanisms)))
    elif isinstance(prepared, Prepared):
        frame = snapshot(comparison)
        columns = shown(scrub.ordered(mechanisms, frame))
        payload = tables.payload(prepared, settings, columns, [settings.epsilon], [frame])
    return report_page(comparison, payload, command=command, link=link, card=card, private=private)


# The comparison as a script or a notebook ---------------------------------------------------------


FIGURES = ("spectrum", "distance", "projection")


def arguments(settings: Settings, table: str) -> str:
    """Return the arguments for `dpviz.compare` as text: every setting, including defaults.

    Parameters
    ----------
    settings : Settings
    table : str
        Text for the table, if the table has no name of its own.
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
    """Return a Python script that prints the comparison's numbers and writes its figures."""
    name = settings.table if table is None else table
    figures = "\n".join(
        f'    found.figure("{figure}").write_html("dpviz-{figure}.html")' for figure in FIGURES
    )
    return (
        f'"""{_heading(settings, name)}"""\n\n'
        "import dpviz\n\n"
        f"found = dpviz.compare(\n{arguments(settings, name)}\n)\n"
        "print(found.summary())\n"
        "print(found.table().to_string())\n\n"
        'if __name__ == "__main__":\n'
        f"{figures}\n"
    )


def notebook(settings: Settings, table: str | None = None) -> str:
    """Return the text of a Jupyter notebook that shows the comparison again."""
    name = settings.table if table is None else table
    cells = [
        _cell("markdown", f"# dpviz\n\n{_heading(settings, name)}"),
        _cell("code", f"import dpviz\n\nfound = dpviz.compare(\n{arguments(settings, name)}\n)"),
        _cell("code", "print(found.summary())"),
        _cell("code", "found.table()"),
        *(_cell("code", f'found.figure("{figure}")') for figure in FIGURES),
    ]
    for place, cell in enumerate(cells):
        # Number the notebook's cells, so that the same comparison gives the same file.
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
