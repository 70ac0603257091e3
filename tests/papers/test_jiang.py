"""Jiang, Xie and Zhang 2016: the statements' required results, and checks that can fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.papers.jiang import _shared as _jiang
from dpviz.papers.jiang import sample_growth as growth
from dpviz.papers.jiang import (
    statements,
    table1,
    theorem6,
    theorems7_8,
    theorems9_10,
)
from dpviz.papers.jiang._shared import (
    DIFFERENCE,
    ETA,
    LAPLACE,
    MAIN,
    RHO,
    STATEMENTS,
    WISHART,
    met,
    settings_of,
    with_people,
)
from dpviz.papers.measurements import Found
from dpviz.papers.run import Findings
from dpviz.papers.said import ClaimAnswer, answer, said_of
from dpviz.preparation.bounding import prepare
from dpviz.sampling.ensembles import wishart
from tests.papers.conftest import as_draws, draws_along, draws_at, mean_at

Quick = Callable[[str], Findings]


# Shared helpers --------------------------------------------------------------


def share_interval(met: np.ndarray) -> tuple[float, float]:
    """Return the exact 95 % interval of a probability (Clopper and Pearson 1934)."""
    interval = stats.binomtest(round(float(np.sum(met))), len(met)).proportion_ci(0.95, "exact")
    return float(interval.low), float(interval.high)


# Table 1 -----------------------------------------------------------------------


def test_norms_at_d_400_reach_the_edges_of_their_limits(quick: Quick) -> None:
    """The mean is 0 to 2 % below the edge at d = 400; 20 releases determine it to within .5 %."""
    points = quick("jiang_table1").found
    problem = Problem(1_000, 400, 1, Relation.REPLACE, Domain.ball(400))
    for mechanism in (*table1.STATED, *table1.ADDED):
        calibration = mechanism.calibrate(problem, Budget(1.0, 1e-6))
        edges = mechanism.spectrum_edges(calibration)
        assert edges is not None
        mean = mean_at(points, "Table 1", mechanism.label, table1.NORM, 400.0)
        assert 0.965 < mean.value / (max(map(abs, edges)) * problem.n) < 1.01, mechanism.key


def test_over_its_rate_only_the_wishart_falls_far(quick: Quick) -> None:
    points = quick("jiang_table1").found
    first = {
        mechanism.label: float(
            draws_along(points, "Table 1", mechanism.label, table1.OVER)[10.0].mean()
        )
        for mechanism in table1.STATED
    }
    # The expected ratio of errors is d ln d to d: ln(400)/ln(10) = 2.6.
    assert first.pop("Wishart") == pytest.approx(2.6, rel=0.2)
    assert all(0.7 < value < 1.45 for value in first.values())


# Theorem 5 -----------------------------------------------------------------------


# Theorem 6 -----------------------------------------------------------------------


def test_the_worst_noise_comes_up_to_the_bound() -> None:
    """At k = 1 and 2 ||W|| = u gap, the worst noise turns the direction by t with sin 2t = u."""
    table = prepare(load("spiked"), Settings(table="spiked"))
    values = table.moment.eigenvalues
    gap = float(values[0] - values[1])
    u = np.array([0.01, 0.5, 0.9, 0.9999])
    distances = theorem6._worst_distances(table, 1, u * gap / 2, gap)
    assert distances == pytest.approx(math.sqrt(2) * np.sin(np.arcsin(u) / 2), rel=1e-6)
    over = theorem6._over_bound(1, u * gap / 2, gap, distances)
    assert 0.98 < over[-1] <= 1
    assert np.isnan(theorem6._over_bound(1, 1.01 * np.array([gap / 2]), gap, distances[:1])).all()


# Theorems 7 and 8 ------------------------------------------------------------------


def test_the_stated_n_is_enough_and_more_than_is_needed(quick: Quick) -> None:
    result = quick("jiang_theorems7_8")
    for table in theorems7_8.TABLES:
        for statement in STATEMENTS:
            shares = draws_at(result.found, table, statement.name, theorems7_8.SHARE)
            assert share_interval(shares)[0] >= 1 - ETA
        for mechanism, statement in MAIN.items():
            curve = draws_along(result.found, table, mechanism.label, theorems7_8.SHARE)
            assert curve[1 / 128].mean() < 0.5
            high = draws_at(result.found, table, mechanism.label, theorems7_8.ENOUGH)
            n = draws_at(result.found, table, statement.name, theorems7_8.STATED)
            assert high[0] < n[0]
        n_paper, ours = (
            draws_at(result.found, table, statement.name, theorems7_8.STATED)
            for statement in STATEMENTS[:2]
        )
        # Apart from rounding up, the ratio is (1 - rho^2)/sqrt((1 - rho^2)/2) at rho = .9.
        assert ours[0] / n_paper[0] == pytest.approx(math.sqrt(2 * 0.19), rel=1e-3)


def test_a_component_is_found_where_its_overlap_reaches_rho() -> None:
    """At 600 people, overlaps lie on both sides of .9; the test recomputes the eigenvectors."""
    table, n = prepare(load("wine"), settings_of("wine", 0)), 600
    hits = met(table, WISHART, n, 60, seed=0)
    first = _jiang._FIRST
    draws = Draws.trials(0, WISHART.key, range(first, first + 60))
    noise = wishart(draws, table.d, table.d + 1) * (3 / (2 * n))
    overlaps = [
        abs(np.linalg.eigh(table.moment.A + made)[1][:, -1] @ table.moment.eigenvectors[:, 0])
        for made in noise
    ]
    assert hits.tolist() == [float(overlap >= RHO) for overlap in overlaps]
    assert 5 < hits.sum() < 58


def test_more_people_keep_the_second_moment() -> None:
    table = prepare(load("wine"), Settings(table="wine"))
    for n in (50, 10_000):  # Test fewer and more than the table's 178 rows.
        larger = with_people(table, n)
        assert larger.n == n
        np.testing.assert_array_equal(larger.moment.A, table.moment.A)
        assert larger.reference is larger.moment


def test_the_need_falls_with_the_gap_and_grows_with_d(quick: Quick) -> None:
    points = quick("jiang_sample_growth").found
    for mechanism in growth.MECHANISMS:
        powers = {}
        for axis, panel in growth.PANELS.items():
            few, enough = (
                draws_along(points, panel, mechanism.label, what)
                for what in (growth.FEW, growth.ENOUGH)
            )
            first, last = min(few), max(few)
            span = np.log(last / first)
            powers[axis] = (
                float(np.log(few[last][0] / enough[first][0]) / span),
                float(np.log(enough[last][0] / few[first][0]) / span),
            )
        # The error of additive noise depends only on the product n gap, and PPCA's error nearly so.
        low, high = powers[growth.BY_GAP]
        assert low <= -1 <= high
        assert powers[growth.BY_D][1] > 0.5


# Theorems 9 and 10 -----------------------------------------------------------------


def _all(found: Findings, panel: str, series: str, quantity: str) -> Any:
    return np.concatenate(list(draws_along(found.found, panel, series, quantity).values()))


def test_the_excess_lies_between_0_and_twice_the_noise(quick: Quick) -> None:
    """No rank-k matrix is closer than lambda_(k+1), the lower end; Theorem 9 gives the upper."""
    result = quick("jiang_theorems9_10")
    for name in (*theorems9_10.SPECTRA, theorems9_10.BY_K):
        for mechanism in theorems9_10.MECHANISMS:
            if name == theorems9_10.BY_K and mechanism not in (WISHART, DIFFERENCE):
                continue
            over = _all(result, name, mechanism.label, theorems9_10.SHARE)
            assert over.min() >= -1e-12
            assert over.max() <= 1
    # Control: one measurement exceeds half of the bound, so the check of the bound can fail.
    laplace = _all(result, theorems9_10.HARD, LAPLACE.label, theorems9_10.SHARE)
    assert laplace.max() > 0.5


# Lemmas and remarks ----------------------------------------------------------------


def test_always_0_errs_beyond_d_over_epsilon_and_the_best_matrix_does_not() -> None:
    (statement,) = (said for said in said_of("jiang") if said.key == "theorem-10-printed")
    always_0 = statements._zero(0, np.random.default_rng(0))
    claim = answer(statement, Found.of(as_draws(always_0)))
    assert claim.answer is ClaimAnswer.NOT_REPRODUCED
    A = np.diag([70.0, 20.0, 10.0])
    best = np.diag([70.0, 0.0, 0.0])
    assert statements._beyond(A, np.zeros((3, 3)), 1, 2.0) == pytest.approx(50 / 1.5)
    assert statements._beyond(A, best, 1, 2.0) == pytest.approx(0.0)
    contrary = dict.fromkeys(always_0, np.array([statements._beyond(A, best, 1, 2.0)]))
    claim = answer(statement, Found.of(as_draws(contrary)))
    assert claim.answer is ClaimAnswer.BOUND
