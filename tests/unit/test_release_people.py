"""Unit of privacy: a row, or a person with all her rows."""

from __future__ import annotations

import functools
import io
import math
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import release_neighbours
from dpviz.accounting.gaussian import epsilon_of, mu_of
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.problem import Budget, Relation, Unit
from dpviz.datasets import Table
from dpviz.releasing.grid import DIAGONAL_WEIGHT, OTHER_WEIGHT
from dpviz.releasing.ledger import Ledger, LedgerError
from dpviz.releasing.making import Plan, make, plan
from dpviz.releasing.noise import Law, calibrated, sensitivity_l2
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.records import _People, open_records
from dpviz.releasing.schema import Column, Schema, SchemaError

ABC = Schema(tuple(Column(name, -1, 1) for name in "abc"))
TWO = replace(ABC, rows_a_person=2, person="who")
WORST = [b"1,1,1", b"-1,1,0", b"0,0,0", b"1,0,0", b"0,-1,1", b"junk", b""]
lines = st.lists(st.sampled_from(WORST), max_size=6)


def _text(people: list[tuple[str, bytes]]) -> bytes:
    return b"who,a,b,c\n" + b"".join(b"%s,%s\n" % (who.encode(), row) for who, row in people)


@functools.cache
def _calibrated() -> Plan:
    return plan(ReleaseOptions(row_bound="1", k=1, delta=1e-6), _text([("p", b"1,0,0")] * 2), TWO)


def _planned(text: bytes, schema: Schema) -> Plan:
    return replace(_calibrated(), records=open_records(text, schema), schema=schema)


def _moved(one: Plan, other: Plan) -> float:
    """Return the change of the weighted moment over its own stated sensitivity."""
    upper = np.triu_indices(3)
    weights = np.where(upper[0] == upper[1], DIAGONAL_WEIGHT, OTHER_WEIGHT)
    change = (one.moment() - other.moment())[upper] * weights
    reach = (one.schema.rows_a_person or 1) * sensitivity_l2(one.relation, one.bits)
    return math.sqrt(sum(int(value) ** 2 for value in change)) / reach


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from(WORST)), max_size=8), lines, lines)
def test_all_rows_of_one_person_move_no_more_than_stated(
    rest: list[tuple[str, bytes]], before: list[bytes], after: list[bytes]
) -> None:
    """If a person's lines and their places change, the moment moves within the stated bound."""
    length = max(len(before), len(after), 2)
    gone = [b""] * length
    first = [("her", row) for row in (before + gone)[:length]]
    second = [("her", row) for row in (after + gone)[:length]]
    one = _planned(_text(first[:1] + rest + first[1:]), TWO)
    other = _planned(_text(second[:-1] + rest + second[-1:]), TWO)
    assert _moved(one, other) <= 1


def test_the_sensitivity_is_reached_and_a_schema_that_does_not_count_passes_it() -> None:
    many = [("her", b"1,0,0")] * 6, [("her", b"0,1,0")] * 6
    one, other = (_planned(_text(lines), TWO) for lines in many)
    assert 0.98 < _moved(one, other) <= 1
    unknown = replace(TWO, person="")  # The schema claims two rows per person at most.
    one, other = (_planned(_text(lines), unknown) for lines in many)
    assert _moved(one, other) > 2.9


def _parquet(ids: pa.Array) -> bytes:
    out = io.BytesIO()
    rows = {name: pa.array(np.arange(1.0, len(ids) + 1) / 10) for name in "abc"}
    parquet.write_table(pa.table({"who": ids, **rows}), out)
    return out.getvalue()


def test_every_kind_of_table_counts_the_same_rows() -> None:
    ids = [7, 8, 7, 7, None, None, None, 8]
    mask = np.array([1, 1, 1, 0, 0, 0, 0, 1], bool)
    body = "".join(
        f"{'' if who is None else who},{j / 10},{j / 10},{j / 10}\n"
        for j, who in enumerate(ids, start=1)
    )
    want = np.repeat(np.arange(1, 9)[mask] / 10, 3).reshape(-1, 3)
    for table in (
        b"who,a,b,c\n" + body.encode(),
        _parquet(pa.array(ids)),
        _parquet(pa.array(ids).dictionary_encode()),
    ):
        records = open_records(table, TWO)
        (block,) = records.blocks()
        assert records.n == 8  # The public n includes rows that do not count.
        assert np.array_equal(block, want)
    numbers = np.array(
        [[np.nan if who is None else who, *[j / 10] * 3] for j, who in enumerate(ids, 1)]
    )
    (block,) = open_records(Table("t", numbers, ("who", *"abc")), TWO).blocks()
    assert np.array_equal(block, want)
    with_header = replace(TWO, header=False, columns=(Column("who", use=False), *TWO.columns))
    (block,) = open_records(body.encode(), with_header).blocks()
    assert np.array_equal(block, want)


