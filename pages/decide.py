"""Decide: what may be risked, and on one live card what then survives."""

PAGE = {
    "title": "Decide",
    "icon": ":material/approval_delegation:",
    "place": 60,
    "term": "both-worlds",
    "answers_first": True,
    "unread": ("epsilon", "precision", "directions", "mechanisms"),
}

import streamlit as st

from pages.ui import shell

current = shell.through_entry()

from collections.abc import Callable
from dataclasses import replace

from dpviz.core.entries import PRIVATE
from dpviz.core.number_text import numeral
from dpviz.core.params import format_number, params_of
from dpviz.core.platform import NO_LEDGER, in_browser
from dpviz.core.settings import Settings
from dpviz.lessons import ceiling, words
from dpviz.lessons.card import card_html, card_page
from dpviz.lessons.decide import Card
from dpviz.lessons.questions import Answers
from dpviz.lessons.risk import risk
from dpviz.preparation.prepared import Measured
from dpviz.releasing.options import ReleaseOptions
from dpviz.report.figures.handout import report_page
from dpviz.report.privacy_card import of_million
from dpviz.simulation.compare import compare
from dpviz.simulation.picture.account import SHARE
from pages.ui import addresses, check, controls, deciding, state, take, unit
from pages.ui.guard import guard
from pages.ui.texts import plain

VIEW = "decide"


# What the heading asks is not asked again above the answers, but for who cannot see.
def question(name: str) -> None:
    """Draw the answers to what the heading asks."""
    controls.setting(name, VIEW, row=True)


def go(stage: str) -> Callable[[], None]:
    """Return a callback that shows one card or the other."""
    return state.on_change(lambda: state.put("shown", stage, VIEW))


def ask_about(measured: Measured | None) -> None:
    """Ask what it is about."""
    question("source")
    if state.get("source", VIEW) == "plan":
        left, middle, right = st.columns(3)
        with left:
            controls.setting("people", VIEW)
        with middle:
            controls.setting("features", VIEW)
        with right:
            controls.setting("shape", VIEW)
    elif measured is not None:
        st.markdown(
            f"**{measured.name}**: {measured.n:,} people, {measured.d} features. Choose another "
            "table or upload a file where tables are chosen."
        )


def refuse(card: Card) -> None:
    """Say that there is no such release, and offer what there is instead."""
    st.html(card_html(card, None, "", ""))
    instead()


def pictured(value: str) -> None:
    """Ask for a picture of counts, or for none."""
    state.put("pictured", value, VIEW)


def instead() -> None:
    """Offer what there is in the place of a picture of the people."""
    st.button(
        "Points drawn from the release instead",
        key="decide.instead",
        type="primary",
        on_click=state.on_change(lambda: state.put("hand_out", "drawn", VIEW)),
    )


def show(card: Card, answers: Answers) -> None:
    """Draw the card, its two sliders and what can be taken along."""
    if answers.shows_rows:
        refuse(card)
        return
    best = card.best
    seen = None if best is None else risk(card, best)
    command = deciding.command(card)
    link = addresses.to_decide(current.settings, card.settings, answers)
    st.html(card_html(card, seen, command, link))
    left, right = st.columns(2)
    with left:
        controls.setting("prior", VIEW)
    with right:
        controls.setting("releases", VIEW)

    working = best is not None and take.with_the_truth(card.measured)

    def report() -> str:
        found = compare(card.measured, card.settings)
        shown = card_html(card, seen, command, link)
        return report_page(found, command=command, link=link, card=shown, working_view=working)

    with st.container(horizontal=True, key="decide.take"):
        st.download_button(
            "This card (HTML, to print or mail)",
            lambda: card_page(card, seen, command, link),
            file_name="dpviz-decision.html",
            mime="text/html",
            icon=":material/download:",
            on_click="ignore",
            key="decide.download",
        )
        if best is not None:
            st.download_button(
                "Report with this card (HTML, to print)",
                report,
                file_name="dpviz-report.html",
                mime="text/html",
                icon=":material/download:",
                on_click="ignore",
                key="decide.report",
            )
    if card.left_out:
        with st.expander("Not offered, and why"):
            st.markdown(
                "\n".join(f"- {words.why_not(o.mechanism, o.reason)}" for o in card.left_out)
            )


