"""No page ends in a traceback, whatever a visitor presses in any order.

A seed determines the presses, so every failure is reproducible; ``DPVIZ_PRESSES=SEED:STEPS`` uses
other presses, and more.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import (
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
    TextArea,
    TextInput,
    Toggle,
    Widget,
)

from tests.ui.driver import PAGES, QUICK, go, nodes, start

pytestmark = pytest.mark.long

# These files are small and odd, like files that people export from programs.
TABLES = {
    "constant.csv": "a,b,c\n1,2,5\n1,3,4\n1,4,6\n1,7,1\n",
    "twice.csv": "a,a,b\n1,2,3\n4,5,7\n6,8,2\n1,0,3\n",
    "one.csv": "a,b\n1,2\n",
    "codes.csv": "age,score,kind\n" + "".join(f"{30 + i},{(i * 7) % 5},x\n" for i in range(9))
    + "-999,3,y\n41,-999,y\n",
    "words.csv": "größe;名;😀\n1,5;2;x\n2,5;4;y\n3,5;1;x\n4,5;7;z\n",
    "huge.csv": "a,b\n1e200,2\n-1e200,3\n3,5\n4,1\n",
    "tiny.csv": "a,b\n1e-200,2e-200\n3e-200,1e-200\n5e-200,2e-200\n",
    "many.csv": "a,b,c,d,e,f,g,h\n1,2,3,4,5,6,7,9\n2,1,4,3,6,5,8,7\n1,1,2,2,3,3,4,4\n",
    "dates.tsv": "day\tx\ty\n2020-01-01\t1\t2\n2020-01-02\t2\t5\n2020-01-03\t4\t1\n",
    "records.json": '[{"a": 1, "b": 2, "c": "x"}, {"a": 3, "b": null, "c": "y"}, {"a": 5, "b": 4}]',
    "nothing.csv": "",
}  # fmt: skip
TEXTS = ("", "auto", "0", "-1", "nan", "1e999", "1e-5", "0.5", "3", "200", "x", "größe*[a](b)",
         "1, 2", "0.1,1,10", "max", "none", "quantile:0.9", "a,-1,1\nb,-1,1")  # fmt: skip


def pressed(at: AppTest, rng: random.Random) -> str:
    """Do one thing that a visitor may do, and return its description."""
    there = [w for w in nodes(at) if isinstance(w, Widget) and w.key and not _shut(w)]
    # Prefer the page's own widgets: otherwise most actions would use widgets that all pages share.
    here = [w for w in there if not w.key.startswith("view.")]
    if not there or rng.random() < 0.12:
        page = rng.choice(PAGES)
        go(at, page)
        return f"open {page}"
    widget = rng.choice(here if here and rng.random() < 0.6 else there)
    if rng.random() < 0.08:
        widget = next((w for w in there if w.key.startswith("upload")), widget)
    words = _do(widget, rng)
    at.run()
    return f"{widget.key} {words}"


def _shut(widget: Any) -> bool:
    return bool(widget.proto.disabled) or isinstance(widget, DownloadButton)


def _do(widget: Any, rng: random.Random) -> str:
    if isinstance(widget, Button):
        widget.click()
        return "pressed"
    if isinstance(widget, FileUploader):
        name = rng.choice(list(TABLES))
        widget.set_value((name, TABLES[name].encode(), "application/octet-stream"))
        return f"= {name}"
    value = _value(widget, rng)
    widget.set_value(value)
    return f"= {value!r}"


def _value(widget: Any, rng: random.Random) -> Any:
    """Return any value that a browser could send."""
    if isinstance(widget, SelectSlider):
        options = rng.choice(list(widget.options)).removesuffix("\u00a0%")
        return float(options) if options != "equal" else 0
    if isinstance(widget, ButtonGroup | Selectbox | Radio):
        return rng.choice(list(widget.options)) if widget.options else widget.value
    if isinstance(widget, Multiselect):
        return rng.sample(list(widget.options), rng.randint(0, min(3, len(widget.options))))
    if isinstance(widget, Checkbox | Toggle):
        return not widget.value
    if isinstance(widget, TextInput | TextArea):
        return rng.choice(TEXTS)
    if isinstance(widget, NumberInput | Slider):
        return _number(widget, rng)
    raise NotImplementedError(f"no value is known for a {widget.type}")


def _number(widget: Any, rng: random.Random) -> Any:
    """Return a number in a widget's range, mostly small for counts because sampling takes time."""
    low, high, step = widget.min, widget.max, widget.step
    if low is None or high is None:
        return widget.value
    if high - low > 20 * step and step >= 1 and rng.random() < 0.7:
        high = low + 5 * step
    return type(step)(min(low + rng.randint(0, round((high - low) / step)) * step, high))


def test_nothing_that_is_pressed_ends_in_a_traceback() -> None:
    seed, steps = map(int, os.environ.get("DPVIZ_PRESSES", "7:8").split(":"))
    rng = random.Random(seed)
    at = start(**QUICK)
    actions: list[str] = []
    for _ in range(steps):
        try:
            actions.append(pressed(at, rng))
        except RuntimeError as error:  # AppTest timed out, as some searches take minutes.
            if "timed out" not in str(error):
                raise
            actions.append("left, as it took too long")
            at = start(**QUICK)
        print(actions[-1])  # pytest shows this on failure, or at once with -s.
        traces = [f"{box.message}\n{box.stack_trace}" for box in at.exception]
        assert not traces, "\n".join([*actions, *traces])
