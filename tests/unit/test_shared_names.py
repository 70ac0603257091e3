"""Files that are handed on call a table what its user calls it: no name, no folder of its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpviz.base.paths import PACKAGE
from dpviz.cli import main

DATA = PACKAGE.parent / "data"
QUICK = ["--label", "variety", "--trials", "2", "--mechanism", "gaussian"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "oncology-clinic-7"
    folder.mkdir()
    path = folder / "stage4-patients.csv"
    path.write_bytes((DATA / "example.csv").read_bytes())
    (folder / "stage4-bounds.csv").write_text(
        "feature,low,high\nmass_g,0,400\ndiameter_mm,0,200\nfirmness_n,0,200\n"
        "sugar_brix,0,40\nacidity_ph,0,14\n"
    )
    return path


def _tells(text: str) -> list[str]:
    return [word for word in ("oncology", "stage4") if word in text]


@pytest.mark.parametrize(
    ("out", "more"),
    [
        ("board.html", ["--domain", "box", "--bounds"]),
        ("report.html", ["--report", "--card", "50"]),
        ("view.py", []),
        ("view.ipynb", []),
    ],
)
def test_a_board_a_report_a_card_and_a_script_carry_no_file_name(
    table: Path, tmp_path: Path, out: str, more: list[str]
) -> None:
    if more[-1:] == ["--bounds"]:
        more = [*more, str(table.parent / "stage4-bounds.csv")]
    for name in ([], ["--name", "our survey"]):
        target = tmp_path / f"{len(name)}-{out}"
        assert main(["board", str(table), *QUICK, *more, *name, "--out", str(target)]) == 0
        text = target.read_text()
        assert _tells(text) == []
        if out.endswith(".html"):
            assert f"{name[1] if name else 'table'}: what" in text


def test_a_release_its_copy_and_its_ledger_carry_no_file_name(table: Path, tmp_path: Path) -> None:
    ledger, out = tmp_path / "ledger", tmp_path / "out.json"
    assert main(["ledger", "new", str(ledger), "--limit", "3,1e-5"]) == 0
    words = ["release", str(table), "--schema", str(DATA / "example-schema.json")]
    words += ["--row-bound", "60", "--delta", "1e-6", "--epsilon", "0.5"]
    words += ["--ledger", str(ledger)]
    assert main([*words, "--out", str(out)]) == 0
    assert json.loads(out.read_text())["name"] == "table"
    named = tmp_path / "named.json"
    assert main([*words, "--name", "our survey", "--out", str(named)]) == 0
    assert json.loads(named.read_text())["name"] == "our survey"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and table.parent != path.parent]
    assert len(files) >= 5
    for path in files:
        assert _tells(path.read_text(errors="replace")) == [], path.name


def test_json_of_a_comparison_says_no_folder(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(table), *QUICK, "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert _tells(text) == ["stage4"]  # the file's own name, on the user's own screen
    assert json.loads(text)["settings"]["table"] == "stage4-patients.csv"
