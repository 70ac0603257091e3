"""Decide: every offer's claim holds at its own epsilon, and the risk is what is spent."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import dpviz
from dpviz.auditing.attack import both_worlds
from dpviz.cli import main
from dpviz.core.cancelling import cancelled_by
from dpviz.core.metrics import chance_share
from dpviz.core.number_text import of_hundred
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Verdict
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.lessons import decide, risk, words
from dpviz.lessons.card import card_html, card_page
from dpviz.lessons.decide import Card, Offer
from dpviz.lessons.questions import Answers, plan_text
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.preparation.bounding import prepare
from dpviz.preparation.load import load_measured
from dpviz.report.figures.handout import report_page
from dpviz.report.sentences.phrases import belief, risk_words
from dpviz.simulation import goal as search
from dpviz.simulation.cells import evaluate, parts_of
from dpviz.simulation.compare import compare
from dpviz.simulation.defaults import advised
from dpviz.simulation.goal import Goal
from dpviz.simulation.simulate import Cell

SETTINGS = Settings(table="iris")
MEASURED = load_measured(SETTINGS)
PROBLEM = MEASURED.problem(SETTINGS)


Steps = list[tuple[str, int, int]]


def by_steps() -> tuple[Steps, Card]:
    """Make a card one step at a time, as the page does."""
    found: decide.Found = {}
    places: Steps = []
    while (step := decide.next_step(found)) is not None:
        places.append((step.stage, step.place, step.total))
        found[step.key] = step.run(MEASURED, SETTINGS, Answers(survive="75"))
    return places, decide.card_of(MEASURED, SETTINGS, Answers(survive="75"), found)


@pytest.fixture(scope="module")
def stepped() -> tuple[Steps, Card]:
    return by_steps()


@pytest.fixture(scope="module")
def card(stepped: tuple[Steps, Card]) -> Card:
    return stepped[1]


@pytest.fixture(scope="module")
def bounded() -> Offer:
    """Return the offer of a mechanism that uses the row bound; the card's best need none."""
    found = decide.offer_of(MEASURED, SETTINGS, Answers(survive="75"), parse_variant("gaussian"))
    assert isinstance(found, Offer)
    assert found.mechanism.needs_row_bound
    return found


def heavy_tailed() -> Table:
    """A made table like a hospital's: 591 people, nine values, a few of them very far out."""
    rng = generator(0, "hospital")
    mixed = rng.normal(size=(3, 9))
    rows = (rng.normal(size=(591, 3)) * [2.0, 1.2, 0.6]) @ mixed + 0.5 * rng.normal(size=(591, 9))
    rows *= np.sqrt(2.5 / rng.chisquare(2.5, size=591))[:, None]
    return Table("hospital", rows, tuple(f"value {number}" for number in range(1, 10)))


@pytest.fixture(scope="module")
def hospital() -> Card:
    return decide.card(prepare(heavy_tailed(), SETTINGS), SETTINGS, Answers())


def test_mechanisms_that_need_the_rows_take_part(hospital: Card) -> None:
    """They need a small part of the epsilon where a few rows are very long."""
    by_key = {offer.mechanism.key: offer for offer in hospital.offers}
    assert hospital.best is not None
    assert hospital.best.mechanism.needs_rows
    assert by_key["spherical"].epsilon < 0.25
    left = {item.mechanism.key: item.reason for item in hospital.left_out}
    assert float(left["gaussian"].rpartition(" ")[2]) > 20
    said = words.by_whom(hospital)
    assert said.startswith(f"By {hospital.best.mechanism.label}, with delta 1e-6; without a delta")


def test_every_mechanism_is_offered_or_named_with_a_reason(hospital: Card) -> None:
    offered = {offer.mechanism.key for offer in hospital.offers}
    left = {item.mechanism.key: item.reason for item in hospital.left_out}
    claiming = {key for key, cls in all_mechanisms().items() if cls.info.guarantee != "none"}
    assert offered | set(left) == claiming
    assert not offered & set(left)
    assert all(left.values())
    assert "needs a larger epsilon, about" in left["laplace"]


def test_a_plan_names_the_mechanisms_that_need_rows() -> None:
    answers = Answers(source="plan", people=5_000, features=6, survive="75")
    settings = Settings(table=plan_text(answers))
    measured = load_measured(settings)
    found = decide.look_at(measured, settings, answers, parse_variant("spherical"))
    assert isinstance(found, decide.LeftOut)
    assert "needs the rows themselves" in found.reason


