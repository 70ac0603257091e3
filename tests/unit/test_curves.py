"""Curves along one axis, and the lines and marks over them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpviz import datasets
from dpviz.cli import main
from dpviz.core.errors import InvalidSetting
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.load import spectrum_file
from dpviz.report.figures.theme import stretches, symbols
from dpviz.report.tables import curves
from dpviz.simulation import axes
from dpviz.simulation.cells import cell_at
from dpviz.simulation.compare import run_cell
from dpviz.simulation.simulate import Cell
from dpviz.studies.curves import point_at, scaling_table

SETTINGS = Settings(table="wine", mechanisms=("gaussian", "wishart_difference", "ppca"), trials=12)
MECHANISMS = parse_variants(SETTINGS.mechanisms)


@pytest.fixture(scope="module")
def wine() -> Prepared:
    return prepare(datasets.load("wine"), SETTINGS)


def points(
    rows: Prepared, axis: str, values: list[object], settings: Settings = SETTINGS
) -> list[curves.CurvePoint]:
    curve = []
    for value in values:
        here = axes.settings_at(settings, axis, value)
        table = axes.rows_at(rows, axis, value, SETTINGS.seed)
        for mechanism in MECHANISMS:
            cell = cell_at(table, here, mechanism, range(SETTINGS.trials))
            assert isinstance(cell, Cell)
            result = run_cell(cell, table)
            curve.append(point_at(rows, table, here, axis, value, result))
    return curve


def test_the_davis_kahan_bound_holds_for_the_draws_it_speaks_of(wine: Prepared) -> None:
    # Use one component, because the eigengap after two is too small for the theorem's bound.
    curve = points(wine, "epsilon", [0.1, 30.0, 100.0], replace(SETTINGS, k=1))
    for metric in ("projection_distance", "largest_angle"):
        bound = curves.bound_table(curve, metric)
        assert set(bound["mechanism"]) == {"gaussian", "wishart_difference"}
        assert 0.1 not in set(bound["x"])  # At 0.1, noise exceeds half the eigengap.
        for row in bound.itertuples():
            (point,) = [p for p in curve if p.x == row.x and p.mechanism == row.mechanism]
            within = np.quantile(point.metrics["noise_spectral"], 0.975)
            inside = point.metrics["noise_spectral"] <= within
            assert (point.metrics[metric][inside] <= row.value).all()
    assert curves.bound_table(curve, "captured_share").empty


def test_scalings_have_the_stated_slopes(wine: Prepared) -> None:
    table = scaling_table(wine, SETTINGS, "epsilon", [0.1, 10.0], "noise_spectral")
    assert list(table["value"]) == pytest.approx([wine.d / wine.n / e for e in (0.1, 10)])
    assert scaling_table(wine, SETTINGS, "epsilon", [1.0], "low_rank_error")["label"].is_unique
    assert scaling_table(wine, SETTINGS, "epsilon", [1.0], "captured_share").empty


# Plans ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["plan:", "plan:n=5", "plan:spectrum=0.1,0.2", "plan:n=x,spectrum=0.1,0.2",
     "plan:n=1e5,spectrum=", "plan:n=1e5,spectrum=missing.csv", "plan:n=1e5,spectrum=0.9,0.8"],
)  # fmt: skip
def test_a_bad_plan_is_one_sentence(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", text]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "Traceback" not in message


def test_a_bad_file_names_the_line_and_not_the_value(tmp_path: Path) -> None:
    file = tmp_path / "spectrum.csv"
    for content in ("0.3\n0.2\nsecret\n", "0.3\n0.1\n-7.25\n"):
        file.write_text(content)
        with pytest.raises(InvalidSetting, match="line 3") as caught:
            spectrum_file(file)
        assert "secret" not in str(caught.value)
        assert "7.25" not in str(caught.value)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidSetting, match="can be read"):
        spectrum_file(file)


def test_a_curve_is_dashed_and_hollow_where_its_claim_fails() -> None:
    verdicts = ["holds", "holds", "out_of_scope"]
    curve = pd.DataFrame({"x": [1.0, 10.0, 100.0], "verdict": verdicts})
    parts = [(list(part["x"]), dash) for part, dash in stretches(curve, "solid")]
    assert parts == [([1.0, 10.0], "solid"), ([10.0, 100.0], "dash")]
    assert symbols(verdicts, "circle") == ["circle", "circle", "circle-open"]


def test_no_false_claim_and_no_tie_is_best() -> None:
    rows = [
        ("a", 1.0, 0.5, 0.01, 0, 1, 9, "holds"), ("b", 1.0, 0.9, 0.01, 0, 1, 9, "refuted"),
        ("a", 2.0, 0.5, 0.1, 0, 1, 9, "holds"), ("c", 2.0, 0.6, 0.1, 0, 1, 9, "holds"),
    ]  # fmt: skip
    best = curves.frontier(pd.DataFrame(rows, columns=list(curves.BAND_COLUMNS)), "captured_share")
    assert list(zip(best["mechanism"], best["x"], strict=True)) == [("a", 1.0)]
