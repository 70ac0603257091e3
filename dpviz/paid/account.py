"""What each step of a paid preparation may cost, decided without looking at a row.

All steps read sums over people of a function of one person's row, cut to bounds that are public
or were bought first, and mapped to u in [-1, 1]^d. A person who is withdrawn (zero-out) adds
nothing to any sum; n is public unless it is paid for. With R and Z for replace and zero-out, one
person moves

* sum u by at most 2 sqrt d (R), sqrt d (Z) in l2 and 2 d, d in l1 norm: opposite corners;
* sum u^2 (feature by feature) by at most sqrt d in l2 and d in l1 norm, under both: every entry
  of u^2 lies in [0, 1];
* the number of rows longer than any radius (or with a value beyond any range) by at most 1, under
  both; and all such numbers move the same way when a row grows;
* the sum of squared row lengths (n times the trace) by at most the square of the longest that a
  row can be, under both;
* the number of people by 0 (R: it is the same for all neighbours), 1 (Z).

A step gets a share of the budget: of mu^2 where Gaussian noise is used, with pure steps at
epsilon = mu; of epsilon where the whole is to be pure. What is left goes to the mechanism, by the
account of all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from scipy.optimize import brentq

from dpviz.base.params import params_of
from dpviz.errors import CannotRun, InvalidSetting
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms._base import claimed_against_spent
from dpviz.privacy import accounting
from dpviz.privacy.accounting import Spent
from dpviz.privacy.composition import composed
from dpviz.privacy.gaussian import mu_of
from dpviz.privacy.profile_loss import ProfileLoss
from dpviz.settings import MOST_SHARED, Settings
from dpviz.values.bounds_text import ADAPTIVE
from dpviz.values.parts import ApproximatePart, GaussianPart, LaplacePart, Part, PurePart
from dpviz.values.problem import EPSILON_RANGE, Budget, Problem, Relation
from dpviz.values.release import Status, Verdict

COUNT, RANGE, MEAN, SCALE, BOUND = "count", "range", "mean", "scale", "bound"
TRACE = "trace"
"""The query that an adaptive clip starts with, at half of its share."""
STEPS = (COUNT, RANGE, MEAN, SCALE, BOUND)
"""In the order they run: each uses what those before it released."""

DEFAULT_SHARES: Mapping[str, float] = MappingProxyType(
    {step: float(params_of(Settings)[f"{step}_share"].default) for step in STEPS}
)
_ROOM = 1 + 1e-12  # the account composes rounded numbers: leave them room
_TOO_MUCH = 50.0  # of a log ratio: stands for what cannot run or has no epsilon
_ALL_OF_IT = 1e-6  # spending within this factor of the claim counts as all of it


@dataclass(frozen=True)
class Wanted:
    """Which steps are paid for, and the share of each.

    Attributes
    ----------
    steps : tuple of str
        Among `STEPS`.
    shares : tuple of (str, float)
        Share of each step; what is not named has its default.
    bound : {"quantile", "adaptive"}
        How a row bound is found.
    level : float
        The quantile of the row lengths that is sought.
    """

    steps: tuple[str, ...]
    shares: tuple[tuple[str, float], ...] = ()
    bound: str = "quantile"
    level: float = 0.9

    def __post_init__(self) -> None:
        for name in self.steps:
            if name not in STEPS:
                raise InvalidSetting("step", f"one of {', '.join(STEPS)}", name)
        for name, share in self.shares:
            if name not in STEPS or not (0 < share < 1):
                raise InvalidSetting(f"share of the {name}", "between 0 and 1", share)
        if not (0 < self.level <= 1):
            raise InvalidSetting("quantile", "above 0 and at most 1", self.level)
        if self.bound not in ("quantile", "adaptive"):
            raise InvalidSetting("row bound", "quantile or adaptive", self.bound)
        if self.total > MOST_SHARED:
            raise InvalidSetting(
                "shares of the preparation",
                f"at most {MOST_SHARED:g} together, so that the release has the rest",
                f"{self.total:g}",
            )

    def share(self, step: str) -> float:
        """Return the share of one step; 0 where it is not paid for."""
        if step not in self.steps:
            return 0.0
        return dict(self.shares).get(step, DEFAULT_SHARES[step])

    @property
    def total(self) -> float:
        """Share of all steps together."""
        return math.fsum(self.share(step) for step in STEPS)


def wanted_of(settings: Settings) -> Wanted | None:
    """Return the steps that settings pay for, or None where all is public."""
    shares = settings.paid_shares
    if not shares:
        return None
    bound, level = "quantile", 0.9
    if BOUND in shares and settings.row_bound == ADAPTIVE:
        bound = "adaptive"
    elif BOUND in shares:
        level = float(settings.row_bound.rpartition(":")[2])
    steps = tuple(step for step in STEPS if step in shares)
    return Wanted(steps, tuple((step, shares[step]) for step in steps), bound, level)


@dataclass(frozen=True)
class Preparation:
    """How a preparation runs: derived from shapes and budget, never from data.

    Attributes
    ----------
    wanted : Wanted
    n, d : int
    relation : Relation
    pure : bool
        Whether every step is pure, with Laplace noise.
    noises : mapping of str to float
        By step: standard deviation or Laplace scale of the sum's noise; for the bound the epsilon
        that it may spend, and for the trace in squares of the longest that a row can be.
    parts : tuple of Part
        In the order they run.
    """

    wanted: Wanted
    n: int
    d: int
    relation: Relation
    pure: bool
    noises: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    def __hash__(self) -> int:
        return hash((self.wanted, self.n, self.d, self.relation, self.pure, self.parts))


def preparation(
    wanted: Wanted, n: int, d: int, relation: Relation, budget: Budget, *, pure: bool
) -> Preparation:
    """Return the noise of each step.

    Parameters
    ----------
    wanted : Wanted
    n, d : int
    relation : Relation
    budget : Budget
        Of the preparation and the release together.
    pure : bool
        Whether no step may use delta.
    """
    replaced = relation is Relation.REPLACE
    l2 = {
        COUNT: 0.0 if replaced else 1.0,
        MEAN: (2.0 if replaced else 1.0) * math.sqrt(d),
        SCALE: math.sqrt(d),
    }
    l1 = {COUNT: l2[COUNT], MEAN: (2.0 if replaced else 1.0) * d, SCALE: float(d)}
    whole = budget.epsilon if pure else mu_of(budget)
    noises: dict[str, float] = {}
    parts: list[Part] = []
    for step in STEPS:
        if step not in wanted.steps or (step == COUNT and replaced):
            continue  # under replace n is the same for all neighbours
        own = (wanted.share(step) if pure else math.sqrt(wanted.share(step))) * whole
        if step == BOUND and wanted.bound == "adaptive":
            own /= 2 if pure else math.sqrt(2)
            noises[TRACE] = _ROOM / own
            parts.append(
                LaplacePart(1.0, noises[TRACE], attained=False)
                if pure
                else GaussianPart(1.0, noises[TRACE])
            )
        if step in (BOUND, RANGE):
            noises[step] = own / _ROOM
            lengths = f"{wanted.bound} of the row lengths"
            parts.append(PurePart(noises[step], lengths if step == BOUND else "feature bounds"))
        elif pure:
            noises[step] = _ROOM * l1[step] / own
            parts.append(LaplacePart(l1[step], noises[step], attained=False))
        else:
            noises[step] = _ROOM * l2[step] / own
            parts.append(GaussianPart(l2[step], noises[step]))
    return Preparation(wanted, n, d, relation, pure, noises, tuple(parts))


@dataclass(frozen=True)
class Chain:
    """A mechanism behind a paid preparation, and the account of both.

    Attributes
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
        Of the whole.
    preparation : Preparation
    rest : Budget
        What the mechanism is calibrated to.
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    preparation: Preparation
    rest: Budget

    @property
    def spent(self) -> Spent | None:
        """What preparation and release really cost together, whatever was claimed.

        None where no epsilon describes the release.
        """
        own = self.mechanism.spent(self.problem, self.rest)
        if own is None or not self.preparation.parts:
            return own
        loss = _known_loss(self.mechanism, self.problem, self.rest)
        if loss is not None:
            return _spent_beside(loss, self.preparation, self.budget, own.source)
        parts = self.mechanism.calibrate(self.problem, self.rest).parts
        if not parts:
            parts = (ApproximatePart(own.epsilon, own.delta, own.source),)
        return accounting.spent((*self.preparation.parts, *parts), self.budget)

    @property
    def claimed(self) -> Budget | None:
        """What preparation and release promise together."""
        return self.mechanism.claim(self.problem, self.budget)

    def status(self, spent: Spent | None) -> Status:
        """Return the verdict on the claim of the whole, given what `spent` says.

        A mechanism whose own claim fails, or is approximate, on what is left of the budget makes
        the whole so.
        """
        own = self.mechanism.status(self.problem, self.rest)
        claimed = self.claimed
        if claimed is None or spent is None or own.verdict.fails:
            return own
        if spent.epsilon > claimed.epsilon * (1 + _ALL_OF_IT):
            verdict = Verdict.UNPROVEN
        elif own.verdict is Verdict.APPROXIMATE:
            verdict = Verdict.APPROXIMATE
        else:
            loose = spent.epsilon < claimed.epsilon * (1 - _ALL_OF_IT)
            verdict = Verdict.LOOSE if loose else Verdict.HOLDS
        said = claimed_against_spent(claimed, spent)
        steps = ", ".join(self.preparation.wanted.steps)
        return Status(
            verdict, f"Preparation ({steps}) and release together: {said}. {own.evidence}"
        )


