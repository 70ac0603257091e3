"""Copy this file to ``dpviz/mechanisms/KEY.py`` and fill the five blanks.

The name of the copy is the key everywhere: pages, links, command line, tests. Then run ``python -m
pytest tests/contract -k KEY``: the tests name the missing parts. Files that begin with an
underscore are not mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import frobenius, frobenius_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.params import number
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism, MechanismInfo
from dpviz.sampling.ensembles import goe


# Blank 1: the base class. AdditiveMechanism releases A + scale * noise. For any other release,
# derive from Mechanism and write release_many(data, calibration, draws).
@dataclass(frozen=True)
class Template(AdditiveMechanism):
    """One sentence: what is released.

    Source
    ------
    Paper, algorithm number, step numbers at the lines that follow them. Say
    where and why this differs from the paper.

    Notes
    -----
    The sensitivity under each relation, with its proof or source.
    """

    # Blank 2: tuning parameters, if any. This one declaration gives the validation, the widget, the
    # option ``--set KEY.cushion=1.5``, the links and the values that tests use.
    cushion: float = number(
        1.0,
        1.0,
        100.0,
        label="Cushion",
        help="Factor by which the noise exceeds what the budget requires.",
        examples=(1.5,),
    )

    # Blank 3: what a reader must know about the mechanism. The number ``order`` fixes its place and
    # colour: take the next free number.
    info = MechanismInfo(
        label="Template",
        summary="Adds isotropic Gaussian noise with a cushion.",
        paper="the template",
        # List a paper(...) for each source that no other mechanism's file lists yet.
        references=(),
        family="gaussian",
        release="matrix",
        guarantee="approximate",
        order=1_000,
        law=r"\hat A = A + G",
        calibration=r"t = \text{cushion} \cdot D_F\, g(\varepsilon, \delta) / n",
        complexity="d^3",
        advice="Copy it; do not use it.",
    )

    # Blank 4: the noise that meets the budget. It depends on the table's shape and the budget
    # alone, and is rounded to the safe side. The parts let dpviz check the claim.
    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the least scale that meets the budget, times the cushion."""
        sensitivity = frobenius(problem)
        scale = math.nextafter(self.cushion * sensitivity * noise_std(budget), math.inf)
        part = GaussianPart(sensitivity, scale, frobenius_attained(problem))
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return noise of unit scale; randomness comes from ``draws`` alone."""
        return goe(draws, problem.d)

    # Blank 5: one sentence for a lecture. By default the verdict compares the actual loss with the
    # claim. Override ``verdict`` if this comparison says nothing.
    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the reason for the verdict."""
        return "Calibrated by the exact privacy profile, with room to spare."
