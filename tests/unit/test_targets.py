"""Least epsilon and n: the bets, the search, its confidence, and plans without a table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.accounting.gaussian import noise_std
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import EPSILON_RANGE, Budget
from dpviz.core.release import Verdict
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.preparation.load import load_prepared, planned, spectrum_of
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.tradeoffs import goal_words, predicted_sentence, range_words, sentence
from dpviz.simulation.cells import CellTrials, parts_of
from dpviz.simulation.compare import run_cell
from dpviz.simulation.goal import WITHIN, Bets, Crossing, Goal, crossing
from dpviz.simulation.least import (
    PEOPLE_RANGE,
    Predicted,
    Target,
    about,
    least,
    predicted_crossing,
    predicted_target,
    targets,
)
from dpviz.simulation.simulate import Cell

POINTS = np.geomspace(0.01, 100, 461)


# Bets ---------------------------------------------------------------------------


def test_a_player_who_is_wrong_seldom_grows_rich() -> None:
    """On a fair game capital reaches 20 with probability at most 1/20 (Ville).

    More than 162 of 2,000 such players have probability below 1e-9 (binomial).
    Against a mean that is off by .1, nearly all do: the check can fail.
    """
    rng = np.random.default_rng(0)
    rich_fair = rich_right = 0
    for _ in range(2_000):
        values = (rng.random(200) < 0.7).astype(float)
        fair, right = Bets(0.7), Bets(0.55)
        fair.see(values)
        right.see(values)
        rich_fair += fair.best[0] >= math.log(20)
        rich_right += right.best[0] >= math.log(20)
    assert rich_fair <= 162
    assert rich_right > 1_500


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0.05, 0.95), st.data())
def test_capital_rises_with_every_draw(
    listed: list[float], threshold: float, data: st.DataObject
) -> None:
    """What makes shared draws sound; and batches leave no seam."""
    values = np.array(listed)
    raised = values + (1 - values) * np.array(
        data.draw(st.lists(st.floats(0, 1), min_size=len(values), max_size=len(values)))
    )
    low, high, split = Bets(threshold), Bets(threshold), Bets(threshold)
    low.see(values)
    high.see(np.clip(raised, 0, 1))
    cut = len(values) // 2
    split.see(values[:cut]) if cut else None
    split.see(values[cut:])
    assert high.best[0] >= low.best[0] - 1e-9
    assert high.best[1] <= low.best[1] + 1e-9
    assert split.best == pytest.approx(low.best)


# Search ---------------------------------------------------------------------------


def _curve(point: float) -> float:
    """Return a mean that rises from .2 to .95 and crosses .7 at 1.8."""
    return 0.2 + 0.75 / (1 + (0.9 / point))


ANSWER = 1.8


def _sampler(seed: int, *, shared: bool) -> object:
    """Values of spread .1 about the curve: the same noise along it, or not."""

    def sample(point: float, trials: range) -> FloatArray:
        label = "shared" if shared else repr(point)
        noise = generator(seed, label).uniform(-0.05, 0.05, trials.stop)[trials.start :]
        return np.clip(_curve(point) + noise, 0, 1)

    return sample


def _found(seed: int, *, shared: bool, confidence: float = 0.5, most: int = 64) -> Crossing:
    sample = _sampler(seed, shared=shared)
    assert callable(sample)
    return crossing(
        POINTS, sample, 0.7, shared=shared, start=200, confidence=confidence, most_draws=most
    )


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_the_interval_holds_the_answer_as_often_as_it_says(shared: bool) -> None:
    """At confidence 1/2 more than 75 errors in 100 have probability below 2e-7 (binomial).

    The bets are cautious, so errors are far rarer.
    """
    assert _curve(ANSWER) == pytest.approx(0.7)
    errors = 0
    for seed in range(100):
        found = _found(seed, shared=shared)
        assert found.monotone
        assert found.low is not None
        assert found.high is not None
        errors += not found.low < ANSWER <= found.high * 1.02
        assert found.high / found.low < 5  # an answer, not the whole range of 10,000
    assert errors <= 75


def test_reading_one_draw_off_would_fail_that_test() -> None:
    """Halving on single draws, as if there were no noise, ends within 2 % of the answer seldom."""
    errors = 0
    for seed in range(100):
        sample = _sampler(seed, shared=False)
        assert callable(sample)
        low, high = 0, len(POINTS) - 1
        while high - low > 1:
            middle = (low + high) // 2
            above = sample(float(POINTS[middle]), range(1))[0] >= 0.7
            low, high = (low, middle) if above else (middle, high)
        errors += not POINTS[low] < ANSWER <= POINTS[high] * 1.02
    assert errors > 75


def test_more_draws_narrow_the_interval() -> None:
    wide, narrow = _found(0, shared=True, most=32), _found(0, shared=True, most=1024)
    assert None not in (wide.low, wide.high, narrow.low, narrow.high)
    assert (narrow.high or 0) / (narrow.low or 1) < (wide.high or 0) / (wide.low or 1)


@pytest.mark.parametrize("start", [None, 0, 150, 460])
def test_a_bad_guess_costs_work_and_not_the_answer(start: int | None) -> None:
    sample = _sampler(1, shared=True)
    assert callable(sample)
    found = crossing(POINTS, sample, 0.7, shared=True, start=start, most_draws=128)
    assert found.low is not None
    assert found.high is not None
    assert found.low < ANSWER < found.high


def _hill(point: float, trials: range) -> FloatArray:
    """Return a mean above .7 between .5 and 4 only: not monotone."""
    mean = 0.9 if 0.5 < point < 4 else 0.3
    noise = [generator(0, repr(point), trial).uniform(-0.05, 0.05) for trial in trials]
    return mean + np.array(noise)


def test_a_curve_that_falls_again_is_noticed() -> None:
    assert not crossing(POINTS, _hill, 0.7, shared=False, start=200).monotone
    assert _found(0, shared=False).monotone


def test_a_curve_at_the_goal_is_not_decided() -> None:
    """Values of mean exactly .7: whatever the interval, the goal is not shown to be reached."""

    def flat(point: float, trials: range) -> FloatArray:
        return 0.7 + np.array([generator(9, "f", t).uniform(-0.2, 0.2) for t in trials])

    found = crossing(POINTS, flat, 0.7, shared=True, confidence=0.999)
    assert (found.low, found.high, found.last_is_below) == (None, None, False)


def test_a_goal_near_the_end_of_the_scale_gets_the_draws_it_needs() -> None:
    """Sixteen perfect draws say little of a mean above .99."""

    def step(point: float, trials: range) -> FloatArray:
        return np.full(len(trials), 1.0 if point > 1 else 0.9)

    found = crossing(POINTS, step, 0.99, shared=True, most_draws=16)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 1 < found.high
    assert found.high / found.low < 1.03


@pytest.mark.parametrize("shared", [True, False])
def test_a_wide_interval_is_narrowed_by_more_draws(shared: bool) -> None:
    """Thirty-two draws at a point leave it wider than 15 %; more follow near its ends."""
    for seed in range(10):
        found = _found(seed, shared=shared, confidence=0.95, most=32)
        assert found.low is not None
        assert found.high is not None
        assert found.low < ANSWER < found.high <= WITHIN * found.low


def test_what_no_draws_tell_apart_stays_wide() -> None:
    """The control: on a step of the curve at the goal itself nothing is shown."""

    def flat(point: float, trials: range) -> FloatArray:
        mean = 0.7 if 0.5 < point < 4 else 0.5 if point <= 0.5 else 0.9
        noise = [generator(3, repr(point), trial).uniform(-0.05, 0.05) for trial in trials]
        return mean + np.array(noise)

    found = crossing(POINTS, flat, 0.7, shared=False, start=200, most_draws=16)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.5
    assert found.high >= 4
    assert found.draws < 200_000


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (6.5301, 7.4799, "about 7, between 6.53 and 7.48"),
        (0.1669, 0.1885, "about 0.18, between 0.166 and 0.189"),
        (1.021, 1.039, "about 1.03, between 1.02 and 1.04"),
        (240.0, 270.0, "about 250, between 240 and 270"),
        (0.00021, 0.00024, "about 0.00022, between 0.00021 and 0.00024"),
    ],
)
def test_an_interval_in_words_is_rounded_outwards(low: float, high: float, said: str) -> None:
    assert range_words(low, high, "epsilon") == said


def test_about_is_near_the_search_and_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no prediction a few draws tell where a search will end, within half of it."""
    measured, settings = load_prepared(Settings(table="wine")), Settings(k=2)
    spherical = parse_variant("spherical")
    found = least(measured, settings, spherical, Goal(value=0.95), most_draws=64)
    drawn: list[int] = []

    def counted(cell: Cell, seen: Measured, most: int) -> Iterator[CellTrials]:
        drawn.append(len(cell.trials))
        return parts_of(cell, seen, most)

    monkeypatch.setattr("dpviz.simulation.least.parts_of", counted)
    guess = about(measured, settings, spherical, Goal(value=0.95))
    assert guess.value is not None
    assert guess.counts
    assert abs(math.log(guess.value / found.estimate)) < math.log(1.5)
    assert sum(drawn) < found.draws / 5
    assert not about(measured, settings, parse_variant("wishart"), Goal(value=0.95)).counts


