"""Jiang, Xie and Zhang 2016: what their statements must show, and that the checks can fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpviz.core.errors import CannotRun
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.papers.jiang import _shared as _jiang
from dpviz.papers.jiang import (
    lemmas,
    statements,
    table1,
    theorem5,
    theorem6,
    theorems7_8,
    theorems9_10,
)
from dpviz.papers.jiang import sample_growth as growth
from dpviz.papers.jiang._shared import (
    DIFFERENCE,
    ETA,
    LAPLACE,
    MAIN,
    PPCA,
    RHO,
    STATEMENTS,
    WISHART,
    met,
    ratio_draws,
    settings_of,
    with_people,
)
from dpviz.papers.measurements import Found
from dpviz.papers.run import Findings
from dpviz.papers.said import ClaimAnswer, answer, said_of
from dpviz.preparation.bounding import prepare
from dpviz.sampling.ensembles import symmetric_laplace, wishart
from dpviz.simulation.bounds import fitted_power
from dpviz.simulation.growth import noise_norms
from tests.papers.conftest import as_draws, draws_along, draws_at, mean_at

Quick = Callable[[str], Findings]


# What is shared --------------------------------------------------------------


def share_interval(met: np.ndarray) -> tuple[float, float]:
    """Return the exact 95 % interval of a probability (Clopper and Pearson 1934)."""
    found = stats.binomtest(round(float(np.sum(met))), len(met)).proportion_ci(0.95, "exact")
    return float(found.low), float(found.high)


def test_a_fitted_power_by_hand() -> None:
    assert fitted_power((1, 10, 100), (2, 200, 20_000)) == pytest.approx((2.0, 0.0))
    # Two points: the slope of the logarithms, and their relative errors over the distance.
    power, error = fitted_power((1, math.e), (1.0, 5.0), (0.1, 0.5))
    assert power == pytest.approx(math.log(5))
    assert error == pytest.approx(0.1 * math.sqrt(2))


def test_draws_of_a_ratio_have_its_mean_and_its_spread() -> None:
    """Over 4,000 repetitions of 50 draws each the standard error is known to about 1 %."""
    rng = np.random.default_rng(0)
    upper, lower = 5 + rng.standard_normal((4_000, 50)), 2 + 0.5 * rng.standard_normal((4_000, 50))
    ratios = upper.mean(axis=1) / lower.mean(axis=1)
    draws = ratio_draws(upper[0], lower[0])
    assert draws.mean() == pytest.approx(ratios[0])
    spreads = [
        ratio_draws(*pair).std(ddof=1) / math.sqrt(50) for pair in zip(upper, lower, strict=True)
    ]
    assert np.mean(spreads) == pytest.approx(ratios.std(), rel=0.05)
    inverse = theorem5._inverse(draws)
    assert inverse.mean() == pytest.approx(1 / ratios[0])
    assert inverse.std() == pytest.approx(draws.std() / ratios[0] ** 2)


def test_the_interval_of_a_share() -> None:
    # All of N good: the lower end p has p^N = .025.
    assert share_interval(np.ones(80)) == pytest.approx((0.025 ** (1 / 80), 1.0))
    assert share_interval(np.zeros(80)) == pytest.approx((0.0, 1 - 0.025 ** (1 / 80)))


# Table 1 -----------------------------------------------------------------------


def test_norms_of_a_mechanism_that_is_not_a_scaled_noise() -> None:
    """SULQ's symmetric part is a GOE of scale s: its edge is sqrt(2 d) s.

    At d = 80 the mean norm lies 3 to 4 % below the edge, and 60 draws know it to .5 %.
    """
    d = 80
    norms = noise_norms(table1.SULQ, d, np.random.default_rng(0), draws=60)
    edge = math.sqrt(2 * d) * 2 * math.sqrt(2) * d * math.log(d / 1e-6)
    assert 0.94 < norms.mean() / edge < 1
    with pytest.raises(CannotRun, match="releases no matrix"):
        noise_norms(PPCA, 4, np.random.default_rng(0), draws=2)


def test_norms_at_d_400_reach_the_edges_of_their_limits(quick: Quick) -> None:
    """The mean lies 0 to 2 % below the edge there; 20 draws know it to .5 %."""
    found = quick("jiang_table1").found
    problem = Problem(1_000, 400, 1, Relation.REPLACE, Domain.ball(400))
    for mechanism in (*table1.STATED, *table1.ADDED):
        calibration = mechanism.calibrate(problem, Budget(1.0, 1e-6))
        edges = mechanism.spectrum_edges(calibration)
        assert edges is not None
        mean = mean_at(found, "Table 1", mechanism.label, table1.NORM, 400.0)
        assert 0.965 < mean.value / (max(map(abs, edges)) * problem.n) < 1.01, mechanism.key


def test_over_its_rate_only_the_wishart_falls_far(quick: Quick) -> None:
    found = quick("jiang_table1").found
    first = {
        mechanism.label: float(
            draws_along(found, "Table 1", mechanism.label, table1.OVER)[10.0].mean()
        )
        for mechanism in table1.STATED
    }
    # d ln d over d: ln(400)/ln(10) = 2.6.
    assert first.pop("Wishart") == pytest.approx(2.6, rel=0.2)
    assert all(0.7 < value < 1.45 for value in first.values())


# Theorem 5 -----------------------------------------------------------------------


def test_at_the_measured_ratio_the_noises_are_equal(quick: Quick) -> None:
    """Drawn without the mechanisms: Lap(l1/epsilon) against W_d(d + 1, nuclear/(2 epsilon) I).

    At d = 20 a norm varies by 7 % from draw to draw: 30 draws here and 400 there
    know the quotient to 2 %.
    """
    found, d = quick("jiang_theorem5").found, 20
    mean = mean_at(found, "Theorem 5", theorem5.EQUAL[WISHART], theorem5.RATIO, float(d))
    nuclear, draws = 0.7, Draws.batch(np.random.default_rng(0), 400)
    one = symmetric_laplace(draws, d) * (mean.value * nuclear)
    other = wishart(draws, d, d + 1) * (nuclear / 2)
    norms = [np.abs(np.linalg.eigvalsh(noise)).max(axis=1).mean() for noise in (one, other)]
    assert norms[0] / norms[1] == pytest.approx(1, abs=0.1)


# Theorem 6 -----------------------------------------------------------------------


def test_the_worst_noise_comes_up_to_the_bound() -> None:
    """At k = 1 and 2 ||W|| = u gap it turns by t with sin 2t = u."""
    measured = prepare(load("spiked"), Settings(table="spiked"))
    values = measured.moment.eigenvalues
    gap = float(values[0] - values[1])
    u = np.array([0.01, 0.5, 0.9, 0.9999])
    distances = theorem6._worst_distances(measured, 1, u * gap / 2, gap)
    assert distances == pytest.approx(math.sqrt(2) * np.sin(np.arcsin(u) / 2), rel=1e-6)
    over = theorem6._over_bound(1, u * gap / 2, gap, distances)
    assert 0.98 < over[-1] <= 1
    assert np.isnan(theorem6._over_bound(1, 1.01 * np.array([gap / 2]), gap, distances[:1])).all()


# Theorems 7 and 8 ------------------------------------------------------------------


def test_the_stated_n_is_enough_and_more_than_is_needed(quick: Quick) -> None:
    found = quick("jiang_theorems7_8")
    for table in theorems7_8.TABLES:
        for statement in STATEMENTS:
            shares = draws_at(found.found, table, statement.name, theorems7_8.SHARE)
            assert share_interval(shares)[0] >= 1 - ETA
        for mechanism, statement in MAIN.items():
            curve = draws_along(found.found, table, mechanism.label, theorems7_8.SHARE)
            assert curve[1 / 128].mean() < 0.5
            high = draws_at(found.found, table, mechanism.label, theorems7_8.ENOUGH)
            stated = draws_at(found.found, table, statement.name, theorems7_8.STATED)
            assert high[0] < stated[0]
        printed, ours = (
            draws_at(found.found, table, statement.name, theorems7_8.STATED)
            for statement in STATEMENTS[:2]
        )
        # (1 - rho^2)/sqrt((1 - rho^2)/2) at rho = .9, but for rounding up.
        assert ours[0] / printed[0] == pytest.approx(math.sqrt(2 * 0.19), rel=1e-3)


def test_a_component_is_found_where_its_overlap_reaches_rho() -> None:
    """At 600 people the overlap lies on both sides of .9; the eigenvectors are found anew."""
    measured, n = prepare(load("wine"), settings_of("wine", 0)), 600
    found = met(measured, WISHART, n, 60, seed=0)
    first = _jiang._FIRST
    draws = Draws.trials(0, WISHART.key, range(first, first + 60))
    noise = wishart(draws, measured.d, measured.d + 1) * (3 / (2 * n))
    overlaps = [
        abs(np.linalg.eigh(measured.moment.A + made)[1][:, -1] @ measured.moment.eigenvectors[:, 0])
        for made in noise
    ]
    assert found.tolist() == [float(overlap >= RHO) for overlap in overlaps]
    assert 5 < found.sum() < 58


def test_more_people_keep_the_second_moment() -> None:
    measured = prepare(load("wine"), Settings(table="wine"))
    for n in (50, 10_000):  # below and above the table's own 178
        changed = with_people(measured, n)
        assert changed.n == n
        np.testing.assert_array_equal(changed.moment.A, measured.moment.A)
        assert changed.reference is changed.moment


def test_the_need_falls_with_the_gap_and_grows_with_d(quick: Quick) -> None:
    found = quick("jiang_sample_growth").found
    for mechanism in growth.MECHANISMS:
        powers = {}
        for axis, panel in growth.PANELS.items():
            few, enough = (
                draws_along(found, panel, mechanism.label, what)
                for what in (growth.FEW, growth.ENOUGH)
            )
            first, last = min(few), max(few)
            span = np.log(last / first)
            powers[axis] = (
                float(np.log(few[last][0] / enough[first][0]) / span),
                float(np.log(enough[last][0] / few[first][0]) / span),
            )
        # Only n gap matters to additive noise; nearly so to PPCA.
        low, high = powers[growth.BY_GAP]
        assert low <= -1 <= high
        assert powers[growth.BY_D][1] > 0.5


# Theorems 9 and 10 -----------------------------------------------------------------


def _all(found: Findings, panel: str, series: str, quantity: str) -> Any:
    return np.concatenate(list(draws_along(found.found, panel, series, quantity).values()))


def test_the_excess_lies_between_0_and_twice_the_noise(quick: Quick) -> None:
    """No matrix of rank k comes closer than lambda_(k+1); Theorem 9's inequality is the other."""
    found = quick("jiang_theorems9_10")
    for name in (*theorems9_10.SPECTRA, theorems9_10.BY_K):
        for mechanism in theorems9_10.MECHANISMS:
            if name == theorems9_10.BY_K and mechanism not in (WISHART, DIFFERENCE):
                continue
            over = _all(found, name, mechanism.label, theorems9_10.SHARE)
            assert over.min() >= -1e-12
            assert over.max() <= 1
    # Half of the inequality is false: the check can fail.
    laplace = _all(found, theorems9_10.HARD, LAPLACE.label, theorems9_10.SHARE)
    assert laplace.max() > 0.5


