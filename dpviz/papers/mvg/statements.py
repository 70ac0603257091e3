"""Chanyaswad et al. 2018: lemmas, examples, arithmetic and information, each by itself."""

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
    """Return the rows of a set; of MovementAAL those of the recordings that the paper counts."""
    if key == "movementaal":
        return _shared.Movement.load().n
    return len(remote.load(key, download=False).rows)


def _matrices(draws: int, rng: np.random.Generator) -> Drawn:
    """Return how near random matrices, and those of rank 1 or orthogonal, come to four bounds."""
    # random ones stay clear of the bounds; these are where they are met
    special = [(np.eye(4), np.eye(4)), (np.ones((4, 4)), np.ones((4, 4)))]
    drawn = [tuple(rng.standard_normal((2, 4, 4))) for _ in range(min(draws, 2_000))]
    return _nearest([*special, *drawn])


def _nearest(pairs: Sequence[tuple[FloatArray, ...]]) -> Drawn:
    """Return how near pairs of square matrices come to the four bounds, at the most."""
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
    """Return the largest values over corners of cubes, as multiples of what is printed."""
    found: Drawn = {}
    for m in (2, 4, 6):
        corners = _corners(m)
        # both norms are convex, so over a cube they are largest at corners
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
    """Return the covariance of noise by both samplers, along its directions, over the stated."""
    frame = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    sigma, psi = (frame * np.array([4.0, 1.0, 0.25])) @ frame.T, np.diag([2.0, 0.5])
    # by other roots than the mechanism's: any root gives the same law
    root, other = np.linalg.cholesky(sigma), np.linalg.cholesky(psi)
    drawn = root @ rng.standard_normal((draws, 3, 2)) @ other.T
    flat = drawn.transpose(0, 2, 1).reshape(draws, 6)  # vec stacks columns
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
    # no noise along the second feature: whether it is 0 tells two neighbours apart
    noisy = np.column_stack([rng.standard_normal(draws), np.zeros(draws)])
    told = (noisy[:, 1] + 1.0 > 0.5).astype(float) - (noisy[:, 1] > 0.5)
    found[Point("", "one direction bare", SHARE)] = told
    return found


def _budget(draws: int, rng: np.random.Generator) -> Drawn:
    """Return what the variances of Algorithms 1 and 2 add up to, over the budgets."""
    one, two = [], []
    for _ in range(200):
        # uniform over all allocations, equal ones and bare ones alike
        shares = rng.dirichlet(np.ones(5))
        bound = float(np.exp(rng.uniform(-2, 2)))  # on the product of the two norms
        n = int(rng.integers(2, 500))
        # Algorithm 1: P = bound^2/n, sigma_i = 1/sqrt(p_i); the other side has the norm sqrt(n)
        sigma = 1 / np.sqrt(shares * bound**2 / n)
        one.append(float(np.linalg.norm(1 / sigma) * math.sqrt(n) / bound))
        # Algorithm 2: P = bound, and both norms are that of 1/sigma
        sigma = 1 / np.sqrt(shares * bound)
        two.append(float(np.linalg.norm(1 / sigma) ** 2 / bound))
    return {
        Point("", "algorithm-1", MULTIPLE): np.array(one),
        Point("", "algorithm-2", MULTIPLE): np.array(two),
    }


