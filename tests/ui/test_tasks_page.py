"""The Tasks page: learner and source follow the label, runs stop and go on, results stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz import datasets
from dpviz.cli import main
from dpviz.mechanisms import parse_variants
from dpviz.simulation.store import Store, default_folder
from dpviz.simulation.tasks import Task, TaskPlan, plan, plan_task, work
from pages.ui import reproduction_cache
from pages.ui.page_options import page_defaults
from tests.ui.driver import (
    change,
    commands,
    errors,
    found,
    go,
    held,
    keys,
    nodes,
    notices,
    one_sentence,
    opening,
    press,
    start,
    upload,
)

# Two mechanisms, two epsilons, three rounds: every run is a second or so.
SMALL = {
    "table": "iris", "trials": "3", "m": "gaussian,laplace", "tuning": "fixed",
    "epsilons": "0.5,5",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reproduction_cache.results_store.clear()
    yield
    reproduction_cache.results_store.clear()


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the parts that were computed, and not found."""
    computed: list[str] = []
    run = TaskPlan.run

    def watched(self: TaskPlan, part: Any, tick: Any = None) -> Any:
        computed.append(part.name)
        return run(self, part, tick)

    monkeypatch.setattr(TaskPlan, "run", watched)
    return computed


def page(**query: str) -> AppTest:
    at = start("tasks", **(SMALL | query))
    assert errors(at) == []
    return at


def said(at: AppTest) -> str:
    boxes = [*at.markdown, *at.caption, *at.info]
    return "\n".join(box.value for box in boxes)


def spec(at: AppTest) -> dict[str, Any]:
    charts = [node for node in nodes(at) if node.type == "plotly_chart"]
    assert len(charts) == 1
    figure: dict[str, Any] = json.loads(charts[0].proto.spec)
    return figure


def names(at: AppTest) -> list[str]:
    return [trace["name"] for trace in spec(at)["data"] if "name" in trace]


def table(at: AppTest) -> pd.DataFrame:
    (found_table,) = [frame.value for frame in at.dataframe if "what" in frame.value.columns]
    assert isinstance(found_table, pd.DataFrame)
    return found_table


def test_it_opens_with_a_sentence_a_figure_and_what_is_protected() -> None:
    at = page()
    top = opening(at)
    assert re.fullmatch(
        r"\*\*(Laplace|Gaussian, exact): accuracy [\d.]+\u00a0%, [\d.]+\u00a0% without privacy, "
        r"[\d.]+\u00a0% at random\.\*\*",
        top,
    )
    assert "At epsilon 0.5, Linear SVM after " in said(at)
    order = [node.key for node in nodes(at) if getattr(node, "key", None)]
    assert order.index("tasks") < order.index("tasks.learner"), "results before fields"
    assert {"without privacy", "random subspace", "majority class"} <= set(names(at))
    lines = {name.partition(" · ")[0] for name in names(at) if " · " in name}
    assert lines == {"Laplace", "Gaussian, exact"}
    assert "Gaussian, exact · ✓ claim holds" in names(at)
    rows = table(at)
    assert len(rows) == 3 + 2 * 2
    assert rows["mean"].between(0, 1).all()
    words = said(at)
    assert "75 rows for the subspace, 37 trained on, 38 tested on, in 3 random splits" in words
    assert "test rows included, is post-processing" in words
    assert "The training rows and their labels: the learner reads them as they are" in words
    assert "what it learns is not private" in words
    assert "central 95 % of the rounds" in words
    assert "- the feature means" in words


def test_a_data_release_protects_labels_and_needs_mechanisms_that_release_rows() -> None:
    at = page()
    change(at, "tasks.source", "from a private data release")
    assert errors(at) == []
    words = said(at)
    assert "None of the chosen mechanisms releases rows" in words
    assert "The training rows and their labels (112): they are released once" in words
    assert "so what is learned is as private as the release" in words
    assert "random subspace" not in names(at)
    assert {"Gaussian on the data", "Laplace on the data", "MVG on the data"} <= set(
        table(at)["what"]
    )
    assert "Laplace on the scores · ✗ claim is false" in names(at)
    assert "tasks.subspace" not in keys(at)
    # A mechanism of the sidebar that can do it is shown alone, and the sentence goes.
    at = page(source="release", m="gaussian,data_laplace")
    assert set(table(at)["what"]) == {"without privacy", "majority class", "Laplace on the data"}
    assert "None of the mechanisms" not in said(at)


