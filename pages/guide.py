"""Guide: lessons, each a bet before it is shown."""

PAGE = {
    "title": "Guide",
    "icon": ":material/route:",
    "place": 10,
    "own_settings": True,
}

import streamlit as st

from pages.ui import shell

current = shell.through_entry()

from functools import partial

import numpy as np

from dpviz.core.number_text import decimals, numeral
from dpviz.core.params import format_number
from dpviz.lessons import Asked, Lesson, State, lessons
from dpviz.lessons.scene import with_share
from pages.ui import presenting, scenes, state

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
BETS, MOVES = "guide.bets", "guide.moves"
TOLD = ("no", "yes", "more")
FLAGS = 25

course = lessons()


def at() -> tuple[Lesson, int]:
    """Return the lesson and the step, from 0, that the link names."""
    lesson = course[min(state.get("lesson", "guide"), len(course)) - 1]
    return lesson, min(state.get("step", "guide"), len(lesson.steps)) - 1


def go(number: int, step: int) -> None:
    """Go to a step of a lesson; both count from 1."""
    state.put("lesson", number, "guide")
    state.put("step", step, "guide")


def bets() -> dict[str, float]:
    """Return the bets of this session by step: an option from 0, or the epsilon of a flag."""
    found: dict[str, float] = st.session_state.setdefault(BETS, {})
    return found


def moves() -> dict[str, int]:
    """Return how many moves were made by step."""
    found: dict[str, int] = st.session_state.setdefault(MOVES, {})
    return found


def follow_link(lesson: Lesson, step: int, name: str) -> None:
    """Take the bet and the moves of the step that a link names: at first, and on the way back."""
    if BETS in st.session_state and not state.travelled():
        return
    question, placed = lesson.asked(step), state.get("bet", "guide")
    bets().pop(name, None)
    moves().pop(name, None)
    if question is not None and placed:
        bet = placed if question.axis is not None else placed - 1
        if question.possible(bet):
            bets()[name] = bet
    made = TOLD.index(state.get("moved", "guide"))
    if made and (question is None or name in bets()):
        moves()[name] = min(made, len(lesson.moves(step)))


def write_link(lesson: Lesson, step: int, name: str) -> None:
    """Let the link say what was bet on and how far it is revealed."""
    question, bet = lesson.asked(step), bets().get(name)
    placed = 0 if bet is None else bet if question and question.axis is not None else bet + 1
    state.put("bet", placed, "guide")
    state.put("moved", TOLD[moves().get(name, 0)], "guide")


def chapters(lesson: Lesson) -> None:
    """Draw the list of lessons."""
    names = {one.number: f"{one.number} {one.title}" for one in course}

    def chosen() -> None:
        picked = st.session_state["guide.chapter"]
        if picked is not None:
            go(picked, 1)

    st.session_state["guide.chapter"] = lesson.number
    st.pills(
        "Lesson",
        list(names),
        format_func=names.__getitem__,
        key="guide.chapter",
        label_visibility="collapsed",
        on_change=state.on_change(chosen),
    )


def around(lesson: Lesson, step: int) -> None:
    """Draw back and next."""
    before = (lesson.number, step) if step > 0 else (lesson.number - 1, 0)
    if step == 0 and lesson.number > 1:
        before = (lesson.number - 1, len(course[lesson.number - 2].steps))
    after = (lesson.number, step + 2)
    if step + 1 == len(lesson.steps):
        after = (lesson.number + 1, 1)
    last = after[0] > len(course)
    box = st.container(horizontal=True, key="guide.around")
    box.button(
        "Back",
        key="guide.back",
        shortcut="B",
        disabled=before[0] < 1,
        width="stretch",
        on_click=state.on_change(lambda: go(*before)),
    )
    box.button(
        "Next lesson" if after[0] > lesson.number and not last else "Next",
        key="guide.next",
        shortcut="N",
        disabled=last,
        width="stretch",
        on_click=state.on_change(lambda: go(*after)),
    )


def ask(lesson: Lesson, step: int, name: str) -> tuple[float | None, int]:
    """Draw the question, the moves and the answer; return the bet and how many moves are made."""
    shown, question = lesson.steps[step], lesson.asked(step)
    bet, made = bets().get(name), moves().get(name, 0)
    if question is not None:
        st.markdown(f"**{question.ask}**")
        if bet is None:
            place_bet(question, name)
            st.caption("Place your bet: nothing is graded or sent.")
            return None, 0
        chosen = f"epsilon {numeral(bet)}" if question.axis else question.options[int(bet)]
        st.markdown(f"Your bet: {chosen}")
    if shown.move and made == 0:
        move_button(lesson.filled(shown.moved), name, 1)
        return bet, 0
    if question is not None and bet is not None:
        say = st.success if question.won(bet) else st.info
        say(question.says(bet), icon=":material/lightbulb:")
    if shown.why:
        st.markdown(lesson.filled(shown.why))
    if shown.extreme and made == 1:
        move_button("And to the extreme", name, 2)
    return bet, made


def move_button(label: str, name: str, to: int) -> None:
    """Draw the button of a step's next move."""

    def move() -> None:
        moves()[name] = to

    st.button(
        label,
        key="guide.move",
        shortcut="M",
        type="primary",
        width="stretch",
        on_click=state.on_change(move),
    )


