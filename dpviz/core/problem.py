"""Public facts that calibration may use: shapes, relation, domain, budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from numbers import Real

from dpviz.core.allocation import UNIFORM, Allocation
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral

EPSILON_RANGE = (1e-4, 1e6)

LEAST_DELTA = 1e-100
"""Least delta above 0; the square or logarithm of a smaller delta is not an ordinary number."""

DELTA_ALLOWED = f"a number from 0 to below 1 (0, or at least {numeral(LEAST_DELTA, 6)})"
"""Allowed values of delta, in words."""


def check_delta(value: float) -> float:
    """Return the delta, or raise InvalidSetting if it is above 0 and too small."""
    if 0 < value < LEAST_DELTA:
        raise InvalidSetting("delta", DELTA_ALLOWED, value, "--delta")
    return value


class Relation(StrEnum):
    """The neighbouring relation of two tables; n is public under both relations.

    ``REPLACE``: one row changes to any other legal row. ``ZERO_OUT``: one row becomes the zero row;
    the number n of rows stays public.
    """

    REPLACE = "replace"
    ZERO_OUT = "zero-out"


class Unit(StrEnum):
    """The unit of protection: a row, or a person with all rows of that person."""

    ROW = "row"
    PERSON = "person"


def protects(rows_a_person: int | None) -> str:
    """Return the words after "this" in a sentence on the unit of protection."""
    if rows_a_person is None:
        return "protects one ROW; we do not know how many a person has"
    if rows_a_person == 1:
        return "protects a person, who has one row"
    return f"protects a person with all of at most {rows_a_person:,} rows"


@dataclass(frozen=True)
class Budget:
    """Privacy budget (epsilon, delta): epsilon > 0, 0 <= delta < 1."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        low, high = EPSILON_RANGE
        if not _is_number(self.epsilon) or not (low <= self.epsilon <= high):
            raise InvalidSetting(
                "epsilon",
                f"a number from {numeral(low, 6)} to {numeral(high, 6)}",
                self.epsilon,
                "--epsilon",
            )
        if not _is_number(self.delta) or not (0 <= self.delta < 1):
            raise InvalidSetting("delta", "a number from 0 to below 1", self.delta, "--delta")


def group_budget(budget: Budget, rows: int) -> Budget:
    """Return the budget for a person with ``rows`` rows that follows from one row's budget.

    The inverse function is `budget_of_one_row`.

    Parameters
    ----------
    budget : Budget
    rows : int
        Maximum number of rows of one person, at least 1.

    Returns
    -------
    Budget
        (m epsilon, delta (e^(m epsilon) - 1)/(e^epsilon - 1)): Vadhan, The Complexity of
        Differential Privacy (2017), Lemma 2.2. The exact profile of Gaussian noise is sharper.
    """
    # Limit the exponent: e^710 overflows, but delta is already 1 long before e^700.
    grown = math.expm1(min(rows * budget.epsilon, 700.0)) / math.expm1(budget.epsilon)
    worst = math.nextafter(1.0, 0.0)
    return Budget(min(rows * budget.epsilon, EPSILON_RANGE[1]), min(budget.delta * grown, worst))


