"""Shared code of the experiments of Chanyaswad, Dytso, Poor and Mittal 2018."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import greatest_mu_beside
from dpviz.accounting.gaussian import classical_std
from dpviz.accounting.sensitivity import rows_l2
from dpviz.core.allocation import UNIFORM, Allocation
from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import Outcome
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration
from dpviz.datasets import remote
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.mvg_data import MvgData
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

EPSILON = 1.0
TAUS = (0.55, 0.65, 0.75, 0.85, 0.95)
"""Shares of the precision for the favoured features (tau) that the paper tries."""


CLAIMED, EXACT, TEXTBOOK = "claimed", "exact", "textbook"
"""How the noise is scaled: as its source claims, by exact accounting, or as in `CLASSICAL`."""


@dataclass(frozen=True)
class Row:
    """One kind of noise on the rows and the way in which it is scaled.

    Attributes
    ----------
    name : str
    mechanism : Mechanism
    account : str
        Scale of the noise: `CLAIMED`, `EXACT` or `TEXTBOOK`.
    allocation : Allocation or None
        A fixed allocation, or None to favour features at each tau or to ignore allocations.
    """

    name: str
    mechanism: Mechanism
    account: str = CLAIMED
    allocation: Allocation | None = None

    @property
    def tried(self) -> bool:
        """Whether this row tries several values of tau."""
        return isinstance(self.mechanism, MvgData) and self.allocation is None


# --- tau --------------------------------------------------------------------------------------


def favouring(columns: Sequence[str], features: Sequence[str], tau: float) -> Allocation:
    """Return the binary allocation that favours some features with the share tau."""
    chosen = tuple(list(columns).index(name) + 1 for name in features)
    return Allocation("binary", chosen=chosen, tau=tau)


def single(value: float) -> FloatArray:
    """Return a single number as an array of length one."""
    return np.array([value])


# --- accounts ---------------------------------------------------------------------------------


def calibrated(mechanism: Mechanism, problem: Problem, budget: Budget, account: str) -> Calibration:
    """Return the calibration of noise on rows, with one way of scaling it.

    Parameters
    ----------
    mechanism : Mechanism
        `EXACT` needs MVG on the rows: its noise keeps its shape and is scaled down until it uses
        the whole budget by exact accounting (or by a bound on the loss, if directions are private).
        `TEXTBOOK` needs i.i.d. Gaussian noise.
    problem : Problem
    budget : Budget
    account : str
        Scale of the noise: `CLAIMED`, `EXACT` or `TEXTBOOK`.
    """
    calibration = mechanism.calibrate(problem, budget)
    if account == CLAIMED:
        return calibration
    if account == TEXTBOOK:
        sensitivity = rows_l2(problem)
        scale = sensitivity * classical_std(budget)
        parts = (GaussianPart(sensitivity, scale),)
        return dataclasses.replace(calibration, scale=scale, parts=parts)
    *bought, part = calibration.parts
    if not isinstance(part, GaussianPart):
        raise TypeError(f"{mechanism.key} has no Gaussian part to scale")
    # All stds are multiplied by this factor. A variance is 1/sqrt(theta P), with P = B^2/n.
    factor = part.mu / greatest_mu_beside(bought, budget)
    values = dict(calibration.values)
    values["bound"] /= factor**2
    values["precision"] /= factor**4
    exact = GaussianPart(part.sensitivity / factor, part.std)
    return dataclasses.replace(
        calibration, scale=calibration.scale * factor, parts=(*bought, exact), values=values
    )


# --- the power-to-noise ratio -----------------------------------------------------------------


def log_pnr(signal: FloatArray, noise: FloatArray) -> float:
    """Return the natural logarithm of the power-to-noise ratio |K + S|/|S|.

    Parameters
    ----------
    signal : ndarray of shape (d, d)
        Covariance K of the query; the paper takes X'X for the rows themselves.
    noise : ndarray of shape (d, d)
        Covariance S of the noise, positive definite.

    Source
    ------
    Chanyaswad et al. 2018, Eq. 24; section 8.1.3 for X'X.
    """
    root = np.linalg.cholesky(noise)
    inside = np.linalg.solve(root, np.linalg.solve(root, signal).T)
    gains = np.maximum(np.linalg.eigvalsh((inside + inside.T) / 2), 0.0)
    return float(np.log1p(gains).sum())


def log_pnr_of_answer(answer: FloatArray, variances: FloatArray) -> float:
    """Return the log power-to-noise ratio for one matrix answer, equal row and column noise.

    As X'X is the second moment of rows, K = vec(A) vec(A)' is the second moment of the one answer.
    The determinants of Eq. 24 give 1 + |S^-1/2 A S^-1/2|_F^2.

    Parameters
    ----------
    answer : ndarray of shape (d, d)
        A.
    variances : ndarray of shape (d,)
        Diagonal of S; entry (i, j) of the noise has variance S_ii S_jj.
    """
    scaled = answer / np.sqrt(np.outer(variances, variances))
    return math.log1p(float(np.square(scaled).sum()))


# Experiment II of Chanyaswad et al. 2018: the first component of the table MovementAAL ----------

DATA = "movementaal"
COLUMNS = ("ANC0", "ANC1", "ANC2", "ANC3")
RIGHT = ("ANC0", "ANC3")
"""Features, called anchors, that the paper favours."""

LOSS = "Delta-rho (file units, squared)"
PAPER_ROWS = 10_176  # Number of rows in the first 255 of 314 recordings, which the paper used.


@dataclass(frozen=True, eq=False)
class Movement:
    """Signal strengths of four anchors, with their means subtracted.

    Attributes
    ----------
    A : ndarray of shape (4, 4)
        Second moment of the centred rows, in units of the file.
    n : int
    half : float
        Largest entry of the centred rows: the half width of the least cube that holds all rows.
    """

    A: FloatArray
    n: int
    half: float

    @classmethod
    def load(cls, first: bool = True) -> Movement:
        """Read the files and subtract the means, as in the paper.

        Parameters
        ----------
        first : bool
            Whether to use only the recordings of the paper.
        """
        rows = remote.load(DATA, download=False).rows[: PAPER_ROWS if first else None]
        rows = rows - rows.mean(axis=0)
        return cls(rows.T @ rows / len(rows), len(rows), float(np.abs(rows).max()))

    def problem(self, allocation: Allocation = UNIFORM) -> Problem:
        """Return the problem on the cube [-1, 1]^4, with replacement neighbours."""
        d = len(self.A)
        return Problem(self.n, d, 1, Relation.REPLACE, Domain.box(d), allocation)

    def budget(self, epsilon: float) -> Budget:
        """Return the budget, with delta = 1/n as in the paper."""
        return Budget(epsilon, 1 / self.n)

    def measured(self, half: float) -> Measured:
        """Return the moments in units of a cube's half width; outer rows stay unclipped."""
        moment = SecondMoment(self.A / half**2, self.n)
        d = len(self.A)
        return Measured(
            name=DATA,
            columns=COLUMNS,
            domain=Domain.box(d),
            row_bound=Domain.box(d).radius,
            moment=moment,
            reference=moment,
            bounded_rows=0,
            notes=(),
            assumed_public=(),
        )

    def outcome(
        self,
        mechanism: Mechanism,
        epsilon: float,
        draws: int,
        seed: int,
        allocation: Allocation = UNIFORM,
        half: float | None = None,
    ) -> Outcome:
        """Return the releases of a mechanism whose domain is a cube of the given half width."""
        problem, budget = self.problem(allocation), self.budget(epsilon)
        cell = Cell(mechanism, problem, budget, seed, range(draws))
        return evaluate(cell, self.measured(self.half if half is None else half))

    def loss(self, directions: FloatArray) -> FloatArray:
        """Return Delta-rho (Eq. 28) of unit vectors (draws, 4), in squared units of the file."""
        captured = np.einsum("ti,ij,tj->t", directions, self.A, directions)
        # The loss cannot be negative, so a value below 0 is a rounding error.
        lost: FloatArray = np.maximum(np.linalg.eigvalsh(self.A)[-1] - captured, 0.0)
        return lost