def test_an_answer_is_an_estimate_with_a_narrow_range(hospital: Card) -> None:
    """A range of 15 % where draws are of one kind; the rest says how wide it is."""
    one_kind = {"spherical", "spherical_wishart_difference", "clipped_gaussian"}
    found = [o.target for o in hospital.offers if o.mechanism.key in one_kind]
    assert len(found) > 1
    for target in found:
        assert target.low is not None
        assert target.high is not None
        assert target.high <= 1.15 * target.low
    best = hospital.best
    assert best is not None
    said = words.headline(hospital)
    about, low, high = map(float, re.findall(r"\d+\.\d+", said))
    assert low <= about < best.epsilon <= high
    assert said.endswith(f"an epsilon of about {about:g}, between {low:g} and {high:g}.")


@pytest.mark.slow
def test_a_card_is_made_step_by_step_and_goes_on_where_it_was(
    stepped: tuple[Steps, Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    places, _ = stepped
    looks = [place for stage, place, _ in places if stage == decide.LOOK]
    searches = [place for stage, place, _ in places if stage == decide.SEARCH]
    assert looks == list(range(len(list(decide.candidates()))))
    assert searches == list(range(len(searches)))
    assert len(searches) <= decide.SEARCHED + 1
    # At once it is the same card: by a few mechanisms, of each kind of answer one, and few draws.
    monkeypatch.setattr(decide, "DRAWS", 16)
    monkeypatch.setattr(search, "_NARROWINGS", 0)
    few = [parse_variant(key) for key in ("gaussian", "wishart_difference", "wishart", "spherical")]
    monkeypatch.setattr(decide, "candidates", lambda: iter(few))
    told: Steps = []
    at_once = decide.card(
        MEASURED,
        SETTINGS,
        Answers(survive="75"),
        lambda step: told.append((step.stage, step.place, step.total)),
    )
    assert (told, at_once) == by_steps()
    assert len(at_once.offers) >= 2
    assert len(at_once.left_out) >= 1


def test_claims_hold_at_each_answer(card: Card) -> None:
    assert len(card.offers) >= 4
    estimates = [offer.target.estimate for offer in card.offers]
    assert estimates == sorted(estimates)
    for offer in card.offers:
        at = Budget(offer.epsilon, MEASURED.budget(SETTINGS).delta)
        status = offer.mechanism.status(PROBLEM, at)
        assert status.verdict in (Verdict.HOLDS, Verdict.LOOSE)
    left = {item.mechanism.key: item.reason for item in card.left_out}
    assert "wishart" in left
    offered = {offer.mechanism.key for offer in card.offers}
    assert "wishart" not in offered
    assert {"spherical", "clipped_gaussian"} <= offered
    assert "larger epsilon" in left["gaussian"]


def test_at_the_answer_the_goal_is_reached_and_far_below_it_is_not(card: Card) -> None:
    """On other streams, up to six standard errors of the mean of 400 draws."""
    goal = Goal.of_recovery(card.answers.recovery, chance_share(MEASURED.reference, SETTINGS.k))
    for offer in card.offers[:3]:
        shares = []
        for epsilon in (offer.epsilon, offer.epsilon / 2):
            budget = Budget(epsilon, MEASURED.budget(SETTINGS).delta)
            cell = Cell(offer.mechanism, PROBLEM, budget, 99, range(400))
            shares.append(goal.measure.compute(evaluate(cell, MEASURED)))
        there, below = shares
        assert there is not None
        assert below is not None
        assert there.mean() > goal.value - 6 * there.std() / 20
        assert below.mean() < goal.value - 6 * below.std() / 20


@pytest.mark.slow
def test_without_a_delta_only_pure_claims_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(survive="50", delta_allowed="no")
    for mechanism in decide.candidates():
        reason = decide.why_left_out(mechanism, MEASURED, SETTINGS, answers)
        assert (reason == "it needs a delta") == (mechanism.info.guarantee != "pure")
    # the card of some of either kind
    few = [parse_variant(key) for key in ("gaussian", "spherical", "wishart_difference", "laplace")]
    monkeypatch.setattr(decide, "candidates", lambda: iter(few))
    found = decide.card(MEASURED, SETTINGS, answers)
    assert found.offers
    assert all(offer.pure for offer in found.offers)
    assert found.best is found.best_pure
    assert "delta" not in words.headline(found)
    assert words.by_whom(found).endswith(", without a delta.")


def test_variances_need_a_released_matrix() -> None:
    answers = Answers(survive="50", delta_allowed="no", hand_out="variances")
    for mechanism in decide.candidates():
        reason = decide.why_left_out(mechanism, MEASURED, SETTINGS, answers)
        if not mechanism.releases_variances:
            assert reason is not None


def offer_at(key: str, epsilon: float) -> Offer:
    """Return an offer as if this epsilon were the answer."""
    goal = decide.Goal("captured_share", 0.9)
    target = decide.Target(parse_variant(key), "epsilon", goal, low=epsilon / 2, high=epsilon)
    return Offer(target, None)


def risk_at(key: str, epsilon: float, delta: float, **answers: float) -> risk.Risk:
    settings = replace(SETTINGS, delta=delta)
    found = Card(MEASURED, settings, Answers(**answers), (), ())  # type: ignore[arg-type]
    return risk.risk(found, offer_at(key, epsilon))


def test_both_worlds_against_exact_values() -> None:
    pure = risk_at("wishart_difference", 1.0, 0.0)
    assert (round(100 * pure.worlds.out), round(100 * pure.worlds.within)) == (27, 73)
    gaussian = risk_at("gaussian", 1.0, 1e-5)
    assert (round(100 * gaussian.worlds.out), round(100 * gaussian.worlds.within)) == (45, 55)


def test_the_prior_follows_bayes() -> None:
    found = risk_at("wishart_difference", 1.0, 0.0, prior=1.0)
    odds = 0.01 / 0.99 * math.e
    assert found.most == pytest.approx(odds / (1 + odds))
    assert found.heard == pytest.approx(found.most)  # a balanced guesser reaches it at pure epsilon
    assert found.beyond == 0


def test_releases_of_the_same_people_add_up() -> None:
    one, four = (
        risk.cost_of_releases(parse_variant("gaussian"), PROBLEM, Budget(1.0, 1e-6), count)
        for count in (1, 4)
    )
    # mu adds in squares: four releases are one with half the noise
    mu = parse_variant("gaussian").calibrate(PROBLEM, Budget(1.0, 1e-6)).parts[0].mu  # type: ignore[union-attr]
    assert both_worlds(one).out == pytest.approx(norm.cdf(-mu / 2), abs=1e-9)
    assert both_worlds(four).out == pytest.approx(norm.cdf(-mu), abs=1e-9)
    pure = risk.cost_of_releases(parse_variant("wishart_difference"), PROBLEM, Budget(0.5), 3)
    assert pure.epsilon == pytest.approx(1.5)
    assert pure.epsilon >= 1.5 * (1 - 1e-9)


@pytest.mark.parametrize("key", ["wishart_exact", "noisy_power_exact", "eigenvector_sampling"])
def test_more_releases_never_cost_less(key: str) -> None:
    problem = Problem(PROBLEM.n, 4, 1, PROBLEM.relation, PROBLEM.domain)
    spent = [
        risk.cost_of_releases(parse_variant(key), problem, Budget(0.5, 1e-6), count).epsilon
        for count in (1, 2, 5)
    ]
    assert spent == sorted(spent)
    assert spent[2] > spent[0]


def test_an_epsilon_is_rounded_to_the_safe_side_of_the_goal() -> None:
    for value in (0.04205, 0.8798, 1.0, 2.165, 51.06):
        rounded = decide.rounded_up(value)
        assert value * (1 - 1e-9) <= rounded <= value * 1.01


def test_a_plan_needs_no_data() -> None:
    answers = Answers(source="plan", people=5_000, features=6, survive="75")
    settings = Settings(table=plan_text(answers))
    measured = load_measured(settings)
    assert (measured.n, measured.d) == (5_000, 6)
    assert not measured.has_rows


def test_the_page_holds_the_card_and_asks_nobody(card: Card) -> None:
    assert card.best is not None
    seen = risk.risk(card, card.best)
    page = card_page(card, seen, "python -m dpviz compare <iris>", "")
    assert "&lt;iris&gt;" in page
    assert card.best.mechanism.label in page
    assert page.count("data:image/svg+xml;base64,") == 2
    said = risk_words(card.best.mechanism.label, seen.spent, card.best.epsilon)  # of every page
    assert said[1:] in page
    between = replace(card.best, target=replace(card.best.target, high=0.5021))  # command: 0.503
    assert "after anything at ε 0.503 " in words.risk_words(between, card.answers, seen)
    assert "http" not in page
    for heading in ("Consequences", "Left to decide", "Least epsilon"):
        assert heading in page


def test_the_report_holds_the_card(card: Card) -> None:
    assert card.best is not None
    shown = card_html(card, risk.risk(card, card.best), card.settings.command(), "")
    found = compare(MEASURED, replace(card.settings, trials=2))
    page = report_page(found, command=card.settings.command(), link="", card=shown)
    for heading in ("The board", "The answer", "Consequences", "Assumed public", "Papers"):
        assert heading in page
    assert page.count("data:image/svg+xml;base64,") == 2
    assert "Consequences" not in report_page(found, command="", link="")


def test_a_card_goes_into_a_report_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "board.html"
    assert main(["board", "iris", "--card", "90", "--out", str(path)]) == 2
    assert "--report" in capsys.readouterr().err
    assert not path.exists()


def test_a_search_can_be_ended_before_each_batch_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    class Left(Exception):
        pass

    drawn = []

    def counted(*given: object) -> object:
        drawn.append(given)
        return parts_of(*given)  # type: ignore[arg-type]

    def look() -> None:
        if len(drawn) == 2:
            raise Left

    monkeypatch.setattr("dpviz.simulation.least.parts_of", counted)
    with cancelled_by(look), pytest.raises(Left):
        decide.offer_of(MEASURED, SETTINGS, Answers(), parse_variant("gaussian"))
    assert len(drawn) == 2


def test_a_rate_is_never_rounded_to_none_or_all() -> None:
    assert of_hundred(0.001) == "less than 1"
    assert of_hundred(0.999) == "more than 99"
    assert of_hundred(0.0) == "0"
    assert belief(0.9999) == "more than 99.9\u00a0%"


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "with delta"])
def test_the_label_says_who_sees_what(card: Card, pure: bool) -> None:
    offers = tuple(offer for offer in card.offers if offer.pure is pure)
    label = dict(words.label(replace(card, offers=offers)))
    assert set(label) == {
        "Who sees raw data", "What is protected", "What is not protected",
        "Delta" if pure else "What delta allows",
    }  # fmt: skip
    for item in MEASURED.assumed_public:
        assert item in label["What is not protected"]


