"""Chaudhuri, Sarwate and Sinha 2012, Figure 2, redrawn in three readings.

``python -m benchmarks.figure2 [--over alpha|n] [--draws 50]`` prints the share
of the optimum that PPCA and MOD-SULQ keep on the spiked table (k = 2, delta =
.05), along the paper's alpha (our epsilon) or along n.

The paper does not say how rows of unbounded Gaussian data met its assumption
that no row is longer than 1, and the answer decides the picture:

* **as drawn**: they did not. The noise is calibrated to R = 1 and most of the
  privacy is imaginary: this reading is **not private**, and is here to be
  compared with the figure only.
* **clipped**: rows longer than 1 are scaled down to it.
* **divided**: all rows are divided by the largest norm.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.datasets import Table, load
from dpviz.measured import Measured
from dpviz.mechanisms.mod_sulq import ModSulq
from dpviz.mechanisms.ppca import Ppca
from dpviz.metrics import Summary, summarise
from dpviz.moments import SecondMoment
from dpviz.prepare import prepare
from dpviz.problem import Domain
from dpviz.settings import Settings
from dpviz.sweeps import Cell, run_cell

READINGS = ("as drawn", "clipped", "divided")
MECHANISMS = (Ppca(), ModSulq())
DELTA, K = 0.05, 2
ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
PEOPLE = (500, 1_000, 2_000, 5_000)


def reading_of(table: Table, reading: str) -> Measured:
    """Return the table's moments in one of the three readings.

    Rows are not centred: the paper's second moment is about zero.
    """
    settings = Settings(table=table.name, center="none", row_bound="1", delta=DELTA, k=K)
    if reading == "clipped":
        return prepare(table, settings)
    if reading == "divided":
        return prepare(table, Settings(table=table.name, center="none", delta=DELTA, k=K))
    n, d = table.rows.shape
    moment = SecondMoment(table.rows.T @ table.rows / n, n)
    return Measured(
        name=table.name,
        columns=table.columns,
        domain=Domain.ball(d),
        row_bound=1.0,
        moment=moment,
        reference=moment,
        bounded_rows=0,
        notes=("Rows are not bounded although the noise assumes it: not private.",),
        assumed_public=(),
    )


@dataclass(frozen=True)
class Point:
    """One mechanism in one reading, at one alpha and n."""

    reading: str
    mechanism: str
    alpha: float
    n: int
    share: Summary


def curve(
    reading: str, alphas: Sequence[float], people: Sequence[int], draws: int, seed: int = 0
) -> list[Point]:
    """Return the share of the optimum at every alpha and n.

    Parameters
    ----------
    reading : str
        One of `READINGS`.
    alphas : sequence of float
        The paper's name for epsilon.
    people : sequence of int
        The first so many rows of the spiked table, at most all 5,000.
    draws : int
    seed : int
    """
    whole = load("spiked")
    found = []
    for n in people:
        measured = reading_of(Table("spiked", whole.rows[:n], whole.columns), reading)
        for alpha in alphas:
            settings = Settings(table="spiked", epsilon=alpha, delta=DELTA, k=K)
            problem, budget = measured.problem(settings), measured.budget(settings)
            for mechanism in MECHANISMS:
                cell = Cell(mechanism, problem, budget, seed, range(draws))
                shares = run_cell(cell, measured, ["captured_share"]).metrics["captured_share"]
                point = Point(reading, mechanism.info.label, alpha, n, summarise(shares))
                found.append(point)
    return found


def table_of(points: Sequence[Point]) -> str:
    """Return the points as a Markdown table: one row per alpha and n."""
    labels = [mechanism.info.label for mechanism in MECHANISMS]
    columns = [(reading, label) for reading in READINGS for label in labels]
    heads = " | ".join(f"{label}, {reading}" for reading, label in columns)
    lines = [f"| alpha | n | {heads} |", "|" + "---|" * (2 + len(columns))]
    for alpha, n in sorted({(point.alpha, point.n) for point in points}):
        here = {(p.reading, p.mechanism): p.share for p in points if (p.alpha, p.n) == (alpha, n)}
        cells = " | ".join(f"{here[c].mean:.3f} ± {here[c].se:.3f}" for c in columns)
        lines.append(f"| {alpha:g} | {n:,} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Print the figure as a table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--over", choices=("alpha", "n"), default="alpha")
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    alphas, people = (ALPHAS, PEOPLE[-1:]) if given.over == "alpha" else ((0.1,), PEOPLE)
    points = [
        point
        for reading in READINGS
        for point in curve(reading, alphas, people, given.draws, given.seed)
    ]
    print(table_of(points))
    norms = np.linalg.norm(load("spiked").rows, axis=1)
    print(
        f"\nAs drawn, {np.mean(norms > 1):.0%} of the rows are longer than the 1 that the noise "
        "is calibrated to: that reading is not private."
    )


if __name__ == "__main__":
    main()
