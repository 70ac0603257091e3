"""The trade-offs page: every axis, measure and toggle, targets, plans, and what is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz.cli import main
from dpviz.grid import AXES
from dpviz.metrics import METRICS
from tests.ui.driver import change, errors, found, nodes, one_sentence, start

# Two variants and few draws: a curve has a dozen settings.
SMALL = {"table": "iris", "trials": "5", "m": "gaussian,ppca"}


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
        assert f"--over {axis} " in at.code[0].value
        assert ("belongs to the table" in said(at)) == (axis == "n")


def test_every_measure_is_drawn_or_said_to_be_missing() -> None:
    at = page()
    for metric in METRICS.values():
        change(at, "tradeoffs.metric", metric.label.capitalize())
        assert errors(at) == [], metric.key
        spec = figure(at)
        assert spec["layout"]["yaxis"]["title"]["text"] == metric.label
        labels = " ".join(names(spec))
        assert "Gaussian" in labels
        assert ("PPCA ·" in labels) == (metric.needs == "subspace")
        assert ("Davis-Kahan" in labels) == (metric.key in ("projection_distance", "largest_angle"))
        assert ("scaling only" in labels) == (metric.key in ("low_rank_error", "noise_spectral"))


def test_toggles_do_what_they_say() -> None:
    at = page()
    assert figure(at)["layout"]["xaxis"]["type"] == "log"
    assert {"predicted without a draw", "random subspace"} <= names(figure(at))
    change(at, "tradeoffs.log_x.epsilon", False)
    assert figure(at)["layout"]["xaxis"]["type"] == "linear"
    change(at, "tradeoffs.log_y", True)
    assert figure(at)["layout"]["yaxis"]["type"] == "log"
    assert "single draws" not in names(figure(at))
    change(at, "tradeoffs.draws", True)
    assert "single draws" in names(figure(at))
    change(at, "tradeoffs.theory", False)
    assert not {"predicted without a draw", "random subspace"} & names(figure(at))


def test_a_second_table_is_drawn_or_refused_in_one_sentence() -> None:
    at = page()
    change(at, "tradeoffs.other", "Wine")
    assert errors(at) == []
    assert "wine" in names(figure(at))
    at = page(table="wine", k="6")
    change(at, "tradeoffs.other", "Iris")
    (sentence,) = errors(at)
    assert one_sentence(sentence)
    assert "k must be" in sentence
    assert figure(at)  # the first table's curve stays


def test_the_row_bound_of_a_box_is_refused_in_one_sentence() -> None:
    at = start("tradeoffs", **SMALL, domain="box")
    for axis in ("delta", "k", "n", "epsilon"):
        change(at, "tradeoffs.axis", AXES[axis].label)
        assert errors(at) == [], axis
    change(at, "tradeoffs.axis", AXES["row_bound"].label)
    (sentence,) = errors(at)
    assert one_sentence(sentence)
    assert "on a box" in sentence


def test_target_mode_predicts_and_searches() -> None:
    at = page(m="gaussian", table="wine")
    assert "least epsilon to keep 90 % of the variance" in said(at)
    found(at, "target.what").set_value("number of people").run()
    change(at, "target.search", True)
    assert errors(at) == []
    assert "needs between" in said(at)
    assert "people to keep 90 %" in said(at)


def test_the_papers_stand_beside_the_measured_need() -> None:
    at = page(m="gaussian")
    table = next(f.value for f in at.dataframe if "statement" in f.value.columns)
    assert set(table["kind"]) == {"proved", "our reading", "scaling only"}
    assert table["measured"].isna().all()
    change(at, "stated.growth", True)
    growth = next(f.value for f in at.dataframe if "exponent" in f.value.columns)
    row = growth.set_index("mechanism").loc["Analyze Gauss"]
    # Within .1 at these small d; the benchmark goes to d = 400.
    assert row["measured"] == pytest.approx(row["exponent"], abs=0.1)


def test_a_plan_touches_nothing_private_and_needs_no_table() -> None:
    at = start("tradeoffs", table="upload", m="gaussian")
    assert len(errors(at)) == 1  # of the table alone
    assert "nothing private was touched" in said(at)
    assert "Gaussian" in " ".join(names(figure(at, "plan")))
    assert "least number of people" in said(at)


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
    change(at, key, written)
    (sentence,) = errors(at)
    assert sentence.startswith(part)
    assert "\n" not in sentence
    assert figure(at)  # the rest of the page stays


def test_the_command_of_the_page_is_one_that_runs(tmp_path: Any) -> None:
    at = page(m="gaussian", trials="5")
    words = at.code[0].value.replace("sweep.csv", str(tmp_path / "sweep.csv")).split()
    assert words[:3] == ["python", "-m", "dpviz"]
    assert main([*words[3:], "--cache", "none"]) == 0
    swept = pd.read_csv(tmp_path / "sweep.csv")
    swept = swept[swept["metric"] == "captured_share"]
    means = swept.groupby("epsilon")["value"].mean()
    (line,) = [t for t in figure(at)["data"] if "·" in t.get("name", "")]
    assert means.to_numpy() == pytest.approx(numbers(line["y"]), rel=1e-9)
