"""What all fits of a process cost together, and a budget that they may not pass.

A fit by a clone, a pipeline or a search is a release like any other. Every process counts its own;
`budget` counts those of other processes too, as joblib's workers are: an estimator that is sent to
one takes along where the count is kept. This is the one state of the package that is not handed
from hand to hand, for neither clones nor workers are.
"""

from __future__ import annotations

import math
import os
import pickle
import tempfile
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Self

from filelock import FileLock

from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Relation
from dpviz.preparation.account import Composed, PreparedMechanism
from dpviz.releasing.declared import PrivacyWarning

_SPENT = 1 - 1e-6  # of a limit: no fit is so cheap that what is left would pay for it
_ROUNDING = 1 + 1e-9  # a limit that is reached to the last rounding is kept to


@dataclass(frozen=True)
class Fit:
    """What one fit costs.

    Attributes
    ----------
    composed : Composed or None
        What is composed; None where no epsilon describes it.
    epsilon, delta : float
        What it spends by itself; infinite where no epsilon describes it.
    relation : Relation
    """

    composed: Composed | None
    epsilon: float
    delta: float
    relation: Relation

    @classmethod
    def of(cls, whole: PreparedMechanism) -> Fit:
        """Return what it costs."""
        spent = whole.spent
        epsilon, delta = (math.inf, 0.0) if spent is None else (spent.epsilon, spent.delta)
        composed = whole.composed if math.isfinite(epsilon) else None
        return cls(composed, epsilon, delta, whole.problem.relation)


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


def spent_by(fits: Sequence[Fit], delta: float | None = None, where: str = "") -> Spending:
    """Return what fits cost together, at a delta or at the sum of theirs."""
    added = math.fsum(fit.delta for fit in fits)
    at = added if delta is None else delta
    if not fits:
        return Spending(0, 0.0, delta or 0.0, where or Spending.where)
    epsilons = [math.inf]
    # epsilons add up at the sum of the deltas, and at no lesser one
    if added <= at * _ROUNDING:
        epsilons.append(math.fsum(fit.epsilon for fit in fits))
    accounts = [fit.composed for fit in fits if fit.composed is not None]
    # one fit that is not composed leaves the others without a common account
    if len(accounts) == len(fits):
        parts = tuple(part for account in accounts for part in account.parts)
        known = tuple(loss for account in accounts for loss in account.known)
        epsilons.append(Composed(parts, known).loss().epsilon(at))
    return Spending(len(fits), min(epsilons), at, where or Spending.where)


@dataclass
class _Process:
    """The fits of this process, and the budgets that hold in it."""

    fits: list[Fit] = field(default_factory=list)
    warned: bool = False
    budgets: list[Path] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


_HERE = _Process()


def spending() -> Spending:
    """Return what all fits of `PrivatePCA` in this process cost together.

    As if all were over the same people. Of two relations the costs are added up.

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
    return _of_one_relation(fits)


def _of_one_relation(fits: Sequence[Fit]) -> Spending:
    relations = {fit.relation for fit in fits}
    if len(relations) <= 1:
        return spent_by(fits)
    # no account composes two relations: their epsilons stand beside each other, so the sum is meant
    by = [spent_by([fit for fit in fits if fit.relation is one]) for one in relations]
    epsilon, delta = math.fsum(one.epsilon for one in by), math.fsum(one.delta for one in by)
    return Spending(len(fits), epsilon, delta)


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
    ...     fitted = dpviz.PrivatePCA(2, epsilon=1.0, delta=1e-7).fit(rows)
    >>> limit.spent.fits
    1
    """

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.limit = Budget(epsilon, delta)
        self._folder: Path | None = None
        self._fits: list[Fit] = []

    def __enter__(self) -> Self:
        if self._folder is not None:
            raise InvalidSetting("budget", "entered once at a time", "entered already")
        # only its owner may read it: what is spent is no secret, but nobody else may write there
        self._folder = Path(tempfile.mkdtemp(prefix="dpviz-budget-"))
        _write(self._folder, self.limit, self._fits)
        with _HERE.lock:
            _HERE.budgets.append(self._folder)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._folder is not None
        with _HERE.lock:
            _HERE.budgets.remove(self._folder)
        self._fits = _read(self._folder)[1]
        rmtree(self._folder, ignore_errors=True)
        self._folder = None

    @property
    def spent(self) -> Spending:
        """What was spent so far, at the budget's delta."""
        fits = self._fits if self._folder is None else _read(self._folder)[1]
        return spent_by(fits, self.limit.delta, "in this budget")


