"""Exponential mechanisms with several steps, accounted for by their bounded range.

The log density ratio of an exponential mechanism lies in an interval of length epsilon, not 2
epsilon. So it is epsilon^2/8-zCDP (Cesar & Rogers 2021, Lemma 3.2), while pure privacy alone gives
about epsilon^2/2. At a delta, the loss of many steps is then below the sum of their epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpviz.accounting import accounting
from dpviz.accounting.accounting import Spent
from dpviz.accounting.composition import epsilon_of_rho, rho_meeting, rho_of
from dpviz.core.number_text import numeral
from dpviz.core.params import choice
from dpviz.core.parts import Part
from dpviz.core.problem import Budget, Problem
from dpviz.mechanisms._base import Mechanism

PURE, RANGE = "pure", "range"
_ROOM = 1 - 1e-12  # The accounting adds the rhos up again, so keep a margin for rounding.


def account_choice() -> Any:
    """Declare how the steps' losses are added up."""
    return choice(
        PURE,
        {PURE: "epsilons added up, no delta", RANGE: "bounded range, at a delta"},
        label="Account",
        help="Adding up the steps' epsilons needs no delta. Accounting by bounded range costs less "
        "for many steps, from k about 8 on.",
        examples=(RANGE,),
    )


@dataclass(frozen=True)
class Ranged(Mechanism):
    """A mechanism of several exponential steps that may use a delta.

    A subclass declares ``account`` with `account_choice`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.account_name == RANGE:
            # This variant claims (epsilon, delta) with a delta above 0 and needs less noise for it.
            object.__setattr__(self, "info", replace(type(self).info, guarantee="approximate"))

    @property
    def account_name(self) -> str:
        """The rule that adds up the steps' losses."""
        return str(getattr(self, "account", PURE))

    def epsilon_each(self, budget: Budget, share: float, draws: int) -> float:
        """Return the epsilon of each step if a share of the budget is split among ``draws`` steps.

        Parameters
        ----------
        budget : Budget
        share : float
            Share of epsilon, or of rho, used by these steps.
        draws : int
        """
        pure = share * budget.epsilon / draws
        if self.account_name == PURE:
            return pure
        rho = share * rho_meeting(budget.epsilon, budget.delta) * _ROOM
        return math.sqrt(8 * rho / draws)

    def better(self, budget: Budget, draws: int) -> bool:
        """Return whether the bounded range allows more epsilon per step than a plain sum."""
        return self.account_name == RANGE and (
            self.epsilon_each(budget, 1.0, draws) > budget.epsilon / draws
        )

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the smaller of the summed epsilons and the epsilon of zCDP at the delta."""
        parts = self.calibrate(problem, budget).parts
        added = accounting.spent(parts, budget)
        return ranged_spent(parts, budget, added) if self.account_name == RANGE else added


def ranged_spent(parts: Sequence[Part], budget: Budget, added: Spent) -> Spent:
    """Return the zCDP loss of the parts at the budget's delta, or ``added`` if it is smaller."""
    rho = rho_of(parts)
    if rho is None:
        return added
    epsilon = epsilon_of_rho(rho, budget.delta)
    if epsilon >= added.epsilon:
        return added
    return Spent(
        epsilon=epsilon,
        delta=budget.delta,
        exact=False,
        source=f"bounded range of {len(parts)} draws, {numeral(rho, 3)}-zCDP",
        delta_at_epsilon=budget.delta if epsilon <= budget.epsilon else None,
    )
