"""What a lesson's step is drawn on: the board, one person, people needed, what a table leaks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.auditing.leaking import leak
from dpviz.core.number_text import numeral, thousands
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.lessons import Lesson, State
from dpviz.lessons.needed import needed_table, people_needed
from dpviz.lessons.scene import board_epsilons, board_scene
from dpviz.mechanisms import parse_variant
from dpviz.report.figures.board import assets, shown
from dpviz.report.figures.lessons import leak_figure, needed_figure
from pages.ui import one_person, presenting
from pages.ui.looks import IN_A_PAGE

DELTA = 1e-5
"""Of the mechanisms in one person's picture that need a delta, where a lesson says none."""

_IN_A_LESSON = """
.dp-lesson[data-highlight] .dpv-scrub {
  outline: 3px solid var(--st-primary-color, #1f5f99); outline-offset: 2px; border-radius: 6px;
}
/* Pictures are as wide as they are tall: where they stand alone there is room for larger ones. */
.dp-lesson .dpv:not([data-phone]) { --dpv-picture: var(--dpv-lesson, 400px); }
.dp-lesson .dpv:not([data-phone]):has(.dpv-box-spectrum, .dpv-box-distance) {
  --dpv-picture: var(--dpv-lesson, 300px);
}
/* On a phone the release comes first, and the truth is a swipe away. */
.dp-lesson .dpv[data-phone] .dpv-col[data-key="exact"] { order: 1; }
"""
_ADAPTER = "\n".join(
    (Path(__file__).parent / name).read_text(encoding="utf-8")
    for name in ("keys.js", "lesson_board.js")
)
_BOARD = st.components.v2.component(
    "dpviz_lesson_board",
    html='<div class="dp-lesson"></div>',
    css=assets().css + IN_A_PAGE + _IN_A_LESSON,
    js=f"{assets().js}\n{_ADAPTER}",
)


def _state_key(state: State) -> str:
    params = params_of(Settings)
    settings = {name: param.format(getattr(state.settings, name)) for name, param in params.items()}
    return json.dumps([settings, dict(state.view)], default=str)


@st.cache_data(max_entries=32, show_spinner="Drawing ...")
def _board(key: str, epsilons: tuple[float, ...], redraw: bool, _state: State) -> dict[str, Any]:
    columns = shown([parse_variant(text) for text in _state.settings.mechanisms])
    return board_scene(_state, list(epsilons), columns, redraw=redraw)


@st.cache_data(max_entries=4, show_spinner=False)
def _needed(key: str, _settings: Settings) -> pd.DataFrame:
    return needed_table(_settings, parse_variant(_settings.mechanisms[0]))


@st.cache_data(max_entries=8, show_spinner=False)
def _needed_now(key: str, _settings: Settings) -> float:
    return people_needed(_settings, parse_variant(_settings.mechanisms[0]))


def board(
    lesson: Lesson,
    step: int,
    state: State,
    *,
    moved: bool,
    unlocked: bool,
    highlight: bool,
    on_commit: Callable[[float], None],
) -> None:
    """Draw the board as a step asks for it.

    Parameters
    ----------
    lesson, step
        Which step, from 0.
    state : State
        What it shows now.
    moved : bool
        Whether the step's move was made.
    unlocked : bool
        Whether the reader may scrub.
    highlight : bool
    on_commit : callable
        Told an epsilon that the reader let go at.
    """
    before = lesson.state(step)
    epsilons = board_epsilons(lesson, step)
    redraw = moved and bool(state.view.get("play_draws"))
    opening = State(state.settings, before.view)
    if len(epsilons) > 1:  # one payload for before and after: only epsilon moves
        opening = before
    scene = _board(_state_key(opening), tuple(epsilons), redraw, opening)
    controls = ["scrub", "play"] if unlocked and len(epsilons) > 1 else []
    key = f"guide.board.{lesson.number}.{step + 1}"
    shape = hashlib.blake2b(_state_key(opening).encode(), digest_size=8).hexdigest()

    def committed() -> None:
        epsilon = getattr(st.session_state[key], "commit", None)
        if epsilon is not None:
            on_commit(float(epsilon))

    _BOARD(
        key=key,
        data={
            "payload": scene["payload"],
            "options": {**scene["options"], "controls": controls},
            "shape": shape,
            "from": before.settings.epsilon,
            "to": state.settings.epsilon if moved and len(epsilons) > 1 else None,
            "highlight": highlight and bool(controls),
            "draws": scene["draws"],
        },
        on_commit_change=committed,
    )


def person_clouds(key: str, state: State, *, locked: bool, highlight: str) -> None:
    """Draw one person's clouds."""
    settings = state.settings
    one_person.draw(
        key,
        settings.mechanisms,
        settings.delta or DELTA,
        epsilon=settings.epsilon,
        seed=settings.seed,
        view=str(state.view.get("picture", "her")),
        locked=locked,
        highlight=highlight,
    )


def needed(state: State) -> None:
    """Draw the people needed along epsilon."""
    settings = state.settings
    same = replace(settings, epsilon=1.0)  # the curve is along epsilon
    table = _needed(_state_key(State(same, {})), same)
    now = _needed_now(_state_key(State(settings, {})), settings)
    figure = needed_figure(table, (settings.epsilon, now), presenting.larger())
    words = f"At epsilon {numeral(settings.epsilon, 6)}, {thousands(now)} people are needed."
    st.plotly_chart(figure, key="guide.needed", alt=words)


def leaking(state: State) -> None:
    """Draw what a small table's own mean and bound give away."""
    found, view = leak(), state.view
    figure = leak_figure(
        found, str(view.get("shown", "")), bool(view.get("declared")), presenting.larger()
    )
    st.plotly_chart(figure, key="guide.leak", alt="A small table with one row far out")
