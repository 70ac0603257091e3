"""An audit of any mechanism, run when a visitor requests it."""

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
    """Offer an audit of any mechanism, and show the last audit."""
    st.markdown(
        "An audit releases two neighbouring synthetic tables many times. Half of the releases "
        "choose the event that distinguishes the tables best. The other half count how often this "
        "event occurs."
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
    claim = attack.audited_budget(mechanism, budget.epsilon, budget)
    options = {
        "mechanism": key,
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "dimension": d,
        "k": min(problem.k, d - 1),
        "relation": str(problem.relation),
        "rows_a_person": problem.rows_a_person,
        "seed": seed,
        "trials": trials,
    }

    def run() -> None:
        st.session_state["claims.audited"] = options

    left, right = st.columns([1, 4])
    left.button(
        "Run the audit",
        key="claims.audit.run",
        icon=":material/gavel:",
        type="primary",
        on_click=state.on_change(run),
    )
    with right:
        copyable(audit_command(mechanism, problem, claim, d=d, trials=trials, seed=seed))
    if st.session_state.get("claims.audited") != options:
        st.caption(
            "An audit takes a second or two with 5,000 releases, and up to a minute with 40,000."
        )
        return
    with guard():
        _show(mechanism, options)


def _show(mechanism: Mechanism, options: dict[str, Any]) -> None:
    """Show the findings of an audit, and its attack."""
    audit_here = ask(audit, options, saying="Simulating releases of two tables").audit
    words, picture = st.columns(2)
    words.markdown(f"**{claims_words.audit_verdict(audit_here)}**")
    words.markdown(audit_here.evidence)
    words.caption(
        "An audit gives lower bounds from one attack, so a mechanism whose loss is twice its claim "
        "can pass. An audit can refute a claim but never prove one. Claims rest on proofs and on "
        "tests of the noise's distribution."
    )
    attack_run = attack.attack_seen(audit_here)
    if audit_here.claim is None:
        return
    claim = attack.claimed_curve(audit_here.claim)
    caption = (
        "Solid grey shows misses against false alarms of the audit's attack, with a 95 % band for "
        "the whole curve. The dotted curve shows what the claim allows. An attack below the dotted "
        "curve breaks the claim."
    )
    with picture:
        figure = attack_figure(claim, mechanism, "the claim", attack_run)
        against = "Trade-off of the attack against the claim"
        parts.chart(figure, "claims.audit.curve", against, caption)
        parts.numbers("claims.audit", attack.attack_seen_table(attack_run))
