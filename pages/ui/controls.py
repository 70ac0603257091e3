"""Widgets, each drawn from the declaration of the option it sets.

A widget never holds the truth: it is filled from the session's view before it
is drawn, and its callback offers the new value to the view, which may refuse.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpviz.core.allocation import DEFAULT_SHARE, parse_allocation
from dpviz.core.entries import ADAPTIVE, UNDECLARED
from dpviz.core.number_text import decimals
from dpviz.core.params import Param, format_number, params_of
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms
from dpviz.report.tables.precision import custom_text, suppliers
from pages.ui import state
from pages.ui.guard import say_error
from pages.ui.page_options import VIEWS

_FEW = 4  # choices of a page that stand side by side; more of them drop down


def _key_now(key: str, ago: int = 0) -> str:
    """Return the key under which a widget of `fill` is drawn now, or was before."""
    generation = st.session_state.generations.get(key, 0) - ago
    return f"{key}~{generation}" if generation > 0 else key


def fill(key: str, value: Any) -> str:
    """Give a widget its value, under a new key if it has another; return the key to draw it under.

    A browser that has not heard of the value yet still reports the old one, which then looks like
    an edit and undoes what the user has just done elsewhere. Under a new key the late report is
    about a widget that is no more, which `state.reported` knows.

    A value is told in one run alone, of which a browser hears nothing where the next run cuts it
    off, or where a popover that holds the widget is closed. So all widgets are drawn with
    ``persist_state``, with which Streamlit tells it until the browser reports the widget, and with
    the value for their first one: a browser that makes a widget anew begins with that.
    """
    now = _key_now(key)
    if now in st.session_state and st.session_state[now] != value:
        before = _key_now(key, 1)
        if before != now:
            st.session_state.pop(before, None)
            st.session_state.left.pop(before, None)
        st.session_state.left[now] = st.session_state[now]
        st.session_state.generations[key] = st.session_state.generations.get(key, 0) + 1
        now = _key_now(key)
    if now not in st.session_state:
        st.session_state[now] = value
    return now


def begins(options: Sequence[Any], key: str) -> int:
    """Return where a filled select box begins: at the first where what is set is no option."""
    value = st.session_state[key]
    return options.index(value) if value in options else 0


def fill_text(name: str, key: str, text: str) -> str:
    """Fill a text box, unless a text was refused, which stays where it was typed to be mended."""
    now = _key_now(key)
    refused = state.complaint(name) is not None and now in st.session_state
    return now if refused else fill(key, text)


def _complain(name: str) -> None:
    sentence = state.complaint(name)
    if sentence is not None:
        say_error(sentence)


def setting(
    name: str,
    store: str = "view",
    *,
    upper: int | None = None,
    place: str = "",
    row: bool = False,
) -> None:
    """Draw the widget of one declared option.

    Parameters
    ----------
    name : str
        Field of `Settings`, or of a page's own options.
    store : str
        ``view``, or a key of `pages.ui.view.VIEWS`.
    upper : int, optional
        A tighter upper end than declared, known from the table.
    place : str
        Where a page draws a widget that the sidebar draws as well.
    row : bool
        Whether the choices stand side by side however many they are, without a label above.
    """
    param = params_of(Settings if store == "view" else VIEWS[store])[name]
    key = f"{place}{store}.{name}"
    value = state.get(name, store)

    def changed() -> None:
        picked = state.reported(key)
        state.put(name, None if param.optional and picked == "auto" else picked, store)

    shared: dict[str, Any] = {
        "key": key, "help": param.help, "on_change": state.on_change(changed),
        "persist_state": "session",
    }  # fmt: skip
    if param.kind == "choice":
        # A select box shows None as "nothing chosen": the default has a word of its own.
        words = {"auto": "default", **param.choices} if param.optional else param.choices
        shared["key"] = key = fill(key, value or "auto")
        if store != "view" and (row or len(words) <= _FEW):
            st.segmented_control(
                param.label,
                list(words),
                format_func=words.__getitem__,
                default=st.session_state[key],
                required=True,
                label_visibility="collapsed" if row else "visible",
                **shared,
            )
            _complain(name)
            return
        first = begins(list(words), key)
        st.selectbox(param.label, list(words), first, format_func=words.__getitem__, **shared)
    elif param.kind == "integer" and param.slider is None:
        high = param.high if upper is None else upper
        shared["key"] = key = fill(key, value)
        most = int(min(high, 2**53 - 1))
        first = min(st.session_state[key], most)
        st.number_input(param.label, int(param.low), most, first, step=1, **shared)
    elif param.kind == "integer":
        low, high = (int(end) for end in _slider_range(param, value))
        shared["key"] = key = fill(key, value)
        st.slider(param.label, low, high, st.session_state[key], **shared)
    elif param.log and param.slider is not None:
        _log_number(param)
    elif param.kind == "number" and param.slider is not None:
        low, high = _slider_range(param, value)
        shared["key"] = key = fill(key, float(value))
        step = 0.01 if high <= 0.5 else 0.05
        st.slider(param.label, float(low), float(high), st.session_state[key], step=step, **shared)
    else:
        _text(param, key, store)
    if not (param.log and param.slider is not None):
        _complain(name)


def _slider_range(param: Param, value: float) -> tuple[float, float]:
    """Return the slider's range, widened to hold a value from a link.

    It stays as wide: with other ends a slider is another one to Streamlit, which then forgets what
    has just been set.
    """
    assert param.slider is not None
    low, high = st.session_state.widened.get(param.name, param.slider)
    st.session_state.widened[param.name] = ends = (min(low, value), max(high, value))
    return ends


def _text(param: Param, key: str, store: str) -> None:
    """Draw a text box whose text the declaration parses."""
    name = param.name

    def changed() -> None:
        state.put_text(name, state.reported(key), store)

    key = fill_text(name, key, param.format(state.get(name, store)))
    st.text_input(
        param.label,
        st.session_state[key],
        key=key,
        help=param.help,
        persist_state="session",
        on_change=state.on_change(changed),
    )


def _steps(low: float, high: float, per_decade: tuple[float, ...]) -> list[float]:
    """Return round numbers on a logarithmic scale from low to high."""
    first, last = round(math.log10(low)), round(math.log10(high))
    steps = [float(f"{step}e{decade}") for decade in range(first, last) for step in per_decade]
    return [*steps, float(f"1e{last}")]


_FINE = (1.0, 1.1, 1.3, 1.4, 1.6, 1.8, 2.0, 2.2, 2.5, 2.8, 3.2, 3.5, 4.0, 4.5, 5.0, 5.6, 6.3, 7.1,
         7.9, 8.9)  # fmt: skip
_COARSE = (1.0, 2.0, 5.0)


def logarithmic(name: str, *, slider: bool, note: str = "") -> None:
    """Draw a box that takes any legal number, and beside it a logarithmic slider where asked.

    Parameters
    ----------
    name : str
        Field of `Settings`.
    slider : bool
    note : str
        Added to the help: what the value means for this table.
    """
    param = params_of(Settings)[name]
    if slider:
        _log_number(param)
        return
    key = _box_key(param)
    st.text_input(
        param.label,
        st.session_state[key],
        key=key,
        help=f"{param.help} {note}".strip(),
        persist_state="session",
        on_change=state.on_change(lambda: state.put_text(name, state.reported(key))),
    )
    _complain(name)


def _box_key(param: Param) -> str:
    """Fill the number box of an option and return its key."""
    return fill_text(param.name, f"view.{param.name}.box", param.format(state.get(param.name)))


def _log_number(param: Param) -> None:
    """Draw a logarithmic slider and, beside it, a box that takes any legal number."""
    name = param.name
    assert param.slider is not None
    fine = param.slider[1] / param.slider[0] <= 1e4
    options: list[float | None] = list(_steps(*param.slider, _FINE if fine else _COARSE))
    if param.optional:
        options = [None, *options]
    value = state.get(name)
    slider_key = fill(f"view.{name}.slider", _nearest_option(options, value))
    box_key = _box_key(param)

    def slid() -> None:
        state.put(name, state.reported(slider_key))

    def typed() -> None:
        state.put_text(name, state.reported(box_key))

    wide, narrow = st.columns([3, 1.3], vertical_alignment="bottom")
    with wide:
        st.select_slider(
            param.label,
            options,
            st.session_state[slider_key],
            format_func=lambda option: "auto" if option is None else format_number(option),
            key=slider_key,
            help=param.help,
            persist_state="session",
            on_change=state.on_change(slid),
        )
    with narrow:
        st.text_input(
            f"{param.label}, exact",
            st.session_state[box_key],
            key=box_key,
            label_visibility="collapsed",
            persist_state="session",
            on_change=state.on_change(typed),
        )
    _complain(name)


def _nearest_option(options: list[float | None], value: float | None) -> float | None:
    """Return the slider position nearest to a value, on the logarithmic scale."""
    if value is None:
        return None
    numbers = [option for option in options if option is not None]
    place = math.log(max(value, numbers[0]))
    return min(numbers, key=lambda option: abs(math.log(option) - place))


def mechanisms() -> None:
    """Draw the choice of mechanisms, with variants from a link kept."""
    param = params_of(Settings)["mechanisms"]
    known = all_mechanisms()
    chosen = list(state.get("mechanisms")) or list(known)
    options = list(dict.fromkeys([*known, *chosen]))
    key = "view.mechanisms"

    def changed() -> None:
        picked = tuple(state.reported(key))
        if picked:
            state.put("mechanisms", picked)
        else:
            st.session_state.complaints["mechanisms"] = (
                "mechanisms must be at least one; none was left, so the last choice stays."
            )

    key = fill(key, chosen)
    st.multiselect(
        param.label,
        options,
        st.session_state[key],
        format_func=lambda text: known[text].info.label if text in known else text,
        key=key,
        help="Colour and order stay the same whatever is chosen.",
        persist_state="session",
        on_change=state.on_change(changed),
    )
    _complain("mechanisms")

    def show_all() -> None:
        state.put("mechanisms", tuple(known))

    st.button("Show all mechanisms", on_click=state.on_change(show_all), key="mechanisms.all")


ROW_BOUND_KINDS = {
    "max": "largest norm",
    UNDECLARED: "none declared",
    "quantile": "a quantile",
    "number": "a number",
    "private": "a private quantile",
    "adaptive": "a private, adaptive clip",
}
_FIRST_BOUND = {
    "max": "max", UNDECLARED: UNDECLARED, "quantile": "quantile:0.9", "number": "1",
    "private": "private:0.9", "adaptive": ADAPTIVE,
}  # fmt: skip


def row_bound() -> None:
    """Draw the row bound: a kind, and its level where it has one."""
    param = params_of(Settings)["row_bound"]
    value = state.get("row_bound")
    prefix, colon, level = value.rpartition(":")
    worded = {"max": "max", UNDECLARED: UNDECLARED, ADAPTIVE: "adaptive"}
    kind = worded.get(value) or prefix or "number"

    def kind_changed() -> None:
        state.put_text("row_bound", _FIRST_BOUND[state.reported(kind_key)])

    def level_changed() -> None:
        written = state.reported(level_key).strip()
        state.put_text("row_bound", prefix + colon + written)

    kind_key = fill("view.row_bound.kind", kind)
    st.selectbox(
        param.label,
        list(ROW_BOUND_KINDS),
        begins(list(ROW_BOUND_KINDS), kind_key),
        format_func=ROW_BOUND_KINDS.__getitem__,
        key=kind_key,
        help=param.help,
        persist_state="session",
        on_change=state.on_change(kind_changed),
    )
    if value not in worded:
        level_key = fill_text("row_bound", "view.row_bound.level", level)
        st.text_input(
            "Largest norm R" if kind == "number" else "Quantile",
            st.session_state[level_key],
            key=level_key,
            persist_state="session",
            on_change=state.on_change(level_changed),
        )
    _complain("row_bound")


STRATEGIES = {
    "uniform": "equal shares",
    "binary": "favour some",
    "max-pnr": "by variance (max-PNR)",
    "custom": "custom table",
}
DIRECTIONS = {
    "features": "the features",
    "private": "private components",
    "true": "true components (not private)",
}


def precision(columns: Sequence[str]) -> None:
    """Draw the precision allocation: directions, strategy, and what it asks.

    Parameters
    ----------
    columns : sequence of str
        The features in use.
    """
    allocation = parse_allocation(state.get("allocation"), state.get("directions"))
    params = params_of(Settings)

    def directions_changed() -> None:
        picked = state.reported(directions)
        state.put("directions", f"private:{DEFAULT_SHARE}" if picked == "private" else picked)

    def purchase_changed() -> None:
        bought = state.reported(share) / 100
        seller = state.reported(supplier)
        state.put("directions", f"private:{decimals(bought, 2)}" + f":{seller}" * bool(seller))

    def strategy_changed() -> None:
        state.put("allocation", _first_text(state.reported(strategy), columns))

    named = allocation.directions == "features"
    labels = [
        name if named else f"direction {number}" for number, name in enumerate(columns, start=1)
    ]
    # A browser sends back the labels it was shown: under a key of their own, those of another
    # table or of features never come back as a choice among these.
    chosen_key = f"view.allocation.chosen~{zlib.crc32(repr(labels).encode())}"

    def binary_changed() -> None:
        chosen = state.reported(chosen_key)
        if not chosen:
            st.session_state.complaints["allocation"] = (
                "the favoured directions must be at least one; none was left, so the last choice "
                "stays."
            )
            return
        listed = ",".join(str(number) for number in sorted(chosen))
        state.put("allocation", f"binary:{listed}:{state.reported(tau) / 100}")

    directions = fill("view.directions.kind", allocation.directions)
    st.selectbox(
        params["directions"].label,
        list(DIRECTIONS),
        begins(list(DIRECTIONS), directions),
        format_func=DIRECTIONS.__getitem__,
        key=directions,
        persist_state="session",
        help="Along what the noise is shaped: the features; private components, bought with a "
        "share of the budget; or the true ones, which is not private and only for teaching.",
        on_change=state.on_change(directions_changed),
    )
    if allocation.directions == "private":
        share = fill("view.directions.share", round(100 * allocation.share))
        st.slider(
            "Share of the budget for directions, %",
            1,
            95,
            st.session_state[share],
            key=share,
            persist_state="session",
            help="Spent on the private components; the rest goes to the release.",
            on_change=state.on_change(purchase_changed),
        )
        known = suppliers()
        supplier = fill("view.directions.supplier", allocation.supplier)
        offered = list(dict.fromkeys([*known, allocation.supplier]))  # a link may name a variant
        st.selectbox(
            "Supplied by",
            offered,
            begins(offered, supplier),
            format_func=lambda text: known.get(text, text),
            key=supplier,
            persist_state="session",
            help="Who releases the private components: any mechanism that releases a matrix or a "
            "subspace. Mechanisms that cannot buy from it say so below the charts.",
            on_change=state.on_change(purchase_changed),
        )
    _complain("directions")
    strategy = fill("view.allocation.kind", allocation.strategy)
    st.selectbox(
        params["allocation"].label,
        list(STRATEGIES),
        begins(list(STRATEGIES), strategy),
        format_func=STRATEGIES.__getitem__,
        key=strategy,
        persist_state="session",
        help="Only mechanisms with shaped noise follow it: MVG and the directional ones.",
        on_change=state.on_change(strategy_changed),
    )
    if allocation.strategy == "binary":
        chosen_key = fill(chosen_key, list(allocation.chosen))
        st.multiselect(
            "Favoured directions",
            list(range(1, len(columns) + 1)),
            st.session_state[chosen_key],
            format_func=lambda number: labels[number - 1],
            key=chosen_key,
            persist_state="session",
            on_change=state.on_change(binary_changed),
        )
        tau = fill("view.allocation.tau", round(100 * allocation.tau))
        st.slider(
            "Their share of the precision, %",
            1,
            99,
            st.session_state[tau],
            key=tau,
            persist_state="session",
            help="Tau: the favoured directions divide it equally, the others the rest.",
            on_change=state.on_change(binary_changed),
        )
    elif allocation.strategy == "custom":
        st.caption("Edit the shares on the Precision page.")
    _complain("allocation")


def _first_text(strategy: str, columns: Sequence[str]) -> str:
    """Return where a newly picked strategy starts."""
    if strategy == "binary":
        return "binary:1:0.8"
    if strategy == "custom":
        return custom_text([1 / len(columns)] * len(columns))
    return strategy
