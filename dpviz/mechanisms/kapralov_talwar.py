"""Kapralov and Talwar: repeatedly sample a direction, release a noisy value, and deflate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import spectral
from dpviz.core.arrays import fix_signs
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.parts import LaplacePart, Part, PurePart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, paper
from dpviz.mechanisms._ranged import Ranged, account_choice
from dpviz.sampling.deflation import bingham_each


@dataclass(frozen=True)
class KapralovTalwar(Ranged):
    """Repeat k times: sample a direction v, release v'Av with noise, subtract this rank-one matrix.

    Source
    ------
    Kapralov and Talwar 2013, in the tractable form: their own sampler of the direction costs of the
    order d^6, and an exact Bingham sampler has the same law. The split of the budget is ours, and
    its cost is proved below.

    Notes
    -----
    Each of k rounds has epsilon/k, shared between the direction and its value. The subtracted
    matrix has been released, so neighbours still differ by the same D/n. v'Av moves by at most
    R^2/n in every round, under both relations. A direction of concentration b uses 2 b R^2/n of
    epsilon under replace and half under zero-out, where every score moves the same way. The last
    value is not needed and not released, so the last direction has a whole round's budget.

    The directions are not orthogonal: the remainder of a direction after a noisy value may be
    sampled again. The components are their orthonormalisation in sampling order (post-processing).
    """

    value_share: float = number(
        0.3,
        0.05,
        0.95,
        label="Share for the value",
        help="Share of each round's budget used for the noisy eigenvalue; the rest is used to "
        "sample a direction.",
        examples=(0.5,),
    )
    account: str = account_choice()

    info = MechanismInfo(
        label="Kapralov-Talwar",
        summary="Samples a direction, measures it with noise, subtracts it, and starts again.",
        paper="Kapralov and Talwar 2013 (our budget split, proved here)",
        references=(
            paper(
                "Kapralov2013",
                "Kapralov, Michael and Talwar, Kunal",
                "On Differentially Private Low Rank Approximation",
                "ACM-SIAM Symposium on Discrete Algorithms",
                2013,
                doi="10.1137/1.9781611973105.100",
            ),
        ),
        url="https://doi.org/10.1137/1.9781611973105.100",
        family="subspace",
        release="subspace",
        guarantee="pure",
        order=14,
        redraws=True,
        timed=True,
        law=(
            r"p(v_i) \propto \exp(\beta_i\, v_i' A_i v_i),\quad"
            r" A_{i+1} = A_i - (v_i' A_i v_i + \mathrm{Lap}(b))\, v_i v_i'"
        ),
        calibration=(
            r"\beta = n (1-s) \varepsilon / (2 k R^2)\ (\text{replace; twice that for zero-out}),"
            r"\quad b = k R^2 / (n s \varepsilon)"
        ),
        complexity="k d^3",
        advice="Use it under pure privacy; eigenvector_sampling releases no values and uses the "
        "whole budget for directions.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the concentration of the directions and the scale of the values' noise."""
        reach = spectral(problem)
        sides = 2 if problem.relation is Relation.REPLACE else 1
        each = budget.epsilon / problem.k
        # The accounting adds up to 2 k parts, so the factor leaves room for rounding.
        room = 1 - 1e-14
        last = each / (sides * reach) * room
        first = last * (1 - self.value_share)
        noise = reach / (each * self.value_share * room)
        if self.better(budget, problem.k):
            # Each round divides its rho. A direction has rho width^2/8, and a value at most e^2/2.
            share = self.value_share
            last = self.epsilon_each(budget, 1.0, problem.k) / (sides * reach) * room
            first = last * math.sqrt(1 - share)
            epsilon_of_values = self.epsilon_each(budget, share, problem.k) / 2
            noise = reach / (epsilon_of_values * room)
        parts: tuple[Part, ...] = ()
        for _ in range(problem.k - 1):
            parts += (_direction(first * sides * reach), LaplacePart(reach, noise))
        parts += (_direction(last * sides * reach),)
        values = {"last_concentration": last, "values_scale": noise}
        return Calibration(problem, budget, first if problem.k > 1 else last, parts, values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the directions and values, with an orthonormal basis of the directions."""
        problem, size = calibration.problem, draws.size
        directions = np.empty((size, problem.d, problem.k))
        measured = np.empty((size, problem.k - 1))
        matrices = np.repeat(data.A[None], size, axis=0)
        spectra = np.repeat(data.eigenvalues[None], size, axis=0)
        vectors = data.eigenvectors[None]
        for turn in range(problem.k):
            last = turn + 1 == problem.k
            beta = calibration.values["last_concentration"] if last else calibration.scale
            # From round 2 on, spectra differ: each repetition has subtracted its own matrix.
            x = bingham_each(beta * spectra, draws)
            v = (vectors @ x[:, :, None])[:, :, 0]
            directions[:, :, turn] = v
            if last:
                break
            # The difference of two standard exponential numbers has the Laplace law of scale 1.
            pair = draws.exponential(2)
            noise = calibration.values["values_scale"] * (pair[:, 0] - pair[:, 1])
            value = (spectra * np.square(x)).sum(axis=1) + noise
            measured[:, turn] = value
            # The noisy value is subtracted, not the true one, so the subtracted matrix is public.
            matrices -= (value[:, None] * v)[:, :, None] * v[:, None, :]
            spectra, vectors = np.linalg.eigh(matrices)
        # Directions keep the order of sampling, which is roughly the order of their variance.
        frames = np.linalg.qr(directions).Q
        raw = np.concatenate([directions.reshape(size, -1), measured], axis=1)
        return Release(raw=raw, components=fix_signs(frames))

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the rule by which the budget adds up."""
        if problem.k == 1:
            return "One direction by the exponential mechanism, drawn exactly; no value is needed."
        if spent is not None and spent.delta > 0:
            return (
                f"By the bounded range of its {problem.k} exponential mechanisms, drawn exactly, "
                f"and its Laplace values it spends epsilon {numeral(spent.epsilon, 3)} at delta "
                f"{numeral(spent.delta)}."
            )
        values = "one Laplace value" if problem.k == 2 else f"{problem.k - 1} Laplace values"
        return (
            f"Its {problem.k} exponential mechanisms, drawn exactly, and {values}, each on what is "
            "left after subtracting released matrices, add up to epsilon."
        )


def _direction(width: float) -> PurePart:
    return PurePart(width, "exponential mechanism, drawn exactly", width=width)
