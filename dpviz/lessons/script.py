"""Lessons as files: one TOML file each, read by the standard library and checked as data.

A file holds texts, settings and the names of quantities; nothing in it is evaluated. A folder of a
teacher's own lessons is read in the same way.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.datasets.builtin.school import SCHOOL
from dpviz.lessons import cast
from dpviz.lessons.lesson import (
    AT,
    SCENES,
    Lesson,
    NamedNumber,
    Option,
    Question,
    Step,
    Teaching,
    names_in,
)
from dpviz.lessons.measures import DRAWS
from dpviz.lessons.quantities import QUANTITIES, Fact, where
from dpviz.mechanisms import Mechanism

FOLDER = Path(__file__).parent / "scripts"
"""The lessons that come along."""

WORDS = 14
"""A sentence beside the picture, and a question, have at most so many words."""

_PART = "part:"
_PARTS: dict[str, Callable[[], Mechanism]] = {
    "plain": cast.plain, "pure": cast.pure, "published": cast.published, "shaped": cast.shaped
}  # fmt: skip
VIEW = (
    "measures", "clouds", "shown", "declared", "draw", "play_draws", "mechanisms", "publishable",
    "line", "marked", "prior", "counted",
)  # fmt: skip
"""What a step may say of its picture alone; settings have names of their own."""
_TOP = ("number", "title", "question", "experts", "opens", "numbers", "steps", "teaching")
_STEP = (
    "title", "say", "scene", "changes", "view", "control", "move", "extreme", "moved", "question",
    "why", "hundred", "ringed",
)  # fmt: skip
_CONTROLS = (
    "", "epsilon", "mechanism", "row", "precision", "draws", "mean", "bound", "declared"
)  # fmt: skip


class InvalidLesson(DpvizError):
    """A lesson's file says something that cannot be."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")


def read_folder(folder: Path) -> tuple[Lesson, ...]:
    """Return every lesson of a folder, by their numbers.

    Raises
    ------
    InvalidLesson
        If one is none, two have one number, or there are none.
    """
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise InvalidLesson(folder.name, "there is no lesson (a file that ends in .toml) here.")
    course = sorted(map(read, files), key=lambda lesson: lesson.number)
    numbers = [lesson.number for lesson in course]
    if numbers != list(range(1, len(course) + 1)):
        given = ", ".join(map(str, numbers))
        raise InvalidLesson(
            folder.name,
            f"lessons must be numbered from 1 to {len(course)}, each once; got {given}.",
        )
    return tuple(course)


def read(path: Path) -> Lesson:
    """Return the lesson of a file.

    Raises
    ------
    InvalidLesson
        If the file is none.
    """
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidLesson(path.name, f"not a TOML file: {error}.") from None
    except OSError:
        raise InvalidLesson(path.name, "the file cannot be read.") from None
    try:
        return replace(_lesson(said), key=path.stem)
    except InvalidSetting as error:
        raise InvalidLesson(path.name, str(error)) from None
    except _Wrong as error:
        raise InvalidLesson(path.name, f"{error}.") from None


def problems(lesson: Lesson) -> list[str]:
    """Return what a class would stumble over, one sentence each; computes every number.

    A number that no text uses, a digit that is typed, a sentence of more than `WORDS` words, a
    question without its right answer among the options or outside of the axis.
    """
    texts = [text for step in lesson.steps for text in step.texts]
    unused = set(lesson.numbers) - _used(lesson, texts)
    found = [f"the number {name!r} is used nowhere." for name in unused]
    for text in texts:
        # a name in braces may hold a digit, a text may not: numbers are computed
        if re.search(r"\d", re.sub(r"\{\w+\}", "", text)):
            found.append(f"a number is typed, not computed, in {text!r}.")
    try:
        # one number that fails leaves every sentence after it in doubt, so no more is looked at
        lesson.facts  # noqa: B018 - computes them
    except (DpvizError, ValueError, RuntimeError, LookupError, TypeError) as error:
        return [*found, f"a number cannot be computed: {error}."]
    for place in range(len(lesson.steps)):
        found += _problems_of_step(lesson, place)
    return found


