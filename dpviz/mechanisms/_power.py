"""The noisy power method, shared by its published and its exact calibration."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.cancelling import check_cancelled
from dpviz.core.moments import SecondMoment
from dpviz.core.params import integer
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism


@dataclass(frozen=True)
class PowerMethod(Mechanism):
    """Iterate Y = A Q + G for a fixed number of steps; Q orthonormalises the last Y.

    Notes
    -----
    The start is a uniform random frame. The accounting treats every step as public, so everything
    built from the last Y is post-processing. The left singular vectors of Y span the same space as
    the last Q and are in order of variance, so the first k are released as components.

    Convergence takes a number of steps of the order lambda_k/(lambda_k - lambda_{p+1}) ln(d/error),
    and each step uses budget. The spectrum is not public, so the automatic number of steps depends
    on the noise of a single step, in units of the row-norm bound.
    """

    steps: int | None = integer(
        None,
        1,
        1_000,
        label="Steps",
        help="Multiplications by A. More multiplications converge further, but each adds noise.",
        optional=True,
        slider=(1, 50),
        examples=(3,),
    )
    columns: int | None = integer(
        None,
        1,
        1_000,
        label="Columns",
        help="Columns of the iterated matrix, at least k; auto computes their number from k.",
        optional=True,
        slider=(1, 20),
        examples=(4,),
    )

    @abstractmethod
    def auto_columns(self, problem: Problem) -> int:
        """Return the default width of the frame, from k to d."""

    @abstractmethod
    def step_std(self, problem: Problem, budget: Budget, steps: int) -> float:
        """Return the noise std of each step if there are ``steps``, in units of A."""

    @abstractmethod
    def noise_factor(self, frames: FloatArray) -> FloatArray | float:
        """Return the factor on the std for frames of shape (size, d, p)."""

    def width(self, problem: Problem) -> int:
        """Return p, the number of columns of the iterated frame."""
        return self.auto_columns(problem) if self.columns is None else self.columns

    def length(self, problem: Problem, budget: Budget) -> int:
        """Return L, the number of steps."""
        if self.steps is not None:
            return self.steps
        noise = self.step_std(problem, budget, 1) * math.sqrt(problem.d)
        digits = math.log1p(problem.domain.radius**2 / noise)
        # On digits, breast_cancer and wine with k = 1, 2 and 5, 2 to 4 steps are best while noise
        # matters. Once noise is tiny, more steps cost little, and a small eigengap needs many.
        return min(200, round(2 + math.pow(digits / 5, 4)))

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return why the number of columns is not allowed, or None."""
        width = self.width(problem)
        if not (problem.k <= width <= problem.d):
            return f"its columns must be from k = {problem.k} to d = {problem.d}; got {width}"
        return None

    def memory(self, problem: Problem, draws: int, *, thin: bool = False) -> float:
        """Return the approximate peak bytes of the frames; no matrix is formed."""
        return 8.0 * problem.d * self.width(problem) * (4 + 8 * draws)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the last frame, with its columns in order of variance."""
        problem = calibration.problem
        width = int(calibration.values["columns"])
        frames = np.linalg.qr(draws.normal(problem.d, width)).Q
        for step in range(1, int(calibration.values["steps"]) + 1):
            check_cancelled()
            noise = draws.normal(problem.d, width)
            noise *= calibration.scale * self.noise_factor(frames)
            product = data.times(frames)
            product += noise
            if step < int(calibration.values["steps"]):
                frames = np.linalg.qr(product).Q
        frames = np.linalg.svd(product, full_matrices=False).U
        return Release(raw=frames, components=fix_signs(frames[:, :, : problem.k]))
