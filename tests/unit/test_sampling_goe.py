"""Symmetric noise: shape, symmetry, streams."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import Draws, generator
from dpviz.sampling.ensembles import goe, symmetric, symmetric_laplace

Sampler = Callable[[Draws, int], FloatArray]
SAMPLERS = [symmetric, goe, symmetric_laplace]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("d", [1, 2, 7])
def test_shape_and_symmetry(sampler: Sampler, d: int) -> None:
    drawn = sampler(Draws.batch(generator(0, "goe"), 4), d)
    assert drawn.shape == (4, d, d)
    np.testing.assert_array_equal(drawn, drawn.transpose(0, 2, 1))
    assert len(np.unique(drawn)) == 4 * d * (d + 1) // 2  # the upper triangle has no repeats


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_batched_equals_looped(sampler: Sampler) -> None:
    together = sampler(Draws.trials(3, "goe", range(5)), 6)
    alone = [sampler(Draws.trials(3, "goe", [t]), 6)[0] for t in range(5)]
    np.testing.assert_array_equal(together, np.array(alone))


def test_goe_is_symmetric_noise_with_smaller_off_diagonal() -> None:
    plain = symmetric(Draws.trials(3, "goe", range(2)), 5)
    scaled = goe(Draws.trials(3, "goe", range(2)), 5)
    ratio = scaled / plain
    expected = np.where(np.eye(5) > 0, 1.0, np.sqrt(0.5))
    np.testing.assert_allclose(ratio, np.broadcast_to(expected, ratio.shape), rtol=1e-14)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_dimension_below_one_is_refused(sampler: Sampler) -> None:
    with pytest.raises(InvalidSetting, match="d must be at least 1; got '0'"):
        sampler(Draws.batch(generator(0, "goe"), 1), 0)
