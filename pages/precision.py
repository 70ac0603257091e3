"""Precision: noise with less variance along the directions that matter."""

PAGE = {
    "title": "Precision",
    "icon": ":material/tune:",
    "place": 40,
    "term": "noise",
    "unread": ("mechanisms",),
    "about": "Noise need not be the same in every direction. Each bar is the share of the "
    "precision of one direction: a larger share means less noise in that direction. Drag the bars "
    "and compare recovery with equal shares. The choice must not use private data.",
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
    shown,
    spend_table,
    supplier_note,
    uneven,
)
from pages.ui import board, bounds, examples, highlight, looks, parts, shares, shell
from pages.ui import sections as views
from pages.ui.guard import guard
from pages.ui.texts import plain

current = shell.through_entry()


def what_directions_cost(comparison: Comparison) -> None:
    """State what the directions cost: a share of the budget, or the guarantee."""
    warning = directions_warning(comparison.problem.allocation)
    if warning is not None:
        st.warning(warning, icon=":material/lock_open:")
    table = spend_table(comparison)
    if table.empty:
        return
    st.header("What the directions cost", anchor="spend")
    help_text = "Epsilon that the release of directions actually uses, at its own delta."
    columns: dict[str, parts.Heading] = {
        "mechanism": "Mechanism",
        "supplier": "Directions from",
        "epsilon_directions": ("Epsilon for directions", 4),
        "epsilon_release": ("Epsilon for the release", 4),
        "epsilon": ("= epsilon", 4),
        "delta_directions": ("Delta for directions", 3),
        "delta_release": ("Delta for the release", 3),
        "delta": ("= delta", 3),
        "directions_spent": ("Used for directions", 4, help_text),
        "spent": ("Used in total", 4),
    }
    title = "Budget used for directions and for the release, and the sum"
    parts.table(table, columns, "spend", title)
    note = supplier_note(comparison.problem)
    if note is not None:
        st.caption(note)
    st.caption(
        "The directions use their share of the budget first, and the release uses the rest. Under "
        "the exact account, the release also gets what the directions do not use and what "
        "composition saves. Directions and release together use at most the budget."
    )


def where_it_goes(comparison: Comparison) -> None:
    """Draw the noise along each direction, and its ellipse for two directions."""
    prepared, problem, budget = comparison.prepared, comparison.problem, comparison.budget
    variants = panels(comparison.results)
    names = direction_names(prepared, problem.allocation)
    mechanisms = [result.mechanism for result in comparison.results]
    table = noise_table(mechanisms, prepared, problem, budget, comparison.settings.seed)
    st.header("Where the noise goes", anchor="noise")
    caption = precision_words.noise_caption(table, comparison)
    if uneven(table).empty:
        st.caption(caption)  # With equal shares, flat lines would show nothing.
        return
    figure = stds_figure(table, variants, names, problem.allocation.chosen)
    st.html(looks.names_left_out("stds"))
    parts.chart(figure, "stds", "Noise along each direction", caption, table)


def what_it_gained(comparison: Comparison, uniform: Comparison) -> None:
    """Draw the gain of the allocation over equal shares; loose bounds are folded away."""
    table = gain_table(comparison, uniform)
    if table["recovery"].isna().all():
        views.not_run(comparison)
        return
    loose = {r.mechanism.text for r in comparison.results if r.status.verdict is Verdict.LOOSE}
    variants = panels(comparison.results)
    loose_panels = [panel for panel in variants if panel.key in loose]
    st.header("What you gain: structure kept", anchor=False)
    chart_place = st.empty()
    more = loose_panels and st.toggle(
        f"Show {len(loose_panels)} mechanisms whose loose bounds leave no structure",
        key="precision.loose",
        persist_state="session",
    )
    caption = precision_words.payoff_caption(comparison)
    with chart_place:
        parts.plot(
            payoff_figure(table, [one for one in variants if more or one.key not in loose]),
            key="payoff",
            alt=f"Recovery with your shares and with equal shares. {caption}",
        )
    st.caption(
        f"{caption} Choose shares before you see the table: a choice on this page uses the table's "
        "data."
    )
    views.not_run(comparison)


def what_it_spent(comparison: Comparison, uniform: Comparison) -> None:
    """Draw the gains beside the actual privacy loss and the status."""
    st.header("What did the shares gain and cost?", anchor="gain")
    columns: dict[str, parts.Heading] = {
        "name": "Mechanism",
        "recovery": ("Recovery", "percent"),
        "uniform": ("with equal shares", "percent"),
        "spent": ("Actual loss (epsilon)", 3),
        "status": "Status",
    }
    title = "Recovery with your shares and with equal shares"
    parts.table(gain_table(comparison, uniform), columns, "gains", title)


def what_it_buys(comparison: Comparison) -> None:
    """Draw how much noise each accounting method requires for the budget."""
    st.header("How much noise does each account require?", anchor="accounts")
    prepared, problem, budget = comparison.prepared, comparison.problem, comparison.budget
    variants = panels(comparison.results)
    mechanisms = [result.mechanism for result in comparison.results]
    table = account_table(mechanisms, prepared, problem, budget, comparison.settings.seed)
    if table.empty:
        return
    caption = precision_words.accounts_caption(table, comparison)
    parts.chart(accounts_figure(table, variants), "accounts", "Noise by privacy account", caption)
    prices = price_table(mechanisms, prepared, problem, budget, comparison.settings.seed)
    falling = uneven(prices)
    if not falling.empty:
        st.html(looks.names_left_out("prices"))
        parts.plot(
            prices_figure(falling, variants),
            key="prices",
            alt="Noise of each direction against the direction's share",
        )
    st.caption(precision_words.prices_caption(prices, falling, comparison))
    parts.numbers("accounts", table)


parts.question("Can you put the noise where it hurts least?")
lead = st.container()
with guard():
    examples.draw()
    if current.prepared is not None:
        settings = replace(current.settings, mechanisms=precision_variants())
        comparison, equal = board.with_shares(current, settings)
        allocation = comparison.problem.allocation
        with lead:
            text = precision_words.precision_verdict(comparison, equal)
            if shown(current.settings) is None and allocation.strategy != "uniform":
                parts.lead(text, "See these shares on Explore", to=shell.page("Explore"))
            else:
                parts.lead(text, *examples.following())
        with st.container():  # A container of its own lets a new sentence move nothing else.
            shares.complaint(allocation)
        left, right = st.columns([1, 1], gap="large")
        with left:
            shares.bars(allocation, current.prepared)
            st.caption(precision_words.domain_caption(comparison))
        with right:
            what_it_gained(comparison, equal)
        shares.as_table(allocation, current.prepared)
        bounds.editor(current.prepared)
        st.caption(plain(explore_words.facts(comparison)))
        what_directions_cost(comparison)
        where_it_goes(comparison)
        what_it_spent(comparison, equal)
        what_it_buys(comparison)
        parts.command(replace(current.settings, mechanisms=settings.mechanisms))
        parts.settings_file(current.settings, "precision.settings")
        parts.assumed_public(current.prepared, comparison.assumed_public)
        highlight.watch()
