"""The limiting laws of noise: closed forms agree with each other and with simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.preparation.load import load_prepared
from dpviz.sampling.limits import FreeNoise, MarchenkoPasturLaw, SemiCircle, WishartDifferenceLaw

LAWS: list[FreeNoise] = [
    SemiCircle(0.3, 20),
    SemiCircle(0.3, 20, diagonal=2.0),
    SemiCircle(0.3, 20, tails=(3.0, 30.0)),
    WishartDifferenceLaw(0.7, 20),
    MarchenkoPasturLaw(21, 0.05, 20),
    MarchenkoPasturLaw(90, 0.05, 20, offset=-4.5),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_the_threshold_and_the_edge_are_where_k_turns(law: FreeNoise) -> None:
    critical = 1 / law.visible_above
    assert law.k_slope(critical) * critical**2 == pytest.approx(0, abs=1e-12)
    assert law.k_transform(critical) == pytest.approx(law.edges[1], rel=1e-12)
    # K falls up to the critical point and rises after it, so the spectrum's edge is K's minimum.
    assert law.k_slope(0.9 * critical) < 0 < law.k_slope(1.05 * critical)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_a_lone_overlap_starts_at_the_threshold_and_ends_at_one(law: FreeNoise) -> None:
    theta = law.visible_above * np.array([0.5, 1.0, 1 + 1e-9, 1.5, 3.0, 1e6])
    overlap = law.lone_overlap(theta)
    assert overlap[:2].tolist() == [0.0, 0.0]
    assert overlap[2] == pytest.approx(0, abs=1e-6)
    assert (np.diff(overlap[2:]) > 0).all()
    assert overlap[-1] == pytest.approx(1, abs=1e-10)


def test_closed_overlaps() -> None:
    semicircle, difference = SemiCircle(0.3, 20), WishartDifferenceLaw(0.7)
    assert semicircle.lone_overlap(3.0) == pytest.approx(1 - 0.09 * 20 / 9, rel=1e-12)
    x = (0.7 / 3) ** 2
    assert difference.lone_overlap(3.0) == pytest.approx(1 - 2 * x * (1 + x) / (1 - x) ** 2)


def test_constants_of_the_wishart_difference() -> None:
    law = WishartDifferenceLaw(1.0)
    assert law.edges[1] == pytest.approx(3.3302, abs=1e-4)
    assert law.visible_above == pytest.approx(2.0582, abs=1e-4)
    assert law.matched.jumps == law.jumps  # This is the limit for infinite d.


@pytest.mark.parametrize(
    ("key", "overlaps"),
    [("wishart_difference", (0.303, 0.889, 0.975)), ("gaussian", (0.968, 0.991, 0.997))],
)
def test_a_lone_spike_of_digits(key: str, overlaps: tuple[float, ...]) -> None:
    """Overlaps equal figures computed by other code at epsilon 1, 2, 4, delta 1e-4."""
    table = load_prepared(Settings(table="digits"))
    mechanism = parse_variant(key)
    problem = table.problem(Settings(k=1))
    for epsilon, expected in zip((1.0, 2.0, 4.0), overlaps, strict=True):
        noise = mechanism.free_noise(mechanism.calibrate(problem, Budget(epsilon, 1e-4)))
        assert noise is not None
        assert noise.lone_overlap(table.moment.eigenvalues[0]) == pytest.approx(expected, abs=6e-4)


def test_laplace_tails_become_the_fourth_and_sixth_cumulant() -> None:
    """A Laplace entry of scale 1 has cumulants 2, 12 and 240; a d x d matrix, d times these."""
    law = SemiCircle(math.sqrt(2), 30, tails=(3.0, 30.0)).matched
    for order, cumulant in ((4, 12), (6, 240)):
        assert sum(rate * size**order for rate, size in law.jumps) == pytest.approx(30 * cumulant)
    assert law.spread == pytest.approx(math.sqrt(2 * 30))
    assert law.mean == 0


def _with_a_law() -> list[str]:
    problem, budget = _SMALL, _BUDGET
    keys = []
    for key, cls in all_mechanisms().items():
        mechanism = cls()
        able = mechanism.why_not(problem, budget, rows=False) is None
        if able and mechanism.free_noise(mechanism.calibrate(problem, budget)) is not None:
            keys.append(key)
    return keys


_SMALL = Problem(500, 6, 2, Relation.REPLACE, Domain.ball(6))
_BUDGET = Budget(0.7, 1e-5)


def test_the_additive_mechanisms_have_a_law() -> None:
    assert {
        "laplace", "laplace_tight", "gaussian", "analyze_gauss", "mod_sulq", "sulq", "wishart",
        "wishart_difference", "wishart_exact", "wishart_approx",
    } <= set(_with_a_law())  # fmt: skip


def _second_moment(key: str, draws: int) -> tuple[float, float]:
    """Return the mean and standard error of ||noise||_F^2/d over samples."""
    mechanism = parse_variant(key)
    data = SecondMoment(np.diag([0.3, 0.2, 0.1, 0.05, 0.02, 0.0]), _SMALL.n)
    calibration = mechanism.calibrate(_SMALL, _BUDGET)
    release = mechanism.release_many(
        data, calibration, Draws.batch(np.random.default_rng(5), draws)
    )
    assert release.matrix is not None
    squares = ((release.matrix - data.A) ** 2).sum(axis=(1, 2)) / _SMALL.d
    return float(squares.mean()), float(squares.std(ddof=1) / math.sqrt(draws))


@pytest.mark.slow
@pytest.mark.parametrize("key", _with_a_law())
def test_the_matched_law_has_the_second_moment_of_the_noise(key: str) -> None:
    """Second moments agree within six standard errors: one false alarm in 5e8 by the CLT."""
    mechanism = parse_variant(key)
    law = mechanism.free_noise(mechanism.calibrate(_SMALL, _BUDGET))
    assert law is not None
    mean, error = _second_moment(key, 4_000)
    assert abs(law.matched.spread**2 + law.matched.mean**2 - mean) < 6 * error


@pytest.mark.parametrize("key", ["gaussian", "wishart_difference"])
def test_the_limit_alone_would_fail_that_test_at_small_d(key: str) -> None:
    mechanism = parse_variant(key)
    law = mechanism.free_noise(mechanism.calibrate(_SMALL, _BUDGET))
    assert law is not None
    mean, error = _second_moment(key, 4_000)
    assert abs(law.spread**2 + law.mean**2 - mean) > 6 * error
