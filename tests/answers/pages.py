"""Each page's first view as text, with a built-in table and with an uploaded file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from tests.answers.questions import CLINIC
from tests.answers.writing import figure_lines, lines_of, plain, table_lines
from tests.ui import driver

_KEYS = re.compile(r"\b[0-9a-f]{16,}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b")
UPLOADED = ("explore", "decide", "mechanisms", "release")
QUICK = {"table": "iris", "trials": "4", "epsilons": "1", "m": "gaussian,wishart_difference,ppca"}


def first_view(page: str) -> str:
    """Return what a page shows of a built-in table, as text."""
    return page_text(driver.start(page, **QUICK))


def uploaded(page: str) -> str:
    """Return what a page shows after a file upload, as text."""
    at = driver.start(driver.FIRST, **QUICK)
    with open(CLINIC, "rb") as file:
        driver.upload(at, "clinic.csv", file.read(), working=False)
    return page_text(at if page == driver.FIRST else driver.go(at, page))


def page_text(at: AppTest) -> str:
    """Return the text of everything rendered, in one or a few lines per element."""
    assert not at.exception, [box.message for box in at.exception]
    lines = [line for node in driver.nodes(at) for line in _node_lines(node)]
    return _KEYS.sub("KEY", "\n".join(line.rstrip() for line in lines)) + "\n"


def _node_lines(node: Any) -> Iterator[str]:
    if isinstance(node, Block):
        label = getattr(node.proto, "label", "") if node.proto is not None else ""
        if label:
            yield f"[{node.type}] {label}"
        return
    kind, proto = node.type, node.proto
    if kind == "plotly_chart":
        yield "[plotly_chart]"
        yield from (f"  {line}" for line in figure_lines(go.Figure(json.loads(proto.spec))))
    elif kind == "bidi_component" and node.key == "glossary.terms":
        return  # Every page has the same menu, and the lessons' tests check the menu.
    elif kind == "bidi_component":
        yield f"[component] {node.key}"
        data = json.loads(proto.json) if getattr(proto, "json", "") else {}
        yield from (f"  {line}" for line in lines_of(_short(data)))
    elif kind in ("arrow_data_frame", "arrow_table", "dataframe", "table"):
        yield f"[{kind}]"
        frame = node.value if isinstance(node.value, pd.DataFrame) else node.value.data
        yield from (f"  {line}" for line in table_lines(frame))
    elif kind in ("image", "imgs"):
        yield "[image]"
    elif kind == "html":
        yield f"[html] {_words(proto.body)}"
    else:
        label, value = str(getattr(node, "label", "") or ""), getattr(node, "value", None)
        words = [label, getattr(value, "name", "") or str("" if value is None else value)]
        options = list(map(str, getattr(node, "options", None) or ()))
        more = f" of {len(options)}: {', '.join(options[:4])}" if options else ""
        yield f"[{kind}] " + plain(" = ".join(one for one in words if one) + more)


def _words(html: str) -> str:
    """Return the text of a piece of HTML, without tags, scripts and embedded images."""
    html = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return plain(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html)).strip())


def _short(data: Any) -> Any:
    """Return a payload with long texts cut off: other tests check images and scripts."""
    if isinstance(data, dict):
        return {name: _short(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_short(value) for value in data]
    if isinstance(data, str) and len(data) > 400:
        return f"{data[:80]}... ({len(data)} characters)"
    return data


VIEWS = {
    **{f"page-{page}": (first_view, page) for page in driver.PAGES},
    **{f"page-{page}-upload": (uploaded, page) for page in UPLOADED},
}
