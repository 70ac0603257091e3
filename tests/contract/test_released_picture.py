"""The picture of a real release: sensitivities by search, one account by other code, and faults."""

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
)  # other makes three


def options(**changed: Any) -> ReleaseOptions:
    said: dict[str, Any] = {"row_bound": "1", "k": 2, "delta": 1e-6, "picture": 0.65}
    return ReleaseOptions(**(said | changed))


def planned(rows: int = 1, **changed: Any) -> Plan:
    table = Table("made", np.zeros((3_000, 3)), tuple("abc"), np.full(3_000, "x"), "kind")
    return plan(options(**changed), table, replace(ABC, rows_a_person=rows))


def answered(
    whole: np.ndarray, codes: np.ndarray, made: Plan, V: np.ndarray, frame: np.ndarray | None = None
) -> np.ndarray:
    """Return the exact counts of rows; in a frame that holds them all where none is given."""
    assert made.counting is not None
    places, kinds = along(whole, codes, V, made.counting, disk=False)
    if frame is None:
        frame = np.abs(places).max(axis=0)
    return cell_counts(places, kinds, frame, made.counting.plan)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("relation", list(Relation))
def test_a_search_over_neighbours_finds_what_is_paid_for(relation: Relation, rows: int) -> None:
    """One person's rows and labels move; the frame is released, or the fault: taken from rows."""
    made = planned(rows, relation=str(relation))
    side = made.noise.side(COUNTS)
    assert side is not None
    assert made.counting is not None
    rng = np.random.default_rng(4)
    V = np.linalg.qr(rng.standard_normal((3, 3)))[0][:, :2]
    others = rng.integers(-(2**17), 2**17, (6, 3))
    ends = [np.array(row) for row in product((-(2**19), 5, 2**19), repeat=3)]
    frame = np.array([0.3, 0.4]) * made.counting.unit
    worst, leaking = np.zeros(2), 0.0
    for first, second in product(ends[::3], [np.zeros(3)] if relation == "zero-out" else ends[::2]):
        for label in (0, 2):
            tables = [np.vstack([[one] * rows, others]).astype(int) for one in (first, second)]
            codes = [np.array([own] * rows + [0, 1, 2] * 2) for own in (0, label)]
            apart = np.subtract(
                *(
                    answered(*one, made, V, frame.astype(int))
                    for one in zip(tables, codes, strict=True)
                )
            )
            worst = np.maximum(worst, [np.square(apart).sum(), np.abs(apart).sum()])
            by_rows = np.subtract(
                *(answered(*one, made, V) for one in zip(tables, codes, strict=True))
            )
            leaking = max(leaking, np.square(by_rows).sum())
            if rows == 1:  # one row moves one count, or from one to another
                assert sorted(apart[apart != 0].tolist()) in ([], [1], [-1, 1])
    l2 = side.sensitivity / made.counting.weight
    assert math.sqrt(worst[0]) <= l2
    assert math.sqrt(worst[0]) == pytest.approx(l2, rel=1e-9)
    assert math.sqrt(leaking) > l2 * 1.4  # a frame from the rows is refuted
    pure = planned(rows, relation=str(relation), delta=0.0, epsilon=3.0).noise.side(COUNTS)
    assert pure is not None
    assert worst[1] == pure.sensitivity


@pytest.mark.parametrize("disk", [False, True])
def test_a_rows_cell_is_found_from_that_row_alone(disk: bool) -> None:
    """However rows are ordered and cut into blocks; a row of nothing is in no cell."""
    made = planned().counting
    assert made is not None
    rng = np.random.default_rng(5)
    whole = rng.integers(-(2**19), 2**19, (500, 3))
    whole[7] = 0
    codes = rng.integers(0, 3, 500)
    V = np.linalg.qr(rng.standard_normal((3, 3)))[0][:, :2]
    places, kinds = along(whole, codes, V, made, disk=disk)
    assert len(places) == 499
    each = [along(whole[i : i + 1], codes[i : i + 1], V, made, disk=disk) for i in range(500)]
    assert np.array_equal(np.concatenate([one for one, _ in each]), places)
    assert np.array_equal(np.concatenate([one for _, one in each]), kinds)
    if not disk:
        exact = whole[np.arange(500) != 7] @ V * 2.0 ** (made.unit.bit_length() - 1 - BITS)
        np.testing.assert_allclose(places, exact, atol=2.0**22)


