"""Mechanisms other than A plus one noise: their actual noise follows the stated law.

Tolerances are as in `test_noise_laws`. A second moment of N independent normal entries has the
relative standard error sqrt(2/N); chance exceeds 6.1 standard errors once in 1e9. A scale that is 2
% off must be detected.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import shortened_moment
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._clipped import unit_moment
from dpviz.mechanisms._funnel import looked_again
from dpviz.mechanisms._pure import PureLaw
from dpviz.mechanisms.adaptive_clip_gaussian import AdaptiveClipGaussian, log_odds, radii_of
from dpviz.mechanisms.clipped_gaussian import ClippedGaussian
from dpviz.mechanisms.clipped_gaussian import radii_of as searched_radii
from dpviz.mechanisms.clipped_pure import ClippedPure
from dpviz.mechanisms.funnel import Funnel
from dpviz.mechanisms.oja import Oja
from dpviz.mechanisms.separate_covariance import SeparateCovariance
from dpviz.mechanisms.smooth_gap import SmoothGap, projection_reach
from dpviz.mechanisms.spherical import Spherical
from dpviz.mechanisms.spherical_wishart_difference import SphericalWishartDifference
from dpviz.sampling.nuclear import square_means

Z = 6.1
D, N, DRAWS = 6, 400, 40_000


@cache
def table() -> SecondMoment:
    rows = generator(31, "table").standard_normal((N, D)) * np.linspace(1, 0.2, D)
    rows /= np.linalg.norm(rows, axis=1).max()
    A = rows.T @ rows / N
    return SecondMoment((A + A.T) / 2, N, rows)


def problem(relation: Relation = Relation.REPLACE, k: int = 1) -> Problem:
    return Problem(N, D, k, relation, Domain.ball(D))


def draws(name: str, size: int = DRAWS) -> Draws:
    return Draws.batch(generator(32, name), size)


def normal_of(sample: FloatArray, std: float) -> bool:
    """Return whether independent entries have the second moment of N(0, std^2)."""
    relative = float(np.mean(np.square(sample)) / std**2 - 1)
    return abs(relative) <= Z * math.sqrt(2 / sample.size)


def check_goe(noise: FloatArray, scale: float) -> None:
    """Check std ``scale`` on the diagonal, scale/sqrt(2) off it; detect a scale that is 2 % off."""
    diagonal = np.diagonal(noise, axis1=1, axis2=2)
    upper = np.triu_indices(D, 1)
    for sample, std in ((diagonal, scale), (noise[:, *upper], scale / math.sqrt(2))):
        assert normal_of(sample, std)
        assert not normal_of(0.98 * sample, std)
        assert not normal_of(1.02 * sample, std)


@pytest.mark.parametrize("relation", Relation)
def test_spherical_adds_a_goe_to_the_moment_of_unit_rows(relation: Relation) -> None:
    data = table()
    assert data.rows is not None
    calibration = Spherical().calibrate(problem(relation), Budget(0.7, 1e-6))
    release = Spherical().release_many(data, calibration, draws("sphere"))
    check_goe(release.raw - unit_moment(data.rows), calibration.scale)


@pytest.mark.parametrize("relation", Relation)
def test_both_looks_of_the_funnel_have_the_stated_noise(
    relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both noises have the stated law; the second noise is read when passed on (m = 5 of 6)."""
    data = table()
    assert data.rows is not None
    size = 4_000
    calibration = Funnel().calibrate(problem(relation), Budget(0.7, 1e-6))
    looks = []

    def noted(data: SecondMoment, first: FloatArray, second: FloatArray, *rest: object) -> object:
        looks.append(second)
        return looked_again(data, first, second, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("dpviz.mechanisms.funnel.looked_again", noted)
    release = Funnel().release_many(data, calibration, draws("funnel", size))
    second = np.concatenate(looks)
    assert second.shape == (size, 5, 5)
    for noise in (release.raw - unit_moment(data.rows), second):
        diagonal = np.diagonal(noise, axis1=1, axis2=2)
        assert normal_of(diagonal, calibration.scale)
        assert not normal_of(0.9 * diagonal, calibration.scale)  # 20,000 entries detect 6 % errors.
    # The noises of the mechanism's two steps are independent of each other.
    both = release.raw[:, 0, 0] - unit_moment(data.rows)[0, 0], second[:, 0, 0]
    assert abs(float(np.corrcoef(*both)[0, 1])) < Z / math.sqrt(size)


def test_spherical_wishart_difference_adds_the_stated_noise() -> None:
    """On the diagonal: difference of two chi-squares with d + 1 degrees, variance 4 (d + 1),
    kurtosis 3 + 12/(2 (d + 1)). Off the diagonal the variance is 2 (d + 1) and the kurtosis 3 +
    6/(2 (d + 1))."""
    data = table()
    assert data.rows is not None
    mechanism = SphericalWishartDifference()
    calibration = mechanism.calibrate(problem(), Budget(0.7))
    noise = mechanism.release_many(data, calibration, draws("wishart")).raw
    noise = (noise - unit_moment(data.rows)) / calibration.scale
    freedom = D + 1
    cases = (
        (np.diagonal(noise, axis1=1, axis2=2), 4.0 * freedom, 3 + 6 / freedom),
        # Use entries whose index pairs share no index, because these entries are independent.
        (noise[:, [0, 2, 4], [1, 3, 5]], 2.0 * freedom, 3 + 3 / freedom),
    )
    for sample, variance, kurtosis in cases:
        room = Z * math.sqrt((kurtosis - 1) / sample.size)
        assert abs(float(np.mean(np.square(sample))) / variance - 1) <= room
        for wrong in (0.97, 1.03):
            assert abs(float(np.mean(np.square(wrong * sample))) / variance - 1) > room


def test_separate_covariance_draws_its_eigenvalues_beside_the_matrix() -> None:
    """The eigenvalues have their own noise; sorting keeps their sum and sum of squares."""
    data = table()
    mechanism = SeparateCovariance(share=0.7)
    calibration = mechanism.calibrate(problem(), Budget(0.7, 1e-6))
    release = mechanism.release_many(data, calibration, draws("separate"))
    assert release.eigenvalues is not None
    std = calibration.values["values_std"]
    sums = release.eigenvalues.sum(axis=1) - data.total
    assert normal_of(sums, std * math.sqrt(D))
    assert not normal_of(0.95 * sums, std * math.sqrt(D))  # One number per sample detects 3 %.
    squares = np.square(release.eigenvalues).sum(axis=1)
    true = data.eigenvalues
    expected = float(np.square(true).sum()) + D * std**2
    # For a standard normal z, the variance of (a + s z)^2 is 2 s^4 + 4 a^2 s^2.
    error = math.sqrt(float((2 * std**4 + 4 * np.square(true) * std**2).sum()) / DRAWS)
    assert abs(float(squares.mean()) - expected) <= Z * error
    # Directions and eigenvalues are independent: the top direction does not predict the trace.
    tilt = np.square(release.components[:, 0, 0])
    correlation = float(np.corrcoef(tilt, sums)[0, 1])
    assert abs(correlation) <= Z / math.sqrt(DRAWS)


def test_adaptive_clipping_follows_its_odds_and_scales_its_noise() -> None:
    data = table()
    assert data.rows is not None
    mechanism = AdaptiveClipGaussian(share=0.5)
    calibration = mechanism.calibrate(problem(), Budget(0.05, 1e-6))
    release = mechanism.release_many(data, calibration, draws("clip"))
    lengths = np.linalg.norm(data.rows, axis=1)
    # A release does not state which radius it used. So release the same table again with almost no
    # noise: the nearest moment then reveals the radius.
    quiet = calibration.__class__(
        calibration.problem, calibration.budget, 1e-12, calibration.parts, calibration.values
    )
    clip = mechanism.release_many(data, quiet, draws("clip"))
    radii = radii_of(calibration.problem)
    moments = np.array([clipped(data.rows, radius) for radius in radii])
    traces = np.trace(moments, axis1=1, axis2=2)
    assert clip.matrix is not None
    traces_there = np.trace(clip.matrix, axis1=1, axis2=2)
    places = np.abs(traces_there[:, None] - traces).argmin(axis=1)
    # Count all radii above the longest row together, because they give the same moment.
    probability = np.exp(log_odds(np.sort(lengths), calibration))
    label = np.array(
        [int(np.flatnonzero(np.isclose(traces, trace, rtol=1e-9))[0]) for trace in traces]
    )
    counts = np.bincount(label[places], minlength=len(radii))
    expected = np.bincount(label, weights=probability, minlength=len(radii)) * DRAWS
    room = Z * np.sqrt(np.maximum(expected, 1.0)) + Z**2 / 3  # Bernstein
    assert (np.abs(counts - expected) <= room).all()
    # Control: the test detects log odds that are larger by a tenth.
    wrong = probability**1.1 / (probability**1.1).sum()
    odds = np.bincount(label, weights=wrong, minlength=len(radii)) * DRAWS
    assert (np.abs(counts - odds) > Z * np.sqrt(np.maximum(odds, 1.0)) + Z**2 / 3).any()
    # The scale of the noise must match the clipping radius that was sampled.
    assert release.matrix is not None
    below = label[places] == places  # These moments identify the sampled radius itself.
    relative = np.square(radii[places] / radii[0])[:, None, None]
    noise = (release.matrix - moments[places]) / relative
    several = below & (np.bincount(label, minlength=len(radii))[label[places]] == 1)
    assert several.sum() > 5_000
    check_goe(noise[several], calibration.scale)


@cache
def many_rows() -> SecondMoment:
    """Return a table on which the clipped mechanisms search for a radius."""
    rng = generator(34, "many")
    rows = rng.standard_normal((4_000, D)) * np.linspace(1, 0.2, D)
    rows *= np.exp(rng.standard_normal((4_000, 1)))
    A = rows.T @ rows / len(rows)
    return SecondMoment((A + A.T) / 2, len(rows), rows)


@pytest.mark.parametrize(
    "mechanism",
    [
        ClippedGaussian(),
        ClippedPure(noise=PureLaw.WISHART),
        pytest.param(ClippedPure(), marks=pytest.mark.long),  # A sample takes a millisecond.
    ],
    ids=lambda m: m.text,
)
def test_clipped_mechanisms_scale_the_noise_of_the_radius_they_release(
    mechanism: ClippedGaussian | ClippedPure,
) -> None:
    """The noise scales with the released radius, independently of the search's own noise."""
    data = many_rows()
    assert data.rows is not None
    where = Problem(data.n, D, 1, Relation.REPLACE, Domain.unbounded(D))
    pure = mechanism.info.guarantee == "pure"
    calibration = mechanism.calibrate(where, Budget(1.0, 0.0 if pure else 1e-6))
    # K-norm noise takes a millisecond per sample, so use fewer samples of it.
    slow = pure and mechanism.texts().get("noise") != PureLaw.WISHART
    size, wrongs = (16_000, (0.9, 1.1)) if slow else (DRAWS, (0.93, 1.07))
    release = mechanism.release_many(data, calibration, draws("clipped", size))
    assert release.matrix is not None
    assert release.radius is not None
    count = 0
    for radius in np.unique(release.radius):
        mask = release.radius == radius
        if mask.sum() < size / 10:
            continue
        count += 1
        noise = release.matrix[mask] / radius**2 - shortened_moment(data.rows, float(radius))
        if not pure:
            # Detect a scale 2 % off: 4,000 samples of 15 entries have an error of .035 in squares.
            diagonal = np.diagonal(noise, axis1=1, axis2=2)
            beside = noise[:, *np.triu_indices(D, 1)]
            assert normal_of(diagonal, calibration.scale)
            assert normal_of(beside, calibration.scale / math.sqrt(2))
            assert not normal_of(0.97 * beside, calibration.scale / math.sqrt(2))
            assert not normal_of(1.03 * beside, calibration.scale / math.sqrt(2))
        else:
            # Use index pairs without a common index. W1 - W2 of scale 1/2 has variance (d + 1)/2
            # and kurtosis 3 + 3/(d + 1). Invariant noise has (d E||N||^2 - E tr^2)/((d-1) d (d+2)).
            sample = noise[:, [0, 2, 4], [1, 3, 5]] / calibration.scale
            square, trace = square_means(D)
            exact = (D * square - trace) / ((D - 1) * D * (D + 2))
            if mechanism.texts().get("noise") == PureLaw.WISHART:
                exact = (D + 1) / 2
            fourth = float(np.mean(sample**4)) / exact**2
            assert fourth < 4
            room = Z * math.sqrt((fourth - 1) / sample.size)
            relative = float(np.mean(np.square(sample))) / exact - 1
            assert abs(relative) <= room
            for wrong in wrongs:
                assert abs(wrong**2 * (1 + relative) - 1) > room
    assert count >= 2


def test_the_searched_radius_has_the_law_of_ten_noisy_comparisons() -> None:
    """The radius has the law from summing all paths of the two searches with the normal cdf.

    Control: counts with a tenth less noise are detected.
    """
    data = many_rows()
    assert data.rows is not None
    where = Problem(data.n, D, 1, Relation.REPLACE, Domain.unbounded(D))
    calibration = ClippedGaussian().calibrate(where, Budget(1.0, 1e-6))
    lengths = np.sort(np.linalg.norm(data.rows, axis=1))
    values = calibration.values
    draws_of = searched_radii(lengths, calibration, draws("search"))

    def up(radius: float, rank: float, std: float) -> float:
        count = int((lengths > radius).sum())
        return 0.5 * math.erfc((rank - count) / (std * math.sqrt(2)))

    def law(less: float) -> dict[float, float]:
        def below(radii: list[float], rank: float, std: float) -> dict[float, float]:
            if len(radii) == 1:
                return {radii[0]: 1.0}
            middle = (len(radii) - 1) // 2
            chance = up(radii[middle], rank, less * std)
            parts = ((radii[middle + 1 :], chance), (radii[: middle + 1], 1 - chance))
            return {
                radius: share * p
                for half, share in parts
                for radius, p in below(half, rank, std).items()
            }

        whole: dict[float, float] = {}
        octaves = [2.0**j for j in range(-32, 32)]
        for base, p in below(octaves, data.n / 2, values["octave_std"]).items():
            fine = [base * 2.0 ** ((j - 3) / 4) for j in range(16)]
            for radius, q in below(fine, values["rank"], values["fine_std"]).items():
                key = round(4 * math.log2(radius))
                whole[key] = whole.get(key, 0.0) + p * q
        return whole

    steps = np.round(4 * np.log2(draws_of)).astype(int)

    def apart(expected: dict[float, float]) -> bool:
        assert sum(expected.values()) == pytest.approx(1.0)
        return any(
            abs((steps == key).sum() - DRAWS * p) > Z * math.sqrt(max(DRAWS * p, 1.0)) + Z**2 / 3
            for key, p in expected.items()
        )

    assert not apart(law(1.0))
    assert apart(law(0.9))


def clipped(rows: FloatArray, radius: float) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    short = rows * np.minimum(1.0, radius / lengths)
    moment: FloatArray = short.T @ short / len(rows)
    return moment


def test_the_gap_test_draws_the_noise_of_the_gap_it_saw() -> None:
    data = SecondMoment(np.diag([0.6, 0.1, 0.1, 0.1, 0.05, 0.05]), 10**6)
    where = Problem(10**6, D, 1, Relation.ZERO_OUT, Domain.ball(D))
    mechanism = SmoothGap()
    calibration = mechanism.calibrate(where, Budget(1.0, 1e-6))
    release = mechanism.release_many(data, calibration, draws("gap"))
    again = draws("gap")
    gaps = 0.5 + calibration.values["gap_std"] * again.normal(1)[:, 0]
    reach = projection_reach(where, gaps - calibration.values["gap_margin"])
    std = reach / calibration.values["mu_of_release"]
    noise = (release.raw - np.diag([1.0, 0, 0, 0, 0, 0])) / std[:, None, None]
    check_goe(noise, 1.0)


def test_oja_adds_the_stated_noise_to_each_step() -> None:
    """If all rows are zero, a step is the start plus noise, whose overlap with the start is known.

    With the rate 1/(sigma sqrt(d)) and no gradient, the last frame is proportional to w +
    z/sqrt(d), with z standard normal. Quadrature over two parts gives the mean squared overlap.
    """
    zero = SecondMoment(np.zeros((D, D)), N, np.zeros((N, D)))
    mechanism = Oja(steps=1)
    calibration = mechanism.calibrate(problem(), Budget(1.0, 1e-6))
    size = 10_000
    release = mechanism.release_many(zero, calibration, draws("oja", size))
    again = draws("oja", size)
    overlaps = []
    for single in again.single():
        start = np.linalg.qr(single.normal(D, 1)[0]).Q[:, 0]
        single.uniform(N)
        single.normal(D, 1)
        overlaps.append(start)
    squares = np.square((np.array(overlaps) * release.raw[:, :, 0]).sum(axis=1))
    rng = generator(33, "overlap")
    z = rng.standard_normal((400_000, D)) / math.sqrt(D)
    z[:, 0] += 1
    expected = np.square(z[:, 0]) / np.square(z).sum(axis=1)
    error = math.sqrt(float(squares.var()) / size + float(expected.var()) / len(z))
    assert abs(float(squares.mean() - expected.mean())) <= Z * error
    # Control: the test detects noise that is a tenth too small.
    z[:, 0] -= 1
    z *= 0.9
    z[:, 0] += 1
    wrong = np.square(z[:, 0]) / np.square(z).sum(axis=1)
    assert abs(float(squares.mean() - wrong.mean())) > Z * error
