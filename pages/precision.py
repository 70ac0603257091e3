"""Precision: put the noise where it hurts least."""

PAGE = {
    "title": "Precision",
    "icon": ":material/tune:",
    "place": 40,
    "term": "noise",
    "unread": ("mechanisms",),
}

from dataclasses import replace

import streamlit as st

from dpviz.core.release import Verdict
from dpviz.report.figures.precision import (
    accounts_figure,
    payoff_figure,
    prices_figure,
    stds_figure,
)
from dpviz.report.figures.theme import panels
from dpviz.report.sentences import explore as explore_words
from dpviz.report.sentences import precision as precision_words
from dpviz.simulation.compare import Comparison
from dpviz.studies.precision import (
    account_table,
    direction_names,
    directions_warning,
    gain_table,
    noise_table,
    precision_variants,
    price_table,
    spend_table,
    supplier_note,
    uneven,
)
from pages.ui import board, bounds, examples, looks, parts, shares, shell
from pages.ui import sections as views
from pages.ui.guard import guard
from pages.ui.texts import plain

current = shell.through_entry()


def what_directions_cost(comparison: Comparison) -> None:
    """Say what the directions cost: a share of the budget, or the guarantee."""
    warning = directions_warning(comparison.problem.allocation)
    if warning is not None:
        st.warning(warning, icon=":material/lock_open:")
    table = spend_table(comparison)
    if table.empty:
        return
    st.header("What the directions cost", anchor="spend")
    told = "The epsilon that the supplier really spends, at the delta it was given."
    columns: dict[str, parts.Heading] = {
        "mechanism": "Mechanism",
        "supplier": "Directions from",
        "epsilon_directions": ("Epsilon for directions", 4),
        "epsilon_release": ("+ for the release", 4),
        "epsilon": ("= epsilon", 4),
        "delta_directions": ("Delta for directions", 3),
        "delta_release": ("+ for the release", 3),
        "delta": ("= delta", 3),
        "directions_spent": ("Spent on directions", 4, told),
        "spent": ("Spent together", 4),
    }
    seen = "Budget spent on directions and on the release, and their sum"
    parts.table(table, columns, "spend", seen)
    note = supplier_note(comparison.problem)
    if note is not None:
        st.caption(note)
    st.caption(
        "The directions are bought first and the rest of the budget pays for the release. What a "
        "supplier does not spend, and what two parts save by composing better than by addition, "
        "goes to the release where the exact account is used, so both together spend the budget "
        "and no more."
    )


def where_it_goes(comparison: Comparison) -> None:
    """Draw the noise along each direction, and the ellipse of two of them."""
    prepared, problem, budget = comparison.prepared, comparison.problem, comparison.budget
    shown = panels(comparison.results)
    names = direction_names(prepared, problem.allocation)
    mechanisms = [result.mechanism for result in comparison.results]
    table = noise_table(mechanisms, prepared, problem, budget, comparison.settings.seed)
    st.header("Where the noise goes", anchor="noise")
    caption = precision_words.noise_caption(table, comparison)
    if uneven(table).empty:
        st.caption(caption)  # flat lines and circles would say no more
        return
    figure = stds_figure(table, shown, names, problem.allocation.chosen)
    st.html(looks.names_left_out("stds"))
    parts.chart(figure, "stds", "Noise along each direction", caption, table)


def what_it_gained(comparison: Comparison, uniform: Comparison) -> None:
    """Draw what the allocation gained against equal shares; loose bounds are folded away."""
    table = gain_table(comparison, uniform)
    if table["recovery"].isna().all():
        views.not_run(comparison)
        return
    loose = {r.mechanism.text for r in comparison.results if r.status.verdict is Verdict.LOOSE}
    shown = panels(comparison.results)
    folded = [panel for panel in shown if panel.key in loose]
    st.header("What you gain: structure kept", anchor=False)
    unfolded = st.empty()
    more = folded and st.toggle(
        f"Show {len(folded)} whose bounds are too loose to keep anything",
        key="precision.loose",
        persist_state="session",
    )
    caption = precision_words.payoff_caption(comparison)
    with unfolded:
        st.plotly_chart(
            payoff_figure(table, [one for one in shown if more or one.key not in loose]),
            key="payoff",
            alt=f"Recovery with these shares and with equal ones. {caption}",
        )
    st.caption(f"{caption} Decide on shares before you see the table: choosing them here uses it.")
    views.not_run(comparison)


def what_it_spent(comparison: Comparison, uniform: Comparison) -> None:
    """Draw the numbers of the gain beside what was spent, and how far to trust them."""
    st.header("Was it worth it?", anchor="gain")
    columns: dict[str, parts.Heading] = {
        "name": "Mechanism",
        "recovery": ("Recovery", "percent"),
        "uniform": ("with equal shares", "percent"),
        "spent": ("Spent epsilon", 3),
        "status": "Status",
    }
    seen = "Recovery with these shares and with equal shares"
    parts.table(gain_table(comparison, uniform), columns, "gains", seen)


def what_it_buys(comparison: Comparison) -> None:
    """Draw what the budget buys under each account."""
    st.header("What the budget buys under each account", anchor="accounts")
    prepared, problem, budget = comparison.prepared, comparison.problem, comparison.budget
    shown = panels(comparison.results)
    mechanisms = [result.mechanism for result in comparison.results]
    table = account_table(mechanisms, prepared, problem, budget, comparison.settings.seed)
    if table.empty:
        return
    caption = precision_words.accounts_caption(table, comparison)
    parts.chart(accounts_figure(table, shown), "accounts", "Noise under each account", caption)
    prices = price_table(mechanisms, prepared, problem, budget, comparison.settings.seed)
    falling = uneven(prices)
    if not falling.empty:
        st.html(looks.names_left_out("prices"))
        st.plotly_chart(
            prices_figure(falling, shown),
            key="prices",
            alt="Noise of a direction against its share",
        )
    st.caption(precision_words.prices_caption(prices, falling, comparison))
    parts.numbers("accounts", table)


parts.question("Can you put the noise where it hurts least?")
lead = st.container()
with guard():
    examples.draw()
    if current.prepared is not None:
        settings = replace(current.settings, mechanisms=precision_variants())
        found, equal = board.with_shares(current, settings)
        allocation = found.problem.allocation
        with lead:
            step = "Drag a bar: who gets less noise?"
            parts.lead(precision_words.precision_verdict(found, equal), step)
        with st.container():  # a place of its own: a sentence that comes moves nothing
            shares.complaint(allocation)
        left, right = st.columns([1, 1], gap="large")
        with left:
            shares.bars(allocation, current.prepared)
            st.caption(precision_words.domain_caption(found))
        with right:
            what_it_gained(found, equal)
        shares.as_table(allocation, current.prepared)
        bounds.editor(current.prepared)
        st.caption(plain(explore_words.facts(found)))
        what_directions_cost(found)
        where_it_goes(found)
        what_it_spent(found, equal)
        what_it_buys(found)
        parts.command(replace(current.settings, mechanisms=settings.mechanisms))
        parts.settings_file(current.settings, "precision.settings")
        parts.assumed_public(current.prepared, found.assumed_public)
