"""Decide: a stakeholder's questions, one at a time, and one card."""

PAGE = {
    "title": "Decide",
    "icon": ":material/approval_delegation:",
    "place": 60,
    "term": "both-worlds",
    "unread": ("epsilon", "precision", "directions", "mechanisms"),
}

import streamlit as st

from pages.ui import shell

current = shell.through_entry()

from collections.abc import Callable
from dataclasses import replace

from dpviz.core.number_text import numeral, percent
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.lessons import words
from dpviz.lessons.card import card_html, card_page, pictures
from dpviz.lessons.decide import Card
from dpviz.lessons.questions import LEVELS, STAGES, Answers
from dpviz.lessons.risk import risk
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.figures.handout import report_page
from dpviz.simulation.compare import compare
from pages.ui import addresses, controls, deciding, state, take
from pages.ui.guard import guard

VIEW = "decide"


# What the heading asks is not asked again above the answers, but for who cannot see.
def question(name: str) -> None:
    """Draw the answers to what the heading asks."""
    st.caption(params_of(Answers)[name].help)
    controls.setting(name, VIEW, row=True)


def go(stage: str) -> Callable[[], None]:
    """Return a callback that shows a question."""
    return state.on_change(lambda: state.put("shown", stage, VIEW))


def steps(answers: Answers) -> None:
    """Draw back and next."""
    place = STAGES.index(answers.shown)
    left, right, _ = st.columns([1, 1, 3])
    left.button(
        "Back",
        key="decide.back",
        disabled=place == 0,
        width="stretch",
        on_click=go(STAGES[max(place - 1, 0)]),
    )
    if place + 1 < len(STAGES):
        last = place + 2 == len(STAGES)
        right.button(
            "Show the card" if last else "Next",
            key="decide.next",
            type="primary",
            width="stretch",
            on_click=go(STAGES[place + 1]),
        )


def ask_about(measured: Measured | None) -> None:
    """Ask what it is about."""
    question("source")
    if state.get("source", VIEW) == "plan":
        left, middle, right = st.columns(3)
        with left:
            controls.setting("people", VIEW)
        with middle:
            controls.setting("features", VIEW)
        with right:
            controls.setting("shape", VIEW)
    elif measured is not None:
        st.markdown(
            f"**{measured.name}**: {measured.n:,} people, {measured.d} features. Choose another "
            "table or upload a file where tables are chosen."
        )


def ask_survive(measured: Measured, settings: Settings, key: tuple[str, ...]) -> None:
    """Ask how much must survive, with the picture that each answer gives."""
    question("survive")
    shown = {
        f"{level} %": deciding.picture(key, measured, settings, int(level) / 100)
        for level in LEVELS
    }
    shown["exact"] = deciding.picture(key, measured, settings, 1.0)
    ribbon = measured.table.ribbon if isinstance(measured, Prepared) else None
    st.html(pictures(shown, ribbon=ribbon))
    whose = "Rows of the table" if measured.has_rows else "Made-up points"
    st.caption(
        f"{whose} along directions of about that recovery: a look at what it means, and no release."
    )


def refuse(card: Card) -> None:
    """Say that there is no such release, and offer what there is instead."""
    st.html(card_html(card, None, "", ""))
    st.button(
        "Points drawn from the release instead",
        key="decide.instead",
        type="primary",
        on_click=state.on_change(lambda: state.put("hand_out", "drawn", VIEW)),
    )


def show(card: Card, answers: Answers) -> None:
    """Draw the card, its two sliders and what can be taken along."""
    if answers.shows_rows:
        refuse(card)
        return
    best = card.best
    seen = None if best is None else risk(card, best)
    command = deciding.command(card)
    link = addresses.to_decide(current.settings, card.settings, answers)
    st.html(card_html(card, seen, command, link))
    left, right = st.columns(2)
    with left:
        controls.setting("prior", VIEW)
    with right:
        controls.setting("releases", VIEW)

    working = best is not None and take.with_the_truth(card.measured)

    def report() -> str:
        found = compare(card.measured, card.settings)
        shown = card_html(card, seen, command, link)
        return report_page(found, command=command, link=link, card=shown, working_view=working)

    with st.container(horizontal=True, key="decide.take"):
        st.download_button(
            "This card (HTML, to print or mail)",
            lambda: card_page(card, seen, command, link),
            file_name="dpviz-decision.html",
            mime="text/html",
            icon=":material/download:",
            on_click="ignore",
            key="decide.download",
        )
        if best is not None:
            st.download_button(
                "Report with this card (HTML, to print)",
                report,
                file_name="dpviz-report.html",
                mime="text/html",
                icon=":material/download:",
                on_click="ignore",
                key="decide.report",
            )
    if card.left_out:
        with st.expander("Not offered, and why"):
            st.markdown(
                "\n".join(f"- {words.why_not(o.mechanism, o.reason)}" for o in card.left_out)
            )


answers = state.view(VIEW)
assert isinstance(answers, Answers)
with guard():
    measured, settings, key = deciding.about(current.settings, current.prepared, current.data_key)
    titles = {
        "about": "What is it about?",
        "survive": "How much of the structure must survive?",
        "delta": "Is a delta acceptable?",
        "hand_out": "Who may see what?",
        "card": "Your answer",
    }
    place = STAGES.index(answers.shown)
    st.title(titles[answers.shown], anchor=False)
    if place + 1 < len(STAGES):
        st.caption(f"Question {place + 1} of {len(STAGES) - 1}")
    if answers.shown == "about" or measured is None:
        ask_about(measured)
    elif answers.shown == "survive":
        ask_survive(measured, settings, key)
    elif answers.shown == "delta":
        question("delta_allowed")
        delta = measured.budget(replace(settings, delta=None)).delta
        rare = percent(2 * delta)
        rare = rare if rare.startswith("less") else f"at most {rare}"
        st.markdown(
            f"With a delta of {numeral(delta, 1)} odds may, in {rare} of releases, grow by more "
            "than twice what epsilon says; in return a smaller epsilon is enough."
        )
    elif answers.shown == "hand_out":
        controls.setting("hand_out", VIEW)
        st.markdown(
            "Raw rows stay with whoever computes the release. A picture of the people would hand "
            "them out: no promise covers that."
        )
    else:
        if settings.paid_shares:
            st.caption(
                f"Every epsilon pays for the preparation too ({', '.join(settings.paid_shares)}), "
                "drawn anew in each release tried. The bar says how long that takes; Stop keeps "
                "what was found."
            )
        found = deciding.card(key, measured, settings, answers)
        if found is not None:
            show(found, answers)
    steps(answers)
