"""The contract of every mechanism.

A mechanism is a frozen dataclass in a file of its own; the file's name is its key. The fields are
the mechanism's tuning parameters, declared with `dpviz.core.params`. A mechanism holds no data, no
budget and no randomness.

To add a mechanism, copy ``_template.py`` and run ``pytest tests/contract -k KEY``.
"""

from __future__ import annotations

import inspect
import math
import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
import scipy

from dpviz.accounting import accounting, losses
from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import epsilon_of
from dpviz.accounting.losses import ExactLoss, LogRatio, Tables
from dpviz.accounting.profiles import RowProfile
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared
from dpviz.core.parts import ApproximatePart, Part, for_person
from dpviz.core.plugins import shell_command
from dpviz.core.problem import (
    EPSILON_RANGE,
    Budget,
    Problem,
    budget_of_one_row,
    group_budget,
)
from dpviz.core.release import Aim, Calibration, Release, Status, Verdict
from dpviz.core.seeding import Draws
from dpviz.sampling.limits import FreeNoise


@dataclass(frozen=True)
class Reference:
    """Reference to a paper.

    Attributes
    ----------
    key : str
        First author's name and year.
    kind : str
        ``inproceedings`` or ``article``.
    fields : tuple of (str, str)
    """

    key: str
    kind: str
    fields: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, str]:
        """First author and year, as a source names them."""
        match = re.fullmatch(r"(\D+)(\d{4})", self.key)
        assert match is not None
        return match[1], match[2]

    @property
    def bibtex(self) -> str:
        """The BibTeX entry."""
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in self.fields)
        return f"@{self.kind}{{{self.key.lower()},\n{lines}\n}}"


def paper(
    key: str, author: str, title: str, where: str, year: int, *, journal: str = "", **more: str
) -> Reference:
    """Return the reference to a paper in proceedings or in a journal.

    Parameters
    ----------
    key : str
        First author's name and year, as a mechanism's ``info.paper`` names them: ``Jiang2016``.
    author, title, where : str
        The same fields as in BibTeX; ``where`` is the title of the proceedings.
    year : int
    journal : str
        Name of the journal, used instead of ``where``.
    **more : str
        Further fields, such as ``eprint`` or ``doi``.
    """
    kind, place = ("article", "journal") if journal else ("inproceedings", "booktitle")
    fields = [
        ("author", author), ("title", title), (place, journal or where), ("year", str(year)),
        *more.items(),
    ]  # fmt: skip
    return Reference(key, kind, tuple(fields))


