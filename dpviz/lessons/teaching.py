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

SHORT, MIDDLE, LONG = (1, 2, 3), (1, 2, 3, 4, 5), tuple(range(1, 10))
"""Lessons of twenty minutes, of a school hour and of two."""

_MINUTES = {1: 6, 2: 8, 3: 6, 4: 8, 5: 8, 6: 10, 7: 8, 8: 16, 9: 14}

_SHEET = {
    1: (
        "say why an exact result is a release of every row behind it",
        "A mean hides single people. (Not from somebody who knows the others.)",
        "the sum of all rows, and below it the others', one line each, crossed out",
    ),
    2: (
        "say what epsilon promises one person, in people out of a hundred",
        "Epsilon is the share of people at risk. (It limits how far anybody's odds can move.)",
        "a hundred dots with her and a hundred without; hits in one, false alarms in the other",
    ),
    3: (
        "tie a smaller epsilon to more noise and to less that can be told",
        "Half the epsilon, half the picture. (Long nothing happens, then nearly all of it.)",
        "an axis of epsilon; the class marks where the change begins and where all is lost",
    ),
    4: (
        "ask for every draw before they believe one",
        "A good picture proves a good setting. (It may be the luckiest of many.)",
        "a line from nothing to everything, a dot for each draw, the best and the worst circled",
    ),
    5: (
        "trade people for epsilon",
        "More people need more noise. (The noise stays; each of them counts for less.)",
        "a fraction: noise above, people below; double below, then halve epsilon",
    ),
    6: (
        "say why small components go first",
        "All components fade alike. (The noise is as large for each; they are not.)",
        "a staircase of variances and one line of noise across it",
    ),
    7: (
        "tell a private plane from a picture that may be printed",
        "The noise hides the people in it. (It turns the plane; the dots lie where they lie.)",
        "a grid of cells, a noisy count in each, and new dots thrown into them by hand",
    ),
    8: (
        "see that noise can be placed, and that the choice may not look at the data",
        "Look at the data, then choose. (That look is a release and has to be paid for.)",
        "one bar of precision, cut between two features by the class",
    ),
    9: (
        "test a claim instead of believing its paper",
        "More noise would mend it. (The edge stays, wherever it lies.)",
        "two tables, one row apart, and an edge that noise on one side cannot cross",
    ),
}
"""Of each lesson: what the class can do afterwards, a wrong answer to expect, what to draw."""

_INTRODUCTION = """# Teaching with dpviz

Written by `python -m tools.teaching` from the lessons themselves; `--check` says whether it is
fresh, and a test computes every number again. Start the dashboard with `python -m dpviz app`; links
below are relative to it. In every lesson the class bets before the picture moves: on one of several
answers, or where on the axis of epsilon a flag is to be dropped. A flag is right within a factor of
two. Nothing is graded or sent. The last lessons are for classes that know the others.

A hall with phones: `dpviz class` prints where the phones go and where the projector does, on your
own network. Phones get one light page and bet by a tap; the projector shows how many have, until R
shows the bets as dots on the axis and M makes the move. No name is asked, nothing is stored,
uploads and releases are off, and the room ends after three hours.

In or out (I on the projector, or the third address that `dpviz class` prints): each phone receives
one release of an invented table, half of them with her, beside others of both kinds, and taps
whether she was in. The projector counts the taps; R fills a hundred with her and a hundred without
with the class's right ones, M draws what nobody gets beyond at that epsilon (at {epsilon} it is
{limit} of 100). Expect: “We beat it.” (One hundred may be beyond, when the class says “in” to all;
both together only by luck, and the projector says how much that is.) The arrows choose another
epsilon, N deals again, B goes back to the lesson.

Lessons of your own: write one TOML file each, as those in `dpviz/lessons/scripts`, put them in a
folder and start with `DPVIZ_LESSONS=FOLDER dpviz app`; they follow the course. `dpviz lesson check
FOLDER` says what a class would stumble over.

In German: choose it below a lesson, or start with `dpviz class --language de`. A language is one
file of texts in `dpviz/lessons/languages`; `dpviz lesson check` names each text that it leaves out.

Without a network in the room: `dpviz lesson export 3 --out FOLDER` writes a lesson as PDF slides,
and each step as PNG, SVG and a looped GIF; the arrow below a lesson saves the same from the page.
"""


def link(lesson: Lesson, step: int) -> str:
    """Return the address of a step, from 1, below the dashboard's own."""
    return f"/guide?lesson={lesson.number}&step={step}"


