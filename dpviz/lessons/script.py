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
from typing import Any, TypeAlias

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
_CONTROLS = (
    "", "epsilon", "mechanism", "row", "precision", "draws", "mean", "bound", "declared"
)  # fmt: skip
_Field: TypeAlias = tuple[Any, Any]
_Form: TypeAlias = Mapping[str, _Field]
"""Kind, or the words to take one of, and default of each field that a table may have."""
_KINDS = {str: "a text", int: "a number", bool: "true or false", dict: "a table", list: "a list"}
_NEEDED: Any = object()
_TEXT: _Field = (str, _NEEDED)
_LESSON: _Form = {
    "number": (int, _NEEDED), "title": _TEXT, "question": _TEXT, "experts": (bool, False),
    "opens": (dict, {}), "numbers": (dict, {}), "steps": (list, _NEEDED), "teaching": (dict, None),
}  # fmt: skip
_TEACHING: _Form = {
    "minutes": (int, _NEEDED), "aim": _TEXT, "wrong": _TEXT, "but": _TEXT, "board": _TEXT,
    "exercises": (list, []),
}  # fmt: skip
_STEP: _Form = {
    "title": _TEXT, "say": _TEXT, "scene": (SCENES, "board"), "changes": (dict, {}),
    "view": (dict, {}), "control": (_CONTROLS, ""), "move": (dict, {}), "extreme": (dict, {}),
    "moved": (str, ""), "question": (dict, None), "why": (str, ""), "hundred": (list, []),
    "ringed": (list, []),
}  # fmt: skip
_QUESTION: _Form = {
    "ask": _TEXT, "right": _TEXT, "options": (list, None), "axis": (dict, None), "then": (str, ""),
}  # fmt: skip


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


def _filled(said: Any, place: str, form: _Form) -> dict[str, Any]:
    """Return a table with every field of a form, each of its kind or its default."""
    _table(said, place, form)
    found: dict[str, Any] = {}
    for name, (kind, default) in form.items():
        value = found[name] = said.get(name, default)
        if isinstance(kind, tuple):
            if value not in kind:
                known = ", ".join(filter(None, kind))
                raise _Wrong(f"the {name} of {place} must be one of {known}")
        elif value is _NEEDED or (name in said and not isinstance(value, kind)):
            raise _Wrong(f"{place} needs {name} as {_KINDS[kind]}")
    return found


def _lesson(said: dict[str, Any]) -> Lesson:
    told = _filled(said, "the lesson", _LESSON)
    if not told["steps"]:
        raise _Wrong("the lesson needs [[steps]]")
    opens = replace(Settings(), **_settings(told["opens"], "opens"))
    numbers: dict[str, NamedNumber] = {}
    for name, one in told["numbers"].items():
        # in the file's order: a number may use those above it, so none uses itself
        numbers[name] = _number(name, one, opens, numbers)
    steps = tuple(_step(one, f"step {at}", numbers) for at, one in enumerate(told["steps"], 1))
    for step in steps:
        for text in step.texts:
            _named(text, numbers, repr(step.title))
    teaching = None if told["teaching"] is None else _teaching(told["teaching"], numbers)
    return Lesson(**told | {
        "opens": opens, "steps": steps, "numbers": numbers, "teaching": teaching
    })  # fmt: skip


def _teaching(said: Any, numbers: Mapping[str, NamedNumber]) -> Teaching:
    told = _filled(said, "teaching", _TEACHING)
    if told["minutes"] < 1:
        raise _Wrong("teaching needs its minutes, 1 or more")
    tasks = []
    for place, one in enumerate(told["exercises"], 1):
        name = f"exercise {place}"
        task = _filled(one, name, {"task": _TEXT, "answer": _TEXT})
        for text in task.values():
            _named(text, numbers, name)
        tasks.append((task["task"], task["answer"]))
    return Teaching(**told | {"exercises": tuple(tasks)})


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
        raise _Wrong(f"{item!r} is not a part; there are {', '.join(_PARTS)}")
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


def _step(said: Any, place: str, numbers: Mapping[str, NamedNumber]) -> Step:
    told = _filled(said, place, _STEP)
    view = _table(told["view"], f"the view of {place}", VIEW)
    if view.get("draw", "first") not in DRAWS:
        raise _Wrong(f"the draw of {place} must be one of {', '.join(DRAWS)}")
    told["view"] = {word: _parts(value) for word, value in view.items()}
    for name in ("changes", "move", "extreme"):
        told[name] = _changes(told[name], f"the {name} of {place}", numbers)
    for name in ("hundred", "ringed"):
        if not set(map(str, told[name])) <= set(numbers):
            raise _Wrong(f"{name} of {place} must be a list of names in [numbers]")
        told[name] = tuple(map(str, told[name]))
    if told["question"] is not None:
        told["question"] = _question(told["question"], f"the question of {place}", numbers)
    return Step(**told)


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
    told = _filled(said, place, _QUESTION)
    ask, right, then = told["ask"], told["right"], told["then"]
    # a bet is one of some words or a place on an axis, and never both
    if (told["options"] is None) == (told["axis"] is None):
        raise _Wrong(f"{place} needs either options or an axis")
    if told["axis"] is not None:
        ends = _table(told["axis"], f"the axis of {place}", ("low", "high"))
        low, high = ends.get("low"), ends.get("high")
        if not (
            isinstance(low, (int, float)) and isinstance(high, (int, float)) and 0 < low < high
        ):
            raise _Wrong(f"the axis of {place} needs low and high, above 0")
        if right not in numbers:
            raise _Wrong(f"{place}: right names {right!r}, which [numbers] does not compute")
        return Question(ask, right, axis=(float(low), float(high)), then=then)
    options = tuple(_option(one, place) for one in told["options"])
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
    told = _filled(said, f"an option of {place}", {"say": _TEXT, "is": _TEXT, "then": (str, "")})
    return Option(told["say"], told["is"], told["then"])
