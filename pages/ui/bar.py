"""What is set on every visit, in one row above the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dpviz.base.params import params_of
from dpviz.mechanisms import all_mechanisms
from dpviz.prepare.bounding import Prepared
from dpviz.settings import Settings
from dpviz.tidy.precision import following
from dpviz.values.allocation_text import parse_allocation
from pages.ui import controls, parts, state

EQUAL = 0
SHARES = (EQUAL, *range(5, 100, 5), 99)
"""Percent of the precision that the favoured directions get; 0 stands for equal shares."""


def draw(
    prepared: Prepared | None,
    *,
    scrubbed: bool,
    note: str,
    table: Callable[[], None],
    upload: Callable[[], None],
) -> None:
    """Draw the row.

    Parameters
    ----------
    prepared : Prepared or None
    scrubbed : bool
        Whether the page moves epsilon itself: then the row has its number only.
    note : str
        What delta means for this table.
    table, upload : callable
        Draw the choice of table, and what an upload asks.
    """
    widths = [1.9, 1.0, 0.8, 0.9, 1.05, 1.9, 1.2, 1.3, 0.5]
    if not scrubbed:
        widths[1:3] = [1.25, 2.2]
        widths[5] = 1.15
    with st.container(key="bar"):
        cells = st.columns(widths, vertical_alignment="bottom", gap="small")
    with cells[0]:
        table()
    with cells[1], st.popover("Upload", icon=":material/upload:", width="stretch"):
        upload()
    with cells[2]:
        controls.logarithmic("epsilon", slider=not scrubbed)
    with cells[3]:
        controls.logarithmic("delta", slider=False, note=note)
    with cells[4]:
        controls.setting("k", upper=None if prepared is None else prepared.d)
    with cells[5]:
        if prepared is not None:
            _share(prepared)
    with cells[6]:
        if prepared is not None:
            with st.popover("Directions", width="stretch", help="Which directions are favoured"):
                controls.precision(prepared.columns)
                if prepared.domain.kind == "ball":
                    st.caption(
                        "On the ball any direction may carry a whole row: favouring some buys "
                        "nothing. Choose the box in the sidebar to see directions pay."
                    )
    with cells[7]:
        count = len(state.get("mechanisms")) or len(all_mechanisms())
        with st.popover(f"Mechanisms ({count})", width="stretch"):
            controls.mechanisms()
    with cells[8], st.popover("?", width="stretch", help="What am I looking at?"):
        parts.newcomers()


def _share(prepared: Prepared) -> None:
    """Draw the slider of the share that the favoured directions get."""
    allocation = parse_allocation(state.get("allocation"), state.get("directions"))
    if allocation.strategy not in ("uniform", "binary"):
        st.text_input(
            "Precision", allocation.strategy, disabled=True, key="bar.share.other",
            help="Shares of their own, one for each direction: see the Precision page.",
        )  # fmt: skip
        return
    now = EQUAL if allocation.strategy == "uniform" else round(100 * allocation.tau)
    options = sorted({*SHARES, now})

    def moved() -> None:
        share = st.session_state["bar.share"]
        if share == EQUAL:
            state.put("allocation", "uniform")
            return
        chosen = allocation.chosen or tuple(range(1, min(state.get("k"), prepared.d - 1) + 1))
        listed = ",".join(str(number) for number in sorted(chosen))
        state.put("allocation", f"binary:{listed}:{share / 100}")
        bring_followers()

    controls.fill("bar.share", now)
    st.select_slider(
        "Precision",
        options,
        format_func=lambda share: "equal" if share == EQUAL else f"{share:g} %",
        key="bar.share",
        help=params_of(Settings)["allocation"].help,
        on_change=state.on_change(moved),
    )


def bring_followers() -> None:
    """Put the mechanisms whose noise follows the shares onto the board, if none is there."""
    shown: tuple[Any, ...] = tuple(state.get("mechanisms"))
    if shown:
        missing = [key for key in following() if key not in shown]
        state.put("mechanisms", (*shown, *missing))
