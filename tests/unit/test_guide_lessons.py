"""Every lesson: its checks hold, and every number is computed again by other code."""

from __future__ import annotations

import base64
import itertools
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpviz.auditing.exhibits import leak
from dpviz.core.files import PACKAGE
from dpviz.core.number_text import numeral, per_cent
from dpviz.core.settings import Settings
from dpviz.datasets.builtin.school import the_class
from dpviz.lessons import Lesson, State, course
from dpviz.lessons.cast import cloud, in_the_disk, plain, published, pure, shaped
from dpviz.lessons.lesson import INVENTED, names_in
from dpviz.lessons.measures import separated
from dpviz.lessons.person import EPSILONS, others, person_payload
from dpviz.lessons.scene import board_epsilons, board_scene, scene
from dpviz.lessons.script import problems
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import PEOPLE
from dpviz.preparation.load import load_measured
from dpviz.report.figures.board import shown
from dpviz.report.tables import scrub
from dpviz.report.tables.frame import PICTURE_POINTS
from dpviz.simulation.compare import Comparison, Result, compare
from dpviz.simulation.picture.shown import mirrored, points, steady
from dpviz.simulation.predict import predict

COURSE = course()
ALL = [pytest.param(lesson, id=str(lesson.number)) for lesson in COURSE]


def test_every_script_is_a_lesson_and_those_for_experts_come_last() -> None:
    scripts = list((PACKAGE / "lessons" / "scripts").glob("*.toml"))
    assert [lesson.number for lesson in COURSE] == list(range(1, len(scripts) + 1))
    experts = [lesson.experts for lesson in COURSE]
    assert experts == sorted(experts)
    assert [lesson.title for lesson in COURSE][:2] == ["Why", "One person"]


@pytest.mark.parametrize("lesson", ALL)
def test_a_class_stumbles_over_nothing(lesson: Lesson) -> None:
    assert problems(lesson) == []


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


def test_keys_that_a_step_does_not_name_carry_over() -> None:
    risk = COURSE[1]
    assert risk.state(0).settings.relation == "zero-out"
    assert risk.state(3).settings.relation == "zero-out"
    cone = COURSE[-1]
    assert [cone.state(1, made).settings.epsilon for made in range(3)] == [1.0, 2.0, 0.1]
    assert cone.state(2).settings.epsilon == 1.0  # said again by the step
    assert cone.state(2).view["clouds"] == "cone"


def recoveries(settings: Settings) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Recovery by hand: the captured share of all variance, from k/d to the optimum."""
    result = compare(load_measured(settings), settings)
    total = result.results[0].metrics["captured_total"]
    values = result.prepared.reference.eigenvalues
    best, chance = values[: settings.k].sum() / values.sum(), settings.k / len(values)
    return (total - chance) / (best - chance)


def drawn(lesson: Lesson, step: int) -> dict[str, Any]:
    """What a step's board is sent: what a text counts is counted there."""
    state = lesson.state(step)
    columns = shown([parse_variant(text) for text in state.settings.mechanisms])
    payload: dict[str, Any] = board_scene(state, [state.settings.epsilon], columns, redraw=False)[
        "payload"
    ]
    return payload


def of_hundred(text: str) -> float:
    return float(text.removesuffix("\u00a0%"))


def test_what_printed_points_tell_and_where_it_is_half() -> None:
    lesson = COURSE[6]
    facts, prepared = lesson.facts, load_measured(lesson.opens)

    def told(epsilon: float) -> float:
        found = compare(prepared, replace(lesson.opens, epsilon=epsilon)).results[0].metrics
        return 100 * float(found["class_picture"].mean())

    assert abs(of_hundred(facts["told"]) - told(3.0)) <= 0.5
    assert abs(of_hundred(facts["told_least"]) - told(0.1)) <= 0.5
    frames = scene(lesson, 1)["boards"][0]["payload"]["frames"]
    (least,) = frames[0]["cells"].values()
    assert "labels would drown" in least["published"]["said"], "as the reason says"
    crossing = float(facts["crossing"])
    # The number of cells is whole, so what is told rises in small steps to and fro.
    assert facts["asked"] == "40\u00a0%"
    assert abs(told(crossing) - 40) <= 0.5
    assert told(0.8 * crossing) < 40 < told(1.2 * crossing)
    boards = [scene(lesson, place)["boards"] for place in (0, 1)]
    assert [one["publishable"] for one in boards[0]] == [False, True]
    assert [one["publishable"] for one in boards[1]] == [True]


