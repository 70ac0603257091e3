"""Jiang, Xie and Zhang 2016, Theorem 6: how far a noisy subspace can turn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.base.seeding import generator
from dpviz.datasets import load
from dpviz.mechanisms import parse_variant
from dpviz.metrics import Outcome, measure
from dpviz.prepare.bounding import prepare
from dpviz.prepare.prepared import Measured
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part, Series, series_of
from dpviz.reproduce.jiang._shared import (
    DELTA,
    DIFFERENCE,
    GAUSSIAN,
    NO_DATA,
    PAPER,
    REFUTED,
    URL,
    WISHART,
    with_people,
)
from dpviz.reproduce.lines import Agreement, Line
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.verdicts import Answer, Claim, judged, of_item
from dpviz.run.cells import Cell, evaluate
from dpviz.run.growth import noise_norms
from dpviz.settings import Settings
from dpviz.theory.bounds import davis_kahan
from dpviz.values.release import Release

CASES = (
    ("spiked", 1),
    ("spiked", 2),
    ("wine", 1),
    ("breast_cancer", 1),
    ("waveform40", 2),
    ("digits", 3),
)
MECHANISMS = (WISHART, DIFFERENCE, GAUSSIAN)
WORST = "the worst noise of the same norm"
MULTIPLES = (1.0, 1.3, 2.0, 5.0, 20.0)  # of the n at which the gap is twice the mean norm
RATIO = "distance over the bound, where the condition holds"
MET = "share of draws that meet the condition"
_NORM_DRAWS = 100  # for the mean norm that places n


@dataclass(frozen=True)
class BoundPart(Part):
    """One mechanism on one table, at every n."""

    table: str = ""
    k: int = 0
    mechanism: str = ""
    draws: int = 0


def panel_of(table: str, k: int) -> str:
    """Return the name of a case's panel."""
    return f"{table}, k = {k}"


