"""The trade-offs page: every axis, measure and toggle, targets, plans, and refusals."""

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

# Use two mechanisms and few repetitions, because a trade-off curve computes a dozen settings.
SMALL = {"table": "iris", "trials": "5", "m": "gaussian,ppca"}
AWAY = {"epsilon": "0.7"}  # No point of the curve has this epsilon; one has Explore's.
EXAMPLE = (ROOT / "data" / "example.csv").read_bytes()


def figure(at: AppTest, key: str = "tradeoffs") -> dict[str, Any]:
    """Return a chart of the page as sent to the browser."""
    charts = [n for n in nodes(at) if n.type == "plotly_chart" and f"-{key}" in n.proto.id]
    assert len(charts) == 1, [n.proto.id for n in nodes(at) if n.type == "plotly_chart"]
    spec: dict[str, Any] = json.loads(charts[0].proto.spec)
    return spec


def names(spec: dict[str, Any]) -> set[str]:
    return {trace["name"] for trace in spec["data"] if "name" in trace}


def numbers(values: Any) -> list[float]:
    """Return numbers from Plotly's form: a list, or the bytes of an array."""
    if isinstance(values, dict):
        floats: list[float] = np.frombuffer(
            base64.b64decode(values["bdata"]), dtype=values["dtype"]
        ).tolist()
        return floats
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
        traces = [t for t in spec["data"] if "·" in t.get("name", "")]
        assert len(traces) >= 2, axis
        assert f"--over {axis} " in commands(at)[0]
        assert ("belongs to the table" in said(at)) == (axis == "n")


def test_every_measure_is_drawn_or_said_to_be_missing() -> None:
    at = change(page(epsilon="50"), "tradeoffs.theory", True)
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
    assert not {"predicted analytically", "random subspace"} & names(figure(at))
    rows = "".join(node.proto.body for node in nodes(at) if node.type == "html")
    (least,) = re.findall(r"<b>([\d.]+)</b> Gaussian, exact<", rows)
    assert at.title[0].value == (
        f"With the mechanisms shown, keeping 90\u00a0% of the structure needs about epsilon {least}"
    )
    press(at, "page.next")
    assert held(at, "epsilon") == float(least)
    assert found(at, "page.go").label == "See this epsilon on Explore"


def ask_for_seed(seed: int) -> None:
    """Imitate a browser in which a user types a seed while the script runs."""
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
    """Types the next seed each time after enough settings of the last seed were computed."""

    def __init__(self, seeds: Sequence[int], after: int) -> None:
        self.left = list(seeds)
        self.after = after
        self.drawn: list[tuple[int, int]] = []  # Each pair: a setting's seed and repetitions.
        self._run_cell = running.run_cell

    def __call__(self, cell: Cell, prepared: Measured, *metrics: Any) -> Result:
        self.drawn.append((cell.seed, len(cell.trials)))
        run = [seed for seed, _ in self.drawn]
        if self.left and len(run) >= self.after and len(set(run[-self.after :])) == 1:
            ask_for_seed(self.left.pop(0))
        return self._run_cell(cell, prepared, *metrics)

    def cells(self, seed: int) -> int:
        """Return the number of settings computed for a seed."""
        return sum(drawn == seed for drawn, _ in self.drawn)


def rows_drawn(at: AppTest) -> dict[str, list[float]]:
    """Return the heights of every curve of the chart, by its name."""
    traces = [t for t in figure(at)["data"] if "·" in t.get("name", "")]
    return {trace["name"]: numbers(trace["y"]) for trace in traces}


def test_a_new_setting_abandons_what_was_being_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    at = start(**(SMALL | AWAY | {"seed": "900", "trials": "9"}))
    typist = Typist([901], after=20)
    monkeypatch.setattr(running, "run_cell", typist)
    go(at, "tradeoffs")
    assert errors(at) == []
    # The seed changed after 20 chunks of repetitions, so no further chunk used the old seed. The
    # number of repetitions in a chunk depends on the machine.
    assert typist.cells(900) == 20
    seeds = [seed for seed, _ in typist.drawn]
    assert seeds == sorted(seeds)
    # A trade-off curve has 13 values on its axis, each computed for 2 mechanisms.
    assert sum(trials for seed, trials in typist.drawn if seed == 901) == 2 * 13 * 9
    assert held(at, "seed") == 901
    # The chart has no results of the old seed: it equals the chart of a first visit.
    traces = rows_drawn(at)
    monkeypatch.undo()
    assert rows_drawn(page(**AWAY, seed="901", trials="9")) == traces
    assert rows_drawn(page(**AWAY, seed="900", trials="9")) != traces


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
    traces = rows_drawn(at)
    monkeypatch.undo()
    assert rows_drawn(page(**AWAY, seed="920", trials="8")) == traces


def test_an_upload_is_drawn_and_stays_out_of_the_link() -> None:
    at = upload(start("tradeoffs", trials="5", m="gaussian,ppca"), "patients.csv", EXAMPLE)
    assert errors(at) == []
    traces = rows_drawn(at)
    assert len(traces) == 2
    assert all(len(heights) == 8 for heights in traces.values())
    assert commands(at)[0].startswith("python -m dpviz sweep YOUR_FILE.csv --")
    columns = EXAMPLE.decode().splitlines()[0].split(",")
    link = " ".join(f"{key}={value}" for key, value in at.query_params.items())
    assert "table=upload" in link
    copies = commands(at)
    for private in ("patients", *columns):
        assert private not in link
        assert not any(private in text for text in copies)
    # The trade-off curve depends on the uploaded file: another file changes it on every axis.
    for axis in ("n", "row_bound"):
        change(at, "tradeoffs.axis", AXES[axis].label)
        assert errors(at) == []
        assert rows_drawn(at) != traces
    change(at, "tradeoffs.axis", AXES["epsilon"].label)
    assert rows_drawn(at) == traces
    lines = EXAMPLE.decode().splitlines()
    upload(at, "patients.csv", "\n".join(lines[: len(lines) // 2]).encode())
    assert errors(at) == []
    assert rows_drawn(at) != traces


@pytest.mark.parametrize(
    ("key", "written", "part"),
    [
        ("plan.n", "many", "n must be a whole number"),
        ("plan.n", "1", "n must be a whole number"),
        ("plan.spectrum", "2,1", "spectrum must be eigenvalues whose sum is above 0 and at most 1"),
        ("plan.spectrum", "flat", "spectrum must be a list"),
        ("plan.spectrum", "power:d=9000,exponent=1,total=.5", "spectrum must be a list of 2 to"),
    ],
)
def test_a_bad_plan_is_refused_in_one_sentence(key: str, written: str, part: str) -> None:
    at = page()
    assert key not in keys(at)  # The page makes plans only on request.
    change(at, "plan.show", True)
    change(at, key, written)
    (sentence,) = errors(at)
    assert sentence.startswith(part)
    assert "\n" not in sentence
    assert figure(at)  # The rest of the page is still shown.
