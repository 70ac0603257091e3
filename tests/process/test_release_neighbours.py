"""No line of a file decides how another one is read, or what a release says."""

from __future__ import annotations

import pytest

from benchmarks import release_neighbours


def test_three_hundred_changes_of_lines_and_of_persons_tell_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # That it finds a reader that guesses, or rows that are not cut, among the first of these pairs
    # is shown in tests/unit/test_release_records.py.
    assert release_neighbours.main(["--pairs", "300", "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert "300 pairs of files that differ in one line, 300 released" in said
    assert "300 pairs of files that differ in one person, 300 released" in said
    for what in ("keys and shapes", "exit codes", "messages"):
        assert said.count(f"differences of {what}: 0 (at most 0)") == 3
