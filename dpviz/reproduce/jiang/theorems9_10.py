"""Jiang, Xie and Zhang 2016, Theorems 9 and 10: error of the rank k matrix beyond lambda_(k+1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.prepare.plan import planned
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part, Series, series_of
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
    power_line,
)
from dpviz.reproduce.lines import Agreement, Line, above
from dpviz.reproduce.measurements import Mean, Measurements, Point
from dpviz.reproduce.verdicts import Answer, Claim, judged, of_item
from dpviz.run.cells import Cell, run_cell
from dpviz.settings import Settings
from dpviz.theory.bounds import low_rank_error_scaling, pure_error_floor_scaling
from dpviz.theory.growth import StatedGrowth

N, EPSILON, K = 10_000, 1.0, 2
DIMENSIONS = (10, 20, 40, 80, 160)
KS, K_DIMENSION, K_EACH = (1, 2, 4, 8, 16, 32), 60, 0.025
RANK, TAIL, HARD = "rank 2", "lambda_3 to lambda_6 are .01", "eigenvalues at 4 d/(n epsilon)"
SPECTRA = (RANK, TAIL, HARD)
BY_K = f"rank k: k eigenvalues of {K_EACH}, d = {K_DIMENSION}"
MECHANISMS = (WISHART, LAPLACE, DIFFERENCE, GAUSSIAN)

EXCESS = "error beyond lambda_(k+1), times n epsilon"
EXCESS_K = "error beyond lambda_(k+1), times n epsilon, by k"
SHARE = "excess over twice the norm of the noise"
UPPER, FLOOR = "Theorem 9: d ln d, scaling only", "Theorem 10: d, scaling only"
THEOREM_9 = StatedGrowth("d ln d", 1.0, 1.0)
_FLOOR_NOTES = {
    WISHART: "Its claim of pure privacy is false, so that the theorem does not bind it.",
    LAPLACE: "Pure privacy: it may rise, and may not fall without limit.",
    GAUSSIAN: "The theorem does not bind (epsilon, delta): it may fall.",
}
_LEVEL = 0.85  # of the excess over d/epsilon at small d, where single draws lie further out


def spectrum_of(name: str, d: int, k: int) -> list[float]:
    """Return the eigenvalues of A, in squared row bounds."""
    top = {
        RANK: [0.4, 0.2],
        TAIL: [0.4, 0.2, 0.01, 0.01, 0.01, 0.01],
        # Theorem 10's proof needs tables whose k equal eigenvalues are of order d/epsilon on nA.
        HARD: [4 * d / (N * EPSILON)] * k,
        BY_K: [K_EACH] * k,
    }[name]
    return top + [0.0] * (d - len(top))


@dataclass(frozen=True)
class ErrorPart(Part):
    """One mechanism on one family of spectra."""

    spectrum: str = ""
    mechanism: str = ""
    draws: int = 0


class JiangTheorems910(Experiment):
    """Error of the noisy rank k matrix against d and k; see `info`."""

    info = Info(
        title="Error of the low-rank matrix against the dimension",
        paper=PAPER,
        url=URL,
        place="Theorems 9 and 10",
        about="Theorem 9: the rank k matrix of the Wishart mechanism misses nA by at most "
        "lambda_(k+1) + O(d ln d/epsilon) in spectral norm, whatever k. Theorem 10: no pure "
        "mechanism does better than lambda_(k+1) + Omega(d/epsilon) on every table. Neither has "
        "a constant: what can be checked is how the excess over lambda_(k+1) grows.",
        settings=("nA in the place of A; any k; epsilon and rows as before",),
        choices=(
            NO_DATA,
            f"n epsilon = {N * EPSILON:,.0f}, k = {K}, d from 10 to 160, 100 draws; spectra that "
            "stay the same as d grows: two eigenvalues, .4 and .2, and the same with four of .01 "
            "below them. A third family follows the proof of Theorem 10: k equal eigenvalues of "
            "size 4 d/(n epsilon).",
            "The stated rates have no constants. Theorem 9's is scaled to the Wishart mechanism at "
            "d = 10, Theorem 10's to Wishart difference at d = 160: scaling only.",
            "Theorem 10 is about the worst table; one table can lie below its rate without "
            "contradiction. For (epsilon, delta) it says nothing: the Gaussian is drawn to show "
            "the difference.",
            "The rank k matrix is that of the k largest eigenvalues, signs included.",
            f"Growth in k: d = {K_DIMENSION} and k eigenvalues of {K_EACH} above 0, Wishart and "
            "Wishart difference.",
            "Laplace, Wishart difference and the Gaussian (delta 1e-06) are added.",
        ),
        cautions=(REFUTED,),
        slot=15,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each family of spectra and mechanism."""
        draws = 20 if effort is Effort.QUICK else 100
        pairs = [(name, item) for name in SPECTRA for item in MECHANISMS]
        pairs += [(BY_K, item) for item in (WISHART, DIFFERENCE)]
        return [ErrorPart("", name, item.text, draws) for name, item in pairs]

    def run(self, part: Part, shared: None, seed: int) -> Measurements:
        """Return the excess, and the same over twice the noise, along d or k."""
        assert isinstance(part, ErrorPart)
        mechanism, name = parse_variant(part.mechanism), part.spectrum
        draws: dict[Point, FloatArray] = {}
        if name == BY_K:
            for k in KS:
                excess, over = _excess(name, K_DIMENSION, k, mechanism, part.draws, seed)
                draws[Point(name, mechanism.label, EXCESS_K, float(k))] = excess
                draws[Point(name, mechanism.label, SHARE, float(k))] = over
            return Measurements(draws)
        for d in DIMENSIONS:
            excess, over = _excess(name, d, K, mechanism, part.draws, seed)
            draws[Point(name, mechanism.label, EXCESS, float(d))] = excess
            draws[Point(name, mechanism.label, SHARE, float(d))] = over
        if name != TAIL and mechanism in _SCALED:
            draws |= _scaling(name, mechanism, draws)
        return Measurements(draws)

    def lines(self, found: Measurements) -> list[Line]:
        """Return growth in d, the bound with its constant, and growth in k."""
        lines = []
        for name in SPECTRA:
            for mechanism in MECHANISMS:
                lines.append(_growth_line(found, name, mechanism))
            lines.append(
                above(
                    name,
                    "Wishart error below Laplace error",
                    "less noise, so a smaller error",
                    found.curve(name, LAPLACE.label, EXCESS),
                    found.curve(name, WISHART.label, EXCESS),
                    why="We do not know why.",
                )
            )
            lines.append(_bound_line(found, name))
        lines += _floor_lines(found)
        lines += [_k_line(found, mechanism) for mechanism in (WISHART, DIFFERENCE)]
        return lines

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers to both theorems."""
        lines = self.lines(found)
        grown = of_item(lines, f"{WISHART.label}: power of d in the excess")
        return [
            judged(
                "the rank k matrix misses nA by at most lambda_(k+1) + O(d ln d/epsilon)",
                [line for line in grown if line.reported],
                place="Theorem 9",
                held=Answer.BOUND,
                because="The excess grows like d, without the logarithm.",
            ),
            judged(
                "the bound does not depend on k",
                of_item(lines, f"{WISHART.label}: growth in k"),
                place="Theorem 9",
                held=Answer.BOUND,
            ),
            judged(
                "the Wishart mechanism is near-optimal: no pure mechanism errs by less than "
                "lambda_(k+1) + Omega(d/epsilon)",
                of_item(lines, f"{DIFFERENCE.label}: excess over Theorem 10's d/epsilon"),
                place="Theorem 10",
                held=Answer.BOUND,
                because="Wishart difference, which is private, meets the rate on the proof's own "
                "tables: its error over d/epsilon stays level. The Wishart mechanism itself is "
                "not private, so that the theorem does not bind it.",
            ),
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return the excess against d with the two rates, and against k."""
        return (
            Chart(
                name="excess",
                title="Error beyond lambda_3 against the dimension, k = 2",
                quantity=EXCESS,
                x_label="d",
                y_label="excess, times n epsilon",
                series=(
                    *series_of(MECHANISMS),
                    Series(UPPER),
                    Series(FLOOR),
                ),
                log_x=True,
                log_y=True,
            ),
            Chart(
                name="excess-by-k",
                title=f"Error beyond lambda_(k+1) against k, d = {K_DIMENSION}",
                quantity=EXCESS_K,
                x_label="k",
                y_label="excess, times n epsilon",
                series=series_of((WISHART, DIFFERENCE)),
                log_x=True,
            ),
        )


