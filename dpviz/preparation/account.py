"""A mechanism after a private preparation, with one privacy accounting for both.

Every step is dominated by a known loss (`dpviz.accounting.composition`), and so is a release that
states its parts. For Wishart noise and Gaussian sketches the exact profile of one row is known; for
any other release, only its claim. Dominating losses compose adaptively, so losses are composed
instead of added where possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import scipy

from dpviz.accounting import accounting
from dpviz.accounting.accounting import Composition, Spent
from dpviz.accounting.composition import PrivacyLoss, composed
from dpviz.accounting.profiles import ProfileLoss
from dpviz.core.errors import CannotRun
from dpviz.core.number_text import numeral
from dpviz.core.parts import ApproximatePart, GaussianPart, Part, PurePart
from dpviz.core.problem import EPSILON_RANGE, Budget, Problem
from dpviz.core.release import Status, Verdict
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms._base import claimed_against_spent
from dpviz.preparation.steps import COUNT, Preparation, PrivateSteps, preparation

_TOO_MUCH = 50.0  # Log ratio that stands for a mechanism that cannot run or has no epsilon.
_ALL_OF_IT = 1e-6  # Relative excess over the claim up to which a loss counts as equal to it.
_MARGIN = 1e-8  # Tolerance of delta, because a composed epsilon is accurate to ten digits.
_CLOSE = 1e-8  # Tolerance in ln epsilon of the search for the mechanism's own budget.


@dataclass(frozen=True)
class Composed:
    """Parts of a composition, and losses that no part describes.

    Attributes
    ----------
    parts : tuple of Part
        The parts in the order in which they run.
    known : tuple of ProfileLoss
    source : str
        Source of the known losses, in a phrase.
    """

    parts: tuple[Part, ...]
    known: tuple[ProfileLoss, ...] = ()
    source: str = ""

    def spent(self, budget: Budget, releases: int = 1) -> Spent:
        """Return the least known privacy loss of all parts together, ``releases`` times."""
        if not self.known:
            return accounting.spent(self.parts, budget, releases)
        loss = self.loss(releases)
        beside = " with the preparation" if self.parts else ""
        return Spent(
            epsilon=loss.epsilon(budget.delta),
            delta=budget.delta,
            exact=False,
            source=f"{self.source}, composed numerically{beside}",
            delta_at_epsilon=loss.delta(budget.epsilon),
            total_variation=loss.delta(0.0),
        )

    def loss(self, releases: int = 1) -> Composition | ProfileLoss | PrivacyLoss:
        """Return the loss of ``releases`` releases: delta at an epsilon, or epsilon at a delta."""
        if not self.known:
            return accounting.composition_of(self.parts, releases)
        if not self.parts and len(self.known) == 1:
            longer = self.known[0].repeated(releases)
            if longer is not None:
                return longer
        return composed(self.parts, releases, self.known)


def accounted(mechanism: Mechanism, problem: Problem, budget: Budget) -> Composed | None:
    """Return the composition of one release, or None if no epsilon bounds it.

    Raises
    ------
    TypeError
        If the mechanism has a privacy loss but states neither parts nor a profile: an empty sum
        would count the mechanism, and every repetition, as free.
    """
    spent = mechanism.spent(problem, budget)
    if spent is None or not math.isfinite(spent.epsilon):
        return None
    loss = _known_loss(mechanism, problem, budget)
    if loss is not None:
        return Composed((), (loss,), spent.source)
    parts = mechanism.calibrate(problem, budget).parts
    if not parts and problem.together > 1:  # For several rows only epsilon and delta are known.
        return Composed((as_part(spent),))
    if not parts and (spent.epsilon > 0 or spent.total_variation):
        raise TypeError(
            f"{mechanism.text} has privacy loss epsilon {numeral(spent.epsilon, 3)}, but gives no "
            "account of it: define `parts` in its calibration, or row_profile"
        )
    return Composed(parts)


def as_part(spent: Spent) -> Part:
    """Return a part known only by its privacy loss."""
    if spent.delta == 0:
        return PurePart(spent.epsilon, spent.source)
    return ApproximatePart(spent.epsilon, spent.delta, spent.source)


def is_numeric(mechanism: Mechanism, problem: Problem, budget: Budget) -> bool:
    """Return whether a mechanism's loss and a Gaussian or pure step are composed numerically."""
    composition = accounted(mechanism, problem, budget)
    if composition is None or not composition.parts:
        return composition is not None and bool(composition.known)
    normal = {isinstance(part, GaussianPart) for part in composition.parts}
    return bool(composition.known) or len(normal) > 1


