"""Test every mechanism behind a private preparation: one accounting, one data flow, no fault."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpviz.accounting import accounting
from dpviz.auditing.account import account_view
from dpviz.core.by_length import squares_along
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.parts import GaussianPart, LaplacePart, Part, PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.preparation.account import PreparedMechanism, prepared_mechanism
from dpviz.preparation.bounding import prepare
from dpviz.preparation.draws import noisy_variances, run
from dpviz.preparation.steps import (
    BOUND,
    COUNT,
    MEAN,
    RANGE,
    SCALE,
    STEPS,
    Preparation,
    PrivateSteps,
    preparation,
    private_steps,
)
from dpviz.preparation.transform import Transform
from dpviz.simulation.cells import cell_at
from dpviz.simulation.compare import compare, joined, run_cell
from dpviz.simulation.simulate import Cell
from dpviz.simulation.store import Keys
from dpviz.simulation.sweep import sweep
from tests.chain_attack import audit_chain

ALL_PAID = Settings(
    table="iris",
    relation="zero-out",
    delta=1e-5,
    center="private",
    scale="private",
    row_bound="private:0.9",
    count="private",
    bounds="0:8",
    trials=4,
    mechanisms=("all",),
)
IRIS = prepare(load("iris"), ALL_PAID)
BUDGET = Budget(1.0, 1e-2)
TRIALS = 120  # Use few repetitions per table, because all mechanisms are tested.
LOW, HIGH = np.array([-1.0, 0.0]), np.array([1.0, 4.0])
NO_DRAWS = Draws.batch(np.random.default_rng(0), 1)  # Noise of scale 0 needs no random numbers.
PUBLIC = Transform(LOW, HIGH, (LOW + HIGH) / 2, np.ones(2), 1.5, False, 1.0)


def _chain(key: str, relation: Relation, budget: Budget = BUDGET) -> PreparedMechanism | str:
    mechanism = parse_variant(key)
    problem = Problem(3, 2, 1, relation, Domain.ball(2))
    reason = mechanism.why_not(problem, budget)
    if reason is not None:
        return reason
    steps = STEPS if mechanism.info.release != "data" else (MEAN, SCALE, BOUND)
    try:
        return prepared_mechanism(mechanism, problem, budget, PrivateSteps(steps))
    except CannotRun as error:
        return error.reason


@pytest.mark.slow
@pytest.mark.parametrize("key", all_mechanisms())
@pytest.mark.parametrize("relation", list(Relation))
def test_the_whole_costs_no_more_than_its_budget(key: str, relation: Relation) -> None:
    chain = _chain(key, relation)
    if isinstance(chain, str):
        assert chain  # This is the reason why the preparation cannot run.
        return
    loss = chain.spent
    status = chain.status(loss)
    if chain.claimed is None:
        assert status.verdict is Verdict.BASELINE
        return
    # A mechanism that uses less than it claims may leave budget for the preparation.
    assert chain.rest.epsilon <= chain.claimed.epsilon
    if status.verdict.fails:  # The claim must also fail on the remaining budget.
        assert chain.mechanism.status(chain.problem, chain.rest).verdict.fails
        return
    assert loss is not None
    assert loss.epsilon <= chain.claimed.epsilon * (1 + 1e-9)
    assert loss.delta <= chain.claimed.delta
    assert "Preparation (" in status.evidence


def _by_dp_accounting(parts: Sequence[Part]) -> pld.PrivacyLossDistribution:
    whole = pld.identity(1e-4)
    for part in parts:
        if isinstance(part, GaussianPart):
            other = pld.from_gaussian_mechanism(
                part.std, sensitivity=part.sensitivity, value_discretization_interval=1e-4
            )
        elif isinstance(part, LaplacePart):
            other = pld.from_laplace_mechanism(
                part.scale, sensitivity=part.sensitivity, value_discretization_interval=1e-4
            )
        else:
            other = pld.from_privacy_parameters(
                pld.common.DifferentialPrivacyParameters(part.epsilon, 0.0),
                value_discretization_interval=1e-4,
            )
        whole = whole.compose(other)
    return whole


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("key", ["gaussian", "separate_covariance", "wishart_difference"])
def test_the_account_of_a_chain_is_that_of_other_code(key: str, relation: Relation) -> None:
    """A chain's loss, curve and repeated releases match dp-accounting within 1e-3."""
    mechanism = parse_variant(key)
    problem = Problem(300, 4, 1, relation, Domain.ball(4))
    steps = PrivateSteps((COUNT, MEAN, SCALE))
    chain = prepared_mechanism(mechanism, problem, BUDGET, steps)
    assert chain.spent is not None
    release = mechanism.calibrate(problem, chain.rest).parts
    whole = _by_dp_accounting((*chain.preparation.parts, *release))
    view = account_view(mechanism, problem, BUDGET, (1, 10), steps)
    assert view.spent == chain.spent
    if chain.spent.delta > 0:
        assert whole.get_epsilon_for_delta(BUDGET.delta) == pytest.approx(
            view.spent.epsilon, abs=1e-3
        )
    for epsilon, delta in zip(view.epsilons[::8], view.deltas[::8], strict=True):
        assert whole.get_delta_for_epsilon(float(epsilon)) == pytest.approx(
            delta, rel=1e-3, abs=2e-4
        )
    ten = whole.self_compose(10).get_epsilon_for_delta(BUDGET.delta)
    assert view.repeated[1].exact == pytest.approx(ten, rel=1e-3)
    # Control: without the preparation, the mechanism's epsilon is smaller.
    alone = account_view(mechanism, problem, chain.rest, (1,))
    assert alone.spent.epsilon < view.spent.epsilon * 0.99


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(
    ("key", "delta"), [("spherical", 1e-2), ("spherical_wishart_difference", 0.0)]
)
@pytest.mark.parametrize("radius", [False, True])
def test_the_account_of_bought_variances_is_that_of_other_code(
    key: str, delta: float, relation: Relation, radius: bool
) -> None:
    """A release, the radius search and the variances use the whole budget, and no more."""
    mechanism = parse_variant(key)
    domain = Domain.unbounded(4) if radius else Domain.ball(4)
    problem, budget = Problem(300, 4, 1, relation, domain), Budget(1.0, delta)
    steps = PrivateSteps((), variance=0.2, radius=radius)
    chain = prepared_mechanism(mechanism, problem, budget, steps)
    assert chain.spent is not None
    assert chain.spent.epsilon == pytest.approx(1.0, abs=1e-6)
    assert chain.spent.epsilon <= 1.0
    release = mechanism.calibrate(problem, chain.rest).parts
    parts = (*chain.preparation.parts, *release)
    if delta == 0:
        # Add the epsilons: Laplace noise and exponential mechanisms compose in this way.
        assert math.fsum(_epsilon_of(part) for part in parts) == pytest.approx(1.0, abs=1e-6)
    else:
        other = _by_dp_accounting(parts).get_epsilon_for_delta(delta)
        assert other == pytest.approx(chain.spent.epsilon, abs=2e-3)
    # Control: the preparation plus a release with the whole budget exceeds the budget.
    alone = mechanism.calibrate(problem, budget).parts
    assert accounting.spent((*chain.preparation.parts, *alone), budget).epsilon > 1.05