@pytest.mark.parametrize(
    ("changes", "left_out"),
    [
        ({"row_bound": "max"}, "the person with the longest row"),
        ({"row_bound": "quantile:0.9"}, "the people whose rows set the row bound"),
        ({"domain": "box", "bounds": "max"}, "least or largest value of a feature"),
        ({"row_bound": "10"}, ""),
        ({"row_bound": "private:0.9", "bounds": "0:8"}, ""),
        ({"domain": "box", "bounds": "0:8", "center": "midpoint"}, ""),
    ],
)
def test_whose_row_set_a_bound_is_not_covered_and_that_is_said_there(
    card: Card, bounded: Offer, changes: dict[str, str], left_out: str
) -> None:
    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    found = replace(card, settings=settings, measured=load_measured(settings), offers=(bounded,))
    protected = dict(words.label(found))["What is protected"]
    assert ("Not covered" in protected) == bool(left_out)
    assert left_out in protected
    planned = replace(found, answers=Answers(source="plan"))
    assert "Not covered" not in dict(words.label(planned))["What is protected"]


@pytest.mark.parametrize("row_bound", ["max", "quantile:0.9"])
def test_a_bound_that_no_mechanism_uses_leaves_nobody_out(
    card: Card, bounded: Offer, row_bound: str
) -> None:
    free = next(offer for offer in card.offers if not offer.mechanism.needs_row_bound)
    found = replace(card, settings=replace(SETTINGS, row_bound=row_bound))

    def protected(*offers: Offer) -> str:
        return dict(words.label(replace(found, offers=offers)))["What is protected"]

    assert "ot covered" not in protected(free)
    assert "Not covered: the pe" in protected(bounded)
    both = protected(free, bounded)
    assert f"{bounded.mechanism.label}: not covered " in both
    assert free.mechanism.label not in both