def _axioms(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the loss of a first component along the noise, and the variance along the bound."""
    A = np.diag([0.5, 0.1, 0.05, 0.02])
    found: Drawn = {}
    noise = rng.standard_normal((min(draws, 4_000), 4, 4))
    # symmetric, or the released matrix would have no real components
    noise = (noise + noise.transpose(0, 2, 1)) / 2
    for std in (0.02, 0.05, 0.1, 0.2, 0.5):
        top = np.linalg.eigh(A + std * noise)[1][:, :, -1]
        lost = 0.5 - np.einsum("ti,ij,tj->t", top, A, top)
        found[Point("", "axiom-1", LOSS, std)] = lost
    for bound in (0.1, 1.0, 10.0):
        found[Point("", "axiom-2", LOSS, bound)] = 2.0 / bound  # |1/sigma|_2 = bound, m = 4
    return found


def _times(draws: int, rng: np.random.Generator) -> Drawn:
    """Return the multiplications of both samplers over the stated rates, along m = n and m."""
    found = {}
    for m in (8, 32, 128, 512):
        n = m
        affine = m**3 + m**2 * n  # the root of Sigma, and B N; Psi = I
        found[Point("", "Algorithm 1", WORK, float(m))] = affine / m**3
        found[Point("", "Algorithm 2", WORK, float(m))] = (m**3 + 2 * m**3) / m**3
    return found


def _entropies(draws: int, rng: np.random.Generator) -> Drawn:
    """Return entropies of laws of variance 1 over the Gaussian's, and both sides of Lemma 10."""
    gaussian = _standard_entropy(lambda x: np.exp(-(x**2) / 2))
    entropies = {name: _standard_entropy(law) / gaussian for name, law in LAWS.items()}
    # two states, each with a law of variance 1
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
"""Densities up to a factor, of any variance."""


def _standard_entropy(law: Callable[[FloatArray], FloatArray]) -> float:
    """Return the entropy of a symmetric law, scaled to variance 1, by quadrature."""
    step = 2.0**-10
    x = np.arange(-40, 40, step) + step / 2
    density = law(x) / (law(x).sum() * step)
    return _entropy(density, step) - 0.5 * math.log(float(x**2 @ density) * step)


def _entropy(masses: FloatArray, step: float = 1.0) -> float:
    """Return the entropy of masses, or of a density at places that lie a step apart."""
    positive = masses[masses > 0]
    return -float(positive @ np.log(positive)) * step


Law = dict[float, float]
"""Masses by place."""


def _normal(variance: float, noise: float) -> Law:
    """Return a Gaussian answer as masses that noise of a variance cannot tell from its density."""
    step, std = math.sqrt(noise) / 2, math.sqrt(variance)
    places = step * np.arange(-math.ceil(9 * std / step), math.ceil(9 * std / step) + 1)
    density = np.exp(-(places**2) / (2 * variance))
    return dict(zip(places.tolist(), (density / density.sum()).tolist(), strict=True))


def _told(answer: Law, std: float = 1.0) -> float:
    """Return the mutual information of an answer and itself plus Gaussian noise, by quadrature."""
    # beyond nine standard deviations nothing is left that doubles could show
    reach = max(map(abs, answer)) + 9 * std
    grid, step = np.linspace(-reach, reach, 4_001, retstep=True)

    def noisy(law: Law) -> float:
        places, masses = np.array(list(law)), np.array(list(law.values()))
        density = masses @ np.exp(-(((grid - places[:, None]) / std) ** 2) / 2)
        return _entropy(density / (math.sqrt(2 * math.pi) * std), float(step))

    return noisy(answer) - noisy({0.0: 1.0})


def _plus(one: Law, other: Law) -> Law:
    """Return the law of the sum of two independent numbers."""
    found: Law = {}
    for (a, mass), (b, weight) in itertools.product(one.items(), other.items()):
        # places are whole numbers here, so equal sums meet exactly
        found[a + b] = found.get(a + b, 0.0) + mass * weight
    return found


SIGN: Law = {-1.0: 0.5, 1.0: 0.5}
CONSTANT: Law = {0.0: 1.0}  # a sum of constants is a sum over records, too
LATTICE: Law = {-2.0: 0.125, 0.0: 0.75, 2.0: 0.125}  # of variance 1


def _information(draws: int, rng: np.random.Generator) -> Drawn:
    """Return what sums over records tell through lattice and Gaussian noise of variance 1."""
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
    """Each statement with the least case that decides it."""

    looks: ClassVar = (
        _matrices, _examples, _noise, _budget, _axioms, _times, _entropies, _information,
    )  # fmt: skip
    draws = (500, 20_000)

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each look, and one for the rows of each data set."""
        sets = (StatementPart(key, "rows", 1) for key in SETUPS.values())
        return [*super().parts(effort), *sets]

    def run(self, part: StatementPart, shared: None, seed: int) -> Measurements:
        """Return what one statement is set against, or how many rows a data set has."""
        if part.data:
            return Measurements({Point("", part.data, ROWS): single(_rows(part.data))})
        return super().run(part, shared, seed)