# A loss within this factor of the claim counts as equal to the claim, because calibrations round
# the last digits to the safe side.
_ALL_OF_IT = 1e-6
# The search for the epsilon of a single row stops at this tolerance in ln epsilon.
_CLOSE = 1e-12
# This pattern finds the start of each later word in a name such as HalfTheNoise.
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, kw_only=True)
class MechanismInfo:
    """Facts about a mechanism that privacy cards and lists show.

    The defaults suit a custom mechanism whose author leaves a fact out.

    Attributes
    ----------
    label : str
        Short display name, unique.
    summary : str
        One sentence on the work of the mechanism.
    paper : str
        Authors, year and algorithm; ``dpviz`` for mechanisms of dpviz itself.
    references : tuple of Reference
        Entries of those papers that no other mechanism's file lists.
    url : str
        Web address of the source, or empty.
    family : str
        Group of the mechanism, by its noise: ``laplace``, ``gaussian``, ``wishart``, ``subspace``,
        ``directional``, ``data``, ``iterative``, ``baseline``; ``other``.
    release : str
        ``matrix``, ``subspace`` or ``data``: what every release contains, see `Mechanism.releases`.
    guarantee : str
        Kind of claim: ``pure``, ``approximate`` or ``none``.
    order : int
        Fixed, unique position in lists, so that a new mechanism moves no other. Mechanisms of other
        packages come last.
    law, calibration : str
        LaTeX of the release's distribution and of how its scale follows from the budget.
    complexity : str
        Computing cost of one release, such as ``d^3``.
    advice : str
        One sentence on when to use the mechanism.
    featured : bool
        Whether pages show the mechanism before the user chooses.
    highlight : int
        Position of the mechanism's colour in `dpviz.report.figures.theme.HIGHLIGHTS`, from 1,
        unique; 0 plots it thin and grey.
    psd : bool
        Whether the released matrix is always positive semi-definite.
    needs_rows : bool
        Whether the mechanism needs the rows and not only (A, n).
    by_length : bool
        Whether the summaries in `dpviz.core.by_length.Lengths` suffice, so that rows need not be in
        memory.
    passes : int
        How often a release reads the rows, a block at a time; 0 if it needs all rows in memory at
        once.
    redraws : bool
        Whether a changed epsilon needs new random noise instead of rescaled noise.
    timed : bool
        Whether the run time of a release depends on the data, as in rejection samplers. The
        guarantee does not cover information in the run time.
    discrete : str
        Discrete noise that makes a release by this mechanism safe on a computer: ``discrete
        Gaussian`` or ``discrete Laplace``; empty if no such sampler is known.
    precision : tuple of str
        Parameters of the variants that the Precision page lists, such as ``theorem=3``; an empty
        text is the default variant.
    """

    label: str
    release: str
    guarantee: str
    summary: str = "A mechanism of its author's own."
    paper: str = "its author"
    references: tuple[Reference, ...] = ()
    family: str = "other"
    order: int = 10_000
    law: str = r"\text{as its author's code draws it}"
    calibration: str = r"\text{as its author's code says}"
    complexity: str = "d^3"
    advice: str = "Compare and audit it first."
    url: str = ""
    featured: bool = False
    highlight: int = 0
    psd: bool = False
    needs_rows: bool = False
    by_length: bool = False
    passes: int = 0
    redraws: bool = False
    timed: bool = False
    discrete: str = ""
    precision: tuple[str, ...] = ()


# Methods for one row, extended to a person with several rows -----------------


@dataclass(frozen=True)
class _OneRow:
    """Problem and budget for one row that protect a person with several rows.

    Attributes
    ----------
    problem : Problem
        The problem with one row as its unit.
    budget : Budget
        Budget of one row at which all rows of a person together meet the person's budget.
    by_parts : bool
        Whether `for_person` converts each part; otherwise `group_budget` converts the whole loss.
    """

    problem: Problem
    budget: Budget
    by_parts: bool


@lru_cache(maxsize=4096)
def _of_one_row(mechanism: Mechanism, problem: Problem, budget: Budget) -> _OneRow:
    """Return the problem and budget for one row that protect a person with m rows.

    A pure mechanism, or one with only a claim, gets `budget_of_one_row` (if pure: m times the
    noise). If parts describe the release, `for_person` converts each part. The row's budget is then
    such that the converted parts lose as much privacy as the row's parts at the person's budget.
    For Gaussian noise, mu is m times smaller and the scale m times larger. The target is the
    accounted loss, even if the claim states more or less.

    Notes
    -----
    **Safe side.** `for_person` bounds each part given the earlier ones. Parts compose adaptively,
    so their accounting bounds the whole release. The search ends where the person's loss is at most
    the row's target, never above. Gaussian parts may only state that all together are mu-GDP for a
    row (a pass over batches states one part, as a row is in one batch). Then m changes of one row
    each are m mu-GDP (Dong, Roth & Su 2022, Theorem 2.14).

    Raises
    ------
    CannotRun
        If no such budget exists, or the mechanism cannot run with it.
    """
    row, m = replace(problem, rows_a_person=None), problem.together
    pure = mechanism.info.guarantee == "pure"
    if mechanism.info.guarantee == "none":
        return _OneRow(row, budget, True)
    if not pure and mechanism.limits(row, budget) is None:
        whole = mechanism.calibrate(row, budget).parts
        if _describe(mechanism, row, budget, whole):
            return _OneRow(row, _same_cost(mechanism, row, budget, whole, m), True)
    try:
        small = budget_of_one_row(Budget(budget.epsilon) if pure else budget, m)
    except InvalidSetting as error:
        raise CannotRun(mechanism.text, str(error)) from None
    reason = mechanism.limits(row, small)
    if reason is not None:
        raise CannotRun(mechanism.text, reason)
    parts = mechanism.calibrate(row, small).parts
    return _OneRow(row, small, _describe(mechanism, row, small, parts))


