"""Lessons in other languages: one file each that holds texts alone, keyed by lesson and step.

``[words]`` of such a file has what stage and phones say themselves, by the English of it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from dpviz.core.errors import InvalidSetting
from dpviz.core.release import VERDICT_WORDS
from dpviz.datasets.builtin.school import AGES, the_class
from dpviz.lessons.lesson import ENGLISH, Lesson, names_in
from dpviz.lessons.person import SCALE_BARS
from dpviz.report.figures.stage import assets
from dpviz.report.tables.frame import recovery_words

FOLDER = Path(__file__).parent / "languages"

WORDS = {
    "right": "Right",
    "wrong": "Not so",
    "said": "You said",
    "next": "Next",
    "lesson": "Next lesson",
    "before": "You bet right",
    "of": "of",
    "explore": "Open in Explore",
    "claims": "Open in Claims",
    "opened": "before",
    "moved": "after",
    "farther": "more",
    "read": "Read next: Claims says what each mechanism promises, Decide asks about your table.",
    "hundred": "of 100",
    "exact": "exact picture",
    "chance": "by chance",
    "bets": "bets",
    "bet_one": "bet",
    "join": "join",
    "show": "Show the bets",
    "move": "Make the move",
    "came": "came within a factor of two",
    "were": "were right",
}
"""What the stage says itself, beside the lessons' own texts."""

PHONE_WORDS = (
    "Room", "Look up. The next question comes here.",
    "This room has ended.", "more private", "sharper", "Send", "Sending ...", "Sent. Look up.",
    "Look up", "Your flag on the axis of epsilon", "with her", "without her", "your release",
)  # fmt: skip
"""What a phone says itself."""

WALL_WORDS = (
    "One release of {people} people for each phone, half of them with her.",
    "{count} of {dealt} have tapped", "{right} of {count} were right.", "Nobody has tapped.",
    "She was in: {right} of {count} right", "She was out: {right} of {count} right",
    "Of 100 guesses who is in, after {mechanism}: at most {limit} right.",
    "On average over both hundreds, for every guesser. Luck: at the limit, 95 of 100 such classes "
    "have at most {luck} of {count} right.",
    "Show the taps", "Draw the limit", "Another round", "Back to the lesson", "with her",
    "without her", "join", "QR code of {address}", "This room has ended.", "Epsilon",
)  # fmt: skip
"""What a projector says in a round of in or out."""

ASKED_WORDS = ("Was she in the table of your release?", "She was out", "She was in")
"""What a round of in or out asks, and what a phone can answer: by a tap of 0, or of 1."""

_PUBLISHED = (
    "no label can be distinguished",
    "labels would drown",
    "shows directions, not lengths",
)
"""What a picture of `dpviz.report.tables.board` says of itself in whole sentences."""

_SAID = re.compile(r'\bsays\(\s*"((?:[^"\\]|\\.)*)"')
_STEP = ("title", "say", "moved", "why", "ask", "then")


@cache
def names() -> dict[str, str]:
    """Return every language by its code, each in its own word; English first."""
    others = {path.stem: _file(path.stem)["name"] for path in sorted(FOLDER.glob("*.toml"))}
    return {ENGLISH: "English", **others}


