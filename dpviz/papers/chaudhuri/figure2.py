"""Chaudhuri, Sarwate and Sinha 2012, Figure 2: utility against the privacy parameter.

The paper does not say how unbounded Gaussian rows met its assumption that no row is longer than 1.
The answer decides the result. We compare four readings:

* **as drawn**: rows are left unbounded. Noise is calibrated to R = 1 and most of the privacy is
  imaginary. This reading is **not private**; it serves only for comparison with the figure.
* **unit length**: every row is scaled to length 1.
* **clipped**: rows longer than 1 are scaled down to length 1.
* **divided**: all rows are divided by the largest row norm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import optimum
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain
from dpviz.core.settings import Settings
from dpviz.datasets import Table, load
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.chaudhuri._shared import ADDED, PPCA, SULQ
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.preparation.bounding import prepare
from dpviz.preparation.prepared import Measured
from dpviz.simulation.compare import run_cell
from dpviz.simulation.simulate import Cell

DRAWN, UNIT, CLIPPED, DIVIDED = "as drawn", "unit length", "clipped", "divided"
READINGS = (DRAWN, UNIT, CLIPPED, DIVIDED)
TABLE, N, D, K, DELTA = "spiked", 5_000, 10, 2, 0.05
ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0)
MODERATE = 0.1
SIZES = (500, 1_000, 2_000, N)
SHARE = "share of the optimum"
LONG_SHARE = "share of the optimum, 1,000 sweeps"
SHARE_BY_N = f"share of the optimum at alpha {MODERATE:g}"
CEILING = "q_F of the exact top 2"
LONGER = "share of rows longer than 1"
THOUSAND = parse_variant("ppca[sweeps=1000]")
THOUSAND_ALPHAS = (0.1, 0.5, 2.0)


def reading_of(table: Table, reading: str) -> Measured:
    """Return the second moments of a table in one of the readings.

    Rows are not centred, because the paper's second moment is about zero.

    Parameters
    ----------
    table : Table
    reading : str
        A reading, one of `READINGS`.
    """
    settings = Settings(table=table.name, center="none", row_bound="1", delta=DELTA, k=K)
    if reading == CLIPPED:
        return prepare(table, settings)
    if reading == DIVIDED:
        return prepare(table, replace(settings, row_bound="max"))
    n, d = table.rows.shape
    rows, note = table.rows, "Rows are not bounded although the noise assumes it: not private."
    if reading == UNIT:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        note = "Every row is scaled to length 1."
    moment = SecondMoment(rows.T @ rows / n, n)
    return Measured(
        name=table.name,
        columns=table.columns,
        domain=Domain.ball(d),
        row_bound=1.0,
        moment=moment,
        reference=moment,
        bounded_rows=0,
        notes=(note,),
        assumed_public=(),
    )


def shares(
    measured: Measured, mechanism: Mechanism, alpha: float, draws: int, seed: int
) -> FloatArray:
    """Return each release's share of the optimum, shape (draws,).

    Parameters
    ----------
    measured : Measured
        Moments from `reading_of`.
    mechanism : Mechanism
    alpha : float
        Name of epsilon in the paper.
    draws, seed : int
    """
    problem = measured.problem(Settings(table=TABLE, k=K))
    cell = Cell(mechanism, problem, Budget(alpha, DELTA), seed, range(draws))
    return run_cell(cell, measured, ["captured_share"]).metrics["captured_share"]


class ReadingPart(Part):
    """One mechanism in one reading, by alpha and by n; without a mechanism, the best q_F."""

    reading: str = ""
    mechanism: str = ""
    draws: int = 1


class ChaudhuriFigure2(Experiment):
    """Utility on the spiked table in four readings; see `info`."""

    named: ClassVar = {"alpha": MODERATE}
    pictures: ClassVar = {
        "alpha": (SHARE, PPCA, SULQ, *ADDED),
        "n": (SHARE_BY_N, PPCA, SULQ, *ADDED),
    }

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts of the experiment for each reading, with each mechanism and with none."""
        draws = 20 if effort is Effort.QUICK else 100  # The paper uses 100 releases.
        mechanisms = (PPCA, SULQ, *ADDED)
        return [
            *(
                ReadingPart(reading=reading, mechanism=mechanism.text, draws=draws)
                for reading in READINGS
                for mechanism in mechanisms
            ),
            *(ReadingPart(reading=reading) for reading in READINGS),
            *(
                ()
                if effort is Effort.QUICK  # This part takes a minute, so a quick run leaves it out.
                else (ReadingPart(reading=DRAWN, mechanism=THOUSAND.text, draws=draws),)
            ),
        ]

    def shared(self, data: str) -> dict[tuple[str, int], Measured]:
        """Return the spiked table's moments by reading and n."""
        whole = load(TABLE)
        return {
            (reading, n): reading_of(Table(TABLE, whole.rows[:n], whole.columns), reading)
            for reading in READINGS
            for n in SIZES
        }

    def run(
        self, part: ReadingPart, shared: dict[tuple[str, int], Measured], seed: int
    ) -> Measurements:
        """Return the share of the optimum at every alpha and at every n."""
        reading, whole = part.reading, shared[part.reading, N]
        if not part.mechanism:
            facts = {CEILING: optimum(whole.moment, K)}
            if reading == DRAWN:
                facts[LONGER] = float(np.mean(np.linalg.norm(load(TABLE).rows, axis=1) > 1))
            return Measurements(
                {Point(reading, "", key): np.array([value]) for key, value in facts.items()}
            )
        mechanism = parse_variant(part.mechanism)
        label, draws = mechanism.label, part.draws
        if mechanism == THOUSAND:
            return Measurements(
                {
                    Point(reading, label, LONG_SHARE, alpha): shares(
                        whole, mechanism, alpha, draws, seed
                    )
                    for alpha in THOUSAND_ALPHAS
                }
            )
        found = {
            Point(reading, label, SHARE, alpha): shares(whole, mechanism, alpha, draws, seed)
            for alpha in ALPHAS
        }
        for n in SIZES[:-1]:
            values = shares(shared[reading, n], mechanism, MODERATE, draws, seed)
            found[Point(reading, label, SHARE_BY_N, n)] = values
        found[Point(reading, label, SHARE_BY_N, N)] = found[Point(reading, label, SHARE, MODERATE)]
        return Measurements(found)
