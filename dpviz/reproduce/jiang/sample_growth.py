"""Jiang, Xie and Zhang 2016, Theorems 7 and 8: people needed as the gap and d change."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.prepare.plan import planned
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part, Series, series_of
from dpviz.reproduce.jiang._people import (
    CHOICES,
    FOR_DIFFERENCE,
    MAIN,
    MECHANISMS,
    OURS,
    PPCA,
    SETTINGS,
    STATEMENTS,
    THEOREM_7,
    THEOREM_8,
    need,
)
from dpviz.reproduce.jiang._shared import NO_DATA, PAPER, REFUTED, URL, WISHART
from dpviz.reproduce.lines import Agreement, Line, Stated
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.verdicts import Claim
from dpviz.theory.growth import fitted_power

REST = 0.01  # every eigenvalue but the first
BY_GAP, BY_D = "by the eigengap", "by d"
FIXED_D, FIXED_GAP = 10, 0.2
GAPS = (0.02, 0.05, 0.1, 0.2, 0.4)
DIMENSIONS = (10, 20, 40, 80)
PANELS = {BY_GAP: f"d = {FIXED_D}", BY_D: f"eigengap {FIXED_GAP}"}
AXES = {BY_GAP: "the gap", BY_D: "d"}
PEOPLE = {BY_GAP: "people, by the eigengap", BY_D: "people, by d"}
_WHY = {
    (BY_GAP, WISHART): "We do not know why.",
    (BY_GAP, PPCA): "True as an upper bound; of its logarithm of lambda_1 over the gap the need "
    "shows nothing that can be told.",
    (BY_D, WISHART): "True as an upper bound. The logarithm comes from the tail bound; and at "
    "small d the norm of the noise varies more from draw to draw, which raises the need there.",
    (BY_D, PPCA): "True as an upper bound; we do not know more.",
}
FEW, ENOUGH = "people shown to be too few", "people shown to be enough"


@dataclass(frozen=True)
class SpectrumPart(Part):
    """One mechanism on one made-up spectrum."""

    axis: str = ""
    d: int = 0
    gap: float = 0.0
    mechanism: str = ""

    @property
    def x(self) -> float:
        """Where the part lies on its axis."""
        return self.gap if self.axis == BY_GAP else float(self.d)


class JiangSampleGrowth(Experiment):
    """People needed and stated as one number changes at a time; see `info`."""

    info = Info(
        title="People needed as the eigengap and the dimension change",
        paper=PAPER,
        url=URL,
        place="Theorems 7 and 8",
        about="Both theorems ask for people in proportion to 1/(epsilon gap), up to a logarithm "
        "in Theorem 8; in d, Theorem 7 asks for d ln d and Theorem 8 for d. Here the need is "
        "measured on spectra in which only the gap, or only d, changes.",
        settings=SETTINGS,
        choices=(
            NO_DATA,
            f"Spectra with one large eigenvalue and all others {REST}; d = {FIXED_D} where the gap "
            f"changes, a gap of {FIXED_GAP} where d does.",
            *CHOICES,
            "The range of a measured power holds for every value within the intervals of the "
            "need at the two ends of the axis.",
        ),
        cautions=(REFUTED,),
        slot=14,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each spectrum and mechanism."""
        quick = effort is Effort.QUICK
        gaps = GAPS[1::3] if quick else GAPS
        dimensions = DIMENSIONS[:2] if quick else DIMENSIONS
        places = [(BY_GAP, FIXED_D, gap) for gap in gaps]
        places += [(BY_D, d, FIXED_GAP) for d in dimensions]
        return [
            SpectrumPart("", axis, d, gap, mechanism.text)
            for axis, d, gap in places
            for mechanism in MECHANISMS
        ]

    def run(self, part: Part, shared: None, seed: int) -> Measurements:
        """Return the need at one place, and the n of the statements about this mechanism."""
        assert isinstance(part, SpectrumPart)
        mechanism, x = parse_variant(part.mechanism), part.x
        measured = planned([REST + part.gap, *[REST] * (part.d - 1)], 1_000)
        low, high = need(measured, mechanism, seed)
        quantity, label = PEOPLE[part.axis], mechanism.label
        panel = PANELS[part.axis]
        found = {
            (label, FEW): low,
            (label, ENOUGH): high,
            (label, quantity): math.sqrt(low * high),
        }
        for statement in STATEMENTS:
            if statement.mechanism == mechanism:
                found[statement.name, quantity] = float(statement.people(measured))
        return Measurements(
            {
                Point(panel, series, what, x): np.array([value])
                for (series, what), value in found.items()
            }
        )

    def lines(self, found: Measurements) -> list[Line]:
        """Return the stated and measured powers, and how loose the statements are."""
        return [
            line
            for axis in (BY_GAP, BY_D)
            for mechanism in MECHANISMS
            for line in (_power_line(found, axis, mechanism), _loose_line(found, axis, mechanism))
        ]

    def claims(self, found: Measurements) -> list[Claim]:
        """Return none: what is stated are sizes that are enough, judged at Theorems 7 and 8."""
        return []

    def charts(self) -> tuple[Chart, ...]:
        """Return people against the gap and against d: measured, and stated as enough."""
        stated = (
            Series(THEOREM_7.name),
            Series(OURS.name),
            Series(FOR_DIFFERENCE.name),
            Series(THEOREM_8.name),
        )
        return tuple(
            Chart(
                name=name,
                title="People needed, and people that the theorems say are enough",
                quantity=PEOPLE[axis],
                x_label=label,
                y_label="people",
                series=(*series_of(MECHANISMS), *stated),
                log_x=True,
                log_y=True,
            )
            for axis, name, label in (
                (BY_GAP, "gap", "eigengap"),
                (BY_D, "dimension", "d"),
            )
        )


