"""Lessons as data: a list of steps, in which a named quantity computes every number.

A text may hold ``{name}``; `Lesson.numbers` gives the quantity that computes it. A text has no
typed digits, and no part of a lesson runs as code. `dpviz.lessons.script` reads lessons from files.
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
"""Chart of a step: the Explore figure, one person's releases, a hundred people with the same
suspicion, the people needed, the synthetic class, or the leak from its mean and bound."""

INVENTED = ("cloud", "leak")
"""Scenes of the synthetic class; no release is involved, so no epsilon is shown."""

NEAR = 2.0
"""A bet on epsilon is right if it is within this factor of the right value."""

AT = "at:"
"""Prefix of a setting whose value is a number of the lesson, as in ``at:crossing``."""

ENGLISH = "en"
"""The language in which lessons are written first."""

MOVES = 2
"""Maximum number of moves of a step: one to the value in question, one to the extreme."""


@dataclass(frozen=True)
class NamedNumber:
    """A number of a lesson: the function that computes it, and the other numbers it needs."""

    compute: Callable[[], Fact]
    needs: tuple[str, ...] = ()

    @cached_property
    def fact(self) -> Fact:
        """The value of this number, computed once."""
        return self.compute()

    def know(self, fact: Fact) -> None:
        """Store a value that was computed before."""
        # Use the slot of `cached_property`, but keep a value that is already computed.
        self.__dict__.setdefault("fact", fact)


@dataclass(frozen=True)
class Option:
    """One answer that a bet can choose.

    Attributes
    ----------
    says : str
        Text of the option.
    value : str
        Value that is compared with the right value: a word, or a text with its numbers.
    then : str
        Text after the verdict; empty if the question gives one for all options.
    """

    says: str
    value: str
    then: str = ""


@dataclass(frozen=True)
class Question:
    """A bet before the reveal: a choice of one option, or a flag on the axis of epsilon.

    Attributes
    ----------
    ask : str
        The question, in one sentence.
    right : str
        Name of the right number, or the word of the right option.
    options : tuple of Option
        The options to choose from; empty for a flag.
    axis : (float, float) or None
        Least and largest epsilon at which a flag can be placed.
    then : str
        Text after the verdict, if an option does not give one.
    """

    ask: str
    right: str
    options: tuple[Option, ...] = ()
    axis: tuple[float, float] | None = None
    then: str = ""


@dataclass(frozen=True)
class ShownQuestion:
    """A question ready to be shown: with its numbers, and its options in display order.

    Attributes
    ----------
    ask : str
    options, then : tuple of str
        The options, and the text after the verdict on each; a flag has only ``then``.
    axis : (float, float) or None
    right : int or float
        Index of the right option, or the right epsilon.
    right_text : str
        Text of the right answer.
    """

    ask: str
    options: tuple[str, ...]
    then: tuple[str, ...]
    axis: tuple[float, float] | None
    right: float
    right_text: str

    def possible(self, bet: float) -> bool:
        """Return whether a bet is an existing option, or lies on the axis."""
        if self.axis is not None:
            return self.axis[0] <= bet <= self.axis[1]
        return bet in range(len(self.options))

    def won(self, bet: float) -> bool:
        """Return whether a bet is the right option, or within a factor `NEAR` of the value."""
        if self.axis is None:
            return bet == self.right
        # Compare by ratio, and allow for rounding at exactly the allowed factor.
        return abs(math.log(bet / self.right)) <= math.log(NEAR) + 1e-9

    def says(self, bet: float) -> str:
        """Return the verdict on a bet."""
        then = self.then[0] if self.axis is not None else self.then[int(bet)]
        return f"{'Right' if self.won(bet) else 'Not so'}: {then}"


@dataclass(frozen=True)
class Step:
    """One step of a lesson.

    Attributes
    ----------
    title, say : str
        Title of a few words, and the sentence beside the chart.
    scene : str
        Chart of the step, one of `SCENES`.
    changes : mapping
        Settings that change when the step opens; all others carry over from the previous step.
    view : mapping
        Changes of the scene's own options: ``measures``, ``clouds``, ``shown``; others carry over.
    control : str
        The control that the page highlights; empty for none.
    move, extreme : mapping
        Settings or view options that the reveal changes, and those that a second move changes.
    moved : str
        Label of the button that makes the move; empty if nothing moves.
    question : Question or None
    why : str
        Explanation after the reveal, in one or two sentences.
    hundred : tuple of str
        For each stop of the moves, the number that the page shows as dots out of 100.
    ringed : tuple of str
        Numbers for comparison: each is a named ring around the dot at its count.
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
        question = self.question
        own = (self.title, self.say, self.moved, self.why)
        if question is None:
            return own
        options = [text for one in question.options for text in (one.says, one.then)]
        return (*own, question.ask, question.then, *options)


