"""What runs the tests: layers side by side are told apart, counted, and stopped when they hang."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests import layers
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


def test_a_layer_for_two_cores_starts_beside_the_last_for_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The first waits for what only the second makes, which could use both cores.
    came = tmp_path / "came"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(came)!r}).exists(): time.sleep(.01)"
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    (tmp_path / "tests" / "wide").mkdir(parents=True)
    (tmp_path / "tests" / "wide" / "test_it.py").write_text(
        f"import pathlib\ndef test_it():\n    pathlib.Path({str(came)!r}).touch()\n"
    )
    found = layers.run([tool("narrow", wait), Layer("wide", 60, folder="wide")], (), cores=2)
    assert {name: (one.passed, one.failed) for name, one in found.items()} == {
        "narrow": (1, 0),
        "wide": (1, 0),
    }


def test_what_hangs_is_stopped_and_counts_as_failed() -> None:
    began = time.monotonic()
    found = layers.run([tool("hangs", "import time; time.sleep(600)", budget=0)], (), cores=1)
    assert (found["hangs"].passed, found["hangs"].failed) == (0, 1)
    assert "stopped" in found["hangs"].note
    assert time.monotonic() - began < 300


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
