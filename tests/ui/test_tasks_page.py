"""The Tasks page: learner and source follow the label, runs stop and continue, results stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz import datasets
from dpviz.mechanisms import parse_variants
from dpviz.simulation.store import Store, default_folder
from dpviz.simulation.tasks import Task, TaskPlan, plan_task, work
from pages.ui import ask as asking
from pages.ui.page_options import page_defaults
from tests.ui.driver import (
    change,
    commands,
    corrected,
    errors,
    found,
    go,
    keys,
    nodes,
    press,
    start,
    upload,
)

pytestmark = pytest.mark.long

# With two mechanisms, two epsilons and three rounds, every run takes about a second.
SMALL = {
    "table": "iris", "trials": "3", "m": "gaussian,laplace", "tuning": "fixed",
    "epsilons": "0.5,5",
}  # fmt: skip


BUTTON = "ask.run.Learning"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asking._disk.clear(), asking.clear()
    yield
    asking._disk.clear(), asking.clear()


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the parts computed rather than found in the store."""
    parts: list[str] = []
    run = TaskPlan.run

    def watched(self: TaskPlan, part: Any, tick: Any = None) -> Any:
        parts.append(part.name)
        return run(self, part, tick)

    monkeypatch.setattr(TaskPlan, "run", watched)
    return parts


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


def tables(at: AppTest) -> list[pd.DataFrame]:
    return [frame.value for frame in at.dataframe if "rounds" in frame.value.columns]


def table(at: AppTest) -> pd.DataFrame:
    (found_table,) = tables(at)
    assert isinstance(found_table, pd.DataFrame)
    return found_table


def test_a_data_release_protects_labels_and_needs_mechanisms_that_release_rows() -> None:
    at = page()
    change(at, "tasks.source", "from a private data release")
    assert errors(at) == []
    words = said(at)
    assert "None of the chosen mechanisms releases rows" in words
    assert "The 112 training rows and their labels are released once" in words
    assert "so the learned model is as private as the release" in words
    assert "random subspace" not in names(at)
    assert {"Gaussian on the data", "Laplace on the data", "MVG on the data"} <= set(
        table(at)["mechanism"]
    )
    assert "Laplace on the scores · ✗ claim is false" in names(at)
    assert "tasks.subspace" not in keys(at)
    # Without an error message, the page omits a chosen mechanism that cannot use this data source.
    at = page(source="release", m="gaussian,data_laplace")
    assert set(table(at)["mechanism"]) == {
        "without privacy",
        "majority class",
        "Laplace on the data",
    }
    assert "No chosen mechanism" not in said(at)


def test_what_is_measured_on_an_upload_stays_in_the_session(ran: list[str]) -> None:
    iris = datasets.load("iris")
    frame = pd.DataFrame(iris.rows, columns=list(iris.columns)).assign(kind=iris.labels)
    at = start("tasks", **SMALL)
    before = {path.name for path in default_folder().rglob("*") if path.is_file()}
    assert before  # Results for iris are stored, because iris is public.
    ran.clear()
    upload(at, "people.csv", frame.to_csv(index=False).encode())
    change(corrected(at), "upload.label", "none")  # The column was guessed.
    assert "A task needs a label" in said(at)
    change(corrected(at), "upload.label", "kind")
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
    """Return the page's plan of `SMALL` with a seed."""
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
    at.session_state["ask.stopped"] = ANY  # Stop any computation that starts.
    change(at, "view.seed", 9)
    assert errors(at) == []
    assert ran == []
    assert found(at, BUTTON).label.startswith("Go on (")
    assert "The rounds so far are too few" in said(at)
    press(at, BUTTON)
    assert BUTTON not in keys(at)
    assert len(ran) == len(plan.parts) - 4
    assert len(table(at)) == 7


def test_on_a_public_server_a_run_waits_for_its_button(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPVIZ_PUBLIC", "on")
    at = page(seed="21")
    assert ran == []
    assert tables(at) == []
    assert found(at, BUTTON).label == "Run it"
    press(at, BUTTON)
    assert errors(at) == []
    assert ran
    assert len(table(at)) == 7
    assert BUTTON not in keys(at)
    ran.clear()
    change(at, "view.seed", 22)  # A new seed needs a new run, which also waits.
    assert ran == []
    assert BUTTON in keys(at)
    change(at, "view.seed", 21)  # With the old seed, the page shows the stored results.
    assert ran == []
    assert len(table(at)) == 7
