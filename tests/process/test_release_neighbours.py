"""No line of a file decides how another line is read, or which text a release prints."""

from __future__ import annotations

import pytest

from benchmarks import release_neighbours
from dpviz.datasets import process


@pytest.mark.parametrize("asked", ["compare", "compare_people", "compare_shown"])
def test_a_hundred_changes_of_lines_and_of_persons_tell_nothing(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # tests/unit/test_release_records.py shows that these pairs detect a reader that guesses, and
    # rows that are not clipped. `python -m benchmarks.release_neighbours` tests as many pairs as
    # requested.
    monkeypatch.setattr(process, "apart", lambda: False)  # A separate reading process is slower.
    problems = getattr(release_neighbours, asked)(1, 100)
    assert problems.sound, problems.examples
    assert problems.released == problems.pairs == 100
