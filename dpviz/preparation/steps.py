"""Budget of each private preparation step, decided without the rows.

All steps read sums over people of a function of one person's row, cut to bounds that are public
or were bought first, and mapped to u in [-1, 1]^d. A person who is withdrawn (zero-out) adds
nothing to any sum. The n of the padded table, in which a withdrawn person's row is zero, is public
always: moments are divided by it, and noise, batches and steps are sized by it. How many people are
present is public or paid for; means, spreads and ranks use that count. With R and Z for replace and
zero-out, one person moves

* sum u by at most 2 sqrt d (R), sqrt d (Z) in l2 and 2 d, d in l1 norm: opposite corners;
* sum u^2 (feature by feature) by at most sqrt d in l2 and d in l1 norm, under both: every entry
  of u^2 lies in [0, 1];
* the number of rows longer than any radius (or with a value beyond any range) by at most 1, under
  both; and all such numbers move the same way when a row grows;
* the sum of squared row lengths (n times the trace) by at most the square of the longest that a
  row can be, under both;
* the number of people present by 0 (R: it is the same for all neighbours), 1 (Z).

Under R no row moves both sum u and sum u^2 that far: with D = |u - u'| of a feature u^2 moves by
at most D (2 - D), nothing at opposite corners. The two are accounted for as one query
(`joint_gaussian` and `joint_laplace`).

A quantile is an exponential mechanism: its log ratio ranges over its epsilon. A sparse vector on
counts that all move the same way, with threshold and answers at half of epsilon each, costs the
order that a shift of the threshold makes good for all answers but the last epsilon/2 + epsilon/2,
and the other order, which only the last answer tells apart, epsilon/2: its log ratio ranges over
3/2 epsilon.

Variances, bought beside a subspace after its release, are the mean squares of the bounded rows
along each of its directions, and what is left of their mean squared length. Directions and rest
split |x|^2 <= 1 into numbers a >= 0 with sum at most 1, whatever the directions are; one person
moves their sum by a - b (R) or by a (Z), at most sqrt 2 and 1 in l2 and 2 and 1 in l1 norm, and two
rows along two directions do. Rows without a bound are cut at a radius that is found first: n(r)
rows are longer than r, one row moves each n(r) by at most 1, so eight noisy counts walk down a
binary search among 256 radii, or one exponential mechanism chooses among them.

A step gets a share of the budget: of mu^2 where Gaussian noise is used, with pure steps at
epsilon = mu; of epsilon where the whole is to be pure. What is left goes to the mechanism, by the
account of all of them together.
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
"""The query that an adaptive clip starts with, at half of its share."""
VARIANCE, RADIUS = "variance", "radius"
"""What is bought after the release, and the radius that rows without a bound are then cut at."""
RADIUS_COUNTS = 8  # that walk down a binary search among 2^8 radii
_CHOICE = "exponential mechanism on a radius"
_RADIUS_SHARE = 0.3  # of the variances' own share
STEPS = (COUNT, RANGE, MEAN, SCALE, BOUND)
"""In the order they run: each uses what those before it released."""

DEFAULT_SHARES: Mapping[str, float] = MappingProxyType(
    {step: float(params_of(Settings)[f"{step}_share"].default) for step in STEPS}
)
_ROOM = 1 + 1e-12  # the account composes rounded numbers: leave them room


@dataclass(frozen=True)
class PrivateSteps:
    """Private preparation steps and their shares of the budget.

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
    features : int or None
        How many columns are prepared, where others (a label's) are released beside them.
    variance : float
        Share of the variances along the released directions; 0 buys none.
    radius : bool
        Whether a radius is bought with them, as rows have no bound.
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
            raise InvalidSetting("share of the variances", "from 0 to below 1", self.variance)
        if not (0 < self.level <= 1):
            raise InvalidSetting("quantile", "above 0 and at most 1", self.level)
        if self.bound not in ("quantile", "adaptive"):
            raise InvalidSetting("row bound", "quantile or adaptive", self.bound)
        if self.total > MOST_SHARED:
            raise InvalidSetting(
                "shares of the preparation",
                f"at most {numeral(MOST_SHARED, 6)} together, so that the release has the rest",
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
        """Return the share of one step; 0 if it is not private."""
        if step not in self.steps:
            return 0.0
        return dict(self.shares).get(step, DEFAULT_SHARES[step])

    @property
    def total(self) -> float:
        """Share of all steps together."""
        return math.fsum([self.variance, *(self.share(step) for step in STEPS)])


def check_shares(shares: Mapping[str, float]) -> None:
    """Raise `InvalidSetting` if a name is not a step or a value is not a share."""
    for name, share in shares.items():
        if name not in STEPS:
            raise InvalidSetting("shares", f"of {', '.join(STEPS)}", name)
        if not is_share(share):
            raise InvalidSetting(f"share of the {name}", "between 0 and 1", share)


def is_share(value: object) -> bool:
    """Return whether a value is a number between 0 and 1."""
    # a float alone: for n_components 1 is a count, and .5 a share
    return isinstance(value, (float, np.floating)) and bool(0 < value < 1)


def private_steps(settings: Settings) -> PrivateSteps | None:
    """Return the private steps of settings, or None if all is public."""
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
        By step: standard deviation or Laplace scale of the sum's noise; for the bound the epsilon
        that it may spend, and for the trace in squares of the longest that a row can be. For the
        radius that of each count, or its epsilon where the whole is pure.
    parts : tuple of Part
        In the order they run.
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
    """Return the noise of each step.

    Parameters
    ----------
    private : PrivateSteps
    n, d : int
    relation : Relation
    budget : Budget
        Of the preparation and the release together.
    pure : bool
        Whether no step may use delta.
    rows : int
        Most rows of one person. A row gets so many times less than the share: given those before
        it, a step costs the person as many times what it costs a row
        (`dpviz.core.parts.for_person`).
    """
    noises: dict[str, float] = {}
    parts: list[Part] = []
    # under replace n is the same for all neighbours: a count costs nothing there
    free = (COUNT,) if relation is Relation.REPLACE else ()
    whole = (budget.epsilon if pure else mu_of(budget)) / rows
    for step in STEPS:
        if step not in private.steps or step in free:
            continue
        # epsilons add up, and of Gaussian steps the squares of mu do
        step_budget = (private.share(step) if pure else math.sqrt(private.share(step))) * whole
        if step in (BOUND, RANGE):
            _choose(private, step, step_budget, noises, parts, pure=pure)
        else:
            _sum_up(step, step_budget, d, relation, noises, parts, pure=pure)
    if private.variance:
        for step, part in _variances(private, relation, whole, pure=pure):
            noises[step] = part.epsilon if isinstance(part, PurePart) else _noise_of(part)
            # a binary search asks for one count after the other
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
    """Add the choice of a row bound or of a range, by what it may spend."""
    if step == BOUND and private.bound == "adaptive":
        # half of the share, of epsilon or of mu^2, buys the trace that the search starts from
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
    """Add a noisy sum; of u and u^2 under replace, both in one query."""
    replaced = relation is Relation.REPLACE
    sensitivity = _sensitivity(step, d, replaced=replaced, pure=pure)
    noises[step] = _ROOM * sensitivity / own
    if step == SCALE and MEAN in noises and replaced:
        joint = joint_laplace if pure else joint_gaussian
        # one query in the place of two: no row moves both sums as far as either can be moved
        parts[-1] = joint(noises[MEAN], noises[SCALE], d)
    else:
        parts.append(_query(sensitivity, noises[step], pure=pure))


def _sensitivity(step: str, d: int, *, replaced: bool, pure: bool) -> float:
    """Return how far one row moves the count, or the sums of d features: in L1 if pure, else L2."""
    if step == COUNT:
        return 0.0 if replaced else 1.0
    # every feature is cut to its bounds, so one row may move all d of them
    each = float(d) if pure else math.sqrt(d)
    return (2.0 if step == MEAN and replaced else 1.0) * each


def _query(sensitivity: float, noise: float, *, pure: bool) -> Part:
    """Return a sum with Laplace noise if pure, else with Gaussian noise."""
    if pure:
        return LaplacePart(sensitivity, noise, attained=False)
    return GaussianPart(sensitivity, noise)


def _chosen(private: PrivateSteps, step: str, epsilon: float) -> PurePart:
    """Return the choice of a row bound or of the features' bounds: quantiles or sparse vectors."""
    lengths = f"{private.bound} of the row lengths"
    ranges = 1.0 if step == BOUND and private.bound == "quantile" else 1.5
    what = lengths if step == BOUND else "feature bounds"
    return PurePart(epsilon, what, width=ranges * epsilon)


def _variances(
    private: PrivateSteps, relation: Relation, whole: float, *, pure: bool
) -> list[tuple[str, Part]]:
    """Return what the variances cost, and before them each count, or the choice, of a radius."""
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
            # the radius alone is used
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

    With a, b the precisions, a feature adds at most the maximum over D of
    f(D) = D^2 (a + b (2 - D)^2): f' is 0 at 0 and where D^2 - 3 D + 2 + a/(2 b) = 0, whose lesser
    root is the maximum, and D = 2 is the end.
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
