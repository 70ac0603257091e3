"""Where PPCA's chain takes other draws on another machine, and where it does not.

An eigenvector has no sign of its own, and builds of LAPACK choose differently. A column that is
drawn in the eigenbasis of a restricted matrix then has other coordinates: another draw of the same
law from the same random numbers. This is why the browser's PPCA may differ from an installed one,
and why one processor's may differ from another's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpviz.core.seeding import Draws
from dpviz.sampling import macg
from dpviz.sampling.matrix_bingham import matrix_bingham

FAR = np.linspace(0.0, 60.0, 12)  # rejection would take too long: a chain, in few dimensions
NEAR = np.linspace(0.0, 6.0, 4)  # drawn exactly, by rejection
MANY = np.linspace(0.0, 900.0, 40)  # a chain that diagonalises nothing of that size


def _frames(values: np.ndarray, k: int) -> Any:
    return matrix_bingham(values, k, Draws.trials(0, "signs", range(4)), 3, macg.rejected)


@pytest.fixture
def other_signs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every other eigenvector is turned round, as another LAPACK might have it."""
    real = np.linalg.eigh

    def turned(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = real(matrix)
        return values, vectors * np.where(np.arange(vectors.shape[-1]) % 2 == 0, 1.0, -1.0)

    monkeypatch.setattr(np.linalg, "eigh", turned)
    yield
    monkeypatch.undo()


@pytest.fixture
def here() -> dict[str, Any]:
    return {"far": _frames(FAR, 3), "near": _frames(NEAR, 2), "many": _frames(MANY, 5)}


def test_only_a_chain_that_diagonalises_depends_on_signs(
    here: dict[str, Any], other_signs: None
) -> None:
    far, near, many = _frames(FAR, 3), _frames(NEAR, 2), _frames(MANY, 5)
    assert near.exact
    assert not far.exact
    assert far.dense_updates > 0
    assert many.dense_updates == 0
    # signs change no law: the mean trace of the first step is that of the same start
    assert far.trace[0] == pytest.approx(here["far"].trace[0], rel=1e-12)
    assert np.abs(far.frames - here["far"].frames).max() > 0.1
    assert near.frames == pytest.approx(here["near"].frames, abs=1e-12)
    # rounding grows along the chain, as the Gibbs sweeps condition on what came before
    assert many.frames == pytest.approx(here["many"].frames, abs=1e-5)
