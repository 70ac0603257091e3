"""The map of a real release: sensitivities by search, a second accounting, and faults."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import dpviz
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.problem import Budget, Relation, Unit
from dpviz.datasets import Table, load
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.making import Plan, make, plan
from dpviz.releasing.noise import COUNT, Noise, sensitivity_l1, sensitivity_l2
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.picture import (
    COUNTS,
    MEDIAN,
    along,
    cell_counts,
    frame_of,
    picture_in,
    searched,
)
from dpviz.releasing.records import TableInput, open_records
from dpviz.releasing.schema import Column, Schema
from dpviz.releasing.verifying import verify
from dpviz.simulation.picture.account import DISK, RELEASED, SEARCHED

BITS = 20
ABC = Schema(
    tuple(Column(name, -1, 1) for name in "abc"), label="kind", categories=("x", "y")
)  # The label with the name "other" is the third label.


def options(**changed: Any) -> ReleaseOptions:
    words: dict[str, Any] = {"row_bound": "1", "k": 2, "delta": 1e-6, "picture": 0.65}
    return ReleaseOptions(**(words | changed))


def planned(rows: int = 1, **changed: Any) -> Plan:
    table = Table("made", np.zeros((3_000, 3)), tuple("abc"), np.full(3_000, "x"), "kind")
    return plan(options(**changed), table, replace(ABC, rows_a_person=rows))


def answered(
    whole: np.ndarray, codes: np.ndarray, made: Plan, V: np.ndarray, frame: np.ndarray | None = None
) -> np.ndarray:
    """Return the exact counts of rows, by default in a frame that holds all rows."""
    assert made.counting is not None
    places, kinds = along(whole, codes, V, made.counting, disk=False)
    if frame is None:
        frame = np.abs(places).max(axis=0)
    return cell_counts(places, kinds, frame, made.counting.plan)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("relation", list(Relation))
def test_a_search_over_neighbours_finds_what_is_paid_for(relation: Relation, rows: int) -> None:
    """One person changes counts within the sensitivity; a frame taken from rows is refuted."""
    plan_of = planned(rows, relation=str(relation))
    side = plan_of.noise.side(COUNTS)
    assert side is not None
    assert plan_of.counting is not None
    rng = np.random.default_rng(4)
    V = np.linalg.qr(rng.standard_normal((3, 3)))[0][:, :2]
    others = rng.integers(-(2**17), 2**17, (6, 3))
    ends = [np.array(row) for row in product((-(2**19), 5, 2**19), repeat=3)]
    frame = np.array([0.3, 0.4]) * plan_of.counting.unit
    worst, leaking = np.zeros(2), 0.0
    for first, second in product(ends[::3], [np.zeros(3)] if relation == "zero-out" else ends[::2]):
        for label in (0, 2):
            tables = [np.vstack([[one] * rows, others]).astype(int) for one in (first, second)]
            codes = [np.array([own] * rows + [0, 1, 2] * 2) for own in (0, label)]
            apart = np.subtract(
                *(
                    answered(*one, plan_of, V, frame.astype(int))
                    for one in zip(tables, codes, strict=True)
                )
            )
            worst = np.maximum(worst, [np.square(apart).sum(), np.abs(apart).sum()])
            by_rows = np.subtract(
                *(answered(*one, plan_of, V) for one in zip(tables, codes, strict=True))
            )
            leaking = max(leaking, np.square(by_rows).sum())
            if rows == 1:  # A row adds to one count, or moves between two counts.
                assert sorted(apart[apart != 0].tolist()) in ([], [1], [-1, 1])
    l2 = side.sensitivity / plan_of.counting.weight
    assert math.sqrt(worst[0]) <= l2
    assert math.sqrt(worst[0]) == pytest.approx(l2, rel=1e-9)
    assert math.sqrt(leaking) > l2 * 1.4  # A frame taken from the rows breaks the bound.
    pure = planned(rows, relation=str(relation), delta=0.0, epsilon=3.0).noise.side(COUNTS)
    assert pure is not None
    assert worst[1] == pure.sensitivity


@pytest.mark.parametrize("disk", [False, True])
def test_a_rows_cell_is_found_from_that_row_alone(disk: bool) -> None:
    """The order and blocks of rows do not change a row's cell; a row of zeros is in no cell."""
    counting = planned().counting
    assert counting is not None
    rng = np.random.default_rng(5)
    whole = rng.integers(-(2**19), 2**19, (500, 3))
    whole[7] = 0
    codes = rng.integers(0, 3, 500)
    V = np.linalg.qr(rng.standard_normal((3, 3)))[0][:, :2]
    places, kinds = along(whole, codes, V, counting, disk=disk)
    assert len(places) == 499
    each = [along(whole[i : i + 1], codes[i : i + 1], V, counting, disk=disk) for i in range(500)]
    assert np.array_equal(np.concatenate([one for one, _ in each]), places)
    assert np.array_equal(np.concatenate([one for _, one in each]), kinds)
    if not disk:
        exact = whole[np.arange(500) != 7] @ V * 2.0 ** (counting.unit.bit_length() - 1 - BITS)
        np.testing.assert_allclose(places, exact, atol=2.0**22)


