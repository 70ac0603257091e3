"""What a link must not do: through the parser, and through a whole page."""

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

# the widgets' texts and tables are no Markdown; of what is, these fields are
_MARKDOWN = ("body", "label", "help", "caption", "text", "title")
_LIVE = re.compile(r"://host|<img|(?<!\\)\$\\?href|:material/home:")
# A picture of our own: it holds all it shows, and its words are ours.
_OWN = re.compile(
    r'<img src="data:image/svg\+xml;base64,[A-Za-z0-9+/=]+"(?: width="\d+" height="\d+")?'
    r' alt="[^"<>\[\]]*"(?: style="[a-z0-9%:;-]*")?>'
)
_TAGS = re.compile(r"<[^>]*>?")  # of HTML only they can be live
COST = 1.0  # seconds that reading one link may take


def known_keys() -> list[str]:
    """Return every key that a link may have."""
    found = Settings.url_keys() | parser.OWN_KEYS
    for cls in VIEWS.values():
        found |= cls.url_keys()
    return sorted(found)


def parser_problems(query: dict[str, str]) -> list[str]:
    """Return what is wrong with how a link is read."""
    found = []
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            link = parser.read(query)
        except DpvizError as error:
            return [f"refuses to start: {error}"]
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
    if time.process_time() - started > COST:
        found.append(f"took {time.process_time() - started:.1f} s to read")
    for said in link.notices:
        if not printable(said) or len(said) > 700:
            found.append(f"no short printable line: {said!r}")
    return found


def markdown_of(at: Any) -> Iterator[str]:
    """Yield every text of a page that Streamlit reads as Markdown, but for our own pictures."""
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
    """Return what is wrong with a page that is drawn from a link."""
    quick = {"table": "iris", "trials": "5"}
    at = start(page, **(quick | query | {"table": query.get("table", "iris")[:40]}))
    found = []
    for part in each_part(at, page):
        place = " ".join([page, *part.values()])
        found += [f"{place}: {box.message}" for box in at.exception]
        found += [f"{place}: live text {text!r}" for text in markdown_of(at) if _LIVE.search(text)]
        for box in (*at.error, *at.warning):
            if not printable(as_seen(box.value)):
                found.append(f"{place}: not printable: {box.value!r}")
    return found
