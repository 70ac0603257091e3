"""Decide: what can be published safely, in one question, one answer and one next step."""

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

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpviz.core.number_text import numeral
from dpviz.core.params import format_number, params_of
from dpviz.core.platform import NO_LEDGER, in_browser
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.lessons.prospect import Prospect
from dpviz.lessons.questions import Answers, plan_text
from dpviz.preparation.load import load_measured
from dpviz.preparation.prepared import Measured
from dpviz.releasing.options import ReleaseOptions
from dpviz.report.figures.room import loadings_figure, map_figure
from dpviz.report.privacy_card import picture_words
from dpviz.simulation.picture.account import SHARE
from dpviz.studies import decide
from pages.ui import board, check, controls, limits, parts, schema_editor, state, unit
from pages.ui.copying import copyable
from pages.ui.guard import guard
from pages.ui.texts import plain

VIEW, PROSPECT, AT = "decide", "decide.prospect", "decide.at"
CEILINGS = (2.0, 3.0, 5.0, 10.0, 25.0)
"""Risks that are offered in the sentence, in 100."""
STILL = {"displayModeBar": False, "staticPlot": True}
NEXT = {
    decide.LIMITS: "State the limits …",
    decide.UNIT: "Say whom a row is about …",
}
"""The first thing that is open, as what to do; Release has the place for each."""
STYLE = """<style>
.st-key-decide-question p { font-size: 19px; }
.st-key-decide-question { row-gap: .4rem; column-gap: .4rem; }
[class*="st-key-decide-answer-"] { padding: 12px 18px; border-left: 8px solid #846300;
  background: color-mix(in srgb, #846300 12%, transparent); }
.st-key-decide-answer-yes { border-color: #21796e;
  background: color-mix(in srgb, #21796e 12%, transparent); }
.st-key-decide-answer-no { border-color: #b8001d;
  background: color-mix(in srgb, #b8001d 12%, transparent); }
[class*="st-key-decide-answer-"] h2 { font-size: 46px !important; line-height: 1; padding: 0; }
[class*="st-key-decide-answer-"] p { font-size: 19px; }
.st-key-decide-fill p { font-size: 21px; } .st-key-decide-instead p { font-size: 21px; }
.st-key-decide-open { border-color: #b98900 !important; }
@media (min-width: 701px) { .st-key-decide-short { display: none; } }
@media (max-width: 700px) {
  .st-key-decide-question p { font-size: 17px; }
  /* the answer and what can be done with it stay in sight */
  .st-key-decide-bar { position: fixed; inset: auto 0 0; z-index: 90; width: 100% !important;
    padding: 8px 16px; background: Canvas; border-top: 1px solid #8a93a066;
    justify-content: space-between; }
  [data-testid="stMainBlockContainer"] { padding-bottom: 6rem; }
}
</style>"""


# The question -------------------------------------------------------------------------------------


def inline(name: str, options: Sequence[Any], words: Any, width: int) -> None:
    """Draw a choice that stands in the sentence."""
    now = state.get(name, VIEW)
    controls.control(
        st.selectbox,
        params_of(Answers)[name].label,
        f"asked.{name}",
        now,
        lambda value: state.put(name, value, VIEW),
        # a link may hold another value than those that are offered
        options=list(dict.fromkeys([*options, now])),
        format_func=words,
        label_visibility="collapsed",
        width=width,
    )


def ask(measured: Measured | None) -> None:
    """Ask the question: one sentence with choices in it."""

    def say(words: str) -> None:
        st.markdown(words, width="content")

    with st.container(horizontal=True, vertical_alignment="center", key="decide-question"):
        say("We publish")
        what = params_of(Answers)["hand_out"].choices
        inline("hand_out", list(what), what.__getitem__, 290)
        if measured is not None:
            say(f"of **{plain(measured.name)}** ({measured.n:,} × {measured.d});")
            if state.get("source", VIEW) == "table":
                if state.get("table") == state.UPLOAD:
                    check.ask_person()
                else:
                    unit.ask("decide", measured.columns)
        say("At least")
        kept = params_of(Answers)["survive"].choices
        inline("survive", list(kept), kept.__getitem__, 110)
        say("must be kept in 95 of 100 releases,")
        say("and a suspicion of 1 in 100")
        say("may become at most")
        inline("ceiling", CEILINGS, lambda count: f"{numeral(count, 3)} in 100", 140)