@pytest.mark.parametrize("kind", ["id", "column", "bound"])
def test_a_blank_id_moves_the_sums_no_more_than_stated(kind: str) -> None:
    """A blank id moves the sums as stated, for ids in text or Parquet or a stated row number.

    If rows without an id were one person, a blank line would decide whether another counts.
    """
    search = release_neighbours.compare_people(2, 60, kinds=[kind])
    assert search.sound, search.examples[:3]
    assert search.released == 60


def test_the_search_finds_a_reader_to_whom_all_blanks_are_one_person() -> None:
    with mock.patch.object(_People, "nobody", return_value=False):
        search = release_neighbours.compare_people(2, 60, kinds=["id", "column"])
    assert not search.sound
    assert max(search.l2, search.l1) > 1


def test_a_word_for_missing_names_nobody_in_the_column_of_the_person() -> None:
    rows = [(who, b"1,0,0") for who in ("p", "unknown", "q", "Unknown ", "unknown", "p", "p")]
    for missing, count in (((), 6), (("unknown",), 4), (("unknown", "Unknown"), 4)):
        who = Column("who", use=False, missing=missing)
        schema = replace(TWO, columns=(who, *TWO.columns))
        assert Schema.from_text(schema.to_text()) == schema
        (block,) = open_records(_text(rows), schema).blocks()
        assert len(block) == count - ("Unknown" in missing)
    for wrong in ("-9", "1,5", "", [1]):
        with pytest.raises(InvalidSetting, match="a number"):
            Column("a", missing=(wrong,))
    with pytest.raises(InvalidSetting, match="words that do not mean missing values"):
        Column("a", levels=("no", "yes", "Unknown"), missing=("unknown",))


def test_names_that_begin_alike_are_of_two_people_and_two_zeros_of_one() -> None:
    once = replace(TWO, rows_a_person=1)
    long = "x" * 1_000
    text = _text([(f"{long}1", b"1,0,0"), (f"{long}2", b"0,1,0"), (f"{long}1", b"0,0,1")])
    (block,) = open_records(text, once).blocks()
    assert np.array_equal(block, np.eye(3)[:2])
    zeros = Table("t", np.array([[0.0, 1, 0, 0], [-0.0, 0, 1, 0]]), ("who", *"abc"))
    (block,) = open_records(zeros, once).blocks()
    assert np.array_equal(block, np.eye(3)[:1])


@settings(max_examples=60, deadline=None)
@given(lines, st.sampled_from(WORST), st.sampled_from(WORST))
def test_a_logarithm_is_of_its_cell_alone_and_moves_no_more_than_stated(
    rest: list[bytes], before: bytes, after: bytes
) -> None:
    logs = replace(ABC, columns=tuple(Column(name, 1e-3, 1, log=True) for name in "abc"))
    assert Schema.from_text(logs.to_text()) == logs
    assert logs.digest != replace(logs, columns=tuple(Column(n, 1e-3, 1) for n in "abc")).digest
    tables = [b"a,b,c\n" + b"\n".join([row, *rest, b"1,1,1"]) for row in (before, after)]
    blocks = [next(iter(open_records(table, logs).blocks())) for table in tables]
    one, other = (logs.filled(block) for block in blocks)
    assert np.array_equal(one[1:], other[1:])  # No cell of any other row has changed.
    assert np.array_equal(one, np.vstack([logs.filled(block[None]) for block in blocks[0]]))
    low, high, _ = logs.limits_used.T
    assert (one >= low).all()
    assert (one <= high).all()
    options = ReleaseOptions(row_bound="8", k=1, delta=1e-6)
    change = _moved(*(plan(options, table, logs) for table in tables))
    assert change <= 1


def test_what_is_beyond_the_limit_does_not_go_with_a_person() -> None:
    """Rows beyond the limit do not go with a person: nonzero typical values would move X'X."""
    half = replace(TWO, columns=tuple(Column(name, 0, 1) for name in "abc"))
    options = ReleaseOptions(row_bound="2", k=1, delta=1e-6, center="none", relation="zero-out")
    release_plan = plan(options, _text([("her", b"1,1,1")] * 9), half)
    upper = np.triu_indices(3)
    weights = np.where(upper[0] == upper[1], DIAGONAL_WEIGHT, OTHER_WEIGHT)
    of_hers = release_plan.moment()[upper] * weights  # A removed person takes these terms away.
    reach = 2 * sensitivity_l2(Relation.ZERO_OUT, release_plan.bits)
    change = math.sqrt(sum(int(value) ** 2 for value in of_hers)) / reach
    assert 0.7 < change <= 1


