"""Links that say everything, so that later defaults change nothing."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

import streamlit as st

from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.lessons.questions import Answers
from pages.ui import link
from pages.ui.menu import infos


def _address() -> str:
    """Return where the dashboard is, without page and query; empty outside a browser."""
    address = st.context.url or ""
    return address.partition("?")[0].rstrip("/")


def _root() -> str:
    """Return where the dashboard's first page is, without a slash at the end."""
    base, _, page = _address().rpartition("/")
    return base if page in {info.path.stem for info in infos()} else _address()


def to_explore(settings: Settings) -> str:
    """Return the canonical link of settings on Explore: every setting that may travel."""
    return f"{_root()}/?{urlencode(canonical(settings))}"


def to_decide(own: Settings, settings: Settings, answers: Answers) -> str:
    """Return the canonical link of a card: every setting and every answer.

    Parameters
    ----------
    own : Settings
        The dashboard's: its table stays where the card is about a plan, which the answers say.
    settings : Settings
        The card's.
    answers : Answers
    """
    query = canonical(replace(settings, table=own.table))
    query |= {
        param.url: param.format(getattr(answers, name))
        for name, param in params_of(Answers).items()
        if param.url is not None
    }
    return f"{_root()}/decide?{urlencode(query)}"


def canonical(settings: Settings) -> dict[str, str]:
    """Return the query that names every setting that may travel in a link, defaults included."""
    return {"v": link.LINK_VERSION, **settings.full_query()}