def experts(found: decide.Decision | None) -> Any:
    """Draw what few people change, behind one click; return the place of what follows late."""
    with st.expander("Expert choices and details", expanded=current.prepared is None):
        left, right = st.columns(2)
        with left:
            controls.setting("delta_allowed", VIEW)
            controls.setting("source", VIEW)
        with right:
            controls.setting("ceiling", VIEW)
        if state.get("source", VIEW) == "plan":
            for place, name in zip(st.columns(3), ("people", "features", "shape"), strict=True):
                with place:
                    controls.setting(name, VIEW)
        if found is None:
            return st.empty()
        st.caption(plain(found.how))
        name = "dpviz-decision.json"
        parts.download("All numbers (JSON)", lambda: found.to_json() + "\n", name, "decide.json")
        return st.empty()


# The answer ---------------------------------------------------------------------------------------


def about(answers: Answers) -> tuple[Measured | None, Settings, tuple[str, ...]]:
    """Return what the question is about, its settings, and what names it in a cache."""
    own = current.settings
    if answers.source == "plan":
        chosen = Settings(
            table=plan_text(answers), k=min(own.k, answers.features - 1),
            relation=own.relation, seed=own.seed,
        )  # fmt: skip
        return load_measured(chosen), chosen, ("plan", chosen.table)
    delta = None if own.delta == 0 else own.delta
    delta = 0.0 if answers.delta_allowed == "no" else delta
    chosen = replace(own, delta=delta, allocation="uniform", directions="features")
    return current.prepared, chosen, current.data_key


def prospect(measured: Measured, settings: Settings, answers: Answers) -> Prospect | None:
    """Return what releases would keep, kept for the table that was asked about last."""
    source: Any = measured
    schema, name, token = None, measured.name, ("plan", settings.table)
    if answers.source == "table":
        source = schema_editor.given()
        if source is None:
            return None
        schema = schema_editor.known(source)
        name = source.name if isinstance(source, Table) else "your table"
        token = (schema_editor.named(source), f"{schema.digest} {schema.from_data}")
    delta = measured.budget(replace(settings, delta=None)).delta
    delta = delta if settings.delta is None else settings.delta
    asked = (*token, settings.k, settings.relation, delta, answers.delta_allowed, answers.hand_out)
    held = st.session_state.get(PROSPECT)
    if held is None or held[0] != asked:
        with limits.deadline(limits.caps().work):
            found = decide.prospect_of(name, source, schema, settings, answers, delta)
        st.session_state[PROSPECT] = held = (asked, found)
    kept: Prospect = held[1]
    return kept


def fill_release(found: decide.Decision) -> None:
    """Fill the form of Release with what was decided, and go there."""
    options = found.release
    for name in ("rows", "row_bound", "center", "scale"):
        st.session_state[f"release.{name}"] = getattr(options, name)
    for name, value in (
        ("epsilon", options.epsilon), ("delta", options.stated_delta), ("k", options.k),
    ):  # fmt: skip
        st.session_state[f"release.{name}"] = params_of(ReleaseOptions)[name].format(value)
    st.session_state["release.pictured"] = options.picture > 0
    st.session_state["release.picture"] = format_number(options.picture or SHARE)
    st.session_state["decide.release"] = True


def next_step(found: decide.Decision) -> None:
    """Draw the one action that comes next; on a phone it stays in sight with the answer."""
    off = NO_LEDGER if in_browser() else shell.no_releases()
    with st.container(
        horizontal=True, vertical_alignment="center", width="content", key="decide-bar"
    ):
        with st.container(key="decide-short"):
            st.markdown(f"**{plain(short(found))}**")
        if found.answers.shows_rows:
            st.button(
                "Publish a map of counts instead", key="decide.instead", type="primary",
                on_click=state.on_change(lambda: state.put("hand_out", "map", VIEW)),
            )  # fmt: skip
            return
        release = f"Release at ε {numeral(found.release.epsilon, 3)} …"
        st.button(
            next((NEXT[name] for name in found.open if name in NEXT), release),
            key="decide.fill",
            type="primary",
            on_click=lambda: fill_release(found),
            disabled=off is not None,
            help=None if off is None else plain(off),
        )


def short(found: decide.Decision) -> str:
    """Return the answer in a line."""
    mark = decide.MARKS[found.verdict]
    if found.outlook is None or found.after is None:
        return f"{mark} No"
    return f"{mark} ε {numeral(found.epsilon, 3)} · 1 → {decide.in_hundred(found.after)} in 100"


