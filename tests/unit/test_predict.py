"""The prediction agrees with closed forms, a second numerical method, limits, simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import METRICS, measure, optimum
from dpviz.core.problem import Budget
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.preparation.load import load_prepared
from dpviz.preparation.prepared import reference_variances
from dpviz.sampling.ensembles import symmetric
from dpviz.sampling.limits import FreeNoise, MarchenkoPasturLaw, SemiCircle, WishartDifferenceLaw
from dpviz.simulation.cells import evaluate
from dpviz.simulation.compare import run_cell
from dpviz.simulation.predict import (
    Prediction,
    components_found,
    direction_overlaps,
    predict,
)
from dpviz.simulation.simulate import Cell


def _digits() -> FloatArray:
    return load_prepared(Settings(table="digits")).moment.eigenvalues


DIGITS_N, DIGITS_D = 1797, 61


# Closed forms ----------------------------------------------------------------


def _semicircle_cdf(x: FloatArray) -> FloatArray:
    """Return the distribution function of the semicircle of edge 2."""
    inside: FloatArray = 0.5 + x * np.sqrt(4 - x * x) / (4 * math.pi) + np.arcsin(x / 2) / math.pi
    return inside


@pytest.mark.parametrize("level", [1e-3, 0.3])
def test_noise_alone_is_the_semicircle(level: float) -> None:
    d = 50
    prediction = predict(np.full(d, level), 3, SemiCircle(0.02, d))
    unit = (prediction.spectrum - level) / (0.02 * math.sqrt(d))
    assert _semicircle_cdf(unit) == pytest.approx((d - 0.5 - np.arange(d)) / d, abs=1e-8)
    assert prediction.overlaps == pytest.approx(np.full(d, 3 / d), abs=1e-9)


def test_noise_alone_is_the_marchenko_pastur_law() -> None:
    """The density of ratio y integrates to the quantiles' masses (trapezoid, 2e5 points)."""
    d, m, c = 40, 60, 0.01
    law = MarchenkoPasturLaw(m, c, d)
    spectrum = predict(np.full(d, 0.25), 1, law).spectrum - 0.25
    ((rate, size),) = law.matched.jumps
    low, high = size * (math.sqrt(rate) - 1) ** 2, size * (math.sqrt(rate) + 1) ** 2
    angle = (np.arange(200_000) + 0.5) * math.pi / 200_000
    x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    step = (high - low) / 2 * np.sin(angle) * math.pi / 200_000
    mass = np.cumsum(np.sqrt((high - x) * (x - low)) / (2 * math.pi * size * x) * step)
    assert mass[-1] == pytest.approx(1, abs=1e-9)
    expected = np.interp((d - 0.5 - np.arange(d)) / d, mass, x)
    assert spectrum == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("noise", [SemiCircle(0.02, 2000), WishartDifferenceLaw(0.5, 2000)])
def test_a_lone_spike_comes_near_its_closed_form_as_d_grows(noise: FreeNoise) -> None:
    """At d = 2000 the other 1999 directions together gain the variance that the spike loses."""
    values = np.zeros(2000)
    values[0] = 3 * noise.visible_above
    overlap = predict(values, 1, noise).overlaps[0]
    assert overlap == pytest.approx(float(noise.lone_overlap(values[0])), abs=2e-3)


# Components found -------------------------------------------------------------


def test_overlaps_of_single_directions_by_draws() -> None:
    """Overlaps agree with 300 samples (like waveform40, standard error at most .5/sqrt(300))."""
    d = 40
    values = np.concatenate([[0.141, 0.048], np.linspace(0.007, 0.005, d - 2)])
    noise = SemiCircle(7.5e-4, d)
    overlaps = direction_overlaps(values, noise)
    matrices = symmetric(Draws.trials(0, "found", range(300)), d) * 7.5e-4 + np.diag(values)
    vectors = np.linalg.eigh(matrices).eigenvectors[..., ::-1]
    squares = np.square(vectors.diagonal(axis1=1, axis2=2)).mean(axis=0)
    # Allow six standard errors, and .01 more because the formula is the limit for large d.
    assert np.abs(overlaps[:6] - squares[:6]).max() < 6 * 0.5 / math.sqrt(300) + 0.01
    assert components_found(values, noise) == 2 == (squares >= 0.5).sum()
    # An earlier rule, the threshold for a single spike, counted every eigenvalue as found.
    assert (values > noise.visible_above).sum() == d
    assert direction_overlaps(values, noise, 5) == pytest.approx(overlaps[:5], abs=1e-9)


