"""Lessons in other languages: one file for each language, with texts by lesson and step.

The table ``[words]`` of such a file translates the texts of animation page and phones.
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
"""Texts of the animation page itself, apart from the lessons' texts."""

PHONE_WORDS = (
    "Room", "Look up. The next question comes here.",
    "This room has ended.", "more private", "sharper", "Send", "Sending ...", "Sent. Look up.",
    "Look up", "Your flag on the axis of epsilon", "with her", "without her", "your release",
)  # fmt: skip
"""Texts of a phone's page."""

WALL_WORDS = (
    "Each phone has one release of {people} people; in half of the releases she is in the table.",
    "{count} of {dealt} have tapped", "{right} of {count} were right.", "Nobody has tapped.",
    "She was in: {right} of {count} right", "She was out: {right} of {count} right",
    "After {mechanism}, at most {limit} in 100 guesses who is in are right.",
    "This holds on average over releases with and without her, for every guesser. Luck varies: at "
    "the limit, 95 in 100 such classes have at most {luck} of {count} right.",
    "Show the answers", "Show the limit", "Another round", "Back to the lesson", "with her",
    "without her", "join", "QR code of {address}", "This room has ended.", "Epsilon",
)  # fmt: skip
"""Texts of the projector in a round of "in or out"."""

ASKED_WORDS = ("Was she in the table of your release?", "She was out", "She was in")
"""Question of a round of "in or out", then its two answers: a tap of 0, or of 1."""

_PUBLISHED = (
    "no label can be distinguished",
    "noise would hide the labels",
    "the chart shows directions, not lengths",
)
"""Complete sentences in a chart of `dpviz.report.tables.board`."""

_SAID = re.compile(r'\bsays\(\s*"((?:[^"\\]|\\.)*)"')
_STEP = ("title", "say", "moved", "why", "ask", "then")


@cache
def names() -> dict[str, str]:
    """Return each language's own name by its code; English first."""
    others = {path.stem: _file(path.stem)["name"] for path in sorted(FOLDER.glob("*.toml"))}
    return {ENGLISH: "English", **others}


@cache
def _file(language: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


def require(language: str) -> None:
    """Raise InvalidSetting if no language has this code."""
    if language not in names():
        raise InvalidSetting("language", ", ".join(names()), language, "--language")


def words(language: str) -> Mapping[str, str]:
    """Return the texts of the animation page and the phones in a language, by the English text."""
    by_text: dict[str, str] = {} if language == ENGLISH else _file(language)["words"]
    return by_text


def own_words(language: str) -> dict[str, str]:
    """Return `WORDS` in a language."""
    by_text = words(language)
    return {name: by_text.get(text, text) for name, text in WORDS.items()}


def phone_words(language: str) -> dict[str, str]:
    """Return `PHONE_WORDS` in a language, keyed by the English text; empty for English."""
    by_text = words(language)
    return {text: by_text[text] for text in PHONE_WORDS if text in by_text}


def wall_words(language: str) -> dict[str, str]:
    """Return `WALL_WORDS` in a language, keyed by the English text; empty for English."""
    by_text = words(language)
    return {text: by_text[text] for text in WALL_WORDS if text in by_text}


@cache
def messages() -> frozenset[str]:
    """Return every English text of animation page and phones, apart from the lessons' texts."""
    # Find the sentences in the script itself, because a separate list could be out of date.
    script = (text.replace("\\u00a0", "\u00a0") for text in _SAID.findall(assets().js))
    shares = map(recovery_words, (0.0, 0.2, 0.7, 1.0))
    bars = [text for _, text, _ in SCALE_BARS]
    own = (WORDS.values(), PHONE_WORDS, WALL_WORDS, ASKED_WORDS, _PUBLISHED, VERDICT_WORDS.values())
    every = {*script, *shares, *bars, *the_class()[0], *AGES, "age", *chain.from_iterable(own)}
    return frozenset(every)


def texts(lesson: Lesson) -> dict[str, str]:
    """Return every text of a lesson by its place: ``2.say``, or ``2.options.1``."""
    by_place = {"title": lesson.title, "question": lesson.question}
    for place, step in enumerate(lesson.steps, 1):
        # An empty text needs no translation, so it does not count as missing.
        question = step.question
        fields = {name: getattr(step, name, "") for name in _STEP}
        if question is not None:
            fields |= {"ask": question.ask, "then": question.then}
            for at, option in enumerate(question.options, 1):
                fields |= {f"options.{at}": option.says, f"thens.{at}": option.then}
        by_place |= {f"{place}.{name}": text for name, text in fields.items() if text}
    return by_place


def _flat(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in content.items():
        if isinstance(value, list):
            value = {str(place): text for place, text in enumerate(value, 1)}
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", str(value)


def translated(lesson: Lesson, language: str) -> Lesson:
    """Return a lesson in another language; texts without a translation stay in English."""
    if language == ENGLISH:
        return lesson
    # A text without a translation is shown in English.
    by_place = texts(lesson) | dict(_flat(_file(language).get(lesson.key, {})))
    steps = []
    for place, step in enumerate(lesson.steps, 1):
        own = {name: by_place.get(f"{place}.{name}", "") for name in _STEP}
        question = step.question
        if question is not None:
            # Keep the order of the options, because the right option is found by its position.
            options = tuple(
                replace(
                    one,
                    says=by_place[f"{place}.options.{at}"],
                    then=by_place.get(f"{place}.thens.{at}", one.then),
                )
                for at, one in enumerate(question.options, 1)
            )
            question = replace(question, ask=own["ask"], then=own["then"], options=options)
        steps.append(
            replace(
                step,
                question=question,
                title=own["title"],
                say=own["say"],
                moved=own["moved"],
                why=own["why"],
            )
        )
    return replace(
        lesson, title=by_place["title"], question=by_place["question"], steps=tuple(steps),
        language=language, english=lesson,
    )  # fmt: skip


def gaps(course: tuple[Lesson, ...], language: str) -> list[str]:
    """Return the texts that a translation lacks, adds or fills with other numbers."""
    file = _file(language)
    rest = {name: text for name, text in file.items() if name not in ("name", "words")}
    sources = {f"{one.key}.{at}": text for one in course for at, text in texts(one).items()}
    sources |= {f"words.{text}": text for text in messages()}
    target = dict(_flat(rest)) | {f"words.{text}": value for text, value in file["words"].items()}
    faults = [f"{place} is missing." for place in sorted(set(sources) - set(target))]
    # Report a text position that is in no lesson: it is misspelt, so its text stays English.
    faults += [f"{place} is in no lesson." for place in sorted(set(target) - set(sources))]
    for place in sorted(set(target) & set(sources)):
        names = names_in(target[place])
        # A translation may reorder its words but must name the same numbers.
        if names != names_in(sources[place]):
            has = ", ".join(sorted(names_in(sources[place]))) or "none"
            faults.append(f"{place} must use the numbers of the English text: {has}.")
    return faults
