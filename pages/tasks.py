"""Tasks: what can still be learned after a private projection, or from a private release."""

PAGE = {
    "title": "Tasks",
    "icon": ":material/school:",
    "place": 130,
    "group": "Reference",
    "term": "component",
    "about": "A classifier learns after a private release. Each line is one mechanism; two more "
    "lines show learning without privacy, and guessing. Below the chart, the page states which "
    "rows and labels are protected and which are not.",
}

import math
from collections.abc import Callable
from dataclasses import replace

import plotly.graph_objects as go
import streamlit as st

from dpviz.core.errors import InvalidTable
from dpviz.core.files import csv_text
from dpviz.core.number_text import numeral
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


def choices(ready: Prepared, learners: list[Learner]) -> Task:
    """Draw the controls; return the task with a learner that suits the label."""
    task = state.view("tasks")
    assert isinstance(task, Task)
    fitting = {learner.key: learner for learner in learners}
    learner = fitting.get(task.learner or "", learners[0])
    left, right = st.columns([1, 2])
    with left:
        _learner(learners, learner)
    with right:
        controls.setting("source", "tasks")
    if task.learner not in (None, learner.key):
        st.caption(
            f"{LEARNERS[task.learner].label} does not suit this label, which "
            f"{label_words(ready.table.labels)}. dpviz shows {learner.label} instead."
        )
    left, right = st.columns([1, 2])
    with left:
        controls.setting("epsilons", "tasks")
    with right, st.expander("Splits and tuning", icon=":material/call_split:"):
        is_projection = task.source == PROJECTION
        controls.setting("tuning", "tasks")
        if is_projection:
            controls.setting("subspace", "tasks")
        first, second = st.columns(2)
        with first:
            controls.setting("splits", "tasks")
            if is_projection:
                controls.setting("subspace_share", "tasks")
        with second:
            controls.setting("most", "tasks")
            controls.setting("test_share", "tasks")
    st.caption(learner.about)
    return replace(task, learner=learner.key)


def _learner(learners: list[Learner], now: Learner) -> None:
    """Draw the choice among learners that suit the label."""
    controls.control(
        st.selectbox,
        "Learner",
        "tasks.learner",
        now.key,
        lambda learner: state.put("learner", learner, "tasks"),
        options=[learner.key for learner in learners],
        format_func=lambda key: f"{LEARNERS[key].label} ({LEARNERS[key].kind})",
        help=params_of(Task)["learner"].help,
    )


def chosen_mechanisms(task: Task) -> list[Mechanism]:
    """Return the chosen mechanisms, or all that release rows if none of the chosen ones does."""
    variants = parse_variants(current.settings.mechanisms)
    if task.source == PROJECTION:
        return variants
    able = [mechanism for mechanism in variants if mechanism.why_no_rows is None]
    if able:
        return able
    st.caption(
        "None of the chosen mechanisms releases rows to learn from. dpviz shows all mechanisms "
        "that release rows."
    )
    return releasing_rows()


def results_of(
    ready: Prepared, task: Task, mechanisms: list[Mechanism], show: Callable[[Learned], object]
) -> Learned:
    """Return the result of the task, or its known part if the visitor stopped the run.

    On a public server the run begins when its button is pressed. Parts are stored on disk if the
    table is public, otherwise in the session.
    """
    settings = replace(current.settings, mechanisms=tuple(one.text for one in mechanisms))
    own = {name: getattr(task, name) for name in params_of(Task)}
    mine = state.get("table") == state.UPLOAD
    aside = {"cache": store(public=not mine), "strict": False}
    return ask(
        steps, {**options_of(settings), **own}, current, draw=show, saying="Learning", aside=aside,
        begin=not limits.caps().public, seconds=math.inf,
    )  # fmt: skip


