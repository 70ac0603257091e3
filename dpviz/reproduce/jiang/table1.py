"""Jiang, Xie and Zhang 2016, Table 1: how the noise of input perturbation grows with d."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.base.seeding import generator
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part, series_of
from dpviz.reproduce.jiang._shared import (
    DELTA,
    DIFFERENCE,
    GAUSSIAN,
    LAPLACE,
    NO_DATA,
    PAPER,
    REFUTED,
    URL,
    WISHART,
    Power,
    no_faster,
    power_line,
    rate_claim,
)
from dpviz.reproduce.lines import Agreement, Line, above, beside, claim
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.verdicts import Answer, Claim, judged, of_item
from dpviz.run.growth import noise_norms
from dpviz.theory.growth import JIANG_TABLE_1
from dpviz.values.problem import Budget, Domain, Problem, Relation
from dpviz.values.release import VERDICT_WORDS

SULQ, ANALYZE_GAUSS = parse_variant("sulq"), parse_variant("analyze_gauss")
STATED = (LAPLACE, SULQ, WISHART, ANALYZE_GAUSS)  # in the order of the table
ADDED = (
    parse_variant("laplace_tight"),
    parse_variant("mod_sulq"),
    GAUSSIAN,
    DIFFERENCE,
)
DIMENSIONS = (10, 20, 40, 80, 150, 250, 400)
LARGE = 80  # from where on a second power is fitted
NORM = "spectral norm of the noise, times n epsilon"
OVER = "norm over the stated rate, 1 at d = 400"
PANEL = "Table 1"

_WHY = {
    LAPLACE: "We do not know why.",
    SULQ: "The power of d agrees; the logarithm does not. The variance that Chaudhuri et al. 2012 "
    "quote for SULQ has ln(d/delta) squared, which at a fixed delta hardly grows over these d: "
    "the stated sqrt(ln d) grows faster here and slower in the limit.",
    WISHART: "True as an upper bound, but the noise grows like d: the logarithm is the price of a "
    "tail bound that adds up d directions, and the norm itself has none.",
    ANALYZE_GAUSS: "We do not know why.",
}


@dataclass(frozen=True)
class GrowthPart(Part):
    """One mechanism at every d."""

    mechanism: str = ""
    draws: int = 0


class JiangTable1(Experiment):
    """Norms of the noise against d; see `info`."""

    info = Info(
        title="Growth of the noise with the dimension",
        paper=PAPER,
        url=URL,
        place="Table 1",
        about="The table states how the spectral norm of the noise grows with d for four ways to "
        "perturb A: the Wishart mechanism grows more slowly than Laplace noise, and Gaussian "
        "noise of an (epsilon, delta) claim more slowly still. It measures nothing.",
        settings=(
            "Rates without constants, on A: Laplace d sqrt(d), Blum et al. 2005 d sqrt(d ln d), "
            "Wishart d ln d, Dwork et al. 2014 sqrt(d), each over n epsilon",
            "Rows of length at most 1; neighbours differ in one row, which is replaced",
        ),
        choices=(
            NO_DATA,
            f"d from 10 to 400, epsilon 1, delta {DELTA:g}, 100 draws at each d; the noise does "
            "not depend on the data, and all but MOD-SULQ's scales exactly with 1/(n epsilon).",
            "A rate with a logarithm looks like a power over a finite range: a measured power is "
            "compared with that of a fit to the stated rate itself over the same d. At small d "
            "the norm falls short of its limit, which lifts a fitted power by up to .04; that "
            "much is allowed.",
            "Blum et al. 2005 is SULQ with the variance that Chaudhuri et al. 2012 quote for it. "
            "Its noise is not symmetric; the norm is that of the symmetric part, which is added "
            "to A in the end and is sqrt(2) smaller.",
            "The privacy column is judged at n = 10,000, d = 100, under replacement of a row, the "
            "paper's relation; Analyze Gauss under that of its own source, a row set to zero, "
            "and under replacement beside it.",
            "Laplace noise with a tight sensitivity, MOD-SULQ, the exactly calibrated Gaussian "
            "and Wishart difference are added.",
        ),
        cautions=(REFUTED,),
        slot=10,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each mechanism."""
        draws = 20 if effort is Effort.QUICK else 100
        return [GrowthPart(mechanism=item.text, draws=draws) for item in (*STATED, *ADDED)]

    def run(self, part: Part, shared: None, seed: int) -> Measurements:
        """Return the norms at every d, and over the stated rate where there is one."""
        assert isinstance(part, GrowthPart)
        mechanism = parse_variant(part.mechanism)
        norms = {
            d: noise_norms(
                mechanism,
                d,
                generator(seed, "reproduce", self.key, mechanism.text, d),
                draws=part.draws,
                delta=DELTA,
            )
            for d in DIMENSIONS
        }
        label = mechanism.label
        draws = {Point(PANEL, label, NORM, float(d)): values for d, values in norms.items()}
        rate = JIANG_TABLE_1.get(mechanism.info.label)
        if rate is not None:
            last = DIMENSIONS[-1]
            unit = rate.of(last) / float(norms[last].mean())
            for d, values in norms.items():
                draws[Point(PANEL, label, OVER, float(d))] = values * (unit / rate.of(d))
        return Measurements(draws)

    def lines(self, found: Measurements) -> list[Line]:
        """Return both columns of the table, the orders the text draws from it, and norms."""
        lines = []
        slower = asked = 0
        for mechanism in (*STATED, *ADDED):
            rate = JIANG_TABLE_1.get(mechanism.info.label)
            curve = found.curve(PANEL, mechanism.label, NORM)
            power, large = Power.of(curve), Power.of(curve, LARGE)
            more = "" if large is None else f"; from d = {LARGE}: {large.text}"
            stated = None if rate is None else rate.power_over(DIMENSIONS)
            lines.append(
                power_line(
                    PANEL,
                    f"{mechanism.label}, power of d",
                    "" if rate is None else rate.label,
                    stated,
                    power,
                    _WHY.get(mechanism, ""),
                    more=more,
                    upper=True,
                )
            )
            if power is not None and stated is not None:
                asked += 1
                slower += no_faster(stated, power)
        why = "One of the four grows faster than stated over these d."
        lines.append(
            claim(PANEL, "the rates as upper bounds", "no faster than stated", slower, asked, why)
        )
        wishart = found.curve(PANEL, WISHART.label, NORM)
        lines += [
            above(
                PANEL,
                "Wishart noise below Laplace noise",
                "the Wishart mechanism adds less noise",
                found.curve(PANEL, LAPLACE.label, NORM),
                wishart,
                why="At this d the rates do not tell, as they leave out constants.",
                note="Both as published; Theorem 5 is about where this comes from.",
            ),
            above(
                PANEL,
                "Analyze Gauss below Wishart",
                "the gap between approximate and pure privacy",
                wishart,
                found.curve(PANEL, ANALYZE_GAUSS.label, NORM),
                why="At small d the constant decides: Gaussian noise pays for a small delta.",
            ),
            *(_privacy(mechanism) for mechanism in STATED),
        ]
        last = float(DIMENSIONS[-1])
        for mechanism in (*STATED, *ADDED):
            item = f"{mechanism.label}, norm at d = {DIMENSIONS[-1]}, times n epsilon"
            lines.append(beside(PANEL, item, None, found.get(PANEL, mechanism.label, NORM, last)))
        return lines

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers to both columns of the table and to the orders read off it."""
        lines = self.lines(found)
        rates = [
            rate_claim(
                f"noise of {mechanism.label} grows like "
                f"{JIANG_TABLE_1[mechanism.info.label].label}",
                of_item(lines, f"{mechanism.label}, power of d")[0],
                "Table 1",
            )
            for mechanism in STATED
        ]
        orders = [
            judged(
                "the Wishart mechanism adds less noise than Laplace noise",
                of_item(lines, "Wishart noise below Laplace noise"),
                because="At every d from 10 to 400, both as published.",
            ),
            judged(
                "Analyze Gauss adds less noise than the Wishart mechanism",
                of_item(lines, "Analyze Gauss below Wishart"),
                because="At every d from 10 to 400, at delta 1e-06.",
            ),
        ]
        private = [
            judged(
                f"{mechanism.label} is {'(epsilon, 0)' if pure else '(epsilon, delta)'}-private",
                of_item(lines, f"{mechanism.label}, privacy"),
                place=place,
                held=held,
            )
            for mechanism, pure, place, held in (
                (LAPLACE, True, "Theorem 3 and Table 1", Answer.BOUND),
                (WISHART, True, "Theorem 4 and Table 1", Answer.REPRODUCED),
                (SULQ, False, "Table 1", Answer.BOUND),
                (ANALYZE_GAUSS, False, "Table 1", Answer.BOUND),
            )
        ]
        return [*rates, *orders, *private]

    def charts(self) -> tuple[Chart, ...]:
        """Return the norms, and the norms over the stated rates: level where those are right."""
        return (
            Chart(
                name="norm",
                title="Spectral norm of the noise against the dimension",
                quantity=NORM,
                x_label="d",
                y_label="norm, times n epsilon",
                series=series_of((*STATED, *ADDED)),
                log_x=True,
                log_y=True,
            ),
            Chart(
                name="over-rate",
                title="Norm over the stated rate: level where the rate is right",
                quantity=OVER,
                x_label="d",
                y_label="norm over the rate",
                series=series_of(STATED),
                log_x=True,
            ),
        )


def _privacy(mechanism: Mechanism) -> Line:
    """Return the table's privacy column beside what is known of the claim."""
    budget = Budget(1.0, DELTA)
    own = Relation.ZERO_OUT if mechanism == ANALYZE_GAUSS else Relation.REPLACE
    status = mechanism.status(Problem(10_000, 100, 1, own, Domain.ball(100)), budget)
    evidence = status.evidence
    if mechanism == ANALYZE_GAUSS:
        replaced = Problem(10_000, 100, 1, Relation.REPLACE, Domain.ball(100))
        other = mechanism.spent(replaced, budget)
        assert other is not None
        evidence += (
            f" That is for a row set to zero, as in its source; under replacement, the relation "
            f"of this paper, it costs epsilon {other.epsilon:.3g} at the same delta."
        )
    pure = mechanism.info.guarantee == "pure"
    kept = status.verdict.counts
    return Line(
        PANEL,
        f"{mechanism.label}, privacy",
        "(epsilon, 0)" if pure else "(epsilon, delta)",
        VERDICT_WORDS[status.verdict],
        Agreement.AGREES if kept else Agreement.DIFFERS,
        evidence,
    )
