"""Weighing features is post-processing: same release, same loss, other components."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import all_mechanisms
from dpviz.mechanisms._weighing import FEATURES, Weighing, feature_sizes

CLASSES = [cls for cls in all_mechanisms().values() if issubclass(cls, Weighing)]
BUDGET = Budget(1.0, 1e-6)


def table(n: int = 300, d: int = 8, large: int = 2) -> SecondMoment:
    """Return rows whose first features carry almost all variance."""
    spread = np.where(np.arange(d) < large, 1.0, 0.05)
    rows = generator(1, "weigh").standard_normal((n, d)) * spread
    rows /= np.linalg.norm(rows, axis=1).max()
    return SecondMoment(rows.T @ rows / n, n, rows)


def test_what_knows_its_noise_along_directions_can_weigh() -> None:
    assert len(CLASSES) >= 6
    for cls in CLASSES:
        problem = Problem(100, 4, 1, Relation.REPLACE, Domain.ball(4))
        mechanism = cls()
        assert mechanism.weighing_std(mechanism.calibrate(problem, BUDGET)) > 0
        assert not mechanism.weighs


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.key)
def test_the_account_and_what_is_released_do_not_change(
    cls: type[Weighing], relation: Relation
) -> None:
    data = table()
    problem = Problem(data.n, data.d, 2, relation, Domain.ball(data.d))
    plain, by_weight = cls(), cls(weigh=FEATURES)
    first, second = plain.calibrate(problem, BUDGET), by_weight.calibrate(problem, BUDGET)
    assert first == second
    assert plain.spent(problem, BUDGET) == by_weight.spent(problem, BUDGET)
    draws = Draws.trials(2, "weigh", range(5))
    one, other = (
        m.release_many(data, first, draws_of)
        for m, draws_of in ((plain, draws), (by_weight, Draws.trials(2, "weigh", range(5))))
    )
    assert one.raw.tobytes() == other.raw.tobytes()
    assert not np.allclose(one.components, other.components)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.key)
def test_it_pays_where_two_features_carry_everything(cls: type[Weighing]) -> None:
    """Over 60 releases, the gain exceeds six standard errors of the difference."""
    data = table(n=120)
    problem = Problem(data.n, data.d, 2, Relation.REPLACE, Domain.ball(data.d))
    shares = []
    for mechanism in (cls(), cls(weigh=FEATURES)):
        release = mechanism.release_many(
            data, mechanism.calibrate(problem, BUDGET), Draws.trials(3, "pays", range(60))
        )
        V = release.components
        shares.append(np.einsum("sik,ij,sjk->s", V, data.A, V) / data.eigenvalues[:2].sum())
    gain = shares[1] - shares[0]
    assert gain.mean() > 6 * gain.std() / np.sqrt(len(gain))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.key)
def test_it_vanishes_with_the_noise(cls: type[Weighing]) -> None:
    """With very many people weighing changes nothing; mechanisms that count rows need real rows."""
    clips = cls.key.startswith("clipped")
    data = table(n=200_000 if clips else 500)
    problem = Problem(data.n, data.d, 2, Relation.REPLACE, Domain.ball(data.d))
    if not clips:
        problem = replace(problem, n=10**9)
    frames = [
        mechanism.release_many(
            data,
            mechanism.calibrate(problem, Budget(100.0, 1e-6)),
            Draws.trials(4, "small", range(3)),
        ).components
        for mechanism in (cls(), cls(weigh=FEATURES))
    ]
    np.testing.assert_allclose(frames[0], frames[1], atol=1e-4 if clips else 1e-6)


def sizes_of(noisy: np.ndarray, std: float) -> np.ndarray:
    return feature_sizes(noisy[None], std, np.ones(1))[0]


def test_sizes_are_kept_where_noise_is_small_and_shrunk_to_the_mean_where_all_are_alike() -> None:
    true = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.02])
    np.testing.assert_allclose(sizes_of(true, 1e-3), true, atol=6e-3)
    alike = 1 / 6 + 0.001 * np.array([1, -1, 1, -1, 1, -1])
    np.testing.assert_allclose(sizes_of(alike, 0.05), 1 / 6, atol=4e-3)
    noisy = np.array([0.6, -0.2, 0.5, -0.1, 0.15, 0.05])
    sizes = sizes_of(noisy, 0.2)
    assert (sizes > 0).all()
    assert list(np.argsort(sizes)) == list(np.argsort(noisy))
