"""Explore: what it says around the board."""

from __future__ import annotations

from tests.ui.driver import errors, held, keys, press, start


def test_a_table_on_a_line_says_that_scaling_would_change_the_picture() -> None:
    at = start(table="wine", trials="2", m="gaussian")
    said = [node.value for node in at.markdown if "nearly a line" in node.value]
    assert said == [
        "One feature, proline, holds 99.8\N{NO-BREAK SPACE}% of the variance, so the picture is "
        "nearly a line. Scaling would let the other features count."
    ]
    press(at, "scaling.do")
    assert not errors(at)
    assert held(at, "scale") == "standardize"
    assert "scaling.do" not in keys(at)
    # The control: a table of features alike.
    assert "scaling.do" not in keys(start(table="digits", trials="2", m="gaussian"))
