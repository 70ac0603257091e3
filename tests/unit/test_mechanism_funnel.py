"""Funnel: two noisy queries on rows of length one, in one exact accounting."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import _funnel, funnel, parse_variant
from dpviz.mechanisms._clipped import unit_moment, unit_rows
from dpviz.mechanisms._funnel import dimensions, looked_again
from dpviz.mechanisms.funnel import Funnel
from dpviz.mechanisms.spherical import Spherical

BUDGET = Budget(1.0, 1e-6)


def problem_of(n: int, d: int, k: int, relation: Relation = Relation.REPLACE) -> Problem:
    return Problem(n, d, k, relation, Domain.ball(d))


def moves(unit: FloatArray, base: FloatArray | None) -> FloatArray:
    """Return each row's part of a query, which is all that the row adds to the statistic."""
    rows = unit_rows(unit if base is None else unit @ base)
    return np.asarray(rows[:, :, None] * rows[:, None, :])


@pytest.mark.parametrize("sizes", [0.0, 0.1])
@pytest.mark.parametrize("relation", Relation)
def test_the_steps_cost_together_what_is_asked(relation: Relation, sizes: float) -> None:
    """dp-accounting's composition of the Gaussians has the claimed delta at the claimed epsilon."""
    problem = problem_of(95, 20, 2, relation)
    mechanism = Funnel(sizes=sizes)
    calibration = mechanism.calibrate(problem, BUDGET)
    parts = [part for part in calibration.parts if isinstance(part, GaussianPart)]
    assert len(parts) == len(calibration.parts) == (3 if sizes else 2)
    reach = {Relation.REPLACE: math.sqrt(2), Relation.ZERO_OUT: 1.0}[relation] / 95
    assert all(part.sensitivity == pytest.approx(reach) for part in parts)
    mu = math.sqrt(sum(part.mu**2 for part in parts))
    one = pld.from_gaussian_mechanism(1 / mu)
    assert one.get_epsilon_for_delta(BUDGET.delta) == pytest.approx(BUDGET.epsilon, rel=1e-3)
    loss = mechanism.spent(problem, BUDGET)
    assert loss is not None
    assert 1 - 1e-9 < loss.epsilon <= 1.0
    alone, values = Spherical().calibrate(problem, BUDGET).scale, calibration.values
    assert sum(part.sensitivity**-2 * part.mu**2 for part in parts) == pytest.approx(alone**-2)
    if sizes:
        assert values["sizes_std"] == pytest.approx(alone / math.sqrt(sizes))


@pytest.mark.parametrize("relation", Relation)
def test_no_neighbours_move_a_look_or_the_sizes_by_more(relation: Relation) -> None:
    """Any rows, even zero rows or rows outside a basis, respect the bound and nearly attain it."""
    rng = generator(1, "funnel")
    d, m = 6, 3
    rows = rng.standard_normal((400, d)) * 10.0 ** rng.uniform(-200, 100, (400, 1))
    rows = np.concatenate([rows, np.zeros((2, d)), np.eye(d), -np.eye(d)])
    unit = unit_rows(rows)
    base = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :m]
    reach = {Relation.REPLACE: math.sqrt(2), Relation.ZERO_OUT: 1.0}[relation]
    axes = unit_rows(np.concatenate([base.T, -base.T]))  # All rows lie inside the basis.
    for basis in (None, base):
        parts = moves(np.concatenate([unit, axes]), basis)
        others = parts if relation is Relation.REPLACE else np.zeros_like(parts[:1])
        worst = max(float(np.linalg.norm(parts - one, axis=(1, 2)).max()) for one in others)
        assert 0.99 * reach < worst <= reach
    sizes = np.abs(unit)
    others = sizes if relation is Relation.REPLACE else np.zeros_like(sizes[:1])
    worst = max(float(np.linalg.norm(sizes - one, axis=1).max()) for one in others)
    assert 0.99 * reach < worst <= reach


