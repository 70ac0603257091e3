"""The contract of every mechanism.

A mechanism is a frozen dataclass in a file of its own; the file's name is its
key. Its fields are its tuning parameters, declared with `dpviz.core.params`. It
holds no data, no budget and no randomness.

To add one, copy ``_template.py`` and run ``pytest tests/contract -k KEY``.
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
    """One paper.

    Attributes
    ----------
    key : str
        Of the entry: first author's name and year.
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
        """The entry."""
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in self.fields)
        return f"@{self.kind}{{{self.key.lower()},\n{lines}\n}}"


def paper(
    key: str, author: str, title: str, where: str, year: int, *, journal: str = "", **more: str
) -> Reference:
    """Return a paper of some proceedings, or of a journal.

    Parameters
    ----------
    key : str
        First author's name and year, as a mechanism's ``info.paper`` names them: ``Jiang2016``.
    author, title, where : str
        As BibTeX has them; ``where`` are the proceedings.
    year : int
    journal : str
        In the place of proceedings.
    **more : str
        Further fields, such as ``eprint`` or ``doi``.
    """
    kind, place = ("article", "journal") if journal else ("inproceedings", "booktitle")
    fields = [
        ("author", author), ("title", title), (place, journal or where), ("year", str(year)),
        *more.items(),
    ]  # fmt: skip
    return Reference(key, kind, tuple(fields))


# Spending within this factor of the claim counts as all of it: calibrations
# round to the safe side in the last digits.
_ALL_OF_IT = 1e-6
# In ln epsilon, how closely the budget of one of a person's rows is found.
_CLOSE = 1e-12
# Where a word begins inside a name such as HalfTheNoise.
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, kw_only=True)
class MechanismInfo:
    """Facts about a mechanism that cards and lists show.

    Defaults describe the mechanism of an author who leaves a fact out.

    Attributes
    ----------
    label : str
        Short display name, unique.
    summary : str
        One sentence: what it does.
    paper : str
        Authors, year and algorithm; ``dpviz`` for our own.
    references : tuple of Reference
        Entries of those papers that no other mechanism's file has.
    url : str
        Where to read the source, or empty.
    family : str
        Groups mechanisms by their noise: ``laplace``, ``gaussian``, ``wishart``,
        ``subspace``, ``directional``, ``data``, ``iterative``, ``baseline``; ``other``.
    release : str
        ``matrix``, ``subspace`` or ``data``: what every release has, see `Mechanism.releases`.
    guarantee : str
        ``pure``, ``approximate`` or ``none``.
    order : int
        Fixed place in lists, unique; adding a mechanism moves no other. Mechanisms of other
        packages come last.
    law, calibration : str
        LaTeX of the released law and of how its scale follows from the budget.
    complexity : str
        Cost of one release, such as ``d^3``.
    advice : str
        One sentence: when to use it.
    featured : bool
        Whether it is shown before the user chooses.
    highlight : int
        Its colour, by place in `dpviz.report.figures.theme.HIGHLIGHTS` from 1, unique; 0 draws it
        thin and grey.
    psd : bool
        Whether the released matrix is always positive semi-definite.
    needs_rows : bool
        Whether it must see the rows and not only (A, n).
    by_length : bool
        Whether of the rows it asks no more than `dpviz.core.by_length.Lengths` tells: they need
        not be in memory then.
    redraws : bool
        Whether a changed epsilon draws afresh instead of rescaling one draw.
    timed : bool
        Whether the time of a release depends on the data, as with samplers that reject. Anyone who
        sees the time then learns something that no guarantee covers.
    discrete : str
        Which discrete noise makes a release by this mechanism safe on a computer:
        ``discrete Gaussian`` or ``discrete Laplace``; empty where no such sampler
        is known.
    precision : tuple of str
        Parameters of the variants that stand on the Precision page, such as
        ``theorem=3``; an empty text is the default variant.
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
    redraws: bool = False
    timed: bool = False
    discrete: str = ""
    precision: tuple[str, ...] = ()


# A person's rows, as an author writes of one --------------------------------


@dataclass(frozen=True)
class _OneRow:
    """The problem and budget of one row that protect a person with several rows.

    Attributes
    ----------
    problem : Problem
        The same with a row for the unit.
    budget : Budget
        What one row may cost, so that all rows of a person cost what was asked for.
    by_parts : bool
        Whether `for_person` of each part accounts for a person; else `group_budget` does, of all.
    """

    problem: Problem
    budget: Budget
    by_parts: bool


@lru_cache(maxsize=4096)
def _of_one_row(mechanism: Mechanism, problem: Problem, budget: Budget) -> _OneRow:
    """Return the problem and the budget of one row behind those of a person with m rows.

    A mechanism of which only the claim is known is asked for `budget_of_one_row`, and so is a pure
    one: that is m times the noise. Where parts say what is done, the budget of the row is the one
    at which they, each for a person, cost what they cost a row at the person's budget: of Gaussian
    noise mu is m times smaller, so its scale m times larger, and no more than the account says is
    taken from a claim that spends less, or more, than it says.

    Notes
    -----
    **Safe side.** For a person `for_person` bounds each part given those before it. Parts compose
    adaptively, so their account bounds all of the release; the search ends where that account is
    at most the one of a row, never above. Gaussian parts may moreover say no more than that all
    together are mu-GDP for a row (a pass over batches states one part, as a row is in one of them):
    m steps from row to row are then m mu-GDP (Dong, Roth & Su 2022, Theorem 2.14).

    Raises
    ------
    CannotRun
        If there is no such budget, or the mechanism cannot run with it.
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
    """Return whether parts say what a release does, each on any tables."""
    tested = any(isinstance(part, ApproximatePart) for part in parts)
    return bool(parts) and not tested and mechanism.row_profile(row, budget) is None


