"""One question, one file: its function, its command, its file and what made its answer."""

from __future__ import annotations

import argparse
import inspect
import json
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

import dpviz
from dpviz import cli
from dpviz.cli import asking, main
from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.core.metrics import METRICS
from dpviz.studies import Answer
from dpviz.studies.claims import claims
from dpviz.studies.options import Study, asking_functions, question_of

ROOT = Path(__file__).resolve().parents[2]


def frame() -> pd.DataFrame:
    rows = np.round(np.random.default_rng(0).normal(size=(40, 3)), 4)
    return pd.DataFrame(rows, columns=["age", "income", "score"])


# The same bytes as the command ---------------------------------------------------------------

QUICK = ["gaussian", "laplace"]
CALLS: dict[str, tuple[str, Callable[[], Answer]]] = {
    "account": (
        "gaussian --releases 1,10 --center private --row-bound private:0.9",
        lambda: dpviz.account(
            "gaussian", releases="1,10", center="private", row_bound="private:0.9"
        ),
    ),
    "audit": (
        "wishart --epsilon 1 --trials 400",
        lambda: dpviz.audit("wishart", epsilon=1, trials=400),
    ),
    "claims": (
        "--mechanism laplace_tight --trials 200",
        lambda: claims(mechanisms="laplace_tight", trials=200),
    ),
    "compare": (
        "iris --trials 2 --mechanism gaussian --mechanism laplace",
        lambda: dpviz.compare("iris", trials=2, mechanisms=QUICK),
    ),
    "decide": (
        "plan:n=1e5,spectrum=0.3,0.1,0.01 --k 1 --survive 75 --delta-allowed no --ceiling 5",
        lambda: dpviz.decide(
            "plan:n=1e5,spectrum=0.3,0.1,0.01", k=1, survive="75", delta_allowed="no", ceiling=5
        ),
    ),
    "least": (
        "iris --captured-share 0.9 --k 1 --mechanism gaussian --most-draws 64",
        lambda: dpviz.least("iris", captured_share=0.9, k=1, mechanisms="gaussian", most_draws=64),
    ),
    "predict": (
        "--n 1e4 --spectrum power:d=6,exponent=1.5,total=0.5 --mechanism gaussian",
        lambda: dpviz.predict(
            n=1e4, spectrum="power:d=6,exponent=1.5,total=0.5", mechanisms="gaussian"
        ),
    ),
    "published": (
        "iris --epsilon 3 --mechanism spherical --mechanism wishart",
        lambda: dpviz.published("iris", epsilon=3, mechanisms=["spherical", "wishart"]),
    ),
    "board": ("", lambda: dpviz.board("iris", trials=2, mechanisms="gaussian")),
    "schema": ("iris --bounds 0:10", lambda: dpviz.schema("iris", bounds="0:10")),
    "task": (
        "iris --trials 2 --mechanism gaussian --tuning fixed --epsilons 1,10 --cache none",
        lambda: dpviz.task(
            "iris", trials=2, mechanisms="gaussian", tuning="fixed", epsilons="1,10"
        ),
    ),
    "waterfall": (
        "iris --trials 2 --k 1 --row-bound private:0.8",
        lambda: dpviz.waterfall("iris", trials=2, k=1, row_bound="private:0.8"),
    ),
}


@cache
def answer(name: str) -> Answer:
    """Return the answer of a call, asked once for all tests: none of them changes it."""
    with pytest.MonkeyPatch.context() as few:
        rough(few)
        return CALLS[name][1]()


def rough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a card take half of the draws and narrow nothing: where it is to be the same alone."""
    monkeypatch.setattr("dpviz.simulation.goal._NARROWINGS", 0)


@pytest.fixture(autouse=True)
def _rough(monkeypatch: pytest.MonkeyPatch) -> None:
    rough(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CALLS if name != "board"])  # it writes a file
def test_a_command_prints_the_bytes_of_its_function(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON and, of the same answer, what is for people; a schema is JSON and no table."""
    tell = asking.tell

    def told(question: Study, found: Answer, arguments: argparse.Namespace, words: str) -> None:
        for form in ("json", "table"):
            tell(question, found, argparse.Namespace(**{**vars(arguments), "format": form}), words)

    monkeypatch.setattr(asking, "tell", told)
    assert main([*cli.UNDER.get(name, name).split(), *CALLS[name][0].split()]) == 0
    own = answer(name)
    shown = [own.to_json()] if name == "schema" else [own.to_json(), own.printed()]
    assert capsys.readouterr().out == "".join(f"{text}\n" for text in shown)


