"""Sentences and figure of a task: they say and draw what the bands hold, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from dpviz import datasets
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms, parse_variants
from dpviz.report.figures.tasks import COMPARED, task_figure
from dpviz.report.figures.theme import Panel
from dpviz.report.sentences import tasks as words
from dpviz.report.sentences.phrases import by_reason
from dpviz.simulation.tasks import (
    CHANCE,
    CLEAN,
    SCORES,
    TASK_BAND_COLUMNS,
    Task,
    TaskPlan,
    plan_task,
)

GUESS = "majority class"
Band = tuple[str, float, float, float, float]  # mechanism, epsilon, low, mean, high


def plan_of(*mechanisms: str, table: str = "iris", **task: Any) -> TaskPlan:
    settings = Settings(trials=20, mechanisms=mechanisms, epsilon=1.0)
    wanted = Task(**({"tuning": "fixed", "epsilons": "0.1,1,10"} | task))
    chosen = parse_variants(mechanisms)
    return plan_task(datasets.load(table), settings, wanted, None, chosen)


def bands_of(
    *rows: Band, floors: tuple[Band, ...] = (), rounds: int = 20, verdict: str = "holds"
) -> pd.DataFrame:
    found = [
        (name, "floor", math.nan, mean, low, high, rounds, "")
        for name, _, low, mean, high in floors
    ]
    found += [
        (name, "projection", epsilon, mean, low, high, rounds, verdict)
        for name, epsilon, low, mean, high in rows
    ]
    return pd.DataFrame(found, columns=list(TASK_BAND_COLUMNS))


FLOORS: tuple[Band, ...] = (
    (CLEAN, 0, 0.85, 0.9, 0.95), (CHANCE, 0, 0.4, 0.5, 0.6), (GUESS, 0, 0.3, 0.33, 0.36),
)  # fmt: skip
GAUSSIAN: Band = ("gaussian", 1.0, 0.8, 0.85, 0.9)


# Sentences ------------------------------------------------------------------------------------


def test_the_best_is_named_beside_both_floors() -> None:
    plan = plan_of("gaussian", "laplace")
    bands = bands_of(GAUSSIAN, ("laplace", 1.0, 0.65, 0.7, 0.75), floors=FLOORS)
    assert words.verdict(plan, bands) == (
        "At epsilon 1, Linear SVM after Gaussian, exact reaches an accuracy of 85.0\u00a0%, "
        "against 90.0\u00a0% without privacy and 50.0\u00a0% after a random subspace. All of "
        "them do better than the random subspace."
    )


@pytest.mark.parametrize(("high", "tied"), [(0.79, False), (0.80, True), (0.95, True)])
def test_overlapping_bands_are_not_told_apart(high: float, tied: bool) -> None:
    plan = plan_of("gaussian", "laplace")
    bands = bands_of(GAUSSIAN, ("laplace", 1.0, 0.65, 0.7, high), floors=FLOORS)
    said = words.verdict(plan, bands)
    assert ("cannot tell it from Laplace: the bands overlap" in said) == tied


def test_what_does_not_beat_the_random_floor_is_said() -> None:
    plan = plan_of("gaussian", "laplace")
    bands = bands_of(GAUSSIAN, ("laplace", 1.0, 0.5, 0.55, 0.65), floors=FLOORS)
    assert words.verdict(plan, bands).endswith("Not told from the random subspace: Laplace.")
    bands = bands_of(GAUSSIAN, ("laplace", 1.0, 0.1, 0.2, 0.3), floors=FLOORS)
    assert words.verdict(plan, bands).endswith("Worse than the random subspace: Laplace.")
    bands = bands_of(
        ("gaussian", 1.0, 0.4, 0.5, 0.6), ("laplace", 1.0, 0.5, 0.55, 0.65), floors=FLOORS
    )
    assert words.verdict(plan, bands).endswith("None of them can be told from the random subspace.")
    one = plan_of("gaussian")
    assert "It does better than the" in words.verdict(one, bands_of(GAUSSIAN, floors=FLOORS))


def test_errors_are_better_when_small() -> None:
    plan = plan_of("gaussian", "laplace", table="diabetes", learner="ridge")
    floors: tuple[Band, ...] = (
        (CLEAN, 0, 0.7, 0.75, 0.8), (CHANCE, 0, 0.85, 0.9, 0.95),
        ("mean of the labels", 0, 0.95, 1.0, 1.05),
    )  # fmt: skip
    bands = bands_of(
        ("gaussian", 1.0, 0.7, 0.76, 0.8), ("laplace", 1.0, 1.0, 1.1, 1.2), floors=floors
    )
    said = words.verdict(plan, bands)
    assert "Ridge after Gaussian, exact reaches a root mean squared error of 0.76 standard" in said
    assert said.endswith("Worse than the random subspace: Laplace.")
    assert "Gaussian, exact from 1 on" in words.gains(plan, bands)
    assert "nowhere on this axis: Laplace" in words.gains(plan, bands)


def test_false_claims_and_too_few_rounds_do_not_count() -> None:
    plan = plan_of("gaussian", "wishart")
    bands = pd.concat(
        [
            bands_of(GAUSSIAN, floors=FLOORS),
            bands_of(("wishart", 1.0, 0.9, 0.95, 0.99), verdict="refuted"),
        ]
    )
    said = words.verdict(plan, bands)
    assert "after Gaussian, exact" in said
    assert said.endswith("Wishart is not counted: its claim is false.")
    early = bands_of(GAUSSIAN, floors=FLOORS, rounds=2)
    assert words.verdict(plan, early).endswith("Too few rounds so far to tell mechanisms apart.")
    only = bands_of(("wishart", 1.0, 0.9, 0.95, 0.99), verdict="refuted")
    assert "none of these mechanisms makes a claim that holds" in words.verdict(plan, only)
    assert "Nothing has been measured at epsilon 1" in words.verdict(plan, bands_of(floors=FLOORS))
    nobody = plan_of("jl_transform", source="release")
    assert "None of the chosen mechanisms can run" in words.verdict(nobody, bands_of())


def test_gains_start_where_a_band_stays_clear() -> None:
    plan = plan_of("gaussian")
    rows: list[Band] = [
        ("gaussian", 0.1, 0.7, 0.8, 0.9), ("gaussian", 1.0, 0.5, 0.6, 0.7),
        ("gaussian", 10.0, 0.7, 0.8, 0.9),
    ]  # fmt: skip
    assert words.gains(plan, bands_of(*rows, floors=FLOORS)) == (
        "Band clear of that of the random subspace: Gaussian, exact from 10 on."
    )
    assert "no band is clear" in words.gains(plan, bands_of(*rows[1:2], floors=FLOORS))
    assert words.gains(plan, bands_of(*rows)) == ""


@pytest.mark.parametrize("elsewhere_holds", [True, False])
def test_gains_judge_a_claim_where_it_starts_to_pay(elsewhere_holds: bool) -> None:
    """Not at the sidebar's epsilon, 1, where the verdict is the other one."""
    plan = plan_of("gaussian")
    assert plan.settings.epsilon == 1
    bands = bands_of(
        ("gaussian", 1.0, 0.5, 0.6, 0.7), ("gaussian", 10.0, 0.7, 0.8, 0.9), floors=FLOORS
    )
    fails, holds = "out_of_scope", "holds"
    bands["verdict"] = bands["verdict"].where(bands["mechanism"] != "gaussian").fillna(
        bands["epsilon"].map({1.0: holds if elsewhere_holds else fails,
                              10.0: fails if elsewhere_holds else holds})
    )  # fmt: skip
    said = words.gains(plan, bands)
    assert "from 10 on" in said
    assert ("there its claim fails" in said) is elsewhere_holds