def _used(lesson: Lesson, texts: Iterable[str]) -> set[str]:
    """Return the names of the numbers that a text, a question, a move or another number uses."""
    used = set().union(*(names_in(text) for text in (lesson.question, lesson.title, *texts)))
    used |= {name for one in lesson.numbers.values() for name in one.needs}
    for told in lesson.teaching.exercises if lesson.teaching else ():
        used |= set().union(*map(names_in, told))
    for step in lesson.steps:
        used |= {*step.hundred, *step.ringed}
        used |= set() if step.question is None else {step.question.right}
        for move in (step.changes, step.move, step.extreme):
            used |= {
                value.removeprefix(AT)
                for value in move.values()
                if isinstance(value, str) and value.startswith(AT)
            }
    return used


def _problems_of_step(lesson: Lesson, place: int) -> list[str]:
    """Return what is wrong with one step, once every number is computed."""
    step, asked, stops = (
        lesson.steps[place],
        lesson.question_at(place),
        len(lesson.moves(place)) + 1,
    )
    found = []
    for text in (step.say, "" if step.question is None else step.question.ask):
        count = len(text.split())
        if count > WORDS:
            found.append(f"{count} words, at most {WORDS}: {lesson.filled(text)!r}.")
    if asked is not None and asked.axis is None and len(set(asked.options)) < 2:
        found.append(f"the options of {asked.ask!r} do not differ.")
    if asked is not None and not asked.possible(asked.right):
        found.append(f"the right answer to {asked.ask!r}, {asked.right_text}, is off the axis.")
    # dots move with epsilon: each stop has its own count
    if step.hundred and len(step.hundred) != stops:
        found.append(f"{step.title!r} needs as many of 100 as it has stops.")
    if bool(step.move) != bool(step.moved):
        found.append(f"{step.title!r} has a move without its button, or the reverse.")
    for moves in range(stops):
        state = lesson.state(place, moves)  # refuses what cannot be set
        if state.view.get("marked") and state.settings.table != SCHOOL:
            found.append(f"{step.title!r} marks her class, which only the table {SCHOOL} has.")
    return found


class _Wrong(ValueError):
    """What is wrong in a file, without the file."""


def _table(said: Any, name: str, known: Iterable[str]) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise _Wrong(f"{name} must be a table")
    # a misspelled word would else be passed over in silence
    wrong = sorted(set(said) - set(known))
    if wrong:
        raise _Wrong(f"{name} has no {wrong[0]!r}; it may have {', '.join(known)}")
    return said


def _text(said: Mapping[str, Any], name: str, place: str, default: str | None = None) -> str:
    value = said.get(name, default)
    if not isinstance(value, str):
        raise _Wrong(f"{place} needs {name} as a text")
    return value


def _lesson(said: dict[str, Any]) -> Lesson:
    _table(said, "the lesson", _TOP)
    if not isinstance(said.get("number"), int):
        raise _Wrong("the lesson needs its number")
    opens = replace(Settings(), **_settings(said.get("opens", {}), "opens"))
    if not isinstance(said.get("numbers", {}), dict):
        raise _Wrong("numbers must be a table")
    if not isinstance(said.get("steps"), list) or not said["steps"]:
        raise _Wrong("the lesson needs [[steps]]")
    numbers: dict[str, NamedNumber] = {}
    for name, one in said.get("numbers", {}).items():
        # in the file's order: a number may use those above it, so none uses itself
        numbers[name] = _number(name, one, opens, numbers)
    steps = tuple(_step(one, place, numbers) for place, one in enumerate(said["steps"], 1))
    for step in steps:
        for text in step.texts:
            _named(text, numbers, repr(step.title))
    teaching = _teaching(said["teaching"], numbers) if "teaching" in said else None
    return Lesson(
        number=said["number"],
        title=_text(said, "title", "the lesson"),
        question=_text(said, "question", "the lesson"),
        opens=opens,
        steps=steps,
        numbers=numbers,
        experts=bool(said.get("experts", False)),
        teaching=teaching,
    )