def test_a_picture_of_the_people_has_no_epsilon_and_no_dots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No promise covers it, so nothing is searched, and what is offered instead is said."""

    def unasked(*given: object) -> object:
        raise AssertionError("nothing is drawn for a picture that cannot be published")

    monkeypatch.setattr("dpviz.simulation.least.parts_of", unasked)
    found = decide.card(MEASURED, SETTINGS, Answers(hand_out="picture"))
    assert found.offers == ()
    assert found.best is None
    assert words.headline(found).startswith("No. A picture of the people cannot be published")
    shown = card_html(found, None, "python -m dpviz compare iris --epsilon 1", "a link")
    said = re.sub(r"<style>.*?</style>", "", shown, flags=re.S)
    for never in ("epsilon", "holds", "svg", "100", "delta", "%"):
        assert never not in said, never
    assert "points drawn from these" in said


def test_points_drawn_from_the_release_cost_what_the_variances_do() -> None:
    gaussian = parse_variant("gaussian")
    offers = [
        decide.offer_of(MEASURED, SETTINGS, Answers(survive="50", hand_out=handed), gaussian)
        for handed in ("variances", "drawn")
    ]
    first, second = offers
    assert isinstance(first, Offer)
    assert isinstance(second, Offer)
    assert first.target == second.target
    drawn = Answers(hand_out="drawn")
    spherical = parse_variant("spherical")
    assert decide.why_left_out(spherical, MEASURED, SETTINGS, drawn) is not None
    label = dict(words.label(Card(MEASURED, SETTINGS, drawn, (), ())))
    assert "nobody's rows" in label["What is protected"]


@pytest.mark.slow
def test_an_offer_pays_for_the_preparation_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least epsilon is that of the whole chain, and its claim is judged as a whole."""
    monkeypatch.setattr(decide, "DRAWS", 16)  # three times the epsilon is told by few,
    monkeypatch.setattr(search, "_NARROWINGS", 0)  # in ranges apart, if wide
    private = replace(SETTINGS, center="private", row_bound="private:0.9", bounds="0:8")
    measured = load_measured(private)
    answers, mechanism = Answers(survive="75"), parse_variant("gaussian")
    chain = decide.offer_of(measured, private, answers, mechanism)
    alone = decide.offer_of(MEASURED, SETTINGS, answers, mechanism)
    assert isinstance(chain, Offer)
    assert isinstance(alone, Offer)
    assert chain.target.low is not None
    assert chain.target.low > alone.epsilon  # the upper end of its range
    assert chain.people is None  # nothing is predicted behind a preparation in noise
    assert chain.target.status is not None
    assert "Preparation (mean, bound)" in chain.target.status.evidence
    found = decide.card_of(measured, private, answers, {(decide.SEARCH, "gaussian"): chain})
    assert "--center private --row-bound private:0.9" in found.settings.command("iris")
    delta = measured.budget(private).delta
    assert risk.risk(found, chain).spent.epsilon == pytest.approx(chain.epsilon, rel=1e-6)
    thrice = replace(found, answers=replace(answers, releases=3))
    spent = risk.risk(thrice, chain).spent
    assert spent.delta == delta
    assert 1.5 * chain.epsilon < spent.epsilon < 3 * chain.epsilon


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_what_is_advised_where_rows_are_at_hand_is_looked_at(delta: float) -> None:
    """Under pure privacy with the noise whose draws a search can wait for."""
    problem = MEASURED.problem(SETTINGS)
    best = advised(problem, Budget(1.0, delta), rows=True)
    (asked,) = [one for one in decide.candidates() if one.key == best.key]
    allowed = Answers(survive="75", delta_allowed="yes" if delta else "no")
    assert decide.why_left_out(asked, MEASURED, SETTINGS, allowed) is None
    assert asked.quick
    slow = [one for one in decide.candidates() if not one.quick]
    assert slow  # the control: those are named on the card, with the command that does
    for one in slow:
        reason = decide.why_left_out(one, MEASURED, SETTINGS, Answers(survive="75"))
        assert reason is not None
        assert "dpviz least" in reason or "variances" in reason


