"""The sensitivity and privacy accounting of a published picture, a noisy chart of the rows.

Given the released directions and a frame, a row contributes a function of that row and of its
label, which is part of the row. A row of zeros belongs to nobody and contributes nothing. So

* `CELLS`, `SPARSE`: a row adds one to one cell of one label. A replaced row takes one from one
  count and adds one to another: sensitivity sqrt 2 in l2 and 2 in l1. A zeroed row takes one from
  one count: 1 and 1. Two rows in two cells attain this.
* `ELLIPSES`: a row adds (1, z, zz') to the sums of its label. z is its position in units of the
  frame, clipped to the unit disk. With zz' as (z1^2, sqrt2 z1 z2, z2^2), whose length is |z|^2, the
  l2 norm is at most sqrt 3. The l1 norm is 1 + |z1| + |z2| + |z|^2 + sqrt2 |z1 z2|, largest on the
  diagonal of the disk: 2 + 3/sqrt2. Two rows of two labels differ by sqrt 2 times the l2 norm,
  twice the l1 norm. On one axis, (1, z, z^2) has the norms sqrt 3 and 3.
* A search for the frame counts the rows beyond a position on an axis: one row moves a count by at
  most 1, under both relations.
* If a release has no variances, a scree adds noisy variances along its directions, as a separate
  release does. `dpviz.preparation.steps` gives their sensitivity.

Each step depends on the rows, on what was released before it and on its own noise. So Gaussian
steps compose to the sum of their squared mu and pure steps to the sum of their epsilons, directions
included (`dpviz.preparation.account`). If empty cells are left out, a row alone in its cell is
exposed when the cell appears. With probability `THRESHOLD_SHARE` of delta its noisy count passes
the threshold; below it, nothing distinguishes the cell from an empty one. A row replaced by another
makes one cell empty in either order, so that probability counts once. A person with m rows is alone
in at most m cells with at most m rows in each. So the threshold is m - 1 higher, at an m-th of that
probability for each cell. Each other answer moves by m times as much as for one row
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
"""Share of squared mu (of epsilon if all is pure) for the picture; directions get the rest."""

SEARCHED, RELEASED, DISK = "searched", "released", "disk"
"""Sources of the frame: noisy searches, released variances, or the disk of unit rows.

