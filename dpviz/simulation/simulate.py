"""Run mechanisms on data, block by block: trials in, releases out.

Comparisons, sweeps, pages, targets, tasks, exhibits, audits and fits define what to simulate
(`Trials`) and the results to keep. `simulate` runs the trials, with one block in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism, released
from dpviz.preparation.steps import PrivateSteps
from dpviz.simulation.picture.account import PictureOptions

_SHARED_ENTRIES = 1 << 18
"""Maximum number of noise entries cached for the next epsilon: 2 MB for each of some variants.

With it, twenty-four epsilons of three mechanisms take .17 of the time on iris, .67 on digits.
"""


@dataclass(frozen=True)
class Cell:
    """A variant in one setting, with the trials to simulate.

    Attributes
    ----------
    mechanism : Mechanism
        The variant.
    problem : Problem
    budget : Budget
    seed : int
    trials : range
        Trial numbers; chunks of trials join to the same results.
    private : PrivateSteps or None
        Private steps of the preparation, covered by the same budget.
    free : bool
        Whether releases are also measured after post-processing (`dpviz.simulation.cells`).
    picture : PictureOptions or None
        Published picture of the rows, covered by the same budget.
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    seed: int
    trials: range
    private: PrivateSteps | None = None
    free: bool = False
    picture: PictureOptions | None = None


@dataclass(frozen=True)
class Named:
    """Trials with one stream each, named by seed, label and number: blocks do not change them.

    Attributes
    ----------
    seed : int
    label : str
    trials : range
    """

    seed: int
    label: str
    trials: range

    def blocks(self, most: int | None) -> Iterator[Named]:
        """Yield the trials, at most ``most`` at a time."""
        step = most or max(len(self.trials), 1)
        for start in range(0, len(self.trials), step):
            yield replace(self, trials=self.trials[start : start + step])

    def draws(self) -> Draws:
        """Return the random streams of the trials."""
        return Draws.trials(self.seed, self.label, self.trials)


@dataclass(frozen=True, eq=False)
class Batch:
    """Trials that share one generator: faster, for audits and laws.

    Attributes
    ----------
    rng : Generator
    size : int
    """

    rng: np.random.Generator
    size: int

    def blocks(self, most: int | None) -> Iterator[Batch]:
        """Yield the same number of trials, at most ``most`` at a time."""
        step = most or max(self.size, 1)
        for start in range(0, self.size, step):
            yield Batch(self.rng, min(step, self.size - start))

    def draws(self) -> Draws:
        """Return the generator's next random numbers."""
        return Draws.batch(self.rng, self.size)


@dataclass(frozen=True, eq=False)
class Trials:
    """Some trials of a calibrated mechanism.

    Attributes
    ----------
    mechanism : Mechanism
    calibration : Calibration
    sees : SecondMoment or callable
        The mechanism's input. With a private preparation, a function from a trial's index to the
        input of that trial.
    streams : Named or Batch
    most : int or None
        Trials in a block; None means a single block.
    keeps_noise : bool
        Whether named standard noise is cached in this process, because every epsilon scales the
        same noise. Never for a real release, because the noise hides its data.
    """

    mechanism: Mechanism
    calibration: Calibration
    sees: SecondMoment | Callable[[int], SecondMoment]
    streams: Named | Batch
    most: int | None = None
    keeps_noise: bool = False


_Trials = TypeVar("_Trials", bound=Trials)
_Kept = TypeVar("_Kept")


def simulate(
    cells: Iterable[_Trials],
    keep: Callable[[_Trials, Release], _Kept],
    on_block: Callable[[], object] = check_cancelled,
) -> Iterator[_Kept]:
    """Simulate the releases of every cell; yield the result of ``keep`` for each block, in order.

    BLAS runs on one thread during the mechanism and ``keep``, so that the bytes do not depend on
    the number of workers.

    Parameters
    ----------
    cells : iterable of Trials
        Cells, taken one at a time.
    keep : callable
        A function from a cell and the releases of one block to the result that is kept.
    on_block : callable
        A function called before each block; an exception from it ends the work.
    """
    for cell in cells:
        for streams in cell.streams.blocks(cell.most):
            on_block()
            with one_blas_thread():
                part = keep(cell, _release(cell, streams))
            yield part


def _release(cell: Trials, streams: Named | Batch) -> Release:
    """Return the releases of one block."""
    mechanism, calibration, sees = cell.mechanism, cell.calibration, cell.sees
    if callable(sees):
        # Each trial has a table of its own, so the trials cannot share one batch.
        singles = streams.draws().single()
        return Release.joined(
            [
                released(mechanism, sees(place), calibration, one)
                for place, one in enumerate(singles)
            ]
        )
    # External mechanisms go through `released`, because it checks their releases.
    keeps = cell.keeps_noise and mechanism.ours
    if keeps and isinstance(streams, Named) and isinstance(mechanism, AdditiveMechanism):
        problem = calibration.problem
        # The next epsilon scales the same noise, so cache it unless it would fill the memory.
        if len(streams.trials) * problem.d**2 <= _SHARED_ENTRIES:
            noise = _standard_noise(mechanism, problem, streams)
            return mechanism.release_scaled(sees, calibration, noise)
    return released(mechanism, sees, calibration, streams.draws())


@lru_cache(maxsize=24)
def _standard_noise(mechanism: AdditiveMechanism, problem: Problem, streams: Named) -> FloatArray:
    noise = mechanism.standard_noise(problem, streams.draws())
    # All callers share this cached array, so make it read-only.
    noise.setflags(write=False)
    return noise


def simulate_tables(
    mechanism: Mechanism,
    calibration: Calibration,
    rows: Callable[[int], FloatArray],
    streams: Named | Batch,
) -> Iterator[FloatArray]:
    """Yield the released table of each trial, one at a time because tables are large.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism that releases rows; see `Mechanism.release_rows`.
    calibration : Calibration
    rows : callable
        A function from a trial's index to the bounded rows that it sees, shape (n, d).
    streams : Named or Batch
    """
    singles: Iterable[Named | Batch] = streams.blocks(1)
    for place, single in enumerate(singles):
        check_cancelled()
        with one_blas_thread():
            table = mechanism.release_rows(rows(place), calibration, single.draws())
        assert table is not None, "`why_not` says so beforehand"
        yield table[0]
