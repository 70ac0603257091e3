"""Statistics by row length: two passes, one pass and all rows at once agree."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dpviz.core.by_length import (
    GRID,
    ByLength,
    InBlocks,
    ReadAgain,
    at_rank,
    longer,
    squares_along,
)


def hard_rows() -> np.ndarray:
    """Rows over 400 orders of magnitude, with zeros and with ties at the ends of steps."""
    rng = np.random.default_rng(6)
    rows = rng.standard_normal((500, 3)) * 2.0 ** rng.uniform(-40, 60, (500, 1))
    rows[:4] = np.array([[0, 1e200, 1e-200, 1.7e308]]).T
    rows[4:40] = 0
    rows[4:40, 0] = GRID[200:236]  # These lengths lie exactly on grid steps.
    return rows


def test_the_grid_has_whole_powers_of_two_and_eight_steps_between_them() -> None:
    whole = np.log2(GRID) == np.rint(np.log2(GRID))
    assert whole.sum() == 90
    assert np.allclose(GRID[1:] / GRID[:-1], 2**0.125, rtol=1e-14)
    with pytest.raises(ValueError, match="at the radii of their grid"):
        longer(ByLength(2), np.array([1.5]))


def test_one_pass_tells_what_two_do() -> None:
    rows = hard_rows()
    twice, once = ReadAgain(InBlocks(rows), *rows.shape), ByLength(3)
    for block in np.array_split(rows, 9):
        part = ByLength(3)
        part.add(block, 0)
        once.merge(part)
    once = pickle.loads(pickle.dumps(once))
    assert (once.counts == twice.counts).all()
    lengths = np.linalg.norm(rows[4:], axis=1)
    extremes = np.array([0, 1e200, 1e-200, 1e308])
    counts = (np.append(lengths, extremes)[:, None] > GRID).sum(axis=0)
    assert (longer(once, GRID) == counts).all()
    for radius in (None, *GRID[::50]):
        moment, other = once.moment(radius), twice.moment(radius)
        np.testing.assert_allclose(moment, other, rtol=1e-12, atol=1e-300)
        assert np.trace(moment) <= 1
        if radius is not None:
            axis = np.array([[0.6], [0.0], [0.8]])
            alone = ReadAgain(InBlocks(rows), *rows.shape).squares_along(axis, float(radius))
            exact = squares_along(axis, moment)
            np.testing.assert_allclose(alone, exact, rtol=1e-10, atol=1e-15)
            np.testing.assert_allclose(once.squares_along(axis, float(radius)), exact, rtol=1e-10)
            assert alone.sum() <= 1 + 1e-12
    # Control: rounding row lengths to the next grid step gives a different matrix.
    assert not np.allclose(once.moment(float(GRID[200])), twice.moment(float(GRID[201])), rtol=1e-3)
    rows = rows[40:] / np.linalg.norm(rows[40:], axis=1)[:, None] * GRID[40:500, None]
    few = ByLength(3)
    few.add(rows, 0)
    np.testing.assert_allclose(few.everything(), rows.T @ rows / len(rows), rtol=1e-9)
    for rank in (0.0, 3.5, 100.0, 1e9):
        radius = at_rank(few, rank)
        place = int(np.flatnonzero(radius == GRID)[0])
        assert longer(few, GRID)[place] <= rank or place == len(GRID) - 1
        assert place == 0 or longer(few, GRID)[place - 1] > rank
