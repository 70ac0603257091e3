"""Check your table: what is suggested, changed and kept after an upload."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.core.seeding import generator
from dpviz.core.settings import names_in
from dpviz.datasets import read_raw
from pages.ui import check, table_cache
from tests.ui.driver import change, errors, go, held, keys, press, start, upload

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


def opened(at: AppTest) -> AppTest:
    """Return the dashboard with the check of its table open."""
    return folded(at, open=True)


def folded(at: AppTest, *, open: bool = False) -> AppTest:
    """Return the dashboard after its reader has folded the check of its table, or opened it."""
    at.session_state[f"check~{at.session_state['check.number']}.{at.session_state['page']}"] = open
    return at.run()


def facts(at: AppTest) -> str:
    return " ".join(caption.value for caption in at.caption)


def test_an_identifier_is_left_out_at_once_and_said() -> None:
    at = upload(start(**SETTINGS), "t.csv", patients())
    assert errors(at) == []
    assert left_out(at) == ("patient",)
    assert "3 features" in facts(at)
    assert any("Check your table: 5 columns, 1 to look at" in box.label for box in at.expander)


def test_rows_that_are_left_out_count_as_something_to_look_at() -> None:
    rows = generator(1, "rows").normal(size=(40, 3)).round(3).astype(str)
    rows[7, 1] = ""
    text = "\n".join(",".join(row) for row in [["a", "b", "c"], *rows])
    at = upload(start(**SETTINGS), "t.csv", text.encode())
    (words,) = (box.label for box in at.expander if "Check your table" in box.label)
    assert words == "Check your table: 3 columns, 1 to look at"
    press(opened(at), "check.median")
    (words,) = (box.label for box in at.expander if "Check your table" in box.label)
    assert words == "Check your table: 3 columns, nothing stands out"


def test_too_few_rows_for_the_delta_count_as_something_to_look_at() -> None:
    at = upload(start(**SETTINGS, delta="0.01"), "t.csv", patients())
    assert any("Check your table: 5 columns, 2 to look at" in box.label for box in at.expander)
    # On Explore the warning stands below the board, which keeps its place.
    assert not at.warning
    assert "Delta 0.01 is no protection by itself" in facts(at)
    go(at, "claims")
    assert any("Delta 0.01 is no protection by itself" in box.value for box in at.warning)


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
    # another table has other columns: nothing of the first is left
    upload(at, "other.csv", patients(extra="s"))
    assert left_out(at) == ("patient",)


def test_the_names_never_travel_in_a_link() -> None:
    at = upload(start(**SETTINGS), "t.csv", patients())
    assert "patient" not in str(at.query_params)


def test_a_file_that_cannot_be_used_offers_an_example() -> None:
    at = upload(start(**SETTINGS), "t.csv", b"a,b\n1,x\n2,y\n")
    assert len(errors(at)) == 1
    assert "check.example" in keys(at)
    press(at, "check.example")
    assert errors(at) == []
    assert held(at, "table") == "digits"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_another_encoding_is_one_click(encoding: str) -> None:
    text = patients().decode().replace("patient", "Größe")
    at = upload(start(**SETTINGS), "t.csv", text.encode(encoding))
    (said,) = errors(at)
    assert ("'Größe'" in said) == (encoding == "cp1252")
    press(at, "check.encoding")
    assert errors(at) == []
    assert held(at, "encoding") == encoding
    assert left_out(at) == ("Größe",)


def test_the_decimal_mark_can_be_said() -> None:
    rows = "".join(f"{1 + i}.{100 + 7 * i};{2 + i % 5}.{200 + 3 * i}\n" for i in range(9))
    at = upload(start(**SETTINGS), "t.csv", b"a;b\n" + rows.encode())
    (said,) = errors(at)
    assert "decimal mark point or comma" in said
    change(at, "view.decimal", "comma (1,5)")
    assert errors(at) == []


def visits() -> bytes:
    """Return a table in which a person has up to three rows, and -999 and 999 stand for gaps."""
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
    assert any("up to 3 rows have one value" in text for text in [facts(at)])
    # something must be looked at, so the check is open by itself
    assert any("Is -999 a value?" in text.value for text in at.markdown)
    assert left_out(at) == ("Patient Nr",)
    change(at, "check.person", "some")
    assert held(at, "rows_a_person") == 3
    assert any("epsilon 1 for a row is 3 for a person" in text.value for text in at.markdown)
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
    # another file is another question
    upload(at, "other.csv", patients())
    assert (held(at, "person"), held(at, "rows_a_person"), held(at, "codes")) == (None, None, "")


def test_closed_for_one_file_is_not_closed_for_the_next() -> None:
    def asked(at: AppTest) -> bool:
        return any("Is -999 a value?" in text.value for text in at.markdown)

    at = upload(start("claims", **SETTINGS), "t.csv", visits())
    assert asked(at)
    assert not asked(folded(at))
    assert not asked(go(at, "explore"))
    at = upload(go(at, "claims"), "other.csv", visits().replace(b",a,b", b",c,d"))
    assert asked(at)


def test_answers_in_words_are_counted_in_the_order_picked() -> None:
    said = ("sometimes", "never", "often")
    lines = [f"{said[i % 3]},{said[i % 2]},{i % 7},{i * i % 11}" for i in range(60)]
    at = upload(start("claims", **SETTINGS), "q.csv", "\n".join(["q,r,u,v", *lines]).encode())
    at = opened(at)
    (known,) = [key for key in keys(at) if key.startswith("check.known.")]  # r has two words
    press(at, known)
    assert held(at, "levels") == "never<sometimes<often"
    press(opened(at), "check.levels.undo")
    at = opened(at)
    assert not [key for key in keys(at) if key.startswith("check.scale.")]  # asked for first
    change(at, "check.ordered", "q")
    (key,) = [key for key in keys(at) if key.startswith("check.scale.")]
    change(at, key, ["never", "sometimes"])  # one is missing
    assert held(at, "levels") == ""
    change(at, key, ["never", "sometimes", "often"])
    assert held(at, "levels") == "never<sometimes<often"
    assert at.query_params["levels"] in ("never<sometimes<often", ["never<sometimes<often"])
    at = opened(at)
    assert any("Counted from 1 in this order" in text.value for text in at.caption)
    press(at, "check.levels.undo")
    assert held(at, "levels") == ""
    assert errors(at) == []


def test_words_that_are_counted_are_predicted_and_declared() -> None:
    said = ("sometimes", "never", "often")
    lines = [f"{said[i % 3]},{i % 7},{i * i % 11}" for i in range(60)]
    file = "\n".join(["q,u,v", *lines]).encode()
    at = upload(start("decide", k="1", ceiling="25"), "q.csv", file)
    assert at.session_state["decide.prospect"][1].rows.schema.names_used == ("u", "v")
    at = opened(at)
    (known,) = [key for key in keys(at) if key.startswith("check.known.")]
    press(at, known)
    assert errors(at) == []
    assert at.session_state["decide.prospect"][1].rows.schema.names_used == ("q", "u", "v")
    go(at, "release")
    words = dict(at.session_state["schema.now"][["name", "levels"]].to_numpy().tolist())
    assert words == {"q": "never < sometimes < often", "u": "", "v": ""}


def test_labels_that_find_people_are_numbered_until_confirmed() -> None:
    rare = patients().replace(b",u", b",erika muster", 3)
    at = upload(start("claims", **SETTINGS), "t.csv", rare)
    change(at, "upload.label", 0)

    assert any("Its classes are shown by number." in box.value for box in at.warning)
    press(at, "check.words.show")
    assert not any("shown by number" in box.value for box in at.warning)
    assert errors(at) == []


@pytest.mark.parametrize("coded", [True, False])
def test_numbered_classes_are_those_of_the_words(coded: bool) -> None:
    raw = read_raw(b"a,b,who\n1,2,erika\n2,5,max\n4,4,erika\n", name="t.csv")
    table = table_cache.uploaded.__wrapped__(
        "1", "who", "drop", "drop", "", (), (1, None), coded, "t", raw
    )
    words = ["class 1", "class 2", "class 1"] if coded else ["erika", "max", "erika"]
    assert table.labels.tolist() == words


def test_what_the_check_leaves_out_takes_no_part_in_decide() -> None:
    at = upload(start("decide", k="1", ceiling="25"), "t.csv", visits())
    assert errors(at) == []
    assert left_out(at) == ("Patient Nr",)
    # the answers come first: what must be looked at is said and not opened
    assert not any("Is -999 a value?" in text.value for text in at.markdown)
    assert any("Check your table" in box.label and "to look at" in box.label for box in at.expander)
    held_rows = at.session_state["decide.prospect"][1].rows.schema
    assert held_rows.names_used == ("a", "b")
    # nobody left out: the control
    change(opened(at), "check.person", "one")
    at.session_state["view"]["leave_out"] = ""
    at.session_state["check.chosen"] = {}
    at = at.run()
    assert "Patient Nr" in at.session_state["decide.prospect"][1].rows.schema.names_used
