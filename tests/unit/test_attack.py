from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import mu_of
from dpviz.auditing import attack
from dpviz.auditing import table as claims
from dpviz.cli import main
from dpviz.core.allocation import parse_allocation
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.mechanisms import parse_variant
from dpviz.report.sentences import claims as claims_words
from dpviz.report.sentences.claims import beyond_words, sentence

PROBLEM = Problem(100, 4, 2, Relation.REPLACE, Domain.ball(4))
PROBABILITIES = st.floats(0, 1)


def test_the_gaussian_curve() -> None:
    curve = attack.gaussian_curve(1.5, np.array([0.0, 0.05, 0.5, 1.0]))
    expected = norm.cdf(norm.ppf(1 - curve.alpha) - 1.5)
    np.testing.assert_allclose(curve.beta, expected, atol=1e-14)
    assert curve.exact


def test_the_pure_region_is_that_of_randomised_response() -> None:
    epsilon = 1.2
    corner = 1 / (1 + math.exp(epsilon))
    curve = attack.bounded_curve(Budget(epsilon), np.array([0.0, corner, 1.0]))
    np.testing.assert_allclose(curve.beta, [1.0, corner, 0.0], atol=1e-15)


@given(epsilon=st.floats(1e-3, 20), delta=st.floats(0, 0.5), alpha=PROBABILITIES)
def test_no_test_beats_guessing_by_more_than_the_guarantee(
    epsilon: float, delta: float, alpha: float
) -> None:
    (beta,) = attack.bounded_curve(Budget(epsilon, delta), np.array([alpha])).beta
    assert 0 <= beta <= 1 - alpha + 1e-12
    assert alpha * math.exp(epsilon) + beta >= 1 - delta - 1e-9
    assert math.exp(epsilon) * beta + alpha >= 1 - delta - 1e-9


def test_curves_of_mechanisms() -> None:
    gaussian = attack.curve(parse_variant("gaussian"), PROBLEM, Budget(1.0, 1e-5))
    assert gaussian.exact
    # the exact curve lies above the region of its own (epsilon, delta)
    region = attack.bounded_curve(Budget(1.0, 1e-5))
    assert (gaussian.beta >= region.beta - 1e-12).all()
    pure = attack.curve(parse_variant("wishart_difference"), PROBLEM, Budget(1.0))
    assert not pure.exact
    np.testing.assert_allclose(pure.beta, attack.bounded_curve(Budget(1.0)).beta, atol=1e-12)
    broken = attack.curve(parse_variant("wishart"), PROBLEM, Budget(1.0))
    assert not broken.beta.any()
    blind = attack.curve(parse_variant("random_projection"), PROBLEM, Budget(1.0))
    np.testing.assert_allclose(blind.beta, 1 - blind.alpha)


def test_a_bounded_sensitivity_gives_a_bound_on_the_attacker() -> None:
    """Rotated directions on a box: the curve is Gaussian and said to be a bound."""
    problem = replace(PROBLEM, domain=Domain.box(PROBLEM.d))
    problem = replace(problem, allocation=parse_allocation("uniform", "private:0.2"))
    seen = attack.curve(parse_variant("directional_gaussian"), problem, Budget(1.0, 1e-5))
    assert not seen.exact
    assert "at most" in seen.source
    claimed = attack.gaussian_curve(mu_of(Budget(1.0, 1e-5)))
    np.testing.assert_allclose(seen.beta, claimed.beta, atol=1e-9)


def test_what_exceeds_epsilon_is_not_said_to_be_delta() -> None:
    budget = Budget(1.0, 1e-5)
    one = parse_variant("gaussian").spent(PROBLEM, budget)
    assert one is not None
    assert "probability 0.00016, 16 times delta" in beyond_words(one)
    text = sentence(budget, one)
    assert "0.00016" in text
    assert "of the order of" not in text
    bounded = Spent(1.0, 1e-5, False, "said so")
    assert "+ t comes up with probability at most 1e-5/(1 - e^-t)" in beyond_words(bounded)
    assert "1.6e-5 for t = 1" in beyond_words(bounded)


