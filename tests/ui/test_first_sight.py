"""The archive of first views of built-in tables is current, correct and used."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dpviz.core.errors import CannotRun
from dpviz.core.files import app_path
from dpviz.datasets import builtin_tables
from dpviz.lessons import course
from dpviz.lessons.lesson import NamedNumber
from dpviz.report.tables.scrub import frame_epsilons
from dpviz.studies import curves as studied
from pages.ui import ask, board, draws, first_sight, stage
from tests.ui.driver import component, nodes
from tools.first_sight import drawn

pytestmark = pytest.mark.long

COMMAND = "python -m tools.first_sight"
TABLE = "iris"


@pytest.fixture(scope="module")
def archive() -> first_sight._Archive:
    """Return the shipped archive, which must match this code."""
    assert not first_sight.stale(), f"code that draws has changed: run {COMMAND}"
    return first_sight._Archive(first_sight.ARCHIVE)


def page(name: str = "explore", **link: str) -> AppTest:
    """Return a page as a first visitor sees it, without data from other visits."""
    for clear in (st.cache_data, st.cache_resource, ask):
        clear.clear()
    at = AppTest.from_file(str(app_path()), default_timeout=60)
    at.query_params.update(link)
    at.session_state["board.wanted"] = True
    at.switch_page(f"pages/{name}.py")
    return at.run()


def refuse(*args: Any, **named: Any) -> Any:
    """Replace the sampling function by one that refuses to run."""
    raise CannotRun("gaussian", "nothing may be drawn")


def sent_frames(at: AppTest) -> list[dict[str, Any]]:
    """Return the frames that a page sends after its first frame."""
    frames = []
    for node in nodes(at):
        if node.type == "bidi_component" and node.proto.component_name.endswith("dpviz_frames"):
            frames += json.loads(node.proto.json or node.proto.bytes).get("frames", [])
    return frames


# --- of this code -----------------------------------------------------------------------------

SOURCE = '''
"""A module."""
import a
def drawn(x: int) -> int:
    "Return it."
    from b import c
    return x + 1  # one more
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("A module", "Another", True),
        ("import a", "import a, d\nfrom e import (\n    f,\n)", True),
        ("from b import c", "from b.d import c", True),
        ("one more", "two more", True),
        ("Return it", "Return more", True),
        ("x + 1", "x + 2", False),
        ("drawn", "made", False),
    ],
)
def test_words_and_imports_do_not_age_what_ships_and_code_does(
    old: str, new: str, same: bool
) -> None:
    assert old in SOURCE
    source = first_sight.plain(SOURCE.replace(old, new))
    assert (source == first_sight.plain(SOURCE)) is same


# --- true -------------------------------------------------------------------------------------


def alike(one: Any, other: Any) -> bool:
    """Return whether two items agree except for the last digit written."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):  # Kernels differ in the last of the six stored digits.
        return bool(np.isclose(one, other, rtol=2e-5, atol=1e-9))
    return bool(one == other)


def test_what_ships_is_what_would_be_drawn(archive: first_sight._Archive) -> None:
    fresh = drawn([TABLE])
    kinds = {name.partition("/")[0] for name in fresh}
    assert kinds == {"boards", "openings", "snapshots", "expected", "curves", "lines", "kept"}
    for name, item in fresh.items():
        sight = archive.get(name)
        assert sight is not None, name
        assert alike(json.loads(sight), json.loads(item)), name
    # Control: numbers of another epsilon count as different.
    parts = [json.loads(item) for name, item in fresh.items()
             if name.startswith(("openings/", "snapshots/"))]  # fmt: skip
    frames = [frame for part in parts for frame in part]
    assert len(frames) == len(frame_epsilons()) + 2
    near, far = ([one for one in frames if one["epsilon"] == at] for at in (1.0, 1.25))
    assert alike(near[0], near[1])  # The page's own frame equals the slider's frame.
    assert not alike(near[0] | {"epsilon": 0}, far[0] | {"epsilon": 0})


# --- used -------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", builtin_tables())
def test_a_first_look_at_the_board_draws_nothing(
    archive: first_sight._Archive, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del archive
    monkeypatch.setattr(draws, "attempt", refuse)
    monkeypatch.setattr(board, "steps", refuse)
    at = page(table=table)
    assert component(at, "board")["payload"]["frames"][0]["epsilon"] == 1.0
    assert {frame["epsilon"] for frame in sent_frames(at)} == set(frame_epsilons())
    if table == TABLE:  # Control: another seed needs new samples.
        at = page(table=table, seed="1")
        assert "nothing may be drawn" in at.error[0].value
        assert sent_frames(at) == []


@pytest.mark.parametrize("table", builtin_tables())
def test_a_first_look_at_the_curves_draws_nothing(
    archive: first_sight._Archive, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del archive
    with monkeypatch.context() as patch:
        for name in ("along", "expect"):
            patch.setattr(studied, name, refuse)
        at = page("tradeoffs", table=table)
    assert not at.exception
    assert "tradeoffs" in [node.key for node in nodes(at) if node.type == "plotly_chart"]
    if table == TABLE:  # Control: another seed needs new samples.
        monkeypatch.setattr(studied, "along", refuse)
        at = page("tradeoffs", table=table, seed="1")
        assert "nothing may be drawn" in at.error[0].value


def test_a_first_look_at_the_lessons_computes_nothing(
    archive: first_sight._Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    del archive
    monkeypatch.setattr(stage, "scene", refuse)
    ask.clear()
    for lesson in course():
        unknown = {name: NamedNumber(refuse, one.needs) for name, one in lesson.numbers.items()}
        first = replace(lesson, numbers=unknown)
        stage.know(first)
        for step in range(len(first.steps)):
            assert stage._scene(first, step)["kind"] == first.steps[step].scene
            assert first.filled(first.steps[step].say)
    # Control: a teacher's lesson of the same name has numbers of its own.
    extra = replace(
        course()[-1], number=len(course()) + 1,
        numbers={name: NamedNumber(refuse) for name in course()[-1].numbers},
    )  # fmt: skip
    stage.know(extra)
    with pytest.raises(CannotRun):
        _ = extra.facts
