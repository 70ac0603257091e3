"""Utility measures agree with SciPy and exact cases, and stay in their ranges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import (
    METRICS,
    Outcome,
    chance_share,
    measure,
    optimum,
    principal_angles,
)
from dpviz.core.moments import SecondMoment
from dpviz.core.release import Release
from dpviz.core.seeding import generator


def frames(seed: int, size: int, d: int, k: int) -> FloatArray:
    q: FloatArray = np.linalg.qr(generator(seed, "frames").standard_normal((size, d, k)))[0]
    return q


def moment(seed: int, d: int) -> SecondMoment:
    rows = generator(seed, "rows").standard_normal((3 * d, d)) * np.geomspace(1, 0.1, d)
    A = rows.T @ rows / (3 * d)
    return SecondMoment((A + A.T) / 2, 3 * d)


def turned(d: int, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return two spaces of dimension k <= d/2 with exactly these principal angles."""
    k = len(angles)
    first = np.eye(d, k)
    second = first * np.cos(angles) + np.eye(d, k, -k) * np.sin(angles)
    basis = frames(9, 1, d, d)[0]
    return basis @ first, basis @ second


@given(st.integers(0, 10**6), st.integers(2, 9), st.data())
def test_angles_agree_with_scipy(seed: int, d: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, d))
    true, estimates = frames(seed, 1, d, k)[0], frames(seed + 1, 4, d, k)
    angles = principal_angles(true, estimates)
    assert angles.shape == (4, k)
    assert (np.diff(angles, axis=1) >= -1e-12).all()
    for angle, frame in zip(angles, estimates, strict=True):
        # SciPy may return 1.5e-8 for an angle of zero, the square root of the machine precision.
        np.testing.assert_allclose(angle, subspace_angles(true, frame)[::-1], atol=3e-8)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-12, 1e-8, 1e-3, 0.7, math.pi / 4, 1.5])
def test_small_angles_keep_their_digits(angle: float, k: int) -> None:
    true, turn = turned(8, np.full(k, angle))
    angles = principal_angles(true, turn[None])[0]
    # The entries of the frames have rounding errors of about 1e-16.
    np.testing.assert_allclose(angles, angle, rtol=1e-9, atol=4e-16 * 8)


def test_right_angles() -> None:
    true, turn = turned(6, np.array([0.1, math.pi / 2]))
    np.testing.assert_allclose(
        principal_angles(true, turn[None])[0], [0.1, math.pi / 2], atol=1e-12
    )


@given(st.integers(0, 10**6), st.integers(3, 8), st.data())
def test_subspace_metrics_know_only_the_space(seed: int, d: int, data: st.DataObject) -> None:
    """Turning and reflecting the released columns inside their span changes no measure."""
    k = data.draw(st.integers(1, d - 1))
    reference, estimates = moment(seed, d), frames(seed, 3, d, k)
    inside = frames(seed + 5, 3, k, k)
    subspace = [key for key, metric in METRICS.items() if metric.needs == "subspace"]
    one = measure(Outcome(reference, reference, Release.of_frames(estimates)), subspace)
    two = measure(Outcome(reference, reference, Release.of_frames(estimates @ inside)), subspace)
    assert set(one) == set(subspace)
    for key in subspace:
        np.testing.assert_allclose(one[key], two[key], rtol=1e-9, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 8), st.data())
