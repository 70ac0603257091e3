"""Privacy cost of a published 2-D map: sensitivities by search, a second accounting, an attack."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cache, reduce

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart, LaplacePart, PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.mechanisms._clipped import longer
from dpviz.simulation.picture.account import (
    CELLS,
    FORMS,
    SEARCHED,
    SPARSE,
    THRESHOLD_SHARE,
    PictureAccount,
    PictureOptions,
    sensitivities,
    with_picture,
)
from dpviz.simulation.picture.counting import Picture, PictureNoise, exact_answers, places, publish
from dpviz.simulation.picture.scree import bought, standard_numbers
from tests.chain_attack import epsilon_lower

KINDS = 3
PROBLEM = Problem(1_797, 6, 2, Relation.REPLACE, Domain.ball(6))
BUDGET = Budget(1.0, 1e-6)


def account(
    key: str, form: str = CELLS, problem: Problem = PROBLEM, budget: Budget = BUDGET
) -> PictureAccount:
    return with_picture(parse_variant(key), problem, budget, PictureOptions(0.65, form, KINDS))


def answers(
    rows: FloatArray, codes: np.ndarray, V: FloatArray, frame: FloatArray, found: PictureAccount
) -> FloatArray:
    along = places(rows, V, disk=False)
    return exact_answers(along, codes, rows.any(axis=1), frame, found.plan)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_a_search_over_neighbours_finds_the_stated_sensitivity(
    form: str, axes: int, relation: Relation
) -> None:
    """A search over rows and labels attains the stated sensitivity and never exceeds it."""
    problem = replace(PROBLEM, k=axes, relation=relation)
    picture = account("gaussian", form, problem)
    l2, l1 = sensitivities(form, axes, relation)
    rng = generator(3, "picture neighbours", form, axes, str(relation))
    V = np.linalg.qr(rng.standard_normal((6, axes)))[0]
    frame = rng.uniform(0.3, 0.8, axes)
    others, worst = rng.standard_normal((5, 6)) / 4, np.zeros(2)
    # Start the search along axes and diagonals, near the origin, and at random points in space.
    grid = np.array([[a, b][:axes] for a in (-1, 0, 1) for b in (-1, 0, 1)], dtype=float)
    grid = grid[np.linalg.norm(grid, axis=1) > 0]
    edges = (grid / np.linalg.norm(grid, axis=1, keepdims=True) * frame) @ V.T
    starts = np.concatenate([edges, 1e-3 * edges, rng.standard_normal((20, 6)) / 3])
    for first in starts:
        seconds = starts if relation is Relation.REPLACE else np.zeros((1, 6))
        for second in seconds:
            for label in range(KINDS):
                tables = [np.vstack([row, others]) for row in (first, second)]
                labels = [np.array([own, 0, 1, 2, 0, 1]) for own in (0, label)]
                one, two = (
                    answers(rows, codes, V, frame, picture)
                    for rows, codes in zip(tables, labels, strict=True)
                )
                apart = (one - two).ravel()
                worst = np.maximum(worst, [np.linalg.norm(apart), np.abs(apart).sum()])
    assert worst[0] <= l2 * (1 + 1e-12)
    assert worst[1] <= l1 * (1 + 1e-12)
    np.testing.assert_allclose(worst, [l2, l1], rtol=1e-6)


def test_a_search_over_neighbours_would_find_a_wrong_sensitivity() -> None:
    """Control: moving a row between two cells changes the counts more than removing one row."""
    picture = account("gaussian")
    V, frame = np.eye(6)[:, :2], np.ones(2)
    one, two = (
        answers(np.vstack([row, np.ones((2, 6)) / 9]), np.array([0, 0, 0]), V, frame, picture)
        for row in (np.eye(6)[0], -np.eye(6)[0])
    )
    assert np.linalg.norm(one - two) > sensitivities(CELLS, 2, Relation.ZERO_OUT)[0] * 1.4


def test_one_row_is_in_one_cell_of_one_label_and_nobody_in_none() -> None:
    picture = account("gaussian")
    rng = generator(3, "one row")
    V, frame = np.eye(6)[:, :2], np.array([0.5, 0.7])
    for row in rng.standard_normal((50, 6)):
        single = answers(row[None], np.array([2]), V, frame, picture)
        assert sorted(np.unique(single)) == [0.0, 1.0]
        assert single.sum() == single[2].sum() == 1.0
    assert answers(np.zeros((1, 6)), np.array([2]), V, frame, picture).sum() == 0


def test_one_row_moves_each_count_of_a_search_by_at_most_one() -> None:
    rng = generator(3, "search neighbours")
    radii = 2.0 ** np.arange(-8, 8)
    for _ in range(200):
        along = np.abs(rng.standard_normal(9))
        other = along.copy()
        other[0] = rng.exponential()
        apart = longer(np.sort(along), radii) - longer(np.sort(other), radii)
        assert np.abs(apart).max() <= 1


@pytest.mark.parametrize("relation", list(Relation))
def test_one_row_moves_a_bought_scree_by_no_more_than_it_pays_for(relation: Relation) -> None:
    """One row moves the sums of squares (in units of the radius) by at most the attained bound.

    Control: the bound fails for the same rows without clipping.
    """
    picture = account("spherical", problem=replace(PROBLEM, relation=relation))
    plan = picture.plan.variances
    assert plan is not None
    (part,) = {one for one in plan.parts if one.sensitivity != 1.0 or one.attained} or {
        plan.parts[-1]
    }
    assert isinstance(part, GaussianPart)
    rng = generator(3, "scree neighbours", str(relation))
    V = np.eye(6)[:, :2]
    starts = np.concatenate([np.eye(6), 3 * np.eye(6), rng.standard_normal((12, 6))])
    silent = np.zeros(standard_numbers(Draws.batch(rng, 1), 2, pure=False).shape[1])
    # Put all further rows beyond the bound: the search then ends there, whichever row changes.
    others = np.full((PROBLEM.n - 1, 6), 1e-3)
    others[: PROBLEM.n - 2, 0] = 5.0

    def sums(row: FloatArray, bound: float) -> FloatArray:
        variances = bought(np.vstack([row, others]), V, plan, silent, bound)
        assert variances.radius == bound
        both = np.append(variances.variances, variances.total - variances.variances.sum())
        return both * PROBLEM.n / 0.5**2

    worst = free = 0.0
    for first in starts:
        for second in starts if relation is Relation.REPLACE else np.zeros((1, 6)):
            worst = max(worst, float(np.linalg.norm(sums(first, 0.5) - sums(second, 0.5))))
            free = max(free, float(np.linalg.norm(sums(first, 4.0) - sums(second, 4.0))))
    assert worst == pytest.approx(part.sensitivity, rel=1e-6)
    assert worst <= part.sensitivity * (1 + 1e-9)
    assert free > 2 * part.sensitivity


HOLDS = [
    key
    for key, cls in all_mechanisms().items()
    if cls.info.guarantee != "none" and str(cls().status(PROBLEM, BUDGET).verdict) == "holds"
]
GAUSSIAN = [
    key
    for key in HOLDS
    if (parts := parse_variant(key).calibrate(PROBLEM, BUDGET).parts)
    and all(isinstance(part, GaussianPart) for part in parts)
]
PURE = [key for key in HOLDS if all_mechanisms()[key].info.guarantee == "pure"]


def test_there_is_something_to_account_for() -> None:
    assert {"gaussian", "spherical", "clipped_gaussian"} <= set(GAUSSIAN)
    assert {"wishart_difference", "knorm"} <= set(PURE)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("key", GAUSSIAN)
def test_directions_and_picture_cost_the_budget_by_dp_accounting(
    key: str, relation: Relation
) -> None:
    """Two roundings of the composed loss enclose the epsilon claimed for the whole release."""
    plan = account(key, problem=replace(PROBLEM, relation=relation))
    assert (plan.plan.variances is None) == plan.plan.released
    parts = plan.prepared.mechanism.calibrate(plan.prepared.problem, plan.prepared.rest).parts
    low, high = (
        _composed([*parts, *plan.plan.parts], pessimistic).get_epsilon_for_delta(BUDGET.delta)
        for pessimistic in (False, True)
    )
    assert low <= BUDGET.epsilon <= high
    assert high - low < 0.01  # Wider limits than this would make the test meaningless.
    assert plan.prepared.spent is not None
    assert BUDGET.epsilon * (1 - 1e-6) < plan.prepared.spent.epsilon <= BUDGET.epsilon


def _composed(parts: list, pessimistic: bool) -> pld.PrivacyLossDistribution:
    # Round ratios to 12 digits, so that ratios which differ only by rounding count as equal.
    ratios = Counter(float(f"{part.std / part.sensitivity:.12g}") for part in parts)
    return _of_ratios(tuple(sorted(ratios.items())), pessimistic)


@cache  # Most mechanisms and relations have the same ratios, so compute each once.
def _of_ratios(
    ratios: tuple[tuple[float, int], ...], pessimistic: bool
) -> pld.PrivacyLossDistribution:
    losses = [
        pld.from_gaussian_mechanism(
            ratio,
            value_discretization_interval=1e-4,
            pessimistic_estimate=pessimistic,
            use_connect_dots=False,
        ).self_compose(count)
        for ratio, count in ratios
    ]
    return reduce(lambda one, other: one.compose(other), losses)


@pytest.mark.parametrize("key", PURE)
def test_pure_pictures_and_pure_directions_add_up(key: str) -> None:
    plan = account(key)
    assert plan.plan.released or plan.plan.variances is None
    picture = math.fsum(
        part.sensitivity / part.scale if isinstance(part, LaplacePart) else part.epsilon
        for part in plan.plan.parts
        if isinstance(part, (LaplacePart, PurePart))
    )
    assert picture == pytest.approx(0.65 * BUDGET.epsilon, rel=1e-9)
    assert plan.prepared.rest.epsilon == pytest.approx(0.35 * BUDGET.epsilon, rel=1e-6)
    assert plan.prepared.rest.delta == 0
    assert picture + plan.prepared.rest.epsilon <= BUDGET.epsilon


def test_a_threshold_pays_for_who_is_alone_in_a_cell() -> None:
    """By SciPy's normal tail, a lone person in a cell passes the threshold as rarely as allowed."""
    picture = account("gaussian", SPARSE)
    passes = norm.sf(picture.plan.threshold - 1, scale=picture.plan.std)
    assert passes <= THRESHOLD_SHARE * BUDGET.delta * (1 + 1e-9)
    assert picture.prepared.spent is not None
    assert picture.prepared.spent.epsilon <= BUDGET.epsilon
    without = account("gaussian")
    assert picture.prepared.rest.epsilon < without.prepared.rest.epsilon