def test_rows_that_are_not_brought_to_length_one_again_would_break_it() -> None:
    """Control: without the second scaling, a long row moves the query beyond the bound."""
    rows = np.array([[30.0, 0.0, 0.0], [0.0, 40.0, 0.0]])
    base = np.eye(3)[:, :2]
    raw = (rows @ base)[:, :, None] * (rows @ base)[:, None, :]
    assert np.linalg.norm(raw[0] - raw[1]) > math.sqrt(2)
    change = moves(unit_rows(rows), base)
    assert np.linalg.norm(change[0] - change[1]) <= math.sqrt(2)


def test_dimensions_are_public_and_within_their_limits() -> None:
    assert dimensions(60, 2, 3.4) == 6
    assert dimensions(60, 2, 17.5) == 18
    assert dimensions(60, 2, 1e9) == 30
    assert dimensions(5, 2, 1e9) == 4
    small, large = (
        Funnel().calibrate(problem_of(n, 60, 2), BUDGET).values["dimensions"] for n in (50, 10**6)
    )
    assert small == 6
    assert large == 30


@pytest.mark.parametrize(("n", "share", "place"), [(50, 0.2, 1), (600, 0.2, 0), (10**6, 0.0, 0)])
def test_sizes_get_their_share_by_public_numbers(n: int, share: float, place: int) -> None:
    """Sizes get budget after the first query if noise is large, before if medium, none if small.

    If the step for sizes gives its budget to the second query, this query improves accordingly.
    """
    calibration = Funnel(sizes=0.2).calibrate(problem_of(n, 60, 2), Budget(0.3, 1e-6))
    mus = [part.mu**2 for part in calibration.parts if isinstance(part, GaussianPart)]
    assert len(mus) == (3 if share else 2)
    assert mus[place] / sum(mus) == pytest.approx(share or 0.5)
    values = calibration.values
    weight = values["second_std"] ** -2
    if place:
        weight += values["sizes_std"] ** -2
    assert values["plain_std"] ** -2 == pytest.approx(weight)


def features_of(large: int, d: int = 40, n: int = 4_000) -> SecondMoment:
    """Return rows in which some features carry almost all variance, or all features are alike."""
    spread = np.where(np.arange(d) < large, 1.0, 0.03)
    rows = generator(6, "funnel").standard_normal((n, d)) * spread
    rows[:, 0] *= 2
    if large == d:
        rows = rows @ np.linalg.qr(generator(7, "funnel").standard_normal((d, d)))[0]
    rows /= np.linalg.norm(rows, axis=1).max()
    return SecondMoment(rows.T @ rows / n, n, rows)


@pytest.mark.parametrize("n", [400, 1_400])
def test_sizes_pay_where_few_features_are_large_and_only_there(n: int) -> None:
    """At two noise levels, sizes help if few features are large, but not if all are alike."""
    budget, k = Budget(0.1, 1e-6), 2
    gains = []
    for large in (4, 40):
        data, problem = features_of(large, n=n), problem_of(n, 40, k)
        recoveries = []
        for mechanism in (Funnel(), Funnel(sizes=0.25)):
            calibration = mechanism.calibrate(problem, budget)
            release = mechanism.release_many(data, calibration, Draws.trials(5, "sizes", range(30)))
            V = release.components
            np.testing.assert_allclose(V.transpose(0, 2, 1) @ V, [np.eye(k)] * 30, atol=1e-9)
            shares = np.einsum("sik,ij,sjk->s", V, data.A, V) / data.eigenvalues[:k].sum()
            recoveries.append(shares)
        gain = recoveries[1] - recoveries[0]
        gains.append(gain.mean() / (gain.std() / math.sqrt(len(gain))))
    assert gains[0] > 4
    assert gains[1] < 2


