"""Chaudhuri, Sarwate and Sinha 2012, Figure 2 at alpha .1, in three readings.

The numbers read off the paper's setting (spiked table, n 5,000, k 2, delta .05) are known to .03;
see benchmarks/figure2.py for the readings and the whole curve.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.figure2 import READINGS, curve, reading_of, table_of
from dpviz.datasets import load

# Share of the optimum: PPCA, MOD-SULQ.
STATED = {"as drawn": (0.96, 0.72), "clipped": (0.94, 0.56), "divided": (0.63, 0.28)}
WITHIN = 0.03
# Draws are so many that six standard errors (two-sided 2e-9) fit between the farthest mean seen in
# other runs and the .03. Divided PPCA: std .121 and .020 from the stated, so 6 * .121/sqrt(6000) =
# .0094 of the .010 left. The others: std at most .12 and .010 off, 6 * .12/sqrt(1500) = .019 of
# .020 left.
DRAWS = {"as drawn": 1_500, "clipped": 1_500, "divided": 6_000}


def shares(reading: str, draws: int) -> tuple[float, ...]:
    """Return the mean shares of PPCA and MOD-SULQ at alpha .1."""
    return tuple(point.share.mean for point in curve(reading, [0.1], [5_000], draws))


@pytest.mark.parametrize("reading", READINGS)
def test_share_of_the_optimum(reading: str) -> None:
    found = shares(reading, DRAWS[reading])
    assert found == pytest.approx(STATED[reading], abs=WITHIN)
    # The control: the right reading matters, for no other one's numbers fit.
    for other, stated in STATED.items():
        fits = found == pytest.approx(stated, abs=WITHIN)
        assert fits == (other == reading), other


def test_the_readings_differ_in_the_rows_alone() -> None:
    norms = np.linalg.norm(load("spiked").rows, axis=1)
    table = load("spiked")
    drawn, clipped, divided = (reading_of(table, reading) for reading in READINGS)
    # The mean squared norm of all three, in the units of the rows.
    assert drawn.moment.total == pytest.approx(np.mean(norms**2), rel=1e-12)
    assert clipped.moment.total == pytest.approx(np.mean(np.minimum(norms, 1) ** 2), rel=1e-12)
    assert divided.moment.total == pytest.approx(np.mean((norms / norms.max()) ** 2), rel=1e-12)
    assert clipped.bounded_rows == int((norms > 1).sum()) > 0
    assert drawn.bounded_rows == divided.bounded_rows == 0
    assert "not private" in drawn.notes[0]


def test_the_curve_is_printed_whole() -> None:
    points = [p for reading in READINGS for p in curve(reading, [0.1, 1.0], [500], 5)]
    lines = table_of(points).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| 0.1 | 500 |")
    assert lines[0].count("PPCA") == lines[0].count("MOD-SULQ") == 3
