"""Who supplies private directions, what they cost, and what is left for the release.

The eigenvectors of a private matrix use a share of epsilon and delta. By default that matrix has
exact Gaussian noise, or, for a pure release, the difference of two Wisharts. Any mechanism that
releases a matrix or a subspace with a claim that holds may supply them instead. That release is
public, so everything done with it is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import mu_of
from dpviz.accounting.sensitivity import frobenius, nuclear
from dpviz.core.allocation import DIRECTIONS_ALLOWED, UNIFORM, parse_allocation
from dpviz.core.allocation import check_directions as canonical_directions
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.parts import ApproximatePart, GaussianPart, Part, PurePart
from dpviz.core.problem import EPSILON_RANGE, Budget, Problem
from dpviz.core.release import Calibration, Release, Status
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant

SAFE = 1 + 64 * float(np.finfo(np.float64).eps)

# Names in Calibration.values.
EPSILON_DIRECTIONS = "epsilon_directions"
DELTA_DIRECTIONS = "delta_directions"
SCALE_DIRECTIONS = "scale_directions"

DEFAULT_LABELS = {True: "Wishart difference", False: "exact Gaussian noise"}
"""The default supplier of directions, by whether the whole release is pure."""


# --- who may supply ---------------------------------------------------------------------------


def why_never_supplied(mechanism: Mechanism) -> str | None:
    """Return why a mechanism can supply directions in no setting, or None."""
    if mechanism.info.guarantee == "none":
        return "it makes no claim"
    if mechanism.follows_allocation:
        return "it would need directions itself"
    if mechanism.needs_rows:
        return "it needs the rows themselves"
    if mechanism.info.release == "data":
        return "it releases data, neither a matrix nor a subspace"
    return None


def supplier_keys() -> tuple[str, ...]:
    """Return the mechanisms that can supply directions in some setting, in their order."""
    return tuple(key for key, cls in all_mechanisms().items() if why_never_supplied(cls()) is None)


def check_supplier(text: str) -> str:
    """Return the text of the directions in canonical form, its supplier too.

    Raises
    ------
    InvalidSetting
        If it is not legal, or names what can never supply directions.
    """
    canonical = canonical_directions(text)
    allocation = parse_allocation("uniform", canonical)
    if not allocation.supplier:
        return canonical
    if allocation.supplier.partition("[")[0] not in all_mechanisms():
        raise InvalidSetting("directions", DIRECTIONS_ALLOWED, canonical, "--directions")
    mechanism = parse_variant(allocation.supplier)
    reason = why_never_supplied(mechanism)
    if reason is not None:
        allowed = f"bought from a mechanism that can supply them ({mechanism.key} cannot: {reason})"
        raise InvalidSetting("directions", allowed, canonical, "--directions")
    return replace(allocation, supplier=mechanism.text).text[1]


@dataclass(frozen=True)
class Supply:
    """A mechanism that supplies directions, calibrated to its share of the budget.

    Attributes
    ----------
    mechanism : Mechanism
    calibration : Calibration
        Of its own problem: the same table with k = d where it releases a
        matrix, so that all directions come out, and else k, or d - 1 at most.
    spent : Spent
    status : Status
    """

    mechanism: Mechanism
    calibration: Calibration
    spent: Spent
    status: Status

    @property
    def count(self) -> int:
        """How many directions it releases; the others complete the basis."""
        return self.calibration.problem.k

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its cost, for the account of the whole release."""
        if self.calibration.parts:
            return self.calibration.parts
        reason = f"{self.mechanism.info.label} for the directions"
        if self.spent.delta == 0:
            return (PurePart(self.spent.epsilon, reason),)
        return (ApproximatePart(self.spent.epsilon, self.spent.delta, reason),)


def own_problem(mechanism: Mechanism, problem: Problem) -> Problem:
    """Return the problem that a supplier solves on the table of another."""
    # a matrix has all of its eigenvectors; a subspace is completed to a basis afterwards
    whole = mechanism.info.release == "matrix"
    k = problem.d if whole else min(problem.k, problem.d - 1)
    return replace(problem, k=k, allocation=UNIFORM)


def cannot_supply(mechanism: Mechanism, problem: Problem, budget: Budget) -> str | None:
    """Return why a mechanism cannot supply directions of a table at its budget, or None."""
    reason = why_never_supplied(mechanism)
    if reason is not None:
        return reason
    supplier_problem = own_problem(mechanism, problem)
    reason = mechanism.why_not(supplier_problem, budget, rows=False)
    if reason is not None:
        return reason
    supply = _supply(mechanism.text, supplier_problem, budget)
    return "its claim does not hold here" if supply is None else None


@lru_cache(maxsize=512)
def _supply(text: str, problem: Problem, budget: Budget) -> Supply | None:
    """Return a supply by its own problem, or None where its claim does not hold."""
    mechanism = parse_variant(text)
    spent = mechanism.spent(problem, budget)
    status = mechanism.judged(problem, budget, spent)
    if spent is None or status.verdict.fails:
        return None
    return Supply(mechanism, mechanism.calibrate(problem, budget), spent, status)


# --- what directions cost ---------------------------------------------------------------------


