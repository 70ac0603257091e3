"""MVG on the covariance: the published precision budget gives the known figures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.core.allocation import Allocation
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms._mvg import harmonic, precision_of_theorem, zeta
from dpviz.mechanisms.mvg import Mvg
from dpviz.preparation.load import load_prepared

DIGITS = Problem(1797, 61, 2, Relation.REPLACE, Domain.ball(61))
ONE = Budget(1.0, 1 / 1797)


@pytest.mark.parametrize(
    ("variant", "std"),
    [
        ("mvg", 918.2),
        ("mvg[theorem=3]", 917.6),
        ("mvg[theorem=3,tail=tight]", 14.41),
        ("directional_gaussian", 0.002154),
    ],
)
def test_std_of_a_diagonal_noise_entry_on_digits(variant: str, std: float) -> None:
    table = load_prepared(Settings(table="digits"))
    assert (table.n, table.d) == (DIGITS.n, DIGITS.d)
    mechanism = parse_variant(variant)
    stds = mechanism.direction_stds(mechanism.calibrate(DIGITS, ONE))  # type: ignore[attr-defined]
    np.testing.assert_allclose(stds, std, rtol=5e-4)


def test_theorem_is_the_root_of_its_quadratic() -> None:
    """alpha b^2 + beta b = 2 epsilon for b = sqrt(B), from the theorems' own terms."""
    for theorem in ("2", "3"):
        for epsilon in (1e-4, 1.0, 1e6):
            B = precision_of_theorem(
                4, 4, Budget(epsilon, 1e-5), largest=4.0, sensitivity=0.01, theorem=theorem,
                tail="published",
            )  # fmt: skip
            h, bound = harmonic(4), zeta(16, 1e-5, "published")
            if theorem == "2":
                alpha = (h + harmonic(4, 0.5)) * 16 + 2 * h * 4 * 0.01
                beta = 2 * 16**0.25 * bound * h * 0.01
            else:
                alpha, beta = 4 * h * 4 * 0.01, 2 * 2 * bound * h * 0.01
            b = math.sqrt(B)
            assert alpha * b * b + beta * b == pytest.approx(2 * epsilon, rel=1e-12)


def test_zeta_by_hand() -> None:
    # At delta = e^-1 and 4 entries, the paper's zeta is 2 sqrt(4) + 2 + 4.
    assert zeta(4, math.exp(-1), "published") == pytest.approx(10)
    assert zeta(4, math.exp(-1), "tight") == pytest.approx(math.sqrt(10))


def test_more_share_means_less_noise_by_the_papers_rule() -> None:
    allocation = Allocation("custom", theta=(0.64, 0.32, 0.04))
    problem = Problem(100, 3, 1, Relation.REPLACE, Domain.box(3), allocation)
    mechanism = Mvg()
    calibration = mechanism.calibrate(problem, Budget(1.0, 1e-3))
    stds = mechanism.direction_stds(calibration)[0]
    P = calibration.values["precision"]
    np.testing.assert_allclose(stds, 1 / np.sqrt(np.array([0.64, 0.32, 0.04]) * P))


def test_the_release_is_not_symmetric_and_the_estimate_is() -> None:
    A = np.diag([0.5, 0.2, 0.1])
    problem = Problem(100, 3, 2, Relation.REPLACE, Domain.ball(3))
    mechanism = Mvg()
    calibration = mechanism.calibrate(problem, Budget(1.0, 1e-3))
    release = mechanism.release_many(
        SecondMoment(A, 100), calibration, Draws.trials(0, "mvg", range(3))
    )
    assert release.matrix is not None
    assert np.abs(release.raw - release.raw.transpose(0, 2, 1)).max() > 1
    np.testing.assert_allclose(
        release.matrix, (release.raw + release.raw.transpose(0, 2, 1)) / 2, rtol=1e-12
    )


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("kind", ["ball", "box"])
def test_published_theorems_are_valid_but_loose(relation: Relation, kind: str) -> None:
    domain = Domain.ball(4) if kind == "ball" else Domain.box(4)
    problem = Problem(500, 4, 1, relation, domain)
    for text in ("mvg", "mvg[theorem=3]", "mvg[theorem=3,tail=tight]"):
        status = parse_variant(text).status(problem, Budget(1.0, 1e-3))
        assert status.verdict is Verdict.LOOSE
        assert "exact account" in status.evidence
