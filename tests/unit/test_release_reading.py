"""A release read from its file alone: error bars, readable components and recovery."""

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
    noise = generator(5, "release", draw).standard_normal((D, D))
    return TRUE + STD / 2**0.5 * (noise + noise.T)


@pytest.mark.parametrize("law", list(Law))
def test_the_noise_is_told_in_units_of_the_table(law: Law) -> None:
    assert noise_std(_file(TRUE, law=law)) == pytest.approx(STD)


def test_recovery_that_may_be_printed_is_that_of_the_truth() -> None:
    """Over 20 releases, the read recovery, which no file has, is within .02 of the truth."""
    truth = SecondMoment(TRUE, 1)
    texts, truths = [], []
    for draw in range(20):
        reading = read(_file(_drawn(draw)))
        share = np.einsum("ai,ab,bi", reading.loadings, TRUE, reading.loadings) / VALUES[:K].sum()
        truths.append(recovery_of(share, chance_share(truth, K)))
        texts.append(reading.recovery)
    assert np.mean(texts) == pytest.approx(np.mean(truths), abs=0.02)
    assert read(_file(_drawn(0))).recovery == texts[0]  # A second reading gives the same number.


def test_what_survives_is_not_said_where_noise_is_among_the_components() -> None:
    """No recovery is stated if a component may be noise, which would pass for structure."""
    for draw in range(20):
        noise = generator(5, "release", draw).standard_normal((D, D))
        file = _file(TRUE + 0.4 / 2**0.5 * (noise + noise.T), 0.4)
        assert read(file).recovery is None


def test_components_too_near_to_be_told_apart_may_stand_out_together() -> None:
    near = (VECTORS * np.array([1.0, 0.99, *VALUES[2:]])) @ VECTORS.T
    noise = generator(5, "release", 0).standard_normal((D, D))
    reading = read(_file(near + STD / 2**0.5 * (noise + noise.T)))
    assert reading.readable == 0
    assert reading.recovery == pytest.approx(1, abs=0.02)


def test_a_component_that_cannot_be_told_from_noise_has_no_bars() -> None:
    noisy = read(_file(_drawn(0), std=0.2))  # No eigengap exceeds the noise edge of 1.2.
    assert noisy.readable == 0
    assert np.isnan(noisy.bars).all()
    sharp = read(_file(TRUE, std=1e-6))
    assert sharp.readable == K
    assert (np.abs(sharp.loadings[:, 0]) > sharp.bars[:, 0]).all()
    assert sharp.recovery == pytest.approx(1, abs=1e-6)


def test_a_spectrum_without_structure_has_no_recovery() -> None:
    assert read(_file(np.eye(D))).recovery is None


def test_the_file_of_a_release_is_a_model_as_a_fit_is() -> None:
    """A release's file gives the same model as a fit to rows with its moment, and a normal law."""
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
    # Fit rows that have exactly this matrix, with a budget that adds almost no noise.
    exact = np.linalg.cholesky(TRUE).T * np.sqrt(D) * 2
    near = np.tile(np.vstack([exact, -exact]), (500, 1))
    fit = PrivatePCA(
        K, epsilon=1e6, delta=1e-6, mechanism="gaussian", row_bound=9.0, center="none"
    ).fit(near)  # fmt: skip
    np.testing.assert_allclose(fit.get_covariance(), covariance, atol=0.01)


def _signs(model: ReleasedModel) -> np.ndarray:
    return np.sign((model.components.T * VECTORS[:, :K]).sum(0))


def test_bars_of_variances_hold_what_they_promise_and_half_of_them_does_not() -> None:
    """In 60 releases over .86 of variances lie within their bars, and fewer within half bars."""
    reads = [read(_file(_drawn(draw))) for draw in range(60)]
    away = np.array([np.abs(one.variances[:K] - VALUES[:K]) / one.variance_bars for one in reads])
    assert (away <= 1).mean() > 0.86
    assert (away <= 0.5).mean() < 0.86