NO_NUMBERS = {"app", "class", "completion", "export-browser", "fetch", "lesson"}
"""Commands that start, copy, download, complete or check something and answer nothing."""


def test_every_command_that_answers_is_a_function() -> None:
    parser = cli.build_parser()
    (actions,) = (a for a in parser._actions if a.dest == "command")
    assert actions.choices is not None
    answers = set(actions.choices) - NO_NUMBERS
    assert len(answers) >= 16
    words = {question_of(function).word for function in asking_functions().values()}
    assert answers == words


def test_the_file_of_a_board_is_the_one_of_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one").mkdir()
    words = ["board", "iris", "--trials", "2", "--mechanism", "gaussian", "--out"]
    for name in ("board.html", "board.py", "board.ipynb"):
        assert main([*words, str(tmp_path / name)]) == 0
        answer("board").write(tmp_path / "one" / name)  # type: ignore[attr-defined]
        assert (tmp_path / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert "0." in capsys.readouterr().out


def test_a_ledger_and_a_release_are_what_their_files_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("opendp")
    book = tmp_path / "mine.jsonl"
    made = dpviz.ledger(book, limit=(3, 1e-5), purpose="a test")
    assert made.data()["left"] == {"epsilon": 3.0, "delta": 1e-5}
    asked: dict[str, Any] = {"ledger": book, "row_bound": 60, "delta": 1e-6}
    found = dpviz.release("digits", out=tmp_path / "out.json", **asked)
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == found.to_json() + "\n"
    assert found.table()["feature"].tolist() == list(found.release.declared.bounds.value.names)
    assert main(["ledger", str(book), "--format", "json"]) == 0
    read = dpviz.ledger(book)
    assert capsys.readouterr().out == read.to_json() + "\n"
    assert len(read.table()) == 1
    assert read.verify([tmp_path / "out.json"]) == []
    # neither says what the rows are, and neither is asked again
    for answer in (found, read):
        kept = answer.save(tmp_path / "kept.json")
        assert dpviz.load(kept).to_json() == answer.to_json()
        assert answer.made is not None
        assert answer.made.rows is None
        with pytest.raises(InvalidSetting, match="asked again"):
            dpviz.rerun(kept)
    assert dpviz.ledger(book).data() == read.data()
    with pytest.raises(InvalidSetting, match="limit"):
        dpviz.ledger(book, purpose="another")
    with pytest.raises(DpvizError):
        dpviz.ledger(book, limit="1,0")


# Kept in a file ------------------------------------------------------------------------------


def same(one: Any, two: Any) -> bool:
    """Return whether two figures hold the same, in whatever order of their fields."""
    return bool(json.loads(one.to_json()) == json.loads(two.to_json()))


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_an_answer_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    found = answer(name)
    again = dpviz.load(found.save(tmp_path / "kept.json"))
    assert again.summary() == found.summary()
    assert again.printed() == found.printed()
    assert again.to_json() == found.to_json()
    pd.testing.assert_frame_equal(again.table(), found.table())
    assert again.made == found.made
    assert again.made is not None
    assert again.made.question == again.question == name
    for figure in again.figures:
        assert same(again.figure(figure), found.figure(figure))
    # every figure that can be drawn is there, but those that show rows
    drawn = {
        name
        for name in found.figures
        if name not in found.with_rows and (name not in METRICS or name in found.table())
    }
    assert drawn <= set(again.figures)
    assert "<table" in again._repr_html_()
    kept = tmp_path / "kept again.json"
    assert again.save(kept).read_bytes() == (tmp_path / "kept.json").read_bytes()


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("made", "options"), -1, "a file that the save of an answer wrote"),
        (("made", "versions"), [[]], "a file that the save of an answer wrote"),
        (("made", "date"), None, "a file that the save of an answer wrote"),
        (("table", "rows"), "x", "a file that the save of an answer wrote"),
        (("left_out",), [1], "a file that the save of an answer wrote"),
        (("figures",), "2020", "a file that the save of an answer wrote"),
        (("answer", "gap"), math.inf, "a file that the save of an answer wrote"),
        (("figures", "delta", "data", 0, "marker"), "x", "the file was changed; got 'delta'"),
        (("figures", "delta", "data", 0, "type"), [], "the file was changed; got 'delta'"),
    ],
)
def test_a_file_that_was_changed_is_one_sentence(
    tmp_path: Path, where: tuple[Any, ...], value: Any, said: str
) -> None:
    kept = answer("audit").save(tmp_path / "kept.json")
    found = place = json.loads(kept.read_text())
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    # as 1e999, which is a number to JSON and none to a double
    kept.write_text(json.dumps(found).replace("Infinity", "1e999"))
    with pytest.raises(InvalidSetting) as caught:
        dpviz.load(kept).figure("delta")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_row_and_no_folder_is_in_the_file(tmp_path: Path) -> None:
    secret = tmp_path / "very secret folder" / "people.csv"
    secret.parent.mkdir()
    table = frame()
    table.iloc[3, 1] = 7316.4859
    table.to_csv(secret, index=False)
    found = dpviz.compare(secret, trials=2, k=1, row_bound=5, mechanisms="gaussian")
    text = found.save(tmp_path / "kept.json").read_text(encoding="utf-8")
    assert "secret" not in text
    assert "people.csv" not in text
    assert "7316" not in text
    again = dpviz.load(tmp_path / "kept.json")
    assert "projection" in found.figures
    with pytest.raises(InvalidSetting, match="without rows of the table"):
        again.figure("projection")
    assert again.made is not None
    assert again.made.options["table"] is None


