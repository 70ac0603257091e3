"""Bingham samples agree with quadrature and closed forms, without using another sampler.

Means must lie within 6.1 standard errors and Kolmogorov-Smirnov p-values above 1e-9, which is one
false alarm in 1e9 per figure. Squared coordinates lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import Draws, generator
from dpviz.sampling import anchored, macg, stiefel
from dpviz.sampling import bingham as vector
from dpviz.sampling import columns as column_draws
from dpviz.sampling.bingham import sample_bingham
from dpviz.sampling.matrix_bingham import matrix_bingham
from dpviz.sampling.stiefel import stiefel_bingham

Z = 6.1
ALARM = 1e-9
Cdf = Callable[[FloatArray], FloatArray]


def tabulated(log_density: FloatArray, nodes: FloatArray) -> Cdf:
    """Return the cdf of a density given at fine nodes (trapezoid rule)."""
    density = np.exp(log_density - log_density.max())
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(nodes)
    total = np.concatenate([[0.0], np.cumsum(steps)])
    return lambda x: np.interp(x, nodes, total / total[-1])


def coordinate_cdf(eigenvalues: FloatArray, axis: int) -> Cdf:
    """Return the cdf of |x_axis| for the Bingham law in three dimensions.

    On the circle of height z the other two eigenvalues integrate to a Bessel
    function, and z is uniform on [-1, 1] under the uniform law.
    """
    value = eigenvalues[axis]
    one, two = np.delete(eigenvalues, axis)
    z = np.linspace(0, 1, 200_001)
    rest = 1 - z**2
    half = 0.5 * rest * abs(one - two)
    log_density = value * z**2 + 0.5 * rest * (one + two) + np.log(special.ive(0, half)) + half
    return tabulated(log_density, z)


def share_cdf(strength: float, m: float, d: int) -> Cdf:
    """Return the cdf for the density exp(strength u) u^(m/2-1) (1-u)^((d-m)/2-1) on [0, 1].

    If B has m eigenvalues `strength` and d - m zeros, u is the squared length of m of the d
    coordinates of a vector. It is also the squared length of the first row of a k-frame when B =
    diag(strength, 0, .., 0) and m = k. The substitution u = sin^2 removes the singular ends.
    """
    angle = np.linspace(0, np.pi / 2, 400_001)[1:-1]
    sine, cosine = np.sin(angle), np.cos(angle)
    log_density = strength * sine**2 + (m - 1) * np.log(sine) + (d - m - 1) * np.log(cosine)
    cdf = tabulated(log_density, angle)
    return lambda u: cdf(np.arcsin(np.sqrt(np.clip(u, 0, 1))))


def fits(sample: FloatArray, cdf: Cdf) -> bool:
    return bool(stats.kstest(sample, cdf).pvalue > ALARM)


def same_law(one: FloatArray, two: FloatArray) -> bool:
    return bool(stats.ks_2samp(one, two, method="asymp").pvalue > ALARM)


def has_mean(sample: FloatArray, mean: float) -> bool:
    # Multiply by 1.05, because the sample's standard deviation is itself uncertain at these sizes.
    return bool(abs(sample.mean() - mean) <= Z * 1.05 * sample.std() / np.sqrt(len(sample)))


def batch(label: str, size: int) -> Draws:
    return Draws.batch(generator(0, "test-bingham", label), size)


# ---- vectors


def test_known_moment() -> None:
    squares = sample_bingham([8.0, 0.0, 0.0], batch("moment", 100_000)).vectors ** 2
    assert has_mean(squares[:, 0], 0.86207)
    assert has_mean(squares[:, 1], (1 - 0.86207) / 2)


def test_inverted_acceptance_ratio_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: dividing by (x'Mx)^(d/2) instead of multiplying gives 0.967 and is detected."""
    shift = vector.best_shift(np.array([0.0, 16.0, 16.0]))

    def inverted(t: FloatArray, q: int) -> FloatArray:
        return -0.5 * (t - shift) - 0.5 * q * np.log(t / shift)

    monkeypatch.setattr(vector, "log_acceptance", inverted)
    x = sample_bingham([8.0, 0.0, 0.0], batch("moment", 5_000)).vectors
    assert not has_mean(x[:, 0] ** 2, 0.86207)
    assert abs((x[:, 0] ** 2).mean() - 0.967) < 0.01
    assert not fits(np.abs(x[:, 0]), coordinate_cdf(np.array([8.0, 0.0, 0.0]), 0))