@dataclass(frozen=True)
class Teaching:
    """Notes for a teacher who plans a lesson.

    Attributes
    ----------
    minutes : int
        Duration of the lesson.
    aim : str
        Ability that the class has after the lesson.
    wrong, but : str
        A wrong answer to expect, and the reply to it.
    board : str
        Text for the classroom's board.
    exercises : tuple of (str, str)
        Homework tasks with their answers.
    """

    minutes: int
    aim: str
    wrong: str
    but: str
    board: str
    exercises: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class State:
    """The content of a step: settings, and the scene's own options."""

    settings: Settings
    view: Mapping[str, Any]

    def moved(self, changes: Mapping[str, Any]) -> State:
        """Return the state after changes of settings or of the view options."""
        # A name that is not a setting must be a view option.
        own = {name: value for name, value in changes.items() if hasattr(self.settings, name)}
        rest = {name: value for name, value in changes.items() if name not in own}
        return State(replace(self.settings, **own), {**self.view, **rest})


@dataclass(frozen=True)
class Lesson:
    """One lesson.

    Attributes
    ----------
    number : int
        Place of the lesson in the course, from 1.
    title, question : str
        Name of the lesson, and the question that it answers.
    opens : Settings
        Settings at the start of the lesson.
    steps : tuple of Step
    numbers : mapping of str to NamedNumber
        The number for each ``{name}`` of the texts.
    experts : bool
        Whether the lesson assumes that a class knows the other lessons.
    teaching : Teaching or None
    key : str
        Name of the lesson's file.
    language : str
        Language of the lesson's texts.
    english : Lesson or None
        The English lesson that this lesson translates; the options have the same order.
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
        """Every number of the texts, computed and formatted."""
        return {name: number.fact.text for name, number in self.numbers.items()}

    def filled(self, text: str) -> str:
        """Return a text with its numbers filled in."""
        facts = {name: self.numbers[name].fact.text for name in names_in(text)}
        return text.format(**{name: self.written(fact) for name, fact in facts.items()})

    def written(self, text: str) -> str:
        """Return a text with numbers in the format of the lesson's language."""
        return text if self.language == ENGLISH else spaced(text)

    def question_at(self, step: int) -> ShownQuestion | None:
        """Return the question of a step, from 0, as shown, or None if the step has no question.

        Options that are numbers are sorted. Other options are shuffled by their own random stream,
        so that no place is right more often than another.
        """
        question = self.steps[step].question
        if question is None:
            return None
        number = self.numbers.get(question.right)
        right = None if number is None else number.fact
        if question.axis is not None:
            assert right is not None  # Loading a lesson already checked this condition.
            return ShownQuestion(
                self.filled(question.ask), (), (self.filled(question.then),), question.axis,
                float(right.value), self.written(right.text),
            )  # fmt: skip
        answer = question.right if right is None else self.written(right.text)
        values = [self.filled(one.value) for one in question.options]
        # Sort numbers by size, so that people need not do so before a bet.
        order = sorted(range(len(values)), key=lambda place: (_number(values[place]), place))
        if any(map(math.isnan, map(_number, values))):
            # Seed by the English title: the order then stays if a room changes its language.
            rng = generator(0, "lesson", (self.english or self).title, step)
            order = [int(place) for place in rng.permutation(len(values))]
        options = [question.options[place] for place in order]
        texts = tuple(self.filled(one.says) for one in options)
        place = [values[at] for at in order].index(answer)
        return ShownQuestion(
            self.filled(question.ask), texts,
            tuple(self.filled(one.then or question.then) for one in options),
            None, place, texts[place],
        )  # fmt: skip

    def page(self, step: int) -> str:
        """Return the page that covers the topic of a step, from 0: explore or claims."""
        return "claims" if self.steps[step].scene in ("person", "faces", *INVENTED) else "explore"

    def moves(self, step: int) -> tuple[Mapping[str, Any], ...]:
        """Return the moves of a step, from 0, after filling in the lesson's numbers."""
        at = self.steps[step]
        return tuple(
            {name: self._value(value) for name, value in move.items()}
            for move in (at.move, at.extreme)
            if move
        )

    def _value(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(AT):
            return self.numbers[value.removeprefix(AT)].fact.value
        return value

    def state(self, step: int, moves: int = 0) -> State:
        """Return the state of a step, from 0, after some of its moves."""
        state = State(self.opens, {})
        for number, at in enumerate(self.steps[: step + 1]):
            state = state.moved({**at.changes, **at.view})
            # Apply all moves of earlier steps, because each step continues from the step before.
            for move in self.moves(number)[: MOVES if number < step else moves]:
                state = state.moved(move)
        return state


def names_in(text: str) -> set[str]:
    """Return the names of the numbers in a text."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def _number(text: str) -> float:
    """Return a text as a number, or NaN if the text is a word."""
    try:
        return float(text.replace(",", "").replace("\u202f", ""))
    except ValueError:
        return math.nan
