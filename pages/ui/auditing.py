"""An audit of any mechanism, run when a visitor asks for it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.auditing import DEFAULT_D, attack, exhibits
from dpviz.auditing.table import audit_command
from dpviz.core.problem import Budget, Problem
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.report.figures.claims import attack_figure
from dpviz.report.sentences import claims as claims_words
from dpviz.studies.audit import audit
from pages.ui import parts, state
from pages.ui.ask import ask
from pages.ui.copying import copyable
from pages.ui.guard import guard

TRIALS = (1_000, 2_000, 5_000, 10_000, 40_000)


def draw(problem: Problem, budget: Budget, seed: int) -> None:
    """Offer an audit of any mechanism, and show the last one."""
    st.markdown(
        "An audit releases two neighbouring made-up tables many times, picks the event that tells "
        "them apart best on half of the draws, and counts it on the other half."
    )
    first, second, third = st.columns(3)
    key = parts.one_mechanism(
        first, "Mechanism", default=exhibits.moving_cone().key, key="claims.audit.mechanism"
    )
    d = second.slider(
        "Features d", 2, 20, DEFAULT_D, key="claims.audit.dimension", persist_state="session"
    )
    trials = parts.choice(
        third, "Releases of each table in each half", TRIALS, "claims.audit.trials",
        lambda count: f"{count:,}", first=5_000,
    )  # fmt: skip
    mechanism = parse_variant(key)
    asked = attack.audited_budget(mechanism, budget.epsilon, budget)
    wanted = {
        "mechanism": key,
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "dimension": d,
        "k": min(problem.k, d - 1),
        "relation": str(problem.relation),
        "rows_a_person": problem.rows_a_person,
        "seed": seed,
        "trials": trials,
    }

    def run() -> None:
        st.session_state["claims.audited"] = wanted

    left, right = st.columns([1, 4])
    left.button(
        "Run the audit",
        key="claims.audit.run",
        icon=":material/gavel:",
        type="primary",
        on_click=state.on_change(run),
    )
    with right:
        copyable(audit_command(mechanism, problem, asked, d=d, trials=trials, seed=seed))
    if st.session_state.get("claims.audited") != wanted:
        st.caption("Takes a second or two with 5,000 releases, and up to a minute with the most.")
        return
    with guard():
        _found(mechanism, wanted)


def _found(mechanism: Mechanism, wanted: dict[str, Any]) -> None:
    """Show what an audit found, and the attack it ran."""
    found = ask(audit, wanted, saying="Releasing two made-up tables again and again").audit
    said, seen = st.columns(2)
    said.markdown(f"**{claims_words.audit_verdict(found)}**")
    said.markdown(found.evidence)
    said.caption(
        "What an audit cannot see: it gives lower bounds from one attack, so a mechanism that "
        "spends twice its claim can pass. It can refute a claim and never prove one; proofs and "
        "tests of the noise's distribution do the rest."
    )
    measured = attack.attack_seen(found)
    if found.claim is None:
        return
    claimed = attack.claimed_curve(found.claim)
    caption = (
        "Solid grey: misses against false alarms of the attack that the audit ran, with a 95 % "
        "band for the whole curve. Dotted: what the claim allows; an attack below it breaks the "
        "claim."
    )
    with seen:
        figure = attack_figure(claimed, mechanism, "the claim", measured)
        against = "Trade-off of the attack against the claim"
        parts.chart(figure, "claims.audit.curve", against, caption)
        parts.numbers("claims.audit", attack.attack_seen_table(measured))
