"""Widgets, each drawn from the declaration of its option.

A widget never holds the valid value. The widget is filled from the session's view before it is
drawn, and its callback offers a new value to the view, which may refuse it.
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

_FEW = 4  # At most this many choices lie side by side; more form a drop-down list.


def _key_now(key: str, ago: int = 0) -> str:
    """Return the present or an earlier key under which a widget of `control` is drawn."""
    generation = st.session_state.generations.get(key, 0) - ago
    return f"{key}~{generation}" if generation > 0 else key


def _fill(key: str, value: Any) -> str:
    """Set a widget's value, under a new key if it holds another value; return the key.

    A browser that has not received the value yet still reports the old value. This report looks
    like an edit and would undo the user's last change elsewhere. Under a new key the late report is
    about a removed widget, which `state.reported` recognises.

    Streamlit sends a value in one run only. A browser misses the value if the next run interrupts
    that run, or if a popover around the widget is closed. So all widgets use ``persist_state``,
    with which Streamlit sends the value until the browser reports the widget. All widgets also get
    the value as their first value, with which a browser starts a rebuilt widget.
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
"""Streamlit's argument for a widget's first value, if the argument is not called ``value``."""


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
    """Draw a widget that shows a value, pass on a value that a user sets, and return the value.

    Parameters
    ----------
    draw : callable
        Widget function of Streamlit.
    label, key : str
    value : object
        Value to show.
    act : callable
        Function that receives the new value.
    refusable : str
        The option that a text box sets; a refused text stays in the box.
    keeps : bool
        Whether notices about a link stay after a change.
    **options
        Options of the widget.
    """
    key = _fill_text(refusable, key, value) if refusable else _fill(key, value)
    first, name = st.session_state[key], _FIRST_VALUE.get(draw.__name__, "value")
    if name == "index":  # A value that is not an option selects the first item.
        items = list(options["options"])
        first = items.index(first) if first in items else 0 if value is not None else None
    return draw(
        label,
        key=key,
        persist_state="session",
        on_change=state.on_change(lambda: act(state.reported(key)), keeps=keeps),
        **{name: first},
        **options,
    )


