"""Tasks beyond this machine's memory are refused in one sentence before they start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpviz.cli import main
from dpviz.core import resources
from dpviz.core.errors import CannotRun
from dpviz.core.settings import Settings
from dpviz.datasets.table import Table
from dpviz.preparation.bounding import prepare
from dpviz.simulation.compare import compare


def wide(n: int, d: int) -> Table:
    rows = np.random.default_rng(0).normal(size=(n, d))
    return Table("wide", rows, tuple(f"c{i}" for i in range(d)))


def free(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    monkeypatch.setattr(resources, "free_bytes", lambda: size)


def test_the_least_of_system_and_container_counts(tmp_path: Path) -> None:
    system = tmp_path / "meminfo"
    system.write_text("MemTotal: 9 kB\nMemAvailable:    2000 kB\n", encoding="utf-8")
    assert resources.free_bytes(system, tmp_path) == 2_048_000
    (tmp_path / "memory.max").write_text("max\n", encoding="utf-8")
    (tmp_path / "memory.current").write_text("5\n", encoding="utf-8")
    assert resources.free_bytes(system, tmp_path) == 2_048_000
    (tmp_path / "memory.max").write_text("1005\n", encoding="utf-8")
    assert resources.free_bytes(system, tmp_path) == 1000
    assert resources.free_bytes(tmp_path / "none", tmp_path / "none") is None


def test_a_mechanism_without_room_is_skipped_and_refused_if_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = prepare(wide(5, 2_500), Settings())
    free(monkeypatch, 400_000_000)  # A matrix release here needs 0.6 GB of memory.
    with pytest.raises(CannotRun, match=r"gaussian cannot run: it takes about 0\.6 GB of memory"):
        compare(table, Settings(mechanisms=("gaussian",), trials=1))
    estimates: list[float] = []
    settings = Settings(mechanisms=("random_projection", "noisy_power_exact"), trials=2)
    assert len(compare(table, settings, memory=estimates.append).results) == 2
    assert estimates[0] < 1e8
    free(monkeypatch, None)  # If free memory is unknown, nothing is refused.
    compare(table, settings)


def test_the_command_says_it_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = wide(5, 2_500)
    lines = [",".join(table.columns), *(",".join(map(str, row)) for row in table.rows)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    free(monkeypatch, 400_000_000)
    assert main(["compare", str(path), "--mechanism", "gaussian", "--trials", "1"]) == 2
    message = capsys.readouterr().err.splitlines()
    assert len(message) == 1
    assert "of memory, and 0.4 GB are free here" in message[0]
