"""Account for privacy a second time, with code independent of the mechanism's claim.

Sensitivities come from the search of `dpviz.extend.checks`; the Gaussian and Laplace profiles come
from dp-accounting. This module uses no formula of dpviz.
"""

from __future__ import annotations

from dataclasses import dataclass

from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.extend.checks import searched
from dpviz.mechanisms._base import AdditiveMechanism


@dataclass(frozen=True)
class Account:
    """Actual privacy loss of the worst pair of tables found.

    ``epsilon`` is the pure loss of Laplace noise; ``delta`` is the delta of Gaussian noise at the
    claimed epsilon. ``declared`` and ``found`` are the stated and the attained sensitivity.
    """

    epsilon: float
    delta: float
    declared: float
    found: float

    def exceeds(self, claim: Budget) -> bool:
        """Return whether the worst pair found breaks the claim, beyond rounding."""
        return self.epsilon > claim.epsilon * (1 + 1e-9) or self.delta > claim.delta * (1 + 1e-6)


def second_account(
    mechanism: AdditiveMechanism, problem: Problem, budget: Budget
) -> Account | None:
    """Return the second account of a mechanism with one Gaussian or Laplace part, or None."""
    search = searched(mechanism, problem, budget)
    if search is None:
        return None
    sensitivity, reach, scale = search.declared, search.attained, search.scale
    if isinstance(mechanism.calibrate(problem, budget).parts[0], GaussianPart):
        loss = GaussianPrivacyLoss(scale / reach, log_mass_truncation_bound=-700)
        return Account(0.0, float(loss.get_delta_for_epsilon(budget.epsilon)), sensitivity, reach)
    return Account(reach / scale, 0.0, sensitivity, reach)
