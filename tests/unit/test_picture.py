"""Statistics of a published 2-D map and their quality: exact values and controls."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import parse_variant
from dpviz.sampling.limits import SemiCircle
from dpviz.simulation.picture.account import (
    CELLS,
    DISK,
    ELLIPSES,
    RELEASED,
    PictureOptions,
    PicturePlan,
    planned,
    with_picture,
)
from dpviz.simulation.picture.counting import Picture, PictureNoise, exact_answers, publish
from dpviz.simulation.picture.quality import shape_error
from dpviz.simulation.picture.scree import TWO_SIDED, bought, debiased, of_matrix, standard_numbers
from dpviz.simulation.picture.shown import GREY, colours, mirrored

PROBLEM = Problem(1_797, 61, 2, Relation.REPLACE, Domain.ball(61))


def plan_of(kinds: int = 2, cells: int = 4, noise: float = 1.0, n: int = 100) -> PicturePlan:
    options = PictureOptions(kinds=kinds)
    return PicturePlan(options, n, 2, Relation.REPLACE, False, DISK, 1.0, kinds, cells, noise)


def picture_of(noisy: np.ndarray, **changed: float) -> Picture:
    plan = plan_of(kinds=len(noisy), cells=noisy.shape[1], **changed)
    return Picture(plan, np.array([0.5, 2.0]), False, noisy.astype(float))


def test_labels_and_then_the_picture_go_where_they_would_drown() -> None:
    def cells(epsilon: float, kinds: int) -> tuple[int, int]:
        plan = planned(
            PictureOptions(kinds=kinds), PROBLEM, Budget(epsilon, 3e-7), pure=False, released=True
        )
        signal = PROBLEM.n / plan.std
        assert (plan.kinds == kinds) == (signal / kinds >= 4 or kinds == 1)
        assert (plan.cells == 0) == (signal < 4)
        return plan.kinds, plan.cells

    assert cells(1.0, 10) == (10, 6)
    assert cells(0.1, 10)[0] == 1
    assert cells(0.005, 10) == (1, 0)
    silent = planned(PictureOptions(), PROBLEM, Budget(0.005, 3e-7), pure=False, released=True)
    assert silent.parts == ()  # Parts of the picture that nobody requests use no budget.
    made = with_picture(parse_variant("gaussian"), PROBLEM, Budget(0.005, 3e-7), PictureOptions())
    assert made.prepared.rest == Budget(0.005, 3e-7)
    assert not (made.plan.cells and made.status.verdict.counts)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, math.nan])
def test_a_share_is_above_nothing_and_below_all(share: float) -> None:
    with pytest.raises(InvalidSetting, match="map's budget share"):
        PictureOptions(share)


def test_a_cell_is_coloured_where_its_first_count_beats_the_second() -> None:
    """A first count must lead by 1.64 sqrt 2 standard deviations of 2, or by 4.64."""
    noisy = np.zeros((2, 4, 4))
    noisy[:, 0, 0] = [30, 25.3]
    noisy[:, 1, 1] = [25.3, 30]
    noisy[:, 2, 2] = [28, 25]
    colour = colours(picture_of(noisy, noise=2.0))
    assert (colour[0, 0], colour[1, 1], colour[2, 2], colour[3, 3]) == (0, 1, GREY, GREY)


def test_noise_is_drawn_once_and_scaled_for_every_epsilon() -> None:
    rows = generator(4, "rows").standard_normal((PROBLEM.n, 61)) / 61
    V = np.eye(61)[:, :2]

    def noise_at(epsilon: float) -> tuple[np.ndarray, float]:
        budget = Budget(epsilon, 3e-7)
        plan = planned(PictureOptions(), PROBLEM, budget, pure=False, released=False)
        noise = PictureNoise.drawn(plan, Draws.trials(0, "picture", range(2)))
        picture = publish(rows, None, V, replace(plan, cells=4, frame=DISK), noise, 1)
        quiet = publish(rows, None, V, replace(plan, cells=4, frame=DISK, noise=0.0), noise, 1)
        return (picture.noisy - quiet.noisy) / plan.noise, quiet.noisy.sum()

    (one, people), (two, _) = noise_at(1.0), noise_at(3.0)
    np.testing.assert_allclose(one, two, atol=1e-9)
    assert people == PROBLEM.n


def test_a_debiased_eigenvalue_is_the_lone_component_it_came_from() -> None:
    law = SemiCircle(0.01, 60, 1.0)
    theta = np.array([3.0, 0.4, 0.2])
    value = law.k_transform(1 / theta)
    np.testing.assert_allclose(debiased(value, law), theta, rtol=1e-9)
    hidden = debiased(np.array([law.edges[1] * 0.9]), law)
    assert hidden[0] == law.visible_above


def test_true_variances_lie_within_the_bars_of_a_scree() -> None:
    """Error bars of noisy matrices and released variances hold the true values; half bars do not.

    Of 400 variances each, the share within 95 % bars is .95 give or take 5 standard errors of .011;
    within half bars the share is .67.
    """
    d, draws = 40, 200
    rng = generator(4, "scree")
    law = SemiCircle(0.01, d, 2.0)
    true = np.zeros(d)
    true[:2] = [0.5, 0.25]
    ratios = []
    for _ in range(draws):
        noise = 0.01 * rng.standard_normal((d, d))
        noise = (noise + noise.T) / math.sqrt(2)
        bars = of_matrix(np.linalg.eigvalsh(np.diag(true) + noise)[::-1], law)
        ratios.append((bars.variances[:2] - true[:2]) / bars.std[:2])
        assert abs(bars.total - true.sum()) < 5 * bars.total_std
    loud = Budget(3.0, 3e-7)
    plan = planned(PictureOptions(), PROBLEM, loud, pure=False, released=False)
    assert plan.variances is not None
    rows = rng.standard_normal((PROBLEM.n, 61)) * ([0.1, 0.05] + [0.01] * 59)
    lengths, V = np.linalg.norm(rows, axis=1, keepdims=True), np.eye(61)[:, :2]
    bought_ratios = []
    for each in standard_numbers(Draws.trials(0, "scree", range(2 * draws)), 2, pure=False):
        one = bought(rows, V, plan.variances, each)
        rows_cut = rows * np.minimum(1, one.radius / lengths)
        bought_ratios.append((one.variances - np.square(rows_cut @ V).mean(axis=0))[0] / one.std[0])
    for found_ratios in (np.ravel(ratios), np.ravel(bought_ratios)):
        half = 5 * math.sqrt(0.95 * 0.05 / len(found_ratios))
        assert abs((np.abs(found_ratios) < TWO_SIDED).mean() - 0.95) < half
        assert (np.abs(found_ratios) < TWO_SIDED / 2).mean() < 0.95 - half


def test_a_scree_is_bought_where_it_can_be_read_and_nothing_is_released() -> None:
    """A scree uses part of the picture's budget, or none if noise hides the scree."""

    def plan(epsilon: float, *, pure: bool = False, released: bool = False) -> PicturePlan:
        budget = Budget(epsilon, 0.0 if pure else 3e-7)
        return planned(PictureOptions(), PROBLEM, budget, pure=pure, released=released)

    assert plan(1.0).variances is not None
    assert plan(0.05).variances is None
    assert plan(1.0, released=True).variances is None
    assert plan(1.0, pure=True).variances is None
    assert plan(5.0, pure=True).variances is not None
    assert plan(1.0).noise > plan(1.0, released=True).noise


