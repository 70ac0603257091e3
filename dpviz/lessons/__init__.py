"""Lessons, glossary and a stakeholder's questions; every number is computed, not typed."""

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
    # Import on demand: every page needs this package, but lessons also import slow audits.
    if name in __all__:
        return getattr(import_module("dpviz.lessons.lesson"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


OWN = "DPVIZ_LESSONS"
"""Environment variable for the folder of a teacher's own lessons, listed after the course."""


@cache
def course() -> tuple[Lesson, ...]:
    """Return the built-in lessons in order: one for each file of the ``scripts`` folder."""
    from dpviz.lessons.script import FOLDER, read_folder

    return read_folder(FOLDER)


@cache
def lessons(language: str = "en") -> tuple[Lesson, ...]:
    """Return the built-in course, followed by the teacher's own lessons.

    Parameters
    ----------
    language : str
        Language of the course, in `dpviz.lessons.languages.names`; own lessons stay as written.

    Raises
    ------
    InvalidSetting
        If the language is not available.
    dpviz.lessons.script.InvalidLesson
        If the folder that the variable `OWN` names holds a file that is not a lesson.
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
