"""What is set on every visit, in one row above the page."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import streamlit as st

from dpviz.core.allocation import parse_allocation
from dpviz.core.number_text import numeral, per_cent
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.preparation.bounding import Prepared
from dpviz.report.sentences.phrases import join_words
from dpviz.studies.precision import following
from pages.ui import controls, parts, state

EQUAL = 0
SHARES = (EQUAL, *range(5, 100, 5), 99)
"""Percent of the precision that the favoured directions get; 0 stands for equal shares."""

WIDTHS = {
    "table": 2.1, "upload": 1.1, "epsilon": 0.8, "delta": 0.9, "k": 1.3, "precision": 1.5,
    "directions": 1.25, "mechanisms": 1.5, "help": 0.6,
}  # fmt: skip
"""The parts of the row and how wide they are, where epsilon is its number only."""


def draw(
    prepared: Prepared | None,
    *,
    scrubbed: bool,
    note: str,
    table: Callable[[], None],
    upload: Callable[[], None],
    unused: Collection[str] = (),
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
    unused : collection of str
        What the page does not read, and so does not show: keys of `WIDTHS`.
    """
    widths = WIDTHS if scrubbed else WIDTHS | {"epsilon": 2.0, "precision": 1.15}
    kept = {name: width for name, width in widths.items() if name not in unused}
    # What is left keeps its place: the row does not move from page to page.
    spared = sum(widths.values()) - sum(kept.values())
    with st.container(key="bar"):
        # On a phone: what is set stands in a sheet below it, and this opens the sheet at once.
        st.html('<details class="dp-sheet"><summary>Settings</summary></details>')
        drawn = st.columns(
            [*kept.values(), *([spared] if spared else [])],
            vertical_alignment="bottom",
            gap="small",
        )
    cells = dict(zip(kept, drawn, strict=False))

    def draw_in(name: str, act: Callable[[], None]) -> None:
        if name in cells:
            with cells[name]:
                act()

    def uploading() -> None:
        # another one, and so closed, once a file has come: what is said of it lies underneath
        key = f"bar.upload.{st.session_state.get('uploads', 0)}"
        with st.popover("Upload", icon=":material/upload:", width="stretch", key=key):
            upload()

    def chosen() -> None:
        count = len(state.get("mechanisms")) or len(all_mechanisms())
        with st.popover(f"Mechanisms ({count})", width="stretch"):
            controls.mechanisms()

    def explained() -> None:
        with st.popover("?", width="stretch", help="What am I looking at?"):
            parts.newcomers()

    draw_in("table", table)
    draw_in("upload", uploading)
    draw_in("epsilon", lambda: controls.logarithmic("epsilon", slider=not scrubbed))
    draw_in("delta", lambda: controls.logarithmic("delta", slider=False, note=note))
    draw_in("k", lambda: controls.setting("k", upper=None if prepared is None else prepared.d))
    if prepared is not None:
        draw_in("precision", lambda: _share(prepared, told="mechanisms" in cells))
        draw_in("directions", lambda: _directions(prepared))
    draw_in("mechanisms", chosen)
    draw_in("help", explained)


def _directions(prepared: Prepared) -> None:
    """Draw which directions are favoured."""
    with st.popover("Directions", width="stretch", help="Which directions are favoured"):
        controls.precision(prepared.columns)
        if prepared.domain.kind == "ball":
            st.caption(
                "On the ball any direction may carry a whole row: favouring some buys "
                "nothing. Choose the box in the sidebar to see directions pay."
            )


def _share(prepared: Prepared, *, told: bool) -> None:
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

    def moved(share: int) -> None:
        if share == EQUAL:
            state.put("allocation", "uniform")
            return
        chosen = allocation.chosen or tuple(range(1, min(state.get("k"), prepared.d - 1) + 1))
        listed = ",".join(str(number) for number in sorted(chosen))
        state.put("allocation", f"binary:{listed}:{share / 100}")
        bring_followers(told=told)

    controls.control(
        st.select_slider,
        "Precision",
        "bar.share",
        now,
        moved,
        options=options,
        format_func=lambda share: "equal" if share == EQUAL else per_cent(numeral(share, 6)),
        help=params_of(Settings)["allocation"].help,
    )


def bring_followers(*, told: bool) -> None:
    """Put the mechanisms whose noise follows the shares onto the board, if none is there."""
    shown: tuple[Any, ...] = tuple(state.get("mechanisms"))
    if shown:
        missing = [key for key in following() if key not in shown]
        state.put("mechanisms", (*shown, *missing))
        if missing and told:
            names = join_words(parse_variant(key).label for key in missing)
            said = f"Added to show what the precision does to their noise: {names}."
            st.toast(said, icon=":material/info:", duration="long")  # it moves nothing
