"""Experiment III of Chanyaswad et al. 2018: the covariance of CTG from noisy rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpviz.core.allocation import UNIFORM, Allocation
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import generator
from dpviz.datasets import remote
from dpviz.mechanisms import Mechanism
from dpviz.papers.mvg._shared import CLAIMED, calibrated
from dpviz.simulation.simulate import Named, Trials, simulate

DATA = "cardiotocography"
RIGHT = ("LB", "ASTV", "ALTV")
"""FHR (LB in the file), ASV and ALV, which the paper favours as clinically informative."""

CENTRED, PLAIN = "centred", "not centred"
READINGS = (CENTRED, PLAIN)
HINDSIGHT = 6
"""Number of favoured features if the features of largest variance are chosen in hindsight."""

RSS = "RSS"


@dataclass(frozen=True, eq=False)
class Ctg:
    """The 21 features of the cardiotocograms (CTG).

    Attributes
    ----------
    raw : ndarray of shape (n, 21)
        Rows in the units of the file.
    columns : tuple of str
    """

    raw: FloatArray
    columns: tuple[str, ...]

    @classmethod
    def load(cls) -> Ctg:
        """Read the rows from the file."""
        table = remote.load(DATA, download=False)
        return cls(table.rows, tuple(table.columns))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.raw)

    @cached_property
    def rows(self) -> FloatArray:
        """Rows after each feature is mapped to [0, 1] by its smallest and largest value."""
        mapped: FloatArray = (self.raw - self.raw.min(axis=0)) / np.ptp(self.raw, axis=0)
        return mapped

    def read(self, reading: str) -> FloatArray:
        """Return the rows in one of the `READINGS`."""
        return self.rows - self.rows.mean(axis=0) if reading == CENTRED else self.rows

    def favoured(self, count: int = HINDSIGHT) -> tuple[str, ...]:
        """Return the features of largest variance, a choice in hindsight that uses the data."""
        order = np.argsort(-self.rows.var(axis=0))[:count]
        return tuple(self.columns[index] for index in sorted(order))

    def problem(self, allocation: Allocation = UNIFORM) -> Problem:
        """Return the problem on the cube [-1, 1]^21, the image of [0, 1]^21, under replacement."""
        d = len(self.columns)
        return Problem(self.n, d, d, Relation.REPLACE, Domain.box(d), allocation)

    def budget(self, epsilon: float) -> Budget:
        """Return the budget, with delta = 1/n as in the paper."""
        return Budget(epsilon, 1 / self.n)

    def moment(self, reading: str) -> SecondMoment:
        """Return the second moment in units of the cube, with the rows.

        Features in [0, 1] become features in [-1, 1] by doubling and a shift. Noise on rows does
        not depend on the position of zero. A reading may therefore use another shift than the
        calibration of the noise.
        """
        rows = 2 * self.read(reading)
        return SecondMoment(rows.T @ rows / self.n, self.n, rows)

    def release(
        self,
        mechanism: Mechanism,
        reading: str,
        epsilon: float,
        draws: int,
        seed: int,
        allocation: Allocation = UNIFORM,
        account: str = CLAIMED,
    ) -> tuple[Release, Calibration]:
        """Return the releases of a mechanism in units of the cube, and its calibration."""
        problem, budget = self.problem(allocation), self.budget(epsilon)
        mechanism.check(problem, budget)
        calibration = calibrated(mechanism, problem, budget, account)
        streams = Named(seed, mechanism.key, range(draws))
        return _released(mechanism, calibration, self.moment(reading), streams), calibration

    def release_of_covariance(
        self,
        mechanism: Mechanism,
        epsilon: float,
        draws: int,
        seed: int,
        allocation: Allocation = UNIFORM,
    ) -> Release:
        """Return the releases of a mechanism for the second moment of the centred features.

        Centred features of range 1 lie in [-1, 1]. Unlike the rows, the second moment depends on
        the position of zero.
        """
        problem, budget = self.problem(allocation), self.budget(epsilon)
        mechanism.check(problem, budget, rows=False)
        rows = self.read(CENTRED)
        streams = Named(seed, mechanism.key, range(draws))
        moment = SecondMoment(rows.T @ rows / self.n, self.n)
        return _released(mechanism, mechanism.calibrate(problem, budget), moment, streams)

    def loss(self, frames: FloatArray, reading: str) -> FloatArray:
        """Return the RSS (Eq. 29) of released components (draws, 21, 21), for features of range 1.

        The i-th component is compared with the i-th eigenvalue.
        """
        rows = self.read(reading)
        return residual(frames, rows.T @ rows / self.n)


def _released(
    mechanism: Mechanism, calibration: Calibration, moment: SecondMoment, streams: Named
) -> Release:
    trials = Trials(mechanism, calibration, moment, streams)
    (release,) = simulate([trials], lambda _, release: release)
    return release


def residual(frames: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the sum of squares of eigenvalues minus variances along frames (draws, d, d)."""
    true = np.linalg.eigvalsh(covariance)[::-1]
    captured = np.einsum("tij,tij->tj", frames, covariance @ frames)
    found: FloatArray = np.square(true - captured).sum(axis=1)
    return found


def descending(matrices: FloatArray) -> FloatArray:
    """Return the eigenvectors of symmetric matrices, by descending eigenvalue."""
    vectors: FloatArray = np.linalg.eigh(matrices)[1][..., ::-1]
    return vectors


def random_frames(d: int, draws: int, seed: int) -> FloatArray:
    """Return uniformly random orthonormal bases, shape (draws, d, d)."""
    rng = generator(seed, "reproduce", DATA, "random")
    frames: FloatArray = np.linalg.qr(rng.standard_normal((draws, d, d)))[0]
    return frames


def random_orders(frame: FloatArray, draws: int, seed: int) -> FloatArray:
    """Return the columns of a basis (d, d) in uniformly random orders, shape (draws, d, d)."""
    rng = generator(seed, "reproduce", DATA, "order")
    orders = rng.permuted(np.tile(np.arange(frame.shape[1]), (draws, 1)), axis=1)
    found: FloatArray = frame.T[orders].transpose(0, 2, 1)
    return found
