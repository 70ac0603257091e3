"""One question has one source file: its function, its command and the record of its answer."""

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


# Bytes equal to the command's ----------------------------------------------------------------

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
    """Return the answer of a call, computed once for all tests, since none changes it."""
    with pytest.MonkeyPatch.context() as few:
        rough(few)
        return CALLS[name][1]()


def rough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a card use half of the releases without narrowing, if only equality is tested."""
    monkeypatch.setattr("dpviz.simulation.goal._NARROWINGS", 0)


@pytest.fixture(autouse=True)
def _rough(monkeypatch: pytest.MonkeyPatch) -> None:
    rough(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CALLS if name != "board"])
def test_a_command_prints_the_bytes_of_its_function(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON and the text for people come from one answer; a schema has JSON but no table."""
    tell = asking.tell

    def told(question: Study, found: Answer, arguments: argparse.Namespace, words: str) -> None:
        for form in ("json", "table"):
            tell(question, found, argparse.Namespace(**{**vars(arguments), "format": form}), words)

    monkeypatch.setattr(asking, "tell", told)
    assert main([*cli.UNDER.get(name, name).split(), *CALLS[name][0].split()]) == 0
    one = answer(name)
    texts = [one.to_json()] if name == "schema" else [one.to_json(), one.printed()]
    assert capsys.readouterr().out == "".join(f"{text}\n" for text in texts)


NO_NUMBERS = {"app", "class", "completion", "export-browser", "fetch", "lesson"}
"""Commands that start, copy, download, complete or check something, and so give no answer."""


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
    record = dpviz.ledger(book, limit=(3, 1e-5), purpose="a test")
    assert record.data()["left"] == {"epsilon": 3.0, "delta": 1e-5}
    options: dict[str, Any] = {"ledger": book, "row_bound": 60, "delta": 1e-6}
    release = dpviz.release("digits", out=tmp_path / "out.json", **options)
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == release.to_json() + "\n"
    assert release.table()["feature"].tolist() == list(release.release.declared.bounds.value.names)
    assert main(["ledger", str(book), "--format", "json"]) == 0
    record_after = dpviz.ledger(book)
    assert capsys.readouterr().out == record_after.to_json() + "\n"
    assert len(record_after.table()) == 1
    assert record_after.verify([tmp_path / "out.json"]) == []
    # Neither result contains data rows, and neither can be computed again.
    for answer in (release, record_after):
        path = answer.save(tmp_path / "kept.json")
        assert dpviz.load(path).to_json() == answer.to_json()
        assert answer.made is not None
        assert answer.made.rows is None
        with pytest.raises(InvalidSetting, match="dpviz function that can be repeated"):
            dpviz.rerun(path)
    assert dpviz.ledger(book).data() == record_after.data()
    with pytest.raises(InvalidSetting, match="limit"):
        dpviz.ledger(book, purpose="another")
    with pytest.raises(DpvizError):
        dpviz.ledger(book, limit="1,0")


# Answers in a file ---------------------------------------------------------------------------


