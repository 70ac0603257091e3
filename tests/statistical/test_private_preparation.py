"""The whole chain from raw rows: the audit refutes planted faults, but no sound chain.

Every bound holds with confidence 0.999 over its pairs and orders. The chance that any of the 12
sound chains is refuted by accident is at most 1.2 %. Seeds are fixed.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from dpviz.accounting import accounting
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import squares_along
from dpviz.core.parts import GaussianPart, LaplacePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws
from dpviz.mechanisms import parse_variant
from dpviz.preparation.account import prepared_mechanism
from dpviz.preparation.draws import (
    PreparedDraws,
    noise_edge,
    noisy_variances,
    radius_to_cut,
    run,
)
from dpviz.preparation.steps import BOUND, COUNT, MEAN, SCALE, PrivateSteps, preparation
from dpviz.preparation.transform import Transform
from tests.chain_attack import ChainAudit, Prepare, audit_chain

N, D = 3, 2
LOW, HIGH = np.array([-1.0, 0.0]), np.array([1.0, 4.0])
PUBLIC = Transform(
    LOW, HIGH, (LOW + HIGH) / 2, np.ones(D), 1.5, False, noise_edge(D, Relation.REPLACE, 1.0)
)
BUDGET = Budget(1.0, 1e-2)


def _audit(
    key: str,
    steps: tuple[str, ...],
    relation: Relation = Relation.REPLACE,
    *,
    bound: str = "quantile",
    epsilon: float = 1.0,
    delta: float = 1e-2,
    prepare: Prepare | None = None,
    trials: int = 2_500,
    n: int = N,
) -> ChainAudit:
    problem = Problem(n, D, 1, relation, Domain.ball(D))
    whole = prepared_mechanism(
        parse_variant(key), problem, Budget(epsilon, delta), PrivateSteps(steps, bound=bound)
    )
    loss = whole.spent
    assert loss is not None
    assert loss.epsilon <= epsilon
    return audit_chain(whole, PUBLIC, trials=trials, prepare=prepare)


@pytest.mark.parametrize(
    ("key", "steps", "relation", "bound", "delta"),
    [
        ("gaussian", (MEAN, SCALE, BOUND), Relation.REPLACE, "quantile", 1e-2),
        ("gaussian", (COUNT, MEAN, SCALE, BOUND), Relation.ZERO_OUT, "adaptive", 1e-2),
        ("wishart_exact", (MEAN,), Relation.ZERO_OUT, "quantile", 1e-2),
        ("wishart_difference", (MEAN, SCALE, BOUND), Relation.REPLACE, "quantile", 0.0),
        ("wishart_difference", (COUNT, MEAN), Relation.ZERO_OUT, "quantile", 0.0),
        # ppca is in the long tier: its Markov chain takes a third of the time of all these audits.
        pytest.param(
            "ppca", (MEAN, BOUND), Relation.REPLACE, "adaptive", 0.0, marks=pytest.mark.long
        ),
    ],
)
def test_no_right_chain_is_refuted(
    key: str, steps: tuple[str, ...], relation: Relation, bound: str, delta: float
) -> None:
    attack = _audit(key, steps, relation, bound=bound, delta=delta)
    assert not attack.refuted, attack


def _faulty(fault: str, steps: tuple[str, ...]) -> Prepare:
    problem = Problem(N, D, 1, Relation.REPLACE, Domain.ball(D))
    plan = prepared_mechanism(
        parse_variant("gaussian"), problem, BUDGET, PrivateSteps(steps)
    ).preparation

    def prepare(rows: FloatArray, present: NDArray[np.bool_], draws: Draws) -> PreparedDraws:
        if fault == "mean from the data":
            exact = replace(PUBLIC, center=rows.mean(axis=0))
            return run(rows, exact, replace(plan, noises={}, parts=()), draws, present)
        if fault == "row bound from the data":
            longest = float(np.linalg.norm(rows - PUBLIC.center, axis=1).max())
            exact = replace(PUBLIC, row_bound=longest)
            return run(rows, exact, replace(plan, noises={}, parts=()), draws, present)
        shrunk = {step: noise / 16 for step, noise in plan.noises.items()}
        return run(rows, PUBLIC, replace(plan, noises=shrunk), draws, present)

    return prepare


@pytest.mark.parametrize(
    ("fault", "steps"),
    [
        ("mean from the data", (MEAN,)),
        ("row bound from the data", (BOUND,)),
        ("a sixteenth of the noise", (MEAN,)),
        ("a sixteenth of the noise", (SCALE,)),
    ],
)
def test_a_planted_fault_is_caught(fault: str, steps: tuple[str, ...]) -> None:
    attack = _audit("gaussian", steps, prepare=_faulty(fault, steps))
    assert attack.refuted, attack


def test_the_chain_uses_its_budget() -> None:
    """An audit must detect a fair part of epsilon 5, because a blind audit would accept everything.

    With 30 people the noisy centre stays near the middle, and the matrix reveals the person.
    """
    assert 1.0 < _audit("gaussian", (MEAN,), epsilon=5.0, n=30).epsilon_lower <= 5.0


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("pure", [False, True])
def test_bought_variances_and_their_radius_have_the_laws_of_their_account(
    relation: Relation, pure: bool
) -> None:
    """With 20,000 samples the Kolmogorov distance is below .0115 in 99 of 100 runs."""
    draws, size = Draws.batch(np.random.default_rng(5), 20_000), 20_000
    plan = preparation(
        PrivateSteps((), variance=0.1, radius=True), 50, D, relation, Budget(1.0, 1e-6), pure=pure
    )
    *_, noise = plan.parts
    moment = np.diag([0.5, 0.25])
    variances = noisy_variances(squares_along(np.eye(D)[:, :1], moment), plan, draws)
    assert isinstance(noise, LaplacePart if pure else GaussianPart)
    scale = (noise.scale if isinstance(noise, LaplacePart) else noise.std) / 50
    law = scipy.stats.laplace(scale=scale) if pure else scipy.stats.norm(scale=scale)
    for column, value in enumerate((0.5, 0.25)):
        assert scipy.stats.kstest(variances[:, column] - value, law.cdf).statistic < 0.0115
        # Control: the test detects a deviation that is a tenth larger.
        assert scipy.stats.kstest(1.1 * (variances[:, column] - value), law.cdf).statistic > 0.0115
    # In neighbours, one of 50 rows is longer or not. Odds of any radius differ by the stated loss.
    lengths = np.ones(50)
    lengths[-1] = 2.0
    longer = [radius_to_cut(np.sort(rows), plan, draws) for rows in (lengths, np.ones(50))]
    budget = Budget(0.1, 1e-6)
    loss = accounting.composition_of(plan.parts[:-1])
    grid = np.unique(np.concatenate(longer))
    for epsilon in (0.0, budget.epsilon):
        odds = [np.array([(each == radius).mean() for radius in grid]) for each in longer]
        excess = np.maximum(odds[0] - math.exp(epsilon) * odds[1], 0).sum()
        # Each of at most 256 odds has an error of sqrt(p/20,000). Together the error is at most
        # sqrt(2 x 256/20,000) = .16, but only .02 over the few radii that are ever found.
        assert excess <= loss.delta(epsilon) + 0.02 * math.sqrt(len(grid))
    assert size == len(longer[0])
