"""What a published picture asks of the rows, and what that costs.

Given the released directions and a frame, everything asked of a row is a function of that row and
of its label, which is part of it. A row of zeros is nobody, and asks for nothing. So

* `CELLS`, `SPARSE`: a row is one in one cell of one label. A replaced row takes one from one count
  and adds one to another: sqrt 2 in l2 and 2 in l1. A row that is zeroed out takes one: 1 and 1.
  Two rows in two cells attain it.
* `ELLIPSES`: a row adds (1, z, zz') to the sums of its label, z its place in units of the frame,
  cut to the unit disk. With zz' as (z1^2, sqrt2 z1 z2, z2^2), whose length is |z|^2, that is at
  most sqrt 3 long; in l1 it is 1 + |z1| + |z2| + |z|^2 + sqrt2 |z1 z2|, the largest on the diagonal
  of the disk: 2 + 3/sqrt2. Two rows of two labels differ by sqrt 2 times the first, twice the
  second. On one axis it is (1, z, z^2): sqrt 3 and 3.
* A search of the frame asks how many rows lie beyond a place on an axis: one row moves a count by
  at most 1, under both relations.
* A scree of a release without variances buys them along its directions, as a release of its own
  does: `dpviz.preparation.steps` says what one row moves them by.

Each step depends on the rows through what was released before it and its own noise, so Gaussian
steps compose to the sum of their squared mu and pure ones to the sum of their epsilons, the
directions' own among them (`dpviz.preparation.account`). Where empty cells are left out a
row that is alone in its cell shows that by being there: with `THRESHOLD_SHARE` of delta its noisy
count passes the threshold, and below that nothing tells it from an empty cell. A row replaced by
another makes one cell empty in either order, so that chance is counted once. A person with m rows
is alone in at most m cells with at most m rows in each, so the threshold lies m - 1 higher, at an
m-th of that chance for each cell; each other answer moves by m times what one row moves it
(`dpviz.core.parts.for_person`).

The shares, the grid and the searches were chosen by trial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from scipy.special import ndtri

from dpviz.accounting.gaussian import mu_of
from dpviz.core.errors import InvalidSetting
from dpviz.core.parts import (
    ApproximatePart,
    GaussianPart,
    LaplacePart,
    Part,
    PurePart,
    for_person,
)
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Aim, Status
from dpviz.mechanisms import Mechanism
from dpviz.preparation.account import PreparedMechanism, is_pure, prepared_mechanism
from dpviz.preparation.draws import rank_to_cut
from dpviz.preparation.steps import RADIUS, VARIANCE, Preparation, PrivateSteps, preparation

CELLS, SPARSE, ELLIPSES = "cells", "sparse", "ellipses"
FORMS = (CELLS, SPARSE, ELLIPSES)

SHARE = 0.65
"""Of squared mu, or of epsilon where all is pure, that the picture has; the directions the rest."""

SEARCHED, RELEASED, DISK = "searched", "released", "disk"
"""Where the frame comes from: paid searches, released variances, or the disk of unit rows.

Half of the rows must stand clear of a count's noise for a search to be paid, which is public.
Searches did better than variances wherever they can be paid. Variances are used
where the noise hides none of those along the axes; the disk shows directions alone.
"""

OCTAVE_COUNTS, FINE_COUNTS = 6, 4
"""Noisy counts of a search on one axis: 2^6 octaves about the median, then 2^4 steps of 1/4."""

MOST_CELLS = {2: 12, 1: 24}
"""Cells along an axis, at most, by how many axes there are."""

SCREE_SHARE = 0.05
"""Of the picture's own, where variances are bought."""

FRAME_SHARE = 0.1  # of the picture's own, half an axis
MEDIAN_SHARE = 0.4  # of an axis' search
BEYOND = 0.02  # of the people outside the frame on an axis
CLEAR = 2.0  # standard deviations of a count that half of the rows must be, to be searched
_CLEAR_PURE = 12.0
MARGIN = 1.5  # standard deviations: without it noise at empty places lifts the frame for ever
LEAST_SIGNAL = 4.0  # people over std of a count: for each label, and for a picture at all
THRESHOLD_SHARE = 0.1
_ROOM = 1 + 1e-12  # the account composes rounded numbers: leave them room


@dataclass(frozen=True)
class PictureOptions:
    """What is wanted of a picture; all of it public.

    Attributes
    ----------
    share : float
        Of the budget, above 0 and below 1.
    form : {"cells", "sparse", "ellipses"}
    kinds : int
        How many labels were declared as public categories; 1 without labels.
    """

    share: float = SHARE
    form: str = CELLS
    kinds: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidSetting("share of the picture", "between 0 and 1", self.share, "--picture")
        if self.form not in FORMS:
            raise InvalidSetting("form of the picture", " or ".join(FORMS), self.form)


