"""What ships for a first look at a built-in table: it is of this code, it is true, it is used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpviz.core.errors import CannotRun
from dpviz.core.files import app_path
from dpviz.datasets import builtin_tables
from dpviz.lessons import course
from dpviz.lessons.lesson import NamedNumber
from dpviz.report.tables.scrub import frame_epsilons
from pages.ui import cached, curve_cache, first_sight, stage
from tests.ui.driver import component, nodes
from tools.first_sight import drawn

COMMAND = "python -m tools.first_sight"
TABLE = "iris"


@pytest.fixture(scope="module")
def archive() -> first_sight._Archive:
    """Return what ships, which has to be of this code."""
    assert not first_sight.stale(), f"code that draws has changed: run {COMMAND}"
    return first_sight._Archive(first_sight.ARCHIVE)


def page(name: str = "explore", **link: str) -> AppTest:
    """Return a page as a first visitor sees it, with nothing kept of other visits."""
    for clear in (cached.st.cache_data, cached.st.cache_resource):
        clear.clear()
    at = AppTest.from_file(str(app_path()), default_timeout=60)
    at.query_params.update(link)
    at.session_state["board.wanted"] = True
    at.switch_page(f"pages/{name}.py")
    return at.run()


def refuse(*args: Any, **named: Any) -> Any:
    """Stand in for what draws."""
    raise CannotRun("gaussian", "nothing may be drawn")


def sent_frames(at: AppTest) -> list[dict[str, Any]]:
    """Return the frames that a page sends after its first."""
    found = []
    for node in nodes(at):
        if node.type == "bidi_component" and node.proto.component_name.endswith("dpviz_frames"):
            found += json.loads(node.proto.json or node.proto.bytes).get("frames", [])
    return found


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
    changed = first_sight.plain(SOURCE.replace(old, new))
    assert (changed == first_sight.plain(SOURCE)) is same


def test_only_files_of_other_bytes_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server asks at its start; to parse all takes a second, and to read them a thirtieth."""
    files = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path, text in zip(files, ("x = 1\n", "y = 2\n", "y = 2\n"), strict=True):
        path.write_text(text)
    monkeypatch.setattr(first_sight, "_sources", lambda: files)
    first_sight.write({}, tmp_path / "one.zip")
    parsed: list[str] = []
    plain = first_sight.plain
    monkeypatch.setattr(first_sight, "plain", lambda text: parsed.append(text) or plain(text))
    assert not first_sight.stale(tmp_path / "one.zip")
    assert parsed == []
    files[0].write_text("x = 1  # one\n")
    files[0] = files[0].rename(tmp_path / "d.py")
    assert not first_sight.stale(tmp_path / "one.zip")
    assert parsed == ["x = 1  # one\n"]
    files[1].write_text("y = 3\n")
    assert first_sight.stale(tmp_path / "one.zip")
    del files[1]
    assert first_sight.stale(tmp_path / "one.zip")


def test_another_code_ships_nothing(
    archive: first_sight._Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    del archive
    assert first_sight._shipped.__wrapped__() is not None
    for name in ("bytes_digest", "code_digest"):
        monkeypatch.setattr(first_sight, name, lambda _: "another")
    assert first_sight._shipped.__wrapped__() is None


# --- true -------------------------------------------------------------------------------------


def alike(one: Any, other: Any) -> bool:
    """Return whether two items say the same, but for the last digit that is written."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):  # six digits are kept of most, and kernels differ in the last
        return bool(np.isclose(one, other, rtol=2e-5, atol=1e-9))
    return bool(one == other)


def test_what_ships_is_what_would_be_drawn(archive: first_sight._Archive) -> None:
    fresh = drawn([TABLE])
    kinds = {name.partition("/")[0] for name in fresh}
    assert kinds == {"boards", "frames", "told", "curves", "lines", "marks"}
    for name, item in fresh.items():
        shipped = archive.get(name)
        assert shipped is not None, name
        assert alike(json.loads(shipped), json.loads(item)), name
    # control: the numbers of another epsilon are seen to be others
    frames = [json.loads(item) for name, item in fresh.items() if name.startswith("frames/")]
    assert len(frames) == len(frame_epsilons()) + 1
    near, far = ([one for one in frames if one["epsilon"] == at] for at in (1.0, 1.25))
    assert alike(near[0], near[1])  # the reader's own, and that of the path
    assert not alike(near[0] | {"epsilon": 0}, far[0] | {"epsilon": 0})


def test_what_is_noted_is_read_again(tmp_path: Path) -> None:
    items = {f"{shelf}/{group}/{name}": f"{shelf}{group}{name}\n".encode()
             for shelf in "ab" for group in "cd" for name in "ef"}  # fmt: skip
    first_sight.write(items, tmp_path / "one.zip")
    first_sight.write(items, tmp_path / "two.zip")
    found = first_sight._Archive(tmp_path / "one.zip")
    assert {name: found.get(name) for name in items} == items
    assert found.get("a/c/g") is None is found.get("x/y/z")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert not first_sight.stale(tmp_path / "one.zip")
    assert first_sight.stale(tmp_path / "three.zip")


# --- used -------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", builtin_tables())
def test_a_first_look_at_the_board_draws_nothing(
    archive: first_sight._Archive, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del archive
    monkeypatch.setattr(cached, "comparison", refuse)
    at = page(table=table)
    assert component(at, "board")["payload"]["frames"][0]["epsilon"] == 1.0
    assert {frame["epsilon"] for frame in sent_frames(at)} == set(frame_epsilons())
    if table == TABLE:  # control: another seed has to be drawn
        at = page(table=table, seed="1")
        assert "nothing may be drawn" in at.error[0].value
        assert sent_frames(at) == []


@pytest.mark.parametrize("table", builtin_tables())
def test_a_first_look_at_the_curves_draws_nothing(
    archive: first_sight._Archive, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del archive
    drawing: list[str] = []

    def point(*args: Any) -> str:
        drawing.append(args[3].text)
        return "nothing may be drawn"

    monkeypatch.setattr(curve_cache, "_point", point)
    with monkeypatch.context() as patch:
        patch.setattr(curve_cache, "predicted_at", refuse)
        patch.setattr(curve_cache.curves, "marks", refuse)
        at = page("tradeoffs", table=table)
    assert not at.exception
    assert not drawing
    assert "tradeoffs" in [node.key for node in nodes(at) if node.type == "plotly_chart"]
    if table == TABLE:  # control: another seed has to be drawn
        page("tradeoffs", table=table, seed="1")
        assert drawing


def test_a_first_look_at_the_lessons_computes_nothing(
    archive: first_sight._Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    del archive
    monkeypatch.setattr(stage, "scene", refuse)
    cached.st.cache_resource.clear()
    for lesson in course():
        unknown = {name: NamedNumber(refuse, one.needs) for name, one in lesson.numbers.items()}
        first = replace(lesson, numbers=unknown)
        stage.know(first)
        for step in range(len(first.steps)):
            assert stage._scene(first, step)["kind"] == first.steps[step].scene
            assert first.filled(first.steps[step].say)
    # control: a teacher's own lesson of the same name has numbers of its own
    own = replace(
        course()[-1], number=len(course()) + 1,
        numbers={name: NamedNumber(refuse) for name in course()[-1].numbers},
    )  # fmt: skip
    stage.know(own)
    with pytest.raises(CannotRun):
        _ = own.facts