def _ends(
    found: Measurements, axis: str, mechanism: Mechanism
) -> tuple[list[float], list[float], list[float], list[float]] | None:
    """Return the places, the n shown too few, the n shown enough and the n stated."""
    panel, label, statement = PANELS[axis], mechanism.label, MAIN[mechanism]
    curves = [
        found.curve(panel, series, quantity)
        for series, quantity in (
            (label, FEW),
            (label, ENOUGH),
            (statement.name, PEOPLE[axis]),
        )
    ]
    places = [x for x in curves[0] if all(x in curve for curve in curves)]
    if len(places) < 2:
        return None
    few, enough, stated = ([float(curve[x][0]) for x in places] for curve in curves)
    return places, few, enough, stated


def _power_line(found: Measurements, axis: str, mechanism: Mechanism) -> Line:
    """Return the power with which the need grows beside that of the stated n."""
    name, panel, statement = AXES[axis], PANELS[axis], MAIN[mechanism]
    item = f"{mechanism.label}: power of {name} in the people needed"
    ends = _ends(found, axis, mechanism)
    if ends is None:
        return Line(panel, item, "", "", Agreement.ABSENT, "The data is not at hand.")
    places, few, enough, people = ends
    span = math.log(places[-1] / places[0])
    low = math.log(few[-1] / enough[0]) / span
    high = math.log(enough[-1] / few[0]) / span
    stated = Stated(fitted_power(places, people)[0])
    measured = f"{low:.2f} to {high:.2f}"
    if not statement.in_paper:
        note = f"The n of the same argument has a power of {stated.value:.3g}."
        return Line(panel, item, "", measured, Agreement.ADDED, note)
    why = "" if low <= stated.value <= high else _WHY[axis, mechanism]
    reported = f"{statement.name} has a power of {stated.text}"
    return Line(panel, item, reported, measured, Agreement.READING, why, stated)


def _loose_line(found: Measurements, axis: str, mechanism: Mechanism) -> Line:
    """Return how many times the need is stated, along the axis."""
    panel, statement = PANELS[axis], MAIN[mechanism]
    item = f"{statement.name}: people stated over people needed"
    ends = _ends(found, axis, mechanism)
    if ends is None:
        return Line(panel, item, "", "", Agreement.ABSENT, "The data is not at hand.")
    _, few, enough, people = ends
    low = min(n / most for n, most in zip(people, enough, strict=True))
    high = max(n / least for n, least in zip(people, few, strict=True))
    return Line(panel, item, "", f"{low:.3g} to {high:.3g}", Agreement.ADDED)