def chain(mechanism: Mechanism, problem: Problem, budget: Budget, wanted: Wanted) -> Chain:
    """Return the mechanism with what the preparation leaves of the budget.

    Raises
    ------
    CannotRun
        If nothing usable is left, or a noisy count does not go with the mechanism.
    """
    return _chain(mechanism, problem, budget, wanted)


@lru_cache(maxsize=4096)
def _chain(mechanism: Mechanism, problem: Problem, budget: Budget, wanted: Wanted) -> Chain:
    if COUNT in wanted.steps and mechanism.info.release == "data":
        raise CannotRun(mechanism.text, "it releases a row for each person, so n cannot be private")
    claim = mechanism.claim(problem, budget)
    pure = budget.delta == 0 or (claim is not None and claim.delta == 0)
    made = preparation(wanted, problem.n, problem.d, problem.relation, budget, pure=pure)
    if not made.parts:
        return Chain(mechanism, problem, budget, made, budget)
    delta = 0.0 if pure else budget.delta
    if claim is None:
        share = (1 - wanted.total) * budget.epsilon
        return Chain(mechanism, problem, budget, made, Budget(max(share, EPSILON_RANGE[0]), delta))
    whole = Budget(budget.epsilon, delta)

    # Where nothing but its claim is known of the mechanism its delta and the preparation's add.
    by_parts = bool(
        _own_parts(mechanism, problem, budget) or _known_loss(mechanism, problem, budget)
    )
    own_delta = delta if by_parts or pure else delta / 2

    def excess(epsilon: float) -> float:
        """Return the log of what all cost over the budget: at most 0 where it is met."""
        rest = Budget(epsilon, own_delta)
        if mechanism.why_not(problem, rest) is not None:
            return _TOO_MUCH
        loss = _known_loss(mechanism, problem, rest)
        if loss is not None:
            found = composed(made.parts, 1, (loss,)).delta(budget.epsilon)
            allowed = delta * (1 - 1e-8)  # the epsilon of such a loss is found to ten digits
        else:
            cost = _together(mechanism, problem, whole, made, rest)
            found, allowed = math.inf if cost is None else cost.epsilon, budget.epsilon
        if found <= allowed:
            return max(math.log(max(found, 1e-300) / allowed), -_TOO_MUCH)
        return min(max(math.log(found / allowed), 1e-15), _TOO_MUCH)

    low, high = EPSILON_RANGE[0], budget.epsilon
    if excess(low) > 0:
        raise CannotRun(
            mechanism.text, "the preparation's shares leave nothing for it: lower them, or epsilon"
        )
    if excess(high) <= 0:
        return Chain(mechanism, problem, budget, made, Budget(high, own_delta))
    root = math.exp(
        brentq(lambda log: excess(math.exp(log)), math.log(low), math.log(high), xtol=1e-8)
    )
    step = 1e-8
    while excess(max(root, low)) > 0:  # to the safe side; the low end is on it
        root *= 1 - step
        step *= 2
    return Chain(mechanism, problem, budget, made, Budget(max(root, low), own_delta))