def test_never_and_from_the_start() -> None:
    def constant(value: float) -> Crossing:
        return crossing(POINTS, lambda point, t: np.full(len(t), value), 0.7, shared=True)

    assert constant(0.3).last_is_below
    assert constant(0.3).high is None
    assert constant(0.9).high == POINTS[0]
    assert constant(0.9).low is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": 1.0}, "confidence must be above 0 and below 1"),
        ({"threshold": 1.0}, "threshold must be above 0 and below 1"),
        ({"most_draws": 3}, "draws must be at least 16"),
    ],
)
def test_bad_search_settings(change: dict[str, float], message: str) -> None:
    given: dict[str, float] = {"threshold": 0.5, "confidence": 0.9, "most_draws": 32} | change
    with pytest.raises(InvalidSetting, match=message):
        crossing(
            POINTS, _hill, given["threshold"], shared=True,
            confidence=given["confidence"], most_draws=int(given["most_draws"]),
        )  # fmt: skip


# Monotone draws -------------------------------------------------------------------


@pytest.mark.parametrize("key", ["gaussian", "laplace", "wishart", "wishart_difference"])
@pytest.mark.parametrize("k", [1, 3])
def test_each_draw_captures_more_at_every_larger_epsilon(key: str, k: int) -> None:
    """The theorem of the module docstring, draw by draw; exact up to rounding."""
    measured = load_prepared(Settings(table="wine"))
    problem = measured.problem(Settings(k=k))
    shares = [
        run_cell(
            Cell(parse_variant(key), problem, Budget(epsilon, 1e-4), 0, range(30)),
            measured,
            ["captured_share"],
        ).metrics["captured_share"]
        for epsilon in np.geomspace(0.05, 50, 25)
    ]
    assert (np.diff(np.array(shares), axis=0) >= -1e-12).all()


