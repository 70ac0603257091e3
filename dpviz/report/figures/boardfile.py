"""The board as one file: opened from a disk, scrubbed and played without a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpviz.core import VERSION
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import decimals, numeral
from dpviz.core.settings import Settings
from dpviz.mechanisms import featured, parse_variants
from dpviz.preparation.bounding import BoundedRows, Prepared
from dpviz.preparation.plan import Planned
from dpviz.report.figures.board import board_html, shown
from dpviz.report.tables import board
from dpviz.report.tables.payload import Payload
from dpviz.simulation.cells import plan

MOST_BYTES = 8_000_000
"""A board that is mailed stays below this."""

_REDRAWS = 20
"""Draws of each mechanism that can be played one after the other."""

Told = Callable[[int, int, str], None]


def with_featured(settings: Settings) -> Settings:
    """Return settings that name the featured mechanisms where they name none."""
    return replace(settings, mechanisms=settings.mechanisms or featured())


def full_payload(prepared: Prepared, settings: Settings, progress: Told | None = None) -> Payload:
    """Return the board's payload with every frame and the redraws.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    progress : callable, optional
        Told (done, total, what comes next) before each frame.
    """
    settings = with_featured(settings)
    plan(prepared, settings)  # what is named and cannot run is an error before anything is drawn
    epsilons = board.frame_epsilons(None, settings.epsilon)
    frames, redraws = board.drawn(prepared, settings, epsilons, _REDRAWS, progress)
    at = frames[epsilons.index(board.ORDERED_AT)]
    mechanisms = board.ordered(parse_variants(settings.mechanisms), at)
    payload = board.payload(
        prepared,
        settings,
        shown(mechanisms),
        epsilons,
        frames,
        expected=board.predicted(prepared, settings, epsilons),
    )
    payload["draws"] = redraws
    return payload


def in_memory(prepared: BoundedRows | Planned) -> Prepared:
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
    prepared: Prepared, settings: Settings, progress: Told | None = None, *, command: str = ""
) -> str:
    """Return one page that shows the board offline.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        Without mechanisms the featured ones are shown.
    progress : callable, optional
        As in `full_payload`.
    command : str
        What makes the file again, for its foot.

    Raises
    ------
    InvalidSetting
        If the file would be larger than `MOST_BYTES`.
    """
    payload = full_payload(prepared, settings, progress)
    note = (
        f"Made by dpviz {VERSION}, seed {settings.seed}. It shows rows and exact "
        "components of the table and is not itself private."
    )
    if command:
        note += f" Again: {command}"
    title = f"{prepared.name}: what does privacy cost this PCA?"
    options = {"controls": ["scrub", "play", "draws", "view", "present"]}
    page = board_html(payload, title=title, note=note, options=options)
    size = len(page.encode())
    if size > MOST_BYTES:
        allowed = f"few enough that the file stays below {numeral(MOST_BYTES / 1e6, 6)} MB"
        raise InvalidSetting("mechanisms", allowed, f"{decimals(size / 1e6, 1)} MB", "--mechanism")
    return page
