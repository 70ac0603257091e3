"""What a release lets an attacker conclude about one person."""

from __future__ import annotations

import math
from pathlib import Path

import streamlit as st

from dpviz.auditing import attack, exhibits
from dpviz.core.problem import Budget, Problem
from dpviz.lessons import person
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.report.figures import person as person_figure
from dpviz.report.figures.claims import attack_figure, posterior_figure
from dpviz.report.sentences import claims as claims_words
from dpviz.report.sentences.claims import sentence
from dpviz.report.sentences.phrases import ASKED, capital, risk_words
from pages.ui import parts
from pages.ui.ask import ask

_KEYS = (Path(__file__).parent / "keys.js").read_text(encoding="utf-8")
_PERSON = st.components.v2.component(
    "dpviz_person",
    html=person_figure.MARKUP,
    css=person_figure.style(),
    js=f"{_KEYS}\n{person_figure.component_script('passKeys')}",
)


def attacker(problem: Problem, budget: Budget) -> None:
    """Draw what a release lets an attacker conclude about one row, or one person."""
    neighbours = problem.relation, problem.unit
    st.markdown(
        "The attacker knows all other rows and both candidates for the last row, and guesses "
        f"{ASKED[neighbours]}."
    )
    left, right = st.columns(2)
    key = parts.one_mechanism(
        left,
        "Mechanism",
        default=attack.exhibited(problem, budget).key,
        key="claims.attack.mechanism",
    )
    percents = right.slider(
        "Attacker's belief before the release, %",
        1,
        99,
        50,
        key="claims.attack.prior",
        persist_state="session",
    )
    mechanism, prior = parse_variant(key), percents / 100
    reason = mechanism.why_not(problem, budget)
    if reason is not None:
        st.info(f"{mechanism.label} cannot run here: {reason}.", icon=":material/info:")
        return
    loss = mechanism.spent(problem, budget)
    bound = attack.attacker_curve(mechanism, problem, budget)
    table = attack.attack_table(bound, prior)
    if loss is not None and math.isfinite(loss.epsilon):
        risk = risk_words(mechanism.label, loss, budget.epsilon, *neighbours)
        st.markdown(f"**{capital(risk)}.**")
    st.markdown(sentence(mechanism.claim(problem, budget), loss, prior, *neighbours))
    first, second = st.columns(2)
    caption = claims_words.attack_caption(bound)
    figure = attack_figure(bound, mechanism, mechanism.label)
    parts.chart(figure, "claims.attack", "Trade-off of a membership test", caption, place=first)
    caption = claims_words.posterior_caption(table, prior, bound.exact)
    figure = posterior_figure(table, prior, mechanism, attack.limit_of(prior, loss))
    parts.chart(figure, "claims.posterior", "Attacker's belief after alarm", caption, place=second)
    parts.numbers("claims.attack", table)


def one_person(budget: Budget, seed: int) -> None:
    """Draw a row that visitors can drag, and what releases reveal about it."""
    st.markdown(
        "Each cloud shows releases of one table: with the person's row, or with that row set to "
        "zero. The attacker knows all other rows."
    )
    variants = tuple(
        parse_variant(key)
        for key in person.candidates()
        if all_mechanisms()[key].info.featured or all_mechanisms()[key].info.family == "iterative"
    )
    delta = budget.delta or exhibits.DELTA
    options = {"mechanisms": variants, "delta": delta, "epsilon": budget.epsilon, "seed": seed}
    payload = ask(person.person_payload, options)
    _PERSON(key="claims.person", data={**payload, "locked": False, "highlight": ""})
