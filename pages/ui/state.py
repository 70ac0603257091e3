"""State of a session: plain values by name, valid at all times.

Every change passes through `put`, which keeps the last valid view and a sentence about a refused
value. A link is read once, when a session starts, and written after every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from dpviz.core.errors import InvalidSetting
from dpviz.core.params import Declared, params_of
from dpviz.core.settings import Settings
from dpviz.mechanisms._suppliers import check_supplier
from pages.ui import link
from pages.ui.page_options import VIEWS, ExploreView, page_defaults

UPLOAD = "upload"
PAGE = "page"
"""Session key of the current page's title."""
MAX_FEATURES = 1_500
KEPT = (
    "table", "label", "categories", "categorical", "missing", "decimal", "encoding", "delimiter",
    "header", "sheet", "codes", "read_as", "levels", "rows_a_person", "person", "leave_out",
)  # fmt: skip
"""Settings that a reset keeps, which describe how the table is read."""


def travelled() -> bool:
    """Return whether the browser's back or forward button requested this run."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def start() -> None:
    """Read the link into the session, once and when the browser goes back or forward to it."""
    if "view" in st.session_state and not (travelled() and "v" in st.query_params):
        return
    request = link.read(st.query_params.to_dict())
    st.session_state.view = held(request.settings)
    for store, view in request.views.items():
        st.session_state[store] = held(view)
    st.session_state.label_index = request.label_index
    st.session_state.pin = None if request.pin is None else held(request.pin)
    st.session_state.notices = list(request.notices)
    st.session_state.complaints = {}
    # These store a version number of each rebuilt widget, and the values of old versions.
    st.session_state.setdefault("generations", {})
    st.session_state.setdefault("left", {})
    st.session_state.setdefault("widened", {})


def pinned() -> Settings | None:
    """Return the setting that is pinned for comparison, or None."""
    values: dict[str, Any] | None = st.session_state.pin
    return None if values is None else Settings(**values)


def pin() -> None:
    """Pin the current setting."""
    st.session_state.pin = dict(st.session_state.view)


def unpin() -> None:
    """Unpin the pinned setting."""
    st.session_state.pin = None


def swap() -> None:
    """Exchange the pinned and the current setting."""
    if st.session_state.pin is not None:
        st.session_state.view, st.session_state.pin = (
            st.session_state.pin,
            dict(st.session_state.view),
        )
        st.session_state.complaints = {}


def held(options: Declared) -> dict[str, Any]:
    """Return declared options in the form of the session: plain values by name."""
    return {name: getattr(options, name) for name in params_of(type(options))}


def settings() -> Settings:
    """Return the session's settings."""
    return Settings(**st.session_state.view)


def explore() -> ExploreView:
    """Return how Explore shows its results."""
    return ExploreView(**st.session_state.explore)


def view(store: str) -> Declared:
    """Return the options of one page, by its key in `VIEWS`."""
    return VIEWS[store](**st.session_state[store])


def get(name: str, store: str = "view") -> Any:
    """Return one value of the session."""
    return st.session_state[store][name]


def file_of(key: str) -> UploadedFile | None:
    """Return the file in an uploader, or None if the file that the browser names is gone."""
    file = st.session_state.get(key)
    return file if isinstance(file, UploadedFile) else None


def put(name: str, value: Any, store: str = "view") -> None:
    """Set one value, or keep the old value and remember why the new value was refused."""
    options: Declared = settings() if store == "view" else view(store)
    try:
        new = replace(options, **{name: value})
    except InvalidSetting as error:
        st.session_state.complaints[name] = str(error)
        return
    if name == "table" and value != get(name):  # For a new table, ask again for rows per person.
        new = replace(new, rows_a_person=None, person=None)
        st.session_state.pop("unit.unknown", None)
    st.session_state[store] = held(new)
    st.session_state.complaints.pop(name, None)
    # Forget errors of refused choices, which show their old value again. Refused texts stay.
    for other, param in params_of(Settings).items():
        if param.kind == "choice":
            st.session_state.complaints.pop(other, None)


def put_all(changes: Mapping[str, Any]) -> None:
    """Set several values at once that are valid together."""
    st.session_state.view = held(replace(settings(), **changes))
    st.session_state.complaints = {}


def take(values: Declared, store: str = "view") -> None:
    """Replace settings, or a page's options, as a whole; how an upload is read stays."""
    values_kept_here = {name: get(name) for name in KEPT[1:]} if store == "view" else {}
    st.session_state[store] = held(replace(values, **values_kept_here))
    if store == "view":
        st.session_state.complaints = {}


def put_text(name: str, text: str, store: str = "view") -> None:
    """Set one value from a text that a user typed."""
    param = params_of(Settings if store == "view" else VIEWS[store])[name]
    try:
        value = param.parse(text)
        if name == "directions":  # Settings do not know the mechanisms that supply directions.
            check_supplier(value)
    except InvalidSetting as error:
        st.session_state.complaints[name] = str(error)
        return
    put(name, value, store)


def complaint(name: str) -> str | None:
    """Return why the last change of a value was refused, or None."""
    text: str | None = st.session_state.complaints.get(name)
    return text


def notice(text: str) -> None:
    """Show a notice once, on the next page."""
    if text not in st.session_state.notices:
        st.session_state.notices.append(text)


def take_notices() -> list[str]:
    """Return the notices to show; they stay until the next change of a setting."""
    notices: list[str] = st.session_state.notices
    return notices


class _Late(Exception):
    """Raised for a report on a removed widget in which nobody has changed anything."""


def reported(key: str) -> Any:
    """Return a browser's report on a widget, or end the callback that requests it.

    A browser reports a replaced widget until it has received the new widget. The value that the old
    widget showed is not a change. A value that a user has set in it meanwhile is a change, once.
    """
    if key not in st.session_state:
        raise _Late
    value, dismissals = st.session_state[key], st.session_state.left
    if key in dismissals:
        if value == dismissals[key]:
            raise _Late
        dismissals[key] = value
    return value


def on_change(act: Callable[[], None], *, keeps: bool = False) -> Callable[[], None]:
    """Return a callback that acts on a change and clears old notices, unless it must keep them."""

    def changed() -> None:
        before = st.session_state.notices
        if not keeps:
            st.session_state.notices = []
        try:
            act()
        except _Late:
            st.session_state.notices = before

    return changed


def reset() -> None:
    """Reset every setting except the table to its default."""
    values = {name: get(name) for name in KEPT}
    st.session_state.view = held(replace(page_defaults(), **values))
    for store, cls in VIEWS.items():
        st.session_state[store] = held(cls())
    st.session_state.pin = None
    st.session_state.complaints = {}
    st.session_state.notices = []


def write_link() -> None:
    """Write the shown settings into the address bar."""
    query = {"v": link.LINK_VERSION}
    query |= settings().to_query(page_defaults())
    for store, cls in VIEWS.items():
        query |= view(store).to_query(cls())
    pin = pinned()
    if pin is not None:
        # An empty parameter would vanish from a link, so write "v=1" if the pin has only defaults.
        query["pin"] = urlencode(pin.to_query(page_defaults()) or {"v": link.LINK_VERSION})
    if get("table") == UPLOAD and st.session_state.label_index is not None:
        query["label"] = str(st.session_state.label_index)
    # Do not write settings into the address if the browser just went back to an address without
    # settings: the write would add a history step and prevent going back any further.
    if st.query_params.to_dict() != query and not (travelled() and not st.query_params):
        st.query_params.from_dict(query)