def test_an_excess_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that swaps nothing: A = diag(.4, .2, .01, ...), noise diag(0, .1, 0, ...).

    The rank 2 matrix is diag(.4, .3), so that the error is .1 and the excess .09.
    """
    d, n = 6, theorems9_10.N

    def noise(self: Any, problem: Problem, draws: Draws) -> Any:
        made = np.zeros((draws.size, d, d))
        made[:, 1, 1] = 0.1
        return made

    def calibrate(self: Any, problem: Problem, budget: Budget) -> Calibration:
        return Calibration(problem, budget, 1.0)

    monkeypatch.setattr(type(WISHART), "standard_noise", noise)
    monkeypatch.setattr(type(WISHART), "calibrate", calibrate)
    excess, over = theorems9_10._excess(theorems9_10.TAIL, d, 2, WISHART, 3, 0)
    assert excess == pytest.approx(np.full(3, 0.09 * n))
    assert over == pytest.approx(np.full(3, 0.45))


# Lemmas and remarks ----------------------------------------------------------------


def test_the_work_of_subspace_iteration_is_counted(quick: Quick) -> None:
    """3 k d^2 + 2 k d + 2 k^2 d multiplications a step; steps do not grow with d."""
    found = quick("jiang_lemmas").found
    for d in lemmas.TIME_D:
        steps = draws_at(found, lemmas.TIME, "", lemmas.STEPS, float(d))
        work = draws_at(found, lemmas.TIME, "", lemmas.WORK, float(d))
        assert steps is not None
        assert work is not None
        each = 3 + (2 + 2 * lemmas.K) / d
        np.testing.assert_allclose(work, steps * each, rtol=1e-12)


def test_always_0_errs_beyond_d_over_epsilon_and_the_best_matrix_does_not() -> None:
    (said,) = (said for said in said_of("jiang") if said.key == "theorem-10-printed")
    always_0 = statements._zero(0, np.random.default_rng(0))
    found = answer(said, Found.of(as_draws(always_0)))
    assert found.answer is ClaimAnswer.NOT_REPRODUCED
    A = np.diag([70.0, 20.0, 10.0])
    best = np.diag([70.0, 0.0, 0.0])
    assert statements._beyond(A, np.zeros((3, 3)), 1, 2.0) == pytest.approx(50 / 1.5)
    assert statements._beyond(A, best, 1, 2.0) == pytest.approx(0.0)
    contrary = dict.fromkeys(always_0, np.array([statements._beyond(A, best, 1, 2.0)]))
    found = answer(said, Found.of(as_draws(contrary)))
    assert found.answer is ClaimAnswer.BOUND
