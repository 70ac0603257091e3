"""MVG on the rows: the published precision budget, and unbiasedness of the estimate."""

from __future__ import annotations

import math

import numpy as np

from dpviz.accounting.sensitivity import rows_mahalanobis
from dpviz.core.allocation import Allocation
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.mechanisms._mvg import precision_of_theorem
from dpviz.mechanisms.mvg_data import MvgData

BUDGET = Budget(2.0, 1e-4)


def test_algorithm_one_by_hand() -> None:
    """On the box, replace: gamma = sqrt(m n), s2 = 2 sqrt(m), P = B^2/n, variance 1/sqrt(p)."""
    allocation = Allocation("binary", chosen=(1,), tau=0.5)
    problem = Problem(50, 3, 1, Relation.REPLACE, Domain.box(3), allocation)
    mechanism = MvgData()
    calibration = mechanism.calibrate(problem, BUDGET)
    B = precision_of_theorem(
        3, 50, BUDGET, largest=math.sqrt(150), sensitivity=2 * math.sqrt(3), theorem="2",
        tail="published",
    )  # fmt: skip
    variances, shares = mechanism.shape(calibration, None)
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(variances, 1 / np.sqrt(shares * B**2 / 50))
    # This is the condition that the theorem states: ||sigma(S^-1)||_2 ||sigma(I_n)||_2 = B.
    np.testing.assert_allclose(np.linalg.norm(1 / variances) * math.sqrt(50), B)


def test_account_is_the_distance_of_two_rows() -> None:
    problem = Problem(50, 3, 1, Relation.ZERO_OUT, Domain.ball(3))
    mechanism = MvgData(tail="tight")
    calibration = mechanism.calibrate(problem, BUDGET)
    variances, _ = mechanism.shape(calibration, None)
    (part,) = calibration.parts
    assert part.sensitivity == rows_mahalanobis(problem, np.eye(3), variances)  # type: ignore[union-attr]
    assert mechanism.status(problem, BUDGET).verdict is Verdict.LOOSE


def test_private_directions_are_bounded_in_every_basis() -> None:
    """The bound for private directions holds in every basis."""
    allocation = Allocation("binary", "private", chosen=(1,), tau=0.9, share=0.2)
    problem = Problem(50, 4, 1, Relation.REPLACE, Domain.box(4), allocation)
    mechanism = MvgData()
    calibration = mechanism.calibrate(problem, BUDGET)
    variances, _ = mechanism.shape(calibration, None)
    bound = calibration.parts[-1].sensitivity  # type: ignore[union-attr]
    rng = np.random.default_rng(0)
    for _ in range(50):
        basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
        assert rows_mahalanobis(problem, basis, variances) <= bound * (1 + 1e-12)
    loss = mechanism.spent(problem, BUDGET)
    assert loss is not None
    assert not loss.exact
