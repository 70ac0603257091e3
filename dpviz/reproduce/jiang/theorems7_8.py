"""Jiang, Xie and Zhang 2016, Theorems 7 and 8: people enough to find the first component."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.datasets import load
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.prepare.bounding import prepare
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part, series_of
from dpviz.reproduce.jiang._people import (
    CHOICES,
    ETA,
    MAIN,
    MECHANISMS,
    PPCA,
    RHO,
    SETTINGS,
    STATEMENTS,
    THEOREM_7,
    THEOREM_8,
    Statement,
    met,
    need,
    people_text,
    settings_of,
)
from dpviz.reproduce.jiang._shared import (
    NO_DATA,
    PAPER,
    REFUTED,
    URL,
    WISHART,
    share_interval,
    share_text,
)
from dpviz.reproduce.lines import Agreement, Line
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.verdicts import Answer, Claim, judged, of_item

TABLES = ("spiked", "wine", "breast_cancer")
FRACTIONS = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
SHARE = f"share of releases with an overlap of at least {RHO}"
STATED, FEW, ENOUGH = "people stated", "people shown to be too few", "people shown to be enough"


@dataclass(frozen=True)
class NeedPart(Part):
    """One mechanism on one table."""

    table: str = ""
    mechanism: str = ""
    draws: int = 0


class JiangTheorems78(Experiment):
    """Stated sample sizes beside the people needed, on tables; see `info`."""

    info = Info(
        title="People enough to find the first component",
        paper=PAPER,
        url=URL,
        place="Theorems 7 and 8",
        about="Theorem 7 states an n that is enough for the Wishart mechanism to release a first "
        "component close to the true one, Theorem 8 one for PPCA (Chaudhuri et al. 2012), and "
        "the paper calls them comparable. Both are upper bounds: at the stated n the component "
        "must be found, and the measured need tells how loose they are.",
        settings=SETTINGS,
        choices=(
            NO_DATA,
            "Built-in tables, centred and scaled by the longest row.",
            *CHOICES,
            "2,000 draws at each n of the curves.",
        ),
        cautions=(REFUTED,),
        slot=13,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each table and mechanism."""
        # From 72 draws on, all of them good show a probability of at least .95.
        draws = 80 if effort is Effort.QUICK else 2_000
        return [
            NeedPart("", table, mechanism.text, draws)
            for table in TABLES
            for mechanism in MECHANISMS
        ]

    def run(self, part: Part, shared: None, seed: int) -> Measurements:
        """Return how often the component is found at fractions of the stated n, and the need."""
        assert isinstance(part, NeedPart)
        mechanism = parse_variant(part.mechanism)
        measured = prepare(load(part.table), settings_of(part.table, seed))
        label = mechanism.label
        low, high = need(measured, mechanism, seed)
        draws = {
            Point(part.table, label, FEW): np.array([low]),
            Point(part.table, label, ENOUGH): np.array([high]),
        }
        whole = MAIN[mechanism].people(measured)
        for fraction in FRACTIONS:
            n = max(2, math.ceil(whole * fraction))
            found = met(measured, mechanism, n, part.draws, seed)
            draws[Point(part.table, label, SHARE, fraction)] = found
        for statement in STATEMENTS:
            if statement.mechanism == mechanism:
                people = statement.people(measured)
                found = met(measured, mechanism, people, part.draws, seed)
                draws[Point(part.table, statement.name, STATED)] = np.array([float(people)])
                draws[Point(part.table, statement.name, SHARE)] = found
        return Measurements(draws)

    def lines(self, found: Measurements) -> list[Line]:
        """Return for each table what happens at the stated n, and what is needed."""
        lines = []
        for table in TABLES:
            lines += [_enough_line(found, table, statement) for statement in STATEMENTS]
            lines += [_need_line(found, table, mechanism) for mechanism in MECHANISMS]
            lines.append(_comparison_line(found, table))
        return lines

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers to both theorems and to the comparison."""
        lines = self.lines(found)

        def enough(statement: Statement, mechanism: Mechanism) -> list[Line]:
            return [
                *of_item(lines, f"{statement.name}: overlap of {RHO} at the stated n"),
                *of_item(lines, f"{mechanism.label}: people needed"),
            ]

        return [
            judged(
                "an n at which the Wishart mechanism finds the first component",
                enough(THEOREM_7, WISHART),
                place="Theorem 7",
                held=Answer.BOUND,
                because=_asked(found, THEOREM_7, WISHART),
            ),
            judged(
                "an n at which PPCA finds the first component",
                enough(THEOREM_8, PPCA),
                place="Theorem 8",
                held=Answer.BOUND,
                because=_asked(found, THEOREM_8, PPCA),
            ),
            judged(
                "the two are comparable in the people they need",
                [_comparable(found, table) for table in TABLES],
                place="section 5",
            ),
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return how often the component is found, against n over the stated n."""
        return (
            Chart(
                name="share",
                title=f"How often the overlap reaches {RHO}; {1 - ETA:.0%} are promised at 1",
                quantity=SHARE,
                x_label="n over the stated n",
                y_label="share of releases",
                series=series_of(MECHANISMS),
                log_x=True,
                share_y=True,
            ),
        )