def test_a_printed_picture_points_as_the_one_beside_it() -> None:
    settings, seen = COURSE[6].opens, dict[float, Result]()
    prepared = load_measured(settings)

    def note(comparison: Comparison, _: int) -> None:
        (seen[comparison.budget.epsilon],) = comparison.results

    frames, _ = scrub.drawn(prepared, settings, [0.74, 0.838], draw=0, also=note)
    less, more = seen.values()
    turned = (less.components[0] * more.components[0]).sum(axis=0) < 0
    assert turned.any(), "or nothing is shown here"
    for frame, result, sides in zip(frames, (less, more), (turned, turned & False), strict=True):
        (cell,) = frame["cells"].values()
        picture = mirrored(result.pictures[0], sides.tolist())
        shown_at = points(picture, steady(PICTURE_POINTS)).places / picture.frame
        found = np.frombuffer(base64.b64decode(cell["published"]["places"]), "<i2") / 32767
        np.testing.assert_allclose(found.reshape(-1, 2), shown_at, atol=1e-4)


def test_the_blur_and_where_it_crosses() -> None:
    lesson = COURSE[2]
    facts, opens = lesson.facts, lesson.opens
    mean = float(recoveries(replace(opens, epsilon=0.03)).mean())
    assert abs(of_hundred(facts["after"]) - 100 * mean) <= 0.5
    prepared = load_measured(opens)
    rows, labels = prepared.moment_with_rows.rows, prepared.table.labels  # type: ignore[union-attr]
    assert rows is not None
    young = labels == "youngest"

    def wrong(frames: object) -> float:
        return 100 * (1 - float(np.mean([separated(rows @ one, young)[0] for one in frames])))  # type: ignore[attr-defined]

    def released(epsilon: float) -> float:
        return wrong(compare(prepared, replace(opens, epsilon=epsilon)).results[0].components)

    assert facts["exact"] == f"{wrong([prepared.reference.eigenvectors[:, :2]]):.0f}"
    assert facts["wrong"] == f"{released(3.0):.0f}"
    assert facts["wrong_least"] == f"{released(0.03):.0f}"
    # It crosses where it says: a digit to either side lie on either side of what was asked.
    assert facts["crossing"] == "0.22"
    assert released(0.23) < float(facts["asked"]) == 16 < released(0.21)
    # other random planes: six standard errors of the difference of two means of 200
    rng = np.random.default_rng(5)
    random = np.linalg.qr(rng.normal(size=(200, rows.shape[1], 2)))[0]
    spread = float(np.std([separated(rows @ frame, young)[0] for frame in random]))
    error = 6 * spread * math.sqrt(2 / 200)
    assert abs(float(facts["chance"]) - wrong(random)) <= 100 * error + 0.5
    count = len(base64.b64decode(drawn(lesson, 0)["truth"]["picture"])) // 4  # two int16 a dot
    assert facts["dots"] == str(count) == str(len(rows))


def test_nothing_of_the_school_is_taken_from_its_rows() -> None:
    """As the first lesson asks for it: centre and bound are declared, in every lesson on it."""
    school = [one.opens for one in COURSE if one.opens.table == "school"]
    assert len(school) == 5
    for settings in school:
        assert load_measured(settings).assumed_public == (PEOPLE,)
    taken = replace(school[0], row_bound="max")
    assert len(load_measured(taken).assumed_public) > 1  # as it would be said otherwise


def test_the_line_of_the_picture_sorts_its_dots_as_the_text_says() -> None:
    """Every pupil is a dot, so what a text counts can be counted in the picture."""
    lesson = COURSE[2]
    held = scene(lesson, 1)["boards"][0]["payload"]
    codes = np.frombuffer(base64.b64decode(held["labels"]["codes"]), "u1")
    young = codes == held["labels"]["kinds"].index("youngest")

    def wrong(packed: str, line: list[float]) -> float:
        raw = np.frombuffer(base64.b64decode(packed), "<i2").reshape(-1, 2) / 32767
        beyond = held["limits"]["scale"] * raw @ line[:2] >= line[2]
        return 50 * float((~beyond[young]).mean() + beyond[~young].mean())

    truth, frames = held["truth"]["picture"], {one["epsilon"]: one for one in held["frames"]}
    key = lesson.opens.variants[0]
    assert len(frames) == len({one["lines"][key][2] for one in frames.values()}) > 20
    first = frames[3.0]["lines"]
    # a dot that lies on the line may fall to either side when places are rounded
    assert abs(wrong(truth, first["exact"]) - float(lesson.facts["exact"])) <= 1
    assert abs(wrong(truth, [-one for one in first["exact"]]) - 50) > 20  # the other way round
    # one draw stands for the mean that the text says, at every stop: within four of a hundred
    for name, stop in zip(lesson.steps[1].hundred, lesson.moves(1), strict=False):
        assert name in lesson.facts, stop
    for epsilon, name in ((3.0, "wrong"), (0.22, "asked"), (0.03, "wrong_least")):
        cell = frames[epsilon]["cells"][key]["picture"]
        found = wrong(cell, frames[epsilon]["lines"][key])
        assert abs(found - float(lesson.facts[name])) <= 4, (epsilon, found)
    assert "lines" not in scene(COURSE[3], 0)["boards"][0]["payload"]["frames"][0]  # only asked for


