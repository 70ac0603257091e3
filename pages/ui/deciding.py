"""Decide's search on a page: it says how far it is, and ends when nobody wants it any more.

What was found stays in the session, mechanism by mechanism: a search that was stopped goes on where
it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from dpviz.guide.decide import Card, LeftOut, Offer, candidates, card_of, offer_of
from dpviz.guide.example import example_table
from dpviz.guide.questions import Answers, plan_text
from dpviz.mechanisms import Mechanism
from dpviz.narrative.phrases import duration
from dpviz.prepare.bounding import Prepared
from dpviz.prepare.load import load_measured
from dpviz.prepare.prepared import Measured
from dpviz.settings import Settings
from pages.ui import limits, state

STOPPED, HELD = "decide.stopped", "decide.offers"
_MOST_HELD = 500

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


@st.cache_data(scope="session", max_entries=50, show_spinner=False)
def _picture(key: tuple[str, ...], _measured: Measured, _settings: Settings) -> pd.DataFrame:
    return example_table(_measured, _settings, float(key[-1]))


def picture(
    data_key: tuple[str, ...], measured: Measured, settings: Settings, recovery: float
) -> pd.DataFrame:
    """Return the picture that a recovery gives."""
    own = _own(settings)
    return _picture((*data_key, repr(own), repr(recovery)), measured, own)


def _own(settings: Settings) -> Settings:
    """Return settings without what the answer does not depend on."""
    return replace(settings, epsilon=1.0, mechanisms=(), trials=20)


def _held() -> dict[tuple[str, ...], Offer | LeftOut]:
    found: dict[tuple[str, ...], Offer | LeftOut] = st.session_state.setdefault(HELD, {})
    return found


def _token(key: tuple[str, ...], settings: Settings, answers: Answers) -> tuple[str, ...]:
    """Return what names a search: another answer is another one."""
    return (*key, repr(settings), answers.survive, answers.delta_allowed, answers.hand_out)


def known(settings: Settings, prepared: Prepared, data_key: tuple[str, ...]) -> Card | None:
    """Return the card of the dashboard's table if it was searched in this session."""
    answers = answered()
    measured, chosen, key = about(settings, prepared, data_key)
    token, held = _token(key, _own(chosen), answers), _held()
    if measured is not prepared or any((*token, one.text) not in held for one in candidates()):
        return None
    found = [held[*token, one.text] for one in candidates()]
    return card_of(prepared, chosen, answers, found)


def card(
    key: tuple[str, ...], measured: Measured, settings: Settings, answers: Answers
) -> Card | None:
    """Return the card, searched one mechanism at a time; None where the search was stopped."""
    asked, own, held = list(candidates()), _own(settings), _held()
    token = _token(key, own, answers)
    missing = [one for one in asked if (*token, one.text) not in held]
    if missing and st.session_state.get(STOPPED) == token:
        _go_on(asked, missing, [held[*token, one.text] for one in asked if one not in missing])
        return None
    if missing:
        control = st.empty()
        with control.container():
            _search(missing, len(asked), token, measured, own, answers)
        control.empty()
        while len(held) > _MOST_HELD:
            del held[next(iter(held))]
    return card_of(measured, settings, answers, [held[*token, one.text] for one in asked])


def _search(
    missing: Sequence[Mechanism],
    total: int,
    token: tuple[str, ...],
    measured: Measured,
    settings: Settings,
    answers: Answers,
) -> None:
    """Ask the mechanisms that were not asked yet."""

    def stop() -> None:
        st.session_state[STOPPED] = token

    left, right = st.columns([4, 1], vertical_alignment="bottom")
    right.button("Stop", key="decide.stop", icon=":material/stop:", on_click=state.on_change(stop))
    bar, began = left.progress(0.0), time.monotonic()
    for place, mechanism in enumerate(missing, start=total - len(missing)):

        def tell(place: int = place, label: str = mechanism.label) -> None:
            seconds, done = time.monotonic() - began, place - (total - len(missing))
            words = f"Asking {label}, {place + 1} of {total}, {duration(seconds)}"
            if done:  # as long each as those before
                words += f", about {duration(seconds / done * (total - place))} left"
            bar.progress(place / total, words)

        tell()
        try:
            with limits.telling(tell), limits.deadline(limits.caps().work):
                found = offer_of(measured, settings, answers, mechanism)
        except limits.TooSlow:
            found = LeftOut(mechanism, limits.too_slow(math.inf))
        _held()[*token, mechanism.text] = found


def _go_on(
    asked: Sequence[Mechanism], missing: Sequence[Mechanism], found: Sequence[Offer | LeftOut]
) -> None:
    """Say what a stopped search has found, and offer to go on."""

    def proceed() -> None:
        st.session_state[STOPPED] = None

    st.markdown(
        f"**Stopped: {len(asked) - len(missing)} of {len(asked)} mechanisms were asked.** There is "
        "no card before all were."
    )
    offers = sorted((one for one in found if isinstance(one, Offer)), key=lambda one: one.epsilon)
    lines = [f"- {one.mechanism.label}: epsilon {one.epsilon:.3g}" for one in offers]
    st.markdown("\n".join(lines))
    st.button(
        "Go on",
        key="decide.proceed",
        icon=":material/play_arrow:",
        on_click=state.on_change(proceed),
    )
