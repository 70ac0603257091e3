"""Compare every mechanism's accounting with dp-accounting, if dp-accounting knows the event."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant

from dpviz.accounting.accounting import Spent
from dpviz.auditing.account import account_view
from dpviz.cli import main
from dpviz.core.parts import GaussianPart, LaplacePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.mechanisms.oja import ORDERS

BUDGET = Budget(1.0, 1e-5)


def _problem(relation: Relation = Relation.REPLACE, k: int = 2) -> Problem:
    return Problem(1000, 6, k, relation, Domain.ball(6))


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Relation))
def test_gaussian_and_laplace_accounts_are_those_of_dp_accounting(relation: Relation) -> None:
    """Mechanisms with one Gaussian or Laplace part agree with dp-accounting within 1e-3.

    The accounting depends only on the ratio of sensitivity and noise, so check one of each kind.
    """
    types, kinds = set(), set()
    for key in all_mechanisms():
        mechanism, problem = parse_variant(key), _problem(relation)
        if mechanism.why_not(problem, BUDGET) is not None:
            continue
        parts = mechanism.calibrate(problem, BUDGET).parts
        if len(parts) != 1 or not isinstance(parts[0], (GaussianPart, LaplacePart)):
            continue
        part = parts[0]
        lost = part.mu if isinstance(part, GaussianPart) else part.epsilon
        ratio = (type(part), f"{lost:.12g}")
        if ratio in kinds:
            continue
        kinds.add(ratio)
        view = account_view(mechanism, problem, BUDGET, (1, 10))
        if view.spent.epsilon < 0.05:
            continue  # Skip this: dp-accounting's grid is too coarse for such a small loss.
        if isinstance(part, GaussianPart):
            other = pld.from_gaussian_mechanism(part.std, sensitivity=part.sensitivity)
        else:
            other = pld.from_laplace_mechanism(part.scale, sensitivity=part.sensitivity)
        for epsilon, delta in zip(view.epsilons, view.deltas, strict=True):
            # dp-accounting rounds losses to a grid of step 1e-4; rounding up costs half a step.
            assert delta == pytest.approx(
                other.get_delta_for_epsilon(float(epsilon)), rel=1e-3, abs=5e-5
            )
        ten = view.repeated[1]
        assert ten.exact == pytest.approx(
            other.self_compose(10).get_epsilon_for_delta(BUDGET.delta), rel=1e-3
        )
        types.add(type(part))
    assert types == {GaussianPart, LaplacePart}


def test_an_exponential_mechanism_is_known_to_zcdp_only() -> None:
    view = account_view(parse_variant("ppca"), _problem(k=1), BUDGET, (1, 50))
    assert view.rho == pytest.approx(1 / 8)
    fifty = view.repeated[1]
    assert fifty.exact == fifty.zcdp < 0.6 * fifty.basic


def test_private_sgd_costs_more_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Steps and repetitions compose as in dp-accounting's orders, and each adds privacy loss."""
    words = ["account", "oja[sampling=poisson]", "--relation", "zero-out", "--delta", "1e-6"]
    assert main([*words, "--releases", "1,10,100", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    problem = Problem(1000, 10, 2, Relation.ZERO_OUT, Domain.ball(10))
    mechanism = parse_variant("oja[sampling=poisson]")
    values = mechanism.calibrate(problem, Budget(1.0, 1e-6)).values
    steps = int(values["steps"])
    for item in answer["repeated"]:
        accountant = RdpAccountant(orders=ORDERS)
        event = dp_event.GaussianDpEvent(values["multiplier"])
        accountant.compose(
            dp_event.PoissonSampledDpEvent(1 / steps, event), steps * item["releases"]
        )
        assert item["exact"] == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-6)
    one, ten, hundred = (item["exact"] for item in answer["repeated"])
    assert answer["spent"]["epsilon"] == pytest.approx(one, rel=1e-9)
    assert 1 - 1e-6 < one < ten / 2 < hundred / 6
    orders = {item["order"]: item["epsilon"] for item in answer["rdp"]}
    assert orders[2.0] > 0
    assert orders[1.25] == orders[2.0]  # Renyi order 1.25 uses the bound of order 2.
    # The trade-off curve lies clearly below the curve of perfect privacy.
    middle = answer["trade_off"][20]
    assert middle["beta"] < 0.95 * (1 - middle["alpha"])


class Silent(type(parse_variant("gaussian"))):  # type: ignore[misc]
    """A mechanism that states its privacy loss but not its parts."""

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        return replace(super().calibrate(problem, budget), parts=())

    def spent(self, problem: Problem, budget: Budget) -> Spent:
        return Spent(budget.epsilon, budget.delta, False, "its word")


def test_a_cost_without_parts_is_no_free_repetition() -> None:
    with pytest.raises(TypeError, match=r"epsilon 1, but gives no account of it: define `parts`"):
        account_view(Silent(), _problem(), BUDGET, (1, 2))
    # A mechanism without privacy loss needs no terms in its privacy accounting.
    free = account_view(parse_variant("random_projection"), _problem(), BUDGET, (1, 2))
    assert [item.exact for item in free.repeated] == [0.0, 0.0]