@pytest.mark.parametrize("values", [(0.0, 0.0), (3.0, 0.0), (-40.0, 2.0), (1e7, 0.0)])
def test_two_dimensions(values: tuple[float, float]) -> None:
    """The doubled angle from the leading axis is von Mises with half the gap."""
    x = sample_bingham(values, batch("plane", 20_000)).vectors
    low, high = sorted(range(2), key=lambda i: values[i])
    angles = 2 * np.arctan2(x[:, low], x[:, high])
    angles_in_range = (angles + np.pi) % (2 * np.pi) - np.pi
    gap = abs(values[0] - values[1]) / 2
    law = stats.vonmises(gap) if gap else stats.uniform(-np.pi, 2 * np.pi)
    assert fits(angles_in_range, law.cdf)
    assert has_mean(np.sign(x[:, 0]), 0.0)


@pytest.mark.parametrize(
    "values", [(8.0, 0.0, 0.0), (5.0, 5.0, 0.0), (30.0, 12.0, 0.0), (700.0, 1.0, -3.0)]
)
def test_three_dimensions(values: tuple[float, ...]) -> None:
    spectrum = np.array(values)
    x = sample_bingham(spectrum, batch("space", 20_000)).vectors
    for axis in range(3):
        assert fits(np.abs(x[:, axis]), coordinate_cdf(spectrum, axis))
        assert has_mean(np.sign(x[:, axis]), 0.0)


@pytest.mark.parametrize(
    ("d", "m", "strength"),
    [(61, 1, 700.0), (61, 1, 20.0), (61, 5, 60.0), (61, 60, 90.0), (400, 1, 150.0), (400, 3, 1e7)],
)
def test_high_dimensions(d: int, m: int, strength: float) -> None:
    values = np.zeros(d)
    values[:m] = strength
    share = np.square(sample_bingham(values, batch("high", 4_000)).vectors[:, :m]).sum(axis=1)
    if strength == 1e7:  # 1 - u is Gamma((d - m)/2) / strength to a relative 1e-5.
        assert fits((1 - share) * strength, stats.gamma((d - m) / 2).cdf)
        assert not fits(1.05 * (1 - share) * strength, stats.gamma((d - m) / 2).cdf)
    else:
        assert fits(share, share_cdf(strength, m, d))
        assert not fits(share, share_cdf(1.5 * strength, m, d))


@pytest.mark.parametrize("k", [1, 3])
def test_equal_eigenvalues_are_uniform_in_every_direction(k: int) -> None:
    """Rotation invariance: along any direction a frame's share is Beta(k/2, (d - k)/2)."""
    d = 5
    frames = stiefel_bingham(np.full(d, 2.0), k, batch("uniform", 10_000), 12, "mode").frames
    for direction in (np.eye(d)[2], np.ones(d) / np.sqrt(d)):
        share = np.square(direction @ frames).sum(axis=1)
        assert fits(share, stats.beta(k / 2, (d - k) / 2).cdf)
    # Control: the test detects a law that prefers one axis.
    axes = stiefel_bingham(2.0 + np.eye(d)[2], k, batch("uniform", 10_000), 12, "mode").frames
    assert not fits(np.square(axes[:, 2]).sum(axis=1), stats.beta(k / 2, (d - k) / 2).cdf)


# ---- frames


def normals_of(frames: FloatArray) -> FloatArray:
    """Return the unit vector orthogonal to each (d, d - 1) frame, up to sign."""
    return np.linalg.qr(frames, mode="complete").Q[:, :, -1]


@pytest.mark.parametrize("values", [(8.0, 0.0, 0.0), (30.0, 12.0, 0.0), (500.0, 490.0, -20.0)])
def test_planes_in_space_are_complements_of_vectors(values: tuple[float, ...]) -> None:
    """For k = d - 1, the normal is exactly Bingham(-B)."""
    spectrum = np.array(values)
    frames = stiefel_bingham(spectrum, 2, batch("planes", 6_000), 12)
    normal = np.abs(normals_of(frames.frames))
    for axis in range(3):
        assert fits(normal[:, axis], coordinate_cdf(-spectrum, axis))
    # Control: the test detects a normal law whose two leading gaps are a quarter too large.
    assert not all(fits(normal[:, a], coordinate_cdf(-1.25 * spectrum, a)) for a in range(3))


