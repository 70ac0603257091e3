"""Guide: lessons in which visitors bet before they see the result."""

PAGE = {
    "title": "Guide",
    "icon": ":material/route:",
    "place": 10,
    "own_settings": True,
    "term": "",
}

import streamlit as st

from pages.ui import shell

current = shell.through_entry()

from typing import Any

from dpviz.lessons import Lesson, lessons, slides
from dpviz.lessons.languages import phone_words
from dpviz.lessons.lesson import INVENTED
from dpviz.lessons.room import steered
from pages.ui import guard, parts, stage, state

BETS, MOVES, LEAVING, SAVING = "guide.bets", "guide.moves", "guide.leave", "guide.save"
TOLD = ("no", "yes", "more")
"""Progress of a step's reveal, as a link states it."""


def at() -> tuple[Lesson, int]:
    """Return the lesson and the step, from 0, that the link names."""
    course = lessons(state.get("language", "guide"))
    lesson = course[min(state.get("lesson", "guide"), len(course)) - 1]
    stage.know(lesson)
    return lesson, min(state.get("step", "guide"), len(lesson.steps)) - 1


def bets() -> dict[str, float]:
    """Return the bets of this session by step, as an option from 0 or the epsilon of a flag."""
    by_step: dict[str, float] = st.session_state.setdefault(BETS, {})
    return by_step


def moves() -> dict[str, int]:
    """Return the number of moves that the visitor has made, by step."""
    by_step: dict[str, int] = st.session_state.setdefault(MOVES, {})
    return by_step


def note(word: str, name: str, value: float) -> None:
    """Store a bet or a move for its own step, even if the visitor has left that step."""
    number, place = (int(part) for part in name.split("."))
    lesson, step = lessons(state.get("language", "guide"))[number - 1], place - 1
    question = lesson.question_at(step)
    if word == "made":
        moves()[name] = min(int(value), len(lesson.moves(step)))
    elif question is not None and question.possible(value):
        bets()[name] = value


def follow_link(lesson: Lesson, step: int, name: str, *, hall: bool) -> None:
    """Read a step's bet and moves from a link, at first and when the visitor goes back.

    If a class bets on its phones, a move needs no bet on this page.
    """
    if BETS in st.session_state and not state.travelled():
        return
    question, place = lesson.question_at(step), state.get("bet", "guide")
    bets().pop(name, None)
    moves().pop(name, None)
    if question is not None and place:
        bet = place if question.axis is not None else place - 1
        if question.possible(bet):
            bets()[name] = bet
    move = TOLD.index(state.get("moved", "guide"))
    if move and (question is None or hall or name in bets()):
        moves()[name] = min(move, len(lesson.moves(step)))


def write_link(lesson: Lesson, step: int, name: str) -> None:
    """Write the bet, and how far the step is revealed, into the link."""
    question, bet = lesson.question_at(step), bets().get(name)
    place = 0 if bet is None else bet if question and question.axis is not None else bet + 1
    state.put("bet", place, "guide")
    state.put("moved", TOLD[moves().get(name, 0)], "guide")


def leave(lesson: Lesson, step: int, name: str) -> None:
    """Open the page that shows all details, with the settings of the step."""
    page, scene = lesson.page(step), lesson.steps[step].scene
    if scene not in INVENTED:
        state.take(lesson.state(step, moves().get(name, 0)).settings)
    if page == "claims":
        state.put("part", "exploring" if scene in INVENTED else "person", "claims")
    st.session_state[LEAVING] = page.capitalize()


@st.dialog("Save")
def save(lesson: Lesson, step: int) -> None:
    """Offer the images of the step, and the lesson as slides."""
    with guard.guard():
        _offer(lesson, step)


def _offer(lesson: Lesson, step: int) -> None:
    files = slides.step_files(lesson, step)
    text = lesson.filled(lesson.steps[step].say)
    st.image(files[f"{lesson.number}.{step + 1}.1.png"], alt=f"The slide of this step: {text}")
    with st.container(horizontal=True):
        for name, content in sorted(files.items(), key=lambda one: one[0].rpartition(".")[2]):
            parts.download(name, content, name, f"guide.save.{name}")
    name, make = f"{lesson.number}.pdf", lambda: slides.lesson_slides(lesson)
    parts.download(f"The lesson as slides: {name}", make, name, "guide.save.slides")


def draw() -> None:
    """Draw the step that the link names."""
    lesson, step = at()
    name = f"{lesson.number}.{step + 1}"
    question = lesson.question_at(step)
    steers = steered(state.get("room", "guide"), name, question, phone_words(lesson.language))
    room, new = steers or (None, False)
    follow_link(lesson, step, name, hall=room is not None)
    if new and question is not None:
        moves().pop(name, None)  # Phones bet again, so hide the answer before this.

    def tell(word: str, value: Any) -> None:
        if word in ("bet", "made"):
            note(word, *value)
        elif word == "go":
            state.put("lesson", int(value[0]), "guide")
            state.put("step", int(value[1]), "guide")
        elif word == "leave":
            leave(lesson, step, name)
        elif word == "save":
            st.session_state[SAVING] = True
        elif word == "language":
            state.put("language", str(value), "guide")
        elif word == "present":
            state.put("present", "yes" if value else "no", "guide")

    stage.draw(
        lesson,
        step,
        room=room,
        bets=bets(),
        move=moves().get(name, 0),
        present=state.get("present", "guide") == "yes",
        tell=tell,
    )
    write_link(lesson, step, name)
    if st.session_state.pop(SAVING, False):
        save(lesson, step)
    page = st.session_state.pop(LEAVING, None)
    if page is not None:
        st.switch_page(shell.page(page), query_params={})


with guard.guard():
    draw()