@pytest.mark.parametrize(
    ("task", "covered", "open_"),
    [
        ({}, "a part that nothing else uses (75 rows)", "The training rows and their labels"),
        (
            {"subspace": "training"},
            "the training rows (112 rows)",
            "nothing protects them as a whole",
        ),
        (
            {"learner": "k_means"},
            "test rows included, is post-processing",
            "The training rows: the",
        ),
        ({"source": "release"}, "The training rows and their labels (112)", "The test rows"),
        ({"source": "release", "learner": "k_means"}, "No label is released", "The test rows"),
        ({"source": "release", "table": "diabetes"}, "Clipping noisy labels", "The test rows"),
    ],
)
def test_protection_is_stated_for_every_kind_of_task(
    task: dict[str, str], covered: str, open_: str
) -> None:
    plan = plan_of("data_gaussian", **task)
    assert covered in " ".join(words.protected(plan))
    assert open_ in " ".join(words.unprotected(plan))
    released = plan.task.source == "release"
    assert ("so what it learns is not private" in " ".join(words.unprotected(plan))) != released
    assert ("as private as the release" in " ".join(words.protected(plan))) == released
    assert all(text.endswith(".") for text in (*words.protected(plan), *words.unprotected(plan)))


def test_facts_say_how_rows_are_divided() -> None:
    assert words.facts(plan_of("gaussian", tuning="cv")) == (
        "The label species has 3 classes. 75 rows for the subspace, 37 trained on, 38 tested on, "
        "in 5 random splits. Privacy is calibrated to the 75, at delta 1e-6. Hyperparameters are "
        "chosen by cross-validation within the training rows of each round."
    )
    assert "112 rows and labels released and learned from" in words.facts(
        plan_of("data_gaussian", source="release")
    )