def test_she_and_her_class_are_followed_through_the_school() -> None:
    """The marked dots are the class of the first lesson, she the last of them."""
    held = scene(COURSE[2], 0)["boards"][0]["payload"]
    marked = held["marked"]
    prepared = load_measured(COURSE[2].opens)
    names, rows = the_class()
    found = prepared.table.rows[marked][:, : len(names)]  # type: ignore[union-attr]
    np.testing.assert_array_equal(found, rows)
    np.testing.assert_array_equal(found, leak().rows)
    assert prepared.columns[: len(names)] == names
    count = len(base64.b64decode(held["truth"]["picture"])) // 4
    assert count == prepared.n, "a dot's place is its row's"
    assert "marked" not in scene(COURSE[5], 0)["boards"][0]["payload"]  # only asked for


def test_the_class_is_seen_from_its_widest_side() -> None:
    held, found = scene(COURSE[0], 0), cloud()
    rows = np.array(held["rows"])
    assert rows.shape == (30, 3)
    assert COURSE[0].facts["people"] == "30"
    values, vectors = np.linalg.eigh(np.cov(found.rows.T))
    first = np.array(held["components"])
    np.testing.assert_allclose(np.abs(np.sum(first.T * vectors[:, ::-1], axis=0)), 1, atol=1e-4)
    kept = values[1:].sum() / values.sum()
    assert found.kept == pytest.approx(kept)
    assert COURSE[0].facts["kept"] == f"{100 * kept:.0f}\u00a0%"
    # no view is wider: two others at random, and the axes of the features
    rng = np.random.default_rng(0)
    for frame in [np.linalg.qr(rng.normal(size=(3, 2)))[0] for _ in range(20)] + [np.eye(3)[:, :2]]:
        assert np.square(found.rows @ frame).sum() / np.square(found.rows).sum() <= kept
    assert [stop["widest"] for stop in held["stops"]] == [False, True]


def test_one_class_stands_in_every_picture_of_people() -> None:
    """She is the last of the class, and the lesson on one person has the same thirty."""
    rows, found = in_the_disk(), leak()
    assert len(rows) == len(found.rows) == 30
    np.testing.assert_array_equal(others(), rows[:-1])
    assert (np.linalg.norm(rows, axis=1) <= 1 + 1e-12).all()
    assert found.rows[-1, -1] == found.rows[:, -1].max()
    person = person_payload([parse_variant("gaussian")], 1e-5)
    np.testing.assert_allclose(person["row"], rows[-1], atol=5e-4)
    # preparing by what is typical reads no row: another person's row changes nobody else's
    moved = (the_class()[1][:, [1, 2]] - [1.0, 3.0]) / 2.5
    moved /= np.maximum(1.0, np.linalg.norm(moved, axis=1))[:, None]
    np.testing.assert_allclose(rows, moved)


def test_the_picture_shows_the_typical_draw() -> None:
    """Of twenty the one that stays nearest to the mean of what is asked, over the step."""
    lesson = COURSE[2]
    epsilons = board_epsilons([lesson.state(1, made) for made in range(3)])
    assert {0.03, 0.22, 3.0} <= set(epsilons)
    state = lesson.state(1)
    columns = shown([parse_variant(text) for text in state.settings.mechanisms])
    payload = board_scene(state, epsilons, columns, redraw=False)["payload"]
    prepared = load_measured(state.settings)
    rows, young = prepared.moment_with_rows.rows, prepared.table.labels == "youngest"  # type: ignore[union-attr]
    assert rows is not None
    away = []
    for one in epsilons:
        spaces = compare(prepared, replace(state.settings, epsilon=one)).results[0].components
        sorts = np.array([separated(rows @ space, young)[0] for space in spaces])
        away.append(sorts - sorts.mean())
    typical = int(np.abs(np.stack(away)).max(axis=0).argmin())
    key = state.settings.variants[0]
    at = payload["frames"][epsilons.index(0.22)]["cells"][key]["picture"]
    pictures = scrub.draws(compare(prepared, replace(state.settings, epsilon=0.22)), prepared)[key]
    assert at == pictures[typical]
    assert at != pictures[0], "the first would be drawn without a choice"
    # Without a line it is the recovery that it stays near to the mean of.
    plain_state = COURSE[5].state(1)
    epsilons = board_epsilons([COURSE[5].state(1, made) for made in range(3)])
    held = board_scene(plain_state, epsilons, columns, redraw=False)["payload"]
    kept = [recoveries(replace(plain_state.settings, epsilon=one)) for one in epsilons]
    near = int(np.abs([one - one.mean() for one in kept]).max(axis=0).argmin())
    again = scrub.draws(compare(prepared, plain_state.settings), prepared)[key]
    assert held["frames"][-1]["cells"][key]["picture"] == again[near]


