"""A plan for a class, generated from the lessons, so that every number in it is computed."""

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
"""Minutes of a talk, of one school hour and of two school hours."""

_INTRODUCTION = """# Teaching with dpviz

`python -m tools.teaching` writes this page from the lessons, and a test computes every number
again. Start the dashboard with `python -m dpviz app`; links below are relative to it. In every
lesson the class predicts before the chart changes. Pupils choose one of several answers, or drop a
flag on the axis of epsilon. A flag counts as right within a factor of two of the right epsilon.
dpviz neither grades answers nor sends them. The last lessons build on earlier lessons.

**With phones.** `dpviz class` prints one address for phones and one for the projector, on your own
network. Pupils tap their answers. The projector counts the answers. Press R to show the answers on
the axis, and M to make the lesson's move. dpviz asks for no names and stores no answers. In a
class, uploads and releases are off, and the class ends after three hours.

**In or out.** To start this game, press I on the projector or open the third address. Each phone
receives one release of a synthetic table; in half of the releases a girl is in the table. Pupils
tap whether the girl was in the table. Press R to show the right answers, and M to show the limit.
At epsilon {epsilon} the limit is {limit} right answers in 100. Pupils may say that they beat the
limit. A class that always taps “in” can exceed the limit in one half of the releases. In both
halves together a class can exceed the limit only by luck, and the projector says how much luck.
Arrow keys change epsilon, N sends new releases to the phones, and B goes back.

**Your own lessons.** Write one TOML file for each lesson, like the files in
`dpviz/lessons/scripts`. Put them in a folder and start with `DPVIZ_LESSONS=FOLDER dpviz app`.
`dpviz lesson check FOLDER` reports mistakes.

**In German.** Choose German below a lesson, or start with `dpviz class --language de`. A language
is one file in `dpviz/lessons/languages`; `dpviz lesson check` names each missing text.

**Without a network.** `dpviz lesson export 3 --out FOLDER` writes a lesson as PDF slides, and each
step as PNG and SVG.
"""


def link(lesson: Lesson, step: int) -> str:
    """Return the address of a step, from 1, relative to the dashboard's address."""
    return f"/guide?lesson={lesson.number}&step={step}"


def fitting(most: int) -> list[tuple[Lesson, Teaching]]:
    """Return the first lessons that together fit into a number of minutes."""
    plan: list[tuple[Lesson, Teaching]] = []
    for lesson in course():
        teaching = lesson.teaching
        if teaching is None:
            continue
        # The course ends at the first lesson that does not fit, because no lesson may be skipped.
        if minutes(plan) + teaching.minutes > most:
            break
        plan.append((lesson, teaching))
    return plan


def minutes(lessons: Sequence[tuple[Lesson, Teaching]]) -> int:
    """Return the total minutes of some lessons."""
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
    if (note := lesson.teaching) is not None:
        lines += [f"- Aim: the class can {note.aim}.", f"- Mistake: “{note.wrong}” ({note.but})"]
        lines += [f"- Draw on the board: {note.board}.", ""]
    for place, step in enumerate(lesson.steps, start=1):
        lines.append(f"{place}. `{link(lesson, place)}` {lesson.filled(step.say)}")
        quiz = lesson.question_at(place - 1)
        if quiz is not None:
            right = quiz.right_text if quiz.axis is None else f"epsilon {quiz.right_text}"
            lines.append(f"   - Ask: {quiz.ask} Answer: **{right}**.")
        if step.moved:
            lines.append(f"   - Action: {lesson.filled(step.moved)}.")
        if step.why:
            lines.append(f"   - Why: {lesson.filled(step.why)}")
    return [*lines, ""]


def exercises() -> list[tuple[str, str]]:
    """Return exercises for home with their answers, which use a lesson's own numbers."""
    return [
        *(
            (lesson.filled(task), lesson.filled(answer))
            for lesson in course()
            for task, answer in (lesson.teaching.exercises if lesson.teaching else ())
        ),
        (
            f"Divide a budget of epsilon 1 and delta {numeral(_DELTA, 1)} among {_RELEASES} "
            "releases. Which epsilon does each release get if the account adds epsilons? Which "
            "epsilon does each release get if the account adds up the noise of Gaussian releases?",
            f"Each release gets epsilon {numeral(1 / _RELEASES, 1)} if epsilons are added, "
            f"and epsilon {numeral(_part(), 2)} if the noise is added up. The variances of "
            f"{_RELEASES} Gaussian releases add up, so each release needs only "
            f"{numeral(_RELEASES**0.5, 2)} times the noise of one release.",
        ),
    ]


_DELTA, _RELEASES = 1e-5, 10


def _part() -> float:
    """Return the epsilon of a single Gaussian release if all releases together use epsilon 1."""
    # Variances add up. With this noise, all releases together reveal as much as one at epsilon 1.
    whole = noise_std(Budget(1, _DELTA)) * math.sqrt(_RELEASES)
    return float(brentq(lambda one: noise_std(Budget(one, _DELTA)) - whole, 0.01, 1.0))


def document() -> str:
    """Return the whole plan for a class in Markdown."""
    tasks = exercises()
    # This round only supplies its limit, which does not depend on the player's name.
    game = Round("")
    lines = [_INTRODUCTION.format(epsilon=numeral(game.epsilon), limit=game.limit_text)]
    for name, most in (("Twenty", SHORT), ("Forty-five", MIDDLE), ("Ninety", LONG)):
        lessons = fitting(most)
        lines += [f"## {name} minutes", "", *plan(lessons), ""]
        lines += [f"The lessons take {minutes(lessons)} minutes; the rest is for questions.", ""]
    lines += ["## The lessons, with answers", ""]
    for lesson in course():
        lines += _lesson(lesson)
    lines += ["## Handout", "", "This sheet for the class has no answers.", ""]
    lines += [*(f"{i}. {task}" for i, (task, _) in enumerate(tasks, 1)), ""]
    lines += ["## Teacher's sheet", "", "Answers to the handout.", ""]
    lines += [*(f"{i}. {text}" for i, (_, text) in enumerate(tasks, 1)), ""]
    # Each section brings its own blank lines, so several blank lines in a row become one.
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
