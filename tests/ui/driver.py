"""Drives the dashboard under AppTest: start, find by key, change, and read back.

Tests name widgets by their keys and never by position, so that a page may be rearranged freely.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import pandas as pd
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import (
    Block,
    Button,
    ButtonGroup,
    Checkbox,
    DownloadButton,
    FileUploader,
    Multiselect,
    NumberInput,
    Radio,
    Selectbox,
    SelectSlider,
    Slider,
    Toggle,
    Widget,
)

from dpviz.core.files import app_path
from dpviz.core.params import params_of
from pages.ui.menu import infos
from pages.ui.page_options import ClaimsView

ROOT = app_path().parent
INFOS = {info.path.stem: info for info in infos()}
PAGES = tuple(sorted(INFOS))
FIRST = next(name for name, info in INFOS.items() if info.first)
# Pages that show the shared settings; the others ignore them.
SHARED = tuple(page for page in PAGES if not INFOS[page].own_settings)
# Of these, pages whose sidebar has more of them.
BESIDE = tuple(page for page in SHARED if not INFOS[page].own_reading)

# Small and quick: a test spends its time on the page and not on draws, of which two have a range.
QUICK = {"table": "iris", "trials": "2", "tuning": "fixed", "epsilons": "1"}
PATIENCE = 60  # seconds; the slowest run here takes a tenth of it


def unread(page: str) -> tuple[str, ...]:
    """Return the parts of the row above a page that the page does not read, and so not show."""
    return INFOS[page].unread


def parts_of(page: str) -> list[dict[str, str]]:
    """Return what chooses each part of a page, the first one shown first; without parts nothing."""
    if page != "claims":
        return [{}]
    shown = params_of(ClaimsView)
    chosen = []
    for part in shown["part"].choices:
        inner = shown["exhibit"].choices if part == "refutations" else [shown["exhibit"].default]
        chosen += [{"part": part, "exhibit": exhibit} for exhibit in inner]
    return chosen


def show(at: AppTest, page: str, chosen: dict[str, str]) -> None:
    """Show a part of a page; a page without parts is there as it is."""
    if chosen and dict(at.session_state[page]) != chosen:
        at.session_state[page] = chosen
        at.run()


def each_part(at: AppTest, page: str) -> Iterator[dict[str, str]]:
    """Show every part of a page in turn."""
    for chosen in parts_of(page):
        show(at, page, chosen)
        yield chosen


def start(page: str = FIRST, **query: str) -> AppTest:
    """Return the dashboard after its first run, on a page, from a link with these parameters."""
    at = AppTest.from_file(str(app_path()), default_timeout=PATIENCE)
    at.query_params.update(query)
    # The address of a page is its file's name, so that it is found before the first run.
    return at.run() if page == FIRST else go(at, page)


def go(at: AppTest, page: str) -> AppTest:
    """Return the dashboard after a change of page."""
    return at.switch_page(f"pages/{page}.py").run()


def nodes(at: AppTest) -> Iterator[Any]:
    """Yield every element and block, in the order drawn."""

    def below(block: Block) -> Iterator[Any]:
        for child in block.children.values():
            yield child
            if isinstance(child, Block):
                yield from below(child)

    yield from below(at.main)
    yield from below(at.sidebar)


def commands(at: AppTest) -> list[str]:
    """Return the commands and links on the page that are there to be copied."""
    bodies = [node.proto.body for node in nodes(at) if node.type == "html"]
    shown = [re.findall(r'class="dp-copy"><pre><code>(.*?)</code>', body) for body in bodies]
    return [html.unescape(re.sub("<.*?>", "", text)) for texts in shown for text in texts]


def keys(at: AppTest) -> list[str]:
    """Return the keys of all widgets drawn."""
    return [node.key.split("~")[0] for node in nodes(at) if isinstance(node, Widget) and node.key]


def found(at: AppTest, key: str) -> Any:
    """Return the widget with this key; a number after ``~`` counts how often it was refilled."""
    matching = [
        node
        for node in nodes(at)
        if isinstance(node, Widget) and node.key and node.key.split("~")[0] == key
    ]
    assert len(matching) == 1, f"{len(matching)} widgets with the key {key!r}"
    return matching[0]


def change(at: AppTest, key: str, value: Any) -> AppTest:
    """Return the dashboard after a user gave a widget a value."""
    found(at, key).set_value(value)
    return at.run()


def press(at: AppTest, key: str) -> AppTest:
    """Return the dashboard after a user pressed a button."""
    found(at, key).click()
    return at.run()


def more(at: AppTest) -> AppTest:
    """Return Explore with all its charts."""
    return change(at, "explore.charts", True)


def upload(at: AppTest, name: str, content: bytes, *, working: bool = True) -> AppTest:
    """Return the dashboard after a user uploaded a file, and asked for its working view or not."""
    uploader = found(at, "upload").set_value((name, content, "application/octet-stream"))
    if working:
        ((file_id, *_),) = uploader._files
        at.session_state["board.working"] = file_id
    return at.run()


def corrected(at: AppTest, *guesses: str) -> AppTest:
    """Return the dashboard with guesses of how the upload was read opened, to be corrected."""
    for guess in guesses or ("columns", "missing", "colour", "marks"):
        at.session_state[f"check.{guess}~{at.session_state['check.number']}"] = True
    return at.run()


def another(widget: Any) -> Any:
    """Return a legal value of a widget that it does not have, or None where there is none.

    Where a widget offers options the value is the text shown, which is what a browser sends.
    """
    if isinstance(widget, SelectSlider | Selectbox | ButtonGroup | Radio):
        shown = list(widget.options)
        if widget.value is None:
            return shown[0]
        if isinstance(widget.value, list):  # several may be chosen: one more, or none of them
            return [] if widget.value else shown[:1]
        place = shown.index(widget.format_func(widget.value))
        other = shown[place + 1 if place + 1 < len(shown) else place - 1]
        if len(shown) == 1:
            return None
        return float(other.removesuffix("\u00a0%")) if isinstance(widget, SelectSlider) else other
    if isinstance(widget, Multiselect):
        return widget.value[:-1] if len(widget.value) > 1 else None
    if isinstance(widget, Checkbox | Toggle):
        return not widget.value
    if isinstance(widget, NumberInput | Slider):
        if widget.value is None:
            return widget.min
        step = widget.step or 1
        up = widget.value + step
        return up if widget.max is None or up <= widget.max else widget.value - step
    if isinstance(widget, Button | DownloadButton | FileUploader):
        return None  # they hold no value
    raise NotImplementedError(f"no other value is known for a {widget.type}")


def shown_value(at: AppTest, key: str) -> Any:
    """Return what a widget shows: its option's text, or its value."""
    widget = found(at, key)
    # None may be an option of a list; of a radio it is that nothing is chosen yet
    chosen = isinstance(widget, Selectbox | ButtonGroup) or widget.value is not None
    if isinstance(widget, ButtonGroup) and isinstance(widget.value, list):
        return [widget.format_func(one) for one in widget.value]
    if isinstance(widget, Selectbox | ButtonGroup | Radio) and chosen:
        return widget.format_func(widget.value)
    return widget.value


