"""Settings that every visitor needs, in one row above the page."""

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
"""Percent of the precision for the low-noise directions; 0 means equal shares."""

WIDTHS = {
    "table": 2.1, "upload": 1.1, "epsilon": 0.8, "delta": 0.9, "k": 1.45, "precision": 1.5,
    "directions": 1.25, "mechanisms": 1.5, "help": 0.45,
}  # fmt: skip
"""Relative widths of the controls in the row, if epsilon is only a number."""


def draw(
    prepared: Prepared | None,
    *,
    scrubbed: bool,
    note: str,
    table: Callable[[], None],
    upload: Callable[[], None],
    unused: Collection[str] = (),
    about: str,
) -> None:
    """Draw the row of settings.

    Parameters
    ----------
    prepared : Prepared or None
    scrubbed : bool
        Whether the page itself has a slider for epsilon; the row then has only the number.
    note : str
        The meaning of delta for this table.
    table, upload : callable
        Functions that draw the choice of table, and an upload with its questions.
    unused : collection of str
        Keys of `WIDTHS` that the page does not use, and therefore does not show.
    about : str
        Text on the page in a few sentences, for its help.
    """
    widths = WIDTHS if scrubbed else WIDTHS | {"epsilon": 2.0, "precision": 1.15}
    widths_here = {name: width for name, width in widths.items() if name not in unused}
    # Reserve the space of hidden controls, so that the row looks the same on all pages.
    spare = sum(widths.values()) - sum(widths_here.values())
    with st.container(key="bar"):
        # On a phone, this element opens the settings below it at once.
        st.html('<details class="dp-sheet"><summary>Settings</summary></details>')
        places = st.columns(
            [*widths_here.values(), *([spare] if spare else [])],
            vertical_alignment="bottom",
            gap="small",
        )
    cells = dict(zip(widths_here, places, strict=False))

    def draw_in(name: str, act: Callable[[], None]) -> None:
        if name in cells:
            with cells[name]:
                act()

    def uploading() -> None:
        # A new key closes the popover after a file arrives, because it would hide the report.
        key = f"bar.upload.{st.session_state.get('uploads', 0)}"
        with st.popover("Upload", icon=":material/upload:", width="stretch", key=key):
            upload()

    def chosen() -> None:
        count = len(state.get("mechanisms")) or len(all_mechanisms())
        with st.popover(f"Mechanisms ({count})", width="stretch"):
            controls.mechanisms()

    def explained() -> None:
        with st.popover("?", width="stretch", help="What am I looking at?", key="bar.help"):
            parts.newcomers(about)

    def epsilon() -> None:
        # A page with an epsilon slider shows it at the bottom of a phone, so draw a number here.
        with st.container(key="bar-number" if scrubbed else "bar-epsilon"):
            controls.logarithmic("epsilon", slider=not scrubbed)

    draw_in("table", table)
    draw_in("upload", uploading)
    draw_in("epsilon", epsilon)
    draw_in("delta", lambda: controls.logarithmic("delta", slider=False, note=note))
    draw_in("k", lambda: controls.setting("k", upper=None if prepared is None else prepared.d))
    if prepared is not None:
        draw_in("precision", lambda: _share(prepared, toast="mechanisms" in cells))
        draw_in("directions", lambda: _directions(prepared))
    draw_in("mechanisms", chosen)
    draw_in("help", explained)


def _directions(prepared: Prepared) -> None:
    """Draw the choice of low-noise directions."""
    with st.popover("Directions", width="stretch", help="Which directions get less noise"):
        controls.precision(prepared.columns)
        if prepared.domain.kind == "ball":
            st.caption(
                "With a row-norm bound (ball), any direction may carry a whole row, so "
                "low-noise directions do not help. Choose feature bounds (box) in the "
                "sidebar to see an effect."
            )


def _share(prepared: Prepared, *, toast: bool) -> None:
    """Draw the slider of the low-noise directions' share."""
    allocation = parse_allocation(state.get("allocation"), state.get("directions"))
    if allocation.strategy not in ("uniform", "binary"):
        st.text_input(
            "Precision", allocation.strategy, disabled=True, key="bar.share.other",
            help="Each direction has its own share: see the Precision page.",
        )  # fmt: skip
        return
    now = EQUAL if allocation.strategy == "uniform" else round(100 * allocation.tau)
    options = sorted({*SHARES, now})

    def moved(share: int) -> None:
        if share == EQUAL:
            state.put("allocation", "uniform")
            return
        directions = allocation.chosen or tuple(range(1, min(state.get("k"), prepared.d - 1) + 1))
        numbers = ",".join(str(number) for number in sorted(directions))
        state.put("allocation", f"binary:{numbers}:{share / 100}")
        bring_followers(toast=toast)

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


def bring_followers(*, toast: bool) -> None:
    """Add the mechanisms whose noise follows the shares to the comparison, if none is in it."""
    keys: tuple[Any, ...] = tuple(state.get("mechanisms"))
    if keys:
        missing = [key for key in following() if key not in keys]
        state.put("mechanisms", (*keys, *missing))
        if missing and toast:
            names = join_words(parse_variant(key).label for key in missing)
            text = f"Added mechanisms whose noise follows the precision: {names}."
            st.toast(text, icon=":material/info:", duration="long")  # A toast moves nothing else.
