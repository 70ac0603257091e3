"""Wishart samples: shape, streams, smoothness in the degrees of freedom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.core.seeding import Draws, generator
from dpviz.sampling.ensembles import bartlett_factor, wishart, wishart_from_uniforms


@given(d=st.integers(1, 8), extra=st.floats(0, 50), seed=st.integers(0, 10_000))
def test_positive_definite_and_symmetric(d: int, extra: float, seed: int) -> None:
    for sampler in (wishart, wishart_from_uniforms):
        draw = sampler(Draws.batch(generator(seed, "wishart"), 3), d, d + extra)
        assert draw.shape == (3, d, d)
        np.testing.assert_array_equal(draw, draw.transpose(0, 2, 1))
        assert (np.linalg.eigvalsh(draw) > 0).all()


def test_factor_is_lower_triangular_with_positive_diagonal() -> None:
    factor = bartlett_factor(Draws.batch(generator(0, "wishart"), 3), 5, 5.5)
    np.testing.assert_array_equal(factor, np.tril(factor))
    assert (np.diagonal(factor, axis1=1, axis2=2) > 0).all()


@pytest.mark.parametrize("sampler", [wishart, bartlett_factor, wishart_from_uniforms])
def test_batched_equals_looped(sampler) -> None:  # type: ignore[no-untyped-def]
    together = sampler(Draws.trials(3, "wishart", range(5)), 6, 7.5)
    alone = [sampler(Draws.trials(3, "wishart", [t]), 6, 7.5)[0] for t in range(5)]
    np.testing.assert_array_equal(together, np.array(alone))


def test_one_stream_moves_smoothly_and_upwards_with_df() -> None:
    low, near, high = (
        bartlett_factor(Draws.trials(0, "wishart", range(4)), 5, df) for df in (9, 9 + 1e-7, 40)
    )
    np.testing.assert_allclose(low, near, atol=1e-6)
    below = np.tril_indices(5, -1)
    np.testing.assert_array_equal(low[:, *below], high[:, *below])
    diagonal = np.arange(5)
    assert (high[:, diagonal, diagonal] > low[:, diagonal, diagonal]).all()
