"""A small picture of each mechanism: how far it turns the first direction, and its noise.

Every portrait is of the same made-up table, so that mechanisms can be set side by side. Angles are
on one scale for all of them; of one that releases a matrix there are also the eigenvalues of what
was added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.resources import one_blas_thread
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
    """Histograms whose highest bar is 1.

    Attributes
    ----------
    angles : ndarray of shape (BINS,)
        Degrees from the first true direction, from 0 to 90.
    median : float
        Of the angles, in degrees.
    noise : ndarray of shape (BINS,) or None
        Eigenvalues of the noise, from -reach to reach; None where no matrix is released.
    reach : float
    """

    angles: FloatArray
    median: float
    noise: FloatArray | None
    reach: float


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
    overlaps = np.abs(release.components[:, :, 0] @ prepared.reference.eigenvectors[:, 0])
    degrees = np.asarray(np.degrees(np.arccos(np.clip(overlaps, 0.0, 1.0))), dtype=np.float64)
    angles, median = _counted(degrees, 0.0, 90.0), float(np.median(degrees))
    if release.matrix is None:
        return Portrait(angles, median, None, 0.0)
    with one_blas_thread():
        spectra = np.linalg.eigvalsh(release.matrix - prepared.moment.A)
    values = np.asarray(spectra, dtype=np.float64).ravel()
    # The largest few would press the rest into one bar.
    reach = float(np.quantile(np.abs(values), 0.98)) or 1.0
    return Portrait(angles, median, _counted(values, -reach, reach), reach)


def _counted(values: FloatArray, low: float, high: float) -> FloatArray:
    counts, _ = np.histogram(np.clip(values, low, high), bins=BINS, range=(low, high))
    return np.asarray(counts / max(counts.max(), 1), dtype=np.float64)
