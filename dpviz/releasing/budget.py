"""The total privacy cost of all fits in a process, and a budget that limits the total.

A fit by a clone, a pipeline or a search is a release like any other. Every process counts its own
fits. `budget` also counts fits of other processes, such as joblib's workers, in its own ledger in a
temporary folder. An estimator that is sent to a worker carries the folder's path. The counts are
this package's only global state, because clones and workers cannot be passed an argument.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Self

from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.releasing.declared import PrivacyWarning
from dpviz.releasing.ledger import Ledger, LedgerError, Spend, composed_epsilon, spend_in

_FILE = "dpviz.budget"
_SPENT = 1 - 1e-6  # Share of a limit from which on no further fit is cheap enough.


@dataclass(frozen=True)
class Spending:
    """The total privacy cost of several fits.

    Attributes
    ----------
    fits : int
    epsilon, delta : float
        Totals by the tightest accounting known: all fits composed, or the fits' own epsilons and
        deltas added up. Infinite if a fit has no epsilon.
    where : str
    """

    fits: int
    epsilon: float
    delta: float
    where: str = "in this process"

    def __str__(self) -> str:
        fits = "1 fit" if self.fits == 1 else f"{self.fits} fits"
        cost = (
            f"epsilon {numeral(self.epsilon, 3)}"
            if math.isfinite(self.epsilon)
            else "no finite epsilon"
        )
        at = f" at delta {numeral(self.delta)}" if self.delta > 0 else ""
        return f"{fits}, {cost} {self.where}{at}"


@dataclass
class _Process:
    """The fits of this process, with None for a fit without epsilon, and the active budgets."""

    fits: list[tuple[Spend | None, Relation, int]] = field(default_factory=list)
    warned: bool = False
    budgets: dict[Path, Budget] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_HERE = _Process()


def spending() -> Spending:
    """Return the total privacy cost of all `PrivatePCA` fits in this process.

    The total assumes the same people in all fits. Costs add up if fits have different neighbouring
    relations or numbers of rows a person.

    See Also
    --------
    dpviz.budget : A limit for what they cost.

    Examples
    --------
    >>> import dpviz
    >>> dpviz.spending().where
    'in this process'
    """
    with _HERE.lock:
        fits = list(_HERE.fits)
    epsilon, spends = 0.0, [spend for spend, _, _ in fits if spend is not None]
    # No accounting composes two kinds of neighbours, so the epsilons of both are added up.
    for kind in {fit[1:] for fit in fits}:
        own = [spend for spend, *of in fits if spend is not None and tuple(of) == kind]
        epsilon += composed_epsilon(own, math.fsum(spend.delta for spend in own))
    delta = math.fsum(spend.delta for spend in spends)
    return Spending(len(fits), epsilon if len(spends) == len(fits) else math.inf, delta)


class budget:
    """A limit for all fits of `PrivatePCA` in a ``with``, also by clones and joblib's workers.

    A fit that would exceed the limit is refused before it looks at the data, and uses no budget.
    The total composes the exact losses of all fits at the budget's delta, instead of adding up
    their epsilons.

    Parameters
    ----------
    epsilon : float
    delta : float, default=0
        Limit of delta; 0 allows only pure mechanisms.

    Examples
    --------
    >>> import numpy as np, dpviz
    >>> rows = np.random.default_rng(0).standard_normal((1000, 4))
    >>> with dpviz.budget(epsilon=3, delta=1e-6) as limit:
    ...     fitted = dpviz.PrivatePCA(2, epsilon=1.0, delta=1e-7, center="none").fit(rows)
    >>> limit.spent.fits
    1
    """

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.limit = Budget(epsilon, delta)
        self._folder: Path | None = None
        self._spent = Spending(0, 0.0, self.limit.delta, _INSIDE)

    def __enter__(self) -> Self:
        if self._folder is not None:
            raise InvalidSetting("budget", "open in one program at a time", "open already")
        # Only the owner may open this folder. Its costs are not secret, but nobody else may write.
        self._folder = Path(tempfile.mkdtemp(prefix="dpviz-budget-"))
        with _HERE.lock:
            _HERE.budgets[self._folder] = self.limit
        return self

    def __exit__(self, *_: object) -> None:
        assert self._folder is not None
        with _HERE.lock:
            del _HERE.budgets[self._folder]
        self._spent = _spent_in(self._folder, self.limit)
        rmtree(self._folder, ignore_errors=True)
        self._folder = None

    @property
    def spent(self) -> Spending:
        """The privacy cost until now, at the budget's delta."""
        return self._spent if self._folder is None else _spent_in(self._folder, self.limit)