def test_kept_are_the_large_features_and_all_where_they_are_alike() -> None:
    mechanism, problem = Funnel(sizes=0.25), problem_of(1_400, 40, 2)
    calibration = mechanism.calibrate(problem, Budget(0.1, 1e-6))
    assert not calibration.values["loud"]
    quiet = replace(calibration, values={**calibration.values, "sizes_std": 1e-3})
    for large, count in ((4, 14), (40, 40)):
        rows = features_of(large).rows
        assert rows is not None
        places = mechanism.kept(np.abs(unit_rows(rows)).mean(axis=0), quiet)
        assert len(places) == count
        assert set(range(large)) <= set(places)
    assert len(mechanism.kept(None, calibration)) == 40


def test_the_first_look_has_the_stated_noise_at_the_kept_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise limited to some features is a GOE, and all other released entries are zero.

    400 samples of 10 independent entries resolve 4 % of a standard deviation at 6 errors.
    """
    places = np.array([1, 4, 5, 8])
    monkeypatch.setattr(Funnel, "kept", lambda *_: places)
    data, problem = features_of(20), problem_of(4_000, 40, 1)
    mechanism = Funnel(sizes=0.25)
    calibration = mechanism.calibrate(problem, Budget(0.1, 1e-6))
    raw = mechanism.release_many(data, calibration, Draws.trials(7, "law", range(400))).raw
    assert data.rows is not None
    block = raw[:, places[:, None], places]
    rest = raw.copy()
    rest[:, places[:, None], places] = 0
    assert not rest.any()
    noise = (block - unit_moment(data.rows[:, places])) / calibration.scale
    upper = np.triu_indices(4, 1)
    entries = np.concatenate(
        [np.diagonal(noise, axis1=1, axis2=2), noise[:, *upper] * math.sqrt(2)], axis=1
    )
    room = 6.1 * math.sqrt(2 / entries.size)
    assert abs(float(np.square(entries).mean()) - 1) < room
    assert abs(0.9**2 * float(np.square(entries).mean()) - 1) > room
    # Control: rows that are not rescaled to length one have a different moment.
    shorter = (block - unit_moment(data.rows)[np.ix_(places, places)]) / calibration.scale
    assert abs(float(np.trace(shorter.mean(axis=0)))) > 6.1 * math.sqrt(4 / 400)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[FloatArray, float]]:
    """Record the noise and stated scale of every later second query."""
    looks_at: list[tuple[FloatArray, float]] = []
    averaged, moments_inside = _funnel.averaged, _funnel.moments_inside
    exact: list[FloatArray] = []

    def inside(data: SecondMoment, bases: list[FloatArray]) -> list[FloatArray]:
        exact[:] = moments_inside(data, bases)
        return [*exact]

    def watched(carried: FloatArray, look: FloatArray, stds: tuple[float, float]) -> object:
        looks_at.append((look[0] - exact.pop(0)[0], stds[1]))
        return averaged(carried, look, stds)

    monkeypatch.setattr(funnel, "moments_inside", inside)
    monkeypatch.setattr(funnel, "averaged", watched)
    return looks_at


@pytest.mark.parametrize(("large", "asked"), [(40, False), (4, True)])
def test_under_loud_noise_a_step_asks_for_sizes_or_joins_the_second_look(
    looks: list[tuple[FloatArray, float]], large: int, asked: bool
) -> None:
    """If the size step joined the second query, other sizes change nothing; otherwise they do."""
    data, problem = features_of(large, n=800), problem_of(800, 40, 2)
    calibration = Funnel(sizes=0.25).calibrate(problem, Budget(0.1, 1e-6))
    assert calibration.values["loud"]
    assert data.rows is not None
    one, roots = unit_moment(data.rows), np.abs(unit_rows(data.rows)).mean(axis=0)
    frames = []
    for some in (roots, np.roll(roots, 7)):
        noise = np.zeros((40, 40))
        draw = Funnel(sizes=0.25)._second(calibration, np.arange(40), one, noise, some)
        (look,) = funnel.moments_inside(data, [next(draw)])
        frames.append(draw.send(look))
    assert {std for _, std in looks} == {calibration.values["second_std" if asked else "plain_std"]}
    assert np.array_equal(*frames) is not asked


def test_the_second_look_has_the_stated_noise_whatever_its_step_asked(
    looks: list[tuple[FloatArray, float]],
) -> None:
    """In 300 releases each noise over its own scale is a GOE, but not over another scale."""
    data, problem = features_of(12, n=400), problem_of(400, 40, 2)
    mechanism = Funnel(sizes=0.25)
    calibration = mechanism.calibrate(problem, Budget(0.1, 1e-6))
    mechanism.release_many(data, calibration, Draws.trials(8, "second", range(300)))
    stds = {calibration.values[name] for name in ("second_std", "plain_std")}
    for std in stds:
        squares = np.concatenate(
            [np.square(noise[np.triu_indices(6, 1)]) for noise, own in looks if own == std]
        )
        room = 6.1 * math.sqrt(2 / squares.size)
        assert abs(2 * float(squares.mean()) / std**2 - 1) < room < 0.3
        (other,) = stds - {std}
        assert abs(2 * float(squares.mean()) / other**2 - 1) > room


def test_the_second_look_sees_the_rows_inside_what_the_first_found() -> None:
    """Without noise, the components equal the row directions' own, in the same order."""
    rng = generator(2, "funnel")
    rows = rng.standard_normal((300, 7)) * np.array([5, 3, 1, 1, 1, 1, 1])
    moment = unit_moment(rows)
    data = SecondMoment(rows.T @ rows / 300, 300, rows)
    second = looked_again(data, moment[None], np.zeros((1, 4, 4)), (1e-9, 1e-9), 2)[0]
    exact = _funnel.top(moment, 2)
    # The basis of four contains both leading directions; rescaling rows in it turns them little.
    np.testing.assert_allclose(np.abs(np.diag(second.T @ exact)), 1, atol=5e-3)


