"""Directional Gaussian: exact accounting, the estimate, and the benefit of an allocation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpviz.accounting.gaussian import epsilon_of, noise_std
from dpviz.accounting.sensitivity import mahalanobis
from dpviz.core.allocation import Allocation, parse_allocation
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.mechanisms._directional import belief_weights
from dpviz.mechanisms.directional_gaussian import DirectionalGaussian
from dpviz.mechanisms.gaussian import Gaussian
from dpviz.preparation.load import load_prepared
from dpviz.simulation.compare import compare

BUDGET = Budget(0.8, 1e-6)
CHOSEN = Allocation("binary", chosen=(1, 2), tau=0.8)


def linear_variances(problem: Problem, budget: Budget) -> np.ndarray:
    """Return the stds s_j that a linear budget gives features in [-1, 1]: 1/s_j adds up to P.

    P = n/(sqrt(2) g) under replace and n/g under zero-out: then mu = sqrt(2) sum(1/s_j)/n <= 1/g.
    """
    factor = math.sqrt(2) if problem.relation is Relation.REPLACE else 1.0
    total = problem.n / (factor * noise_std(budget))
    variances: np.ndarray = 1 / (problem.allocation.shares(problem.d) * total)
    return variances


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("domain", [Domain.ball(5), Domain.box(5)])
def test_uniform_allocation_is_the_isotropic_gaussian(relation: Relation, domain: Domain) -> None:
    problem = Problem(300, 5, 2, relation, domain)
    mechanism = DirectionalGaussian()
    stds = mechanism.direction_stds(mechanism.calibrate(problem, BUDGET))
    isotropic = Gaussian().calibrate(problem, BUDGET).scale
    # Zero-out on the box and both relations on the ball give the same noise. Replace on the box
    # does too, because its two bounds of the Mahalanobis norm agree for equal variances.
    np.testing.assert_allclose(stds, isotropic, rtol=1e-12)


@pytest.mark.parametrize("relation", list(Relation))
def test_on_the_box_the_noise_is_at_most_that_of_the_linear_budget(relation: Relation) -> None:
    problem = Problem(300, 5, 2, relation, Domain.box(5), CHOSEN)
    mechanism = DirectionalGaussian()
    stds = mechanism.direction_stds(mechanism.calibrate(problem, BUDGET))[0]
    linear = linear_variances(problem, BUDGET)
    if relation is Relation.ZERO_OUT:
        np.testing.assert_allclose(stds, linear, rtol=1e-9)
    else:
        # The features' ranges are .4, .4 and three times .0667; the most even split leaves .0667.
        exact = math.sqrt(1 - (0.2 / 3) ** 2)
        np.testing.assert_allclose(stds, exact * linear, rtol=1e-9)


@pytest.mark.parametrize(
    ("allocation", "d", "linear_spends"),
    [("binary:1:0.95", 5, 0.685), ("binary:1:0.8", 20, 0.78), ("binary:1:0.7", 5, 0.909),
     ("uniform", 4, 1.0)],
)  # fmt: skip
def test_what_the_linear_budget_really_spent(allocation: str, d: int, linear_spends: float) -> None:
    """Theory 12.3: at epsilon 1 and delta 1e-5, exact accounting uses the whole claim."""
    budget = Budget(1.0, 1e-5)
    problem = Problem(
        300, d, 2, Relation.REPLACE, Domain.box(d), parse_allocation(allocation, "features")
    )
    linear = linear_variances(problem, budget)
    mu = mahalanobis(problem, np.eye(d), linear)
    assert epsilon_of(1e-5, mu) == pytest.approx(linear_spends, abs=0.006)
    account = DirectionalGaussian().spent(problem, budget)
    assert account is not None
    assert account.exact
    assert account.epsilon == pytest.approx(1.0, rel=1e-6)


def test_rotated_directions_on_the_box_are_only_bounded() -> None:
    problem = Problem(
        3000, 5, 2, Relation.REPLACE, Domain.box(5), parse_allocation("uniform", "private:0.2")
    )
    account = DirectionalGaussian().spent(problem, BUDGET)
    assert account is not None
    assert not account.exact
    assert "at most" in DirectionalGaussian().status(problem, BUDGET).evidence


def test_on_the_box_q_chosen_directions_gain_up_to_d_over_q() -> None:
    d, q, tau = 20, 2, 0.99
    allocation = Allocation("binary", chosen=(3, 9), tau=tau)
    problem = Problem(300, d, 2, Relation.REPLACE, Domain.box(d), allocation)
    mechanism = DirectionalGaussian()
    stds = mechanism.direction_stds(mechanism.calibrate(problem, BUDGET))[0]
    gain = Gaussian().calibrate(problem, BUDGET).scale / stds
    np.testing.assert_allclose(gain[[2, 8]], tau * d / q, rtol=1e-9)
    np.testing.assert_allclose(np.delete(gain, [2, 8]), (1 - tau) * d / (d - q), rtol=1e-9)


@pytest.mark.parametrize(
    ("relation", "most"), [(Relation.REPLACE, math.sqrt(2)), (Relation.ZERO_OUT, 1.0)]
)
def test_on_the_ball_no_allocation_gains_more_than_the_known_factor(
    relation: Relation, most: float
) -> None:
    rng = generator(0, "shares")
    for d in (2, 3, 6):
        for _ in range(40):
            theta = rng.dirichlet(np.full(d, 0.5)) + 1e-3
            allocation = Allocation("custom", theta=tuple((theta / theta.sum()).tolist()))
            problem = Problem(300, d, 1, relation, Domain.ball(d), allocation)
            mechanism = DirectionalGaussian()
            stds = mechanism.direction_stds(mechanism.calibrate(problem, BUDGET))[0]
            isotropic = Gaussian().calibrate(problem, BUDGET).scale
            assert (stds >= isotropic / most * (1 - 1e-9)).all()
            # An off-diagonal entry has std sqrt(s_i s_j/2), which is never below the isotropic std.
            smallest = np.sort(stds)[:2]
            assert smallest.prod() >= isotropic**2 * (1 - 1e-9)


def test_evidence_says_whether_directions_pay() -> None:
    for domain, words in ((Domain.ball(5), "do not help"), (Domain.box(5), "others lose")):
        problem = Problem(300, 5, 2, Relation.REPLACE, domain, CHOSEN)
        status = DirectionalGaussian().status(problem, BUDGET)
        assert status.verdict is Verdict.HOLDS
        assert words in status.evidence
    private = replace(CHOSEN, directions="private", share=0.2)
    problem = Problem(300, 5, 2, Relation.REPLACE, Domain.box(5), private)
    status = DirectionalGaussian().status(problem, BUDGET)
    assert "the directions used epsilon 0.16 and delta 2e-7" in status.evidence
    assert status.verdict is Verdict.HOLDS


def test_weights_are_one_for_equal_noise_and_tend_to_one_without_noise() -> None:
    rng = generator(0, "weights")
    matrices = rng.standard_normal((3, 4, 4))
    matrices += matrices.transpose(0, 2, 1)
    equal = np.full((1, 4), 0.25)
    assert (belief_weights(matrices, equal, np.full((1, 4), 7.0)) == 1).all()
    shares = np.array([[0.7, 0.1, 0.1, 0.1]])
    quiet = belief_weights(matrices, shares, 1e-9 / shares)
    np.testing.assert_allclose(quiet, 1, atol=1e-9)
    loud = belief_weights(matrices, shares, 1.0 / shares)
    assert (loud[:, 0, 0] == 1).all()
    assert (loud[:, 1:, 1:] < 1e-2).all()
    assert (loud == loud.transpose(0, 2, 1)).all()


def test_plain_estimate_is_the_released_matrix() -> None:
    data = SecondMoment(np.diag([0.3, 0.2, 0.1, 0.1, 0.1]), 300)
    problem = Problem(300, 5, 2, Relation.REPLACE, Domain.box(5), CHOSEN)
    for estimate in ("plain", "weighted"):
        mechanism = DirectionalGaussian(estimate=estimate)
        calibration = mechanism.calibrate(problem, BUDGET)
        release = mechanism.release_many(data, calibration, Draws.trials(0, "t", range(3)))
        assert release.matrix is not None
        assert np.array_equal(release.matrix, release.raw) == (estimate == "plain")


def test_change_of_directions_keeps_the_noise() -> None:
    """The noise on A is sampled first, so the standard noise does not depend on the directions."""
    data = SecondMoment(np.diag([0.3, 0.2, 0.1]), 300)
    spectra = []
    for directions, share in (("features", 0.0), ("true", 0.0), ("private", 0.2)):
        allocation = Allocation(directions=directions, share=share)
        problem = Problem(300, 3, 1, Relation.REPLACE, Domain.ball(3), allocation)
        mechanism = DirectionalGaussian(estimate="plain")
        calibration = mechanism.calibrate(problem, BUDGET)
        release = mechanism.release_many(data, calibration, Draws.trials(0, "t", range(3)))
        noise = release.raw - data.A
        spectra.append(np.linalg.eigvalsh(noise) * calibration.values["mu"])
    np.testing.assert_allclose(spectra[0], spectra[1], rtol=1e-9)
    np.testing.assert_allclose(spectra[0], spectra[2], rtol=1e-9)


@pytest.mark.parametrize("key", ["directional_gaussian", "directional_wishart_difference"])
def test_planted_features_are_worth_knowing_on_the_box_and_not_on_the_ball(key: str) -> None:
    """At equal epsilon, right features multiply the captured share on the box; wrong ones do not.

    The mean of 40 shares in [0, 1] has a standard error of at most 0.5/sqrt(40) = 0.08. The
    measured means are 0.14 (uniform), 0.99 (right), 0.07 (wrong), with standard errors below 0.02.
    """

    def shares(domain: str, allocation: str, *variants: str) -> list[float]:
        settings = Settings(
            table="planted",
            domain=domain,
            bounds="known" if domain == "box" else "max",
            epsilon=0.1,
            delta=1e-6,
            trials=40,
            allocation=allocation,
            mechanisms=variants or (key,),
        )
        comparison = compare(load_prepared(settings), settings)
        return [float(result.metrics["captured_share"].mean()) for result in comparison.results]

    (uniform,) = shares("box", "uniform")
    (wrong,) = shares("box", "binary:7,8:0.8")
    right, plain, isotropic = shares(
        "box", "binary:1,2:0.8", key, f"{key}[estimate=plain]", f"{key}[noise=isotropic]"
    )
    assert right > 4 * uniform
    assert wrong < uniform
    assert right > isotropic + 0.1  # Knowing only the right features gains less.
    assert plain < 0.1  # Control: an unweighted matrix is hidden by noisy directions.
    (ball_uniform,) = shares("ball", "uniform")
    (ball_right,) = shares("ball", "binary:1,2:0.8")
    assert ball_uniform > 0.95
    assert ball_right < ball_uniform
