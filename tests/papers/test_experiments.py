"""What every experiment must do, whichever paper it is from."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from dpviz.base.paths import app_path
from dpviz.datasets import remote
from dpviz.mechanisms import all_mechanisms
from dpviz.reproduce import (
    Agreement,
    Effort,
    Measurements,
    Reproduction,
    drawn,
    experiment,
    experiments,
    heading,
    lines_table,
    markdown,
    work,
)
from dpviz.reproduce.run import PartJob
from dpviz.run.store import Store
from tests.papers.conftest import NEVER_THERE

Quick = Callable[[str], Reproduction]
KEYS = list(experiments())
REPORT = app_path().parent / "docs" / "reproduction.md"
FAMILIES = {cls.info.family for cls in all_mechanisms().values()}

pytestmark = pytest.mark.parametrize("key", KEYS)


def test_parts_are_named_and_their_data_is_known(key: str) -> None:
    for effort in Effort:
        parts = experiment(key).parts(effort)
        assert parts
        names = [repr(part) for part in parts]
        assert len(set(names)) == len(names)
        assert {part.data for part in parts if part.data} <= set(remote.sets())
        assert not any("object at 0x" in name for name in names)


def test_a_quick_run_measures_everything_it_draws(key: str, quick: Quick) -> None:
    found = quick(key)
    assert found.complete
    assert set(found.absent) <= NEVER_THERE
    for values in found.found.draws.values():
        assert len(values)
        assert np.isfinite(values).all()
    charts = experiment(key).charts()
    assert [chart.name for chart in drawn(found)] == [chart.name for chart in charts]
    for chart in charts:
        measured = {
            point.series
            for point in found.found
            if point.quantity == chart.quantity and point.x is not None
        }
        names = [series.name for series in chart.series]
        assert set(names) == measured
        assert len(set(names)) == len(names)
        assert {series.family for series in chart.series} <= FAMILIES


def test_lines_say_why(key: str, quick: Quick) -> None:
    found = quick(key)
    assert found.lines
    for line in found.lines:
        assert line.agreement is not Agreement.PENDING
        if line.agreement is Agreement.ABSENT:
            assert found.absent, line  # only where some data is absent
        if line.agreement in (Agreement.AGREES, Agreement.DIFFERS):
            assert line.reported
            assert line.measured
        if line.note:
            assert line.note.endswith("."), line.note
    places = [(line.panel, line.item) for line in found.lines]
    assert len(set(places)) == len(places)
    text = markdown(found)
    for line in found.lines:
        assert line.item.replace("|", "\\|") in text
    assert len(lines_table(found)) == len(found.lines)


def test_lines_can_be_drawn_at_every_moment_of_a_run(key: str, quick: Quick, store: Store) -> None:
    quick(key)
    assert experiment(key).lines(Measurements()) is not None
    whole = next(work(experiment(key), Effort.QUICK, store=store)).reproduction.found
    points = list(whole.draws)
    for count in {1, 2, len(points) // 3, len(points) // 2, len(points) - 1}:
        some = Measurements({point: whole.draws[point] for point in points[:count]})
        lines = experiment(key).lines(some)
        assert len(lines) == len(experiment(key).lines(whole))


def test_a_second_run_computes_nothing_and_one_part_gives_the_same_bytes(
    key: str, quick: Quick, store: Store
) -> None:
    first = quick(key)
    again = next(work(experiment(key), Effort.QUICK, store=store))
    assert again.progress.reused == again.progress.total
    assert again.reproduction.complete
    for point, values in first.found.draws.items():
        np.testing.assert_array_equal(again.reproduction.found.draws[point], values)
    part = next(
        part for part in experiment(key).parts(Effort.QUICK) if part.data not in first.absent
    )
    arrays = PartJob(key, part, 0, "").run()
    other = PartJob(key, part, 1, "").run()
    mine, theirs = Measurements.from_arrays(arrays), Measurements.from_arrays(other)
    for point, values in mine.draws.items():
        np.testing.assert_array_equal(first.found.draws[point][: len(values)], values)
    assert list(mine.draws) == list(theirs.draws)


@pytest.mark.usefixtures("no_data")
def test_without_data_nothing_is_replaced_in_silence(key: str) -> None:
    item = experiment(key)
    step = next(work(item, Effort.QUICK))
    assert step.reproduction.absent == item.data()
    generated = [part for part in item.parts(Effort.QUICK) if not part.data]
    assert step.progress.total == len(generated)
    if not generated:
        for line in step.reproduction.lines:
            assert line.agreement in (Agreement.ABSENT, Agreement.NOT_MEASURED), line
        for name in item.data():
            assert name in markdown(step.reproduction)


def test_the_report_tells_of_it(key: str, quick: Quick) -> None:
    text = REPORT.read_text(encoding="utf-8")
    assert f"### {heading(experiment(key))}\n" in text
    section = text.partition(f"### {heading(experiment(key))}\n")[2].partition("\n### ")[0]
    lines = quick(key).lines
    for line in lines:
        assert f"| {line.item.replace('|', chr(92) + '|')} |" in section, line.item
        # a number that the paper prints; others follow from the runs, which are fewer here
        if line.stated is not None and line.reported == line.stated.text:
            assert line.reported in section
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", section)
    assert len(pictures) == len(experiment(key).charts())
    for picture in pictures:
        assert (REPORT.parent / picture).stat().st_size > 1_000
