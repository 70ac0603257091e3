"""Page "Check your table": suggestions, changes and stored choices after an upload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.core.seeding import generator
from dpviz.core.settings import Settings, left_out_in, names_in
from dpviz.datasets import ReadOptions, load, read_raw
from pages.ui import check, looks
from tests.ui.driver import (
    change,
    corrected,
    errors,
    go,
    held,
    keys,
    nodes,
    press,
    start,
    upload,
)  # fmt: skip

SETTINGS = {"trials": "5", "m": "gaussian"}


def patients(extra: str = "") -> bytes:
    rng = generator(0, "tests", "patients")
    lines = [f"patient,a,b,c,group{extra}"]
    for i in range(50):
        cells = ",".join(f"{x:.3f}" for x in rng.normal(size=3))
        lines.append(f"{84_000 + 13 * i},{cells},{'u' if i % 2 else 'v'}")
    return "\n".join(lines).encode()


def left_out(at: AppTest) -> tuple[str, ...]:
    return names_in(held(at, "leave_out"))


def facts(at: AppTest) -> str:
    return " ".join(caption.value for caption in at.caption)


def test_an_identifier_is_left_out_at_once_and_said() -> None:
    at = upload(start(**SETTINGS), "t.csv", patients())
    assert errors(at) == []
    assert left_out(at) == ("patient",)
    assert "3 features" in facts(at)
    labels = [node.proto.popover.label for node in nodes(at) if node.type == "popover"]
    assert {"left out: 1 column", "colour: group"} <= set(labels)
    press(at, "check.correct.all")
    assert "check.person" not in keys(at)
    press(at, "check.again")
    assert "check.person" in keys(at)


def test_a_page_and_a_command_begin_with_the_same_features(tmp_path: Path) -> None:
    at = upload(start(**SETTINGS), "t.csv", patients())
    path = tmp_path / "t.csv"
    path.write_bytes(patients())
    begun = load(path, ReadOptions())
    assert begun.columns == ("a", "b", "c")
    assert left_out(at) == ("patient",)
    raw = read_raw(path, name="t")
    # If a user restores the column, the page and the command state that no column is left out.
    assert left_out_in("none") == ()
    table = load(path, ReadOptions.of(replace(Settings(), leave_out="none")))
    assert table.columns == tuple(c.name for c in raw.columns if c.is_feature)


def test_a_choice_survives_pages_and_a_second_upload_of_the_same_columns() -> None:
    at = upload(start(**SETTINGS), "t.csv", patients())
    raw_names = ["patient", "a", "b", "c", "group"]
    at.session_state["check.chosen"] = {check._fingerprint(raw_names): "patient,c"}
    upload(at, "again.csv", patients())
    assert left_out(at) == ("patient", "c")
    for page in ("claims", "explore"):
        go(at, page)
        assert left_out(at) == ("patient", "c")
    assert "2 features" in facts(at)
    # A new table has different columns, so it clears every choice for the previous table.
    upload(at, "other.csv", patients(extra="s"))
    assert left_out(at) == ("patient",)


def test_the_names_never_travel_in_a_link() -> None:
    at = upload(start(**SETTINGS), "t.csv", patients())
    assert "patient" not in str(at.query_params)
    # Charts of the last table are hidden only in the run that reads the new table.
    hides = "".join(node.proto.body for node in at.get("html"))
    again = "".join(node.proto.body for node in at.run().get("html"))
    assert (looks.GONE in hides, looks.GONE in again) == (True, False)


def test_a_file_that_cannot_be_used_offers_an_example() -> None:
    at = upload(start(**SETTINGS), "t.csv", b"a,b\n1,x\n2,y\n")
    assert len(errors(at)) == 1
    assert "check.example" in keys(at)
    press(at, "check.example")
    assert (errors(at), held(at, "table")) == ([], "digits")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_another_encoding_is_one_click(encoding: str) -> None:
    text = patients().decode().replace("patient", "Größe")
    at = upload(start(**SETTINGS), "t.csv", text.encode(encoding))
    (message,) = errors(at)
    assert ("'Größe'" in message) == (encoding == "cp1252")
    press(at, "check.encoding")
    assert (errors(at), held(at, "encoding")) == ([], encoding)
    assert left_out(at) == ("Größe",)


def visits() -> bytes:
    """Return a table with up to three rows a person, and -999 and 999 for missing values."""
    lines = ["Patient Nr,a,b"]
    rng = generator(0, "tests", "visits")
    for i in range(60):
        a = -999 if i % 12 == 0 else round(float(50 + rng.normal()), 3)
        b = 999 if i % 15 == 7 else round(float(rng.normal()), 3)
        lines.append(f"{84_000 + 130 * (i // 3)},{a},{b}")
    return "\n".join(lines).encode()


def test_the_unit_is_asked_and_a_code_is_treated_as_missing_at_one_click() -> None:
    at = upload(start("claims", **SETTINGS), "t.csv", visits())
    assert any("protects one ROW" in text.value for text in at.markdown)
    assert any("up to 3 rows share one value" in text for text in [facts(at)])
    assert any("Is -999 a value?" in text.value for text in at.markdown)
    assert left_out(at) == ("Patient Nr",)
    change(at, "check.person", "some")
    assert held(at, "rows_a_person") == 3
    assert any("The noise is 3 times as large." in text.value for text in at.markdown)
    change(at, "check.person", "column")
    assert (held(at, "person"), held(at, "rows_a_person")) == ("Patient Nr", 1)
    press(at, "check.treat.-999")
    assert held(at, "codes") == "-999"
    assert not any("Is -999 a value?" in text.value for text in at.markdown)
    assert any("Is 999 a value?" in text.value for text in at.markdown)
    for page in ("explore", "claims"):
        go(at, page)
        assert errors(at) == []
        assert held(at, "person") == "Patient Nr"
    # A new file starts without the answers that the user gave for the previous file.
    upload(at, "other.csv", patients())
    assert (held(at, "person"), held(at, "rows_a_person"), held(at, "codes")) == (None, None, "")


def test_a_guess_of_a_column_is_changed_at_one_click() -> None:
    lines = ["lead,site,a,b,note"]
    for i in range(60):
        site = "Unknown" if i % 10 == 0 else "NS"[i % 2]
        lines.append(
            f"{'<0.5' if i % 6 == 0 else i / 4},{site},{i % 7},{i * i % 11},in pain since {i % 9} h"
        )
    at = corrected(upload(start("claims", **SETTINGS), "t.csv", "\n".join(lines).encode()))
    (number,) = [key for key in keys(at) if key.startswith("check.number.")]
    press(at, number)
    assert (held(at, "read_as"), errors(at)) == ("lead=number", [])
    press(at, "check.treat.Unknown")
    assert held(at, "codes") == "Unknown"
    assert errors(at) == []
    lines = at.dataframe[0].value.set_index("column")
    assert lines.at["lead", "read"] == "numeric, without 10 cells that hold none"
    assert lines.at["site", "words"] == "Unknown"
    assert lines.at["a", "first"] == "0, 1, 2"
    assert lines.at["note", "first"] == "not shown"  # Free text may identify people, so hide it.
    assert "3 features" in facts(go(at, "explore"))
    # A new file starts without the answers that the user gave for the previous file.
    upload(at, "other.csv", patients())
    assert (held(at, "read_as"), held(at, "codes")) == ("", "")


def test_words_that_are_counted_are_predicted_and_declared() -> None:
    levels = ("sometimes", "never", "often")
    lines = [f"{levels[i % 3]},{i % 7},{i * i % 11}" for i in range(60)]
    file = "\n".join(["q,u,v", *lines]).encode()
    at = upload(start("decide", k="1", ceiling="25"), "q.csv", file)
    assert at.session_state["decide.prospect"][1].rows.schema.names_used == ("u", "v")
    at = corrected(at)
    (mark,) = [key for key in keys(at) if key.startswith("check.known.")]
    press(at, mark)
    assert errors(at) == []
    assert at.session_state["decide.prospect"][1].rows.schema.names_used == ("q", "u", "v")
    go(at, "release")
    words = dict(at.session_state["schema.now"][["name", "levels"]].to_numpy().tolist())
    assert words == {"q": "never < sometimes < often", "u": "", "v": ""}


def test_labels_that_find_people_are_numbered_until_confirmed() -> None:
    rare = patients().replace(b",u", b",erika muster", 3)
    at = upload(start("claims", **SETTINGS), "t.csv", rare)
    change(corrected(at, "colour"), "upload.label", 0)
    assert any("The label's classes are shown by number." in box.value for box in at.warning)
    press(at, "check.words.show")
    assert not any("shown by number" in box.value for box in at.warning)
    assert errors(at) == []


def test_how_a_file_was_read_is_said_in_the_view_that_opens() -> None:
    """A first line that may be a person is reported at once, even if the check stays closed."""
    head = "s,1001.5,1003.5,1005.5"
    rows = generator(2, "rows").normal(0.3, 0.05, (40, 3)).round(3).astype(str)
    lines = [head, *(f"s{i}," + ",".join(row) for i, row in enumerate(rows))]
    at = upload(start(**SETTINGS), "t.csv", "\n".join(lines).encode(), working=False)
    assert errors(at) == []
    assert "read as column names" in facts(at)
    assert "check.treat.999" not in keys(at)
    at = corrected(at, "marks")
    at.selectbox(key="view.header").set_value("a row").run()
    assert errors(at) == []
    assert any("Read as 41 rows" in line.value for line in at.markdown)
    upload(at, "headless.csv", "\n".join(lines[1:]).encode(), working=False)
    assert "has no line of column names" in facts(at)
