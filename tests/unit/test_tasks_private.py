"""Tasks with a private preparation: whole chains, prepared again in each round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpviz import datasets
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.simulation.tasks.plan import CLEAN, TaskPart, TaskPlan, plan_task
from dpviz.simulation.tasks.task import FIXED, Task

pytestmark = pytest.mark.long

PAID = Settings(
    table="iris",
    relation="zero-out",
    delta=1e-5,
    k=2,
    trials=4,
    center="private",
    scale="private",
    row_bound="private:1",
    count="private",
    bounds="0:8",
    mechanisms=("gaussian",),
)
PROJECTING = Task(learner="ridge", tuning=FIXED, splits=2, epsilons="1,1e6")
RELEASED = replace(PROJECTING, source="release")


def _planned(task: Task, settings: Settings, learner: str = "linear_svm") -> TaskPlan:
    task = replace(task, learner=learner, subspace="training")
    mechanisms = parse_variants(settings.mechanisms)
    return plan_task(datasets.load("iris"), settings, task, None, mechanisms)


def _scores(plan: TaskPlan, name: str, epsilon: float | None, trials: range) -> np.ndarray:
    return plan.run(TaskPart(name, epsilon, trials))


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        (PROJECTING, PAID),
        (PROJECTING, replace(PAID, mechanisms=("oja",), count="public", k=1)),
        (RELEASED, replace(PAID, mechanisms=("data_gaussian",), count="public")),
    ],
)
def test_a_chain_without_noise_scores_as_without_privacy(task: Task, settings: Settings) -> None:
    """At epsilon 1e6 mean, scale, bound and release are exact, and so are the training rows."""
    plan = _planned(task, replace(settings, scale="none"))
    if not plan.mechanisms:
        pytest.fail(str(plan.skipped))
    name = settings.mechanisms[0]
    if name == "oja":
        assert np.isfinite(_scores(plan, name, 1e6, range(2))).all()
        return
    clean = _scores(plan, CLEAN, None, range(2))
    scores = _scores(plan, name, 1e6, range(2))
    # One of 38 test rows is a score of .026.
    np.testing.assert_allclose(scores, clean, atol=0.06)
    assert _scores(plan, name, 1.0, range(2)).mean() < clean.mean() + 0.03


def test_rounds_are_the_same_in_any_parts() -> None:
    plan = _planned(PROJECTING, PAID)
    whole = _scores(plan, "gaussian", 1.0, range(4))
    apart = [_scores(plan, "gaussian", 1.0, range(at, at + 1))[0] for at in range(4)]
    np.testing.assert_array_equal(whole, apart)
    assert plan.verdict(parse_variants(("gaussian",))[0], 1.0) is Verdict.HOLDS
    facts = " ".join(plan.assumed_public)
    for gone in ("means", "scales", "row-norm bound"):
        assert gone not in facts
    # The noise, batches and divisors depend on n, so a private count of people cannot hide n.
    assert "the number of rows n of the padded table" in facts


def test_the_features_are_prepared_and_the_label_beside_them_is_not() -> None:
    settings = replace(PAID, mechanisms=("data_gaussian",), count="public")
    plan = _planned(RELEASED, settings)
    assert plan.private is not None
    assert plan.private.features == 4
    problem, _ = plan.problem_and_budget(0, 1.0)
    assert problem.d == 4 + 3
