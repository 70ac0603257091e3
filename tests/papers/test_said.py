"""The papers' statements: quotes are in the text, and answers follow from measurements."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from dpviz.papers import experiments
from dpviz.papers.measurements import Absent, Found, Mean, Point
from dpviz.papers.said import (
    AtMost,
    Below,
    Between,
    ClaimAnswer,
    Expression,
    Identity,
    Look,
    Monotone,
    NotHere,
    Number,
    Order,
    Power,
    Said,
    Stated,
    Test,
    View,
    along,
    answer,
    at,
    has_text,
    row_of,
    said_of,
    text_of,
)
from dpviz.papers.shipped import shipped

PAPERS = sorted({item.paper for item in experiments().values() if has_text(item.paper)})
STATEMENTS = [(paper, said) for paper in PAPERS for said in said_of(paper)]
NAMES = [f"{paper}:{said.key}" for paper, said in STATEMENTS]


def texts() -> Path | None:
    """Return the folder of the papers' texts, beside the raw data; None if it does not exist."""
    data = os.environ.get("DPVIZ_DATA", "")
    folder = Path(data).parent / "papers"
    return folder if data and folder.is_dir() else None


def flat(text: str) -> str:
    """Return a text with each run of white space as one blank, because lines may break anywhere."""
    return re.sub(r"\s+", " ", text)


# --- the statements ---------------------------------------------------------------------------


@pytest.mark.parametrize(("paper", "said"), STATEMENTS, ids=NAMES)
def test_a_quote_is_short_and_stands_in_the_paper(paper: str, said: Said) -> None:
    assert 0 < len(said.quote) <= 120
    folder = texts()
    if folder is None:
        pytest.skip("DPVIZ_DATA has no neighbour with the papers' texts")
    whole = flat((folder / text_of(paper)["text"]).read_text(encoding="utf-8"))
    assert flat(said.quote) in whole
    assert flat(said.quote)[:-1] + "~" not in whole  # control


@pytest.mark.parametrize(("paper", "said"), STATEMENTS, ids=NAMES)
def test_a_statement_is_said_once_and_in_sentences(paper: str, said: Said) -> None:
    assert said.experiment in experiments()
    assert said.place
    assert said.says
    for text in (said.because, said.why, said.needs):
        assert not text or text.endswith(".")
    assert bool(said.needs) == isinstance(said.look.test, NotHere)
    keys = [other.key for other in said_of(paper)]
    assert keys.count(said.key) == 1
    words = [(other.place, other.says) for other in said_of(paper)]
    assert words.count((said.place, said.says)) == 1


NUMBER = re.compile(r"(?<![A-Za-z_^\d.])(?:\d[\d,]*\.?\d*|\.\d+)(?:e-?\d+)?")
NAMED = re.compile(
    r"(Theorems?|Lemmas?|Tables?|Figures?|[Ss]ections?|Algorithms?|Eq\.|Problem|Axiom|Example|"
    r"Experiment|Definition|UCI) [\d.]+((,| and| to) \d+)*|\b(19|20)\d\d\b|\{\w+\}"
)
PLAIN = {"0", "1", "2"}
"""Numbers that may appear in formulas: 2d, 1/n, the constant 0."""


def numbers(text: str) -> set[str]:
    """Return the numbers in a text, except in names of places such as figures."""
    return {found.rstrip(".,") for found in NUMBER.findall(NAMED.sub("", text))}


def typed(paper: str, said: Said, reason: str) -> set[str]:
    """Return a reason's numbers that come from no measurement, quote or setting."""
    facts = text_of(paper)["experiment"][said.experiment.partition("_")[2]]
    sources = (said.quote, said.printed, said.says, said.place, facts["about"], facts["title"])
    settings = (*facts.get("settings", ()), *facts.get("choices", ()))
    return numbers(reason) - PLAIN - numbers(" ".join((*sources, *settings)))


@pytest.mark.parametrize(("paper", "said"), STATEMENTS, ids=NAMES)
def test_every_number_of_a_reason_is_measured_or_quoted_or_a_setting(
    paper: str, said: Said
) -> None:
    for reason in (said.because, said.why, said.needs):
        assert typed(paper, said, reason) == set()
    result = shipped(experiments()[said.experiment])
    assert result is not None
    (mine,) = (claim for claim in result.claims if claim.key == said.key)
    assert "{" not in mine.reason
    assert "was not measured" not in mine.reason


