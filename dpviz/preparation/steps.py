"""Budget of each private preparation step, decided without the rows.

Every step reads a sum over people of a function of one person's row. Rows are clipped to bounds
that are public or were released first, and mapped to u in [-1, 1]^d. A withdrawn person (zero-out)
adds nothing to any sum. The n of the padded table, in which a withdrawn person's row is zero, is
always public: moments are divided by it, and noise, batches and steps depend on it. The number of
people present is public or private; means, spreads and ranks use this number. With R for replace
and Z for zero-out, one person moves

* sum u by at most 2 sqrt d (R), sqrt d (Z) in l2 and 2 d, d in l1 norm, at opposite corners;
* sum u^2 (feature by feature) by at most sqrt d in l2 and d in l1 norm, under both: every entry
  of u^2 lies in [0, 1];
* the number of rows longer than any radius (or with a value beyond any range) by at most 1, under
  both; and all such numbers move the same way when a row grows;
* the sum of squared row lengths (n times the trace) by at most the square of the largest possible
  row length, under both;
* the number of people present by 0 (R: it is the same for all neighbours) or 1 (Z).

Under R no row moves both sum u and sum u^2 that far: with D = |u - u'| for a feature, u^2 moves by
at most D (2 - D), which is 0 at opposite corners. So accounting treats the two as one query
(`joint_gaussian` and `joint_laplace`).

A quantile is an exponential mechanism: its log ratio ranges over its epsilon. A sparse vector uses
counts that all move the same way, with threshold and answers at half of epsilon each. In one order
of the neighbours a shift of the threshold compensates all answers but the last; this costs
epsilon/2 + epsilon/2. In the other order only the last answer differs; this costs epsilon/2. So the
log ratio of a sparse vector ranges over 3/2 epsilon.

Variances are released after a subspace: the mean squares of the bounded rows along each of its
directions, and the rest of the mean squared length. For any directions these split |x|^2 <= 1 into
numbers a >= 0 with sum at most 1. One person moves the sum of these numbers by a - b (R) or by a
(Z), at most sqrt 2 and 1 in l2 and 2 and 1 in l1 norm; two rows along two directions attain these
bounds. Rows without a bound are first clipped at a private radius: n(r) rows are longer than r, and
one row moves each n(r) by at most 1. So eight noisy counts guide a binary search among 256 radii,
or one exponential mechanism chooses among them.

A step gets a share of the budget: of mu^2 with Gaussian noise, with pure steps at epsilon = mu; of
epsilon if the whole must be pure. The mechanism gets the remaining budget, by joint accounting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from dpviz.accounting.gaussian import mu_of
from dpviz.core.entries import USUAL_LEVEL, Entries
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.core.parts import GaussianPart, LaplacePart, Part, PurePart, for_person
from dpviz.core.problem import Budget, Relation
from dpviz.core.settings import MOST_SHARED, Settings

COUNT, RANGE, MEAN, SCALE, BOUND = "count", "range", "mean", "scale", "bound"
TRACE = "trace"
"""First query of an adaptive clip, with half of the clip's share."""
VARIANCE, RADIUS = "variance", "radius"
"""Step after the release, and the radius at which unbounded rows are clipped for this step."""
RADIUS_COUNTS = 8  # Number of counts of a binary search among 2^8 radii.
_CHOICE = "exponential mechanism on a radius"
_RADIUS_SHARE = 0.3  # Part of the variances' budget share that finds the radius.
STEPS = (COUNT, RANGE, MEAN, SCALE, BOUND)
"""The steps in the order in which they run: each uses results of earlier steps."""

DEFAULT_SHARES: Mapping[str, float] = MappingProxyType(
    {step: float(params_of(Settings)[f"{step}_share"].default) for step in STEPS}
)
_ROOM = 1 + 1e-12  # Factor that allows for rounding when parts are composed.