def test_a_lone_component_is_found_where_its_closed_form_says_half() -> None:
    d = 400
    noise = SemiCircle(0.001, d)
    for factor, share in ((1.3, 0), (1.5, 1)):  # 1 - 1/factor^2 exceeds 1/2 above sqrt(2).
        values = np.zeros(d)
        values[0] = factor * noise.visible_above
        overlap = direction_overlaps(values, noise, 1)[0]
        assert overlap == pytest.approx(1 - 1 / factor**2, abs=0.02)
        assert components_found(values, noise) == share
    assert components_found(np.zeros(5), SemiCircle(0.1, 5)) == 0


def test_little_noise_finds_everything_and_overlaps_sum_to_at_most_d() -> None:
    values = np.linspace(1, 0.1, 12)
    assert components_found(values, SemiCircle(1e-6, 12)) == 12
    each = direction_overlaps(values, SemiCircle(0.03, 12))
    assert (each >= 0).all()
    assert each.sum() < 12


# A second numerical method ----------------------------------------------------


def _by_fixed_point(values: FloatArray, k: int, noise: FreeNoise, height: float) -> FloatArray:
    """Return the overlaps from a damped fixed point for g on a grid of z = x + i height."""
    law = noise.matched
    width = 1.5 * (law.edges[1] - law.edges[0])
    x = np.linspace(values.min() + law.edges[0] - width, values.max() + law.edges[1] + width, 6001)
    z = x + 1j * height
    g = 1 / (z - values.mean())
    for _ in range(3_000):
        R = law.variance * g + law.shift
        for rate, size in law.jumps:
            R = R + rate * size / (1 - size * g)
        new = (1 / (z[:, None] - R[:, None] - values)).mean(axis=1)
        g, change = (g + new) / 2, np.abs(new - g).max()
        if change < 1e-8:
            break
    R = law.variance * g + law.shift
    for rate, size in law.jumps:
        R = R + rate * size / (1 - size * g)
    density = -(1 / ((z - R)[:, None] - values)).imag / math.pi * (x[1] - x[0])
    above = density[::-1].cumsum(axis=0)
    total = above.sum(axis=1)
    return np.array([np.interp(k, total, each) for each in above.T])


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        SemiCircle(0.05, 12),
        SemiCircle(0.05, 12, tails=(3.0, 30.0)),
        WishartDifferenceLaw(0.1, 12),
        MarchenkoPasturLaw(13, 0.01, 12),
    ],
    ids=["semicircle", "laplace", "difference", "one-sided"],
)
@pytest.mark.parametrize("k", [1, 4])
def test_a_fixed_point_on_a_grid_agrees(noise: FreeNoise, k: int) -> None:
    """The grid loses mass of order height/width at its ends: allow 1 %."""
    values = np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.02, 0.01, 0, 0, 0, 0, 0])
    prediction = predict(values, k, noise)
    assert prediction.overlaps == pytest.approx(_by_fixed_point(values, k, noise, 1e-3), abs=0.01)


# Limits -----------------------------------------------------------------------

# Invariants ---------------------------------------------------------------------

SPECTRA = st.lists(
    st.one_of(st.just(0.0), st.just(0.25), st.floats(1e-9, 1.0)), min_size=2, max_size=40
).filter(lambda values: max(values) > 0)


def _descending(values: list[float]) -> FloatArray:
    return np.sort(np.array(values))[::-1]


def _law(which: int, scale: float, d: int) -> FreeNoise:
    return (
        SemiCircle(scale / math.sqrt(d), d),
        SemiCircle(scale / math.sqrt(d), d, tails=(3.0, 30.0)),
        WishartDifferenceLaw(scale, d),
        MarchenkoPasturLaw(d + 1, scale / d, d),
        MarchenkoPasturLaw(5 * d, scale / d, d),
    )[which]


@given(SPECTRA, st.integers(0, 4), st.floats(-7, 3), st.data())
def test_no_mass_is_lost_and_bounds_hold(
    listed: list[float], which: int, log_scale: float, data: st.DataObject
) -> None:
    values = _descending(listed)
    d = len(values)
    k = data.draw(st.integers(1, d))
    prediction = predict(values, k, _law(which, 10**log_scale, d))
    assert prediction.mass == pytest.approx(k, abs=1e-6)
    assert prediction.overlaps.sum() == pytest.approx(k, abs=1e-6)
    assert (np.diff(prediction.overlaps) <= 1e-7).all()  # A larger component is found better.
    assert k / d - 1e-7 <= prediction.captured_total
    assert prediction.captured_share <= 1 + 1e-9
    assert (np.diff(prediction.spectrum) <= 0).all()


