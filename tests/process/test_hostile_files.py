"""Two thousand hostile files through both readers: one message, no cell, the same columns.

Clean numbers, in dialects that our readers detect, equal to the bit the numbers that pandas and
polars read with the stated dialect.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpviz.datasets import process
from tests import hostile
from tests.hostile import both_readers, clean, file, readers_disagree


@pytest.mark.parametrize("first", range(0, 2_000, 500))
def test_hostile_files(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readers handle every file, in this process, because another process is slower."""
    monkeypatch.setattr(process, "apart", lambda: False)
    problems = []
    for number in range(first, first + 500):
        problems += both_readers(file(0, number), tmp_path)
    assert not problems, "\n".join(problems[:5])


@pytest.mark.parametrize("number", [13112, 14617, 14941, 15718])
def test_what_the_long_run_found(number: int, tmp_path: Path) -> None:
    """Readers accept a last line without its end, and two first-row numbers that are not years."""
    assert both_readers(file(1, number), tmp_path) == []


def test_clean_numbers_are_what_pandas_and_polars_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [clean(0, number) for number in range(200)]
    assert len({(one.delimiter, one.mark) for one in files}) == 8
    problems = [problem for one in files for problem in readers_disagree(one, tmp_path)]
    assert not problems, "\n".join(problems[:5])
    # Control: the test detects a number that differs in one bit.
    reader = hostile._in_batches

    def nudged(*of: Any) -> tuple[tuple[str, ...], np.ndarray]:
        names, rows = reader(*of)
        rows[-1, -1] = np.nextafter(rows[-1, -1], np.inf)
        return names, rows

    monkeypatch.setattr(hostile, "_in_batches", nudged)
    assert readers_disagree(files[0], tmp_path) == ["batches: other numbers"]
