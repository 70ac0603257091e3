"""Precision: spend noise where it hurts least."""

PAGE = {
    "title": "Precision",
    "icon": ":material/tune:",
    "place": 40,
    "term": "noise",
    "unread": ("mechanisms",),
}

from dataclasses import replace

import streamlit as st

from dpviz.report.figures.precision import (
    accounts_figure,
    ellipses_figure,
    payoff_figure,
    prices_figure,
    stds_figure,
)
from dpviz.report.figures.theme import panels
from dpviz.report.sentences import explore as explore_words
from dpviz.report.sentences import precision as precision_words
from dpviz.report.tables.precision import (
    account_table,
    direction_names,
    directions_warning,
    falling_prices,
    gain_table,
    noise_table,
    pair_table,
    precision_variants,
    price_table,
    spend_table,
    supplier_note,
    unequal,
)
from dpviz.simulation.compare import Comparison
from pages.ui import bounds, cached, examples, looks, parts, shares, shell
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
    rows, columns = parts.numerals(
        table,
        {
            "epsilon_directions": ("Epsilon for directions", 4),
            "epsilon_release": ("+ for the release", 4),
            "epsilon": ("= epsilon", 4),
            "delta_directions": ("Delta for directions", 3),
            "delta_release": ("+ for the release", 3),
            "delta": ("= delta", 3),
            "directions_spent": (
                "Spent on directions",
                4,
                "The epsilon that the supplier really spends, at the delta it was given.",
            ),
            "spent": ("Spent together", 4),
        },
    )
    st.dataframe(
        rows,
        hide_index=True,
        placeholder="–",
        key="spend",
        alt="Budget spent on directions and on the release, and their sum",
        column_config={"mechanism": "Mechanism", "supplier": "Directions from", **columns},
    )
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
    if not unequal(table):
        st.caption(caption)  # flat lines and circles would say no more
        return
    figure = stds_figure(table, shown, names, problem.allocation.chosen)
    st.html(looks.names_left_out("stds"))
    st.plotly_chart(figure, key="stds", alt=f"Noise along each direction. {caption}")
    st.caption(caption)
    parts.numbers("noise", table)
    if not st.toggle("The noise of two directions", key="precision.pair", persist_state="session"):
        return
    left, right = st.columns(2)
    numbers = list(range(1, problem.d + 1))
    first = left.selectbox(
        "Ellipse across",
        numbers,
        format_func=lambda number: names[number - 1],
        key="precision.first",
        persist_state="session",
    )
    second = right.selectbox(
        "and up",
        numbers,
        index=problem.d - 1,
        format_func=lambda number: names[number - 1],
        key="precision.second",
        persist_state="session",
    )
    near = st.toggle(
        "Leave out accounts with over ten times the least noise",
        value=True,
        key="precision.near",
        persist_state="session",
    )
    pair = pair_table(table, first, second, only_near=near)
    figure = ellipses_figure(pair, shown, names[first - 1], names[second - 1])
    st.plotly_chart(figure, key="ellipses", alt="Noise ellipses in two directions")
    st.caption(
        "Each ellipse is one standard deviation of the noise on the two variances; isotropic "
        "noise is a circle. Shaping squeezes one axis and stretches the other."
    )


def what_it_gained(comparison: Comparison, uniform: Comparison) -> None:
    """Draw what the allocation gained against equal shares, and say what cannot run."""
    table = gain_table(comparison, uniform)
    caption = precision_words.payoff_caption(comparison)
    if not table["recovery"].isna().all():
        st.plotly_chart(
            payoff_figure(table, panels(comparison.results)),
            key="payoff",
            alt=f"Recovery with these shares and with equal ones. {caption}",
        )
        st.caption(caption)
    views.not_run(comparison)


def what_it_spent(comparison: Comparison, uniform: Comparison) -> None:
    """Draw the numbers of the gain beside what was spent, and how far to trust them."""
    st.header("Was it worth it?", anchor="gain")
    rows, columns = parts.numerals(gain_table(comparison, uniform), {"spent": ("Spent epsilon", 3)})
    st.dataframe(
        rows,
        hide_index=True,
        placeholder="–",
        key="gains",
        alt="Recovery with these shares and with equal shares",
        column_order=["name", "recovery", "uniform", "spent", "status"],
        column_config={
            "name": "Mechanism",
            "recovery": st.column_config.NumberColumn("Recovery", format="percent"),
            "uniform": st.column_config.NumberColumn("with equal shares", format="percent"),
            "status": "Status",
            **columns,
        },
    )
    st.caption(
        "Choosing the favoured directions or tau by looking at this table uses the data: a real "
        "release fixes them beforehand, from public knowledge."
    )
    with st.popover("Why it pays", icon=":material/info:"):
        st.markdown(
            "Knowing which directions matter helps in two ways: it shapes the noise, and it says "
            "which noisy entries to trust. The variant with isotropic noise shows the second "
            "alone."
        )


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
    st.plotly_chart(
        accounts_figure(table, shown), key="accounts", alt=f"Noise under each account. {caption}"
    )
    st.caption(caption)
    prices = price_table(mechanisms, prepared, problem, budget, comparison.settings.seed)
    falling = falling_prices(prices)
    if not falling.empty:
        st.html(looks.names_left_out("prices"))
        st.plotly_chart(
            prices_figure(falling, shown),
            key="prices",
            alt="Noise of a direction against its share",
        )
    st.caption(precision_words.prices_caption(prices, falling, comparison))
    parts.numbers("accounts", table)


def more(comparison: Comparison) -> None:
    """Draw spectra, distances and pictures, where they are asked for."""
    if st.toggle("Spectra, distances and pictures", key="precision.more", persist_state="session"):
        views.spectrum(comparison, current.data_key)
        views.distance(comparison)
        if current.prepared is not None:
            views.projection(comparison, current.prepared)


st.title("Spend noise where it hurts least", anchor=False)
with guard():
    examples.draw()
    if current.prepared is not None:
        settings = replace(current.settings, mechanisms=precision_variants())
        found = cached.comparison(current.data_key, current.prepared, settings)
        equal = cached.comparison(
            current.data_key, current.prepared, replace(settings, allocation="uniform")
        )
        allocation = found.problem.allocation
        st.markdown(f"**{precision_words.precision_verdict(found, equal)}**")
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
        more(found)
        parts.command(replace(current.settings, mechanisms=settings.mechanisms))
        parts.settings_file(current.settings, "precision.settings")
        parts.assumed_public(current.prepared, found.assumed_public)
