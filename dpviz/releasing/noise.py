"""Discrete noise by OpenDP, the one vetted sampler this project uses for a real release.

The second moment's upper triangle is a vector of whole numbers. Its diagonal is multiplied by 70
and the rest by 99, so that one scale of noise serves both: a symmetric matrix D has

    70^2 sum_i D_ii^2 + 99^2 sum_(i<j) D_ij^2 <= (99^2 / 2) ||D||_F^2,

and ||vv' - ww'||_F is at most sqrt 2 (replace) or 1 (zero-out) times the largest squared row. In
that norm the noise is the Gaussian orthogonal ensemble up to .005 %. OpenDP draws discrete Gaussian
noise (Canonne, Kamath & Steinke 2020) or discrete Laplace noise with entropy from the system, and
its own privacy map, rounded up, is what is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.errors import CannotRun, DpvizError
from dpviz.privacy.composition import epsilon_of_rho, rho_meeting, rho_of_pure
from dpviz.privacy.gaussian import epsilon_of
from dpviz.releasing.grid import DIAGONAL_WEIGHT, OTHER_WEIGHT, IntArray
from dpviz.values.problem import Budget, Relation


class NoOpenDP(DpvizError):
    """OpenDP is not installed."""


class Law(StrEnum):
    """The discrete noise of a release."""

    NORMAL = "discrete Gaussian"
    LAPLACE = "discrete Laplace"


@dataclass(frozen=True)
class Noise:
    """Discrete noise on the weighted upper triangle, and what it is proved to cost.

    Attributes
    ----------
    law : Law
    scale : float
        In weighted whole numbers.
    sensitivity : int
        l2 (Gaussian) or l1 (Laplace) length of the largest change, rounded up.
    proved : Budget
        By OpenDP's privacy map.
    rho : float
        The zCDP parameter, proved; for Laplace noise what its epsilon implies.
    idealised : Budget
        What continuous noise of the same scale would cost, in exact arithmetic.
    """

    law: Law
    scale: float
    sensitivity: int
    proved: Budget
    rho: float
    idealised: Budget


def opendp() -> Any:
    """Return OpenDP's prelude.

    Raises
    ------
    NoOpenDP
        If it is not installed.
    """
    try:
        prelude = import_module("opendp.prelude")
    except ImportError:
        raise NoOpenDP(
            'a release needs OpenDP, which is not installed: pip install "dpviz[release]".'
        ) from None
    prelude.enable_features("contrib")
    return prelude


def opendp_version() -> str:
    """Return the version of OpenDP that draws."""
    opendp()
    return version("opendp")


def sensitivity_l2(relation: Relation, bits: int) -> int:
    """Return the largest change of the weighted upper triangle in l2 norm, rounded up.

    Parameters
    ----------
    relation : Relation
    bits : int
        Of the grid; squared rows are at most 4^bits.
    """
    if relation is Relation.REPLACE:
        return OTHER_WEIGHT << (2 * bits)
    square = (OTHER_WEIGHT * OTHER_WEIGHT) << (4 * bits)  # twice the square
    return math.isqrt(-(-square // 2) - 1) + 1


def sensitivity_l1(relation: Relation, d: int, bits: int) -> int:
    """Return the largest change of the plain upper triangle in l1 norm, rounded up.

    Zero-out: (d + 1)/2. Replace: the lesser of d/sqrt 2 + 1 and sqrt((d^2 + 3d)/2); both are
    proved in `dpviz.privacy.sensitivity.l1_upper`.
    """
    unit = 1 << (2 * bits)
    if relation is Relation.ZERO_OUT:
        return -(-(d + 1) * unit // 2)
    first = math.isqrt(d * d * unit * unit // 2) + 1 + unit
    second = math.isqrt((d * d + 3 * d) * unit * unit // 2) + 1
    return min(first, second)


def calibrated(law: Law, budget: Budget, relation: Relation, d: int, bits: int) -> Noise:
    """Return the least noise that OpenDP proves to meet the budget.

    Parameters
    ----------
    law : Law
    budget : Budget
        A delta of 0 needs Laplace noise; Gaussian noise a delta above 0.
    relation : Relation
    d : int
    bits : int

    Raises
    ------
    NoOpenDP
        If OpenDP is not installed.
    CannotRun
        If the law cannot meet a budget without delta.
    """
    if law is Law.LAPLACE:
        return _laplace(budget, relation, d, bits)
    if budget.delta == 0:
        raise CannotRun(str(law), "it needs a delta above 0; got 0")
    dp = opendp()
    sensitivity = sensitivity_l2(relation, bits)
    rho = rho_meeting(budget.epsilon, budget.delta)
    scale = sensitivity / math.sqrt(2 * rho)
    while True:
        measurement = _measurement(law, scale)
        proved_rho = float(measurement.map(float(sensitivity)))
        curve = dp.c.make_zCDP_to_approxDP(measurement).map(float(sensitivity))
        epsilon = max(float(curve.epsilon(budget.delta)), epsilon_of_rho(proved_rho, budget.delta))
        if epsilon <= budget.epsilon:
            break
        scale *= 1 + 1e-9
    return Noise(
        law,
        scale,
        sensitivity,
        Budget(epsilon, budget.delta),
        proved_rho,
        Budget(epsilon_of(budget.delta, sensitivity / scale), budget.delta),
    )


def _laplace(budget: Budget, relation: Relation, d: int, bits: int) -> Noise:
    sensitivity = sensitivity_l1(relation, d, bits)
    scale = sensitivity / budget.epsilon
    while True:
        epsilon = float(_measurement(Law.LAPLACE, scale).map(sensitivity))
        if epsilon <= budget.epsilon:
            break
        scale = math.nextafter(scale * (1 + 1e-15), math.inf)
    return Noise(
        Law.LAPLACE,
        scale,
        sensitivity,
        Budget(epsilon),
        rho_of_pure(epsilon),
        Budget(sensitivity / scale),
    )


def _measurement(law: Law, scale: float) -> Any:
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law is Law.LAPLACE:
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)


def released(moment: IntArray, noise: Noise, n: int, bits: int) -> FloatArray:
    """Return the private estimate of A = X'X/n in units of the squared row bound.

    Parameters
    ----------
    moment : ndarray of shape (d, d), int64
        X'X in whole numbers.
    noise : Noise
    n : int
    bits : int

    Returns
    -------
    ndarray of shape (d, d)
        Symmetric. The noise is drawn here, once, with the system's entropy.
    """
    d = len(moment)
    weights = _weights(noise.law, d)
    rows, columns = np.triu_indices(d)
    weighted = (moment * weights)[rows, columns]
    drawn = _measurement(noise.law, noise.scale)([int(value) for value in weighted])
    # from here on only released numbers: doubles are harmless
    estimate = np.zeros((d, d))
    estimate[rows, columns] = np.asarray(drawn, dtype=np.float64)
    estimate /= weights * (n * 4.0**bits)
    estimate[columns, rows] = estimate[rows, columns]
    return estimate


def _weights(law: Law, d: int) -> IntArray:
    if law is Law.LAPLACE:
        return np.ones((d, d), dtype=np.int64)
    weights = np.full((d, d), OTHER_WEIGHT, dtype=np.int64)
    np.fill_diagonal(weights, DIAGONAL_WEIGHT)
    return weights
