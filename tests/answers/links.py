"""How links are read: the settings, the equivalent address, and the notices."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

from dpviz.core.settings import Settings
from pages.ui import link
from pages.ui.page_options import VIEWS, page_defaults

ADDRESSES = (
    "v=1",
    "table=iris&epsilon=0.5&k=1&trials=5",
    "table=wine&delta=0&relation=zero-out&m=laplace,wishart",
    "table=iris&domain=box&bounds=0:10&center=midpoint",
    "table=digits&m=mvg[theorem=3,tail=tight],gaussian&seed=7",
    "table=iris&center=private&scale=private&row_bound=private:0.9&bounds=0:10",
    "table=wine&allocation=binary:1,2:0.8&post=free&scale=standardize",
    "table=upload&label=3&pin=epsilon%3D2%26table%3Dupload",
    "v=2&epsilon=-1&k=a&table=nowhere&strange=1",
    "spectrum=linear&axes=raw&draw=2&charts=all&part=audit",
)


def read_link(address: str) -> dict[str, Any]:
    """Return how a link is read, and the query that the address bar then shows."""
    answer = link.read(dict(parse_qsl(address, keep_blank_values=True)))
    query = {"v": link.LINK_VERSION} | answer.settings.to_query(page_defaults())
    for store, cls in VIEWS.items():
        query |= answer.views[store].to_query(cls())
    return {
        "settings": _changed(answer.settings),
        "query": urlencode(query),
        "label": answer.label_index,
        "pin": None if answer.pin is None else _changed(answer.pin),
        "notices": list(answer.notices),
    }


def _changed(settings: Settings) -> dict[str, Any]:
    """Return settings that differ from page defaults, which may feature other mechanisms later."""
    usual = page_defaults().to_json()
    return {name: value for name, value in settings.to_json().items() if value != usual[name]}


def links_text() -> str:
    """Return how every link of the test is read."""
    answers = {address: read_link(address) for address in ADDRESSES}
    return json.dumps(answers, indent=1) + "\n"
