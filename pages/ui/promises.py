"""Every promise in one of three groups; the evidence opens in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.auditing import exhibits
from dpviz.core.number_text import thousands
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Verdict
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
    isolate_styles=False,  # The copy button's code listens to the whole page.
)


def shelves(claims: pd.DataFrame, problem: Problem, budget: Budget, seed: int) -> None:
    """Draw the three groups.

    Parameters
    ----------
    claims : DataFrame
        `dpviz.auditing.table.claims_now`.
    problem : Problem
    budget : Budget
    seed : int
    """
    people = {Relation.REPLACE: "One row replaced", Relation.ZERO_OUT: "One row set to zero"}
    st.caption(
        f"{people[problem.relation]}, {phrases.budget_words(budget)}, "
        f"{thousands(problem.n)} people."
    )
    cone, direction = exhibits.moving_cone(), exhibits.bare_directions()
    options = {"epsilon": budget.epsilon, "seed": seed}
    pictures = {
        cone.key: cone_picture(
            ask(exhibits.cone_table, options), exhibits.impossible_share(budget.epsilon)
        ),
        direction.key: turn_picture(ask(exhibits.turning_table, options)),
    }
    _SHELVES(
        key="claims.shelves",
        data=shelves_html(claims, pictures, _opens(budget)),
        on_open_change=_on_open,
    )
    for place, (words, view) in zip(st.columns(3), _BESIDE.items(), strict=True):
        key = f"claims.open.{view.get('exhibit', view['part'])}"
        place.button(words, key=key, on_click=_open, args=(view,), width="stretch")
    parts.numbers("claims", claims)


_BESIDE = {
    "Move one person's row": {"part": "person"},
    "Errors found in public code": {"part": "refutations", "exhibit": "code"},
    "What no promise covers": {"part": "exploring"},
}
"""Buttons that belong to no single mechanism."""


def _opens(budget: Budget) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """Return the buttons below each mechanism's evidence."""
    proofs = {
        exhibits.moving_cone().key: ("How often releases betray a table", "support"),
        exhibits.bare_directions().key: ("Example with three rows", "direction"),
        exhibits.drawn_by_a_chain().key: ("How exact the sampler is", "chain"),
    }
    deltas = ask(exhibits.delta_table, {"delta": budget.delta or exhibits.DELTA})
    wrong_deltas = set(deltas["mechanism"])
    proofs |= {
        key: ("The mechanism's true delta", "delta")
        for key, cls in all_mechanisms().items()
        if cls.info.label in wrong_deltas
    }
    by_key = {}
    for key in all_mechanisms():
        leads = []
        if key in proofs:
            words, exhibit = proofs[key]
            leads.append((words, {"part": "refutations", "exhibit": exhibit}))
        leads.append(("Audit this mechanism", {"part": "audit", "mechanism": key}))
        leads.append(("What an attacker learns", {"part": "attacker", "mechanism": key}))
        by_key[key] = leads
    return by_key


def _on_open() -> None:
    view = st.session_state["claims.shelves"].open
    if view:
        _open(dict(view))


def _open(view: dict[str, Any]) -> None:
    """Open the part that a card or a button names; ignore all other messages of the browser."""
    state.put_text("part", str(view["part"]), "claims")
    if "exhibit" in view:
        state.put_text("exhibit", str(view["exhibit"]), "claims")
    key = view.get("mechanism")
    if key in all_mechanisms():
        st.session_state[f"claims.{'audit' if view['part'] == 'audit' else 'attack'}.mechanism"] = (
            key
        )


def first_step(claims: pd.DataFrame, budget: Budget) -> tuple[str, Callable[[], None]]:
    """Return a button's words and act: the evidence against a promise that fails, or an audit."""
    failing = [row for row in claims.to_dict("records") if row["verdict"] == Verdict.REFUTED]
    if not failing:
        return "Audit a mechanism", lambda: _open({"part": "audit"})
    view = _opens(budget)[failing[0]["key"]][0][1]
    return f"See why {failing[0]['mechanism']} fails", lambda: _open(view)


BACK = "All promises", state.on_change(lambda: state.put("part", "verdicts", "claims"))
"""The words and the act of the button that leads back to the three groups."""