CEILINGS = {
    2.0: "hardly more than before",
    3.0: "a little more",
    5.0: "still few",
    10.0: "a suspicion that somebody may act on",
    25.0: "one in four is right",
}
"""What may be asked for in words."""


def ceiling_words(now: float) -> str:
    """Return what a ceiling means."""
    if now >= 100 * ceiling.HARDLY:
        return "hardly protection"
    return CEILINGS[max((c for c in CEILINGS if c <= now), default=2.0)]


def ask(measured: Measured | None, settings: Settings) -> None:
    """Ask what may be risked, of whom, what is published and what must survive."""
    st.markdown("**A suspicion that is right 1 time in 100 may become right at most**")

    def chosen() -> None:
        picked = state.reported(words)
        if picked is not None:
            state.put("ceiling", picked, VIEW)

    now = state.get("ceiling", VIEW)
    words = controls.fill("decide.words", now if now in CEILINGS else None)
    st.pills(
        "Times in 100",
        list(CEILINGS),
        default=st.session_state[words],
        # none is chosen where the ceiling is a number between them
        format_func=lambda count: "another" if count is None else f"{numeral(count, 3)} in 100",
        key=words,
        persist_state="session",
        label_visibility="collapsed",
        on_change=state.on_change(chosen),
    )
    with st.popover(f"{numeral(now, 3)} in 100: {ceiling_words(now)}"):
        controls.setting("ceiling", VIEW)
    if measured is not None and state.get("source", VIEW) == "table":
        if state.get("table") == state.UPLOAD:
            check.ask_person()
        else:
            unit.ask("decide", measured.columns)
    st.markdown("**We publish**")

    def handed() -> None:
        state.put("hand_out", state.reported(key), VIEW)

    key = controls.fill("decide.handed", state.get("hand_out", VIEW))
    choices = params_of(Answers)["hand_out"].choices
    st.selectbox(
        "What is handed out?",
        list(choices),
        controls.begins(list(choices), key),
        format_func=choices.__getitem__,
        key=key,
        persist_state="session",
        label_visibility="collapsed",
        on_change=state.on_change(handed),
    )
    if state.get("source", VIEW) == "table":

        def counted() -> None:
            pictured("yes" if state.reported(turned) else "no")

        turned = controls.fill("decide.pictured", state.get("pictured", VIEW) == "yes")
        param = params_of(Answers)["pictured"]
        st.toggle(
            param.label,
            st.session_state[turned],
            key=turned,
            help=param.help,
            persist_state="session",
            on_change=state.on_change(counted),
        )
    st.markdown(f"**Of what {settings.k} components can show, at least … must survive**")
    question("survive")
    left, right = st.columns(2)
    with left:
        controls.setting("delta_allowed", VIEW)
    if measured is not None:
        delta = measured.budget(replace(settings, delta=None)).delta
        right.caption(
            f"With a delta of {numeral(delta, 1)} odds may, in at most {of_million(2 * delta)} "
            "releases, grow by more than twice what epsilon says; in return a smaller epsilon is "
            "enough."
        )
    with st.expander("A table, or numbers I guess?", expanded=measured is None):
        ask_about(measured)


# On a phone the answer and what can be done with it stay in sight, below what is asked.
BAR = """<style>
@media (min-width: 701px) { .st-key-decide-bar > :has(.dp-short) { display: none; } }
@media (max-width: 700px) {
  .dp-short { font-size: 14px; }
  .st-key-decide-bar { position: fixed; inset: auto 0 0; z-index: 90; width: 100% !important;
    padding: 8px 16px; background: Canvas; border-top: 1px solid #8a93a066;
    justify-content: space-between; }
  [data-testid="stMainBlockContainer"] { padding-bottom: 6rem; }
}
</style>"""


