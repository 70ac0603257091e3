"""Explore: every chosen mechanism side by side at one setting."""

from pages.ui import shell

current = shell.through_entry()

import math

import streamlit as st

from dpviz import narrative
from dpviz.figures.distance import distance_figure
from dpviz.figures.projection import projection_figure
from dpviz.figures.spectrum import spectrum_figure
from dpviz.figures.theme import panels
from dpviz.metrics import METRICS
from dpviz.projection import picture_table
from dpviz.sweeps import distance_table, spectrum_table
from pages.ui import cached, controls, state
from pages.ui.guard import guard

st.title("What does privacy cost this PCA?")
if current.prepared is None:
    st.stop()

with guard():
    comparison = cached.comparison(current.data_key, current.prepared, current.settings)
    prepared, results = comparison.prepared, list(comparison.results)
    st.markdown(narrative.verdict(comparison))
    shown = panels(results)
    st.subheader("Eigenspectrum")
    table = spectrum_table(prepared, results)
    edges = {r.mechanism.text: r.edges for r in results if r.edges}
    option, height = spectrum_figure(
        table, shown, prepared.reference.eigenvalues.tolist(), edges, scale=state.explore().spectrum
    )
    st.echarts_chart(option, height=height)
    st.caption(narrative.spectrum_caption(comparison))
    st.subheader("Subspace distance")
    d, k = prepared.d, comparison.problem.k
    st.plotly_chart(
        distance_figure(
            distance_table(results),
            shown,
            farthest=METRICS["projection_distance"].upper(d, k),
            chance=math.sqrt(2 * k * (1 - k / d)),
        )
    )
    st.subheader("Projection")
    pic = picture_table(prepared, results, 0, state.explore().axes, 300)
    option, height = projection_figure(pic, shown, k=k, label_name=prepared.table.label_name)
    st.echarts_chart(option, height=height)
