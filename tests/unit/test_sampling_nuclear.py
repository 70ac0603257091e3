"""Noise with density exp(-nuclear norm): conditional laws, moments and the limiting law."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import integrate

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms.knorm import KNorm
from dpviz.mechanisms.wishart_difference import WishartDifference
from dpviz.sampling import nuclear
from dpviz.sampling.limits import NuclearLaw
from dpviz.sampling.nuclear import (
    _KEPT,
    LARGEST_D,
    eigenvalues_at,
    nuclear_eigenvalues,
    nuclear_noise,
    square_means,
)
from dpviz.simulation.predict import predict

Polynomial = list[mpmath.mpf]  # A polynomial lists its coefficients, lowest order first.


def times(first: Polynomial, second: Polynomial) -> Polynomial:
    product = [mpmath.mpf(0)] * (len(first) + len(second) - 1)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            product[i + j] += a * b
    return product


def at(polynomial: Polynomial, x: mpmath.mpf) -> mpmath.mpf:
    total = mpmath.mpf(0)
    for coefficient in reversed(polynomial):
        total = total * x + coefficient
    return total


def solved(polynomial: Polynomial, rate: int) -> Polynomial:
    """Return q with (exp(rate t) q)' = exp(rate t) polynomial."""
    solution = [mpmath.mpf(0)] * len(polynomial)
    for j in range(len(polynomial) - 1, -1, -1):
        above = (j + 1) * solution[j + 1] if j + 1 < len(polynomial) else 0
        solution[j] = (polynomial[j] - above) / rate
    return solution


def log_pfaffian(functions: list[Polynomial], x: mpmath.mpf) -> mpmath.mpf:
    """Return ln Pf A(x) for phi_i = polynomial exp(-|t|), with every integral in closed form."""
    below, zero = [], mpmath.mpf(0)
    lefts = [solved(p, 1) for p in functions]
    right = [solved(p, -1) for p in functions]
    starts = [at(q, zero) for q in lefts]

    def integral(i: int, y: mpmath.mpf) -> mpmath.mpf:
        if y <= 0:
            return mpmath.exp(y) * at(lefts[i], y)
        return starts[i] + mpmath.exp(-y) * at(right[i], y) - at(right[i], zero)

    size = len(functions)
    below = [integral(i, x) for i in range(size)]
    skew = mpmath.zeros(size + size % 2)
    low = min(x, zero)
    for i in range(size):
        for k in range(i):
            product = solved(times(lefts[i], functions[k]), 2)
            total = mpmath.exp(2 * low) * at(product, low)
            if x > 0:
                constant = starts[i] - at(right[i], zero)
                total += constant * (mpmath.exp(-x) * at(right[k], x) - at(right[k], zero))
                product = solved(times(right[i], functions[k]), -2)
                total += mpmath.exp(-2 * x) * at(product, x) - at(product, zero)
            skew[i, k] = 2 * total - below[i] * below[k]
            skew[k, i] = -skew[i, k]
    if size % 2:
        for i in range(size):
            skew[i, size], skew[size, i] = below[i], -below[i]
    return mpmath.log(abs(mpmath.det(skew))) / 2


def conditional(values: FloatArray, place: int) -> float:
    """Return P(l_place is at most its value, given the values above it), from 60 digits."""
    with mpmath.workdps(60):
        above = [mpmath.mpf(float(value)) for value in values[:place]]
        product: Polynomial = [mpmath.mpf(1)]
        for value in above:
            product = times(product, [value, mpmath.mpf(-1)])
        functions = [[mpmath.mpf(0)] * power + product for power in range(len(values) - len(above))]
        top = above[-1] if above else mpmath.mpf(400)
        here = mpmath.mpf(float(values[place]))
        return float(mpmath.exp(log_pfaffian(functions, here) - log_pfaffian(functions, top)))


@pytest.mark.parametrize("d", [2, 3, 6, 13])
def test_every_conditional_law_agrees_with_60_digits(d: int) -> None:
    uniforms = generator(1, "uniforms", d).random((2, d))
    values = eigenvalues_at(uniforms)
    places = range(d) if d < 10 else (0, 1, 5, 6, 11, 12)
    for row, uniform in zip(values, uniforms, strict=True):
        assert (np.diff(row) < 0).all()
        for place in places:
            assert conditional(row, place) == pytest.approx(uniform[place], abs=1e-11)
        neighbour = row.copy()
        neighbour[1] += 1e-6  # Control: the law detects a smaller change.
        assert conditional(neighbour, 1) != pytest.approx(uniform[1], abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "room"), [(30, 1e-10), (61, 1e-7), (LARGEST_D, 5e-6)])
