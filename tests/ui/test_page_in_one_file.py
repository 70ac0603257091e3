"""A page is one file: the menu, its glossary, its link and the shared settings follow from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pages.ui import menu
from tests.ui.driver import ROOT, errors, keys, start

PLANTED = '''"""Planted: a page that a test adds."""

PAGE = {
    "title": "Planted",
    "icon": ":material/science:",
    "place": 125,
    "group": "Reference",
    "term": "recovery",
    "own_settings": OWN,
}

import streamlit as st

from pages.ui import shell

current = shell.through_entry()
st.title("Planted", anchor=False)
st.write(f"epsilon {current.settings.epsilon:g}")
'''


@pytest.fixture(params=[False, True])
def planted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put one more file beside the pages, in a copy of their folder."""
    folder: Path = request.getfixturevalue("tmp_path") / "pages"
    shutil.copytree(ROOT / "pages", folder, ignore=shutil.ignore_patterns("ui", "__pycache__"))
    source = PLANTED.replace("OWN", str(request.param))
    (folder / "planted.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(menu, "FOLDER", folder)
    return str(folder / "planted.py")


def test_one_file_is_all_that_a_page_takes(planted: str) -> None:
    own = menu.info_of("Planted").own_settings
    titles = [info.title for info in menu.infos() if info.group == "Reference"]
    assert titles.index("Papers") < titles.index("Planted") < titles.index("Tasks")
    at = start("explore", table="iris", trials="5", epsilon="0.5")
    at.switch_page(planted).run()
    assert errors(at) == []
    assert "epsilon 0.5" in " ".join(box.value for box in at.main.markdown)
    assert ("view.epsilon.slider" in keys(at)) != own
    assert errors(at.switch_page(planted.replace("planted", "explore")).run()) == []


def test_what_a_page_says_is_read_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(menu, "FOLDER", tmp_path)
    for source, message in (
        ('"""A page."""\n', "says no PAGE"),
        ('PAGE = {"title": "A"}\n', "has title, icon, place"),
        ('PAGE = {"title": "A", "icon": "b", "place": 1, "colour": 2}\n', "has title, icon"),
    ):
        menu._walked.cache_clear()
        (tmp_path / "odd.py").write_text(source, encoding="utf-8")
        with pytest.raises(RuntimeError, match=message):
            menu.infos()
    menu._walked.cache_clear()


def test_pages_have_titles_and_places_of_their_own() -> None:
    found = menu.infos()
    assert len({info.title for info in found}) == len({info.place for info in found}) == len(found)
    assert [info.title for info in found if info.first] == ["Explore"]
