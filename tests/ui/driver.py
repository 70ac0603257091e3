"""Drive the dashboard under AppTest: start, find by key, change, and read back.

Tests name widgets by their keys, never by their position, so that a page may be rearranged.
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
# These pages show the shared settings; all other pages ignore the shared settings.
SHARED = tuple(page for page in PAGES if not INFOS[page].own_settings)
# The sidebar of these pages shows the shared settings and further settings to read a table.
BESIDE = tuple(page for page in SHARED if not INFOS[page].own_reading)

# A small table and few repetitions keep tests quick; two are enough for a mean's range.
QUICK = {"table": "iris", "trials": "2", "tuning": "fixed", "epsilons": "1"}
PATIENCE = 60  # A run may take 60 seconds; the slowest run takes a tenth of this.


def unread(page: str) -> tuple[str, ...]:
    """Return the parts of the settings row that a page does not read and so hides."""
    return INFOS[page].unread


def parts_of(page: str) -> list[dict[str, str]]:
    """Return the choice for each part of a page, the first part first; one empty if no parts."""
    if page != "claims":
        return [{}]
    params = params_of(ClaimsView)
    parts = []
    for part in params["part"].choices:
        inner = params["exhibit"].choices if part == "refutations" else [params["exhibit"].default]
        parts += [{"part": part, "exhibit": exhibit} for exhibit in inner]
    return parts


def show(at: AppTest, page: str, chosen: dict[str, str]) -> None:
    """Show a part of a page; leave a page without parts as it is."""
    if chosen and dict(at.session_state[page]) != chosen:
        at.session_state[page] = chosen
        at.run()


def each_part(at: AppTest, page: str) -> Iterator[dict[str, str]]:
    """Show every part of a page in turn."""
    for part in parts_of(page):
        show(at, page, part)
        yield part


def start(page: str = FIRST, **query: str) -> AppTest:
    """Return the dashboard after its first run, on a page, opened by a link with parameters."""
    at = AppTest.from_file(str(app_path()), default_timeout=PATIENCE)
    at.query_params.update(query)
    # The address of a page is its file name, so a test can open the page before the first run.
    return at.run() if page == FIRST else go(at, page)


def go(at: AppTest, page: str) -> AppTest:
    """Return the dashboard after a change of page."""
    return at.switch_page(f"pages/{page}.py").run()


def nodes(at: AppTest) -> Iterator[Any]:
    """Yield every element and block, in display order."""

    def below(block: Block) -> Iterator[Any]:
        for child in block.children.values():
            yield child
            if isinstance(child, Block):
                yield from below(child)

    yield from below(at.main)
    yield from below(at.sidebar)


def commands(at: AppTest) -> list[str]:
    """Return the commands and links that the page offers for copying."""
    bodies = [node.proto.body for node in nodes(at) if node.type == "html"]
    lines = [re.findall(r'class="dp-copy"><pre><code>(.*?)</code>', body) for body in bodies]
    return [html.unescape(re.sub("<.*?>", "", text)) for texts in lines for text in texts]


def keys(at: AppTest) -> list[str]:
    """Return the keys of all widgets shown."""
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
    """Return the dashboard after a user has set a widget."""
    found(at, key).set_value(value)
    return at.run()


def press(at: AppTest, key: str) -> AppTest:
    """Return the dashboard after a user pressed a button."""
    found(at, key).click()
    return at.run()


def more(at: AppTest) -> AppTest:
    """Return the Explore page with all its charts."""
    return change(at, "explore.charts", True)


def upload(at: AppTest, name: str, content: bytes, *, working: bool = True) -> AppTest:
    """Return the dashboard after a user uploaded a file and, if wanted, opened the working view."""
    uploader = found(at, "upload").set_value((name, content, "application/octet-stream"))
    if working:
        ((file_id, *_),) = uploader._files
        at.session_state["board.working"] = file_id
    return at.run()


def corrected(at: AppTest, *guesses: str) -> AppTest:
    """Return the dashboard after a user opened the guesses about an upload for correction."""
    for guess in guesses or ("columns", "missing", "colour", "marks"):
        at.session_state[f"check.{guess}~{at.session_state['check.number']}"] = True
    return at.run()


def another(widget: Any) -> Any:
    """Return a legal value other than the widget's current value, or None if there is none.

    For a widget with options, the value is the displayed text, which is what a browser sends.
    """
    if isinstance(widget, SelectSlider | Selectbox | ButtonGroup | Radio):
        options = list(widget.options)
        if widget.value is None:
            return options[0]
        if isinstance(widget.value, list):  # In a multiple choice, add one option or clear all.
            return [] if widget.value else options[:1]
        place = options.index(widget.format_func(widget.value))
        other = options[place + 1 if place + 1 < len(options) else place - 1]
        if len(options) == 1:
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
        return None  # Buttons and uploads have no value to change.
    raise NotImplementedError(f"no other value is known for a {widget.type}")


def shown_value(at: AppTest, key: str) -> Any:
    """Return the value that a widget shows: its option's text, or its value."""
    widget = found(at, key)
    # A list may offer None as an option; for a radio button, None means that nothing is chosen yet.
    has_value = isinstance(widget, Selectbox | ButtonGroup) or widget.value is not None
    if isinstance(widget, ButtonGroup) and isinstance(widget.value, list):
        return [widget.format_func(one) for one in widget.value]
    if isinstance(widget, Selectbox | ButtonGroup | Radio) and has_value:
        return widget.format_func(widget.value)
    return widget.value


