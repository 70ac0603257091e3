"""How the noise of a mechanism grows with d, as measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Release
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism
from dpviz.simulation.bounds import fitted_power
from dpviz.simulation.simulate import Batch, Trials, simulate


def _problem(d: int) -> Problem:
    return Problem(1_000, d, 1, Relation.REPLACE, Domain.ball(d))


@dataclass(frozen=True, eq=False)
class Growth:
    """Measured growth of the noise's spectral norm with the dimension.

    Attributes
    ----------
    mechanism : str
    dimensions : ndarray of shape (points,)
    norms : ndarray of shape (points,)
        Mean spectral norm of the noise on nA at epsilon 1.
    errors : ndarray of shape (points,)
        Standard errors of the means.
    exponent, exponent_error : float
        Slope of log norm in log d, by weighted least squares, and its standard
        error from the draws.
    """

    mechanism: str
    dimensions: FloatArray
    norms: FloatArray
    errors: FloatArray
    exponent: float
    exponent_error: float


def noise_norms(
    mechanism: Mechanism,
    d: int,
    rng: np.random.Generator,
    *,
    draws: int,
    delta: float = 1e-6,
) -> FloatArray:
    """Return draws of the spectral norm of the noise on nA, at epsilon 1.

    Where what is published is not symmetric, of the noise on its symmetric part.

    Parameters
    ----------
    mechanism : Mechanism
        One that releases a matrix, by noise that does not depend on A.
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
    # A few at a time: 40 matrices of 400 x 400 would take 51 MB.
    streams, most = Batch(rng, draws), max(1, 2_000_000 // (d * d))
    if isinstance(mechanism, AdditiveMechanism):
        # standard noise is all there is: no zero matrix is added to it
        scale = calibration.scale * n
        spectra = [
            np.linalg.eigvalsh(mechanism.standard_noise(problem, block.draws())) * scale
            for block in streams.blocks(most)
        ]
    else:
        empty = SecondMoment(np.zeros((d, d)), n)

        def spectrum(cell: Trials, release: Release) -> FloatArray:
            if release.eigenvalues is None:
                raise CannotRun(cell.mechanism.text, "it releases no matrix")
            return release.eigenvalues * n

        drawn = Trials(mechanism, calibration, empty, streams, most)
        spectra = list(simulate([drawn], spectrum))
    return np.concatenate([np.abs(values).max(axis=1) for values in spectra])


def noise_growth(
    mechanism: AdditiveMechanism,
    dimensions: Sequence[int],
    rng: np.random.Generator,
    *,
    draws: int = 40,
) -> Growth:
    """Measure how the noise's spectral norm grows with d, and fit the exponent.

    Parameters
    ----------
    mechanism : AdditiveMechanism
    dimensions : sequence of int
        At least two different ones.
    rng : Generator
    draws : int
        Per dimension, at least 2.
    """
    if len(set(dimensions)) < 2:
        raise InvalidSetting("dimensions", "at least two different ones", len(set(dimensions)))
    if draws < 2:
        raise InvalidSetting("draws", "at least 2", draws)
    means, errors = [], []
    for d in dimensions:
        values = noise_norms(mechanism, d, rng, draws=draws)
        means.append(float(values.mean()))
        errors.append(float(values.std(ddof=1)) / math.sqrt(draws))
    power, error = fitted_power(dimensions, means, errors)
    return Growth(
        mechanism.text,
        np.asarray(dimensions, dtype=float),
        np.array(means),
        np.array(errors),
        power,
        error,
    )
