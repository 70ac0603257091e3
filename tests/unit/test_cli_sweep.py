"""`dpviz sweep` on the command line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpviz.cli import main, terminal
from dpviz.core.metrics import offered
from dpviz.simulation import store
from dpviz.simulation.compare import TABLE_COLUMNS
from dpviz.simulation.jobs import Progress

BASE = ["--trials", "2", "--mechanism", "gaussian", "--mechanism", "laplace", "--delta", "1e-3"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store finished results of these tests outside the user's folder."""
    monkeypatch.setattr(store, "default_folder", lambda: tmp_path / "cells")
    return tmp_path


def run(*words: str, table: str = "iris") -> int:
    return main(["sweep", table, *words, *BASE])


def test_a_table_is_written_and_a_second_run_reuses_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = home / "a.csv"
    words = ["--over", "epsilon", "--values", "0.1:10:3", "--over", "k", "--values", "1,2"]
    assert run(*words, "--out", str(out)) == 0
    table = pd.read_csv(out)
    assert tuple(table.columns) == TABLE_COLUMNS
    assert len(table) == 3 * 2 * 2 * len(offered(picture=False)) * 2
    output = capsys.readouterr()
    assert output.out.endswith(f"\n{len(table)} rows in {out}: 12 of 12 cells\n")
    assert output.err == ""
    again = home / "b.csv"
    assert run(*words, "--out", str(again)) == 0
    assert again.read_bytes() == out.read_bytes()
    assert "including 12 from the cache" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--over trials --values 1", "--over must be one of epsilon, delta, k, n, row_bound"),
        ("--over epsilon --values 1,x", "--values (of epsilon) must be a number from"),
        ("--over epsilon --values -1", "got '-1'"),
        ("--over k --values 9", "--values (of k) must be a whole number from 1 to 4; got '9'"),
        ("--over n --values 1", "--values (of n) must be a whole number from 2"),
        ("--over epsilon --values 1 --over k", "--values must be given as often as --over"),
        ("--over epsilon --values 1 --workers x", "--workers must be a whole number from 1"),
        ("--over epsilon --values 1 --workers 0", "--workers must be a whole number from 1"),
        ("--over epsilon --values 1 --scheduler x://y", "--scheduler must be the address of a"),
        (
            "--over delta --values 0 --mechanism sulq",
            "--mechanism sulq cannot run: it needs",
        ),
        ("--over row_bound --values 1 --domain box", "varied only if the domain is ball"),
        ("--over epsilon --values 1 --out a.txt", "--out must be a path that ends in .csv"),
        ("--over epsilon --values 1 --out no/a.csv", "--out must be a file in a writable folder"),
    ],
)
def test_bad_input_is_one_line(
    words: str, message: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--out", str(home / "a.csv"), *words.split()) == 2
    output = capsys.readouterr()
    assert output.err.startswith("dpviz: ")
    assert output.err.count("\n") == 1
    assert message in output.err
    assert not (home / "a.csv").exists()


def test_an_interruption_says_what_is_kept(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show = terminal.Line.show

    def interrupt(self: terminal.Line, progress: Progress) -> None:
        show(self, progress)
        if progress.done == 2:
            raise KeyboardInterrupt

    words = ["--over", "epsilon", "--values", "1,2,3", "--out", str(home / "a.csv")]
    with monkeypatch.context() as context:
        context.setattr(terminal.Line, "show", interrupt)
        assert run(*words) == 130
        assert capsys.readouterr().err == (
            "dpviz: interrupted after 2 of 6 cells; the same command continues the run\n"
        )
        assert run(*words, "--cache", "none") == 130
        assert "no result is saved without --cache" in capsys.readouterr().err
    assert not (home / "a.csv").exists()
    assert run(*words) == 0
    assert "6 of 6 cells, including 2 from the cache" in capsys.readouterr().out
