"""Experiments that measure each statement with its own function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dpviz.core.seeding import generator
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point

Drawn = dict[Point, Any]
"""Simulated values by point, as an array or a list; a number is a single value."""


class StatementPart(Part):
    """One statement, with its number of simulations."""

    what: str = ""
    draws: int = 0


class StatementsExperiment(Experiment):
    """Base of experiments that measure statements one after the other."""

    looks: ClassVar[tuple[Callable[[int, Any], Drawn], ...]]
    """Functions of a number of simulations and the result of `source`, one for each statement."""
    draws: ClassVar[tuple[int, int]] = (1, 1)
    """Numbers of simulations for a quick and a full run."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each statement."""
        draws = self.draws[effort is Effort.FULL]
        return [StatementPart("", look.__name__.strip("_"), draws) for look in self.looks]

    def source(self, seed: int, what: str) -> Any:
        """Return the random stream of one statement."""
        return generator(seed, "reproduce", *self.key.split("_"), what)

    def run(self, part: StatementPart, shared: None, seed: int) -> Measurements:
        """Return the measurements for one statement."""
        (look,) = (one for one in self.looks if one.__name__.strip("_") == part.what)
        found = look(part.draws, self.source(seed, part.what))
        return Measurements(
            {point: np.array(draws, dtype=float, ndmin=1) for point, draws in found.items()}
        )