def test_other_mechanisms_have_no_such_draws() -> None:
    """The control: a sampler that draws afresh is not monotone draw by draw."""
    measured = load_prepared(Settings(table="wine"))
    problem = measured.problem(Settings(k=1))
    shares = [
        run_cell(
            Cell(parse_variant("ppca"), problem, Budget(epsilon), 0, range(30)),
            measured,
            ["captured_share"],
        ).metrics["captured_share"]
        for epsilon in np.geomspace(0.05, 50, 25)
    ]
    assert (np.diff(np.array(shares), axis=0) < -1e-3).any()


# Targets --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("what", ["epsilon", "n"])
@pytest.mark.parametrize("key", ["gaussian", "wishart_difference", "wishart_exact"])
def test_fresh_draws_confirm_the_interval(key: str, what: str) -> None:
    """On other streams, the mean at each end is on its side up to six standard errors."""
    measured = planned(spectrum_of("rank:d=8,rank=2,signal=0.2,noise=0.01"), 2_000)
    settings = Settings(k=2, epsilon=0.5, delta=1e-6)
    goal = Goal("captured_share", 0.8)
    mechanism = parse_variant(key)
    answer = least(measured, settings, mechanism, goal, what, most_draws=128)
    assert answer.low is not None
    assert answer.high is not None
    assert answer.predicted == pytest.approx(answer.estimate, rel=0.2)
    assert answer.proved == (key != "wishart_exact")
    for point, side in ((answer.low, -1), (answer.high, 1)):
        problem = measured.problem(settings)
        epsilon, seen = point, measured
        if what == "n":
            epsilon, problem = 0.5, dataclasses.replace(problem, n=round(point))
            seen = planned(measured.moment.eigenvalues, round(point))
        cell = Cell(mechanism, problem, Budget(epsilon, 1e-6), 77, range(1_500))
        shares = run_cell(cell, seen, ["captured_share"]).metrics["captured_share"]
        error = shares.std(ddof=1) / math.sqrt(len(shares))
        assert side * (shares.mean() - 0.8) > -6 * error