def check_open() -> None:
    """Raise `CannotRun` where a budget is spent to the last: before data is looked at."""
    for folder in _budgets():
        limit, fits = _read(folder)
        spent = spent_by(fits, limit.delta, "in this budget")
        if spent.epsilon >= limit.epsilon * _SPENT:
            raise _refusal(spent, limit)


def pay(whole: PreparedMechanism, *, warns: bool) -> None:
    """Take a fit into every budget that holds, all or none, and into the count of this process.

    Parameters
    ----------
    whole : PreparedMechanism
    warns : bool
        Whether nothing else counts this fit, so that the second of a process warns.

    Raises
    ------
    CannotRun
        If a budget would be passed; nothing is then spent.
    """
    fit, folders = Fit.of(whole), _budgets()
    # in one order everywhere: two processes that hold two budgets never wait for each other
    locks = [FileLock(folder / "lock") for folder in sorted(folders)]
    try:
        for lock in locks:
            lock.acquire()
        found = [(folder, *_read(folder)) for folder in folders]
        for _, limit, fits in found:
            if any(fit.relation is not other.relation for other in fits):
                raise CannotRun(
                    whole.mechanism.text, "a budget holds for fits of one relation, as its first"
                )
            composed = spent_by([*fits, fit], limit.delta, "in this budget")
            if composed.epsilon > limit.epsilon * _ROUNDING:
                raise _refusal(spent_by(fits, limit.delta, "in this budget"), limit)
        for folder, limit, fits in found:
            _write(folder, limit, [*fits, fit])
    finally:
        for lock in locks:
            lock.release()
    with _HERE.lock:
        _HERE.fits.append(fit)
        fits = list(_HERE.fits)
        second = len(fits) > 1 and warns and not folders and not _HERE.warned
        _HERE.warned |= second
    if second:
        warnings.warn(
            f"{_of_one_relation(fits)}: each fit, also by a clone, is a release of its own, and "
            "over the same people they add up. dpviz.spending() tells the total at any time, and "
            "dpviz.budget limits it.",
            PrivacyWarning,
            stacklevel=4,
        )


def carried() -> tuple[int, tuple[str, ...]]:
    """Return what an estimator takes along to another process: whose budgets hold."""
    return os.getpid(), tuple(str(folder) for folder in _budgets())


def received(state: tuple[int, tuple[str, ...]]) -> None:
    """Let the budgets hold here that an estimator from another process came with."""
    process, folders = state
    # a copy within the process brings nothing: its budgets hold already
    if process != os.getpid():
        with _HERE.lock:
            _HERE.budgets[:] = [Path(folder) for folder in folders]


def _budgets() -> list[Path]:
    """Return the folders of the budgets that hold; one whose ``with`` has ended is gone."""
    with _HERE.lock:
        return [folder for folder in _HERE.budgets if folder.is_dir()]


def _refusal(spent: Spending, limit: Budget) -> CannotRun:
    at = f" and delta {numeral(limit.delta)}" if limit.delta > 0 else ""
    said = f"{spent}, and this one would pass its limit of epsilon {numeral(limit.epsilon)}{at}"
    return CannotRun("this fit", f"{said}: nothing was spent")


def _read(folder: Path) -> tuple[Budget, list[Fit]]:
    limit, fits = pickle.loads((folder / "fits").read_bytes())
    return limit, fits


def _write(folder: Path, limit: Budget, fits: list[Fit]) -> None:
    new = folder / f"fits.{os.getpid()}.{threading.get_ident()}"
    new.write_bytes(pickle.dumps((limit, fits)))
    # at once: whoever reads meanwhile has the old fits or the new ones
    os.replace(new, folder / "fits")
