"""Jiang, Xie and Zhang 2016, Theorem 5: which queries get less noise from the Wishart mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.base.seeding import generator
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.privacy.sensitivity import l1_entries, nuclear
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part, Series
from dpviz.reproduce.jiang._shared import (
    DIFFERENCE,
    LAPLACE,
    NO_DATA,
    PAPER,
    REFUTED,
    URL,
    WISHART,
    Power,
    power_line,
    ratio_draws,
)
from dpviz.reproduce.lines import Agreement, Line, above
from dpviz.reproduce.measurements import Mean, Measurements, Point
from dpviz.reproduce.verdicts import Claim, judged, of_item
from dpviz.run.growth import noise_norms
from dpviz.theory.bounds import wishart_over_laplace_scaling
from dpviz.theory.growth import StatedGrowth
from dpviz.values.problem import Domain, Problem, Relation

TIGHT = parse_variant("laplace_tight")
DIMENSIONS = (2, 3, 4, 6, 10, 20, 40, 80, 150, 250)
LARGE = 10  # powers are fitted from here on
PANEL = "Theorem 5"
RATIO = "ratio of sensitivities at which the two noises are equal"
ADVANTAGE = "Laplace norm over Wishart norm, covariance query"

PRINTED = StatedGrowth("sqrt(d ln d)", 0.5, 0.5)
OWN_RATES = StatedGrowth("sqrt(d) ln d", 0.5, 1.0)
RATES_ADVANTAGE = StatedGrowth("sqrt(d)/ln d", 0.5, -1.0)

# l1 and nuclear sensitivity of n A for which each is calibrated: 2 d in Algorithm 1, and 3 in
# Theorem 4's proof where 2 is exact.
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


@dataclass(frozen=True)
class PairPart(Part):
    """Two mechanisms at every d."""

    laplace: str = ""
    wishart: str = ""
    draws: int = 0


class JiangTheorem5(Experiment):
    """Laplace against Wishart noise for queries of any sensitivity; see `info`."""

    info = Info(
        title="When Wishart noise is smaller than Laplace noise",
        paper=PAPER,
        url=URL,
        place="Theorem 5",
        about="For any symmetric query, Laplace noise is scaled to the l1 sensitivity and Wishart "
        "noise to the nuclear one. The theorem says that the Wishart is better where their ratio "
        "is of a larger order than sqrt(d ln d), and that otherwise Laplace is. The norms of "
        "both noises tell the ratio at which they are equal.",
        settings=(
            "Laplace norm of order l1 sqrt(d)/(n epsilon), Wishart norm of order "
            "nuclear d ln d/(n epsilon); the covariance query has an l1 sensitivity of at most 2d "
            "and a nuclear one of at most 3",
        ),
        choices=(
            NO_DATA,
            "As printed, the threshold is sqrt(d ln d). The paper's two rates above it give "
            "sqrt(d) ln d, and without the logarithm, which the noise does not have, sqrt(d). "
            "The curves of the first two are scaled to the measured ratio at d = 10, as they "
            "have no constants.",
            "Ratios of every size occur: where rows have at most s <= d/2 entries that are not "
            "zero, it is s.",
            f"d from 2 to 250, 200 draws of each noise at each d; powers are fitted from "
            f"d = {LARGE} on.",
            "Wishart difference and the tight Laplace noise are added.",
        ),
        cautions=(REFUTED,),
        slot=11,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each pair of mechanisms."""
        draws = 30 if effort is Effort.QUICK else 200
        return [PairPart("", one.text, two.text, draws) for one, two, _ in PAIRS]

    def run(self, part: Part, shared: None, seed: int) -> Measurements:
        """Return the ratio of the norms at every d, and the sensitivities that would even them."""
        assert isinstance(part, PairPart)
        upper, lower = parse_variant(part.laplace), parse_variant(part.wishart)

        def norms(mechanism: Mechanism, d: int) -> FloatArray:
            rng = generator(seed, "reproduce", self.key, mechanism.text, d)
            return noise_norms(mechanism, d, rng, draws=part.draws)

        pair = next(name for one, two, name in PAIRS if (one, two) == (upper, lower))
        advantage = {d: ratio_draws(norms(upper, d), norms(lower, d)) for d in DIMENSIONS}
        draws = {Point(PANEL, pair, ADVANTAGE, float(d)): v for d, v in advantage.items()}
        if upper == LAPLACE:
            # Noises grow with their sensitivity: at l1/nuclear = r the Laplace norm is
            # r/(calibrated ratio) times as large beside the Wishart's.
            inverse = {d: _inverse(values) for d, values in advantage.items()}
            for d, values in inverse.items():
                calibrated = _L1_OVER_D * d / _NUCLEAR[lower]
                draws[Point(PANEL, EQUAL[lower], RATIO, float(d))] = calibrated * values
        if (upper, lower) == (LAPLACE, WISHART):
            draws |= self._scalings(draws)
        return Measurements(draws)

    def _scalings(self, draws: Mapping[Point, FloatArray]) -> dict[Point, FloatArray]:
        """Return the curves without constants, scaled to what was measured at d = 10."""
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

    def lines(self, found: Measurements) -> list[Line]:
        """Return the threshold's growth, the covariance query, and the theorem's two halves."""
        equal = found.curve(PANEL, EQUAL[WISHART], RATIO)
        power = Power.of(equal, LARGE)
        places = power.places if power is not None else (10.0, 250.0)
        over = Power.of(found.curve(PANEL, PAIRS[0][2], ADVANTAGE), LARGE)
        other = Power.of(found.curve(PANEL, EQUAL[DIFFERENCE], RATIO), LARGE)
        no_logarithm = (
            "The norm of Wishart noise grows like d and not d ln d, so that the two noises are "
            "equal at a ratio of order sqrt(d), a power of .5."
        )
        lines = [
            power_line(
                PANEL, "ratio at which the noises are equal, as printed", PRINTED.label,
                PRINTED.power_over(places), power,
                why="Neither what the paper's rates give nor what is measured. " + no_logarithm +
                " So the theorem's first half stays true, and its second does not.",
            ),
            _derived(
                "the same by the paper's rates",
                f"{OWN_RATES.label} would have a power of {OWN_RATES.power_over(places):.3g}; "
                f"{power.text if power is not None else 'nothing'} is measured. " + no_logarithm,
                power,
            ),
            power_line(
                PANEL, "the same for Wishart difference", "", None, other, why="",
            ),
            _derived(
                "how much less noise Wishart adds than Laplace",
                f"The rates make it {RATES_ADVANTAGE.label}, a power of "
                f"{RATES_ADVANTAGE.power_over(places):.3g}; without the logarithm it is sqrt(d).",
                over,
            ),
            _query_line(found),
        ]  # fmt: skip
        lines += [
            above(
                PANEL,
                "covariance query: Wishart noise below Laplace noise",
                "the ratio is of order d, so the Wishart mechanism is better",
                found.curve(PANEL, PAIRS[0][2], ADVANTAGE),
                _constant(1.0),
                why="The theorem is about large d.",
                note="No d that can be told is too small for it.",
            ),
            *(_first(found, name) for _, _, name in PAIRS),
            above(
                PANEL,
                "a query of ratio sqrt(d): Laplace is better",
                "not of a larger order than sqrt(d ln d), so Laplace works better",
                equal,
                {float(d): np.full(2, math.sqrt(d)) for d in DIMENSIONS},
                why="Rates leave out constants: the noises are equal near a ratio of .7 sqrt(d), "
                "so that at sqrt(d), as with rows of sqrt(d) entries, the Wishart is better.",
            ),
            above(
                PANEL,
                "a query of ratio 1: Laplace is better",
                "not of a larger order than sqrt(d ln d), so Laplace works better",
                {d: values for d, values in equal.items() if d >= LARGE},
                _constant(1.0),
                why="At small d the constants decide.",
                note=f"Looked at from d = {LARGE} on. Such as a query of diagonal matrices.",
            ),
        ]
        return lines

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers to the theorem's two halves."""
        lines = self.lines(found)
        return [
            judged(
                "the Wishart mechanism works better where l1 over nuclear sensitivity is of a "
                "larger order than sqrt(d ln d)",
                of_item(lines, "covariance query: Wishart noise below Laplace noise"),
                because="So for the covariance query, whose ratio is of order d: the noises are "
                "equal near .7 sqrt(d) already.",
            ),
            judged(
                "otherwise the Laplace mechanism works better",
                [
                    *of_item(lines, "a query of ratio sqrt(d): Laplace is better"),
                    *of_item(lines, "a query of ratio 1: Laplace is better"),
                ],
                why="True of a ratio of 1. At sqrt(d), of a smaller order than sqrt(d ln d), the "
                "Wishart mechanism adds less noise at every d: the noises are equal near .7 "
                "sqrt(d).",
            ),
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return the ratio at which noises are equal, and how far apart they are for PCA."""
        return (
            Chart(
                name="ratio",
                title="Above the measured curve the Wishart mechanism adds less noise",
                quantity=RATIO,
                x_label="d",
                y_label="l1 over nuclear sensitivity",
                series=(
                    Series(EQUAL[WISHART], WISHART.key),
                    Series(EQUAL[DIFFERENCE], DIFFERENCE.key),
                    Series(QUERY),
                    Series(PRINTED_CURVE),
                    Series(OWN_CURVE),
                ),
                log_x=True,
                log_y=True,
            ),
            Chart(
                name="advantage",
                title="How many times smaller Wishart noise is, covariance query",
                quantity=ADVANTAGE,
                x_label="d",
                y_label="Laplace norm over Wishart norm",
                series=(
                    *(Series(name, lower.key) for _, lower, name in PAIRS),
                    Series(SCALING),
                ),
                log_x=True,
                log_y=True,
            ),
        )


def _inverse(ratio: FloatArray) -> FloatArray:
    """Return draws of one over a ratio of means, linear in the same draws."""
    mean = float(ratio.mean())
    values: FloatArray = 1 / mean - (ratio - mean) / mean**2
    return values


def _constant(value: float) -> dict[float, FloatArray]:
    return {float(d): np.full(2, value) for d in DIMENSIONS}


def _query_ratio(d: int) -> float:
    """Return the ratio of sensitivities of A, exact for even d."""
    problem = Problem(1_000, d, 1, Relation.REPLACE, Domain.ball(d))
    return l1_entries(problem) / nuclear(problem)


def _query_line(found: Measurements) -> Line:
    item = "covariance query: ratio of the sensitivities"
    if not found.draws:
        return Line(PANEL, item, "", "", Agreement.ABSENT, "Nothing has been measured.")
    note = (
        "The l1 sensitivity is sqrt(2) d and the nuclear one 2; from the bounds 2d and 3 of the "
        "paper's proofs it would be 2d/3."
    )
    return Line(PANEL, item, "", f"{_query_ratio(100) / 100:.4g} d", Agreement.ADDED, note)


def _derived(item: str, note: str, power: Power | None) -> Line:
    """Return a power that follows from the paper's rates and that it does not state."""
    return power_line(PANEL, item, "", None, power, "", note=note)


def _first(found: Measurements, pair: str) -> Line:
    """Return the smallest d from which on the Wishart noise is the smaller."""
    item = f"covariance query, smallest d with less Wishart noise: {pair}"
    curve = found.curve(PANEL, pair, ADVANTAGE)
    if not curve:
        return Line(PANEL, item, "", "", Agreement.ABSENT, "The data is not at hand.")
    first = None
    for d in sorted(curve, reverse=True):
        if not Mean.of(curve[d]).low > 1:
            break
        first = d
    measured = "none of those drawn" if first is None else f"{first:.0f}"
    note = "Of those drawn, from which on the interval of the ratio lies above 1."
    return Line(PANEL, item, "", measured, Agreement.ADDED, note)
