"""A loss built from a profile alone composes like its true law, on the safe side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpviz.accounting.composition import composed
from dpviz.accounting.gaussian import delta_of, epsilon_of
from dpviz.accounting.profiles import GaussianSketch, ProfileLoss, RowProfile, WishartNoise
from dpviz.core.arrays import FloatArray
from dpviz.core.parts import PurePart
from dpviz.core.problem import Relation

DELTA = 1e-6


@dataclass(frozen=True)
class Normal(RowProfile):
    """Gaussian noise that stands for a law whose composition is unknown."""

    mu: float

    def with_row(self, epsilon: FloatArray) -> FloatArray:
        return np.asarray(delta_of(epsilon, np.full(len(epsilon), self.mu)))

    def without_row(self, epsilon: FloatArray) -> FloatArray:
        return self.with_row(epsilon)

    def replaced(self, epsilon: FloatArray) -> FloatArray:
        return self.with_row(epsilon)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("releases", [1, 2, 10, 100])
def test_gaussian_noise_known_by_its_profile_alone(relation: Relation, releases: int) -> None:
    loss = ProfileLoss(Normal(0.3), relation)
    epsilon = composed((), releases, (loss,)).epsilon(DELTA)
    exact = epsilon_of(DELTA, 0.3 * releases**0.5)
    assert exact * (1 - 1e-9) <= epsilon
    assert epsilon == pytest.approx(exact, rel=1e-3 if relation is Relation.ZERO_OUT else 2e-2)


def test_beside_a_pure_step_it_is_what_other_code_says() -> None:
    epsilon = composed((PurePart(0.4, "step"),), 1, (ProfileLoss(Normal(0.3), Relation.ZERO_OUT),))
    other = pld.from_gaussian_mechanism(1 / 0.3, value_discretization_interval=1e-4).compose(
        pld.from_privacy_parameters(
            pld.common.DifferentialPrivacyParameters(0.4, 0.0), value_discretization_interval=1e-4
        )
    )
    assert epsilon.epsilon(DELTA) == pytest.approx(other.get_epsilon_for_delta(DELTA), abs=1e-3)


@pytest.mark.parametrize("releases", [2, 5])
def test_sketches_of_one_row_are_a_longer_sketch(releases: int) -> None:
    """Chi-squares add, so the exact loss is known; one curve for both orders adds a little."""
    profile = GaussianSketch(40, 60.0)
    epsilon = composed((), releases, (ProfileLoss(profile, Relation.ZERO_OUT),)).epsilon(DELTA)
    exact = GaussianSketch(40 * releases, 60.0).epsilon(Relation.ZERO_OUT, DELTA)
    assert exact <= epsilon <= 1.02 * exact
    assert epsilon < releases * profile.epsilon(Relation.ZERO_OUT, DELTA / releases)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_curve_is_met_and_its_floor_stays(relation: Relation) -> None:
    """delta of Wishart noise never falls below the chance that a release reveals the whole row."""
    profile = WishartNoise(30.0, 1.0)
    one = composed((), 1, (ProfileLoss(profile, relation),))
    room = 1.02 if relation is Relation.ZERO_OUT else 1.06  # Chords between few points err more.
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        exact = profile.delta(relation, epsilon)
        assert exact <= one.delta(epsilon) <= room * exact + 2e-12
    few = WishartNoise(4.0, 1.0)  # The floor of delta is F(1) of a chi-square with 4 degrees.
    floor = few.delta(relation, 50.0)
    assert floor > 0.05
    ten = composed((), 10, (ProfileLoss(few, relation),))
    assert ten.failing == pytest.approx(1 - (1 - floor) ** 10, rel=1e-6)
    assert ten.epsilon(0.01) == np.inf
