"""Experiment II of Chanyaswad et al. 2018: the first component of MovementAAL."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.core.allocation import UNIFORM, Allocation
from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import Outcome
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.datasets import remote
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

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
