"""What a lesson is: steps as data, every number computed by a named quantity.

A text may hold ``{name}``; `Lesson.numbers` says which quantity computes it. A text holds no digit
of its own, and nothing in a lesson is evaluated; `dpviz.lessons.script` reads one from its file.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dpviz.core.number_text import spaced
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.lessons.quantities import Fact

SCENES = ("board", "person", "faces", "people", "cloud", "leak")
"""What a step is drawn on: the board, one person's clouds, a hundred who are suspected alike,
people needed, the invented class as a cloud, or what its own mean and bound give away."""

INVENTED = ("cloud", "leak")
"""Scenes of the invented class, without a release: no epsilon is shown."""

NEAR = 2.0
"""A flag is right within this factor of the right value."""

AT = "at:"
"""Begins a setting that a number of the lesson gives, as in ``at:crossing``."""

ENGLISH = "en"
"""The language that lessons are written in first."""

MOVES = 2
"""A step has at most so many moves: to what was asked, and to the extreme."""


@dataclass(frozen=True)
class NamedNumber:
    """A number of a lesson: what computes it, and which other numbers that needs."""

    compute: Callable[[], Fact]
    needs: tuple[str, ...] = ()

    @cached_property
    def fact(self) -> Fact:
        """The number, computed once."""
        return self.compute()

    def know(self, fact: Fact) -> None:
        """Take the number as it was computed before."""
        # where `cached_property` keeps it; one that was computed stays
        self.__dict__.setdefault("fact", fact)


@dataclass(frozen=True)
class Option:
    """One answer that can be bet on.

    Attributes
    ----------
    says : str
        What stands on it.
    value : str
        What the right number is compared with: a word, or a text with its numbers.
    then : str
        What follows the verdict; empty where the question says it for all.
    """

    says: str
    value: str
    then: str = ""


@dataclass(frozen=True)
class Question:
    """A bet before the reveal: one of several options, or a flag on the axis of epsilon.

    Attributes
    ----------
    ask : str
        One sentence.
    right : str
        The number that is right, or the word of an option that is.
    options : tuple of Option
        Empty for a flag.
    axis : (float, float) or None
        Between which epsilons a flag can be dropped.
    then : str
        What follows the verdict, where an option does not say it.
    """

    ask: str
    right: str
    options: tuple[Option, ...] = ()
    axis: tuple[float, float] | None = None
    then: str = ""


@dataclass(frozen=True)
class ShownQuestion:
    """A question ready to be shown: filled in, its options in their order.

    Attributes
    ----------
    ask : str
    options, then : tuple of str
        What can be bet on, from 0, and what follows each verdict; ``then`` alone for a flag.
    axis : (float, float) or None
    right : int or float
        The place of the right option, or the right epsilon.
    right_text : str
        The same as it is written.
    """

    ask: str
    options: tuple[str, ...]
    then: tuple[str, ...]
    axis: tuple[float, float] | None
    right: float
    right_text: str

    def possible(self, bet: float) -> bool:
        """Return whether somebody can bet so."""
        if self.axis is not None:
            return self.axis[0] <= bet <= self.axis[1]
        return bet in range(len(self.options))

    def won(self, bet: float) -> bool:
        """Return whether a bet is right: the option, or within a factor `NEAR` of the value."""
        if self.axis is None:
            return bet == self.right
        # by ratio, and forgiving the last digit of one that is just as far
        return abs(math.log(bet / self.right)) <= math.log(NEAR) + 1e-9

    def says(self, bet: float) -> str:
        """Return the verdict on a bet."""
        then = self.then[0] if self.axis is not None else self.then[int(bet)]
        return f"{'Right' if self.won(bet) else 'Not so'}: {then}"


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
        The same for what the scene itself shows: ``measures``, ``clouds``, ``shown``.
    control : str
        The control that is highlighted; empty for none.
    move, extreme : mapping
        Settings or parts of the view that the reveal changes, and what a second move changes.
    moved : str
        What the button that makes the move says; empty where nothing moves.
    question : Question or None
    why : str
        One or two sentences after the reveal.
    hundred : tuple of str
        For each stop of the moves the number that is shown as so many of 100 dots.
    ringed : tuple of str
        The numbers that are compared with there: a ring round so many-th dot, with their names.
    """

    title: str
    say: str
    scene: str = "board"
    changes: Mapping[str, Any] = field(default_factory=dict)
    view: Mapping[str, Any] = field(default_factory=dict)
    control: str = ""
    move: Mapping[str, Any] = field(default_factory=dict)
    extreme: Mapping[str, Any] = field(default_factory=dict)
    moved: str = ""
    question: Question | None = None
    why: str = ""
    hundred: tuple[str, ...] = ()
    ringed: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text of the step."""
        asked = self.question
        own = (self.title, self.say, self.moved, self.why)
        if asked is None:
            return own
        options = [text for one in asked.options for text in (one.says, one.then)]
        return (*own, asked.ask, asked.then, *options)


@dataclass(frozen=True)
class Teaching:
    """What a teacher who plans a lesson is told.

    Attributes
    ----------
    minutes : int
        How long it takes.
    aim : str
        What the class can do afterwards.
    wrong, but : str
        A wrong answer to expect, and what is said to it.
    board : str
        What to draw.
    exercises : tuple of (str, str)
        Tasks for home with their answers.
    """

    minutes: int
    aim: str
    wrong: str
    but: str
    board: str
    exercises: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class State:
    """What a step shows: settings, and the scene's own choices."""

    settings: Settings
    view: Mapping[str, Any]

    def moved(self, changes: Mapping[str, Any]) -> State:
        """Return the state after changes of settings or of the view."""
        # settings have their fields, and the rest is of the view
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
    numbers : mapping of str to NamedNumber
        What computes each ``{name}`` of the texts.
    experts : bool
        Whether it is for those who know the others.
    teaching : Teaching or None
    key : str
        Name of its file.
    language : str
        What its texts are written in.
    english : Lesson or None
        What it is a translation of; its options stand in the same order.
    """

    number: int
    title: str
    question: str
    opens: Settings
    steps: tuple[Step, ...]
    numbers: Mapping[str, NamedNumber]
    experts: bool = False
    teaching: Teaching | None = None
    key: str = ""
    language: str = ENGLISH
    english: Lesson | None = None

    @property
    def facts(self) -> dict[str, str]:
        """Every number of the texts, computed and written."""
        return {name: number.fact.text for name, number in self.numbers.items()}

    def filled(self, text: str) -> str:
        """Return a text with its numbers."""
        facts = {name: self.numbers[name].fact.text for name in names_in(text)}
        return text.format(**{name: self.written(fact) for name, fact in facts.items()})

    def written(self, text: str) -> str:
        """Return a text with the numbers of the lesson's language."""
        return text if self.language == ENGLISH else spaced(text)

    def question_at(self, step: int) -> ShownQuestion | None:
        """Return the question of a step, from 0, as it is shown; None where nothing is asked.

        Options that are numbers stand in their order; others are shuffled, by a stream of their
        own, so that no place is right more often than another.
        """
        question = self.steps[step].question
        if question is None:
            return None
        computed = self.numbers.get(question.right)
        right = None if computed is None else computed.fact
        if question.axis is not None:
            assert right is not None  # or the file was not read
            return ShownQuestion(
                self.filled(question.ask), (), (self.filled(question.then),), question.axis,
                float(right.value), self.written(right.text),
            )  # fmt: skip
        wanted = question.right if right is None else self.written(right.text)
        values = [self.filled(one.value) for one in question.options]
        # numbers in their order, as nobody should have to sort them before a bet
        order = sorted(range(len(values)), key=lambda place: (_number(values[place]), place))
        if any(map(math.isnan, map(_number, values))):
            # by the English title: bets are places, and a room may change its language
            rng = generator(0, "lesson", (self.english or self).title, step)
            order = [int(place) for place in rng.permutation(len(values))]
        options = [question.options[place] for place in order]
        texts = tuple(self.filled(one.says) for one in options)
        place = [values[at] for at in order].index(wanted)
        return ShownQuestion(
            self.filled(question.ask), texts,
            tuple(self.filled(one.then or question.then) for one in options),
            None, place, texts[place],
        )  # fmt: skip

    def page(self, step: int) -> str:
        """Return which page has all of what a step, from 0, is about: explore or claims."""
        return "claims" if self.steps[step].scene in ("person", "faces", *INVENTED) else "explore"

    def moves(self, step: int) -> tuple[Mapping[str, Any], ...]:
        """Return the moves of a step, from 0, with the settings that numbers give."""
        at = self.steps[step]
        return tuple(
            {name: self._given(value) for name, value in move.items()}
            for move in (at.move, at.extreme)
            if move
        )

    def _given(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(AT):
            return self.numbers[value.removeprefix(AT)].fact.value
        return value

    def state(self, step: int, moves: int = 0) -> State:
        """Return what a step shows, from 0, after so many of its moves."""
        state = State(self.opens, {})
        for number, at in enumerate(self.steps[: step + 1]):
            state = state.moved({**at.changes, **at.view})
            # a step before has made all its moves: a lesson goes on where it was left
            for move in self.moves(number)[: MOVES if number < step else moves]:
                state = state.moved(move)
        return state


def names_in(text: str) -> set[str]:
    """Return the numbers that a text names."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def _number(text: str) -> float:
    """Return a text as a number, NaN where it is a word."""
    try:
        return float(text.replace(",", "").replace("\u202f", ""))
    except ValueError:
        return math.nan
