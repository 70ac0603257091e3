"""What the mechanisms that are not A plus one noise really draw, against the law they state.

Tolerances are those of `test_noise_laws`: a second moment of N independent normal entries has the
relative standard error sqrt(2/N), 6.1 of them are exceeded once in 1e9 by chance, and a scale that
is 2 % off must be seen.
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
    """Return whether the second moment of independent entries is that of N(0, std^2)."""
    relative = float(np.mean(np.square(sample)) / std**2 - 1)
    return abs(relative) <= Z * math.sqrt(2 / sample.size)


def check_goe(noise: FloatArray, scale: float) -> None:
    """Diagonal of std ``scale``, off it scale/sqrt(2); 2 % off must be seen."""
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
    """The second noise is taken where it is handed over: m = 5 of 6 dimensions."""
    data = table()
    assert data.rows is not None
    size = 4_000
    calibration = Funnel().calibrate(problem(relation), Budget(0.7, 1e-6))
    handed = []

    def noted(unit: FloatArray, first: FloatArray, second: FloatArray, *rest: object) -> FloatArray:
        handed.append(second)
        return looked_again(unit, first, second, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("dpviz.mechanisms.funnel.looked_again", noted)
    release = Funnel().release_many(data, calibration, draws("funnel", size))
    second = np.concatenate(handed)
    assert second.shape == (size, 5, 5)
    for noise in (release.raw - unit_moment(data.rows), second):
        diagonal = np.diagonal(noise, axis1=1, axis2=2)
        assert normal_of(diagonal, calibration.scale)
        assert not normal_of(0.9 * diagonal, calibration.scale)  # 20,000 entries resolve 6 %
    # the two looks are independent
    both = release.raw[:, 0, 0] - unit_moment(data.rows)[0, 0], second[:, 0, 0]
    assert abs(float(np.corrcoef(*both)[0, 1])) < Z / math.sqrt(size)


def test_spherical_wishart_difference_adds_the_stated_noise() -> None:
    """Diagonal: difference of two chi-squares with d + 1 degrees, variance 4 (d + 1), kurtosis
    3 + 12/(2 (d + 1)); off it the variance is 2 (d + 1) and the kurtosis 3 + 6/(2 (d + 1))."""
    data = table()
    assert data.rows is not None
    mechanism = SphericalWishartDifference()
    calibration = mechanism.calibrate(problem(), Budget(0.7))
    noise = mechanism.release_many(data, calibration, draws("wishart")).raw
    noise = (noise - unit_moment(data.rows)) / calibration.scale
    freedom = D + 1
    cases = (
        (np.diagonal(noise, axis1=1, axis2=2), 4.0 * freedom, 3 + 6 / freedom),
        # pairs without a common index are independent
        (noise[:, [0, 2, 4], [1, 3, 5]], 2.0 * freedom, 3 + 3 / freedom),
    )
    for sample, variance, kurtosis in cases:
        room = Z * math.sqrt((kurtosis - 1) / sample.size)
        assert abs(float(np.mean(np.square(sample))) / variance - 1) <= room
        for wrong in (0.97, 1.03):
            assert abs(float(np.mean(np.square(wrong * sample))) / variance - 1) > room


def test_separate_covariance_draws_its_eigenvalues_beside_the_matrix() -> None:
    """Sorting keeps the sum and the sum of squares of the noisy eigenvalues."""
    data = table()
    mechanism = SeparateCovariance(share=0.7)
    calibration = mechanism.calibrate(problem(), Budget(0.7, 1e-6))
    release = mechanism.release_many(data, calibration, draws("separate"))
    assert release.eigenvalues is not None
    std = calibration.values["values_std"]
    sums = release.eigenvalues.sum(axis=1) - data.total
    assert normal_of(sums, std * math.sqrt(D))
    assert not normal_of(0.95 * sums, std * math.sqrt(D))  # one number a draw resolves 3 %
    squares = np.square(release.eigenvalues).sum(axis=1)
    true = data.eigenvalues
    expected = float(np.square(true).sum()) + D * std**2
    # variance of (a + s z)^2 is 2 s^4 + 4 a^2 s^2
    error = math.sqrt(float((2 * std**4 + 4 * np.square(true) * std**2).sum()) / DRAWS)
    assert abs(float(squares.mean()) - expected) <= Z * error
    # directions and eigenvalues are independent: the trace does not follow the top direction
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
    # Which radius was drawn shows nowhere but in the release: find it by the least distance in
    # units of its own noise, on a table whose noise is turned down.
    quiet = calibration.__class__(
        calibration.problem, calibration.budget, 1e-12, calibration.parts, calibration.values
    )
    seen = mechanism.release_many(data, quiet, draws("clip"))
    radii = radii_of(calibration.problem)
    moments = np.array([clipped(data.rows, radius) for radius in radii])
    traces = np.trace(moments, axis1=1, axis2=2)
    assert seen.matrix is not None
    found = np.trace(seen.matrix, axis1=1, axis2=2)
    chosen = np.abs(found[:, None] - traces).argmin(axis=1)
    # radii above every row give the same moment: count them together
    probability = np.exp(log_odds(lengths, calibration))
    label = np.array(
        [int(np.flatnonzero(np.isclose(traces, trace, rtol=1e-9))[0]) for trace in traces]
    )
    counts = np.bincount(label[chosen], minlength=len(radii))
    expected = np.bincount(label, weights=probability, minlength=len(radii)) * DRAWS
    room = Z * np.sqrt(np.maximum(expected, 1.0)) + Z**2 / 3  # Bernstein
    assert (np.abs(counts - expected) <= room).all()
    # negative control: odds of a tenth more
    wrong = probability**1.1 / (probability**1.1).sum()
    tilted = np.bincount(label, weights=wrong, minlength=len(radii)) * DRAWS
    assert (np.abs(counts - tilted) > Z * np.sqrt(np.maximum(tilted, 1.0)) + Z**2 / 3).any()
    # and the noise is that of the radius drawn
    assert release.matrix is not None
    below = label[chosen] == chosen  # the radius itself is known, not only its moment
    relative = np.square(radii[chosen] / radii[0])[:, None, None]
    noise = (release.matrix - moments[chosen]) / relative
    several = below & (np.bincount(label, minlength=len(radii))[label[chosen]] == 1)
    assert several.sum() > 5_000
    check_goe(noise[several], calibration.scale)


@cache
def many_rows() -> SecondMoment:
    """A table of which the clipped mechanisms seek a radius."""
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
        pytest.param(ClippedPure(), marks=pytest.mark.long),  # a millisecond a draw
    ],
    ids=lambda m: m.text,
)
def test_clipped_mechanisms_scale_the_noise_of_the_radius_they_release(
    mechanism: ClippedGaussian | ClippedPure,
) -> None:
    """Also given the radius: the noise of its search is another."""
    data = many_rows()
    assert data.rows is not None
    where = Problem(data.n, D, 1, Relation.REPLACE, Domain.unbounded(D))
    pure = mechanism.info.guarantee == "pure"
    calibration = mechanism.calibrate(where, Budget(1.0, 0.0 if pure else 1e-6))
    # K-norm noise takes a thousandth of a second a draw
    slow = pure and mechanism.texts().get("noise") != PureLaw.WISHART
    size, wrongs = (16_000, (0.9, 1.1)) if slow else (DRAWS, (0.93, 1.07))
    release = mechanism.release_many(data, calibration, draws("clipped", size))
    assert release.matrix is not None
    assert release.radius is not None
    seen = 0
    for radius in np.unique(release.radius):
        picked = release.radius == radius
        if picked.sum() < size / 10:
            continue
        seen += 1
        noise = release.matrix[picked] / radius**2 - shortened_moment(data.rows, float(radius))
        if not pure:
            # a scale 2 % off must be seen: at 4,000 draws of 15 entries the room is .035 of squares
            diagonal = np.diagonal(noise, axis1=1, axis2=2)
            beside = noise[:, *np.triu_indices(D, 1)]
            assert normal_of(diagonal, calibration.scale)
            assert normal_of(beside, calibration.scale / math.sqrt(2))
            assert not normal_of(0.97 * beside, calibration.scale / math.sqrt(2))
            assert not normal_of(1.03 * beside, calibration.scale / math.sqrt(2))
        else:
            # pairs without a common index. W1 - W2 of scale 1/2: variance (d + 1)/2, kurtosis
            # 3 + 3/(d + 1); of any rotation-invariant noise (d E||N||^2 - E tr^2)/((d-1) d (d+2))
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
    assert seen >= 2


def test_the_searched_radius_has_the_law_of_ten_noisy_comparisons() -> None:
    """Every path of the two searches with its probability, by the normal distribution function.

    The negative control has counts with a tenth less noise.
    """
    data = many_rows()
    assert data.rows is not None
    where = Problem(data.n, D, 1, Relation.REPLACE, Domain.unbounded(D))
    calibration = ClippedGaussian().calibrate(where, Budget(1.0, 1e-6))
    lengths = np.sort(np.linalg.norm(data.rows, axis=1))
    values = calibration.values
    found = searched_radii(lengths, calibration, draws("search"))

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

    steps = np.round(4 * np.log2(found)).astype(int)

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
    seen = 0.5 + calibration.values["gap_std"] * again.normal(1)[:, 0]
    reach = projection_reach(where, seen - calibration.values["gap_margin"])
    std = reach / calibration.values["mu_of_release"]
    noise = (release.raw - np.diag([1.0, 0, 0, 0, 0, 0])) / std[:, None, None]
    check_goe(noise, 1.0)


def test_oja_adds_the_stated_noise_to_each_step() -> None:
    """With rows of zero, one step is the start plus noise; its overlap with the start is known.

    With the rate 1/(sigma sqrt(d)) and no gradient the last frame is proportional to
    w + z/sqrt(d), z standard normal: the mean squared overlap by quadrature over two parts.
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
    squared = np.square((np.array(overlaps) * release.raw[:, :, 0]).sum(axis=1))
    rng = generator(33, "overlap")
    z = rng.standard_normal((400_000, D)) / math.sqrt(D)
    z[:, 0] += 1
    expected = np.square(z[:, 0]) / np.square(z).sum(axis=1)
    error = math.sqrt(float(squared.var()) / size + float(expected.var()) / len(z))
    assert abs(float(squared.mean() - expected.mean())) <= Z * error
    # negative control: noise a tenth too small
    z[:, 0] -= 1
    z *= 0.9
    z[:, 0] += 1
    wrong = np.square(z[:, 0]) / np.square(z).sum(axis=1)
    assert abs(float(squared.mean() - wrong.mean())) > Z * error