@pytest.mark.parametrize("d", [4, 6])
def test_hyperplanes_are_complements_of_vectors(d: int) -> None:
    spectrum = 40.0 * np.linspace(1, 0, d) ** 2
    frames = stiefel_bingham(spectrum, d - 1, batch("hyperplanes", 4_000), 15)
    normal = np.square(normals_of(frames.frames))
    exact = np.square(sample_bingham(-spectrum, batch("exact", 40_000)).vectors)
    assert all(same_law(normal[:, i], exact[:, i]) for i in range(d))


@pytest.mark.parametrize("route", ["fast", "dense"])
def test_one_update_keeps_the_law(route: str) -> None:
    """Exact frames stay exact after one column update, which does not depend on convergence."""
    spectrum = np.array([30.0, 12.0, 0.0])
    size = 6_000 if route == "fast" else 3_000
    normal = sample_bingham(-spectrum, batch("start", size)).vectors
    plane = np.linalg.qr(normal[:, :, None], mode="complete").Q[:, :, 1:]
    streams = batch("step", size)
    plane = plane @ stiefel.uniform_frames(streams, 2, 2)
    law = column_draws.ColumnLaw.of(2 * (spectrum[0] - spectrum), 2)
    columns = np.ascontiguousarray(plane[:, :, :1])
    if route == "fast":
        column, success, _ = column_draws.fast_columns(law, columns, plane[:, :, 1], streams)
        assert success.all()
    else:
        column, _ = column_draws.dense_columns(law, columns, streams)
    sines = np.abs(np.cross(columns[:, :, 0], column))
    assert np.abs(sines - np.abs(normal)).mean() > 0.01  # The chain's update moved the column.
    assert all(fits(sines[:, a], coordinate_cdf(-spectrum, a)) for a in range(3))


