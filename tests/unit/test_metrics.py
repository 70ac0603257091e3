"""Utility measures against SciPy, exact cases and their ranges."""

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
    true, released = frames(seed, 1, d, k)[0], frames(seed + 1, 4, d, k)
    angles = principal_angles(true, released)
    assert angles.shape == (4, k)
    assert (np.diff(angles, axis=1) >= -1e-12).all()
    for found, frame in zip(angles, released, strict=True):
        # SciPy may round an angle of zero to 1.5e-8, the root of the machine precision.
        np.testing.assert_allclose(found, subspace_angles(true, frame)[::-1], atol=3e-8)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-12, 1e-8, 1e-3, 0.7, math.pi / 4, 1.5])
def test_small_angles_keep_their_digits(angle: float, k: int) -> None:
    true, released = turned(8, np.full(k, angle))
    found = principal_angles(true, released[None])[0]
    # Frames carry rounding of about 1e-16 per entry.
    np.testing.assert_allclose(found, angle, rtol=1e-9, atol=4e-16 * 8)


def test_right_angles() -> None:
    true, released = turned(6, np.array([0.1, math.pi / 2]))
    np.testing.assert_allclose(
        principal_angles(true, released[None])[0], [0.1, math.pi / 2], atol=1e-12
    )


@given(st.integers(0, 10**6), st.integers(3, 8), st.data())
def test_subspace_metrics_know_only_the_space(seed: int, d: int, data: st.DataObject) -> None:
    """Turning and reflecting the released columns inside their span changes nothing."""
    k = data.draw(st.integers(1, d - 1))
    reference, released = moment(seed, d), frames(seed, 3, d, k)
    inside = frames(seed + 5, 3, k, k)
    subspace = [key for key, metric in METRICS.items() if metric.needs == "subspace"]
    one = measure(Outcome(reference, reference, Release.of_frames(released)), subspace)
    two = measure(Outcome(reference, reference, Release.of_frames(released @ inside)), subspace)
    assert set(one) == set(subspace)
    for key in subspace:
        np.testing.assert_allclose(one[key], two[key], rtol=1e-9, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 8), st.data())
