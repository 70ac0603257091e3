"""The animation page of a lesson: one component, which reports bets and progress."""

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
"""Events of the animation page."""

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
    """Return a text of everything on which a step's chart depends."""
    params = params_of(Settings)
    states = [lesson.state(step, move) for move in range(len(lesson.moves(step)) + 1)]
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
    "facts", json.loads, lambda facts: json.dumps(facts, default=float).encode()
)


def know(lesson: Lesson) -> None:
    """Read the numbers of a built-in lesson from the shipped data, if they are available."""
    if lesson.number > len(course()):  # A teacher's own lesson may have the same key.
        return
    for name, (value, text) in (_FACTS.get(lesson.key) or {}).items():
        lesson.numbers[name].know(Fact(value, text))


def note(lesson: Lesson) -> None:
    """Record the numbers of a lesson while the shipped data is created."""
    facts = {name: number.fact for name, number in lesson.numbers.items()}
    _FACTS.note(lesson.key, {name: [fact.value, fact.text] for name, fact in facts.items()})


def _scene(lesson: Lesson, step: int) -> dict[str, Any]:
    """Return the data of a step's chart, after computing it if it is not stored."""
    text = ask(
        _draw_scene,
        {"states": _key(lesson, step), "scene": lesson.steps[step].scene},
        saying="",
        aside={"lesson": lesson, "step": step},
        ships=_SCENES,
    )
    content: dict[str, Any] = json.loads(text)
    return content


def _draw_scene(*, lesson: Lesson, step: int, **states: str) -> bytes:
    with st.spinner("Drawing ..."):
        return json.dumps(scene(lesson, step)).encode()


def draw(
    lesson: Lesson,
    step: int,
    *,
    bets: Mapping[str, float],
    move: int,
    present: bool,
    room: Mapping[str, Any] | None = None,
    tell: Callable[[str, Any], None],
) -> None:
    """Draw a step, counted from 0.

    Parameters
    ----------
    lesson, step
    bets : mapping of str to float
        Bets of the session, by step.
    move : int
        Number of the step's finished moves.
    present : bool
    room : mapping or None
        Room of a projector, as `dpviz.lessons.room.steered` returns it.
    tell : callable
        Function that is called with one of `TOLD` and its value.
    """
    name = f"{lesson.number}.{step + 1}"
    every = lessons(lesson.language)
    scene = _scene(lesson, step)

    def teller(word: str) -> Callable[[], None]:
        def told() -> None:
            value = getattr(st.session_state["guide.stage"], word, None)
            if value is not None:
                tell(word, value)

        return told

    _STAGE(
        key="guide.stage",
        data={
            **stage(lesson, step, every, scene),
            "bet": bets.get(name),
            "made": move,
            "present": present or room is not None,
            "room": room,
            "tally": tally(lesson, step, every, bets),
        },
        **{f"on_{word}_change": teller(word) for word in TOLD},
    )
