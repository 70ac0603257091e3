"""No line of a file decides how another one is read, or what a release says."""

from __future__ import annotations

import pytest

from benchmarks import release_neighbours


def test_five_hundred_changes_of_one_line_tell_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    # That it finds a reader that guesses, or rows that are not cut, among the first of these pairs
    # is shown in tests/unit/test_release_records.py.
    assert release_neighbours.main(["--pairs", "500", "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert "500 pairs of files that differ in one line, 500 released" in said
    for what in ("keys and shapes", "exit codes", "messages"):
        assert f"differences of {what}: 0 (at most 0)" in said
