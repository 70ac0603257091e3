"""Tasks: what can still be learned after a private projection, or from a private release."""

PAGE = {
    "title": "Tasks",
    "icon": ":material/school:",
    "place": 130,
    "group": "Reference",
    "term": "component",
}

import time
from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dpviz.core.errors import InvalidTable
from dpviz.core.files import csv_text
from dpviz.core.params import params_of
from dpviz.core.release import Verdict
from dpviz.mechanisms import Mechanism, parse_variant, parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.report.figures.tasks import task_figure
from dpviz.report.figures.theme import panels_of
from dpviz.report.sentences import tasks as tasks_words
from dpviz.report.sentences.phrases import FAILS_THERE, by_reason, duration, join_words, since_words
from dpviz.simulation.tasks import (
    LEARNERS,
    Learner,
    Task,
    TaskPlan,
    TaskStep,
    band_table,
    kept,
    label_words,
    learners_for,
    releasing_rows,
    score_table,
    work,
)
from dpviz.simulation.tasks.task import PROJECTION
from pages.ui import controls, highlight, limits, parts, shell, state, task_cache
from pages.ui.guard import guard
from pages.ui.texts import plain

current = shell.through_entry()

STOPPED = "tasks_stopped"  # the run that the user has stopped
ASKED = "tasks_asked"  # the run that the user has asked for
TICK_SECONDS = 0.15  # a run can only be stopped at a Streamlit call
FIRST_DRAWN, DRAWN_LATER = 0.4, 1.6  # seconds until the picture is drawn again, and their growth


def choices(ready: Prepared, offered: list[Learner]) -> Task:
    """Draw the controls; return the task with a learner that suits the label."""
    task = state.view("tasks")
    assert isinstance(task, Task)
    fitting = {learner.key: learner for learner in offered}
    learner = fitting.get(task.learner or "", offered[0])
    left, right = st.columns([1, 2])
    with left:
        _learner(offered, learner)
    with right:
        controls.setting("source", "tasks")
    if task.learner not in (None, learner.key):
        st.caption(
            f"{LEARNERS[task.learner].label} does not suit this label, which "
            f"{label_words(ready.table.labels)}: {learner.label} is shown."
        )
    left, right = st.columns([1, 2])
    with left:
        controls.setting("epsilons", "tasks")
    with right, st.expander("Splits and tuning", icon=":material/call_split:"):
        projected = task.source == PROJECTION
        controls.setting("tuning", "tasks")
        if projected:
            controls.setting("subspace", "tasks")
        first, second = st.columns(2)
        with first:
            controls.setting("splits", "tasks")
            if projected:
                controls.setting("subspace_share", "tasks")
        with second:
            controls.setting("most", "tasks")
            controls.setting("test_share", "tasks")
    st.caption(learner.about)
    return replace(task, learner=learner.key)


def _learner(offered: list[Learner], now: Learner) -> None:
    """Draw the choice among learners that suit the label."""

    def changed() -> None:
        state.put("learner", state.reported(key), "tasks")

    key = controls.fill("tasks.learner", now.key)
    keys = [learner.key for learner in offered]
    st.selectbox(
        "Learner",
        keys,
        controls.begins(keys, key),
        format_func=lambda key: f"{LEARNERS[key].label} ({LEARNERS[key].kind})",
        key=key,
        persist_state="session",
        help=params_of(Task)["learner"].help,
        on_change=state.on_change(changed),
    )


def chosen_mechanisms(task: Task) -> list[Mechanism]:
    """Return the chosen mechanisms, or all that release rows where none of those does."""
    named = parse_variants(current.settings.mechanisms)
    if task.source == PROJECTION:
        return named
    able = [mechanism for mechanism in named if mechanism.why_no_rows is None]
    if able:
        return able
    st.caption(
        "None of the chosen mechanisms releases rows to learn from; those that do are "
        "shown instead."
    )
    return releasing_rows()