def _fill_text(name: str, key: str, text: str) -> str:
    """Fill a text box, unless its text was refused and stays for correction."""
    now = _key_now(key)
    wrong = state.complaint(name) is not None and now in st.session_state
    return now if wrong else _fill(key, text)


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
        Name of a field of `Settings`, or of a page's own options.
    store : str
        Owner of the option: ``view``, or a key of `pages.ui.view.VIEWS`.
    upper : int, optional
        Upper limit that follows from the table, if it is below the declared limit.
    place : str
        Prefix of the key, for a page that repeats a widget of the sidebar.
    row : bool
        Whether to show all choices side by side, without a label above.
    """
    param = params_of(Settings if store == "view" else VIEWS[store])[name]
    if param.log and param.slider is not None:
        _log_number(param)
        return
    value, key = state.get(name, store), f"{place}{store}.{name}"

    def act(value: Any) -> None:
        state.put(name, None if param.optional and value == "auto" else value, store)

    def typed(text: str) -> None:
        state.put_text(name, text, store)

    if param.kind == "choice":
        # A select box takes None for "nothing chosen", so the default needs a name.
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

    The range stays as wide, because Streamlit takes a slider with other ends for a new one, and
    then forgets the value that a user has just set.
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
    """Draw a box for any allowed number, beside a logarithmic slider if ``slider``.

    Parameters
    ----------
    name : str
        Name of a field of `Settings`.
    slider : bool
    note : str
        Text added to the help: what the value means for this table.
    """
    param = params_of(Settings)[name]
    if slider:
        _log_number(param)
        return
    _number_box(param, param.label, help=f"{param.help} {note}".strip())
    _complain(name)


def _number_box(param: Param, label: str, **options: Any) -> None:
    """Draw a box for any allowed number."""
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
    """Draw a logarithmic slider, and beside it a box for any allowed number."""
    name = param.name
    assert param.slider is not None
    fine = param.slider[1] / param.slider[0] <= 1e4
    options: list[float | None] = list(_steps(*param.slider, _FINE if fine else _COARSE))
    if param.optional:
        options = [None, *options]
    now = state.get(name)
    nearest = _nearest_option(options, now)
    # The handle shows the exact value, also between two steps.
    words = {one: "auto" if one is None else format_number(one) for one in options}
    words[nearest] = "auto" if now is None else format_number(now)
    wide, narrow = st.columns([3, 1.3], vertical_alignment="bottom")
    with wide:
        control(
            st.select_slider,
            param.label,
            f"view.{name}.slider",
            nearest,
            lambda value: state.put(name, value),
            options=options,
            format_func=words.__getitem__,
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
    """Draw the choice of mechanisms, including variants from a link."""
    param = params_of(Settings)["mechanisms"]
    by_key = all_mechanisms()
    keys = list(state.get("mechanisms")) or list(by_key)
    options = list(dict.fromkeys([*by_key, *keys]))

    def picked(texts: list[str]) -> None:
        if texts:
            state.put("mechanisms", tuple(texts))
        else:
            st.session_state.complaints["mechanisms"] = (
                "Choose at least one mechanism; the last choice is kept."
            )

    control(
        st.multiselect,
        param.label,
        "view.mechanisms",
        keys,
        picked,
        options=options,
        format_func=lambda text: by_key[text].info.label if text in by_key else text,
        help="Each mechanism keeps its colour and its place, whatever you choose.",
    )
    _complain("mechanisms")

    def show_all() -> None:
        state.put("mechanisms", tuple(by_key))

    st.button("Show all mechanisms", on_click=state.on_change(show_all), key="mechanisms.all")


ROW_BOUND_KINDS = {
    "max": "largest norm",
    UNDECLARED: "none declared",
    "quantile": "a quantile",
    "number": "a number",
    "private": "a private quantile",
    "adaptive": "a private adaptive bound",
}
_FIRST_BOUND = {
    "max": "max", UNDECLARED: UNDECLARED, "quantile": "quantile:0.9", "number": "1",
    "private": "private:0.9", "adaptive": ADAPTIVE,
}  # fmt: skip


def row_bound() -> None:
    """Draw the row-norm bound: its kind, and its level if the kind has a level."""
    param = params_of(Settings)["row_bound"]
    value = state.get("row_bound")
    prefix, colon, level = value.rpartition(":")
    words = {"max": "max", UNDECLARED: UNDECLARED, ADAPTIVE: "adaptive"}
    kind = words.get(value) or prefix or "number"

    control(
        st.selectbox,
        param.label,
        "view.row_bound.kind",
        kind,
        lambda kind: state.put_text("row_bound", _FIRST_BOUND[kind]),
        options=list(ROW_BOUND_KINDS),
        format_func=ROW_BOUND_KINDS.__getitem__,
        help=param.help,
    )
    if value not in words:
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
    "binary": "more for some directions",
    "max-pnr": "by variance (max-PNR)",
    "custom": "custom table",
}
DIRECTIONS = {
    "features": "the features",
    "private": "private components",
    "true": "true components (not private)",
}


def precision(columns: Sequence[str]) -> None:
    """Draw the precision allocation: directions, strategy, and the strategy's settings.

    Parameters
    ----------
    columns : sequence of str
        The features that are used.
    """
    allocation = parse_allocation(state.get("allocation"), state.get("directions"))
    params = params_of(Settings)

    has_names = allocation.directions == "features"
    labels = [
        name if has_names else f"direction {number}" for number, name in enumerate(columns, start=1)
    ]

    def direct(kind: str) -> None:
        state.put("directions", f"private:{DEFAULT_SHARE}" if kind == "private" else kind)

    def buy(share: float, supplier: str) -> None:
        state.put("directions", f"private:{decimals(share, 2)}" + f":{supplier}" * bool(supplier))

    def favour(directions: Sequence[int], tau: float) -> None:
        if directions:
            numbers = ",".join(str(number) for number in sorted(directions))
            state.put("allocation", f"binary:{numbers}:{tau}")
        else:
            st.session_state.complaints["allocation"] = (
                "Choose at least one low-noise direction; the last choice is kept."
            )

    control(
        st.selectbox,
        params["directions"].label,
        "view.directions.kind",
        allocation.directions,
        direct,
        options=list(DIRECTIONS),
        format_func=DIRECTIONS.__getitem__,
        help="Directions along which the noise is shaped. Private components use a share of the "
        "budget. True components are not private; use them only for teaching.",
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
            help="Budget of the private components; the release gets the rest.",
        )
        by_key = suppliers()
        control(
            st.selectbox,
            "Released by",
            "view.directions.supplier",
            allocation.supplier,
            lambda supplier: buy(allocation.share, supplier),
            # A link may name a variant of a mechanism.
            options=list(dict.fromkeys([*by_key, allocation.supplier])),
            format_func=lambda text: by_key.get(text, text),
            help="Mechanism that releases the private components, as a matrix or a subspace. A "
            "note below the charts lists mechanisms that cannot use these components.",
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
        help="Only mechanisms with shaped noise use shares: MVG and the directional mechanisms.",
    )
    if allocation.strategy == "binary":
        control(
            st.multiselect,
            "Low-noise directions",
            # A browser sends back the labels that it was shown. A separate key for each set of
            # labels makes sure that labels of another table are never taken for these labels.
            f"view.allocation.chosen~{zlib.crc32(repr(labels).encode())}",
            list(allocation.chosen),
            lambda directions: favour(directions, allocation.tau),
            options=list(range(1, len(columns) + 1)),
            format_func=lambda number: labels[number - 1],
        )
        control(
            st.slider,
            "Low-noise directions' share of the precision, %",
            "view.allocation.tau",
            round(100 * allocation.tau),
            lambda tau: favour(allocation.chosen, tau / 100),
            min_value=1,
            max_value=99,
            help="Tau: the low-noise directions divide this share equally; all other directions "
            "divide the rest.",
        )
    elif allocation.strategy == "custom":
        st.caption("Edit the shares on the Precision page.")
    _complain("allocation")


def _first_text(strategy: str, columns: Sequence[str]) -> str:
    """Return the first allocation for a newly chosen strategy."""
    if strategy == "binary":
        return "binary:1:0.8"
    if strategy == "custom":
        return custom_text([1 / len(columns)] * len(columns))
    return strategy