@pytest.mark.parametrize("key", list(all_mechanisms()))
def test_every_mechanism_has_a_picture_or_a_broken_claim(key: str) -> None:
    picture = account(key)
    if picture.status.verdict.counts:
        assert picture.plan.cells in range(4, 13, 2)
        loss = picture.prepared.spent
        assert loss is not None
        assert loss.epsilon <= BUDGET.epsilon * (1 + 1e-9)


# --- an attack on all that is published -----------------------------------------------------

SMALL = Problem(200, 3, 2, Relation.REPLACE, Domain.ball(3))
LOUD = Budget(3.0, 1e-5)
DRAWS = 2_500


def _seen(
    made: PictureAccount, far: bool, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return all published values of each simulated release: directions, frame and counts.

    The first copy of the values is correct; the second copy has the planted fault.
    """
    rows = generator(5, "others").uniform(-0.2, 0.2, (SMALL.n, 3))
    rows[0] = [0.9, 0.1, 0.0] if far else [-0.05, 0.0, 0.3]
    codes = np.arange(SMALL.n) % KINDS
    codes[0] = 0 if far else 1
    mechanism = made.prepared.mechanism
    data = SecondMoment(rows.T @ rows / SMALL.n, SMALL.n, rows)
    calibration = mechanism.calibrate(SMALL, made.prepared.rest)
    releases = mechanism.release_many(data, calibration, Draws.batch(rng, DRAWS))
    noise = PictureNoise.drawn(made.plan, Draws.batch(rng, DRAWS))
    sides: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for index, V in enumerate(releases.components):
        picture = publish(rows, codes, V, made.plan, noise, index)
        leaking = _framed_by_data(picture, rows, codes, V, noise, index)
        for side, one in zip(sides, (picture, leaking), strict=True):
            side.append(np.concatenate([(V @ V.T).ravel(), np.log(one.frame), one.noisy.ravel()]))
    return np.array(sides[0]), np.array(sides[1])


def _framed_by_data(
    picture: Picture,
    rows: FloatArray,
    codes: np.ndarray,
    V: FloatArray,
    noise: PictureNoise,
    index: int,
) -> Picture:
    """Return the picture with a frame that holds every row, which is the planted fault."""
    along = places(rows, V, disk=False)
    frame = np.abs(along).max(axis=0)
    exact = exact_answers(along, codes, rows.any(axis=1), frame, picture.plan)
    noisy = exact + picture.plan.noise * noise.at(index, picture.plan.shape)
    return replace(picture, frame=frame, noisy=noisy)


def test_an_attack_refutes_a_frame_from_the_data_and_no_other() -> None:
    picture = account("spherical", problem=SMALL, budget=LOUD)
    assert picture.plan.frame == SEARCHED
    assert picture.plan.cells
    assert picture.status.verdict.counts
    sides = [_seen(picture, far, generator(6, "attack", side)) for side, far in enumerate((1, 0))]
    # A pair of tables has two orders with two limits each; all four hold at 99.99 % confidence.
    sound, leaking = (
        epsilon_lower(first, second, LOUD.delta, 1e-4 / 4)
        for first, second in zip(*sides, strict=True)
    )
    assert sound <= LOUD.epsilon < leaking
