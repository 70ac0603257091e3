"""Several processes use the ledger and some are killed: the ledger never under-counts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dpviz
from dpviz.core.problem import Budget, Relation
from dpviz.releasing.ledger import Ledger, Spend
from dpviz.releasing.verifying import verify

ROOT = Path(__file__).resolve().parents[2]


# A process without threads forks all others, so that slow imports do not delay their start.
_FORKS = """
import os, signal, sys
from pathlib import Path
from dpviz.releasing.ledger import Ledger, Spend
from dpviz.core.problem import Relation

ledger = Ledger(Path(sys.argv[1]))

def start(count, name):
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        for _ in range(count):
            ledger.spend(Spend("m", 0.5, 1e-7, purpose=name), Relation.REPLACE)
            os.write(theirs, b".")
        os._exit(0)
    os.close(theirs)
    return pid, ours
"""


_TOGETHER = """
started = [start(8, f"p{number}") for number in range(3)]
print([os.waitpid(pid, 0)[1] for pid, _ in started])
"""


_KILLED = """
told = 0
for after in range(5):
    started = [start(1000, f"{after}-{number}") for number in range(4)]
    for pid, ours in started:
        told += sum(len(os.read(ours, 1)) for _ in range(after))
        os.kill(pid, signal.SIGKILL)
    for pid, ours in started:
        assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        while said := os.read(ours, 4096):
            told += len(said)
        os.close(ours)
    print(told, len(ledger.read().spends))
"""


def _run(script: str, path: Path) -> list[str]:
    """Run a script on a new ledger whose limit is never reached."""
    Ledger(path).create(Budget(1e6, 0.5), Relation.REPLACE)
    process = subprocess.run(
        [sys.executable, "-c", _FORKS + script, str(path)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_several_processes_lose_no_spend(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    assert _run(_TOGETHER, path) == ["[0, 0, 0]"]
    spends = Ledger(path).read().spends
    assert sorted(s.purpose for s in spends) == sorted(f"p{n}" for n in range(3) for _ in range(8))


def test_twenty_kills_never_under_count(tmp_path: Path) -> None:
    """An entry that was confirmed as written is in the ledger, whenever the process was killed.

    Four processes are killed after five different numbers of entries, each within an entry.
    """
    path = tmp_path / "ledger"
    rounds = [tuple(map(int, line.split())) for line in _run(_KILLED, path)]
    assert len(rounds) == 5
    for lines_told, text in rounds:
        assert text >= lines_told
    assert rounds[-1][0] >= 4 * (0 + 1 + 2 + 3 + 4)
    Ledger(path).spend(Spend("m", 0.5), Relation.REPLACE)  # The ledger is unlocked and complete.
    assert not list(tmp_path.glob(".*.unfinished"))


_UNCLOSED = """
import os, signal, sys
import dpviz
from dpviz.releasing.ledger import Ledger

Ledger.close = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
table, schema, ledger = sys.argv[1:]
dpviz.release(table, schema=schema, ledger=ledger, row_bound=60, epsilon=0.5, delta=1e-7)
"""


def test_a_kill_before_the_line_that_closes_a_release_has_spent(tmp_path: Path) -> None:
    path, data = tmp_path / "ledger", ROOT / "data"
    table, schema = str(data / "example.csv"), str(data / "example-schema.json")
    Ledger(path).create(Budget(3, 1e-5), Relation.REPLACE)
    process = subprocess.run(
        [sys.executable, "-c", _UNCLOSED, table, schema, str(path)],
        cwd=ROOT, check=False, timeout=120,
    )  # fmt: skip
    assert process.returncode == -signal.SIGKILL
    assert Ledger(path).read().total[0] == pytest.approx(0.5)
    (problem,) = verify(Ledger(path), [])
    assert problem.startswith("no line of ledger closes spend 1, because the release was ")
    dpviz.release(table, schema=schema, ledger=path, row_bound=60, epsilon=0.5, delta=1e-7)
    assert Ledger(path).read().total[0] == pytest.approx(1.0)
    assert verify(Ledger(path), []) == [problem]
