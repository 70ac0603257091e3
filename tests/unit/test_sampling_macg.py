"""Exact frames (orthonormal columns) by rejection: shapes, streams, routes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dpviz.core.cancelling import cancelled_by
from dpviz.core.seeding import Draws
from dpviz.sampling import macg
from dpviz.sampling import matrix_bingham as sampler

matrix_bingham = partial(sampler.matrix_bingham, rejection=macg.rejected)


def trials(size: int, first: int = 0) -> Draws:
    return Draws.trials(5, "macg", range(first, first + size))


def test_a_uniform_law_accepts_every_proposal() -> None:
    # With equal eigenvalues M = d I, so t_i = d for every proposal.
    assert macg.acceptance(np.zeros(9), 4) == pytest.approx(1.0, abs=1e-12)
    assert matrix_bingham(np.full(9, 2.0), 4, trials(7)).proposals == 7


def test_a_large_law_is_tried_in_slices_that_look_up_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sixteen fixed proposals of 600 x 290 run one per slice, because all at once take too long."""
    double_gaps = np.linspace(0, 40, 600)
    looks: list[None] = []
    with cancelled_by(lambda: looks.append(None)):
        value = macg.acceptance(double_gaps, 290)
    assert len(looks) == 16
    pilot = macg._pilot(600, 290)
    monkeypatch.setattr(macg, "_PILOT_ENTRIES", 1 << 30)
    monkeypatch.setattr(macg, "_pilot", lambda d, k: pilot)
    looks.clear()
    with cancelled_by(lambda: looks.append(None)):
        assert macg.acceptance(double_gaps, 290) == value > 0
    assert len(looks) == 1  # Control: one slice allows only one check for a stop.