def _theorem9(d: int) -> float:
    return low_rank_error_scaling(d, N, EPSILON, 0.0)


def _theorem10(d: int) -> float:
    return pure_error_floor_scaling(d, N, EPSILON)


# The stated rates as curves, each scaled to a mechanism at one d.
_SCALED = {
    WISHART: (UPPER, _theorem9, DIMENSIONS[0]),
    DIFFERENCE: (FLOOR, _theorem10, DIMENSIONS[-1]),
}


def _scaling(
    name: str, mechanism: Mechanism, draws: Mapping[Point, FloatArray]
) -> dict[Point, FloatArray]:
    """Return the stated rate that is drawn beside a mechanism."""
    series, rate, at = _SCALED[mechanism]
    unit = float(draws[Point(name, mechanism.label, EXCESS, float(at))].mean()) / rate(at)
    return {Point(name, series, EXCESS, float(d)): np.array([unit * rate(d)]) for d in DIMENSIONS}


def _excess(
    name: str, d: int, k: int, mechanism: Mechanism, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return ||A - A^_k|| - lambda_(k+1) times n epsilon, and over twice the noise's norm."""
    measured = planned(spectrum_of(name, d, k), N, f"{name}, d = {d}")
    settings = Settings(table=measured.name, epsilon=EPSILON, delta=DELTA, k=k, seed=seed)
    problem, budget = measured.problem(settings), measured.budget(settings)
    cell = Cell(mechanism, problem, budget, seed, range(draws))
    metrics = run_cell(cell, measured, ["low_rank_error", "noise_spectral"]).metrics
    excess = metrics["low_rank_error"] - float(measured.moment.eigenvalues[k])
    return excess * (N * EPSILON), excess / (2 * metrics["noise_spectral"])


def _growth_line(found: Measurements, name: str, mechanism: Mechanism) -> Line:
    """Return the power of d in the excess, beside Theorem 9 where it speaks."""
    power = Power.of(found.curve(name, mechanism.label, EXCESS))
    item = f"{mechanism.label}: power of d in the excess"
    if name == TAIL:
        note = (
            "Not a power: while the noise is small beside lambda_3 the error hides behind it, and "
            "it catches up once the noise is not."
        )
        return power_line(name, item, "", None, power, "", note=note)
    if mechanism == WISHART:
        return power_line(
            name,
            item,
            THEOREM_9.label,
            THEOREM_9.power_over(DIMENSIONS),
            power,
            why="True as an upper bound; like the noise, the excess grows without the logarithm.",
            upper=True,
        )
    return power_line(name, item, "", None, power, "")


def _shares(found: Measurements, name: str, mechanism: Mechanism) -> FloatArray | None:
    curve = found.curve(name, mechanism.label, SHARE)
    return np.concatenate(list(curve.values())) if curve else None


def _bound_line(found: Measurements, name: str) -> Line:
    """Return whether the excess stays within twice the noise, and how near it comes."""
    item = "excess at most twice the norm of the noise"
    shares = [_shares(found, name, mechanism) for mechanism in MECHANISMS]
    seen = [values for values in shares if values is not None]
    if not seen:
        return Line(name, item, "", "", Agreement.ABSENT, "The data is not at hand.")
    over = np.concatenate(seen)
    broken = int((over > 0.5).sum())
    note = (
        "The inequality behind Theorem 9, with its constant. The excess comes up to "
        f"{over.max():.3g} of it; half of it is broken in {broken} of {len(over)} draws."
    )
    measured = f"in {int((over <= 1).sum())} of {len(over)} draws"
    return Line(name, item, "", measured, Agreement.ADDED, note)


def _floor_lines(found: Measurements) -> list[Line]:
    """Return the excess in units of Theorem 10's rate, on its own kind of table."""
    lines = []
    for mechanism in MECHANISMS:
        item = f"{mechanism.label}: excess over Theorem 10's d/epsilon"
        reported = "of order 1 at least, for pure privacy" if mechanism == DIFFERENCE else ""
        curve = found.curve(HARD, mechanism.label, EXCESS)
        if len(curve) < 2:
            lines.append(
                Line(HARD, item, reported, "", Agreement.ABSENT, "The data is not at hand.")
            )
            continue
        over = {d: float(values.mean()) * EPSILON / d for d, values in curve.items()}
        first, last = min(over), max(over)
        measured = f"{over[first]:.3g} at d = {first:.0f}, {over[last]:.3g} at d = {last:.0f}"
        if mechanism == DIFFERENCE:
            # Where the rate is met both ends agree, up to what draws at small d lie further out.
            level = over[last] >= _LEVEL * over[first]
            note = "Level, so that it meets the rate." if level else "Falls below the rate."
            agreement = Agreement.AGREES if level else Agreement.DIFFERS
            lines.append(Line(HARD, item, reported, measured, agreement, note))
            continue
        lines.append(Line(HARD, item, "", measured, Agreement.ADDED, _FLOOR_NOTES[mechanism]))
    return lines


def _k_line(found: Measurements, mechanism: Mechanism) -> Line:
    """Return how the excess changes with k, and whether a bound without k covers it."""
    item = f"{mechanism.label}: growth in k"
    stated = mechanism == WISHART
    reported = "a bound without k" if stated else ""
    curve = found.curve(BY_K, mechanism.label, EXCESS_K)
    over = _shares(found, BY_K, mechanism)
    if len(curve) < 2 or over is None:
        return Line(BY_K, item, reported, "", Agreement.ABSENT, "The data is not at hand.")
    first, last = min(curve), max(curve)
    times = Mean.of(curve[last]).value / Mean.of(curve[first]).value
    measured = f"{times:.3g} times as large at k = {last:.0f} as at k = {first:.0f}"
    note = (
        f"At every k the excess is at most {over.max():.2g} of twice the norm of the noise, in "
        "which there is no k."
    )
    if not stated:
        return Line(BY_K, item, "", measured, Agreement.ADDED, note)
    agreement = Agreement.AGREES if over.max() <= 1 else Agreement.DIFFERS
    return Line(BY_K, item, reported, measured, agreement, note)
