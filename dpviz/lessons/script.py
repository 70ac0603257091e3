"""Lessons as files: one TOML file for each lesson, which is checked as data.

A file holds texts, settings and the names of quantities; no part of the file is evaluated. A
teacher's folder of lessons is read in the same way.
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
"""Folder of the built-in lessons."""

WORDS = 14
"""Maximum number of words in a sentence beside the chart, and in a question."""

_PART = "part:"
_PARTS: dict[str, Callable[[], Mechanism]] = {
    "plain": cast.plain, "pure": cast.pure, "published": cast.published, "shaped": cast.shaped
}  # fmt: skip
VIEW = (
    "measures", "clouds", "shown", "declared", "draw", "play_draws", "mechanisms", "publishable",
    "line", "marked", "prior", "counted",
)  # fmt: skip
"""Options of a step that concern its chart only; no option has the name of a setting."""
_CONTROLS = (
    "", "epsilon", "mechanism", "row", "precision", "draws", "mean", "bound", "declared"
)  # fmt: skip
_Field: TypeAlias = tuple[Any, Any]
_Form: TypeAlias = Mapping[str, _Field]
"""For each field of a table: its type or its allowed words, and its default."""
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
    """Raised if a lesson's file is not valid."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")


def read_folder(folder: Path) -> tuple[Lesson, ...]:
    """Return every lesson of a folder, sorted by number.

    Raises
    ------
    InvalidLesson
        If a file is not a lesson, if numbers are not 1 to n, or if the folder has no file.
    """
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise InvalidLesson(folder.name, "the folder has no lesson (a file that ends in .toml).")
    course = sorted(map(read, files), key=lambda lesson: lesson.number)
    numbers = [lesson.number for lesson in course]
    if numbers != list(range(1, len(course) + 1)):
        text = ", ".join(map(str, numbers))
        raise InvalidLesson(
            folder.name,
            f"lessons must be numbered from 1 to {len(course)}, each once; got {text}.",
        )
    return tuple(course)


