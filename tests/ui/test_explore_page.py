"""Explore: the texts around the figure."""

from __future__ import annotations

from tests.ui.driver import errors, held, keys, press, start


def test_a_table_on_a_line_says_that_scaling_would_change_the_picture() -> None:
    at = start(table="wine", trials="2", m="gaussian")
    texts = [node.value for node in at.markdown if "nearly a line" in node.value]
    assert texts == [
        "One feature, proline, holds 99.8\N{NO-BREAK SPACE}% of the variance, so the chart is "
        "nearly a line. Scaling would let the other features count."
    ]
    press(at, "scaling.do")
    assert not errors(at)
    assert held(at, "scale") == "standardize"
    assert "scaling.do" not in keys(at)
    # Control: this button is missing for a table whose features have similar scales.
    assert "scaling.do" not in keys(start(table="digits", trials="2", m="gaussian"))
