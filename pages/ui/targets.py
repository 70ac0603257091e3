"""The target section: the least epsilon, or people, that reaches a goal."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpviz.core.metrics import METRICS, chance_share
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import BoundedTable
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.phrases import bias_note
from dpviz.report.sentences.tradeoffs import all_alike, goal_words, predicted_lines, sentence
from dpviz.simulation.goal import Goal
from pages.ui import target_cache

GOALS = {"epsilon": "epsilon", "n": "number of people"}
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
    return Goal("captured_share", value)


def section(
    data_key: tuple[str, ...],
    rows: BoundedTable,
    settings: Settings,
    mechanisms: Sequence[Mechanism],
) -> None:
    """Answer the inverse question for a table."""
    st.header("How much privacy can I afford?", anchor="target")
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
        list(GOALS),
        format_func=GOALS.__getitem__,
        default="epsilon",
        required=True,
        key="target.what",
        persist_state="session",
    )
    goal, what = goal_in_force(rows, settings.k), what or "epsilon"
    say_predicted(data_key, rows, settings, mechanisms, goal, what)
    if all_alike(rows, settings.k):
        return
    if st.toggle(
        "Search",
        key="target.search",
        persist_state="session",
        help="Draws releases until the answer is clear.",
    ):
        found = target_cache.targets(data_key, rows, settings, goal, what)
        st.markdown("\n".join(f"- {sentence(item, settings.k)}" for item in found))
        st.caption(
            "Each interval is found by sequential tests at 95 % confidence for its mechanism "
            "alone, seeded by the prediction; the order of all of them carries no confidence of "
            "its own. Each claim is judged at its own answer; those that fail there come last and "
            "do not count."
        )


def say_predicted(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    mechanisms: Sequence[Mechanism],
    goal: Goal,
    what: str,
) -> None:
    """Say the least epsilon or n that the prediction finds, the least first."""
    alike = all_alike(rows, settings.k)
    if alike:
        st.markdown(f"Any {GOALS[what]} is enough: {alike}.")
        return
    found = target_cache.predicted_targets(data_key, rows, settings, goal, mechanisms, what)
    st.markdown(
        f"Predicted without a draw{bias_note(rows.d)}, least {GOALS[what]} "
        f"{goal_words(goal, settings.k)}:\n\n"
        + "\n".join(f"- {line}" for line in predicted_lines(found, what))
    )
