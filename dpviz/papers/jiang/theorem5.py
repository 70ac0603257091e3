"""Jiang, Xie and Zhang 2016, Theorem 5: queries with less noise from the Wishart mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpviz.accounting.sensitivity import l1_entries, nuclear
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part, Series
from dpviz.papers.jiang._shared import DIFFERENCE, LAPLACE, WISHART, ratio_draws
from dpviz.papers.measurements import Measurements, Point
from dpviz.simulation.bounds import StatedGrowth, wishart_over_laplace_scaling
from dpviz.simulation.growth import noise_norms

TIGHT = parse_variant("laplace_tight")
DIMENSIONS = (2, 3, 4, 6, 10, 20, 40, 80, 150, 250)
LARGE = 10  # Least d to which a power is fitted.
PANEL = "Theorem 5"
RATIO = "ratio of sensitivities at which the two noises are equal"
ADVANTAGE = "Laplace norm over Wishart norm, covariance query"

PRINTED = StatedGrowth("sqrt(d ln d)", 0.5, 0.5)
OWN_RATES = StatedGrowth("sqrt(d) ln d", 0.5, 1.0)

# These are the sensitivities of n A that the calibrations use. The l1 sensitivity is 2 d in
# Algorithm 1. Theorem 4's proof uses the nuclear sensitivity 3, although 2 is exact.
_L1_OVER_D = 2.0
_NUCLEAR = {WISHART: 3.0, DIFFERENCE: 2.0}

EQUAL = {WISHART: "Wishart against Laplace", DIFFERENCE: "Wishart difference against Laplace"}
QUERY = "the covariance query's own ratio, d/sqrt(2)"
PRINTED_CURVE = "as printed, sqrt(d ln d), scaled to d = 10"
OWN_CURVE = "by the paper's rates, sqrt(d) ln d, scaled to d = 10"
PAIRS = (
    (LAPLACE, WISHART, "as published"),
    (LAPLACE, DIFFERENCE, "Laplace as published, Wishart difference"),
    (TIGHT, DIFFERENCE, "tight Laplace, Wishart difference"),
)
SCALING = "sqrt(d), scaled to d = 10"


class PairPart(Part):
    """Two mechanisms, compared at every d."""

    laplace: str = ""
    wishart: str = ""
    draws: int = 0


class JiangTheorem5(Experiment):
    """Laplace against Wishart noise for queries of any sensitivity; see `info`."""

    pictures: ClassVar = {
        "ratio": (
            RATIO, *(Series(EQUAL[one], one.key) for one in (WISHART, DIFFERENCE)),
            QUERY, PRINTED_CURVE, OWN_CURVE,
        ),
        "advantage": (ADVANTAGE, *(Series(name, low.key) for _, low, name in PAIRS), SCALING),
    }  # fmt: skip

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each pair of mechanisms."""
        draws = 30 if effort is Effort.QUICK else 200
        return [PairPart("", one.text, two.text, draws) for one, two, _ in PAIRS]

    def run(self, part: PairPart, shared: None, seed: int) -> Measurements:
        """Return the ratio of noise norms at every d, and sensitivities that would make it 1."""
        upper, lower = parse_variant(part.laplace), parse_variant(part.wishart)

        def norms(mechanism: Mechanism, d: int) -> FloatArray:
            rng = generator(seed, "reproduce", self.key, mechanism.text, d)
            return noise_norms(mechanism, d, rng, draws=part.draws)

        pair = next(name for one, two, name in PAIRS if (one, two) == (upper, lower))
        advantage = {d: ratio_draws(norms(upper, d), norms(lower, d)) for d in DIMENSIONS}
        draws = {Point(PANEL, pair, ADVANTAGE, float(d)): v for d, v in advantage.items()}
        if upper == LAPLACE:
            # Noise is proportional to sensitivity. If the l1 sensitivity were r times the nuclear
            # one, Laplace over Wishart norm would change by the factor r/(calibrated ratio).
            inverse = {d: _inverse(values) for d, values in advantage.items()}
            for d, values in inverse.items():
                calibrated = _L1_OVER_D * d / _NUCLEAR[lower]
                draws[Point(PANEL, EQUAL[lower], RATIO, float(d))] = calibrated * values
        if (upper, lower) == (LAPLACE, WISHART):
            draws |= self._scalings(draws)
        return Measurements(draws)

    def _scalings(self, draws: Mapping[Point, FloatArray]) -> dict[Point, FloatArray]:
        """Return the curves of rates without constants, scaled to the measured value at d = 10."""
        equal = float(draws[Point(PANEL, EQUAL[WISHART], RATIO, float(LARGE))].mean())
        better = float(draws[Point(PANEL, PAIRS[0][2], ADVANTAGE, float(LARGE))].mean())
        found = {}
        for d in DIMENSIONS:
            values = {
                (PRINTED_CURVE, RATIO): equal * PRINTED.of(d) / PRINTED.of(LARGE),
                (OWN_CURVE, RATIO): equal * OWN_RATES.of(d) / OWN_RATES.of(LARGE),
                (QUERY, RATIO): _query_ratio(d),
                (SCALING, ADVANTAGE): better
                * wishart_over_laplace_scaling(d)
                / wishart_over_laplace_scaling(LARGE),
            }
            for (series, quantity), value in values.items():
                found[Point(PANEL, series, quantity, float(d))] = np.array([value])
        return found


def _inverse(ratio: FloatArray) -> FloatArray:
    """Return values for the inverse of a ratio of means, linear in the given values."""
    mean = float(ratio.mean())
    values: FloatArray = 1 / mean - (ratio - mean) / mean**2
    return values


def _query_ratio(d: int) -> float:
    """Return the l1 over the nuclear sensitivity of A, exact for even d."""
    problem = Problem(1_000, d, 1, Relation.REPLACE, Domain.ball(d))
    return l1_entries(problem) / nuclear(problem)