def same(one: Any, two: Any) -> bool:
    """Return whether two figures have equal content, in any order of their fields."""
    return bool(json.loads(one.to_json()) == json.loads(two.to_json()))


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_an_answer_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    result = answer(name)
    again = dpviz.load(result.save(tmp_path / "kept.json"))
    assert again.summary() == result.summary()
    assert again.printed() == result.printed()
    assert again.to_json() == result.to_json()
    pd.testing.assert_frame_equal(again.table(), result.table())
    assert again.made == result.made
    assert again.made is not None
    assert again.made.question == again.question == name
    for figure in again.figures:
        assert same(again.figure(figure), result.figure(figure))
    # Every figure must be available, except figures that show data rows.
    figures = {
        name
        for name in result.figures
        if name not in result.with_rows and (name not in METRICS or name in result.table())
    }
    assert figures <= set(again.figures)
    assert "<table" in again._repr_html_()
    path = tmp_path / "kept again.json"
    assert again.save(path).read_bytes() == (tmp_path / "kept.json").read_bytes()


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("made", "options"), -1, "a file written by the method save of an answer"),
        (("made", "versions"), [[]], "a file written by the method save of an answer"),
        (("made", "date"), None, "a file written by the method save of an answer"),
        (("table", "rows"), "x", "a file written by the method save of an answer"),
        (("left_out",), [1], "a file written by the method save of an answer"),
        (("figures",), "2020", "a file written by the method save of an answer"),
        (("answer", "gap"), math.inf, "a file written by the method save of an answer"),
        (
            ("figures", "delta", "data", 0, "marker"),
            "x",
            "was changed after saving; got 'delta'",
        ),
        (("figures", "delta", "data", 0, "type"), [], "was changed after saving; got 'delta'"),
    ],
)
def test_a_file_that_was_changed_is_one_sentence(
    tmp_path: Path, where: tuple[Any, ...], value: Any, said: str
) -> None:
    path = answer("audit").save(tmp_path / "kept.json")
    content = place = json.loads(path.read_text())
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    # JSON allows the number 1e999, but a double cannot hold it.
    path.write_text(json.dumps(content).replace("Infinity", "1e999"))
    with pytest.raises(InvalidSetting) as caught:
        dpviz.load(path).figure("delta")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_row_and_no_folder_is_in_the_file(tmp_path: Path) -> None:
    secret = tmp_path / "very secret folder" / "people.csv"
    secret.parent.mkdir()
    table = frame()
    table.iloc[3, 1] = 7316.4859
    table.to_csv(secret, index=False)
    comparison = dpviz.compare(secret, trials=2, k=1, row_bound=5, mechanisms="gaussian")
    text = comparison.save(tmp_path / "kept.json").read_text(encoding="utf-8")
    assert "secret" not in text
    assert "people.csv" not in text
    assert "7316" not in text
    again = dpviz.load(tmp_path / "kept.json")
    assert "projection" in comparison.figures
    with pytest.raises(InvalidSetting, match="shows no rows of the table"):
        again.figure("projection")
    assert again.made is not None
    assert again.made.options["table"] is None


# Records and repeats -------------------------------------------------------------------------


def test_what_differs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.json"
    words = ["compare", "iris", "--trials", "2", "--mechanism", "gaussian"]
    assert main([*words, "--save", str(path)]) == 0
    assert main(["rerun", str(path)]) == 0
    assert "Same numbers" in capsys.readouterr().out
    content = json.loads(path.read_text())
    content["answer"]["results"][0]["metrics"]["recovery"]["mean"] *= 1 + 1e-9
    content["made"]["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(content))
    answer_again = dpviz.rerun(path)
    assert [item.where for item in answer_again.differences] == ["results[0].metrics.recovery.mean"]
    assert "The largest relative difference of a number is 1e-9." in answer_again.summary()
    assert "numpy was 1.0, is" in answer_again.summary()
    assert main(["rerun", str(path), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["same"] is False


def test_a_table_that_was_in_memory_or_a_file_is_to_be_said(tmp_path: Path) -> None:
    table, path = frame(), tmp_path / "people.csv"
    table.to_csv(path, index=False)
    options: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": "gaussian"}
    limits = {name: (-9.0, 9.0) for name in table}
    in_memory = dpviz.compare(table, bounds=limits, domain="box", **options)
    file = in_memory.save(tmp_path / "memory.json")
    with pytest.raises(InvalidSetting, match="passed again: answers do not store it"):
        dpviz.rerun(file)
    assert dpviz.rerun(file, table=table).same
    changes = table.assign(age=table["age"] + 1e-3)
    other = dpviz.rerun(file, table=changes)
    assert not other.same
    assert "The rows differ." in other.summary()
    of_file = dpviz.compare(path, **options).save(tmp_path / "file.json")
    with pytest.raises(InvalidSetting, match="passed again: answers do not store it"):
        dpviz.rerun(of_file)
    assert main(["rerun", str(of_file), "--table", str(path)]) == 0


# Documented parameters -----------------------------------------------------------------------

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
        options = inspect.signature(question_of(function).function).parameters
        if option not in options:
            assert " ".join(param.help.split()[:6]) in " ".join(doc.split()), option
        if param.kind == "choice":
            inner = [item for item in (kind, *get_args(kind)) if get_origin(item) is Literal]
            assert inner, (option, kind)
            assert list(get_args(inner[0])) == list(param.choices)
    assert "ForwardRef" not in str(inspect.signature(function))


def test_no_row_of_a_bunch_is_in_the_file(tmp_path: Path) -> None:
    """A bunch is a mapping, as an allocation is, but the record omits its numbers."""
    rows = frame().to_numpy().copy()
    rows[3, 1] = 7316.4859
    prediction = dpviz.predict(Bunch(data=rows), k=1, row_bound=5, mechanisms="gaussian")
    assert "7316" not in prediction.save(tmp_path / "kept.json").read_text(encoding="utf-8")
