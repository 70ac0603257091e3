"""A mechanism's whole account in one setting, and the cost of repeated releases.

Behind a preparation that is paid for it is the account of the whole chain, from raw rows on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.accounting.accounting import Composition, Spent
from dpviz.accounting.composition import epsilon_of_rho, gdp_of, renyi_of, rho_of
from dpviz.accounting.gaussian import trade_off
from dpviz.accounting.profiles import ProfileLoss
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun
from dpviz.core.problem import Budget, Problem
from dpviz.core.quantity import Kind
from dpviz.mechanisms import Mechanism
from dpviz.preparation.account import Composed, accounted, prepared_mechanism
from dpviz.preparation.steps import PrivateSteps

ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 128.0, 256.0)
RELEASES = (1, 2, 3, 5, 10, 20, 50, 100)
_CURVE_POINTS = 41
_LEVELS: FloatArray = np.linspace(0.0, 1.0, 41)
_LEAST_DELTA = 1e-12  # the curve is drawn down to here
_FINE = 400


@dataclass(frozen=True)
class Repeated:
    """Cost of repeated releases, at one delta for all of them together.

    Attributes
    ----------
    releases : int
    delta : float
    basic : float
        Epsilons added, each release at its share of delta.
    zcdp : float or None
        By adding rho.
    exact : float or None
        By composing the dominating losses; the least that is known.
    kind : Kind
        Of ``exact``: some neighbours cost as much, or it is a bound as the others are.
    """

    releases: int
    delta: float
    basic: float
    zcdp: float | None
    exact: float | None
    kind: Kind


@dataclass(frozen=True, eq=False)
class AccountView:
    """One mechanism's account; see `account_view`.

    Attributes
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
    spent : Spent
        At the budget's delta, or 0 for a pure account; where it is exact, so is the curve.
    epsilons, deltas : ndarray of shape (points,)
        delta at each epsilon.
    mu, rho : float or None
        GDP and zCDP; None where there is none.
    renyi : tuple of (order, divergence)
        Empty where there is none.
    alpha, beta : ndarray of shape (levels,)
        The trade-off function: least miss rate at each false-alarm rate.
    repeated : tuple of Repeated
    private : PrivateSteps or None
        The steps of the preparation that are accounted for too.
    rest : Budget
        What they leave to the mechanism; the budget itself where there are none.
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    spent: Spent
    epsilons: FloatArray
    deltas: FloatArray
    mu: float | None
    rho: float | None
    renyi: tuple[tuple[float, float], ...]
    alpha: FloatArray
    beta: FloatArray
    repeated: tuple[Repeated, ...]
    private: PrivateSteps | None
    rest: Budget

    def curve_table(self) -> pd.DataFrame:
        """Return the curve with the columns epsilon and delta."""
        return pd.DataFrame({"epsilon": self.epsilons, "delta": self.deltas})

    def repeated_table(self) -> pd.DataFrame:
        """Return one row per number of releases and way to add up: releases, account, epsilon."""
        rows = [
            {"releases": item.releases, "account": name, "epsilon": value}
            for item in self.repeated
            for name, value in (
                ("basic", item.basic),
                ("zCDP", item.zcdp),
                ("exact", item.exact),
            )
            if value is not None and math.isfinite(value)
        ]
        return pd.DataFrame(rows, columns=["releases", "account", "epsilon"])


