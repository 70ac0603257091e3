"""A mechanism's privacy accounting in one setting, and its loss over repeated releases.

If the budget also covers the preparation, the accounting covers all steps from the raw rows on.
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
_LEAST_DELTA = 1e-12  # The privacy curve ends at this delta.
_FINE = 400


@dataclass(frozen=True)
class Repeated:
    """Privacy loss of repeated releases, with one delta for all releases together.

    Attributes
    ----------
    releases : int
    delta : float
    basic : float
        Sum of the epsilons, with an equal share of delta for each release.
    zcdp : float or None
        Epsilon from the sum of the zCDP parameters rho.
    exact : float or None
        Epsilon from composing the dominating losses; the least known epsilon.
    kind : Kind
        The kind of ``exact``: a value that some neighbours attain, or an upper bound.
    """

    releases: int
    delta: float
    basic: float
    zcdp: float | None
    exact: float | None
    kind: Kind


@dataclass(frozen=True, eq=False)
class AccountView:
    """The privacy accounting of one mechanism; see `account_view`.

    Attributes
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
    spent : Spent
        Privacy loss at the budget's delta, or at delta 0 for pure privacy. If the loss is exact,
        the curve is exact too.
    epsilons, deltas : ndarray of shape (points,)
        Epsilons, and delta at each of them.
    mu, rho : float or None
        Parameters of GDP and zCDP; None if the mechanism has no such parameter.
    renyi : tuple of (order, divergence)
        Renyi divergences; empty if there are none.
    alpha, beta : ndarray of shape (levels,)
        The trade-off function: least miss rate at each false-alarm rate.
    repeated : tuple of Repeated
    private : PrivateSteps or None
        The steps of the preparation that the accounting covers too.
    rest : Budget
        The budget left for the mechanism; the whole budget if no such steps exist.
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
        """Return rows of releases, account and epsilon, for each number of releases and account."""
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
    """Return a mechanism's full privacy accounting in its setting.

    Parameters
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
        The budget; its delta also applies to repeated releases.
    releases : tuple of int
        Numbers of releases of one table, each release with its own preparation.
    private : PrivateSteps, optional
        The steps of the preparation that the budget covers as well.

    Raises
    ------
    CannotRun
        If the mechanism cannot run in this setting, the preparation leaves no budget for it, or no
        epsilon describes its release.
    """
    mechanism.check(problem, budget)
    whole = None if private is None else prepared_mechanism(mechanism, problem, budget, private)
    # Under replace, counting uses no budget, so ignore preparation that only counts.
    if whole is not None and not whole.preparation.parts:
        whole = None
    loss = mechanism.spent(problem, budget) if whole is None else whole.spent
    composition = accounted(mechanism, problem, budget) if whole is None else whole.composed
    if loss is None or composition is None:
        raise CannotRun(
            mechanism.text, "no epsilon bounds its privacy loss, so losses cannot be added up"
        )
    account = _Account(composition, pure=loss.delta == 0)
    # End the privacy curve at the epsilon where delta is almost 0.
    most = max(account.epsilon(_LEAST_DELTA), 1e-3)
    epsilons = np.linspace(0.0, most, _CURVE_POINTS)
    deltas = np.array([account.delta(float(epsilon)) for epsilon in epsilons])
    return AccountView(
        mechanism=mechanism,
        problem=problem,
        budget=budget,
        spent=loss,
        epsilons=epsilons,
        deltas=deltas,
        mu=account.mu,
        rho=account.rho,
        renyi=tuple(
            (order, value) for order in ORDERS if (value := account.renyi(order)) is not None
        ),
        alpha=_LEVELS,
        beta=account.trade_off(most),
        repeated=tuple(account.repeated(count, budget.delta, loss) for count in releases),
        private=None if whole is None else private,
        rest=budget if whole is None else whole.rest,
    )


class _Account:
    """Privacy loss of a mechanism, alone or after its preparation, for one and many releases."""

    def __init__(self, composed: Composed, *, pure: bool) -> None:
        self.composed, self.loss, self.pure = composed, composed.loss(), pure
        by_parts = not composed.known
        self.mu = gdp_of(composed.parts) if by_parts else None
        self.rho = rho_of(composed.parts) if by_parts else None

    def delta(self, epsilon: float) -> float:
        """Return the delta at epsilon."""
        return self.loss.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon at delta, or at the least larger delta with a finite epsilon."""
        if not isinstance(self.loss, ProfileLoss):
            # No epsilon covers an infinite loss, so delta must be at least its probability.
            delta = max(delta, 4 * self.loss.failing)
        epsilon = self.loss.epsilon(delta)
        # If some releases reveal a row fully, epsilon is infinite at so small a delta.
        return epsilon if math.isfinite(epsilon) else 2 * self.loss.epsilon(1e-6)

    def renyi(self, order: float) -> float | None:
        """Return the Renyi divergence of an order, or None if there is none."""
        if not self.composed.known:
            return renyi_of(self.composed.parts, order)
        return self.loss.profile.renyi(order) if isinstance(self.loss, ProfileLoss) else None

    def trade_off(self, most: float) -> FloatArray:
        """Return the least miss rate at each level, as the best bound over many epsilons."""
        if isinstance(self.loss, Composition) and self.loss.gaussian:
            return np.asarray(trade_off(_LEVELS, self.loss.mu), dtype=np.float64)
        beta = np.zeros_like(_LEVELS)
        for epsilon in np.linspace(0.0, most, _FINE):
            log_slack = 1 - self.delta(float(epsilon))
            ratio = math.exp(epsilon) if epsilon < 700 else math.inf
            # Avoid infinity times 0, which gives NaN.
            steep = np.where(
                _LEVELS > 0, log_slack - ratio * np.maximum(_LEVELS, 1e-300), log_slack
            )
            beta = np.maximum(beta, np.maximum(steep, (log_slack - _LEVELS) / ratio))
        bounds: FloatArray = np.clip(beta, 0.0, 1 - _LEVELS)
        return bounds

    def repeated(self, releases: int, delta: float, spent: Spent) -> Repeated:
        """Return the loss of several releases, given the loss of one release."""
        one = math.inf
        if self.pure or delta > 0:
            one = self.loss.epsilon(0.0 if self.pure else delta / releases)
        exact = releases * one
        if delta > 0:
            exact = min(exact, self.composed.loss(releases).epsilon(delta))
        zcdp = None
        if self.rho is not None and delta > 0:
            zcdp = epsilon_of_rho(releases * self.rho, delta)
        # With Gaussian noise only, the same pair of neighbours is the worst one in every release.
        kind = spent.cost.kind if releases == 1 or spent.mu is not None else Kind.UPPER_BOUND
        finite = exact if math.isfinite(exact) else None
        return Repeated(releases, delta, releases * one, zcdp, finite, kind)
