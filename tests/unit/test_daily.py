"""The command line in daily use: a first look, hints, pipes, defaults, completion."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from dpviz.cli import main

QUICK = ("--trials", "2", "--mechanism", "gaussian")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    try:
        status = main(words)
    except SystemExit as ended:
        status = int(str(ended.code))
    message = capsys.readouterr().err
    assert status == 2
    assert message.count("\n") == 1
    return message


# Hints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("comprae iris", "(did you mean compare?)"),
        ("compare digist", "(did you mean digits?)"),
        ("compare iris --mechanism gausian", "(did you mean gaussian?)"),
        ("compare iris --epsiln 2", "(did you mean --epsilon?)"),
        ("compare iris --relation replaced", "(did you mean replace?)"),
        ("compare iris --format jsom", "(did you mean json?)"),
    ],
)
def test_a_slip_of_the_hand_is_told_from_nonsense(
    words: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hint in refused(capsys, *words.split())
    assert "did you mean" not in refused(capsys, "compare", "iris", "--mechanism", "xyzzyx")


# Formats, pipes and defaults -----------------------------------------------------------------


def test_every_answer_comes_in_four_formats(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "iris", *QUICK, "--format")
    table = pd.read_csv(io.StringIO(printed(capsys, *words, "csv")))
    rows = [json.loads(line) for line in printed(capsys, *words, "jsonl").splitlines()]
    whole = json.loads(printed(capsys, *words, "json"))
    assert table["mechanism"].tolist() == [row["mechanism"] for row in rows] == ["gaussian"]
    assert rows[0]["recovery"] == whole["results"][0]["metrics"]["recovery"]["mean"]
    listing = printed(capsys, "mechanisms", "--format", "csv")
    assert listing.startswith("key,label,")


def test_a_sweep_without_a_file_is_piped(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "iris", "--over", "epsilon", "--values", "1,2", *QUICK, "--cache", "none"]
    assert main(words) == 0
    output = capsys.readouterr()
    assert set(pd.read_csv(io.StringIO(output.out))["epsilon"]) == {1, 2}
    assert main([*words, "--format", "jsonl"]) == 0
    assert {json.loads(line)["epsilon"] for line in capsys.readouterr().out.splitlines()} == {1, 2}


def test_a_table_comes_by_stdin(warm: Path) -> None:
    text = "a,b,c\n" + "1,2,4\n2,1,0\n5,3,3\n" * 20
    answers = [
        subprocess.run(
            [str(warm), "-m", "dpviz", *words, *QUICK, "--format", "json"],
            input=text, capture_output=True, text=True, check=True,
        ).stdout
        for words in (["compare", "-"], ["-"])
    ]  # fmt: skip
    assert answers[0] == answers[1]
    answer = json.loads(answers[0])
    assert (answer["dataset"]["n"], answer["dataset"]["d"]) == (60, 3)


def test_defaults_come_from_the_folder_and_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("dpviz.toml")
    path.write_text('epsilon = 0.5\nmechanisms = ["gaussian", "laplace"]\ntrials = 2\n')
    assert main(["compare", "iris", "--trials", "3", "--format", "json"]) == 0
    output = capsys.readouterr()
    settings = json.loads(output.out)["settings"]
    assert (settings["epsilon"], settings["trials"]) == (0.5, 3)
    assert settings["mechanisms"] == ["gaussian", "laplace"]
    assert output.err == "dpviz: from dpviz.toml: epsilon, mechanisms\n"
    path.write_text("epsilom = 0.5\n")
    assert "(did you mean epsilon?)" in refused(capsys, "compare", "iris")
    path.write_text("epsilon 0.5\n")
    assert "dpviz.toml must be a TOML file" in refused(capsys, "compare", "iris")
    path.write_text("epsilon = -1\n")
    assert main(["compare", "iris"]) == 2
    assert "dpviz: --epsilon must be a number from" in capsys.readouterr().err