def test_the_last_law_agrees_with_quadrature(d: int, room: float) -> None:
    """The last of d steps, which has all earlier rounding, agrees with quadrature."""
    uniforms = generator(2, "uniforms", d).random((3, d))
    points, weights = np.polynomial.legendre.leggauss(40)
    for values, uniform in zip(eigenvalues_at(uniforms), uniforms[:, -1], strict=True):
        others, last = values[:-1], float(values[-1])
        end = float(others[-1])

        def log_density(x: FloatArray, others: FloatArray = others) -> FloatArray:
            value: FloatArray = np.log(np.abs(x[..., None] - others)).sum(axis=-1) - np.abs(x)
            return value

        top = log_density(np.linspace(end - 30, end, 2_001)[:-1]).max()

        def mass(low: float, high: float, top: float = top) -> float:
            """Integrate over quarters, cut at 0, because the density is smooth on each quarter."""
            cuts = np.unique(np.concatenate([np.arange(low, high, 0.25), [high, min(0.0, high)]]))
            half = np.diff(cuts) / 2
            nodes = ((cuts[:-1] + cuts[1:]) / 2)[:, None] + half[:, None] * points
            return float((half[:, None] * weights * np.exp(log_density(nodes) - top)).sum())

        share = mass(end - 60, last) / (mass(end - 60, last) + mass(last, end))
        assert share == pytest.approx(uniform, abs=room)
        assert mass(end - 60, last + 1e-3) > mass(end - 60, last) * (1 + 1e-5)


def test_small_cases_are_exact() -> None:
    """d = 1: Laplace. d = 2: E||M||_F^2 = 25/3 and E(tr M)^2 = 20/3, by hand from the density."""
    uniforms = np.array([[0.1], [0.5], [0.975]])
    expected = [math.log(0.2), 0.0, -math.log(0.05)]
    np.testing.assert_allclose(eigenvalues_at(uniforms)[:, 0], expected, atol=1e-12)
    assert square_means(1) == pytest.approx((2.0, 2.0), rel=1e-13)
    assert square_means(2) == pytest.approx((25 / 3, 20 / 3), rel=1e-13)
    fractions = [Fraction(value).limit_denominator(1_000) for value in square_means(3)]
    assert fractions == [Fraction(150, 7), Fraction(96, 7)]


def test_a_batch_has_the_bytes_of_its_draws_and_bad_sizes_are_refused() -> None:
    batch = nuclear_noise(Draws.trials(3, "one", range(4)), 5)
    single = [nuclear_noise(Draws.trials(3, "one", [trial]), 5) for trial in range(4)]
    assert batch.tobytes() == np.concatenate(single).tobytes()
    assert (batch == batch.transpose(0, 2, 1)).all()
    for d in (0, LARGEST_D + 1):
        with pytest.raises(InvalidSetting, match=f"from 1 to {LARGEST_D}; got .{d}"):
            nuclear_eigenvalues(Draws.trials(3, "one", [0]), d)


# The limiting law --------------------------------------------------------------------------------

EDGE = math.pi / 2


def density(x: float) -> float:
    return math.acosh(EDGE / abs(x)) / (math.pi * EDGE)


def over_the_law(f: object, *points: float) -> float:
    """Integrate f times the density over [-EDGE, EDGE], split at singular points."""
    ends = sorted({-EDGE, 0.0, EDGE, *points})
    total = 0.0
    for low, high in pairwise(ends):
        value, _ = integrate.quad(lambda t: f(t) * density(t), low, high, limit=200)  # type: ignore[operator]
        total += value
    return total


def test_the_law_is_in_equilibrium_and_has_the_stated_moments() -> None:
    """In equilibrium |x| balances the repulsion: |x| minus the log potential is constant."""
    law = NuclearLaw(EDGE)
    assert over_the_law(lambda t: 1.0) == pytest.approx(1.0, abs=1e-7)
    assert over_the_law(lambda t: t * t) == pytest.approx(law.spread**2, abs=1e-7)
    assert law.spread == pytest.approx(EDGE / math.sqrt(6))
    levels = [
        abs(x) - over_the_law(lambda t, x=x: math.log(abs(x - t)), x) for x in (0.1, 0.5, 1.0, 1.5)
    ]
    np.testing.assert_allclose(levels, levels[0], atol=1e-5)
    # Control: with a support that is 10 % wider, the law is not in equilibrium.
    wide = [1.1 * abs(x) - over_the_law(lambda t, x=x: math.log(abs(x - t)), x) for x in (0.1, 1.5)]
    assert abs(wide[0] - wide[1]) > 0.1


