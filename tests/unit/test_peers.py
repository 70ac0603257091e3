"""Libraries in environments of their own: the real worker with a fake library."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpviz
from benchmarks import libraries
from dpviz.cli import main
from dpviz.core import plugins
from dpviz.core.errors import CannotRun
from dpviz.mechanisms import all_mechanisms

pytestmark = pytest.mark.long

# This fake library is exact below epsilon 5; above, it is slow, stuck, failing or wrong.
LIBRARY = """
import os, time
import numpy as np

class PCA:
    def __init__(self, n_components, epsilon, data_norm, centered, random_state):
        assert data_norm == 1.0 and centered
        self.k, self.epsilon, self.seed = n_components, epsilon, random_state

    def fit(self, rows):
        assert np.linalg.norm(rows, axis=1).max() <= 1
        while self.epsilon == 6:
            pass
        if self.epsilon == 7:
            time.sleep(60)
        if self.epsilon == 8:
            raise ValueError("a value of the data")
        if self.epsilon == 9:
            os._exit(3)
        self.components_ = np.linalg.svd(rows, full_matrices=False)[2][: self.k]
        return self
"""


def table() -> pd.DataFrame:
    rows = np.random.default_rng(1).standard_normal((60, 4)) * [3, 2, 1, 1]
    return pd.DataFrame(rows, columns=list("abcd"))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write an environment with this interpreter and the fake library."""
    (tmp_path / "diffprivlib").mkdir()
    (tmp_path / "diffprivlib/models.py").write_text(LIBRARY, encoding="utf-8")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(tmp_path))} exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(libraries, "python_of", lambda library, folder: python)
    monkeypatch.setattr(libraries, "SECONDS", 0.2)
    return python


def test_a_library_is_a_column_and_is_audited(
    fake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    peer_table = dpviz.compare(
        table(), mechanisms=[libraries.diffprivlib, "gaussian"], trials=3
    ).table()
    rows = peer_table.set_index("mechanism")
    assert rows["status"].to_dict() == {"diffprivlib": "unproven", "gaussian": "holds"}
    assert rows.loc["diffprivlib", "recovery"] == pytest.approx(1.0)
    board = dpviz.board(table(), mechanisms=[libraries.diffprivlib], trials=1)
    board.write(tmp_path / "board.html")
    assert libraries.diffprivlib.info.label in (tmp_path / "board.html").read_text(encoding="utf-8")
    # Each fit is a slow message to a process, so use fewer fits to choose the worst pair of tables.
    monkeypatch.setattr("dpviz.auditing.run._LEAST_PILOT", 10)
    verdict = dpviz.audit(libraries.diffprivlib, trials=300, dimension=3, k=1)
    assert str(verdict.verdict) == "refuted"
    # The command line, which finds the library by its name, gives the same result.
    monkeypatch.setenv(plugins.VARIABLE, "")
    all_mechanisms.cache_clear()
    path = tmp_path / "table.csv"
    table().to_csv(path, index=False)
    words = ["compare", str(path), "--plugin", "benchmarks.libraries", "--mechanism", "diffprivlib"]
    assert main([*words, "--trials", "2", "--format", "csv"]) == 0
    assert "diffprivlib,unproven" in capsys.readouterr().out
    monkeypatch.undo()
    all_mechanisms.cache_clear()


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (6.0, "a fit has 0.2 s of CPU; it was stopped"),
        (7.0, "a fit has 0.2 s of CPU; it was stopped"),
        (8.0, "a fit of the library failed (ValueError)"),
        (9.0, "a fit of the library failed (ended)"),
    ],
)
def test_what_does_not_end_or_fails_is_one_sentence(
    fake: Path, monkeypatch: pytest.MonkeyPatch, epsilon: float, words: str
) -> None:
    """A fit is stopped by its CPU time, or by the caller if it uses none; the next fit runs."""
    monkeypatch.setattr(libraries, "PATIENCE", 1.5 if epsilon == 7.0 else 60.0)
    start = time.monotonic()
    with pytest.raises(CannotRun) as caught:
        dpviz.compare(table(), epsilon=epsilon, mechanisms=[libraries.diffprivlib], trials=1)
    assert str(caught.value) == f"diffprivlib cannot run: {words}"
    assert time.monotonic() - start < 30
    peer_table = dpviz.compare(table(), mechanisms=[libraries.diffprivlib], trials=1)
    assert len(peer_table.table()) == 1


@pytest.mark.slow
def test_the_worker_that_waits_for_the_next_question_ends_with_its_process(fake: Path) -> None:
    code = """if True:
        import sys
        from pathlib import Path

        import numpy as np

        import dpviz
        from benchmarks import libraries

        libraries.python_of = lambda library, folder: Path(sys.argv[1])
        rows = np.random.default_rng(1).standard_normal((60, 4))
        dpviz.compare(rows, mechanisms=[libraries.diffprivlib], trials=1)
    """
    words = [sys.executable, "-W", "always::ResourceWarning", "-c", code, str(fake)]
    process = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
