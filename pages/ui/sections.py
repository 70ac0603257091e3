"""Sections that show a comparison, for several pages."""

from __future__ import annotations

import streamlit as st

from dpviz.core.metrics import METRICS, chance_distance, farthest_distance
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import Prepared
from dpviz.report.figures.distance import distance_figure
from dpviz.report.figures.theme import panels
from dpviz.report.sentences import explore as explore_words
from dpviz.report.sentences.phrases import account_words
from dpviz.report.tables.board import LINES
from dpviz.report.tables.comparison import distance_table, spectrum_table
from dpviz.report.tables.frame import PICTURE_POINTS
from dpviz.report.tables.projection import picture_table
from dpviz.simulation.compare import Comparison
from dpviz.studies.compare import MEASURED, Compared
from pages.ui import board, controls, highlight, parts, state
from pages.ui.texts import plain


def spectrum(comparison: Comparison) -> None:
    """Draw the noisy eigenspectrum of each mechanism against the true eigenspectrum."""
    st.header("Eigenspectrum: what the noise does to the variances", anchor="spectrum")
    table = spectrum_table(comparison.prepared, comparison.results)
    board.spectra(comparison, linear=state.get("spectrum", "explore") == "linear")
    caption = explore_words.spectrum_caption(comparison)
    st.caption(
        f"{caption} Grey marks true eigenvalues, in units of the squared row-norm bound. Colours "
        "mark the median and range of simulated releases. Dotted lines mark the analytically "
        f"predicted median. {LINES}"
    )
    controls.setting("spectrum", "explore")
    parts.numbers("spectrum", table)


def distance(comparison: Comparison) -> None:
    """Draw how far each simulated subspace is from the true subspace."""
    st.header("Subspace distance: how far the released space turns", anchor="distance")
    table = distance_table(comparison.results)
    d, k = comparison.problem.d, comparison.problem.k
    figure = distance_figure(
        table,
        panels(comparison.results),
        farthest=farthest_distance(d, k),
        chance=chance_distance(d, k),
    )
    caption = explore_words.distance_caption(comparison)
    parts.plot(figure, key="distance", alt=f"Subspace distances. {caption}")
    highlight.watch()
    st.caption(
        f"{caption} In the top chart, a dot is one simulated release, and a bar is the median. The "
        "bottom chart shows the median of each principal angle, with the central 95 % of releases."
    )
    _convergence(comparison)
    parts.numbers("distance", table)


def projection(comparison: Comparison, prepared: Prepared) -> None:
    """Draw the rows of the table in each released space."""
    st.header("Projection: what an analyst would see", anchor="projection")
    view = state.explore()
    draw = min(view.draw, comparison.settings.trials)
    board.pictures(comparison, prepared, draw - 1, view.axes)
    st.caption(
        f"{explore_words.projection_caption(comparison)} The charts show simulated release {draw} "
        f"of {comparison.settings.trials} on one scale. The subspace is private, but this chart of "
        "the rows is not."
    )
    left, right = st.columns(2)
    with left:
        controls.setting("axes", "explore")
    with right:
        controls.setting("draw", "explore", upper=comparison.settings.trials)
    table = picture_table(prepared, list(comparison.results), draw - 1, view.axes, PICTURE_POINTS)
    parts.numbers("projection", table)


def one(comparison: Comparison) -> None:
    """Draw every number of the mechanism whose column is open in the comparison figure."""
    (result,) = comparison.results
    text, label = result.mechanism.text, result.mechanism.label
    st.subheader(f"{label}: every number", anchor="one")
    st.markdown(f"**{result.status.marked}.** {result.status.evidence}")
    st.caption(f"{label} {account_words(result.claimed, result.spent)}.")
    _convergence(comparison)
    rows, columns = parts.grid(MEASURED, list(result.summaries.values()))
    rows.insert(0, "measure", [METRICS[key].label for key in result.summaries])
    st.dataframe(
        rows,
        hide_index=True,
        key=f"one.{text}",
        column_config={"measure": "Measure", **columns},
        alt=f"Every measure of {label}",
    )
    parts.numbers(f"spectrum of {label}", spectrum_table(comparison.prepared, comparison.results))
    parts.numbers(f"distances of {label}", distance_table(comparison.results))


def _convergence(comparison: Comparison) -> None:
    """Offer to show the convergence of approximate samplers."""
    sentences = [sentence for r in comparison.results if (sentence := explore_words.convergence(r))]
    if sentences:
        with st.expander("How well the approximate sampler has converged"):
            for sentence in sentences:
                st.caption(sentence)


def table(comparison: Comparison) -> None:
    """Offer the sortable table of all measurements; browsers load a grid's code slowly."""
    box = st.expander("Table of all mechanisms and measures", key="results.open", on_change="rerun")
    if not box.open:
        return
    answer = Compared.of(comparison)
    rows, columns = parts.grid(answer.all_columns(), answer.results)
    box.dataframe(
        rows,
        hide_index=True,
        column_config=columns,
        placeholder="–",
        key="results",
        alt="Status, privacy loss and measures of every mechanism",
    )
    box.caption(
        f"Each number is the mean of {comparison.settings.trials} simulated releases; click a "
        "heading to sort. A dash means that the measure does not apply, because only a subspace is "
        "released."
    )


def not_run(comparison: Comparison) -> None:
    """State which mechanisms cannot run here, and why."""
    for item in comparison.skipped:
        name = parse_variant(item.mechanism).label
        st.caption(plain(f"Not run: {name}, because {item.reason}."))
