"""Experiments on statements, each measured by a function of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dpviz.core.seeding import generator
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point

Drawn = dict[Point, Any]
"""Draws by point, in an array or a list; a number stands for one draw."""


class StatementPart(Part):
    """One statement, with so many draws."""

    what: str = ""
    draws: int = 0


class StatementsExperiment(Experiment):
    """Base of experiments that look at one statement after the other."""

    looks: ClassVar[tuple[Callable[[int, Any], Drawn], ...]]
    """Each takes a number of draws and what `source` returns; its name is that of its part."""
    draws: ClassVar[tuple[int, int]] = (1, 1)
    """Of a quick run and of a full one."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each look."""
        draws = self.draws[effort is Effort.FULL]
        return [StatementPart("", look.__name__.strip("_"), draws) for look in self.looks]

    def source(self, seed: int, what: str) -> Any:
        """Return what a look draws from: a stream of its own."""
        return generator(seed, "reproduce", *self.key.split("_"), what)

    def run(self, part: StatementPart, shared: None, seed: int) -> Measurements:
        """Return what one statement is set against."""
        (look,) = (one for one in self.looks if one.__name__.strip("_") == part.what)
        found = look(part.draws, self.source(seed, part.what))
        return Measurements(
            {point: np.array(draws, dtype=float, ndmin=1) for point, draws in found.items()}
        )