_INSIDE = "in this budget"


def check_open() -> None:
    """Raise `CannotRun` if a budget is used up, before anyone looks at the data."""
    for folder, limit in _budgets().items():
        spent = _spent_in(folder, limit)
        if spent.epsilon >= limit.epsilon * _SPENT:
            raise CannotRun("this fit", f"{spent}; one more fit would pass the limit")


def pay(spend: Spend | None, problem: Problem, mechanism: str, ledger: Ledger | None) -> None:
    """Record a fit in its ledger and in every active budget, or in none, and count it here.

    Parameters
    ----------
    spend : Spend or None
        Cost of the fit. None if no epsilon describes the fit.
    problem : Problem
    mechanism : str
        Text of the mechanism variant.
    ledger : Ledger or None
        Ledger of the fit. Without a ledger or a budget, the second fit of a process warns.

    Raises
    ------
    DpvizError
        If the ledger or a budget refuses the fit; then no budget is used.
    """
    own, budgets = [] if ledger is None else [ledger], _budgets()
    if spend is None and (own or budgets):
        raise CannotRun(mechanism, "no epsilon bounds its loss, so a ledger cannot record it")
    for folder, limit in budgets.items():
        one = Ledger(folder / _FILE)
        with suppress(LedgerError):  # Another fit, maybe in another process, created the ledger.
            one.create(
                limit, problem.relation, "composed", unit=problem.unit, rows=problem.rows_a_person
            )
        own.append(one)
    if spend is not None:
        spend_in(own, spend, problem.relation, problem.unit)
    with _HERE.lock:
        _HERE.fits.append((spend, problem.relation, problem.together))
        second = len(_HERE.fits) > 1 and ledger is None and not budgets and not _HERE.warned
        _HERE.warned |= second
    if second:
        warnings.warn(
            f"{spending()}. Each fit, including the fit of a clone, is a new release, and "
            "costs for the same people add up. dpviz.spending() returns the total at any "
            "time, and dpviz.budget limits it.",
            PrivacyWarning,
            stacklevel=4,
        )


def carried() -> tuple[int, dict[str, tuple[float, float]]]:
    """Return the active budgets, which an estimator carries to another process."""
    return os.getpid(), {str(f): (one.epsilon, one.delta) for f, one in _budgets().items()}


def received(state: tuple[int, dict[str, tuple[float, float]]]) -> None:
    """Activate the budgets that an estimator brings from another process."""
    process, folders = state
    # A copy within the same process finds its budgets active already.
    if process != os.getpid():
        with _HERE.lock:
            _HERE.budgets = {Path(folder): Budget(*one) for folder, one in folders.items()}


def _budgets() -> dict[Path, Budget]:
    """Return the active budgets by folder; a budget ends with its ``with`` block."""
    with _HERE.lock:
        return {folder: limit for folder, limit in _HERE.budgets.items() if folder.is_dir()}


def _spent_in(folder: Path, limit: Budget) -> Spending:
    ledger = Ledger(folder / _FILE)
    spends: Sequence[Spend] = ledger.read().spends if ledger.path.exists() else ()
    return Spending(len(spends), composed_epsilon(spends, limit.delta), limit.delta, _INSIDE)
