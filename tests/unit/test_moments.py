"""The second moment and the sign rule of its eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.core.arrays import fix_signs
from dpviz.core.moments import SecondMoment
from dpviz.core.seeding import generator


def test_eigenvalues_descend_and_rebuild_the_matrix() -> None:
    rows = generator(0, "moments").standard_normal((50, 6))
    moment = SecondMoment(rows.T @ rows / 50, 50)
    assert moment.d == 6
    assert (np.diff(moment.eigenvalues) <= 0).all()
    V = moment.eigenvectors
    np.testing.assert_allclose(V * moment.eigenvalues @ V.T, moment.A, atol=1e-13)
    assert moment.total == pytest.approx(moment.eigenvalues.sum(), rel=1e-14)


def test_everything_is_read_only() -> None:
    moment = SecondMoment(np.diag([2.0, 1.0]), 10)
    for array in (moment.A, moment.eigenvalues, moment.eigenvectors):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))
def test_sign_rule(seed: int, d: int, size: int) -> None:
    vectors = generator(seed, "signs").integers(-3, 4, (size, d, 2)).astype(float)
    result = fix_signs(vectors)
    np.testing.assert_array_equal(np.abs(result), np.abs(vectors))
    # In each column the first entry of largest size is positive, unless the column is zero.
    largest = np.abs(result).argmax(axis=1)
    assert (np.take_along_axis(result, largest[:, None], axis=1) >= 0).all()
    np.testing.assert_array_equal(fix_signs(result), result)
    np.testing.assert_array_equal(fix_signs(-vectors), result)
