"""A small picture of each mechanism: what its noise looks like, or its law.

Every portrait is of the same made-up table, so that mechanisms can be set side by side. Of one
that releases a matrix it shows the eigenvalues of what was added; of any other, how far the first
released direction lies from the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.blas import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

ROWS, FEATURES, EPSILON = 600, 8, 1.0
DRAWS = 100
BINS = 25
_SIGNALS = (3.0, 2.0)  # standard deviations of the first two columns; 1 of the others


@dataclass(frozen=True, eq=False)
class Portrait:
    """A histogram.

    Attributes
    ----------
    kind : {"noise", "angle"}
        Eigenvalues of the noise, or degrees from the first true direction.
    heights : ndarray of shape (BINS,)
        The highest is 1.
    low, high : float
        Ends of the axis; of noise they are as far from 0.
    """

    kind: str
    heights: FloatArray
    low: float
    high: float


@lru_cache(maxsize=1)
def _example() -> tuple[Prepared, Settings]:
    spread = np.ones(FEATURES)
    spread[: len(_SIGNALS)] = _SIGNALS
    rows = spread * generator(0, "portrait").standard_normal((ROWS, FEATURES))
    columns = tuple(f"x{number}" for number in range(1, FEATURES + 1))
    table = Table("portrait", rows, columns)
    settings = Settings(epsilon=EPSILON, k=2, trials=DRAWS, allocation="binary:1,2:0.8")
    return prepare(table, settings), settings


@lru_cache(maxsize=128)
def portrait(mechanism: Mechanism) -> Portrait | None:
    """Return the portrait of a variant, or None where it cannot run on the example."""
    prepared, settings = _example()
    problem, budget = prepared.problem(settings), prepared.budget(settings)
    if mechanism.why_not(problem, budget, rows=prepared.serves(mechanism)) is not None:
        return None
    cell = Cell(mechanism, problem, budget, settings.seed, range(DRAWS))
    outcome = evaluate(cell, prepared)
    release = outcome.release
    if release.matrix is None:
        first = release.components[:, :, 0]
        true = prepared.reference.eigenvectors[:, 0]
        overlaps = np.clip(np.abs(first @ true), 0.0, 1.0)
        degrees = np.asarray(np.degrees(np.arccos(overlaps)), dtype=np.float64)
        return _counted("angle", degrees, 0.0, 90.0)
    with one_blas_thread():
        spectra = np.linalg.eigvalsh(release.matrix - prepared.moment.A)
    values = np.asarray(spectra, dtype=np.float64).ravel()
    # The largest few would press the rest into one bar.
    reach = float(np.quantile(np.abs(values), 0.98)) or 1.0
    return _counted("noise", values, -reach, reach)


def _counted(kind: str, values: FloatArray, low: float, high: float) -> Portrait:
    counts, _ = np.histogram(np.clip(values, low, high), bins=BINS, range=(low, high))
    return Portrait(kind, counts / max(counts.max(), 1), low, high)
