"""Precision: spend noise where it hurts least."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import streamlit as st

from dpviz.datasets import read_thetas
from dpviz.errors import DpvizError
from dpviz.figures.precision import accounts_figure, ellipses_figure, prices_figure, stds_figure
from dpviz.figures.theme import panels
from dpviz.narrative import explore as explore_words
from dpviz.narrative import precision as precision_words
from dpviz.prepare.bounding import Prepared
from dpviz.run.compare import Comparison
from dpviz.tidy.precision import (
    account_table,
    custom_text,
    direction_names,
    directions_warning,
    gain_table,
    noise_table,
    pair_table,
    precision_variants,
    price_table,
    rebalanced_text,
    shares_file,
    shares_table,
    spend_table,
    supplier_note,
)
from dpviz.values.allocation_text import of_mapping
from pages.ui import bounds, cached, parts, shell, state
from pages.ui import sections as views
from pages.ui.guard import guard, say_error
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
    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        hide_index=True,
        placeholder="–",
        key="spend",
        alt="Budget spent on directions and on the release, and their sum",
        column_config={
            "mechanism": "Mechanism",
            "supplier": "Directions from",
            "epsilon_directions": number("Epsilon for directions", format="%.4g"),
            "epsilon_release": number("+ for the release", format="%.4g"),
            "epsilon": number("= epsilon", format="%.4g"),
            "delta_directions": number("Delta for directions", format="%.3g"),
            "delta_release": number("+ for the release", format="%.3g"),
            "delta": number("= delta", format="%.3g"),
            "directions_spent": number(
                "Spent on directions",
                format="%.4g",
                help="The epsilon that the supplier really spends, at the delta it was given.",
            ),
            "spent": number("Spent together", format="%.4g"),
        },
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
    figure = stds_figure(table, shown, names, problem.allocation.chosen)
    caption = precision_words.noise_caption(table, comparison)
    st.plotly_chart(figure, key="stds", alt=f"Noise along each direction. {caption}")
    st.caption(caption)
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
    if table.empty:
        return  # the caption has said why
    pair = pair_table(table, first, second, only_near=near)
    figure = ellipses_figure(pair, shown, names[first - 1], names[second - 1])
    st.plotly_chart(figure, key="ellipses", alt="Noise ellipses in two directions")
    st.caption(
        "Each ellipse is one standard deviation of the noise on the two variances; isotropic "
        "noise is a circle. Shaping squeezes one axis and stretches the other."
    )
    parts.numbers("noise", table)


def was_it_worth_it(comparison: Comparison, uniform: Comparison) -> None:
    """Draw what the allocation gained against equal shares."""
    st.header("Was it worth it?", anchor="gain")
    table = gain_table(comparison, uniform)
    st.dataframe(
        table,
        hide_index=True,
        placeholder="–",
        key="gains",
        alt="Captured share with this allocation and with equal shares",
        column_config={
            "mechanism": "Mechanism",
            "share": st.column_config.NumberColumn("Captured share", format="%.3f"),
            "uniform": st.column_config.NumberColumn("with equal shares", format="%.3f"),
            "overlap": st.column_config.NumberColumn(
                "in the favoured features",
                format="%.3f",
                help="How much of the released space lies in the favoured features.",
            ),
            "spent": st.column_config.NumberColumn("Spent epsilon", format="%.3g"),
            "status": "Status",
        },
    )
    st.caption(
        "Knowing which directions matter helps in two ways: it shapes the noise, and it says which "
        "noisy entries to trust. The variant with isotropic noise shows the second alone."
    )
    st.caption(
        "Choosing the favoured directions or tau by looking at this table uses the data: a real "
        "release fixes them beforehand, from public knowledge."
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
    st.plotly_chart(
        prices_figure(prices, shown), key="prices", alt="Noise of a direction against its share"
    )
    st.caption(
        "Noise along one direction against its share of the precision, the others dividing the "
        "rest. Isotropic noise does not ask: its line is flat."
    )
    parts.numbers("accounts", table)


def editor(comparison: Comparison, prepared: Prepared) -> None:
    """Offer a table of shares to edit, lock and rebalance."""
    allocation = comparison.problem.allocation
    st.header("Custom shares", anchor="custom")
    st.markdown(
        "Edit theta, tick what must stay, and rebalance: the others are scaled until all sum to 1."
    )
    names = direction_names(prepared, allocation)
    start = shares_table(allocation, names)
    locked_for, locked = st.session_state.get("shares.locked", ("", []))
    if locked_for == allocation.text[0] and len(locked) == len(names):
        start["locked"] = locked
    edited = st.data_editor(
        start,
        hide_index=True,
        disabled=["direction"],
        key=f"shares.{hash((allocation.text, names))}",
        alt="Share of the precision of each direction, to edit",
        column_config={
            "direction": "Direction",
            "theta": st.column_config.NumberColumn("Theta", min_value=0.0, max_value=1.0),
            "locked": "Locked",
        },
    )
    total = edited["theta"].sum()
    left, middle, right = st.columns(3)

    def use(text: str) -> None:
        st.session_state["shares.locked"] = (text, edited["locked"].tolist())
        state.put("allocation", text)

    def as_it_is() -> None:
        with refused():
            use(custom_text(edited["theta"].tolist()))

    def balanced() -> None:
        with refused():
            use(rebalanced_text(edited))

    def arrived() -> None:
        file = st.session_state["shares.upload"]
        if file is None:
            return
        with refused():
            thetas = read_thetas(file, name=file.name)
            state.put("allocation", of_mapping(thetas, prepared.columns, allocation.directions))

    @contextmanager
    def refused() -> Iterator[None]:
        # Beside the table and only until the allocation changes; the sidebar keeps its own.
        st.session_state["shares.refused"] = None
        try:
            yield
        except DpvizError as error:
            st.session_state["shares.refused"] = (allocation.text, str(error))

    left.button("Use as it is", key="shares.use", on_click=state.on_change(as_it_is))
    middle.button("Rebalance and use", key="shares.balance", on_click=state.on_change(balanced))
    right.download_button(
        "Download (CSV)",
        lambda: shares_file(allocation, names, edited["theta"].tolist()),
        file_name="allocation.csv",
        on_click="ignore",
        key="shares.download",
    )
    st.caption(f"The shares in the table sum to {total:.6g}.")
    said_for, sentence = st.session_state.get("shares.refused") or (None, "")
    if said_for == allocation.text:
        say_error(sentence)
    st.file_uploader(
        "Shares from a file (columns feature or direction, and theta)",
        key="shares.upload",
        on_change=state.on_change(arrived),
    )


st.title("Precision: spend noise where it hurts least", anchor=False)
with guard():
    if current.prepared is not None:
        settings = replace(current.settings, mechanisms=precision_variants())
        found = cached.comparison(current.data_key, current.prepared, settings)
        equal = cached.comparison(
            current.data_key, current.prepared, replace(settings, allocation="uniform")
        )
        st.markdown(f"**{precision_words.precision_verdict(found, equal)}**")
        st.caption(plain(explore_words.facts(found)))
        st.caption(precision_words.domain_caption(found))
        what_directions_cost(found)
        bounds.editor(current.prepared)
        where_it_goes(found)
        was_it_worth_it(found, equal)
        what_it_buys(found)
        views.spectrum(found, current.data_key)
        views.distance(found)
        views.projection(found)
        editor(found, current.prepared)
        views.not_run(found)
        parts.command(replace(current.settings, mechanisms=settings.mechanisms))
        parts.assumed_public(current.prepared)