def test_a_number_that_is_typed_into_a_reason_is_seen() -> None:
    """Control: the test detects an answer that the code fixes in advance."""
    paper, one = next((p, s) for p, s in STATEMENTS if s.key == "t3-non-private")
    assert typed(paper, one, "Ours is 15.3 times the printed 1.226, and {times} here.") == {"15.3"}


# --- contrary measurements ----------------------------------------------------------------------


class Contrary(Found):
    """Changed measurements: a function of the point changes each mean."""

    def __init__(self, found: Found, turn: Callable[[Point, Mean], Mean]) -> None:
        super().__init__({point: turn(point, mean) for point, mean in found.means.items()})


def scaled(factor: float) -> Callable[[Point, Mean], Mean]:
    return lambda point, mean: mean * factor


def shuffled(seed: int) -> Callable[[Point, Mean], Mean]:
    """Return a change that multiplies each point by its own factor, from 1e-4 to 1e4."""

    def turn(point: Point, mean: Mean) -> Mean:
        share = zlib.crc32(f"{seed} {point}".encode()) / 2**32
        value = mean.value or 1.0
        return Mean.near(value * 10 ** (8 * share - 4), mean.se / 1e6, mean.draws)

    return turn


def set_to(value: float) -> Callable[[Point, Mean], Mean]:
    return lambda point, mean: Mean.near(value, math.nan, 1)


def by_place(sign: int, power: float = 1.0) -> Callable[[Point, Mean], Mean]:
    """Return a change to curves: a rise or fall along the axis, at a level for each series."""

    def turn(point: Point, mean: Mean) -> Mean:
        height = 1 + zlib.crc32(point.series.encode()) % 97
        x = 1.0 if point.x is None else abs(point.x) + 1e-3
        return Mean.near(height * x ** (sign * power), math.nan, 1)

    return turn


def by_series(order: int) -> Callable[[Point, Mean], Mean]:
    """Return a change to values that depend only on the series' name, in the given order."""

    def turn(point: Point, mean: Mean) -> Mean:
        share = zlib.crc32(f"{order} {point.series} {point.quantity}".encode()) / 2**32
        return Mean.near(0.001 + share, math.nan, 1)

    return turn


TURNS = [
    scaled(1e3), scaled(1e-3), scaled(-1.0), scaled(0.0), set_to(1.0), set_to(0.0),
    *(by_place(sign, power) for sign in (1, -1) for power in (0.5, 1.0, 1.5, 2.0, 3.0)),
    *(by_series(order) for order in range(24)),
    *(shuffled(seed) for seed in range(60)),
]  # fmt: skip


def printed(said: Said, found: Found) -> list[Callable[[Point, Mean], Mean]]:
    """Return changes that set every value to a number that the claim prints."""
    tests = (*said.look.tests, *((said.look.order,) if said.look.order else ()))
    values: list[float] = []
    for test in tests:
        if isinstance(test, Number):
            values += [test.stated(View(found, panel)).value for panel in said.look.panels]
        if isinstance(test, Identity) and isinstance(test.printed, float):
            values.append(test.printed)
        if isinstance(test, Below):
            values += [test.limit * 2, test.limit / 2]
        if isinstance(test, Between):
            values += [test.low / 2, (test.low + test.high) / 2, test.high * 2]
    return [*map(set_to, values), *(two_of(v, order) for v in values for order in range(16))]


def two_of(value: float, order: int) -> Callable[[Point, Mean], Mean]:
    """Return a change that gives some series a value and all others 1: a fixed ratio."""

    def turn(point: Point, mean: Mean) -> Mean:
        side = zlib.crc32(f"{order} {point.series}".encode()) % 2
        return Mean.near(value if side else 1.0, math.nan, 1)

    return turn


@pytest.mark.parametrize(("paper", "said"), STATEMENTS, ids=NAMES)
def test_contrary_measurements_get_another_answer(paper: str, said: Said) -> None:
    """No answer is fixed in advance: some other measurements at the same points change it."""
    result = shipped(experiments()[said.experiment])
    assert result is not None
    means = Found.of(result.points)
    mine = answer(said, means).answer
    if isinstance(said.look.test, NotHere):
        assert mine is ClaimAnswer.NOT_HERE
        return
    if mine is ClaimAnswer.NOT_HERE:  # Without data, use synthetic measurements.
        points = made_up(said, means)
        means, mine = points, answer(said, points).answer
    assert mine is not ClaimAnswer.NOT_HERE, "nothing can be measured"
    others = set()
    for turn in (*printed(said, means), *TURNS):
        others.add(answer(said, Contrary(means, turn)).answer)
        if others - {mine}:
            return
    raise AssertionError(f"{said.key} is {mine} whatever is measured")


