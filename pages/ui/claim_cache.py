"""Attacks and pictures of made-up tables, kept: nothing of a session's data, so all share them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpviz.auditing import Audit, audit, finds
from dpviz.auditing import exhibits as refutations
from dpviz.core.problem import Budget, Relation
from dpviz.mechanisms import parse_variant
from dpviz.simulation.growth import growth_table


@st.cache_data(max_entries=100, show_spinner=False)
def support(d: int, epsilon: float, seed: int) -> pd.DataFrame:
    """Return how often one-sided noise betrays its table."""
    return refutations.support_table(d, epsilon, seed)


@st.cache_data(max_entries=100, show_spinner=False)
def cone(epsilon: float, seed: int) -> pd.DataFrame:
    """Return the releases of the picture of the cone."""
    return refutations.cone_table(epsilon, seed)


@st.cache_data(max_entries=100, show_spinner=False)
def turning(epsilon: float, seed: int) -> pd.DataFrame:
    """Return the directions of the table of three."""
    return refutations.turning_table(epsilon, seed)


@st.cache_data(max_entries=100, show_spinner=False)
def true_deltas(delta: float) -> pd.DataFrame:
    """Return the true delta of Gaussian releases that give more than they claim."""
    return refutations.delta_table(delta)


@st.cache_data(max_entries=100, show_spinner=False)
def gibbs(epsilon: float, seed: int) -> pd.DataFrame:
    """Return the mean score of Gibbs chains beside the exact one."""
    return refutations.gibbs_table(epsilon, seed)


@st.cache_data(max_entries=20, show_spinner=False)
def samplers(seed: int) -> pd.DataFrame:
    """Return the first coordinate's mean square by dpviz's sampler and by two libraries."""
    return finds.sampler_table(seed)


@st.cache_resource(max_entries=20, show_spinner="Releasing two made-up tables again and again")
def audited(
    variant: str,
    budget: tuple[float, float],
    d: int,
    k: int,
    relation: str,
    seed: int,
    trials: int,
) -> Audit:
    """Return the audit of one variant."""
    return audit(
        parse_variant(variant),
        Budget(*budget),
        d=d,
        k=k,
        relation=Relation(relation),
        seed=seed,
        trials=trials,
    )


@st.cache_data(max_entries=2, show_spinner="Measuring the noise at d from 10 to 160")
def growth() -> pd.DataFrame:
    """Return measured and stated growth of the noise in d; no data is involved."""
    return growth_table()
