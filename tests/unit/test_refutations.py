"""The Claims page's numbers: exact by mathematics, or simulated from a seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom

from dpviz.accounting.gaussian import delta_of
from dpviz.accounting.losses import log_normaliser
from dpviz.auditing import attack, exhibits
from dpviz.auditing.attack import posterior_bound
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import parse_variant
from dpviz.sampling.bingham import sample_bingham

PROBLEM = Problem(1797, 61, 2, Relation.REPLACE, Domain.ball(61))
BUDGET = Budget(1.0, 1e-4)


# Claims


# The cone


@pytest.mark.parametrize("d", [2, 7])
def test_the_support_is_left_as_often_as_theory_says(d: int) -> None:
    trials = 4_000
    table = exhibits.support_table(d, 0.7, 11, trials)
    assert table["epsilon"].is_monotonic_increasing
    assert 0.7 in set(table["epsilon"])
    assert table["exact"].to_numpy() == pytest.approx(
        1 - np.exp(-table["epsilon"].to_numpy() / 3), rel=1e-12
    )
    for _, row in table.iterrows():
        # Each of two tables has ten counts. With 5e-11 in each tail, a false alarm has chance 2e-9.
        low, high = binom.interval(1 - 1e-10, trials, row["exact"])
        assert low <= row["outside"] <= high
        assert row["low"] < row["share"] < row["high"]
    # Control: the test would detect twice or half the noise scale of the published repair.
    row = table[table["epsilon"] == 1.0].iloc[0]
    for wrong in (-math.expm1(-1 / 6), -math.expm1(-2 / 3)):
        low, high = binom.interval(1 - 1e-10, trials, wrong)
        assert not low <= row["outside"] <= high


def test_the_cone_is_the_semi_definite_matrices() -> None:
    table = exhibits.cone_table(1.0, 5, 400)
    assert tuple(table.columns) == exhibits.CONE_COLUMNS
    broken, repair = list(dict.fromkeys(table["mechanism"]))
    inside = table["radius"] <= table["half_trace"]
    with_row = table["table"] == exhibits.WITH
    assert inside[(table["mechanism"] == broken) & with_row].all()
    assert table["outside"].equals((table["mechanism"] == broken) & ~with_row & ~inside)
    share = table["outside"].sum() / 400
    # A share of .283 among 400 samples has std .0225; six deviations have a chance of 2e-9.
    assert abs(share + math.expm1(-1 / 3)) < 6 * 0.0225
    # The repaired noise has no forbidden cone: both tables give releases inside and outside it.
    for rows in (with_row, ~with_row):
        both = inside[(table["mechanism"] == repair) & rows]
        assert both.any()
        assert not both.all()


# The direction


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(1e-3, 1e3), seed=st.integers(0, 2**32))
def test_the_published_direction_turns_at_every_epsilon(epsilon: float, seed: int) -> None:
    table = exhibits.turning_table(epsilon, seed)
    angles = table.groupby("table")["angle"].agg(["min", "max"])
    assert angles.loc[exhibits.WITH].to_numpy() == pytest.approx(0, abs=1e-9)
    assert angles.loc[exhibits.WITHOUT].to_numpy() == pytest.approx(90, abs=1e-9)


# Delta


def test_true_deltas_are_the_known_ones() -> None:
    table = exhibits.delta_table(1e-6)
    assert set(table["mechanism"]) == {"Analyze Gauss"}
    # Test only the mechanism whose Gaussian noise is wrong, for sensitivities sqrt(2) and 1.
    for relation, sensitivity in (("replace", math.sqrt(2)), ("zero-out", 1.0)):
        part = table[table["relation"] == relation]
        mu = sensitivity * part["epsilon"] / math.sqrt(2 * math.log(1.25e6))
        deltas = [delta_of(e, m) for e, m in zip(part["epsilon"], mu, strict=True)]
        assert part["true_delta"].to_numpy() == pytest.approx(deltas, rel=1e-9)
    under_replace = table[table["relation"] == "replace"]
    by_log = np.interp(0.0, np.log(under_replace["epsilon"]), np.log(under_replace["true_delta"]))
    assert math.exp(by_log) == pytest.approx(9.3e-6, rel=0.02)  # Theory predicts this at epsilon 1.
    with pytest.raises(InvalidSetting, match="delta must be above 0"):
        exhibits.delta_table(0.0)


# Chains


def test_the_exact_mean_agrees_with_quadrature_and_with_exact_draws() -> None:
    for values in ([25.0, 15.0, 5.0], [2.5, 1.5, 0.5], [250.0, 150.0, 50.0], [1.0, 1.0, 1.0]):
        b = np.array(values)
        mean = exhibits.left_out_mean(b)
        # E z'Bz is the slope of -ln Z(-sB) in s, computed here by a central difference.
        h = 1e-4
        slope = (log_normaliser(-(1 + h) * b) - log_normaliser(-(1 - h) * b)) / (2 * h)
        assert mean == pytest.approx(-slope, rel=1e-6)
    b = np.array([25.0, 15.0, 5.0])
    vectors = sample_bingham(-b, Draws.batch(generator(1, "test", "left out"), 20_000)).vectors
    score = np.square(vectors) @ b
    z = (score.mean() - exhibits.left_out_mean(b)) / (score.std() / math.sqrt(len(score)))
    assert abs(z) < 6  # A normal z exceeds 6 with chance 2e-9.


def test_left_out_mean_by_plain_double_integration() -> None:
    b = np.array([3.0, 2.0, 0.5])

    def inner(height: float, weigh: bool) -> float:
        ring = 1 - height**2

        def value(angle: float) -> float:
            form = (
                b[0] * ring * math.cos(angle) ** 2
                + b[1] * ring * math.sin(angle) ** 2
                + b[2] * height**2
            )
            return (form if weigh else 1.0) * math.exp(-form)

        return float(quad(value, 0, math.pi)[0])

    total = quad(lambda z: inner(z, True), 0, 1)[0] / quad(lambda z: inner(z, False), 0, 1)[0]
    assert exhibits.left_out_mean(b) == pytest.approx(total, rel=1e-9)


def test_chains_reach_the_exact_mean_and_not_at_once() -> None:
    chains = 2_000
    table = exhibits.gibbs_table(1.0, 0, chains)
    last = table[table["sweep"] == 8]
    # Half-widths are 2.576 standard errors; a deviation of six standard errors has chance 2e-9.
    off = (last["mean"] - last["exact"]) / ((last["high"] - last["mean"]) / 2.5758)
    assert (off.abs() < 6).all()
    # Control: the test detects chains that are still at their start, for both starts.
    first = table[table["sweep"] == 0].set_index("start")
    assert first.loc[exhibits.FROM_MODE, "mean"] == pytest.approx(1, abs=1e-12)
    assert (first["mean"] - first["exact"]).abs().min() > 0.02
    with pytest.raises(InvalidSetting, match="chains must be at least 4"):
        exhibits.gibbs_table(1.0, 0, 3)


# The attacker


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(["gaussian", "laplace", "wishart_difference", "mod_sulq"]),
    prior=st.floats(0.01, 0.99),
)
def test_the_posterior_starts_from_the_prior_and_pure_epsilon_limits_it(
    name: str, prior: float
) -> None:
    mechanism = parse_variant(name)
    trade_off = attack.attacker_curve(mechanism, PROBLEM, BUDGET)
    table = attack.attack_table(trade_off, prior)
    assert (table["posterior"] >= prior - 1e-12).all()
    assert table["posterior"].iloc[-1] == pytest.approx(prior)
    loss = mechanism.spent(PROBLEM, BUDGET)
    limit = attack.limit_of(prior, loss)
    assert limit is not None
    assert loss is not None
    assert limit == posterior_bound(prior, loss.epsilon)
    if loss.delta == 0:
        assert table["posterior"].max() <= limit + 1e-9
    else:
        assert table["posterior"].max() > limit  # This needs rare releases that delta allows.


# Privacy loss of exploring
