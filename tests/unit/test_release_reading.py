"""What a release says of itself: bars, readable components and recovery, from its file alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpviz import PrivatePCA
from dpviz.core.metrics import chance_share, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.core.seeding import generator
from dpviz.releasing.model import ReleasedModel
from dpviz.releasing.noise import Law
from dpviz.releasing.reading import noise_std, read

D, K, STD = 9, 2, 0.01
VALUES = np.array([1.0, 0.6, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01])
VECTORS = np.linalg.qr(generator(3, "axes").standard_normal((D, D)))[0]
TRUE = (VECTORS * VALUES) @ VECTORS.T


def _file(matrix: np.ndarray, std: float = STD, law: Law = Law.NORMAL) -> dict[str, Any]:
    values, vectors = np.linalg.eigh(matrix)
    n, bits = 100, 4
    weights = [70, 99] if law is Law.NORMAL else [1, 1]
    wide = 2**0.5 if law is Law.LAPLACE else 1.0
    return {
        "matrix": matrix.tolist(),
        "components": vectors[:, ::-1][:, :K].T.tolist(),
        "eigenvalues": values[::-1].tolist(),
        "declared": {
            "columns": [f"x{j}" for j in range(D)], "row_bound": 2.0,
            "center": list(range(D)), "scale": [2.0] * D,
        },
        "n": n,
        "noise": {
            "law": str(law),
            "scale": std * weights[1] * n * 4.0**bits / 4.0 / wide,
            "grid_bits": bits,
            "weights": weights,
        },
    }  # fmt: skip


def _drawn(draw: int) -> np.ndarray:
    drawn = generator(5, "release", draw).standard_normal((D, D))
    return TRUE + STD / 2**0.5 * (drawn + drawn.T)


@pytest.mark.parametrize("law", list(Law))
def test_the_noise_is_told_in_units_of_the_table(law: Law) -> None:
    assert noise_std(_file(TRUE, law=law)) == pytest.approx(STD)


def test_recovery_that_may_be_printed_is_that_of_the_truth() -> None:
    """Over 20 releases within .02 of what the true components keep, not in the file."""
    truth = SecondMoment(TRUE, 1)
    said, kept = [], []
    for draw in range(20):
        found = read(_file(_drawn(draw)))
        share = np.einsum("ai,ab,bi", found.loadings, TRUE, found.loadings) / VALUES[:K].sum()
        kept.append(recovery_of(share, chance_share(truth, K)))
        said.append(found.recovery)
    assert np.mean(said) == pytest.approx(np.mean(kept), abs=0.02)
    assert read(_file(_drawn(0))).recovery == said[0]  # the same file, the same number


def test_what_survives_is_not_said_where_noise_is_among_the_components() -> None:
    """There noise would pass for structure; here nothing is said."""
    for draw in range(20):
        drawn = generator(5, "release", draw).standard_normal((D, D))
        file = _file(TRUE + 0.4 / 2**0.5 * (drawn + drawn.T), 0.4)
        assert read(file).recovery is None


def test_components_too_near_to_be_told_apart_may_stand_out_together() -> None:
    near = (VECTORS * np.array([1.0, 0.99, *VALUES[2:]])) @ VECTORS.T
    drawn = generator(5, "release", 0).standard_normal((D, D))
    found = read(_file(near + STD / 2**0.5 * (drawn + drawn.T)))
    assert found.readable == 0
    assert found.recovery == pytest.approx(1, abs=0.02)


def test_a_component_that_cannot_be_told_from_noise_has_no_bars() -> None:
    noisy = read(_file(_drawn(0), std=0.2))  # noise edge 1.2: no step is longer
    assert noisy.readable == 0
    assert np.isnan(noisy.bars).all()
    sharp = read(_file(TRUE, std=1e-6))
    assert sharp.readable == K
    assert (np.abs(sharp.loadings[:, 0]) > sharp.bars[:, 0]).all()
    assert sharp.recovery == pytest.approx(1, abs=1e-6)


def test_a_spectrum_without_structure_has_no_recovery() -> None:
    assert read(_file(np.eye(D))).recovery is None


def test_the_file_of_a_release_is_a_model_as_a_fit_is() -> None:
    """The same model as that of a fit to rows with this very moment, and as a normal law's."""
    model = ReleasedModel.of_release(_file(TRUE))
    covariance = np.array(model.covariance())
    rows = generator(8, "rows").multivariate_normal(np.arange(D), covariance, 50)
    law = multivariate_normal(np.arange(D), covariance)
    np.testing.assert_allclose(model.score_samples(rows), law.logpdf(rows))
    np.testing.assert_allclose(model.precision() @ covariance, np.eye(D), atol=1e-9)
    along = model.transform(rows)
    np.testing.assert_allclose(along, (rows - np.arange(D)) / 2 @ VECTORS[:, :K] * _signs(model))
    np.testing.assert_allclose(model.transform(model.inverse_transform(along)), along)
    assert model.total == pytest.approx(VALUES.sum())
    # to rows with this very moment, at a budget that leaves hardly any noise
    exact = np.linalg.cholesky(TRUE).T * np.sqrt(D) * 2
    near = np.tile(np.vstack([exact, -exact]), (500, 1))
    fitted = PrivatePCA(
        K, epsilon=1e6, delta=1e-6, mechanism="gaussian", row_bound=9.0, center="none"
    ).fit(near)  # fmt: skip
    np.testing.assert_allclose(fitted.get_covariance(), covariance, atol=0.01)


def _signs(model: ReleasedModel) -> np.ndarray:
    return np.sign((model.components.T * VECTORS[:, :K]).sum(0))


def test_bars_of_variances_hold_what_they_promise_and_half_of_them_does_not() -> None:
    """Of two variances in each of 60 releases: .95 is above .86, and .67 of a normal law below."""
    found = [read(_file(_drawn(draw))) for draw in range(60)]
    away = np.array([np.abs(one.variances[:K] - VALUES[:K]) / one.variance_bars for one in found])
    assert (away <= 1).mean() > 0.86
    assert (away <= 0.5).mean() < 0.86