def test_many_features_at_a_small_epsilon_gain() -> None:
    """Captured variance grows over 80 samples by four standard errors of the paired difference."""
    rng = generator(3, "funnel")
    d, n = 40, 2_000
    spread = np.concatenate([[4.0, 3.0], np.ones(d - 2)])
    rows = rng.standard_normal((n, d)) * spread
    rows = rows @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    rows /= np.linalg.norm(rows, axis=1).max()
    data, problem = SecondMoment(rows.T @ rows / n, n, rows), problem_of(n, d, 2)
    budget = Budget(0.15, 1e-6)
    recoveries = []
    for mechanism in (Spherical(), Funnel()):
        release = mechanism.release_many(
            data, mechanism.calibrate(problem, budget), Draws.trials(4, "gain", range(80))
        )
        V = release.components
        recoveries.append(np.einsum("sik,ij,sjk->s", V, data.A, V))
    gain = recoveries[1] - recoveries[0]
    assert gain.mean() > 4 * gain.std() / math.sqrt(len(gain))


@pytest.mark.parametrize(
    "key",
    [
        "adaptive_clip_gaussian",
        "funnel",
        "funnel[sizes=0.25]",
        "pure_funnel",
        "screened_wishart_difference",
    ],
)
def test_rows_are_passed_over_in_blocks(key: str) -> None:
    """Blocks take a megabyte, so memory stays below the sixteen megabytes of the rows."""
    rows = generator(0, "blocks").standard_normal((400_000, 5)) / 10
    mechanism, problem = parse_variant(key), problem_of(len(rows), 5, 2)
    claims_delta = mechanism.info.guarantee == "approximate"
    calibration = mechanism.calibrate(problem, Budget(1.0, 1e-6 if claims_delta else 0.0))
    data = SecondMoment(rows.T @ rows / len(rows), len(rows), rows)
    tracemalloc.start()
    try:
        mechanism.release_many(data, calibration, Draws.trials(0, key, range(4)))
        assert tracemalloc.get_traced_memory()[1] < rows.nbytes / 1.2
    finally:
        tracemalloc.stop()
