"""Learning tasks: scores as scikit-learn gives them, parts that do not leak, labels that travel."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dpviz import datasets
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting, InvalidTable
from dpviz.core.params import params_of
from dpviz.core.problem import Domain, default_delta
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.mechanisms import parse_variants
from dpviz.simulation.jobs import Progress
from dpviz.simulation.store import Store
from dpviz.simulation.tasks import (
    CHANCE,
    CLEAN,
    FLOOR,
    LEARNERS,
    TASK_BAND_COLUMNS,
    TASK_COLUMNS,
    Labelled,
    Task,
    TaskPlan,
    band_table,
    finish,
    kept,
    kinds_of,
    learner_for,
    learners_for,
    load_labelled,
    plan_task,
    score_guess,
    score_projected,
    score_released,
    score_table,
    split,
    work,
)
from dpviz.simulation.tasks.learners import FOLDS
from dpviz.simulation.tasks.parts import (
    ClassCode,
    NoCode,
    NumberCode,
    Projecting,
    Releasing,
    joined,
    parted,
)

FIXED = Task(tuning="fixed", epsilons="1")
QUICK = Settings(trials=3, mechanisms=("gaussian",))


def planned(
    task: Task = FIXED, settings: Settings = QUICK, table: Table | None = None, **more: Any
) -> TaskPlan:
    table = datasets.load("iris") if table is None else table
    return plan_task(table, settings, task, None, parse_variants(settings.mechanisms), **more)


def invented(n: int, d: int, labels: Any, name: str = "invented") -> Table:
    rows = generator(1, "invented", n, d).standard_normal((n, d))
    columns = tuple(f"f{j}" for j in range(d))
    return Table(name, rows, columns, None if labels is None else np.asarray(labels), "answer")


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


@pytest.mark.parametrize("shares", [(), (0.0, 0.5), (-0.1, 0.5), (0.6, 0.5)])
def test_shares_that_are_none_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(InvalidSetting, match="shares must be"):
        split(100, shares, generator(0, "x"))


def test_an_empty_part_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="rows must be enough"):
        split(3, (0.9, 0.1), generator(0, "x"))


def test_shares_of_a_task() -> None:
    assert Task().shares == (0.5, 0.25, 0.25)
    assert Task(subspace="training").shares == (0.75, 0.25)
    assert Task(source="release", subspace_share=0.9, subspace="training").shares == (0.75, 0.25)
    with pytest.raises(InvalidSetting, match=r"0\.95 together"):
        Task(subspace_share=0.6, test_share=0.4)
    assert Task(subspace_share=0.9, test_share=0.9, subspace="training").shares[1] == 0.9


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
    """Return the folds that dpviz draws for the first trial of seed 7."""
    state = int(generator(7, "learner", learner, 0).integers(2**31 - 1))
    kind: Any = StratifiedKFold if LEARNERS[learner].kind == "classification" else KFold
    return list(
        kind(FOLDS, shuffle=True, random_state=state).split(np.zeros((len(labels), 1)), labels)
    )


def classifier(model: Any) -> Any:
    return Pipeline([("scale", StandardScaler()), ("model", model)])


def regressor(model: Any) -> Any:
    return TransformedTargetRegressor(classifier(model), transformer=StandardScaler())


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
    (found,) = score_projected(learner, frame[None], train, test, 7)
    assert found == pytest.approx(expected, abs=1e-12)
    assert 0.4 < found < 0.95  # not a score that anything would reach
    # Negative control: another parameter gives another score.
    other = {"C": 1e-5}
    assert score_projected(learner, frame[None], train, test, 7, parameters=other)[0] != found


@pytest.mark.parametrize(
    ("learner", "model", "grid"),
    [
        ("ridge", Ridge(), {"alpha": [100.0, 10.0, 1.0, 0.1, 0.01]}),
        (
            "kernel_ridge",
            KernelRidge(kernel="rbf"),
            {"alpha": [1.0, 0.1, 0.01], "gamma": [0.03 / 4, 0.1 / 4, 0.3 / 4]},
        ),
    ],
)
def test_a_tuned_regressor_is_scikit_learns_search(learner: str, model: Any, grid: Any) -> None:
    train, test, frame = numbers()
    folds = own_folds(learner, train.labels)
    named = {f"regressor__model__{name}": values for name, values in grid.items()}
    search = GridSearchCV(regressor(model), named, cv=folds, scoring="neg_root_mean_squared_error")
    search.fit(train.rows @ frame, train.labels)
    (found,) = score_projected(learner, frame[None], train, test, 7)
    expected = -search.score(test.rows @ frame, test.labels)
    assert found == pytest.approx(expected, rel=1e-9)
    assert found < score_guess(learner, train, test)


def test_fixed_parameters_are_used_as_given() -> None:
    train, test, frame = digits()
    model = classifier(LinearSVC(C=0.03, dual=False)).fit(train.rows @ frame, train.labels)
    (found,) = score_projected("linear_svm", frame[None], train, test, 0, parameters={"C": 0.03})
    assert found == pytest.approx(model.score(test.rows @ frame, test.labels), abs=1e-12)


def test_k_means_is_judged_by_the_adjusted_rand_index() -> None:
    train, test, frame = digits()
    state = int(generator(7, "learner", "k_means", 0).integers(2**31 - 1))
    model = KMeans(10, n_init=10, random_state=state).fit(train.rows @ frame)
    expected = adjusted_rand_score(test.labels, model.predict(test.rows @ frame))
    (found,) = score_projected("k_means", frame[None], train, test, 7)
    assert found == pytest.approx(expected, abs=1e-12)
    # Labels judge and do not teach: shuffled training labels change nothing.
    shuffled = Labelled(train.rows, generator(0, "s").permutation(train.labels))
    assert score_projected("k_means", frame[None], shuffled, test, 7)[0] == found


def test_trials_are_named_so_that_chunks_join_without_a_seam() -> None:
    train, test, frame = digits()
    frames = np.stack([frame, frame[:, ::-1], frame])
    whole = score_projected("k_means", frames, train, test, 7)
    parts = [
        score_projected("k_means", frames[i : i + 1], train, test, 7, numbers=[i]) for i in range(3)
    ]
    assert whole.tobytes() == np.concatenate(parts).tobytes()


def test_a_release_is_learned_from_one_by_one_or_at_once() -> None:
    train, test, _ = numbers()
    noise = generator(1, "noise").standard_normal((3, *train.rows.shape)) / 10
    labels = np.stack([train.labels] * 3)
    stacked = Labelled(train.rows + noise, labels)
    fixed = {"alpha": 1.0}
    at_once = score_released("ridge", stacked, test, 0, parameters=fixed)
    singles = (Labelled(rows, train.labels) for rows in train.rows + noise)
    one_by_one = score_released("ridge", singles, test, 0, parameters=fixed)
    assert at_once.tobytes() == one_by_one.tobytes()
    assert len(set(at_once)) == 3
    (clean,) = score_released("ridge", train, test, 0, parameters=fixed)
    model = regressor(Ridge(alpha=1.0)).fit(train.rows, train.labels)
    error = model.predict(test.rows) - test.labels
    assert clean == pytest.approx(math.sqrt(np.mean(error**2)), rel=1e-9)


def test_a_class_with_no_training_row_counts_as_errors() -> None:
    train, test, frame = digits()
    kept_rows = train.labels < 9
    fewer = Labelled(train.rows[kept_rows], train.labels[kept_rows])
    (found,) = score_projected("linear_svm", frame[None], fewer, test, 0, parameters={"C": 1.0})
    assert found <= np.mean(test.labels < 9)
    # One class only: everything is taken for it.
    one = Labelled(train.rows[train.labels == 3], train.labels[train.labels == 3])
    (found,) = score_projected("linear_svm", frame[None], one, test, 0)
    assert found == np.mean(test.labels == 3)


def test_few_rows_are_learned_from_without_folds() -> None:
    rows = generator(0, "few").standard_normal((5, 2))
    few = Labelled(rows, np.array([0, 1, 0, 1, 1]))
    (found,) = score_projected("linear_svm", np.eye(2)[None], few, few, 0)
    (fixed,) = score_projected("linear_svm", np.eye(2)[None], few, few, 0, parameters={"C": 1.0})
    assert found == fixed
    # Six rows make folds; a class that is in one of them alone must not end the run.
    rare = Labelled(generator(0, "rare").standard_normal((7, 2)), np.array([0, 0, 0, 0, 0, 0, 1]))
    assert score_projected("logistic", np.eye(2)[None], rare, rare, 0).shape == (1,)


def test_more_clusters_than_points_is_no_error() -> None:
    points = Labelled(np.zeros((6, 2)), np.arange(6))
    assert score_projected("k_means", np.eye(2)[None], points, points, 0).shape == (1,)


def test_guesses_are_constant() -> None:
    train = Labelled(np.zeros((5, 2)), np.array(["a", "b", "b", "b", "a"]))
    test = Labelled(np.zeros((4, 2)), np.array(["a", "b", "b", "c"]))
    assert score_guess("logistic", train, test) == 0.5
    assert score_guess("k_means", train, test) == 0
    plain = Labelled(np.zeros((2, 2)), np.array([1.0, 3.0]))
    assert score_guess("ridge", plain, plain) == 1.0


def test_rows_and_labels_must_go_together() -> None:
    with pytest.raises(ValueError, match="a label is needed for each row"):
        Labelled(np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(InvalidSetting, match="learner must be one of linear_svm"):
        score_guess(
            "oracle",
            Labelled(np.zeros((3, 2)), np.zeros(3)),
            Labelled(np.zeros((3, 2)), np.zeros(3)),
        )


# Which learner suits a label ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "kinds"),
    [
        (np.array(["a", "b"] * 10), ("classification", "clustering")),
        (np.array([True, False] * 10), ("classification", "clustering")),
        (np.arange(20) % 10, ("classification", "clustering")),
        (np.arange(20) % 11, ("classification", "clustering", "regression")),
        (np.arange(20) / 2, ("classification", "clustering", "regression")),
        (np.arange(21) / 2, ("regression",)),
        (np.zeros(20), ()),
        (np.array([f"t{i}" for i in range(51)]), ()),
    ],
)
def test_kinds_follow_from_the_label(labels: Any, kinds: tuple[str, ...]) -> None:
    assert kinds_of(labels) == kinds


def test_a_learner_that_does_not_suit_is_refused_in_a_sentence() -> None:
    for key, table in (("linear_svm", "diabetes"), ("ridge", "digits")):
        with pytest.raises(InvalidSetting, match="for this label, which") as caught:
            planned(Task(learner=key), table=datasets.load(table))
        assert caught.value.as_option().startswith("--learner must be one of ")
    assert learner_for(Task(), datasets.load("iris").labels).key == "linear_svm"
    assert learner_for(Task(), datasets.load("diabetes").labels).key == "kernel_ridge"


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "needs a label for each row; this table has none"),
        (["same"] * 30, "at least 2 different values; this one has 1"),
        ([f"t{i}" for i in range(60)], "this one is text of 60 different values"),
        ([math.nan, *range(29)], "finite label"),
    ],
)
def test_a_table_that_cannot_be_learned_says_why(labels: Any, words: str) -> None:
    n = 30 if labels is None else len(labels)
    with pytest.raises(InvalidTable, match=words) as caught:
        planned(table=invented(n, 3, labels))
    assert "t5" not in str(caught.value)  # no cell of the table
    assert learners_for(datasets.load("iris").labels)


def test_too_few_rows_say_so() -> None:
    with pytest.raises(InvalidTable, match="at least 20 labelled rows; invented has 19"):
        planned(table=invented(19, 3, np.arange(19) % 2))
    with pytest.raises(
        InvalidTable, match=r"at least 9 rows to learn from .* leave 5 and 5 of the"
    ):
        planned(Task(learner="k_means", epsilons="1"), table=invented(20, 3, np.arange(20) % 9))


def test_rare_and_missing_classes_are_told() -> None:
    labels = np.array([0] * 28 + [1] * 10 + [2] * 2)
    notes = " ".join(
        planned(table=invented(40, 3, labels), settings=replace(QUICK, trials=5)).notes
    )
    assert "of 5 splits a class has no training row" in notes
    assert "1 of 3 class has fewer than 5 rows" in notes
    assert "class has no" not in " ".join(planned().notes)


# The parts of a projection do not leak -----------------------------------------------------------


def components_of(plan: TaskPlan, name: str = "gaussian") -> list[FloatArray]:
    found = []
    for part in plan.parts:
        if part.name != name:
            continue
        for trial in part.trials:
            number = trial % plan.task.splits
            data = plan.data(number)
            assert isinstance(data, Projecting)
            found.append(plan._frames(part, data, range(trial, trial + 1)))
    assert found
    return found


def changed_rows(table: Table, rows: Any, amount: float = 9.0) -> Table:
    copy = table.rows.copy()
    copy[rows] += amount
    return replace(table, rows=copy)


@pytest.mark.parametrize("mechanism", ["gaussian", "ppca", "data_laplace"])
def test_only_the_subspace_part_reaches_the_subspace(mechanism: str) -> None:
    table, settings = datasets.load("iris"), replace(QUICK, trials=1, mechanisms=(mechanism,))
    base = planned(settings=settings, table=table)
    before = components_of(base, mechanism)[0]
    chosen = base.sides[0]
    everyone = np.concatenate([chosen.private, chosen.train, chosen.test])
    assert len(set(everyone)) == len(table.rows) == len(everyone)
    for rows in (chosen.test, chosen.train):
        other = planned(settings=settings, table=changed_rows(table, rows[:1]))
        assert components_of(other, mechanism)[0].tobytes() == before.tobytes()
        data = other.data(0)
        assert isinstance(data, Projecting)
        own = base.data(0)
        assert isinstance(own, Projecting)
        assert (data.transform.center == own.transform.center).all()
        assert (data.transform.scale == own.transform.scale).all()
    # Negative control: a row of the subspace part does reach it.
    other = planned(settings=settings, table=changed_rows(table, chosen.private[:1]))
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
    """The whole protocol by hand: split, centre, project, scale, fit, score."""
    table = datasets.load("wine")
    assert table.labels is not None
    settings = replace(QUICK, trials=2, k=3)
    plan = planned(settings=settings, table=table)
    found = finish(plan)
    clean = found[(found["mechanism"] == CLEAN)].sort_values("split")["score"].to_numpy()
    for number in range(2):
        parts = split(178, (0.5, 0.25, 0.25), generator(0, "task", "split", number))
        private, train, test = parts
        centre = table.rows[private].mean(axis=0)
        frame = np.linalg.svd(table.rows[private] - centre, full_matrices=False)[2][:3].T
        model = classifier(LinearSVC(C=1.0, dual=False, max_iter=10_000))
        model.fit((table.rows[train] - centre) @ frame, table.labels[train])
        expected = model.score((table.rows[test] - centre) @ frame, table.labels[test])
        assert clean[number] == pytest.approx(expected, abs=1e-12)


def test_a_huge_budget_reaches_the_score_without_privacy() -> None:
    """At epsilon 1e6 the noise is some 1e-6 of the gap, so predictions agree but for a hair."""
    settings = Settings(trials=5, mechanisms=("gaussian",), k=2)
    for task in (FIXED, replace(FIXED, learner="k_means"), replace(FIXED, subspace="training")):
        plan = planned(replace(task, epsilons="1e6"), settings)
        bands = band_table(plan, finish(plan)).set_index("mechanism")["mean"]
        assert bands["gaussian"] == pytest.approx(bands[CLEAN], abs=0.01)
        assert bands[CLEAN] > bands[CHANCE] or task.learner == "k_means"


def test_large_parts_are_thinned_and_the_subspace_part_is_not() -> None:
    table = datasets.load("digits")
    plan = planned(replace(FIXED, most=100), table=table)
    assert plan.sizes == (898, 100, 100)
    assert "100 are used" in " ".join(plan.notes)
    full = planned(FIXED, table=table)
    assert full.sizes == (898, 450, 449)
    assert set(plan.sides[0].train) <= set(full.sides[0].train)


# Labels in a data release -----------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_class_codes_come_back(count: int, low: float) -> None:
    code, classes = ClassCode(count, low), np.arange(count).repeat(3)
    cells = code.write(classes)
    assert cells.shape == (3 * count, code.width)
    assert np.abs(cells).max() <= 1
    if low == 0 or count == 2:
        assert np.linalg.norm(cells, axis=1).max() == 1  # room for the features beside it
    assert (code.read(cells) == classes).all()
    noise = generator(0, "cells").uniform(-0.4, 0.4, cells.shape)
    assert (code.read(cells + noise) == classes).all()
    assert (code.read(-cells) != classes).all() or count > 2


def test_number_codes_come_back_within_their_bounds() -> None:
    code = NumberCode(2.0, 6.0)
    cells = code.write(np.array([1.0, 2.0, 4.0, 6.0, 9.0]))
    assert cells[:, 0].tolist() == [-1, -1, 0, 1, 1]
    assert code.read(cells).tolist() == [2, 2, 4, 6, 6]
    assert code.read(np.array([[3.0], [-3.0], [0.5]])).tolist() == [6, 2, 5]
    still = NumberCode(3.0, 3.0)  # a label that does not vary
    assert still.write(np.array([3.0])).tolist() == [[0.0]]
    assert NoCode().write(np.arange(3)).shape == (3, 0)


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
    read = data.read(rows)
    np.testing.assert_allclose(read.rows, data.train.rows, atol=1e-12)
    if width:
        np.testing.assert_allclose(
            read.labels.astype(float), data.train.labels.astype(float), atol=1e-12
        )


def test_only_training_rows_are_released_and_prepared_from() -> None:
    table = datasets.load("iris")
    settings = replace(QUICK, mechanisms=("data_gaussian",))
    task = replace(FIXED, source="release")
    base = planned(task, settings, table)
    chosen = base.sides[0]
    assert not set(chosen.train) & set(chosen.test)

    def rows_of(plan: TaskPlan) -> bytes:
        rows = plan.data(0).measured.moment_with_rows.rows
        assert rows is not None
        return rows.tobytes()

    assert table.labels is not None
    labels = table.labels.copy()
    labels[chosen.test] = labels[chosen.test][::-1]
    other = replace(changed_rows(table, chosen.test), labels=labels)
    assert rows_of(planned(task, settings, other)) == rows_of(base)
    # Negative control.
    assert rows_of(planned(task, settings, changed_rows(table, chosen.train[:1]))) != rows_of(base)


def test_a_release_with_a_huge_budget_is_as_good_as_clean_rows() -> None:
    settings = Settings(trials=3, mechanisms=("data_gaussian", "data_laplace"), domain="box")
    for name, learner in (("iris", "logistic"), ("diabetes", "ridge"), ("wine", "k_means")):
        task = Task(source="release", tuning="fixed", epsilons="1e6", learner=learner)
        plan = planned(task, settings, datasets.load(name))
        bands = band_table(plan, finish(plan)).set_index("mechanism")["mean"]
        for mechanism in settings.mechanisms:
            # Noise of some 1e-5 of a cell's range moves no more than a prediction or two.
            assert bands[mechanism] == pytest.approx(bands[CLEAN], abs=0.03), (name, mechanism)


def test_a_small_budget_leaves_nothing_to_learn() -> None:
    settings = Settings(trials=10, mechanisms=("data_gaussian",), domain="box")
    plan = planned(Task(source="release", tuning="fixed", epsilons="0.001"), settings)
    bands = band_table(plan, finish(plan)).set_index("mechanism")["mean"]
    # Three classes: predictions are unrelated to 10 x 38 labels; 6.1 standard errors are 0.15.
    assert abs(bands["data_gaussian"] - 1 / 3) < 0.15
    assert bands[CLEAN] > 0.9


def test_bounds_of_a_label_may_come_from_a_file() -> None:
    table = datasets.load("diabetes")
    assert table.labels is not None
    lows, highs = table.rows.min(axis=0), table.rows.max(axis=0)
    bounds = {c: (float(a), float(b)) for c, a, b in zip(table.columns, lows, highs, strict=True)}
    known = bounds | {"disease progression": (0.0, 500.0)}
    settings = replace(QUICK, domain="box", mechanisms=("data_gaussian",))
    task = replace(FIXED, source="release", learner="ridge")
    plan = planned(task, replace(settings, bounds=known), table)
    data = plan.data(0)
    assert isinstance(data, Releasing)
    assert isinstance(data.code, NumberCode)
    assert data.code.high == pytest.approx(500 / table.labels.std())
    assert "training label" not in " ".join(plan.assumed_public)
    taken = planned(task, replace(settings, bounds=bounds), table)
    assert "the smallest and the largest training label" in taken.assumed_public


def test_two_tables_join_and_part() -> None:
    rows, cells = np.full((2, 3), 0.5), np.array([[1.0], [-1.0]])
    for domain in (Domain.ball(3), Domain.box(3)):
        features, code = parted(joined(rows, cells, domain), 3, domain)
        np.testing.assert_allclose(features, rows, atol=1e-15)
        np.testing.assert_allclose(code, cells, atol=1e-15)


# Running: parts, floors, keeping ----------------------------------------------------------------


def test_the_table_has_every_round_once() -> None:
    settings = Settings(trials=7, mechanisms=("gaussian", "laplace"))
    task = replace(FIXED, epsilons="0.1,1", splits=3)
    told: list[Progress] = []
    mechanisms = parse_variants(settings.mechanisms)
    found = finish(plan_task(datasets.load("iris"), settings, task, None, mechanisms), told.append)
    assert tuple(found.columns) == TASK_COLUMNS
    assert found.groupby("source")["score"].count().to_dict() == {
        FLOOR: 3 + 3 + 7,
        "projection": 28,
    }
    assert found[found["source"] == FLOOR]["epsilon"].isna().all()
    assert (found["split"] == found["trial"] % 3).all()
    assert not found.duplicated(["mechanism", "epsilon", "trial"]).any()
    assert found["score"].between(0, 1).all()
    assert [step.done for step in told] == sorted(step.done for step in told)
    assert told[0].done == 0
    assert told[-1].done == told[-1].total == len(found)
    assert told[1].left is not None
    assert told[1].left > 0


def test_the_first_parts_span_the_axis() -> None:
    task = replace(FIXED, epsilons="0.1,0.3,1,3,10")
    plan = planned(task, replace(QUICK, trials=20))
    first = [part for part in plan.parts if not part.floor][:5]
    assert [part.epsilon for part in first] == [1, 0.1, 10, 0.3, 3]
    low = planned(task, replace(QUICK, trials=20, epsilon=0.02))
    first = [part for part in low.parts if not part.floor][:5]
    assert [part.epsilon for part in first] == [0.1, 10, 1, 0.3, 3]
    assert {part.trials for part in first} == {range(0, 1)}
    assert sum(len(part.trials) for part in plan.parts) == 5 + 5 + 20 + 5 * 20


def test_more_trials_and_mechanisms_change_no_number() -> None:
    few = finish(planned(settings=replace(QUICK, trials=2)))
    many = finish(planned(settings=replace(QUICK, trials=7, mechanisms=("laplace", "gaussian"))))
    joined_tables = few.merge(many, on=["mechanism", "epsilon", "trial"], suffixes=("", "_many"))
    assert len(joined_tables) == len(few)
    assert (joined_tables["score"] == joined_tables["score_many"]).all()
    assert (joined_tables["split"] == joined_tables["split_many"]).all()


def test_mechanisms_meet_the_same_rows() -> None:
    """With nothing to tell them apart, scores agree round by round."""
    settings = Settings(trials=3, mechanisms=("gaussian", "analyze_gauss"))
    found = finish(planned(replace(FIXED, epsilons="1e6"), settings))
    wide = found[found["source"] != FLOOR].pivot(index="trial", columns="mechanism", values="score")
    assert (wide["gaussian"] - wide["analyze_gauss"]).abs().max() < 0.03


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    settings = replace(QUICK, trials=6)
    whole = finish(planned(settings=settings))

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
    before = kept(planned(settings=settings), store)
    assert 0 < before.progress.done < before.progress.total
    part = score_table(planned(settings=settings), {})
    assert part.empty
    told: list[Progress] = []
    again = finish(planned(settings=settings), told.append, store)
    pd.testing.assert_frame_equal(again, whole)
    assert told[0].reused == told[0].done == before.progress.done
    third: list[Progress] = []
    finish(planned(settings=settings), third.append, store)
    assert third[-1].reused == third[-1].total


def test_what_a_score_depends_on_is_in_its_key() -> None:
    table = datasets.load("iris")
    assert table.labels is not None
    base = planned(table=table)

    def same(plan: TaskPlan) -> bool:
        return plan.key(plan.parts[-1]) == base.key(base.parts[-1])

    assert same(planned(table=table))
    assert same(planned(table=table, settings=replace(QUICK, epsilon=7.0)))
    others = [
        planned(table=changed_rows(table, [0], 1e-9)),
        planned(table=replace(table, labels=table.labels[::-1])),
        planned(table=table, settings=replace(QUICK, k=3)),
        planned(table=table, settings=replace(QUICK, seed=1)),
        planned(table=table, settings=replace(QUICK, delta=1e-3)),
        planned(table=table, settings=replace(QUICK, relation="zero-out")),
        planned(table=table, settings=replace(QUICK, scale="standardize")),
        planned(table=table, settings=replace(QUICK, mechanisms=("laplace",))),
        planned(replace(FIXED, learner="logistic"), table=table),
        planned(replace(FIXED, tuning="cv"), table=table),
        planned(replace(FIXED, splits=4), table=table),
        planned(replace(FIXED, epsilons="2"), table=table),
        planned(replace(FIXED, subspace="training"), table=table),
        planned(replace(FIXED, test_share=0.3), table=table),
        planned(replace(FIXED, most=50), table=table),
    ]
    keys = {plan.key(plan.parts[-1]) for plan in others}
    assert len(keys) == len(others)
    assert base.key(base.parts[-1]) not in keys
    named = {"splits", "epsilons", "subspace", "test_share", "most", "tuning", "learner"}
    rest = {"source", "subspace_share"}
    assert named | rest == set(params_of(Task))  # a new option must be thought of here


@pytest.mark.parametrize("source", ["projection", "release"])
def test_what_cannot_run_is_left_out_with_a_reason(source: str) -> None:
    mechanisms = ("non_private", "gaussian", "jl_transform", "data_gaussian", "wishart_approx")
    plan = planned(
        replace(FIXED, source=source, epsilons="0.5,2"), replace(QUICK, mechanisms=mechanisms)
    )
    reasons = {item.mechanism: item.reason for item in plan.skipped}
    assert reasons["non_private"] == "it is drawn as a floor"
    ran = {mechanism.key for mechanism in plan.mechanisms}
    if source == "release":
        assert ran == {"data_gaussian"}
        assert "sketch" in reasons["jl_transform"]
        assert "no rows to learn from" in reasons["gaussian"]
    else:
        assert {"gaussian", "data_gaussian", "wishart_approx"} <= ran
        assert "below 1" in reasons["wishart_approx"]
        assert {part.epsilon for part in plan.parts if part.name == "wishart_approx"} == {0.5}


def test_a_named_mechanism_that_can_run_nowhere_is_an_error() -> None:
    task = replace(FIXED, source="release")
    with pytest.raises(CannotRun, match="jl_transform cannot run: it releases a sketch"):
        planned(task, replace(QUICK, mechanisms=("jl_transform",)), strict=True)
    assert planned(task, replace(QUICK, mechanisms=("jl_transform",))).mechanisms == ()


def test_bands_are_the_central_draws() -> None:
    plan = planned(settings=replace(QUICK, trials=9))
    found = finish(plan)
    bands = band_table(plan, found)
    assert tuple(bands.columns) == TASK_BAND_COLUMNS
    row = bands[bands["mechanism"] == "gaussian"].iloc[0]
    scores = found[found["mechanism"] == "gaussian"]["score"].to_numpy()
    assert row["mean"] == scores.mean()
    assert (row["low"], row["high"]) == tuple(np.quantile(scores, (0.025, 0.975)))
    assert row["rounds"] == 9
    assert row["verdict"] == "holds"
    assert set(bands[bands["source"] == FLOOR]["verdict"]) == {""}


def test_k_of_the_table_is_checked() -> None:
    with pytest.raises(InvalidSetting, match="k must be a whole number from 1 to 4"):
        planned(settings=replace(QUICK, k=5))


def test_constant_columns_of_a_part_are_dropped_everywhere() -> None:
    table = invented(60, 4, np.arange(60) % 2)
    rows = table.rows.copy()
    rows[:, 1] = 0.0
    rows[0, 1] = 1.0  # varies in the part that holds row 0 and in no other
    plan = planned(settings=replace(QUICK, trials=5), table=replace(table, rows=rows))
    features = {plan.data(number).measured.d for number in plan.splits}
    assert features == {3, 4}
    assert len(finish(plan)) == 5 + 5 + 5 + 5


def test_a_table_too_large_for_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.csv"
    pd.DataFrame({"a": range(99), "b": [1, 2, 3] * 33, "c": ["x", "y", "z"] * 33}).to_csv(
        path, index=False
    )
    settings = Settings(table=str(path), label="c")
    table, same = load_labelled(settings)
    assert same == settings
    assert table.labels is not None
    monkeypatch.setattr("dpviz.datasets.batches.LARGE_BYTES", 100)
    with pytest.raises(InvalidTable, match=r"people.csv is larger than"):
        load_labelled(settings)


# Options --------------------------------------------------------------------------------------


def test_a_task_travels_as_text() -> None:
    for name, param in params_of(Task).items():
        for value in (*param.examples, param.default):
            changed = replace(Task(), **{name: value})
            assert Task.from_texts(changed.texts()) == changed
            back, notices = Task.from_query(changed.to_query(Task()), Task())
            assert (back, notices) == (changed, [])


@pytest.mark.parametrize(
    ("written", "clean"),
    [("1", "1"), ("3,1,1", "1,3"), ("0.1:10:3", "0.1,1,10"), (" 0.5 , 2 ", "0.5,2")],
)
def test_epsilons_are_written_out_in_order(written: str, clean: str) -> None:
    assert Task(epsilons=written).epsilons == clean


@pytest.mark.parametrize("written", ["", "0", "a", "1,,2", "-1", "1:2", "0.1:1:99", "nan"])
def test_bad_epsilons_are_refused(written: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        Task(epsilons=written)
    assert caught.value.as_option().startswith("--epsilons must be at most 50 numbers")


def test_every_learner_is_declared_whole() -> None:
    for key, learner in LEARNERS.items():
        assert key == learner.key
        assert learner.about.endswith(".")
        assert learner.fixed(3) in learner.grid(3)
        assert learner.score.help.endswith(".")
    assert {learner.kind for learner in LEARNERS.values()} == {
        "classification", "regression", "clustering",
    }  # fmt: skip
    assert dataclasses.is_dataclass(Labelled)
