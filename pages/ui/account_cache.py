"""Accounts, kept: of a mechanism or of a whole chain, and what each step of a preparation costs."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from dpviz.auditing.account import account_view
from dpviz.core.errors import DpvizError
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Aim
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.steps import PrivateSteps
from dpviz.releasing.making import float_safe
from dpviz.releasing.noise import Law
from dpviz.simulation.cells import cell_at
from dpviz.simulation.compare import bias_of, hint_of
from dpviz.simulation.simulate import Cell
from dpviz.studies.waterfall import mechanism_of, stages, waterfall_table


@st.cache_data(scope="session", max_entries=50, show_spinner="Preparing privately", show_time=True)
def _waterfall(
    key: tuple[str, ...], _prepared: Prepared, _settings: Settings
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    found = stages(_prepared, _settings)
    return waterfall_table(found), found[-1].assumed_public


def waterfall(
    data_key: tuple[str, ...], prepared: Prepared, settings: Settings
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return what each private step of a preparation costs, and what stays assumed public."""
    own = replace(settings, mechanisms=(mechanism_of(settings).text,))
    return _waterfall((*data_key, repr(own)), prepared, own)


@st.cache_data(max_entries=200, show_spinner=False)
def _account(
    key: tuple[str, ...],
    _mechanism: Mechanism,
    _problem: Problem,
    _budget: Budget,
    _paid: PrivateSteps | None,
) -> tuple[str, pd.DataFrame, pd.DataFrame] | str:
    try:
        view = account_view(_mechanism, _problem, _budget, private=_paid)
    except DpvizError as error:
        return str(error)
    numbers = [
        f"{name} {numeral(value, 4)}"
        for name, value in (("mu", view.mu), ("rho", view.rho))
        if value
    ]
    if view.private is not None:
        steps = ", ".join(view.private.steps)
        left = (
            f"preparation ({steps}) and release, which gets epsilon {numeral(view.rest.epsilon, 3)}"
        )
        numbers.insert(0, f"The whole chain: {left}")
    return "; ".join(numbers), view.curve_table(), view.repeated_table()


@st.cache_data(scope="session", max_entries=50, show_spinner=False)
def _hints(key: tuple[str, ...], _prepared: Prepared, _settings: Settings) -> dict[str, str]:
    found = {}
    for cls in all_mechanisms().values():
        cell = cell_at(_prepared, _settings, cls(), range(1))
        if isinstance(cell, Cell):
            aim = cell.mechanism.aims_at(cell.problem, cell.budget)
            said = None if aim is Aim.COMPONENTS else hint_of(aim, bias_of(cell, _prepared))
            if said is not None:
                found[cell.mechanism.text] = said
    return found


def hints(data_key: tuple[str, ...], prepared: Prepared, settings: Settings) -> dict[str, str]:
    """Return, of each mechanism that aims at something else than A, how far that leads here."""
    own = replace(settings, mechanisms=())
    return _hints((*data_key, repr(own)), prepared, own)


def account(
    mechanism: Mechanism, problem: Problem, budget: Budget, private: PrivateSteps | None = None
) -> tuple[str, pd.DataFrame, pd.DataFrame] | str:
    """Return mu and rho in words, the curve, and what repeating costs; or why there is none.

    It is that of the whole chain where steps of the preparation are paid for too.
    """
    key = (mechanism.text, repr(problem), repr(budget), repr(private))
    return _account(key, mechanism, problem, budget, private)


def account_of_releases(
    epsilon: float, delta: float
) -> tuple[str, pd.DataFrame, pd.DataFrame] | str:
    """Return the account of the mechanism that makes real releases."""
    problem = Problem(1_000, 10, 2, Relation.REPLACE, Domain.ball(10))
    wanted = Law.NORMAL if delta > 0 else Law.LAPLACE
    mechanism = parse_variant(next(key for key, law in float_safe().items() if law is wanted))
    return account(mechanism, problem, Budget(epsilon, delta))
