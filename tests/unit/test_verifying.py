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
    output = capsys.readouterr()
    assert output.err == ""
    lines = output.out.splitlines()
    if status:
        for line in lines:
            assert line.endswith(".")
            assert ". " not in line
    return lines


def _alone(ledger: Path, folder: Path) -> Path:
    """Copy a ledger without the files in the folder beside it."""
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(ledger, folder / ledger.name))


def _changed(release: Path, out: Path, **changed: Any) -> Path:
    content = json.loads(release.read_text())
    for key, value in changed.items():
        if isinstance(value, dict):
            content[key].update(value)
        else:
            content[key] = value
    out.write_text(json.dumps(content))
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
    message = (
        "2.json is spend 2, but mine.jsonl ends at spend 1: the end of the ledger is "
        "missing, or the ledger is an old copy."
    )
    assert _verified(capsys, backup, first, second) == [message]
    ledger.write_text("".join(f"{line}\n" for line in ledger.read_text().splitlines()[:4]))
    answer = _verified(capsys, ledger, first, second)
    assert "ledger mine.jsonl has only 4 of its 6 lines: it was truncated" in answer[0]
    assert message in answer
    assert any(line.startswith("000002-") for line in answer)  # This is the stored release.
    # If no file is named, the files beside the ledger still show that its last lines are missing.
    assert len(_verified(capsys, ledger)) == 2


def test_two_branches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    backup = _alone(ledger, tmp_path / "backup")
    second = _release(ledger, tmp_path / "2.json")
    other = _release(backup, tmp_path / "other.json")
    assert _verified(capsys, ledger, first, second, other) == [
        "other.json is spend 2 of another branch: mine.jsonl has a different line there, so it "
        "continued from an old copy.",
        f"{Ledger(ledger).kept()[2].name} and other.json are both spend 2 of one ledger: it has "
        "two branches, and their costs add up.",
    ]
    # The ledger is older than both releases, so only they show that it has been branched.
    old = _alone(ledger, tmp_path / "old")
    old.write_text("".join(f"{line}\n" for line in ledger.read_text().splitlines()[:4]))
    answer = _verified(capsys, old, second, other)
    assert "2.json and other.json are both spend 2 of one ledger" in answer[-1]


def test_a_mixed_relation_and_another_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    mix = _changed(first, tmp_path / "mixed.json", relation="zero-out")
    assert _verified(capsys, ledger, mix) == [
        "mixed.json is under the relation zero-out, and mine.jsonl adds up releases under replace.",
        "mixed.json was changed: it is not the file that mine.jsonl closed spend 1 with.",
    ]
    foreign = _ledger(tmp_path / "elsewhere", "zero-out")
    theirs = _release(foreign, tmp_path / "theirs.json", "zero-out")
    assert _verified(capsys, ledger, first, theirs) == [
        "another ledger than mine.jsonl recorded theirs.json."
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
        ({}, None),  # This is the same content with other white space.
    ],
)
def test_a_release_that_was_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], what: str | None
) -> None:
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    messages = ["new.json was changed: it is not the file that mine.jsonl closed spend 1 with."]
    if what is not None:
        messages.append(f"new.json contradicts spend 1 of mine.jsonl: {what}.")
    new = _changed(first, tmp_path / "new.json", **changed)
    assert _verified(capsys, ledger, new) == messages
    assert _verified(capsys, _alone(ledger, tmp_path / "desk"), new) == messages


def test_a_spend_that_nothing_closes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A spend without a closing line, left by a killed process, is reported."""
    ledger = _ledger(tmp_path)
    first = _release(ledger, tmp_path / "1.json")
    (tmp_path / "mine.jsonl.head").unlink()
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text("".join(lines[:-1]))
    (answer, code) = _verified(capsys, ledger, first)
    assert answer.startswith("no line of mine.jsonl closes spend 1, because the release was ")
    assert "check whether 1.json was changed" in code
    Ledger(ledger).kept()[1].unlink()
    assert _verified(capsys, ledger) == [
        "spend 1 of mine.jsonl counts but has no release: it was interrupted before the "
        "release was written, or the file was lost."
    ]
    assert Ledger(ledger).read().total[0] == pytest.approx(0.5)
    second = _release(ledger, tmp_path / "2.json")  # The ledger still works afterwards.
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
    answer = _verified(capsys, ledger, *(tmp_path / name for name in names))
    no_release = "is not a release of this version of dpviz."
    assert answer == [
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
    (damage, *_) = _verified(capsys, ledger, first)
    assert "ledger mine.jsonl is damaged" in damage
    (missing,) = _verified(capsys, tmp_path / "nowhere")
    assert "ledger nowhere does not exist" in missing