def test_one_row_moves_each_count_of_a_search_by_at_most_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = planned()
    assert made.counting is not None
    asked: list[int] = []

    def silent(_: Noise, scale: float, values: list[int]) -> list[int]:
        asked.extend(values)
        return [0]  # the same answers, so the same questions

    monkeypatch.setattr(Noise, "added", silent)
    rng = np.random.default_rng(6)
    for _ in range(50):
        lengths = (rng.exponential(0.2, (9,)) * made.counting.unit).astype(np.int64)
        other = lengths.copy()
        other[0] = int(rng.exponential(0.2) * made.counting.unit)
        seen = []
        for one in (lengths, other):
            asked.clear()
            searched(np.sort(one), made.counting, made.noise)
            seen.append(np.array(asked) // made.counting.weight)
        assert len(seen[0]) == 8
        assert np.abs(seen[0] - seen[1]).max() <= 1
    side = made.noise.side(MEDIAN)
    assert side is not None
    assert side.entries == 8  # four on each axis
    assert side.sensitivity >= math.sqrt(8) * made.counting.weight


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("center", ["typical", "private"])
def test_matrix_mean_frame_and_counts_cost_what_is_claimed(center: str, relation: Relation) -> None:
    made = planned(relation=str(relation), center=center)
    own = sensitivity_l2(relation, BITS)
    parts = [
        made.noise.scale / own,
        *(side.scale / side.sensitivity for side in made.noise.sides),
    ]
    assert len(parts) == (4 if center == "typical" else 5)

    def delta(stds: list[float]) -> float:
        whole = pld.identity()
        for std in stds:
            whole = whole.compose(pld.from_gaussian_mechanism(std, use_connect_dots=True))
        return float(whole.get_delta_for_epsilon(1.0))

    assert 0.97e-6 < delta(parts) < 1.02e-6  # it rounds up
    assert delta([*parts, parts[-1]]) > 2e-6  # the control: a second picture is not free
    assert all(side.scale >= made.noise.scale for side in made.noise.sides)  # as noise.py proves


def test_pure_parts_add_up_to_epsilon() -> None:
    made = planned(delta=0.0, epsilon=3.0)
    whole = Fraction(sensitivity_l1(Relation.REPLACE, 3, BITS)) / Fraction(made.noise.scale)
    whole += sum(Fraction(side.sensitivity) / Fraction(side.scale) for side in made.noise.sides)
    assert Fraction(2.999) < whole <= Fraction(made.noise.proved.epsilon) <= 3


def test_a_picture_that_would_drown_is_not_paid_for() -> None:
    with pytest.raises(CannotRun, match=r"picture.* would drown: 3,000 rows are .* nothing was"):
        planned(epsilon=0.003)
    with pytest.raises(InvalidSetting, match="shares must be above 0 and together below 1"):
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
    found = json.loads(out.read_text())
    picture = found["picture"]
    assert [side["name"] for side in found["beside"]] == [MEDIAN, "edge of the frame", COUNTS]
    assert picture["frame"]["from"] == SEARCHED
    assert picture["labels"] == [*map(str, range(10)), "other"]
    assert all(isinstance(count, int) for count in np.array(picture["counts"]).ravel().tolist())
    # 11 x 36 counts of standard deviation 7.8 each: five of their sum's
    assert abs(np.array(picture["counts"]).sum() - 1_797) < 5 * 7.9 * math.sqrt(396)
    assert any("column 'digit'" in said for said in found["assumed_public"])
    seen = picture_in(found)
    assert seen is not None
    assert seen.noisy.tolist() == picture["counts"]
    assert seen.plan.std == picture["noise"]["std"]
    assert verify(ledger, [out]) == []
    card = dpviz.card(out, ledger=ledger.path)
    assert "published: nobody&#x27;s row" in card.to_html()
    filed = out.with_name("card.json")
    card.write_card(filed)
    assert dpviz.verify(filed, out, ledger.path).problems == []
    filed.write_text(card.to_json().replace('"other"', '"others"', 1))
    assert "picture" in dpviz.verify(filed, out, ledger.path).problems[-1]


def test_small_budgets_show_directions_without_labels(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(3, 1e-5), Relation.REPLACE)
    made = make(options(row_bound="40", epsilon=0.1), load("digits"), None, ledger=ledger)
    found = made.to_json()
    assert found["picture"]["frame"]["from"] in (DISK, RELEASED)  # as the noise has it
    assert found["picture"]["frame"]["answers"] == []
    assert found["picture"]["labels"] == []
    assert len(found["picture"]["categories"]) == 11
    assert verify(ledger, []) == []
    few = planned(epsilon=0.05)
    assert few.counting is not None
    seen = frame_of(few.counting, few.noise, np.array([0.9, 0.8, 0.0]))
    assert not seen[0]
    assert 0.5 < seen[1][1] / few.counting.unit <= 1.0
    assert frame_of(few.counting, few.noise, np.array([0.9, 0.0, 0.0]))[0]  # only noise is seen


# --- labels --------------------------------------------------------------------------------------


def test_a_label_is_one_of_the_declared_categories_or_other_by_itself() -> None:
    labels = ["x", " y ", "", "Y", "z", "x"]
    text = "a,b,c,kind\n" + "".join(f"0.1,0.2,0.3,{label}\n" for label in labels)
    table = Table("t", np.full((6, 3), 0.1), tuple("abc"), np.array(labels), "kind")
    every: list[TableInput] = [text.encode(), table]
    for given in every:
        ((block, codes),) = open_records(given, ABC).labelled()
        assert block.shape == (6, 3)
        assert [ABC.kinds[code] for code in codes] == ["x", "y", "other", "other", "other", "x"]
    numbers = replace(ABC, categories=("1", "2"))
    coded = Table("t", np.array([[0.0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0, 2.5]]), (*"abc", "kind"))
    ((_, codes),) = open_records(coded, numbers).labelled()
    assert codes.tolist() == [0, 1, 2]


def test_what_a_person_has_too_many_of_is_left_out_with_its_label() -> None:
    schema = replace(ABC, rows_a_person=1, person="who")
    text = b"who,a,b,c,kind\n" + b"p,.1,.1,.1,x\np,.1,.1,.1,y\nq,.1,.1,.1,y\n"
    ((block, codes),) = open_records(text, schema).labelled()
    assert block.shape == (2, 3)
    assert [schema.kinds[code] for code in codes] == ["x", "y"]


def test_a_picture_of_those_who_count_is_of_as_many_as_do(tmp_path: Path) -> None:
    """Of 3,000 rows, three of a person, 1,000 count: n would make a crowd of what noise leaves."""
    rng = np.random.default_rng(6)
    lines = [
        f"{row // 3},{','.join(f'{x:.3f}' for x in rng.uniform(-0.5, 0.5, 3))},x"
        for row in range(3_000)
    ]
    text = "\n".join(["who,a,b,c,kind", *lines, ""]).encode()
    schema = replace(ABC, rows_a_person=1, person="who")
    asked = options(center="private", epsilon=2.0)
    made = plan(asked, text, schema)
    assert made.count() == 1_000
    side = made.noise.side(COUNT)
    assert side is not None
    parts = [made.noise, *made.noise.sides]
    own = [sensitivity_l2(Relation.REPLACE, made.bits), *(s.sensitivity for s in made.noise.sides)]
    whole = pld.identity()
    for part, length in zip(parts, own, strict=True):
        std = part.scale / length
        whole = whole.compose(pld.from_gaussian_mechanism(std, use_connect_dots=True))
    assert 0.97e-6 < whole.get_delta_for_epsilon(2.0) < 1.02e-6  # it rounds up
    ledger, out = Ledger(tmp_path / "ledger"), tmp_path / "release.json"
    ledger.create(Budget(3, 1e-5), Relation.REPLACE, unit=Unit.PERSON)
    make(asked, text, schema, ledger=ledger, out=out)
    found = json.loads(out.read_text())
    # 7 standard deviations of a count by a share of .04
    assert abs(found["counted"] - 1_000) < 7 * side.scale / side.sensitivity
    seen = picture_in(found)
    assert seen is not None
    assert seen.plan.n == found["counted"]
    assert verify(ledger, [out]) == []
    out.write_text(json.dumps(found | {"counted": 3_000}))
    assert "was changed" in verify(ledger, [out])[0]  # the control


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
