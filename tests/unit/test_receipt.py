"""What a card will say before the spend: what is stated, and what is still to be."""

from __future__ import annotations

from dataclasses import replace

from dpviz.lessons.receipt import html
from dpviz.releasing.schema import Column, Schema

SCHEMA = Schema((Column("a", 0, 1), Column("b", 0, 2), Column("id", use=False)))
FORM = {
    "rows": "bound", "row_bound": "60", "center": "typical", "epsilon": "1", "delta": "1e-6",
    "scale": "none", "k": "2", "name": "auto", "purpose": "", "by": "<office>", "picture": "0",
}  # fmt: skip


def test_what_is_stated_is_said() -> None:
    shown = html(FORM, SCHEMA, 1)
    for words in (
        "✓ This protects a person, who has one row.",
        "2 components, the spectrum with its noise edge",
        "✓ low and high of 2 columns, known before anybody looked",
        "shortened to 60 around the stated centre",
        "discrete Gaussian, by OpenDP",
        "ε 1 δ 1e-6",
        "right 1 time in 100 may become right at most 3 times in 100",
        "&lt;office&gt;",
        "nothing has been spent",
    ):
        assert words in shown
    assert "?" not in shown
    assert "Hardly" not in shown
    assert "1 component," in html({**FORM, "k": "1"}, SCHEMA, 1)
    assert "a picture of counts for 0.65" in html({**FORM, "picture": "0.65"}, SCHEMA, 1)
    assert "discrete Laplace" in html({**FORM, "delta": "0"}, SCHEMA, 1)
    assert "length one around a private mean" in html(
        {**FORM, "rows": "unit", "center": "private"}, SCHEMA, 1
    )
    assert "features over half the width of their limits, rows shortened to 60 around zero" in html(
        {**FORM, "scale": "limits", "center": "none"}, SCHEMA, 1
    )


def test_what_is_not_stated_is_asked_for() -> None:
    for changed, words in (
        ({"delta": ""}, "? to be stated: delta"),
        ({"row_bound": ""}, "? to be stated: the row bound"),
        ({"row_bound": "bounds.csv"}, "? to be stated: the row bound"),
        ({"row_bound": "-3"}, "? to be stated: the row bound"),
        ({"row_bound": "inf"}, "? to be stated: the row bound"),
        ({"delta": "2"}, "? to be stated: delta"),
        ({"k": "x"}, "? to be stated: k"),
        ({"epsilon": "-1"}, "ε ? δ 1e-6"),
    ):
        assert words in html({**FORM, **changed}, SCHEMA, 1)
    assert "may become" not in html({**FORM, "epsilon": "-1"}, SCHEMA, 1)
    assert "? to be stated: the schema" in html(FORM, None, 1)
    assert "? This protects one ROW" in html(FORM, SCHEMA, None)
    taken = html(FORM, replace(SCHEMA, from_data=True), 1)
    assert "taken from this table: not private" in taken


def test_a_high_epsilon_is_hardly_protection() -> None:
    assert "Hardly protection" in html({**FORM, "epsilon": "4.6"}, SCHEMA, 1)
    assert "Hardly protection" not in html({**FORM, "epsilon": "4.5"}, SCHEMA, 1)