class Watch:
    """Shows how far a run is, and is where Streamlit can stop it."""

    def __init__(self, total: int) -> None:
        self._bar = st.progress(0.0, f"0 of {total} rounds")
        self._share, self._words, self._told = 0.0, f"0 of {total} rounds", 0.0
        self._since = time.monotonic()

    def step(self, step: TaskStep) -> None:
        """Take note of a finished part."""
        now = step.progress
        left = "" if now.left is None else f", about {duration(now.left)} left"
        self._share = now.done / max(now.total, 1)
        self._words = f"{now.done:,} of {now.total:,} rounds{left}"
        self._since = time.monotonic()
        self.tick()

    def tick(self) -> None:
        """Call Streamlit now and then."""
        now = time.monotonic()
        if now - self._told > TICK_SECONDS:
            self._bar.progress(self._share, self._words + since_words(now - self._since))
            self._told = now


def token(plan: TaskPlan) -> tuple[object, ...]:
    """Return what names a run: another setting is another run."""
    names = tuple(mechanism.text for mechanism in plan.mechanisms)
    return plan.digest, plan.epsilons, plan.settings.trials, names


def run(plan: TaskPlan, top: st.delta_generator.DeltaGenerator) -> None:
    """Show what is known, run what is missing, and draw again while it grows."""
    scores = task_cache.TaskScores(public=current.settings.table != state.UPLOAD)
    control, place = st.empty(), st.empty()
    found = kept(plan, scores)
    done, total = found.progress.done, found.progress.total
    if done < total and _waits(plan):
        with control.container():
            _go_on(plan, done, total)
        if not done:
            return
    elif done < total:
        with control.container():
            found = _finish(plan, scores, top, place)
        scores.prune()
        control.empty()
    table = score_table(plan, found.scores)
    bands = band_table(plan, table)
    figure = draw(plan, bands, top, place, "tasks")
    fails = any(Verdict(verdict).fails for verdict in bands["verdict"] if verdict)
    said = [
        tasks_words.verdict(plan, bands) * (tasks_words.lead(plan, bands) is not None),
        tasks_words.gains(plan, bands),
        f"Bands: {tasks_words.BAND}.",
        FAILS_THERE * fails,
    ]
    with st.popover("How to read this chart", icon=":material/info:"):
        st.markdown(" ".join(filter(None, said)))
    results(plan, table, bands, figure)


def _waits(plan: TaskPlan) -> bool:
    """Return whether what is missing is not run: after a stop, and on a public server unasked."""
    asked = not limits.caps().public or st.session_state.get(ASKED) == token(plan)
    return not asked or st.session_state.get(STOPPED) == token(plan)


def _go_on(plan: TaskPlan, done: int, total: int) -> None:
    def proceed() -> None:
        st.session_state[STOPPED], st.session_state[ASKED] = None, token(plan)

    st.button(
        f"Go on ({done:,} of {total:,} rounds done)" if done else f"Run it ({total:,} rounds)",
        key="tasks.continue",
        type="primary",
        icon=":material/play_arrow:",
        on_click=proceed,
    )


def _finish(
    plan: TaskPlan,
    scores: task_cache.TaskScores,
    top: st.delta_generator.DeltaGenerator,
    place: st.delta_generator.DeltaGenerator,
) -> TaskStep:
    """Run to the end, drawing at growing intervals; return the last state."""

    def stop() -> None:
        st.session_state[STOPPED] = token(plan)

    left, right = st.columns([4, 1], vertical_alignment="bottom")
    right.button("Stop", key="tasks.stop", icon=":material/stop:", on_click=stop)
    with left:
        watch = Watch(sum(len(part.trials) for part in plan.parts))
    wait, stage, drawn = FIRST_DRAWN, 0, time.monotonic() - FIRST_DRAWN
    for step in work(plan, scores, watch.tick):
        watch.step(step)
        if time.monotonic() - drawn > wait:
            stage += 1
            bands = band_table(plan, score_table(plan, step.scores))
            if not bands["mechanism"].isin([one.text for one in plan.mechanisms]).any():
                continue  # floors alone, or nothing yet: an empty frame says nothing
            draw(plan, bands, top, place, f"tasks.{stage}")
            wait, drawn = wait * DRAWN_LATER, time.monotonic()
    return step


