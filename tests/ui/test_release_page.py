"""The Release and Preparation pages: errors use no budget, and no true value appears."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.cli import main
from dpviz.core.errors import CannotWrite
from dpviz.core.files import Reserved
from dpviz.core.problem import Budget, Relation
from dpviz.releasing.ledger import Ledger, Spend
from dpviz.report.sentences.cards import GROUPS
from pages.ui import shell
from tests.ui.driver import (
    QUICK,
    as_seen,
    change,
    commands,
    errors,
    found,
    go,
    keys,
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


def _meant(at: AppTest) -> AppTest:
    """Confirm each statement that every release requires."""
    boxes = [box.key for box in at.checkbox if box.key.startswith("release.meant")]
    for key in boxes:
        at = change(at, key, True)
    return at


def _send(at: AppTest) -> AppTest:
    return press(_meant(at), "release.send")


def _waits(at: AppTest) -> bool:
    return "release.send" in keys(at)


def test_a_ledger_is_made_by_the_code_of_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = start("release", **SETTING)
    assert "release.look" not in keys(at)  # Without a ledger, nothing can be charged.
    (message,) = errors(press(at, "release.new.make"))
    assert "a name of letters, digits and dashes" in message
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
        (message,) = errors(press(at, "release.new.make"))
        assert sentence in message, limit
        assert one_sentence(message), limit
        assert len(message) < 300, limit
    assert not list(folder.glob("*.jsonl"))
    # A very high limit may be intended or a typing error, so the page asks the user to confirm it.
    found(at, "release.new.name").set_value("large")
    found(at, "release.new.limit").set_value("100000,1e-5")
    (message,) = errors(press(at, "release.new.make"))
    assert "limit 100,000: with a limit above epsilon 10" in message
    found(at, "release.new.limit-above-10").check()
    assert errors(press(at, "release.new.make")) == []
    assert Ledger(folder / "large.jsonl").read().limit.epsilon == 100_000
    for path in folder.glob("large*"):
        path.unlink()
    at = start("release", **SETTING)
    found(at, "release.new.name").set_value("mine")
    found(at, "release.new.limit").set_value("3,1e-5")
    found(at, "release.new.relation").set_value("zero out one person")
    at = press(at, "release.new.make")
    assert errors(at) == []
    contents = Ledger(folder / "mine.jsonl").read()
    assert (contents.limit, contents.relation) == (Budget(3.0, 1e-5), Relation.ZERO_OUT)
    assert [box.value for box in at.metric] == ["ε 0", "ε 3", "ε 3"]
    # If the ledger exists, a new limit is refused, both on this page and on the command line.
    at = change(at, "release.ledger", "a new ledger ...")
    found(at, "release.new.name").set_value("mine")
    found(at, "release.new.limit").set_value("9,1e-5")
    (message,) = errors(press(at, "release.new.make"))
    assert main(["ledger", "new", str(folder / "mine.jsonl"), "--limit", "9,1e-5"]) == 2
    for text in (message, capsys.readouterr().err):
        assert "exists already" in text
        assert "The limit of an existing ledger cannot be changed" in text
    assert Ledger(folder / "mine.jsonl").read().limit == Budget(3.0, 1e-5)


def test_nothing_is_spent_before_all_is_declared(folder: Path) -> None:
    ledger = _ledger(folder)
    for options, sentence in (
        ({"row_bound": ""}, "row_bound must be a number above 0"),
        ({"delta": ""}, "delta must be stated: a number from 0 to below 1"),
        ({"epsilon": ""}, "epsilon must be a number from"),
        ({"k": "99"}, "k must be a whole number from 1 to"),
        ({"epsilon": "26"}, "refuses: epsilon 26"),
    ):
        at = _look(_open(**options))
        (message,) = set(errors(at))
        assert sentence.replace("row_bound", "row-norm bound") in message
        assert not _waits(at)
    assert ledger.read().spends == ()
    assert not ledger.folder.exists()


def test_a_release_takes_two_steps_and_each_spends_once(folder: Path) -> None:
    ledger = _ledger(folder, 2.0)
    at = _look(_open())
    assert errors(at) == []
    assert ledger.read().spends == ()
    (message,) = [box.value for box in at.main.markdown if "This release by" in box.value]
    assert "by gaussian uses **ε 1** and **δ 1e-6**" in message
    assert "has ε 2 and δ 0.0001 left, and ε 1 and δ 9.9e-5 afterwards" in message
    # The user must give consent; no box is ticked in advance.
    assert found(at, "release.send").label == "Publish once at epsilon 1"
    assert found(at, "release.send").disabled
    assert not any(box.value for box in at.checkbox if box.key.startswith("release.meant"))
    # The number of rows is public. Explore counts fewer rows if some lines of the file are empty.
    assert "The release reads 1,797 rows; an empty line counts as a row." in message
    at = _send(at)
    assert errors(at) == []
    assert "spend number 1" in at.success[0].value
    assert not _waits(at)  # After the first click, the button disappears.
    assert [box.value for box in at.metric][:3] == ["ε 1", "ε 1", "ε 2"]
    for _ in range(2):  # A rerun of the page uses no budget.
        at = at.run()
    assert len(ledger.read().spends) == 1
    at = _send(_look(at))
    assert "spend number 2" in at.success[0].value
    at = _look(at)
    (message,) = errors(at)
    assert "refuses" in message
    assert not _waits(at)
    # Typed values survive a visit to another page, and no release uses budget twice.
    at = go(go(at, "claims"), "release")
    assert errors(at) == [message]
    assert found(at, "release.row_bound").value == "60"
    assert len(ledger.read().spends) == 2


def test_a_form_that_is_sent_again_is_the_same_spend(folder: Path) -> None:
    """Imitate a second click, or a lost connection, that ends the run of the first click."""
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
    (message,) = errors(at.run())
    assert "changed the settings after the cost was shown" in message
    at = press(_look(_open()), "release.leave")
    assert not _waits(at)
    assert ledger.read().spends == ()


def test_what_protects_little_is_meant_in_words(folder: Path) -> None:
    ledger = _ledger(folder, delta=0.1)
    at = _look(_open(epsilon="11"))
    assert found(at, "release.send").disabled
    (box,) = [box for box in at.checkbox if box.key.startswith("release.accept")]
    assert (
        "odds of a guess about one person's row can grow by a factor of more than 22,000"
        in box.label
    )
    at = change(at, box.key, True)
    assert found(at, "release.send").disabled  # The user must confirm both statements first.
    assert not found(_meant(at), "release.send").disabled
    at = _send(at)
    assert errors(at) == []
    (path,) = ledger.kept().values()
    assert json.loads(path.read_text())["settings"]["accept"] == "epsilon-above-10"
    # The next release needs a new confirmation by the user.
    assert found(_look(at), "release.send").disabled
    at = _look(_open(delta="0.001"))
    (box,) = [box for box in at.checkbox if box.key.startswith("release.accept")]
    assert "the whole row of one person, drawn by lot" in box.label


def test_a_spend_without_a_file_is_marked(folder: Path) -> None:
    ledger = _ledger(folder)
    at = _send(_look(_open()))
    ledger.spend(Spend("gaussian", 0.5, 1e-7, purpose="release"), Relation.REPLACE)
    ledger.spend(Spend("gaussian", 0.5, 1e-7, purpose="fit"), Relation.REPLACE)
    at = start("release", **SETTING)
    assert found(at, "release.shown").value == 2
    assert "release.download" not in keys(at)
    (message,) = [box.value for box in at.warning]
    assert "Entry 2 has no file" in message
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
    (message,) = errors(at)
    assert "are spent, as spend number 1 of ledger mine.jsonl" in message
    assert [box.value for box in at.warning if "has no file" in box.value]
    assert len(ledger.read().spends) == 1


def test_a_damaged_ledger_is_a_sentence(folder: Path) -> None:
    ledger = _ledger(folder)
    ledger.path.write_text("[" * 200_000 + "\n")
    at = start("release", **SETTING)
    (message,) = errors(at)
    assert "ledger mine.jsonl is damaged" in message
    assert "release.look" not in keys(at)


def test_the_page_can_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> int:
        return sum(len(group) for group in shell.menu().values())

    before = count()
    monkeypatch.setenv("DPVIZ_RELEASE", "off")
    assert count() == before - 1


def test_a_paid_preparation_follows_to_every_page_and_back() -> None:
    at = start("preparation", **QUICK, bounds="0:8", relation="zero-out")
    at.button(key="page.next").click().run()
    assert errors(at) == []
    assert at.query_params["center"] == "private"
    assert at.query_params["count"] == "private"
    at = go(at, "explore")
    assert errors(at) == []
    text = " ".join(box.value for box in at.main.markdown)
    assert "the feature means" not in text
    assert "the row-norm bound R" not in text
    assert "--center private --row-bound private:0.9 --count private" in " ".join(commands(at))
    at = go(at, "mechanisms")
    for name in GROUPS:  # A closed group hides its rows, so open all groups.
        at.session_state[f"mechanisms.all.{name}"] = True
    at = at.run()
    at.session_state["mechanisms.gaussian.open"] = True
    at.session_state["mechanisms.account.gaussian"] = True
    at = at.run()
    assert errors(at) == []
    chain = re.compile(r"the whole pipeline: preparation .*count.*mean.*bound")
    assert any(chain.match(as_seen(box.value)) for box in at.main.caption)
    for page in ("tradeoffs", "precision", "claims", "decide", "tasks"):
        at = go(at, page)
        assert errors(at) == [], page
    at = go(at, "preparation")
    at.button(key="page.next").click().run()
    assert "center" not in at.query_params
    assert any("the feature means" in box.value for box in go(at, "explore").main.markdown)


def test_a_release_is_read_and_filed(folder: Path) -> None:
    _ledger(folder)
    at = change(_open(), "release.pictured", True)
    assert found(at, "release.picture").value == "0.65"
    assert any("coloured by digit" in box.label for box in at.toggle)
    at = _send(_look(at))
    (body,) = [box.body for box in at.get("html") if "Noisy counts of people in grid" in box.body]
    svg = base64.b64decode(body.split("base64,")[1].split('"')[0]).decode()
    assert "published: nobody's row" in svg
    (picture,) = [box.body for box in at.get("html") if "Loadings of 2 released" in box.body]
    assert picture.startswith('<img src="data:image/svg+xml;base64,')
    words = [box.value for box in at.markdown]
    assert any(word.startswith("**A suspicion that is right 1 time in 100 may") for word in words)
    message = "of the structure is kept|How much structure is kept is unknown"
    assert any(re.search(message, word) for word in words)
    assert {f"release.take.loadings.{end}" for end in ("png", "svg", "pdf")} <= set(keys(at))
    at = change(at, "card.title", "Handwriting")
    at = change(at, "card.controller", "A garden")
    assert errors(at) == []
    (message,) = [box.value for box in at.caption if "not confirmed yet" in box.value]
    (key,) = [node.key for node in at.data_editor if node.key.startswith("card.sources")]
    at.session_state[key] = {
        "edited_rows": {0: {"source": "its article", "confirmed_by": "A. Example"}},
        "added_rows": [],
        "deleted_rows": [],
    }
    at = at.run()
    (less,) = [box.value for box in at.caption if "not confirmed yet" in box.value]
    assert int(less.split()[0]) == int(message.split()[0]) - 1
    at = change(at, "card.title", "x" * 201)
    (wrong,) = errors(at)
    assert "one line of at most 200 characters" in wrong


def test_a_form_that_another_page_has_filled_begins_with_that(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Streamlit warns in the log if a field has both its own value and a session value."""
    at = _open()
    assert found(at, "release.epsilon").value == "1"
    at.session_state["release.epsilon"] = "0.25"
    at.session_state["release.k"] = "3"
    at = at.run()
    go(go(at, "explore"), "release")
    assert (found(at, "release.epsilon").value, found(at, "release.k").value) == ("0.25", "3")
    assert "default value" not in caplog.text
    change(at, "release.epsilon", "0.5")
    go(go(at, "claims"), "release")
    assert found(at, "release.epsilon").value == "0.5"
