"""Every lesson: no number is typed, every number is recomputed by other code than the lesson's."""

from __future__ import annotations

import base64
import math
import re
import string
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpviz.auditing.leaking import leak
from dpviz.core.settings import Settings
from dpviz.lessons import Lesson, State, lessons
from dpviz.lessons.cast import plain, published, pure, shaped
from dpviz.lessons.lesson import SCENES
from dpviz.lessons.measures import separated
from dpviz.lessons.scene import board_scene
from dpviz.lessons.scripts import blur, drowning, luck, people, precision
from dpviz.mechanisms import parse_variant
from dpviz.preparation.load import load_measured
from dpviz.report.figures.board import shown
from dpviz.simulation.compare import compare
from dpviz.theory.predict import predict

COURSE = lessons()
ALL = [pytest.param(lesson, id=str(lesson.number)) for lesson in COURSE]


def names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_there_are_eight_in_order() -> None:
    assert [lesson.number for lesson in COURSE] == list(range(1, 9))


@pytest.mark.parametrize("lesson", ALL)
def test_no_number_is_typed(lesson: Lesson) -> None:
    used: set[str] = set()
    for step in lesson.steps:
        assert step.scene in SCENES
        for text in (lesson.title, lesson.question, *step.texts):
            bare = re.sub(r"\{\w+\}", "", text)
            assert not re.search(r"\d", bare), text
            used |= names_in(text)
    assert used <= set(lesson.numbers)
    assert set(lesson.numbers) - used == set(), "a number that no text uses"


@pytest.mark.parametrize("lesson", ALL)
def test_every_step_can_be_shown_before_and_after_its_move(lesson: Lesson) -> None:
    for place, step in enumerate(lesson.steps):
        before, after = lesson.state(place), lesson.state(place, True)
        assert isinstance(before.settings, Settings)
        assert bool(step.move) == (before != after)
        assert bool(step.move) == bool(step.moved)
        if step.question is not None:
            assert 0 <= step.question.right < len(step.question.options)
            options = [lesson.filled(option) for option in step.question.options]
            assert len(set(options)) == len(options)
            for bet in range(len(options)):
                said = lesson.filled(step.question.says(bet))
                assert said.startswith("Right" if bet == step.question.right else "Not so")


def test_keys_that_a_step_does_not_name_carry_over() -> None:
    risk = COURSE[5]
    assert risk.state(0).settings.relation == "zero-out"
    assert risk.state(3).settings.relation == "zero-out"
    cone = COURSE[3]
    assert cone.state(1, True).settings.epsilon == 0.1
    assert cone.state(2).settings.epsilon == 1.0  # said again by the step
    assert cone.state(2).view["picture"] == "cone"


def recoveries(settings: Settings) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Recovery by hand: the captured share of all variance, from k/d to the optimum."""
    result = compare(load_measured(settings), settings)
    total = result.results[0].metrics["captured_total"]
    values = result.prepared.reference.eigenvalues
    best, chance = values[: settings.k].sum() / values.sum(), settings.k / len(values)
    return (total - chance) / (best - chance)


def drawn(lesson: Lesson, step: int, *, revealed: bool = False) -> dict[str, Any]:
    """What a step's board is sent: what a text counts is counted there."""
    state = lesson.state(step, revealed)
    columns = shown([parse_variant(text) for text in state.settings.mechanisms])
    scene = board_scene(state, [state.settings.epsilon], columns, redraw=False)
    payload: dict[str, Any] = scene["payload"]
    return payload


def of_hundred(text: str) -> float:
    return float(text.removesuffix(" %"))