@dataclass(frozen=True)
class PicturePlan:
    """How a picture is made: from shapes, options and budget, never from data.

    Attributes
    ----------
    options : PictureOptions
    n : int
    axes : int
        1 or 2.
    relation : Relation
    pure : bool
        Whether its noise is Laplace.
    frame : {"searched", "released", "disk"}
        What is tried; see `Picture.disk`.
    radius : float
        How far a row can lie from the origin; infinite where no bound is declared.
    kinds : int
        Labels told apart; 1 where they would drown.
    cells : int
        Along an axis; 0 for no picture at all, as all of it would drown.
    noise : float
        Standard deviation or Laplace scale of each number released.
    octave, fine : float
        The same of the counts of a search, or the epsilons of both where all is pure.
    threshold : float
        Below it a noisy count is left out; minus infinity where none is.
    directions : int
        Released; a scree has as many variances where it buys them.
    released : bool
        Whether variances are released, so that a scree costs nothing.
    variances : Preparation or None
        What a scree buys: nothing where it would drown.
    parts : tuple of Part
        In the order they run, after the directions.
    """

    options: PictureOptions
    n: int
    axes: int
    relation: Relation
    pure: bool
    frame: str
    radius: float
    kinds: int
    cells: int
    noise: float
    octave: float = 0.0
    fine: float = 0.0
    threshold: float = -math.inf
    directions: int = 0
    released: bool = False
    variances: Preparation | None = None
    parts: tuple[Part, ...] = ()

    @property
    def std(self) -> float:
        """Standard deviation of each number released."""
        return math.sqrt(2) * self.noise if self.pure else self.noise

    @property
    def rank(self) -> float:
        """How many people the second search leaves outside, as it counts them."""
        margin = 3 * math.log(24) / self.fine if self.pure else MARGIN * self.fine
        return min(self.n / 2, BEYOND * self.n + margin)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the numbers released: labels, then cells along each axis, or moments."""
        if self.options.form == ELLIPSES:
            return self.kinds, 6 if self.axes == 2 else 3
        return (self.kinds, *(self.cells,) * self.axes)


def sensitivities(form: str, axes: int, relation: Relation) -> tuple[float, float]:
    """Return how far one row moves what a form asks: in l2 and in l1; see the module."""
    l2, l1 = 1.0, 1.0
    if form == ELLIPSES:
        l2, l1 = math.sqrt(3), 2 + 3 / math.sqrt(2) if axes == 2 else 3.0
    if relation is Relation.REPLACE:
        return math.sqrt(2) * l2, 2 * l1
    return l2, l1


def _noise(
    options: PictureOptions, axes: int, relation: Relation, most: float, *, pure: bool
) -> Part:
    """Return the part that releases all numbers, for a mu or an epsilon."""
    l2, l1 = sensitivities(options.form, axes, relation)
    attained = options.form != ELLIPSES
    if pure:
        return LaplacePart(l1, _ROOM * l1 / most, attained=attained)
    return GaussianPart(l2, _ROOM * l2 / most, attained=attained)


def planned(
    options: PictureOptions, problem: Problem, budget: Budget, *, pure: bool, released: bool
) -> PicturePlan:
    """Return how a picture is made, with the account of its own part.

    Parameters
    ----------
    options : PictureOptions
    problem : Problem
    budget : Budget
        Of directions and picture together.
    pure : bool
        Whether the whole is to be pure.
    released : bool
        Whether variances are released from which the frame follows.
    """
    n, axes, form = problem.n, min(problem.k, 2), options.form
    own_budget = (
        options.share * budget.epsilon if pure else math.sqrt(options.share) * mu_of(budget)
    )
    own_budget /= problem.together  # what a row may cost: see `for_person`
    if pure:
        each = FRAME_SHARE * own_budget / axes
        octave, fine = MEDIAN_SHARE * each, (1 - MEDIAN_SHARE) * each
        usable = n * octave / 4 >= _CLEAR_PURE
        reason = "exponential mechanism on the frame"
        one: tuple[Part, ...] = tuple(
            PurePart(epsilon * _ROOM, reason, width=epsilon * _ROOM) for epsilon in (octave, fine)
        )
    else:
        each = math.sqrt(FRAME_SHARE / axes) * own_budget
        octave = _ROOM * math.sqrt(OCTAVE_COUNTS / MEDIAN_SHARE) / each
        fine = _ROOM * math.sqrt(FINE_COUNTS / (1 - MEDIAN_SHARE)) / each
        usable = n / 2 >= CLEAR * octave
        # of the counts the places alone are used
        one = (GaussianPart(1.0, octave, attained=False),) * OCTAVE_COUNTS
        one += (GaussianPart(1.0, fine, attained=False),) * FINE_COUNTS
    variances = None if released else _variances(options, problem, budget, pure=pure)
    beside = usable * FRAME_SHARE + (variances is not None) * SCREE_SHARE
    own_budget *= 1 - beside if pure else math.sqrt(1 - beside)
    frame = SEARCHED if usable else RELEASED if released else DISK
    plan = PicturePlan(
        options, n, axes, problem.relation, pure, frame, problem.domain.radius, 1, 0, 0.0,
        directions=problem.k, released=released, variances=variances,
    )  # fmt: skip
    searches: tuple[Part, ...] = ()
    if usable:
        searches = one * axes
        plan = replace(plan, octave=octave, fine=fine)
    whole = _noise(options, axes, problem.relation, own_budget, pure=pure)
    assert isinstance(whole, (GaussianPart, LaplacePart))
    noise = whole.scale if isinstance(whole, LaplacePart) else whole.std
    plan = replace(plan, noise=noise)
    signal = n / plan.std
    if signal < LEAST_SIGNAL:
        return plan
    kinds = options.kinds if signal / options.kinds >= LEAST_SIGNAL else 1
    rows = problem.together
    parts = tuple(for_person(part, rows) for part in (*searches, whole))
    if form == SPARSE:
        failing = THRESHOLD_SHARE * budget.delta
        plan = replace(plan, threshold=rows - plan.std * float(ndtri(failing / rows)))
        parts = (*parts, ApproximatePart(0.0, failing, "a threshold on counts"))
    if variances is not None:
        parts = (*parts, *variances.parts)
    cells = cells_along(signal / kinds, axes, kinds)
    return replace(plan, kinds=kinds, cells=cells, parts=parts)


def _variances(
    options: PictureOptions, problem: Problem, budget: Budget, *, pure: bool
) -> Preparation | None:
    """Return how a scree's variances are bought; None where their noise would hide them."""
    private = PrivateSteps((), variance=SCREE_SHARE * options.share, radius=True)
    n, d, relation, rows = problem.n, problem.d, problem.relation, problem.together
    made = preparation(private, n, d, relation, budget, pure=pure, rows=rows)
    noise = made.noises[VARIANCE]
    std = math.sqrt(2) * noise if pure else noise
    clear = rank_to_cut(made) < problem.n / 2 and problem.n / std >= LEAST_SIGNAL
    return made if clear and (pure or problem.n / 2 >= CLEAR * made.noises[RADIUS]) else None


