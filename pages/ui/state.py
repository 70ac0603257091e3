"""What a session holds: plain values by name, valid at all times.

Every change passes through `put`, which keeps the last valid view and a
sentence about what was refused. Links are read once, when a session starts,
and written after every run.
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
"""What the session holds of where it is: the page's title."""
MAX_FEATURES = 1_500
KEPT = (
    "table", "label", "categories", "categorical", "missing", "decimal", "encoding", "sheet",
    "codes", "read_as", "levels", "rows_a_person", "person", "leave_out",
)  # fmt: skip
"""What a reset leaves: how the table is read."""


def travelled() -> bool:
    """Return whether the browser's back or forward button asked for this run."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def start() -> None:
    """Read the link into the session: once, and where the browser goes back or forward to it."""
    if "view" in st.session_state and not (travelled() and "v" in st.query_params):
        return
    said = link.read(st.query_params.to_dict())
    st.session_state.view = held(said.settings)
    for store, view in said.views.items():
        st.session_state[store] = held(view)
    st.session_state.label_index = said.label_index
    st.session_state.pin = None if said.pin is None else held(said.pin)
    st.session_state.notices = list(said.notices)
    st.session_state.complaints = {}
    # of widgets that are drawn anew when given a value; and what those showed that were so before
    st.session_state.setdefault("generations", {})
    st.session_state.setdefault("left", {})
    st.session_state.setdefault("widened", {})


def pinned() -> Settings | None:
    """Return the setting that is pinned for comparison, if one is."""
    found: dict[str, Any] | None = st.session_state.pin
    return None if found is None else Settings(**found)


def pin() -> None:
    """Pin the present setting."""
    st.session_state.pin = dict(st.session_state.view)


def unpin() -> None:
    """Let the pinned setting go."""
    st.session_state.pin = None


def swap() -> None:
    """Exchange the pinned and the present setting."""
    if st.session_state.pin is not None:
        st.session_state.view, st.session_state.pin = (
            st.session_state.pin,
            dict(st.session_state.view),
        )
        st.session_state.complaints = {}


def held(declared: Declared) -> dict[str, Any]:
    """Return declared options as the session holds them: plain values by name."""
    return {name: getattr(declared, name) for name in params_of(type(declared))}


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
    """Return the file in an uploader; none where the browser names one that is here no more."""
    found = st.session_state.get(key)
    return found if isinstance(found, UploadedFile) else None


def put(name: str, value: Any, store: str = "view") -> None:
    """Set one value, or keep the old one and remember why the new one was refused."""
    declared: Declared = settings() if store == "view" else view(store)
    try:
        changed = replace(declared, **{name: value})
    except InvalidSetting as error:
        st.session_state.complaints[name] = str(error)
        return
    if name == "table" and value != get(name):  # how many rows a person has is asked anew
        changed = replace(changed, rows_a_person=None, person=None)
        st.session_state.pop("unit.unknown", None)
    st.session_state[store] = held(changed)
    st.session_state.complaints.pop(name, None)
    # A choice that was refused shows its old value again; what a user typed stays to be mended.
    for other, param in params_of(Settings).items():
        if param.kind == "choice":
            st.session_state.complaints.pop(other, None)


def put_all(changes: Mapping[str, Any]) -> None:
    """Set several values at once, which suit each other."""
    st.session_state.view = held(replace(settings(), **changes))
    st.session_state.complaints = {}


def take(values: Declared, store: str = "view") -> None:
    """Take settings, or a page's options, as a whole; how an upload is read stays."""
    kept = {name: get(name) for name in KEPT[1:]} if store == "view" else {}
    st.session_state[store] = held(replace(values, **kept))
    if store == "view":
        st.session_state.complaints = {}


def put_text(name: str, written: str, store: str = "view") -> None:
    """Set one value from text a user typed."""
    param = params_of(Settings if store == "view" else VIEWS[store])[name]
    try:
        value = param.parse(written)
        if name == "directions":  # who supplies them is not known to the settings
            check_supplier(value)
    except InvalidSetting as error:
        st.session_state.complaints[name] = str(error)
        return
    put(name, value, store)


def complaint(name: str) -> str | None:
    """Return why the last change of a value was refused, if it was."""
    found: str | None = st.session_state.complaints.get(name)
    return found


def notice(text: str) -> None:
    """Say something once, on the next page drawn."""
    if text not in st.session_state.notices:
        st.session_state.notices.append(text)


def take_notices() -> list[str]:
    """Return what is to be said once; it stays until the next change of a setting."""
    found: list[str] = st.session_state.notices
    return found


class _Late(Exception):
    """A report on a widget that is no more, in which nobody has changed anything."""


def reported(key: str) -> Any:
    """Return what a browser reports of a widget, or end the callback that asks for it.

    A browser reports a widget in whose place another one is until it has heard of that. What it
    showed then is no change; what somebody has set in it meanwhile is one, once.
    """
    if key not in st.session_state:
        raise _Late
    found, left = st.session_state[key], st.session_state.left
    if key in left:
        if found == left[key]:
            raise _Late
        left[key] = found
    return found


def on_change(act: Callable[[], None], *, keeps: bool = False) -> Callable[[], None]:
    """Return a callback that acts on a change and clears old notices, unless it keeps them."""

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
    """Return every setting but the table to its default."""
    kept = {name: get(name) for name in KEPT}
    st.session_state.view = held(replace(page_defaults(), **kept))
    for store, cls in VIEWS.items():
        st.session_state[store] = held(cls())
    st.session_state.pin = None
    st.session_state.complaints = {}
    st.session_state.notices = []


def write_link() -> None:
    """Make the address bar say what is shown."""
    query = {"v": link.LINK_VERSION}
    query |= settings().to_query(page_defaults())
    for store, cls in VIEWS.items():
        query |= view(store).to_query(cls())
    held = pinned()
    if held is not None:
        # Never empty, for an empty parameter would vanish: the defaults are pinned as "v=1".
        query["pin"] = urlencode(held.to_query(page_defaults()) or {"v": link.LINK_VERSION})
    if get("table") == UPLOAD and st.session_state.label_index is not None:
        query["label"] = str(st.session_state.label_index)
    # Writing adds to the browser's history, but at an address without settings (history.js): back
    # at one all the same, going back would never get any further.
    if st.query_params.to_dict() != query and not (travelled() and not st.query_params):
        st.query_params.from_dict(query)