def plan(numbers: Sequence[int]) -> list[str]:
    """Return a table of lessons with minutes and links."""
    known = {lesson.number: lesson for lesson in course()}
    lines = ["| minutes | lesson | question | link |", "|---|---|---|---|"]
    at = 0
    for number in numbers:
        lesson = known[number]
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
    if lesson.number in _SHEET:
        aim, wrong, drawn = _SHEET[lesson.number]
        lines += [f"- Aim: the class can {aim}.", f"- Expect: “{wrong.replace('. (', '.” (', 1)}"]
        lines += [f"- Board: {drawn}.", ""]
    for place, step in enumerate(lesson.steps, start=1):
        lines.append(f"{place}. `{link(lesson, place)}` {lesson.filled(step.say)}")
        asked = lesson.asked(place - 1)
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
    known = {lesson.number: lesson for lesson in course()}

    def said(number: int, task: str, answer: str) -> tuple[str, str]:
        return known[number].filled(task), known[number].filled(answer)

    return [
        said(
            1,
            "A table's mean is printed without noise and all rows but one are known. Which row is "
            "missing from the table of lesson 1?",
            "{recovered}.",
        ),
        said(
            2,
            "An attacker believes with {prior} that a person is in. Multiply the odds by e to the "
            "epsilon: what is the most that a release at epsilon {opens} makes of it?",
            "{after}.",
        ),
        said(
            3,
            "How many of {hundred} does a line sort wrongly at epsilon {opens}, {crossing} and "
            "{least}, and by chance? What is left at {least}?",
            "{wrong}, {asked}, {wrong_least} and {chance}: nothing is left.",
        ),
        said(
            4,
            "Make {draws} draws lie: show a friend one release at epsilon {epsilon} so that the "
            "setting looks good, and another so that it looks bad. Which sentence under each "
            "picture would have made it honest?",
            "They lie between {low} and {high}; “one of {draws} draws, which lie between ...”.",
        ),
        said(
            5,
            "Recovery of {goal} at epsilon {opens} takes {needed} pupils. How many at {halved}?",
            "{then}.",
        ),
        said(
            6,
            "How many components of her school are found at epsilon {opens}, {crossing} and "
            "{least}?",
            "{many}, {asked} and {few}.",
        ),
        said(
            7,
            "Printed points tell {told} of what the exact picture tells at epsilon {opens}. What "
            "has to be paid for in a picture that may be printed, and at which epsilon do its "
            "points tell {asked}?",
            "The plane and the counts of the cells, together; {crossing}.",
        ),
        said(
            9,
            "For a row of length one the published mechanism betrays a share 1 - exp(-epsilon/3) "
            "of releases. Compute it at epsilon {least}, {opens} and {most}.",
            "{tiny}, {now} and {large}.",
        ),
        said(
            9,
            "Where does Wishart win, honestly counted? Compare it in Explore with the Wishart "
            "difference, at the epsilon that each really spends.",
            "Nowhere: it proves absence in {tiny} of the releases at epsilon {least} already, so "
            "it spends no finite epsilon, and there is none to compare it at.",
        ),
        (
            f"Spend a budget of epsilon 1 and delta {numeral(_DELTA, 1)} on {_RELEASES} releases. "
            "What has each if epsilons are added, and what with Gaussian noise that is counted "
            "together?",
            f"{numeral(1 / _RELEASES, 1)} each, and {numeral(_shared(), 2)} each: noise of "
            f"{_RELEASES} Gaussian releases adds up by its square, so each needs only "
            f"{numeral(_RELEASES**0.5, 2)} times the noise of one.",
        ),
    ]


_DELTA, _RELEASES = 1e-5, 10


def _shared() -> float:
    """Return the epsilon that each Gaussian release has alone when all together spend 1."""
    whole = noise_std(Budget(1, _DELTA)) * math.sqrt(_RELEASES)
    return float(brentq(lambda one: noise_std(Budget(one, _DELTA)) - whole, 0.01, 1.0))


def document() -> str:
    """Return the whole plan in Markdown."""
    tasks = exercises()
    played = Round("")
    lines = [_INTRODUCTION.format(epsilon=numeral(played.epsilon), limit=played.limit_text)]
    for name, numbers in (("Twenty", SHORT), ("Forty-five", MIDDLE), ("Ninety", LONG)):
        lines += [f"## {name} minutes", "", *plan(numbers), ""]
        lines += [f"{minutes(numbers)} minutes in all; the rest is for questions.", ""]
    lines += ["## The lessons, with answers", ""]
    for lesson in course():
        lines += _lesson(lesson)
    lines += ["## Handout", "", "For the class: no answers on this sheet.", ""]
    lines += [*(f"{i}. {task}" for i, (task, _) in enumerate(tasks, 1)), ""]
    lines += ["## Teacher's sheet", "", "Answers to the handout.", ""]
    lines += [*(f"{i}. {said}" for i, (_, said) in enumerate(tasks, 1)), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
