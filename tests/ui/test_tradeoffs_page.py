"""The trade-offs page: every axis, measure and toggle, targets, plans, and what is refused."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.testing.v1 import AppTest

from dpviz.core.metrics import METRICS, offered
from dpviz.preparation.prepared import Measured
from dpviz.simulation import compare as running
from dpviz.simulation.axes import AXES
from dpviz.simulation.compare import Result
from dpviz.simulation.simulate import Cell
from tests.ui.driver import (
    ROOT,
    change,
    commands,
    errors,
    found,
    go,
    held,
    keys,
    nodes,
    press,
    start,
    upload,
)

pytestmark = pytest.mark.long

# Two variants and few draws: a curve has a dozen settings.
SMALL = {"table": "iris", "trials": "5", "m": "gaussian,ppca"}
AWAY = {"epsilon": "0.7"}  # between the values of a curve: what Explore drew is not on it
EXAMPLE = (ROOT / "data" / "example.csv").read_bytes()


def figure(at: AppTest, key: str = "tradeoffs") -> dict[str, Any]:
    """Return a chart of the page as it is sent to the browser."""
    charts = [n for n in nodes(at) if n.type == "plotly_chart" and f"-{key}" in n.proto.id]
    assert len(charts) == 1, [n.proto.id for n in nodes(at) if n.type == "plotly_chart"]
    spec: dict[str, Any] = json.loads(charts[0].proto.spec)
    return spec


def names(spec: dict[str, Any]) -> set[str]:
    return {trace["name"] for trace in spec["data"] if "name" in trace}


def numbers(values: Any) -> list[float]:
    """Return numbers as Plotly sends them: a list, or the bytes of an array."""
    if isinstance(values, dict):
        found: list[float] = np.frombuffer(
            base64.b64decode(values["bdata"]), dtype=values["dtype"]
        ).tolist()
        return found
    return list(values)


def said(at: AppTest) -> str:
    return "\n".join([*(c.value for c in at.caption), *(m.value for m in at.markdown)])


def page(**query: str) -> AppTest:
    at = start("tradeoffs", **(SMALL | query))
    assert errors(at) == []
    return at


def test_every_axis_draws_each_mechanism_at_rising_values() -> None:
    at = page()
    for axis, param in AXES.items():
        change(at, "tradeoffs.axis", param.label)
        assert errors(at) == [], axis
        spec = figure(at)
        assert spec["layout"]["xaxis"]["title"]["text"] == param.label
        drawn = [t for t in spec["data"] if "·" in t.get("name", "")]
        assert len(drawn) >= 2, axis
        assert f"--over {axis} " in commands(at)[0]
        assert ("belongs to the table" in said(at)) == (axis == "n")


def test_every_measure_is_drawn_or_said_to_be_missing() -> None:
    at = change(page(), "tradeoffs.theory", True)
    for metric in map(METRICS.__getitem__, offered(picture=False)):
        change(at, "tradeoffs.metric", metric.label.capitalize())
        assert errors(at) == [], metric.key
        spec = figure(at)
        assert spec["layout"]["yaxis"]["title"]["text"] == metric.label
        labels = " ".join(names(spec))
        assert "Gaussian" in labels
        assert ("PPCA ·" in labels) == (metric.needs == "subspace")
        assert ("Davis-Kahan" in labels) == (metric.key in ("projection_distance", "largest_angle"))
        assert ("scaling only" in labels) == (metric.key in ("low_rank_error", "noise_spectral"))


def test_the_headline_is_the_least_row_and_the_next_step_goes_there() -> None:
    at = page(m="gaussian", table="wine")
    assert not {"predicted without a draw", "random subspace"} & names(figure(at))
    rows = "".join(node.proto.body for node in nodes(at) if node.type == "html")
    (least,) = re.findall(r"<b>([\d.]+)</b> Gaussian, exact<", rows)
    assert at.title[0].value == (
        f"With the mechanisms shown, 90\u00a0% of the structure needs about epsilon {least}"
    )
    press(at, "page.next")
    assert float(least) <= held(at, "epsilon") < float(least) * 1.2
    assert found(at, "page.go").label == "See it on Explore"


def ask_for_seed(seed: int) -> None:
    """Do what the browser does when a user types a seed while the script is running."""
    context = get_script_run_ctx()
    assert context is not None
    assert context.script_requests is not None
    states = WidgetStates()
    states.widgets.extend(context.session_state.get_widget_states())
    (box,) = [one for one in states.widgets if one.id.endswith("-view.seed")]
    box.double_value = seed
    context.script_requests.request_rerun(
        RerunData(
            query_string=context.query_string,
            widget_states=states,
            page_script_hash=context.page_script_hash,
        )
    )


class Typist:
    """Types the next seed each time that so many cells of the last one have been drawn."""

    def __init__(self, seeds: Sequence[int], after: int) -> None:
        self.left = list(seeds)
        self.after = after
        self.drawn: list[tuple[int, int]] = []  # seed and trials of each cell, as it is drawn
        self._run_cell = running.run_cell

    def __call__(self, cell: Cell, prepared: Measured, *metrics: Any) -> Result:
        self.drawn.append((cell.seed, len(cell.trials)))
        run = [seed for seed, _ in self.drawn]
        if self.left and len(run) >= self.after and len(set(run[-self.after :])) == 1:
            ask_for_seed(self.left.pop(0))
        return self._run_cell(cell, prepared, *metrics)

    def cells(self, seed: int) -> int:
        """Return how many cells of a seed were drawn."""
        return sum(drawn == seed for drawn, _ in self.drawn)


def rows_drawn(at: AppTest) -> dict[str, list[float]]:
    """Return the heights of every curve of the chart, by its name."""
    drawn = [t for t in figure(at)["data"] if "·" in t.get("name", "")]
    return {trace["name"]: numbers(trace["y"]) for trace in drawn}


def test_a_new_setting_abandons_what_was_being_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    at = start(**(SMALL | AWAY | {"seed": "900", "trials": "9"}))
    typist = Typist([901], after=20)
    monkeypatch.setattr(running, "run_cell", typist)
    go(at, "tradeoffs")
    assert errors(at) == []
    # The change came after 20 chunks of draws, and the chunk under way was the last of the old
    # setting; how many draws a chunk has depends on the machine.
    assert typist.cells(900) == 20
    seeds = [seed for seed, _ in typist.drawn]
    assert seeds == sorted(seeds)
    # A curve has 13 values, of 2 variants each.
    assert sum(trials for seed, trials in typist.drawn if seed == 901) == 2 * 13 * 9
    assert held(at, "seed") == 901
    # Nothing of the old setting stands on the chart: it is that of a fresh visit.
    seen = rows_drawn(at)
    monkeypatch.undo()
    assert rows_drawn(page(**AWAY, seed="901", trials="9")) == seen
    assert rows_drawn(page(**AWAY, seed="900", trials="9")) != seen


def test_ten_quick_changes_end_at_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(911, 921)
    at = start(**(SMALL | AWAY | {"seed": "910", "trials": "8"}))
    typist = Typist(seeds, after=2)
    monkeypatch.setattr(running, "run_cell", typist)
    go(at, "tradeoffs")
    assert errors(at) == []
    assert [typist.cells(seed) for seed in (910, *seeds[:-1])] == [2] * 10
    assert held(at, "seed") == 920
    assert at.query_params["seed"] == "920"
    assert "--seed 920" in commands(at)[0]
    seen = rows_drawn(at)
    monkeypatch.undo()
    assert rows_drawn(page(**AWAY, seed="920", trials="8")) == seen


def test_an_upload_is_drawn_and_stays_out_of_the_link() -> None:
    at = upload(start("tradeoffs", trials="5", m="gaussian,ppca"), "patients.csv", EXAMPLE)
    assert errors(at) == []
    drawn = rows_drawn(at)
    assert len(drawn) == 2
    assert all(len(heights) == 13 for heights in drawn.values())
    assert commands(at)[0].startswith("python -m dpviz sweep YOUR_FILE.csv --")
    columns = EXAMPLE.decode().splitlines()[0].split(",")
    link = " ".join(f"{key}={value}" for key, value in at.query_params.items())
    assert "table=upload" in link
    shown = commands(at)
    for private in ("patients", *columns):
        assert private not in link
        assert not any(private in text for text in shown)
    # The curve is the file's: another file draws another one, along every axis.
    for axis in ("n", "row_bound"):
        change(at, "tradeoffs.axis", AXES[axis].label)
        assert errors(at) == []
        assert rows_drawn(at) != drawn
    change(at, "tradeoffs.axis", AXES["epsilon"].label)
    assert rows_drawn(at) == drawn
    lines = EXAMPLE.decode().splitlines()
    upload(at, "patients.csv", "\n".join(lines[: len(lines) // 2]).encode())
    assert errors(at) == []
    assert rows_drawn(at) != drawn


@pytest.mark.parametrize(
    ("key", "written", "part"),
    [
        ("plan.n", "many", "n must be a whole number"),
        ("plan.n", "1", "n must be a whole number"),
        ("plan.spectrum", "2,1", "spectrum must be of sum above 0 and at most 1"),
        ("plan.spectrum", "flat", "spectrum must be a list"),
        ("plan.spectrum", "power:d=9000,exponent=1,total=.5", "spectrum must be of 2 to"),
    ],
)
def test_a_bad_plan_is_refused_in_one_sentence(key: str, written: str, part: str) -> None:
    at = page()
    assert key not in keys(at)  # a plan is drawn when it is asked for
    change(at, "plan.show", True)
    change(at, key, written)
    (sentence,) = errors(at)
    assert sentence.startswith(part)
    assert "\n" not in sentence
    assert figure(at)  # the rest of the page stays