def test_the_table_has_the_names_a_reader_sees() -> None:
    plan = plan_of("gaussian")
    rows = words.table_rows(plan, bands_of(GAUSSIAN, floors=FLOORS))
    assert rows["what"].tolist() == [CLEAN, CHANCE, GUESS, "Gaussian, exact"]
    assert rows["status"].isna().tolist() == [True, True, True, False]
    assert rows["status"].iloc[3] == "✓ claim holds"
    release = plan_of("gaussian", "laplace", "jl_transform", source="release")
    left = by_reason(release.skipped)
    assert ["gaussian", "laplace"] in left.values()
    assert ["jl_transform"] in left.values()


# Figure ---------------------------------------------------------------------------------------

PANELS = [
    Panel("gaussian", "Gaussian, exact", "✓ claim holds", "#0072B2", "circle", "solid"),
    Panel("laplace", "Laplace with quite a long name", "✓ holds", "#E69F00", "circle", "solid"),
]
ROWS: tuple[Band, ...] = (
    ("gaussian", 0.1, 0.4, 0.5, 0.6), GAUSSIAN, ("gaussian", 10.0, 0.85, 0.9, 0.95),
    ("laplace", 0.1, 0.3, 0.4, 0.5), ("laplace", 10.0, 0.8, 0.89, 0.9),
)  # fmt: skip


def draw(bands: pd.DataFrame, panels: list[Panel] = PANELS, **more: Any) -> go.Figure:
    given = {"score": SCORES["accuracy"], "epsilons": (0.1, 1.0, 10.0), "now": 2.0} | more
    return task_figure(bands, panels, **given)


def test_means_bands_and_floors_are_where_the_table_says() -> None:
    figure = draw(bands_of(*ROWS, floors=FLOORS))
    traces = {trace.name: trace for trace in figure.data if trace.name}
    line = traces["Gaussian, exact · ✓ claim holds"]
    assert list(line.x) == [0.1, 1.0, 10.0]
    assert list(line.y) == [0.5, 0.85, 0.9]
    band = next(trace for trace in figure.data if trace.fill == "toself")
    assert list(band.x) == [0.1, 1.0, 10.0, 10.0, 1.0, 0.1]
    assert list(band.y) == [0.6, 0.9, 0.95, 0.85, 0.8, 0.4]
    assert list(traces[CLEAN].y) == [0.9, 0.9]
    assert list(traces[CLEAN].x) == [0.1, 10.0]
    low, high = figure.layout.yaxis.range
    assert low < 0.3
    assert 0.95 < high <= 1.02
    assert figure.layout.yaxis.tickformat == "~%"
    now = next(note for note in figure.layout.annotations if note.text == "now")
    assert now.x == math.log10(2.0)


def test_a_curve_is_dashed_where_its_claim_fails_and_says_so() -> None:
    bands = bands_of(*ROWS, floors=FLOORS)
    mine = bands["mechanism"] == "gaussian"
    bands.loc[mine & (bands["epsilon"] == 10.0), "verdict"] = "out_of_scope"
    figure = draw(bands)
    lines = [trace for trace in figure.data if trace.name == "Gaussian, exact · ✓ claim holds"]
    assert [(line.line.dash, list(line.x)) for line in lines] == [
        ("solid", [0.1, 1.0]),
        ("dash", [1.0, 10.0]),
    ]
    assert list(lines[1].marker.symbol) == ["circle", "circle-open"]
    assert [told[-1] for told in lines[1].customdata] == ["claim holds", "fails outside its scope"]
    # The control: a claim that holds everywhere is one solid line.
    (other,) = [t for t in figure.data if t.name == "Laplace with quite a long name · ✓ holds"]
    assert (other.line.dash, set(other.marker.symbol)) == ("solid", {"circle"})