def budget_of_one_row(budget: Budget, rows: int) -> Budget:
    """Return the budget for one row whose `group_budget` is at most the budget of a person.

    Parameters
    ----------
    budget : Budget
    rows : int
        Maximum number of rows of one person, at least 1.

    Raises
    ------
    InvalidSetting
        If one row would have less than the smallest epsilon.
    """
    least, whole = EPSILON_RANGE[0], budget.epsilon
    if budget.delta > 0:  # A larger epsilon would leave a row with too small a delta.
        whole = min(whole, math.log(budget.delta / LEAST_DELTA))
    epsilon = whole / rows
    while rows * epsilon > whole:
        epsilon = math.nextafter(epsilon, 0.0)
    if epsilon < least:
        raise InvalidSetting(
            "epsilon",
            f"at least {numeral(rows * least, 6)} if a person has {rows:,} rows",
            budget.epsilon,
            "--epsilon",
        )
    # Compute (e^a - 1)/(e^(m a) - 1) without e^(m a), which may overflow, and round down.
    share = math.exp(epsilon - whole) * math.expm1(-epsilon) / math.expm1(-whole)
    return Budget(epsilon, budget.delta * share * (1 - 1e-12))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class Domain:
    """The set that contains every prepared row, after scaling.

    A ball is the Euclidean ball of radius 1. A box is the product of [-half_widths[j],
    half_widths[j]], with every half width 1 after the public bounds have been mapped. Without a
    declared bound rows may be anywhere.

    Attributes
    ----------
    kind : {"ball", "box", "unbounded"}
    d : int
        Number of features.
    half_widths : tuple of float
        For a box, one positive half width per feature; infinite without a bound; empty for a ball.
    """

    kind: str
    d: int
    half_widths: tuple[float, ...] = ()

    @classmethod
    def ball(cls, d: int) -> Domain:
        """Return the unit ball in d dimensions."""
        return cls("ball", d)

    @classmethod
    def box(cls, d: int) -> Domain:
        """Return the cube [-1, 1]^d."""
        return cls("box", d, (1.0,) * d)

    @classmethod
    def unbounded(cls, d: int) -> Domain:
        """Return all of the d-dimensional space: no bound is declared."""
        # Without bounds, half widths are infinite, and so is every sensitivity that uses them.
        return cls("unbounded", d, (math.inf,) * d)

    @property
    def bounded(self) -> bool:
        """Whether a bound on the rows is declared."""
        return self.kind != "unbounded"

    @cached_property
    def radius(self) -> float:
        """Radius of the smallest centred ball that holds the domain.

        The radius is 1 for the ball, sqrt(d) for the cube, and infinite without a bound.
        """
        if self.kind == "ball":
            return 1.0
        return math.sqrt(sum(c * c for c in self.half_widths))


@dataclass(frozen=True)
class Problem:
    """Everything that calibration may use: public shapes and settings.

    Attributes
    ----------
    n, d, k : int
        Numbers of rows, features and released components; 1 <= k <= d, d >= 2, n >= 2.
    relation : Relation
    domain : Domain
    allocation : Allocation
        Allocation of the precision, for mechanisms with shaped noise.
    rows_a_person : int or None
        Maximum number of rows of one person; neighbours may differ in all of them. None protects
        one row, because the number of rows a person is unknown.
    """

    n: int
    d: int
    k: int
    relation: Relation
    domain: Domain
    allocation: Allocation = UNIFORM
    rows_a_person: int | None = None

    def __post_init__(self) -> None:
        if self.n < 2:
            raise InvalidSetting("rows", "at least 2", self.n)
        if self.d < 2:
            raise InvalidSetting("features", "at least 2", self.d)
        if not (1 <= self.k <= self.d):
            raise InvalidSetting("k", f"a whole number from 1 to {self.d}", self.k, "--k")
        if self.domain.d != self.d:
            raise InvalidSetting("domain", f"of dimension {self.d}", self.domain.d)
        self.allocation.check_dimension(self.d)
        if self.rows_a_person is not None and self.rows_a_person < 1:
            raise InvalidSetting(
                "rows_a_person", "at least 1", self.rows_a_person, "--rows-a-person"
            )

    @property
    def unit(self) -> Unit:
        """The unit of protection."""
        return Unit.ROW if self.rows_a_person is None else Unit.PERSON

    @property
    def together(self) -> int:
        """Number of rows in which neighbours may differ: all rows of one unit."""
        return self.rows_a_person or 1


def default_delta(n: int) -> float:
    """Return min(1e-6, 1/n^2) rounded down to one significant digit.

    A delta alone does not protect: publishing every row with probability delta is (0,
    delta)-private and exposes somebody with probability `exposure`. At delta = 1/n^2 this
    probability is at most 1/n.
    """
    squared = n * n
    if squared <= 10**6:
        return 1e-6
    # Count digits of an integer: for n = 10^k, a logarithm could round to the wrong side.
    exponent = len(str(squared - 1))  # This is the least exponent with 10^exponent >= n^2.
    return float(f"{10**exponent // squared}e-{exponent}")


def exposure(delta: float, n: int) -> float:
    """Return the chance that at least one of n rows is published, each with probability delta."""
    return -math.expm1(n * math.log1p(-delta))
