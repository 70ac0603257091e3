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

    From where the step opens to where it moves, and every bet in between that is a number.
    """
    opens, ends = lesson.state(step).settings.epsilon, lesson.state(step, True).settings.epsilon
    if opens == ends:
        return [opens]
    between = [float(f"{e:.2g}") for e in np.geomspace(opens, ends, _FRAMES)]
    asked = lesson.steps[step].question
    said = [] if asked is None else " ".join(map(lesson.filled, asked.options)).split()
    bets = [float(word) for word in said if word.replace(".", "", 1).isdigit()]
    inside = [e for e in bets if min(opens, ends) <= e <= max(opens, ends)]
    return sorted({*between, *inside, opens, ends})


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
    """
    settings = state.settings
    prepared = table_of(settings)
    frames, redraws = board.drawn(prepared, settings, epsilons, settings.trials if redraw else 0)
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
