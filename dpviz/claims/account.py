"""Everything a mechanism's account says in one setting, and what repeating it costs.

Behind a preparation that is paid for it is the account of the whole chain, from raw rows on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpviz.base.arrays import FloatArray
from dpviz.errors import CannotRun
from dpviz.mechanisms import Mechanism
from dpviz.paid.account import Together, chain
from dpviz.paid.steps import Wanted
from dpviz.privacy.composition import (
    composed,
    epsilon_of_releases,
    epsilon_of_rho,
    gdp_of,
    renyi_of,
    rho_of,
)
from dpviz.privacy.gaussian import delta_of, epsilon_of, trade_off
from dpviz.privacy.profile_loss import ProfileLoss
from dpviz.privacy.profiles import RowProfile
from dpviz.values.parts import ApproximatePart, GaussianPart
from dpviz.values.problem import Budget, Problem

ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 128.0, 256.0)
RELEASES = (1, 2, 3, 5, 10, 20, 50, 100)
_CURVE_POINTS = 41
_LEVELS: FloatArray = np.linspace(0.0, 1.0, 41)
_LEAST_DELTA = 1e-12  # the curve is drawn down to here
_FINE = 400


@dataclass(frozen=True)
class Repeated:
    """What a number of releases costs, at one delta for all of them together.

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
    """

    releases: int
    delta: float
    basic: float
    zcdp: float | None
    exact: float | None


@dataclass(frozen=True, eq=False)
class AccountView:
    """One mechanism's account; see `account_view`.

    Attributes
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
    spent : float
        Epsilon at the budget's delta (0 for a pure account).
    spent_delta : float
    source : str
    exact : bool
        Whether the curve is attained by some neighbours; otherwise it is an upper bound.
    epsilons, deltas : ndarray of shape (points,)
        delta at each epsilon.
    mu, rho : float or None
        GDP and zCDP; None where there is none.
    renyi : tuple of (order, divergence)
        Empty where there is none.
    alpha, beta : ndarray of shape (levels,)
        The trade-off function: least miss rate at each false-alarm rate.
    repeated : tuple of Repeated
    paid : Wanted or None
        The steps of the preparation that are accounted for too.
    rest : Budget
        What they leave to the mechanism; the budget itself where there are none.
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    spent: float
    spent_delta: float
    source: str
    exact: bool
    epsilons: FloatArray
    deltas: FloatArray
    mu: float | None
    rho: float | None
    renyi: tuple[tuple[float, float], ...]
    alpha: FloatArray
    beta: FloatArray
    repeated: tuple[Repeated, ...]
    paid: Wanted | None
    rest: Budget

    def to_json(self) -> dict[str, Any]:
        """Return the account as the command line prints it."""
        problem = self.problem
        return {
            "mechanism": self.mechanism.text,
            "problem": {
                "n": problem.n,
                "d": problem.d,
                "k": problem.k,
                "relation": str(problem.relation),
                "domain": problem.domain.kind,
            },
            "preparation": self.paid
            and {
                "shares": {step: self.paid.share(step) for step in self.paid.steps},
                "left": {"epsilon": self.rest.epsilon, "delta": self.rest.delta},
            },
            "claimed": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "spent": {"epsilon": self.spent, "delta": self.spent_delta, "source": self.source},
            "exact": self.exact,
            "curve": [
                {"epsilon": float(epsilon), "delta": float(delta)}
                for epsilon, delta in zip(self.epsilons, self.deltas, strict=True)
            ],
            "mu": self.mu,
            "rho": self.rho,
            "rdp": [{"order": order, "epsilon": value} for order, value in self.renyi],
            "trade_off": [
                {"alpha": float(alpha), "beta": float(beta)}
                for alpha, beta in zip(self.alpha, self.beta, strict=True)
            ],
            "repeated": [
                {
                    "releases": item.releases,
                    "delta": item.delta,
                    "basic": item.basic,
                    "zcdp": item.zcdp,
                    "exact": item.exact,
                }
                for item in self.repeated
            ],
        }

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
    paid: Wanted | None = None,
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
    paid : Wanted, optional
        The steps of the preparation that the budget pays for as well.

    Raises
    ------
    CannotRun
        If it cannot run here, the preparation leaves nothing for it, or no epsilon describes what
        it releases.
    """
    mechanism.check(problem, budget)
    whole = None if paid is None else chain(mechanism, problem, budget, paid)
    if whole is not None and not whole.preparation.parts:
        whole = None
    spent = mechanism.spent(problem, budget) if whole is None else whole.spent
    if spent is None or not math.isfinite(spent.epsilon):
        raise CannotRun(
            mechanism.text, "no epsilon describes what it releases, so there is no account of it"
        )
    profile = mechanism.row_profile(problem, budget)
    if whole is not None:
        together = whole.together
        assert together is not None  # it has an epsilon
        account: _Composed | _Rows = _Composed(together)
    elif profile is None:
        account = _Composed(Together(mechanism.calibrate(problem, budget).parts))
    else:
        account = _Rows(profile, problem)
    most = max(account.epsilon(_LEAST_DELTA), 1e-3)
    epsilons = np.linspace(0.0, most, _CURVE_POINTS)
    deltas = np.array([account.delta(float(epsilon)) for epsilon in epsilons])
    return AccountView(
        mechanism=mechanism,
        problem=problem,
        budget=budget,
        spent=spent.epsilon,
        spent_delta=spent.delta,
        source=spent.source,
        exact=spent.exact,
        epsilons=epsilons,
        deltas=deltas,
        mu=account.mu,
        rho=account.rho,
        renyi=tuple(
            (order, value) for order in ORDERS if (value := account.renyi(order)) is not None
        ),
        alpha=_LEVELS,
        beta=account.trade_off(most),
        repeated=tuple(account.repeated(count, budget.delta) for count in releases),
        paid=None if whole is None else paid,
        rest=budget if whole is None else whole.rest,
    )


class _Account:
    """What both kinds of account offer."""

    mu: float | None
    rho: float | None

    def delta(self, epsilon: float) -> float:
        """Return the delta given at epsilon."""
        raise NotImplementedError

    def epsilon(self, delta: float) -> float:
        """Return the epsilon spent at delta."""
        raise NotImplementedError

    def renyi(self, order: float) -> float | None:
        """Return the Renyi divergence of an order, if there is one."""
        return None

    def trade_off(self, most: float) -> FloatArray:
        """Return the least miss rate at each level: the best of the bounds at many epsilons."""
        beta = np.zeros_like(_LEVELS)
        for epsilon in np.linspace(0.0, most, _FINE):
            left = 1 - self.delta(float(epsilon))
            grown = math.exp(epsilon) if epsilon < 700 else math.inf
            steep = np.where(_LEVELS > 0, left - grown * np.maximum(_LEVELS, 1e-300), left)
            beta = np.maximum(beta, np.maximum(steep, (left - _LEVELS) / grown))
        clipped: FloatArray = np.clip(beta, 0.0, 1 - _LEVELS)
        return clipped


class _Composed(_Account):
    """Of a mechanism that states its parts, or of a chain."""

    def __init__(self, together: Together) -> None:
        self.parts, self.known = together.parts, together.known
        self.mu = None if self.known else gdp_of(self.parts)
        self.rho = None if self.known else rho_of(self.parts)
        other = [part for part in self.parts if not isinstance(part, GaussianPart)]
        self._gaussian = not other and not self.known
        self._loss = composed(self.parts, 1, self.known)
        pure = self._loss.mu == 0 and not self.known
        self._pure = pure and not any(isinstance(part, ApproximatePart) for part in other)
        self._sum = math.fsum(part.epsilon for part in other)

    def delta(self, epsilon: float) -> float:
        if self._gaussian:
            return delta_of(epsilon, self._loss.mu)
        return self._loss.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        if self._gaussian:
            return epsilon_of(delta, self._loss.mu)
        # the composed loss counts its own rounding as failure: ask for a little more than that
        return self._loss.epsilon(max(delta, 4 * self._loss.failing))

    def renyi(self, order: float) -> float | None:
        return None if self.known else renyi_of(self.parts, order)

    def trade_off(self, most: float) -> FloatArray:
        if self._gaussian:
            return np.asarray(trade_off(_LEVELS, self._loss.mu), dtype=np.float64)
        return super().trade_off(most)

    def repeated(self, releases: int, delta: float) -> Repeated:
        """Return what that many releases cost."""
        one = self._sum if self._pure else math.inf
        if not self._pure and delta > 0:
            one = self._loss_at(delta / releases)
        zcdp = (
            None if self.rho is None or delta == 0 else epsilon_of_rho(releases * self.rho, delta)
        )
        exact = None
        if delta > 0 or self._pure:
            exact = epsilon_of_releases(self.parts, releases, delta, self.known)
        basic = releases * one
        if exact is not None:
            # a bounded range is known to zCDP only, and losses are rounded up to a grid
            exact = min(exact, basic, math.inf if zcdp is None else zcdp)
            exact = exact if math.isfinite(exact) else None
        return Repeated(releases, delta, basic, zcdp, exact)

    def _loss_at(self, delta: float) -> float:
        return epsilon_of(delta, self._loss.mu) if self._gaussian else self._loss.epsilon(delta)


class _Rows(_Account):
    """Of a mechanism whose loss depends on one chi-square."""

    mu = rho = None

    def __init__(self, profile: RowProfile, problem: Problem) -> None:
        self.profile, self.relation = profile, problem.relation

    def delta(self, epsilon: float) -> float:
        return self.profile.delta(self.relation, epsilon)

    def epsilon(self, delta: float) -> float:
        found = self.profile.epsilon(self.relation, delta)
        # where some releases give a row away no epsilon reaches so small a delta
        return found if math.isfinite(found) else 2 * self.profile.epsilon(self.relation, 1e-6)

    def repeated(self, releases: int, delta: float) -> Repeated:
        """Return what that many releases cost: neither mu nor rho, but the loss composes."""
        one = self.profile.epsilon(self.relation, delta / releases) if delta > 0 else math.inf
        if releases == 1 or delta == 0:
            return Repeated(releases, delta, releases * one, None, one if releases == 1 else None)
        loss = ProfileLoss(self.profile, self.relation)
        together = min(releases * one, composed((), releases, (loss,)).epsilon(delta))
        return Repeated(
            releases, delta, releases * one, None, together if math.isfinite(together) else None
        )
