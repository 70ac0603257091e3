"""The Release and Preparation pages: nothing spent on an error, nothing true shown, a waterfall."""

from __future__ import annotations

import base64
import json
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpviz.cli import main
from dpviz.core.errors import CannotWrite
from dpviz.core.files import Reserved
from dpviz.core.problem import Budget, Relation
from dpviz.releasing.ledger import Ledger, Spend
from pages.ui import shell
from tests.ui.driver import (
    QUICK,
    change,
    commands,
    errors,
    found,
    go,
    keys,
    more,
    nodes,
    one_sentence,
    press,
    start,
)

SETTING = {**QUICK, "table": "digits"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPVIZ_LEDGERS", str(tmp_path))
    return tmp_path


def _ledger(folder: Path, epsilon: float = 25.0, name: str = "mine", **more: Any) -> Ledger:
    ledger = Ledger(folder / f"{name}.jsonl")
    ledger.create(Budget(epsilon, more.pop("delta", 1e-4)), more.pop("relation", Relation.REPLACE))
    return ledger


def _open(**values: str) -> AppTest:
    at = start("release", **SETTING)
    assert errors(at) == []
    change(at, "schema.person", "open")
    for name, value in {"row_bound": "60", "delta": "1e-6", **values}.items():
        found(at, f"release.{name}").set_value(value)
    return at.run()


def _look(at: AppTest) -> AppTest:
    return press(at, "release.look")


def _send(at: AppTest) -> AppTest:
    return press(at, "release.send")


def _waits(at: AppTest) -> bool:
    return "release.send" in keys(at)


def test_a_ledger_is_made_by_the_code_of_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = start("release", **SETTING)
    assert "release.look" not in keys(at)  # nothing pays
    (said,) = errors(press(at, "release.new.make"))
    assert "a name of letters, digits and dashes" in said
    for name, limit, sentence in (
        ("../elsewhere", "3,1e-5", "a name of letters, digits and dashes"),
        ("mine", "", "limit must be stated as EPSILON,DELTA"),
        ("mine", "much", "limit must be written EPSILON,DELTA"),
        ("mine", "3", "limit must be written EPSILON,DELTA"),
        ("mine", "3,1e-5,1", "limit must be written EPSILON,DELTA"),
        ("mine", "3;1e-5", "limit must be written EPSILON,DELTA"),
        ("mine", "0,1e-5", "limit must be written EPSILON,DELTA"),
        ("mine", "-1,1e-5", "limit must be written EPSILON,DELTA"),
        ("mine", "nan,1e-5", "limit must be written EPSILON,DELTA"),
        ("mine", "inf,1e-5", "limit must be written EPSILON,DELTA"),
        ("mine", "3,1", "limit must be written EPSILON,DELTA"),
        ("mine", "3,-1e-5", "limit must be written EPSILON,DELTA"),
        ("mine", "3," + "9" * 5_000, "limit must be written EPSILON,DELTA"),
    ):
        found(at, "release.new.name").set_value(name)
        found(at, "release.new.limit").set_value(limit)
        (said,) = errors(press(at, "release.new.make"))
        assert sentence in said, limit
        assert one_sentence(said), limit
        assert len(said) < 300, limit
    assert not list(folder.glob("*.jsonl"))
    found(at, "release.new.limit").set_value("3,1e-5")
    found(at, "release.new.relation").set_value("zero out one person")
    at = press(at, "release.new.make")
    assert errors(at) == []
    contents = Ledger(folder / "mine.jsonl").read()
    assert (contents.limit, contents.relation) == (Budget(3.0, 1e-5), Relation.ZERO_OUT)
    assert [box.value for box in at.metric] == ["ε 0", "ε 3", "ε 3"]
    # a limit typed for a ledger that exists changes nothing, here and on the command line
    at = change(at, "release.ledger", "a new ledger ...")
    found(at, "release.new.name").set_value("mine")
    found(at, "release.new.limit").set_value("9,1e-5")
    (said,) = errors(press(at, "release.new.make"))
    assert main(["ledger", "new", str(folder / "mine.jsonl"), "--limit", "9,1e-5"]) == 2
    for text in (said, capsys.readouterr().err):
        assert "is there already" in text
        assert "its limit was set when it was made" in text
    assert Ledger(folder / "mine.jsonl").read().limit == Budget(3.0, 1e-5)


def test_nothing_is_spent_before_all_is_declared(folder: Path) -> None:
    ledger = _ledger(folder)
    for changed, sentence in (
        ({"row_bound": ""}, "row_bound must be a number above 0"),
        ({"delta": ""}, "delta must be stated: a number from 0 to below 1"),
        ({"epsilon": ""}, "epsilon must be a number from"),
        ({"k": "99"}, "k must be a whole number from 1 to"),
        ({"epsilon": "26"}, "refuses: epsilon 26"),
    ):
        at = _look(_open(**changed))
        (said,) = set(errors(at))
        assert sentence.replace("row_bound", "row bound") in said
        assert not _waits(at)
    assert ledger.read().spends == ()
    assert not ledger.folder.exists()


def test_what_the_card_will_say_stands_beside_the_form_and_spends_nothing(folder: Path) -> None:
    ledger = _ledger(folder)

    def said(at: AppTest) -> str:
        (card,) = [
            node.proto.body
            for node in nodes(at)
            if node.type == "html" and 'class="dp-receipt"' in node.proto.body
        ]
        return str(card)

    assert "? to be stated: delta" in said(start("release", **SETTING))
    at = _open(epsilon="2", by="an office")
    assert "ε 2 δ 1e-6" in said(at)
    assert "an office" in said(at)
    assert "shortened to 60" in said(at)
    assert "? This protects one ROW" in said(at)
    assert ledger.read().spends == ()


def test_a_release_takes_two_steps_and_each_spends_once(folder: Path) -> None:
    ledger = _ledger(folder, 2.0)
    at = _look(_open())
    assert errors(at) == []
    assert ledger.read().spends == ()
    (said,) = [box.value for box in at.main.markdown if "This release spends" in box.value]
    assert "**ε 1** and **δ 1e-6** by gaussian" in said
    assert "has ε 2 and δ 0.0001 left, and ε 1 and δ 9.9e-5 afterwards" in said
    # how many rows is public, and where empty lines are some Explore has fewer
    assert "It reads 1,797 rows; an empty line is one." in said
    at = _send(at)
    assert errors(at) == []
    assert "spend number 1" in at.success[0].value
    assert not _waits(at)  # a second click finds no button
    assert [box.value for box in at.metric][:3] == ["ε 1", "ε 1", "ε 2"]
    for _ in range(2):  # whatever makes the page run again spends nothing
        at = at.run()
    assert len(ledger.read().spends) == 1
    at = _send(_look(at))
    assert "spend number 2" in at.success[0].value
    at = _look(at)
    (said,) = errors(at)
    assert "refuses" in said
    assert not _waits(at)
    # what was typed survives a visit elsewhere; it is never spent twice
    at = go(go(at, "claims"), "release")
    assert errors(at) == [said]
    assert found(at, "release.row_bound").value == "60"
    assert len(ledger.read().spends) == 2


def test_a_form_that_is_sent_again_is_the_same_spend(folder: Path) -> None:
    """As when a second click, or a lost connection, ends the run in the middle of the first."""
    ledger = _ledger(folder)
    at = _look(_open())
    pending = dict(at.session_state["release.pending"])
    at = _send(at)
    assert "spend number 1" in at.success[0].value
    at.session_state["release.sent"] = {**pending, "accept": ()}
    at = at.run()
    assert errors(at) == []
    assert "spend number 1" in at.success[0].value
    assert len(ledger.read().spends) == 1
    assert ledger.read().spends[0].token == pending["token"]


def test_a_change_takes_the_confirmation_back(folder: Path) -> None:
    ledger = _ledger(folder)
    _ledger(folder, name="other")
    for key, value in (
        ("release.epsilon", "2"),
        ("release.row_bound", "61"),
        ("release.k", "3"),
        ("release.ledger", "mine"),
        ("view.table", "Iris"),
    ):
        at = _look(_open())
        assert _waits(at)
        assert not _waits(change(at, key, value)), key
    at = _look(_open())
    pending = dict(at.session_state["release.pending"])
    at.session_state["release.sent"] = {**pending, "asked": {"epsilon": "9"}, "accept": ()}
    (said,) = errors(at.run())
    assert "changed after its cost was shown" in said
    at = press(_look(_open()), "release.leave")
    assert not _waits(at)
    assert ledger.read().spends == ()


def test_what_protects_little_is_meant_in_words(folder: Path) -> None:
    ledger = _ledger(folder, delta=0.1)
    at = _look(_open(epsilon="11"))
    assert found(at, "release.send").disabled
    (box,) = [box for box in at.checkbox if box.key.startswith("release.accept")]
    assert "odds on what one person's row is grow by a factor of more than 22,000" in box.label
    at = change(at, box.key, True)
    assert not found(at, "release.send").disabled
    at = _send(at)
    assert errors(at) == []
    (path,) = ledger.kept().values()
    assert json.loads(path.read_text())["settings"]["accept"] == "epsilon-above-10"
    # of the next one it is not meant yet
    assert found(_look(at), "release.send").disabled
    at = _look(_open(delta="0.001"))
    (box,) = [box for box in at.checkbox if box.key.startswith("release.accept")]
    assert "the whole row of one person, drawn by lot" in box.label


def test_a_release_is_there_after_a_reload(folder: Path) -> None:
    _ledger(folder, name="another")
    ledger = _ledger(folder, relation=Relation.ZERO_OUT)
    _send(_look(_open()))
    (path,) = ledger.kept().values()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["relation"] == "zero-out"
    at = start("release", **SETTING)
    assert found(at, "release.ledger").value == "mine"  # the one last written
    assert found(at, "release.shown").value == 1
    assert "release.download" in keys(at)
    assert not at.success
    made = json.loads(path.read_text())
    (shown,) = [frame.value for frame in at.dataframe if "component 1" in frame.value.columns]
    assert np.allclose(shown["component 1"], made["components"][0])
    # also where the table is gone
    at = start("release", **{**SETTING, "table": "upload"})
    assert "release.download" in keys(at)
    assert "release.look" not in keys(at)


def test_a_spend_without_a_file_is_marked(folder: Path) -> None:
    ledger = _ledger(folder)
    at = _send(_look(_open()))
    ledger.spend(Spend("gaussian", 0.5, 1e-7, purpose="release"), Relation.REPLACE)
    ledger.spend(Spend("gaussian", 0.5, 1e-7, purpose="fit"), Relation.REPLACE)
    at = start("release", **SETTING)
    assert found(at, "release.shown").value == 2
    assert "release.download" not in keys(at)
    (said,) = [box.value for box in at.warning]
    assert "Spend 2 has no file" in said
    (lines,) = [frame.value for frame in at.dataframe if "spend" in frame.value.columns]
    assert lines["release"].tolist() == ["kept", "no file", ""]
    at = change(at, "release.shown", at.selectbox(key="release.shown").options[1])
    assert "release.download" in keys(at)


def test_a_release_that_cannot_be_kept_says_so_and_shows_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = _ledger(folder)
    at = _look(_open())

    def broken(self: Reserved, path: Path, content: bytes) -> None:
        raise CannotWrite(f"{path.name} cannot be written: the disk reports an error.")

    monkeypatch.setattr(Reserved, "become", broken)
    at = _send(at)
    (said,) = errors(at)
    assert "are spent, as spend number 1 of ledger mine.jsonl" in said
    assert [box.value for box in at.warning if "has no file" in box.value]
    assert len(ledger.read().spends) == 1


def test_a_damaged_ledger_is_a_sentence(folder: Path) -> None:
    ledger = _ledger(folder)
    ledger.path.write_text("[" * 200_000 + "\n")
    at = start("release", **SETTING)
    (said,) = errors(at)
    assert "ledger mine.jsonl is damaged" in said
    assert "release.look" not in keys(at)


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
    assert re.fullmatch(r"everything public<br>\d+\u00a0%", chart["data"][0]["x"][0])
    alike = "Every bar cuts rows at the same quantile."
    assert any(alike in box.value for box in at.main.markdown)
    cut = "Rows are cut at their 0.9 quantile here, and not on Explore: its recovery is another."
    assert any(cut in box.value for box in at.main.caption)
    # a stated bound is no quantile
    stated = start("preparation", **SETTING, row_bound="60", epsilon="1000")
    assert not any(alike in box.value for box in stated.main.markdown)
    assert not any("Rows are cut at" in box.value for box in stated.main.caption)
    stated.session_state["numbers.waterfall"] = True
    (numbers,) = (box.value for box in stated.run().dataframe)
    assert any("e-" in str(change) for change in numbers["change"])
    # a grid of numbers would write -0.0000001
    assert all(isinstance(change, str) for change in numbers["change"][1:])
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
    assert any("bounds are taken from the data" in box.value for box in at.caption)
    at.text_input(key="preparation.bounds").set_value("0:8").run()
    assert errors(at) == []
    assert not any("bounds are taken from the data" in box.value for box in at.caption)
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


def test_a_release_is_read_and_filed(folder: Path) -> None:
    _ledger(folder)
    at = change(_open(), "release.pictured", True)
    assert found(at, "release.picture").value == "0.65"
    assert any("told apart by digit" in box.label for box in at.toggle)
    at = _send(_look(at))
    (shown,) = [box.body for box in at.get("html") if "Counts of people in cells" in box.body]
    svg = base64.b64decode(shown.split("base64,")[1].split('"')[0]).decode()
    assert "published: nobody&#x27;s row" in svg
    (picture,) = [box.body for box in at.get("html") if "Loadings of 2 released" in box.body]
    assert picture.startswith('<img src="data:image/svg+xml;base64,')
    words = [box.value for box in at.markdown]
    assert any(word.startswith("**A suspicion that is right 1 time in 100 may") for word in words)
    said = "of the structure survive|How much survives cannot be told"  # as noise falls
    assert any(re.search(said, word) for word in words)
    assert {f"release.take.loadings.{end}" for end in ("png", "svg", "pdf")} <= set(keys(at))
    at = change(at, "card.title", "Handwriting")
    at = change(at, "card.controller", "A garden")
    assert errors(at) == []
    (said,) = [box.value for box in at.caption if "not confirmed by anybody" in box.value]
    (key,) = [node.key for node in at.data_editor if node.key.startswith("card.sources")]
    at.session_state[key] = {
        "edited_rows": {0: {"source": "its article", "confirmed_by": "A. Example"}},
        "added_rows": [],
        "deleted_rows": [],
    }
    at = at.run()
    (less,) = [box.value for box in at.caption if "not confirmed by anybody" in box.value]
    assert int(less.split()[0]) == int(said.split()[0]) - 1
    at = change(at, "card.title", "x" * 201)
    (wrong,) = errors(at)
    assert "one line of at most 200 characters" in wrong


def test_a_form_that_another_page_has_filled_begins_with_that(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Streamlit warns in the log where a field has a value of its own and one of the session."""
    at = _open()
    assert found(at, "release.epsilon").value == "1"
    at.session_state["release.epsilon"] = "0.25"
    at.session_state["release.k"] = "3"
    at = at.run()
    go(at, "explore")
    go(at, "release")
    assert (found(at, "release.epsilon").value, found(at, "release.k").value) == ("0.25", "3")
    assert "default value" not in caplog.text
    change(at, "release.epsilon", "0.5")
    go(at, "claims")
    go(at, "release")
    assert found(at, "release.epsilon").value == "0.5"
