"""Measure how the noise of a mechanism grows with d."""

from __future__ import annotations

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Release
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism
from dpviz.simulation.simulate import Batch, Trials, simulate


def _problem(d: int) -> Problem:
    return Problem(1_000, d, 1, Relation.REPLACE, Domain.ball(d))


def noise_norms(
    mechanism: Mechanism,
    d: int,
    rng: np.random.Generator,
    *,
    draws: int,
    delta: float = 1e-6,
) -> FloatArray:
    """Return simulated spectral norms of the noise on nA, at epsilon 1.

    If the release is not symmetric, the norm is of the noise on its symmetric part.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism that releases a matrix, with noise that does not depend on A.
    d : int
    rng : Generator
    draws : int
    delta : float

    Returns
    -------
    ndarray of shape (draws,)

    Raises
    ------
    CannotRun
        If the mechanism releases no matrix.
    """
    problem = _problem(d)
    n = problem.n
    calibration = mechanism.calibrate(problem, Budget(1.0, delta))
    # Simulate only a few matrices at a time, because 40 matrices of 400 x 400 would take 51 MB.
    streams, most = Batch(rng, draws), max(1, 2_000_000 // (d * d))
    if isinstance(mechanism, AdditiveMechanism):
        # For additive noise, use the standard noise alone instead of adding it to a zero matrix.
        scale = calibration.scale * n
        spectra = [
            np.linalg.eigvalsh(mechanism.standard_noise(problem, block.draws())) * scale
            for block in streams.blocks(most)
        ]
    else:
        empty = SecondMoment(np.zeros((d, d)), n)

        def spectrum(cell: Trials, release: Release) -> FloatArray:
            if release.eigenvalues is None:
                raise CannotRun(cell.mechanism.text, "this mechanism does not release a matrix")
            return release.eigenvalues * n

        task = Trials(mechanism, calibration, empty, streams, most)
        spectra = list(simulate([task], spectrum))
    return np.concatenate([np.abs(values).max(axis=1) for values in spectra])