@dataclass(frozen=True)
class Purchase:
    """The budget of the directions, and the budget that is left for the release.

    Attributes
    ----------
    bought : Budget or None
        The share spent on directions; None if they are free.
    rest : Budget
        Simple addition: both budgets sum to the whole.
    scale : float
        Noise scale of what supplies the directions.
    parts : tuple of Part
        For accounting; empty if directions are free.
    supply : Supply or None
        Who supplies them, where somebody is named.
    pure : bool
        Whether the whole is to be pure.
    """

    bought: Budget | None
    rest: Budget
    scale: float = 0.0
    parts: tuple[Part, ...] = ()
    supply: Supply | None = None
    pure: bool = False

    @property
    def values(self) -> dict[str, float]:
        """The spend by name, for `Calibration.values`; empty if directions are free."""
        if self.bought is None:
            return {}
        return {
            EPSILON_DIRECTIONS: self.bought.epsilon,
            DELTA_DIRECTIONS: self.bought.delta,
            SCALE_DIRECTIONS: self.scale,
        }

    @property
    def supplier(self) -> str:
        """Display name of what supplies the directions."""
        return DEFAULT_LABELS[self.pure] if self.supply is None else self.supply.mechanism.label

    @property
    def epsilon_left(self) -> float:
        """The budget of a pure release, rounded down: the whole minus the directions' loss."""
        if self.supply is None or self.bought is None:
            return self.rest.epsilon / SAFE  # parts add up with roundings of their own
        whole = self.bought.epsilon + self.rest.epsilon
        return (whole - self.supply.spent.epsilon) / SAFE


def purchase(problem: Problem, budget: Budget, *, pure: bool) -> Purchase:
    """Return what the directions of the problem's allocation cost.

    Parameters
    ----------
    problem : Problem
    budget : Budget
        Of directions and release together.
    pure : bool
        Whether the whole is to be pure: directions then cost no delta.
    """
    allocation = problem.allocation
    if allocation.directions != "private":
        return Purchase(None, budget, pure=pure)
    bought = _bought(problem, budget, pure=pure)
    rest = Budget(budget.epsilon - bought.epsilon, 0.0 if pure else budget.delta - bought.delta)
    if allocation.supplier:
        mechanism = parse_variant(allocation.supplier)
        supply = _supply(mechanism.text, own_problem(mechanism, problem), bought)
        if supply is None:
            raise RuntimeError(f"{mechanism.text} cannot supply; ask why_not_bought first")
        return Purchase(bought, rest, supply.calibration.scale, supply.parts, supply, pure)
    if pure:
        sensitivity = nuclear(problem)
        scale = SAFE * sensitivity / (2 * bought.epsilon)
        part: Part = PurePart(sensitivity / (2 * scale), "matrix Laplace for the directions")
    else:
        sensitivity = frobenius(problem)
        scale = SAFE * sensitivity / mu_of(bought)
        part = GaussianPart(sensitivity, scale, attained=False)  # directions alone come out
    return Purchase(bought, rest, scale, (part,), pure=pure)


def _bought(problem: Problem, budget: Budget, *, pure: bool) -> Budget:
    """Return the budget of the directions; a pure supplier leaves its delta."""
    share, supplier = problem.allocation.share, problem.allocation.supplier
    free_of_delta = pure or (supplier and parse_variant(supplier).info.guarantee == "pure")
    return Budget(share * budget.epsilon, 0.0 if free_of_delta else share * budget.delta)


def why_not_bought(problem: Problem, budget: Budget, *, pure: bool) -> str | None:
    """Return why the private directions of an allocation cannot be bought, or None."""
    allocation = problem.allocation
    least = min(allocation.share, 1 - allocation.share) * budget.epsilon
    if least < EPSILON_RANGE[0]:
        return (
            f"private directions split epsilon, and each part must be at least "
            f"{numeral(EPSILON_RANGE[0], 6)}; got {numeral(least, 3)}"
        )
    if not allocation.supplier:
        return None
    mechanism = parse_variant(allocation.supplier)
    reason = why_never_supplied(mechanism)
    if reason is None and pure and mechanism.info.guarantee != "pure":
        reason = "a pure mechanism buys from pure ones only, and this one needs delta"
    if reason is None:
        reason = cannot_supply(mechanism, problem, _bought(problem, budget, pure=pure))
    if reason is not None:
        return f"{mechanism.text} cannot supply its directions: {reason}"
    if allocation.needs_spectrum and not mechanism.releases_variances:
        return (
            "max-pnr takes its shares from the variances along the directions, so "
            "they must come from a mechanism that releases a matrix, or variances beside its "
            f"subspace; got {mechanism.text}"
        )
    return None


# --- the directions themselves ----------------------------------------------------------------


def completed(frames: FloatArray) -> FloatArray:
    """Return orthonormal bases (m, d, d) whose first columns are given frames (m, d, q).

    The other columns follow from the frame alone: reflections of the standard basis (a Householder
    QR). They have no particular order.
    """
    q = frames.shape[-1]
    bases = np.linalg.qr(frames, mode="complete").Q
    bases[..., :q] = frames  # QR may have turned their signs
    return bases


def variances_along(release: Release, count: int) -> FloatArray | None:
    """Return the released variance along each direction of a basis, or None.

    Beyond the released directions the others are any basis of what is left, so
    each gets the mean of the variances left.

    Parameters
    ----------
    release : Release
    count : int
        How many directions were released.
    """
    if release.eigenvalues is not None:
        return release.eigenvalues
    if release.variances is None:
        return None
    variances = release.variances.copy()
    variances[:, count:] = variances[:, count:].mean(axis=1, keepdims=True)
    return variances
