"""The stage of a lesson on a page: one component, which tells what is bet and how far it went."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.lessons import Lesson, course, lessons
from dpviz.lessons.quantities import Fact
from dpviz.lessons.scene import scene, stage, tally
from dpviz.report.figures.stage import assets
from pages.ui.ask import ask
from pages.ui.first_sight import Shipped
from pages.ui.looks import IN_A_PAGE

TOLD = ("bet", "made", "go", "leave", "present", "language", "save")
"""What the stage tells."""

_ADAPTER = """
export default function ({ parentElement, data, setTriggerValue }) {
  DpvizStage.mount(parentElement.querySelector(".dps-root"), data, setTriggerValue);
}
"""
_STAGE = st.components.v2.component(
    "dpviz_stage",
    html='<div class="dps-root"></div>',
    css=assets().css + IN_A_PAGE,
    js=f"{assets().js}\n{_ADAPTER}",
)


def _key(lesson: Lesson, step: int) -> str:
    """Return what a step's picture depends on, as a text."""
    params = params_of(Settings)
    states = [lesson.state(step, made) for made in range(len(lesson.moves(step)) + 1)]
    return json.dumps(
        [
            [{name: param.format(getattr(one.settings, name)) for name, param in params.items()},
             dict(one.view)]
            for one in states
        ],
        default=str,
    )  # fmt: skip


_SCENES = Shipped("scenes", bytes, bytes)


_FACTS = Shipped[dict[str, list[Any]]](
    "facts", json.loads, lambda found: json.dumps(found, default=float).encode()
)


def know(lesson: Lesson) -> None:
    """Take the numbers of a lesson that comes along from what ships, if they are there."""
    if lesson.number > len(course()):  # a teacher's own may be called the same
        return
    for name, (value, text) in (_FACTS.get(lesson.key) or {}).items():
        lesson.numbers[name].know(Fact(value, text))


def note(lesson: Lesson) -> None:
    """Note the numbers of a lesson while what ships is made."""
    facts = {name: number.fact for name, number in lesson.numbers.items()}
    _FACTS.note(lesson.key, {name: [fact.value, fact.text] for name, fact in facts.items()})


def _scene(lesson: Lesson, step: int) -> dict[str, Any]:
    """Return what a step's picture is drawn from, drawn if it is not kept."""
    text = ask(
        _drawn,
        {"states": _key(lesson, step), "scene": lesson.steps[step].scene},
        saying="",
        aside={"lesson": lesson, "step": step},
        ships=_SCENES,
    )
    found: dict[str, Any] = json.loads(text)
    return found


def _drawn(*, lesson: Lesson, step: int, **states: str) -> bytes:
    with st.spinner("Drawing ..."):
        return json.dumps(scene(lesson, step)).encode()


def draw(
    lesson: Lesson,
    step: int,
    *,
    bets: Mapping[str, float],
    made: int,
    present: bool,
    room: Mapping[str, Any] | None = None,
    tell: Callable[[str, Any], None],
) -> None:
    """Draw a step, from 0.

    Parameters
    ----------
    lesson, step
    bets : mapping of str to float
        The session's, by step.
    made : int
        How many of the step's moves are made.
    present : bool
    room : mapping or None
        Of a projector: what `dpviz.lessons.room.steered` says of its room.
    tell : callable
        Given one of `TOLD` and its value.
    """
    name = f"{lesson.number}.{step + 1}"
    every = lessons(lesson.language)
    drawn = _scene(lesson, step)

    def teller(word: str) -> Callable[[], None]:
        def told() -> None:
            value = getattr(st.session_state["guide.stage"], word, None)
            if value is not None:
                tell(word, value)

        return told

    _STAGE(
        key="guide.stage",
        data={
            **stage(lesson, step, every, drawn),
            "bet": bets.get(name),
            "made": made,
            "present": present or room is not None,
            "room": room,
            "tally": tally(lesson, step, every, bets),
        },
        **{f"on_{word}_change": teller(word) for word in TOLD},
    )
