"""Shared files name a table as its user does, without the name or folder of its file."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import dpviz
from dpviz.cli import main
from dpviz.core.files import PACKAGE

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
        ("report.html", ["--report"]),
        ("report.html", ["--report", "--card", "50", "--working-view"]),
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
    file = tmp_path / "named.json"
    assert main([*words, "--name", "our survey", "--out", str(file)]) == 0
    assert json.loads(file.read_text())["name"] == "our survey"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and table.parent != path.parent]
    assert len(files) >= 5
    for path in files:
        assert _tells(path.read_text(errors="replace")) == [], path.name


COMMANDS = {
    "compare": ["compare", "TABLE", *QUICK, "--format", "json"],
    "compare, in words": ["compare", "TABLE", *QUICK],
    "compare in batches": ["compare", "TABLE", *QUICK],
    "sweep": ["sweep", "TABLE", *QUICK, "--over", "k", "--values", "1,2", "--cache", "none",
              "--out", "OUT.csv"],
    "sweep to Parquet": ["sweep", "TABLE", *QUICK, "--over", "k", "--values", "1", "--cache",
                         "none", "--out", "OUT.parquet"],
    "task": ["task", "TABLE", *QUICK, "--learner", "logistic", "--cache", "none", "--out",
             "OUT.csv"],
    "waterfall": ["account", "steps", "TABLE", "--trials", "2", "--format", "json"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize("name", ["", "our survey"])
def test_what_a_command_prints_and_writes_carries_a_name_only_where_one_is_said(
    what: str,
    name: str,
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "batches" in what:
        monkeypatch.setattr("dpviz.datasets.files.TEXT_BYTES", 1)
    out = tmp_path / "out"
    words = [word.replace("TABLE", str(table)).replace("OUT", str(out)) for word in COMMANDS[what]]
    assert main([*words, *(["--name", name] if name else [])]) == 0
    output = capsys.readouterr()
    files = list(tmp_path.glob("out.*"))
    texts = [output.out, *(path.read_bytes().decode("latin-1") for path in files)]
    assert [_tells(text) for text in texts] == [[] for _ in texts]
    for path in files:
        reader = pd.read_csv if path.suffix == ".csv" else pd.read_parquet
        assert set(reader(path).get("table", [])) <= {name or "table"}
    if what in ("compare", "waterfall"):
        answer = json.loads(output.out)
        assert answer["settings"]["table"] == "table"
        assert (answer["dataset"]["name"] if what == "compare" else answer["table"]) == (
            name or "table"
        )
    elif not files:
        assert output.out.startswith(f"{name or 'table'}: ")


def test_answers_of_the_front_door_keep_the_rule(table: Path) -> None:
    options = {"label": "variety", "trials": 2, "mechanisms": "gaussian"}
    for name in ("", "our survey"):
        answers = [
            dpviz.compare(table, **options, name=name),
            dpviz.compare(pd.read_csv(table), **options, name=name),
            dpviz.sweep(table, over="k", values=[1], **options, name=name),
            dpviz.predict(table, mechanisms="gaussian", label="variety", name=name),
            dpviz.least(table, recovery=0.5, **options, name=name),
        ]
        for answer in answers:
            assert _tells(answer.to_json()) == [], answer
            assert _tells(answer.summary()) == [], answer
            assert name in answer.to_json()