def place_bet(question: Asked, name: str) -> None:
    """Draw what can be bet on: options, or a flag on the axis of epsilon."""

    def place(bet: float) -> None:
        bets()[name] = bet

    if question.axis is not None:
        low, high = question.axis
        steps = [float(f"{e:.2g}") for e in np.geomspace(low, high, FLAGS)]
        flag = st.select_slider(
            "Your flag: epsilon",
            steps,
            steps[FLAGS // 2],
            format_func=format_number,
            key=f"guide.flag.{name}",
        )
        st.button(
            f"Drop the flag at {format_number(flag)}",
            key="guide.bet.flag",
            shortcut="1",
            width="stretch",
            on_click=state.on_change(lambda: place(flag)),
        )
    for number, option in enumerate(question.options):
        st.button(
            option,
            key=f"guide.bet.{number}",
            shortcut=str(number + 1),
            width="stretch",
            on_click=state.on_change(partial(place, number)),
        )


def share_key(name: str) -> str:
    """Return the key of a step's slider of the precision."""
    return f"guide.share.{name}"


def as_moved(lesson: Lesson, step: int, name: str, moved: int) -> State:
    """Return what a step shows, a share that was moved by hand included."""
    shown = lesson.state(step, moved)
    share = st.session_state.get(share_key(name))
    if share is None or not moved:
        return shown
    features = shown.settings.allocation.split(":")[1]
    return with_share(shown, {"allocation": f"binary:{features}:{format_number(share)}"})


def share_slider(name: str, shown: State) -> None:
    """Draw the slider of the precision."""
    key = share_key(name)
    if key not in st.session_state:
        st.session_state[key] = float(shown.settings.allocation.rsplit(":", 1)[1])
    with st.container(key="guide-highlight"):
        st.select_slider(
            "Share of the precision that the favoured features get",
            SHARES,
            format_func=lambda value: f"{decimals(100 * value, 0)} %",
            key=key,
        )


def scene(lesson: Lesson, step: int, name: str, bet: float | None, moved: int) -> None:
    """Draw what the step is about."""
    at_step = lesson.steps[step]
    shown = as_moved(lesson, step, name, moved)
    unlocked = at_step.question is None or bet is not None
    highlight = at_step.control if unlocked else ""
    if at_step.scene == "board":
        if at_step.control == "precision" and unlocked and moved and at_step.move:
            share_slider(name, shown)

        def let_go(epsilon: float) -> None:
            if abs(epsilon / lesson.state(step, 1).settings.epsilon - 1) < 1e-9:
                moves()[name] = max(1, moves().get(name, 0))

        scenes.board(
            lesson,
            step,
            shown,
            moved=bool(moved),
            unlocked=unlocked,
            highlight=at_step.control == "epsilon",
            on_commit=let_go,
        )
    elif at_step.scene == "person":
        scenes.person_clouds(
            f"guide.person.{lesson.number}", shown, locked=not unlocked, highlight=highlight
        )
    elif at_step.scene == "people":
        scenes.needed(shown)
    else:
        scenes.leaking(shown)


def leave(lesson: Lesson, step: int, name: str, moved: int) -> None:
    """Offer the same settings on the page that takes them."""
    page = "Explore" if lesson.answers is None else "Decide"

    def take() -> None:
        if lesson.answers is None:
            state.take(as_moved(lesson, step, name, moved).settings)
        else:
            state.take(lesson.answers, "decide")
        st.session_state["guide.leave"] = page

    box = st.container(horizontal=True, key="guide.leaving")
    box.button(f"Open in {page}", key="guide.explore", shortcut="E", on_click=state.on_change(take))
    presenting.button(box)
    asked = st.session_state.pop("guide.leave", None)
    if asked is not None:
        st.switch_page(shell.page(asked), query_params={})


def draw() -> None:
    """Draw the step that the link names."""
    lesson, step = at()
    name = f"{lesson.number}.{step + 1}"
    follow_link(lesson, step, name)
    st.html(f"<style>{_STYLE}</style>")
    presenting.style()
    large = presenting.on()
    if not large:
        chapters(lesson)
    st.container(key="guide-title").title(lesson.filled(lesson.question), anchor=False)
    shares = [1, 1.5] if large else [1, 2.4]
    left, right = st.container(key="guide-body").columns(shares, gap="medium")
    with left:
        st.caption(f"Lesson {lesson.number}, step {step + 1} of {len(lesson.steps)}")
        st.header(lesson.steps[step].title, anchor=False)
        st.markdown(lesson.filled(lesson.steps[step].say))
        bet, moved = ask(lesson, step, name)
        around(lesson, step)
        leave(lesson, step, name, moved)
    with right:
        scene(lesson, step, name, bet, moved)
    st.caption(
        "Keys: 1 to 4 place a bet, M moves, N and B go on and back, "
        f"{'Escape leaves' if large else 'P presents'}. Every step has its link, bet included."
    )
    write_link(lesson, step, name)


_STYLE = """
.st-key-guide-highlight {
  outline: 3px solid var(--st-primary-color, #1f5f99); outline-offset: 6px; border-radius: 6px;
}
.st-key-guide-title h1 { font-size: 1.9rem; padding: 0 0 .4rem; }
.st-key-guide-body { margin-top: .5rem; }
.st-key-guide-body h2 { padding: 0; }
/* On a phone the list of lessons is one line and the picture stands above the question. */
@media (max-width: 640px) {
  .st-key-guide-chapter [role="radiogroup"], .st-key-guide-chapter [role="group"] {
    flex-wrap: nowrap; overflow-x: auto;
  }
  .st-key-guide-body [data-testid="stColumn"]:last-child { order: -1; }
  .st-key-guide-chapter button { flex: none; }
  .st-key-guide-body h2 { font-size: 1.1rem !important; }
  .st-key-guide-title h1 { font-size: 1.2rem; }
}
"""

draw()
