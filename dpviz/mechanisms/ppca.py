"""PPCA: the exponential mechanism on subspaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.losses import ExactLoss, Tables, of_bingham
from dpviz.accounting.sensitivity import spectral
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.params import choice, integer
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Aim, Calibration, Release, Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, paper
from dpviz.mechanisms._clipped import on_the_sphere
from dpviz.sampling.bingham import convergence
from dpviz.sampling.matrix_bingham import matrix_bingham
from dpviz.sampling.stiefel import DEFAULT_SWEEPS, stiefel_bingham


@dataclass(frozen=True)
class Ppca(Mechanism):
    """Sample V with density proportional to exp(concentration * tr(V'AV)).

    Source
    ------
    Chaudhuri, Sarwate and Sinha 2012, Algorithm 2, an exponential mechanism
    (McSherry and Talwar 2007).

    Notes
    -----
    One row moves the score tr(V'AV) by at most R^2/n. Under replace the score can rise for some V
    and fall for others. So the normaliser may cost as much as the density, and the concentration is
    n epsilon/(2 R^2), as published. Under zero-out the score can only fall, for every V alike. Half
    of that loss cannot occur, and n epsilon/R^2 gives the same epsilon.

    With unit rows A is the second moment of directions (`dpviz.mechanisms._clipped`). One row moves
    this moment as on the unit ball: R is 1, and no row-norm bound is needed.
    """

    sweeps: int | None = integer(
        None,
        1,
        2_000,
        label="Gibbs sweeps",
        help="Passes of the Gibbs chain over the columns of V, for k above 1. Auto samples exactly "
        f"if that is quick, and else takes {DEFAULT_SWEEPS} passes.",
        optional=True,
        slider=(1, 50),
        examples=(5,),
    )

    rows: str = choice(
        "bounded",
        {"bounded": "as they are, within the row-norm bound", "unit": "scaled to length one"},
        label="Rows",
        help="How rows enter the score: clipped to the row-norm bound, or scaled to length one, "
        "which needs no bound.",
        examples=("unit",),
    )

    info = MechanismInfo(
        label="PPCA",
        summary="Draws a subspace that captures variance with exponentially higher odds.",
        paper="Chaudhuri et al. 2012, Algorithm 2",
        references=(
            paper(
                "Chaudhuri2012",
                "Chaudhuri, Kamalika and Sarwate, Anand D. and Sinha, Kaushik",
                "Near-Optimal Differentially Private Principal Components",
                "Advances in Neural Information Processing Systems 25",
                2012,
            ),
        ),
        family="subspace",
        release="subspace",
        guarantee="pure",
        order=9,
        redraws=True,
        timed=True,
        law=r"p(V) \propto \exp\left(\beta\, \mathrm{tr}(V'AV)\right)",
        calibration=r"\beta = n \varepsilon / (2 R^2)\ (\text{replace}),\quad n \varepsilon / R^2"
        r"\ (\text{zero-out})",
        complexity="d^3 + sweeps k^2 d",
        advice="The default under pure privacy for one component of a second moment, with n "
        "epsilon up to 30 d and epsilon up to 2. For zero-out the limits are 10 d and 0.5.",
    )

    @property
    def needs_rows(self) -> bool:
        """True if the score uses the rows' directions."""
        return self.rows == "unit"

    @property
    def by_length(self) -> bool:
        """True: a mechanism that needs rows needs only their directions."""
        return True

    @property
    def needs_row_bound(self) -> bool:
        """True if the score uses the rows themselves."""
        return self.rows == "bounded"

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the concentration of the density, rounded down."""
        range_of_score = spectral(problem if self.rows == "bounded" else on_the_sphere(problem))
        # Algorithm 2 assumes replaced rows. The notes of the class derive the case of zero-out.
        sides = 2 if problem.relation is Relation.REPLACE else 1
        # The concentration is rounded down, because a smaller concentration is more private.
        concentration = math.nextafter(budget.epsilon / (sides * range_of_score), 0.0)
        # The log ratio of an exponential mechanism varies by at most epsilon, not by 2 epsilon.
        width = concentration * sides * range_of_score
        part = PurePart(width, "exponential mechanism; the law, not the chain", width=width)
        return Calibration(problem, budget, concentration, (part,))

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return frames sampled in the eigenbasis of A and rotated back."""
        if self.rows == "unit":
            data = data.shortened(None)
        # In the eigenbasis the law depends on eigenvalues alone. The frame is rotated back below.
        values, k = calibration.scale * data.eigenvalues, calibration.problem.k
        drawn = (
            matrix_bingham(values, k, draws)
            if self.sweeps is None
            else stiefel_bingham(values, k, draws, self.sweeps)
        )
        frames = data.eigenvectors @ drawn.frames
        # Exact samples come from no Markov chain, so there is nothing to diagnose.
        return Release.of_frames(frames, None if drawn.exact else drawn.trace.T)

    def diagnose(self, trace: FloatArray) -> dict[str, float]:
        """Return how close chains from opposite starts have become."""
        chains, steps = trace.shape
        # Chains start at the mode and at random in turn. They have converged if both kinds agree.
        from_mode = np.arange(chains) % 2 == 0
        diagnosis = convergence(trace.T, from_mode)
        figures = {"gibbs_sweeps": float(steps - 1)}
        if diagnosis.gap is not None:
            figures["start_gap_first"] = float(diagnosis.gap[0])
            figures["start_gap_last"] = float(diagnosis.gap[-1])
        if diagnosis.split_rhat is not None:
            figures["split_rhat"] = diagnosis.split_rhat
        return figures

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 2 for one component at a small n epsilon, if this beats noise on the matrix."""
        most, each = (2.0, 30) if problem.relation is Relation.REPLACE else (0.5, 10)
        small = budget.epsilon <= most and problem.n * budget.epsilon <= each * problem.d
        return 2.0 if problem.k == 1 and small else None

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return `Verdict.HOLDS` for k = 1, where sampling is exact."""
        return Verdict.HOLDS if problem.k == 1 else Verdict.APPROXIMATE

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return `Aim.DIRECTIONS` if directions are scored, else `Aim.COMPONENTS`."""
        return Aim.DIRECTIONS if self.rows == "unit" else Aim.COMPONENTS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the second moment that the score uses."""
        return data.shortened(None) if self.rows == "unit" else data

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return whether sampling is exact."""
        if problem.k == 1:
            return (
                "The exponential mechanism with a score that one row moves by 1/n, drawn exactly "
                "by rejection."
            )
        if self.sweeps is not None:
            return (
                "The law is pure epsilon. For k above 1 this Gibbs chain reaches it in the limit "
                f"({self.sweeps} sweeps; see the convergence check)."
            )
        return (
            "The law is pure epsilon. For k above 1 it is sampled exactly by rejection if about "
            "thirty thousand proposals suffice. Otherwise a Gibbs chain reaches the law in the "
            "limit. The choice depends on the spectrum, so it is known only with the data."
        )

    def exact_loss(
        self,
        calibration: Calibration,
        delta: float,
        at_epsilons: tuple[float, ...],
        tables: Sequence[Tables],
    ) -> ExactLoss | None:
        """Return the density ratio by quadrature, for one vector in two or three dimensions."""
        exact = calibration.problem.k == 1 and calibration.problem.d <= 3
        if exact and self.rows == "unit":
            tables = [(one.shortened(None), other.shortened(None)) for one, other in tables]
        if exact:
            return of_bingham(calibration, at_epsilons, tables)
        return super().exact_loss(calibration, delta, at_epsilons, tables)
