"""Two thousand hostile files through both readers: one sentence, no cell, and the same columns.

Clean numbers, in dialects that readers find by themselves, are to the bit what pandas and polars
read that are told the dialect.
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
    """In this process: to start another one for each takes longer than to read it."""
    monkeypatch.setattr(process, "apart", lambda: False)
    found = []
    for number in range(first, first + 500):
        found += both_readers(file(0, number), tmp_path)
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize("number", [13112, 14617, 14941, 15718])
def test_what_the_long_run_found(number: int, tmp_path: Path) -> None:
    """A last line without an end, and a first row with two numbers that are no years."""
    assert both_readers(file(1, number), tmp_path) == []


def test_clean_numbers_are_what_pandas_and_polars_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [clean(0, number) for number in range(200)]
    assert len({(one.delimiter, one.mark) for one in given}) == 8
    found = [problem for one in given for problem in readers_disagree(one, tmp_path)]
    assert not found, "\n".join(found[:5])
    # the control: one number, one bit further
    read = hostile._in_batches

    def nudged(*of: Any) -> tuple[tuple[str, ...], np.ndarray]:
        names, rows = read(*of)
        rows[-1, -1] = np.nextafter(rows[-1, -1], np.inf)
        return names, rows

    monkeypatch.setattr(hostile, "_in_batches", nudged)
    assert readers_disagree(given[0], tmp_path) == ["batches: other numbers"]
