"""Links that state every setting, so that later defaults change nothing."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from dpviz.core.settings import Settings
from pages.ui import link
from pages.ui.menu import infos


def _address() -> str:
    """Return the dashboard's address, without page and query; empty outside a browser."""
    address = st.context.url or ""
    return address.partition("?")[0].rstrip("/")


def _root() -> str:
    """Return the address of the dashboard's first page, without a slash at the end."""
    base, _, page = _address().rpartition("/")
    return base if page in {info.path.stem for info in infos()} else _address()


def to_explore(settings: Settings) -> str:
    """Return the canonical link to Explore, with every setting that a link may carry."""
    return f"{_root()}/?{urlencode(canonical(settings))}"


def canonical(settings: Settings) -> dict[str, str]:
    """Return the query that states every setting allowed in a link, including defaults."""
    return {"v": link.LINK_VERSION, **settings.full_query()}