def read(path: Path) -> Lesson:
    """Return the lesson in a file.

    Raises
    ------
    InvalidLesson
        If the file does not hold a valid lesson.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidLesson(path.name, f"not a TOML file: {error}.") from None
    except OSError:
        raise InvalidLesson(path.name, "the file cannot be read.") from None
    try:
        return replace(_lesson(raw), key=path.stem)
    except InvalidSetting as error:
        raise InvalidLesson(path.name, str(error)) from None
    except _Wrong as error:
        raise InvalidLesson(path.name, f"{error}.") from None


def problems(lesson: Lesson) -> list[str]:
    """Return a lesson's mistakes, one sentence for each; the check computes every number.

    Mistakes are a number that no text uses, a typed digit, a sentence of more than `WORDS` words,
    and a right answer that is not an option or lies off the axis.
    """
    texts = [text for step in lesson.steps for text in step.texts]
    spare = set(lesson.numbers) - _used_names(lesson, texts)
    faults = [f"the number {name!r} is used nowhere." for name in spare]
    for text in texts:
        # All numbers of a lesson are computed: a text may have digits only in a name in braces.
        if re.search(r"\d", re.sub(r"\{\w+\}", "", text)):
            faults.append(f"a number is typed, not computed, in {text!r}.")
    try:
        # If one number cannot be computed, the later checks cannot be trusted, so return here.
        lesson.facts  # noqa: B018 - computes them
    except (DpvizError, ValueError, RuntimeError, LookupError, TypeError) as error:
        return [*faults, f"a number cannot be computed: {error}."]
    for place in range(len(lesson.steps)):
        faults += _problems_of_step(lesson, place)
    return faults


def _used_names(lesson: Lesson, texts: Iterable[str]) -> set[str]:
    """Return the names of the numbers that a text, a question, a move or another number uses."""
    names = set().union(*(names_in(text) for text in (lesson.question, lesson.title, *texts)))
    names |= {name for one in lesson.numbers.values() for name in one.needs}
    for exercise in lesson.teaching.exercises if lesson.teaching else ():
        names |= set().union(*map(names_in, exercise))
    for step in lesson.steps:
        names |= {*step.hundred, *step.ringed}
        names |= set() if step.question is None else {step.question.right}
        for move in (step.changes, step.move, step.extreme):
            names |= {
                value.removeprefix(AT)
                for value in move.values()
                if isinstance(value, str) and value.startswith(AT)
            }
    return names


def _problems_of_step(lesson: Lesson, place: int) -> list[str]:
    """Return the mistakes of one step, after every number is computed."""
    step, quiz, stops = (
        lesson.steps[place],
        lesson.question_at(place),
        len(lesson.moves(place)) + 1,
    )
    faults = []
    for text in (step.say, "" if step.question is None else step.question.ask):
        count = len(text.split())
        if count > WORDS:
            faults.append(f"{count} words, at most {WORDS}: {lesson.filled(text)!r}.")
    if quiz is not None and quiz.axis is None and len(set(quiz.options)) < 2:
        faults.append(f"the options of {quiz.ask!r} do not differ.")
    if quiz is not None and not quiz.possible(quiz.right):
        faults.append(f"the right answer to {quiz.ask!r}, {quiz.right_text}, is off the axis.")
    # The number of filled dots depends on epsilon, so each step needs one number for each stop.
    if step.hundred and len(step.hundred) != stops:
        faults.append(f"the list hundred of {step.title!r} needs {stops} numbers.")
    if bool(step.move) != bool(step.moved):
        faults.append(f"{step.title!r} needs both move and moved, or neither.")
    for moves in range(stops):
        state = lesson.state(place, moves)  # This call raises an error for invalid settings.
        if state.view.get("marked") and state.settings.table != SCHOOL:
            faults.append(f"{step.title!r} uses marked, which needs the table {SCHOOL}.")
    return faults


class _Wrong(ValueError):
    """A mistake in a file; the message does not name the file."""


def _table(raw: Any, name: str, names: Iterable[str]) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise _Wrong(f"{name} must be a table")
    # Refuse unknown fields; otherwise a misspelled word would be ignored silently.
    wrong = sorted(set(raw) - set(names))
    if wrong:
        raise _Wrong(f"{name} has no {wrong[0]!r}; it may have {', '.join(names)}")
    return raw


def _fill_form(raw: Any, place: str, form: _Form) -> dict[str, Any]:
    """Return a table with every field of a form, each checked or set to its default."""
    _table(raw, place, form)
    values: dict[str, Any] = {}
    for name, (kind, default) in form.items():
        value = values[name] = raw.get(name, default)
        if isinstance(kind, tuple):
            if value not in kind:
                names = ", ".join(filter(None, kind))
                raise _Wrong(f"the {name} of {place} must be one of {names}")
        elif value is _NEEDED or (name in raw and not isinstance(value, kind)):
            raise _Wrong(f"{place} needs {name} as {_KINDS[kind]}")
    return values


def _lesson(raw: dict[str, Any]) -> Lesson:
    values = _fill_form(raw, "the lesson", _LESSON)
    if not values["steps"]:
        raise _Wrong("the lesson needs at least one [[steps]] section")
    opens = replace(Settings(), **_settings(values["opens"], "opens"))
    numbers: dict[str, NamedNumber] = {}
    for name, one in values["numbers"].items():
        # Numbers keep their order in the file, so each can use only earlier ones and never itself.
        numbers[name] = _number(name, one, opens, numbers)
    steps = tuple(_step(one, f"step {at}", numbers) for at, one in enumerate(values["steps"], 1))
    for step in steps:
        for text in step.texts:
            _check_names(text, numbers, repr(step.title))
    teaching = None if values["teaching"] is None else _teaching(values["teaching"], numbers)
    return Lesson(**values | {
        "opens": opens, "steps": steps, "numbers": numbers, "teaching": teaching
    })  # fmt: skip


def _teaching(raw: Any, numbers: Mapping[str, NamedNumber]) -> Teaching:
    values = _fill_form(raw, "teaching", _TEACHING)
    if values["minutes"] < 1:
        raise _Wrong("teaching needs minutes of at least 1")
    tasks = []
    for place, one in enumerate(values["exercises"], 1):
        name = f"exercise {place}"
        task = _fill_form(one, name, {"task": _TEXT, "answer": _TEXT})
        for text in task.values():
            _check_names(text, numbers, name)
        tasks.append((task["task"], task["answer"]))
    return Teaching(**values | {"exercises": tuple(tasks)})


def _check_names(text: str, numbers: Mapping[str, NamedNumber], place: str) -> None:
    try:
        names = names_in(text)
    except ValueError:
        raise _Wrong(f"{place} has a brace without its closing brace in {text!r}") from None
    for name in sorted(names - set(numbers)):
        raise _Wrong(f"{place} uses {{{name}}}, which the section [numbers] does not define")


def _settings(raw: Any, place: str) -> dict[str, Any]:
    # The settings class itself checks the values, so a lesson can set only what a page can set.
    params = params_of(Settings)
    values = {}
    for name, value in _table(raw, place, params).items():
        values[name] = params[name].clean(_parts(value))
    return values


def _parts(value: Any) -> Any:
    """Return a list after replacing each role, such as `pure`, by the mechanism for this role."""
    if not isinstance(value, list):
        return value
    return tuple(map(_part, value))


def _part(item: Any) -> Any:
    if not isinstance(item, str) or not item.startswith(_PART):
        return item
    name = item.removeprefix(_PART)
    if name not in _PARTS:
        raise _Wrong(f"{item!r} is not a part; there are {', '.join(_PARTS)}")
    # A mechanism is found by its properties, so lessons need no change if a mechanism is added.
    return _PARTS[name]().key


def _number(name: str, raw: Any, opens: Settings, before: Mapping[str, NamedNumber]) -> NamedNumber:
    """Return a number of the lesson; it may use the numbers before it in the file."""
    place = f"the number {name!r}"
    raw = {"of": raw} if isinstance(raw, str) else raw
    if not isinstance(raw, dict) or ("of" in raw) == ("where" in raw):
        raise _Wrong(f"{place} must be a quantity's name, or a table with the key `of` or `where`")
    key = raw.get("of", raw.get("where"))
    if key not in QUANTITIES:
        raise _Wrong(f"{place} must name one of the quantities {', '.join(QUANTITIES)}")
    quantity, target = QUANTITIES[key], raw.get("reaches")
    # The key `where` seeks the epsilon at which one quantity equals another number.
    if ("where" in raw) != (target is not None) or (target is not None and target not in before):
        raise _Wrong(f"{place} with the key `where` needs `reaches`: the name of an earlier number")
    arguments = {word: value for word, value in raw.items() if word in quantity.arguments}
    missing = set(quantity.required) - set(arguments)
    if missing:
        raise _Wrong(f"{place} needs {sorted(missing)[0]}")
    own = {"of", "where", "reaches", *arguments}
    rest = {word: value for word, value in raw.items() if word not in own}
    links = {word: value for word, value in rest.items() if value in before}
    numbers = {word: value for word, value in rest.items() if word not in links}
    _table(links, place, params_of(Settings))
    settings = replace(opens, **_settings(numbers, place))

    def compute() -> Fact:
        # Numbers of the lesson are read only here, because each is computed on its first use.
        there = replace(settings, **{word: before[one].fact.value for word, one in links.items()})
        if target is None:
            return quantity.at(there, **arguments)
        epsilon = where(quantity, there, arguments, float(before[target].fact.value))
        return QUANTITIES["epsilon"].at(replace(there, epsilon=epsilon))

    needs = (*links.values(), *([] if target is None else [target]))
    return NamedNumber(compute, needs)


def _step(raw: Any, place: str, numbers: Mapping[str, NamedNumber]) -> Step:
    values = _fill_form(raw, place, _STEP)
    view = _table(values["view"], f"the view of {place}", VIEW)
    if view.get("draw", "first") not in DRAWS:
        raise _Wrong(f"the key `draw` of {place} must be one of {', '.join(DRAWS)}")
    values["view"] = {word: _parts(value) for word, value in view.items()}
    for name in ("changes", "move", "extreme"):
        values[name] = _changes(values[name], f"the {name} of {place}", numbers)
    for name in ("hundred", "ringed"):
        if not set(map(str, values[name])) <= set(numbers):
            raise _Wrong(f"{name} of {place} must be a list of names from the section [numbers]")
        values[name] = tuple(map(str, values[name]))
    if values["question"] is not None:
        values["question"] = _question(values["question"], f"the question of {place}", numbers)
    return Step(**values)


def _changes(raw: Any, place: str, numbers: Mapping[str, NamedNumber]) -> dict[str, Any]:
    """Return changes of settings or of view options; a setting may be a number of the lesson."""
    params = params_of(Settings)
    values: dict[str, Any] = {}
    for name, value in _table(raw, place, (*params, *VIEW)).items():
        if isinstance(value, str) and value.startswith(AT):
            if value.removeprefix(AT) not in numbers:
                raise _Wrong(f"{place}: the section [numbers] lacks {value.removeprefix(AT)!r}")
            values[name] = value
        else:
            values[name] = params[name].clean(_parts(value)) if name in params else value
    return values


def _question(raw: Any, place: str, numbers: Mapping[str, NamedNumber]) -> Question:
    values = _fill_form(raw, place, _QUESTION)
    ask, right, then = values["ask"], values["right"], values["then"]
    # The answer to a bet is either one of several words or a place on an axis.
    if (values["options"] is None) == (values["axis"] is None):
        raise _Wrong(f"{place} needs either the key `options` or the key `axis`")
    if values["axis"] is not None:
        ends = _table(values["axis"], f"the axis of {place}", ("low", "high"))
        low, high = ends.get("low"), ends.get("high")
        if not (
            isinstance(low, (int, float)) and isinstance(high, (int, float)) and 0 < low < high
        ):
            raise _Wrong(f"the axis of {place} needs the keys `low` and `high`, both above 0")
        if right not in numbers:
            raise _Wrong(f"{place}: the section [numbers] lacks {right!r}, named by key `right`")
        return Question(ask, right, axis=(float(low), float(high)), then=then)
    options = tuple(_option(one, place) for one in values["options"])
    for option in options:
        _check_names(option.value, numbers, place)
        if not (option.then or then):
            raise _Wrong(f"{place} needs the key `then`, the text after {option.says!r}")
    if len(options) < 2:
        raise _Wrong(f"{place} needs at least two answer options")
    # The right answer must be one of the options, or a number that equals one of them.
    if right not in numbers and right not in [option.value for option in options]:
        raise _Wrong(f"{place}: {right!r}, named by the key `right`, is no number and no option")
    return Question(ask, right, options, then=then)


def _option(raw: Any, place: str) -> Option:
    if isinstance(raw, str):
        names = names_in(raw)
        if len(names) != 1:
            raise _Wrong(f"{place}: the option {raw!r} must name one number, or have the key `is`")
        return Option(raw, f"{{{names.pop()}}}")
    parts = _fill_form(raw, f"an option of {place}", {"say": _TEXT, "is": _TEXT, "then": (str, "")})
    return Option(parts["say"], parts["is"], parts["then"])