def _describe(mechanism: Mechanism, row: Problem, budget: Budget, parts: Sequence[Part]) -> bool:
    """Return whether the parts describe the whole release, each part for arbitrary tables."""
    tested = any(isinstance(part, ApproximatePart) for part in parts)
    return bool(parts) and not tested and mechanism.row_profile(row, budget) is None


def _same_cost(
    mechanism: Mechanism, row: Problem, budget: Budget, whole: Sequence[Part], m: int
) -> Budget:
    """Return the row budget at which a person's rows lose as much as one row at ``budget``."""
    claim = mechanism.claim(row, budget) or budget

    def cost(parts: Sequence[Part]) -> float:
        composition = accounting.composition_of(parts)
        return composition.mu if composition.gaussian else accounting.spent(parts, claim).epsilon

    target, least = cost(whole), EPSILON_RANGE[0]
    if not 0 < target < math.inf:
        return budget

    def at(epsilon: float) -> Budget:
        return Budget(epsilon, budget.delta / m)

    @lru_cache(maxsize=64)
    def excess(epsilon: float) -> float:
        """Return ln(person's loss/target), at most 0 on the safe side."""
        parts = [for_person(part, m) for part in mechanism.calibrate(row, at(epsilon)).parts]
        return math.log(max(cost(parts), 1e-300) / target)

    gaussian = accounting.composition_of(whole).gaussian
    if gaussian:  # For Gaussian noise the exact profile gives the row's epsilon directly.
        exact = epsilon_of(budget.delta / m, target / m) * (1 - _CLOSE)
        if least <= exact <= budget.epsilon and -4 * _CLOSE < excess(exact) <= 0:
            return at(exact)
    low = max(budget.epsilon / m, least)
    while excess(low) > 0:
        if low == least:
            raise CannotRun(
                mechanism.text, f"{m:,} rows a person need a row epsilon below {numeral(least)}"
            )
        low = max(low / 2, least)
    high = low
    while excess(high) <= 0 and high < budget.epsilon:
        low, high = high, min(2 * high, budget.epsilon)
    if excess(high) <= 0:
        return at(high)
    log_ratio = math.exp(
        scipy.optimize.brentq(
            lambda log: excess(math.exp(log)), math.log(low), math.log(high), xtol=_CLOSE
        )
    )
    step = _CLOSE
    while excess(log_ratio) > 0:  # Move towards `low`, which is on the safe side.
        log_ratio, step = max(log_ratio * (1 - step), low), 2 * step
    return at(log_ratio)


def _of_person(spent: Spent, claim: Budget, rows: int) -> Spent:
    """Return the loss for a person from a row's loss by `group_budget`, for any mechanism."""
    if spent.epsilon == math.inf or (spent.epsilon == 0 and spent.delta == 0):
        return spent
    low, high = EPSILON_RANGE
    grown = group_budget(Budget(min(max(spent.epsilon, low), high), spent.delta), rows)
    delta = max(grown.delta, claim.delta if grown.delta > 0 else 0.0)
    apart = spent.total_variation
    return Spent(
        epsilon=grown.epsilon,
        delta=delta,
        exact=False,
        source=f"group privacy of {rows:,} rows, each: {spent.source}",
        delta_at_epsilon=delta if grown.epsilon <= claim.epsilon else None,
        total_variation=None if apart is None else min(1.0, rows * apart),
    )


_OF_ONE_ROW = (
    "calibrate", "spent", "row_profile", "verdict", "evidence", "limits", "advised_rank",
    "aims_at", "target", "releases",
)  # fmt: skip
"""Methods that an author writes for one row; `_for_person` extends them to several rows."""