def live(found: ceiling.CeilingCard) -> None:
    """Draw the live card, and what can be done with it."""
    st.html(ceiling.html(found))
    if found.answers.shows_rows:
        instead()
        return
    options = found.outlook.options
    switched_off = NO_LEDGER if in_browser() else shell.no_releases()
    stated = not found.prospect.rows.schema.from_data

    def fill() -> None:
        for name in ("rows", "row_bound", "center", "scale"):
            st.session_state[f"release.{name}"] = getattr(options, name)
        for name, value in (
            ("epsilon", found.epsilon), ("delta", options.stated_delta), ("k", options.k),
        ):  # fmt: skip
            st.session_state[f"release.{name}"] = params_of(ReleaseOptions)[name].format(value)
        st.session_state["release.pictured"] = options.picture > 0
        st.session_state["release.picture"] = format_number(options.picture or SHARE)
        st.session_state["decide.release"] = True

    act = st.container(horizontal=True, key="decide.act")
    with act.container(
        horizontal=True, vertical_alignment="center", width="content", key="decide.bar"
    ):
        st.html(BAR + ceiling.short(found))
        if found.drowns:
            st.button(
                "Leave the picture out",
                key="decide.unpictured",
                type="primary",
                on_click=state.on_change(lambda: pictured("no")),
            )
        else:
            st.button(
                "Release this …" if stated else "State the limits …",
                key="decide.fill",
                type="primary",
                on_click=fill,
                disabled=switched_off is not None,
                help=None if switched_off is None else plain(switched_off),
            )
    with act:
        st.download_button(
            "Print the plan",
            lambda: ceiling.page(found),
            file_name="dpviz-plan.html",
            mime="text/html",
            on_click="ignore",
            key="decide.plan",
        )
        st.download_button(
            "Plan as JSON",
            lambda: ceiling.plan(found),
            file_name="dpviz-plan.json",
            mime="application/json",
            on_click="ignore",
            key="decide.plan.json",
        )
        st.button("Ask every mechanism", key="decide.every", on_click=go("card"))
    how = [
        "rows scaled to length one"
        if options.rows == "unit"
        else f"rows cut to {options.row_bound} half widths",
        "around a private mean" if options.center == PRIVATE else "around the typical values",
        "Gaussian noise" if options.stated_delta else "Laplace noise",
        *(["with a picture of counts"] if options.picture else []),
    ]
    st.caption(f"Chosen by prediction: {', '.join(how)}; each feature over half its limits.")


if st.session_state.pop("decide.release", False):
    st.switch_page(shell.page("Release"), query_params={})
answers = state.view(VIEW)
assert isinstance(answers, Answers)
with guard():
    measured, settings, key = deciding.about(current.settings, current.prepared, current.data_key)
    st.title("What may leave the house?", anchor=False)
    asking, showing = st.columns([5, 9], gap="medium")
    with asking:
        ask(measured, settings)
    with showing, guard():  # what cannot be answered is said where the answer would be
        prospect = None
        if measured is not None and answers.shown != "card":
            prospect = deciding.prospect(settings, measured.budget(settings).delta)
            if prospect is not None:
                live(ceiling.card(prospect, answers))
        if measured is not None and prospect is None:
            if answers.source != "plan":
                st.button("Back to one release", key="decide.back", on_click=go("ceiling"))
            if settings.private_shares:
                st.caption(
                    "Every epsilon pays for the preparation too ("
                    f"{', '.join(settings.private_shares)}), drawn anew in each release tried. The "
                    "bar says how long that takes; Stop keeps what was found."
                )
            searched = deciding.card(key, measured, settings, answers)
            if searched is not None:
                show(searched, answers)
