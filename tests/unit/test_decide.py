"""Decide: one answer, whose epsilon keeps the requested share at the stated risk."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest

import dpviz
from dpviz.cli import main
from dpviz.core.quantity import Kind, Quantity
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.lessons.prospect import Prospect, becomes, epsilon_under
from dpviz.lessons.questions import Answers
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.predicting import SchemaRows
from dpviz.releasing.schema import Column, Schema
from dpviz.report.figures.room import map_figure
from dpviz.simulation.picture.account import SHARE
from dpviz.studies.decide import Decision, answer, in_hundred

SETTINGS = Settings(table="iris")
OPTIONS = ReleaseOptions(
    rows="unit", scale="limits", k=2, delta=1e-6, relation="replace", picture=SHARE
)


def hospital() -> Table:
    """Return a synthetic table: 591 people, nine values, a few of them far out."""
    rng = generator(0, "hospital")
    mixing = rng.normal(size=(3, 9))
    rows = (rng.normal(size=(591, 3)) * [2.0, 1.2, 0.6]) @ mixing + 0.5 * rng.normal(size=(591, 9))
    rows *= np.sqrt(2.5 / rng.chisquare(2.5, size=591))[:, None]
    return Table("hospital", rows, tuple(f"value {number}" for number in range(1, 10)))


def schema(**more: object) -> Schema:
    columns = tuple(Column(name, -40.0, 40.0) for name in hospital().columns)
    return Schema(columns, rows_a_person=1, **more)  # type: ignore[arg-type]


def rows(n: int = 591, **more: object) -> SchemaRows:
    return replace(SchemaRows.of(hospital(), schema(**more)), n=n)


def decision(found: SchemaRows, options: ReleaseOptions = OPTIONS, **asked: object) -> Decision:
    answers = Answers(**asked)  # type: ignore[arg-type]
    return answer(Prospect("hospital", found, options), answers, SETTINGS)


@pytest.fixture(scope="module")
def yes() -> Decision:
    return decision(rows())


def test_the_answer_is_the_least_epsilon_with_both_sides_and_is_frozen(yes: Decision) -> None:
    assert yes.verdict == "yes"
    assert yes.epsilon is not None
    assert yes.outlook is not None
    assert yes.room == (yes.epsilon, epsilon_under(3))
    below = replace(yes.release, epsilon=0.85 * yes.epsilon)
    assert yes.outlook.low >= 0.9 > yes.prospect.outlook(below).low
    # The risk is rounded up, and the share of information kept is rounded down.
    assert yes.after is not None
    assert yes.after.value == becomes(yes.epsilon)
    assert f"becomes at most {in_hundred(yes.after)} in 100" in yes.both_sides
    assert f"keep at least {math.floor(100 * yes.outlook.low)}%" in yes.both_sides
    assert len(yes.board) == 4
    assert yes.helps == ()
    with pytest.raises(FrozenInstanceError):
        yes.answers = Answers()  # type: ignore[misc]


def test_one_answer_is_printed_drawn_and_written(yes: Decision) -> None:
    data, page = json.loads(yes.to_json()), yes.html()
    for text in (data["question"], data["headline"], *data["board"]):
        assert text in yes.summary()
        assert text.replace("'", "&#x27;") in page
    assert data["epsilon"] == {"value": yes.epsilon, "kind": "prediction"}
    assert data["believed_after"]["kind"] == data["guessed_right"]["kind"] == "upper bound"
    assert data["room"] == list(yes.room or ())
    assert page.count("<svg") == 2  # The page has two charts: gain and harm, and the map.
    assert "PLAN: nothing was released" in page
    assert "do not share" in page
    figure = yes.figure()
    assert f"ε that fits: {yes.epsilon:.3g} to" in figure.layout.annotations[0].text
    assert list(figure.data[1].x) == yes.table()["epsilon"].tolist()


def test_the_map_is_that_of_the_release_and_drowns_where_a_release_refuses(yes: Decision) -> None:
    assert len(yes.maps) == 4
    assert yes.epsilon in [epsilon for epsilon, _ in yes.maps]
    chart = yes.map_at(yes.epsilon or 1.0)
    assert chart is not None
    assert chart == rows().map(yes.release)  # A second request gives the same map of people.
    errors = [yes.map_at(at) for at in (0.5, 3.0, 30.0)]
    sizes = [one["error"] for one in errors if one is not None]
    assert sizes == sorted(sizes, reverse=True)
    few = decision(rows(40))
    assert few.map_at(0.1) is None  # With 40 rows, noise would hide the map.
    assert few.epsilon is None or not few.prospect.rows.drowns(few.release)
    # A release of components alone needs less epsilon, because it has no map of people.
    alone = decision(rows(), replace(OPTIONS, picture=0.0), hand_out="directions")
    assert (alone.epsilon or 9) < (yes.epsilon or 0)
    assert alone.maps == ()
    assert "drives component 1”? " in alone.html()


def test_a_map_spells_its_classes_and_greys_more_than_twelve() -> None:
    points = [[0.1 * kind, 0.0, kind] for kind in range(-1, 3)]
    few = map_figure({"labels": ["setosa", "versicolor", "other"], "points": points})
    marks = {trace.name: (trace.mode, trace.text or trace.marker.symbol) for trace in few.data}
    assert marks == {
        "noise hides the label": ("markers", "circle-open"),
        "S: setosa": ("text", "S"),
        "V: versicolor": ("text", "V"),
        "other": ("markers", "x-thin-open"),
    }
    many = map_figure({"labels": [f"class {at}" for at in range(13)], "points": points})
    assert {trace.mode for trace in many.data} == {"markers"}
    assert len({trace.marker.color for trace in many.data}) == 1


def test_where_there_is_no_room_the_answer_says_what_would_help() -> None:
    no = decision(rows(100), ceiling=1.5)
    assert no.verdict == "no"
    assert no.room is None
    assert "your risk allows at most" in no.headline
    assert no.board == ()
    assert any(one.startswith("Three times as many people") for one in no.helps)
    assert any(one.startswith("Components alone") for one in no.helps)
    assert "no ε fits" in no.figure().layout.annotations[0].text
    alone = decision(rows(100), replace(OPTIONS, picture=0.0), hand_out="directions", ceiling=1.5)
    assert any(f"epsilon {alone.epsilon:.3g}," in one for one in no.helps)


def test_a_picture_of_the_people_is_refused_without_a_number() -> None:
    no = decision(rows(), hand_out="picture")
    assert no.verdict == "no"
    assert no.headline == "No. A picture of the people cannot be published, at any risk."
    assert no.epsilon is None
    assert no.board == no.helps == ()
    assert "can publish a map of noisy counts instead" in no.both_sides


def test_limits_from_the_table_and_an_unknown_unit_stay_open(yes: Decision) -> None:
    assert yes.open == ()
    open_schema = replace(schema(from_data=True), rows_a_person=None)
    open_ = decision(replace(rows(), schema=open_schema))
    assert open_.verdict == "open"
    assert open_.open == ("limits", "unit")
    assert "then the answer is yes" in open_.to_do[0]
    assert "protects one ROW" in open_.to_do[1]


def test_a_ceiling_is_never_passed_by_what_is_claimed() -> None:
    for after in (1.1, 2, 3, 5, 10, 25, 50, 90, 99):
        epsilon = epsilon_under(after)
        assert 100 * becomes(epsilon) <= after
        assert 100 * becomes(epsilon * 1.012) > after  # Three digits stay close to the limit.
    assert epsilon_under(3) == 1.11
    for after in (2, 3, 5, 10, 25):  # The risk is exactly the requested number.
        bound = Quantity(becomes(epsilon_under(after)), Kind.UPPER_BOUND)
        assert in_hundred(bound) == str(after)
    assert in_hundred(Quantity(0.0291, Kind.UPPER_BOUND)) == "3"


def test_a_schema_closes_the_limits(tmp_path: Path) -> None:
    path, table = tmp_path / "schema.json", tmp_path / "t.csv"
    names = hospital().columns
    np.savetxt(table, hospital().rows, delimiter=",", header=",".join(names), comments="")
    asked_for = {"hand_out": "directions"}  # This answer has no map of people.
    from_table = dpviz.decide(table, **asked_for)
    by_schema = dpviz.decide(table, schema=schema(), **asked_for)
    schema().write(path)
    assert "limits" in from_table.open
    assert by_schema.open == ()
    assert dpviz.decide(table, schema=path, **asked_for).to_json() == by_schema.to_json()


def test_a_card_goes_into_a_report_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "board.html"
    assert main(["board", "iris", "--card", "90", "--out", str(path)]) == 2
    assert "--report" in capsys.readouterr().err
    assert not path.exists()
    words = [
        "board",
        "iris",
        "--mechanism",
        "gaussian",
        "--trials",
        "2",
        "--report",
        "--card",
        "75",
    ]
    assert main([*words, "--out", str(path)]) == 0
    assert dpviz.decide("iris", survive="75").headline in path.read_text(encoding="utf-8")


def test_nothing_of_the_table_is_markup() -> None:
    table = hospital()
    evil = Table("<b>", table.rows, tuple(f"<i>{name}</i>" for name in table.columns))
    columns = tuple(Column(name, -40.0, 40.0) for name in evil.columns)
    prospect = Prospect("<b>", SchemaRows.of(evil, Schema(columns)), replace(OPTIONS, picture=0.0))
    page = answer(prospect, Answers(hand_out="directions"), SETTINGS).html()
    assert "<i>" not in page
    assert "of <b>" not in page