def say(found: decide.Decision) -> None:
    """Draw the answer, gain and harm on one axis, and the sentences for a board."""
    with st.container(key=f"decide-answer-{found.verdict}"):
        least = "No" if found.epsilon is None else f"ε {numeral(found.epsilon, 3)}"
        st.header(f"{decide.MARKS[found.verdict]} {least}", anchor=False)
        st.markdown(f"**{plain(found.headline)}** {plain(found.both_sides)}")
    if found.answers.shows_rows:
        return
    st.plotly_chart(
        found.figure(),
        key="decide.room",
        config=STILL,
        alt="Structure kept, and what a suspicion may become, by epsilon; between them the room",
    )
    if found.helps:
        st.subheader("What would help", anchor=False)
        st.markdown("\n".join(f"- {plain(one)}" for one in found.helps))
    if found.board:
        st.subheader("To the board, in four sentences", anchor=False)
        lines = (f"{at}. {one}" for at, one in enumerate(found.board, 1))
        copyable("\n".join(lines), prose=True)
        st.caption(f"{decide.INTERNAL}.")


def show_map(found: decide.Decision) -> None:
    """Draw the map that would be printed, with others to click."""
    maps = found.maps
    first = min(found.epsilon or found.most, 100.0)
    picked = st.session_state.get(AT)
    at = picked if picked in [one for one, _ in maps] else first
    shown = found.map_at(at)
    st.subheader(f"What would be printed at ε {numeral(at, 2)}", anchor=False)
    if shown is None:
        st.markdown("At this epsilon noise hides the whole map: a release refuses it.")
    else:
        st.plotly_chart(
            map_figure(shown),
            key="decide.map",
            config=STILL,
            alt="Simulated map of noisy counts along two components",
        )
        st.caption(f"Simulated. No point is a person. {plain(picture_words(shown))}")

    def go(epsilon: float) -> None:
        st.session_state[AT] = epsilon

    with st.container(horizontal=True, key="decide-maps"):
        for place, (epsilon, small) in enumerate(maps):
            with st.container(width=92, gap="small", key=f"decide-map-{place}"):
                if small is not None:
                    st.plotly_chart(
                        map_figure(small, small=True),
                        key=f"decide.small.{place}",
                        config=STILL,
                        alt=f"The map at epsilon {numeral(epsilon, 2)}",
                    )
                st.button(
                    f"ε {numeral(epsilon, 2)}",
                    key=f"decide.map.{place}",
                    width="stretch",
                    type="primary" if epsilon == at else "secondary",
                    disabled=small is None,
                    help="Noise would hide this map." if small is None else None,
                    on_click=state.on_change(lambda epsilon=epsilon: go(epsilon)),
                )


def beside(found: decide.Decision) -> None:
    """Draw what is open, the next step, and what would be printed."""
    with st.container(border=True, key="decide-open"):
        count = len(found.to_do)
        words = {0: "Nothing is open.", 1: "One thing is open."}.get(
            count, f"{count} things are open."
        )
        st.markdown(f"**{words}** {plain(' '.join(found.to_do))}")
        next_step(found)
    if found.prospect.options.picture:
        show_map(found)
    else:
        said, use = found.loadings
        if use:
            st.subheader(plain(said), anchor=False)
            st.plotly_chart(
                loadings_figure(use),
                key="decide.loadings",
                config=STILL,
                alt="Loadings of the first component, with where 95 of 100 releases put them",
            )
            st.caption("Bars: where 95 of 100 releases put each loading. Hollow: could be 0.")
    parts.download("Print the plan", found.html, "dpviz-plan.html", "decide.plan")


def draw(answers: Answers) -> None:
    """Draw the page."""
    measured, settings, key = about(answers)
    st.title("What can you publish safely?", anchor=False)
    ask(measured)
    place = st.empty().container()
    found = known = None
    with place, guard():
        known = None if measured is None else prospect(measured, settings, answers)
        if known is not None:
            found = decide.answer(known, answers, settings)
            left, right = st.columns([7, 5], gap="medium")
            with left:
                say(found)
            with right:
                if answers.shows_rows:
                    next_step(found)
                else:
                    beside(found)
    late = experts(found)
    if known is None or measured is None or answers.shows_rows:
        return

    def follow() -> None:
        other = board.least(key, measured, settings, answers.recovery)
        steps = known.steps(answers.recovery)
        late.caption(plain(" ".join([f"{other}." if other else "", steps]).strip()))

    shell.follow(follow)


if st.session_state.pop("decide.release", False):
    st.switch_page(shell.page("Release"), query_params={})
st.html(STYLE)
view = state.view(VIEW)
assert isinstance(view, Answers)
with guard():
    draw(view)