def test_a_lesson_may_name_the_draw_that_it_shows() -> None:
    """Luck opens on the first and ends on the unluckiest, judged where it crosses."""
    lesson = COURSE[3]
    prepared, key = load_measured(lesson.opens), lesson.opens.variants[0]
    first = scene(lesson, 0)["boards"][0]["payload"]["frames"][0]["cells"][key]
    assert first["picture"] == scrub.draws(compare(prepared, lesson.opens), prepared)[key][0]
    assert first["texts"]["recovery"] == lesson.facts["first"], "one draw, and its recovery"
    there = replace(lesson.state(2).settings, epsilon=float(lesson.facts["opens_low"]))
    worst = int(recoveries(there).argmin())
    frames = scene(lesson, 2)["boards"][0]["payload"]["frames"]
    at = next(one for one in frames if one["epsilon"] == there.epsilon)["cells"][key]["picture"]
    drawn_there = scrub.draws(compare(prepared, there), prepared)[key]
    assert at == drawn_there[worst]
    assert worst != 0
    assert at != drawn_there[0]


def test_separation_of_points_is_the_best_balanced_accuracy() -> None:
    points = np.array([[0.0, 0.1], [1.0, -0.1], [2.0, 0.1], [3.0, -0.1], [4.0, 0.0], [1.5, 0.0]])
    inside = np.array([False, False, True, True, True, True])
    share, normal, at = separated(points, inside)
    assert share == pytest.approx(1.0)
    assert ((points @ normal >= at) == inside).all()  # the line itself sorts so
    # Labels that have nothing to do with the points: near a coin, a little above for the fit.
    rng = np.random.default_rng(0)
    chance = separated(rng.normal(size=(4_000, 2)), rng.random(4_000) < 0.5)[0]
    assert 0.5 <= chance < 0.56


def test_the_draws_of_luck() -> None:
    lesson = COURSE[3]
    facts, seen = lesson.facts, recoveries(lesson.opens)
    assert len(seen) == lesson.opens.trials == int(facts["draws"])
    for name, value in (("first", seen[0]), ("low", seen.min()), ("high", seen.max())):
        assert abs(of_hundred(facts[name]) - 100 * value) <= 0.5
    there = float(facts["opens_low"])
    at, below = (
        recoveries(replace(lesson.opens, epsilon=one)).min() for one in (there, there - 0.01)
    )
    assert below < 0.5 <= at + 0.005
    assert facts["proof"] == "no"


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


def test_drowning_speaks_of_what_is_drawn() -> None:
    lesson = COURSE[5]
    facts = lesson.facts
    asked_at = float(facts["crossing"])
    # The variances above the dashed line, counted on what is drawn at the epsilon asked about.
    asked = State(replace(lesson.opens, epsilon=asked_at), {})
    columns = shown([parse_variant(text) for text in lesson.opens.mechanisms])
    there = board_scene(asked, [asked_at], columns, redraw=False)["payload"]
    (cell,) = there["frames"][0]["cells"].values()
    first = there["truth"]["eigenvalues"][: there["limits"]["spectrum"]["first"]["count"]]
    assert facts["naive"] == str(sum(value > cell["threshold"] for value in first))
    assert cell["edges"][1] < there["limits"]["spectrum"]["first"]["high"], "the line is seen"


def test_the_shares_that_the_cone_betrays() -> None:
    facts = COURSE[-1].facts
    for name, epsilon in (("tiny", 0.1), ("now", 1.0), ("large", 10.0)):
        assert facts[name] == f"{100 * (1 - math.exp(-epsilon / 3)):.0f}\u00a0%"
    assert (facts["tiny"], facts["now"], facts["large"]) == ("3\u00a0%", "28\u00a0%", "96\u00a0%")
    assert facts["crossing"] == f"{-3 * math.log(1 - 0.49):.2g}" == "2"
    assert (published().key, pure().key) == ("wishart", "wishart_difference")


