"""The board as one file: opened from a disk, scrubbed and played without a network."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from dpviz.core import VERSION
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import decimals, numeral
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.preparation.bounding import BoundedTable, Prepared
from dpviz.preparation.load import PlannedTable
from dpviz.preparation.prepared import Measured
from dpviz.report.figures.board import board_html, shown
from dpviz.report.tables import board, scrub
from dpviz.report.tables.frame import frame_of
from dpviz.report.tables.payload import Payload
from dpviz.simulation.cells import plan
from dpviz.simulation.defaults import with_featured

MOST_BYTES = 8_000_000
"""A board that is mailed stays below this."""

_REDRAWS = 20
"""Draws of each mechanism that can be played one after the other."""

Told = Callable[[int, int, str], None]


def full_payload(prepared: Prepared, settings: Settings, progress: Told | None = None) -> Payload:
    """Return the board's payload with every frame and the redraws.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    progress : callable, optional
        Told (done, total, what comes next) before each frame.
    """
    settings = with_featured(prepared, settings)
    plan(prepared, settings)  # what is named and cannot run is an error before anything is drawn
    epsilons = scrub.frame_epsilons(None, settings.epsilon)
    frames, redraws = scrub.drawn(prepared, settings, epsilons, _REDRAWS, progress)
    at = frames[epsilons.index(scrub.ORDERED_AT)]
    mechanisms = scrub.ordered(parse_variants(settings.mechanisms), at)
    payload = board.payload(
        prepared,
        settings,
        shown(mechanisms),
        epsilons,
        frames,
        expected=scrub.predicted(prepared, settings, epsilons),
    )
    payload["draws"] = redraws
    return payload


def publishable_payload(
    prepared: Prepared, settings: Settings, progress: Told | None = None
) -> Payload:
    """Return what may be published of a board: one picture of each mechanism at one epsilon.

    One epsilon, and noise that nobody can draw again: pictures that share their noise, as those of
    a board along epsilon do, give the counts away between them, and so does a seed that is known.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        Its seed is not used.
    progress : callable, optional
        Told (done, total, what comes next) before each mechanism.
    """
    settings = replace(with_featured(prepared, settings), trials=1)
    plan(prepared, settings)
    epsilons, mechanisms = [settings.epsilon], parse_variants(settings.mechanisms)
    frames = []
    for done, mechanism in enumerate(mechanisms):
        if progress is not None:
            progress(done, len(mechanisms), mechanism.text)
        own = replace(settings, mechanisms=(mechanism,), seed=secrets.randbelow(2**63))
        (comparison,) = scrub.compared(prepared, own, epsilons)
        frames.append(frame_of(comparison, prepared, worth=True))
    whole = frames[0]
    for frame in frames[1:]:
        whole["cells"] |= frame["cells"]
        whole["skipped"] |= frame["skipped"]
    made = board.payload(prepared, settings, shown(mechanisms), epsilons, [whole])
    return board.publishable(made)


def published_words(payload: Payload, prepared: Prepared) -> str:
    """Return what a file of published pictures holds, costs and rests on."""
    (frame,) = payload["frames"]
    count = sum(cell["published"] is not None for cell in frame["cells"].values())
    delta = payload["table"]["delta"]
    each = f"epsilon {numeral(frame['epsilon'], 6)}, delta {numeral(delta, 6)}"
    total = f"epsilon {numeral(count * frame['epsilon'], 6)}, delta {numeral(count * delta, 6)}"
    words = f"No row and no exact result is in here: {count} published pictures, each at {each}"
    if count > 1:
        words += f", together at most {total}"
    labels = ["the names of labels"] if payload["labels"]["kinds"] else []
    public = "; ".join([*prepared.assumed_public, *labels])
    return (
        f"{words}. Another file costs as much again. Noise is in floating-point numbers; "
        f"a release is made by dpviz release. Assumed public: {public}."
    )


def anybodys(prepared: Measured) -> bool:
    """Return whether there are no rows, or rows that anybody may see."""
    return isinstance(prepared, PlannedTable) or (
        isinstance(prepared, Prepared) and prepared.table.public
    )


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

    Of a table that is not public it holds published pictures and nothing else.

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