def test_a_frame_from_variances_needs_components_that_are_seen() -> None:
    law = SemiCircle(0.001, 60, 1.0)
    rows = generator(6, "rows").standard_normal((50, 60)) / 60
    plan = replace(plan_of(kinds=1), frame=RELEASED, n=50)
    noise = PictureNoise.drawn(plan, Draws.trials(0, "picture", range(1)))
    values = np.full(60, 0.001)
    hidden = publish(rows, None, np.eye(60)[:, :2], plan, noise, 0, values, law)
    assert hidden.disk
    values[:2] = [0.09, 0.05]
    picture = publish(rows, None, np.eye(60)[:, :2], plan, noise, 0, values, law)
    assert not picture.disk
    assert picture.frame[0] > picture.frame[1]
    # The picture's frame is 2.3 times sqrt(variance along a noisy direction + mean variance).
    variance = law.lone_overlap(debiased(values[:1], law)) * debiased(values[:1], law)
    expected = 2.3 * math.sqrt(float(variance[0]) + values.mean())
    assert picture.frame[0] == pytest.approx(expected)


def test_the_error_of_the_shape_has_exact_values() -> None:
    """On a line, a shift's distance is the shift, and one point is its size away from two ends."""
    ends = np.repeat([[-2.0], [2.0]], 500, axis=0)
    assert shape_error(ends + 0.25, ends) == pytest.approx(0.125)
    assert shape_error(ends, ends) == 0
    assert shape_error(np.zeros((1, 1)), ends) == 1
    assert math.isnan(shape_error(ends, np.zeros((5, 1))))
    cloud = generator(7, "cloud").standard_normal((400, 2))
    # The quantiles equal NumPy's exactly, for many points, for two points and for one point.
    angles = math.pi * (np.arange(40) + 0.5) / 40
    ways, levels = np.array([np.cos(angles), np.sin(angles)]), np.linspace(0.005, 0.995, 200)
    for some in (cloud, cloud[:2], cloud[:1]):
        estimate, true = (np.quantile(one @ ways, levels, axis=0) for one in (some, cloud**2))
        alone = float(np.abs(true).mean())
        assert shape_error(some, cloud**2) == float(np.abs(estimate - true).mean()) / alone
    # If all points shift by v, the error averages |cos| over all directions, which gives 2/pi.
    alone = float(np.abs(np.quantile(cloud @ ways, levels, axis=0)).mean())
    shift = shape_error(cloud + np.array([3.0, 0.0]), cloud)
    assert shift * alone == pytest.approx(6 / math.pi, rel=2e-3)


@pytest.mark.parametrize("form", [CELLS, ELLIPSES])
@pytest.mark.parametrize("axes", [1, 2])
def test_a_mirrored_picture_is_that_of_rows_on_the_other_side(form: str, axes: int) -> None:
    plan = plan_of()
    plan = replace(plan, axes=axes, options=replace(plan.options, form=form))
    rng = generator(3, "mirrored")
    along, codes = rng.uniform(-1.2, 1.2, (200, axes)), rng.integers(0, 2, 200)
    here, frame = np.ones(200, dtype=bool), np.ones(axes)

    def of(rows: np.ndarray) -> Picture:
        return Picture(plan, frame, False, exact_answers(rows, codes, here, frame, plan))

    for flips in ([True] * axes, [False] * axes, [False, True][-axes:]):
        mirror = mirrored(of(along), flips)
        np.testing.assert_allclose(mirror.noisy, of(along * np.where(flips, -1, 1)).noisy)
