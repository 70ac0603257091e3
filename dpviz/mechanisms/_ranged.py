"""Exponential mechanisms whose draws are accounted for by their bounded range.

The log density ratio of an exponential mechanism ranges over an interval of its epsilon, and not of
twice that, so it is epsilon^2/8-zCDP (Cesar & Rogers 2021, Lemma 3.2) where pure privacy alone
would give about epsilon^2/2. Many draws then cost less than their epsilons added up, at a delta.
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
_ROOM = 1 - 1e-12  # rhos are added up again by the account


def account_choice() -> Any:
    """Declare how the draws are added up."""
    return choice(
        PURE,
        {PURE: "epsilons added up, no delta", RANGE: "bounded range, at a delta"},
        label="Account",
        help="Adding epsilons needs no delta. The bounded range of each step costs less if there "
        "are many, from k about 8 on.",
        examples=(RANGE,),
    )


@dataclass(frozen=True)
class Ranged(Mechanism):
    """A mechanism of several exponential draws that may spend a delta.

    A subclass declares ``account`` with `account_choice`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.account_name == RANGE:
            # The variant promises something else than its class: a delta, for less noise.
            object.__setattr__(self, "info", replace(type(self).info, guarantee="approximate"))

    @property
    def account_name(self) -> str:
        """How the draws are added up."""
        return str(getattr(self, "account", PURE))

    def epsilon_each(self, budget: Budget, share: float, draws: int) -> float:
        """Return the epsilon of each draw, of a share of the budget divided among them.

        Parameters
        ----------
        budget : Budget
        share : float
            Of epsilon, or of rho, that goes to these draws.
        draws : int
        """
        pure = share * budget.epsilon / draws
        if self.account_name == PURE:
            return pure
        rho = share * rho_meeting(budget.epsilon, budget.delta) * _ROOM
        return math.sqrt(8 * rho / draws)

    def better(self, budget: Budget, draws: int) -> bool:
        """Return whether the bounded range allows more than adding epsilons up."""
        return self.account_name == RANGE and (
            self.epsilon_each(budget, 1.0, draws) > budget.epsilon / draws
        )

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the lesser of the epsilons added up and what zCDP says at the delta."""
        parts = self.calibrate(problem, budget).parts
        added = accounting.spent(parts, budget)
        return ranged_spent(parts, budget, added) if self.account_name == RANGE else added


def ranged_spent(parts: Sequence[Part], budget: Budget, added: Spent) -> Spent:
    """Return what zCDP says of the parts at the budget's delta, where that is less."""
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
