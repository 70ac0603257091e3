"""What runs the tests: layers side by side are told apart, counted, and stopped when they hang."""

from __future__ import annotations

import faulthandler
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest, layers
from tests.layers import Layer


@pytest.fixture(autouse=True)
def _own_reports(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr(layers, "REPORTS", tmp_path_factory.mktemp("reports"))


def tool(name: str, code: str, budget: int = 60) -> Layer:
    return Layer(name, budget, command=("-c", code))


def test_single_processes_run_beside_each_other_and_print_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Each waits for a file that the other one makes: one after the other they would never end.
    here = layers.REPORTS
    meet = (
        "import pathlib, time; mine, other = pathlib.Path({!r}), pathlib.Path({!r}); mine.touch();"
        "print({!r})\nwhile not other.exists(): time.sleep(.01)\nprint({!r})"
    )
    one, two = str(here / "one"), str(here / "two")
    monkeypatch.setattr(
        layers,
        "LAYERS",
        (
            tool("first", meet.format(one, two, "1 comes", "1 goes")),
            tool("second", meet.format(two, one, "2 comes", "2 goes")),
            tool("third", "raise SystemExit(3)"),
        ),
    )
    assert layers.main([]) == 1
    printed = capsys.readouterr().out
    assert "1 comes\n1 goes" in printed
    assert "2 comes\n2 goes" in printed
    assert printed.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"


@pytest.mark.slow
def test_layers_in_one_run_start_beside_the_last_for_one_core_and_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The first waits for what only the second makes, which could use both cores.
    came = tmp_path / "came"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(came)!r}).exists(): time.sleep(.01)"
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    for folder, does in (("wide", f"open({str(came)!r}, 'w').close()"), ("broken", "1 / 0")):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        file = tmp_path / "tests" / folder / f"test_{folder}.py"
        file.write_text(f"def test_it():\n    {does}\n")
    empty = Layer("empty", 60, folder="empty", shared=True)
    shared = [Layer(name, 60, folder=name, shared=True) for name in ("wide", "broken")]
    narrow, whole, without = layers.together([tool("narrow", wait), *shared, empty])
    assert (whole.parts, without) == (tuple(shared), empty)
    found = layers.run([narrow, whole], (), cores=2)
    found |= layers._shares(whole, found[whole.name])
    assert {name: (one.passed, one.failed) for name, one in found.items()} == {
        "narrow": (1, 0),
        "wide+broken": (1, 1),
        "wide": (1, 0),
        "broken": (0, 1),
    }
    parts = [found[layer.name] for layer in shared]
    for what in ("seconds", "busy"):
        together = sum(getattr(one, what) for one in parts)
        assert together == pytest.approx(getattr(found[whole.name], what))
        assert together > 0


def test_what_waits_most_of_the_time_leaves_its_core_to_a_third(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each waits for all three: with the third held back until a core is idle none would end.
    here = layers.REPORTS
    meet = (
        "import pathlib, time; pathlib.Path({!r}, {!r}).touch()\n"
        "while len(list(pathlib.Path({!r}).glob('came-*'))) < 3: time.sleep(.01)"
    )
    one, two, three = (
        tool(name, meet.format(str(here), f"came-{name}", str(here))) for name in ("1", "2", "3")
    )
    found = layers.run([replace(one, load=0.5), two, three], (), cores=2)
    assert [outcome.passed for outcome in found.values()] == [1, 1, 1]


def test_what_only_computes_yields_to_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "NICE", 15)  # these tests may run with the other value themselves
    wait = "import os, time\nwhile os.getpriority(os.PRIO_PROCESS, 0) != 15: time.sleep(.01)"
    meek = replace(tool("meek", wait, budget=5), yields=True)
    own = tool("own", "import os; raise SystemExit(os.getpriority(os.PRIO_PROCESS, 0) == 15)")
    found = layers.run([meek, own], (), cores=2)
    assert [outcome.passed for outcome in found.values()] == [1, 1]
    assert layers.together([layer for layer in layers.LAYERS if layer.shared])[0].yields


def test_a_quick_run_leaves_out_the_slow_tests_of_files_that_are_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conftest, "changed", lambda: {"tests/unit/test_theirs.py"})
    folder = layers.ROOT / "tests" / "unit"

    def kept(quick: bool) -> list[str]:
        left = []
        items = [
            SimpleNamespace(
                name=f"{file}: {'slow' if slow else 'quick'}",
                path=folder / file,
                get_closest_marker=lambda name, slow=slow: slow if name == "slow" else None,
                add_marker=lambda name: None,
            )
            for file in ("test_ours.py", "test_theirs.py")
            for slow in (None, "mark")
        ]
        config = SimpleNamespace(
            getoption=lambda name: quick,
            hook=SimpleNamespace(pytest_deselected=lambda items: left.extend(items)),
        )
        conftest.pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]
        assert len(items) + len(left) == 4
        return [item.name for item in items]

    assert kept(quick=True) == [
        "test_ours.py: quick",
        "test_theirs.py: quick",
        "test_theirs.py: slow",
    ]
    assert len(kept(quick=False)) == 4


def test_what_is_called_slow_is_little() -> None:
    """The quick run stands for all: it lacks one of twenty tests at most, and no file whole."""
    slow = every = 0
    for path in sorted(layers.ROOT.glob("tests/*/test_*.py")):
        text = path.read_text(encoding="utf-8")
        functions = re.findall(r"^ *def test_", text, re.MULTILINE)
        marked = re.findall(r"^ *@pytest\.mark\.slow$", text, re.MULTILINE)
        if path.parent.name not in layers.SELECTED:
            assert not marked, f"{path.name}: nobody would look at the mark"
            continue
        assert len(marked) < len(functions), f"{path.name} would be left out whole"
        slow, every = slow + len(marked), every + len(functions)
    assert 0 < slow <= every / 20


def test_what_hangs_is_stopped_and_counts_as_failed() -> None:
    began = time.monotonic()
    found = layers.run([tool("hangs", "import time; time.sleep(600)", budget=0)], (), cores=1)
    assert (found["hangs"].passed, found["hangs"].failed) == (0, 1)
    assert "stopped" in found["hangs"].note
    assert time.monotonic() - began < 300


def test_what_hangs_is_named(tmp_path: Path) -> None:
    with (tmp_path / "said").open("w") as file:
        faulthandler.dump_traceback(file)  # as pytest does when a test takes too long
    said = (tmp_path / "said").read_text()
    assert layers._hung_in(said) == " in tests/unit/test_layers.py::test_what_hangs_is_named"
    assert layers._hung_in("no stack") == ""


def test_an_interruption_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[layers.Running] = []

    def interrupted(self: layers.Running, patience: float) -> None:
        started.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(layers.Running, "outcome", interrupted)
    slow = [tool(name, "import time; time.sleep(600)") for name in ("one", "two")]
    with pytest.raises(KeyboardInterrupt):
        layers.run(slow, (), cores=2)
    assert all(one._process.poll() is not None for one in started)
