"""The Laplace output mechanism (LOP) of Xu et al.: a claim that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.losses import ExactLoss, Tables, of_published_space
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release, Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, paper
from dpviz.mechanisms._directional import symmetrised
from dpviz.mechanisms._rows import laplace_moments, laplace_rows, moment_of


@dataclass(frozen=True)
class LaplaceOutput(Mechanism):
    """Publish Y V' with Y = XV + i.i.d. Lap(2d/epsilon) and V the exact top k of A.

    Source
    ------
    Xu et al. 2019, the Laplace output mechanism (LOP).

    Notes
    -----
    The rows of Y V' span the same space as the columns of V, so V is published without noise. The
    noise scale counts one changed row of XV, but a changed row changes V and so every row of XV.
    The estimate of A is the published table's own moment, V(Y'Y/n)V'; its components are the exact
    ones, up to a rotation within their span.
    """

    info = MechanismInfo(
        label="Laplace on the scores",
        summary="Projects on the exact components and adds Laplace noise to the scores.",
        paper="Xu et al. 2019, LOP",
        references=(
            paper(
                "Xu2019",
                "Xu, Yahong and Yang, Geng and Bai, Shuangjie",
                "Laplace Input and Output Perturbation for Differentially Private Principal "
                "Components Analysis",
                "",
                2019,
                journal="Security and Communication Networks",
            ),
        ),
        family="laplace",
        release="data",
        guarantee="pure",
        order=11,
        psd=True,
        needs_rows=True,
        passes=1,
        law=r"\hat X = (XV + L)V',\quad L_{ij} \sim \mathrm{Lap}(b)",
        calibration=r"b = 2 d R / \varepsilon",
        complexity="n d^2",
        advice="Do not use it: the components it publishes are the exact ones.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published scale 2d/epsilon, for rows of length R."""
        scale = 2 * problem.d * problem.domain.radius / budget.epsilon
        return Calibration(problem, budget, scale)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the published table's second moment and its components."""
        k = calibration.problem.k
        V = data.eigenvectors[:, :k]
        scores = laplace_moments(data, calibration.scale, draws, V)
        return Release.of_matrices(symmetrised(V @ scores @ V.T), k)

    def release_rows(self, rows: FloatArray, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return Y V', the table whose moment `release_many` gives on the same stream."""
        V = moment_of(rows).eigenvectors[:, : calibration.problem.k]
        scores = rows @ V
        published: FloatArray = (scores + calibration.scale * laplace_rows(scores, draws)) @ V.T
        return published

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return None: no epsilon describes components published without noise."""
        return None

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return `Verdict.REFUTED`: the claim is false at every scale."""
        return Verdict.REFUTED

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return why no noise on the scores can help."""
        return (
            "The published rows span the exact components, which carry no noise: one person's row "
            "can turn them, and anyone who sees this knows the table, at every epsilon."
        )

    def exact_loss(
        self,
        calibration: Calibration,
        delta: float,
        at_epsilons: tuple[float, ...],
        tables: Sequence[Tables],
    ) -> ExactLoss | None:
        """Return the loss from publishing the subspace, unless the subspace is the whole space."""
        problem = calibration.problem
        # If k = d, the released subspace is the whole space and reveals nothing.
        if problem.k < problem.d:
            return of_published_space(at_epsilons)
        return super().exact_loss(calibration, delta, at_epsilons, tables)