@dataclass(frozen=True)
class PreparedMechanism:
    """A mechanism after a private preparation, with one privacy accounting for both.

    Attributes
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
        Joint budget.
    preparation : Preparation
    rest : Budget
        Budget that the mechanism is calibrated to.
    after : tuple of Part
        Parts that use the same budget after the release, such as a published chart's parts.
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    preparation: Preparation
    rest: Budget
    after: tuple[Part, ...] = ()

    @property
    def composed(self) -> Composed | None:
        """The composition of preparation and release; None if no epsilon bounds it."""
        composition = accounted(self.mechanism, self.problem, self.rest)
        return composition and replace(
            composition, parts=(*self.preparation.parts, *composition.parts, *self.after)
        )

    @property
    def spent(self) -> Spent | None:
        """The actual privacy loss of preparation and release together.

        None means that no epsilon describes the release.
        """
        if not self.preparation.parts and not self.after:
            return self.mechanism.spent(self.problem, self.rest)
        composed = self.composed
        return None if composed is None else composed.spent(self.budget)

    @property
    def claimed(self) -> Budget | None:
        """The budget that preparation and release claim to meet together."""
        return self.mechanism.claim(self.problem, self.budget)

    def status(self, spent: Spent | None) -> Status:
        """Return the verdict on the joint claim, given the value of `spent`.

        If the mechanism's own claim on its remaining budget fails or is approximate, the joint
        verdict says the same.
        """
        of_mechanism = self.mechanism.status(self.problem, self.rest)
        claimed = self.claimed
        if claimed is None or spent is None or of_mechanism.verdict.fails:
            return of_mechanism
        if spent.epsilon > claimed.epsilon * (1 + _ALL_OF_IT):
            verdict = Verdict.UNPROVEN
        elif of_mechanism.verdict is Verdict.APPROXIMATE:
            verdict = Verdict.APPROXIMATE
        else:
            loose = spent.epsilon < claimed.epsilon * (1 - _ALL_OF_IT)
            verdict = Verdict.LOOSE if loose else Verdict.HOLDS
        comparison = claimed_against_spent(claimed, spent)
        steps = ", ".join(self.preparation.private.steps)
        paid = [f"Preparation ({steps}) and release"] if steps else ["Directions"]
        paid += ["picture"] if self.after else []
        return Status(
            verdict, f"{' and '.join(paid)} together: {comparison}. {of_mechanism.evidence}"
        )


def is_pure(mechanism: Mechanism, problem: Problem, budget: Budget) -> bool:
    """Return whether additional steps must be pure, because the release's claim is pure."""
    claim = mechanism.claim(problem, budget)
    return budget.delta == 0 or (claim is not None and claim.delta == 0)


def prepared_mechanism(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    private: PrivateSteps,
    after: tuple[Part, ...] = (),
) -> PreparedMechanism:
    """Return the mechanism calibrated to the budget that the preparation leaves.

    Parameters
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
        Joint budget.
    private : PrivateSteps
    after : tuple of Part
        Parts that use the same budget after the release.

    Raises
    ------
    CannotRun
        If no usable budget remains, or a noisy count does not suit the mechanism.
    """
    return _prepared_mechanism(mechanism, problem, budget, private, after)


@lru_cache(maxsize=4096)
def _prepared_mechanism(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    private: PrivateSteps,
    after: tuple[Part, ...],
) -> PreparedMechanism:
    made, whole = _bought(mechanism, problem, budget, private)
    if not (made.parts or after):
        return PreparedMechanism(mechanism, problem, budget, made, budget)
    if mechanism.claim(problem, budget) is None:
        share = (1 - private.total) * budget.epsilon
        rest = Budget(max(share, EPSILON_RANGE[0]), whole.delta)
    else:
        rest = _what_is_left(mechanism, problem, whole, (*made.parts, *after))
    return PreparedMechanism(mechanism, problem, budget, made, rest, after)


def leaves_nothing(
    mechanism: Mechanism, problem: Problem, budget: Budget, private: PrivateSteps
) -> bool:
    """Return whether the preparation uses up the budget, so that `prepared_mechanism` raises."""
    try:
        made, whole = _bought(mechanism, problem, budget, private)
        if made.parts and mechanism.claim(problem, budget) is not None:
            least = Budget(EPSILON_RANGE[0], _own_delta(mechanism, problem, whole))
            if _excess(mechanism, problem, made.parts, least, whole) > 0:
                # Some mechanisms cannot run at the least epsilon, so the real budget is tried.
                prepared_mechanism(mechanism, problem, budget, private)
    except CannotRun:
        return True
    return False


