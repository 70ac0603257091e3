"""Private directions: their suppliers, their cost, and the budget left for the release.

The eigenvectors of a private matrix use a share of epsilon and delta. By default this matrix has
exact Gaussian noise, or, for a pure release, the difference of two Wisharts. Any mechanism that
releases a matrix or a subspace with a claim that holds may supply them instead. Its release is
public, so all later work on it is post-processing.
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

# Keys of the dictionary Calibration.values.
EPSILON_DIRECTIONS = "epsilon_directions"
DELTA_DIRECTIONS = "delta_directions"
SCALE_DIRECTIONS = "scale_directions"

DEFAULT_LABELS = {True: "Wishart difference", False: "exact Gaussian noise"}
"""The default supplier of directions, for a pure and for an approximate release."""


# --- who may supply ---------------------------------------------------------------------------


def why_never_supplied(mechanism: Mechanism) -> str | None:
    """Return why a mechanism can supply directions in no setting, or None."""
    if mechanism.info.guarantee == "none":
        return "it makes no claim"
    if mechanism.follows_allocation:
        return "it needs directions itself"
    if mechanism.needs_rows:
        return "it needs the rows themselves"
    if mechanism.info.release == "data":
        return "it releases data, not a matrix or a subspace"
    return None


def supplier_keys() -> tuple[str, ...]:
    """Return the mechanisms that can supply directions in some setting, in their order."""
    return tuple(key for key, cls in all_mechanisms().items() if why_never_supplied(cls()) is None)


def check_supplier(text: str) -> str:
    """Return the text of the directions and their supplier in canonical form.

    Raises
    ------
    InvalidSetting
        If the text is not valid, or its supplier can never supply directions.
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
        allowed = f"from a mechanism that can supply them ({mechanism.key} cannot: {reason})"
        raise InvalidSetting("directions", allowed, canonical, "--directions")
    return replace(allocation, supplier=mechanism.text).text[1]


@dataclass(frozen=True)
class Supply:
    """A mechanism that supplies directions, calibrated to its share of the budget.

    Attributes
    ----------
    mechanism : Mechanism
    calibration : Calibration
        Calibration for the supplier's own problem on the same table: k = d if it releases a matrix,
        so that it gives all directions, and else k, at most d - 1.
    spent : Spent
    status : Status
    """

    mechanism: Mechanism
    calibration: Calibration
    spent: Spent
    status: Status

    @property
    def count(self) -> int:
        """Number of directions that the supplier releases; others complete the basis."""
        return self.calibration.problem.k

    @property
    def parts(self) -> tuple[Part, ...]:
        """Privacy loss of the directions, for accounting."""
        if self.calibration.parts:
            return self.calibration.parts
        reason = f"{self.mechanism.info.label} for the directions"
        if self.spent.delta == 0:
            return (PurePart(self.spent.epsilon, reason),)
        return (ApproximatePart(self.spent.epsilon, self.spent.delta, reason),)


def own_problem(mechanism: Mechanism, problem: Problem) -> Problem:
    """Return the supplier's own problem on the table of ``problem``."""
    # A released matrix gives all d eigenvectors. A released subspace is completed to a basis later.
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
    """Return the supply for the supplier's own problem, or None if its claim does not hold."""
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
        The share of the budget that the directions use; None if they use none.
    rest : Budget
        The remaining budget; with the directions' budget it adds up to the whole.
    scale : float
        Noise scale of the supplier.
    parts : tuple of Part
        Parts for accounting; empty if directions need no budget.
    supply : Supply or None
        The named supplier; None means the default.
    pure : bool
        Whether the whole release must be pure.
    """

    bought: Budget | None
    rest: Budget
    scale: float = 0.0
    parts: tuple[Part, ...] = ()
    supply: Supply | None = None
    pure: bool = False

    @property
    def values(self) -> dict[str, float]:
        """The directions' budget by name, for `Calibration.values`; empty if they need none."""
        if self.bought is None:
            return {}
        return {
            EPSILON_DIRECTIONS: self.bought.epsilon,
            DELTA_DIRECTIONS: self.bought.delta,
            SCALE_DIRECTIONS: self.scale,
        }

    @property
    def supplier(self) -> str:
        """Display name of the supplier of the directions."""
        return DEFAULT_LABELS[self.pure] if self.supply is None else self.supply.mechanism.label

    @property
    def epsilon_left(self) -> float:
        """The budget of a pure release, rounded down: the whole minus the directions' loss."""
        if self.supply is None or self.bought is None:
            return self.rest.epsilon / SAFE  # The factor allows for rounding when parts are added.
        whole = self.bought.epsilon + self.rest.epsilon
        return (whole - self.supply.spent.epsilon) / SAFE


def purchase(problem: Problem, budget: Budget, *, pure: bool) -> Purchase:
    """Return the privacy loss and the budget of the directions of the problem's allocation.

    Parameters
    ----------
    problem : Problem
    budget : Budget
        Budget of directions and release together.
    pure : bool
        Whether the whole release must be pure; directions then use no delta.
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
            raise RuntimeError(f"{mechanism.text} supplies no directions: call why_not_bought")
        return Purchase(bought, rest, supply.calibration.scale, supply.parts, supply, pure)
    if pure:
        sensitivity = nuclear(problem)
        scale = SAFE * sensitivity / (2 * bought.epsilon)
        part: Part = PurePart(sensitivity / (2 * scale), "matrix Laplace for the directions")
    else:
        sensitivity = frobenius(problem)
        scale = SAFE * sensitivity / mu_of(bought)
        part = GaussianPart(sensitivity, scale, attained=False)  # Only directions are released.
    return Purchase(bought, rest, scale, (part,), pure=pure)


def _bought(problem: Problem, budget: Budget, *, pure: bool) -> Budget:
    """Return the budget of the directions; a pure supplier uses no delta."""
    share, supplier = problem.allocation.share, problem.allocation.supplier
    free_of_delta = pure or (supplier and parse_variant(supplier).info.guarantee == "pure")
    return Budget(share * budget.epsilon, 0.0 if free_of_delta else share * budget.delta)


def why_not_bought(problem: Problem, budget: Budget, *, pure: bool) -> str | None:
    """Return why the private directions of an allocation are not available, or None."""
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
        reason = (
            "a pure mechanism takes directions from a pure mechanism only, and this one needs delta"
        )
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
    QR). These columns have no particular order.
    """
    q = frames.shape[-1]
    bases = np.linalg.qr(frames, mode="complete").Q
    bases[..., :q] = frames  # QR may have changed the signs of these columns, so restore them.
    return bases


def variances_along(release: Release, count: int) -> FloatArray | None:
    """Return the released variance along each direction of a basis, or None.

    The remaining directions are an arbitrary basis, so each direction gets the mean of the
    remaining variances.

    Parameters
    ----------
    release : Release
    count : int
        Number of directions that were released.
    """
    if release.eigenvalues is not None:
        return release.eigenvalues
    if release.variances is None:
        return None
    variances = release.variances.copy()
    variances[:, count:] = variances[:, count:].mean(axis=1, keepdims=True)
    return variances
