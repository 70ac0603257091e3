"""The question `board`: mechanisms side by side along epsilon, as one file without a network."""

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
from dpviz.simulation.compare import Comparison, along, compare, errors_of_pictures, pictured
from dpviz.simulation.defaults import with_featured
from dpviz.simulation.expectation import expect
from dpviz.studies import Answer
from dpviz.studies.columns import NUMBERS, Column
from dpviz.studies.decide import decision_of
from dpviz.studies.options import YOUR_FILE, Options, Publishing, asks
from dpviz.studies.publishing import enter, ready

Told = Callable[[int, int, str], None]
Levels = Literal["50", "75", "90", "95"]
ENDINGS = (".html", ".py", ".ipynb")


_FRAME = 860
"""Height in a notebook, pixels: the board without scrolling inside."""


def _recovery(at: int, row: tuple[float, str, BoardCell]) -> float | None:
    mean = row[2]["recovery"]
    return None if mean is None else mean[at]


@dataclass(frozen=True, eq=False, repr=False)
class Board(Answer):
    """The board of one table and setting; its numbers compare with the rows and are not private.

    A file of it, and what a notebook shows, holds pictures with noise alone where the table is not
    public, unless the working view was asked for; they may be published where a schema was given.

    Attributes
    ----------
    prepared : BoundedTable or PlannedTable
    settings : Settings
    progress : callable or None
        As in `board`.
    working_view : bool
        Whether files hold rows that are not public, and what compares with them.
    pay : callable
        Writes what a file's pictures cost down in the ledger.
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
        """All that the working view is drawn from; its format is docs/board.schema.json."""
        return full_payload(in_memory(self.prepared), self.settings, self.progress)

    def summary(self) -> str:
        """Return the headline at the setting's epsilon."""
        now = self.payload["now"]
        frames = self.payload["frames"]
        at = min(frames, key=lambda frame: abs(frame["epsilon"] - now))
        said = [at["answer"]["recovery"], at["answer"]["risk"] or ""]
        return "\n".join(line for line in said if line)

    @property
    def cells(self) -> list[tuple[float, str, BoardCell]]:
        """What the payload has of each epsilon and mechanism."""
        return [
            (frame["epsilon"], key, cell)
            for frame in self.payload["frames"]
            for key, cell in frame["cells"].items()
        ]

    @property
    def _written(self) -> Settings:
        return without_paths(self.settings, YOUR_FILE)

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
        made = command or self._written.command(verb="board")
        prepared = in_memory(self.prepared)
        self._enter()
        return board_file(
            prepared,
            self.settings,
            self.progress,
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
            Also what can be published safely, if so many percent of the structure must be kept.

        Raises
        ------
        InvalidSetting
            If there is to be a card of a table that is not public, without the working view.
        """
        # what survives is a comparison with the exact result, which the publishable view never
        # makes
        if card is not None and not (self.working_view or anybodys(self.prepared)):
            allowed = "given with the working view where the table is not public: it compares with "
            raise InvalidSetting("card", f"{allowed}the exact result", card, "--card")
        self._enter()
        found = compare(self.prepared, self.settings, self.progress)
        # the page says settings by what may be written down, without where files lie
        found = replace(found, plan=replace(found.plan, settings=self._written))
        return report(
            found,
            command=self._written.command(),
            link="",
            card=self._card(card),
            working_view=self.working_view,
        )

    def _enter(self) -> None:
        """Write what a file's pictures cost down in the ledger, unless it is a working view."""
        if not self.working_view:
            self.pay()

    def _card(self, survive: str | None) -> str:
        """Return what Decide answers as HTML; nothing where it is not asked."""
        if survive is None:
            return ""
        table = in_memory(self.prepared).table
        asked = Answers(survive=cast(Any, survive))
        return decision_of(self.prepared, table, None, self.settings, asked).fragment()

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


@asks("write the board as one file that needs no network, or a report of it", Settings, Publishing)
def board(
    table: Any = "digits",
    *,
    working_view: bool = False,
    schema: str | PathLike[str] | Schema | None = None,
    ledger: str | PathLike[str] | Ledger | None = None,
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
        they hold pictures with noise alone, one of each mechanism, at one epsilon.
    schema : path or Schema, optional
        As in `published`: how a file of one's own is read, so that a file of the board may be
        published.
    ledger : path or Ledger, optional
        Where each file without the working view is entered, before its pictures are drawn.
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
    prepared, settings = ready(table, options, schema)
    # raises where k does not fit the table: the board itself skips what cannot run
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
    """Return what a board shows of a comparison, with the pictures that each mechanism publishes.

    Parameters
    ----------
    comparison : Comparison
    draw, axes
        As in `dpviz.report.tables.frame.frame`.
    errors : bool
        Whether to say how far noise puts a picture off, a tenth of a second each.
    """
    published = pictured(comparison)
    off = errors_of_pictures(published) if errors else {}
    return frame_of(comparison, draw=draw, axes=axes, published=published, errors=off)


def steps(
    prepared: Prepared, settings: Settings, epsilons: Sequence[float], *, workers: int = 1
) -> Iterator[list[Frame]]:
    """Yield a board's snapshots so far, one more each time; the last has every epsilon.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        All but epsilon.
    epsilons : sequence of float
    workers : int
        As in `dpviz.simulation.compare.along`.
    """
    found: list[Frame] = []
    for comparison in along(prepared, settings, epsilons, FRAME_METRICS, workers=workers):
        found.append(snapshot(comparison))
        yield found


def predicted(
    prepared: Measured, settings: Settings, epsilons: Sequence[float]
) -> dict[str, list[Expected | None]]:
    """Return the recovery expected without a draw, at each epsilon, of each mechanism with a law.

    An entry is the recovery, its text and its words; None where the mechanism cannot run.
    """
    found: dict[str, list[Expected | None]] = {}
    # where any directions do as well there is nothing to expect
    if nothing_to_recover(chance_share(prepared.reference, settings.k)):
        return found
    for mechanism in parse_variants(settings.mechanisms):
        line: list[Expected | None] = []
        for epsilon in epsilons:
            seen = expect(prepared, replace(settings, epsilon=epsilon), mechanism)
            value = None if isinstance(seen, Skipped) else seen.metric("recovery")
            line.append(None if value is None else (short(value), *said_of(value)))
        if any(value is not None for value in line):
            found[mechanism.text] = line
    return found


# As one file --------------------------------------------------------------------------------------


MOST_BYTES = 8_000_000
"""A board that is mailed stays below this."""

_REDRAWS = 20
"""Draws of each mechanism that can be played one after the other."""


def full_payload(prepared: Prepared, settings: Settings, progress: Told | None = None) -> Payload:
    """Return the board's payload with every frame and the redraws.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    progress : callable, optional
        Told (done, total, what comes next) before each frame.
    """
    from dpviz.report.figures.board import shown

    settings = with_featured(prepared, settings)
    plan(prepared, settings)  # what is named and cannot run is an error before anything is drawn
    epsilons = scrub.frame_epsilons(None, settings.epsilon)
    seen, published = [], []
    found = along(prepared, settings, epsilons, FRAME_METRICS)
    for done, epsilon in enumerate(epsilons):
        if progress is not None:
            progress(done, len(epsilons), f"epsilon {numeral(epsilon, 6)}")
        seen.append(next(found))
        published.append(pictured(seen[-1]))
    frames = scrub.frames_of(seen, published)
    at = frames[epsilons.index(scrub.ORDERED_AT)]
    payload = tables.payload(
        prepared,
        settings,
        shown(scrub.ordered(parse_variants(settings.mechanisms), at)),
        epsilons,
        frames,
        expected=predicted(prepared, settings, epsilons),
    )
    payload["draws"] = scrub.draws(seen[epsilons.index(settings.epsilon)], _REDRAWS)
    return payload


def publishable_payload(
    prepared: Prepared, settings: Settings, progress: Told | None = None
) -> Payload:
    """Return a board without rows: one picture of each mechanism at one epsilon.

    It may be published where the table is public or was read under a schema. One epsilon, and noise
    that nobody can draw again: pictures that share their noise, as those of a board along epsilon
    do, give the counts away between them, and so does a seed that is known.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        Its seed is not used.
    progress : callable, optional
        Told (done, total, what comes next) before each mechanism.
    """
    from dpviz.report.figures.board import shown

    settings = replace(with_featured(prepared, settings), trials=1)
    plan(prepared, settings)
    mechanisms = parse_variants(settings.mechanisms)
    frames = []
    for done, mechanism in enumerate(mechanisms):
        if progress is not None:
            progress(done, len(mechanisms), mechanism.text)
        own = replace(settings, mechanisms=(mechanism,), seed=secrets.randbelow(2**63))
        found = compare(prepared, own, metrics=FRAME_METRICS, strict=False)
        frames.append(snapshot(found, errors=True))
    whole = frames[0]
    for frame in frames[1:]:
        whole["cells"] |= frame["cells"]
        whole["skipped"] |= frame["skipped"]
    made = tables.payload(prepared, settings, shown(mechanisms), [settings.epsilon], [whole])
    return tables.publishable(made)


def in_memory(prepared: BoundedTable | PlannedTable) -> Prepared:
    """Return the table if its rows are at hand.

    Raises
    ------
    InvalidSetting
        If there are no rows to draw.
    """
    if not isinstance(prepared, Prepared):
        raise InvalidSetting(
            "table", "a table that fits in memory: the board draws its rows", prepared.name, "TABLE"
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
    """Return one page that shows the board offline.

    Of a table that is not public it holds pictures with noise and nothing else.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        Without mechanisms the featured ones are shown.
    progress : callable, optional
        As in `full_payload`.
    command : str
        What makes the file again, for its foot.
    working_view : bool
        Whether rows that are not public, and what compares with them, are in the file too.

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
            f"Made by dpviz {VERSION}, seed {settings.seed}. It shows rows and exact "
            "components of the table and is not itself private."
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
        allowed = f"few enough that the file stays below {numeral(MOST_BYTES / 1e6, 6)} MB"
        raise InvalidSetting("mechanisms", allowed, f"{decimals(size / 1e6, 1)} MB", "--mechanism")
    return page


def report(
    comparison: Comparison, *, command: str, link: str, card: str = "", working_view: bool = False
) -> str:
    """Return a page to print; of a table that is not public, with published pictures alone.

    Parameters
    ----------
    comparison : Comparison
        The view.
    command, link : str
        What reproduces the numbers; the link may be empty.
    card : str
        A stakeholder's card as HTML, where there is one.
    working_view : bool
        Whether rows that are not public, what compares with them, and the card are in it too.
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