@dataclass(frozen=True)
class PrivateSteps:
    """Private preparation steps and their shares of the budget.

    Attributes
    ----------
    steps : tuple of str
        Names from `STEPS`.
    shares : tuple of (str, float)
        Share of each step; other steps have their default share.
    bound : {"quantile", "adaptive"}
        Method by which a private row-norm bound is found.
    level : float
        Target quantile of the row lengths.
    features : int or None
        Number of prepared columns, if further columns (of a label) are released too.
    variance : float
        Share of the variances along the released directions; 0 releases no variances.
    radius : bool
        Whether a radius is released for the variances, because rows have no bound.
    """

    steps: tuple[str, ...]
    shares: tuple[tuple[str, float], ...] = ()
    bound: str = "quantile"
    level: float = 0.9
    features: int | None = None
    variance: float = 0.0
    radius: bool = False

    def __post_init__(self) -> None:
        for name in self.steps:
            if name not in STEPS:
                raise InvalidSetting("step", f"one of {', '.join(STEPS)}", name)
        check_shares(dict(self.shares))
        if not (self.variance == 0 or is_share(self.variance)):
            raise InvalidSetting("budget share for variances", "from 0 to below 1", self.variance)
        if not (0 < self.level <= 1):
            raise InvalidSetting("quantile", "above 0 and at most 1", self.level)
        if self.bound not in ("quantile", "adaptive"):
            raise InvalidSetting("row-norm bound", "quantile or adaptive", self.bound)
        if self.total > MOST_SHARED:
            raise InvalidSetting(
                "budget shares for the preparation",
                f"at most {numeral(MOST_SHARED, 6)} in all, because the release needs the rest",
                numeral(self.total, 6),
            )

    @classmethod
    def of(cls, entries: Entries) -> PrivateSteps:
        """Return the private steps and the share of each."""
        private = entries.private
        steps = tuple(step for step in STEPS if step in private)
        shares = tuple((step, private[step].share) for step in steps)
        how = private[BOUND].value if BOUND in private else USUAL_LEVEL
        if isinstance(how, str):  # adaptive
            return cls(steps, shares, how)
        return cls(steps, shares, level=how)

    def share(self, step: str) -> float:
        """Return the share of one step, or 0 if the step is not private."""
        if step not in self.steps:
            return 0.0
        return dict(self.shares).get(step, DEFAULT_SHARES[step])

    @property
    def total(self) -> float:
        """Share of all private steps together."""
        return math.fsum([self.variance, *(self.share(step) for step in STEPS)])


def check_shares(shares: Mapping[str, float]) -> None:
    """Raise `InvalidSetting` if a name is not a step or a value is not a share."""
    for name, share in shares.items():
        if name not in STEPS:
            raise InvalidSetting("shares", f"of {', '.join(STEPS)}", name)
        if not is_share(share):
            raise InvalidSetting(f"budget share for the {name}", "between 0 and 1", share)


def is_share(value: object) -> bool:
    """Return whether a value is a number between 0 and 1."""
    # Only floats are shares. For n_components, 1 is a number of components, and .5 a share.
    return isinstance(value, (float, np.floating)) and bool(0 < value < 1)


def private_steps(settings: Settings) -> PrivateSteps | None:
    """Return the private steps of settings, or None if all steps are public."""
    private = PrivateSteps.of(settings.entries)
    return private if private.steps else None


@dataclass(frozen=True)
class Preparation:
    """How a preparation runs: derived from shapes and budget, never from data.

    Attributes
    ----------
    private : PrivateSteps
    n, d : int
    relation : Relation
    pure : bool
        Whether every step is pure, with Laplace noise.
    noises : mapping of str to float
        For each step: standard deviation or Laplace scale of the sum's noise. For the bound: its
        epsilon. For the trace: noise in squares of the largest possible row length. For the radius:
        noise of each count, or its epsilon if the whole is pure.
    parts : tuple of Part
        The parts in the order in which they run.
    """

    private: PrivateSteps
    n: int
    d: int
    relation: Relation
    pure: bool
    noises: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    def __hash__(self) -> int:
        return hash((self.private, self.n, self.d, self.relation, self.pure, self.parts))


def preparation(
    private: PrivateSteps,
    n: int,
    d: int,
    relation: Relation,
    budget: Budget,
    *,
    pure: bool,
    rows: int = 1,
) -> Preparation:
    """Return the noise and the parts of each step.

    Parameters
    ----------
    private : PrivateSteps
    n, d : int
    relation : Relation
    budget : Budget
        Budget of preparation and release together.
    pure : bool
        Whether no step may use delta.
    rows : int
        Most rows that one person has. One row gets the share divided by ``rows``: given earlier
        steps, a step's loss is ``rows`` times its loss for a row (`dpviz.core.parts.for_person`).
    """
    noises: dict[str, float] = {}
    parts: list[Part] = []
    # Under replace, all neighbours have the same n, so a count uses no budget.
    free = (COUNT,) if relation is Relation.REPLACE else ()
    whole = (budget.epsilon if pure else mu_of(budget)) / rows
    for step in STEPS:
        if step not in private.steps or step in free:
            continue
        # Epsilons of pure steps add up. For Gaussian steps the squares of mu add up.
        step_budget = (private.share(step) if pure else math.sqrt(private.share(step))) * whole
        if step in (BOUND, RANGE):
            _choose(private, step, step_budget, noises, parts, pure=pure)
        else:
            _sum_up(step, step_budget, d, relation, noises, parts, pure=pure)
    if private.variance:
        for step, part in _variances(private, relation, whole, pure=pure):
            noises[step] = part.epsilon if isinstance(part, PurePart) else _noise_of(part)
            # A binary search has several counts, each with its own privacy loss.
            parts += [part] * (RADIUS_COUNTS if step == RADIUS and not pure else 1)
    together = tuple(for_person(part, rows) for part in parts)
    return Preparation(private, n, d, relation, pure, noises, together)