class Place:
    """Places for the sentence, the figure and the protection while results arrive.

    Parameters
    ----------
    ready : Prepared
    """

    def __init__(self, ready: Prepared) -> None:
        self._ready, self._stage = ready, 0
        self.top, self.control, self._chart = st.empty(), st.container(), st.empty()
        self.below = self.facts = st.container()
        self._said = False

    def _step(self, short: str, larger: list[float]) -> None:
        """Draw the answer, and a button that sets the next larger epsilon of the chart."""
        if not larger:
            parts.lead(short, "See this epsilon on Explore", to=shell.page("Explore"))
            return
        act = state.on_change(lambda: state.put("epsilon", min(larger)))
        parts.lead(short, f"Set epsilon to {numeral(min(larger), 3)}", act)

    def show(self, answer: Learned, key: str = "") -> go.Figure | None:
        """Draw the results so far, with separate elements for each stage of a run."""
        plan, bands = answer.plan, answer.bands
        if not self._said:  # Set this early, so that the link is right during the run.
            self._said = True
            with self.facts:
                st.caption(plain(tasks_words.facts(plan)))
                protection(plan, self._ready)
                highlight.watch()
            state.write_link()
        if not bands["mechanism"].isin([one.text for one in plan.mechanisms]).any() and not key:
            return None  # No mechanism has results yet, so draw no empty chart.
        self._stage += 1
        at = plan.shown_epsilon
        variants = panels_of(plan.mechanisms, *plan.problem_and_budget(0, at))
        score, now = plan.learner.score, plan.settings.epsilon
        figure = task_figure(bands, variants, score=score, epsilons=plan.epsilons, now=now)
        sentence = tasks_words.verdict(plan, bands)
        short = tasks_words.lead(plan, bands) or sentence
        self.top.markdown(f"**{short}**")
        if key:  # The key is set only for the last update of a run.
            with self.top.container():
                self._step(short, [one for one in plan.epsilons if one > at])
        parts.plot(
            figure,
            place=self._chart,
            key=key or f"tasks.{self._stage}",
            alt=f"{plan.learner.score.label.capitalize()} along epsilon. {sentence}",
        )
        return figure


def results(answer: Learned, figure: go.Figure) -> None:
    """Draw the table, the omitted mechanisms, and the downloads."""
    plan, table = answer.plan, answer.table()
    rows, columns = parts.grid(answer.all_columns(), answer.rows)
    score = plan.learner.score.label
    st.expander("Score of each mechanism at each epsilon", icon=":material/table:").dataframe(
        rows,
        hide_index=True,
        placeholder="–",
        key="tasks.table",
        alt=f"{score[:1].upper()}{score[1:]} of each mechanism at each epsilon, with baselines",
        column_config=columns,
    )
    for reason, names in by_reason(plan.skipped).items():
        labels = join_words(parse_variant(name).label for name in names)
        st.caption(f"Not run: {labels}, because {reason}.")
    parts.numbers("tasks", table)
    left, right = st.columns(2)
    rounds, name = (lambda: csv_text(table)), "dpviz-tasks.csv"
    parts.download("Every training round (CSV)", rounds, name, "tasks.csv", place=left)
    parts.figure_file(lambda: figure, "dpviz-tasks.html", "tasks.html", place=right)
    command(plan)


def protection(plan: TaskPlan, ready: Prepared) -> None:
    """State what the privacy of this task covers, and what it does not cover."""
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
    for name, text in plan.task.texts().items():
        more += [params_of(Task)[name].flag, text]
    parts.command(settings, verb="task", more=[*more, "--out", "task.csv"])


def page(ready: Prepared) -> None:
    """Draw the page of one table."""
    place = st.container()
    try:
        learners = learners_for(ready.table.labels)
    except InvalidTable as reason:  # No error: another table or label may work.
        where = " Choose a column under Upload: Label column." * (
            state.get("table") == state.UPLOAD
        )
        st.info(f"{plain(reason)}{where}", icon=":material/label:")
        return
    with place:
        layout = Place(ready)
    task = choices(ready, learners)
    mechanisms = chosen_mechanisms(task)
    layout.facts = st.container()  # The facts are drawn below the fields.
    with layout.control:
        answer = results_of(ready, task, mechanisms, layout.show)
    if answer.share == 0:
        layout.show(answer)
        return
    figure, plan, bands = layout.show(answer, "tasks"), answer.plan, answer.bands
    fails = any(Verdict(verdict).fails for verdict in bands["verdict"] if verdict)
    sentences = [
        tasks_words.verdict(plan, bands) * (tasks_words.lead(plan, bands) is not None),
        tasks_words.gains(plan, bands),
        f"Bands: {tasks_words.BAND}.",
        FAILS_THERE * fails,
    ]
    with layout.below:
        with st.popover("How to read this chart", icon=":material/info:"):
            st.markdown(" ".join(filter(None, sentences)))
        results(answer, figure)


parts.question("Can you still train a useful classifier?")
with guard():
    if current.prepared is not None:
        page(current.prepared)