def _for_person(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method for one row, extended to a person with several rows."""
    before = 1 if name == "target" else 0  # `target` has one argument before problem and budget.

    signature = inspect.signature(method)

    @wraps(method)
    def asked(self: Mechanism, *given: Any, **named: Any) -> Any:
        if named:
            given = signature.bind(self, *given, **named).args[1:]
        problem, budget = given[before : before + 2]
        if problem.together == 1:
            return method(self, *given)
        if name == "row_profile":  # One row's profile does not hold for a person's several rows.
            return None
        try:
            one = _of_one_row(self, problem, budget)
        except CannotRun as error:
            if name in ("limits", "advised_rank"):
                return error.reason if name == "limits" else None
            raise
        if one.by_parts and name in ("spent", "verdict"):
            return method(self, *given)  # `calibrate` already returns a person's parts.
        row = one.problem, one.budget
        # A row's loss is compared with a row's claim. `group_budget` then derives a person's loss.
        costs = (self.spent(*row),) if name in ("verdict", "evidence") else ()
        answer = method(self, *given[:before], *row, *costs)
        return _answer_for_person(self, name, answer, one, given)

    return asked


def _answer_for_person(
    mechanism: Mechanism, name: str, answer: Any, one: _OneRow, given: Sequence[Any]
) -> Any:
    """Convert a method's answer for one row into the answer for a person."""
    if name == "calibrate":
        # Without `by_parts` no parts are returned: readers would take a row's parts for a person's.
        parts = [for_person(part, given[0].together) for part in answer.parts if one.by_parts]
        return replace(answer, parts=tuple(parts))
    if name not in ("spent", "evidence"):
        return answer
    problem, budget = given[:2]
    claim = mechanism.claim(problem, budget)
    if name == "spent":
        return answer and _of_person(answer, claim or budget, problem.together)
    if claim is None or given[2] is None:
        return answer
    comparison = claimed_against_spent(claim, given[2])
    return f"A person with {problem.together:,} rows: {comparison}. One row: {answer}"


@dataclass(frozen=True)
class Mechanism(Declared, ABC):
    """Base of all mechanisms: a frozen dataclass whose fields are its tuning parameters.

    A custom class states ``info``, `calibrate`, `release_many` and `evidence`; pass it to the
    functions of `dpviz` as it is. Its methods treat one row. To protect a person with several rows,
    dpviz calls the same methods with the smaller budget of one row.

    Examples
    --------
    >>> import dpviz, numpy as np
    >>> from dpviz.extend import Calibration, MechanismInfo, Release
    >>> class ByChance(dpviz.Mechanism):
    ...     info = MechanismInfo(label="By chance", release="subspace", guarantee="pure")
    ...     def calibrate(self, problem, budget):
    ...         return Calibration(problem, budget, 1.0)
    ...     def release_many(self, data, calibration, draws):
    ...         d, k = calibration.problem.d, calibration.problem.k
    ...         return Release.of_frames(np.linalg.qr(draws.normal(d, k))[0])
    ...     def evidence(self, problem, budget, spent):
    ...         return "It looks at no row."
    >>> found = dpviz.compare("iris", trials=5, mechanisms=[ByChance, "gaussian"])
    >>> found.table()["mechanism"].tolist()
    ['by_chance', 'gaussian']
    """

    info: ClassVar[MechanismInfo]
    key: ClassVar[str]
    follows_allocation: ClassVar[bool] = False
    """Whether the problem's allocation shapes the noise."""

    ours: ClassVar[bool]
    """Whether the class is in this package, so that tests check its accounting by other code."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        package, _, module = cls.__module__.rpartition(".")
        cls.ours = package == __name__.rpartition(".")[0]
        # The key is the class name: a file may hold many classes, and a notebook has no file name.
        cls.key = module if cls.ours else _WORD.sub("_", cls.__name__).lower()
        for name in vars(cls).keys() & set(_OF_ONE_ROW):
            setattr(cls, name, _for_person(name, vars(cls)[name]))

    @classmethod
    def flag_of(cls, name: str) -> str:
        """Return the command-line spelling of a parameter of this mechanism."""
        return f"--set {cls.key}.{name}"

    # Methods that the author of a mechanism writes --------------------------

    @abstractmethod
    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the noise that meets the claim, rounded to the safe side."""

    @abstractmethod
    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return one release per repetition; only this method is randomised."""

    @abstractmethod
    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return one sentence that explains the verdict."""

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return why this mechanism cannot run in this setting, or None if it can."""
        return None

    @property
    def needs_rows(self) -> bool:
        """Whether the mechanism needs the rows and not only (A, n); by default as in ``info``."""
        return self.info.needs_rows

    @property
    def by_length(self) -> bool:
        """Whether summaries of rows by length suffice; by default as in ``info``."""
        return self.info.by_length

    @property
    def passes(self) -> int:
        """How often a release reads the rows in blocks; once if summaries by length suffice."""
        return self.info.passes or int(self.needs_rows and self.by_length)

    @property
    def central(self) -> bool:
        """Whether one curator sees all rows, as the maker of a real release does."""
        return True

    @property
    def quick(self) -> bool:
        """Whether 10,000 repetitions take only seconds; searches skip slower mechanisms."""
        return "d^4" not in self.info.complexity

    @property
    def quicker(self) -> Mechanism:
        """A quicker variant of the mechanism for searches, or the mechanism itself."""
        return self

    @property
    def needs_row_bound(self) -> bool:
        """Whether the guarantee requires a declared public bound on the rows.

        False if the mechanism itself bounds the influence of each row.
        """
        return True

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return the quantity that a release in this setting estimates."""
        return Aim.COMPONENTS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the moment whose leading components a noiseless release would have.

        This moment is not private; exploring compares it with A. The default is ``data``, or None
        if `aims_at` names no quantity.
        """
        return data

    def releases(self, problem: Problem, budget: Budget) -> str:
        """Return the content of a release in this setting: ``matrix``, ``subspace`` or ``data``.

        The default is ``info.release``. A mechanism that releases a matrix only in some settings
        states ``subspace`` in ``info``, because every release has a subspace.
        """
        return self.info.release

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the actual privacy loss of a release, or None if no accounting gives it."""
        calibration = self.calibrate(problem, budget)
        if not (calibration.parts or self.ours):
            return None  # An external mechanism without declared parts has an unknown loss.
        # The claim sets delta: a pure claim has delta 0, even if the budget's delta is above 0.
        return accounting.spent(calibration.parts, self.claim(problem, budget) or budget)

    def row_profile(self, problem: Problem, budget: Budget) -> RowProfile | None:
        """Return one row's privacy profile if the parts do not give the profile, or None."""
        return None

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return the verdict on the claim; by default from the actual and the claimed loss."""
        claim = self.claim(problem, budget)
        if claim is None and not self.ours:
            return Verdict.BASELINE
        if claim is None or spent is None:
            if not self.ours:
                return Verdict.UNPROVEN  # The loss of an external mechanism is unknown here.
            raise NotImplementedError(f"{self.key} must define its verdict: its loss is unknown")
        if spent.epsilon > claim.epsilon * (1 + _ALL_OF_IT):
            if not spent.exact:
                return Verdict.UNPROVEN  # An upper bound above the claim does not refute it.
            elsewhere = self.promised_elsewhere(problem, budget)
            return Verdict.REFUTED if elsewhere is None else Verdict.OUT_OF_SCOPE
        if spent.epsilon < claim.epsilon * (1 - _ALL_OF_IT):
            return Verdict.LOOSE
        return Verdict.HOLDS

    def promised_elsewhere(self, problem: Problem, budget: Budget) -> str | None:
        """Return the scope of the source's claim, if the scope does not include this setting.

        A phrase such as ``for zero-out neighbours``; None if the claim covers the setting.
        """
        return None

    @property
    def dominates_input(self) -> bool:
        """Whether the released matrix minus the exact matrix is always positive semi-definite."""
        return False

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return how strongly to recommend this mechanism by default; None for never.

        dpviz recommends the strongest mechanism that can run (`dpviz.simulation.defaults`). Ranks
        follow measured regret and not opinion: see docs/defaults.md.
        """
        return None

    @property
    def weighs(self) -> bool:
        """Whether components come from a weighted estimate of the released matrix."""
        return False

    @property
    def releases_variances(self) -> bool:
        """Whether all d noisy eigenvalues are released; by default if the matrix is released."""
        return self.info.release == "matrix"

    def exact_loss(
        self,
        calibration: Calibration,
        delta: float,
        at_epsilons: tuple[float, ...],
        tables: Sequence[Tables],
    ) -> ExactLoss | None:
        """Return the exact loss between some neighbours on the ball, or None if it is unknown.

        The default is exact accounting's loss. Override the method if the release's distribution
        gives a sharper one: audits then need no simulation to refute a claim or to call it tight.

        Parameters
        ----------
        calibration : Calibration
            Calibration of the mechanism on a ball.
        delta : float
            Delta at which to compute epsilon.
        at_epsilons : tuple of float
            Epsilons at which to compute delta; the first is the claimed epsilon.
        tables : sequence of pairs of SecondMoment
            Neighbours to try if the loss depends on them.
        """
        account = self.spent(calibration.problem, calibration.budget)
        if account is None or not account.exact:
            return None  # An upper bound may exceed the loss of every pair of neighbours.
        if calibration.parts:
            return losses.of_parts(
                calibration, delta, at_epsilons, data=self.info.release == "data"
            )
        return losses.of_profile(account, delta, at_epsilons)

    def log_ratio(
        self, calibration: Calibration, first: SecondMoment, second: SecondMoment
    ) -> LogRatio | None:
        """Return ln f1/f2, the log density ratio of a batch of releases, as a function, or None.

        Override the method for audits if the density is known and no named score of the audit
        equals the ratio. Gaussian, Laplace and Bingham releases need no override.
        """
        return None

    def of_matrices(self, matrices: FloatArray, calibration: Calibration) -> Release:
        """Return the release of noisy matrices; by default with their top k eigenvectors.

        Parameters
        ----------
        matrices : ndarray of shape (size, d, d)
            Symmetric matrices that are already private; this method only post-processes them.
        calibration : Calibration
        """
        return Release.of_matrices(matrices, calibration.problem.k)

    def free_noise(self, calibration: Calibration) -> FreeNoise | None:
        """Return the limiting law of the noise on A for large d, or None.

        Override the method if the release is A plus noise that is rotation-invariant or symmetric
        with i.i.d. entries; predictions and edges follow from this law.
        """
        return None

    def noise_along(
        self, data: SecondMoment, calibration: Calibration, draws: Draws
    ) -> FloatArray | None:
        """Return the noise's standard deviation along each direction, or None.

        Parameters
        ----------
        data : SecondMoment
        calibration : Calibration
        draws : Draws
            One repetition, whose release gives the private directions.

        Returns
        -------
        ndarray of shape (d,) or None
            Std of the released variance along each direction of the problem's allocation, in units
            of A.
        """
        return None

    def memory(self, problem: Problem, draws: int, *, thin: bool = False) -> float:
        """Return the approximate peak memory of a batch of releases in bytes, metrics included.

        The default counts d x d matrices: 6, and 6.5 for each repetition. No mechanism of dpviz was
        measured above this value (``tests/contract/test_memory.py`` checks it).

        Parameters
        ----------
        problem : Problem
        draws : int
        thin : bool
            Whether the second moment is stored as its root.
        """
        return 8.0 * problem.d**2 * (6 + 6.5 * draws)

    def diagnose(self, trace: FloatArray) -> dict[str, float]:
        """Return diagnostics of the chains in ``Release.trace``.

        Parameters
        ----------
        trace : ndarray of shape (trials, steps)
            Traces in the order of trial numbers, from trial 0.
        """
        return {}

    @property
    def why_no_rows(self) -> str | None:
        """Reason why no rows are released; None if `release_rows` is given."""
        if type(self).release_rows is not Mechanism.release_rows:
            return None
        return f"it releases a {self.info.release} and no rows to learn from"

    def release_rows(
        self, rows: FloatArray, calibration: Calibration, draws: Draws
    ) -> FloatArray | None:
        """Return the noisy table itself, or None if no rows are released.

        Override the method if the release is a table with a row for each person. The table's second
        moment has the law of `release_many`. The call needs the memory of ``size`` tables: request
        one repetition at a time.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
            Bounded rows, with the problem's n and d.
        calibration : Calibration
        draws : Draws

        Returns
        -------
        ndarray of shape (size, n, d) or None
        """
        return None

    # Methods for code that uses a mechanism ---------------------------------

    def claim(self, problem: Problem, budget: Budget) -> Budget | None:
        """Return the budget that the source claims to meet, or None if there is no claim."""
        if self.info.guarantee == "none":
            return None
        delta = budget.delta if self.info.guarantee == "approximate" else 0.0
        return Budget(budget.epsilon, delta)

    @final
    def spectrum_edges(self, calibration: Calibration) -> tuple[float, float] | None:
        """Return the limits of the noise's own spectrum for large d, or None."""
        noise = self.free_noise(calibration)
        return None if noise is None else noise.edges

    @final
    def detection_threshold(self, calibration: Calibration) -> float | None:
        """Return the variance below which the noise hides a single component, for large d, or None.

        The variance is in units of A; see `dpviz.sampling.limits.FreeNoise.visible_above`.
        """
        noise = self.free_noise(calibration)
        return None if noise is None else noise.visible_above

    @final
    def why_not(self, problem: Problem, budget: Budget, *, rows: bool = True) -> str | None:
        """Return why this mechanism cannot run, by general rules or its own, or None if it can."""
        if self.info.guarantee == "approximate" and budget.delta == 0:
            return "it needs a delta above 0; got 0"
        if self.info.release == "subspace" and problem.k >= problem.d:
            return f"it releases a subspace and needs k from 1 to {problem.d - 1}; got {problem.k}"
        if self.needs_rows and not rows:
            return "it needs the rows themselves, and only their second moment is available"
        if self.needs_row_bound and not problem.domain.bounded:
            return "it needs a row-norm bound, and none is declared"
        return self.limits(problem, budget)

    @final
    def check(self, problem: Problem, budget: Budget, *, rows: bool = True) -> None:
        """Raise `CannotRun` with the reason if this mechanism cannot run."""
        reason = self.why_not(problem, budget, rows=rows)
        if reason is not None:
            raise CannotRun(self.text, reason)

    @final
    def status(self, problem: Problem, budget: Budget) -> Status:
        """Return the verdict on the claim in this setting, with its evidence."""
        return self.judged(problem, budget, self.spent(problem, budget))

    @final
    def judged(self, problem: Problem, budget: Budget, spent: Spent | None) -> Status:
        """Return the status for a privacy loss that `spent` already computed."""
        verdict = self.verdict(problem, budget, spent)
        evidence = self.evidence(problem, budget, spent)
        if not self.ours:
            evidence = f"According to its author; dpviz has not checked this: {evidence}"
        return Status(verdict, evidence)

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Facts that a release reveals and its guarantee does not cover."""
        return (f"how long a release by {self.text} takes",) if self.info.timed else ()

    @property
    def text(self) -> str:
        """The variant as text: the key and the changed parameters."""
        changed = ",".join(f"{name}={value}" for name, value in self.texts().items())
        return f"{self.key}[{changed}]" if changed else self.key

    @property
    def rerun(self) -> str:
        """The command that reruns the evidence for this mechanism."""
        if not self.ours:
            return shell_command("audit", self.text)
        return f"python -m pytest tests -k {self.key}"

    @property
    def label(self) -> str:
        """Display name of the variant."""
        changed = ", ".join(f"{name} {value}" for name, value in self.texts().items())
        return f"{self.info.label} ({changed})" if changed else self.info.label


for _name in _OF_ONE_ROW:  # An author's class may inherit these methods.
    setattr(Mechanism, _name, _for_person(_name, vars(Mechanism)[_name]))


@dataclass(frozen=True)
class AdditiveMechanism(Mechanism):
    """Release A + scale * N, with a standard noise N that does not depend on the budget.

    The same random stream gives the same N at every epsilon, so points move smoothly as epsilon
    changes.
    """

    @abstractmethod
    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return symmetric noise of unit scale, shape (size, d, d)."""

    def diagonal_std(self, problem: Problem) -> float | None:
        """Return the standard deviation of w'Nw, if it is the same for all unit vectors w."""
        return None

    @property
    def dominates_input(self) -> bool:
        """Whether the noise is positive semi-definite, so that no release lies below A."""
        return self.info.psd

    @final
    def noise_along(
        self, data: SecondMoment, calibration: Calibration, draws: Draws
    ) -> FloatArray | None:
        """Return the noise's standard deviation along each direction, all of them equal."""
        unit = self.diagonal_std(calibration.problem)
        return None if unit is None else np.full(data.d, unit * calibration.scale)

    @final
    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return A plus scaled noise, and its top k eigenvectors."""
        noise = self.standard_noise(calibration.problem, draws)
        return self.release_scaled(data, calibration, noise, own=True)

    @final
    def release_scaled(
        self, data: SecondMoment, calibration: Calibration, noise: FloatArray, *, own: bool = False
    ) -> Release:
        """Return the releases from given standard noise, which can serve every budget.

        Parameters
        ----------
        data : SecondMoment
        calibration : Calibration
        noise : ndarray of shape (size, d, d)
            Noise from `standard_noise` for the same problem.
        own : bool
            Whether the noise may be overwritten.
        """
        matrices = np.multiply(noise, calibration.scale, out=noise if own else None)
        matrices += data.A
        return self.of_matrices(matrices, calibration)


def released(
    mechanism: Mechanism, sees: SecondMoment, calibration: Calibration, draws: Draws
) -> Release:
    """Return the releases of a batch; all code makes releases through this function.

    The simulation calls this function, and so does a mechanism that takes its directions from
    another mechanism.

    Raises
    ------
    CannotRun
        If another author's code fails. The error names only the cause, because the original message
        may quote rows.
    """
    try:
        release = mechanism.release_many(sees, calibration, draws)
        if not mechanism.ours:
            _check_frames(mechanism, release.components, calibration.problem)
        return release
    except Exception as error:
        if mechanism.ours or isinstance(error, DpvizError):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"line {last.lineno} of {Path(last.filename).name}"
        raise CannotRun(mechanism.text, f"{type(error).__name__} in {where}") from error


# Frames by an author may have rounding errors this large. A real mistake is far larger.
_NEARLY = 1e-6


def _check_frames(mechanism: Mechanism, frames: FloatArray, problem: Problem) -> None:
    """Raise `CannotRun` if a custom mechanism does not release orthonormal columns."""
    wanted = (problem.d, problem.k)
    if frames.shape[1:] != wanted:
        raise CannotRun(mechanism.text, f"it must have shape {wanted}; got {frames.shape[1:]}")
    if not np.isfinite(frames).all():
        raise CannotRun(mechanism.text, "it must release finite numbers; some are not finite")
    if np.abs(frames.transpose(0, 2, 1) @ frames - np.eye(problem.k)).max() > _NEARLY:
        raise CannotRun(mechanism.text, "it must release orthonormal columns; its columns are not")


def claimed_against_spent(budget: Budget, spent: Spent) -> str:
    """Return a phrase that compares the actual epsilon with the claimed epsilon."""
    at = f" at delta {numeral(spent.delta)}" if spent.delta > 0 else ""
    claimed = numeral(budget.epsilon, 3)
    return f"{spent.cost.words(3, 'epsilon')}{at} against {claimed} claimed"