def test_a_noise_norm_whose_answer_is_known() -> None:
    """At d = 2 the squared Frobenius norm of GOE noise over t^2 is chi^2_3, median 2.36597.

    So half of all releases keep the norm below x from t = x/sqrt(2.36597) on.
    """
    measured = planned([0.5, 0.2], 1_000)
    goal = Goal("noise_frobenius", 0.05, of_draws=0.5)
    answer = least(
        measured, Settings(k=1, delta=1e-6), parse_variant("gaussian"), goal, most_draws=1_024
    )
    assert answer.low is not None
    assert answer.high is not None

    def norm(epsilon: float) -> float:
        t = math.sqrt(2) * noise_std(Budget(epsilon, 1e-6)) / 1_000
        return t * math.sqrt(2.36597)

    assert norm(answer.high) <= 0.05 <= norm(answer.low)
    assert answer.high / answer.low < 1.4


@pytest.mark.slow
def test_what_no_epsilon_reaches_and_what_cannot_answer() -> None:
    measured = planned([0.4, 0.3, 0.1, 0.0], 1_000)
    settings = Settings(k=2, mechanisms=("random_projection", "wishart", "gaussian", "ppca"))
    answers = targets(measured, settings, Goal(value=0.95), most_draws=64)
    by_key = {answer.mechanism.key: answer for answer in answers}
    assert by_key["random_projection"].never
    assert by_key["random_projection"].estimate == math.inf
    refuted = by_key["wishart"].status
    assert refuted is not None
    assert refuted.verdict is Verdict.REFUTED
    counted = [answer for answer in answers if answer.counts]
    assert list(answers[: len(counted)]) == counted
    assert [a.estimate for a in counted] == sorted(a.estimate for a in counted)
    words = [sentence(answer, 2) for answer in answers]
    assert all(line.endswith(".") for line in words)
    assert any("no epsilon up to 1,000,000 is enough to keep 95\u00a0%" in line for line in words)
    assert any("Not counted there: claim is false." in line for line in words)
    matrix_goal = Goal("noise_frobenius", 0.1, of_draws=0.5)
    assert least(measured, settings, parse_variant("ppca"), matrix_goal).reason is not None


