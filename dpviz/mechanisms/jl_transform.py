"""The Johnson-Lindenstrauss transform: a Gaussian sketch of lifted data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.profiles import GaussianSketch, RowProfile, least_lift
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.params import choice, number
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, claimed_against_spent, paper
from dpviz.sampling.ensembles import wishart


@dataclass(frozen=True)
class JlTransform(Mechanism):
    """Lift the singular values of X, multiply by a Gaussian matrix, release the sketch's Gram.

    Source
    ------
    Blocki, Blum, Datta and Sheffet 2012, the algorithm for covariance matrices. The constants of r
    and w are ours, and proved below; their privacy loss on bounded rows is exact.

    Notes
    -----
    X = U S V' becomes X~ = U sqrt(S^2 + w^2) V'. The release is (1/r) X~'M'M X~, with M an (r, n)
    matrix of independent standard normals. The rows of M X~ are r independent samples from N(0, X'X
    + w^2 I). So the release has the law (1/r) W_d(r, X'X + w^2 I) and depends on the data through
    X'X alone; for r < d it is singular. All d singular values are lifted, so n >= d.

    The paper's tables have rows of any size, and in neighbours one row moves by a vector of length
    at most 1. In dpviz rows are bounded as well, which changes the privacy loss. With rows inside
    the ball a row's share of the lifted covariance is at most R^2/w^2, not R/w. The profile is then
    exact (`dpviz.accounting.profiles.GaussianSketch`), and the published w turns out to be far too
    large; ``lift = exact`` solves for the least w.

    The constant of r. Along u the sketch shows u'(X'X + w^2 I)u times chi^2_r/r, and P(|chi^2_r/r -
    1| > eta) <= 2 e^(-r eta^2/8) for eta <= 1, because ln E e^(s (Z^2 - 1)) <= 2 s^2 for a standard
    normal Z and |s| <= 1/4. So r makes this bound nu.

    The constant of w, for the paper's neighbours. Let a row u of any length move by v, |v| <= R,
    and S = X'X + w^2 I. As S >= uu' and S >= w^2 I, S^-1/2 (uv' + vu' + vv') S^-1/2 has two
    eigenvalues l_j with |l_1| + |l_2| <= q = 2 R/w + R^2/w^2. The loss of r samples is the sum over
    j of (r/2) ln(1 + l_j) - l_j/(2 (1 + l_j)) chi^2_r. The mean loss is at most r q^2/(2 (1 - q)),
    as ln(1 + l) <= l. With x = ln(2/delta) it exceeds its mean by at most q (sqrt(r x) + x)/(1 -
    q), except with probability delta (Laurent and Massart 2000, Lemma 1, for the eigenvalues above
    0 and for those below). With the published w the whole loss is below epsilon/10 for epsilon <=
    10: r is at least 12 and ln(16 r/delta) at least 5.2, so q (sqrt(r x) + x) is below .08 epsilon
    and r q^2/2 below .005 epsilon. The constant is safe, and ten times too large.
    """

    eta: float = number(
        0.5,
        0.01,
        1.0,
        label="Relative error (eta)",
        help="Relative error of each variance in the sketch; a smaller error needs more rows.",
        log=True,
        examples=(1.0,),
    )
    nu: float = number(
        0.05,
        1e-9,
        0.5,
        label="Chance of a larger error (nu)",
        help="Probability that a direction's variance has a larger relative error than eta.",
        log=True,
        examples=(0.5,),
    )
    lift: str = choice(
        "published",
        {"published": "as published", "exact": "least by the exact profile"},
        label="Lift",
        help="How the least singular value w after the lift is computed.",
        examples=("exact",),
    )
    debias: str = choice(
        "yes",
        {"yes": "subtract the lift", "no": "leave the lift in"},
        label="Debias",
        help="Whether the estimate of A subtracts the known lift; components do not change.",
        examples=("no",),
    )

    info = MechanismInfo(
        label="JL transform",
        summary="Releases a random sketch of the data after lifting every singular value.",
        paper="Blocki et al. 2012, covariance algorithm (our constants, proved here)",
        references=(
            paper(
                "Blocki2012",
                "Blocki, Jeremiah and Blum, Avrim and Datta, Anupam and Sheffet, Or",
                "The Johnson-Lindenstrauss Transform Itself Preserves Differential Privacy",
                "IEEE Symposium on Foundations of Computer Science",
                2012,
                eprint="1204.2136",
            ),
        ),
        url="https://arxiv.org/abs/1204.2136",
        family="data",
        release="data",
        guarantee="approximate",
        order=16,
        law=r"\tfrac{1}{r} \tilde X' M' M \tilde X \sim \tfrac{1}{r} W_d(r,\ X'X + w^2 I)",
        calibration=(
            r"r = \lceil 8 \ln(2/\nu)/\eta^2 \rceil,\quad"
            r" w = 16 R \sqrt{r \ln(2/\delta)}\, \ln(16 r/\delta)/\varepsilon"
        ),
        complexity="d^3",
        advice="For comparison only: even at the exact lift, Gaussian noise of the same privacy is "
        "smaller, and the sketch adds its own error.",
    )

    def sketch_rows(self) -> int:
        """Return r, the number of rows of the sketch."""
        # With r rows, a direction's variance changes by more than a share eta with probability nu.
        return math.ceil(8 * math.log(2 / self.nu) / self.eta**2)

    def unit_lift(self, problem: Problem, budget: Budget) -> float:
        """Return the lift w^2 in units of R^2."""
        rows = self.sketch_rows()
        if self.lift == "exact":
            return least_lift(problem.relation, budget, rows)
        return published_lift(rows, budget)

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return w^2/n as the scale, and the sketch's rows."""
        unit = self.unit_lift(problem, budget)
        scale = unit * problem.domain.radius**2 / problem.n
        values = {
            "sketch_rows": float(self.sketch_rows()),
            "w": math.sqrt(unit) * problem.domain.radius,
        }
        return Calibration(problem, budget, scale, values=values)

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return why n < d singular values cannot be lifted, or None."""
        if problem.n < problem.d:
            return f"it lifts {problem.d} singular values and needs as many rows; got {problem.n}"
        return None

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the Gram matrix of the sketch, sampled from its law given A."""
        problem, lift = calibration.problem, calibration.scale
        rows = int(calibration.values["sketch_rows"])
        # This factor turns a standard Wishart matrix into the required law of the release.
        lengths = np.sqrt(np.maximum(data.eigenvalues, 0.0) + lift)
        factor = data.eigenvectors * lengths
        gram = factor @ _standard_wishart(draws, problem.d, rows) @ factor.T
        # Adding the transpose makes the matrix exactly symmetric. The factor 1/2 is applied below.
        gram += gram.transpose(0, 2, 1).copy()
        gram *= 0.5 / rows
        if self.debias == "no":
            return Release.of_matrices(gram, problem.k)
        estimate = gram - lift * np.eye(problem.d)
        return Release.of_matrices(estimate, problem.k, gram)

    @property
    def why_no_rows(self) -> str | None:
        """Reason why the sketch has no rows to learn from."""
        return "it releases a sketch whose rows mix all people at random, so that none has a label"

    def row_profile(self, problem: Problem, budget: Budget) -> RowProfile:
        """Return the profile of the sketch for this budget."""
        return GaussianSketch(self.sketch_rows(), self.unit_lift(problem, budget))

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the privacy loss from the exact likelihood ratio."""
        profile = self.row_profile(problem, budget)
        return profile.spent(problem, budget, "exact profile of a Gaussian sketch")

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the privacy loss of the sketch on bounded rows."""
        assert spent is not None
        account = f"the sketch spends {claimed_against_spent(budget, spent)}"
        if self.lift == "exact":
            return f"The lift is the least that the exact likelihood ratio allows; {account}."
        moved = "a row of any length moves by at most the row-norm bound"
        where = "zeroing a row" if problem.relation is Relation.ZERO_OUT else "replacing a row"
        return f"Stated for tables where {moved}; for {where} of bounded length, {account}."


def published_lift(rows: int, budget: Budget) -> float:
    """Return the published w^2 of a sketch with ``rows`` rows, in units of R^2."""
    # The logarithms are subtracted, because the quotient 2/delta may overflow.
    log_delta = math.log(budget.delta)
    root = math.sqrt(rows * (math.log(2) - log_delta))
    w = 16 * root * (math.log(16 * rows) - log_delta) / budget.epsilon
    return w * w


def _standard_wishart(draws: Draws, d: int, rows: int) -> FloatArray:
    """Return samples of W_d(rows, I), also if it is singular, shape (size, d, d)."""
    if rows >= d:
        return wishart(draws, d, rows)
    # The Bartlett factor needs as many rows as features. With fewer, the product is computed.
    normal = draws.normal(rows, d)
    gram: FloatArray = normal.transpose(0, 2, 1) @ normal
    return gram
