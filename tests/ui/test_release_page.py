"""The Release and Preparation pages: nothing spent on an error, nothing true shown, a waterfall."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dpviz.releasing.ledger import Ledger
from pages.ui import shell
from tests.ui.driver import QUICK, commands, errors, go, more, start

SETTING = {**QUICK, "table": "digits"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPVIZ_LEDGERS", str(tmp_path))
    return tmp_path


def _fill(at: object, **values: str) -> None:
    for name, value in values.items():
        at.text_input(key=f"release.{name}").set_value(value)  # type: ignore[attr-defined]


def _send(at: object) -> object:
    return at.button(key="release.send").click().run()  # type: ignore[attr-defined]


def test_nothing_is_spent_before_all_is_declared(folder: Path) -> None:
    at = start("release", **SETTING)
    assert errors(at) == []
    _fill(at, ledger="mine")
    at = _send(at)
    (said,) = errors(at)
    assert "row bound must be a number above 0" in said
    _fill(at, row_bound="60", ledger="../elsewhere")
    at = _send(at)
    (said,) = errors(at)
    assert "a name of letters, digits and dashes" in said
    assert not list(folder.glob("*.jsonl"))


def test_a_second_click_spends_again_and_says_so(folder: Path) -> None:
    at = start("release", **SETTING)
    _fill(at, row_bound="60", ledger="mine", limit="2,1e-5")
    at = _send(at)
    assert errors(at) == []
    assert "spend number 1" in at.success[0].value
    at = _send(at)
    (said,) = errors(at)
    assert "its limit was set when it was made" in said
    _fill(at, limit="")
    at = _send(at)
    assert "spend number 2" in at.success[0].value
    ledger = Ledger(folder / "mine.jsonl")
    assert len(ledger.read().spends) == 2
    at = _send(at)
    (said,) = errors(at)
    assert "refuses" in said
    assert not at.success  # nothing of the refused release is shown
    assert len(ledger.read().spends) == 2
    # what was typed survives a visit elsewhere, or is asked for again; it is never spent twice
    at = go(go(at, "claims"), "release")
    assert errors(at) == []
    assert len(ledger.read().spends) == 2


def test_the_page_can_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(shell.pages())
    monkeypatch.setenv("DPVIZ_RELEASE", "off")
    assert len(shell.pages()) == count - 1


def test_the_waterfall_follows_its_controls() -> None:
    at = start("preparation", **SETTING)
    assert errors(at) == []
    before = [box.value for box in at.main.markdown if "everything but the rows" in box.value]
    assert len(before) == 1
    at.slider(key="preparation.view.mean_share").set_value(0.3).run()
    after = [box.value for box in at.main.markdown if "everything but the rows" in box.value]
    assert errors(at) == []
    assert len(after) == 1
    chart = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert re.fullmatch(r"everything public<br>\d+ %", chart["data"][0]["x"][0])
    at = go(go(at, "claims"), "preparation")
    assert errors(at) == []
    at.session_state["preparation.account"] = True
    at = at.run()
    assert errors(at) == []
    assert any(box.value.startswith("The whole chain: ") for box in at.main.caption)
    assert len(at.get("plotly_chart")) == 3


def test_a_table_without_public_bounds_asks_for_them() -> None:
    at = start("preparation", **{**QUICK, "table": "iris"})
    assert errors(at) == []
    assert any("bounds are taken from the data" in box.value for box in at.info)
    at.text_input(key="preparation.bounds").set_value("0:8").run()
    assert errors(at) == []
    assert not any("bounds are taken from the data" in box.value for box in at.info)
    assert any("everything but the rows" in box.value for box in at.main.markdown)
    at.text_input(key="preparation.bounds").set_value("8:0").run()
    (said,) = errors(at)
    assert "low below high" in said
    at.text_input(key="preparation.bounds").set_value("bounds.csv").run()
    (said,) = errors(at)
    assert "feature bounds must be max, known, private or LOW:HIGH; got 'bounds.csv'" in said


def test_a_paid_preparation_follows_to_every_page_and_back() -> None:
    at = start("preparation", **QUICK, bounds="0:8", relation="zero-out")
    at.button(key="preparation.private").click().run()
    assert errors(at) == []
    assert at.query_params["center"] == "private"
    assert at.query_params["count"] == "private"
    at = go(at, "explore")
    assert errors(at) == []
    listed = " ".join(box.value for box in at.main.markdown)
    assert "the feature means" not in listed
    assert "the row bound R" not in listed
    assert "--center private --row-bound private:0.9 --count private" in " ".join(commands(at))
    at = more(at)
    assert errors(at) == []
    assert any("everything but the rows" in box.value for box in at.main.markdown)
    at = go(at, "mechanisms")
    at.session_state["mechanisms.gaussian.open"] = True
    at.session_state["mechanisms.account.gaussian"] = True
    at = at.run()
    assert errors(at) == []
    chain = "The whole chain: preparation (count, mean, bound) and release"
    assert any(box.value.startswith(chain) for box in at.main.caption)
    for page in ("tradeoffs", "precision", "claims", "decide", "tasks"):
        at = go(at, page)
        assert errors(at) == [], page
    at = go(at, "preparation")
    at.button(key="preparation.public").click().run()
    assert "center" not in at.query_params
    assert any("the feature means" in box.value for box in go(at, "explore").main.markdown)


def test_a_card_tells_what_repeating_costs() -> None:
    at = start("mechanisms", **QUICK)
    for key in ("gaussian", "wishart"):
        at.session_state[f"mechanisms.{key}.open"] = True
        at.session_state[f"mechanisms.account.{key}"] = True
    at = at.run()
    assert errors(at) == []
    said = [box.value for box in at.main.caption]
    assert any(text.startswith("mu ") and "rho " in text for text in said)
    assert any("no epsilon describes" in text for text in said)
    assert len(at.get("plotly_chart")) == 2