def test_the_recoveries_of_precision() -> None:
    lesson = COURSE[-2]
    facts = lesson.facts
    for name, allocation, epsilon in (
        ("equal", "binary:1,2:0.1", 0.1), ("favoured", "binary:1,2:0.8", 0.1),
        ("wrong", "binary:3,4:0.8", 0.1), ("worst", "binary:3,4:0.8", 10.0),
        ("drowned", "binary:1,2:0.8", 0.001),
    ):  # fmt: skip
        settings = replace(lesson.opens, allocation=allocation, epsilon=epsilon)
        mean = float(recoveries(settings).mean())
        assert abs(of_hundred(facts[name]) - 100 * mean) <= 0.5
    for name, allocation in (("before", "binary:1,2:0.1"), ("instead", "binary:1,2:0.8")):
        there = float(facts[name])
        step = 10 ** math.floor(math.log10(there)) / 10
        settings = replace(lesson.opens, allocation=allocation)
        means = [
            recoveries(replace(settings, epsilon=one)).mean()
            for one in (there - step, there + step)
        ]
        assert means[0] < 0.9 < means[1]
    assert (facts["change"], facts["cost"]) == ("much", "much")
    assert of_hundred(facts["worst"]) < 0, "less than a guess has, as the reason says"
    # two of twenty features at a tenth of the precision: equal shares
    assert pytest.approx(2 / int(facts["d"])) == 0.1
    assert shaped().key == "directional_gaussian"


def test_the_risk_of_one_person() -> None:
    facts = COURSE[1].facts
    for within, epsilon in (("within", 1.0), ("within_least", 0.1)):
        assert facts[within] == f"{100 / (1 + math.exp(-epsilon)):.0f}"
    assert facts["within"] == "73"
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


def test_the_people_that_are_needed() -> None:
    lesson = COURSE[4]
    facts, measured = lesson.facts, load_measured(lesson.opens)
    assert facts["n"] == str(measured.n) == str(scene(lesson, 0)["own"])
    values, true = measured.moment.eigenvalues, measured.reference.eigenvalues
    chance = 2 / measured.d * true.sum() / true[:2].sum()
    goal = chance + 0.9 * (1 - chance)
    # longer rows are shortened: what a direction is worth is what it keeps of the rows as they are
    V = measured.moment.eigenvectors
    along = np.diag(V.T @ measured.reference.A @ V)
    for name, epsilon in (("needed", 1.0), ("then", 0.5), ("far", 0.2)):
        count = int(facts[name].replace(",", ""))
        for people_there, enough in ((count, True), (count - 1, False)):  # to the last one
            settings = replace(lesson.opens, epsilon=epsilon)
            problem = replace(measured.problem(settings), n=people_there)
            calibration = plain().calibrate(problem, measured.budget(settings))
            noise = plain().free_noise(calibration)
            assert noise is not None
            assert bool(predict(values, 2, noise, along).captured_share >= goal) is enough
    assert facts["halved"] == "0.5"
    # With a delta the noise falls a little slower than 1/epsilon: nearly twice as many.
    assert 1.8 < int(facts["then"]) / int(facts["needed"]) < 2
    crowds = scene(lesson, 1)["crowds"]
    said = [facts[name].replace(",", "") for name in ("needed", "then", "far")]
    assert [str(int(one["people"])) for one in crowds] == said


def test_what_the_mean_and_the_bound_leak() -> None:
    facts = COURSE[0].facts
    assert facts["recovered"] == facts["true"] == "0.4, 0.2, 7.4"
    # What the button says is what gives her row, and "the others from the mean" is not.
    given = leak()
    known = given.rows[:-1].sum(axis=0)
    assert facts["people"] == str(len(given.rows))
    np.testing.assert_allclose(int(facts["people"]) * given.mean - known, given.rows[-1])
    assert not np.allclose(given.mean - known, given.rows[-1])
    assert "{people} times the mean" in COURSE[0].steps[1].moved
    assert facts["with"] == f"{math.sqrt(0.4**2 + 0.2**2 + 7.4**2):.3g}"
    assert facts["without"] == f"{math.sqrt(1.2**2 + 2.1**2 + 4.8**2):.3g}"
    assert facts["declared"] == f"{math.sqrt(6**2 + 6**2 + 16**2):.3g}"


def test_the_cast_fits_its_parts() -> None:
    assert plain().key == "gaussian"
    for lesson in COURSE:
        for key in lesson.opens.mechanisms:
            assert parse_variant(key).key == key
