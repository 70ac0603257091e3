"""The target section: the least epsilon, or people, that reaches a goal."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpviz.core.metrics import METRICS, chance_share
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.tradeoffs import (
    NOUNS,
    all_alike,
    goal_words,
    least_headline,
    least_html,
)
from dpviz.simulation.goal import SURE, Goal
from dpviz.simulation.least import Predicted
from dpviz.simulation.least import about as about_goal
from pages.ui.ask import ask
from pages.ui.loading import Current

MEASURES = {"recovery": "recovery", "captured_share": "captured share"}
ASKED = {
    "recovery": "Recover this much, from 0 (chance) to 100 % (exact PCA)",
    "captured_share": "Keep this share of what k components can explain, %",
}
FIRST_SHARE = 90  # per cent


def goal_in_force(rows: Measured, k: int) -> Goal:
    """Return the goal that the section's slider states, or states when it is first drawn."""
    measure = st.session_state.get("target.measure") or "recovery"
    value = st.session_state.get(f"target.{measure}", FIRST_SHARE) / 100
    if measure == "recovery":
        return Goal.of_recovery(value, chance_share(rows.reference, k))
    return Goal("captured_share", value, SURE)


def section(about: Current, mechanisms: Sequence[Mechanism]) -> tuple[str, list[Predicted]]:
    """Answer the inverse question for a table; return the headline, and each answer."""
    st.header("How much privacy can you afford?", anchor="target")
    first, second, third = st.columns([1, 2, 1])
    measure = first.segmented_control(
        "Asked in",
        list(MEASURES),
        format_func=MEASURES.__getitem__,
        default="recovery",
        required=True,
        key="target.measure",
        persist_state="session",
        help=f"{METRICS['recovery'].help} {METRICS['captured_share'].help}",
    )
    second.slider(
        ASKED[measure or "recovery"],
        20,
        99,
        FIRST_SHARE,
        key=f"target.{measure or 'recovery'}",
        persist_state="session",
    )
    what = third.segmented_control(
        "Find the least",
        list(NOUNS),
        format_func=NOUNS.__getitem__,
        default="epsilon",
        required=True,
        key="target.what",
        persist_state="session",
    )
    goal, what = goal_in_force(about.prepared, about.settings.k), what or "epsilon"
    found = say_predicted(about, mechanisms, goal, what)
    st.caption(
        "About: each is the least value at which 95 of 100 simulated releases do, with the exact "
        "preparation that is set here (idealised), and each claim is judged at its own answer; "
        "`dpviz decide least` searches until the answer is sure."
    )
    return least_headline(found, goal, what), found if what == "epsilon" else []


def say_predicted(
    about: Current, mechanisms: Sequence[Mechanism], goal: Goal, what: str
) -> list[Predicted]:
    """Draw the least epsilon or n that the prediction finds, a row each, and return them."""
    rows, settings = about.prepared, about.settings
    alike = all_alike(rows, settings.k)
    if alike:
        st.markdown(f"Any {NOUNS[what]} is enough: {alike}.")
        return []
    with st.container():
        found = [
            ask(
                about_goal,
                {"settings": settings, "mechanism": one, "goal": goal, "what": what},
                about,
                saying=f"Searching: {one.label}, {NOUNS[what]}",
            )
            for one in mechanisms
        ]
    words = f"Predicted, least {NOUNS[what]} {goal_words(goal, settings.k)}"
    st.markdown(f"**{words}**")
    st.html(least_html(found, what))
    return found