def test_lesson_1_recovery_and_merging() -> None:
    facts = COURSE[0].facts
    for name, epsilon in (("before", blur.OPENS.epsilon), ("after", blur.LEAST)):
        mean = float(recoveries(replace(blur.OPENS, epsilon=epsilon)).mean())
        assert abs(of_hundred(facts[name]) - 100 * mean) <= 0.5
    prepared = load_measured(blur.OPENS)
    rows, labels = prepared.moment_with_rows.rows, prepared.table.labels  # type: ignore[union-attr]
    assert rows is not None
    points = rows @ prepared.reference.eigenvectors[:, :2]
    assert facts["exact"] == f"{100 * separated(points, labels == 0):.0f} %"

    def sorts(frames: object) -> float:
        return float(np.mean([separated(rows @ frame, labels == 0) for frame in frames]))  # type: ignore[attr-defined]

    there = replace(blur.OPENS, epsilon=blur.BETS[blur.merging()])
    released = compare(prepared, there).results[0].components
    assert facts["there"] == f"{100 * sorts(released):.0f} %"
    # other random planes: six standard errors of the difference of two means of 200
    rng = np.random.default_rng(5)
    random = np.linalg.qr(rng.normal(size=(200, rows.shape[1], 2)))[0]
    spread = float(np.std([separated(rows @ frame, labels == 0) for frame in random]))
    error = 6 * spread * math.sqrt(2 / 200)
    assert abs(of_hundred(facts["chance"]) - 100 * sorts(random)) <= 100 * error + 0.5
    assert facts["n"] == "1,797"
    payload = drawn(COURSE[0], 0)
    count = len(base64.b64decode(payload["truth"]["picture"])) // 4  # two int16 a dot
    assert facts["dots"] == str(count) == "300"
    cell = payload["frames"][0]["cells"][blur.OPENS.mechanisms[0]]
    assert cell["texts"]["recovery"] == facts["before"]
    # it merges: worse at the answer than at the bet before it, which is still above halfway
    sorted_at = [blur._sorted(epsilon) for epsilon in blur.BETS]
    half = (of_hundred(facts["exact"]) + of_hundred(facts["chance"])) / 200
    assert sorted_at[blur.merging()] < half + 0.005
    assert all(value > half - 0.005 for value in sorted_at[: blur.merging()])


def test_separation_of_points_is_the_best_balanced_accuracy() -> None:
    points = np.array([[0.0, 0.1], [1.0, -0.1], [2.0, 0.1], [3.0, -0.1], [4.0, 0.0], [1.5, 0.0]])
    inside = np.array([False, False, True, True, True, True])
    assert separated(points, inside) == pytest.approx(1.0)
    # Labels that have nothing to do with the points: near a coin, a little above for the fit.
    rng = np.random.default_rng(0)
    chance = separated(rng.normal(size=(4_000, 2)), rng.random(4_000) < 0.5)
    assert 0.5 <= chance < 0.56


def test_lesson_2_draws() -> None:
    facts, seen = COURSE[1].facts, recoveries(luck.OPENS)
    assert len(seen) == luck.OPENS.trials == int(facts["draws"])
    for name, value in (("first", seen[0]), ("low", seen.min()), ("high", seen.max())):
        assert abs(of_hundred(facts[name]) - 100 * value) <= 0.5


def test_lesson_3_counts() -> None:
    facts = COURSE[2].facts
    measured = load_measured(drowning.OPENS)
    values = measured.moment.eigenvalues
    for name, epsilon in (
        ("many", drowning.OPENS.epsilon), ("found", drowning.ASKED), ("few", drowning.LEAST)
    ):  # fmt: skip
        settings = replace(drowning.OPENS, epsilon=epsilon)
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
        if name == "found":
            # the lone threshold of a GOE: s sqrt(d), s its off-diagonal standard deviation
            edge = calibration.scale / math.sqrt(2) * math.sqrt(len(values))
            assert int(facts["naive"]) == int((values > edge).sum())


def test_lesson_3_speaks_of_what_is_drawn() -> None:
    lesson = COURSE[2]
    facts, look = lesson.facts, lesson.steps[0]
    assert "bars" not in look.say.lower()
    payload = drawn(lesson, 0)
    assert facts["drawn"] == str(payload["limits"]["spectrum"]["first"]["count"]) == "15"
    assert facts["d"] == str(len(payload["truth"]["eigenvalues"]))
    # The variances above the dashed line, counted on what is drawn at the epsilon asked about.
    asked = State(replace(lesson.opens, epsilon=drowning.ASKED), {})
    columns = shown([parse_variant(text) for text in lesson.opens.mechanisms])
    there = board_scene(asked, [drowning.ASKED], columns, redraw=False)["payload"]
    (cell,) = there["frames"][0]["cells"].values()
    first = there["truth"]["eigenvalues"][: int(facts["drawn"])]
    assert facts["naive"] == str(sum(value > cell["threshold"] for value in first))
    assert cell["edges"][1] < there["limits"]["spectrum"]["first"]["high"], "the line is seen"


