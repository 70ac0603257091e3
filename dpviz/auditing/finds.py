"""Two errors found in public code, each shown by a repeatable computation.

The page recomputes the first error from its description alone, without any of that code. The second
error needs the libraries themselves, so ``python -m benchmarks.bingham`` measures them in separate
environments and writes ``bingham.json`` beside this file. This module computes the exact values to
compare.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import scipy

from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms.mod_sulq import ModSulq
from dpviz.sampling.bingham import sample_bingham

MASK_COLUMNS = ("entry", "exact", "read_off", "as_meant")
SAMPLER_COLUMNS = ("sampler", "mean", "se", "draws", "measured")

MASK_SOURCE = "https://github.com/andylamp/federated_pca"
PEERS_FILE = Path(__file__).with_name("bingham.json")

SPECTRUM = (8.0, 0.0, 0.0)
"""Exponents of the law that the samplers should produce: density exp(8 u_1^2) on the sphere."""

_N, _D = 200, 4
_NODES = 400


# In this bug, the noise matrix is filled from the data. -------------------------------------------


def mask_table(epsilon: float, delta: float, seed: int) -> pd.DataFrame:
    """Return the off-diagonal entries of A that a release with faulty noise reveals.

    MOD-SULQ adds a symmetric matrix of noise N to A. In one public implementation the lower
    triangle of N is filled from the upper triangle of A instead of N. The release A + N then holds
    A_ij + A_ji = 2 A_ij below the diagonal, with no noise at all.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the mechanism; it sets the noise above the diagonal and changes nothing below.
    seed : int
        Seed of the synthetic table and of the noise.

    Returns
    -------
    DataFrame
        `MASK_COLUMNS`, one row for each pair of features: the entry of A, half of the faulty entry
        below the diagonal, and the entry that the intended algorithm publishes there.
    """
    rng = generator(seed, "finds", "mask")
    rows = rng.standard_normal((_N, _D)) * np.array([1.0, 0.7, 0.5, 0.3])
    rows /= np.linalg.norm(rows, axis=1).max()
    A = rows.T @ rows / _N
    problem = Problem(_N, _D, 1, Relation.REPLACE, Domain.ball(_D))
    mechanism = ModSulq()
    scale = mechanism.calibrate(problem, Budget(epsilon, delta)).scale
    noise = scale * mechanism.standard_noise(problem, Draws.batch(rng, 1))[0]
    below = np.tril_indices(_D, -1)
    slip = noise.copy()
    slip[below] = A.T[below]
    table = pd.DataFrame(
        {
            "entry": [f"features {i + 1} and {j + 1}" for i, j in zip(*below, strict=True)],
            "exact": A[below],
            "read_off": (A + slip)[below] / 2,
            "as_meant": (A + noise)[below],
        }
    )
    return table[list(MASK_COLUMNS)]


# In this bug, a Bingham sampler is too concentrated. ----------------------------------------------


@dataclass(frozen=True)
class Peer:
    """One library's sampler, as `benchmarks.bingham` measured it.

    Attributes
    ----------
    library, version : str
    mean, se : float
        Mean of u_1^2 and its standard error.
    draws : int
    date : str
        Date of the measurement.
    """

    library: str
    version: str
    mean: float
    se: float
    draws: int
    date: str


@cache
def peers() -> tuple[Peer, ...]:
    """Return the measurements of the two libraries."""
    content = json.loads(PEERS_FILE.read_text(encoding="utf-8"))
    return tuple(Peer(**row) for row in content["peers"])


def bingham_moment() -> float:
    """Return E u_1^2 under exp(8 u_1^2) on the sphere in three dimensions, by quadrature.

    u_1 is uniform on [-1, 1] if directions are uniform (Archimedes). So the density of u_1 here is
    proportional to exp(8 u_1^2).
    """
    return _moment(0.0)


def sharper_moment() -> float:
    """Return E u_1^2 under the law that the two libraries' acceptance test produces.

    A proposal u from the angular central Gaussian of W has density (u'Wu)^(-d/2). Accept it with a
    probability proportional to exp(u'Bu) (u'Wu)^(d/2) (Kent, Ganeiber & Mardia 2018). With the last
    factor in the denominator, the samples have density exp(u'Bu) (u'Wu)^-d.
    """
    return _moment(float(len(SPECTRUM)))


def _moment(power: float) -> float:
    """Return E u_1^2 under exp(8 u_1^2) (u'Wu)^-power, W = I + 2 M/b, M = 8 I - B."""
    gaps = SPECTRUM[0] - np.array(SPECTRUM)
    b = float(
        scipy.optimize.brentq(lambda b: (1 / (b + 2 * gaps)).sum() - 1, 1e-9, float(len(gaps)))
    )
    z, weights = np.polynomial.legendre.leggauss(_NODES)
    outside = 1 - z * z
    density = weights * np.exp(-gaps[-1] * outside) * (1 + 2 * gaps[-1] / b * outside) ** -power
    return float((density * z * z).sum() / density.sum())


def sampler_table(seed: int, draws: int = 4_000) -> pd.DataFrame:
    """Return E u_1^2 by the exact law, by dpviz's sampler run now, and by the two libraries.

    Returns
    -------
    DataFrame
        `SAMPLER_COLUMNS`. Exact laws have no standard error and no sample size; ``measured`` is the
        date.
    """
    vectors = sample_bingham(SPECTRUM, Draws.batch(generator(seed, "finds", "bingham"), draws))
    first = vectors.vectors[:, 0] ** 2
    rows: list[tuple[str, float, float | None, int | None, str]] = [
        ("the Bingham law, exact", bingham_moment(), None, None, "by quadrature"),
        ("dpviz", float(first.mean()), float(first.std() / draws**0.5), draws, "drawn now"),
    ]
    rows += [
        (f"{peer.library} {peer.version}", peer.mean, peer.se, peer.draws, peer.date)
        for peer in peers()
    ]
    rows.append(("their test, exact", sharper_moment(), None, None, "by quadrature"))
    return pd.DataFrame(rows, columns=list(SAMPLER_COLUMNS))