def test_the_posterior_bound() -> None:
    assert attack.posterior_bound(0.5, 1.0) == pytest.approx(math.e / (1 + math.e))
    assert attack.posterior_bound(0.0, 5.0) == 0
    assert attack.posterior_bound(1.0, 5.0) == 1
    assert attack.posterior_bound(0.3, 0.0) == pytest.approx(0.3)
    assert attack.posterior_bound(1e-6, 1e6) == pytest.approx(1.0)


@given(prior=PROBABILITIES, epsilon=st.floats(1e-3, 10))
def test_pure_privacy_caps_the_posterior_at_every_level(prior: float, epsilon: float) -> None:
    curve = attack.bounded_curve(Budget(epsilon))
    after = attack.posterior_curve(prior, curve)
    assert (after <= attack.posterior_bound(prior, epsilon) + 1e-9).all()


def test_a_gaussian_alarm_can_convince_where_pure_privacy_cannot() -> None:
    curve = attack.gaussian_curve(1.0, np.array([1e-6, 0.1, 1.0]))
    after = attack.posterior_curve(0.5, curve)
    assert after[0] > after[1] > after[2] == 0.5
    power = 1 - norm.cdf(norm.ppf(0.9) - 1.0)
    assert after[1] == pytest.approx(power / (power + 0.1))
    assert attack.posterior(0.2, 0.0, 1.0) == 0.2


def test_how_often_the_bound_of_a_delta_can_be_exceeded() -> None:
    assert attack.excess_probability(1.0, 0.0, 0.5) == 0
    assert attack.excess_probability(1.0, 1e-5, math.log(2)) == pytest.approx(2e-5)
    assert attack.excess_probability(1.0, 0.5, 0.1) == 1
    with pytest.raises(InvalidSetting):
        attack.excess_probability(1.0, 1e-5, 0.0)
    # the Gaussian pair: P(loss > epsilon + x) with loss ~ N(mu^2/2, mu^2) stays below it
    mu, epsilon = 1.0, 1.0
    delta = norm.cdf(mu / 2 - epsilon / mu) - math.e * norm.cdf(-mu / 2 - epsilon / mu)
    for beyond in (0.1, 0.5, 1.0):
        seen = norm.sf((epsilon + beyond - mu**2 / 2) / mu)
        assert seen <= attack.excess_probability(epsilon, delta, beyond)


@pytest.mark.parametrize("simultaneous", [True, False])
def test_the_empirical_band_holds_the_truth(simultaneous: bool) -> None:
    """Scores N(1, 1) and N(0, 1): the truth is the Gaussian curve with mu = 1.

    At confidence 1 - 1e-9 the simultaneous band fails with probability 1e-9, and the pointwise one,
    looked at in 9 levels, with 9e-9.
    """
    rng = generator(0, "test")
    inside, outside = rng.standard_normal(5_000) + 1, rng.standard_normal(4_000)
    levels = np.linspace(0.1, 0.9, 9)
    found = attack.empirical_curve(
        inside, outside, levels, confidence=1 - 1e-9, simultaneous=simultaneous
    )
    truth = attack.gaussian_curve(1.0, levels).beta
    assert (found.low <= truth).all()
    assert (truth <= found.high).all()
    assert (found.low <= found.beta).all()
    assert (found.beta <= found.high).all()
    assert (found.high - found.low).max() < 0.4
    # the negative control: twice the signal is outside the band somewhere
    assert (attack.gaussian_curve(2.0, levels).beta < found.low).any()