def _epsilon_of(part: Part) -> float:
    if isinstance(part, LaplacePart):
        return part.sensitivity / part.scale
    assert isinstance(part, PurePart)
    return part.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Relation))
def test_no_neighbours_move_bought_variances_further_than_their_sensitivity(
    relation: Relation,
) -> None:
    """A hill climb from random rows and directions attains the sensitivity and never exceeds it.

    Every start reaches the maximum, with one to three directions, so one start each suffices.
    """
    rng = np.random.default_rng(12)
    most = {}
    for pure in (False, True):
        plan = preparation(
            PrivateSteps((), variance=0.1), 1, 3, relation, Budget(1.0, 1e-6), pure=pure
        )  # fmt: skip
        (part,) = plan.parts
        assert isinstance(part, (GaussianPart, LaplacePart))
        most[1 if pure else 2] = part.sensitivity
    plan = replace(plan, noises=dict.fromkeys(plan.noises, 0.0))  # Compare values without noise.
    for norm, sensitivity in most.items():
        for m in (1, 2, 3):
            point = rng.standard_normal((3, 2 + m))
            size = _moved(point, plan, relation, norm)
            for step in range(600):
                candidate = point + rng.standard_normal(point.shape) * 0.5 * 0.99**step
                if (distance := _moved(candidate, plan, relation, norm)) > size:
                    point, size = candidate, distance
            assert size <= sensitivity * (1 + 1e-12)
            assert size == pytest.approx(sensitivity, rel=1e-2)
    # Control: if rows are not clipped, the variances move further.
    long = 3 * rng.standard_normal((3, 4))
    assert _moved(long, plan, relation, 2, bound=np.inf) > 1.5 * most[2]


