"""No line of a file decides how another one is read, or what a release says."""

from __future__ import annotations

import pytest

from benchmarks import release_neighbours
from dpviz.datasets import process


@pytest.mark.parametrize("asked", ["compare", "compare_people", "compare_shown"])
def test_three_hundred_changes_of_lines_and_of_persons_tell_nothing(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # That it finds a reader that guesses, or rows that are not cut, among the first of these pairs
    # is shown in tests/unit/test_release_records.py.
    monkeypatch.setattr(process, "apart", lambda: False)  # to start a reader takes longer
    found = getattr(release_neighbours, asked)(1, 300)
    assert found.sound, found.examples
    assert found.released == found.pairs == 300
