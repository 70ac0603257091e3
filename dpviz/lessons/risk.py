"""What an attacker gains from an offer, after all releases of the same people."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpviz.accounting import accounting
from dpviz.accounting.accounting import Spent
from dpviz.auditing.attack import (
    Worlds,
    both_worlds,
    excess_probability,
    posterior,
    posterior_bound,
)
from dpviz.core.errors import DpvizError
from dpviz.core.parts import ApproximatePart, Part, PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.lessons.decide import Card, Offer
from dpviz.mechanisms import Mechanism
from dpviz.preparation.account import accounted, prepared_mechanism
from dpviz.preparation.steps import PrivateSteps, private_steps


@dataclass(frozen=True)
class Risk:
    """What an attacker gains from an offer, after all releases.

    Attributes
    ----------
    spent : Spent
        Of all releases together.
    worlds : Worlds
        Rates of a balanced guesser.
    heard : float
        Belief after that guesser says "in".
    most : float
        The most that any release can make of the prior, but for what delta allows.
    beyond : float
        At most how likely a release passes ``most``'s odds by more than a factor of two.
    """

    spent: Spent
    worlds: Worlds
    heard: float
    most: float
    beyond: float


def risk(found: Card, offer: Offer) -> Risk:
    """Return the risk of an offer under the answers' prior and number of releases."""
    answers, measured = found.answers, found.measured
    # at the offer's own epsilon, and not at that of the settings
    budget = Budget(offer.epsilon, measured.budget(found.settings).delta)
    problem, private = measured.problem(found.settings), private_steps(found.settings)
    spent = cost_of_releases(offer.mechanism, problem, budget, answers.releases, private)
    prior = answers.prior / 100
    worlds = both_worlds(spent)
    return Risk(
        spent=spent,
        worlds=worlds,
        heard=posterior(prior, worlds.out, 1 - worlds.within),
        most=posterior_bound(prior, spent.epsilon),
        # a factor of two, which a reader can picture
        beyond=excess_probability(spent.epsilon, spent.delta, math.log(2)),
    )


def cost_of_releases(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    releases: int,
    private: PrivateSteps | None = None,
) -> Spent:
    """Return what several releases of the same people cost together.

    Behind a private preparation each release has its own, and whole chains are composed; else by
    composing what each says it does; where a mechanism has an account of its own, by
    composing that. Both bound the cost, and the smaller is returned.

    Raises
    ------
    DpvizError
        If no epsilon describes the release.
    """
    if private is not None:
        whole = prepared_mechanism(mechanism, problem, budget, private)
        if whole.composed is not None and whole.preparation.parts:
            return whole.composed.spent(budget, releases)
    one = mechanism.spent(problem, budget)
    if one is None or not math.isfinite(one.epsilon):
        raise DpvizError(f"No epsilon describes a release by {mechanism.label}.")
    # its own account is never worse than one that forgets what it did
    if releases == 1:
        return one
    part: Part = (
        PurePart(one.epsilon, one.source)
        if one.delta == 0
        else ApproximatePart(one.epsilon, one.delta, one.source)
    )
    # several releases spend the delta of each: at less no composition says anything
    at = replace(budget, delta=max(budget.delta, releases * one.delta))
    found = [accounting.spent((part,) * releases, at)]
    said = accounted(mechanism, problem, budget)
    if said is not None:
        found.append(said.spent(budget, releases))
    return min(found, key=lambda spent: spent.epsilon)
