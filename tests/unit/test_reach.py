"""What a change can reach: nothing that a test loads is missed, and most is left out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import layers, reach
from tests.changes import changed

# What is not of this project is loaded once for all: a fork has it.
LOADED = """
import importlib, json, os, sys
import numpy, pandas, pyarrow.parquet, pytest, scipy.stats
for name in sys.argv[1:]:
    fork = os.fork()
    if not fork:
        importlib.import_module(name)
        loaded = [getattr(m, "__file__", None) or "" for m in list(sys.modules.values())]
        print(json.dumps(loaded), flush=True)
        os._exit(0)
    assert os.waitpid(fork, 0)[1] == 0
"""
NAMES = ("tests.unit.test_decide", "tests.contract.test_mechanisms")


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *NAMES],
        cwd=reach.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return dict(zip(NAMES, lines, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_that_a_test_file_loads_reaches_it(name: str, loaded: dict[str, list[str]]) -> None:
    paths = [Path(file) for file in loaded[name] if file]
    inside = [path for path in paths if path.is_relative_to(reach.ROOT)]
    own = {str(path.relative_to(reach.ROOT)) for path in inside} - {"<frozen>"}
    own = {path for path in own if path.startswith(reach.FOLDERS)}
    assert len(own) > 50
    graph = reach.needs()
    waiting = [f"{name.replace('.', '/')}.py"]
    below = set(waiting)
    while waiting:
        more = graph.get(waiting.pop(), set()) - below
        below |= more
        waiting += more
    assert own - below == set()


@pytest.mark.slow
def test_a_change_reaches_its_own_tests_and_not_all() -> None:
    found = reach.reached({"dpviz/lessons/decide.py"})
    assert "tests/unit/test_decide.py" in found
    assert "tests/unit/test_eigen.py" not in found
    assert "tests/unit/test_rooms.py" in found  # walks all folders
    few = reach.reached({"README.md"})
    assert "tests/unit/test_api.py" in few  # runs its examples
    assert len(few) < len(found)
    assert "tests/contract/test_mechanisms.py" in reach.reached({"dpviz/mechanisms/oja.py"})
    # a file of another kind reaches who names it
    assert "tests/unit/test_board.py" in reach.reached({"dpviz/report/figures/board/board.css"})


def test_a_change_of_how_tests_run_reaches_all() -> None:
    every = {path for path in reach.needs() if Path(path).name.startswith("test_")}
    assert reach.reached({"pyproject.toml"}) == every
    assert reach.reached({"tests/unit/test_eigen.py"}) < every


def test_changed_files_are_those_of_git(tmp_path: Path) -> None:
    assert changed(tmp_path) is None

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "one.py").write_text("1")
    git("add", ".")
    git("commit", "-m", "1")
    (tmp_path / "two.py").write_text("2")
    assert changed(tmp_path) == {"two.py"}
    git("add", ".")
    git("commit", "-m", "2")
    assert changed(tmp_path) == {"two.py"}  # on the main branch: the last commit
    git("checkout", "-b", "work")
    (tmp_path / "one.py").unlink()
    assert changed(tmp_path) == {"one.py"}


def test_the_quick_run_takes_files_of_two_layers_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(layers, "changed", lambda: {"dpviz/lessons/decide.py"})
    types, unit = (one for one in layers.LAYERS if one.name in ("unit", "types"))
    made = {one.name: one for one in layers._reached([unit, types])}
    assert made["types"] == types
    assert "tests/unit/test_decide.py" in made["unit"].files
    assert "tests/unit/test_eigen.py" not in made["unit"].files
    assert "test files can be reached" in capsys.readouterr().out
    monkeypatch.setattr(layers, "changed", lambda: None)
    assert list(layers._reached([unit])) == [unit]
