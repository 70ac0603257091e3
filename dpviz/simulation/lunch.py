"""What a release is worth after everything that costs no privacy: post-processing.

Two things are done. Directions: where the noise along directions is known, features are weighed by
the released diagonal (`dpviz.mechanisms._weighing`). No rule that turns with its input does better
under rotation-invariant noise than the leading eigenvectors of the noisy matrix, so the basis, in
which features differ, is all there is to gain from. Variances: a released matrix is brought to the
nearest one without negative eigenvalues whose trace is one that rows within their bound can have.
Its eigenvectors stay, and as both conditions are convex and hold for what was released with noise,
it is never farther from that in the Frobenius norm than before.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpviz.core.arrays import on_the_simplex
from dpviz.core.release import Calibration, Release
from dpviz.mechanisms._weighing import weighed
from dpviz.simulation.simulate import Cell

WHY_THE_BASIS = (
    "No rule that treats all directions alike does better than the leading directions of the noisy "
    "matrix: only features that differ in size leave something to gain."
)


def processed(cell: Cell, calibration: Calibration, release: Release) -> Release:
    """Return releases of a cell after post-processing.

    Behind a paid preparation each draw has a noise and a bound of its own: variances are only kept
    from being negative there.
    """
    if cell.mechanism.info.guarantee == "none":
        return release
    most = np.full(len(release.components), math.inf)
    if cell.paid is None:
        release = weighed(cell.mechanism, calibration, release)
        # rows clipped at a radius are no longer than that
        reach = cell.problem.domain.radius if release.radius is None else release.radius
        most[:] = np.square(reach)
    if release.matrix is None:
        return release
    values, vectors = np.linalg.eigh(release.matrix)
    kept = on_the_simplex(values, most)
    matrix = (vectors * kept[:, None, :]) @ vectors.transpose(0, 2, 1)
    return replace(release, matrix=matrix, eigenvalues=kept[:, ::-1].copy())
