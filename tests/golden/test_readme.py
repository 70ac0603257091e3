"""README's image and mechanism table report one measure and its number of repetitions."""

from __future__ import annotations

import re

from dpviz.core.files import app_path
from pages.ui.page_options import page_defaults
from tools import readme

README = (app_path().parent / "README.md").read_text(encoding="utf-8")
PAGE = (app_path().parent / "docs" / "mechanisms.md").read_text(encoding="utf-8")


def test_rows_of_the_table_are_what_the_command_writes() -> None:
    lines = PAGE.partition(readme.START)[2].partition(readme.END)[0].strip().splitlines()
    quick = ("gaussian", "wishart_difference", "laplace", "noisy_power_exact")
    header, rule, *rows = readme.table(quick).splitlines()
    assert lines[:2] == [header, rule]
    assert len(rows) == len(quick)
    assert set(rows) < set(lines)
    assert "recovery" in header


def test_the_picture_says_its_measure_and_its_draws() -> None:
    assert "scrub.gif)" in README
    caption = README.partition("explore-light.png)")[2].partition("## ")[0]
    (draws, table) = map(int, re.findall(r"mean of (\d+)", caption))
    assert (draws, table) == (page_defaults().trials, readme.DRAWS)
    assert "recovery" in caption
    assert "aptured share" not in README + PAGE


def test_the_readme_is_a_face_of_at_most_80_lines() -> None:
    assert README.count("\n") <= 80
