"""Explore: every chosen mechanism side by side at one setting."""

import json

import streamlit as st

from dpviz import narrative
from dpviz.figures.distance import distance_figure
from dpviz.figures.projection import projection_figure
from dpviz.figures.spectrum import spectrum_figure
from dpviz.figures.theme import panels
from dpviz.metrics import chance_distance, farthest_distance
from dpviz.projection import picture_table
from dpviz.sweeps import Comparison, distance_table, spectrum_table
from pages.ui import cached, controls, parts, shell, state
from pages.ui.guard import guard

current = shell.through_entry()

PICTURE_POINTS = 300


def spectrum(comparison: Comparison) -> None:
    """Draw the noisy eigenspectrum of each mechanism against the true one."""
    st.subheader("Eigenspectrum: what the noise does to the variances", anchor="spectrum")
    table = spectrum_table(comparison.prepared, comparison.results)
    option, height = spectrum_figure(
        table,
        panels(comparison.results),
        comparison.prepared.reference.eigenvalues.tolist(),
        {r.mechanism.text: r.edges for r in comparison.results if r.edges is not None},
        scale=state.get("spectrum", "explore"),
    )
    caption = narrative.spectrum_caption(comparison)
    st.echarts_chart(option, height=height, key="spectrum", alt=f"Eigenspectra. {caption}")
    st.caption(
        f"{caption} Grey: true eigenvalues, in units of the squared row bound. Coloured: median "
        "and range of the draws."
    )
    controls.setting("spectrum", "explore")
    parts.numbers("spectrum", table)


def distance(comparison: Comparison) -> None:
    """Draw how far each draw's subspace lies from the true one."""
    st.subheader("Subspace distance: how far the released space turns", anchor="distance")
    table = distance_table(comparison.results)
    d, k = comparison.problem.d, comparison.problem.k
    figure = distance_figure(
        table,
        panels(comparison.results),
        farthest=farthest_distance(d, k),
        chance=chance_distance(d, k),
    )
    caption = narrative.distance_caption(comparison)
    st.plotly_chart(figure, key="distance", alt=f"Subspace distances. {caption}")
    st.caption(
        f"{caption} Upper: each dot is one draw, the bar their median. Lower: each principal "
        "angle's median, with the central 95 % of the draws."
    )
    for result in comparison.results:
        sentence = narrative.convergence(result)
        if sentence is not None:
            st.caption(sentence)
    parts.numbers("distance", table)


def projection(comparison: Comparison) -> None:
    """Draw the rows in each released space."""
    st.subheader("Projection: what an analyst would see", anchor="projection")
    view = state.explore()
    draw = min(view.draw, comparison.settings.trials)
    table = picture_table(
        comparison.prepared, comparison.results, draw - 1, view.axes, PICTURE_POINTS
    )
    name = comparison.prepared.table.label_name
    option, height = projection_figure(
        table, panels(comparison.results), k=comparison.problem.k, label_name=name
    )
    caption = narrative.projection_caption(comparison)
    st.echarts_chart(option, height=height, key="projection", alt=f"Projections. {caption}")
    coloured = f" Colour: {name}." if name else ""
    st.caption(
        f"{caption}{coloured} Draw {draw} of {comparison.settings.trials}; all panels share their "
        "limits. The subspace is private; this picture of the rows is not."
    )
    left, right = st.columns(2)
    with left:
        controls.setting("axes", "explore")
    with right:
        controls.setting("draw", "explore", upper=comparison.settings.trials)
    parts.numbers("projection", table)


def table(comparison: Comparison) -> None:
    """Draw the sortable table of everything measured."""
    st.subheader("Every mechanism, by the numbers", anchor="table")
    st.dataframe(
        parts.results_table(comparison),
        hide_index=True,
        column_config=parts.results_columns(),
        placeholder="–",
        key="results",
        alt="Status, account and metrics of every mechanism",
    )
    st.caption(
        f"Means over {comparison.settings.trials} draws; click a heading to sort. A dash means "
        "the measure does not apply: only a subspace is released."
    )


def not_run(comparison: Comparison) -> None:
    """Say which mechanisms cannot run here, and why."""
    for item in comparison.skipped:
        st.caption(f"Not run: {item.mechanism}, because {item.reason}.")


def take_away(comparison: Comparison) -> None:
    """Draw what can be taken along: the numbers and the command."""
    st.subheader("Take it along", anchor="take")
    name = comparison.prepared.table.name
    left, middle, right = st.columns(3)
    left.download_button(
        "Summary (CSV)",
        lambda: comparison.summary_table().to_csv(index=False),
        file_name="dpviz-summary.csv",
        icon=":material/download:",
        on_click="ignore",
        key="download.summary",
    )
    middle.download_button(
        "Every draw (CSV)",
        lambda: comparison.table().to_csv(index=False),
        file_name="dpviz-draws.csv",
        icon=":material/download:",
        on_click="ignore",
        key="download.draws",
    )
    right.download_button(
        "All as JSON",
        lambda: json.dumps(comparison.to_json(), indent=1),
        file_name="dpviz.json",
        icon=":material/download:",
        on_click="ignore",
        key="download.json",
    )
    shown = name if state.get("table") != state.UPLOAD else "YOUR_FILE.csv"
    st.caption("The same numbers from the command line:")
    st.code(current.settings.command(shown), language="bash", wrap_lines=True)
    st.caption("Each figure has a save button in its lower or upper right corner.")


st.title("What does privacy cost this PCA?", anchor=False)
parts.newcomers()
with guard():
    if current.prepared is not None:
        found = cached.comparison(current.data_key, current.prepared, current.settings)
        st.markdown(f"**{narrative.verdict(found)}**")
        st.caption(narrative.facts(found))
        parts.table_notes(current.prepared)
        parts.fresh_draw()
        if found.results:
            spectrum(found)
            distance(found)
            projection(found)
            table(found)
            take_away(found)
        not_run(found)
        parts.assumed_public(current.prepared)
