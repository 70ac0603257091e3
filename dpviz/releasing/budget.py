"""What all fits of a process cost together, and a budget that they may not pass.

A fit by a clone, a pipeline or a search is a release like any other. Every process counts its own;
`budget` counts those of other processes too, as joblib's workers are, in a ledger of its own in a
temporary folder: an estimator that is sent to one takes along where that is. This is the one state
of the package that is not handed from hand to hand, for neither clones nor workers are.
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
_SPENT = 1 - 1e-6  # of a limit: no fit is so cheap that what is left would pay for it


@dataclass(frozen=True)
class Spending:
    """What several fits cost together.

    Attributes
    ----------
    fits : int
    epsilon, delta : float
        By the least account that is known: all that the fits did, composed, or their own epsilons
        and deltas added up. Infinite where a fit has none.
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
    """The fits of this process, None where no epsilon describes one, and the budgets that hold."""

    fits: list[tuple[Spend | None, Relation, int]] = field(default_factory=list)
    warned: bool = False
    budgets: dict[Path, Budget] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_HERE = _Process()


def spending() -> Spending:
    """Return what all fits of `PrivatePCA` in this process cost together.

    As if all were over the same people. Of two relations, or numbers of rows a person, the costs
    are added up.

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
    # no account composes two relations: their epsilons stand beside each other, so the sum is meant
    for kind in {fit[1:] for fit in fits}:
        own = [spend for spend, *of in fits if spend is not None and tuple(of) == kind]
        epsilon += composed_epsilon(own, math.fsum(spend.delta for spend in own))
    delta = math.fsum(spend.delta for spend in spends)
    return Spending(len(fits), epsilon if len(spends) == len(fits) else math.inf, delta)


class budget:
    """A limit for all fits of `PrivatePCA` inside a ``with``, also by clones and joblib's workers.

    A fit that would pass it is refused before it looks at the data, with nothing spent. What fits
    cost together is found by the exact accounts of what they do, at the budget's delta, and not by
    adding up their epsilons.

    Parameters
    ----------
    epsilon : float
    delta : float, default=0
        0 needs pure mechanisms.

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
            raise InvalidSetting("budget", "entered once at a time", "entered already")
        # only its owner may read it: what is spent is no secret, but nobody else may write there
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
        """What was spent so far, at the budget's delta."""
        return self._spent if self._folder is None else _spent_in(self._folder, self.limit)


_INSIDE = "in this budget"


def check_open() -> None:
    """Raise `CannotRun` where a budget is spent to the last: before data is looked at."""
    for folder, limit in _budgets().items():
        spent = _spent_in(folder, limit)
        if spent.epsilon >= limit.epsilon * _SPENT:
            raise CannotRun("this fit", f"{spent}, and this one would pass its limit")


def pay(spend: Spend | None, problem: Problem, mechanism: str, ledger: Ledger | None) -> None:
    """Write a fit into its ledger and every budget that holds, all or none, and count it here.

    Parameters
    ----------
    spend : Spend or None
        None where no epsilon describes it.
    problem : Problem
    mechanism : str
        Text of the variant.
    ledger : Ledger or None
        Where there is none, the second fit of a process that no budget counts warns.

    Raises
    ------
    DpvizError
        If the ledger or a budget refuses; nothing is then spent.
    """
    own, budgets = [] if ledger is None else [ledger], _budgets()
    if spend is None and (own or budgets):
        raise CannotRun(mechanism, "no epsilon describes it, so no ledger can take it down")
    for folder, limit in budgets.items():
        one = Ledger(folder / _FILE)
        with suppress(LedgerError):  # another fit made it, maybe of another process
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
            f"{spending()}: each fit, also by a clone, is a release of its own, and "
            "over the same people they add up. dpviz.spending() tells the total at any time, and "
            "dpviz.budget limits it.",
            PrivacyWarning,
            stacklevel=4,
        )


def carried() -> tuple[int, dict[str, tuple[float, float]]]:
    """Return what an estimator takes along to another process: whose budgets hold."""
    return os.getpid(), {str(f): (one.epsilon, one.delta) for f, one in _budgets().items()}


def received(state: tuple[int, dict[str, tuple[float, float]]]) -> None:
    """Let the budgets hold here that an estimator from another process came with."""
    process, folders = state
    # a copy within the process brings nothing: its budgets hold already
    if process != os.getpid():
        with _HERE.lock:
            _HERE.budgets = {Path(folder): Budget(*one) for folder, one in folders.items()}


def _budgets() -> dict[Path, Budget]:
    """Return the budgets that hold by their folders; one whose ``with`` has ended is gone."""
    with _HERE.lock:
        return {folder: limit for folder, limit in _HERE.budgets.items() if folder.is_dir()}


def _spent_in(folder: Path, limit: Budget) -> Spending:
    ledger = Ledger(folder / _FILE)
    spends: Sequence[Spend] = ledger.read().spends if ledger.path.exists() else ()
    return Spending(len(spends), composed_epsilon(spends, limit.delta), limit.delta, _INSIDE)
