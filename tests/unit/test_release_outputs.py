"""A release's files: space is taken before the spend, one sentence after it, no partial file."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpviz.cli import main
from dpviz.core import files
from dpviz.core.files import PACKAGE
from dpviz.core.problem import Budget, Relation
from dpviz.datasets import Table
from dpviz.releasing import making
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.making import make, plan
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.schema import Column, Schema

DATA = PACKAGE.parent / "data"
WORDS = ["release", str(DATA / "example.csv"), "--schema", str(DATA / "example-schema.json")]
WORDS += ["--row-bound", "60", "--delta", "1e-7"]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger(tmp_path / "ledger")
    book.create(Budget(3.0, 1e-5), Relation.REPLACE)
    return book


def _release(ledger: Ledger, out: Path) -> int:
    return main([*WORDS, "--ledger", str(ledger.path), "--out", str(out)])


def _temporary(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*")]


def test_a_release_is_kept_beside_the_ledger_for_its_owner(ledger: Ledger, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert _release(ledger, out) == 0
    (release,) = ledger.kept().values()
    assert release.parent == tmp_path / "ledger.releases"
    assert release.name == f"000001-{ledger.read().heads[0][:16]}.json"
    assert release.read_bytes() == out.read_bytes()
    assert stat.S_IMODE(release.stat().st_mode) == 0o600
    assert stat.S_IMODE(release.parent.stat().st_mode) == 0o700
    assert json.loads(release.read_text())["ledger"]["head"] == ledger.read().heads[0]
    assert _temporary(tmp_path) == []


@pytest.mark.parametrize("name", ["ledger", "ledger.lock", "ledger.head", "ledger.releases/a.json"])
def test_out_and_ledger_must_be_apart(
    ledger: Ledger, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    before = ledger.path.read_bytes()
    for out in (tmp_path / name, tmp_path / "link" / name):
        assert _release(ledger, out) == 2
        assert "--out must name a file that is not part of a ledger" in capsys.readouterr().err
    assert ledger.path.read_bytes() == before


def test_out_must_be_new_and_writable(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name, message in (
        ("there", "must name a new file"),
        ("dangling", "must name a new file"),
        ("missing/out", "cannot be written in that folder"),
    ):
        assert _release(ledger, tmp_path / name) == 2
        assert message in capsys.readouterr().err
    assert ledger.read().spends == ()
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_limit_on_file_sizes_is_a_sentence_before_the_spend(
    ledger: Ledger, tmp_path: Path, blocks: int
) -> None:
    """If ``ulimit -f`` would cut off a file, a release is refused before the spend."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (blocks * 1024, blocks * 1024))

    to = ["--ledger", str(ledger.path), "--out", str(tmp_path / "out.json")]
    process = subprocess.run(
        [sys.executable, "-m", "dpviz", *WORDS, *to],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
        # Write no Python bytecode: it would be cut off too, and the next test would read it.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limited,
        timeout=120,
    )
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert "cannot be written: it would be larger than files may be" in process.stderr
    assert ledger.read().spends == ()
    assert not (tmp_path / "out.json").exists()
    assert _temporary(tmp_path) == []


def test_a_full_disk_is_a_sentence_before_the_spend(
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(handle: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert _release(ledger, tmp_path / "out.json") == 2
    assert "cannot be written: no space is left on the disk" in capsys.readouterr().err
    assert ledger.read().spends == ()
    assert _temporary(tmp_path) == []


def test_room_is_taken_where_the_system_has_no_call_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(handle: int, offset: int, length: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "no such call")

    monkeypatch.setattr(os, "posix_fallocate", missing)
    room = files.Reserved(tmp_path, 3 * 2**20 + 5, "it")
    (part,) = tmp_path.iterdir()
    assert part.stat().st_size == 3 * 2**20 + 5
    room.become(tmp_path / "file", b"short")
    room.drop()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"short"]


def _failing(*broken: int) -> Callable[..., None]:
    """Return an ``os.replace`` that fails at its first call, its second call or both."""
    count = [0]
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if Path(source).name.endswith(files.PART):
            count[0] += 1
            if count[0] in broken:
                raise OSError(errno.EIO, "broken")
        real(source, target)

    return replace


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ((1, 2), "is lost, as 000001-"),
        ((1,), "is in out.json only, as 000001-"),
        ((2,), "is in ledger.releases/000001-"),
    ],
)
def test_what_fails_after_the_spend_says_what_was_spent(
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    broken: tuple[int, ...],
    said: str,
) -> None:
    monkeypatch.setattr(os, "replace", _failing(*broken))
    assert _release(ledger, tmp_path / "out.json") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "epsilon 1 and delta 1e-7 are spent, as spend number 1 of ledger ledger" in error
    assert f"the release {said}" in error
    assert "cannot be written: the disk reports an error" in error
    assert len(ledger.read().spends) == 1
    assert len(ledger.kept()) == (1 not in broken)
    assert (tmp_path / "out.json").exists() == (2 not in broken)
    assert _temporary(tmp_path) == []