def _moved(
    point: np.ndarray, plan: Preparation, relation: Relation, norm: int, bound: float = 1.0
) -> float:
    """Return how far apart two rows move the variances; columns give rows and directions."""
    first, second = (
        row / max(1.0, float(np.linalg.norm(row)) / bound) for row in (point[:, 0], point[:, 1])
    )
    if relation is Relation.ZERO_OUT:
        second = np.zeros(3)
    directions = np.linalg.qr(point[:, 2:])[0]
    variances = [
        noisy_variances(squares_along(directions, np.outer(row, row)), plan, NO_DRAWS)[0]
        for row in (first, second)
    ]
    return float(np.linalg.norm(variances[0] - variances[1], norm))


@pytest.mark.slow
@pytest.mark.parametrize("key", all_mechanisms())
def test_no_chain_is_refuted(key: str) -> None:
    """No attack on all published values refutes a chain (confidence 0.9999 per mechanism)."""
    chain = _chain(key, Relation.REPLACE)
    if isinstance(chain, str) or chain.status(chain.spent).verdict.fails or chain.claimed is None:
        return
    assert not audit_chain(chain, PUBLIC, trials=TRIALS, confidence=0.9999).refuted


def test_that_attack_sees_a_mean_taken_from_the_data() -> None:
    chain = _chain("gaussian", Relation.REPLACE)
    assert isinstance(chain, PreparedMechanism)
    none = replace(chain.preparation, noises={}, parts=())
    attack = audit_chain(
        chain,
        PUBLIC,
        trials=TRIALS,
        confidence=0.9999,
        prepare=lambda rows, present, draws: run(
            rows, replace(PUBLIC, center=rows.mean(axis=0)), none, draws, present
        ),
    )
    assert attack.refuted


@pytest.mark.slow
def test_every_mechanism_that_can_runs_in_a_comparison() -> None:
    comparison = compare(IRIS, ALL_PAID)
    assert {item.mechanism for item in comparison.skipped} | {
        result.mechanism.text for result in comparison.results
    } == set(all_mechanisms())
    assert len(comparison.results) > 15
    for item in comparison.skipped:
        assert item.reason
    facts = " ".join(IRIS.assumed_public)
    for gone in ("means", "scales", "row-norm bound", "smallest"):
        assert gone not in facts
    # Noise, batches and divisors depend on n, so a private count cannot hide n from readers.
    assert "the number of rows n of the padded table" in facts
    for result in comparison.results:
        values = result.metrics["recovery"]
        assert np.isfinite(values).all()
        assert values.max() <= 1 + 1e-9


def test_chunks_of_draws_join_without_a_seam() -> None:
    for key in ("gaussian", "ppca", "data_laplace", "adaptive_clip_gaussian"):
        settings = replace(ALL_PAID, count="public")
        ready = prepare(load("iris"), settings)
        cell = cell_at(ready, settings, parse_variant(key), range(4))
        assert isinstance(cell, Cell), cell
        whole = run_cell(cell, ready)
        parts = [
            run_cell(replace(cell, trials=trials), ready) for trials in (range(1), range(1, 4))
        ]
        for name, values in joined(parts).metrics.items():
            np.testing.assert_array_equal(values, whole.metrics[name], err_msg=f"{key} {name}")


@pytest.mark.parametrize("bound", ["quantile", "adaptive"])
@pytest.mark.parametrize("steps", [(BOUND,), (MEAN, SCALE, BOUND)])
def test_draws_prepared_together_have_the_bytes_of_draws_alone(
    steps: tuple[str, ...], bound: str
) -> None:
    rows, d = IRIS.raw, IRIS.raw.shape[1]
    public = Transform(np.zeros(d), np.full(d, 8.0), np.full(d, 4.0), np.ones(d), 1.5, False, 9.0)
    private = PrivateSteps(steps, bound=bound)
    plan = preparation(private, len(rows), d, Relation.ZERO_OUT, BUDGET, pure=False)
    here = np.arange(len(rows)) % 7 > 0
    together, *alone = (
        run(rows, public, plan, Draws.trials(0, "together", trials), here)
        for trials in (range(5), *(range(trial, trial + 1) for trial in range(5)))
    )
    for trial, one in enumerate(alone):
        for name in ("center", "scale", "row_bound", "count", "moments"):
            assert getattr(one, name)[0].tobytes() == getattr(together, name)[trial].tobytes()


def test_each_step_moves_what_is_released_and_nothing_else_is_left() -> None:
    """With almost no noise, a private preparation gives the exact components."""
    loud = replace(ALL_PAID, epsilon=1e6, row_bound="private:1", mechanisms=("gaussian",))
    (result,) = compare(prepare(load("iris"), loud), loud).results
    assert result.metrics["recovery"].min() > 0.999
    exact = result.metrics["noise_spectral"].max()
    assert exact < 1e-3


