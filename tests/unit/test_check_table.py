"""The check of a table reports on each column: each rule and its opposite."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpviz.accounting.gaussian import delta_of, mu_of
from dpviz.cli import main
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, group_budget
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings, levels_in
from dpviz.datasets import (
    check_columns,
    in_batches,
    load,
    read_raw,
    read_table,
    rows_lost,
    suggested_drops,
)
from dpviz.datasets.check import _ORDERS, ColumnCheck, in_order, sentinel_effects
from dpviz.datasets.columns import Kind
from dpviz.datasets.table import ReadOptions

N = 60


def checks_of(**columns: object) -> dict[str, ColumnCheck]:
    """Return the check of a table with two plain features and the given columns."""
    rng = generator(0, "tests", "check")
    table = {"u": rng.normal(size=N), "v": rng.normal(size=N), **columns}
    lines = [",".join(table)]
    lines += [",".join(str(values[i]) for values in table.values()) for i in range(N)]  # type: ignore[index]
    raw = read_raw("\n".join(lines).encode(), name="t.csv")
    return {check.name: check for check in check_columns(raw)}


RNG = generator(1, "tests", "check")
IDENTIFIERS = {
    "counted": np.arange(1, N + 1),
    "patient numbers": RNG.permutation(np.arange(100_000, 100_000 + 7 * N, 7)),
    "shuffled count": RNG.permutation(N),
    "texts": [f"p{i}" for i in range(N)],
    "numbers that repeat": RNG.permutation(1_040_000 + 911 * (np.arange(N) * 13 // 14)),
    "in steps": RNG.permutation(np.arange(3_600, 3_600 * (N + 1), 3_600)),
    "beyond a double": [int(value) for value in RNG.integers(2**55, 2**60, N)],
}
NAMED = {
    "Hospital Number": RNG.permutation(10_000 + 311 * (np.arange(N) // 2)),
    "customer_id": RNG.permutation(np.arange(1_000, 9_000, 8_000 // N)[:N]),
    "Kundennummer": RNG.permutation(np.arange(20_000, 90_000, 70_000 // N)[:N]),
    "record no.": np.arange(N) * 3 + 7,
    "mrn": RNG.permutation(np.arange(500, 900, 6)[:N]),
}
MEASURES = {
    "reals": RNG.normal(size=N).round(3),
    "ages": RNG.integers(18, 90, N),
    "counts": RNG.poisson(100, N),
    "years": RNG.integers(1950, 2020, N),
    "incomes": RNG.normal(58_000, 7_000, N).astype(int),
    "incomes in order": np.sort(RNG.normal(58_000, 7_000, N).astype(int)),
    "gene counts": RNG.integers(15_000, 57_000, N),
    "altitudes": RNG.integers(1_000, 4_000, N),
    "populations": RNG.lognormal(12, 1, N).astype(int),
    "steps a day": RNG.integers(1_000, 9_999, N),
}


@pytest.mark.parametrize("what", IDENTIFIERS)
def test_an_identifier_is_seen(what: str) -> None:
    check = checks_of(x=IDENTIFIERS[what])["x"]
    assert check.identifies
    assert check.use == "drop"
    assert any("identifier" in warning for warning in check.warnings)


@pytest.mark.parametrize("name", NAMED)
def test_an_identifier_is_seen_by_its_name(name: str) -> None:
    check = checks_of(**{name: NAMED[name]})[name]
    assert (check.identifies, check.use) == (True, "drop")


@pytest.mark.parametrize("what", MEASURES)
def test_a_measure_is_no_identifier(what: str) -> None:
    check = checks_of(x=MEASURES[what])["x"]
    assert not check.identifies
    assert check.use == "feature"
    assert not any("identifier" in warning or "person" in warning for warning in check.warnings)


def test_each_other_warning() -> None:
    checks = checks_of(
        constant=np.full(N, 5.5),
        wide=1e4 * RNG.normal(size=N),
        sentinel=[-999 if i % 9 == 0 else round(float(50 + i % 7), 1) for i in range(N)],
        day=[f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(N)],
        monthly=[f"{10 + i % 18}.{1 + i % 12:02d}" for i in range(N)],
        holes=["" if i % 3 == 0 else f"{i / 7:.3f}" for i in range(N)],
        void=[""] * N,
        colour=["red" if i % 2 else "blue" for i in range(N)],
    )
    words = {name: " ".join(check.warnings) for name, check in checks.items()}
    assert "Constant" in words["constant"]
    assert "Spreads more than" in words["wide"]
    assert checks["wide"].wide
    assert "7 cells hold a number such as -999" in words["sentinel"]
    assert "A date" in words["day"]
    assert "day.month" in words["monthly"]
    assert "33\u00a0% missing" in words["holes"]
    assert words["void"] == "No values."
    assert checks["colour"].use == "colour"
    assert words["u"] == words["v"] == ""


def test_only_identifiers_are_suggested_to_go_and_rows_lost_are_counted() -> None:
    text = "id,a,b,t\n" + "".join(f"{500 + i},{i % 5},{'' if i % 6 else i},x\n" for i in range(N))
    raw = read_raw(text.encode(), name="t.csv")
    assert suggested_drops(check_columns(raw)) == ("id",)
    assert rows_lost(raw, ["a", "b"]) == 50
    assert rows_lost(raw, ["a"]) == 0


@pytest.mark.parametrize("door", ["file", "frame", "batches"])
def test_an_identifier_is_left_out_at_every_door_and_said(door: str, tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    rng = generator(2, "tests", "check")
    rows = [f"{84_000 + 13 * i},{rng.normal():.3f},{rng.normal():.3f}" for i in range(N)]
    path.write_text("patient,a,b\n" + "\n".join(rows))

    def read(**said: Any) -> Any:
        if door == "batches":
            return in_batches(path, ReadOptions(**said))
        return read_table(pd.read_csv(path) if door == "frame" else path, ReadOptions(**said))

    reading = read()
    assert tuple(reading.columns) == ("a", "b")
    assert any("looks like an identifier: 'patient' (--leave-out none" in n for n in reading.notes)
    whole = read(leave_out=())
    assert tuple(whole.columns) == ("patient", "a", "b")
    assert any("'patient' looks like an identifier" in note for note in whole.notes)
    rest = read(leave_out=("patient",))
    assert not any("identifier" in note for note in rest.notes)


def test_a_command_keeps_an_identifier_where_none_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{7_100_000 + 37 * (i // 2)},{i % 7}.5,{i % 5}.25" for i in range(N)]
    path.write_text("Hospital Number,a,b\n" + "\n".join(rows))
    for more, columns in ((), 2), (("--leave-out", "none"), 3):
        words = ["compare", str(path), "--mechanism", "gaussian", "--trials", "1", "--k", "1"]
        assert main([*words, *more, "--format", "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["dataset"]["d"] == columns
        assert any("identifier" in note for note in answer["notes"])


def test_a_person_of_several_rows_does_not_become_a_feature_without_a_word(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "visits.csv"
    rng = generator(2, "tests", "visits")
    rows = [f"{84_000 + 131 * (i // 3)},{rng.normal():.3f},{rng.normal():.3f}" for i in range(N)]
    path.write_text("patient,a,b\n" + "\n".join(rows))
    table = load(str(path))
    assert table.columns == ("a", "b")
    assert any("'patient'" in note for note in table.notes)


def test_a_code_for_missing_is_said_on_the_command_line_too() -> None:
    rows = "".join(f"{i % 5},{-999 if i % 9 == 0 else 50 + i % 7},{i % 3}\n" for i in range(60))
    (note,) = read_raw(f"a,b,c\n{rows}".encode(), name="t.csv").to_table().notes
    assert note.startswith("Some cells of 'b' hold a number such as -999, far from all others")
    near = rows.replace("-999", "45")
    assert read_raw(f"a,b,c\n{near}".encode(), name="t.csv").to_table().notes == ()


def test_what_may_name_the_person_is_found_where_it_repeats() -> None:
    visits = np.repeat(np.arange(40), 3)[:N] * 7 + 1000
    checks = checks_of(patient=visits, Fall_Nr=np.arange(N) // 2 * 3 + 10_000, plz=["01067"] * N,
                      many=10_000 + np.arange(N) % 40 * 131, idle=np.arange(N) % 3)  # fmt: skip
    assert checks["patient"].repeats == 3
    assert checks["patient"].identifies
    assert checks["Fall_Nr"].repeats == 2
    assert checks["many"].repeats == 2  # Over half the values differ; the name gives no clue.
    assert not checks["many"].identifies
    assert checks["idle"].repeats == 0
    assert any("May name the person: up to 3 rows" in w for w in checks["patient"].warnings)


def test_twins_codes_and_an_outcome_are_named() -> None:
    same = RNG.normal(size=N)
    sex = np.arange(N) % 3
    checks = checks_of(one=same, two=same, sex=sex, Diagnose=np.arange(N) % 2)
    assert checks["one"].warnings == ()
    assert checks["two"].warnings == ("The same in every row as 'one'.",)
    assert any("a code, or an amount?" in warning for warning in checks["sex"].warnings)
    assert any("Likely the outcome" in warning for warning in checks["Diagnose"].warnings)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["Erika Muster", "Max Muster", "Ina Ost"] * 20, "Names of people"),
        (["seit Montag wieder starke Schmerzen links", "kein Befund"] * 30, "Free text"),
        (["a"] * 57 + ["b"] * 3, "fewer than 5 people"),
        (["2024-01-02", "2024-02-02"] * 30, "Dates find people"),
        (["a", "b", "c"] * 20, ""),
    ],
)
def test_a_label_that_finds_people_is_said(cells: list[str], words: str) -> None:
    check = checks_of(x=cells)["x"]
    assert words in check.exposes
    assert bool(check.exposes) == bool(words)
    assert check.use == ("drop" if words else "colour")


def test_free_text_is_never_one_hot() -> None:
    remarks = ["seit Montag wieder starke Schmerzen links", "kein Befund"] * 3
    lines = ["a,b,t,u", *(f"{i},{i * i},{t},{t[:1]}" for i, t in enumerate(remarks))]
    table = read_raw("\n".join(lines).encode(), name="t").to_table(
        ReadOptions(categorical="onehot")
    )
    assert table.columns == ("a", "b", "u=k", "u=s")


def test_a_code_becomes_missing_cell_by_cell() -> None:
    raw = read_raw(b"a,b,c\n1,2,x\n-999,3.5,y\n4,-999,x\n6,7,y\n5,8,x\n", name="t.csv")
    assert sentinel_effects(raw, -999) == [
        ("a", 1, pytest.approx(-196.6), 4.0),
        ("b", 1, pytest.approx(-195.7), pytest.approx(5.125)),
    ]
    table = raw.stated(ReadOptions(codes=[-999.0]))
    assert table.data["a"].to_pylist() == [1, None, 4, 6, 5]
    assert table.data["b"].to_pylist() == [2, 3.5, None, 7, 8]
    assert [column.missing for column in table.columns] == [1, 1, 0]
    assert table.notes[-1] == "2 cells of '-999' count as missing."
    assert raw.stated(ReadOptions(codes=[-1.0])) is raw


def test_rows_are_cut_to_those_of_a_person() -> None:
    raw = read_raw(b"p,a,b\n7,1,1\n8,2,1\n7,3,0\n,4,1\n7,5,0\n,6,1\n", name="t.csv")
    assert raw.to_table(ReadOptions(leave_out=["p"])).rows[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    one = raw.to_table(ReadOptions(person="p"))
    assert one.columns == ("a", "b")
    assert "Of each person in 'p' the first row counts: 4 of 6 rows were left out." in one.notes
    assert one.rows[:, 0].tolist() == [1, 2]  # A row without a person's name never counts.
    two = raw.to_table(ReadOptions(person="p", rows_a_person=2))
    assert two.rows[:, 0].tolist() == [1, 2, 3]
    assert one.assumed_public == ("that no person has more than 1 row",)
    assert "protects one ROW" in raw.to_table().assumed_public[0]


def test_a_budget_of_a_row_grows_for_a_person_with_several() -> None:
    row = Budget(1.0, 1e-6)
    assert group_budget(row, 1).delta == pytest.approx(1e-6)
    group = group_budget(row, 3)
    assert group.epsilon == 3.0
    assert group.delta == pytest.approx(1e-6 * (1 + math.e + math.e**2))
    assert group_budget(Budget(0.5), 4) == Budget(2.0, 0.0)
    # A release calibrated for one row at (1, 1e-6) still meets the group's claim for three rows.
    mu = mu_of(row)
    assert delta_of(group.epsilon, 3 * mu) <= group.delta
    assert delta_of(group.epsilon, 4 * mu) > group.delta  # Control: four rows exceed the claim.


def test_answers_in_words_become_numbers_in_the_order_stated() -> None:
    rows = [("Never", "ja", 1.0), ("often", "nein", 2.0), ("", "ja", 4.0), (" sometimes", "", 3.0)]
    text = "q,r,x\n" + "".join(f"{q},{r},{x}\n" for q, r, x in rows)
    raw = read_raw(io.BytesIO(text.encode()), name="t.csv")
    assert raw.words(raw.columns[0]) == ("never", "often", "sometimes")
    assert raw.words(raw.columns[1]) == ()  # Two words are too few for an ordered scale.
    raw_table = raw.stated(
        ReadOptions(levels=levels_in("no<perhaps<yes;never<rarely<sometimes<often"))
    )
    assert [column.kind for column in raw_table.columns] == [
        Kind.NUMERIC, Kind.CATEGORICAL, Kind.NUMERIC
    ]  # fmt: skip
    table = raw_table.to_table(ReadOptions(missing="drop"))
    assert table.rows[:, 0].tolist() == [1, 4, 3]  # Rows with missing values are left out.
    assert any("became numbers from 1 in 'q'" in note for note in table.notes)
    lacking = ReadOptions(levels=levels_in("never<sometimes<always"))
    assert raw.stated(lacking) is raw  # The column has a word that these levels lack.
    for wrong in ("a<b", "a<b<a", "a<b<", "<".join("abcdefgh")):
        with pytest.raises(InvalidSetting, match="3 to 7 words from lowest to highest"):
            Settings(levels=wrong)
    settings = Settings(levels="never<sometimes<often")
    assert settings.to_query(Settings()) == {"levels": "never<sometimes<often"}


@pytest.mark.parametrize(
    ("column", "asks"),
    [
        ({}, (False, False, False)),
        ({"code": -999.0}, (True, True, True)),
        ({"repeats": 3}, (True, False, True)),
        ({"repeats": 1}, (False, False, False)),
        ({"exposes": "names"}, (False, False, True)),
    ],
)
def test_what_is_answered_or_left_out_is_not_asked_again(
    column: dict[str, Any], asks: tuple[bool, ...]
) -> None:
    check = ColumnCheck("a", Kind.NUMERIC, 0, "feature", **column)
    settings = ((False, False), (True, False), (False, True))
    assert tuple(check.asks(person=p, used=u) for p, u in settings) == asks


@pytest.mark.parametrize(
    ("words", "order"),
    [
        ({"often", "never", "sometimes"}, "never sometimes often"),
        ({"sehr gut", "gut", "schlecht"}, "schlecht|gut|sehr gut"),
        ({"agree", "neutral", "strongly disagree"}, "strongly disagree|neutral|agree"),
        ({"nie", "immer", "selten", "oft"}, "nie selten oft immer"),
        ({"ward a", "ward b", "ward c"}, ""),  # These words have no common order.
        ({"never", "often", "red"}, ""),
        ((), ""),
    ],
)
def test_scales_that_everybody_knows_have_their_order(words: set[str], order: str) -> None:
    scale = tuple(order.split("|" if "|" in order else None))
    assert in_order(words) == scale


def test_the_known_scales_are_scales() -> None:
    assert len(set(_ORDERS)) == len(_ORDERS)
    for order in _ORDERS:
        assert len(order) == len(set(order)) >= 5
        assert all(word == word.casefold().strip() or "ß" in word for word in order)
