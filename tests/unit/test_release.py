"""Releases made from matrices and from frames."""

from __future__ import annotations

import numpy as np

from dpviz.core.arrays import fix_signs
from dpviz.core.release import Release
from dpviz.core.seeding import generator


def symmetric_batch(size: int, d: int) -> np.ndarray:
    square = generator(0, "release").standard_normal((size, d, d))
    return square + square.transpose(0, 2, 1)


def test_components_are_the_top_of_each_matrix() -> None:
    matrices = symmetric_batch(7, 5)
    release = Release.of_matrices(matrices, 2)
    assert release.raw is matrices
    assert release.matrix is matrices
    assert release.eigenvalues is not None
    for matrix, values, V in zip(matrices, release.eigenvalues, release.components, strict=True):
        np.testing.assert_allclose(np.sort(values)[::-1], values)
        np.testing.assert_allclose(matrix @ V, V * values[:2], atol=1e-12)
        np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-13)


def test_what_was_published_may_be_another_matrix() -> None:
    matrices = symmetric_batch(2, 3)
    raw = matrices + 1j
    assert Release.of_matrices(matrices, 1, raw).raw is raw


def test_frames_keep_their_span_and_get_the_sign_rule() -> None:
    frames = np.linalg.qr(generator(1, "frames").standard_normal((4, 6, 3)))[0]
    release = Release.of_frames(frames)
    assert release.matrix is None
    assert release.eigenvalues is None
    np.testing.assert_array_equal(release.components, fix_signs(frames))
    np.testing.assert_array_equal(release.raw, frames)