A search needs half of the rows to exceed a count's noise clearly, which is public. Searches did
better than variances wherever possible. Variances are used if the noise hides no variance along the
axes. The disk shows directions only.
"""

OCTAVE_COUNTS, FINE_COUNTS = 6, 4
"""Noisy counts of a search on one axis: 2^6 octaves about the median, then 2^4 steps of 1/4."""

MOST_CELLS = {2: 12, 1: 24}
"""Maximum number of cells along an axis, by the number of axes."""

SCREE_SHARE = 0.05
"""Share of the picture's own budget for a scree's variances."""

FRAME_SHARE = 0.1  # All axes of the frame together get this share of the chart's budget.
MEDIAN_SHARE = 0.4  # The search on an axis gets this share of the axis' budget.
BEYOND = 0.02  # This share of the people on each axis is left outside the frame.
CLEAR = 2.0  # A search needs half of the rows above this many stds of a count.
_CLEAR_PURE = 12.0
MARGIN = 1.5  # The margin in stds stops noise at empty places from growing the frame forever.
LEAST_SIGNAL = 4.0  # A chart or label needs this many people per std of a count.
THRESHOLD_SHARE = 0.1
_ROOM = 1 + 1e-12  # This margin is for rounding, because accounting adds rounded numbers.


@dataclass(frozen=True)
class PictureOptions:
    """The options of a picture, all of them public.

    Attributes
    ----------
    share : float
        Share of the budget, above 0 and below 1.
    form : {"cells", "sparse", "ellipses"}
    kinds : int
        Number of labels declared as public categories; 1 without labels.
    """

    share: float = SHARE
    form: str = CELLS
    kinds: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidSetting("map's budget share", "between 0 and 1", self.share, "--picture")
        if self.form not in FORMS:
            raise InvalidSetting("form of the map", " or ".join(FORMS), self.form)


@dataclass(frozen=True)
class PicturePlan:
    """The plan of a picture, from shapes, options and budget, never from data.

    Attributes
    ----------
    options : PictureOptions
    n : int
    axes : int
        1 or 2.
    relation : Relation
    pure : bool
        Whether the noise is Laplace.
    frame : {"searched", "released", "disk"}
        The frame that is tried first; see `Picture.disk`.
    radius : float
        Largest distance of a row from the origin; infinite if no bound is declared.
    kinds : int
        Number of distinguished labels; 1 if noise would hide the labels.
    cells : int
        Cells along an axis; 0 means no picture, because noise would hide all of it.
    noise : float
        Standard deviation or Laplace scale of each released number.
    octave, fine : float
        Noise of the counts of a search, or the epsilons of both searches if all is pure.
    threshold : float
        Noisy counts below this threshold are left out; minus infinity means no threshold.
    directions : int
        Number of released directions, and of the variances in an added scree.
    released : bool
        Whether variances are released, so that a scree uses no budget.
    variances : Preparation or None
        How a scree's variances are added; None if noise would hide the variances.
    parts : tuple of Part
        Privacy parts in the order in which they run, after the directions.
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
        """Standard deviation of each released number."""
        return math.sqrt(2) * self.noise if self.pure else self.noise

    @property
    def rank(self) -> float:
        """Number of people left outside by the second search, by its own count."""
        margin = 3 * math.log(24) / self.fine if self.pure else MARGIN * self.fine
        return min(self.n / 2, BEYOND * self.n + margin)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the released numbers: labels, then cells along each axis, or moments."""
        if self.options.form == ELLIPSES:
            return self.kinds, 6 if self.axes == 2 else 3
        return (self.kinds, *(self.cells,) * self.axes)


def sensitivities(form: str, axes: int, relation: Relation) -> tuple[float, float]:
    """Return a form's sensitivity to one row, in l2 and l1; see the module's docstring."""
    l2, l1 = 1.0, 1.0
    if form == ELLIPSES:
        l2, l1 = math.sqrt(3), 2 + 3 / math.sqrt(2) if axes == 2 else 3.0
    if relation is Relation.REPLACE:
        return math.sqrt(2) * l2, 2 * l1
    return l2, l1


def _noise(
    options: PictureOptions, axes: int, relation: Relation, most: float, *, pure: bool
) -> Part:
    """Return the part that releases all numbers, for a given mu or epsilon."""
    l2, l1 = sensitivities(options.form, axes, relation)
    is_exact = options.form != ELLIPSES
    if pure:
        return LaplacePart(l1, _ROOM * l1 / most, attained=is_exact)
    return GaussianPart(l2, _ROOM * l2 / most, attained=is_exact)


def planned(
    options: PictureOptions, problem: Problem, budget: Budget, *, pure: bool, released: bool
) -> PicturePlan:
    """Plan a picture, and account for its part of the budget.

    Parameters
    ----------
    options : PictureOptions
    problem : Problem
    budget : Budget
        Budget of directions and picture together.
    pure : bool
        Whether the whole release is pure.
    released : bool
        Whether variances are released, from which the frame can follow.
    """
    n, axes, form = problem.n, min(problem.k, 2), options.form
    own_budget = (
        options.share * budget.epsilon if pure else math.sqrt(options.share) * mu_of(budget)
    )
    own_budget /= problem.together  # Get the budget of one row: see `for_person`.
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
        # Return only the place that the search found, not its counts.
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
    """Plan the variances of a scree; None if noise would hide them."""
    private = PrivateSteps((), variance=SCREE_SHARE * options.share, radius=True)
    n, d, relation, rows = problem.n, problem.d, problem.relation, problem.together
    steps = preparation(private, n, d, relation, budget, pure=pure, rows=rows)
    noise = steps.noises[VARIANCE]
    std = math.sqrt(2) * noise if pure else noise
    clear = rank_to_cut(steps) < problem.n / 2 and problem.n / std >= LEAST_SIGNAL
    return steps if clear and (pure or problem.n / 2 >= CLEAR * steps.noises[RADIUS]) else None


def cells_along(signal: float, axes: int, kinds: int = 1) -> int:
    """Return the number of cells along an axis: even, so that the origin is a corner.

    Few labels need few cells to separate them, and noise hides less in fewer cells. The numbers
    were chosen by trial for two to ten labels.

    Parameters
    ----------
    signal : float
        People per label, divided by the standard deviation of a count.
    axes : int
    kinds : int
        Number of distinguished labels.
    """
    if kinds > 1:
        signal *= min(kinds / 10, 1.0) ** 0.6
    across: int = min(max(2 * round(math.cbrt(signal)), 4), MOST_CELLS[2])
    if axes == 1:
        across = min(across * across // 2, MOST_CELLS[1])
    return across


@dataclass(frozen=True)
class PictureAccount:
    """A mechanism whose directions are published with a picture, with joint accounting.

    Attributes
    ----------
    plan : PicturePlan
    prepared : PreparedMechanism
        The mechanism with preparation, directions and picture.
    """

    plan: PicturePlan
    prepared: PreparedMechanism

    @property
    def status(self) -> Status:
        """The verdict on the joint claim."""
        return self.prepared.status(self.prepared.spent)


@lru_cache(maxsize=4096)
def with_picture(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    options: PictureOptions,
    private: PrivateSteps | None = None,
) -> PictureAccount:
    """Account for a mechanism with a picture, and with a private preparation if there is one.

    Raises
    ------
    CannotRun
        If the picture leaves no usable budget for the directions.
    """
    pure = is_pure(mechanism, problem, budget)
    if pure and options.form == SPARSE:
        options = replace(options, form=CELLS)  # Pure privacy cannot leave out cells.
    has_matrix = (
        mechanism.info.release == "matrix"
        and mechanism.aims_at(problem, budget) is Aim.COMPONENTS
        and mechanism.free_noise(mechanism.calibrate(problem, budget)) is not None
        and (private is None or "bound" not in private.steps)
    )
    plan = planned(options, problem, budget, pure=pure, released=has_matrix)
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
    """Return a mechanism with its preparation and picture, if any, on one budget."""
    if picture is not None:
        return with_picture(mechanism, problem, budget, picture, private).prepared
    return prepared_mechanism(mechanism, problem, budget, private or PrivateSteps(()))