@pytest.mark.parametrize(
    ("d", "k", "strength"),
    [
        (61, 2, 80.0),
        pytest.param(61, 5, 200.0, marks=pytest.mark.long),
        (30, 4, 15.0),
        (12, 3, 1000.0),
    ],
)
def test_first_row_of_a_frame(
    d: int, k: int, strength: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For B = diag(strength, 0, ..) the first row's squared length has a closed form for all k."""
    monkeypatch.setattr(column_draws, "DENSE_UP_TO", 0)
    values = np.zeros(d)
    values[0] = strength
    frames = stiefel_bingham(values, k, batch("row", 1_000), 10)
    share = np.square(frames.frames[:, 0]).sum(axis=1)
    assert frames.dense_updates == 0
    assert fits(share, share_cdf(strength, k, d))
    assert not fits(share, share_cdf(1.3 * strength, k, d))


def test_frames_and_their_complements_agree() -> None:
    """tr V'BV is constant minus the complement's: 3 columns under B leave 2 columns under -B."""
    spectrum = np.array([60.0, 45.0, 44.0, 10.0, 0.0])
    three = stiefel_bingham(spectrum, 3, batch("three", 3_000), 15)
    two = stiefel_bingham(-spectrum, 2, batch("two", 3_000), 15)
    rows_three = np.square(three.frames).sum(axis=2)
    rows_two = 1 - np.square(two.frames).sum(axis=2)
    assert all(same_law(rows_three[:, i], rows_two[:, i]) for i in range(5))
    assert not same_law(rows_three[:, 1], rows_two[:, 2] - 0.05)


@pytest.mark.parametrize("tilt", [1e-3, 0.3, 3.0])
@pytest.mark.parametrize("k", [2, 3])
def test_fast_and_dense_conditionals_are_the_same_law(k: int, tilt: float) -> None:
    """With equal fixed columns, both routes follow the restricted Bingham law.

    A small tilt leaves the fixed columns on the leading axes (a negative shift); a large tilt gives
    generic columns.
    """
    d = 8
    spectrum = np.array([300.0, 240.0, 60.0, 20.0, 8.0, 3.0, 1.0, 0.0])
    rng = generator(k, "tilt")
    frame = np.linalg.qr(np.eye(d, k - 1) + tilt * rng.standard_normal((d, k - 1))).Q
    law = column_draws.ColumnLaw.of(2 * (spectrum[0] - spectrum), k)

    complement = np.linalg.qr(frame, mode="complete").Q[:, k - 1 :]
    values, basis = np.linalg.eigh(complement.T @ (spectrum[:, None] * complement))
    # Compare with an independent sampler: the exact vector sampler on the restricted matrix.
    exact = sample_bingham(values, batch("conditional", 20_000)).vectors @ (complement @ basis).T

    copies = np.repeat(frame[None], 8_000, axis=0)
    start = np.repeat(complement[None, :, -1], 8_000, axis=0)
    fast, success, _ = column_draws.fast_columns(law, copies, start, batch("fast", 8_000))
    assert success.all()
    dense, _ = column_draws.dense_columns(law, copies[:1_500], batch("dense", 1_500))
    for columns in (fast, dense):
        assert np.abs(columns @ frame).max() < 1e-13
        assert all(same_law(np.abs(columns[:, i]), np.abs(exact[:, i])) for i in range(d))
        assert same_law(columns**2 @ spectrum, exact**2 @ spectrum)
        assert has_mean(np.sign(columns[:, -1]), 0.0)
    # Control: the test detects the conditional law of a spectrum that is a fifth larger.
    wrong = sample_bingham(1.2 * values, batch("wrong", 20_000)).vectors @ (complement @ basis).T
    assert not same_law(fast**2 @ spectrum, wrong**2 @ spectrum)


def test_inverted_ratio_is_caught_on_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a sampler without rejection fails the closed form of the first row."""
    monkeypatch.setattr(column_draws, "log_acceptance", lambda t, q: np.zeros_like(t))
    values = np.zeros(30)
    values[0] = 60.0
    frames = stiefel_bingham(values, 3, batch("row", 2_000), 6)
    assert not fits(np.square(frames.frames[:, 0]).sum(axis=1), share_cdf(60.0, 3, 30))


def test_dense_route_alone_has_the_right_law() -> None:
    values = np.zeros(6)
    values[0] = 25.0
    frames = stiefel_bingham(values, 3, batch("dense", 800), 5)
    assert frames.dense_updates == frames.updates
    assert fits(np.square(frames.frames[:, 0]).sum(axis=1), share_cdf(25.0, 3, 6))


@pytest.mark.parametrize(
    ("d", "k", "strength"),
    [(61, 5, 20.0), (13, 2, 1000.0), (30, 10, 60.0), (9, 7, 15.0)],
)
def test_first_row_of_a_frame_by_rejection(d: int, k: int, strength: float) -> None:
    """The column law also holds without a chain; for 7 of 9 columns the complement is sampled."""
    values = np.zeros(d)
    values[0] = strength
    frames = matrix_bingham(values, k, batch("rejected", 4_000))
    assert frames.exact
    share = np.square(frames.frames[:, 0]).sum(axis=1)
    assert fits(share, share_cdf(strength, k, d))
    assert not fits(share, share_cdf(1.5 * strength, k, d))


Change = Callable[[anchored.Envelope], anchored.Envelope]


def rejected(values: FloatArray, k: int, size: int, change: Change = lambda it: it) -> FloatArray:
    """Return frames by rejection at any cost, and never through their complements."""
    envelope = change(anchored.Envelope.of(2 * (values[0] - values), k))
    return anchored.exact_frames(envelope, k, batch("rejected", size), 0.3)[0]


@pytest.mark.parametrize(
    "values", [(8.0, 0.0, 0.0), (30.0, 12.0, 0.0), (500.0, 490.0, -20.0), (1.0, 0.5, 0.0)]
)
def test_planes_by_rejection_are_complements_of_vectors(values: tuple[float, ...]) -> None:
    spectrum = np.array(values)
    normal = np.abs(normals_of(rejected(spectrum, 2, 10_000)))
    assert all(fits(normal[:, axis], coordinate_cdf(-spectrum, axis)) for axis in range(3))


STEP = [12.0, 12.0, 12.0, 12.0, 12.0, 0.0]


def agrees_with_the_normal(values: list[float], change: Change = lambda it: it) -> bool:
    """Return whether hyperplanes by rejection are the complements of exact vectors.

    This check uses every part of the ratio: d - 1 columns, each of which depends on the others.
    """
    spectrum = np.array(values)
    d = len(spectrum)
    normal = np.square(normals_of(rejected(spectrum, d - 1, 10_000, change)))
    exact = np.square(sample_bingham(-spectrum, batch("exact", 40_000)).vectors)
    return all(same_law(normal[:, i], exact[:, i]) for i in range(d))


@pytest.mark.parametrize(
    "values", [STEP, [40.0, 18.0, 5.0, 0.0], [15.0] * 4 + [0.0] * 4, [30.0, 9.0, 8.0, 7.0, 1.0]]
)
def test_hyperplanes_by_rejection_are_complements_of_vectors(values: list[float]) -> None:
    assert agrees_with_the_normal(values)


@pytest.mark.parametrize("left_out", ["determinants", "bound", "copies"])
def test_a_part_of_the_ratio_left_out_is_caught(
    left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Controls: the tests detect frames that lack one part of the exact method."""
    shift = 0.0
    if left_out == "determinants":
        monkeypatch.setattr(anchored, "_log_slack", lambda small, *_: np.zeros(len(small)))
    elif left_out == "bound":  # This fault clips probabilities that exceed 1.
        shift = 0.7
    else:  # This fault omits the weights |x_j|^(k - j).
        original = anchored.Envelope.column

        def single(
            self: anchored.Envelope, j: int, later: FloatArray, normal: FloatArray
        ) -> tuple[FloatArray, FloatArray]:
            normal[:, 1 : later.shape[2] + 1] = 0.0
            return original(self, j, later, normal)

        monkeypatch.setattr(anchored.Envelope, "column", single)
    assert not agrees_with_the_normal(STEP, lambda it: replace(it, tops=it.tops - shift))


@pytest.mark.parametrize("k", [2, 5])
def test_rejection_and_chain_are_the_same_law(k: int) -> None:
    spectrum = np.array([9.0, 6.0, 3.0, 2.0, 1.0, 0.5, 0.0])
    exact = matrix_bingham(spectrum, k, batch("rejected", 4_000)).frames
    chain = stiefel_bingham(spectrum, k, batch("chain", 4_000), 6).frames
    rows_exact, rows_chain = (np.square(frames).sum(axis=2) for frames in (exact, chain))
    assert all(same_law(rows_exact[:, i], rows_chain[:, i]) for i in range(7))
    # Test the frame itself, not only its span: one entry, and the rotation within the span.
    assert same_law(exact[:, 0, 0], chain[:, 0, 0])
    assert same_law(exact[:, 1, k - 1], chain[:, 1, k - 1])
    wrong = stiefel_bingham(1.4 * spectrum, k, batch("wrong", 4_000), 6).frames
    assert not same_law(rows_exact @ spectrum, np.square(wrong).sum(axis=2) @ spectrum)


def test_frames_without_rejection_are_caught() -> None:
    """Control: the envelope's own law fails the closed form."""
    values = np.zeros(13)
    values[0] = 12.0
    frames = rejected(values, 2, 4_000, lambda it: replace(it, tops=it.tops - 100.0))
    assert not fits(np.square(frames[:, 0]).sum(axis=1), share_cdf(12.0, 2, 13))


@pytest.mark.parametrize(("d", "k", "strength"), [(61, 5, 20.0), (13, 2, 12.0), (9, 7, 15.0)])
def test_first_row_of_a_frame_of_a_wide_law(d: int, k: int, strength: float) -> None:
    values = np.zeros(d)
    values[0] = strength
    frames = matrix_bingham(values, k, batch("wide", 4_000), rejection=macg.rejected)
    assert frames.exact
    share = np.square(frames.frames[:, 0]).sum(axis=1)
    assert fits(share, share_cdf(strength, k, d))
    assert not fits(share, share_cdf(1.5 * strength, k, d))


def test_wide_frames_without_rejection_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: the envelope's own law fails the closed form."""
    original = macg._log_acceptance

    def always(normal: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        proposals, log_probability = original(normal, scale)
        return proposals, np.zeros_like(log_probability)

    monkeypatch.setattr(macg, "_log_acceptance", always)
    values = np.zeros(13)
    values[0] = 12.0
    frames = matrix_bingham(values, 2, batch("wide", 4_000), rejection=macg.rejected)
    assert not fits(np.square(frames.frames[:, 0]).sum(axis=1), share_cdf(12.0, 2, 13))