def test_an_interrupt_after_the_spend_says_what_was_spent(
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(making, "second_moment", interrupted)
    assert _release(ledger, tmp_path / "out.json") == 2
    error = capsys.readouterr().err
    assert "delta 1e-7 are spent, as spend number 1 of ledger ledger" in error
    assert "because it was interrupted" in error
    assert _temporary(tmp_path) == []


def test_a_table_that_is_gone_after_the_spend_says_what_was_spent(
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = tmp_path / "table.csv"
    shutil.copy(WORDS[1], table)
    real = Ledger.spend

    def spend(*given: Any, **named: Any) -> Any:
        result = real(*given, **named)
        table.unlink()
        return result

    monkeypatch.setattr(Ledger, "spend", spend)
    words = ["release", str(table), *WORDS[2:], "--ledger", str(ledger.path)]
    assert main([*words, "--out", str(tmp_path / "out.json")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "are spent, as spend number 1 of ledger ledger, and the release is lost: " in error
    assert "table.csv cannot be opened: there is no such file" in error
    assert _temporary(tmp_path) == []


def test_a_fault_after_the_spend_is_loud_and_says_what_was_spent(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(making, "second_moment", broken)
    with pytest.raises(ZeroDivisionError) as error:
        _release(ledger, tmp_path / "out.json")
    assert "are spent, as spend number 1" in error.value.__notes__[0]
    assert _temporary(tmp_path) == []


@pytest.mark.parametrize("d", [2, 7, 40])
def test_the_room_taken_is_enough(ledger: Ledger, d: int) -> None:
    rows = np.random.default_rng(d).standard_normal((50, d))
    table = Table("made", rows, tuple("é" * 20 + str(i) for i in range(d)))
    schema = Schema(tuple(Column(name, -3, 3) for name in table.columns))
    options = ReleaseOptions(row_bound="1e-300", k=d, epsilon=0.01, delta=1e-9)
    release = make(options, table, schema, ledger=ledger)
    size = len(release.to_text())
    assert size <= plan(options, table, schema).largest_file < size + 30 * d * (2 * d + 1) + 2_048


def test_another_table_is_refused_and_the_same_bytes_are_known_again(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = Schema((Column("a", 0, 50), Column("b", 0, 50)))
    schema.write(tmp_path / "schema.json")
    text = "a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(40))
    for name in ("one.csv", "same.csv"):
        (tmp_path / name).write_text(text)
    (tmp_path / "other.csv").write_text(text.replace("39,4", "39,5"))
    for number, (name, status) in enumerate((("one", 0), ("same", 0), ("other", 2))):
        words = ["release", str(tmp_path / f"{name}.csv"), "--row-bound", "50", "--k", "1"]
        words += ["--schema", str(tmp_path / "schema.json"), "--delta", "1e-7", "--epsilon", "0.5"]
        words += ["--ledger", str(ledger.path), "--out", str(tmp_path / f"{number}.json")]
        assert main(words) == status
    assert "ledger ledger belongs to a different table" in capsys.readouterr().err
    assert _release(ledger, tmp_path / "out.json") == 2  # The example is a different table.
    assert "belongs to a different table" in capsys.readouterr().err
    assert len(ledger.read().spends) == 2
