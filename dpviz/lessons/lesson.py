"""What a lesson is: steps as data, every number computed by a named function.

A text may hold ``{name}``; `Lesson.numbers` says which function computes it. A text holds no digit
of its own, which a test checks.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dpviz.core.settings import Settings
from dpviz.lessons.questions import Answers

Number = Callable[[], str]

SCENES = ("board", "person", "people", "leak")
"""What a step is drawn on: the board, one person's clouds, people needed, or what a table's own
mean and bound give away."""


@dataclass(frozen=True)
class Question:
    """A bet before the reveal.

    Attributes
    ----------
    ask : str
        One sentence.
    options : tuple of str
        What can be bet on.
    answer : int or callable
        Which of them is right, from 0, or how it is computed.
    feedback : tuple of str
        What follows "Right:" or "Not so:", one sentence for each option or one for all.
    """

    ask: str
    options: tuple[str, ...]
    answer: int | Callable[[], int]
    feedback: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.feedback) not in (1, len(self.options)):
            raise ValueError(f"{self.ask!r} has {len(self.feedback)} answers to its options")

    @property
    def right(self) -> int:
        """Which option is right, from 0."""
        return self.answer if isinstance(self.answer, int) else self.answer()

    def says(self, bet: int) -> str:
        """Return the answer to a bet, its numbers still to be filled in."""
        verdict = "Right" if bet == self.right else "Not so"
        return f"{verdict}: {self.feedback[bet % len(self.feedback)]}"


@dataclass(frozen=True)
class Step:
    """One thing to look at.

    Attributes
    ----------
    title, say : str
        A few words; one sentence beside the picture.
    scene : str
        One of `SCENES`.
    changes : mapping
        Settings that change when the step opens; all others carry over from the step before.
    view : mapping
        The same for what the scene itself shows: ``measures``, ``picture``, ``shown``.
    control : str
        The control that is highlighted; empty for none.
    move : mapping
        Settings or parts of the view that the reveal changes.
    moved : str
        What the button that makes the move says; empty where nothing moves.
    question : Question or None
    why : str
        One or two sentences after the reveal.
    """

    title: str
    say: str
    scene: str = "board"
    changes: Mapping[str, Any] = field(default_factory=dict)
    view: Mapping[str, Any] = field(default_factory=dict)
    control: str = ""
    move: Mapping[str, Any] = field(default_factory=dict)
    moved: str = ""
    question: Question | None = None
    why: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text of the step."""
        asked = () if self.question is None else (
            self.question.ask, *self.question.options, *self.question.feedback,
        )  # fmt: skip
        return (self.title, self.say, self.moved, self.why, *asked)


@dataclass(frozen=True)
class State:
    """What a step shows: settings, and the scene's own choices."""

    settings: Settings
    view: Mapping[str, Any]

    def moved(self, changes: Mapping[str, Any]) -> State:
        """Return the state after changes of settings or of the view."""
        own = {name: value for name, value in changes.items() if hasattr(self.settings, name)}
        rest = {name: value for name, value in changes.items() if name not in own}
        return State(replace(self.settings, **own), {**self.view, **rest})


@dataclass(frozen=True)
class Lesson:
    """One lesson.

    Attributes
    ----------
    number : int
        Place in the course, from 1.
    title, question : str
        Name, and what it answers in one sentence.
    opens : Settings
        Where it begins.
    steps : tuple of Step
    numbers : mapping of str to callable
        What computes each ``{name}`` of the texts.
    answers : Answers or None
        Where the lesson is about a plan: what a stakeholder who has it answers.
    """

    number: int
    title: str
    question: str
    opens: Settings
    steps: tuple[Step, ...]
    numbers: Mapping[str, Number]
    answers: Answers | None = None

    @cached_property
    def facts(self) -> dict[str, str]:
        """Every number of the texts, computed."""
        return {name: compute() for name, compute in self.numbers.items()}

    def filled(self, text: str) -> str:
        """Return a text with its numbers."""
        names = {name for _, name, _, _ in string.Formatter().parse(text) if name}
        return text.format(**{name: self.facts[name] for name in names})

    def state(self, step: int, revealed: bool = False) -> State:
        """Return what a step shows, from 0, before or after its reveal."""
        state = State(self.opens, {})
        for number, at in enumerate(self.steps[: step + 1]):
            state = state.moved({**at.changes, **at.view})
            if number < step or revealed:
                state = state.moved(at.move)
        return state