def _same_cost(
    mechanism: Mechanism, row: Problem, budget: Budget, whole: Sequence[Part], m: int
) -> Budget:
    """Return the budget of a row at which a person's rows cost what a row does at the budget."""
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
        """Return the logarithm of a person's cost over the target, at most 0 on the safe side."""
        parts = [for_person(part, m) for part in mechanism.calibrate(row, at(epsilon)).parts]
        return math.log(max(cost(parts), 1e-300) / target)

    gaussian = accounting.composition_of(whole).gaussian
    if gaussian:  # where noise follows the exact profile, as most does, it is known at once
        exact = epsilon_of(budget.delta / m, target / m) * (1 - _CLOSE)
        if least <= exact <= budget.epsilon and -4 * _CLOSE < excess(exact) <= 0:
            return at(exact)
    low = max(budget.epsilon / m, least)
    while excess(low) > 0:
        if low == least:
            raise CannotRun(
                mechanism.text, f"{m:,} rows of a person leave one row less than {numeral(least)}"
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
    while excess(log_ratio) > 0:  # to the safe side, on which the low end is
        log_ratio, step = max(log_ratio * (1 - step), low), 2 * step
    return at(log_ratio)


def _of_person(spent: Spent, claim: Budget, rows: int) -> Spent:
    """Return what a row's cost is for a person, whatever the mechanism: `group_budget`."""
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
        total_variation=None if apart is None else min(1.0, rows * apart),  # triangle inequality
    )


_OF_ONE_ROW = (
    "calibrate", "spent", "row_profile", "verdict", "evidence", "limits", "advised_rank",
    "aims_at", "target", "releases",
)  # fmt: skip
"""The methods that an author writes of one row, and that `_for_person` lets be asked of more."""


