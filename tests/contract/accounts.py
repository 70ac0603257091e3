"""A second account of privacy, by code other than the claim's.

Sensitivities come from the search of `dpviz.extend.checks`; the Gaussian and Laplace profiles
come from dp-accounting. No formula of dpviz is used.
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
    """What the worst pair found really costs.

    ``epsilon`` is the pure loss of Laplace noise; ``delta`` that of Gaussian noise at the claimed
    epsilon. ``declared`` and ``found`` are the sensitivity stated and the one attained.
    """

    epsilon: float
    delta: float
    declared: float
    found: float

    def exceeds(self, claim: Budget) -> bool:
        """Return whether the pair found breaks the claim, beyond rounding."""
        return self.epsilon > claim.epsilon * (1 + 1e-9) or self.delta > claim.delta * (1 + 1e-6)


def second_account(
    mechanism: AdditiveMechanism, problem: Problem, budget: Budget
) -> Account | None:
    """Return the account of a mechanism with one Gaussian or Laplace part, or None for others."""
    search = searched(mechanism, problem, budget)
    if search is None:
        return None
    declared, found, scale = search.declared, search.attained, search.scale
    if isinstance(mechanism.calibrate(problem, budget).parts[0], GaussianPart):
        loss = GaussianPrivacyLoss(scale / found, log_mass_truncation_bound=-700)
        return Account(0.0, float(loss.get_delta_for_epsilon(budget.epsilon)), declared, found)
    return Account(found / scale, 0.0, declared, found)
