"""Limits of a server: caps from the environment, work that ends, the public demo."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dpviz.core.cancelling import cancelled_by, check_cancelled
from dpviz.core.settings import Settings
from dpviz.preparation.load import load_prepared
from dpviz.simulation.cells import plan
from dpviz.simulation.compare import run_cell
from pages.ui import ask as asking
from pages.ui import limits
from tests.ui.driver import errors, keys, nodes, notices, start


def test_the_public_demo_takes_no_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_PUBLIC", "1")
    at = start(table="upload", trials="200", m="gaussian")
    assert errors(at) == []
    assert "upload" not in keys(at)
    assert any(
        "draws = 200 is too large: this server simulates at most 50 releases. Showing 50." in said
        for said in notices(at)
    )
    assert any("face, school; got 'upload'. Showing digits" in said for said in notices(at))
    assert at.session_state["view"]["table"] == "digits"


def test_work_is_told_four_times_a_second_and_can_be_stopped_at_every_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Messages come four times a second, because each message makes the browser render again."""
    now, times, looks = 0.0, list[float](), list[float]()
    monkeypatch.setattr(asking, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(limits, "look_up", lambda: looks.append(now))
    bar = asking._Line("what", "Drawing")
    bar._bar = SimpleNamespace(progress=lambda share, words: times.append(now))  # type: ignore[assignment]
    for step in range(1, 193):  # These steps take three seconds in total.
        now = step / 64
        bar(step / 192)
    assert len(looks) == 192
    assert times == [0.5 + 0.25 * number for number in range(11)]


class Left(Exception):
    """Raised when the visitor has gone."""


@pytest.mark.parametrize(
    ("variant", "k"),
    # At k 40, ppca samples the 21 directions left exactly and at once, so use k 30.
    [("ppca[sweeps=2000]", 30), ("eigenvector_sampling", 40), ("kapralov_talwar", 40)],
)
def test_long_work_looks_up_again_and_again(variant: str, k: int) -> None:
    """Every sampler checks for a stop between its steps; the first check that raises ends it."""
    settings = Settings(table="digits", k=k, trials=3, delta=1e-6)
    table = load_prepared(settings)
    looks = 0

    def act() -> None:
        nonlocal looks
        looks += 1
        if looks > 30:
            raise Left

    (cell,) = plan(table, replace(settings, mechanisms=(variant,))).cells
    with cancelled_by(act), pytest.raises(Left):
        run_cell(cell, table)
    assert looks == 31


def test_nobody_is_asked_outside() -> None:
    check_cancelled()  # Without a canceller, this call raises no exception.
    with cancelled_by(lambda: None):
        check_cancelled()
    check_cancelled()


def test_a_deadline_ends_work() -> None:
    def work() -> None:
        while True:
            check_cancelled()

    with limits.looking_up(), limits.deadline(0.05), pytest.raises(limits.TooSlow):
        work()


def test_what_takes_too_long_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHUNK_LIMIT", 0.3)
    at = start(table="digits", k="30", trials="5", m="gaussian,ppca[sweeps=2000]")
    assert errors(at) == []
    texts = [
        getattr(node, "value", "") for node in nodes(at) if node.type in ("caption", "markdown")
    ]
    assert any(
        "work would take" in str(text) and "PPCA (sweeps 2000)" in str(text) for text in texts
    )
