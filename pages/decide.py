"""Decide: what can be published safely, with one question, one answer and one next step."""

PAGE = {
    "title": "Decide",
    "icon": ":material/approval_delegation:",
    "place": 60,
    "term": "both-worlds",
    "answers_first": True,
    "unread": ("epsilon", "precision", "directions", "mechanisms"),
    "about": "State how much structure you need and which risk is acceptable. The risk is how far "
    "an attacker's suspicion about one person may rise. The answer is an epsilon that meets both "
    "limits, or no. The chart shows structure and risk at every epsilon.",
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
"""Risks in 100 that the sentence offers."""
STILL = {"displayModeBar": False, "staticPlot": True}
NEXT = {
    decide.LIMITS: "State the limits …",
    decide.CENTRE: "State typical values …",
    decide.UNIT: "State rows of a person …",
}
"""Texts of the action on the first undecided point; Release has fields for all but the unit."""
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
.st-key-decide-fill p, .st-key-decide-instead p { font-size: 21px; }
.st-key-decide-open { row-gap: .4rem; padding: 11px 15px; }
.st-key-decide-why h3, .st-key-decide-print h3 { padding: 6px 0; }
.st-key-decide-open [data-testid="stHorizontalBlock"] { column-gap: .4rem; }
[class*="st-key-decide-map-"] { min-width: 0; }
.st-key-decide-maps { column-gap: .4rem; flex-wrap: nowrap; }
[class*="st-key-decide-small-"] { margin-bottom: -56px; pointer-events: none; }
[class*="st-key-decide-map-"] [data-testid="stPlotlyChart"] { zoom: .6; } /* 150 px at least */
.st-key-decide-room .annotation:not([data-index="0"]) text { fill: currentColor !important; }
.st-key-decide-open { border-color: #b98900 !important; }
@media (min-width: 701px) { :has(> .st-key-decide-short) { display: none; } }
@media (max-width: 700px) {
  .st-key-decide-question p { font-size: 17px; }
  /* the map stands directly below the answer */
  .st-key-decide-sides [data-testid="stColumn"],
  .st-key-decide-sides [data-testid="stColumn"] > [data-testid="stVerticalBlock"] {
    display: contents; }
  .st-key-decide-sides :has(> [class*="st-key-decide-answer-"]) { order: -2; }
  .st-key-decide-sides :has(> .st-key-decide-print) { order: -1; }
  /* the answer and what can be done with it stay in sight */
  .st-key-decide-bar { position: fixed; inset: auto 0 0; z-index: 90; width: 100% !important;
    padding: 8px 16px; background: light-dark(#fff, #030508); border-top: 1px solid #8a93a066;
    justify-content: space-between; }
  [data-testid="stMainBlockContainer"] { padding-bottom: 6rem; }
}
</style>"""


# Fields of the question ---------------------------------------------------------------------------


def inline(name: str, options: Sequence[Any], words: Any, width: int) -> None:
    """Draw a choice inside the sentence."""
    now = state.get(name, VIEW)
    controls.control(
        st.selectbox,
        params_of(Answers)[name].label,
        f"asked.{name}",
        now,
        lambda value: state.put(name, value, VIEW),
        # A link may hold a value that is not in the list of options.
        options=list(dict.fromkeys([*options, now])),
        format_func=words,
        label_visibility="collapsed",
        width=width,
    )


def ask_rows(table: Measured, place: str = "decide", step: str = "") -> None:
    """Ask how many rows a person has, in the sentence or as the next step."""
    if state.get("table") == state.UPLOAD:
        check.ask_person(place if step else "check", step)
    else:
        unit.ask(place, table.columns, step=step)


def ask(table: Measured | None) -> None:
    """Draw the question as one sentence with choices in it."""

    def say(words: str) -> None:
        st.markdown(words, width="content")

    with st.container(horizontal=True, vertical_alignment="center", key="decide-question"):
        say("We publish")
        what = params_of(Answers)["hand_out"].choices
        inline("hand_out", list(what), what.__getitem__, 290)
        if table is not None:
            say(f"of **{plain(table.name)}** ({table.n:,} × {table.d});")
            if state.get("source", VIEW) == "table":
                ask_rows(table)
        say("At least")
        shares = params_of(Answers)["survive"].choices
        inline("survive", list(shares), shares.__getitem__, 110)
        say("of the structure must be kept in 95 % of releases,")
        say("and a suspicion of 1 in 100 may rise to at most")
        inline("ceiling", CEILINGS, lambda count: f"{numeral(count, 3)} in 100", 140)


def experts(decision: decide.Decision | None) -> Any:
    """Draw rarely changed options in an expander; return the container for late results."""
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
        if decision is None:
            return st.empty()
        st.caption(plain(decision.how))
        name = "dpviz-decision.json"
        parts.download("All numbers (JSON)", lambda: decision.to_json() + "\n", name, "decide.json")
        return st.empty()


# Answer to the question ---------------------------------------------------------------------------


def about(answers: Answers) -> tuple[Measured | None, Settings, tuple[str, ...]]:
    """Return the table or plan of the question, its settings, and its cache key."""
    own = current.settings
    if answers.source == "plan":
        of_plan = Settings(
            table=plan_text(answers), k=min(own.k, answers.features - 1),
            relation=own.relation, seed=own.seed,
        )  # fmt: skip
        return load_measured(of_plan), of_plan, ("plan", of_plan.table)
    delta = None if own.delta == 0 else own.delta
    delta = 0.0 if answers.delta_allowed == "no" else delta
    settings = replace(own, delta=delta, allocation="uniform", directions="features")
    return current.prepared, settings, current.data_key


def prospect(table: Measured, settings: Settings, answers: Answers) -> Prospect | None:
    """Return the prospect of releases, cached for the last question."""
    source: Any = table
    schema, name, token = None, table.name, ("plan", settings.table)
    if answers.source == "table":
        source = schema_editor.given()
        if source is None:
            return None
        schema = schema_editor.known(source)
        name = source.name if isinstance(source, Table) else "your table"
        token = (schema_editor.named(source), f"{schema.digest} {schema.from_data}")
    delta = table.budget(replace(settings, delta=None)).delta
    delta = delta if settings.delta is None else settings.delta
    key = (*token, settings.k, settings.relation, delta, answers.delta_allowed, answers.hand_out)
    entry = st.session_state.get(PROSPECT)
    if entry is None or entry[0] != key:
        with limits.deadline(limits.caps().work):
            new = decide.prospect_of(name, source, schema, settings, answers, delta)
        st.session_state[PROSPECT] = entry = (key, new)
    answer: Prospect = entry[1]
    return answer


def fill_release(decision: decide.Decision) -> None:
    """Fill the form of Release with the decision, and open that page."""
    # If the answer is no, its epsilon exceeds the acceptable risk, so do not carry that epsilon.
    options = decision.release if decision.room else decision.prospect.at(decision.most)
    for name in ("rows", "row_bound", "center", "scale"):
        st.session_state[f"release.{name}"] = getattr(options, name)
    for name, value in (
        ("epsilon", options.epsilon), ("delta", options.stated_delta), ("k", options.k),
    ):  # fmt: skip
        st.session_state[f"release.{name}"] = params_of(ReleaseOptions)[name].format(value)
    st.session_state["release.pictured"] = options.picture > 0
    st.session_state["release.picture"] = format_number(options.picture or SHARE)
    st.session_state["decide.release"] = True


def instead(what: str, words: str) -> None:
    """Draw the button that publishes something else."""
    st.button(
        f"Publish {words} instead", key="decide.instead", type="primary",
        on_click=state.on_change(lambda: state.put("hand_out", what, VIEW)),
    )  # fmt: skip


def next_step(decision: decide.Decision, table: Measured) -> None:
    """Draw the next step as one button; on a phone it stays visible with the answer."""
    off = NO_LEDGER if in_browser() else shell.no_releases()
    left = [name for name in decision.open if name in NEXT]
    if unit.answered():  # The answer may be that this is not known.
        left = [name for name in left if name != decide.UNIT]
    with st.container(
        horizontal=True, vertical_alignment="center", width="content", key="decide-bar"
    ):
        with st.container(key="decide-short"):
            st.markdown(f"**{plain(short(decision))}**")
        if decision.answers.shows_rows:
            instead("map", "a map of counts")
            return
        if left == [decide.UNIT]:
            with st.container(key="decide-fill", width="content"):
                ask_rows(table, "decide-fill", NEXT[decide.UNIT])
            return
        loose = decision.prospect.without_noise < decision.answers.recovery
        if decision.room is None and not left and not loose:
            alone = params_of(Answers)["hand_out"].choices["directions"]
            if alone in dict(decision.prospect.helps(decision.answers.recovery)):
                instead("directions", alone)
            else:
                st.markdown("**Keep less structure, or accept a higher risk.**")
            return
        release = f"Release at ε {numeral(decision.release.epsilon, 3)} …"
        st.button(
            NEXT[left[0]] if left else release if decision.room else "State other limits …",
            key="decide.fill",
            type="primary",
            on_click=lambda: fill_release(decision),
            disabled=off is not None,
            help=None if off is None else plain(off),
        )


def short(answer: decide.Decision) -> str:
    """Return the answer in one line."""
    mark = decide.MARKS[answer.verdict]
    if answer.outlook is None or answer.after is None:
        return f"{mark} No"
    return f"{mark} ε {numeral(answer.epsilon, 3)} · 1 → {decide.in_hundred(answer.after)} in 100"


def say(decision: decide.Decision) -> None:
    """Draw the answer, gain and harm on one axis, and the four sentences for decision makers."""
    with st.container(key=f"decide-answer-{decision.verdict}"):
        least = "No" if decision.epsilon is None else f"ε {numeral(decision.epsilon, 3)}"
        st.header(f"{decide.MARKS[decision.verdict]} {least}", anchor=False)
        st.markdown(f"**{plain(decision.headline)}** {plain(decision.both_sides)}")
    if decision.answers.shows_rows:
        return
    with st.container(gap="xsmall", key="decide-why"):
        parts.plot(
            decision.figure(),
            key="decide.room",
            config=STILL,
            alt="Structure kept, and how far an attacker's suspicion may rise, at each epsilon, "
            "with the range of allowed epsilons",
        )
        if decision.helps:
            st.subheader("What would help", anchor=False)
            st.markdown("\n".join(f"- {plain(one)}" for one in decision.helps))
        if decision.board:
            st.subheader("Four sentences for the people who decide", anchor=False)
            lines = (f"{at}. {one}" for at, one in enumerate(decision.board, 1))
            copyable("\n".join(lines), prose=True)
            st.caption(f"{decide.INTERNAL}.")


def show_map(decision: decide.Decision) -> None:
    """Draw the map that would be printed, and other maps on which visitors may click."""
    maps = decision.maps
    first = min(decision.epsilon or decision.most, 100.0)
    choice = st.session_state.get(AT)
    at = choice if choice in [one for one, _ in maps] else first
    picture = decision.map_at(at)
    st.subheader(f"The map that would be published at ε {numeral(at, 2)}", anchor=False)
    if picture is None:
        st.markdown("At this epsilon noise hides the whole map, so dpviz does not release it.")
    else:
        parts.plot(
            map_figure(picture),
            key="decide.map",
            config=STILL,
            alt="Simulated map of noisy counts along two components",
        )

    def go(epsilon: float) -> None:
        st.session_state[AT] = epsilon

    with st.container(horizontal=True, key="decide-maps"):
        for place, (epsilon, small) in enumerate(maps):
            with st.container(width="stretch", gap="xsmall", key=f"decide-map-{place}"):
                if small is not None:
                    parts.plot(
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
    if picture is not None:
        st.caption(f"Simulated. No point of the map is a person. {plain(picture_words(picture))}")


def beside(decision: decide.Decision, table: Measured) -> None:
    """Draw the undecided points, their one button, and the map that would be printed."""
    with st.container(border=True, key="decide-open"):
        count = len(decision.to_do)
        none = (
            "Nothing is left to do." if decision.room else "No fact is missing: change your goals."
        )
        words = {0: none, 1: "One thing is left to do."}.get(
            count, f"{count} things are left to do."
        )
        st.markdown(f"**{words}** {plain(' '.join(decision.to_do))}")
        with st.container(horizontal=True, vertical_alignment="center"):
            next_step(decision, table)
            parts.download(
                "Download the plan to print", decision.html, "dpviz-plan.html", "decide.plan"
            )
    if decision.prospect.options.picture:
        with st.container(gap="xsmall", key="decide-print"):
            show_map(decision)
    else:
        sentence, use = decision.loadings
        if use:
            st.subheader(plain(sentence), anchor=False)
            parts.plot(
                loadings_figure(use),
                key="decide.loadings",
                config=STILL,
                alt="Loadings of the first component, with the range of each loading in 95 % of "
                "releases",
            )
            st.caption(
                "Bars: the range of each loading in 95 % of releases. Hollow bar: the loading may "
                "be 0."
            )


def draw(answers: Answers) -> None:
    """Draw the Decide page."""
    table, settings, key = about(answers)
    st.title("What can you publish safely?", anchor=False)
    ask(table)
    place = st.empty().container()
    decision = outlook = None
    with place, guard():
        outlook = None if table is None else prospect(table, settings, answers)
        if outlook is not None and table is not None:
            decision = decide.answer(outlook, answers, settings)
            with st.container(key="decide-sides"):
                left, right = st.columns([7, 5], gap="medium")
            with left:
                say(decision)
            with right:
                (next_step if answers.shows_rows else beside)(decision, table)
    late = experts(decision)
    if outlook is None or table is None or answers.shows_rows:
        return

    def follow() -> None:
        other = board.least(key, table, settings, answers.recovery)
        steps = outlook.steps(answers.recovery)
        late.caption(plain(" ".join([f"{other}." if other else "", steps]).strip()))

    shell.follow(follow)


if st.session_state.pop("decide.release", False):
    st.switch_page(shell.page("Release"), query_params={})
st.html(STYLE)
view = state.view(VIEW)
assert isinstance(view, Answers)
with guard():
    draw(view)
