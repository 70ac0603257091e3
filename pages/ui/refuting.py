"""Refutations, one at a time: the failing claim, by how much it fails, and why."""

from __future__ import annotations

import streamlit as st

from dpviz.auditing import exhibits, finds
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget
from dpviz.report.figures.claims import (
    cone_figure,
    delta_figure,
    gibbs_figure,
    support_figure,
    turning_figure,
)
from dpviz.report.sentences import claims as claims_words
from pages.ui import parts, state
from pages.ui.ask import ask
from pages.ui.copying import copyable


def draw(budget: Budget, seed: int) -> None:
    """Draw the opened exhibit; other exhibits are neither computed nor sent."""
    match state.get("exhibit", "claims"):
        case "support":
            d = st.slider(
                "Features d", 2, 20, 5, key="claims.d", persist_state="session", width=320
            )
            moving_cone(budget.epsilon, d, seed)
        case "direction":
            turning(budget.epsilon, seed)
        case "delta":
            true_delta(budget)
        case "code":
            public_code(budget, seed)
        case "chain":
            chain(budget.epsilon, seed)


def moving_cone(epsilon: float, d: int, seed: int) -> None:
    """Draw how often one-sided noise reveals its table, and why."""
    broken, repair = exhibits.moving_cone(), exhibits.repaired_cone()
    st.header(f"{broken.label}: a support that moves with the data", anchor="support")
    table = ask(exhibits.support_table, {"d": d, "epsilon": epsilon, "seed": seed})
    cone = ask(exhibits.cone_table, {"epsilon": epsilon, "seed": seed})
    left, right = st.columns(2)
    with left:
        caption = claims_words.support_caption(table, epsilon, d)
        title = "Share of releases that betray their table"
        parts.chart(support_figure(table, epsilon), "claims.support", title, caption, table)
    with right:
        caption = claims_words.cone_caption(cone)
        parts.chart(cone_figure(cone), "claims.cone", "Releases at d = 2", caption, cone)
        st.caption(
            f"Points are releases minus the full table's matrix, in units of 1/n. {repair.label} "
            f"{repair.info.summary[0].lower()}{repair.info.summary[1:]}"
        )


def turning(epsilon: float, seed: int) -> None:
    """Draw the published direction for a table of three rows, with and without one row."""
    label = exhibits.bare_directions().label
    st.header(f"{label}: the direction itself is published", anchor="direction")
    rows = exhibits.turning_rows()
    table = ask(exhibits.turning_table, {"epsilon": epsilon, "seed": seed})
    caption = claims_words.turning_caption(table, label)
    figure = turning_figure(rows, table)
    parts.chart(figure, "claims.turning", "Published directions", caption)
    left, right = st.columns(2)
    left.dataframe(rows, hide_index=True, key="claims.turning.rows", alt="The rows of both tables")
    columns = {name: name for name in table.columns} | {"angle": ("angle, degrees", "%.1f")}
    title = "The published direction of each release"
    parts.table(table, columns, "claims.turning.releases", title, place=right)


def public_code(budget: Budget, seed: int) -> None:
    """Show two errors found in public code."""
    st.header("Found in public code: a mask that mirrors the data", anchor="mask")
    table = finds.mask_table(budget.epsilon, budget.delta or exhibits.DELTA, seed)
    columns = {
        "entry": "Entry",
        "exact": ("Entry in the table", "%.6f"),
        "read_off": ("Read from the release", "%.6f"),
        "as_meant": ("Published as intended", "%.6f"),
    }
    title = "Off-diagonal entries of a synthetic table, as read from the release"
    parts.table(table, columns, "claims.mask", title)
    st.caption(
        f"{claims_words.mask_caption(table)} dpviz recomputed the numbers from this description "
        f"alone; the code is at {finds.MASK_SOURCE}."
    )
    st.header("Found in public code: two samplers that are too concentrated", anchor="samplers")
    samples = ask(finds.sampler_table, {"seed": seed})
    columns = {
        "sampler": "Sampler",
        "mean": ("Mean of u_1^2", "%.4f"),
        "se": ("Standard error", "%.4f"),
        "draws": "Draws",
        "measured": "Measured",
    }
    title = "Mean of the first coordinate squared, by each sampler"
    parts.table(samples, columns, "claims.samplers", title)
    st.caption(claims_words.sampler_caption(samples))
    copyable("python -m benchmarks.bingham")


def true_delta(budget: Budget) -> None:
    """Draw the true delta of Gaussian releases and the claimed delta."""
    st.header("The true delta of classical Gaussian noise", anchor="delta")
    deltas = ask(exhibits.delta_table, {"delta": budget.delta or exhibits.DELTA})
    if deltas.empty:
        st.caption(f"At delta {numeral(budget.delta)} no Gaussian release exceeds its claim.")
        return
    caption = claims_words.delta_caption(deltas)
    figure = delta_figure(deltas, budget.epsilon)
    parts.chart(figure, "claims.delta", "True delta against epsilon", caption, deltas)


def chain(epsilon: float, seed: int) -> None:
    """Draw how near a Gibbs chain comes to the exact distribution with each sweep."""
    st.header("A Gibbs chain compared with the exact law", anchor="chain")
    chains = ask(exhibits.gibbs_table, {"epsilon": epsilon, "seed": seed})
    caption = claims_words.gibbs_caption(chains)
    caption += (
        " With three features and two components, the remaining direction has a Bingham law, whose "
        "mean is known."
    )
    figure = gibbs_figure(chains)
    parts.chart(figure, "claims.gibbs", "Mean score after each sweep", caption, chains)
