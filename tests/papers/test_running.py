"""Runs of an experiment: parts, workers, interruptions, and the inputs of a stored part."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpviz.papers
from dpviz.core.seeding import generator
from dpviz.papers import experiment
from dpviz.papers import run as running
from dpviz.papers.experiment import Effort, Experiment, Info, Part
from dpviz.papers.measurements import Found, Measurements, Point
from dpviz.papers.run import Findings, kept, reproduce, work
from dpviz.papers.said import Agreement, Below, Look, Said, at
from dpviz.papers.source import digest_of
from dpviz.simulation import store
from dpviz.simulation.store import Store

Quick = Callable[[str], Findings]
WITH_WORKERS = "jiang_table1"


class Piece(Part):
    """One number of a synthetic experiment."""

    number: int = 0


class MadeUp(Experiment):
    """Twelve parts of a few samples each."""

    info = Info("Made up", "Nobody 2000", "Table 0", "Nothing.", ("none",), order=0)
    ran: list[int]

    def __init__(self) -> None:
        self.ran = []

    def parts(self, effort: Effort) -> list[Part]:
        return [Piece(number=number) for number in range(12)]

    def run(self, part: Part, shared: Any, seed: int) -> Measurements:
        assert isinstance(part, Piece)
        self.ran.append(part.number)
        rng = generator(seed, "made up", part.number)
        # Two parts of the experiment measure each point, so their samples are joined.
        return Measurements({Point("here", "line", "height", part.number // 2): rng.normal(size=3)})

    @property
    def said(self) -> list[Said]:
        look = Look(Below(at("line", "height", 0.0), 100.0), ["here"])
        return [Said("first", self.key, "Table 0", "first", "low", "", "", "", "", look)]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    item = MadeUp()
    monkeypatch.setattr(dpviz.papers, "experiment", lambda key: item)
    return item


def same(one: Measurements, two: Measurements) -> None:
    assert list(one.draws) == list(two.draws)
    for point, values in one.draws.items():
        np.testing.assert_array_equal(values, two.draws[point])


def test_stopping_ten_times_loses_no_part_and_repeats_none(made_up: MadeUp, tmp_path: Path) -> None:
    keep = Store(tmp_path)
    for stop in range(1, 11):
        with closing(work(made_up, Effort.QUICK, store=keep)) as steps:
            for step in steps:
                assert not step.reproduction.complete
                if step.progress.done == stop:
                    break
        assert kept(made_up, Effort.QUICK, keep).progress.done == stop
    whole = reproduce(made_up, Effort.QUICK, store=keep)
    assert made_up.ran == list(range(12))
    assert whole.complete
    fresh = reproduce(made_up, Effort.QUICK)
    same(whole.found, fresh.found)
    assert all(len(values) == 6 for values in fresh.found.draws.values())


def test_an_unfinished_run_says_so_and_a_finished_one_does_not(made_up: MadeUp) -> None:
    with closing(work(made_up, Effort.QUICK)) as steps:
        first = next(steps).reproduction
        assert [(line.item, line.agreement) for line in first.lines] == [
            ("first", Agreement.PENDING)
        ]  # Without a report or a measurement, a claim does not add a line.
        second = next(steps).reproduction
        assert [line.agreement for line in second.lines] == [Agreement.AGREES]


def test_answers_rest_on_the_means_of_the_table() -> None:
    draws = generator(0, "means").normal(size=9)
    points = Measurements(
        {
            Point("a", "b", "c", None): draws,
            Point("a", "b", "c", 3): draws[:2],  # A store also accepts whole numbers here.
            Point("a", "b", "d", 0.5): draws[:1],
        }
    )
    one, other = Found.of(points), Found.of(points.table())
    assert one.means == other.means
    assert list(map(str, one.means)) == list(map(str, other.means))
    assert one.means != Found.of(Measurements({Point("a", "b", "c", None): draws})).means


def test_another_seed_another_source_and_another_module_are_computed_again(
    made_up: MadeUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = Store(tmp_path)
    reproduce(made_up, Effort.QUICK, store=keep)
    assert kept(made_up, Effort.QUICK, keep).progress.done == 12
    assert kept(made_up, Effort.QUICK, keep, seed=1).progress.done == 0
    monkeypatch.setattr(running, "source_digest", lambda: "another")
    assert kept(made_up, Effort.QUICK, keep).progress.done == 0
    monkeypatch.undo()
    monkeypatch.setattr(dpviz.papers, "experiment", lambda key: made_up)
    assert kept(made_up, Effort.QUICK, keep).progress.done == 12
    monkeypatch.setattr(running, "code_digest", lambda experiment: "another")
    assert kept(made_up, Effort.QUICK, keep).progress.done == 0


@pytest.mark.parametrize(
    ("changed", "old", "new", "same"),
    [
        ("chaudhuri/figure1.py", "THRESHOLD = 0.8", "THRESHOLD = 0.9", True),
        ("xu/figure5.py", "SOME = 20", "SOME = 30", True),  # Figure 1 does not import this file.
        ("xu/_said.py", "Monotone(THETA, -1)", "Monotone(THETA, 1)", True),
        ("said.py", "SEPARATED = 3.0", "SEPARATED = 4.0", True),
        ("xu/_shared.py", '"""Return n, d and the paper', '"""Return d, n and the paper', True),
        ("xu/_shared.py", "ALPHA = 0.85", "ALPHA = 0.9", False),
        ("xu/_shared.py", "EPSILON = 1.0", "EPSILON = 2.0", False),
    ],
)
def test_a_kept_part_is_that_of_the_code_that_measures_and_of_no_other(
    changed: str, old: str, new: str, same: bool, tmp_path: Path
) -> None:
    """A change to other experiments' statements, answers or charts makes no part run again."""
    room = tmp_path / "papers"
    shutil.copytree(Path(str(running.__file__)).parent, room)

    def digest() -> str:
        return digest_of(room / "xu", "figure1", "XuFigure1")

    first = digest()
    path = room / changed
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert (digest() == first) is same
    # The core's digest omits experiments, so that a change of one leaves all others valid.
    assert "papers" in store._NOT_SOURCE


def test_two_workers_give_the_same_bytes(quick: Quick, tmp_path: Path) -> None:
    alone = quick(WITH_WORKERS)
    keep = Store(tmp_path)
    together = reproduce(experiment(WITH_WORKERS), Effort.QUICK, store=keep, workers=2)
    same(together.found, alone.found)
    assert len(list(tmp_path.rglob("*.cell"))) == len(experiment(WITH_WORKERS).parts(Effort.QUICK))
