"""Uploads: good files are analysed, bad files give one message, and neither loses a setting."""

from __future__ import annotations

import gzip
import io
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz import datasets
from dpviz.core.settings import Settings
from dpviz.datasets import builtin_tables
from dpviz.preparation.bounding import prepare
from dpviz.simulation.compare import compare
from dpviz.studies.compare import Compared
from pages.ui import state
from tests.hostile import killing_workbook
from tests.ui.driver import (
    FIRST,
    QUICK,
    ROOT,
    change,
    component,
    corrected,
    each_part,
    errors,
    found,
    go,
    held,
    keys,
    more,
    nodes,
    notices,
    one_sentence,
    results,
    shown_value,
    start,
    upload,
)

EXAMPLE = ROOT / "data" / "example.csv"
CSV = EXAMPLE.read_bytes()
# Use a small built-in table until the upload, because other tests check the page's first view.
SETTINGS = {
    "table": "iris", "epsilon": "2.5", "k": "2", "relation": "zero-out", "trials": "5", "seed": "4",
}  # fmt: skip

# A few faulty files suffice here: other tests cover all faults, and a page reports each alike.
BAD = {
    "empty.csv": b"",
    "ragged.csv": b"a,b,c\n1,2,3\n4,5\n6,7,8,9\n",
    "cut.parquet": b"PAR1" + bytes(60) + b"PAR1",
    "kills-its-reader.xls": killing_workbook(),
}


def sent() -> bytes:
    """Return the example as Parquet."""
    sink = io.BytesIO()
    pd.read_csv(EXAMPLE).to_parquet(sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("example.csv", CSV),
        ("example.csv.gz", gzip.compress(CSV, mtime=0)),
        ("example.parquet", sent()),
    ],
)
def test_an_upload_is_analysed_as_the_core_would(name: str, content: bytes) -> None:
    at = upload(start(**SETTINGS), name, content)
    assert errors(at) == []
    assert shown_value(at, "view.table") == "Your file"
    settings = Settings(
        epsilon=2.5, relation="zero-out", trials=5, seed=4, mechanisms=held(at, "mechanisms")
    )
    table = datasets.read_raw(content, name=name).to_table()
    result = Compared.of(compare(prepare(table, settings), settings)).table()
    shares = results(at)["captured_share"].to_numpy()
    np.testing.assert_allclose(shares, result["captured_share"].to_numpy(), rtol=1e-9)
    assert any(f"{len(table.rows)} people" in caption.value for caption in at.caption)


# Test every faulty file on Explore, and one file on another page, because both read files alike.
@pytest.mark.parametrize(
    ("name", "page"),
    [
        *((name, FIRST) for name in BAD),
        ("ragged.csv", "claims"),
    ],
)
def test_a_bad_upload_is_one_sentence_and_loses_nothing(name: str, page: str) -> None:
    at = start(page, **(QUICK | SETTINGS))
    before = dict(at.session_state["view"])
    upload(at, name, BAD[name])
    for _ in range(2):
        (message,) = errors(at)
        # The user's file name contains a dot, so replace the name before counting sentences.
        assert one_sentence(message.replace(name, "it")), message
        assert notices(at) == []
        assert dict(at.session_state["view"]) == before | {"table": "upload"}
        at.run()
    change(at, "view.table", builtin_tables()["iris"].label)
    assert errors(at) == []
    assert held(at, "epsilon") == 2.5


@pytest.mark.parametrize("cell", ["31337.25", "SECRETCELL"])
def test_no_cell_is_ever_in_the_sentence(cell: str) -> None:
    at = upload(start(**SETTINGS), "t.csv", f"a,b\n{cell},x\n1,y\n".encode())
    (message,) = errors(at)
    assert cell not in message


def test_a_file_of_two_columns_begins_with_one_component() -> None:
    """With two features k starts at one, because two components would keep all structure."""
    at = upload(start(**SETTINGS), "two.csv", b"a,b\n1,2\n2,1\n4,3\n5,5\n2,7\n")
    assert shown_value(at, "view.k") == 1
    assert "With k = 2 all 2 features are kept" in " ".join(notices(at))
    change(at, "view.k", 2)  # The user may choose k = 2 explicitly.
    assert (shown_value(at, "view.k"), notices(at)) == (2, [])


def test_choices_for_a_file_change_the_table() -> None:
    at = corrected(upload(start(**SETTINGS), "example.csv", CSV))
    facts = [caption.value for caption in at.caption if "people" in caption.value]
    change(at, "view.missing", "fill with the column's median")
    captions = [caption.value for caption in at.caption if "people" in caption.value]
    assert captions != facts
    change(at, "upload.label", "none")
    change(at, "view.categorical", "one column per category")
    assert [caption.value for caption in at.caption if "people" in caption.value] != captions
    change(at, "view.categorical", "leave out")
    change(at, "view.missing", "drop the row")
    assert [caption.value for caption in at.caption if "people" in caption.value] == facts
    assert errors(at) == []


def test_a_label_is_guessed_and_travels_as_a_number_and_never_by_name() -> None:
    at = corrected(more(upload(start(**SETTINGS), "example.csv", CSV)))
    assert component(at, "board")["payload"]["labels"]["name"] == "variety"
    assert errors(at) == []
    assert shown_value(at, "upload.label") == "variety"
    assert at.query_params["label"][0].isdigit()
    link = " ".join(f"{key}={value}" for key, value in at.query_params.items())
    assert "variety" not in link
    assert "example" not in link
    again = start(**at.query_params)
    assert "Upload the file" in errors(again)[0]
    corrected(upload(again, "renamed.csv", CSV))
    assert errors(again) == []
    assert shown_value(again, "upload.label") == "variety"
    assert results(again).equals(results(at))


