"""`dpviz ledger verify`: a missing tail, an old backup, two branches, a mixed relation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpviz.cli import main
from dpviz.core.files import PACKAGE
from dpviz.releasing.ledger import Ledger

DATA = PACKAGE.parent / "data"
BUDGET = ["--epsilon", "0.5", "--delta", "1e-7"]


def _ledger(folder: Path, relation: str = "replace") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "mine.jsonl"
    assert main(["ledger", "new", str(path), "--limit", "3,1e-5", "--relation", relation]) == 0
    return path


def _release(ledger: Path, out: Path, relation: str = "replace") -> Path:
    words = ["release", str(DATA / "example.csv"), "--schema", str(DATA / "example-schema.json")]
    words += ["--row-bound", "60", *BUDGET]
    words += ["--relation", relation, "--ledger", str(ledger), "--out", str(out)]
    assert main(words) == 0
    return out


def _verified(
    capsys: pytest.CaptureFixture[str], ledger: Path, *releases: Path, status: int = 1
) -> list[str]:
    capsys.readouterr()
    assert main(["ledger", "verify", str(ledger), *map(str, releases)]) == status
    shown = capsys.readouterr()
    assert shown.err == ""
    lines = shown.out.splitlines()
    if status:
        for line in lines:
            assert line.endswith(".")
            assert ". " not in line
    return lines


def _alone(ledger: Path, folder: Path) -> Path:
    """Copy a ledger without what lies beside it."""
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(ledger, folder / ledger.name))


def _changed(release: Path, out: Path, **changed: Any) -> Path:
    found = json.loads(release.read_text())
    for key, value in changed.items():
        if isinstance(value, dict):
            found[key].update(value)
        else:
            found[key] = value
    out.write_text(json.dumps(found))
    return out


def test_what_fits_together_is_said_with_status_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = _ledger(tmp_path)
    releases = [_release(ledger, tmp_path / f"{number}.json") for number in range(3)]
    assert _verified(capsys, ledger, *releases, status=0) == [
        "mine.jsonl and its releases fit together"
    ]
    assert _verified(capsys, _alone(ledger, tmp_path / "copy"), *releases, status=0)
    assert _verified(capsys, ledger, status=0)


def test_a_missing_tail_and_an_old_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    backup = _alone(ledger, tmp_path / "backup")
    second = _release(ledger, tmp_path / "2.json")
    said = (
        "2.json is spend 2, and mine.jsonl ends at spend 1: its tail is missing, or it is an old "
        "copy."
    )
    assert _verified(capsys, backup, first, second) == [said]
    ledger.write_text("".join(f"{line}\n" for line in ledger.read_text().splitlines()[:4]))
    found = _verified(capsys, ledger, first, second)
    assert "ledger mine.jsonl has 4 of the 6 lines that were written: it was cut" in found[0]
    assert said in found
    assert any(line.startswith("000002-") for line in found)  # the release kept beside it
    # without a single file named, what lies beside it tells
    assert len(_verified(capsys, ledger)) == 2


def test_two_branches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    backup = _alone(ledger, tmp_path / "backup")
    second = _release(ledger, tmp_path / "2.json")
    other = _release(backup, tmp_path / "other.json")
    assert _verified(capsys, ledger, first, second, other) == [
        "other.json is spend 2 of another branch: mine.jsonl has another line there, so it went "
        "on from an old copy.",
        f"{Ledger(ledger).kept()[2].name} and other.json are both spend 2 of one ledger: it has "
        "two branches, and their costs add up.",
    ]
    # both are ahead of the ledger at hand: the two releases alone tell
    old = _alone(ledger, tmp_path / "old")
    old.write_text("".join(f"{line}\n" for line in ledger.read_text().splitlines()[:4]))
    found = _verified(capsys, old, second, other)
    assert "2.json and other.json are both spend 2 of one ledger" in found[-1]


def test_a_mixed_relation_and_another_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    mixed = _changed(first, tmp_path / "mixed.json", relation="zero-out")
    assert _verified(capsys, ledger, mixed) == [
        "mixed.json is under the relation zero-out, and mine.jsonl adds up releases under replace.",
        "mixed.json was changed: it is not the file that mine.jsonl closed spend 1 with.",
    ]
    foreign = _ledger(tmp_path / "elsewhere", "zero-out")
    theirs = _release(foreign, tmp_path / "theirs.json", "zero-out")
    assert _verified(capsys, ledger, first, theirs) == [
        "theirs.json was paid for by another ledger than mine.jsonl."
    ]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"proved": {"epsilon": 0.1}}, "epsilon"),
        ({"proved": {"delta": 1e-9}}, "delta"),
        ({"settings": {"k": "3"}}, "settings"),
        ({"ledger": {"epsilon": 0.1}}, "total"),
        ({"ledger": {"left": {"epsilon": 3.0, "delta": 0.0}}}, "left"),
        ({"mechanism": "another"}, "mechanism"),
        ({"purpose": "a war"}, "purpose"),
        ({"matrix": []}, None),
        ({}, None),  # written anew, other blanks
    ],
)
def test_a_release_that_was_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], what: str | None
) -> None:
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    said = ["new.json was changed: it is not the file that mine.jsonl closed spend 1 with."]
    if what is not None:
        said.append(f"new.json says something else than spend 1 of mine.jsonl: {what}.")
    new = _changed(first, tmp_path / "new.json", **changed)
    assert _verified(capsys, ledger, new) == said
    assert _verified(capsys, _alone(ledger, tmp_path / "desk"), new) == said


def test_a_spend_that_nothing_closes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process that is killed after its spend, or just before the line that closes it."""
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    (tmp_path / "mine.jsonl.head").unlink()
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text("".join(lines[:-1]))
    (kept, given) = _verified(capsys, ledger, first)
    assert kept.startswith("no line of mine.jsonl closes spend 1, so nothing tells whether 000001-")
    assert "whether 1.json is what was written" in given
    Ledger(ledger).kept()[1].unlink()
    assert _verified(capsys, ledger) == [
        "spend 1 of mine.jsonl counts and has no release: it was stopped before one was written, "
        "or its file was lost."
    ]
    assert Ledger(ledger).read().total[0] == pytest.approx(0.5)
    second = _release(ledger, tmp_path / "2.json")  # it goes on
    assert _verified(capsys, _alone(ledger, tmp_path / "desk"), second, status=0)


