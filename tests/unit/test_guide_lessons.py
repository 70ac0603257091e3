"""Every lesson: its checks hold, and other code computes every number again."""

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
            # A bet within a factor of two is right; after it, the chart shows the right answer.
            low, high = asked.axis
            wrong = [bet for bet in (low, high) if abs(math.log(bet / asked.right)) > math.log(2)]
            assert lesson.state(place, 1).settings.epsilon == asked.right
            assert asked.says(min(high, 1.99 * asked.right)).startswith("Right")
        assert wrong
        assert all(asked.says(bet).startswith("Not so") for bet in wrong)


def marks(lesson: Lesson, place: int) -> set[str]:
    """Return every number of a step's lines, bars, dots and faces, at any of its stops."""
    step, picture = lesson.steps[place], scene(lesson, place)
    states = [lesson.state(place, made) for made in range(len(lesson.moves(place)) + 1)]
    texts = {lesson.numbers[name].fact.text for name in (*step.hundred, *step.ringed)}
    texts |= {"100"} if step.hundred else set()
    if picture["kind"] not in INVENTED:
        texts |= {numeral(state.settings.epsilon) for state in states}
    if picture["kind"] == "leak":
        texts |= {text for name, text in picture.items() if name.endswith("Text")}
        texts.add(str(len(picture["rows"])))
    elif picture["kind"] == "cloud":
        texts |= {picture["keptText"], str(len(picture["rows"]))}
    elif picture["kind"] == "people":
        texts |= set(picture["texts"])
    elif picture["kind"] == "faces":
        at = {one["epsilon"]: one["text"] for one in picture["frames"]}
        counts = [picture["beforeText"], *(at[stop["epsilon"]] for stop in picture["stops"])]
        texts |= {"100", *map(per_cent, counts)}
    elif picture["kind"] == "board":
        for stop in picture["stops"]:
            one = picture["boards"][stop["board"]]
            frame = next(
                each for each in one["payload"]["frames"] if each["epsilon"] == stop["epsilon"]
            )
            for key, cell in frame["cells"].items():
                texts.add(cell["texts"]["recovery"])
                texts |= set(map(str, frame.get("counted", {}).get(key, ())))
                if "distance" in one["options"]["rows"]:
                    texts |= {*cell["texts"]["range"], str(len(cell["distances"]))}
    return texts


@pytest.mark.parametrize("lesson", ALL)
def test_a_reason_gives_no_number_that_the_picture_does_not_mark(lesson: Lesson) -> None:
    for place, step in enumerate(lesson.steps):
        texts = {lesson.facts[name] for name in names_in(step.why)}
        numbers = {text for text in texts if re.search(r"\d", text)}
        if numbers:
            assert numbers <= marks(lesson, place), (place + 1, numbers - marks(lesson, place))


def test_bets_are_bets() -> None:
    """At least half of the bets are flags; among the others, no place is right nearly always."""
    questions = [
        lesson.question_at(place) for lesson in COURSE for place in range(len(lesson.steps))
    ]
    asking = [one for one in questions if one is not None]
    flags = [one for one in asking if one.axis is not None]
    places = [int(one.right) for one in asking if one.axis is None]
    assert len(flags) >= len(asking) / 2
    assert len(set(places)) > 1
    last = sum(one.right == len(one.options) - 1 for one in asking if one.axis is None)
    assert last <= 0.7 * len(places)
    for lesson in COURSE:  # The text before the bet must not reveal the answer.
        for step in lesson.steps:
            if step.question is not None:
                before = names_in(step.say) | names_in(step.question.ask)
                assert step.question.right not in before


def test_the_counts_of_drowning() -> None:
    lesson = COURSE[5]
    facts, table = lesson.facts, load_measured(lesson.opens)
    values = table.moment.eigenvalues
    for name, epsilon in (
        ("many", 10.0), ("asked", float(facts["crossing"])), ("few", 0.1)
    ):  # fmt: skip
        settings = replace(lesson.opens, epsilon=epsilon)
        mechanism = plain()
        calibration = mechanism.calibrate(table.problem(settings), table.budget(settings))
        noise = mechanism.free_noise(calibration)
        assert noise is not None
        count = int(facts[name])
        tables = [np.zeros(len(values))]
        tables += [predict(values, j, noise).overlaps for j in range(1, count + 2)]
        growth = [tables[j][j - 1] - tables[j - 1][j - 1] for j in range(1, count + 2)]
        assert all(overlap >= 0.5 for overlap in growth[:count])
        assert growth[count] < 0.5
        if name == "asked":
            # The threshold of a GOE matrix is s sqrt(d); s is its off-diagonal standard deviation.
            edge = calibration.scale / math.sqrt(2) * math.sqrt(len(values))
            assert int(facts["naive"]) == int((values > edge).sum())


def test_the_risk_of_one_person() -> None:
    facts = COURSE[1].facts
    for within, epsilon in (("within", 1.0), ("within_least", 0.1)):
        assert facts[within] == f"{math.ceil(100 / (1 + math.exp(-epsilon)))}"  # outwards
    assert facts["within"] == "74"
    # The text gives the limit for any position; the picture gives the value at the shown position.
    assert "nobody finds her more than {within} times" in COURSE[1].steps[1].say
    odds = 0.01 / 0.99 * math.e
    assert facts["after"] == f"{100 * odds / (1 + odds):.2g}\u00a0%" == "2.7\u00a0%"
    assert facts["sure"] == f"{math.log(0.88 / 0.12):.2g}" == "2"
    assert facts["turned"] == f"{math.log(0.6 / 0.4 * 0.99 / 0.01):.2g}" == "5"
    for name in ("sure", "turned"):  # At these epsilons the lesson shows the clouds.
        assert float(facts[name]) in EPSILONS


def test_a_hundred_faces_show_what_a_suspicion_becomes() -> None:
    lesson = COURSE[1]
    picture = scene(lesson, 3)
    assert picture["kind"] == "faces"
    assert (picture["before"], lesson.facts["prior"]) == (1.0, "1\u00a0%")
    by = {one["epsilon"]: one for one in picture["frames"]}
    for name, stop in zip(("after", "likely", "certain"), picture["stops"], strict=True):
        odds = 0.01 / 0.99 * math.exp(stop["epsilon"])
        assert by[stop["epsilon"]]["count"] == pytest.approx(100 * odds / (1 + odds))
        assert f"{by[stop['epsilon']]['text']}\u00a0%" == lesson.facts[name]
    counts = [one["count"] for one in picture["frames"]]
    assert counts == sorted(counts)
    assert len(set(counts)) == len(counts) > 20
