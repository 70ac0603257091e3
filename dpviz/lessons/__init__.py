"""Lessons, the glossary and a stakeholder's questions: numbers computed, nothing typed."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpviz.lessons.lesson import Lesson, Question, ShownQuestion, State, Step

__all__ = ["Lesson", "Question", "ShownQuestion", "State", "Step", "course", "lessons"]


def __getattr__(name: str) -> Any:
    # On demand: every page reads a stakeholder's answers, and lessons bring audits with them.
    if name in __all__:
        return getattr(import_module("dpviz.lessons.lesson"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


OWN = "DPVIZ_LESSONS"
"""Names the folder of a teacher's own lessons; they follow the course."""


@cache
def course() -> tuple[Lesson, ...]:
    """Return the lessons that come along, in their order: each file of the folder is one."""
    from dpviz.lessons.script import FOLDER, read_folder

    return read_folder(FOLDER)


@cache
def lessons(language: str = "en") -> tuple[Lesson, ...]:
    """Return the course, and after it a teacher's own lessons.

    Parameters
    ----------
    language : str
        Of the course, one of `dpviz.lessons.languages.names`; own lessons stay as they are written.

    Raises
    ------
    InvalidSetting
        If there is no such language.
    dpviz.lessons.script.InvalidLesson
        If the folder that `OWN` names has a file that is none.
    """
    from dpviz.lessons.languages import require, translated
    from dpviz.lessons.script import read_folder

    require(language)
    here = tuple(translated(one, language) for one in course())
    own = os.environ.get(OWN, "").strip()
    if not own:
        return here
    more = read_folder(Path(own).expanduser())
    return (
        *here,
        *(replace(one, number=len(here) + one.number, language=language) for one in more),
    )