def test_bounds_can_be_bought_too() -> None:
    """With ample budget, private bounds give all features one range: the least power of two."""
    settings = replace(ALL_PAID, bounds="private", epsilon=1e4, mechanisms=("gaussian",))
    ready = prepare(load("iris"), settings)
    assert not any("bounds" in item or "value" in item for item in ready.assumed_public)
    assert ready.raw is not None
    steps = private_steps(settings)
    assert steps is not None
    whole = prepared_mechanism(
        parse_variant("gaussian"), ready.problem(settings), ready.budget(settings), steps
    )
    zero, one = np.zeros(4), np.ones(4)
    public = Transform(-one, one, zero, one, 1.0, False, 1.0)
    draws = Draws.trials(0, "prepare", range(3))
    rows = run(ready.raw, public, whole.preparation, draws)
    assert rows.reach is not None
    np.testing.assert_array_equal(rows.reach, 8.0)  # 7.9 cm is largest; 8 is the next power of two.
    (result,) = compare(ready, settings).results
    assert result.metrics["recovery"].min() > 0.99
    # If the budget is too small to detect anyone, the range search stops and reveals nothing.
    small = replace(whole.preparation, noises={**whole.preparation.noises, RANGE: 1e-6})
    tiny = run(ready.raw, public, small, Draws.trials(0, "prepare", range(3)))
    assert tiny.reach is not None
    assert tiny.reach.max() < 1e-9


def test_a_chain_with_bought_bounds_is_not_refuted() -> None:
    mechanism = parse_variant("gaussian")
    problem = Problem(3, 2, 1, Relation.REPLACE, Domain.ball(2))
    chain = prepared_mechanism(mechanism, problem, BUDGET, PrivateSteps((RANGE, MEAN, BOUND)))
    assert chain.spent is not None
    assert chain.spent.epsilon <= BUDGET.epsilon
    assert not audit_chain(chain, PUBLIC, trials=TRIALS, confidence=0.9999).refuted


def test_n_can_be_smaller_or_larger_than_the_table() -> None:
    settings = replace(ALL_PAID, epsilon=1e5, mechanisms=("gaussian",), trials=2)
    for n in (60, 150, 3_000):
        answer = sweep(IRIS, {"n": [n]}, settings, metrics=("recovery",))
        assert answer.table["value"].min() > 0.9


def test_a_private_bound_is_no_value_of_an_axis() -> None:
    with pytest.raises(InvalidSetting, match="a private bound differs in each draw"):
        sweep(IRIS, {"row_bound": ["private:0.9"]}, ALL_PAID)


def test_what_is_paid_for_is_in_the_key_of_a_cell() -> None:
    keys = set()
    for change in ({}, {"mean_share": 0.2}, {"row_bound": "private:adaptive"}, {"bounds": "0:9"}):
        settings = replace(ALL_PAID, **change)
        ready = prepare(load("iris"), settings)
        cell = cell_at(ready, settings, parse_variant("gaussian"), range(1))
        assert isinstance(cell, Cell)
        keys.add(Keys(ready).key(cell, ("recovery",)))
    assert len(keys) == 4


def test_settings_say_which_steps_are_paid_for() -> None:
    assert private_steps(Settings()) is None
    assert private_steps(replace(ALL_PAID, count_share=0.05)) == PrivateSteps(
        (COUNT, MEAN, SCALE, BOUND),
        ((COUNT, 0.05), (MEAN, 0.1), (SCALE, 0.1), (BOUND, 0.1)),
        "quantile",
        0.9,
    )
    adaptive = private_steps(Settings(row_bound="private:adaptive"))
    assert adaptive is not None
    assert adaptive.bound == "adaptive"
    # Private bounds use budget only if a later preparation step depends on them.
    assert Settings(bounds="private").private_shares == {}
    assert Settings(bounds="private", center="private").private_shares == {
        "mean": 0.1,
        "range": 0.05,
    }
    with pytest.raises(InvalidSetting, match="ball if the preparation is private"):
        Settings(domain="box", scale="private")
    with pytest.raises(InvalidSetting, match=r"at most 0\.95 in all"):
        Settings(center="private", mean_share=0.9, row_bound="private:0.9")
    # Accept a large share for a preparation step that uses no budget here.
    assert Settings(mean_share=0.9, bound_share=0.9).private_shares == {}
    # Under the replace relation, all neighbours have the same n, so the count uses no budget.
    assert Settings(count="private").private_shares == {}