class JiangTheorem6(Experiment):
    """The bound of Davis and Kahan, draw by draw; see `info`."""

    info = Info(
        title="Closeness of the top k subspace",
        paper=PAPER,
        url=URL,
        place="Theorem 6",
        about="If the gap between the k-th and the next eigenvalue of A is at least twice the "
        "spectral norm of the noise W, then the projections on the noisy and the true top k "
        "subspace differ by at most 2 sqrt(k) ||W|| over the gap, in Frobenius norm. Both sides "
        "are measured for every draw.",
        settings=("The Wishart mechanism; any table with a gap",),
        choices=(
            NO_DATA,
            "Built-in tables, centred, scaled by the longest row, epsilon 1, and for the Gaussian "
            f"delta {DELTA:g}. Their own n is too small for the condition: n is enlarged, with A "
            "kept, to 1 to 20 times the n at which the gap is twice the mean norm of the "
            "Wishart, Wishart difference or Gaussian noise.",
            "400 draws at each n.",
            "The theorem says with high probability; under its condition the conclusion is "
            "certain. The paper's proof takes ||P||_F <= sqrt(k) ||P||_2 for a difference of two "
            "projections, whose rank may be 2k, so that a sqrt(2) is missing there; the bound "
            "as stated holds all the same, by the sin 2 theta theorem, for any symmetric noise.",
            "A control: noise of the same norm as the Wishart's that turns the k-th component "
            "against the next one as far as that norm can. It comes up to the bound at k = 1, "
            "and to 1/sqrt(k) of it above, as it leaves the other components alone. Random "
            "noise hardly turns any one direction, and the mean of Wishart noise, (d + 1) c I, "
            "counts in its norm and turns nothing.",
        ),
        cautions=(REFUTED,),
        slot=12,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each table and mechanism."""
        draws = 25 if effort is Effort.QUICK else 400
        return [
            BoundPart("", table, k, mechanism.text, draws)
            for table, k in CASES
            for mechanism in MECHANISMS
        ]

    def run(self, part: Part, shared: None, seed: int) -> Measurements:
        """Return distance over bound and how often the condition held, at every n."""
        assert isinstance(part, BoundPart)
        table, mechanism, k = load(part.table), parse_variant(part.mechanism), part.k
        settings = Settings(table=part.table, epsilon=1.0, delta=DELTA, k=k, seed=seed)
        own = prepare(table, settings)
        values = own.moment.eigenvalues
        gap = float(values[k - 1] - values[k])
        rng = generator(seed, "reproduce", self.key, mechanism.text, own.d)
        norm = float(noise_norms(mechanism, own.d, rng, draws=_NORM_DRAWS, delta=DELTA).mean())
        panel = panel_of(part.table, k)
        draws: dict[Point, FloatArray] = {}
        for multiple in MULTIPLES:
            measured = with_people(own, math.ceil(multiple * 2 * norm / gap))
            trials = range(part.draws)
            budget = measured.budget(settings)
            cell = Cell(mechanism, measured.problem(settings), budget, seed, trials)
            outcome = evaluate(cell, measured)
            found = measure(outcome, ["noise_spectral", "projection_distance"])
            norms = found["noise_spectral"]
            over = _over_bound(k, norms, gap, found["projection_distance"])
            met = ~np.isnan(over)
            draws[Point(panel, mechanism.label, MET, multiple)] = met.astype(float)
            draws[Point(panel, mechanism.label, RATIO, multiple)] = over[met]
            if mechanism == WISHART:
                worst = _worst_distances(measured, k, norms[met], gap)
                draws[Point(panel, WORST, RATIO, multiple)] = _over_bound(k, norms[met], gap, worst)
        return Measurements(draws)

    def lines(self, found: Measurements) -> list[Line]:
        """Return for each table and mechanism whether the bound held, and the controls."""
        lines = []
        for table, k in CASES:
            panel = panel_of(table, k)
            for name in (*(mechanism.label for mechanism in MECHANISMS), WORST):
                lines.append(_bound_line(found, panel, name))
            lines.append(_control_line(found, panel))
        return lines

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answer."""
        lines = of_item(self.lines(found), f"{WISHART.label}: the bound")
        ratios = [_all_ratios(found, panel_of(*case), WISHART.label) for case in CASES]
        seen = np.concatenate([values for values in ratios if values is not None] or [np.zeros(1)])
        return [
            judged(
                "the top k subspaces differ by at most 2 sqrt(k) ||W|| over the gap",
                lines,
                held=Answer.BOUND,
                because=f"In all {len(seen):,} draws that meet its condition; the distance comes "
                f"up to {seen.max():.2g} of the bound with Wishart noise.",
            )
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return distance over bound, and how often the condition is met."""
        shown = series_of(MECHANISMS)
        return (
            Chart(
                name="ratio",
                title="Measured distance over the bound: 1 is the most there can be",
                quantity=RATIO,
                x_label="n, 1 where the gap is twice the mean norm",
                y_label="distance over bound",
                series=(*shown, Series(WORST)),
                log_x=True,
                log_y=True,
                share_y=True,
            ),
            Chart(
                name="met",
                title="How often the condition of the theorem is met",
                quantity=MET,
                x_label="n, 1 where the gap is twice the mean norm",
                y_label="share of draws",
                series=shown,
                log_x=True,
                share_y=True,
            ),
        )


def _over_bound(k: int, norms: FloatArray, gap: float, distances: FloatArray) -> FloatArray:
    """Return distance over bound for each draw; NaN where the theorem is silent."""
    bounds = [davis_kahan(k, float(norm), gap) for norm in norms]
    over: FloatArray = distances / np.array([math.nan if b is None else b for b in bounds])
    return over


def _worst_distances(measured: Measured, k: int, norms: FloatArray, gap: float) -> FloatArray:
    """Return projection distances under noise that turns component k against k + 1.

    In their plane the noise is w (-cos p, sin p; sin p, cos p), which has norm w
    and turns by t with tan 2t = 2 w sin p/(gap - 2 w cos p): most, to
    sin 2t = 2 w/gap, where cos p = 2 w/gap.
    """
    V = measured.moment.eigenvectors[:, k - 1 : k + 1]
    cosines = np.minimum(2 * norms / gap, 1.0)
    plane = np.empty((len(norms), 2, 2))
    plane[:, 0, 0], plane[:, 1, 1] = -cosines, cosines
    plane[:, 0, 1] = plane[:, 1, 0] = np.sqrt(1 - cosines**2)
    noise = V @ (plane * norms[:, None, None]) @ V.T
    release = Release.of_matrices(measured.moment.A + noise, k)
    outcome = Outcome(measured.reference, measured.moment, release)
    return measure(outcome, ["projection_distance"])["projection_distance"]


def _all_ratios(found: Measurements, panel: str, name: str) -> FloatArray | None:
    curve = found.curve(panel, name, RATIO)
    return np.concatenate(list(curve.values())) if curve else None


def _bound_line(found: Measurements, panel: str, name: str) -> Line:
    """Return in how many draws the bound held; the paper states it for the Wishart."""
    item = f"{name}: the bound"
    stated = name == WISHART.label
    reported = "holds wherever the gap is at least twice the norm" if stated else ""
    over = _all_ratios(found, panel, name)
    if over is None:
        return Line(panel, item, reported, "", Agreement.ABSENT, "The data is not at hand.")
    held = int((over <= 1).sum())
    measured = f"in {held} of {len(over)} draws"
    note = f"The distance comes up to {over.max():.3g} of the bound; median {np.median(over):.2g}."
    if not stated:
        return Line(panel, item, "", measured, Agreement.ADDED, note)
    agreement = Agreement.AGREES if held == len(over) else Agreement.DIFFERS
    return Line(panel, item, reported, measured, agreement, note)


def _control_line(found: Measurements, panel: str) -> Line:
    """Return how often half of the bound is broken: it would be, were the bound not true."""
    item = "control: draws that break half of the bound"
    names = (*(mechanism.label for mechanism in MECHANISMS), WORST)
    ratios = {name: _all_ratios(found, panel, name) for name in names}
    if any(over is None for over in ratios.values()):
        return Line(panel, item, "", "", Agreement.ABSENT, "The data is not at hand.")
    parts = [
        f"{name} {int((over > 0.5).sum())} of {len(over)}"
        for name, over in ratios.items()
        if over is not None
    ]
    return Line(panel, item, "", "; ".join(parts), Agreement.ADDED)