@cache
def _file(language: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


def require(language: str) -> None:
    """Raise InvalidSetting for a code that is no language's."""
    if language not in names():
        raise InvalidSetting("language", ", ".join(names()), language, "--language")


def words(language: str) -> Mapping[str, str]:
    """Return what the stage and the phones say beside lessons, by the English of it."""
    found: dict[str, str] = {} if language == ENGLISH else _file(language)["words"]
    return found


def own_words(language: str) -> dict[str, str]:
    """Return `WORDS` in a language."""
    said = words(language)
    return {name: said.get(text, text) for name, text in WORDS.items()}


def phone_words(language: str) -> dict[str, str]:
    """Return `PHONE_WORDS` in a language, by the English of them; none in English."""
    said = words(language)
    return {text: said[text] for text in PHONE_WORDS if text in said}


def wall_words(language: str) -> dict[str, str]:
    """Return `WALL_WORDS` in a language, by the English of them; none in English."""
    said = words(language)
    return {text: said[text] for text in WALL_WORDS if text in said}


@cache
def messages() -> frozenset[str]:
    """Return everything that a stage or a phone says beside lessons, in English."""
    # found in the script itself, so that no list of its sentences can be out of date
    said = (text.replace("\\u00a0", "\u00a0") for text in _SAID.findall(assets().js))
    kept = map(recovery_words, (0.0, 0.2, 0.7, 1.0))
    bars = [text for _, text, _ in SCALE_BARS]
    own = (WORDS.values(), PHONE_WORDS, WALL_WORDS, ASKED_WORDS, _PUBLISHED, VERDICT_WORDS.values())
    every = {*said, *kept, *bars, *the_class()[0], *AGES, "age", *chain.from_iterable(own)}
    return frozenset(every)


def texts(lesson: Lesson) -> dict[str, str]:
    """Return every text of a lesson by its place: ``2.say``, or ``2.options.1``."""
    found = {"title": lesson.title, "question": lesson.question}
    for place, step in enumerate(lesson.steps, 1):
        # a text that is empty is nothing to translate, and no gap
        asked = step.question
        held = {name: getattr(step, name, "") for name in _STEP}
        if asked is not None:
            held |= {"ask": asked.ask, "then": asked.then}
            for at, option in enumerate(asked.options, 1):
                held |= {f"options.{at}": option.says, f"thens.{at}": option.then}
        found |= {f"{place}.{name}": text for name, text in held.items() if text}
    return found


def _flat(said: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in said.items():
        if isinstance(value, list):
            value = {str(place): text for place, text in enumerate(value, 1)}
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", str(value)


def translated(lesson: Lesson, language: str) -> Lesson:
    """Return a lesson in another language; a text that is not there stays in English."""
    if language == ENGLISH:
        return lesson
    # a language grows text by text: what it lacks is said in English meanwhile
    said = texts(lesson) | dict(_flat(_file(language).get(lesson.key, {})))
    steps = []
    for place, step in enumerate(lesson.steps, 1):
        own = {name: said.get(f"{place}.{name}", "") for name in _STEP}
        asked = step.question
        if asked is not None:
            # in their place: what is right is known by it
            options = tuple(
                replace(
                    one,
                    says=said[f"{place}.options.{at}"],
                    then=said.get(f"{place}.thens.{at}", one.then),
                )
                for at, one in enumerate(asked.options, 1)
            )
            asked = replace(asked, ask=own["ask"], then=own["then"], options=options)
        steps.append(
            replace(
                step,
                question=asked,
                title=own["title"],
                say=own["say"],
                moved=own["moved"],
                why=own["why"],
            )
        )
    return replace(
        lesson, title=said["title"], question=said["question"], steps=tuple(steps),
        language=language, english=lesson,
    )  # fmt: skip


def gaps(course: tuple[Lesson, ...], language: str) -> list[str]:
    """Return what a language's file leaves out, has too much, or fills with other numbers."""
    file = _file(language)
    rest = {name: said for name, said in file.items() if name not in ("name", "words")}
    wanted = {f"{one.key}.{at}": text for one in course for at, text in texts(one).items()}
    wanted |= {f"words.{text}": text for text in messages()}
    given = dict(_flat(rest)) | {f"words.{text}": said for text, said in file["words"].items()}
    found = [f"{place} is not there." for place in sorted(set(wanted) - set(given))]
    # what no lesson has is most likely mistyped, and its text stays English
    found += [f"{place} is in no lesson." for place in sorted(set(given) - set(wanted))]
    for place in sorted(set(given) & set(wanted)):
        named = names_in(given[place])
        # words may change order, the numbers they are about may not
        if named != names_in(wanted[place]):
            has = ", ".join(sorted(names_in(wanted[place]))) or "none"
            found.append(f"{place} must have the numbers of the English text: {has}.")
    return found
