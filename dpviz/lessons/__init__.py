"""Lessons, the glossary and a stakeholder's questions: numbers computed, nothing typed."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from dpviz.lessons import scripts as _folder
from dpviz.lessons.lesson import Lesson, Question, State, Step

__all__ = ["Lesson", "Question", "State", "Step", "lessons"]


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return every lesson, in the order of the course: each public module of `lessons` is one."""
    found = [
        importlib.import_module(f"{_folder.__name__}.{module.name}").LESSON
        for module in pkgutil.iter_modules(_folder.__path__)
        if not module.name.startswith("_")
    ]
    return tuple(sorted(found, key=lambda lesson: lesson.number))
