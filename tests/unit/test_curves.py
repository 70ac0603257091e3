"""Curves along one axis, and what is drawn over them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpviz import datasets
from dpviz.cli import main
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import offered
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant, parse_variants
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.load import load_measured, plan_of, planned, spectrum_file, whole_people
from dpviz.report.tables import curves
from dpviz.report.tables.comparison import (
    PREDICTION_COLUMNS,
    axis_point,
    predicted_at,
    prediction_rows,
)
from dpviz.simulation import axes
from dpviz.simulation.axes import AXES, rows_at
from dpviz.simulation.bounds import PROVED, SCALING, needs
from dpviz.simulation.cells import cell_at
from dpviz.simulation.compare import run_cell
from dpviz.simulation.growth import growth_table
from dpviz.simulation.least import measured_need
from dpviz.simulation.predict import direction_overlaps
from dpviz.simulation.simulate import Cell
from dpviz.simulation.sweep import sweep

SETTINGS = Settings(table="wine", mechanisms=("gaussian", "wishart_difference", "ppca"), trials=12)
MECHANISMS = parse_variants(SETTINGS.mechanisms)


@pytest.fixture(scope="module")
def wine() -> Prepared:
    return prepare(datasets.load("wine"), SETTINGS)


def points(
    rows: Prepared, axis: str, values: list[object], settings: Settings = SETTINGS
) -> list[curves.CurvePoint]:
    found = []
    for value in values:
        here = axes.settings_at(settings, axis, value)
        measured = axes.rows_at(rows, axis, value, SETTINGS.seed)
        for mechanism in MECHANISMS:
            cell = cell_at(measured, here, mechanism, range(SETTINGS.trials))
            assert isinstance(cell, Cell)
            result = run_cell(cell, measured)
            found.append(curves.point_at(rows, measured, here, axis, value, result))
    return found


@pytest.mark.parametrize("table", ["digits", "wine", "iris"])
def test_default_values_rise_and_refine(table: str) -> None:
    rows = prepare(datasets.load(table), Settings(table=table))
    for axis in AXES:
        coarse, fine = (axes.default_values(axis, rows, c) for c in (axes.COARSE, axes.FINE))
        if axis in ("epsilon", "delta"):
            assert set(coarse) <= set(fine)
        x = [axes.where(rows, axes.rows_at(rows, axis, v, 0), axis, v)[0] for v in fine]
        assert x == sorted(x)
        assert len(fine) >= len(coarse) >= 2
        for value in fine if axis != "n" else []:
            axes.settings_at(Settings(table=table), axis, value)  # each is legal


def test_a_box_has_no_row_bound_to_vary() -> None:
    rows = prepare(datasets.load("iris"), Settings(table="iris", domain="box"))
    with pytest.raises(InvalidSetting, match="on a box"):
        axes.default_values("row_bound", rows, axes.FINE)
    with pytest.raises(InvalidSetting, match="over"):
        axes.default_values("seed", rows, axes.FINE)


@pytest.mark.parametrize(
    ("axis", "values"),
    [("epsilon", [0.5, 5.0]), ("k", [1, 3]), ("n", [50, 178, 5_000]),
     ("row_bound", ["quantile:0.5", "max"]), ("delta", [1e-6, 1e-3])],
)  # fmt: skip
def test_bands_agree_with_a_sweep(wine: Prepared, axis: str, values: list[object]) -> None:
    swept = sweep(wine, {axis: values}, SETTINGS).table
    for metric in offered(picture=False):
        bands = curves.band_table(points(wine, axis, values), metric)
        means = swept[swept["metric"] == metric].groupby(["mechanism", axis])["value"].mean()
        found = bands.set_index(["mechanism", "x"])["mean"].sort_index()
        assert found.to_numpy() == pytest.approx(means.sort_index().to_numpy(), rel=1e-9)


def test_single_draws_have_the_bands_mean(wine: Prepared) -> None:
    found = points(wine, "epsilon", [0.5, 5.0])
    bands = curves.band_table(found, "captured_share")
    draws = curves.draw_table(found, "captured_share")
    means = draws.groupby(["mechanism", "x"], as_index=False)["value"].mean()
    assert means["value"].to_numpy() == pytest.approx(bands["mean"].to_numpy(), rel=1e-12)
    few = curves.draw_table(found, "captured_share", most=3)
    assert sorted(few["trial"].unique()) == [0, 1, 2]
    assert curves.draw_table(found, "noise_spectral")["mechanism"].nunique() == 2


def test_the_davis_kahan_bound_holds_for_the_draws_it_speaks_of(wine: Prepared) -> None:
    # One component: the gap after the second is too small for the theorem.
    found = points(wine, "epsilon", [0.1, 30.0, 100.0], replace(SETTINGS, k=1))
    for metric in ("projection_distance", "largest_angle"):
        bound = curves.bound_table(found, metric)
        assert set(bound["mechanism"]) == {"gaussian", "wishart_difference"}
        assert 0.1 not in set(bound["x"])  # the noise is larger than half the gap
        for row in bound.itertuples():
            (point,) = [p for p in found if p.x == row.x and p.mechanism == row.mechanism]
            within = np.quantile(point.metrics["noise_spectral"], 0.975)
            kept = point.metrics["noise_spectral"] <= within
            assert (point.metrics[metric][kept] <= row.value).all()
    assert curves.bound_table(found, "captured_share").empty


def test_limits_move_with_k_alone(wine: Prepared) -> None:
    values = wine.reference.eigenvalues
    table = curves.limit_table(wine, SETTINGS, "k", [1, 3], "captured_total")
    top = table[table["label"] == "without privacy"]["value"]
    assert list(top) == pytest.approx([values[:k].sum() / values.sum() for k in (1, 3)])
    floor = table[table["label"] == "random subspace"]["value"]
    assert list(floor) == pytest.approx([1 / wine.d, 3 / wine.d])
    flat = curves.limit_table(wine, SETTINGS, "epsilon", [0.1, 1.0], "captured_share")
    assert flat.groupby("label")["value"].nunique().tolist() == [1, 1]
    assert curves.limit_table(wine, SETTINGS, "epsilon", [0.1], "noise_spectral").empty


def test_scalings_have_the_stated_slopes(wine: Prepared) -> None:
    table = curves.scaling_table(wine, SETTINGS, "epsilon", [0.1, 10.0], "noise_spectral")
    assert list(table["value"]) == pytest.approx([wine.d / wine.n / e for e in (0.1, 10)])
    assert curves.scaling_table(wine, SETTINGS, "epsilon", [1.0], "low_rank_error")[
        "label"
    ].is_unique
    assert curves.scaling_table(wine, SETTINGS, "epsilon", [1.0], "captured_share").empty


def test_frontier_leaves_out_false_claims_and_ties() -> None:
    rows = [
        ("a", 1.0, 0.5, 0.01, 0, 1, 9, "holds"),
        ("b", 1.0, 0.9, 0.01, 0, 1, 9, "refuted"),
        ("a", 2.0, 0.5, 0.1, 0, 1, 9, "holds"),
        ("c", 2.0, 0.6, 0.1, 0, 1, 9, "holds"),
    ]
    bands = pd.DataFrame(rows, columns=list(curves.BAND_COLUMNS))
    best = curves.frontier(bands, "captured_share")
    assert list(zip(best["mechanism"], best["x"], strict=True)) == [("a", 1.0)]
    assert curves.frontier(bands, "negative_eigenvalues").empty


def test_marks_are_where_components_are_predicted_to_be_found(wine: Prepared) -> None:
    marks = curves.marks(wine, SETTINGS, MECHANISMS)
    row = marks[(marks["mechanism"] == "wishart_difference") & (marks["component"] == 1)]
    epsilon = float(row["epsilon"].iloc[0])
    mechanism = parse_variant("wishart_difference")
    found = []
    for factor in (0.9, 1.1):
        budget = replace(wine.budget(SETTINGS), epsilon=factor * epsilon)
        noise = mechanism.free_noise(mechanism.calibrate(wine.problem(SETTINGS), budget))
        assert noise is not None
        found.append(float(direction_overlaps(wine.moment.eigenvalues, noise, 1)[0]))
    assert found[0] < 0.5 < found[1]
    # later than a lone component would rise out of the noise: 2.0582 d/(n lambda)
    assert epsilon > 2.0582 * wine.d / (wine.n * wine.moment.eigenvalues[0])


# What the papers state -----------------------------------------------------


def test_needs_are_those_of_the_theorems() -> None:
    rows = planned([0.5, 0.1, 0.05], 10_000)
    said = needs(rows, Settings(epsilon=1.0, delta=1e-6), 0.9, 0.05)
    d, gap, eta, short = 3, 0.4, 0.05, 1 - 0.81
    t = math.log(d / eta)
    top = 3 * (d + 1 + math.sqrt(2 * (d + 1) * (d + 2) * t) + 2 * d * t)
    assert said[0].people == math.ceil(top / (2 * short * gap))
    assert said[1].people == math.ceil(top / (2 * math.sqrt(short / 2) * gap))
    assert [need.kind for need in said][:4] == [PROVED] * 4
    assert said[-1].kind == SCALING
    assert len(needs(rows, Settings(delta=0.0), 0.9, 0.05)) == len(said) - 1
    with pytest.raises(InvalidSetting, match="two largest variances"):
        needs(planned([0.2, 0.2, 0.1], 100), Settings(), 0.9, 0.05)


@pytest.mark.slow
def test_the_proved_needs_are_enough() -> None:
    rows = planned([0.5, 0.1, 0.05], 10_000)
    settings = Settings(epsilon=1.0)
    proved = [
        (need.mechanism, need.people)
        for need in needs(rows, settings, 0.9, 0.05)
        if need.mechanism is not None and need.kind == PROVED
    ]
    assert len(proved) >= 4
    for mechanism in {mechanism for mechanism, _ in proved}:  # searched once for all statements
        found = measured_need(rows, settings, mechanism, 0.9, 0.05)
        assert found.low is not None
        for one, people in proved:
            assert people is not None
            assert one != mechanism or found.low < people


@pytest.mark.slow
def test_growth_beside_the_stated_powers() -> None:
    table = growth_table((20, 40, 80), draws=4).set_index("mechanism")
    assert table.loc["Laplace", "exponent"] == 1.5
    assert table.loc["Laplace", "measured"] == pytest.approx(1.5, abs=0.15)
    assert math.isnan(table.loc["Gaussian, exact", "exponent"])


# Plans ---------------------------------------------------------------------


def test_a_plan_from_a_file_and_from_a_form(tmp_path: Path) -> None:
    file = tmp_path / "spectrum.csv"
    file.write_text("eigenvalue\n0.1\n0.3\n\n0.05\n")
    found = plan_of(f"plan:n=1e5,spectrum={file}")
    assert found.n == 100_000
    assert found.moment.eigenvalues == pytest.approx([0.3, 0.1, 0.05])
    assert plan_of("plan:n=50,spectrum=rank:d=9,rank=2,signal=0.1,noise=0.01").d == 9
    assert "nothing private was touched" in found.notes[0]


@pytest.mark.parametrize(
    "text",
    ["plan:", "plan:n=5", "plan:spectrum=0.1,0.2", "plan:n=x,spectrum=0.1,0.2",
     "plan:n=1e5,spectrum=", "plan:n=1e5,spectrum=missing.csv", "plan:n=1e5,spectrum=0.9,0.8"],
)  # fmt: skip
def test_a_bad_plan_is_one_sentence(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", text]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Traceback" not in said


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


@pytest.mark.parametrize("written", ["1", "1e16", "2.5", "nan", "inf", "ten"])
def test_people_are_a_whole_number(written: str) -> None:
    with pytest.raises(InvalidSetting, match="whole number from 2"):
        whole_people(written)


def test_a_plan_refuses_settings_about_rows() -> None:
    plan = Settings(table="plan:n=1e5,spectrum=0.3,0.1")
    for change in ({"domain": "box"}, {"row_bound": "2"}, {"scale": "standardize"}):
        with pytest.raises(InvalidSetting, match="left out of a plan"):
            load_measured(replace(plan, **change))  # type: ignore[arg-type]


def test_plans_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = "plan:n=1e5,spectrum=power:d=6,exponent=1.5,total=0.5"
    assert main(["compare", plan, "--trials", "3"]) == 0
    said = capsys.readouterr().out
    assert "nothing private was touched" in said
    assert re.search(r"(?m)^.*\bdata_laplace\b.* were left out: it needs the rows", said)
    out = tmp_path / "swept.csv"
    given = ["sweep", plan, "--over", "n", "--values", "100,1e5", "--over", "epsilon",
             "--values", "1", "--mechanism", "gaussian", "--trials", "3", "--out", str(out),
             "--cache", "none"]  # fmt: skip
    assert main(given) == 0
    assert "nothing private was touched" in capsys.readouterr().out
    swept = pd.read_csv(out)
    noise = swept[swept["metric"] == "noise_spectral"].groupby("n")["value"].mean()
    # The same standard noise at both n; delta falls with n, so the ratio is a little below 1,000.
    assert 500 < noise[100] / noise[100_000] < 1_000
    assert main([*given[:3], "row_bound", "--values", "1", "--out", str(out)]) == 2
    assert "a plan, which has no rows" in capsys.readouterr().err


@pytest.mark.parametrize("sidebar", [0.5, 50.0])
def test_a_prediction_is_judged_at_its_own_epsilon(wine: Prepared, sidebar: float) -> None:
    """Under zero-out Analyze Gauss holds at small epsilon and fails at large, whatever is set."""
    settings = replace(SETTINGS, relation="zero-out", delta=1e-5, epsilon=sidebar)
    mechanism = parse_variant("analyze_gauss")
    values = [0.5, 50.0]
    spots = [
        axis_point(wine, rows_at(wine, "epsilon", value, settings.seed), settings, "epsilon", value)
        for value in values
    ]
    rows = prediction_rows(mechanism, [predicted_at(mechanism, spot) for spot in spots], "recovery")
    columns = dict(zip(PREDICTION_COLUMNS, zip(*rows, strict=True), strict=True))
    fails = [Verdict(verdict).fails for verdict in columns["verdict"]]
    assert fails == [False, True]