def account_view(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    releases: tuple[int, ...] = RELEASES,
    private: PrivateSteps | None = None,
) -> AccountView:
    """Return the whole account of a mechanism in its setting.

    Parameters
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
        Its delta is also the one at which repeated releases are quoted.
    releases : tuple of int
        Numbers of releases of the same table, each with a preparation of its own.
    private : PrivateSteps, optional
        The steps of the preparation that the budget pays for as well.

    Raises
    ------
    CannotRun
        If it cannot run here, the preparation leaves nothing for it, or no epsilon describes what
        it releases.
    """
    mechanism.check(problem, budget)
    whole = None if private is None else prepared_mechanism(mechanism, problem, budget, private)
    # a count under replace is all that was asked: it costs nothing
    if whole is not None and not whole.preparation.parts:
        whole = None
    spent = mechanism.spent(problem, budget) if whole is None else whole.spent
    composed = accounted(mechanism, problem, budget) if whole is None else whole.composed
    if spent is None or composed is None:
        raise CannotRun(
            mechanism.text, "no epsilon describes what it releases, so there is no account of it"
        )
    account = _Account(composed, pure=spent.delta == 0)
    # to where hardly any delta is left: there the curve ends
    most = max(account.epsilon(_LEAST_DELTA), 1e-3)
    epsilons = np.linspace(0.0, most, _CURVE_POINTS)
    deltas = np.array([account.delta(float(epsilon)) for epsilon in epsilons])
    return AccountView(
        mechanism=mechanism,
        problem=problem,
        budget=budget,
        spent=spent,
        epsilons=epsilons,
        deltas=deltas,
        mu=account.mu,
        rho=account.rho,
        renyi=tuple(
            (order, value) for order in ORDERS if (value := account.renyi(order)) is not None
        ),
        alpha=_LEVELS,
        beta=account.trade_off(most),
        repeated=tuple(account.repeated(count, budget.delta, spent) for count in releases),
        private=None if whole is None else private,
        rest=budget if whole is None else whole.rest,
    )


class _Account:
    """What a mechanism, alone or behind its preparation, costs once and many times."""

    def __init__(self, composed: Composed, *, pure: bool) -> None:
        self.composed, self.loss, self.pure = composed, composed.loss(), pure
        by_parts = not composed.known
        self.mu = gdp_of(composed.parts) if by_parts else None
        self.rho = rho_of(composed.parts) if by_parts else None

    def delta(self, epsilon: float) -> float:
        """Return the delta given at epsilon."""
        return self.loss.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon spent at delta, or at the least delta above it that says one."""
        if not isinstance(self.loss, ProfileLoss):
            # what tells everything, or counts so by rounding, is below no epsilon
            delta = max(delta, 4 * self.loss.failing)
        spent = self.loss.epsilon(delta)
        # where some releases give a row away no epsilon reaches so small a delta
        return spent if math.isfinite(spent) else 2 * self.loss.epsilon(1e-6)

    def renyi(self, order: float) -> float | None:
        """Return the Renyi divergence of an order, if there is one."""
        if not self.composed.known:
            return renyi_of(self.composed.parts, order)
        return self.loss.profile.renyi(order) if isinstance(self.loss, ProfileLoss) else None

    def trade_off(self, most: float) -> FloatArray:
        """Return the least miss rate at each level: the best of the bounds at many epsilons."""
        if isinstance(self.loss, Composition) and self.loss.gaussian:
            return np.asarray(trade_off(_LEVELS, self.loss.mu), dtype=np.float64)
        beta = np.zeros_like(_LEVELS)
        for epsilon in np.linspace(0.0, most, _FINE):
            log_slack = 1 - self.delta(float(epsilon))
            grown = math.exp(epsilon) if epsilon < 700 else math.inf
            # infinity times 0 is no number
            steep = np.where(
                _LEVELS > 0, log_slack - grown * np.maximum(_LEVELS, 1e-300), log_slack
            )
            beta = np.maximum(beta, np.maximum(steep, (log_slack - _LEVELS) / grown))
        clipped: FloatArray = np.clip(beta, 0.0, 1 - _LEVELS)
        return clipped

    def repeated(self, releases: int, delta: float, spent: Spent) -> Repeated:
        """Return what that many releases cost, of which one spends so much."""
        one = math.inf
        if self.pure or delta > 0:
            one = self.loss.epsilon(0.0 if self.pure else delta / releases)
        exact = releases * one
        if delta > 0:
            exact = min(exact, self.composed.loss(releases).epsilon(delta))
        zcdp = None
        if self.rho is not None and delta > 0:
            zcdp = epsilon_of_rho(releases * self.rho, delta)
        # the same neighbours are the worst each time where all noise is Gaussian
        kind = spent.cost.kind if releases == 1 or spent.mu is not None else Kind.UPPER_BOUND
        finite = exact if math.isfinite(exact) else None
        return Repeated(releases, delta, releases * one, zcdp, finite, kind)