def errors(at: AppTest) -> list[str]:
    """Return the error messages on the page; fail if the page shows an exception."""
    assert not at.exception, [box.message for box in at.exception]
    return [as_seen(box.value) for box in at.error]


def notices(at: AppTest) -> list[str]:
    """Return the messages about replaced values."""
    return [as_seen(box.value) for box in at.warning if box.icon == ":material/info:"]


def opening(at: AppTest) -> str:
    """Return the first sentence of the page itself, below the help of the settings row."""
    return next(
        str(box.value)
        for box in at.main.markdown
        if not box.value.startswith("**What am I looking at?**")
    )


def as_seen(markdown: str) -> str:
    """Return an escaped text as the page shows it."""
    return re.sub(r"\\([^\w\s])", r"\1", markdown).replace("\u2060", "")


def one_sentence(text: str) -> bool:
    """Return whether the text is one sentence on one line, with a full stop at its end."""
    return text.endswith(".") and "\n" not in text and ". " not in text.removesuffix(".")


def held(at: AppTest, name: str, store: str = "view") -> Any:
    """Return a value of the session's view."""
    return at.session_state[store][name]


def component(at: AppTest, key: str) -> dict[str, Any]:
    """Return the data sent to one of dpviz's components."""
    sent_nodes = [node for node in nodes(at) if node.type == "bidi_component" and node.key == key]
    assert len(sent_nodes) == 1, f"{len(sent_nodes)} components with the key {key!r}"
    data: dict[str, Any] = json.loads(sent_nodes[0].proto.json)
    return data


def results(at: AppTest) -> pd.DataFrame:
    """Return the table of results on the Explore page; open the table if it is closed."""
    if not at.session_state["results.open"]:
        at.session_state["results.open"] = True
        at.run()
    tables = [frame.value for frame in at.dataframe if "evidence" in frame.value.columns]
    assert len(tables) == 1, f"{len(tables)} tables of results"
    return tables[0]


def unheard(at: AppTest) -> AppTest:
    """Return the dashboard after a run that ignores the browser's earlier state.

    The browser's state is ignored if the next run starts before the last run's messages are sent,
    because Streamlit drops these messages.
    """
    return at._run(WidgetStates())


def reports(at: AppTest) -> WidgetStates:
    """Return what a browser reports of every widget shown."""
    return at._tree.get_widget_states()


def late(at: AppTest, reported: WidgetStates) -> AppTest:
    """Return the dashboard after a browser reported its state from before the last run."""
    return at._run(reported)


def untold(at: AppTest) -> list[str]:
    """Return keys of widgets that a browser shows wrong if it received only the last run."""
    state = at._session_state._state
    wrong = []
    for node in nodes(at):
        if isinstance(node, Widget) and getattr(node.proto, "set_value", None) is False:
            value = state.get_widget_metadata(node.id)
            assert value is not None
            if state[node.id] != value.deserializer(None):
                wrong.append(node.key or node.id)
    return wrong