def test_an_empirical_curve_at_the_ends() -> None:
    found = attack.empirical_curve(np.full(1_000, 1.0), np.zeros(1_000), np.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(found.beta, 0)
    assert found.high[0] == 1  # no threshold is sure to sound no alarm
    assert found.high[1] < 0.1
    nothing = attack.empirical_curve(np.zeros(1_000), np.zeros(1_000), np.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(nothing.beta, [1, 1, 0])
    with pytest.raises(InvalidSetting):
        attack.empirical_curve(np.zeros(0), np.zeros(3))
    with pytest.raises(InvalidSetting):
        attack.empirical_curve(np.zeros(3), np.zeros(3), confidence=1.0)


def test_sentences() -> None:
    pure = claims_words.sentence(Budget(1.0), Spent(1.0, 0.0, True, ""))
    assert "becomes at most 73.2\u00a0%" in pure  # 73.106, and a limit is not rounded down
    assert "50\u00a0%" in pure
    approximate = claims_words.sentence(Budget(1.0, 1e-5), Spent(1.0, 1e-5, True, ""), prior=0.01)
    assert "becomes at most 2.7\u00a0%" in approximate
    assert "1e-5" in approximate
    assert "certain" in claims_words.sentence(Budget(1.0), None)
    assert "nothing" in claims_words.sentence(None, Spent(0.0, 0.0, True, ""))
    huge = claims_words.sentence(Budget(50.0), Spent(50.0, 0.0, True, ""))
    assert "more than 99.9\u00a0%" in huge
    with pytest.raises(InvalidSetting):
        claims_words.sentence(None, None, prior=1.5)


def test_a_claim_in_the_table() -> None:
    row = claims.claim_of(parse_variant("wishart"), Relation.ZERO_OUT, trials=300)
    assert (row.status, row.verdict, row.evidence) == ("refuted", "refuted", "exact")
    assert row.claimed_epsilon == 1
    assert "audit wishart" in row.command
    assert "--relation zero-out" in row.command
    # stated for epsilon below 1 only, so it is audited there
    late = claims.claim_of(parse_variant("wishart_approx"), Relation.ZERO_OUT, trials=300)
    assert late.claimed_epsilon == 0.5
    none = claims.claim_of(parse_variant("non_private"), Relation.REPLACE, trials=300)
    assert none.claimed_epsilon is None
    assert none.status == "baseline"
    with pytest.raises(InvalidSetting):
        claims.claims_table(trials=10)


@pytest.fixture
def short_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two mechanisms instead of all: the whole table takes a minute."""
    few = {key: type(parse_variant(key)) for key in ("non_private", "wishart")}
    monkeypatch.setattr(claims, "all_mechanisms", lambda: few)


@pytest.mark.slow
@pytest.mark.usefixtures("short_table")
def test_the_claims_table_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    table = claims.claims_table(trials=200, progress=lambda *step: told.append(step))
    assert tuple(table.columns) == claims.COLUMNS
    assert list(zip(table["mechanism"], table["relation"], strict=True)) == [
        ("non_private", "replace"),
        ("non_private", "zero-out"),
        ("wishart", "replace"),
        ("wishart", "zero-out"),
    ]
    assert [step[:2] for step in told] == [(0, 4), (1, 4), (2, 4), (3, 4)]
    # the command computes the rows anew once, for all three formats
    monkeypatch.setattr(claims, "claim_of", cache(claims.claim_of))
    out = tmp_path / "claims.csv"
    words = ["claims", "--trials", "200", "--format"]
    assert main([*words, "csv", "--out", str(out)]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(out), table, check_dtype=False)
    assert capsys.readouterr().out == ""
    assert main([*words, "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["claimed_epsilon"] is None
    assert rows[3]["verdict"] == "refuted"
    assert main([*words, "table"]) == 0
    assert "wishart" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "flag"),
    [(["--trials", "5"], "--trials"), (["--seed", "-1"], "--seed"), (["--out", "/no/x"], "--out")],
)
def test_bad_options_of_claims(
    words: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["claims", *words]) == 2
    assert flag in capsys.readouterr().err