def test_lesson_4_shares() -> None:
    facts = COURSE[3].facts
    for name, epsilon in (("tiny", 0.1), ("now", 1.0), ("large", 10.0)):
        assert facts[name] == f"{100 * (1 - math.exp(-epsilon / 3)):.0f} %"
    assert (facts["tiny"], facts["now"], facts["large"]) == ("3 %", "28 %", "96 %")
    assert facts["odds"] == "2.7"
    assert (published().key, pure().key) == ("wishart", "wishart_difference")


def test_lesson_5_recoveries() -> None:
    facts = COURSE[4].facts
    for name, features, share in (
        ("equal", precision.FAVOURED, precision.LOW),
        ("favoured", precision.FAVOURED, precision.HIGH),
        ("wrong", precision.WRONG, precision.HIGH),
    ):
        settings = replace(precision.OPENS, allocation=f"binary:{features}:{share:g}")
        mean = max(0.0, float(recoveries(settings).mean()))
        assert abs(of_hundred(facts[name]) - 100 * mean) <= 0.5
    # two of twenty features at a tenth of the precision: equal shares
    assert pytest.approx(2 / int(facts["d"])) == precision.LOW
    assert shaped().key == "directional_gaussian"


def test_lesson_6_risk() -> None:
    facts = COURSE[5].facts
    for out, within, epsilon in (
        ("out", "within", 1.0), ("out_least", "within_least", 0.1), ("out_most", "within_most", 5.0)
    ):  # fmt: skip
        alarm = 1 / (1 + math.exp(epsilon))
        assert facts[out] == f"{100 * alarm:.0f}"
        assert facts[within] == f"{100 * (1 - alarm):.0f}"
    assert (facts["out"], facts["within"]) == ("27", "73")
    odds = 0.01 / 0.99 * math.e
    assert facts["after"] == f"{100 * odds / (1 + odds):.2g} %" == "2.7 %"


def test_lesson_7_people() -> None:
    facts = COURSE[6].facts
    measured = load_measured(people.OPENS)
    assert facts["d"] == str(measured.d) == "50"
    values = measured.moment.eigenvalues
    chance = 2 / measured.d * values.sum() / values[:2].sum()
    goal = chance + 0.9 * (1 - chance)
    for name, epsilon in (("needed", 1.0), ("then", 0.5)):
        count = int(facts[name].replace(",", ""))
        for people_there, enough in ((count, True), (count - 1, False)):  # to the last one
            settings = replace(people.OPENS, epsilon=epsilon)
            problem = replace(measured.problem(settings), n=people_there)
            calibration = pure().calibrate(problem, measured.budget(settings))
            noise = pure().free_noise(calibration)
            assert noise is not None
            assert bool(predict(values, 2, noise).captured_share >= goal) is enough
    # Without a delta the noise is a constant over n epsilon: exactly twice, and so it reads.
    assert facts["ratio"] == facts[f"times_{people.right()}"] == "2"


def test_lesson_8_leaks() -> None:
    facts = COURSE[7].facts
    assert facts["recovered"] == facts["true"] == "62, 9.7, 24"
    # What the button says is what gives her row, and "the others from the mean" is not.
    given = leak()
    known = given.rows[:-1].sum(axis=0)
    assert facts["people"] == str(len(given.rows))
    np.testing.assert_allclose(int(facts["people"]) * given.mean - known, given.rows[-1])
    assert not np.allclose(given.mean - known, given.rows[-1])
    assert "{people} times the mean" in COURSE[7].steps[1].moved
    assert facts["with"] == f"{math.sqrt(62**2 + 9.7**2 + 24**2):.3g}"
    assert facts["without"] == f"{math.sqrt(51**2 + 3.4**2 + 7**2):.3g}"
    assert facts["declared"] == f"{math.sqrt(120**2 + 20**2 + 60**2):.3g}"


def test_the_cast_fits_its_parts() -> None:
    assert plain().key == "gaussian"
    for lesson in COURSE:
        for key in lesson.opens.mechanisms:
            assert parse_variant(key).key == key