def test_the_function_answers_as_the_page_does(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [parse_variant(key) for key in ("gaussian", "wishart_difference", "wishart", "spherical")]
    monkeypatch.setattr(decide, "candidates", lambda: iter(few))
    monkeypatch.setattr(decide, "DRAWS", 16)  # the same twice, and not precise
    monkeypatch.setattr(search, "_NARROWINGS", 0)
    plan = "plan:n=1e5,spectrum=0.3,0.1,0.01"
    found = dpviz.decide(plan, k=1, survive="75", prior=50.0)
    settings = Settings(table=plan, k=1)
    card = decide.card(load_measured(settings), settings, Answers(source="plan", survive="75"))
    assert found.table()["mechanism"].tolist() == [o.mechanism.text for o in card.offers]
    assert found.table()["epsilon"].tolist() == [o.epsilon for o in card.offers]
    assert found.summary().startswith(words.headline(card))
    # the sentence and the row below it round the same ends alike, to the side that is true
    low, high = re.findall(r"between (\S+) and (\S+)\.$", words.headline(card))[0]
    first = found.printed().splitlines()[-len(card.offers)]
    assert first.split()[1:3] == [high, low]
    assert found.risk is not None
    assert 0.5 < found.data()["risk"]["believed_at_most"] == found.risk.most < 1
    assert "<html" in found.html()
    refused = dpviz.decide(plan, k=1, hand_out="picture")
    assert refused.table().empty
    assert refused.data()["risk"] is None
    assert refused.summary().startswith("No. A picture")