def _teaching(said: Any, numbers: Mapping[str, NamedNumber]) -> Teaching:
    _table(said, "teaching", ("minutes", "aim", "wrong", "but", "board", "exercises"))
    if not isinstance(said.get("minutes"), int) or said["minutes"] < 1:
        raise _Wrong("teaching needs its minutes, 1 or more")
    tasks = []
    for place, one in enumerate(said.get("exercises", []), 1):
        name = f"exercise {place}"
        _table(one, name, ("task", "answer"))
        tasks.append((_text(one, "task", name), _text(one, "answer", name)))
        for text in tasks[-1]:
            _named(text, numbers, name)
    words = {name: _text(said, name, "teaching") for name in ("aim", "wrong", "but", "board")}
    return Teaching(said["minutes"], **words, exercises=tuple(tasks))


def _named(text: str, numbers: Mapping[str, NamedNumber], place: str) -> None:
    try:
        names = names_in(text)
    except ValueError:
        raise _Wrong(f"{place} has a brace that is not closed in {text!r}") from None
    for name in sorted(names - set(numbers)):
        raise _Wrong(f"{place} names {{{name}}}, which [numbers] does not compute")


def _settings(said: Any, place: str) -> dict[str, Any]:
    # by the checks of the settings themselves: a lesson sets nothing that a page could not
    params = params_of(Settings)
    found = {}
    for name, value in _table(said, place, params).items():
        found[name] = params[name].clean(_parts(value))
    return found


def _parts(value: Any) -> Any:
    """Return a list with the mechanisms in place of the parts that they play."""
    if not isinstance(value, list):
        return value
    return tuple(map(_part, value))


def _part(item: Any) -> Any:
    if not isinstance(item, str) or not item.startswith(_PART):
        return item
    name = item.removeprefix(_PART)
    if name not in _PARTS:
        raise _Wrong(f"{item!r} is no part; there are {', '.join(_PARTS)}")
    # found by what it says of itself: the lesson stays when another takes the part
    return _PARTS[name]().key


def _number(
    name: str, said: Any, opens: Settings, before: Mapping[str, NamedNumber]
) -> NamedNumber:
    """Return what computes a number; it may use those that stand before it."""
    place = f"the number {name!r}"
    said = {"of": said} if isinstance(said, str) else said
    if not isinstance(said, dict) or ("of" in said) == ("where" in said):
        raise _Wrong(f"{place} must be a quantity, or a table with of or where")
    key = said.get("of", said.get("where"))
    if key not in QUANTITIES:
        raise _Wrong(f"{place} is of no quantity; there are {', '.join(QUANTITIES)}")
    quantity, target = QUANTITIES[key], said.get("reaches")
    # `where` looks for the epsilon at which a quantity reaches another number
    if ("where" in said) != (target is not None) or (target is not None and target not in before):
        raise _Wrong(f"{place} needs, with where, reaches and a number that stands before it")
    arguments = {word: value for word, value in said.items() if word in quantity.arguments}
    missing = set(quantity.required) - set(arguments)
    if missing:
        raise _Wrong(f"{place} needs {sorted(missing)[0]}")
    own = {"of", "where", "reaches", *arguments}
    rest = {word: value for word, value in said.items() if word not in own}
    taken = {word: value for word, value in rest.items() if value in before}
    typed = {word: value for word, value in rest.items() if word not in taken}
    _table(taken, place, params_of(Settings))
    settings = replace(opens, **_settings(typed, place))

    def compute() -> Fact:
        # looked up when it is asked, as numbers are computed late and once
        there = replace(settings, **{word: before[one].fact.value for word, one in taken.items()})
        if target is None:
            return quantity.at(there, **arguments)
        epsilon = where(quantity, there, arguments, float(before[target].fact.value))
        return QUANTITIES["epsilon"].at(replace(there, epsilon=epsilon))

    needs = (*taken.values(), *([] if target is None else [target]))
    return NamedNumber(compute, needs)