def test_a_mechanism_is_asked_only_where_it_runs() -> None:
    """`wishart_approx` is stated for epsilon below 1."""
    measured = planned([0.5, 0.2, 0.1, 0.1], 500)
    answer = least(measured, Settings(k=1), parse_variant("wishart_approx"), Goal(), most_draws=32)
    assert answer.first == EPSILON_RANGE[0]
    assert 0.9 < answer.last < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sidebar", "value", "holds_at_sidebar"), [(0.5, 0.999, True), (20.0, 0.5, False)]
)
def test_a_claim_is_judged_at_its_own_answer(
    sidebar: float, value: float, holds_at_sidebar: bool
) -> None:
    """Under zero-out Analyze Gauss holds at small epsilon and fails from about 9 on."""
    measured = planned(spectrum_of("rank:d=6,rank=1,signal=0.3,noise=0.001"), 60)
    settings = Settings(k=1, epsilon=sidebar, delta=1e-5, relation="zero-out")
    mechanism, goal = parse_variant("analyze_gauss"), Goal(value=value)
    problem = measured.problem(settings)
    at_sidebar = mechanism.status(problem, replace(measured.budget(settings), epsilon=sidebar))
    assert at_sidebar.verdict.fails is not holds_at_sidebar
    found = predicted_target(measured, settings, mechanism, goal)
    assert found.value is not None
    assert math.isfinite(found.value)
    assert found.status is not None
    assert found.status.verdict.fails is holds_at_sidebar  # the reverse of the sidebar's
    assert found.counts is not holds_at_sidebar
    assert ("Not counted there" in predicted_sentence(found, "epsilon")) is holds_at_sidebar
    # the search judges there too
    drawn = least(measured, settings, mechanism, goal, most_draws=64)
    assert drawn.status is not None
    assert drawn.status.verdict.fails is holds_at_sidebar


def test_predicted_answers_that_do_not_count_come_last() -> None:
    measured = planned(spectrum_of("rank:d=30,rank=1,signal=0.3,noise=0.001"), 60)
    settings = Settings(k=1, delta=1e-5)
    answers = [
        predicted_target(measured, settings, parse_variant(key), Goal(value=0.9))
        for key in ("analyze_gauss", "ppca", "wishart_difference", "gaussian")
    ]
    ranked = sorted(answers, key=Predicted.order)
    assert ranked[0].mechanism.key == "gaussian"
    assert {answer.mechanism.key for answer in ranked[-2:]} == {"analyze_gauss", "ppca"}


def test_predicted_crossings() -> None:
    measured = planned(spectrum_of("rank:d=30,rank=1,signal=0.3,noise=0.01"), 5_000)
    settings, gaussian = Settings(k=1, delta=1e-6), parse_variant("gaussian")
    at = [predicted_crossing(measured, settings, gaussian, Goal(value=v)) for v in (0.5, 0.7, 0.9)]
    assert None not in at
    assert sorted(at, key=lambda x: x or 0) == at
    assert predicted_crossing(measured, settings, parse_variant("ppca"), Goal()) is None
    people = predicted_crossing(measured, settings, gaussian, Goal(value=0.7), "n")
    assert people is not None
    assert PEOPLE_RANGE[0] < people < PEOPLE_RANGE[1]
    hopeless = planned([0.5, 0.2], 2)
    tiny = Goal("noise_frobenius", 1e-12, of_draws=0.5)
    answer = predicted_crossing(hopeless, Settings(k=1), parse_variant("wishart_difference"), tiny)
    assert answer == math.inf


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (lambda: Goal("unknown"), "the goal's metric must be one of captured_share"),
        (lambda: Goal("negative_eigenvalues", 3), "the goal's metric must be one of"),
        (lambda: Goal(value=0.0), "the goal must be a positive number"),
        (lambda: Goal(of_draws=1.0), "the share of releases must be above 0 and below 1"),
        (lambda: Goal(value=1.0), "the goal must be above 0 and below 1"),
        (lambda: Goal("noise_spectral", 0.1), "which has no upper limit"),
    ],
)
def test_bad_goals(goal: object, message: str) -> None:
    assert callable(goal)
    measured = planned([0.5, 0.2], 100)
    with pytest.raises(InvalidSetting, match=message):
        least(measured, Settings(k=1), parse_variant("gaussian"), goal())