class Asking(Found):
    """Records every requested point and returns a number for it."""

    def __init__(self, found: Found) -> None:
        super().__init__(found.means)

    def mean(self, panel: str, series: str, quantity: str, x: float | None = None) -> Mean:
        point = Point(panel, series, quantity, x)
        self.means.setdefault(point, Mean.near(1.0, math.nan, 1))
        return self.means[point]

    def curve(self, panel: str, series: str, quantity: str) -> dict[float, Mean]:
        places = [p.x for p in self.means if p[:3] == (panel, series, quantity) and p.x is not None]
        return {x: self.mean(panel, series, quantity, x) for x in places or (1.0, 2.0, 4.0)}


def made_up(said: Said, found: Found) -> Found:
    """Return synthetic values for each point that a claim requests, to test its answer."""
    asking = Asking(found)
    for turn in TURNS:
        answer(said, asking)
        asking.means |= Contrary(asking, turn).means
        answer(said, asking)
    return Found(asking.means)


def test_the_contrary_test_notices_an_answer_that_is_written_down() -> None:
    """Control: the test detects an answer that the code fixes in advance."""

    class Written(Test):
        def see(self, view: View):  # type: ignore[no-untyped-def]
            return Below(lambda v: 0.0, 1.0).see(view)

    _, statement = STATEMENTS[0]
    constant = dataclasses.replace(statement, look=Look(Written()), needs="")
    with pytest.raises(AssertionError, match="whatever is measured"):
        test_contrary_measurements_get_another_answer("xu", constant)


# --- the engine -------------------------------------------------------------------------------


def made(**values: Mean | float | dict[float, float]) -> Found:
    """Return measurements in one panel: a number or a curve for each series."""
    means: dict[Point, Mean] = {}
    for series, value in values.items():
        curve = value if isinstance(value, dict) else {None: value}
        for x, one in curve.items():
            mean = one if isinstance(one, Mean) else Mean.near(float(one), math.nan, 1)
            means[Point("p", series, "q", x)] = mean
    return Found(means)


def verdict(test: Test, found: Found, **look: object) -> ClaimAnswer:
    claim = Said("k", "e", "Table 0", "so it is", "q", "", "", "", "", Look(test, ["p"], **look))  # type: ignore[arg-type]
    return answer(claim, found).answer


A, B = at("a", "q"), at("b", "q")
CURVE = along("a", "q")


def noisy(value: float, se: float) -> Mean:
    return Mean.near(value, se, 100)


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (noisy(1.0, 0.01), ClaimAnswer.REPRODUCED),
        (noisy(1.09, 0.01), ClaimAnswer.REPRODUCED),
        (noisy(1.3, 0.01), ClaimAnswer.NOT_REPRODUCED),
        (noisy(1.0, 0.04), ClaimAnswer.FEW_DRAWS),  # This is too noisy for an answer.
        (noisy(1.3, 0.2), ClaimAnswer.FEW_DRAWS),
    ],
)
def test_a_number_needs_an_error_a_third_of_the_papers(mean: Mean, expected: ClaimAnswer) -> None:
    assert verdict(Number(A, Stated(1.0, 0.1)), made(a=mean)) is expected