def _value(found: Measurements, table: str, series: str, quantity: str) -> float | None:
    values = found.get(table, series, quantity)
    return None if values is None else float(values[0])


def _enough_line(found: Measurements, table: str, statement: Statement) -> Line:
    """Return whether the stated n is enough."""
    item = f"{statement.name}: overlap of {RHO} at the stated n"
    people = _value(found, table, statement.name, STATED)
    shares = found.get(table, statement.name, SHARE)
    if people is None or shares is None:
        return Line(table, item, "", "", Agreement.ABSENT, "The data is not at hand.")
    at = f"{people:,.0f} people"
    if not statement.in_paper:
        note = f"With {at}, {1 - ETA:.2g} or more are promised; the paper does not state it."
        return Line(table, item, "", share_text(shares), Agreement.ADDED, note)
    enough = share_interval(shares)[0] >= 1 - ETA
    return Line(
        table,
        item,
        f"with {at} at least {1 - ETA:.2g}",
        share_text(shares),
        Agreement.AGREES if enough else Agreement.DIFFERS,
        "" if enough else "These draws do not show that the stated n is enough.",
    )


def _need_line(found: Measurements, table: str, mechanism: Mechanism) -> Line:
    """Return the people needed beside the people stated."""
    statement, label = MAIN[mechanism], mechanism.label
    item = f"{label}: people needed"
    low, high = (_value(found, table, label, quantity) for quantity in (FEW, ENOUGH))
    stated = _value(found, table, statement.name, STATED)
    if low is None or high is None or stated is None:
        return Line(table, item, "", "", Agreement.ABSENT, "The data is not at hand.")
    measured = people_text(low, high)
    note = (
        f"{statement.name} asks for {stated / high:.3g} to {stated / low:.3g} times as many as "
        "are needed."
    )
    if not statement.in_paper:
        return Line(table, item, "", measured, Agreement.ADDED, f"{note[0].upper()}{note[1:]}")
    reported = f"at most {stated:,.0f} people"
    agreement = Agreement.AGREES if low <= stated else Agreement.DIFFERS
    return Line(table, item, reported, measured, agreement, note)


def _asked(found: Measurements, statement: Statement, mechanism: Mechanism) -> str:
    """Return how many times the people needed a theorem asks for, over the tables."""
    times = []
    for table in TABLES:
        stated = _value(found, table, statement.name, STATED)
        ends = [_value(found, table, mechanism.label, quantity) for quantity in (FEW, ENOUGH)]
        times += [stated / people for people in ends if people is not None and stated is not None]
    told = f" {min(times):.0f} to {max(times):.0f} times" if times else ""
    return f"Enough on every table, and{told} as many as are needed."


def _comparable(found: Measurements, table: str) -> Line:
    """Return whether neither mechanism needs more than twice the people of the other."""
    item = "Wishart over PPCA: ratio of the people"
    line = _comparison_line(found, table)
    if line.agreement is Agreement.ABSENT:
        return line
    low, high = (float(word) for word in line.measured.split(" to "))
    near = low <= 2 and high >= 0.5
    note = "Read as neither needing twice the people of the other."
    agreement = Agreement.AGREES if near else Agreement.DIFFERS
    return Line(table, item, "comparable", line.measured, agreement, note)


def _comparison_line(found: Measurements, table: str) -> Line:
    """Return how the Wishart's need stands to PPCA's, beside the ratio of the stated n."""
    item = "Wishart over PPCA: ratio of the people"
    stated = [_value(found, table, name, STATED) for name in (THEOREM_7.name, THEOREM_8.name)]
    ends = [
        _value(found, table, mechanism.label, quantity)
        for mechanism in (WISHART, PPCA)
        for quantity in (FEW, ENOUGH)
    ]
    numbers = [value for value in (*stated, *ends) if value is not None]
    if len(numbers) < 6:
        return Line(table, item, "", "", Agreement.ABSENT, "The data is not at hand.")
    theorem7, theorem8, few, enough, ppca_few, ppca_enough = numbers
    note = (
        f"The theorems ask for {theorem7 / theorem8:.3g} times as many with the Wishart; what "
        "each is loose by decides that, and not the mechanisms."
    )
    measured = f"{few / ppca_enough:.2g} to {enough / ppca_few:.2g}"
    return Line(table, item, "", measured, Agreement.ADDED, note)