def test_every_metric_stays_in_its_range(seed: int, d: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, d))
    scale = data.draw(st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
    reference = moment(seed, d)
    noise = generator(seed, "noise").standard_normal((4, d, d)) * scale
    released = Release.of_matrices(reference.A + noise + noise.transpose(0, 2, 1), k)
    measured = measure(Outcome(reference, reference, released))
    absent = {key for key, metric in METRICS.items() if metric.needs == "picture"}
    assert set(measured) == set(METRICS) - absent - ({"recovery"} if k == d else set())
    for key, values in measured.items():
        assert values.shape == (4,)
        assert values.min() >= METRICS[key].lower
        # For k = d the largest distance is 0, and rounding leaves 1e-15.
        assert values.max() <= METRICS[key].upper(d, k) * (1 + 1e-9) + 1e-12


def test_exact_release_is_perfect() -> None:
    reference = moment(0, 6)
    released = Release.of_matrices(np.broadcast_to(reference.A, (2, 6, 6)), 2)
    measured = measure(Outcome(reference, reference, released))
    for key in ("projection_distance", "largest_angle"):
        np.testing.assert_allclose(measured[key], 0, atol=1e-14)
    for key in ("noise_spectral", "noise_frobenius", "negative_eigenvalues"):
        np.testing.assert_array_equal(measured[key], 0)
    np.testing.assert_allclose(measured["captured_share"], 1, rtol=1e-14)
    best = optimum(reference, 2)
    np.testing.assert_allclose(measured["captured_total"], best / reference.total, rtol=1e-14)
    # The best rank-2 matrix leaves the third eigenvalue (Eckart and Young).
    np.testing.assert_allclose(measured["low_rank_error"], reference.eigenvalues[2], rtol=1e-12)


def test_hand_worked_case() -> None:
    """A = diag(3, 1), released diag(0, 2) plus an off-diagonal 0: the wrong axis, k = 1."""
    reference = SecondMoment(np.diag([3.0, 1.0]), 10)
    released = Release.of_matrices(np.diag([-1.0, 2.0])[None], 1)
    measured = measure(Outcome(reference, reference, released))
    expected = {
        "recovery": -1.0,  # chance is 2/3
        "captured_share": 1 / 3,
        "captured_total": 1 / 4,
        "projection_distance": math.sqrt(2),
        "largest_angle": math.pi / 2,
        "noise_spectral": 4.0,
        "noise_frobenius": math.sqrt(17),
        "low_rank_error": 3.0,
        "negative_eigenvalues": 1.0,
    }
    assert {key: values[0] for key, values in measured.items()} == pytest.approx(expected)


def test_noise_is_against_what_the_mechanism_saw() -> None:
    """Rows that were shortened are no noise of the mechanism; utility is against the full table."""
    full, seen = SecondMoment(np.diag([3.0, 1.0]), 10), SecondMoment(np.diag([2.0, 1.0]), 10)
    measured = measure(Outcome(full, seen, Release.of_matrices(seen.A[None].copy(), 1)))
    assert measured["noise_spectral"][0] == 0
    assert measured["low_rank_error"][0] == pytest.approx(1.0)


def test_rounding_is_no_negative_eigenvalue() -> None:
    low_rank = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    reference = SecondMoment(low_rank, 10)
    measured = measure(Outcome(reference, reference, Release.of_matrices(low_rank[None], 1)))
    assert measured["negative_eigenvalues"][0] == 0


def test_matrix_metrics_are_absent_for_subspaces() -> None:
    reference = moment(0, 5)
    measured = measure(Outcome(reference, reference, Release.of_frames(frames(0, 2, 5, 2))))
    assert set(measured) == {k for k, metric in METRICS.items() if metric.needs == "subspace"}


@given(st.integers(0, 10**6), st.integers(3, 8), st.integers(1, 3))
def test_projection_distance_is_the_norm_of_the_difference(seed: int, d: int, k: int) -> None:
    assume(k < d)
    reference, released = moment(seed, d), frames(seed, 1, d, k)
    measured = measure(Outcome(reference, reference, Release.of_frames(released)))
    true = reference.eigenvectors[:, :k]
    gap = true @ true.T - released[0] @ released[0].T
    assert measured["projection_distance"][0] == pytest.approx(np.linalg.norm(gap), abs=1e-12)
    assert math.sin(measured["largest_angle"][0]) == pytest.approx(np.linalg.norm(gap, 2), abs=1e-9)


def outcome_of(frame: FloatArray, A: FloatArray) -> Outcome:
    reference = SecondMoment(A, 10)
    return Outcome(reference, reference, Release(frame[None], frame[None]))


def test_recovery_is_one_for_exact_and_zero_on_average_at_random() -> None:
    A = np.diag([4.0, 2.0, 1.0, 1.0, 0.5])
    exact = measure(outcome_of(np.eye(5, 2), A), ["recovery"])["recovery"]
    np.testing.assert_allclose(exact, 1.0)
    # chance: (2/5 of 8.5) / 6; the captured shares of all coordinate planes average to it
    chance = chance_share(SecondMoment(A, 10), 2)
    assert chance == pytest.approx(0.4 * 8.5 / 6)
    planes = [
        measure(outcome_of(np.eye(5)[:, [i, j]], A), ["recovery"])["recovery"][0]
        for i in range(5)
        for j in range(i)
    ]
    assert np.mean(planes) == pytest.approx(0.0, abs=1e-12)
    assert min(planes) < 0  # worse than chance is negative, and is not cut


def test_recovery_is_absent_where_every_subspace_is_as_good() -> None:
    assert measure(outcome_of(np.eye(4, 2), np.eye(4)), ["recovery"]) == {}
    assert measure(outcome_of(np.eye(3, 3), np.diag([3.0, 2.0, 1.0])), ["recovery"]) == {}