def test_goals_in_words() -> None:
    assert (
        goal_words(Goal(), 2) == "to keep 90\u00a0% of the variance that 2 components can explain"
    )
    # The same goal, as it was asked: .9 of the way from a chance of .6 to 1 is a share of .96.
    asked = Goal.of_recovery(0.9, 0.6)
    assert asked.value == pytest.approx(0.96, abs=1e-15)
    assert goal_words(asked, 2) == "to recover 90\u00a0% of what 2 components can show"
    angle = Goal("largest_angle", 0.5, of_draws=0.9)
    assert goal_words(angle, 1) == (
        "for a largest principal angle of at most 0.5 radians with one component in 90\u00a0% of "
        "releases"
    )
    gaussian = parse_variant("gaussian")
    needed = Target(gaussian, "n", Goal(), low=1000, high=1200, first=10, last=1e12)
    assert sentence(needed, 1) == (
        "Gaussian, exact needs about 1,100 people, between 1,000 and 1,200, to keep 90\u00a0% of "
        "the variance that one component can explain (95\u00a0% confidence)."
    )
    crooked = dataclasses.replace(needed, monotone=False)
    assert "no single least value" in sentence(crooked, 1)
    assert not crooked.counts
    open_ended = dataclasses.replace(needed, high=None)
    assert sentence(open_ended, 1).endswith("It lies above 1,000 people.")
    assert "at most 1,200 people" in sentence(dataclasses.replace(needed, low=None), 1)


# Plans ------------------------------------------------------------------------------


def test_typed_spectra() -> None:
    assert spectrum_of("0.1, 0.4,0.2").tolist() == [0.4, 0.2, 0.1]
    assert spectrum_of("0.3,0.01x3").tolist() == [0.3, 0.01, 0.01, 0.01]


def test_spectra_by_law() -> None:
    power = spectrum_of("power:d=4,exponent=2,total=0.5")
    assert power.sum() == pytest.approx(0.5)
    assert power / power[0] == pytest.approx([1, 1 / 4, 1 / 9, 1 / 16])
    decaying = spectrum_of("exponential:d=3,rate=1,total=1")
    assert decaying[1:] / decaying[:-1] == pytest.approx([math.exp(-1)] * 2)
    assert spectrum_of("rank:d=4,rank=2,signal=0.2,noise=0.01").tolist() == pytest.approx(
        [0.21, 0.21, 0.01, 0.01]
    )
    wine = load_prepared(Settings(table="wine"))
    assert spectrum_of("builtin:wine") == pytest.approx(wine.moment.eigenvalues)


@pytest.mark.parametrize(
    "text",
    [
        "", "a,b", "0.1,-0.2", "0.1,nan", "0.1x0", "power:d=4", "power:d=4,exponent=2,total=2",
        "power:d=1,exponent=2,total=0.5", "power:d=4,exponent=-1,total=0.5", "rank:d=4,rank=5,"
        "signal=1,noise=0", "rank:d=4,rank=2,signal=0,noise=0", "builtin:nothing", "other:d=3",
        "power:d=4.5,exponent=2,total=0.5", "power:d=x,exponent=2,total=0.5", "0.1,inf",
    ],
)  # fmt: skip
def test_bad_spectra(text: str) -> None:
    with pytest.raises(InvalidSetting, match="must be"):
        spectrum_of(text)


@pytest.mark.parametrize("values", [[0.5], [0.0, 0.0], [0.9, 0.2], [0.5, -0.1], [0.5, math.inf]])
def test_bad_plans(values: list[float]) -> None:
    with pytest.raises(InvalidSetting, match="spectrum must be"):
        planned(values, 100)


def test_a_plan_stands_for_a_table_with_that_spectrum() -> None:
    """The noise of `gaussian` turns with A, so only the spectrum counts; six standard errors."""
    measured = load_prepared(Settings(table="wine"))
    plan = planned(spectrum_of("builtin:wine"), measured.n)
    means = []
    for seen in (measured, plan):
        cell = Cell(
            parse_variant("gaussian"), seen.problem(Settings(k=2)), Budget(1.0, 1e-3), 5, range(400)
        )
        shares = run_cell(cell, seen, ["captured_share"]).metrics["captured_share"]
        means.append((shares.mean(), shares.std(ddof=1) / 20))
    (a, ea), (b, eb) = means
    assert abs(a - b) < 6 * math.hypot(ea, eb)
