"""Shipped results of full runs, the summary of all claims, and the report from both."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reproduction import own_report, with_headline
from dpviz.cli import main
from dpviz.core.files import app_path
from dpviz.papers import all_shipped, experiment, experiments
from dpviz.papers.experiment import Effort
from dpviz.papers.measurements import Measurements
from dpviz.papers.report import PAPERS, SUMMARY_KEYS, drawn
from dpviz.papers.run import Findings
from dpviz.papers.said import MEANINGS, said_of
from dpviz.papers.shipped import ship, shipped
from dpviz.papers.source import digest_of

DOCS = app_path().parent / "docs"

# --- what ships -------------------------------------------------------------------------------

SOURCE = """
from a import b
LINES = (Series("x"),)
DRAWS = 100

@dataclass(frozen=True)
class Piece(Part):
    count: int = 1

class Made(Experiment):
    info = "what the paper did"

    def charts(self) -> tuple[Chart, ...]:
        return (Chart("one", series=LINES),)

    def run(self) -> int:
        \'\'\'Return a number.\'\'\'
        return drawn(Piece().count)

def drawn(of: int = 1) -> int:
    assert of < 2
    found: int = DRAWS * of
    return found

def unused() -> int:
    return 3
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('Series("x")', 'Series("y")', True),
        ('Chart("one"', 'Chart("two"', True),
        ("what the paper did", "something else", True),
        ("Return a number.", "Return another.", True),
        ("return 3", "return 4", True),
        ("from a import b", "from a import (\n    b,\n)", True),
        ("of: int = 1", "of: float = 1", True),
        ("@dataclass(frozen=True)\n", "", True),
        ("count: int = 1", "count: int = 2", False),
        ("found: int", "found: float", True),
        ("assert of < 2", "assert of > 0", True),
        ("of: int = 1", "of: int = 2", False),
        ("DRAWS = 100", "DRAWS = 200", False),
        ("DRAWS * of", "DRAWS * of + 1", False),
    ],
)
def test_words_and_looks_do_not_age_a_result_and_what_measures_does(
    old: str, new: str, same: bool, tmp_path: Path
) -> None:
    assert old in SOURCE
    digests = []
    for text in (SOURCE, SOURCE.replace(old, new)):
        (tmp_path / "made.py").write_text(text, encoding="utf-8")
        digests.append(digest_of(tmp_path, "made", "Made"))
    assert (digests[0] == digests[1]) is same


def test_what_ships_reads_back_as_it_was_written(tmp_path: Path) -> None:
    item = experiment("jiang_theorem5")
    result = shipped(item)
    assert result is not None
    draws = Measurements()
    part = item.parts(Effort.QUICK)[0]
    draws.add(item.run(part, None, 0))
    run = Findings(item, Effort.FULL, 0, draws, (), True)
    ship(run, "2001-02-03", tmp_path)
    again = shipped(item, tmp_path)
    assert again is not None
    assert again.claims == run.claims
    assert [(x.panel, x.item, x.measured, x.agreement, x.note) for x in again.lines] == [
        (x.panel, x.item, x.measured, x.agreement, x.note) for x in run.lines
    ]
    assert list(again.points.columns) == list(run.points.columns)
    np.testing.assert_allclose(again.points["mean"], run.points["mean"], rtol=1e-5)
    assert again.points["x"].isna().equals(run.points["x"].isna())
    assert again.current
    assert again.made.date == "2001-02-03"


def test_only_a_full_run_ships(tmp_path: Path) -> None:
    item = experiment("jiang_theorem5")
    quick = Findings(item, Effort.QUICK, 0, Measurements(), (), True)
    with pytest.raises(ValueError, match="full run"):
        ship(quick, "2001-02-03", tmp_path)
    assert shipped(item, tmp_path) is None


def test_a_full_run_that_was_stopped_ships_as_such(tmp_path: Path) -> None:
    item = experiment("jiang_theorem5")
    ship(Findings(item, Effort.FULL, 0, Measurements(), (), False), "2001-02-03", tmp_path)
    partial = shipped(item, tmp_path)
    assert partial is not None
    assert not partial.complete
    assert "stopped before its end" in partial.words
    assert "not yet measured" in {claim.answer for claim in partial.claims}


# --- the summary ------------------------------------------------------------------------------

LEAST_CLAIMS = 195


@pytest.mark.usefixtures("no_data")
def test_the_summary_has_one_row_a_claim_with_quote_coverage_and_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reproduce", "--summary", "--format", "json", "--cache", "none"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["paper"] for row in rows} == set(PAPERS)
    assert len(rows) >= LEAST_CLAIMS
    for row in rows:
        assert set(row) == set(SUMMARY_KEYS)
        assert row["verdict"] in MEANINGS
        assert row["reason"].endswith(".")
        assert 0 < len(row["quote"]) <= 120
        assert row["coverage"]
    for paper in PAPERS.values():
        keys = [row["key"] for row in rows if row["paper"] == paper.name]
        assert sorted(keys) == sorted(one.key for one in said_of(paper.folder))
    # The test fixes these answers of the papers' claims, because they are known beyond doubt.
    answers = {(row["experiment"].split("_")[0], row["key"]): row["verdict"] for row in rows}
    assert answers["jiang", "theorem-4"] == "not reproduced"
    assert answers["xu", "theorem-2"] == "not reproduced"
    assert answers["mvg", "theorem-9"] == "not reproduced"
    assert answers["chaudhuri", "ninety-degrees"] == "reproduced"


def test_the_headline_of_the_readme_is_that_of_what_ships() -> None:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    results = all_shipped()
    assert with_headline(text, results) == text
    counted_claims = [claim for one in results for claim in one.claims if claim.counts]
    assert f"{len(counted_claims)} claims: " in text


@pytest.mark.parametrize("key", list(experiments()))
def test_results_ship_and_the_report_is_written_from_them(key: str) -> None:
    result = shipped(experiment(key))
    assert result is not None
    assert result.complete
    assert result.effort is Effort.FULL
    assert result.current, f"{key} has changed since: python -m benchmarks.reproduction docs"
    page = DOCS / "reproduction" / f"{key}.md"
    assert page.read_text(encoding="utf-8") == own_report(result)
    # The report writes numbers as charts do: 1.9e-5, not 1.9e-05.
    assert re.search(r"\de[-+]?0\d|e\+", own_report(result)) is None
    charts = drawn(result)
    assert len(charts) == len(experiment(key).charts())
    for chart in charts:
        assert (page.parent / f"{key}-{chart.name}.png").stat().st_size > 1_000
    known_claims = [(claim.place, claim.item) for claim in result.claims]
    nothing = Findings(experiment(key), Effort.FULL, 0, Measurements(), result.absent, False)
    assert known_claims == [(claim.place, claim.item) for claim in nothing.claims]
