"""Noise that people add themselves: each person's protection, and the noise of the mean."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

from dpviz.core.errors import CannotRun
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.extend.checks import worst_pair
from dpviz.mechanisms.gaussian import Gaussian
from dpviz.releasing.making import chosen
from dpviz.releasing.options import ReleaseOptions
from dpviz.sampling.ensembles import goe

N, D = 400, 6
BUDGET = Budget(1.0, 1e-6)
UPPER = np.triu_indices(D)
STDS = np.where(UPPER[0] == UPPER[1], 1.0, 0.5**0.5)  # A GOE of unit scale has these stds.


def scale_of(relation: Relation, **parameters: object) -> float:
    """Return the noise that the variant puts on the mean."""
    problem = Problem(N, D, 2, relation, Domain.ball(D))
    return Gaussian(**parameters).calibrate(problem, BUDGET).scale  # type: ignore[arg-type]


def delta_of(scale: float, relation: Relation, n: int) -> float:
    """Return delta at epsilon 1 of a mean of n rows with GOE noise, by code outside dpviz."""
    reach = worst_pair("ball", D, relation, 2, tuple((1 / STDS).tolist())) / n
    loss = GaussianPrivacyLoss(scale / reach, log_mass_truncation_bound=-700)
    return float(loss.get_delta_for_epsilon(BUDGET.epsilon))


@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
@pytest.mark.parametrize("colluders", [0.0, 0.3, 0.9])
def test_shares_of_those_who_do_not_collude_protect(relation: Relation, colluders: float) -> None:
    scale = scale_of(relation, trust="distributed", colluders=colluders)
    rest = scale * (1 - colluders) ** 0.5  # Colluders can subtract their own noise.
    assert 0.9 * BUDGET.delta <= delta_of(rest, relation, N) <= BUDGET.delta * (1 + 1e-6)
    # Control: with 1 % more colluders than planned, the privacy claim fails.
    assert delta_of(scale * (0.99 - colluders) ** 0.5, relation, N) > 1.03 * BUDGET.delta


@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
def test_the_report_of_one_person_protects_alone(relation: Relation) -> None:
    scale = scale_of(relation, trust="local")
    report = scale * N**0.5  # The mean of N reports divides the noise by sqrt(N).
    assert 0.9 * BUDGET.delta <= delta_of(report, relation, 1) <= BUDGET.delta * (1 + 1e-6)
    # Control: if a curator's noise is only split among the N reports, it protects no single report.
    assert delta_of(scale_of(relation) * N**0.5, relation, 1) > 0.9


def test_the_mean_of_reports_has_the_noise_that_is_simulated() -> None:
    size = 300
    scale = scale_of(Relation.REPLACE, trust="local")
    rng = generator(7, "reports")
    means = np.stack([
        scale * N**0.5 * goe(Draws.batch(rng, N), D).mean(axis=0) for _ in range(size)
    ])  # fmt: skip
    problem = Problem(N, D, 2, Relation.REPLACE, Domain.ball(D))
    local = Gaussian(trust="local")
    release = (
        local.release_many(
            SecondMoment(np.eye(D) / D, N), local.calibrate(problem, BUDGET), Draws.batch(rng, size)
        ).raw
        - np.eye(D) / D
    )
    # Each mean square has size x 21 normal numbers, so the log ratio has std sqrt(4/6300) = .025.
    ratio = np.log(np.square(means[:, *UPPER] / STDS).mean())
    ratio -= np.log(np.square(release[:, *UPPER] / STDS).mean())
    assert abs(ratio) < 5 * 0.0252
    assert abs(ratio - np.log(N)) > 5 * 0.0252  # Control: the test detects a curator's noise.


def test_who_holds_the_table_releases_as_a_curator() -> None:
    options = {"row_bound": "2", "k": 1, "delta": 1e-6}
    assert chosen(ReleaseOptions(mechanism="gaussian", **options))[0] == Gaussian()
    with pytest.raises(CannotRun, match="use gaussian"):
        chosen(ReleaseOptions(mechanism="gaussian[trust=local]", **options))
