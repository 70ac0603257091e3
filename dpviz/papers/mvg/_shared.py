"""What the experiments of Chanyaswad, Dytso, Poor and Mittal 2018 share."""

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
"""The shares of the precision for the favoured features that the paper tries."""


CLAIMED, EXACT, TEXTBOOK = "claimed", "exact", "textbook"
"""How the noise of a part is scaled: as its source says; by the exact account; see `CLASSICAL`."""


@dataclass(frozen=True)
class Row:
    """One kind of noise on the rows and how it is scaled.

    Attributes
    ----------
    name : str
    mechanism : Mechanism
    account : str
        `CLAIMED`, `EXACT` or `TEXTBOOK`.
    allocation : Allocation or None
        A fixed one; None for the favoured features at each tau, or where
        noise follows no allocation.
    """

    name: str
    mechanism: Mechanism
    account: str = CLAIMED
    allocation: Allocation | None = None

    @property
    def tried(self) -> bool:
        """Whether several tau are tried."""
        return isinstance(self.mechanism, MvgData) and self.allocation is None


# --- tau --------------------------------------------------------------------------------------


def favouring(columns: Sequence[str], features: Sequence[str], tau: float) -> Allocation:
    """Return the binary allocation that favours some features with the share tau."""
    chosen = tuple(list(columns).index(name) + 1 for name in features)
    return Allocation("binary", chosen=chosen, tau=tau)


def single(value: float) -> FloatArray:
    """Return a number without draws, as an array of one."""
    return np.array([value])


# --- accounts ---------------------------------------------------------------------------------


def calibrated(mechanism: Mechanism, problem: Problem, budget: Budget, account: str) -> Calibration:
    """Return the calibration of noise on rows by one of the accounts.

    Parameters
    ----------
    mechanism : Mechanism
        For `EXACT` MVG on the rows, whose noise keeps its shape and is scaled
        down until it spends the budget by the exact account (or by a bound of
        it, where directions are bought). For `TEXTBOOK` i.i.d. Gaussian noise.
    problem : Problem
    budget : Budget
    account : str
        `CLAIMED`, `EXACT` or `TEXTBOOK`.
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
    # All stds times this factor. Variances are 1/sqrt(theta P) and P = B^2/n.
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
        K, the covariance of the query; the paper takes X'X for the rows themselves.
    noise : ndarray of shape (d, d)
        S, the covariance of the noise, positive definite.

    Source
    ------
    Chanyaswad et al. 2018, Eq. 24; section 8.1.3 for X'X.
    """
    root = np.linalg.cholesky(noise)
    inside = np.linalg.solve(root, np.linalg.solve(root, signal).T)
    gains = np.maximum(np.linalg.eigvalsh((inside + inside.T) / 2), 0.0)
    return float(np.log1p(gains).sum())


def log_pnr_of_answer(answer: FloatArray, variances: FloatArray) -> float:
    """Return the logarithm of the ratio for one matrix answer and equal row and column noise.

    With K = vec(A) vec(A)', the second moment of the one answer as X'X is that
    of the rows, the determinants of Eq. 24 give 1 + |S^-1/2 A S^-1/2|_F^2.

    Parameters
    ----------
    answer : ndarray of shape (d, d)
        A.
    variances : ndarray of shape (d,)
        Diagonal of S; entry (i, j) of the noise has variance S_ii S_jj.
    """
    scaled = answer / np.sqrt(np.outer(variances, variances))
    return math.log1p(float(np.square(scaled).sum()))


# Experiment II of Chanyaswad et al. 2018: the first component of MovementAAL --------------------

DATA = "movementaal"
COLUMNS = ("ANC0", "ANC1", "ANC2", "ANC3")
RIGHT = ("ANC0", "ANC3")
"""The anchors that the paper favours."""

LOSS = "Delta-rho (file units, squared)"
PAPER_ROWS = 10_176  # the first 255 of the 314 recordings


@dataclass(frozen=True, eq=False)
class Movement:
    """Signal strengths of four anchors, centred.

    Attributes
    ----------
    A : ndarray of shape (4, 4)
        Second moment of the centred rows, in units of the file.
    n : int
    half : float
        Largest entry of the centred rows: the least half width of a cube that holds them.
    """

    A: FloatArray
    n: int
    half: float

    @classmethod
    def load(cls, first: bool = True) -> Movement:
        """Read the files; their means are subtracted, as in the paper.

        Parameters
        ----------
        first : bool
            Whether of the paper's recordings only.
        """
        rows = remote.load(DATA, download=False).rows[: PAPER_ROWS if first else None]
        rows = rows - rows.mean(axis=0)
        return cls(rows.T @ rows / len(rows), len(rows), float(np.abs(rows).max()))

    def problem(self, allocation: Allocation = UNIFORM) -> Problem:
        """Return the problem on the cube [-1, 1]^4, under replacement."""
        d = len(self.A)
        return Problem(self.n, d, 1, Relation.REPLACE, Domain.box(d), allocation)

    def budget(self, epsilon: float) -> Budget:
        """Return the budget; delta = 1/n as in the paper."""
        return Budget(epsilon, 1 / self.n)

    def measured(self, half: float) -> Measured:
        """Return the moments in units of a cube's half width; rows outside it are kept."""
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
        """Return the releases of a mechanism that takes a cube of some half width as the domain."""
        problem, budget = self.problem(allocation), self.budget(epsilon)
        cell = Cell(mechanism, problem, budget, seed, range(draws))
        return evaluate(cell, self.measured(self.half if half is None else half))

    def loss(self, directions: FloatArray) -> FloatArray:
        """Return Delta-rho (Eq. 28) of unit vectors (draws, 4), in units of the file, squared."""
        captured = np.einsum("ti,ij,tj->t", directions, self.A, directions)
        # at least 0, but for rounding
        lost: FloatArray = np.maximum(np.linalg.eigvalsh(self.A)[-1] - captured, 0.0)
        return lost