def _bought(
    mechanism: Mechanism, problem: Problem, budget: Budget, private: PrivateSteps
) -> tuple[Preparation, Budget]:
    """Return the preparation, and the whole budget: without delta if the mechanism is pure."""
    if COUNT in private.steps and mechanism.info.release == "data":
        raise CannotRun(
            mechanism.text, "the release contains every row, so a private count hides nothing"
        )
    pure, d = is_pure(mechanism, problem, budget), private.features or problem.d
    rows = problem.together
    made = preparation(private, problem.n, d, problem.relation, budget, pure=pure, rows=rows)
    return made, Budget(budget.epsilon, 0.0 if pure else budget.delta)


def _own_delta(mechanism: Mechanism, problem: Problem, whole: Budget) -> float:
    """Return the delta of the whole budget that a mechanism may use."""
    if whole.delta > 0 and mechanism.row_profile(problem, whole) is None:
        # If only the mechanism's claim is known, its delta adds to the delta of the preparation.
        return whole.delta / (1 if _own_parts(mechanism, problem, whole) else 2)
    return whole.delta


def _what_is_left(
    mechanism: Mechanism, problem: Problem, whole: Budget, beside: tuple[Part, ...]
) -> Budget:
    """Return the largest budget of a mechanism that meets the whole budget with all other parts.

    Raises
    ------
    CannotRun
        If no such budget exists.
    """
    own_delta = _own_delta(mechanism, problem, whole)

    @cache  # Results are cached, because the search evaluates its root again.
    def excess(epsilon: float) -> float:
        """Return the log of total loss over budget, which is at most 0 if the budget is met."""
        return _excess(mechanism, problem, beside, Budget(epsilon, own_delta), whole)

    low = high = whole.epsilon
    while excess(low) > 0:
        if low == EPSILON_RANGE[0]:
            raise CannotRun(
                mechanism.text,
                "the preparation leaves too little budget: lower its shares, or raise epsilon",
            )
        low, high = max(low / 2, EPSILON_RANGE[0]), low
    if low == whole.epsilon:
        return Budget(low, own_delta)
    root = math.exp(
        scipy.optimize.brentq(
            lambda log: excess(math.exp(log)), math.log(low), math.log(high), xtol=_CLOSE
        )
    )
    step = _CLOSE
    while excess(max(root, low)) > 0:  # Round down to the safe side. The low end meets the budget.
        root *= 1 - step
        step = min(2 * step, 0.5)
    return Budget(max(root, low), own_delta)


def _excess(
    mechanism: Mechanism, problem: Problem, beside: tuple[Part, ...], rest: Budget, whole: Budget
) -> float:
    """Return the log of the total loss with a mechanism over the whole budget; capped at 50."""
    if mechanism.why_not(problem, rest) is not None:
        return _TOO_MUCH
    together = _claimed_composition(mechanism, problem, beside, rest)
    if together is None:
        return _TOO_MUCH
    if whole.delta > 0:
        cost, allowed = together.loss().delta(whole.epsilon), whole.delta * (1 - _MARGIN)
    else:
        cost, allowed = together.spent(whole).epsilon, whole.epsilon
    if cost <= allowed:
        return max(math.log(max(cost, 1e-300) / allowed), -_TOO_MUCH)
    # If the budget is not met, the result is above 0, so that the search ends on the safe side.
    return min(max(math.log(cost / allowed), 1e-15), _TOO_MUCH)


def _own_parts(mechanism: Mechanism, problem: Problem, budget: Budget) -> tuple[Part, ...]:
    """Return the parts of a mechanism whose claim equals its privacy loss, else none."""
    parts = mechanism.calibrate(problem, budget).parts
    if not parts:
        return ()
    return parts if mechanism.status(problem, budget).verdict is Verdict.HOLDS else ()


def _known_loss(mechanism: Mechanism, problem: Problem, rest: Budget) -> ProfileLoss | None:
    """Return the loss of a mechanism whose row profile is known, or None."""
    profile = mechanism.row_profile(problem, rest)
    return None if profile is None else ProfileLoss(profile, problem.relation)


def _claimed_composition(
    mechanism: Mechanism, problem: Problem, beside: tuple[Part, ...], rest: Budget
) -> Composed | None:
    """Return the composition with a mechanism: by its exact accounting if any, else its claim."""
    claim = mechanism.claim(problem, rest)
    if claim is None:
        return None
    loss = _known_loss(mechanism, problem, rest)
    if loss is not None:
        return Composed(beside, (loss,))
    parts = _own_parts(mechanism, problem, rest)
    if not parts:
        reason = f"{mechanism.info.label}, as claimed"
        parts = (
            (ApproximatePart(claim.epsilon, claim.delta, reason),)
            if claim.delta > 0
            else (PurePart(claim.epsilon, reason),)
        )
    return Composed((*beside, *parts))