def _step(said: Any, place: int, numbers: Mapping[str, NamedNumber]) -> Step:
    name = f"step {place}"
    _table(said, name, _STEP)
    scene, control = said.get("scene", "board"), said.get("control", "")
    if scene not in SCENES:
        raise _Wrong(f"the scene of {name} must be one of {', '.join(SCENES)}")
    if control not in _CONTROLS:
        raise _Wrong(f"the control of {name} must be one of {', '.join(filter(None, _CONTROLS))}")
    view = _table(said.get("view", {}), f"the view of {name}", VIEW)
    if view.get("draw", "first") not in DRAWS:
        raise _Wrong(f"the draw of {name} must be one of {', '.join(DRAWS)}")
    return Step(
        title=_text(said, "title", name),
        say=_text(said, "say", name),
        scene=scene,
        changes=_changes(said.get("changes", {}), f"changes of {name}", numbers),
        view={word: _parts(value) for word, value in view.items()},
        control=control,
        move=_changes(said.get("move", {}), f"the move of {name}", numbers),
        extreme=_changes(said.get("extreme", {}), f"the extreme of {name}", numbers),
        moved=_text(said, "moved", name, ""),
        question=_question(said["question"], name, numbers) if "question" in said else None,
        why=_text(said, "why", name, ""),
        hundred=_hundred(said, "hundred", name, numbers),
        ringed=_hundred(said, "ringed", name, numbers),
    )


def _hundred(
    said: Mapping[str, Any], name: str, place: str, numbers: Mapping[str, NamedNumber]
) -> tuple[str, ...]:
    named = said.get(name, [])
    if not isinstance(named, list) or not set(map(str, named)) <= set(numbers):
        raise _Wrong(f"{name} of {place} must be a list of names in [numbers]")
    return tuple(map(str, named))


def _changes(said: Any, place: str, numbers: Mapping[str, NamedNumber]) -> dict[str, Any]:
    """Return changes of settings or of the view; a setting may be a number of the lesson's."""
    params = params_of(Settings)
    found: dict[str, Any] = {}
    for name, value in _table(said, place, (*params, *VIEW)).items():
        if isinstance(value, str) and value.startswith(AT):
            if value.removeprefix(AT) not in numbers:
                raise _Wrong(f"{place}: [numbers] computes no {value.removeprefix(AT)!r}")
            found[name] = value
        else:
            found[name] = params[name].clean(_parts(value)) if name in params else value
    return found


def _question(said: Any, place: str, numbers: Mapping[str, NamedNumber]) -> Question:
    place = f"the question of {place}"
    _table(said, place, ("ask", "right", "options", "axis", "then"))
    right, then = _text(said, "right", place), _text(said, "then", place, "")
    ask = _text(said, "ask", place)
    # a bet is one of some words or a place on an axis, and never both
    if ("options" in said) == ("axis" in said):
        raise _Wrong(f"{place} needs either options or an axis")
    if "axis" in said:
        ends = _table(said["axis"], f"the axis of {place}", ("low", "high"))
        low, high = ends.get("low"), ends.get("high")
        if not (
            isinstance(low, (int, float)) and isinstance(high, (int, float)) and 0 < low < high
        ):
            raise _Wrong(f"the axis of {place} needs low and high, above 0")
        if right not in numbers:
            raise _Wrong(f"{place}: right names {right!r}, which [numbers] does not compute")
        return Question(ask, right, axis=(float(low), float(high)), then=then)
    options = tuple(_option(one, place) for one in said["options"])
    for option in options:
        _named(option.value, numbers, place)
        if not (option.then or then):
            raise _Wrong(f"{place} says nothing after {option.says!r}: it needs then")
    if len(options) < 2:
        raise _Wrong(f"{place} needs two options or more")
    # right is an option as it is written, or a number that some option equals
    if right not in numbers and right not in [option.value for option in options]:
        raise _Wrong(f"{place}: right names {right!r}, neither a number nor an option")
    return Question(ask, right, options, then=then)


def _option(said: Any, place: str) -> Option:
    if isinstance(said, str):
        names = names_in(said)
        if len(names) != 1:
            raise _Wrong(f"{place}: the option {said!r} needs one number, or a word as `is`")
        return Option(said, f"{{{names.pop()}}}")
    _table(said, f"an option of {place}", ("is", "say", "then"))
    return Option(
        _text(said, "say", place), _text(said, "is", place), _text(said, "then", place, "")
    )
