"""What links are read as: the settings, the address that says the same, and the notices."""

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
    """Return what a link is read as, and what the address bar says of that."""
    found = link.read(dict(parse_qsl(address, keep_blank_values=True)))
    query = {"v": link.LINK_VERSION} | found.settings.to_query(page_defaults())
    for store, cls in VIEWS.items():
        query |= found.views[store].to_query(cls())
    return {
        "settings": _changed(found.settings),
        "query": urlencode(query),
        "label": found.label_index,
        "pin": None if found.pin is None else _changed(found.pin),
        "notices": list(found.notices),
    }


def _changed(settings: Settings) -> dict[str, Any]:
    """Return the settings that are not a page's: which mechanisms those feature may change."""
    usual = page_defaults().to_json()
    return {name: value for name, value in settings.to_json().items() if value != usual[name]}


def links_text() -> str:
    """Return what every link is read as."""
    found = {address: read_link(address) for address in ADDRESSES}
    return json.dumps(found, indent=1) + "\n"
