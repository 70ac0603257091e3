"""The tool finds private idiom, a long sentence, and a commit subject without a verb."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tools import sentences, words

ROOT = Path(__file__).resolve().parents[2]
LONG = "word " * 26
PLAIN = {
    "README.md": "Those of tests stay as they were.\n\nYou can publish this table.\n",
    "pages/start.py": '"""Draw the page."""\n\nTITLE = "What can you publish safely?"\n',
}


def git(root: Path, *arguments: str) -> None:
    options = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "core.hooksPath=/dev/null"]
    subprocess.run(["git", *options, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with one old fault on its main branch, and another branch checked out."""
    for name, text in PLAIN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "scan.bin").write_bytes(b"\x00\xf9")
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "What was there before")
    git(tmp_path, "checkout", "-b", "change")
    return tmp_path


RELAPSES = {
    "idiom": ("README.md", "The exact result stays in the house.\n"),
    "docs": ("README.md", f"This {LONG}ends.\n"),
    "dangling": ("README.md", "The purpose is that of the ledger.\n"),
    "opening": ("README.md", "What was drawn cannot be taken back.\n"),
    "interface": ("pages/start.py", f'TEXT = "This {"word " * 20}ends."\n'),
    "error": ("dpviz/core/x.py", 'raise ValueError(f"{x} was made anew for you")\n'),
    "docstring": ("tools/x.py", '"""Return the rows that are at hand."""\n'),
    "comment": ("tests/x.py", "# these two cannot be told apart\n"),
}


@pytest.mark.parametrize("name", RELAPSES)
def test_a_planted_relapse_fails(
    name: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, text = RELAPSES[name]
    (checkout / path).parent.mkdir(parents=True, exist_ok=True)
    (checkout / path).write_text(PLAIN.get(path, "") + text)
    assert words.main(["--root", str(checkout)]) == 1
    message = capsys.readouterr().err
    assert len(re.findall(r"^\S+:\d+: ", message, re.MULTILINE)) == 1, message
    assert message.startswith(f"{path}:")
    assert "Those of tests" not in message  # An old fault is not reported.
    (checkout / path).write_text(PLAIN.get(path, ""))  # Control: the new fault is removed.
    assert words.main(["--root", str(checkout)]) == 0


def test_a_sentence_that_only_moved_is_not_new(checkout: Path) -> None:
    (checkout / "README.md").write_text("You can publish this table.\n")
    (checkout / "docs").mkdir()
    git(checkout, "rm", "-q", "scan.bin")  # Binary files contain no sentences.
    (checkout / "docs" / "tests.md").write_text("Those of tests\nstay as they were.\n")
    assert words.main(["--root", str(checkout)]) == 0


@pytest.mark.parametrize(
    ("subject", "good"),
    [
        ("Draw the board once", True),
        ("Address two findings of the audit", True),
        ("Feed the reader by blocks", True),
        ("Add " + "x" * 68, True),
        ("Add " + "x" * 69, False),
        ("Added a page", False),
        ("Adding a page", False),
        ("Adds a page", False),
        ("The first looks are made again", False),
        ("What finishes a figure needs no place in the gallery", False),
        ("Add a page.", False),
        ("Make the first looks anew", False),
    ],
)
def test_commit_subjects(subject: str, good: bool, checkout: Path) -> None:
    message = checkout / "message"
    message.write_text(f"{subject}\n\nWhat was there is gone anew.\n")
    assert words.main(["--commit-msg", str(message)]) == int(not good)
    message.unlink()
    git(checkout, "commit", "--allow-empty", "-m", subject)
    assert words.main(["--root", str(checkout)]) == int(not good)


def test_every_surface_of_files_can_be_drawn() -> None:
    surfaces = {
        one.surface
        for name in ("README.md", "pages/decide.py", "dpviz/datasets/reader.py")
        for one in sentences.sentences(name, (ROOT / name).read_text(encoding="utf-8"))
    }
    assert surfaces == {*sentences.SURFACES} - {"commits"}
