"""Learning tasks: scores as in scikit-learn, data parts that do not leak, labels in a release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dpviz import datasets
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Domain, default_delta
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.mechanisms import parse_variants
from dpviz.simulation.store import Store
from dpviz.simulation.tasks import (
    CLEAN,
    LEARNERS,
    Labelled,
    Task,
    TaskPlan,
    plan_task,
    score_projected,
    score_table,
    split,
    work,
)
from dpviz.simulation.tasks.learners import FOLDS
from dpviz.simulation.tasks.parts import (
    Projecting,
    Releasing,
)

pytestmark = pytest.mark.long

FIXED = Task(tuning="fixed", epsilons="1")
QUICK = Settings(trials=3, mechanisms=("gaussian",))


def planned(
    task: Task = FIXED, settings: Settings = QUICK, table: Table | None = None, **more: Any
) -> TaskPlan:
    table = datasets.load("iris") if table is None else table
    return plan_task(table, settings, task, None, parse_variants(settings.mechanisms), **more)


def scores_of(plan: TaskPlan) -> pd.DataFrame:
    """Return the scores of a plan after it ran to its end."""
    *_, last = work(plan)
    return score_table(plan, last.scores)


# Splits ---------------------------------------------------------------------------------------


def test_parts_are_disjoint_and_of_the_sizes_asked_for() -> None:
    parts = split(103, (0.5, 0.25, 0.25), generator(0, "x"))
    assert [len(part) for part in parts] == [52, 25, 26]
    assert sorted(np.concatenate(parts)) == list(range(103))
    less = split(100, (0.1, 0.2), generator(0, "x"))
    assert [len(part) for part in less] == [10, 20]
    assert len(set(np.concatenate(less))) == 30
    again = split(103, (0.5, 0.25, 0.25), generator(0, "x"))
    assert all((a == b).all() for a, b in zip(parts, again, strict=True))
    other = split(103, (0.5, 0.25, 0.25), generator(1, "x"))
    assert any((a != b).any() for a, b in zip(parts, other, strict=True) if len(a) == len(b))


# Learners against scikit-learn's own pipelines ---------------------------------------------------


def digits() -> tuple[Labelled, Labelled, FloatArray]:
    """Return training and test rows of a projected table, and a (d, 3) frame."""
    table = datasets.load("digits")
    assert table.labels is not None
    a, b, c = split(len(table.rows), (0.5, 0.2, 0.3), generator(3, "split"))
    rows = table.rows - table.rows[a].mean(axis=0)
    frame = np.linalg.svd(rows[a], full_matrices=False)[2][:3].T
    return Labelled(rows[b], table.labels[b]), Labelled(rows[c], table.labels[c]), frame


def numbers() -> tuple[Labelled, Labelled, FloatArray]:
    table = datasets.load("diabetes")
    assert table.labels is not None
    b, c = split(len(table.rows), (0.4, 0.6), generator(3, "split"))
    frame = np.linalg.qr(generator(3, "frame").standard_normal((10, 4)))[0]
    return Labelled(table.rows[b], table.labels[b]), Labelled(table.rows[c], table.labels[c]), frame


def own_folds(learner: str, labels: Any) -> list[Any]:
    """Return the folds that dpviz chooses for the first repetition of seed 7."""
    state = int(generator(7, "learner", learner, 0).integers(2**31 - 1))
    kind: Any = StratifiedKFold if LEARNERS[learner].kind == "classification" else KFold
    return list(
        kind(FOLDS, shuffle=True, random_state=state).split(np.zeros((len(labels), 1)), labels)
    )


def classifier(model: Any) -> Any:
    return Pipeline([("scale", StandardScaler()), ("model", model)])


@pytest.mark.parametrize(
    ("learner", "model", "grid"),
    [
        ("linear_svm", LinearSVC(dual=False, max_iter=10_000), {"model__C": [0.1, 1, 10]}),
        ("logistic", LogisticRegression(max_iter=10_000), {"model__C": [0.1, 1, 10]}),
    ],
)
def test_a_tuned_classifier_is_scikit_learns_search(learner: str, model: Any, grid: Any) -> None:
    train, test, frame = digits()
    folds = own_folds(learner, train.labels)
    search = GridSearchCV(classifier(model), grid, cv=folds)
    search.fit(train.rows @ frame, train.labels)
    expected = search.score(test.rows @ frame, test.labels)
    (score,) = score_projected(learner, frame[None], train, test, 7)
    assert score == pytest.approx(expected, abs=1e-12)
    assert 0.4 < score < 0.95  # A trivial learner would not reach this score.
    # Control: a different parameter of the learner gives a different score.
    other = {"C": 1e-5}
    assert score_projected(learner, frame[None], train, test, 7, parameters=other)[0] != score


def test_trials_are_named_so_that_chunks_join_without_a_seam() -> None:
    train, test, frame = digits()
    frames = np.stack([frame, frame[:, ::-1], frame])
    whole = score_projected("k_means", frames, train, test, 7)
    parts = [
        score_projected("k_means", frames[i : i + 1], train, test, 7, numbers=[i]) for i in range(3)
    ]
    assert whole.tobytes() == np.concatenate(parts).tobytes()


def test_a_class_with_no_training_row_counts_as_errors() -> None:
    train, test, frame = digits()
    kept_rows = train.labels < 9
    fewer = Labelled(train.rows[kept_rows], train.labels[kept_rows])
    (score,) = score_projected("linear_svm", frame[None], fewer, test, 0, parameters={"C": 1.0})
    assert score <= np.mean(test.labels < 9)
    # If all training rows have one class, every test row is predicted to have this class.
    one = Labelled(train.rows[train.labels == 3], train.labels[train.labels == 3])
    (score,) = score_projected("linear_svm", frame[None], one, test, 0)
    assert score == np.mean(test.labels == 3)


# No part of a projection's data leaks ------------------------------------------------------------


def components_of(plan: TaskPlan, name: str = "gaussian") -> list[FloatArray]:
    frames = []
    for part in plan.parts:
        if part.name != name:
            continue
        for trial in part.trials:
            number = trial % plan.task.splits
            data = plan.data(number)
            assert isinstance(data, Projecting)
            frames.append(plan._frames(part, data, range(trial, trial + 1))[0])
    assert frames
    return frames


def changed_rows(table: Table, rows: Any, amount: float = 9.0) -> Table:
    copy = table.rows.copy()
    copy[rows] += amount
    return replace(table, rows=copy)


@pytest.mark.parametrize("mechanism", ["gaussian", "ppca", "data_laplace"])
def test_only_the_subspace_part_reaches_the_subspace(mechanism: str) -> None:
    table, settings = datasets.load("iris"), replace(QUICK, trials=1, mechanisms=(mechanism,))
    base = planned(settings=settings, table=table)
    before = components_of(base, mechanism)[0]
    sides = base.sides[0]
    everyone = np.concatenate([sides.private, sides.train, sides.test])
    assert len(set(everyone)) == len(table.rows) == len(everyone)
    for rows in (sides.test, sides.train):
        other = planned(settings=settings, table=changed_rows(table, rows[:1]))
        assert components_of(other, mechanism)[0].tobytes() == before.tobytes()
        data = other.data(0)
        assert isinstance(data, Projecting)
        first = base.data(0)
        assert isinstance(first, Projecting)
        assert (data.transform.center == first.transform.center).all()
        assert (data.transform.scale == first.transform.scale).all()
    # Control: changing a row of the subspace part does change the components.
    other = planned(settings=settings, table=changed_rows(table, sides.private[:1]))
    assert components_of(other, mechanism)[0].tobytes() != before.tobytes()


def test_labels_never_reach_the_subspace() -> None:
    table = datasets.load("iris")
    assert table.labels is not None
    base = components_of(planned(table=table))
    other = replace(table, labels=generator(0, "labels").permutation(table.labels))
    for before, after in zip(base, components_of(planned(table=other)), strict=True):
        assert before.tobytes() == after.tobytes()


def test_privacy_is_calibrated_to_the_subspace_part() -> None:
    plan = planned()
    problem, budget = plan.problem_and_budget(0, 1.0)
    assert problem.n == plan.sizes[0] == 75
    assert budget.delta == default_delta(75)
    training = planned(replace(FIXED, subspace="training"))
    assert training.problem_and_budget(0, 1.0)[0].n == training.sizes[0] == training.sizes[1] == 112
    assert set(training.sides[0].private) == set(training.sides[0].train)


def test_an_exact_projection_scores_as_a_pipeline_does() -> None:
    """The score equals the protocol by hand: split, centre, project, scale, fit, score."""
    table = datasets.load("wine")
    assert table.labels is not None
    settings = replace(QUICK, trials=2, k=3)
    plan = planned(settings=settings, table=table)
    scores = scores_of(plan)
    clean = scores[(scores["mechanism"] == CLEAN)].sort_values("split")["score"].to_numpy()
    for number in range(2):
        parts = split(178, (0.5, 0.25, 0.25), generator(0, "task", "split", number))
        private, train, test = parts
        centre = table.rows[private].mean(axis=0)
        frame = np.linalg.svd(table.rows[private] - centre, full_matrices=False)[2][:3].T
        model = classifier(LinearSVC(C=1.0, dual=False, max_iter=10_000))
        model.fit((table.rows[train] - centre) @ frame, table.labels[train])
        expected = model.score((table.rows[test] - centre) @ frame, table.labels[test])
        assert clean[number] == pytest.approx(expected, abs=1e-12)


# Labels in a data release -----------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["ball", "box"])
@pytest.mark.parametrize(
    ("table", "learner", "width"),
    [("iris", "linear_svm", 3), ("breast_cancer", "logistic", 1), ("diabetes", "ridge", 1),
     ("wine", "k_means", 0)],
)  # fmt: skip
def test_a_released_table_lies_in_its_domain_and_reads_back(
    table: str, learner: str, width: int, domain: str
) -> None:
    settings = replace(QUICK, domain=domain, mechanisms=("data_gaussian",))
    task = replace(FIXED, source="release", learner=learner)
    plan = planned(task, settings, datasets.load(table))
    data = plan.data(0)
    assert isinstance(data, Releasing)
    rows = data.measured.moment_with_rows.rows
    assert rows is not None
    d = data.train.rows.shape[1]
    assert rows.shape == (plan.sizes[0], d + width)
    reach = np.linalg.norm(rows, axis=1).max() if domain == "ball" else np.abs(rows).max()
    assert 0.7 < reach <= 1 + 1e-12
    problem, budget = plan.problem_and_budget(0, 1.0)
    kind = Domain.ball(d + width) if domain == "ball" else Domain.box(d + width)
    assert (problem.n, problem.d, problem.domain) == (plan.sizes[0], d + width, kind)
    assert budget.delta == default_delta(plan.sizes[0])
    rows_back = data.read(rows)
    np.testing.assert_allclose(rows_back.rows, data.train.rows, atol=1e-12)
    if width:
        np.testing.assert_allclose(
            rows_back.labels.astype(float), data.train.labels.astype(float), atol=1e-12
        )


def test_only_training_rows_are_released_and_prepared_from() -> None:
    table = datasets.load("iris")
    settings = replace(QUICK, mechanisms=("data_gaussian",))
    task = replace(FIXED, source="release")
    base = planned(task, settings, table)
    sides = base.sides[0]
    assert not set(sides.train) & set(sides.test)

    def rows_of(plan: TaskPlan) -> bytes:
        rows = plan.data(0).measured.moment_with_rows.rows
        assert rows is not None
        return rows.tobytes()

    assert table.labels is not None
    labels = table.labels.copy()
    labels[sides.test] = labels[sides.test][::-1]
    other = replace(changed_rows(table, sides.test), labels=labels)
    assert rows_of(planned(task, settings, other)) == rows_of(base)
    # Control: changing a training row does change the result.
    assert rows_of(planned(task, settings, changed_rows(table, sides.train[:1]))) != rows_of(base)


# Runs: parts, floors, storage -------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    settings = replace(QUICK, trials=6)
    whole = scores_of(planned(settings=settings))

    class Stopped(Exception):
        pass

    count = 0

    def tick() -> None:
        nonlocal count
        count += 1
        if count > 15:
            raise Stopped

    with pytest.raises(Stopped):
        for _ in work(planned(settings=settings), store, tick):
            pass
    part = score_table(planned(settings=settings), {})
    assert part.empty
    before, *_, last = work(planned(settings=settings), store)
    assert 0 < before.progress.reused == before.progress.done < before.progress.total
    pd.testing.assert_frame_equal(score_table(planned(settings=settings), last.scores), whole)
    again = next(work(planned(settings=settings), store))
    assert again.progress.reused == again.progress.total


def test_a_task_learns_on_directions_after_post_processing_if_asked() -> None:
    """A task learns on the directions that `compare` measures, weighted by the diagonal."""
    scores = {}
    for post in ("none", "free"):
        settings = replace(QUICK, table="wine", trials=10, post=post)
        plan = planned(settings=settings, table=datasets.load("wine"))
        scores[post] = [plan.run(part).mean() for part in plan.parts if part.name == "gaussian"]
    assert scores["free"] != scores["none"]
    assert np.mean(scores["free"]) > np.mean(scores["none"])


def test_what_a_score_depends_on_is_in_its_key() -> None:
    table = datasets.load("iris")
    plans = [
        planned(),
        planned(table=changed_rows(table, [0], 1e-9)),
        planned(settings=replace(QUICK, delta=1e-3)),
        planned(settings=replace(QUICK, mechanisms=("laplace",))),
        planned(replace(FIXED, test_share=0.3)),
    ]
    assert len({plan.key(plan.parts[-1]) for plan in plans}) == len(plans)
