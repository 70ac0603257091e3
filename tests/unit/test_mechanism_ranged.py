"""Exponential mechanisms by bounded range: with a delta, several samples lose less privacy."""

from __future__ import annotations

import pytest

from dpviz.accounting.composition import epsilon_of_rho
from dpviz.core.errors import CannotRun
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.mechanisms import parse_variant

BUDGET = Budget(1.0, 1e-6)


def _problem(k: int) -> Problem:
    return Problem(1000, 40, k, Relation.REPLACE, Domain.ball(40))


@pytest.mark.parametrize(("k", "least"), [(10, 0.118), (30, 0.068)])
def test_each_draw_gets_at_least_what_the_simple_conversion_allows(k: int, least: float) -> None:
    """The optimal conversion allows more than rho + 2 sqrt(rho ln 1/delta), .118 and .068."""
    by_range = parse_variant("eigenvector_sampling[account=range]")
    each = by_range.calibrate(_problem(k), BUDGET).parts[0].epsilon
    assert least < each < 1.25 * least
    loss = by_range.spent(_problem(k), BUDGET)
    assert loss is not None
    assert loss.epsilon == pytest.approx(epsilon_of_rho(k * each**2 / 8, 1e-6), rel=1e-9)
    assert loss.epsilon <= 1.0
    assert loss.delta == 1e-6
    assert by_range.status(_problem(k), BUDGET).verdict is Verdict.HOLDS
    # Control: 10 % more concentration would exceed the privacy claim.
    assert epsilon_of_rho(k * (1.1 * each) ** 2 / 8, 1e-6) > 1.05


def test_few_draws_gain_nothing() -> None:
    for key in ("eigenvector_sampling", "kapralov_talwar"):
        pure, by_range = parse_variant(key), parse_variant(f"{key}[account=range]")
        assert (
            pure.calibrate(_problem(2), BUDGET).scale
            == by_range.calibrate(_problem(2), BUDGET).scale
        )


def test_the_variant_promises_a_delta_and_its_class_none() -> None:
    pure = parse_variant("kapralov_talwar")
    by_range = parse_variant("kapralov_talwar[account=range]")
    assert pure.info.guarantee == "pure" == type(by_range).info.guarantee
    assert by_range.info.guarantee == "approximate"
    assert by_range.claim(_problem(10), BUDGET) == BUDGET
    assert pure.claim(_problem(10), BUDGET) == Budget(1.0, 0.0)
    with pytest.raises(CannotRun, match="needs a delta above 0"):
        by_range.check(_problem(10), Budget(1.0, 0.0))


@pytest.mark.parametrize("k", [8, 12, 30])
@pytest.mark.parametrize(
    "variant",
    [
        "eigenvector_sampling[account=range]",
        "eigenvector_sampling[account=range,values_share=0.5]",
        "kapralov_talwar[account=range]",
    ],
)
def test_directions_are_sharper_than_by_adding_epsilons(variant: str, k: int) -> None:
    by_range = parse_variant(variant)
    pure = parse_variant(variant.replace("account=range,", "").replace("[account=range]", ""))
    assert by_range.calibrate(_problem(k), BUDGET).scale > pure.calibrate(_problem(k), BUDGET).scale
    loss = by_range.spent(_problem(k), BUDGET)
    assert loss is not None
    assert 0.9 < loss.epsilon <= 1.0
