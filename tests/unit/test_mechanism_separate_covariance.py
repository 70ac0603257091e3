"""SeparateCov: two exact Gaussian queries, and eigenvalues without inflation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms.gaussian import Gaussian
from dpviz.mechanisms.separate_covariance import SeparateCovariance


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_the_two_queries_meet_the_budget_by_other_code(relation: Relation, share: float) -> None:
    problem, budget = Problem(200, 7, 2, relation, Domain.ball(7)), Budget(1.0, 1e-6)
    calibration = SeparateCovariance(share=share).calibrate(problem, budget)
    reach = (math.sqrt(2) if relation is Relation.REPLACE else 1.0) / 200
    stds = (calibration.scale, calibration.values["values_std"])
    mu = reach * math.hypot(*(1 / std for std in stds))
    loss = GaussianPrivacyLoss(1 / mu, log_mass_truncation_bound=-700)
    assert loss.get_delta_for_epsilon(1.0) == pytest.approx(1e-6, rel=1e-6)
    assert loss.get_delta_for_epsilon(1.0) <= 1e-6 * (1 + 1e-9)
    # Control: 10 % less noise on one of the two queries exceeds the privacy claim.
    wrong = reach * math.hypot(1 / (0.9 * stds[0]), 1 / stds[1])
    lying = GaussianPrivacyLoss(1 / wrong, log_mass_truncation_bound=-700)
    assert lying.get_delta_for_epsilon(1.0) > 1e-6


def test_no_pair_moves_the_eigenvalues_further_than_stated() -> None:
    """A search over tables and replaced rows confirms Hoffman and Wielandt's theorem."""
    rng = generator(0, "separate")

    def spectrum(rows: np.ndarray) -> np.ndarray:
        return np.linalg.eigvalsh(rows.T @ rows)

    largest = 0.0
    for _ in range(3_000):
        rest = rng.standard_normal((4, 3)) * rng.uniform(0, 1)
        v, w = (row / np.linalg.norm(row) for row in rng.standard_normal((2, 3)))
        change = spectrum(np.vstack([rest, v])) - spectrum(np.vstack([rest, w]))
        largest = max(largest, float(np.linalg.norm(change)))
    assert largest <= math.sqrt(2)
    rest = np.diag([1.0, 0.5, 0.1])
    change = spectrum(np.vstack([rest, np.eye(3)[0]])) - spectrum(np.vstack([rest, np.eye(3)[2]]))
    assert np.linalg.norm(change) > 1.2


def test_eigenvalues_are_not_inflated() -> None:
    """Noise of edge sqrt(2d) t doubles `gaussian`'s top eigenvalue; here it is unbiased."""
    d, n = 60, 1_000
    data = SecondMoment(np.diag(np.concatenate([[0.05], np.full(d - 1, 1e-4)])), n)
    problem, budget = Problem(n, d, 1, Relation.REPLACE, Domain.ball(d)), Budget(1.0, 1e-6)
    mechanisms = (SeparateCovariance(), Gaussian())
    sums = []
    for mechanism in mechanisms:
        release = mechanism.release_many(
            data, mechanism.calibrate(problem, budget), Draws.trials(0, "c", range(200))
        )
        assert release.eigenvalues is not None
        sums.append(np.square(release.eigenvalues - data.eigenvalues).sum(axis=1).mean())
    std = mechanisms[0].calibrate(problem, budget).values["values_std"]
    # Sorting only lowers errors. Over 200 samples, their relative std is sqrt(2/(200 d)) = 1.3 %.
    assert sums[0] <= d * std**2 * (1 + 6 * 0.013)
    # Noise on the matrix is far larger: its d eigenvalues have mean square (d + 1)/2 t^2 each.
    assert sums[1] > 5 * sums[0]


def test_the_parts_say_what_is_done() -> None:
    problem, budget = Problem(50, 4, 2, Relation.REPLACE, Domain.box(4)), Budget(2.0, 1e-5)
    parts = SeparateCovariance(share=0.8).calibrate(problem, budget).parts
    assert [type(part) for part in parts] == [GaussianPart, GaussianPart]
    assert parts[0].mu ** 2 / parts[1].mu ** 2 == pytest.approx(4.0)
