"""Chanyaswad et al. 2018: lemmas, examples, arithmetic and information, each with its own test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.datasets import remote
from dpviz.papers.by_statement import Drawn, StatementPart, StatementsExperiment
from dpviz.papers.experiment import Effort, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.mvg import _liver, _shared, section10
from dpviz.papers.mvg._shared import log_pnr, single

BOUND = "largest multiple of the bound"
MULTIPLE = "over what is printed"
SIDE = "side of the equation"
LOSS = "loss of Table 4"
SHARE = "share of looks that tell"
WORK = "multiplications over the rate"
ENTROPY = "largest entropy over the Gaussian's"
BITS = "mutual information, bits"
ROWS = "rows"
LEMMAS = ("lemma-2", "lemma-3", "lemma-4", "lemma-5")
SETUPS = {"setup-rows": "liver", "setup-movement": "movementaal", "setup-ctg": "cardiotocography"}
SUMS = (1, 2, 3, 5, 10)


def _rows(key: str) -> int:
    """Return the number of rows in a data set; MovementAAL counts the paper's recordings only."""
    if key == "movementaal":
        return _shared.Movement.load().n
    return len(remote.load(key, download=False).rows)


def _matrices(draws: int, rng: np.random.Generator) -> Drawn:
    """Return how near random, rank 1 and orthogonal matrices come to four bounds."""
    # Random matrices stay far from the bounds, but these two pairs attain them.
    special = [(np.eye(4), np.eye(4)), (np.ones((4, 4)), np.ones((4, 4)))]
    drawn = [tuple(rng.standard_normal((2, 4, 4))) for _ in range(min(draws, 2_000))]
    return _nearest([*special, *drawn])


def _nearest(pairs: Sequence[tuple[FloatArray, ...]]) -> Drawn:
    """Return how near pairs of square matrices come, at most, to the four bounds."""
    found = dict.fromkeys(LEMMAS, 0.0)
    for A, B in pairs:
        s, t = (np.linalg.svd(M)[1] for M in (A, B))
        largest = [("lemma-3", float(np.trace(A @ B.T)) / float(s @ t))]
        for M, values in ((A, s), (B, t)):
            places = np.sqrt(np.arange(1, len(values) + 1))
            lengths = float(np.linalg.norm(M, axis=0).prod())
            largest += [
                ("lemma-2", float((values * places).max()) / float(np.linalg.norm(M))),
                ("lemma-4", abs(float(np.trace(M))) / float(values.sum())),
                ("lemma-5", abs(float(np.linalg.det(M))) / lengths),
            ]
        for key, value in largest:
            found[key] = max(found[key], value)
    return {Point("", key, BOUND): value for key, value in found.items()}


def _corners(m: int) -> FloatArray:
    found: FloatArray = np.array(list(itertools.product((-1.0, 1.0), repeat=m)))
    return found