def _own_parts(mechanism: Mechanism, problem: Problem, budget: Budget) -> tuple[Part, ...]:
    """Return the parts that account for a mechanism whose claim is what it spends, or none."""
    parts = mechanism.calibrate(problem, budget).parts
    if not parts:
        return ()
    return parts if mechanism.status(problem, budget).verdict is Verdict.HOLDS else ()


def _known_loss(mechanism: Mechanism, problem: Problem, rest: Budget) -> ProfileLoss | None:
    """Return the loss of a mechanism of which the profile of one row is known, or None.

    Under replace a point of the profile is a quadrature, too slow to search with: such a
    mechanism is then accounted for by its claim, which is on the safe side.
    """
    if problem.relation is Relation.REPLACE:
        return None
    profile = mechanism.row_profile(problem, rest)
    return None if profile is None else ProfileLoss(profile, problem.relation)


def _spent_beside(loss: ProfileLoss, made: Preparation, budget: Budget, source: str) -> Spent:
    """Return what a preparation and a release known by its profile cost together."""
    together = composed(made.parts, 1, (loss,))
    return Spent(
        epsilon=together.epsilon(budget.delta),
        delta=budget.delta,
        exact=False,
        source=f"{source}, composed numerically with the preparation",
        delta_at_epsilon=together.delta(budget.epsilon),
        total_variation=together.delta(0.0),
    )


def _together(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    made: Preparation,
    rest: Budget,
) -> Spent | None:
    claim = mechanism.claim(problem, rest)
    if claim is None:
        return None
    own = _own_parts(mechanism, problem, rest)
    if not own:
        reason = f"{mechanism.info.label}, as claimed"
        own = (
            (ApproximatePart(claim.epsilon, claim.delta, reason),)
            if claim.delta > 0
            else (PurePart(claim.epsilon, reason),)
        )
    return accounting.spent((*made.parts, *own), budget)
