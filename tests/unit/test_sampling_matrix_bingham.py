"""Frames of the matrix Bingham law, by any sampler: shapes, streams, routes."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from dpviz.core.seeding import Draws
from dpviz.sampling import anchored, macg
from dpviz.sampling.matrix_bingham import matrix_bingham
from dpviz.sampling.stiefel import stiefel_bingham

VALUES = np.array([6.0, 4.0, 3.0, 2.0, 1.0, 0.5, 0.0])
samplers = pytest.mark.parametrize("sampler", [anchored, macg], ids=["anchored", "macg"])


def trials(size: int, first: int = 0) -> Draws:
    return Draws.trials(5, "frames", range(first, first + size))


@samplers
@pytest.mark.parametrize("k", [2, 3, 5, 6])
def test_frames_are_orthonormal_and_each_draw_has_its_own_bytes(
    k: int, sampler: ModuleType
) -> None:
    together = matrix_bingham(VALUES, k, trials(5), rejection=sampler.rejected)
    assert together.exact
    gram = together.frames.transpose(0, 2, 1) @ together.frames
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(k), gram.shape), atol=1e-13)
    scores = np.einsum("i,tij->t", VALUES, together.frames**2)
    np.testing.assert_allclose(together.trace, scores[None], rtol=1e-12)
    for t in range(5):
        alone = matrix_bingham(VALUES, k, trials(1, t), rejection=sampler.rejected)
        np.testing.assert_array_equal(alone.frames[0], together.frames[t])


@samplers
def test_more_than_half_the_columns_go_by_their_complement(
    sampler: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "WORTH", 1.1)  # Make the sampler always use the chain.
    values = 200 * VALUES
    draw = matrix_bingham(values, 5, trials(6), 4, sampler.rejected)
    assert draw.trace.shape == (5, 6)
    scores = np.einsum("i,tij->t", values, draw.frames**2)
    np.testing.assert_allclose(draw.trace[-1], scores, rtol=1e-12)
    # Chains that start at the mode have the sum of the top 5 eigenvalues as their first trace.
    np.testing.assert_allclose(draw.trace[0, ::2], values[:5].sum(), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 7])
def test_one_column_and_all_are_those_of_the_chain_s_file(k: int) -> None:
    one, same = (draw(VALUES, k, trials(3)) for draw in (matrix_bingham, stiefel_bingham))
    np.testing.assert_array_equal(one.frames, same.frames)
