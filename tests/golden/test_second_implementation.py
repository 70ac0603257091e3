"""Four mechanisms, implemented a second time from their laws, agree with `compare`.

The second implementation uses nothing of dpviz but the names of the built-in tables. scikit-learn
provides the rows, NumPy the noise, SciPy the normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize
from scipy.stats import norm
from sklearn import datasets

from dpviz.core.settings import Settings
from dpviz.preparation.bounding import BoundedTable
from dpviz.preparation.load import load_prepared
from dpviz.simulation.compare import compare

Array = NDArray[np.float64]
TRIALS = 300
# Two means of the same law differ by over 6.1 standard errors once in 1e9 comparisons.
Z = 6.1

LOADERS = {
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "iris": datasets.load_iris,
}


@cache
def second_moment(table: str) -> tuple[Array, int]:
    rows = np.asarray(LOADERS[table]().data, dtype=float)
    rows = rows - rows.mean(axis=0)
    rows = rows / math.sqrt((rows**2).sum(axis=1).max())
    return rows.T @ rows / len(rows), len(rows)


@cache
def gaussian_std(epsilon: float, delta: float, sensitivity: float) -> float:
    """Solve the exact Gaussian profile for the standard deviation."""

    def excess(log_std: float) -> float:
        mu = sensitivity / math.exp(log_std)
        return float(
            norm.cdf(mu / 2 - epsilon / mu)
            - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
            - delta
        )

    return math.exp(optimize.brentq(excess, -12, 12, xtol=1e-12))


def mirrored(upper: Array) -> Array:
    full: Array = np.triu(upper) + np.triu(upper, 1).T
    return full


def gaussian(rng: np.random.Generator, d: int, epsilon: float, delta: float, both: bool) -> Array:
    std = gaussian_std(epsilon, delta, math.sqrt(2) if both else 1.0)
    square = rng.normal(size=(d, d)) * std
    return (square + square.T) / 2  # Diagonal entries have variance std^2, others half of it.


def analyze_gauss(
    rng: np.random.Generator, d: int, epsilon: float, delta: float, both: bool
) -> Array:
    std = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return mirrored(rng.normal(scale=std, size=(d, d)))


def laplace(rng: np.random.Generator, d: int, epsilon: float, delta: float, both: bool) -> Array:
    return mirrored(rng.laplace(scale=2 * d / epsilon, size=(d, d)))


def wishart_difference(
    rng: np.random.Generator, d: int, epsilon: float, delta: float, both: bool
) -> Array:
    c = (1.0 if both else 0.5) / epsilon
    one, right = rng.normal(scale=math.sqrt(c), size=(2, d + 1, d))
    return one.T @ one - right.T @ right


Noise = Callable[[np.random.Generator, int, float, float, bool], Array]
NOISES: dict[str, Noise] = {
    "gaussian": gaussian,
    "analyze_gauss": analyze_gauss,
    "laplace": laplace,
    "wishart_difference": wishart_difference,
}
DELTA = 1e-3
SETTINGS = [
    ("wine", 1, 5.0), ("wine", 3, 1.0), ("wine", 5, 20.0),
    ("breast_cancer", 2, 1.0), ("breast_cancer", 5, 8.0),
    ("iris", 1, 1.0), ("iris", 2, 0.5), ("iris", 3, 4.0),
]  # fmt: skip


def shares(
    key: str, table: str, k: int, epsilon: float, relation: str, factor: float = 1.0
) -> Array:
    """Return each repetition's captured share of the optimum; ``factor`` multiplies the noise."""
    A, n = second_moment(table)
    d = len(A)
    best = np.sort(np.linalg.eigvalsh(A))[-k:].sum()
    rng = np.random.default_rng(sum(map(ord, key + table + relation)) + 1000 * k)
    noise = [NOISES[key](rng, d, epsilon, DELTA, relation == "replace") for _ in range(TRIALS)]
    V = np.linalg.eigh(A + factor * np.array(noise) / n)[1][:, :, -k:]
    share: Array = np.einsum("tji,jl,tli->t", V, A, V, optimize=True) / best
    return share


def error_of(values: Array) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


@cache
def prepared_of(table: str) -> BoundedTable:
    return load_prepared(Settings(table=table))


@pytest.mark.parametrize("relation", ["replace", "zero-out"])
@pytest.mark.parametrize(("table", "k", "epsilon"), SETTINGS)
def test_captured_share_agrees(table: str, k: int, epsilon: float, relation: str) -> None:
    settings = Settings(
        table=table,
        k=k,
        epsilon=epsilon,
        delta=DELTA,
        relation=relation,
        mechanisms=tuple(NOISES),
        trials=TRIALS,
    )
    comparison = compare(prepared_of(table), settings)
    A, n = second_moment(table)
    reference = comparison.prepared.reference
    assert reference.n == n
    np.testing.assert_allclose(reference.A, A, rtol=0, atol=1e-12)
    for result in comparison.results:
        ours = result.metrics["captured_share"]
        theirs = shares(result.mechanism.key, table, k, epsilon, relation)
        room = Z * math.hypot(error_of(ours), error_of(theirs)) + 1e-9
        assert abs(ours.mean() - theirs.mean()) <= room, result.mechanism.key


@pytest.mark.parametrize(
    ("key", "epsilon"),
    [("gaussian", 1.0), ("analyze_gauss", 1.0), ("laplace", 400.0), ("wishart_difference", 10.0)],
)
def test_twice_the_noise_is_seen(key: str, epsilon: float) -> None:
    """Control: the test detects twice the noise if noise matters but does not hide everything."""
    right, wrong = (shares(key, "breast_cancer", 2, epsilon, "replace", f) for f in (1.0, 2.0))
    assert abs(right.mean() - wrong.mean()) > 2 * Z * math.hypot(error_of(right), error_of(wrong))