@given(SPECTRA, st.integers(0, 4), st.floats(-3, 1), st.floats(1.01, 10))
def test_more_noise_never_captures_more(
    listed: list[float], which: int, log_scale: float, factor: float
) -> None:
    values = _descending(listed)
    law = _law(which, 10**log_scale, len(values))
    less, more = predict(values, 1, law), predict(values, 1, law.scaled(factor))
    assert more.captured_share <= less.captured_share + 1e-7


# Simulation -----------------------------------------------------------------------


def _simulated(key: str, k: int, epsilon: float, draws: int) -> tuple[Prediction, float, float]:
    table = load_prepared(Settings(table="digits"))
    mechanism, settings = parse_variant(key), Settings(k=k, epsilon=epsilon, delta=1e-4)
    problem, budget = table.problem(settings), table.budget(settings)
    cell = Cell(mechanism, problem, budget, 3, range(draws))
    shares = run_cell(cell, table, ["captured_share"]).metrics["captured_share"]
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    assert noise is not None
    prediction = predict(table.moment.eigenvalues, k, noise)
    return prediction, float(shares.mean()), float(shares.std(ddof=1)) / math.sqrt(draws)


@pytest.mark.parametrize(
    ("key", "k", "epsilon"),
    [
        ("wishart_difference", 2, 1.0),
        ("wishart_difference", 5, 3.0),
        ("gaussian", 2, 0.3),
        ("laplace", 1, 10.0),
        ("wishart", 1, 3.0),
        ("mod_sulq", 2, 3.0),
    ],
)
def test_the_predicted_share_is_the_simulated_one(key: str, k: int, epsilon: float) -> None:
    """Prediction and simulation agree within .02 (docs/prediction.md: .01) plus six errors."""
    prediction, mean, error = _simulated(key, k, epsilon, 150)
    assert abs(prediction.captured_share - mean) < 0.02 + 6 * error


def test_a_prediction_for_twice_the_noise_would_fail() -> None:
    prediction, mean, error = _simulated("wishart_difference", 2, 1.0, 150)
    double = predict(_digits(), 2, prediction.noise.scaled(2))
    assert abs(double.captured_share - mean) > 0.02 + 6 * error


@pytest.mark.parametrize(("epsilon", "expected"), [(0.3, 0.157), (1.0, 0.43), (3.0, 0.94)])
def test_digits_as_predicted_by_other_hands(epsilon: float, expected: float) -> None:
    """Predictions by other code agree (Wishart difference, k 2); simulations differ by .012."""
    noise = WishartDifferenceLaw(DIGITS_D / (DIGITS_N * epsilon), DIGITS_D)
    assert predict(_digits(), 2, noise).captured_share == pytest.approx(expected, abs=0.015)


def test_every_predicted_metric_is_near_its_draws() -> None:
    """Predicted metrics are near simulated ones: Wishart difference on digits, k 2, epsilon 2.

    Allow six standard errors, and five per cent. The limit is for large d, and for the projection
    distance and the noise norm it is their squares that are predicted.
    """
    table = load_prepared(Settings(table="digits"))
    settings = Settings(k=2, epsilon=2.0)
    problem = table.problem(settings)
    mechanism = parse_variant("wishart_difference")
    cell = Cell(mechanism, problem, Budget(2.0), 1, range(60))
    scores = measure(evaluate(cell, table))
    noise = mechanism.free_noise(mechanism.calibrate(problem, Budget(2.0)))
    assert noise is not None
    prediction = predict(table.moment.eigenvalues, 2, noise)
    number = 0
    for key in METRICS:
        value = prediction.metric(key, 2)
        if value is not None:
            error = scores[key].std(ddof=1) / math.sqrt(60)
            assert value == pytest.approx(scores[key].mean(), abs=0.05 * abs(value) + 6 * error), (
                key
            )
            number += 1
    assert number == 7


def test_shortened_rows_are_judged_by_the_reference() -> None:
    """Predictions by the reference agree with the mean to .02 plus six errors; others do not."""
    settings = Settings(table="breast_cancer", row_bound="quantile:0.5", k=1, epsilon=3.0)
    table = load_prepared(settings)
    problem, budget = table.problem(settings), table.budget(settings)
    mechanism = parse_variant("gaussian")
    cell = Cell(mechanism, problem, budget, 0, range(400))
    shares = run_cell(cell, table, ["captured_total"]).metrics["captured_total"]
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    assert noise is not None
    along = reference_variances(table)
    assert along is not None
    assert along.sum() == pytest.approx(table.reference.total)
    assert along.max() <= optimum(table.reference, 1) * (1 + 1e-12)
    prediction = predict(table.moment.eigenvalues, 1, noise, along)
    error = shares.std(ddof=1) / math.sqrt(400)
    assert abs(prediction.captured_total - shares.mean()) < 0.02 + 6 * error