def test_regression_is_offered_for_numbers_and_classes_for_the_rest() -> None:
    assert found(page(), "tasks.learner").options == [
        "Linear SVM (classification)", "Logistic regression (classification)",
        "k-means (clustering)",
    ]  # fmt: skip
    at = page(table="diabetes")
    assert found(at, "tasks.learner").options == ["Kernel ridge (regression)", "Ridge (regression)"]
    assert "mean of the labels" in names(at)
    assert "in units of the label's standard deviation" in said(at)
    # A learner that the label does not suit is replaced, and the reader is told.
    at = page(table="diabetes", learner="linear_svm")
    assert (
        "Linear SVM does not suit this label, which is a number of 214 different values: "
        in said(at)
    )
    assert at.query_params["learner"] == "linear_svm"  # another table may want it again
    change(at, "tasks.learner", "Ridge (regression)")
    assert held(at, "learner", "tasks") == "ridge"
    assert "does not suit" not in said(at)


def test_a_table_without_labels_says_what_is_needed() -> None:
    at = page(table="spiked")
    (box,) = at.info
    assert box.value.startswith("A task needs a label for each row")
    assert "choose the column that is the label" in box.value
    assert "--" not in box.value  # how a command writes it
    assert "Upload" not in box.value  # where nothing of this table can be chosen
    assert not [node for node in nodes(at) if node.type == "plotly_chart"]
    upload(at, "people.csv", b"age,height,sex\n" + b"40,170,f\n41,180,m\n" * 20)
    (box,) = at.info
    assert box.value.endswith("The choice is behind Upload: Label column.")
    change(at, "view.table", "Iris")
    assert len(table(at)) == 7


def test_results_stay_when_pages_change_and_come_back(ran: list[str]) -> None:
    at = page()
    change(at, "tasks.splits", 2)
    before, link = table(at), dict(at.query_params)
    assert ran
    ran.clear()
    go(at, "explore")
    go(at, "tasks")
    assert ran == []
    assert table(at).equals(before)
    assert dict(at.query_params) == link
    assert link["splits"] == "2"
    # Epsilon in the sidebar only moves the mark and the sentence.
    change(at, "view.epsilon.box", "5")
    assert ran == []
    assert "At epsilon 5, " in said(at)
    # More draws reuse the rounds that are there.
    change(at, "view.trials", 5)
    assert set(table(at)["rounds"]) == {2, 5}
    assert len(ran) < len(before) * 5


def test_moving_epsilon_does_not_prepare_the_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    projecting = plan.projecting

    def watched(*arguments: Any) -> Any:
        made.append(1)
        return projecting(*arguments)

    monkeypatch.setattr(plan, "projecting", watched)
    at = page(seed="77")  # of its own: AppTest's sessions share their caches
    assert len(made) == 3  # one for each split
    change(at, "view.epsilon.box", "5")
    change(at, "view.mechanisms", ["Laplace"])
    change(at, "tasks.epsilons", "5,50")
    assert len(made) == 3
    change(at, "view.k", 3)
    assert len(made) == 6


def test_results_are_kept_for_the_next_visit(ran: list[str]) -> None:
    before = table(page())
    assert ran
    ran.clear()
    assert table(page()).equals(before)  # another session
    assert ran == []
    page(seed="1")
    assert ran


def test_what_is_measured_on_an_upload_stays_in_the_session(ran: list[str]) -> None:
    iris = datasets.load("iris")
    frame = pd.DataFrame(iris.rows, columns=list(iris.columns)).assign(kind=iris.labels)
    at = start("tasks", **SMALL)
    before = {path.name for path in default_folder().rglob("*") if path.is_file()}
    assert before  # iris is public
    ran.clear()
    upload(at, "people.csv", frame.to_csv(index=False).encode())
    assert "A task needs a label" in said(at)
    change(at, "upload.label", "kind")
    assert errors(at) == []
    assert len(table(at)) == 7
    assert ran
    assert {path.name for path in default_folder().rglob("*") if path.is_file()} == before
    assert "YOUR_FILE.csv" in commands(at)[0]
    ran.clear()
    go(at, "explore")
    go(at, "tasks")
    assert len(table(at)) == 7
    assert ran == []


def stopped_plan(seed: int) -> TaskPlan:
    """Return the plan that the page makes of `SMALL` with a seed."""
    mechanisms = ("gaussian", "laplace")
    settings = replace(page_defaults(), table="iris", trials=3, mechanisms=mechanisms, seed=seed)
    task = Task(tuning="fixed", epsilons="0.5,5", learner="linear_svm")
    return plan_task(datasets.load("iris"), settings, task, None, parse_variants(mechanisms))


