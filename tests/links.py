"""Find forbidden effects of a link, in the parser and on a whole page."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from typing import Any

from dpviz.core.errors import DpvizError
from dpviz.core.settings import Settings
from pages.ui import link as parser
from pages.ui.page_options import VIEWS
from tests.hostile import printable
from tests.ui.driver import as_seen, each_part, nodes, start

# Streamlit reads these fields as Markdown, except in the texts of widgets and tables.
_MARKDOWN = ("body", "label", "help", "caption", "text", "title")
_LIVE = re.compile(r"://host|<img|(?<!\\)\$\\?href|:material/home:")
# dpviz itself shows such images: they contain all of their data, and their text is fixed.
_OWN = re.compile(
    r'<img src="data:image/svg\+xml;base64,[A-Za-z0-9+/=]+"(?: width="\d+" height="\d+")?'
    r' alt="[^"<>\[\]]*"(?: style="[a-z0-9%:;-]*")?>'
)
_TAGS = re.compile(r"<[^>]*>?")  # Only HTML tags can load a resource or link to one.
COST = 1.0  # Reading one link may take at most one second.


def known_keys() -> list[str]:
    """Return every key that a link may have."""
    keys = Settings.url_keys() | parser.OWN_KEYS
    for cls in VIEWS.values():
        keys |= cls.url_keys()
    return sorted(keys)


def parser_problems(query: dict[str, str]) -> list[str]:
    """Return the faults in the way a link is read."""
    problems = []
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            link = parser.read(query)
        except DpvizError as error:
            return [f"refuses to start: {error}"]
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
    if time.process_time() - begin > COST:
        problems.append(f"took {time.process_time() - begin:.1f} s to read")
    for notice in link.notices:
        if not printable(notice) or len(notice) > 700:
            problems.append(f"no short printable line: {notice!r}")
    return problems


def markdown_of(at: Any) -> Iterator[str]:
    """Yield every text of a page that Streamlit reads as Markdown, except our own images."""
    for node in nodes(at):
        proto = getattr(node, "proto", None)
        kind = type(proto).__name__
        if kind in ("Code", "Arrow", "PlotlyChart", "EchartsChart", "BidiComponent"):
            continue
        for field in _MARKDOWN:
            text = getattr(proto, field, "")
            if isinstance(text, str) and text:
                text = _OWN.sub("", text)
                yield "".join(_TAGS.findall(text)) if kind == "Html" else text


def drawn_problems(page: str, query: dict[str, str]) -> list[str]:
    """Return the faults of a page that is opened from a link."""
    quick = {"table": "iris", "trials": "5"}
    at = start(page, **(quick | query | {"table": query.get("table", "iris")[:40]}))
    faults = []
    for part in each_part(at, page):
        place = " ".join([page, *part.values()])
        faults += [f"{place}: {box.message}" for box in at.exception]
        faults += [f"{place}: live text {text!r}" for text in markdown_of(at) if _LIVE.search(text)]
        for box in (*at.error, *at.warning):
            if not printable(as_seen(box.value)):
                faults.append(f"{place}: not printable: {box.value!r}")
    return faults
