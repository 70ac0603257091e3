"""The colours are seen on every ground, and told apart by every reader."""

from __future__ import annotations

import pytest

from dpviz.report.figures.board import assets
from dpviz.report.figures.theme import GREY, HIGHLIGHTS
from dpviz.report.tables.projection import LABEL_COLOURS, LABEL_SHAPES
from tools import palette

# They differ in lightness alone, by 100, the whole of it.
EXTREMES = ("#000000", "#ffffff")


def test_the_measures_are_the_published_ones() -> None:
    assert palette.contrast(*EXTREMES) == pytest.approx(21)
    assert palette.apart(*EXTREMES, palette.USUAL) == pytest.approx(100, abs=0.01)
    # Greys look the same whatever cones are missing.
    for sight in palette.SIGHTS:
        assert palette.apart("#808080", "#808080", sight) == 0
        assert palette.apart("#404040", "#C0C0C0", sight) == pytest.approx(
            palette.apart("#404040", "#C0C0C0", palette.USUAL), abs=0.5
        )


@pytest.mark.parametrize("colour", [*HIGHLIGHTS, GREY, *LABEL_COLOURS])
def test_every_colour_is_seen_on_every_ground(colour: str) -> None:
    for ground in palette.grounds().values():
        assert palette.contrast(colour, ground) >= 3, ground


@pytest.mark.parametrize("sight", palette.SIGHTS)
def test_any_two_are_told_apart_by_any_reader(sight: str) -> None:
    assert palette.least([*HIGHLIGHTS, GREY], sight) >= 10
    for one, colour in enumerate(LABEL_COLOURS):
        for other in LABEL_COLOURS[one + len(LABEL_SHAPES) :: len(LABEL_SHAPES)]:
            assert palette.apart(colour, other, sight) >= 10, (colour, other)


def test_labels_have_other_colours_than_mechanisms() -> None:
    assert palette.between(LABEL_COLOURS, HIGHLIGHTS, palette.USUAL) > 9
    assert palette.least(LABEL_COLOURS, palette.USUAL) > 10


def test_a_palette_that_confuses_is_found_out() -> None:
    # The control: a green and a red of one lightness, which look alike without green cones.
    assert palette.apart("#6B8E23", "#B8732A", palette.USUAL) > 25
    assert palette.apart("#6B8E23", "#B8732A", "deuteranopia") < 10
    assert palette.contrast("#E69F00", palette.grounds()["light"]) < 3


def test_the_page_in_the_documentation_is_what_is_computed() -> None:
    assert palette.PATH.read_text(encoding="utf-8") == palette.document()


def test_the_renderer_has_no_colours_of_its_own_for_labels() -> None:
    """They travel in the payload."""
    for colour in LABEL_COLOURS:
        assert colour.lower() not in assets().js.lower()
