"""Decide's search on a page: it says how far it is, and ends when nobody wants it any more.

What was found stays in the session, mechanism by mechanism: a search that was stopped goes on where
it was.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import streamlit as st

from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.lessons import ceiling, words
from dpviz.lessons.decide import LOOK, Card, Found, LeftOut, NextStep, Offer, card_of, next_step
from dpviz.lessons.questions import Answers, plan_text
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.load import load_measured
from dpviz.preparation.prepared import Measured
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.predicting import SchemaRows
from dpviz.report.sentences.phrases import duration
from dpviz.simulation.picture.account import SHARE
from pages.ui import limits, schema_editor, state

STOPPED, HELD = "decide.stopped", "decide.offers"
_MOST_HELD = 20

Question = tuple[Measured | None, Settings, tuple[str, ...]]


def answered() -> Answers:
    """Return the session's answers."""
    found = state.view("decide")
    assert isinstance(found, Answers)
    return found


def about(settings: Settings, prepared: Prepared | None, data_key: tuple[str, ...]) -> Question:
    """Return what the answers are about, its settings, and what names it in a cache.

    Parameters
    ----------
    settings, prepared, data_key
        The dashboard's own table; None while there is none.
    """
    answers = answered()
    if answers.source == "plan":
        chosen = Settings(
            table=plan_text(answers),
            k=min(settings.k, answers.features - 1),
            relation=settings.relation,
            seed=settings.seed,
        )
        measured, key = load_measured(chosen), ("plan", chosen.table)
        if answers.delta_allowed == "no":
            chosen = replace(chosen, delta=0.0)
        return measured, chosen, key
    delta = None if settings.delta == 0 else settings.delta
    delta = 0.0 if answers.delta_allowed == "no" else delta
    chosen = replace(settings, delta=delta, allocation="uniform", directions="features")
    return prepared, chosen, data_key


def command(card: Card) -> str:
    """Return the command that computes the card's numbers again."""
    table = card.settings.table
    return card.settings.command("YOUR_FILE.csv" if table == state.UPLOAD else table)


def _own(settings: Settings) -> Settings:
    """Return settings without what the answer does not depend on."""
    return replace(settings, epsilon=1.0, mechanisms=(), trials=20)


PROSPECT = "decide.prospect"


def prospect(settings: Settings, delta: float) -> ceiling.Prospect | None:
    """Return what releases of the chosen table would keep; None where it has no rows.

    It is kept for the table and schema that were asked about last.
    """
    if answered().source == "plan":
        return None
    table = schema_editor.given()
    if table is None:
        return None
    schema = schema_editor.known(table)
    options = ReleaseOptions(
        rows="unit", scale="limits", k=settings.k, delta=delta, relation=settings.relation,
        picture=SHARE if answered().pictured == "yes" else 0.0,
    )  # fmt: skip
    token = (schema_editor.named(table), schema.digest, schema.from_data, repr(options))
    held = st.session_state.get(PROSPECT)
    if held is None or held[0] != token:
        name = table.name if isinstance(table, Table) else "your table"
        found = ceiling.Prospect(name, SchemaRows.of(table, schema), options)
        st.session_state[PROSPECT] = held = (token, found)
    kept: ceiling.Prospect = held[1]
    return kept


Token = tuple[str, ...]


def _held() -> dict[Token, Found]:
    found: dict[Token, Found] = st.session_state.setdefault(HELD, {})
    return found


def _token(key: Token, settings: Settings, answers: Answers) -> Token:
    """Return what names a search: another answer is another one."""
    return (*key, repr(settings), answers.survive, answers.delta_allowed, answers.hand_out)


def known(settings: Settings, prepared: Prepared, data_key: Token) -> Card | None:
    """Return the card of the dashboard's table if it was searched in this session."""
    answers = answered()
    if answers.shows_rows:
        return None  # there is no such card to take along
    measured, chosen, key = about(settings, prepared, data_key)
    found = _held().get(_token(key, _own(chosen), answers), {})
    if measured is not prepared or next_step(found) is not None:
        return None
    return card_of(prepared, chosen, answers, found)


def card(key: Token, measured: Measured, settings: Settings, answers: Answers) -> Card | None:
    """Return the card, searched one mechanism at a time; None where the search was stopped."""
    own, held = _own(settings), _held()
    token = _token(key, own, answers)
    found = held.setdefault(token, {})
    step = next_step(found)
    if step is not None and st.session_state.get(STOPPED) == token:
        _go_on(step, found)
        return None
    if step is not None:
        control = st.empty()
        with control.container():
            _search(found, token, measured, own, answers)
        control.empty()
        while len(held) > _MOST_HELD:
            del held[next(iter(held))]
    return card_of(measured, settings, answers, found)


def _search(
    found: Found, token: Token, measured: Measured, settings: Settings, answers: Answers
) -> None:
    """Do what is still to be done, a step at a time."""

    def stop() -> None:
        st.session_state[STOPPED] = token

    left, right = st.columns([4, 1], vertical_alignment="bottom")
    right.button("Stop", key="decide.stop", icon=":material/stop:", on_click=state.on_change(stop))
    bar, began = left.progress(0.0), time.monotonic()
    while (step := next_step(found)) is not None:

        def tell(step: NextStep = step) -> None:
            seconds = duration(time.monotonic() - began)
            bar.progress(_done(step), f"{step.words}, {seconds}")

        tell()
        try:
            with limits.telling(tell), limits.deadline(limits.caps().work):
                found[step.key] = step.run(measured, settings, answers)
        except limits.TooSlow:
            found[step.key] = LeftOut(step.mechanism, limits.too_slow(math.inf))


def _done(step: NextStep) -> float:
    """Return how much of a search lies behind a step: first looks take about a third of it."""
    share = step.place / step.total
    return share / 3 if step.stage == LOOK else (1 + 2 * share) / 3


def _go_on(step: NextStep, found: Found) -> None:
    """Say what a stopped search has found, and offer to go on."""

    def proceed() -> None:
        st.session_state[STOPPED] = None

    st.markdown(f"**Stopped: {step.words} comes next.** There is no card before all were asked.")
    offers = sorted(
        (one for one in found.values() if isinstance(one, Offer)),
        key=lambda offer: offer.target.estimate,
    )
    lines = [f"- {offer.mechanism.label}: epsilon {words.epsilon_words(offer)}" for offer in offers]
    st.markdown("\n".join(lines))
    st.button(
        "Go on",
        key="decide.proceed",
        type="primary",
        icon=":material/play_arrow:",
        on_click=state.on_change(proceed),
    )