def test_the_transform_is_that_of_the_law() -> None:
    """K inverts the Cauchy transform; its slope is 0 at the edge; cumulants 2 and 4 agree."""
    law = NuclearLaw(EDGE)
    for z in (1.7, 2.5, 6.0):
        g = over_the_law(lambda t, z=z: 1 / (z - t))
        assert float(law.k_transform(g)) == pytest.approx(z, rel=1e-6)
    critical = 1 / law.visible_above
    assert float(law.k_slope(critical)) == pytest.approx(0.0, abs=1e-12)
    assert float(law.k_transform(critical)) == pytest.approx(law.edges[1])
    small, match = 0.1 / EDGE, law.matched
    true, near = (float(one.r_transform(small)) for one in (law, match))
    assert near == pytest.approx(true, rel=2e-6)  # Both laws differ only at order 6.
    assert law.scaled(2.0).edges[1] == pytest.approx(math.pi)
    assert float(law.lone_overlap(3.0)) == pytest.approx(
        (EDGE / 3) ** 2 * math.cos(EDGE / 3) / math.sin(EDGE / 3) ** 2
    )


@pytest.mark.slow
def test_the_largest_eigenvalue_nears_the_edge_and_the_wishart_difference_is_six_above() -> None:
    """Finite d pulls the largest below the edge by order d^(-2/3): 7 % at 61, with spread 2 %."""
    d = 61
    problem = Problem(1_000, d, 1, Relation.REPLACE, Domain.ball(d))
    edges = [
        mechanism.spectrum_edges(mechanism.calibrate(problem, Budget(0.7)))
        for mechanism in (KNorm(), WishartDifference())
    ]
    assert edges[0] is not None
    assert edges[1] is not None
    assert edges[1][1] / edges[0][1] == pytest.approx(3.3302 / math.pi, rel=1e-3)
    assert edges[0][1] == pytest.approx(math.pi * d / 1_000 / 0.7)
    values = nuclear_eigenvalues(Draws.trials(0, "edge", range(12)), d)
    assert values[:, 0].mean() == pytest.approx(EDGE * d, rel=0.1)
    assert math.sqrt(square_means(d)[0] / d) == pytest.approx(EDGE * d / math.sqrt(6), rel=0.03)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_predictions_agree_with_draws(epsilon: float) -> None:
    """At d = 30, k = 2 the predicted share agrees with 60 samples, whose error is below .01."""
    d, k, n = 30, 2, 2_000
    rng = generator(5, "spectrum")
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = 0.5 * 0.8 ** np.arange(d) / np.sum(0.8 ** np.arange(d))
    moment = SecondMoment((basis * values) @ basis.T, n)
    mechanism = KNorm()
    problem = Problem(n, d, k, Relation.REPLACE, Domain.ball(d))
    calibration = mechanism.calibrate(problem, Budget(epsilon))
    components = mechanism.release_many(
        moment, calibration, Draws.trials(0, "knorm", range(60))
    ).components
    captured_share = np.einsum("sik,ij,sjk->s", components, moment.A, components).mean()
    expected = predict(moment.eigenvalues, k, mechanism.free_noise(calibration))
    assert captured_share / values[:k].sum() == pytest.approx(expected.captured_share, abs=0.03)


def test_explored_noise_is_kept_and_a_release_s_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored noise equals the streams' own noise, and leaves the streams in the same state."""

    def stream() -> Draws:
        return Draws.trials(3, "kept", range(3))

    _KEPT.clear()  # At its limit, the memory drops an old entry for each new one.
    one_by_one = [nuclear_noise(draw, 4)[0] for draw in stream().single()]
    assert not _KEPT
    first, again = stream(), stream()
    noise = nuclear_noise(first, 4)
    noise[:] = 0.0  # A caller cannot change the stored noise.
    np.testing.assert_array_equal(nuclear_noise(again, 4), one_by_one)
    np.testing.assert_array_equal(first.normal(2), again.normal(2))
    nuclear_noise(Draws.trials(3, "others", range(2)), 4)
    assert len(_KEPT) == 5
    monkeypatch.setattr(nuclear, "_in_blocks", None)  # Only stored noise can now be used.
    np.testing.assert_array_equal(nuclear_noise(stream().single()[0], 4)[0], one_by_one[0])