def test_bad_files_are_a_sentence_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    files = {
        "deep.json": "[" * 200_000,
        "long.json": '{"ledger": {"spends": ' + "9" * 5_000 + "}}",
        "none.json": _changed(first, tmp_path / "none.json", ledger=None).read_text(),
        "zero.json": _changed(first, tmp_path / "zero.json", ledger={"spends": 0}).read_text(),
        "list.json": "[]",
        "number.json": _changed(first, tmp_path / "n.json", proved={"epsilon": "x"}).read_text(),
        "settings.json": _changed(first, tmp_path / "settings.json", settings=[]).read_text(),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    names = [*files, "bytes.json", "missing.json"]
    found = _verified(capsys, ledger, *(tmp_path / name for name in names))
    no_release = "is not a release of this version of dpviz."
    assert found == [
        f"deep.json {no_release}",
        f"long.json {no_release}",
        "none.json was made without a ledger.",
        f"zero.json {no_release}",
        f"list.json {no_release}",
        f"number.json {no_release}",
        f"settings.json {no_release}",
        f"bytes.json {no_release}",
        "missing.json cannot be read: No such file or directory.",
    ]
    ledger.write_text("{}\n")
    (damaged, *_) = _verified(capsys, ledger, first)
    assert "ledger mine.jsonl is damaged" in damaged
    (missing,) = _verified(capsys, tmp_path / "nowhere")
    assert "ledger nowhere does not exist" in missing