# What made it, and asking again --------------------------------------------------------------


def test_what_differs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.json"
    words = ["compare", "iris", "--trials", "2", "--mechanism", "gaussian"]
    assert main([*words, "--save", str(kept)]) == 0
    assert main(["rerun", str(kept)]) == 0
    assert "Same numbers" in capsys.readouterr().out
    content = json.loads(kept.read_text())
    content["answer"]["results"][0]["metrics"]["recovery"]["mean"] *= 1 + 1e-9
    content["made"]["versions"]["numpy"] = "1.0"
    kept.write_text(json.dumps(content))
    found = dpviz.rerun(kept)
    assert [item.where for item in found.differences] == ["results[0].metrics.recovery.mean"]
    assert "Numbers differ by at most 1e-9 of themselves." in found.summary()
    assert "numpy was 1.0, is" in found.summary()
    assert main(["rerun", str(kept), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["same"] is False


def test_a_table_that_was_in_memory_or_a_file_is_to_be_said(tmp_path: Path) -> None:
    table, path = frame(), tmp_path / "people.csv"
    table.to_csv(path, index=False)
    options: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": "gaussian"}
    limits = {name: (-9.0, 9.0) for name in table}
    in_memory = dpviz.compare(table, bounds=limits, domain="box", **options)
    kept = in_memory.save(tmp_path / "memory.json")
    with pytest.raises(InvalidSetting, match="a file or in memory"):
        dpviz.rerun(kept)
    assert dpviz.rerun(kept, table=table).same
    moved = table.assign(age=table["age"] + 1e-3)
    other = dpviz.rerun(kept, table=moved)
    assert not other.same
    assert "The rows are others." in other.summary()
    of_file = dpviz.compare(path, **options).save(tmp_path / "file.json")
    with pytest.raises(InvalidSetting, match="a file or in memory"):
        dpviz.rerun(of_file)
    assert main(["rerun", str(of_file), "--table", str(path)]) == 0


# Every function says what it takes -----------------------------------------------------------

ASKING = sorted(asking_functions())


@pytest.mark.parametrize("name", ASKING)
def test_the_help_lists_every_option_with_type_default_and_help(name: str) -> None:
    function = asking_functions()[name]
    params, doc = question_of(function).params(), inspect.getdoc(function) or ""
    signature = inspect.signature(function).parameters
    assert set(params) <= set(signature)
    for option, param in params.items():
        kind = signature[option].annotation
        assert not isinstance(kind, str), option
        assert re.search(rf"^(\w+, )*{option}(, \w+)*( : |$)", doc, re.MULTILINE), option
        own = inspect.signature(question_of(function).function).parameters
        if option not in own:
            assert " ".join(param.help.split()[:6]) in " ".join(doc.split()), option
        if param.kind == "choice":
            inner = [item for item in (kind, *get_args(kind)) if get_origin(item) is Literal]
            assert inner, (option, kind)
            assert list(get_args(inner[0])) == list(param.choices)
    assert "ForwardRef" not in str(inspect.signature(function))


def test_no_row_of_a_bunch_is_in_the_file(tmp_path: Path) -> None:
    """It is a mapping, as an allocation is, whose numbers are noted."""
    rows = frame().to_numpy().copy()
    rows[3, 1] = 7316.4859
    found = dpviz.predict(Bunch(data=rows), k=1, row_bound=5, mechanisms="gaussian")
    assert "7316" not in found.save(tmp_path / "kept.json").read_text(encoding="utf-8")
