"""`dpviz task` on the command line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpviz.cli import main, terminal
from dpviz.simulation import store
from dpviz.simulation.jobs import Progress
from dpviz.simulation.tasks import TASK_COLUMNS

BASE = ["--trials", "2", "--mechanism", "gaussian", "--tuning", "fixed", "--epsilons", "0.5,5"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep finished parts of these tests out of the user's folder."""
    monkeypatch.setattr(store, "default_folder", lambda: tmp_path / "cells")
    return tmp_path


def run(*words: str, table: str = "iris") -> int:
    return main(["task", table, *BASE, *words])


def test_a_table_is_written_and_a_second_run_reuses_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = home / "a.csv"
    assert run("--out", str(out)) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found = pd.read_csv(out)
    assert tuple(found.columns) == TASK_COLUMNS
    assert len(found) == 2 + 2 + 2 + 2 * 2
    assert shown.out.splitlines()[-1] == f"10 rows in {out}: 10 of 10 rounds"
    assert run("--out", str(home / "b.parquet")) == 0
    assert "10 of them from the cache" in capsys.readouterr().out
    pd.testing.assert_frame_equal(pd.read_parquet(home / "b.parquet"), found)
    assert run("--out", str(home / "c.csv"), "--cache", "none") == 0
    assert (home / "c.csv").read_bytes() == out.read_bytes()


def test_it_says_what_is_protected_and_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    shown = capsys.readouterr().out
    assert shown.startswith("The label species has 3 classes. 75 rows for the subspace")
    assert "\nprotected: " in shown
    assert "\nnot protected: The training rows and their labels" in shown
    assert "\nassumed public: " in shown
    assert [line.split()[0] for line in shown.splitlines() if "holds" in line] == ["gaussian"] * 2


def test_one_epsilon_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["task", "iris", "--trials", "1", "--mechanism", "gaussian", "--epsilon", "7"]
    assert main([*words, "--tuning", "fixed"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("gaussian")]
    assert [line.split()[1] for line in lines] == ["7"]


def test_what_is_left_out_is_said_once_for_each_reason(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--trials", "1", "--tuning", "fixed", "--epsilons", "1", "--source", "release"]
    assert main(["task", "iris", *words]) == 0
    skipped = [line for line in capsys.readouterr().out.splitlines() if " left out: " in line]
    reasons = [line.partition(": ")[2] for line in skipped]
    assert len(reasons) == len(set(reasons)) <= 5
    assert any(line.startswith("jl_transform was left out: it releases a") for line in skipped)


@pytest.mark.parametrize(
    ("words", "table", "message"),
    [
        (["--learner", "oracle"], "iris", "--learner must be one of linear_svm"),
        (["--learner", "ridge"], "iris", "--learner must be one of linear_svm, logistic, k_means"),
        (["--epsilons", "0"], "iris", "--epsilons must be at most 50 numbers"),
        (["--source", "thin air"], "iris", "--source must be one of projection, release"),
        (["--test-share", "2"], "iris", "--test-share must be a number from 0.05 to 0.9"),
        (["--test-share", "0.6"], "iris", "--subspace-share and --test-share must be"),
        (["--k", "9"], "iris", "--k must be a whole number from 1 to 4"),
        (["--out", "a.txt"], "iris", "--out must be a path that ends in .csv or .parquet"),
        ([], "spiked", "A task needs a label for each row; this table has none"),
        (["--source", "release"], "iris", "--mechanism gaussian cannot run: it releases a matrix"),
        (
            ["--bounds", "nowhere.csv"],
            "iris",
            "--bounds must be max, known, private, LOW:HIGH or the path",
        ),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], table: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, table=table) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith(f"dpviz: {message}")


def test_shares_from_a_file_follow_the_released_columns(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [
        "sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)",
        "label 1", "label 2", "label 3",
    ]  # fmt: skip
    path = home / "shares.csv"
    pd.DataFrame({"feature": names, "theta": [0.1, 0.1, 0.2, 0.2, 0.2, 0.1, 0.1]}).to_csv(
        path, index=False
    )
    words = ["task", "iris", "--trials", "1", "--tuning", "fixed", "--epsilons", "1e6"]
    words += ["--source", "release", "--domain", "box", "--mechanism", "mvg_data"]
    assert main([*words, "--allocation", str(path)]) == 0
    shared = capsys.readouterr().out
    assert main(words) == 0
    assert capsys.readouterr().out != shared
    pd.DataFrame({"feature": names[:4], "theta": [0.25] * 4}).to_csv(path, index=False)
    assert main([*words, "--allocation", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_interruption_says_what_is_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show = terminal.Watch.show

    def interrupted(self: terminal.Watch, progress: Progress) -> None:
        show(self, progress)
        if progress.done > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(terminal.Watch, "show", interrupted)
    assert run() == 130
    assert "the same command goes on from there" in capsys.readouterr().err
    assert run("--cache", "none") == 130
    assert "nothing is kept" in capsys.readouterr().err
    monkeypatch.setattr(terminal.Watch, "show", show)
    assert run("--out", str(home / "a.csv")) == 0
    assert "of them from the cache" in capsys.readouterr().out
