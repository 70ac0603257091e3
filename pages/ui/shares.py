"""Shares of the precision on a page: bars to drag, and a table of the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.core.allocation import LONGEST_IN_LINK, SMALLEST_SHARE, Allocation, of_mapping
from dpviz.core.errors import DpvizError
from dpviz.core.number_text import numeral
from dpviz.core.number_text import script as number_script
from dpviz.datasets import read_thetas
from dpviz.preparation.bounding import Prepared
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

_HERE = Path(__file__).parent
_MOUNT = st.components.v2.component(
    "dpviz_shares",
    css=(_HERE / "shares.css").read_text(encoding="utf-8"),
    js=f"{number_script()}\n{(_HERE / 'shares.js').read_text(encoding='utf-8')}",
)
_KEY = "shares.bars"


def bars(allocation: Allocation, prepared: Prepared) -> None:
    """Draw one bar a direction; letting one go sets the shares.

    Parameters
    ----------
    allocation : Allocation
        In force.
    prepared : Prepared
    """
    names = direction_names(prepared, allocation)
    table = shares_table(allocation, names)
    shares, locked = table["theta"].tolist(), _locked(allocation, len(names))

    def moved() -> None:
        sent = st.session_state[_KEY].moved
        with _refused(allocation):
            thetas, locks, last = _sent(sent, len(names))
            _use(moved_text(thetas, locks, last), locks)

    _MOUNT(
        key=_KEY,
        data={
            "names": list(names),
            "shares": shares,
            "locked": locked,
            "chosen": list(allocation.chosen),
            "least": SMALLEST_SHARE,
            # on the ball no shape of noise follows the shares
            "flows": prepared.domain.kind == "box",
            "title": "Share of the precision",
            "token": digest_of((allocation.text, names, locked)),
        },
        on_moved_change=state.on_change(moved),
    )
    if allocation.needs_spectrum:
        st.caption("These shares follow from the variances; the bars start from equal ones.")
    elif allocation.strategy == "custom" and len(names) > LONGEST_IN_LINK:
        st.caption(
            f"More than {LONGEST_IN_LINK} shares do not fit a link: the command and the settings "
            "file carry them."
        )


def _sent(sent: Any, d: int) -> tuple[list[float], list[bool], int]:
    """Return what a browser sent, made numbers; a browser may send anything."""
    try:
        thetas = [float(share) for share in sent["shares"]]
        locks = [bool(lock) for lock in sent["locked"]]
        last = int(sent["moved"])
    except (TypeError, KeyError, ValueError):
        thetas, locks, last = [], [], 0
    if len(thetas) != d:
        raise DpvizError(f"The bars must send {d} shares; they sent {len(thetas)}.")
    return thetas, locks, last


def _locked(allocation: Allocation, d: int) -> list[bool]:
    """Return which shares are locked: those of the allocation in force, if they were dragged."""
    held_for, locked = st.session_state.get("shares.locked", ("", []))
    return list(locked) if held_for == allocation.text[0] and len(locked) == d else [False] * d


def _use(text: str, locked: list[bool]) -> None:
    st.session_state["shares.locked"] = (text, locked)
    state.put("allocation", text)
    bar.bring_followers(told=False)


@contextmanager
def _refused(allocation: Allocation) -> Iterator[None]:
    # Beside the table and only until the allocation changes; the sidebar keeps its own.
    st.session_state["shares.refused"] = None
    try:
        yield
    except DpvizError as error:
        st.session_state["shares.refused"] = (allocation.text, str(error))


def as_table(allocation: Allocation, prepared: Prepared) -> None:
    """Offer the same shares as a table to edit, lock and rebalance, and as a file."""
    names = direction_names(prepared, allocation)
    start = shares_table(allocation, names)
    start["locked"] = _locked(allocation, len(names))
    with st.expander("The shares as a table", icon=":material/table:"):
        st.caption(
            "Edit theta, tick what must stay, and rebalance: the others are scaled until all sum "
            "to 1."
        )
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
        st.caption(f"The shares in the table sum to {numeral(total, 6)}.")

        def as_it_is() -> None:
            with _refused(allocation):
                _use(custom_text(edited["theta"].tolist()), edited["locked"].tolist())

        def balanced() -> None:
            with _refused(allocation):
                _use(rebalanced_text(edited), edited["locked"].tolist())

        left, middle, right = st.columns(3)
        left.button("Use as it is", key="shares.use", on_click=state.on_change(as_it_is))
        middle.button("Rebalance and use", key="shares.balance", on_click=state.on_change(balanced))
        parts.download(
            "Download (CSV)", lambda: shares_file(allocation, names, edited["theta"].tolist()),
            "allocation.csv", "shares.download", place=right,
        )  # fmt: skip
        st.file_uploader(
            "Shares from a file (columns feature or direction, and theta)",
            key="shares.upload",
            on_change=state.on_change(_arrived(allocation, prepared)),
        )


def complaint(allocation: Allocation) -> None:
    """Say why the last change of the shares was refused, if it was."""
    said_for, sentence = st.session_state.get("shares.refused") or (None, "")
    if said_for == allocation.text:
        say_error(sentence)


def _arrived(allocation: Allocation, prepared: Prepared) -> Callable[[], None]:
    def arrived() -> None:
        file = state.file_of("shares.upload")
        if file is None:
            return
        with _refused(allocation):
            thetas = read_thetas(file, name=file.name)
            state.put("allocation", of_mapping(thetas, prepared.columns, allocation.directions))

    return arrived