def test_a_person_column_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(InvalidTable, match="none of its 3 columns has the name 'who'"):
        open_records(b"a,b,c\n1,1,1\n", TWO)


@pytest.mark.parametrize(
    "changed",
    [
        {"rows_a_person": 0},
        {"rows_a_person": 1_001},
        {"rows_a_person": True},
        {"person": "who"},
        {"rows_a_person": 1, "person": "a"},
        {"rows_a_person": 1, "person": 3},
    ],
)
def test_what_cannot_be_declared(changed: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        replace(ABC, **changed)


def test_a_schema_without_the_unit_is_the_schema_it_was() -> None:
    text = ABC.to_text()
    assert "person" not in text
    assert Schema.from_text(TWO.to_text()) == TWO
    assert len({ABC.digest, TWO.digest, replace(TWO, person="").digest}) == 3
    with pytest.raises(SchemaError, match="a whole number of rows from 1 to 1,000"):
        Schema.from_text(TWO.to_text().replace("2", "2.5"))


@pytest.mark.parametrize("law", list(Law))
def test_three_rows_need_three_times_the_noise(law: Law) -> None:
    budget = Budget(1.0, 1e-6 if law is Law.NORMAL else 0.0)
    one, three = (calibrated(law, budget, Relation.REPLACE, 5, 20, rows) for rows in (1, 3))
    assert three.scale == pytest.approx(3 * one.scale, rel=1e-9)
    assert three.proved.epsilon <= 1.0


def test_a_release_of_rows_says_what_it_is_for_a_person() -> None:
    """At (1, 1e-6) a row, three rows lose epsilon 3.32 and ten rows 13.5, as a release states."""
    mu = mu_of(Budget(1.0, 1e-6))
    assert epsilon_of(1e-6, 3 * mu) == pytest.approx(3.32, abs=0.01)
    assert epsilon_of(1e-6, 10 * mu) == pytest.approx(13.5, abs=0.05)


def test_the_release_and_the_ledger_say_who_is_protected(tmp_path: Path) -> None:
    options = ReleaseOptions(row_bound="1", k=1, delta=1e-6)
    table = _text([("p", b"1,0,0"), ("q", b"0,1,0"), ("p", b"0,0,1")])
    persons, rows = (Ledger(tmp_path / name / "ledger") for name in ("persons", "rows"))
    for ledger in (persons, rows):
        ledger.path.parent.mkdir()
    persons.create(Budget(5, 1e-4), Relation.REPLACE, unit=Unit.PERSON)
    rows.create(Budget(5, 1e-4), Relation.REPLACE)
    assert persons.read().unit is Unit.PERSON
    text = make(options, table, TWO, ledger=persons).to_json()
    assert text["unit"] == {"protected": "person", "rows": 2, "person": "who"}
    assert any("'who' names the person" in said for said in text["assumed_public"])
    with pytest.raises(LedgerError, match=r"row under replace .* loss of one person under replace"):
        make(options, table, TWO, ledger=rows)
    with pytest.raises(LedgerError, match=r"person under replace .* loss of one row under replace"):
        make(options, table, ABC, ledger=persons)
    text = make(options, table, ABC, ledger=rows).to_json()
    assert text["unit"] == {"protected": "row", "rows": 1, "person": None}
    assert any("protects ONE ROW" in said for said in text["assumed_public"])


def test_variances_are_of_the_paid_count_where_a_person_has_one_row() -> None:
    """Variances are divided by the 304 rows that count; dividing by all 591 once halved them."""
    rows = np.random.default_rng(4).uniform(-1, 1, (591, 3)) * [0.5, 0.1, 0.1]
    who = [f"p{j % 304}" for j in range(591)]
    lines = [(name, ",".join(map(str, row)).encode()) for name, row in zip(who, rows, strict=True)]
    options = ReleaseOptions(row_bound="1", k=1, epsilon=10, delta=1e-6)
    text = make(options, _text(lines), replace(TWO, rows_a_person=1)).to_json()
    assert text["n"] == 591
    # The noise on the count has a standard deviation of about 3; 5 % of the count are 15.
    assert text["counted"] == pytest.approx(304, rel=0.05)
    exact = np.square(rows[:304, 0]).mean()
    assert text["eigenvalues"][0] == pytest.approx(exact, rel=0.2)
