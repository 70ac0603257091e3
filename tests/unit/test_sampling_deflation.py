"""Directions sampled from one spectrum each, and the spectrum that is left after one of them."""

from __future__ import annotations

import numpy as np
import pytest

from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import Draws
from dpviz.sampling.deflation import Complements, bingham_each


def spectra(size: int, q: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return (
        rng.gamma(0.5, size=(size, q)) * np.array([1, 1e2, 1e4, 0, 1e9])[np.arange(size) % 5, None]
    )


@pytest.mark.parametrize("q", [1, 2, 5, 60])
def test_draws_are_unit_and_do_not_depend_on_their_neighbours(q: int) -> None:
    values = spectra(11, q)
    together = bingham_each(values, Draws.trials(3, "t", range(11)))
    assert np.allclose(np.linalg.norm(together, axis=1), 1, rtol=0, atol=1e-14)
    for trial in (0, 4, 10):
        alone = bingham_each(values[[trial]], Draws.trials(3, "t", [trial]))
        assert alone.tobytes() == together[[trial]].tobytes()


def test_a_steep_spectrum_gives_its_first_direction() -> None:
    values = np.tile([0.0, 1e12, 3.0], (50, 1))
    x = bingham_each(values, Draws.trials(0, "t", range(50)))
    assert np.abs(x[:, 1]).min() > 1 - 1e-9


def test_complements_carry_the_restricted_matrix() -> None:
    rng = np.random.default_rng(0)
    d, size = 7, 4
    A = rng.standard_normal((d, d))
    A = A + A.T
    values, vectors = np.linalg.eigh(A)
    rest = Complements.whole(values, vectors, size)
    basis = np.zeros((size, d, 0))
    for step in range(d - 1):
        x = rng.standard_normal((size, d - step))
        x[0, 0] = -abs(x[0, 0])  # Test both signs of the pivot.
        x[1] = np.eye(d - step)[0]
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        basis = np.concatenate([basis, rest.lift(x)[:, :, None]], axis=2)
        rest = rest.without(x)
        whole = np.concatenate([basis, rest.basis], axis=2)
        assert np.allclose(whole.transpose(0, 2, 1) @ whole, np.eye(d), rtol=0, atol=1e-12)
        restriction = rest.basis.transpose(0, 2, 1) @ A @ rest.basis
        diagonal = rest.values[:, :, None] * np.eye(d - step - 1)
        assert np.allclose(restriction, diagonal, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "values", [np.zeros(3), np.zeros((2, 3)), np.zeros((3, 0)), np.full((3, 3), np.nan)]
)
def test_odd_spectra_are_refused_by_shape(values: np.ndarray) -> None:
    with pytest.raises(
        InvalidSetting, match="eigenvalues must be one row of finite numbers for each sample"
    ):
        bingham_each(values, Draws.trials(0, "t", range(3)))
