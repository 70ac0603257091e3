"""`dpviz sweep` on the command line."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpviz.cli import main, terminal
from dpviz.core.metrics import offered
from dpviz.datasets import batches
from dpviz.simulation import store
from dpviz.simulation.compare import TABLE_COLUMNS
from dpviz.simulation.jobs import Progress
from tests.workers import every_job

BASE = ["--trials", "2", "--mechanism", "gaussian", "--mechanism", "laplace", "--delta", "1e-3"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep finished cells of these tests out of the user's folder."""
    monkeypatch.setattr(store, "default_folder", lambda: tmp_path / "cells")
    return tmp_path


def run(*words: str, table: str = "iris") -> int:
    return main(["sweep", table, *words, *BASE])


def test_a_table_is_written_and_a_second_run_reuses_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = home / "a.csv"
    words = ["--over", "epsilon", "--values", "0.1:10:3", "--over", "k", "--values", "1,2"]
    assert run(*words, "--out", str(out)) == 0
    table = pd.read_csv(out)
    assert tuple(table.columns) == TABLE_COLUMNS
    assert len(table) == 3 * 2 * 2 * len(offered(picture=False)) * 2
    shown = capsys.readouterr()
    assert shown.out == f"{len(table)} rows in {out}: 12 of 12 cells\n"
    assert shown.err == ""
    again = home / "b.csv"
    assert run(*words, "--out", str(again)) == 0
    assert again.read_bytes() == out.read_bytes()
    assert "12 of them from the cache" in capsys.readouterr().out
    third = home / "c.csv"
    every_job(monkeypatch)
    assert run(*words, "--out", str(third), "--cache", "none", "--workers", "2") == 0
    assert third.read_bytes() == out.read_bytes()
    assert "cache" not in capsys.readouterr().out


def test_parquet_and_a_folder_of_ones_own(home: Path) -> None:
    out = home / "a.parquet"
    cells = home / "mine" / "cells"
    words = ["--over", "n", "--values", "100,1e6", "--out", str(out), "--cache", str(cells)]
    assert run(*words) == 0
    assert sorted(pd.read_parquet(out)["n"].unique()) == [100, 10**6]
    assert len(list(cells.rglob("*.cell"))) == 4


def test_a_large_file_is_swept_in_batches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).standard_normal((500, 3))
    path = home / "big.csv"
    pd.DataFrame(rows, columns=list("abc")).to_csv(path, index=False)
    words = ["--over", "row_bound", "--values", "1,1.5,max", "--cache", "none"]
    assert run(*words, "--out", str(home / "whole.csv"), table=str(path)) == 0
    monkeypatch.setattr(batches, "LARGE_BYTES", 1_000)
    assert run(*words, "--out", str(home / "parts.csv"), table=str(path)) == 0
    whole, parts = (pd.read_csv(home / name) for name in ("whole.csv", "parts.csv"))
    pd.testing.assert_frame_equal(parts, whole, rtol=1e-9, atol=1e-12)


def test_what_cannot_run_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--over", "delta", "--values", "0,1e-3", "--out", str(home / "a.csv")]
    assert run(*words) == 0
    assert "skipped gaussian in 1 cell: it needs a delta above 0; got 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--over trials --values 1", "--over must be one of epsilon, delta, k, n, row_bound"),
        ("--over epsilon --values 1,x", "--values (of epsilon) must be a number from"),
        ("--over epsilon --values -1", "got '-1'"),
        ("--over k --values 9", "--values (of k) must be a whole number from 1 to 4; got '9'"),
        ("--over n --values 1", "--values (of n) must be a whole number from 2"),
        ("--over epsilon --values 1 --over k", "--values must be given once for each --over"),
        ("--over epsilon --values 1 --workers x", "--workers must be a whole number from 1"),
        ("--over epsilon --values 1 --workers 0", "--workers must be a whole number from 1"),
        ("--over epsilon --values 1 --backend abacus", "--backend must be one of dask, loky"),
        ("--over epsilon --values 1 --backend dask", "--scheduler must be given with"),
        (
            "--over delta --values 0 --mechanism sulq",
            "--mechanism sulq cannot run: it needs",
        ),
        ("--over row_bound --values 1 --domain box", "varied on a ball"),
        ("--over epsilon --values 1 --out a.txt", "--out must be a path that ends in .csv"),
        ("--over epsilon --values 1 --out no/a.csv", "--out must be in a folder that is there"),
    ],
)
def test_bad_input_is_one_line(
    words: str, message: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--out", str(home / "a.csv"), *words.split()) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("dpviz: ")
    assert shown.err.count("\n") == 1
    assert message in shown.err
    assert not (home / "a.csv").exists()


@pytest.mark.parametrize("missing", ["--over", "--values"])
def test_what_must_be_given(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"--over": "k", "--values": "1", "--out": "a.csv"}
    del words[missing]
    with pytest.raises(SystemExit) as stopped:
        run(*[word for pair in words.items() for word in pair])
    assert stopped.value.code == 2
    assert missing in capsys.readouterr().err


def test_an_interruption_says_what_is_kept(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show = terminal.Watch.show

    def interrupt(self: terminal.Watch, progress: Progress) -> None:
        show(self, progress)
        if progress.done == 2:
            raise KeyboardInterrupt

    words = ["--over", "epsilon", "--values", "1,2,3", "--out", str(home / "a.csv")]
    with monkeypatch.context() as patched:
        patched.setattr(terminal.Watch, "show", interrupt)
        assert run(*words) == 130
        assert capsys.readouterr().err == (
            "dpviz: interrupted after 2 of 6 cells; the same command goes on from there\n"
        )
        assert run(*words, "--cache", "none") == 130
        assert "nothing is kept without --cache" in capsys.readouterr().err
    assert not (home / "a.csv").exists()
    assert run(*words) == 0
    assert "6 of 6 cells, 2 of them from the cache" in capsys.readouterr().out


def test_a_default_folder_that_cannot_be_written_is_no_obstacle(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "cells").write_text("a file")
    words = ["--over", "epsilon", "--values", "1", "--out", str(home / "a.csv")]
    assert run(*words) == 0
    assert "finished cells are not kept" in capsys.readouterr().err
    assert run(*words, "--cache", str(home / "cells")) == 2
    assert "--cache must be a folder" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_progress_with_time_left(
    stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = stream()
    monkeypatch.setattr("sys.stderr", shown)
    watch = terminal.Watch()
    for done, seconds in ((1, 0.1), (2, 15.0), (3, 15.1), (4, 400.0)):
        watch.show(Progress(done, 99, 0, seconds, 40.0 * seconds))
    watch.end()
    words = shown.getvalue()
    assert "2 of 99 cells, about 10 min left" in words
    assert "4 of 99 cells, about 4.4 h left" in words
    # Not more often than a reader can follow.
    assert "1 of 99" not in words
    assert "3 of 99" not in words
    assert ("\r" in words) == shown.isatty()
    assert words.count("\n") == (0 if shown.isatty() else 2)
