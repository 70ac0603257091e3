"""Rules for every experiment of any paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpviz.core.files import app_path
from dpviz.datasets import remote
from dpviz.mechanisms import all_mechanisms
from dpviz.papers import experiment, experiments
from dpviz.papers.experiment import Effort
from dpviz.papers.measurements import Measurements
from dpviz.papers.report import PAPERS, drawn, lines_table, markdown
from dpviz.papers.run import Findings, PartJob, work
from dpviz.papers.said import Agreement, ClaimAnswer
from dpviz.simulation.store import Store
from tests.papers.conftest import NEVER_THERE

Quick = Callable[[str], Findings]
KEYS = list(experiments())
DOCS = app_path().parent / "docs"
WITHOUT_CLAIMS = {
    "jiang_sample_growth", "chaudhuri_standin", "chaudhuri_what_was_run", "mvg_what_was_run",
}  # fmt: skip
"""Experiments whose measurements also serve other experiments."""

# Run all tests of an experiment in a row: mostly the same process runs them and does the quick run
# once. Any second process finds the run in the store.
pytestmark = pytest.mark.parametrize("key", KEYS, scope="module")


def test_parts_are_named_and_their_data_is_known(key: str) -> None:
    for effort in Effort:
        parts = experiment(key).parts(effort)
        assert parts
        names = [repr(part) for part in parts]
        assert len(set(names)) == len(names)
        assert {part.data for part in parts if part.data} <= set(remote.sets())
        assert not any("object at 0x" in name for name in names)


def test_a_quick_run_measures_everything_it_draws(key: str, quick: Quick) -> None:
    result = quick(key)
    assert result.complete
    assert set(result.absent) <= NEVER_THERE
    for values in result.found.draws.values():
        assert len(values)
        assert np.isfinite(values).all()
    charts = experiment(key).charts()
    assert [chart.name for chart in drawn(result)] == [chart.name for chart in charts]
    for chart in charts:
        with_points = {
            point.series
            for point in result.found
            if point.quantity == chart.quantity and point.x is not None
        }
        names = [series.name for series in chart.series]
        assert set(names) == with_points
        assert len(set(names)) == len(names)
        assert {series.key for series in chart.series} <= {"", *all_mechanisms()}


def test_every_claim_has_one_answer_a_reason_and_lines(key: str, quick: Quick) -> None:
    result = quick(key)
    text = markdown(result)
    for claim in result.claims:
        assert claim.answer is not ClaimAnswer.PENDING
        assert claim.place
        assert claim.reason.endswith(".")
        assert "\n" not in claim.reason
        assert f"**{claim.answer}**. {claim.reason}".replace("|", "\\|") in text
        if claim.answer is not ClaimAnswer.NOT_HERE:
            assert claim.measured, claim
    places = [(claim.place, claim.item) for claim in result.claims]
    assert len(set(places)) == len(places)
    assert bool(result.claims) == (key not in WITHOUT_CLAIMS)
    assert result.experiment.info.paper in PAPERS
    for line in result.lines:
        assert line.agreement is not Agreement.PENDING
        if line.agreement in (Agreement.AGREES, Agreement.DIFFERS):
            assert line.reported
            assert line.measured
    assert len(lines_table(result)) == len(result.lines)
    # Before any measurement, a claim has no answer.
    start = Findings(result.experiment, Effort.QUICK, 0, Measurements(), result.absent, False)
    for claim in start.claims:
        assert claim.answer in (ClaimAnswer.PENDING, ClaimAnswer.NOT_HERE), claim
    assert len(start.claims) == len(result.claims)


def test_claims_can_be_answered_at_every_moment_of_a_run(key: str, quick: Quick) -> None:
    whole = quick(key)
    points = list(whole.found.draws)
    for count in {1, 2, len(points) // 3, len(points) // 2, len(points) - 1}:
        some = Measurements({point: whole.found.draws[point] for point in points[:count]})
        part = Findings(whole.experiment, Effort.QUICK, 0, some, whole.absent, False)
        assert len(part.claims) == len(whole.claims)
        assert len(part.lines) >= len(whole.claims)


def test_a_second_run_computes_nothing_and_one_part_gives_the_same_bytes(
    key: str, quick: Quick, store: Store
) -> None:
    first = quick(key)
    again = next(work(experiment(key), Effort.QUICK, store=store))
    assert again.progress.reused == again.progress.total
    assert again.reproduction.complete
    timed_keys = experiment(key).timed  # Only measured times may differ between two runs.
    for point, values in first.found.draws.items():
        np.testing.assert_array_equal(again.reproduction.found.draws[point], values)
    part = next(
        part for part in experiment(key).parts(Effort.QUICK) if part.data not in first.absent
    )
    arrays = PartJob(key, part, 0, "").run()
    other = PartJob(key, part, 1, "").run()
    mine, theirs = Measurements.from_arrays(arrays), Measurements.from_arrays(other)
    for point, values in mine.draws.items():
        if point.quantity not in timed_keys:
            np.testing.assert_array_equal(first.found.draws[point][: len(values)], values)
    assert list(mine.draws) == list(theirs.draws)


@pytest.mark.usefixtures("no_data")
def test_without_data_nothing_is_replaced_in_silence(key: str) -> None:
    item = experiment(key)
    step = next(work(item, Effort.QUICK))
    assert step.reproduction.absent == item.data()
    parts = [part for part in item.parts(Effort.QUICK) if not part.data]
    assert step.progress.total == len(parts)
    if not parts:
        for claim in step.reproduction.claims:
            # If public facts decide a claim, its text names their tables: all, or those with facts.
            certain = "every table" in claim.reason or "stand in" in claim.measured
            for line in claim.lines:
                if key in ("xu_figure3", "xu_figure4") and line.item.startswith("eta"):
                    continue  # The bound on eta depends on d alone; see test_xu.py.
                assert certain or line.agreement in (Agreement.ABSENT, Agreement.NOT_MEASURED), line
        for name in item.data():
            assert name in markdown(step.reproduction)
