"""Screened: noisy sizes choose features, and pure noise protects the rows of these features."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.core.moments import SecondMoment
from dpviz.core.parts import LaplacePart, PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._clipped import unit_rows
from dpviz.mechanisms.screened_wishart_difference import ScreenedWishartDifference
from dpviz.mechanisms.spherical_wishart_difference import SphericalWishartDifference


def problem_of(n: int, d: int, relation: Relation = Relation.REPLACE) -> Problem:
    return Problem(n, d, 2, relation, Domain.ball(d))


@pytest.mark.parametrize("relation", Relation)
def test_the_two_steps_share_epsilon(relation: Relation) -> None:
    calibration = ScreenedWishartDifference(share=0.3).calibrate(
        problem_of(200, 9, relation), Budget(0.5)
    )
    first, second = calibration.parts
    assert isinstance(first, LaplacePart)
    assert isinstance(second, PurePart)
    assert first.epsilon == pytest.approx(0.15)
    assert second.epsilon == pytest.approx(0.35)
    assert first.epsilon + second.epsilon <= 0.5
    reach = {Relation.REPLACE: 2, Relation.ZERO_OUT: 1}[relation] / 200
    assert first.sensitivity == pytest.approx(reach)
    assert calibration.scale == pytest.approx(reach / 0.35)


@pytest.mark.parametrize("relation", Relation)
def test_no_neighbours_move_sizes_or_the_look_by_more(relation: Relation) -> None:
    """Sizes (l1) and the moment of reduced rows (nuclear norm) keep their bounds in any case."""
    rng = generator(1, "screen")
    d = 5
    rows = rng.standard_normal((200, d)) * 10.0 ** rng.uniform(-150, 100, (200, 1))
    unit = unit_rows(np.concatenate([rows, np.zeros((1, d)), np.eye(d), np.ones((1, d))]))
    reach = {Relation.REPLACE: 2.0, Relation.ZERO_OUT: 1.0}[relation]
    sizes = np.square(unit)
    others = sizes if relation is Relation.REPLACE else np.zeros_like(sizes[:1])
    worst = max(float(np.abs(sizes - one).sum(axis=1).max()) for one in others)
    assert 0.99 * reach < worst <= reach * (1 + 1e-12)
    for places in ([0, 1], [1, 3, 4], [2, 0, 1, 4, 3]):
        look = unit_rows(unit[:, places])
        parts = look[:, :, None] * look[:, None, :]
        others = parts if relation is Relation.REPLACE else np.zeros_like(parts[:1])
        worst = max(
            float(np.abs(np.linalg.eigvalsh(parts - one)).sum(axis=1).max()) for one in others
        )
        assert 0.99 * reach < worst <= reach * (1 + 1e-12)
    # Control: a long row that is not rescaled to length one moves the matrix of the kept features
    # by more than the bound.
    assert np.linalg.norm(np.outer([3.0, 0], [3.0, 0]), "nuc") > reach


def test_what_is_kept_follows_sizes_and_noise() -> None:
    def kept(sizes: np.ndarray, noisy: np.ndarray, k: int, scale: float) -> list[int]:
        order, counts = ScreenedWishartDifference().kept(sizes[None], noisy[None], k, scale)
        places: list[int] = order[0, : counts[0]].tolist()
        return places

    sizes = np.array([0.05, 0.5, 0.05, 0.35, 0.05])
    assert sorted(kept(sizes, sizes, 1, 0.2)) == [1, 3]
    assert len(kept(sizes, sizes, 1, 1e-9)) == 5
    assert len(kept(sizes, sizes, 3, 0.2)) == 4  # Here more than k features are kept.
    equal = np.full(5, 0.2)
    noisy = np.array([0.1, 0.3, 0.2, 0.5, 0.4])
    assert kept(equal, noisy, 1, 1.0)[:2] == [3, 4]


def test_features_left_out_have_no_part_in_the_components() -> None:
    rng = generator(2, "screen")
    n, d = 500, 30
    rows = rng.standard_normal((n, d)) * np.where(np.arange(d) < 3, 1.0, 0.02)
    rows /= np.linalg.norm(rows, axis=1).max()
    data, problem = SecondMoment(rows.T @ rows / n, n, rows), problem_of(n, d)
    budget = Budget(0.3)
    recoveries = []
    for mechanism in (SphericalWishartDifference(), ScreenedWishartDifference()):
        release = mechanism.release_many(
            data, mechanism.calibrate(problem, budget), Draws.trials(3, "gain", range(40))
        )
        V = release.components
        recoveries.append(np.einsum("sik,ij,sjk->s", V, data.A, V) / data.eigenvalues[:2].sum())
        if isinstance(mechanism, ScreenedWishartDifference):
            assert ((V == 0).all(axis=2).sum(axis=1) >= d // 2).all()
    gain = recoveries[1] - recoveries[0]
    assert gain.mean() > 6 * gain.std() / math.sqrt(len(gain))