def test_a_column_named_none_is_not_no_label() -> None:
    rows = np.random.default_rng(3).normal(size=(30, 3)).round(3)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(**{"None": [0, 1, 2] * 10})
    at = upload(start(**SETTINGS), "t.csv", frame.to_csv(index=False).encode())
    assert any("4 features" in caption.value for caption in at.caption)
    change(corrected(at), "upload.label", "None")
    assert any("3 features" in caption.value for caption in at.caption)


def test_an_upload_survives_pages_and_settings() -> None:
    at = upload(start(**SETTINGS), "example.csv", CSV)
    first = results(at)
    # The results also survive a visit to a page that has no file uploader.
    for page in ("papers", "claims"):
        go(at, page)
        for _ in each_part(at, page):
            assert errors(at) == []
    go(at, "explore")
    change(at, "view.epsilon.box", "1")
    change(at, "view.epsilon.box", "2.5")
    change(at, "view.seed", 5)
    change(at, "view.seed", 4)
    assert results(at).equals(first)


def test_taking_the_file_away_asks_for_it() -> None:
    at = upload(start(**SETTINGS), "example.csv", CSV)
    found(at, "upload").clear()
    at.run()
    assert "Upload the file" in errors(at)[0]
    assert held(at, "epsilon") == 2.5


def test_two_files_are_never_mixed() -> None:
    at = upload(start(**SETTINGS), "same.csv", CSV)
    first = results(at)
    rows = np.random.default_rng(5).normal(size=(120, 5)).round(3)
    other = pd.DataFrame(rows, columns=list("abcde")).to_csv(index=False).encode()
    upload(at, "same.csv", other)
    second = results(at)
    assert not second["captured_share"].equals(first["captured_share"])
    upload(at, "same.csv", CSV)
    assert results(at).equals(first)


def texts_of(at: AppTest) -> list[str]:
    """Return everything sent for display, except the frames of the Explore figure."""
    texts = [str(node.proto) for node in nodes(at) if node.type != "bidi_component"]
    # Remove the random address of a download file, because it differs in every run.
    return [re.sub(r"deferred_file_id: .*", "", text) for text in texts]


def people(seed: int) -> bytes:
    """Return a table of fixed shape and column names; only its values depend on the seed."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(60, 4)) * [1.0, 2.0, 3.0, 10.0 ** (3 * seed)]
    return pd.DataFrame(rows, columns=[*"abcd"]).to_csv(index=False).encode()


def exact_parts(payload: dict[str, Any]) -> list[str]:
    """Return the real rows and exact eigenvalues in an Explore payload."""
    texts = [payload["truth"]["picture"], payload["truth"]["text"]]
    for frame in payload["frames"]:
        for cell in frame["cells"].values():
            texts += [cell["picture"], cell["spectrum"]["lines"], cell["texts"]["recovery"]]
    return texts


def test_the_publishable_view_says_nothing_that_rows_decide() -> None:
    """Two tables that differ in every value give the same page, but different working views."""
    pages = [
        upload(
            start(**(QUICK | {"row_bound": "quantile:0.9"})), "own.csv", people(seed), working=False
        )
        for seed in (1, 2)
    ]
    assert [errors(at) for at in pages] == [[], []]
    assert texts_of(pages[0]) == texts_of(pages[1])
    assert not {"download.summary", "download.draws", "download.json", "explore.charts"} & set(
        keys(pages[0])
    )
    assert {"download.board", "download.report"} <= set(keys(pages[0]))
    for at, seed in zip(pages, (1, 2), strict=True):
        payload = component(at, "board")
        assert set(exact_parts(payload["payload"])) == {""}
        assert payload["pin"] is None
        assert any(cell["published"] for cell in payload["payload"]["frames"][0]["cells"].values())
        page = upload(at, "own.csv", people(seed))
        assert "" not in exact_parts(component(page, "board")["payload"])
    texts = [texts_of(upload(at, "own.csv", people(seed))) for seed, at in enumerate(pages, 1)]
    assert len(results(pages[0])) > 0
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("page", "key", "query"),
    [
        (FIRST, "upload", QUICK),
        ("precision", "shares.upload", QUICK | {"allocation": "max-pnr"}),
        ("release", "schema.file", QUICK),
    ],
)
def test_a_file_that_is_here_no_more_is_none(page: str, key: str, query: dict[str, str]) -> None:
    """Imitate a browser that returns to a server without its earlier state."""
    at = start(page, **query)
    widget = found(at, key)
    report = at._tree.get_widget_states()
    (of_it,) = [one for one in report.widgets if one.id == widget.id]
    of_it.file_uploader_state_value.uploaded_file_info.add(file_id="gone", name="a.csv", size=3)
    at._run(report)
    assert errors(at) == []
    assert held(at, "table") == "iris"
    at.run()
    assert errors(at) == []


def test_of_a_wide_file_the_first_features_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_FEATURES", 3)
    at = upload(start(**QUICK, m="gaussian"), "example.csv", CSV)
    assert any(" 3 features; row norms" in caption.value for caption in at.caption)