def draw(
    plan: TaskPlan,
    bands: pd.DataFrame,
    top: st.delta_generator.DeltaGenerator,
    place: st.delta_generator.DeltaGenerator,
    key: str,
) -> go.Figure:
    """Draw the sentence on top and the figure."""
    at = plan.shown_epsilon
    figure = task_figure(
        bands,
        panels_of(plan.mechanisms, *plan.problem_and_budget(0, at)),
        score=plan.learner.score,
        epsilons=plan.epsilons,
        now=plan.settings.epsilon,
    )
    said = tasks_words.verdict(plan, bands)
    top.markdown(f"**{tasks_words.lead(plan, bands) or said}**")
    with place:
        st.plotly_chart(
            figure, key=key, alt=f"{plan.learner.score.label.capitalize()} along epsilon. {said}"
        )
    return figure


def results(plan: TaskPlan, table: pd.DataFrame, bands: pd.DataFrame, figure: go.Figure) -> None:
    """Draw the table, what was left out, and what can be taken along."""
    score = plan.learner.score
    arrow = "↑" if score.better == "higher" else "↓"
    rows, columns = parts.numerals(
        tasks_words.table_rows(plan, bands),
        {
            "epsilon": ("Epsilon", 4),
            "mean": (f"Mean {score.label} {arrow}", 3, score.help),
            "low": ("Band from", 3),
            "high": ("to", 3),
        },
    )
    st.expander("Every mechanism at every epsilon", icon=":material/table:").dataframe(
        rows,
        hide_index=True,
        placeholder="–",
        key="tasks.table",
        alt=f"{score.label.capitalize()} of every mechanism at every epsilon, with floors",
        column_config={
            "what": st.column_config.TextColumn("Mechanism or floor", pinned=True),
            "rounds": st.column_config.NumberColumn("Rounds"),
            **columns,
            "status": "Status of the claim",
        },
    )
    for reason, names in by_reason(plan.skipped).items():
        labels = join_words(parse_variant(name).label for name in names)
        st.caption(f"Not run: {labels}, because {reason}.")
    parts.numbers("tasks", table)
    left, right = st.columns(2)
    left.download_button(
        "Every round (CSV)",
        lambda: csv_text(table),
        file_name="dpviz-tasks.csv",
        on_click="ignore",
        key="tasks.csv",
        icon=":material/download:",
    )
    right.download_button(
        "This figure (HTML)",
        lambda: figure.to_html(include_plotlyjs=True),
        file_name="dpviz-tasks.html",
        on_click="ignore",
        key="tasks.html",
        icon=":material/download:",
        help="One file that opens in any browser, without a network.",
    )
    command(plan)


def protection(plan: TaskPlan, ready: Prepared) -> None:
    """State what the privacy of this task covers, and what it does not."""
    st.header("What is protected, and what is not", anchor="protected")
    left, right = st.columns(2)
    with left:
        st.markdown("**Protected**")
        st.markdown("\n".join(f"- {item}" for item in tasks_words.protected(plan)))
    with right:
        st.markdown("**Not protected**")
        st.markdown("\n".join(f"- {item}" for item in tasks_words.unprotected(plan)))
    for note in plan.notes:
        st.caption(f":material/edit_note: {plain(note)}")
    parts.assumed_public(ready, plan.assumed_public)


def command(plan: TaskPlan) -> None:
    """Show the command that gives the same numbers."""
    settings = replace(
        plan.settings, mechanisms=tuple(mechanism.text for mechanism in plan.mechanisms)
    )
    more = []
    for name, written in plan.task.texts().items():
        more += [params_of(Task)[name].flag, written]
    parts.command(settings, verb="task", more=[*more, "--out", "task.csv"])


def page(ready: Prepared) -> None:
    """Draw the page of one table."""
    head, found = st.empty(), st.container()
    try:
        offered = learners_for(ready.table.labels)
    except InvalidTable as needed:  # nothing is wrong: another table, or another label, will do
        where = " The choice is behind Upload: Label column." * (state.get("table") == state.UPLOAD)
        st.info(f"{plain(needed)}{where}", icon=":material/label:")
        return
    task = choices(ready, offered)
    mechanisms = chosen_mechanisms(task)
    plan = task_cache.task_plan(current.data_key, ready, current.settings, task, mechanisms)
    st.caption(plain(tasks_words.facts(plan)))
    protection(plan, ready)  # said while the run goes on, and the link is right while it does
    state.write_link()
    highlight.watch()
    with found:
        run(plan, head)


st.title("What can still be learned?", anchor=False)
with guard():
    if current.prepared is not None:
        page(current.prepared)
