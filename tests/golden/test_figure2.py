"""Chaudhuri, Sarwate and Sinha 2012, Figure 2 at alpha .1, in three readings.

The paper's two shares (spiked table, n 5,000, k 2, delta .05) are known to .03; see
dpviz/papers/chaudhuri/figure2.py for the readings and the whole curve.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpviz.datasets import load
from dpviz.papers.chaudhuri._shared import PPCA, SULQ
from dpviz.papers.chaudhuri.figure2 import (
    CLIPPED,
    DIVIDED,
    DRAWN,
    UNIT,
    reading_of,
    shares,
)

STATED = {DRAWN: (0.96, 0.72), CLIPPED: (0.94, 0.56), DIVIDED: (0.63, 0.28)}
WITHIN = 0.03
# Six standard errors (two-sided 2e-9) must fit between the farthest mean in other runs and the
# limit of .03. Divided PPCA has std .121 and .010 left, so 6 * .121/sqrt(6000) = .0094 fits. The
# other readings have std at most .12 and .020 left, so 6 * .12/sqrt(1500) = .019 fits.
DRAWS = {DRAWN: 1_500, CLIPPED: 1_500, DIVIDED: 6_000}


@pytest.mark.parametrize("reading", STATED)
def test_share_of_the_optimum(reading: str) -> None:
    moment = reading_of(load("spiked"), reading)
    shares_of_both = tuple(
        float(shares(moment, mechanism, 0.1, DRAWS[reading], seed=0).mean())
        for mechanism in (PPCA, SULQ)
    )
    assert shares_of_both == pytest.approx(STATED[reading], abs=WITHIN)
    # Control: the printed numbers of any other reading of the paper do not fit this reading.
    for other, share in STATED.items():
        fits = shares_of_both == pytest.approx(share, abs=WITHIN)
        assert fits == (other == reading), other


def test_the_readings_differ_in_the_rows_alone() -> None:
    table = load("spiked")
    norms = np.linalg.norm(table.rows, axis=1)
    drawn_rows, clip, division, unit = (
        reading_of(table, reading) for reading in (DRAWN, CLIPPED, DIVIDED, UNIT)
    )
    # Compare each second moment's total with the mean squared norm, in the units of the rows.
    assert drawn_rows.moment.total == pytest.approx(np.mean(norms**2), rel=1e-12)
    assert clip.moment.total == pytest.approx(np.mean(np.minimum(norms, 1) ** 2), rel=1e-12)
    assert division.moment.total == pytest.approx(np.mean((norms / norms.max()) ** 2), rel=1e-12)
    assert unit.moment.total == pytest.approx(1.0, rel=1e-12)
    assert clip.bounded_rows == int((norms > 1).sum()) > 0
    assert drawn_rows.bounded_rows == division.bounded_rows == 0
    assert "not private" in drawn_rows.notes[0]
    assert "not private" not in unit.notes[0]