def _choose(
    private: PrivateSteps,
    step: str,
    own: float,
    noises: dict[str, float],
    parts: list[Part],
    *,
    pure: bool,
) -> None:
    """Add the choice of a row-norm bound or of a range, within its own budget."""
    if step == BOUND and private.bound == "adaptive":
        # Half of the step's epsilon or mu^2 goes to the noisy trace at which the search starts.
        own /= 2 if pure else math.sqrt(2)
        noises[TRACE] = _ROOM / own
        parts.append(_query(1.0, noises[TRACE], pure=pure))
    noises[step] = own / _ROOM
    parts.append(_chosen(private, step, noises[step]))


def _sum_up(
    step: str,
    own: float,
    d: int,
    relation: Relation,
    noises: dict[str, float],
    parts: list[Part],
    *,
    pure: bool,
) -> None:
    """Add a noisy sum; under replace the sums of u and u^2 form one query."""
    replaced = relation is Relation.REPLACE
    sensitivity = _sensitivity(step, d, replaced=replaced, pure=pure)
    noises[step] = _ROOM * sensitivity / own
    if step == SCALE and MEAN in noises and replaced:
        joint = joint_laplace if pure else joint_gaussian
        # One query covers both sums, because no row moves both of them as far as possible.
        parts[-1] = joint(noises[MEAN], noises[SCALE], d)
    else:
        parts.append(_query(sensitivity, noises[step], pure=pure))


def _sensitivity(step: str, d: int, *, replaced: bool, pure: bool) -> float:
    """Return how far one row moves the count, or the sums of d features: l1 if pure, else l2."""
    if step == COUNT:
        return 0.0 if replaced else 1.0
    # Every feature has its own bounds, so one row may move the sums of all d features.
    each = float(d) if pure else math.sqrt(d)
    return (2.0 if step == MEAN and replaced else 1.0) * each


def _query(sensitivity: float, noise: float, *, pure: bool) -> Part:
    """Return the part for a noisy sum: Laplace noise if pure, else Gaussian."""
    if pure:
        return LaplacePart(sensitivity, noise, attained=False)
    return GaussianPart(sensitivity, noise)


def _chosen(private: PrivateSteps, step: str, epsilon: float) -> PurePart:
    """Return the part for a row-norm bound or feature bounds: a quantile or sparse vector."""
    lengths = f"{private.bound} of the row lengths"
    ranges = 1.0 if step == BOUND and private.bound == "quantile" else 1.5
    what = lengths if step == BOUND else "feature bounds"
    return PurePart(epsilon, what, width=ranges * epsilon)


def _variances(
    private: PrivateSteps, relation: Relation, whole: float, *, pure: bool
) -> list[tuple[str, Part]]:
    """Return the part of the variances, after the part of a radius (each count, or the choice)."""
    most = 2.0 if relation is Relation.REPLACE else 1.0
    share = private.variance
    parts: list[tuple[str, Part]] = []
    if private.radius:
        radius_share, share = _RADIUS_SHARE * share, (1 - _RADIUS_SHARE) * share
        if pure:
            epsilon = radius_share * whole / _ROOM
            parts.append((RADIUS, PurePart(epsilon, _CHOICE, width=epsilon)))
        else:
            std = _ROOM * math.sqrt(RADIUS_COUNTS / radius_share) / whole
            # The counts are not released, only the radius, so the loss is not attained.
            parts.append((RADIUS, GaussianPart(1.0, std, attained=False)))
    if pure:
        noise: Part = LaplacePart(most, _ROOM * most / (share * whole), attained=False)
    else:
        l2 = math.sqrt(most)
        noise = GaussianPart(l2, _ROOM * l2 / (math.sqrt(share) * whole), attained=False)
    return [*parts, (VARIANCE, noise)]


def _noise_of(part: Part) -> float:
    """Return the standard deviation or Laplace scale of a part."""
    assert isinstance(part, (GaussianPart, LaplacePart))
    return part.std if isinstance(part, GaussianPart) else part.scale


def joint_gaussian(mean_std: float, scale_std: float, d: int) -> GaussianPart:
    """Return sum u and sum u^2 under replace as one Gaussian query, in units of its noise.

    With a, b the precisions, a feature adds at most the maximum over D of f(D) = D^2 (a + b (2 -
    D)^2). f' is 0 at 0 and at the roots of D^2 - 3 D + 2 + a/(2 b) = 0, whose smaller root is the
    maximum; D = 2 is the end.
    """
    a, b = mean_std**-2, scale_std**-2
    most = 4 * a
    under = 1 - 2 * a / b
    if under > 0:
        gap = (3 - math.sqrt(under)) / 2
        most = max(most, gap * gap * (a + b * (2 - gap) ** 2))
    return GaussianPart(math.sqrt(d * most) * _ROOM, 1.0)


def joint_laplace(mean_scale: float, scale_scale: float, d: int) -> LaplacePart:
    """Return the joint loss with Laplace noise: the maximum of D (a + b (2 - D)), rates a and b."""
    a, b = 1 / mean_scale, 1 / scale_scale
    gap = min(1 + a / (2 * b), 2.0)
    return LaplacePart(d * gap * (a + b * (2 - gap)) * _ROOM, 1.0, attained=False)
