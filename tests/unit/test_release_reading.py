"""What a release says of itself: bars, readable components and recovery, from its file alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpviz.core.metrics import chance_share, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.core.seeding import generator
from dpviz.releasing.noise import Law
from dpviz.releasing.reading import _recovery, noise_std, read

D, K, STD = 9, 2, 0.01
VALUES = np.array([1.0, 0.6, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01])
VECTORS = np.linalg.qr(generator(3, "axes").standard_normal((D, D)))[0]
TRUE = (VECTORS * VALUES) @ VECTORS.T


def _file(matrix: np.ndarray, std: float = STD, law: Law = Law.NORMAL) -> dict[str, Any]:
    vectors = np.linalg.eigh(matrix)[1]
    n, bits = 100, 4
    weights = [70, 99] if law is Law.NORMAL else [1, 1]
    wide = 2**0.5 if law is Law.LAPLACE else 1.0
    return {
        "matrix": matrix.tolist(),
        "components": vectors[:, ::-1][:, :K].T.tolist(),
        "declared": {"columns": [f"x{j}" for j in range(D)], "row_bound": 2.0},
        "n": n,
        "noise": {
            "law": str(law),
            "scale": std * weights[1] * n * 4.0**bits / 4.0 / wide,
            "grid_bits": bits,
            "weights": weights,
        },
    }


def _drawn(draw: int) -> np.ndarray:
    drawn = generator(5, "release", draw).standard_normal((D, D))
    return TRUE + STD / 2**0.5 * (drawn + drawn.T)


@pytest.mark.parametrize("law", list(Law))
def test_the_noise_is_told_in_units_of_the_table(law: Law) -> None:
    assert noise_std(_file(TRUE, law=law)) == pytest.approx(STD)


def test_bars_hold_what_they_promise_and_half_of_them_does_not() -> None:
    """400 releases, 2 components of 9 loadings: .95 is met within .03.

    Bars of one release hold or fail nearly together, so 400 is the number that counts; 2.6 standard
    errors of a share of .95 are sqrt(.95 .05/400) 2.6 = .028.
    """
    inside, halves, variances = [], [], []
    for draw in range(400):
        found = read(_file(_drawn(draw)))
        assert found.readable == K
        true = VECTORS[:, :K] * np.sign((VECTORS[:, :K] * found.loadings).sum(0))
        away = np.abs(found.loadings - true)
        inside.append((away <= found.bars).mean())
        halves.append((away <= found.bars / 2).mean())
        variances.append((np.abs(found.variances[:K] - VALUES[:K]) <= found.variance_bar).mean())
    assert np.mean(inside) == pytest.approx(0.95, abs=0.03)
    assert np.mean(variances) == pytest.approx(0.95, abs=0.03)
    assert np.mean(halves) < 0.75  # of a normal law .67 lie within half the bar


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
    """There noise would pass for structure, and .2 too much would be said; here nothing is."""
    truth, std, said, kept = SecondMoment(TRUE, 1), 0.4, [], []
    for draw in range(20):
        drawn = generator(5, "release", draw).standard_normal((D, D))
        matrix = TRUE + std / 2**0.5 * (drawn + drawn.T)
        file = _file(matrix, std)
        assert read(file).recovery is None
        values, vectors = np.linalg.eigh(matrix)
        said.append(_recovery(matrix, values[::-1], vectors[:, ::-1], std, K))
        top = vectors[:, ::-1][:, :K]
        share = np.einsum("ai,ab,bi", top, TRUE, top) / VALUES[:K].sum()
        kept.append(recovery_of(share, chance_share(truth, K)))
    assert np.mean(said) > np.mean(kept) + 0.2


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
