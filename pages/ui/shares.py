"""Shares of the precision on a page: bars to drag, and a table of the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import streamlit as st

from dpviz.core.allocation import LONGEST_IN_LINK, SMALLEST_SHARE, Allocation, of_mapping
from dpviz.core.errors import DpvizError
from dpviz.core.number_text import numeral
from dpviz.datasets import read_thetas
from dpviz.preparation.bounding import Prepared
from dpviz.report.figures.shares import assets
from dpviz.studies.precision import (
    custom_text,
    direction_names,
    moved_text,
    rebalanced_text,
    shares_file,
    shares_table,
)
from pages.ui import bar, parts, state
from pages.ui.first_sight import digest_of
from pages.ui.guard import say_error

_MOUNT = st.components.v2.component("dpviz_shares", css=assets().css, js=assets().js)
_KEY = "shares.bars"


def bars(allocation: Allocation, prepared: Prepared) -> None:
    """Draw one bar per direction; releasing a bar sets the shares.

    Parameters
    ----------
    allocation : Allocation
        Current allocation of precision.
    prepared : Prepared
    """
    names = direction_names(prepared, allocation)
    table = shares_table(allocation, names)
    shares, flags = table["theta"].tolist(), _locks_of(allocation, len(names))

    def moved() -> None:
        message = st.session_state[_KEY].moved
        with _show_refusal(allocation):
            thetas, locks, last = _clean_message(message, len(names))
            _use(moved_text(thetas, locks, last), locks)

    _MOUNT(
        key=_KEY,
        data={
            "names": list(names),
            "shares": shares,
            "locked": flags,
            "chosen": list(allocation.chosen),
            "least": SMALLEST_SHARE,
            # If rows have an L2-norm bound, the noise does not depend on the shares.
            "flows": prepared.domain.kind == "box",
            "title": "Share of the precision",
            "token": digest_of((allocation.text, names, flags)),
        },
        on_moved_change=state.on_change(moved),
    )
    if allocation.needs_spectrum:
        st.caption("These shares follow from the variances; the bars start from equal shares.")
    elif allocation.strategy == "custom" and len(names) > LONGEST_IN_LINK:
        st.caption(
            f"A link holds at most {LONGEST_IN_LINK} shares. The command and the settings file "
            "hold all shares."
        )


def _clean_message(message: Any, d: int) -> tuple[list[float], list[bool], int]:
    """Return a browser's message as checked numbers, because a browser may send anything."""
    try:
        thetas = [float(share) for share in message["shares"]]
        locks = [bool(lock) for lock in message["locked"]]
        last = int(message["moved"])
    except (TypeError, KeyError, ValueError):
        thetas, locks, last = [], [], 0
    if len(thetas) != d:
        raise DpvizError(f"The browser must send {d} shares, one a bar; it sent {len(thetas)}.")
    return thetas, locks, last


def _locks_of(allocation: Allocation, d: int) -> list[bool]:
    """Return which shares are locked: the current allocation's, if a visitor dragged them."""
    held_for, locks = st.session_state.get("shares.locked", ("", []))
    return list(locks) if held_for == allocation.text[0] and len(locks) == d else [False] * d


def _use(text: str, locks: list[bool]) -> None:
    st.session_state["shares.locked"] = (text, locks)
    state.put("allocation", text)
    bar.bring_followers(toast=False)


@contextmanager
def _show_refusal(allocation: Allocation) -> Iterator[None]:
    # Show the error beside the table until the allocation changes; the sidebar has its own copy.
    st.session_state["shares.refused"] = None
    try:
        yield
    except DpvizError as error:
        st.session_state["shares.refused"] = (allocation.text, str(error))


def as_table(allocation: Allocation, prepared: Prepared) -> None:
    """Offer the same shares as a file, and as a table in which visitors edit and lock shares."""
    names = direction_names(prepared, allocation)
    start = shares_table(allocation, names)
    start["locked"] = _locks_of(allocation, len(names))
    with st.expander("The shares as a table", icon=":material/table:"):
        st.caption(
            "Edit theta, lock shares that must stay, and rebalance: unlocked shares are scaled "
            "until all shares sum to 1."
        )
        entries = st.data_editor(
            start,
            hide_index=True,
            disabled=["direction"],
            key=f"shares.{hash((allocation.text, names))}",
            alt="Editable shares of the precision of each direction",
            column_config={
                "direction": "Direction",
                "theta": st.column_config.NumberColumn("Theta", min_value=0.0, max_value=1.0),
                "locked": "Locked",
            },
        )
        total = entries["theta"].sum()
        st.caption(f"The shares in the table sum to {numeral(total, 6)}.")

        def as_it_is() -> None:
            with _show_refusal(allocation):
                _use(custom_text(entries["theta"].tolist()), entries["locked"].tolist())

        def balanced() -> None:
            with _show_refusal(allocation):
                _use(rebalanced_text(entries), entries["locked"].tolist())

        left, middle, right = st.columns(3)
        left.button("Use these shares", key="shares.use", on_click=state.on_change(as_it_is))
        middle.button("Rebalance shares", key="shares.balance", on_click=state.on_change(balanced))
        parts.download(
            "Download (CSV)", lambda: shares_file(allocation, names, entries["theta"].tolist()),
            "allocation.csv", "shares.download", place=right,
        )  # fmt: skip
        st.file_uploader(
            "Shares from a file (columns feature or direction, and theta)",
            key="shares.upload",
            on_change=state.on_change(_on_file(allocation, prepared)),
        )


def complaint(allocation: Allocation) -> None:
    """State why the last change of the shares was refused, if it was refused."""
    said_for, sentence = st.session_state.get("shares.refused") or (None, "")
    if said_for == allocation.text:
        say_error(sentence)


def _on_file(allocation: Allocation, prepared: Prepared) -> Callable[[], None]:
    def arrived() -> None:
        file = state.file_of("shares.upload")
        if file is None:
            return
        with _show_refusal(allocation):
            thetas = read_thetas(file, name=file.name)
            state.put("allocation", of_mapping(thetas, prepared.columns, allocation.directions))

    return arrived