def test_a_stopped_run_shows_what_is_there_and_goes_on(ran: list[str]) -> None:
    at = page()
    plan = stopped_plan(seed=9)
    with closing(work(plan, Store(default_folder()))) as steps:
        for step in steps:
            if step.progress.done >= 4:
                break
    ran.clear()
    names_of = tuple(mechanism.text for mechanism in plan.mechanisms)
    at.session_state["tasks_stopped"] = (plan.digest, plan.epsilons, 3, names_of)
    change(at, "view.seed", 9)
    assert errors(at) == []
    assert ran == []
    button = found(at, "tasks.continue")
    assert button.label == f"Go on (4 of {step.progress.total} rounds done)"
    assert "Too few rounds so far" in said(at)
    press(at, "tasks.continue")
    assert "tasks.continue" not in keys(at)
    assert "tasks.stop" not in keys(at)
    assert len(ran) == len(plan.parts) - 4
    assert len(table(at)) == 7
    # Another setting is another run: it starts by itself.
    at.session_state["tasks_stopped"] = (plan.digest, plan.epsilons, 3, names_of)
    change(at, "view.seed", 10)
    assert "tasks.continue" not in keys(at)
    assert len(table(at)) == 7


def test_on_a_public_server_a_run_waits_for_its_button(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPVIZ_PUBLIC", "on")
    at = page(seed="21")
    assert ran == []
    assert [frame for frame in at.dataframe if "what" in frame.value.columns] == []
    assert re.fullmatch(r"Run it \(\d+ rounds\)", found(at, "tasks.continue").label)
    press(at, "tasks.continue")
    assert errors(at) == []
    assert ran
    assert len(table(at)) == 7
    assert "tasks.continue" not in keys(at)
    ran.clear()
    change(at, "view.seed", 22)  # another setting is another run, and waits as well
    assert ran == []
    assert "tasks.continue" in keys(at)
    change(at, "view.seed", 21)  # what is known is shown
    assert ran == []
    assert len(table(at)) == 7


def test_bad_epsilons_and_shares_are_refused_in_a_sentence() -> None:
    at = page()
    before = table(at)
    change(at, "tasks.epsilons", "1,zero")
    (sentence,) = errors(at)
    assert sentence.startswith("epsilons must be at most 50 numbers")
    assert "\n" not in sentence
    assert table(at).equals(before)
    change(at, "tasks.epsilons", "0.5,5")
    assert errors(at) == []
    change(at, "tasks.test_share", 0.6)
    (sentence,) = errors(at)
    assert one_sentence(sentence)
    assert "0.95" in sentence
    assert held(at, "test_share", "tasks") == 0.25


@pytest.mark.parametrize("more", [{}, {"source": "release", "domain": "box", "table": "diabetes"}])
def test_the_command_of_the_page_gives_the_same_numbers(
    more: dict[str, str], tmp_path: Path
) -> None:
    at = page(**more)
    words = commands(at)[0].replace("task.csv", str(tmp_path / "task.csv")).split()
    assert words[:4] == ["python", "-m", "dpviz", "task"]
    assert main([*words[3:], "--cache", "none"]) == 0
    rounds = pd.read_csv(tmp_path / "task.csv")
    means = rounds.groupby(["mechanism", "epsilon"], sort=False, dropna=False)["score"].mean()
    assert means.to_numpy() == pytest.approx(table(at)["mean"].to_numpy(dtype=float), abs=1e-12)


def test_a_link_with_options_of_a_task_restores_them() -> None:
    at = page(learner="k_means", subspace="training", splits="2", test_share="0.4", most="60")
    assert notices(at) == []
    assert held(at, "learner", "tasks") == "k_means"
    assert "60 trained on" not in said(at)
    assert "90 rows for the subspace, 60 of them trained on, 60 tested on" in said(at)
    assert "nothing protects them as a whole" in said(at)
    again = start("tasks", **{key: str(value) for key, value in at.query_params.items()})
    assert dict(again.query_params) == dict(at.query_params)


def test_nothing_to_run_is_said() -> None:
    at = page(m="jl_transform,wishart_approx", epsilons="5", delta="0")
    assert "None of the chosen mechanisms can run here" in opening(at)
    assert "Not run: JL transform" in said(at)
    assert {"without privacy", "random subspace"} <= set(names(at))


def test_a_box_and_few_columns_work() -> None:
    at = page(domain="box", k="1")
    assert errors(at) == []
    assert "but one direction" in said(at)
    assert len(table(at)) == 7
