"""The least epsilon or n for a goal, kept within the session."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, parse_variant, parse_variants
from dpviz.preparation.prepared import Measured
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import Predicted, Target, least, measured_need, predicted_target


@st.cache_data(scope="session", max_entries=50, show_spinner="Searching", show_time=True)
def _target(key: tuple[str, ...], _rows: Measured, _settings: Settings, _goal: Goal) -> Target:
    return least(_rows, _settings, parse_variant(key[-2]), _goal, key[-1])


def targets(
    data_key: tuple[str, ...], rows: Measured, settings: Settings, goal: Goal, what: str
) -> list[Target]:
    """Return the least epsilon or n of every chosen variant, sorted."""
    found = [
        _target((*data_key, repr(settings), repr(goal), mechanism.text, what), rows, settings, goal)
        for mechanism in parse_variants(settings.mechanisms)
    ]
    return sorted(found, key=lambda target: (not target.counts, target.estimate))


@st.cache_data(scope="session", max_entries=500, show_spinner="Predicting", show_time=True)
def _predicted_target(
    key: tuple[str, ...], _rows: Measured, _settings: Settings, _goal: Goal
) -> Predicted:
    return predicted_target(_rows, _settings, parse_variant(key[-2]), _goal, key[-1])


def predicted_targets(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    goal: Goal,
    mechanisms: Sequence[Mechanism],
    what: str,
) -> list[Predicted]:
    """Return the least epsilon or n that is predicted for each variant, the least first."""
    shared = (*data_key, repr(settings), repr(goal))
    found = [
        _predicted_target((*shared, mechanism.text, what), rows, settings, goal)
        for mechanism in mechanisms
    ]
    return sorted(found, key=Predicted.order)


@st.cache_data(scope="session", max_entries=50, show_spinner="Searching", show_time=True)
def _measured_need(
    key: tuple[str, ...], _rows: Measured, _settings: Settings, rho: float, eta: float
) -> Target:
    return measured_need(_rows, _settings, parse_variant(key[-1]), rho, eta)


def need(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    mechanism: Mechanism,
    rho: float,
    eta: float,
) -> Target:
    """Return the people at which one mechanism finds the first component."""
    key = (*data_key, repr(settings), mechanism.text)
    return _measured_need(key, rows, settings, rho, eta)
