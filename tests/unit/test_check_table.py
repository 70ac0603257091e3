"""What the check of a table says of each column: each rule once, and its opposite."""

from __future__ import annotations

import numpy as np
import pytest

from dpviz.core.seeding import generator
from dpviz.datasets import check_columns, load, read_raw, rows_lost, suggested_drops
from dpviz.datasets.check import ColumnCheck

N = 60


def checks_of(**columns: object) -> dict[str, ColumnCheck]:
    """Return the check of a table with two plain features beside the columns given."""
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
}
MEASURES = {
    "reals": RNG.normal(size=N).round(3),
    "ages": RNG.integers(18, 90, N),
    "counts": RNG.poisson(100, N),
    "years": RNG.integers(1950, 2020, N),
}


@pytest.mark.parametrize("what", IDENTIFIERS)
def test_an_identifier_is_seen(what: str) -> None:
    check = checks_of(x=IDENTIFIERS[what])["x"]
    assert check.identifies
    assert check.use == "drop"
    assert any("identifier" in warning for warning in check.warnings)


@pytest.mark.parametrize("what", MEASURES)
def test_a_measure_is_no_identifier(what: str) -> None:
    check = checks_of(x=MEASURES[what])["x"]
    assert not check.identifies
    assert check.use == "feature"
    assert check.warnings == ()


def test_each_other_warning() -> None:
    found = checks_of(
        constant=np.full(N, 5.5),
        wide=1e4 * RNG.normal(size=N),
        sentinel=[-999 if i % 9 == 0 else round(float(50 + i % 7), 1) for i in range(N)],
        day=[f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(N)],
        monthly=[f"{10 + i % 18}.{1 + i % 12:02d}" for i in range(N)],
        holes=["" if i % 3 == 0 else f"{i / 7:.3f}" for i in range(N)],
        void=[""] * N,
        colour=["red" if i % 2 else "blue" for i in range(N)],
    )
    words = {name: " ".join(check.warnings) for name, check in found.items()}
    assert "Constant" in words["constant"]
    assert "Spreads more than" in words["wide"]
    assert found["wide"].wide
    assert "7 cells hold a number such as -999" in words["sentinel"]
    assert "A date" in words["day"]
    assert "day.month" in words["monthly"]
    assert "33 % missing" in words["holes"]
    assert words["void"] == "No values."
    assert found["colour"].use == "colour"
    assert words["u"] == words["v"] == ""


def test_only_identifiers_are_suggested_to_go_and_rows_lost_are_counted() -> None:
    text = "id,a,b,t\n" + "".join(f"{500 + i},{i % 5},{'' if i % 6 else i},x\n" for i in range(N))
    raw = read_raw(text.encode(), name="t.csv")
    assert suggested_drops(check_columns(raw)) == ("id",)
    assert rows_lost(raw, ["a", "b"]) == 50
    assert rows_lost(raw, ["a"]) == 0


def test_a_numeric_identifier_does_not_become_a_feature_without_a_word(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "patients.csv"
    rng = generator(2, "tests", "check")
    rows = [f"{84_000 + 13 * i},{rng.normal():.3f},{rng.normal():.3f}" for i in range(N)]
    path.write_text("patient,a,b\n" + "\n".join(rows))
    table = load(str(path))
    assert table.columns == ("patient", "a", "b")
    assert any("'patient' looks like an identifier" in note for note in table.notes)
    left = load(str(path), leave_out=("patient",))
    assert left.columns == ("a", "b")
    assert not any("identifier" in note for note in left.notes)


def test_a_code_for_missing_is_said_on_the_command_line_too() -> None:
    rows = "".join(f"{i % 5},{-999 if i % 9 == 0 else 50 + i % 7},{i % 3}\n" for i in range(60))
    (note,) = read_raw(f"a,b,c\n{rows}".encode(), name="t.csv").to_table().notes
    assert note.startswith("Some cells of 'b' hold a number such as -999, far from all others")
    near = rows.replace("-999", "45")
    assert read_raw(f"a,b,c\n{near}".encode(), name="t.csv").to_table().notes == ()