def cells_along(signal: float, axes: int, kinds: int = 1) -> int:
    """Return how many cells an axis has: even, so that the origin is a corner.

    Few labels are parted by few cells, and fewer cells drown less: chosen by trial from two labels
    to ten.

    Parameters
    ----------
    signal : float
        People of a label over the standard deviation of a count.
    axes : int
    kinds : int
        Labels told apart.
    """
    if kinds > 1:
        signal *= min(kinds / 10, 1.0) ** 0.6
    across: int = min(max(2 * round(math.cbrt(signal)), 4), MOST_CELLS[2])
    if axes == 1:
        across = min(across * across // 2, MOST_CELLS[1])
    return across


@dataclass(frozen=True)
class PictureAccount:
    """A mechanism whose directions carry a picture, and one account of both.

    Attributes
    ----------
    plan : PicturePlan
    prepared : PreparedMechanism
        Preparation, directions and picture.
    """

    plan: PicturePlan
    prepared: PreparedMechanism

    @property
    def status(self) -> Status:
        """The verdict on the claim of the whole."""
        return self.prepared.status(self.prepared.spent)


@lru_cache(maxsize=4096)
def with_picture(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    options: PictureOptions,
    private: PrivateSteps | None = None,
) -> PictureAccount:
    """Return the account of a mechanism with a picture, behind a private preparation or none.

    Raises
    ------
    CannotRun
        If the picture leaves nothing usable for the directions.
    """
    pure = is_pure(mechanism, problem, budget)
    if pure and options.form == SPARSE:
        options = replace(options, form=CELLS)  # what is left out shows by a chance: a delta
    released = (
        mechanism.info.release == "matrix"
        and mechanism.aims_at(problem, budget) is Aim.COMPONENTS
        and mechanism.free_noise(mechanism.calibrate(problem, budget)) is not None
        and (private is None or "bound" not in private.steps)
    )
    plan = planned(options, problem, budget, pure=pure, released=released)
    return PictureAccount(
        plan,
        prepared_mechanism(
            mechanism, problem, budget, private or PrivateSteps(()), after=plan.parts
        ),
    )


def behind_preparation(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    private: PrivateSteps | None,
    picture: PictureOptions | None,
) -> PreparedMechanism:
    """Return a mechanism with all that is bought beside it: a preparation, a picture or neither."""
    if picture is not None:
        return with_picture(mechanism, problem, budget, picture, private).prepared
    return prepared_mechanism(mechanism, problem, budget, private or PrivateSteps(()))