@pytest.mark.parametrize(
    ("test", "found", "expected"),
    [
        (Below(A, 1.0), made(a=0.5), ClaimAnswer.REPRODUCED),
        (Below(A, 1.0), made(a=noisy(0.99, 0.1)), ClaimAnswer.FEW_DRAWS),
        (Below(A, 1.0), made(a=2.0), ClaimAnswer.NOT_REPRODUCED),
        (Below(A, 1.0, 1), made(a=2.0), ClaimAnswer.REPRODUCED),
        (Between(A, 1.0, 3.0), made(a=2.0), ClaimAnswer.REPRODUCED),
        (Between(A, 1.0, 3.0), made(a=noisy(2.9, 0.1)), ClaimAnswer.FEW_DRAWS),
        (Between(A, 1.0, 3.0), made(a=0.5), ClaimAnswer.NOT_REPRODUCED),
        (Between(A, 1.0, 3.0), made(a=4.0), ClaimAnswer.NOT_REPRODUCED),
        (AtMost(A), made(a=1.0), ClaimAnswer.REPRODUCED),
        (AtMost(A), made(a=0.7), ClaimAnswer.BOUND),
        (AtMost(A), made(a=1.1), ClaimAnswer.NOT_REPRODUCED),
        (AtMost(A), made(a=math.nan), ClaimAnswer.NOT_REPRODUCED),
        (Order(A, B), made(a=2.0, b=1.0), ClaimAnswer.REPRODUCED),
        (Order(A, B), made(a=1.0, b=2.0), ClaimAnswer.NOT_REPRODUCED),
        (Order(A, B), made(a=noisy(1.0, 0.01), b=noisy(1.001, 0.01)), ClaimAnswer.NO_DIFFERENCE),
        (Order(A, B), made(a=noisy(1.0, 0.1), b=noisy(1.001, 0.1)), ClaimAnswer.FEW_DRAWS),
        (Monotone(CURVE, 1), made(a={1.0: 1.0, 2.0: 2.0}), ClaimAnswer.REPRODUCED),
        (Monotone(CURVE, -1), made(a={1.0: 1.0, 2.0: 2.0}), ClaimAnswer.NOT_REPRODUCED),
        (Power(CURVE, 2.0), made(a={1.0: 1.0, 2.0: 4.0}), ClaimAnswer.REPRODUCED),
        (Power(CURVE, 1.0), made(a={1.0: 1.0, 2.0: 4.0}), ClaimAnswer.NOT_REPRODUCED),
        (Power(CURVE, 3.0, upper=True), made(a={1.0: 1.0, 2.0: 4.0}), ClaimAnswer.BOUND),
        (Identity(A, 8.0), made(a=8.0), ClaimAnswer.REPRODUCED),
        (Identity(A, 8.0), made(a=8.0 / math.sqrt(2)), ClaimAnswer.NOT_REPRODUCED),
        (Below(A, 1.0), made(b=1.0), ClaimAnswer.NOT_HERE),
    ],
)
def test_answers_follow_from_measurements(test: Test, found: Found, expected: ClaimAnswer) -> None:
    assert verdict(test, found) is expected


def test_an_expression_is_worked_out_place_by_place() -> None:
    points = made(a={1.0: 6.0, 2.0: 8.0, 4.0: 12.0}, b={2.0: 2.0, 4.0: 3.0}, c=noisy(2.0, 0.1))
    view, c = View(points, "p"), at("c", "q")

    def told(expression: Expression) -> dict[float, float]:
        return {x: mean.value for x, mean in expression(view).items()}

    assert told(CURVE / along("b", "q")) == {2.0: 4.0, 4.0: 4.0}
    assert told(CURVE - c) == {1.0: 4.0, 2.0: 6.0, 4.0: 10.0}
    assert told(CURVE.each(lambda x: 2 * x)) == {1.0: 3.0, 2.0: 2.0, 4.0: 1.5}
    assert (CURVE.last - CURVE.first)(view).value == 6.0
    half = (c / 4.0)(view)
    assert (half.value, half.error) == (0.5, 0.025)
    assert c.on("p")(View(points, "other")).value == 2.0
    assert row_of("p", "q")(View(points, "c")).value == 2.0
    with pytest.raises(Absent):
        (CURVE / along("b", "q", 5.0))(view)


def test_what_holds_for_nothing_too_holds_for_another_reason() -> None:
    look = {"nothing": Below(B, 1.0)}
    assert verdict(Below(A, 1.0), made(a=0.5, b=0.5), **look) is ClaimAnswer.OTHER_REASON
    assert verdict(Below(A, 1.0), made(a=0.5, b=2.0), **look) is ClaimAnswer.REPRODUCED
    assert verdict(Below(A, 1.0), made(a=3.0, b=0.5), **look) is ClaimAnswer.NOT_REPRODUCED


def test_numbers_that_fail_in_the_papers_order_are_an_order_only() -> None:
    order = {"order": Order(B, A)}
    assert verdict(Number(A, Stated(1.0, 0.1)), made(a=5.0, b=9.0), **order) is ClaimAnswer.ORDER
    wrong = verdict(Number(A, Stated(1.0, 0.1)), made(a=5.0, b=2.0), **order)
    assert wrong is ClaimAnswer.NOT_REPRODUCED


def test_what_cannot_fail_is_not_counted_unless_it_does() -> None:
    assert verdict(Below(A, 1.0), made(a=0.5), built=True) is ClaimAnswer.CONSTRUCTION
    assert verdict(Below(A, 1.0), made(a=2.0), built=True) is ClaimAnswer.NOT_REPRODUCED
