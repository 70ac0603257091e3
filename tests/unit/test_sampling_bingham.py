"""Bingham samples: invariants, streams, routes and messages. Laws are in tests/statistical."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import Draws, generator
from dpviz.sampling import bingham as vector
from dpviz.sampling import columns as column_draws
from dpviz.sampling.bingham import convergence, sample_bingham
from dpviz.sampling.stiefel import stiefel_bingham


def bingham(values: Any, draws: Draws) -> FloatArray:
    """Return only the sampled vectors."""
    return sample_bingham(values, draws).vectors


def trials(size: int) -> Draws:
    return Draws.trials(5, "bingham", range(size))


def spectrum(d: int, log_spread: float, seed: int) -> FloatArray:
    return 10**log_spread * generator(seed, "spectrum").standard_exponential(d) ** 3


@given(
    d=st.integers(2, 40),
    log_spread=st.floats(-6, 7),
    ties=st.integers(1, 5),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None)
def test_vectors_are_units(d: int, log_spread: float, ties: int, seed: int) -> None:
    values = spectrum(d, log_spread, seed)
    values[:ties] = values.max()
    draw = sample_bingham(values, trials(3))
    np.testing.assert_allclose(np.linalg.norm(draw.vectors, axis=1), 1.0, rtol=1e-14)
    assert 0 < draw.acceptance <= 1


@given(
    d=st.integers(2, 25),
    k=st.integers(1, 6),
    log_spread=st.floats(-6, 9),
    ties=st.integers(1, 5),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=60)
def test_frames_are_orthonormal(d: int, k: int, log_spread: float, ties: int, seed: int) -> None:
    k = min(k, d)
    values = spectrum(d, log_spread, seed)
    values[:ties] = values.max()
    draw = stiefel_bingham(values, k, trials(3), sweeps=3)
    gram = draw.frames.transpose(0, 2, 1) @ draw.frames
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(k), gram.shape), atol=1e-13)
    traces = np.einsum("i,cik->c", values, draw.frames**2)
    np.testing.assert_allclose(draw.trace[-1], traces, rtol=1e-12)
    assert draw.exact is (k in (1, d))


@pytest.mark.parametrize("d", [2, 61, 400])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e7, 1e12])
def test_large_problems_stay_cheap(d: int, spread: float) -> None:
    draw = sample_bingham(spread * np.linspace(1, 0, d) ** 2, trials(20))
    # With concentrated eigenvalues, the acceptance rate tends to sqrt(2/(e d)) = 0.043 at d = 400.
    # So 20 samples need more than 2,000 proposals with chance below P(Poisson(86) < 20) < 1e-15.
    assert draw.proposals < 2000


@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_batched_equals_looped(k: int) -> None:
    values = spectrum(9, 1.5, 0)
    together = stiefel_bingham(values, k, trials(6), sweeps=4)
    for t in range(6):
        alone = stiefel_bingham(values, k, Draws.trials(5, "bingham", [t]), sweeps=4)
        np.testing.assert_array_equal(alone.frames[0], together.frames[t])
        np.testing.assert_array_equal(alone.trace[:, 0], together.trace[:, t])
        assert alone.from_mode[0] == together.from_mode[t]


def test_order_of_eigenvalues_only_moves_rows() -> None:
    values = spectrum(8, 1.0, 1)
    shuffle = generator(0, "order").permutation(8)
    np.testing.assert_array_equal(
        bingham(values[shuffle], trials(3)), bingham(values, trials(3))[:, shuffle]
    )
    np.testing.assert_array_equal(
        stiefel_bingham(values[shuffle], 2, trials(3), 2).frames,
        stiefel_bingham(values, 2, trials(3), 2).frames[:, shuffle],
    )


def test_a_common_shift_of_the_eigenvalues_changes_nothing() -> None:
    values = np.array([8.0, 5.0, 5.0, 1.0, 0.0])  # With whole numbers, the shift is exact.
    np.testing.assert_array_equal(bingham(values, trials(4)), bingham(values - 64, trials(4)))
    np.testing.assert_array_equal(
        stiefel_bingham(values, 2, trials(4), 3).frames,
        stiefel_bingham(values - 64, 2, trials(4), 3).frames,
    )


def test_one_column_is_the_exact_vector() -> None:
    values = spectrum(6, 1.0, 2)
    draw = stiefel_bingham(values, 1, trials(5))
    np.testing.assert_array_equal(draw.frames[:, :, 0], bingham(values, trials(5)))
    assert draw.exact
    assert draw.trace.shape == (1, 5)
    assert draw.dense_updates == 0


def test_best_shift_solves_its_equation() -> None:
    for gaps in (np.zeros(7), np.array([0.0, 1e7]), np.array([3e5, 4e5, 9e9]), np.array([5.0])):
        shift = vector.best_shift(gaps)
        assert np.sum(1 / (shift + gaps)) == pytest.approx(1.0, rel=1e-9)
        assert shift + gaps.min() >= 1.0 - 1e-9


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e5])
def test_column_envelope_matches_the_restricted_matrix(k: int, scale: float) -> None:
    """The cheap traces and the low-rank Gaussian agree with the dense restriction."""
    d, chains = 9, 40
    rng = generator(k, "envelope")
    gaps = 2 * scale * np.sort(np.r_[0.0, rng.random(d - 1)])
    law = column_draws.ColumnLaw.of(gaps, k)
    # Fixed columns near the leading axes make the shift negative, so the matrix is indefinite.
    noise = rng.standard_normal((chains, d, k - 1)) * np.geomspace(1e-4, 1, chains)[:, None, None]
    columns = np.linalg.qr(np.eye(d, k - 1) + noise).Q
    complement = np.linalg.qr(columns, mode="complete").Q[:, :, k - 1 :]
    column = complement[:, :, 0]
    shift, has_shift = column_draws._shifts(law, columns, column)
    envelope = column_draws._envelope(law, columns, shift)
    assert has_shift.all()
    assert envelope.sound.all()
    assert scale == 1.0 or (shift < 0).any()

    precision = shift[:, None] + gaps
    restriction = complement.transpose(0, 2, 1) @ (precision[:, :, None] * complement)
    spectra = np.linalg.eigvalsh(restriction)
    assert (spectra > 0).all()
    # When the iteration stops, |trace - 1| <= sqrt(0.1 * second) <= sqrt(0.1) * trace.
    first = (1 / spectra).sum(axis=1)
    assert (np.abs(first - 1) <= np.sqrt(0.1 * (spectra**-2.0).sum(axis=1)) * (1 + 1e-4)).all()

    # Transform an orthonormal basis of whitened coordinates by the sampler's linear map.
    basis = np.broadcast_to(np.eye(d), (chains, d, d)) * envelope.free[:, None, :]
    at_free, at_pivots = envelope.propose(np.arange(chains), basis)
    rows = at_free
    for chain in range(chains):
        rows[chain][:, envelope.pivots[chain]] = at_pivots[chain]
    covariance = rows.transpose(0, 2, 1) @ rows
    exact = complement @ np.linalg.inv(restriction) @ complement.transpose(0, 2, 1)
    for left, right in zip(covariance, exact, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-6 * np.abs(right).max())


def test_convergence_sees_starts_apart_and_together() -> None:
    draw = stiefel_bingham(300.0 * np.linspace(1, 0, 30) ** 3, 3, trials(40), 20)
    report = convergence(draw.trace, draw.from_mode)
    assert report.gap is not None
    assert report.split_rhat is not None
    assert report.gap.shape == (21,)
    assert report.gap[0] > 20
    # Once chains converge, Welch's statistic of 20 against 20 exceeds 9.5 with chance 1e-9.
    assert abs(report.gap[-1]) < 9.5
    assert report.split_rhat < 1.5
    stuck = np.where(draw.from_mode, 1.0, 0.0) + 1e-3 * generator(0, "x").random((21, 40))
    apart = convergence(stuck, draw.from_mode)
    assert apart.gap is not None
    assert apart.split_rhat is not None
    assert apart.gap[-1] > 100
    assert apart.split_rhat > 10


@pytest.mark.parametrize("values", [[1.0], [[1.0, 2.0]], [1.0, float("nan")], [float("inf"), 0.0]])
def test_bad_spectra_are_refused_without_showing_them(values: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"at least 2 finite numbers; got 'shape \("):
        bingham(values, trials(1))


def test_bad_settings_are_refused() -> None:
    values = np.arange(4.0)
    with pytest.raises(InvalidSetting, match="k must be from 1 to d = 4; got '5'"):
        stiefel_bingham(values, 5, trials(1))
    with pytest.raises(InvalidSetting, match="sweeps must be at least 1; got '0'"):
        stiefel_bingham(values, 2, trials(1), sweeps=0)
    with pytest.raises(InvalidSetting, match="start must be one of"):
        stiefel_bingham(values, 2, trials(1), start="top")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="trace must be of shape"):
        convergence(np.zeros((3, 4)), np.zeros(5, dtype=np.bool_))
