"""Copy this file to ``dpviz/mechanisms/KEY.py`` and fill the five blanks.

The name of the copy is the key everywhere: pages, links, command line, tests.
Then run ``python -m pytest tests/contract -k KEY``: what is missing is named
there. Files that begin with an underscore are not mechanisms.
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


# Blank 1: the base. AdditiveMechanism releases A + scale * noise; for anything
# else derive from Mechanism and write release_many(data, calibration, draws).
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

    # Blank 2: tuning parameters, if any. This one declaration gives validation,
    # the widget, ``--set KEY.cushion=1.5``, links and the values tests use.
    cushion: float = number(
        1.0,
        1.0,
        100.0,
        label="Cushion",
        help="Factor by which the noise is larger than the budget asks for.",
        examples=(1.5,),
    )

    # Blank 3: what a reader must know. The order fixes place and colour: take
    # the next free number.
    info = MechanismInfo(
        label="Template",
        summary="Adds isotropic Gaussian noise with a cushion.",
        paper="the template",
        # paper(...) of each source that no other file has yet, for the bibliography
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

    # Blank 4: the noise that meets the budget, from shapes and budget alone,
    # rounded to the safe side. The parts let other code check the claim.
    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the least scale that meets the budget, times the cushion."""
        sensitivity = frobenius(problem)
        scale = math.nextafter(self.cushion * sensitivity * noise_std(budget), math.inf)
        part = GaussianPart(sensitivity, scale, frobenius_attained(problem))
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return noise of unit scale; randomness comes from ``draws`` alone."""
        return goe(draws, problem.d)

    # Blank 5: one sentence for the lecture hall. The verdict itself follows
    # from spent against claimed; override ``verdict`` where that says nothing.
    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return why the verdict is what it is."""
        return "Calibrated by the exact privacy profile, with room to spare."
