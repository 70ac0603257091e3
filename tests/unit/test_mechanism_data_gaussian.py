"""Gaussian noise on rows: the calibration, and shapes with fewer rows than features."""

from __future__ import annotations

import numpy as np
import pytest

from dpviz.accounting.gaussian import noise_std
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms.data_gaussian import DataGaussian

BUDGET = Budget(1.0, 1e-5)


@pytest.mark.parametrize(
    ("relation", "domain", "reach"),
    [
        (Relation.REPLACE, Domain.ball(4), 2.0),
        (Relation.ZERO_OUT, Domain.ball(4), 1.0),
        (Relation.REPLACE, Domain.box(4), 4.0),
    ],
)
def test_std_is_the_distance_of_two_rows_times_g(
    relation: Relation, domain: Domain, reach: float
) -> None:
    calibration = DataGaussian().calibrate(Problem(99, 4, 1, relation, domain), BUDGET)
    assert calibration.scale == pytest.approx(reach * noise_std(BUDGET), rel=1e-12)


@pytest.mark.parametrize("n", [2, 5, 6, 9, 12, 13])
def test_any_number_of_rows_works(n: int) -> None:
    """Any n works: below d, from d to 2d, and above (noise outside the span is a Wishart)."""
    d = 6
    rows = generator(0, "rows", n).standard_normal((n, d)) / 10
    A = rows.T @ rows / n
    problem = Problem(n, d, 2, Relation.REPLACE, Domain.ball(d))
    mechanism = DataGaussian()
    calibration = mechanism.calibrate(problem, Budget(1e6, 0.1))
    release = mechanism.release_many(
        SecondMoment((A + A.T) / 2, n), calibration, Draws.trials(0, "t", range(4))
    )
    assert release.matrix is not None
    # Noise of std s = 0.0015 on the rows changes an entry of X'X/n by about s * std(X).
    assert np.abs(release.matrix - A).max() < 0.01
