"""What a step's scene is fed with: one JSON payload each, from the core's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpviz.lessons.lesson import Lesson, State
from dpviz.lessons.measures import table_of
from dpviz.report.tables import board
from dpviz.report.tables.payload import BoardColumn

_FRAMES = 11


def board_epsilons(lesson: Lesson, step: int) -> list[float]:
    """Return the epsilons that a step's board can be scrubbed over, ascending; one where it stays.

    From where the step opens to the last of its moves, with every one of them.
    """
    moves = range(len(lesson.moves(step)) + 1)
    stops = [lesson.state(step, made).settings.epsilon for made in moves]
    if len(set(stops)) == 1:
        return stops[:1]
    between = [float(f"{e:.2g}") for e in np.geomspace(min(stops), max(stops), _FRAMES)]
    inside = [e for e in between if min(stops) <= e <= max(stops)]
    return sorted({*inside, *stops})


def board_scene(
    state: State, epsilons: list[float], columns: Sequence[BoardColumn], *, redraw: bool
) -> dict[str, Any]:
    """Return the board's payload, the options that it is mounted with, and its redraws.

    Parameters
    ----------
    state : State
    epsilons : list of float
    columns : sequence of BoardColumn
        Of the settings' mechanisms, with their colours.
    redraw : bool
        Whether the pictures of every draw come along.

    Returns
    -------
    dict
        The picture is of the typical draw, unless the view names one, from 1.
    """
    settings = state.settings
    prepared = table_of(settings)
    named = state.view.get("draw")
    frames, redraws = board.drawn(
        prepared, settings, epsilons, settings.trials if redraw else 0,
        draw=None if named is None else int(named) - 1,
    )  # fmt: skip
    payload = board.payload(prepared, settings, columns, epsilons, frames)
    return {
        "payload": payload,
        "options": {
            "rows": list(state.view.get("measures", ("picture", "recovery"))),
            "strip": False,
            "answer": False,
        },
        "draws": redraws,
    }


def with_share(state: State, changes: Mapping[str, Any]) -> State:
    """Return a state with what a reader moved by hand."""
    return State(replace(state.settings, **dict(changes)), state.view)
