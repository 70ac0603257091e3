"""A plan for a class, written from the lessons: every number in it is computed."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from scipy.optimize import brentq

from dpviz.accounting.gaussian import noise_std
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget
from dpviz.lessons import Lesson, course
from dpviz.lessons.in_or_out import Round
from dpviz.lessons.lesson import Teaching

SHORT, MIDDLE, LONG = 20, 45, 90
"""Minutes of a talk, of a school hour and of two."""

_INTRODUCTION = """# Teaching with dpviz

`python -m tools.teaching` writes this page from the lessons, and a test computes every number
again. Start the dashboard with `python -m dpviz app`; links below are relative to it. In every
lesson the class predicts before the chart moves. Pupils choose one of several answers, or drop a
flag on the axis of epsilon. A flag counts as right within a factor of two. Nothing is graded or
sent. The last lessons build on the others.

**With phones.** `dpviz class` prints one address for phones and one for the projector, on your
own network. Pupils answer by a tap. The projector counts the answers; press R to show them on the
axis and M to make the move. No name is asked and nothing is stored. Uploads and releases are off,
and the room ends after three hours.

**In or out.** Press I on the projector, or open the third address. Each phone receives one
release of a synthetic table, half of them with her. Pupils tap whether she was in. R shows their
right answers. M shows the most that anyone can get right: at epsilon {epsilon} it is {limit} in
100. Expect: “We beat it.” One half can be beyond it if the class says “in” to all. Both together
can be beyond it only by luck, and the projector says how much luck. The arrows choose another
epsilon, N deals again, B goes back.

**Your own lessons.** Write one TOML file each, like the files in `dpviz/lessons/scripts`. Put
them in a folder and start with `DPVIZ_LESSONS=FOLDER dpviz app`. `dpviz lesson check FOLDER`
reports mistakes.

**In German.** Choose it below a lesson, or start with `dpviz class --language de`. A language is
one file in `dpviz/lessons/languages`; `dpviz lesson check` names each missing text.

**Without a network.** `dpviz lesson export 3 --out FOLDER` writes a lesson as PDF slides, and
each step as PNG and SVG.
"""


def link(lesson: Lesson, step: int) -> str:
    """Return the address of a step, from 1, below the dashboard's own."""
    return f"/guide?lesson={lesson.number}&step={step}"


def fitting(most: int) -> list[tuple[Lesson, Teaching]]:
    """Return the lessons, from the first on, that fit into so many minutes."""
    found: list[tuple[Lesson, Teaching]] = []
    for lesson in course():
        teaching = lesson.teaching
        if teaching is None:
            continue
        # the first that does not fit ends the plan: a course is not read with gaps
        if minutes(found) + teaching.minutes > most:
            break
        found.append((lesson, teaching))
    return found


def minutes(lessons: Sequence[tuple[Lesson, Teaching]]) -> int:
    """Return how long lessons take together."""
    return sum(teaching.minutes for _, teaching in lessons)


def plan(lessons: Sequence[tuple[Lesson, Teaching]]) -> list[str]:
    """Return a table of lessons with minutes and links."""
    lines = ["| minutes | lesson | question | link |", "|---|---|---|---|"]
    at = 0
    for lesson, teaching in lessons:
        ends = at + teaching.minutes
        lines.append(
            f"| {at} to {ends} | {lesson.number} {lesson.title} | {lesson.question} "
            f"| `{link(lesson, 1)}` |"
        )
        at = ends
    return lines


def _lesson(lesson: Lesson) -> list[str]:
    lines = [f"### {lesson.number} {lesson.title}", "", lesson.question, ""]
    if (told := lesson.teaching) is not None:
        lines += [f"- Aim: the class can {told.aim}.", f"- Expect: “{told.wrong}” ({told.but})"]
        lines += [f"- Board: {told.board}.", ""]
    for place, step in enumerate(lesson.steps, start=1):
        lines.append(f"{place}. `{link(lesson, place)}` {lesson.filled(step.say)}")
        asked = lesson.question_at(place - 1)
        if asked is not None:
            right = asked.right_text if asked.axis is None else f"epsilon {asked.right_text}"
            lines.append(f"   - Ask: {asked.ask} Answer: **{right}**.")
        if step.moved:
            lines.append(f"   - Move: {lesson.filled(step.moved)}.")
        if step.why:
            lines.append(f"   - Why: {lesson.filled(step.why)}")
    return [*lines, ""]


def exercises() -> list[tuple[str, str]]:
    """Return exercises for home with their answers, each from a lesson's own numbers."""
    return [
        *(
            (lesson.filled(task), lesson.filled(answer))
            for lesson in course()
            for task, answer in (lesson.teaching.exercises if lesson.teaching else ())
        ),
        (
            f"Spend a budget of epsilon 1 and delta {numeral(_DELTA, 1)} on {_RELEASES} releases. "
            "What has each if epsilons are added, and what with Gaussian noise that is counted "
            "together?",
            f"{numeral(1 / _RELEASES, 1)} each, and {numeral(_shared(), 2)} each. The variances "
            f"of {_RELEASES} Gaussian releases add up, so each needs only "
            f"{numeral(_RELEASES**0.5, 2)} times the noise of one.",
        ),
    ]


_DELTA, _RELEASES = 1e-5, 10


def _shared() -> float:
    """Return the epsilon that each Gaussian release has alone when all together spend 1."""
    # squares of noise add up: together they then tell as much as one release at 1
    whole = noise_std(Budget(1, _DELTA)) * math.sqrt(_RELEASES)
    return float(brentq(lambda one: noise_std(Budget(one, _DELTA)) - whole, 0.01, 1.0))


def document() -> str:
    """Return the whole plan in Markdown."""
    tasks = exercises()
    # only for its limit, which no name changes
    played = Round("")
    lines = [_INTRODUCTION.format(epsilon=numeral(played.epsilon), limit=played.limit_text)]
    for name, most in (("Twenty", SHORT), ("Forty-five", MIDDLE), ("Ninety", LONG)):
        lessons = fitting(most)
        lines += [f"## {name} minutes", "", *plan(lessons), ""]
        lines += [f"{minutes(lessons)} minutes in all; the rest is for questions.", ""]
    lines += ["## The lessons, with answers", ""]
    for lesson in course():
        lines += _lesson(lesson)
    lines += ["## Handout", "", "For the class: no answers on this sheet.", ""]
    lines += [*(f"{i}. {task}" for i, (task, _) in enumerate(tasks, 1)), ""]
    lines += ["## Teacher's sheet", "", "Answers to the handout.", ""]
    lines += [*(f"{i}. {said}" for i, (_, said) in enumerate(tasks, 1)), ""]
    # parts bring blank lines of their own
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
