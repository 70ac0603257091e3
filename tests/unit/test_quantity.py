"""A number is a measurement, a bound or a prediction, and every entry point states which."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpviz
from dpviz.auditing.attack import attack_table, attacker_curve, both_worlds
from dpviz.cli import main
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.quantity import Kind, Quantity
from dpviz.core.seeding import generator
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms.smooth_gap import SmoothGap
from dpviz.report.sentences.claims import posterior_caption


@given(st.floats(1e-6, 1e6), st.integers(1, 5))
def test_what_is_read_of_a_bound_is_a_bound(value: float, digits: int) -> None:
    words = {kind: Quantity(value, kind).words(digits) for kind in Kind}
    above, below = (
        float(words[kind].removeprefix(kind.prefix).replace(",", ""))
        for kind in (Kind.UPPER_BOUND, Kind.LOWER_BOUND)
    )
    assert below <= value * (1 + 1e-8)
    assert value * (1 - 1e-8) <= above
    assert above - below <= 1.01 * 10.0 ** (math.floor(math.log10(value)) - digits + 1) + 1e-12
    assert words[Kind.UPPER_BOUND].startswith("at most ")
    assert words[Kind.PREDICTION] == f"about {words[Kind.MEASUREMENT]}"


def test_counts_of_a_hundred_are_rounded_outwards() -> None:
    share = math.e / (1 + math.e)  # The share is .73106, so 73 would be below the bound.
    assert Quantity(share, Kind.UPPER_BOUND).of_hundred() == "74"
    assert Quantity(share, Kind.LOWER_BOUND).of_hundred() == "73"
    assert Quantity(share, Kind.MEASUREMENT).of_hundred() == "73"
    assert Quantity(0.7, Kind.UPPER_BOUND).of_hundred() == "70"
    assert Quantity(0.0267, Kind.UPPER_BOUND).of_hundred(1) == "2.7"


@pytest.mark.parametrize("relation", Relation)
def test_the_total_variation_of_the_gap_test_is_proved_and_far_below_a_free_bound(
    relation: Relation,
) -> None:
    """The stated total variation agrees with simulated likelihood ratios of both Gaussian queries.

    The 400,000 samples of E (1 - e^-L)+ have a standard deviation of at most 1/2: six standard
    errors are .005. The control, half the noise, differs from the stated value.
    """
    problem, budget = Problem(5_000, 6, 2, relation, Domain.ball(6)), Budget(1.0, 1e-5)
    mechanism = SmoothGap()
    values = mechanism.calibrate(problem, budget).values
    account = mechanism.spent(problem, budget)
    assert account is not None
    assert account.total_variation is not None
    sides = 2 if relation is Relation.REPLACE else 1
    shifts = np.array([sides / problem.n / values["gap_std"], values["mu_of_release"]])
    noise = generator(0, "total variation", str(relation)).standard_normal((400_000, 2))

    def apart(shift: np.ndarray) -> float:
        loss = (np.square(noise) - np.square(noise - shift)).sum(1) / 2
        # Sample the other law: E_Q (e^loss - 1)+ has the same value, with no heavier tail here.
        return float(np.maximum(np.expm1(loss), 0).mean())

    distance = account.total_variation - values["gap_failing"]
    assert abs(apart(shifts) - distance) < 0.005
    assert apart(2 * shifts) > distance + 0.05
    assert both_worlds(account).of_hundred() == "56"  # 55.38 is rounded up.
    assert both_worlds(account).kind is Kind.UPPER_BOUND
    free = math.tanh(account.epsilon / 2)
    assert account.total_variation < free / 4


def test_many_releases_are_a_fact_for_whole_gaussian_queries_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for key, kinds, cell in (
        ("gaussian", {"measurement"}, r"^10 +≤11.2 +≤[\d.]+ +[\d.]+$"),
        ("wishart_difference", {"upper bound"}, r"^10 +≤10 +≤[\d.]+ +≤[\d.]+$"),
    ):
        account = json.loads(dpviz.account(key, releases="2,10").to_json())
        assert {one["kind"] for one in account["repeated"]} == kinds, key
        assert main(["account", key, "--releases", "10"]) == 0
        assert re.search(cell, capsys.readouterr().out, re.M), key


@pytest.mark.parametrize(("key", "delta"), [("laplace_tight", 0.0), ("gaussian", 1e-5)])
def test_an_alarm_is_said_as_at_most_where_its_account_is_a_bound(key: str, delta: float) -> None:
    """At epsilon 1 a 5 % alarm sounds for at most 13.6 %, and lifts a half to at most 73.2 %."""
    problem = Problem(500, 5, 2, Relation.REPLACE, Domain.ball(5))
    trade_off = attacker_curve(parse_variant(key), problem, Budget(1.0, delta))
    caption = posterior_caption(attack_table(trade_off, 0.5), 0.5, trade_off.exact)
    assert ("for at most 13.6\u00a0% of present people" in caption) is (delta == 0)
    assert ("to at most 73.2\u00a0%" in caption) is (delta == 0)
    assert ("at most" in caption) is (delta == 0)