def test_each_mechanism_has_a_panel_with_its_name_on_one_scale() -> None:
    bands = bands_of(*ROWS, floors=FLOORS)
    figure = draw(bands)
    titles = [note for note in figure.layout.annotations if note.text != "now"]
    assert [note.text for note in titles] == [
        "Gaussian, exact ✓",
        "Laplace with quite a long<br>name ✓",
    ]
    assert [note.font.color for note in titles] == [panel.colour for panel in PANELS]
    assert [note.name for note in titles] == ["name:gaussian", "name:laplace"]
    assert titles[0].x < titles[1].x
    assert {tuple(axis.range) for axis in figure.select_yaxes()} == {figure.layout.yaxis.range}
    assert {tuple(axis.range) for axis in figure.select_xaxes()} == {figure.layout.xaxis.range}
    means = {panel.key: bands[bands["mechanism"] == panel.key]["mean"].tolist() for panel in PANELS}
    for panel, axis in zip(PANELS, ("y", "y2"), strict=True):
        here = [trace for trace in figure.data if (trace.yaxis or "y") == axis]
        (own,) = [trace for trace in here if trace.mode == "lines+markers"]
        assert (own.legendgroup, list(own.y)) == (panel.key, means[panel.key])
        # behind it the floors, and the other mechanism's mean
        assert {CLEAN, CHANCE, GUESS} <= {trace.name for trace in here}
        (other,) = [t for t in here if t.legendgroup not in (None, panel.key)]
        assert list(other.y) == means[other.legendgroup]
    # the legend names the floors once
    assert [trace.name for trace in figure.data if trace.showlegend] == [CLEAN, CHANCE, GUESS]


def test_an_empty_axis_and_one_epsilon_can_be_drawn() -> None:
    empty = draw(bands_of())
    assert list(empty.layout.yaxis.range) == [0.0, 1.0]
    assert [trace for trace in empty.data] == []
    one = draw(bands_of(GAUSSIAN, floors=FLOORS), epsilons=(1.0,))
    # A panel that waits for its first rounds stands there, with the floors and the other's mean.
    titles = [note for note in one.layout.annotations if note.text != "now"]
    assert [note.name for note in titles] == ["name:gaussian", "name:laplace"]
    assert len(one.data) == 2 * 3 + 2 + 1
    error = draw(bands_of(GAUSSIAN), score=SCORES["rmse"])
    assert error.layout.yaxis.tickformat is None
    assert "in standard deviations of the label" in error.layout.yaxis.title.text
    assert all(note.text != "now" for note in draw(bands_of(), now=99.0).layout.annotations)


def test_many_mechanisms_are_not_drawn_behind_each_other() -> None:
    for many, behind in ((COMPARED, COMPARED - 1), (COMPARED + 1, 0)):
        panels = [replace(PANELS[0], key=f"m{i}", label=f"name {i}") for i in range(many)]
        rows: list[Band] = [
            (panel.key, epsilon, 0.4, 0.5, 0.6) for panel in panels for epsilon in (0.1, 10.0)
        ]
        figure = draw(bands_of(*rows), panels)
        drawn = [trace for trace in figure.data if trace.mode == "lines+markers"]
        assert len({trace.yaxis for trace in drawn}) == many
        thin = [trace for trace in figure.data if trace.mode == "lines" and trace.fill is None]
        assert len(thin) == many * behind


@pytest.mark.parametrize("score", SCORES)
def test_the_lead_is_fifteen_words_at_most(score: str) -> None:
    """Of the longest name that a mechanism has, for each score."""
    plan = plan_of("gaussian", "laplace_output")
    longest = max(
        (cls.info.label for cls in all_mechanisms().values()), key=lambda s: len(s.split())
    )
    assert plan.mechanisms[1].label == longest
    learner = replace(plan.learner, score=SCORES[score])
    plan = replace(plan, learner=learner)
    best = 0.95 if SCORES[score].better == "higher" else 0.05
    bands = bands_of(GAUSSIAN, ("laplace_output", 1.0, best, best, best), floors=FLOORS)
    said = words.lead(plan, bands)
    assert said is not None
    assert said.startswith(f"{longest}: {SCORES[score].label} ")
    assert len(said.replace("\u00a0%", "").split()) <= 15
    assert words.lead(plan, bands_of(floors=FLOORS)) is None
    # a claim that is false leads nowhere
    assert words.lead(plan, bands_of(GAUSSIAN, floors=FLOORS, verdict="refuted")) is None
