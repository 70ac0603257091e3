"""The reference line of pure mechanisms: noise with density exp(-nuclear norm/s)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from dpviz.base.seeding import Draws, generator
from dpviz.datasets import load
from dpviz.mechanisms.wishart_difference import WishartDifference
from dpviz.prepare.bounding import prepare
from dpviz.privacy.sensitivity import nuclear
from dpviz.settings import Settings
from dpviz.theory.bounds import nuclear_law_edge, nuclear_law_frobenius
from dpviz.tidy import curves
from dpviz.values.problem import Budget, Domain, Problem, Relation

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
    """Force of the potential |x| against the repulsion: |x| - the log potential is constant."""
    assert over_the_law(lambda t: 1.0) == pytest.approx(1.0, abs=1e-7)
    assert over_the_law(lambda t: t * t) == pytest.approx(EDGE**2 / 6, abs=1e-7)
    levels = [
        abs(x) - over_the_law(lambda t, x=x: math.log(abs(x - t)), x) for x in (0.1, 0.5, 1.0, 1.5)
    ]
    np.testing.assert_allclose(levels, levels[0], atol=1e-5)
    # negative control: with a support a tenth wider it is not
    wide = [1.1 * abs(x) - over_the_law(lambda t, x=x: math.log(abs(x - t)), x) for x in (0.1, 1.5)]
    assert abs(wide[0] - wide[1]) > 0.1


def test_a_metropolis_chain_of_the_eigenvalues_reaches_the_edge() -> None:
    """d = 40: the largest eigenvalue is within 8 % of the limit, and its mean square within 6 %.

    Finite d pulls the largest below the edge by order d^(-2/3) = 9 %; 300 sweeps leave a standard
    error of about 1 % on both.
    """
    d, rng = 40, generator(0, "nuclear")
    x = d * np.linspace(-1.2, 1.2, d)
    largest, squares = [], []
    for sweep in range(900):
        for i in range(d):
            proposed = x[i] + 6.0 * rng.standard_normal()
            others = np.delete(x, i)
            gain = np.log(np.abs(proposed - others)).sum() - np.log(np.abs(x[i] - others)).sum()
            if math.log(rng.random()) < gain - abs(proposed) + abs(x[i]):
                x[i] = proposed
        if sweep >= 300:
            largest.append(np.abs(x).max())
            squares.append(np.square(x).sum())
    assert np.mean(largest) == pytest.approx(nuclear_law_edge(d, 1.0, 1.0), rel=0.08)
    expected = nuclear_law_frobenius(d, 1.0, 1.0)
    assert math.sqrt(float(np.mean(squares))) == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("relation", Relation)
def test_the_wishart_difference_is_six_per_cent_above(relation: Relation) -> None:
    problem = Problem(1_000, 150, 1, relation, Domain.ball(150))
    mechanism = WishartDifference()
    calibration = mechanism.calibrate(problem, Budget(0.7))
    edges = mechanism.spectrum_edges(calibration)
    assert edges is not None
    line = nuclear_law_edge(150, nuclear(problem), 0.7)
    assert edges[1] / line == pytest.approx(3.3302 / math.pi, rel=1e-3)
    noise = calibration.scale * mechanism.standard_noise(problem, Draws.trials(0, "w", range(6)))
    norms = np.linalg.norm(noise, axis=(1, 2)) / nuclear_law_frobenius(150, nuclear(problem), 0.7)
    # rms sqrt(2) against pi/sqrt(6)
    assert norms.mean() == pytest.approx(math.sqrt(2) * math.sqrt(6) / math.pi, rel=0.02)


def test_the_line_is_drawn_for_norms_of_the_noise_alone() -> None:
    settings = Settings(table="wine")
    wine = prepare(load("wine"), settings)
    table = curves.known_table(wine, settings, "epsilon", [1.0, 0.1], "noise_spectral")
    assert set(table["label"]) == {"nuclear-norm law, pure"}
    expected = [math.pi * wine.d / wine.n / epsilon for epsilon in (0.1, 1.0)]
    assert list(table["value"]) == pytest.approx(expected)
    for metric in ("captured_share", "low_rank_error"):
        plain = curves.limit_table(wine, settings, "epsilon", [1.0], metric)
        assert curves.known_table(wine, settings, "epsilon", [1.0], metric).equals(plain)