def errors(at: AppTest) -> list[str]:
    """Return the error sentences on the page, none of which may be an exception."""
    assert not at.exception, [box.message for box in at.exception]
    return [as_seen(box.value) for box in at.error]


def notices(at: AppTest) -> list[str]:
    """Return the sentences about what was replaced."""
    return [as_seen(box.value) for box in at.warning if box.icon == ":material/info:"]


def opening(at: AppTest) -> str:
    """Return the first sentence of the page itself, below the help of the bar."""
    return next(
        str(box.value)
        for box in at.main.markdown
        if not box.value.startswith("**What am I looking at?**")
    )


def as_seen(markdown: str) -> str:
    """Return a text as the page shows it, for one that was made plain."""
    return re.sub(r"\\([^\w\s])", r"\1", markdown).replace("\u2060", "")


def one_sentence(text: str) -> bool:
    """Return whether the text is one sentence on one line, with a full stop at its end."""
    return text.endswith(".") and "\n" not in text and ". " not in text.removesuffix(".")


def held(at: AppTest, name: str, store: str = "view") -> Any:
    """Return a value of the session's view."""
    return at.session_state[store][name]


def component(at: AppTest, key: str) -> dict[str, Any]:
    """Return what a component of our own is sent."""
    sent = [node for node in nodes(at) if node.type == "bidi_component" and node.key == key]
    assert len(sent) == 1, f"{len(sent)} components with the key {key!r}"
    data: dict[str, Any] = json.loads(sent[0].proto.json)
    return data


def results(at: AppTest) -> pd.DataFrame:
    """Return the table of results on the Explore page, opened if it is not."""
    if not at.session_state["results.open"]:
        at.session_state["results.open"] = True
        at.run()
    tables = [frame.value for frame in at.dataframe if "evidence" in frame.value.columns]
    assert len(tables) == 1, f"{len(tables)} tables of results"
    return tables[0]


def unheard(at: AppTest) -> AppTest:
    """Return the dashboard after a run of which the browser knows nothing that was before it.

    So it is where the next run starts before the messages of the last one are sent, and Streamlit
    drops them.
    """
    return at._run(WidgetStates())


def reports(at: AppTest) -> WidgetStates:
    """Return what a browser reports of every widget that is drawn."""
    return at._tree.get_widget_states()


def late(at: AppTest, reported: WidgetStates) -> AppTest:
    """Return the dashboard after a browser reported what it knew before the last run."""
    return at._run(reported)


def untold(at: AppTest) -> list[str]:
    """Return the keys of widgets that a browser which heard of the last run alone shows wrong."""
    state = at._session_state._state
    wrong = []
    for node in nodes(at):
        if isinstance(node, Widget) and getattr(node.proto, "set_value", None) is False:
            held = state.get_widget_metadata(node.id)
            assert held is not None
            if state[node.id] != held.deserializer(None):
                wrong.append(node.key or node.id)
    return wrong
