"""How the noise of a mechanism grows with d: as stated, and as measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.base.arrays import FloatArray
from dpviz.base.seeding import Draws
from dpviz.errors import CannotRun, InvalidSetting
from dpviz.mechanisms import all_mechanisms
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism
from dpviz.values.moments import SecondMoment
from dpviz.values.problem import Budget, Domain, Problem, Relation

GROWTH_DIMENSIONS = (10, 20, 40, 80, 160)


GROWTH_COLUMNS = ("mechanism", "measured", "error", "exponent", "stated")


def growth_table(
    dimensions: Sequence[int] = GROWTH_DIMENSIONS, draws: int = 10, seed: int = 0
) -> pd.DataFrame:
    """Return the exponent with which each mechanism's noise grows in d.

    Returns
    -------
    DataFrame
        Columns `GROWTH_COLUMNS`: the fitted exponent of the spectral norm and
        its standard error, and the stated power of d and its formula (empty
        where no paper states one).
    """
    found = []
    for cls in all_mechanisms().values():
        mechanism = cls()
        if not isinstance(mechanism, AdditiveMechanism):
            continue
        growth = noise_growth(mechanism, dimensions, np.random.default_rng(seed), draws=draws)
        stated = JIANG_TABLE_1.get(mechanism.info.label)
        found.append(
            (
                mechanism.label,
                growth.exponent,
                growth.exponent_error,
                None if stated is None else stated.exponent,
                None if stated is None else stated.label,
            )
        )
    return pd.DataFrame(found, columns=list(GROWTH_COLUMNS))


# Growth of the noise in d --------------------------------------------------


@dataclass(frozen=True)
class StatedGrowth:
    """The growth in d of the noise's spectral norm that a paper states.

    Attributes
    ----------
    label : str
        As printed, without n and epsilon.
    exponent : float
        The power of d, logarithms left out.
    logarithm : float
        The power of ln d; measurement shows none for the Wishart.
    """

    label: str
    exponent: float
    logarithm: float

    def of(self, d: float) -> float:
        """Return the stated growth at d, **scaling only**."""
        return math.pow(d, self.exponent) * math.pow(math.log(d), self.logarithm)

    def power_over(self, dimensions: Sequence[float]) -> float:
        """Return the power of d that a fit finds for the stated growth itself.

        Over a finite range a logarithm looks like a power; this is what a
        measured power is to be compared with.
        """
        return fitted_power(dimensions, [self.of(d) for d in dimensions])[0]


# Jiang et al. 2016, Table 1: the papers' own statements, for the mechanism of that name.
JIANG_TABLE_1 = {
    "Laplace": StatedGrowth("d sqrt(d)", 1.5, 0.0),
    "SULQ": StatedGrowth("d sqrt(d ln d)", 1.5, 0.5),
    "Wishart": StatedGrowth("d ln d", 1.0, 1.0),
    "Analyze Gauss": StatedGrowth("sqrt(d)", 0.5, 0.0),
}


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


def fitted_power(
    dimensions: Sequence[float], values: Sequence[float], errors: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return the least-squares slope of log value in log d, and its standard error.

    Parameters
    ----------
    dimensions, values : sequence of float
        Positive; at least two different dimensions.
    errors : sequence of float, optional
        Standard errors of the values; default none.

    Notes
    -----
    Dimensions count alike in the fit: with weights by precision the largest,
    whose norms hardly vary, would decide alone.
    """
    x = np.log(np.asarray(dimensions, dtype=float))
    means = np.asarray(values, dtype=float)
    centred = x - x.mean()
    leverage = centred / (centred @ centred)
    power = float(leverage @ np.log(means))
    if errors is None:
        return power, 0.0
    relative = np.asarray(errors, dtype=float) / means
    return power, float(np.sqrt(np.sum((leverage * relative) ** 2)))


def noise_norms(
    mechanism: Mechanism,
    d: int,
    rng: np.random.Generator,
    *,
    draws: int,
    delta: float = 1e-6,
    relation: Relation = Relation.REPLACE,
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
    relation : Relation

    Returns
    -------
    ndarray of shape (draws,)

    Raises
    ------
    CannotRun
        If the mechanism releases no matrix.
    """
    n = 1_000
    problem = Problem(n, d, 1, relation, Domain.ball(d))
    calibration = mechanism.calibrate(problem, Budget(1.0, delta))
    norms = []
    # A few at a time: 40 matrices of 400 x 400 would take 51 MB.
    for size in _chunks(draws, max(1, 2_000_000 // (d * d))):
        batch = Draws.batch(rng, size)
        if isinstance(mechanism, AdditiveMechanism):
            noise = mechanism.standard_noise(problem, batch)
            scaled = np.linalg.eigvalsh(noise) * (calibration.scale * n)
        else:
            release = mechanism.release_many(SecondMoment(np.zeros((d, d)), n), calibration, batch)
            if release.eigenvalues is None:
                raise CannotRun(mechanism.text, "it releases no matrix")
            scaled = release.eigenvalues * n
        norms.append(np.abs(scaled).max(axis=1))
    return np.concatenate(norms)


def noise_growth(
    mechanism: AdditiveMechanism,
    dimensions: Sequence[int],
    rng: np.random.Generator,
    *,
    draws: int = 40,
    delta: float = 1e-6,
    relation: Relation = Relation.REPLACE,
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
    delta : float
    relation : Relation
    """
    if len(set(dimensions)) < 2:
        raise InvalidSetting("dimensions", "at least two different ones", len(set(dimensions)))
    if draws < 2:
        raise InvalidSetting("draws", "at least 2", draws)
    means, errors = [], []
    for d in dimensions:
        values = noise_norms(mechanism, d, rng, draws=draws, delta=delta, relation=relation)
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


def _chunks(total: int, most: int) -> list[int]:
    whole, rest = divmod(total, most)
    return [most] * whole + [rest] * (rest > 0)
