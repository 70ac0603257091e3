"""The one place where mechanisms meet data: trials in, releases out, block by block.

Comparisons, sweeps, pages, targets, tasks, exhibits, audits and fits say what is to be drawn
(`Trials`) and what is to be kept of each block; `simulate` draws. Memory is that of one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import CannotRun
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism, released
from dpviz.preparation.steps import PrivateSteps
from dpviz.simulation.picture.account import PictureOptions

_SHARED_ENTRIES = 1 << 18
"""Most entries of noise that are kept for the next epsilon: 2 MB for each of some variants.

Twenty-four epsilons of three mechanisms take .17 of the time with it on iris, .67 on digits.
"""


@dataclass(frozen=True)
class Cell:
    """One variant in one setting, with the trials to draw.

    Attributes
    ----------
    mechanism : Mechanism
        The variant.
    problem : Problem
    budget : Budget
    seed : int
    trials : range
        Which named trials; chunks of trials join without a seam.
    private : PrivateSteps or None
        The steps of the preparation that the budget pays for as well.
    free : bool
        Whether releases are measured after post-processing as well (`dpviz.simulation.cells`).
    picture : PictureOptions or None
        What the budget pays for beside the directions, to be published of the rows.
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
    """Trials with a stream each, named by seed, label and number: blocks join without a seam.

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
        """Yield the same trials, at most so many at a time."""
        step = most or max(len(self.trials), 1)
        for start in range(0, len(self.trials), step):
            yield replace(self, trials=self.trials[start : start + step])

    def draws(self) -> Draws:
        """Return the streams."""
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
        """Yield as many trials, at most so many at a time."""
        step = most or max(self.size, 1)
        for start in range(0, self.size, step):
            yield Batch(self.rng, min(step, self.size - start))

    def draws(self) -> Draws:
        """Return the draws that come next."""
        return Draws.batch(self.rng, self.size)


@dataclass(frozen=True, eq=False)
class Trials:
    """Some trials of a calibrated mechanism.

    Attributes
    ----------
    mechanism : Mechanism
    calibration : Calibration
    sees : SecondMoment or callable
        What the mechanism sees; where a preparation is drawn as well, the place of a trial to
        what that trial sees.
    streams : Named or Batch
    most : int or None
        Trials in a block; None for one block.
    keeps_noise : bool
        Whether named standard noise is kept in this process, as every epsilon scales the same
        draw. Never for a release that is given away: what is kept is what hides its data.
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
    """Draw the releases of every cell and yield what is kept of each block, in order.

    BLAS runs on one thread while a mechanism and ``keep`` are at work: the same bytes whatever
    the number of workers.

    Parameters
    ----------
    cells : iterable of Trials
        Taken one at a time.
    keep : callable
        The cell and the releases of one block to what is kept of them.
    on_block : callable
        Called before each block; what it raises ends the work.
    """
    for cell in cells:
        for streams in cell.streams.blocks(cell.most):
            on_block()
            with one_blas_thread():
                part = keep(cell, _release(cell, streams))
            yield part


_Made = TypeVar("_Made")


def unless_failed(mechanism: Mechanism, run: Callable[[], _Made]) -> _Made | CannotRun:
    """Return what draws of a mechanism make, or why one of somebody else fails in them.

    Ours say beforehand where they cannot run; what fails of them in a draw is a fault, and raised.
    """
    try:
        return run()
    except CannotRun as error:
        if mechanism.ours:
            raise
        return error


def _release(cell: Trials, streams: Named | Batch) -> Release:
    """Return the releases of one block."""
    mechanism, calibration, sees = cell.mechanism, cell.calibration, cell.sees
    if callable(sees):
        # each trial sees another table, so they cannot share one batch
        singles = streams.draws().single()
        return Release.joined(
            [
                released(mechanism, sees(place), calibration, one)
                for place, one in enumerate(singles)
            ]
        )
    # releases of somebody else's mechanism are checked first, in `released`
    keeps = cell.keeps_noise and mechanism.ours
    if keeps and isinstance(streams, Named) and isinstance(mechanism, AdditiveMechanism):
        problem = calibration.problem
        # the next epsilon scales the same draw; what is larger would fill the memory
        if len(streams.trials) * problem.d**2 <= _SHARED_ENTRIES:
            noise = _standard_noise(mechanism, problem, streams)
            return mechanism.release_scaled(sees, calibration, noise)
    return released(mechanism, sees, calibration, streams.draws())


@lru_cache(maxsize=24)
def _standard_noise(mechanism: AdditiveMechanism, problem: Problem, streams: Named) -> FloatArray:
    noise = mechanism.standard_noise(problem, streams.draws())
    # shared by all who ask: nobody may change it
    noise.setflags(write=False)
    return noise


def simulate_tables(
    mechanism: Mechanism,
    calibration: Calibration,
    rows: Callable[[int], FloatArray],
    streams: Named | Batch,
) -> Iterator[FloatArray]:
    """Yield the released table of each trial, one at a time: a table is large.

    Parameters
    ----------
    mechanism : Mechanism
        One that releases rows; see `Mechanism.release_rows`.
    calibration : Calibration
    rows : callable
        The place of a trial to the bounded rows that it sees, shape (n, d).
    streams : Named or Batch
    """
    singles: Iterable[Named | Batch] = streams.blocks(1)
    for place, single in enumerate(singles):
        check_cancelled()
        with one_blas_thread():
            table = mechanism.release_rows(rows(place), calibration, single.draws())
        assert table is not None, "`why_not` says so beforehand"
        yield table[0]
