"""Two thousand hostile files through both readers: one sentence, no cell, and the same columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile import both_readers, file

COUNT = 2_000
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_hostile_files(part: int, tmp_path: Path) -> None:
    found = []
    size = COUNT // PARTS
    for number in range(part * size, (part + 1) * size):
        found += both_readers(file(0, number), tmp_path)
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize("number", [13112, 14617, 14941, 15718])
def test_what_the_long_run_found(number: int, tmp_path: Path) -> None:
    """A last line without an end, and a first row with two numbers that are no years."""
    assert both_readers(file(1, number), tmp_path) == []
