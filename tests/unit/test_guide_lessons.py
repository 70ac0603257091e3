"""Every lesson: its checks hold, and every number is computed again by other code."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from dpviz.core.files import PACKAGE
from dpviz.core.number_text import numeral, per_cent
from dpviz.lessons import Lesson, course
from dpviz.lessons.cast import plain
from dpviz.lessons.lesson import INVENTED, names_in
from dpviz.lessons.person import EPSILONS
from dpviz.lessons.scene import scene
from dpviz.preparation.load import load_measured
from dpviz.simulation.predict import predict

pytestmark = pytest.mark.long

COURSE = course()
ALL = [pytest.param(lesson, id=str(lesson.number)) for lesson in COURSE]


def test_every_script_is_a_lesson_and_those_for_experts_come_last() -> None:
    scripts = list((PACKAGE / "lessons" / "scripts").glob("*.toml"))
    assert [lesson.number for lesson in COURSE] == list(range(1, len(scripts) + 1))
    experts = [lesson.experts for lesson in COURSE]
    assert experts == sorted(experts)
    assert [lesson.title for lesson in COURSE][:2] == ["Why", "One person"]


@pytest.mark.parametrize("lesson", ALL)
def test_every_step_can_be_shown_before_and_after_its_moves(lesson: Lesson) -> None:
    for place, step in enumerate(lesson.steps):
        states = [lesson.state(place, made) for made in range(len(lesson.moves(place)) + 1)]
        assert all(one != other for one, other in itertools.combinations(states, 2))
        assert bool(step.move) == bool(step.moved)
        asked = lesson.question_at(place)
        if asked is None:
            continue
        assert asked.possible(asked.right)
        assert asked.says(asked.right).startswith("Right")
        if asked.axis is None:
            wrong = [bet for bet in range(len(asked.options)) if bet != asked.right]
        else:
            # A flag is right within a factor of two, and the move goes to what was asked.
            low, high = asked.axis
            wrong = [bet for bet in (low, high) if abs(math.log(bet / asked.right)) > math.log(2)]
            assert lesson.state(place, 1).settings.epsilon == asked.right
            assert asked.says(min(high, 1.99 * asked.right)).startswith("Right")
        assert wrong
        assert all(asked.says(bet).startswith("Not so") for bet in wrong)


def marks(lesson: Lesson, place: int) -> set[str]:
    """Every number that a step writes at a line, a bar, a dot or a face, at some stop of it."""
    step, held = lesson.steps[place], scene(lesson, place)
    states = [lesson.state(place, made) for made in range(len(lesson.moves(place)) + 1)]
    found = {lesson.numbers[name].fact.text for name in (*step.hundred, *step.ringed)}
    found |= {"100"} if step.hundred else set()
    if held["kind"] not in INVENTED:
        found |= {numeral(state.settings.epsilon) for state in states}
    if held["kind"] == "leak":
        found |= {text for name, text in held.items() if name.endswith("Text")}
        found.add(str(len(held["rows"])))
    elif held["kind"] == "cloud":
        found |= {held["keptText"], str(len(held["rows"]))}
    elif held["kind"] == "people":
        found |= set(held["texts"])
    elif held["kind"] == "faces":
        at = {one["epsilon"]: one["text"] for one in held["frames"]}
        counts = [held["beforeText"], *(at[stop["epsilon"]] for stop in held["stops"])]
        found |= {"100", *map(per_cent, counts)}
    elif held["kind"] == "board":
        for stop in held["stops"]:
            one = held["boards"][stop["board"]]
            frame = next(
                each for each in one["payload"]["frames"] if each["epsilon"] == stop["epsilon"]
            )
            for key, cell in frame["cells"].items():
                found.add(cell["texts"]["recovery"])
                found |= set(map(str, frame.get("counted", {}).get(key, ())))
                if "distance" in one["options"]["rows"]:  # a dot for each draw, and their ends
                    found |= {*cell["texts"]["range"], str(len(cell["distances"]))}
    return found


@pytest.mark.parametrize("lesson", ALL)
def test_a_reason_gives_no_number_that_the_picture_does_not_mark(lesson: Lesson) -> None:
    for place, step in enumerate(lesson.steps):
        texts = {lesson.facts[name] for name in names_in(step.why)}
        numbers = {text for text in texts if re.search(r"\d", text)}
        if numbers:
            assert numbers <= marks(lesson, place), (place + 1, numbers - marks(lesson, place))


def test_bets_are_bets() -> None:
    """Half of them are flags, and among the others no place is right nearly always."""
    questions = [
        lesson.question_at(place) for lesson in COURSE for place in range(len(lesson.steps))
    ]
    asked = [one for one in questions if one is not None]
    flags = [one for one in asked if one.axis is not None]
    places = [int(one.right) for one in asked if one.axis is None]
    assert len(flags) >= len(asked) / 2
    assert len(set(places)) > 1
    last = sum(one.right == len(one.options) - 1 for one in asked if one.axis is None)
    assert last <= 0.7 * len(places)
    for lesson in COURSE:  # and the text before the bet does not say the answer
        for step in lesson.steps:
            if step.question is not None:
                before = names_in(step.say) | names_in(step.question.ask)
                assert step.question.right not in before


def test_the_counts_of_drowning() -> None:
    lesson = COURSE[5]
    facts, measured = lesson.facts, load_measured(lesson.opens)
    values = measured.moment.eigenvalues
    for name, epsilon in (
        ("many", 10.0), ("asked", float(facts["crossing"])), ("few", 0.1)
    ):  # fmt: skip
        settings = replace(lesson.opens, epsilon=epsilon)
        mechanism = plain()
        calibration = mechanism.calibrate(measured.problem(settings), measured.budget(settings))
        noise = mechanism.free_noise(calibration)
        assert noise is not None
        count = int(facts[name])
        tables = [np.zeros(len(values))]
        tables += [predict(values, j, noise).overlaps for j in range(1, count + 2)]
        grown = [tables[j][j - 1] - tables[j - 1][j - 1] for j in range(1, count + 2)]
        assert all(overlap >= 0.5 for overlap in grown[:count])
        assert grown[count] < 0.5
        if name == "asked":
            # the lone threshold of a GOE: s sqrt(d), s its off-diagonal standard deviation
            edge = calibration.scale / math.sqrt(2) * math.sqrt(len(values))
            assert int(facts["naive"]) == int((values > edge).sum())


def test_the_risk_of_one_person() -> None:
    facts = COURSE[1].facts
    for within, epsilon in (("within", 1.0), ("within_least", 0.1)):
        assert facts[within] == f"{math.ceil(100 / (1 + math.exp(-epsilon)))}"  # outwards
    assert facts["within"] == "74"
    # a limit for every place, and beside it stands what is reached at hers
    assert "nobody finds her more than {within} times" in COURSE[1].steps[1].say
    odds = 0.01 / 0.99 * math.e
    assert facts["after"] == f"{100 * odds / (1 + odds):.2g}\u00a0%" == "2.7\u00a0%"
    assert facts["sure"] == f"{math.log(0.88 / 0.12):.2g}" == "2"
    assert facts["turned"] == f"{math.log(0.6 / 0.4 * 0.99 / 0.01):.2g}" == "5"
    for name in ("sure", "turned"):  # the clouds can be looked at there
        assert float(facts[name]) in EPSILONS


def test_a_hundred_faces_show_what_a_suspicion_becomes() -> None:
    lesson = COURSE[1]
    held = scene(lesson, 3)
    assert held["kind"] == "faces"
    assert (held["before"], lesson.facts["prior"]) == (1.0, "1\u00a0%")
    by = {one["epsilon"]: one for one in held["frames"]}
    for name, stop in zip(("after", "likely", "certain"), held["stops"], strict=True):
        odds = 0.01 / 0.99 * math.exp(stop["epsilon"])
        assert by[stop["epsilon"]]["count"] == pytest.approx(100 * odds / (1 + odds))
        assert f"{by[stop['epsilon']]['text']}\u00a0%" == lesson.facts[name]
    counts = [one["count"] for one in held["frames"]]
    assert counts == sorted(counts)
    assert len(set(counts)) == len(counts) > 20