def test_one_row_moves_each_count_of_a_search_by_at_most_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layout = planned()
    assert layout.counting is not None
    requests: list[int] = []

    def silent(_: Noise, scale: float, values: list[int]) -> list[int]:
        requests.extend(values)
        return [0]  # If the answers are equal, the requests that follow are equal too.

    monkeypatch.setattr(Noise, "added", silent)
    rng = np.random.default_rng(6)
    for _ in range(50):
        lengths = (rng.exponential(0.2, (9,)) * layout.counting.unit).astype(np.int64)
        other = lengths.copy()
        other[0] = int(rng.exponential(0.2) * layout.counting.unit)
        counts = []
        for one in (lengths, other):
            requests.clear()
            searched(np.sort(one), layout.counting, layout.noise)
            counts.append(np.array(requests) // layout.counting.weight)
        assert len(counts[0]) == 8
        assert np.abs(counts[0] - counts[1]).max() <= 1
    side = layout.noise.side(MEDIAN)
    assert side is not None
    assert side.entries == 8  # Each of the two axes has four entries.
    assert side.sensitivity >= math.sqrt(8) * layout.counting.weight


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("center", ["typical", "private"])
def test_matrix_mean_frame_and_counts_cost_what_is_claimed(center: str, relation: Relation) -> None:
    form = planned(relation=str(relation), center=center)
    bound = sensitivity_l2(relation, BITS)
    parts = [
        form.noise.scale / bound,
        *(side.scale / side.sensitivity for side in form.noise.sides),
    ]
    assert len(parts) == (4 if center == "typical" else 5)

    def delta(stds: list[float]) -> float:
        whole = pld.identity()
        for std in stds:
            whole = whole.compose(pld.from_gaussian_mechanism(std, use_connect_dots=True))
        return float(whole.get_delta_for_epsilon(1.0))

    assert 0.97e-6 < delta(parts) < 1.02e-6  # dp-accounting rounds deltas up.
    assert delta([*parts, parts[-1]]) > 2e-6  # Control: a second picture costs additional delta.
    assert all(side.scale >= form.noise.scale for side in form.noise.sides)


def test_pure_parts_add_up_to_epsilon() -> None:
    layout = planned(delta=0.0, epsilon=3.0)
    whole = Fraction(sensitivity_l1(Relation.REPLACE, 3, BITS)) / Fraction(layout.noise.scale)
    whole += sum(Fraction(side.sensitivity) / Fraction(side.scale) for side in layout.noise.sides)
    assert Fraction(2.999) < whole <= Fraction(layout.noise.proved.epsilon) <= 3


def test_a_picture_that_would_drown_is_not_paid_for() -> None:
    with pytest.raises(CannotRun, match=r"map.* would hide it. 3,000 rows are .* nothing was"):
        planned(epsilon=0.003)
    with pytest.raises(InvalidSetting, match="shares must be above 0, with a sum below 1"):
        planned(picture=0.6, center="private", mean_share=0.45)
    assert planned(picture=0.0).counting is None


# --- the file ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, Path]:
    folder = tmp_path_factory.mktemp("picture")
    ledger, out = Ledger(folder / "ledger"), folder / "release.json"
    ledger.create(Budget(3, 1e-5), Relation.REPLACE)
    make(options(row_bound="40"), load("digits"), None, ledger=ledger, out=out)
    return ledger, out


def test_the_file_holds_whole_numbers_and_fits_its_ledger(released: tuple[Ledger, Path]) -> None:
    ledger, out = released
    content = json.loads(out.read_text())
    picture = content["picture"]
    assert [side["name"] for side in content["beside"]] == [MEDIAN, "edge of the frame", COUNTS]
    assert picture["frame"]["from"] == SEARCHED
    assert picture["labels"] == [*map(str, range(10)), "other"]
    assert all(isinstance(count, int) for count in np.array(picture["counts"]).ravel().tolist())
    # The 11 x 36 counts have a standard deviation of 7.8 each: allow 5 deviations of the sum.
    assert abs(np.array(picture["counts"]).sum() - 1_797) < 5 * 7.9 * math.sqrt(396)
    assert any("column 'digit'" in said for said in content["assumed_public"])
    frame_there = picture_in(content)
    assert frame_there is not None
    assert frame_there.noisy.tolist() == picture["counts"]
    assert frame_there.plan.std == picture["noise"]["std"]
    assert verify(ledger, [out]) == []
    card = dpviz.card(out, ledger=ledger.path)
    assert "published: nobody&#x27;s row" in card.to_html()
    card_file = out.with_name("card.json")
    card.write_card(card_file)
    assert dpviz.verify(card_file, out, ledger.path).problems == []
    card_file.write_text(card.to_json().replace('"other"', '"others"', 1))
    assert "picture" in dpviz.verify(card_file, out, ledger.path).problems[-1]


def test_small_budgets_show_directions_without_labels(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(3, 1e-5), Relation.REPLACE)
    release = make(options(row_bound="40", epsilon=0.1), load("digits"), None, ledger=ledger)
    text = release.to_json()
    assert text["picture"]["frame"]["from"] in (DISK, RELEASED)
    assert text["picture"]["frame"]["answers"] == []
    assert text["picture"]["labels"] == []
    assert len(text["picture"]["categories"]) == 11
    assert verify(ledger, []) == []
    few = planned(epsilon=0.05)
    assert few.counting is not None
    frame = frame_of(few.counting, few.noise, np.array([0.9, 0.8, 0.0]))
    assert not frame[0]
    assert 0.5 < frame[1][1] / few.counting.unit <= 1.0
    assert frame_of(few.counting, few.noise, np.array([0.9, 0.0, 0.0]))[0]


# --- labels --------------------------------------------------------------------------------------


def test_a_label_is_one_of_the_declared_categories_or_other_by_itself() -> None:
    labels = ["x", " y ", "", "Y", "z", "x"]
    text = "a,b,c,kind\n" + "".join(f"0.1,0.2,0.3,{label}\n" for label in labels)
    table = Table("t", np.full((6, 3), 0.1), tuple("abc"), np.array(labels), "kind")
    every: list[TableInput] = [text.encode(), table]
    for names in every:
        ((block, codes),) = open_records(names, ABC).labelled()
        assert block.shape == (6, 3)
        assert [ABC.kinds[code] for code in codes] == ["x", "y", "other", "other", "other", "x"]
    numbers = replace(ABC, categories=("1", "2"))
    code_table = Table(
        "t", np.array([[0.0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0, 2.5]]), (*"abc", "kind")
    )
    ((_, codes),) = open_records(code_table, numbers).labelled()
    assert codes.tolist() == [0, 1, 2]


def test_what_a_person_has_too_many_of_is_left_out_with_its_label() -> None:
    schema = replace(ABC, rows_a_person=1, person="who")
    text = b"who,a,b,c,kind\n" + b"p,.1,.1,.1,x\np,.1,.1,.1,y\nq,.1,.1,.1,y\n"
    ((block, codes),) = open_records(text, schema).labelled()
    assert block.shape == (2, 3)
    assert [schema.kinds[code] for code in codes] == ["x", "y"]


def test_a_picture_of_those_who_count_is_of_as_many_as_do(tmp_path: Path) -> None:
    """With three rows a person, 1,000 of 3,000 rows count, and the map shows those 1,000."""
    rng = np.random.default_rng(6)
    lines = [
        f"{row // 3},{','.join(f'{x:.3f}' for x in rng.uniform(-0.5, 0.5, 3))},x"
        for row in range(3_000)
    ]
    text = "\n".join(["who,a,b,c,kind", *lines, ""]).encode()
    schema = replace(ABC, rows_a_person=1, person="who")
    choices = options(center="private", epsilon=2.0)
    form = plan(choices, text, schema)
    assert form.count() == 1_000
    side = form.noise.side(COUNT)
    assert side is not None
    parts = [form.noise, *form.noise.sides]
    l2 = [sensitivity_l2(Relation.REPLACE, form.bits), *(s.sensitivity for s in form.noise.sides)]
    whole = pld.identity()
    for part, length in zip(parts, l2, strict=True):
        std = part.scale / length
        whole = whole.compose(pld.from_gaussian_mechanism(std, use_connect_dots=True))
    assert 0.97e-6 < whole.get_delta_for_epsilon(2.0) < 1.02e-6  # dp-accounting rounds deltas up.
    ledger, out = Ledger(tmp_path / "ledger"), tmp_path / "release.json"
    ledger.create(Budget(3, 1e-5), Relation.REPLACE, unit=Unit.PERSON)
    make(choices, text, schema, ledger=ledger, out=out)
    content = json.loads(out.read_text())
    # Allow 7 standard deviations of a noisy count that uses a 0.04 share of the budget.
    assert abs(content["counted"] - 1_000) < 7 * side.scale / side.sensitivity
    picture = picture_in(content)
    assert picture is not None
    assert picture.plan.n == content["counted"]
    assert verify(ledger, [out]) == []
    out.write_text(json.dumps(content | {"counted": 3_000}))
    assert "was changed" in verify(ledger, [out])[0]  # Control: the check detects a changed count.


@pytest.mark.parametrize(
    "changed",
    [
        {"label": ""},
        {"categories": ()},
        {"label": "a"},
        {"categories": ("x", "x")},
        {"categories": ("x\n",)[:0] or ("x\ny",)},
        {"categories": "xy"},
        {"person": "kind", "rows_a_person": 2},
    ],
)
def test_what_cannot_be_declared_of_labels(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting):
        replace(ABC, **changed)


def test_a_schema_without_labels_is_the_schema_it_was() -> None:
    plain = replace(ABC, label="", categories=())
    assert "label" not in plain.to_text()
    assert Schema.from_text(ABC.to_text()) == ABC
    assert plain.digest != ABC.digest
    assert plain.kinds == ()
