"""Tasks: what can still be learned after a private projection, or from a private release."""

PAGE = {
    "title": "Tasks",
    "icon": ":material/school:",
    "place": 130,
    "group": "Reference",
    "term": "component",
}

import math
from collections.abc import Callable
from dataclasses import replace

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
from dpviz.report.sentences.phrases import FAILS_THERE, by_reason, join_words
from dpviz.simulation.tasks import (
    LEARNERS,
    Learner,
    Task,
    TaskPlan,
    label_words,
    learners_for,
    releasing_rows,
)
from dpviz.simulation.tasks.task import PROJECTION
from dpviz.studies.options import options_of
from dpviz.studies.task import Learned, steps
from pages.ui import controls, highlight, limits, parts, shell, state
from pages.ui.ask import ask, store
from pages.ui.guard import guard
from pages.ui.texts import plain

current = shell.through_entry()


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
    controls.control(
        st.selectbox,
        "Learner",
        "tasks.learner",
        now.key,
        lambda learner: state.put("learner", learner, "tasks"),
        options=[learner.key for learner in offered],
        format_func=lambda key: f"{LEARNERS[key].label} ({LEARNERS[key].kind})",
        help=params_of(Task)["learner"].help,
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


def results_of(
    ready: Prepared, task: Task, mechanisms: list[Mechanism], show: Callable[[Learned], object]
) -> Learned:
    """Return what was learned, or is known of it where the visitor has stopped it.

    On a public server it is begun when its button is pressed. Parts are kept: on disk where the
    table is public, else in the session.
    """
    settings = replace(current.settings, mechanisms=tuple(one.text for one in mechanisms))
    own = {name: getattr(task, name) for name in params_of(Task)}
    mine = state.get("table") == state.UPLOAD
    return ask(
        steps,
        {**options_of(settings), **own},
        current,
        draw=show,
        saying="Learning",
        aside={"cache": store(public=not mine), "strict": False},
        begin=not limits.caps().public,
        seconds=math.inf,
    )


class Place:
    """Where the sentence, the figure and what is protected stand while they come.

    Parameters
    ----------
    ready : Prepared
    """

    def __init__(self, ready: Prepared) -> None:
        self._ready, self._stage = ready, 0
        self.top, self.control, self._chart = st.empty(), st.container(), st.empty()
        self.below = self.facts = st.container()
        self._said = False

    def show(self, found: Learned, key: str = "") -> go.Figure | None:
        """Draw what was learned so far; while it comes, each stage has elements of its own."""
        plan, bands = found.plan, found.bands
        if not self._said:  # while the run goes on, and the link is right while it does
            self._said = True
            with self.facts:
                st.caption(plain(tasks_words.facts(plan)))
                protection(plan, self._ready)
                highlight.watch()
            state.write_link()
        if not bands["mechanism"].isin([one.text for one in plan.mechanisms]).any() and not key:
            return None  # floors alone, or nothing yet: an empty frame says nothing
        self._stage += 1
        at = plan.shown_epsilon
        figure = task_figure(
            bands,
            panels_of(plan.mechanisms, *plan.problem_and_budget(0, at)),
            score=plan.learner.score,
            epsilons=plan.epsilons,
            now=plan.settings.epsilon,
        )
        said = tasks_words.verdict(plan, bands)
        short = tasks_words.lead(plan, bands) or said
        self.top.markdown(f"**{short}**")
        if key:  # the last of a run
            with self.top.container():
                parts.lead(short, "Follow a line.")
        self._chart.plotly_chart(
            figure,
            key=key or f"tasks.{self._stage}",
            alt=f"{plan.learner.score.label.capitalize()} along epsilon. {said}",
        )
        return figure


def results(found: Learned, figure: go.Figure) -> None:
    """Draw the table, what was left out, and what can be taken along."""
    plan, table = found.plan, found.table()
    rows, columns = parts.grid(found.all_columns(), found.rows)
    score = plan.learner.score.label
    st.expander("Every mechanism at every epsilon", icon=":material/table:").dataframe(
        rows,
        hide_index=True,
        placeholder="–",
        key="tasks.table",
        alt=f"{score[:1].upper()}{score[1:]} of every mechanism at every epsilon, with floors",
        column_config=columns,
    )
    for reason, names in by_reason(plan.skipped).items():
        labels = join_words(parse_variant(name).label for name in names)
        st.caption(f"Not run: {labels}, because {reason}.")
    parts.numbers("tasks", table)
    left, right = st.columns(2)
    rounds, name = (lambda: csv_text(table)), "dpviz-tasks.csv"
    parts.download("Every round (CSV)", rounds, name, "tasks.csv", place=left)
    parts.figure_file(lambda: figure, "dpviz-tasks.html", "tasks.html", place=right)
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
    mechanisms = tuple(mechanism.text for mechanism in plan.mechanisms)
    settings = replace(current.settings, mechanisms=mechanisms)
    more = []
    for name, written in plan.task.texts().items():
        more += [params_of(Task)[name].flag, written]
    parts.command(settings, verb="task", more=[*more, "--out", "task.csv"])


def page(ready: Prepared) -> None:
    """Draw the page of one table."""
    place = st.container()
    try:
        offered = learners_for(ready.table.labels)
    except InvalidTable as needed:  # nothing is wrong: another table, or another label, will do
        where = " The choice is behind Upload: Label column." * (state.get("table") == state.UPLOAD)
        st.info(f"{plain(needed)}{where}", icon=":material/label:")
        return
    with place:
        shown = Place(ready)
    task = choices(ready, offered)
    mechanisms = chosen_mechanisms(task)
    shown.facts = st.container()  # below the fields
    with shown.control:
        found = results_of(ready, task, mechanisms, shown.show)
    if found.share == 0:
        shown.show(found)
        return
    figure, plan, bands = shown.show(found, "tasks"), found.plan, found.bands
    fails = any(Verdict(verdict).fails for verdict in bands["verdict"] if verdict)
    said = [
        tasks_words.verdict(plan, bands) * (tasks_words.lead(plan, bands) is not None),
        tasks_words.gains(plan, bands),
        f"Bands: {tasks_words.BAND}.",
        FAILS_THERE * fails,
    ]
    with shown.below:
        with st.popover("How to read this chart", icon=":material/info:"):
            st.markdown(" ".join(filter(None, said)))
        results(found, figure)


parts.question("Can you still train a useful classifier?")
with guard():
    if current.prepared is not None:
        page(current.prepared)
