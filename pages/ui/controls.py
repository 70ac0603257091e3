"""Widgets, each drawn from the declaration of the option it sets.

A widget never holds the truth: it is filled from the session's view before it
is drawn, and its callback offers the new value to the view, which may refuse.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dpviz.core.allocation import DEFAULT_SHARE, parse_allocation
from dpviz.core.entries import ADAPTIVE, UNDECLARED
from dpviz.core.number_text import decimals
from dpviz.core.params import Param, format_number, params_of
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms
from dpviz.studies.precision import custom_text, suppliers
from pages.ui import state
from pages.ui.guard import say_error
from pages.ui.page_options import VIEWS

_FEW = 4  # choices of a page that stand side by side; more of them drop down


def _key_now(key: str, ago: int = 0) -> str:
    """Return the key under which a widget of `control` is drawn now, or was before."""
    generation = st.session_state.generations.get(key, 0) - ago
    return f"{key}~{generation}" if generation > 0 else key


def _fill(key: str, value: Any) -> str:
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


_FIRST_VALUE = {"selectbox": "index", "radio": "index", "segmented_control": "default",
                "multiselect": "default"}  # fmt: skip
"""How Streamlit calls the value that a widget begins with, where that is not ``value``."""


def control(
    draw: Callable[..., Any],
    label: str,
    key: str,
    value: Any,
    act: Callable[[Any], object],
    *,
    refusable: str = "",
    keeps: bool = False,
    **options: Any,
) -> Any:
    """Draw a widget that shows a value, act on what somebody sets in it, and return that.

    Parameters
    ----------
    draw : callable
        A widget of Streamlit.
    label, key : str
    value : object
        What it shows.
    act : callable
        Takes what was set.
    refusable : str
        The option that a text box sets: a text that was refused stays where it was typed.
    keeps : bool
        Whether what was said of a link stays.
    **options
        Of the widget.
    """
    key = _fill_text(refusable, key, value) if refusable else _fill(key, value)
    first, name = st.session_state[key], _FIRST_VALUE.get(draw.__name__, "value")
    if name == "index":  # the first where what is set is no option
        offered = list(options["options"])
        first = offered.index(first) if first in offered else 0 if value is not None else None
    return draw(
        label,
        key=key,
        persist_state="session",
        on_change=state.on_change(lambda: act(state.reported(key)), keeps=keeps),
        **{name: first},
        **options,
    )


def _fill_text(name: str, key: str, text: str) -> str:
    """Fill a text box, unless a text was refused, which stays where it was typed to be mended."""
    now = _key_now(key)
    refused = state.complaint(name) is not None and now in st.session_state
    return now if refused else _fill(key, text)


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
    if param.log and param.slider is not None:
        _log_number(param)
        return
    value, key = state.get(name, store), f"{place}{store}.{name}"

    def act(picked: Any) -> None:
        state.put(name, None if param.optional and picked == "auto" else picked, store)

    def typed(text: str) -> None:
        state.put_text(name, text, store)

    if param.kind == "choice":
        # A select box shows None as "nothing chosen": the default has a word of its own.
        words = {"auto": "default", **param.choices} if param.optional else param.choices
        options = {"options": list(words), "format_func": words.__getitem__, "help": param.help}
        value = value or "auto"
        if store != "view" and (row or len(words) <= _FEW):
            label = "collapsed" if row else "visible"
            options |= {"required": True, "label_visibility": label}
            control(st.segmented_control, param.label, key, value, act, **options)
        else:
            control(st.selectbox, param.label, key, value, act, **options)
    elif param.kind == "integer" and param.slider is None:
        high = int(min(param.high if upper is None else upper, 2**53 - 1))
        options = {"min_value": int(param.low), "max_value": high, "step": 1, "help": param.help}
        control(st.number_input, param.label, key, min(value, high), act, **options)
    elif param.kind in ("integer", "number") and param.slider is not None:
        number = int if param.kind == "integer" else float
        low, high = (number(end) for end in _slider_range(param, value))
        step = 1 if number is int else 0.01 if high <= 0.5 else 0.05
        options = {"min_value": low, "max_value": high, "step": step, "help": param.help}
        control(st.slider, param.label, key, number(value), act, **options)
    else:
        text = param.format(value)
        control(st.text_input, param.label, key, text, typed, refusable=name, help=param.help)
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
    _number_box(param, param.label, help=f"{param.help} {note}".strip())
    _complain(name)


def _number_box(param: Param, label: str, **options: Any) -> None:
    """Draw a box that takes any legal number."""
    name = param.name
    control(
        st.text_input,
        label,
        f"view.{name}.box",
        param.format(state.get(name)),
        lambda text: state.put_text(name, text),
        refusable=name,
        **options,
    )


def _log_number(param: Param) -> None:
    """Draw a logarithmic slider and, beside it, a box that takes any legal number."""
    name = param.name
    assert param.slider is not None
    fine = param.slider[1] / param.slider[0] <= 1e4
    options: list[float | None] = list(_steps(*param.slider, _FINE if fine else _COARSE))
    if param.optional:
        options = [None, *options]
    wide, narrow = st.columns([3, 1.3], vertical_alignment="bottom")
    with wide:
        control(
            st.select_slider,
            param.label,
            f"view.{name}.slider",
            _nearest_option(options, state.get(name)),
            lambda value: state.put(name, value),
            options=options,
            format_func=lambda option: "auto" if option is None else format_number(option),
            help=param.help,
        )
    with narrow:
        _number_box(param, f"{param.label}, exact", label_visibility="collapsed")
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

    def picked(texts: list[str]) -> None:
        if texts:
            state.put("mechanisms", tuple(texts))
        else:
            st.session_state.complaints["mechanisms"] = (
                "mechanisms must be at least one; none was left, so the last choice stays."
            )

    control(
        st.multiselect,
        param.label,
        "view.mechanisms",
        chosen,
        picked,
        options=options,
        format_func=lambda text: known[text].info.label if text in known else text,
        help="Colour and order stay the same whatever is chosen.",
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

    control(
        st.selectbox,
        param.label,
        "view.row_bound.kind",
        kind,
        lambda picked: state.put_text("row_bound", _FIRST_BOUND[picked]),
        options=list(ROW_BOUND_KINDS),
        format_func=ROW_BOUND_KINDS.__getitem__,
        help=param.help,
    )
    if value not in worded:
        control(
            st.text_input,
            "Largest norm R" if kind == "number" else "Quantile",
            "view.row_bound.level",
            level,
            lambda text: state.put_text("row_bound", prefix + colon + text.strip()),
            refusable="row_bound",
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

    named = allocation.directions == "features"
    labels = [
        name if named else f"direction {number}" for number, name in enumerate(columns, start=1)
    ]

    def direct(picked: str) -> None:
        state.put("directions", f"private:{DEFAULT_SHARE}" if picked == "private" else picked)

    def buy(share: float, supplier: str) -> None:
        state.put("directions", f"private:{decimals(share, 2)}" + f":{supplier}" * bool(supplier))

    def favour(chosen: Sequence[int], tau: float) -> None:
        if chosen:
            listed = ",".join(str(number) for number in sorted(chosen))
            state.put("allocation", f"binary:{listed}:{tau}")
        else:
            st.session_state.complaints["allocation"] = (
                "the favoured directions must be at least one; none was left, so the last choice "
                "stays."
            )

    control(
        st.selectbox,
        params["directions"].label,
        "view.directions.kind",
        allocation.directions,
        direct,
        options=list(DIRECTIONS),
        format_func=DIRECTIONS.__getitem__,
        help="Along what the noise is shaped: the features; private components, bought with a "
        "share of the budget; or the true ones, which is not private and only for teaching.",
    )
    if allocation.directions == "private":
        control(
            st.slider,
            "Share of the budget for directions, %",
            "view.directions.share",
            round(100 * allocation.share),
            lambda share: buy(share / 100, allocation.supplier),
            min_value=1,
            max_value=95,
            help="Spent on the private components; the rest goes to the release.",
        )
        known = suppliers()
        control(
            st.selectbox,
            "Supplied by",
            "view.directions.supplier",
            allocation.supplier,
            lambda supplier: buy(allocation.share, supplier),
            options=list(dict.fromkeys([*known, allocation.supplier])),  # a link may name a variant
            format_func=lambda text: known.get(text, text),
            help="Who releases the private components: any mechanism that releases a matrix or a "
            "subspace. Mechanisms that cannot buy from it say so below the charts.",
        )
    _complain("directions")
    control(
        st.selectbox,
        params["allocation"].label,
        "view.allocation.kind",
        allocation.strategy,
        lambda strategy: state.put("allocation", _first_text(strategy, columns)),
        options=list(STRATEGIES),
        format_func=STRATEGIES.__getitem__,
        help="Only mechanisms with shaped noise follow it: MVG and the directional ones.",
    )
    if allocation.strategy == "binary":
        control(
            st.multiselect,
            "Favoured directions",
            # A browser sends back the labels it was shown: under a key of their own, those of
            # another table or of features never come back as a choice among these.
            f"view.allocation.chosen~{zlib.crc32(repr(labels).encode())}",
            list(allocation.chosen),
            lambda chosen: favour(chosen, allocation.tau),
            options=list(range(1, len(columns) + 1)),
            format_func=lambda number: labels[number - 1],
        )
        control(
            st.slider,
            "Their share of the precision, %",
            "view.allocation.tau",
            round(100 * allocation.tau),
            lambda tau: favour(allocation.chosen, tau / 100),
            min_value=1,
            max_value=99,
            help="Tau: the favoured directions divide it equally, the others the rest.",
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