def _examples(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the largest values over corners of cubes, as multiples of the printed values."""
    found: Drawn = {}
    for m in (2, 4, 6):
        corners = _corners(m)
        # Both norms are convex, so their maximum over a cube lies at a corner.
        outer = corners[:, :, None] * corners[:, None, :]
        changes = [float(np.linalg.norm(outer - one, axis=(1, 2)).max()) for one in outer]
        gamma = np.linalg.norm(outer, axis=(1, 2)).max() / m
        found[Point("", "gamma", MULTIPLE, float(m))] = gamma
        found[Point("", "s2", MULTIPLE, float(m))] = max(changes) / (2 * m)
    liver = _corners(6)
    liver_most = max(float(np.linalg.norm(liver - one, axis=1).max()) for one in liver)
    found[Point("", "liver", MULTIPLE)] = liver_most / (2 * math.sqrt(6))
    movement = 100 * _corners(4)
    outer = movement[:, :, None] * movement[:, None, :]
    most = max(float(np.linalg.norm(outer - one, axis=(1, 2)).max()) for one in outer)
    found[Point("", "movement", MULTIPLE)] = most / 8e4
    found[Point("", "ctg", MULTIPLE)] = float(np.linalg.norm(np.ones(21))) / math.sqrt(21)
    for n in (7, 8, 20, 1_000):
        found[Point("", "kernel", MULTIPLE, float(n))] = math.sqrt(8 * n - 4) / n
    dropped = section10.REPORTED[section10.TWO, _liver.TEXTBOOK_ROW].value
    gain = dropped / _liver.REPORTED[_liver.MAX_PNR].value - 1
    found[Point("", "gain", MULTIPLE)] = gain
    return found


def _noise(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the noise covariance of both samplers, by direction, over the stated covariance."""
    frame = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    sigma, psi = (frame * np.array([4.0, 1.0, 0.25])) @ frame.T, np.diag([2.0, 0.5])
    # This check uses other matrix roots than the mechanism: any root gives the same distribution.
    root, other = np.linalg.cholesky(sigma), np.linalg.cholesky(psi)
    drawn = root @ rng.standard_normal((draws, 3, 2)) @ other.T
    flat = drawn.transpose(0, 2, 1).reshape(draws, 6)  # Here vec stacks the columns of a matrix.
    covariance = flat.T @ flat / draws
    kron = np.kron(psi, sigma)
    along = np.square(frame.T @ drawn).mean(axis=(0, 2)) / psi.trace() * 2
    found: Drawn = {Point("", "left", "lemma-6"): np.linalg.norm(covariance - kron)}
    found[Point("", "right", "lemma-6")] = np.linalg.norm(kron)
    rows = (drawn @ drawn.transpose(0, 2, 1)).mean(axis=0) / psi.trace()
    found[Point("", "left", "lemma-7")] = np.linalg.norm(rows - sigma)
    found[Point("", "right", "lemma-7")] = np.linalg.norm(sigma)
    for place, value in enumerate((4.0, 1.0, 0.25)):
        found[Point("", "along", SIDE, float(place))] = along[place] / value
    # The second feature has no noise, so a value of 0 in it tells two neighbours apart.
    noisy = np.column_stack([rng.standard_normal(draws), np.zeros(draws)])
    told = (noisy[:, 1] + 1.0 > 0.5).astype(float) - (noisy[:, 1] > 0.5)
    found[Point("", "one direction bare", SHARE)] = told
    return found


def _budget(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the totals of the variances of Algorithms 1 and 2, over the budgets."""
    one, two = [], []
    for _ in range(200):
        # Shares are sampled uniformly from all possible ones, from equal to very unequal.
        shares = rng.dirichlet(np.ones(5))
        bound = float(np.exp(rng.uniform(-2, 2)))  # The product of both norms is at most this.
        n = int(rng.integers(2, 500))
        # In Algorithm 1, P = bound^2/n and sigma_i = 1/sqrt(p_i). For Psi the norm is sqrt(n).
        sigma = 1 / np.sqrt(shares * bound**2 / n)
        one.append(float(np.linalg.norm(1 / sigma) * math.sqrt(n) / bound))
        # In Algorithm 2, P = bound. For Sigma and Psi, the norm equals the norm of 1/sigma.
        sigma = 1 / np.sqrt(shares * bound)
        two.append(float(np.linalg.norm(1 / sigma) ** 2 / bound))
    return {
        Point("", "algorithm-1", MULTIPLE): np.array(one),
        Point("", "algorithm-2", MULTIPLE): np.array(two),
    }


def _axioms(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the loss of a first component by kind of noise, and the variance by bound."""
    A = np.diag([0.5, 0.1, 0.05, 0.02])
    found: Drawn = {}
    noise = rng.standard_normal((min(draws, 4_000), 4, 4))
    # The noise is made symmetric, because otherwise the matrix may have no real components.
    noise = (noise + noise.transpose(0, 2, 1)) / 2
    for std in (0.02, 0.05, 0.1, 0.2, 0.5):
        top = np.linalg.eigh(A + std * noise)[1][:, :, -1]
        lost = 0.5 - np.einsum("ti,ij,tj->t", top, A, top)
        found[Point("", "axiom-1", LOSS, std)] = lost
    for bound in (0.1, 1.0, 10.0):
        found[Point("", "axiom-2", LOSS, bound)] = 2.0 / bound  # The norm of 1/sigma is `bound`.
    return found


def _times(draws: int, rng: np.random.Generator) -> Drawn:
    """Return both samplers' numbers of multiplications over the stated rates, by m (with n = m)."""
    found = {}
    for m in (8, 32, 128, 512):
        n = m
        affine = m**3 + m**2 * n  # Multiplications for the root of Sigma and for B N. Psi is I.
        found[Point("", "Algorithm 1", WORK, float(m))] = affine / m**3
        found[Point("", "Algorithm 2", WORK, float(m))] = (m**3 + 2 * m**3) / m**3
    return found


def _entropies(draws: int, rng: np.random.Generator) -> Drawn:
    """Return entropies of laws of variance 1 over the Gaussian's, and both sides of Lemma 10."""
    gaussian = _standard_entropy(lambda x: np.exp(-(x**2) / 2))
    entropies = {name: _standard_entropy(law) / gaussian for name, law in LAWS.items()}
    # There are two states. The distribution in each state has variance 1.
    given = 0.5 * (entropies["Laplace"] + entropies["uniform"])
    frame = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    answer, noise = rng.uniform(0.5, 4.0, (2, 5))
    pnr = log_pnr((frame * answer) @ frame.T, (frame * noise) @ frame.T)
    told = [_told(_normal(a, b), math.sqrt(b)) for a, b in zip(answer, noise, strict=True)]
    return {
        Point("", "lemma-8", ENTROPY): max(entropies.values()),
        Point("", "lemma-9", ENTROPY): given,
        Point("", "left", SIDE): pnr / 2,
        Point("", "right", SIDE): sum(told),
    }


LAWS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "Laplace": lambda x: np.exp(-np.abs(x)),
    "uniform": lambda x: (np.abs(x) < 1).astype(float),
    "logistic": lambda x: 1 / np.square(np.cosh(x / 2)),
    "two-sided": lambda x: (np.abs(np.abs(x) - 2) < 1).astype(float),
}
"""Densities up to a constant factor, of any variance."""


def _standard_entropy(law: Callable[[FloatArray], FloatArray]) -> float:
    """Return the entropy of a symmetric distribution, scaled to variance 1, by quadrature."""
    step = 2.0**-10
    x = np.arange(-40, 40, step) + step / 2
    density = law(x) / (law(x).sum() * step)
    return _entropy(density, step) - 0.5 * math.log(float(x**2 @ density) * step)


def _entropy(masses: FloatArray, step: float = 1.0) -> float:
    """Return the entropy of probability masses, or of a density on a grid with the given step."""
    positive = masses[masses > 0]
    return -float(positive @ np.log(positive)) * step


Law = dict[float, float]
"""Probability of each value."""


def _normal(variance: float, noise: float) -> Law:
    """Return a Gaussian answer as masses; noise of this variance makes them match its density."""
    step, std = math.sqrt(noise) / 2, math.sqrt(variance)
    places = step * np.arange(-math.ceil(9 * std / step), math.ceil(9 * std / step) + 1)
    density = np.exp(-(places**2) / (2 * variance))
    return dict(zip(places.tolist(), (density / density.sum()).tolist(), strict=True))


def _told(answer: Law, std: float = 1.0) -> float:
    """Return the mutual information of an answer and its copy with Gaussian noise."""
    # Integration stops nine standard deviations out, where the density is negligible in doubles.
    reach = max(map(abs, answer)) + 9 * std
    grid, step = np.linspace(-reach, reach, 4_001, retstep=True)

    def noisy(law: Law) -> float:
        places, masses = np.array(list(law)), np.array(list(law.values()))
        density = masses @ np.exp(-(((grid - places[:, None]) / std) ** 2) / 2)
        return _entropy(density / (math.sqrt(2 * math.pi) * std), float(step))

    return noisy(answer) - noisy({0.0: 1.0})


def _plus(one: Law, other: Law) -> Law:
    """Return the distribution of the sum of two independent numbers."""
    found: Law = {}
    for (a, mass), (b, weight) in itertools.product(one.items(), other.items()):
        # All values are whole numbers here, so equal sums match exactly.
        found[a + b] = found.get(a + b, 0.0) + mass * weight
    return found


SIGN: Law = {-1.0: 0.5, 1.0: 0.5}
CONSTANT: Law = {0.0: 1.0}  # A sum over records may also be a sum of constants.
LATTICE: Law = {-2.0: 0.125, 0.0: 0.75, 2.0: 0.125}  # The noise on the lattice has variance 1.


def _information(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the bits that sums reveal under lattice and Gaussian noise of variance 1."""
    found: Drawn = {}
    for n in SUMS:
        signs, constant = (reduce(_plus, [record] * n) for record in (SIGN, CONSTANT))
        mixed, lattice = (np.array(list(law.values())) for law in (_plus(signs, LATTICE), LATTICE))
        told = {
            "lattice noise": _entropy(mixed) - _entropy(lattice),
            "Gaussian noise": _told(signs),
            "a constant": _told(constant),
        }
        found |= {
            Point("", name, BITS, float(n)): value / math.log(2) for name, value in told.items()
        }
    return found


class MvgStatements(StatementsExperiment):
    """Each statement, tested on the smallest case that decides it."""

    looks: ClassVar = (
        _matrices, _examples, _noise, _budget, _axioms, _times, _entropies, _information,
    )  # fmt: skip
    draws = (500, 20_000)

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each statement, and for each data set's rows."""
        sets = (StatementPart(key, "rows", 1) for key in SETUPS.values())
        return [*super().parts(effort), *sets]

    def run(self, part: StatementPart, shared: None, seed: int) -> Measurements:
        """Return the numbers for the test of one statement, or a data set's number of rows."""
        if part.data:
            return Measurements({Point("", part.data, ROWS): single(_rows(part.data))})
        return super().run(part, shared, seed)
