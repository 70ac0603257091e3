"""The plan section: predictions from n and a spectrum, before a table exists."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pandas as pd
import streamlit as st

from dpviz.core.metrics import METRICS
from dpviz.core.number_text import numeral
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.load import planned, settings_of_plan, spectrum_of, whole_people
from dpviz.report.figures.theme import Panel, panels_unjudged
from dpviz.report.figures.tradeoff import line_key, tradeoff_figure
from dpviz.report.tables import curves
from dpviz.simulation import axes
from dpviz.studies.curves import limit_table
from pages.ui import curves as curves_asked
from pages.ui import looks, parts, targets
from pages.ui.ask import Paced
from pages.ui.copying import copyable
from pages.ui.loading import Current

METRIC = "recovery"


def section(settings: Settings, mechanisms: Sequence[Mechanism], *, shown: bool) -> None:
    """Predict from n and a spectrum alone, along any axis that needs no rows.

    Parameters
    ----------
    settings : Settings
    mechanisms : sequence of Mechanism
    shown : bool
        Whether the plan is open at first, because no table is loaded.
    """
    st.header("Plan before you have data", anchor="plan")
    if not st.toggle(
        "Plan from a number of people and a spectrum",
        value=shown,
        key="plan.show",
        persist_state="session",
    ):
        return
    left, middle, right = st.columns([1, 2, 1])
    people = left.text_input("People n", "100000", key="plan.n", persist_state="session")
    spectrum = middle.text_input(
        "Spectrum",
        "power:d=50,exponent=1.5,total=0.5",
        key="plan.spectrum",
        persist_state="session",
        help="Eigenvalues of the second-moment matrix, in units of the squared row-norm bound. "
        "Type numbers (0.4,0.2,0.1) or a formula: power:d=50,exponent=1.5,total=0.5, "
        "exponential:d=50,rate=0.3,total=0.5, rank:d=50,rank=3,signal=0.1,noise=0.002, or "
        "builtin:digits.",
    )
    axis = right.selectbox(
        "Plan along",
        list(axes.AXES_OF_PLANS),
        format_func=lambda name: axes.AXES_OF_PLANS[name].label,
        key="plan.axis",
        persist_state="session",
        help="The spectrum fixes the number of features d. Enter another spectrum to change d.",
    )
    rows = planned(spectrum_of(spectrum), whole_people(people))
    here = replace(settings, k=min(settings.k, rows.d - 1), allocation="uniform")
    about = Current(here, rows, ("plan", people, spectrum), None)
    values = axes.default_values(axis, rows, axes.FINE)
    mechanisms = curves_asked.coloured_first(mechanisms)
    st.html(looks.names_left_out("plan-curve", now=True))
    with st.container(key="plan-curve"):
        place = st.empty()
    key = st.empty()
    limits = limit_table(rows, here, axis, values, METRIC)
    stages = count()

    def show(lines: pd.DataFrame, panels: list[Panel] | None = None) -> None:
        marks = None
        if panels is not None and axis == "epsilon":
            marks = curves_asked.marks(about, mechanisms)
        known = panels or panels_unjudged(mechanisms)
        key.html(line_key(known))
        figure = tradeoff_figure(
            pd.DataFrame(columns=list(curves.BAND_COLUMNS)),
            known,
            x_title=axes.AXES_OF_PLANS[axis].label,
            y_title=METRICS[METRIC].label,
            shares=METRICS[METRIC].share,
            log_x=axis != "k",
            log_y=False,
            now=axes.now(rows, here, axis),
            limits=limits,
            predicted=lines,
            marks=marks,
            pointed=True,
        )
        name = "plan" if panels is not None else f"plan.stage.{next(stages)}"
        with place:
            parts.plot(figure, key=name, alt=f"Predicted recovery against {axis}")

    prediction = curves_asked.predicted(about, mechanisms, axis, METRIC, Paced(show))
    show(prediction, curves_asked.judged(mechanisms, rows.problem(here), rows.budget(here)))
    st.caption(
        f"Predicted along {axis} for {rows.n:,} people, {rows.d} features, {here.k} components and "
        f"epsilon {numeral(here.epsilon, 6)}. The prediction uses the spectrum alone: no table was "
        "read, and no private data was used."
    )
    for what in targets.NOUNS:
        goal = targets.goal_in_force(rows, here.k)
        targets.say_predicted(about, mechanisms, goal, what)
    st.caption("The command line makes the same plan, also for mechanisms without a prediction:")
    plan = settings_of_plan(here, rows.n, spectrum)
    numbers = ",".join(str(value) for value in values)
    more = shlex.join(["--over", axis, "--values", numbers, "--out", "plan.csv"])
    copyable(f"{plan.command(verb='sweep')} {more}")
