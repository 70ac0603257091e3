"""Every promise on one of three shelves; what stands on them opens in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.auditing import exhibits
from dpviz.core.number_text import thousands
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.mechanisms import all_mechanisms
from dpviz.report.figures.shelves import cone_picture, shelves_html, turn_picture
from dpviz.report.sentences import phrases
from pages.ui import parts, state
from pages.ui.ask import ask

_HERE = Path(__file__).parent
_SHELVES = st.components.v2.component(
    "dpviz_shelves",
    css=(_HERE / "shelves.css").read_text(encoding="utf-8"),
    js=(_HERE / "shelves.js").read_text(encoding="utf-8"),
    isolate_styles=False,  # what copies a command listens to the whole page
)


def shelves(claims: pd.DataFrame, problem: Problem, budget: Budget, seed: int) -> None:
    """Draw the three shelves.

    Parameters
    ----------
    claims : DataFrame
        `dpviz.auditing.table.claims_now`.
    problem : Problem
    budget : Budget
    seed : int
    """
    people = {Relation.REPLACE: "One row replaced", Relation.ZERO_OUT: "One row zeroed"}
    st.caption(
        f"{people[problem.relation]}, {phrases.budget_words(budget)}, {thousands(problem.n)} "
        f"people. A click shows the evidence."
    )
    cone, direction = exhibits.moving_cone(), exhibits.bare_directions()
    seen = {"epsilon": budget.epsilon, "seed": seed}
    pictures = {
        cone.key: cone_picture(
            ask(exhibits.cone_table, seen), exhibits.impossible_share(budget.epsilon)
        ),
        direction.key: turn_picture(ask(exhibits.turning_table, seen)),
    }
    _SHELVES(
        key="claims.shelves",
        data=shelves_html(claims, pictures, _opens(budget)),
        on_open_change=_opened,
    )
    for place, (words, told) in zip(st.columns(3), _BESIDE.items(), strict=True):
        key = f"claims.open.{told.get('exhibit', told['part'])}"
        place.button(words, key=key, on_click=_open, args=(told,), width="stretch")
    parts.numbers("claims", claims)


_BESIDE = {
    "Drag one person": {"part": "person"},
    "Found in public code": {"part": "refutations", "exhibit": "code"},
    "What no promise covers": {"part": "exploring"},
}
"""What belongs to no single card."""


def _opens(budget: Budget) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """Return what the evidence of each mechanism leads to."""
    proofs = {
        exhibits.moving_cone().key: ("How often, and why", "support"),
        exhibits.bare_directions().key: ("The table of three", "direction"),
        exhibits.drawn_by_a_chain().key: ("How near the draws come", "chain"),
    }
    deltas = ask(exhibits.delta_table, {"delta": budget.delta or exhibits.DELTA})
    understated = set(deltas["mechanism"])
    proofs |= {
        key: ("Its true delta", "delta")
        for key, cls in all_mechanisms().items()
        if cls.info.label in understated
    }
    found = {}
    for key in all_mechanisms():
        leads = []
        if key in proofs:
            words, exhibit = proofs[key]
            leads.append((words, {"part": "refutations", "exhibit": exhibit}))
        leads.append(("Audit it now", {"part": "audit", "mechanism": key}))
        leads.append(("What an attacker learns", {"part": "attacker", "mechanism": key}))
        found[key] = leads
    return found


def _opened() -> None:
    told = st.session_state["claims.shelves"].open
    if told:
        _open(dict(told))


def _open(told: dict[str, Any]) -> None:
    """Open what a card or a button leads to; nothing else is taken from the browser."""
    state.put_text("part", str(told["part"]), "claims")
    if "exhibit" in told:
        state.put_text("exhibit", str(told["exhibit"]), "claims")
    key = told.get("mechanism")
    if key in all_mechanisms():
        st.session_state[f"claims.{'audit' if told['part'] == 'audit' else 'attack'}.mechanism"] = (
            key
        )


def back() -> None:
    """Draw the way back to the shelves."""
    st.button(
        "All promises",
        key="claims.back",
        icon=":material/arrow_back:",
        on_click=state.on_change(lambda: state.put("part", "verdicts", "claims")),
    )
