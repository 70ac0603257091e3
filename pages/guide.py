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

from dpviz.core.number_text import decimals
from dpviz.core.params import format_number
from dpviz.lessons import Lesson, State, lessons
from dpviz.lessons.scene import with_share
from pages.ui import presenting, scenes, state

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
BETS, MOVES = "guide.bets", "guide.moves"

course = lessons()


def at() -> tuple[Lesson, int]:
    """Return the lesson and the step, from 0, that the link names."""
    lesson = course[min(state.get("lesson", "guide"), len(course)) - 1]
    return lesson, min(state.get("step", "guide"), len(lesson.steps)) - 1


def go(number: int, step: int) -> None:
    """Go to a step of a lesson; both count from 1."""
    state.put("lesson", number, "guide")
    state.put("step", step, "guide")


def bets() -> dict[str, int]:
    """Return the bets of this session by step, from 0."""
    found: dict[str, int] = st.session_state.setdefault(BETS, {})
    return found


def moves() -> set[str]:
    """Return the steps whose move was made."""
    found: set[str] = st.session_state.setdefault(MOVES, set())
    return found


def follow_link(lesson: Lesson, step: int, name: str) -> None:
    """Take the bet and the move of the step that a link names: at first, and on the way back."""
    if BETS in st.session_state and not state.travelled():
        return
    question, placed = lesson.steps[step].question, state.get("bet", "guide")
    bets().pop(name, None)
    moves().discard(name)
    if question is not None and 1 <= placed <= len(question.options):
        bets()[name] = placed - 1
    if state.get("moved", "guide") == "yes" and (question is None or name in bets()):
        moves().add(name)


def write_link(name: str) -> None:
    """Let the link say what was bet on and whether it is revealed."""
    state.put("bet", bets().get(name, -1) + 1, "guide")
    state.put("moved", "yes" if name in moves() else "no", "guide")


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


def ask(lesson: Lesson, step: int, name: str) -> tuple[int | None, bool]:
    """Draw the question, the move and the answer; return the bet and whether the move is made."""
    shown = lesson.steps[step]
    question = shown.question
    bet = bets().get(name)
    if question is not None:
        st.markdown(f"**{lesson.filled(question.ask)}**")
        if bet is None:
            for number, option in enumerate(question.options):

                def place(number: int = number) -> None:
                    bets()[name] = number

                st.button(
                    lesson.filled(option),
                    key=f"guide.bet.{number}",
                    shortcut=str(number + 1),
                    width="stretch",
                    on_click=state.on_change(place),
                )
            st.caption("Place your bet: nothing is graded or sent.")
            return None, False
        st.markdown(f"Your bet: {lesson.filled(question.options[bet])}")
    moved = name in moves() or not shown.move
    if not moved:

        def move() -> None:
            moves().add(name)

        st.button(
            lesson.filled(shown.moved),
            key="guide.move",
            shortcut="M",
            type="primary",
            width="stretch",
            on_click=state.on_change(move),
        )
        return bet, False
    if question is not None and bet is not None:
        say = st.success if bet == question.right else st.info
        say(lesson.filled(question.says(bet)), icon=":material/lightbulb:")
    if shown.why:
        st.markdown(lesson.filled(shown.why))
    return bet, True


def share_key(name: str) -> str:
    """Return the key of a step's slider of the precision."""
    return f"guide.share.{name}"


def as_moved(lesson: Lesson, step: int, name: str, moved: bool) -> State:
    """Return what a step shows, a share that was moved by hand included."""
    shown = lesson.state(step, revealed=moved)
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


def scene(lesson: Lesson, step: int, name: str, bet: int | None, moved: bool) -> None:
    """Draw what the step is about."""
    at_step = lesson.steps[step]
    shown = as_moved(lesson, step, name, moved)
    unlocked = at_step.question is None or bet is not None
    highlight = at_step.control if unlocked else ""
    if at_step.scene == "board":
        if at_step.control == "precision" and unlocked and moved and at_step.move:
            share_slider(name, shown)

        def let_go(epsilon: float) -> None:
            if abs(epsilon / lesson.state(step, True).settings.epsilon - 1) < 1e-9:
                moves().add(name)

        scenes.board(
            lesson,
            step,
            shown,
            moved=moved,
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


def leave(lesson: Lesson, step: int, name: str, moved: bool) -> None:
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
    write_link(name)


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
