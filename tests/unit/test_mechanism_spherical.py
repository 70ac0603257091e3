"""Spherical PCA: long rows count once, and the sensitivity is for unit rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._clipped import unit_moment
from dpviz.mechanisms.gaussian import Gaussian
from dpviz.mechanisms.ppca import Ppca
from dpviz.mechanisms.spherical import Spherical
from dpviz.mechanisms.spherical_wishart_difference import SphericalWishartDifference
from dpviz.mechanisms.wishart_difference import WishartDifference

BOTH = (Spherical(), SphericalWishartDifference())


def moment(rows: np.ndarray) -> SecondMoment:
    A = rows.T @ rows / len(rows)
    return SecondMoment((A + A.T) / 2, len(rows), rows)


@pytest.mark.parametrize("relation", Relation)
def test_the_scale_is_that_of_unit_rows_on_every_domain(relation: Relation) -> None:
    budget = Budget(0.7, 1e-6)
    ball = Problem(90, 6, 2, relation, Domain.ball(6))
    box = Problem(90, 6, 2, relation, Domain.box(6))
    for mechanism, plain in zip(BOTH, (Gaussian(), WishartDifference()), strict=True):
        scale = mechanism.calibrate(ball, budget).scale
        assert scale == plain.calibrate(ball, budget).scale
        assert scale == mechanism.calibrate(box, budget).scale
        # Control: without rescaling, rows of the box have a length of up to sqrt(6).
        assert plain.calibrate(box, budget).scale == pytest.approx(6 * scale)


def test_no_pair_of_rows_moves_the_moment_further_than_stated() -> None:
    """No replaced row exceeds the bound; orthogonal rows attain it."""
    rng = generator(0, "sphere")
    base = rng.standard_normal((10, 3))
    largest = 0.0
    for _ in range(2_000):
        pair = []
        for row in rng.standard_normal((2, 3)) * 10.0 ** rng.uniform(-8, 8, (2, 1)):
            pair.append(unit_moment(np.vstack([base, row])))
        largest = max(largest, float(np.linalg.norm(pair[0] - pair[1])))
    assert 0.999 * math.sqrt(2) / 11 < largest <= math.sqrt(2) / 11
    both = [unit_moment(np.vstack([base, row])) for row in (1e5 * np.eye(3)[0], np.eye(3)[1])]
    assert np.linalg.norm(both[0] - both[1]) == pytest.approx(math.sqrt(2) / 11, rel=1e-12)


def test_lengths_do_not_matter_and_a_zero_row_adds_nothing() -> None:
    rng = generator(1, "sphere")
    rows = rng.standard_normal((40, 4))
    long = rows * 10.0 ** rng.uniform(-150, 150, (40, 1))
    np.testing.assert_allclose(unit_moment(rows), unit_moment(long), rtol=1e-12, atol=1e-15)
    assert np.trace(unit_moment(rows)) == pytest.approx(1.0, rel=1e-12)
    assert np.trace(unit_moment(rows)) <= 1
    rows[:10] = 0
    assert np.trace(unit_moment(rows)) == pytest.approx(0.75, rel=1e-12)


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda m: m.key)
def test_an_outlier_does_not_take_the_component(mechanism: Spherical) -> None:
    """A row a hundred times too long dominates A; on the sphere it is one row of two thousand."""
    rng = generator(2, "sphere")
    rows = rng.standard_normal((2_000, 3)) * [1.0, 0.2, 0.2]
    rows[0] = [0.0, 0.0, 100.0]
    rows /= 100.0
    problem = Problem(2_000, 3, 1, Relation.REPLACE, Domain.ball(3))
    data = moment(rows)
    budget = Budget(2.0, 1e-6 if mechanism.info.guarantee == "approximate" else 0.0)
    release = mechanism.release_many(
        data, mechanism.calibrate(problem, budget), Draws.trials(0, "s", range(20))
    )
    assert np.abs(release.components[:, 0, 0]).min() > 0.95
    assert abs(data.eigenvectors[2, 0]) > 0.99  # Control: exact PCA finds only the outlier.


@pytest.mark.parametrize("relation", Relation)
def test_ppca_of_unit_rows_is_ppca_of_their_directions(relation: Relation) -> None:
    """The output equals plain PPCA's on rows scaled to length one, for any lengths."""
    rng = generator(3, "sphere")
    rows = rng.standard_normal((80, 4))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    long = rows * 10.0 ** rng.uniform(-3, 3, (80, 1))
    ball = Problem(80, 4, 1, relation, Domain.ball(4))
    free = replace(ball, domain=Domain.unbounded(4))
    budget, plain, by_rows = Budget(0.5), Ppca(), Ppca(rows="unit")
    assert by_rows.calibrate(free, budget) == replace(plain.calibrate(ball, budget), problem=free)
    of_units = plain.release_many(
        moment(unit), plain.calibrate(ball, budget), Draws.trials(0, "p", range(5))
    )
    of_rows = by_rows.release_many(
        moment(long), by_rows.calibrate(free, budget), Draws.trials(0, "p", range(5))
    )
    np.testing.assert_allclose(of_rows.components, of_units.components, atol=1e-9)
    # Control: plain PPCA treats rows of other lengths as a different table.
    scaled_moment = moment(long / np.linalg.norm(long, axis=1).max())
    other = plain.release_many(
        scaled_moment, plain.calibrate(ball, budget), Draws.trials(0, "p", range(5))
    )
    assert np.abs(other.components - of_units.components).max() > 1e-3
    assert by_rows.why_not(free, budget, rows=False) is not None
    assert plain.why_not(ball, budget, rows=False) is None