def _for_person(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method written of one row, which answers for a person with several rows too."""
    before = 1 if name == "target" else 0  # of its arguments, the problem and the budget

    signature = inspect.signature(method)

    @wraps(method)
    def asked(self: Mechanism, *given: Any, **named: Any) -> Any:
        if named:
            given = signature.bind(self, *given, **named).args[1:]
        problem, budget = given[before : before + 2]
        if problem.together == 1:
            return method(self, *given)
        if name == "row_profile":  # that of a row is not that of a person
            return None
        try:
            one = _of_one_row(self, problem, budget)
        except CannotRun as error:
            if name in ("limits", "advised_rank"):
                return error.reason if name == "limits" else None
            raise
        if one.by_parts and name in ("spent", "verdict"):
            return method(self, *given)  # the parts of `calibrate` are those of a person
        row = one.problem, one.budget
        # a claim for a row, and no less, is what `group_budget` makes a person's of
        costs = (self.spent(*row),) if name in ("verdict", "evidence") else ()
        answer = method(self, *given[:before], *row, *costs)
        return _answer_for_person(self, name, answer, one, given)

    return asked


def _answer_for_person(
    mechanism: Mechanism, name: str, answer: Any, one: _OneRow, given: Sequence[Any]
) -> Any:
    """Return what a method's answer for one row is for a person."""
    if name == "calibrate":
        # what no part describes has none: a row's would be taken for a person's
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

    A class of your own states ``info``, `calibrate`, `release_many` and `evidence`, and is handed
    to the functions of `dpviz` as it is. It speaks of one row: where a person with several is
    protected the same methods are asked for the smaller budget that one row then has.

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
    """Whether its noise is shaped by the problem's allocation."""

    ours: ClassVar[bool]
    """Whether it is one of this package's, whose accounts the tests check by other code."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        package, _, module = cls.__module__.rpartition(".")
        cls.ours = package == __name__.rpartition(".")[0]
        # elsewhere many classes may share a file, and a notebook has no name
        cls.key = module if cls.ours else _WORD.sub("_", cls.__name__).lower()
        for name in vars(cls).keys() & set(_OF_ONE_ROW):
            setattr(cls, name, _for_person(name, vars(cls)[name]))

    @classmethod
    def flag_of(cls, name: str) -> str:
        """Return the command-line spelling of a parameter of this mechanism."""
        return f"--set {cls.key}.{name}"

    # What an author writes -------------------------------------------------

    @abstractmethod
    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the noise that meets the claim; rounds to the safe side."""

    @abstractmethod
    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return one release per draw; the only randomised method."""

    @abstractmethod
    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return one sentence: why the verdict is what it is."""

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return why this mechanism cannot run here, or None if it can."""
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
    def central(self) -> bool:
        """Whether one curator sees all rows, as who makes a real release does."""
        return True

    @property
    def quick(self) -> bool:
        """Whether 10,000 repetitions take seconds; searches leave slower mechanisms out."""
        return "d^4" not in self.info.complexity

    @property
    def quicker(self) -> Mechanism:
        """A quicker variant for searches, or the mechanism itself."""
        return self

    @property
    def needs_row_bound(self) -> bool:
        """Whether a public bound on the rows must be declared for its guarantee to mean anything.

        Not where every row's part in the release is bounded by the mechanism itself.
        """
        return True

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return the quantity that a release in this setting estimates."""
        return Aim.COMPONENTS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the moment of which a release without noise has the leading components.

        It is not private: exploring sets it beside A. By default ``data``; None where `aims_at`
        says nothing.
        """
        return data

    def releases(self, problem: Problem, budget: Budget) -> str:
        """Return what a release holds in this setting: ``matrix``, ``subspace`` or ``data``.

        By default ``info.release``. A mechanism that releases a matrix in some settings alone says
        ``subspace`` there, for that is what can be counted on.
        """
        return self.info.release

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the actual privacy loss of a release, or None if no account gives it."""
        calibration = self.calibrate(problem, budget)
        if not (calibration.parts or self.ours):
            return None  # ours release nothing of the data then; of others nobody knows it
        # at the delta that is claimed: a pure claim has none, whatever the budget has
        return accounting.spent(calibration.parts, self.claim(problem, budget) or budget)

    def row_profile(self, problem: Problem, budget: Budget) -> RowProfile | None:
        """Return the privacy profile of one row if the account's parts do not give it, or None."""
        return None

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return the verdict on the claim; by default the actual against the claimed loss."""
        claim = self.claim(problem, budget)
        if claim is None and not self.ours:
            return Verdict.BASELINE
        if claim is None or spent is None:
            if not self.ours:
                return Verdict.UNPROVEN  # nothing says what it spends
            raise NotImplementedError(f"{self.key} must state its verdict: it has no account")
        if spent.epsilon > claim.epsilon * (1 + _ALL_OF_IT):
            if not spent.exact:
                return Verdict.UNPROVEN  # a bound above the claim refutes nothing
            elsewhere = self.promised_elsewhere(problem, budget)
            return Verdict.REFUTED if elsewhere is None else Verdict.OUT_OF_SCOPE
        if spent.epsilon < claim.epsilon * (1 - _ALL_OF_IT):
            return Verdict.LOOSE
        return Verdict.HOLDS

    def promised_elsewhere(self, problem: Problem, budget: Budget) -> str | None:
        """Return the scope of the source's claim if it does not cover this setting.

        A phrase such as ``for zero-out neighbours``; None where the promise covers it.
        """
        return None

    @property
    def dominates_input(self) -> bool:
        """Whether the released matrix minus the exact one is always positive semi-definite."""
        return False

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return how strongly to recommend this mechanism by default; None for never.

        The strongest of those that can run is taken (`dpviz.simulation.defaults`), so ranks follow
        measured regret and not opinion: see docs/defaults.md.
        """
        return None

    @property
    def weighs(self) -> bool:
        """Whether components come from a weighted estimate of the released matrix."""
        return False

    @property
    def releases_variances(self) -> bool:
        """Whether all d noisy eigenvalues are released; by default if the matrix is."""
        return self.info.release == "matrix"

    def exact_loss(
        self,
        calibration: Calibration,
        delta: float,
        at_epsilons: tuple[float, ...],
        tables: Sequence[Tables],
    ) -> ExactLoss | None:
        """Return the exact loss between some neighbours on the ball, or None if unknown.

        By default what an exact account says. To be given where the law of the release says more
        than the account: audits then need no draw to refute a claim or to call it tight.

        Parameters
        ----------
        calibration : Calibration
            On a ball.
        delta : float
            Where epsilon is asked for.
        at_epsilons : tuple of float
            Where delta is asked for; the first is the claimed epsilon.
        tables : sequence of pairs of SecondMoment
            Neighbours to try where the loss depends on them.
        """
        account = self.spent(calibration.problem, calibration.budget)
        if account is None or not account.exact:
            return None  # a bound on the loss is nothing that neighbours have
        if calibration.parts:
            return losses.of_parts(
                calibration, delta, at_epsilons, data=self.info.release == "data"
            )
        return losses.of_profile(account, delta, at_epsilons)

    def log_ratio(
        self, calibration: Calibration, first: SecondMoment, second: SecondMoment
    ) -> LogRatio | None:
        """Return ln f1/f2 of a batch of releases as a function, or None; for audits.

        To be given where the density of the release is known and no named score of the audit
        equals the ratio; Gaussian, Laplace and Bingham releases need none.
        """
        return None

    def of_matrices(self, matrices: FloatArray, calibration: Calibration) -> Release:
        """Return the release of noisy matrices; by default with their top k eigenvectors.

        Parameters
        ----------
        matrices : ndarray of shape (size, d, d)
            Symmetric, and private already: what is done here is post-processing.
        calibration : Calibration
        """
        return Release.of_matrices(matrices, calibration.problem.k)

    def free_noise(self, calibration: Calibration) -> FreeNoise | None:
        """Return the limiting law of the noise on A for large d, or None.

        To be given where the release is A plus noise that is rotation-invariant
        or symmetric with i.i.d. entries; predictions and edges follow from it.
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
            One draw: private directions are those of its release.

        Returns
        -------
        ndarray of shape (d,) or None
            Of the released variance along each direction of the problem's
            allocation, in units of A.
        """
        return None

    def memory(self, problem: Problem, draws: int, *, thin: bool = False) -> float:
        """Return about the most bytes that a batch of releases takes, metrics included.

        The default is for d x d matrices: 6, and 6.5 for each draw, which is above what any
        mechanism here was seen to take (``tests/contract/test_memory.py`` holds them to it).

        Parameters
        ----------
        problem : Problem
        draws : int
        thin : bool
            Whether the second moment is kept as its root.
        """
        return 8.0 * problem.d**2 * (6 + 6.5 * draws)

    def diagnose(self, trace: FloatArray) -> dict[str, float]:
        """Return diagnostics of the chains in ``Release.trace``.

        Parameters
        ----------
        trace : ndarray of shape (trials, steps)
            In the order of trial numbers, from trial 0.
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

        To be given where the release is a table with a row for each person. It is the table whose
        second moment `release_many` draws, in law. It needs the memory of ``size`` tables: ask for
        one draw at a time.

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

    # What everybody calls --------------------------------------------------

    def claim(self, problem: Problem, budget: Budget) -> Budget | None:
        """Return the budget that the source claims to meet, or None if it claims none."""
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
        """Return the variance below which the noise hides a lone component, for large d, or None.

        In units of A; see `dpviz.sampling.limits.FreeNoise.visible_above`.
        """
        noise = self.free_noise(calibration)
        return None if noise is None else noise.visible_above

    @final
    def why_not(self, problem: Problem, budget: Budget, *, rows: bool = True) -> str | None:
        """Return why this mechanism cannot run, from the general rules or its own."""
        if self.info.guarantee == "approximate" and budget.delta == 0:
            return "it needs a delta above 0; got 0"
        if self.info.release == "subspace" and problem.k >= problem.d:
            return f"it releases a subspace and needs k from 1 to {problem.d - 1}; got {problem.k}"
        if self.needs_rows and not rows:
            return "it needs the rows themselves, and only their second moment is at hand"
        if self.needs_row_bound and not problem.domain.bounded:
            return "it needs a row bound, and none is declared"
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
            evidence = f"By its author's own account, which nothing here has checked: {evidence}"
        return Status(verdict, evidence)

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Facts that a release reveals and its guarantee does not cover."""
        return (f"how long a release by {self.text} takes",) if self.info.timed else ()

    @property
    def text(self) -> str:
        """The variant as text: the key and the parameters that were changed."""
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


for _name in _OF_ONE_ROW:  # what an author leaves as it is here
    setattr(Mechanism, _name, _for_person(_name, vars(Mechanism)[_name]))


@dataclass(frozen=True)
class AdditiveMechanism(Mechanism):
    """Release A + scale * N, N a standard noise that does not depend on the budget.

    The same stream gives the same N at every epsilon, so moving epsilon moves
    every point smoothly.
    """

    @abstractmethod
    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return symmetric noise of unit scale, shape (size, d, d)."""

    def diagonal_std(self, problem: Problem) -> float | None:
        """Return the standard deviation of w'Nw for any unit w, if it is the same for all."""
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
        """Return the releases from standard noise; one noise serves every budget.

        Parameters
        ----------
        data : SecondMoment
        calibration : Calibration
        noise : ndarray of shape (size, d, d)
            From `standard_noise` of the same problem.
        own : bool
            Whether the noise may be overwritten.
        """
        matrices = np.multiply(noise, calibration.scale, out=noise if own else None)
        matrices += data.A
        return self.of_matrices(matrices, calibration)


def released(
    mechanism: Mechanism, sees: SecondMoment, calibration: Calibration, draws: Draws
) -> Release:
    """Return the releases of a batch; all code releases through this function.

    The simulation calls it, and so does a mechanism that takes its directions from another one.

    Raises
    ------
    CannotRun
        Where code of another author fails: what it says may quote rows, so it is the cause alone.
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


# Do not refuse a frame for its author's rounding; a mistake is far larger.
_NEARLY = 1e-6


def _check_frames(mechanism: Mechanism, frames: FloatArray, problem: Problem) -> None:
    """Raise `CannotRun` where somebody else's mechanism releases no orthonormal columns."""
    wanted = (problem.d, problem.k)
    if frames.shape[1:] != wanted:
        raise CannotRun(mechanism.text, f"it must release {wanted}; got {frames.shape[1:]}")
    if not np.isfinite(frames).all():
        raise CannotRun(mechanism.text, "it must release finite numbers; got others")
    if np.abs(frames.transpose(0, 2, 1) @ frames - np.eye(problem.k)).max() > _NEARLY:
        raise CannotRun(mechanism.text, "it must release orthonormal columns; got others")


def claimed_against_spent(budget: Budget, spent: Spent) -> str:
    """Return a phrase that compares the actual epsilon with the claimed one."""
    at = f" at delta {numeral(spent.delta)}" if spent.delta > 0 else ""
    claimed = numeral(budget.epsilon, 3)
    return f"{spent.cost.words(3, 'epsilon')}{at} against {claimed} claimed"
