"""The target section: the least epsilon, or number of people, for a goal."""

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
    "recovery": "Structure to recover: 0 % is chance, 100 % is exact PCA",
    "captured_share": "Share to keep of the variance that the components can explain, %",
}
FIRST_SHARE = 90  # The first goal that the page offers is 90 %.


def goal_in_force(rows: Measured, k: int) -> Goal:
    """Return the goal of the section's slider, or its first value before it is drawn."""
    measure = st.session_state.get("target.measure") or "recovery"
    value = st.session_state.get(f"target.{measure}", FIRST_SHARE) / 100
    if measure == "recovery":
        return Goal.of_recovery(value, chance_share(rows.reference, k))
    return Goal("captured_share", value, SURE)


def section(about: Current, mechanisms: Sequence[Mechanism]) -> tuple[str, list[Predicted]]:
    """Search the least value for a table; return the headline, and each answer."""
    st.header("How much privacy can you afford?", anchor="target")
    first, second, third = st.columns([1, 2, 1])
    measure = first.segmented_control(
        "Measure",
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
        "Find the smallest value of",
        list(NOUNS),
        format_func=NOUNS.__getitem__,
        default="epsilon",
        required=True,
        key="target.what",
        persist_state="session",
    )
    goal, what = goal_in_force(about.prepared, about.settings.k), what or "epsilon"
    predictions = say_predicted(about, mechanisms, goal, what)
    st.caption(
        "Each value is approximate. A value is the smallest at which 95 % of simulated releases "
        "reach the target. Values assume an exact preparation (idealised). A mechanism's claim is "
        "judged at the mechanism's own value. `dpviz decide least` searches until the answer is "
        "sure."
    )
    return least_headline(predictions, goal, what), predictions if what == "epsilon" else []


def say_predicted(
    about: Current, mechanisms: Sequence[Mechanism], goal: Goal, what: str
) -> list[Predicted]:
    """Draw the least predicted epsilon or n, in one row for each mechanism, and return them."""
    rows, settings = about.prepared, about.settings
    alike = all_alike(rows, settings.k)
    if alike:
        st.markdown(f"Any {NOUNS[what]} is enough: {alike}.")
        return []
    with st.container():
        predictions = [
            ask(
                about_goal,
                {"settings": settings, "mechanism": one, "goal": goal, "what": what},
                about,
                saying=f"Searching: {one.label}, {NOUNS[what]}",
            )
            for one in mechanisms
        ]
    words = f"Predicted smallest {NOUNS[what]} {goal_words(goal, settings.k)}"
    st.markdown(f"**{words}**")
    st.html(least_html(predictions, what))
    return predictions