def test_every_metric_stays_in_its_range(seed: int, d: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, d))
    scale = data.draw(st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
    reference = moment(seed, d)
    noise = generator(seed, "noise").standard_normal((4, d, d)) * scale
    release = Release.of_matrices(reference.A + noise + noise.transpose(0, 2, 1), k)
    metrics = measure(Outcome(reference, reference, release))
    absent = {key for key, metric in METRICS.items() if metric.needs == "picture"}
    assert set(metrics) == set(METRICS) - absent - ({"recovery"} if k == d else set())
    for key, values in metrics.items():
        assert values.shape == (4,)
        assert values.min() >= METRICS[key].lower
        # For k = d the largest possible distance is 0, but rounding leaves 1e-15.
        assert values.max() <= METRICS[key].upper(d, k) * (1 + 1e-9) + 1e-12


def test_exact_release_is_perfect() -> None:
    reference = moment(0, 6)
    release = Release.of_matrices(np.broadcast_to(reference.A, (2, 6, 6)), 2)
    metrics = measure(Outcome(reference, reference, release))
    for key in ("projection_distance", "largest_angle"):
        np.testing.assert_allclose(metrics[key], 0, atol=1e-14)
    for key in ("noise_spectral", "noise_frobenius", "negative_eigenvalues"):
        np.testing.assert_array_equal(metrics[key], 0)
    np.testing.assert_allclose(metrics["captured_share"], 1, rtol=1e-14)
    best = optimum(reference, 2)
    np.testing.assert_allclose(metrics["captured_total"], best / reference.total, rtol=1e-14)
    # The best rank-2 matrix has the third eigenvalue as its error (Eckart and Young).
    np.testing.assert_allclose(metrics["low_rank_error"], reference.eigenvalues[2], rtol=1e-12)


def test_hand_worked_case() -> None:
    """A = diag(3, 1), but released diag(0, 2) plus an off-diagonal 0: the wrong axis, k = 1."""
    reference = SecondMoment(np.diag([3.0, 1.0]), 10)
    release = Release.of_matrices(np.diag([-1.0, 2.0])[None], 1)
    metrics = measure(Outcome(reference, reference, release))
    expected = {
        "recovery": -1.0,  # A random subspace captures 2/3 of the variance.
        "captured_share": 1 / 3,
        "captured_total": 1 / 4,
        "projection_distance": math.sqrt(2),
        "largest_angle": math.pi / 2,
        "noise_spectral": 4.0,
        "noise_frobenius": math.sqrt(17),
        "low_rank_error": 3.0,
        "negative_eigenvalues": 1.0,
    }
    assert {key: values[0] for key, values in metrics.items()} == pytest.approx(expected)


def test_noise_is_against_what_the_mechanism_saw() -> None:
    """Clipping is not noise of the mechanism; utility compares with the full table."""
    full, inner = SecondMoment(np.diag([3.0, 1.0]), 10), SecondMoment(np.diag([2.0, 1.0]), 10)
    scores = measure(Outcome(full, inner, Release.of_matrices(inner.A[None].copy(), 1)))
    assert scores["noise_spectral"][0] == 0
    assert scores["low_rank_error"][0] == pytest.approx(1.0)


def test_rounding_is_no_negative_eigenvalue() -> None:
    low_rank = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    reference = SecondMoment(low_rank, 10)
    metrics = measure(Outcome(reference, reference, Release.of_matrices(low_rank[None], 1)))
    assert metrics["negative_eigenvalues"][0] == 0


def test_matrix_metrics_are_absent_for_subspaces() -> None:
    reference = moment(0, 5)
    metrics = measure(Outcome(reference, reference, Release.of_frames(frames(0, 2, 5, 2))))
    assert set(metrics) == {k for k, metric in METRICS.items() if metric.needs == "subspace"}


@given(st.integers(0, 10**6), st.integers(3, 8), st.integers(1, 3))
def test_projection_distance_is_the_norm_of_the_difference(seed: int, d: int, k: int) -> None:
    assume(k < d)
    reference, estimate = moment(seed, d), frames(seed, 1, d, k)
    metrics = measure(Outcome(reference, reference, Release.of_frames(estimate)))
    true = reference.eigenvectors[:, :k]
    gap = true @ true.T - estimate[0] @ estimate[0].T
    assert metrics["projection_distance"][0] == pytest.approx(np.linalg.norm(gap), abs=1e-12)
    assert math.sin(metrics["largest_angle"][0]) == pytest.approx(np.linalg.norm(gap, 2), abs=1e-9)


def outcome_of(frame: FloatArray, A: FloatArray) -> Outcome:
    reference = SecondMoment(A, 10)
    return Outcome(reference, reference, Release(frame[None], frame[None]))


def test_recovery_is_one_for_exact_and_zero_on_average_at_random() -> None:
    A = np.diag([4.0, 2.0, 1.0, 1.0, 0.5])
    exact = measure(outcome_of(np.eye(5, 2), A), ["recovery"])["recovery"]
    np.testing.assert_allclose(exact, 1.0)
    # By chance a plane captures (2/5 of 8.5) / 6; this is the mean over all coordinate planes.
    chance = chance_share(SecondMoment(A, 10), 2)
    assert chance == pytest.approx(0.4 * 8.5 / 6)
    planes = [
        measure(outcome_of(np.eye(5)[:, [i, j]], A), ["recovery"])["recovery"][0]
        for i in range(5)
        for j in range(i)
    ]
    assert np.mean(planes) == pytest.approx(0.0, abs=1e-12)
    assert min(planes) < 0  # Below the level of chance, recovery is negative.


def test_recovery_is_absent_where_every_subspace_is_as_good() -> None:
    assert measure(outcome_of(np.eye(4, 2), np.eye(4)), ["recovery"]) == {}
    assert measure(outcome_of(np.eye(3, 3), np.diag([3.0, 2.0, 1.0])), ["recovery"]) == {}
