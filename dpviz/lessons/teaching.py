"""A plan for a class, written from the lessons: every number in it is computed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpviz.lessons import Lesson, lessons

SHORT, LONG = (1, 4, 5), tuple(range(1, 9))
"""Lessons of twenty minutes and of sixty."""

_MINUTES = {1: 6, 2: 4, 3: 6, 4: 6, 5: 6, 6: 10, 7: 5, 8: 7}

_INTRODUCTION = """# Teaching with dpviz

Written by `python -m tools.teaching` from the lessons themselves; `--check` says whether it is
fresh, and a test computes every number again. Start the dashboard with `python -m dpviz app`; links
below are relative to it. In every lesson the class bets before the picture moves: ask for a show of
hands, press the number of the bet that most hands chose, then M. N and B go on and back. Nothing is
graded or sent.
"""


def link(lesson: Lesson, step: int) -> str:
    """Return the address of a step, from 1, below the dashboard's own."""
    return f"/guide?lesson={lesson.number}&step={step}"


def plan(numbers: Sequence[int]) -> list[str]:
    """Return a table of lessons with minutes and links."""
    course = {lesson.number: lesson for lesson in lessons()}
    lines = ["| minutes | lesson | question | link |", "|---|---|---|---|"]
    at = 0
    for number in numbers:
        lesson = course[number]
        ends = at + _MINUTES[number]
        lines.append(
            f"| {at} to {ends} | {number} {lesson.title} | {lesson.question} "
            f"| `{link(lesson, 1)}` |"
        )
        at = ends
    return lines


def minutes(numbers: Sequence[int]) -> int:
    """Return how long lessons take together."""
    return sum(_MINUTES[number] for number in numbers)


def _lesson(lesson: Lesson) -> list[str]:
    lines = [f"### {lesson.number} {lesson.title}", "", lesson.question, ""]
    for place, step in enumerate(lesson.steps, start=1):
        lines.append(f"{place}. `{link(lesson, place)}` {lesson.filled(step.say)}")
        if step.question is not None:
            asked = step.question
            right = lesson.filled(asked.options[asked.right])
            lines.append(f"   - Ask: {lesson.filled(asked.ask)} Answer: **{right}**.")
        if step.moved:
            lines.append(f"   - Move: {lesson.filled(step.moved)}.")
        if step.why:
            lines.append(f"   - Why: {lesson.filled(step.why)}")
    return [*lines, ""]


def exercises() -> list[tuple[str, str]]:
    """Return exercises for home with their answers, each from a lesson's own numbers."""
    course = {lesson.number: lesson for lesson in lessons()}

    def said(number: int, task: str, answer: str) -> tuple[str, str]:
        return course[number].filled(task), course[number].filled(answer)

    return [
        said(
            1,
            "How much of the digits is recovered at epsilon {opens} and at {least}?",
            "{before} and {after}.",
        ),
        said(
            2,
            "Between which values do {draws} releases at epsilon {epsilon} lie? Would you trust "
            "one of them?",
            "Between {low} and {high}; no.",
        ),
        said(
            3,
            "How many of the {d} components are found at epsilon {opens}, {asked} and {least}?",
            "{many}, {found} and {few}.",
        ),
        said(
            4,
            "For a row of length one the published mechanism betrays a share 1 - exp(-epsilon/3) "
            "of releases. Compute it at epsilon {least}, {opens} and {most}.",
            "{tiny}, {now} and {large}.",
        ),
        said(
            6,
            "An attacker believes with {prior} that a person is in. Multiply the odds by e to the "
            "epsilon: what is the most that a release at epsilon {opens} makes of it?",
            "{after}.",
        ),
        said(
            7,
            "A plan needs {needed} people at epsilon {opens}. How many at {halved}?",
            "{then}: {ratio} times as many.",
        ),
        said(
            8,
            "A table's mean is printed without noise and all rows but one are known. Which row is "
            "missing from the table of lesson 8?",
            "{recovered}.",
        ),
    ]


def document() -> str:
    """Return the whole plan in Markdown."""
    tasks = exercises()
    lines = [_INTRODUCTION]
    for name, numbers in (("Twenty", SHORT), ("Sixty", LONG)):
        lines += [f"## {name} minutes", "", *plan(numbers), ""]
        lines += [f"{minutes(numbers)} minutes in all; the rest is for questions.", ""]
    lines += ["## The lessons, with answers", ""]
    for lesson in lessons():
        lines += _lesson(lesson)
    lines += ["## Exercises", "", *(f"{i}. {task}" for i, (task, _) in enumerate(tasks, 1)), ""]
    lines += ["### Answers", "", *(f"{i}. {said}" for i, (_, said) in enumerate(tasks, 1)), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
