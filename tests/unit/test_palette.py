"""All readers can see the colours on every background and distinguish any two colours.

Contrast follows WCAG 2.1 and distance CIEDE2000. Sight without one kind of cone is simulated after
Brettel, Viénot and Mollon (1997); Machado, Oliveira and Fernandes (2009) is a second opinion.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Sequence
from functools import cache

import pytest
from coloraide import Color

from dpviz.core.files import app_path
from dpviz.report.figures.board import assets
from dpviz.report.figures.theme import GREY, HIGHLIGHTS
from dpviz.report.tables.projection import LABEL_COLOURS

USUAL = "usual sight"
SIGHTS = {
    USUAL: None,
    "protanopia": ("protan", "brettel"),
    "deuteranopia": ("deutan", "brettel"),
    "tritanopia": ("tritan", "brettel"),
    "protanopia, Machado": ("protan", "machado"),
    "deuteranopia, Machado": ("deutan", "machado"),
}


def grounds() -> dict[str, str]:
    """Return the backgrounds of charts, by theme and place."""
    file = app_path().parent / ".streamlit" / "config.toml"
    theme = tomllib.loads(file.read_text(encoding="utf-8"))["theme"]
    places = {"": "backgroundColor", ", second": "secondaryBackgroundColor"}
    return {
        f"{name}{words}": theme[name][key]
        for name in ("light", "dark")
        for words, key in places.items()
    }


def contrast(one: str, other: str) -> float:
    """Return the WCAG 2.1 contrast of two colours."""
    return float(Color(one).contrast(other, method="wcag21"))


@cache
def _seen(colour: str, sight: str) -> Color:
    how = SIGHTS[sight]
    if how is None:
        return Color(colour)
    return Color(colour).filter(how[0], method=how[1]).clip()


def apart(one: str, other: str, sight: str) -> float:
    """Return the distance of two colours to a kind of sight, CIEDE2000."""
    return float(_seen(one, sight).delta_e(_seen(other, sight), method="2000"))


def least(colours: Sequence[str], sight: str) -> float:
    """Return the least distance of any two of the colours."""
    return min(apart(one, other, sight) for one, other in itertools.combinations(colours, 2))


def between(some: Sequence[str], others: Sequence[str], sight: str) -> float:
    """Return the least distance between a colour of one set and a colour of another set."""
    return min(apart(one, other, sight) for one, other in itertools.product(some, others))


# Black and white differ only in lightness, by the whole lightness scale of 100.
EXTREMES = ("#000000", "#ffffff")


def test_the_measures_are_the_published_ones() -> None:
    assert contrast(*EXTREMES) == pytest.approx(21)
    assert apart(*EXTREMES, USUAL) == pytest.approx(100, abs=0.01)
    # Greys look the same with every type of colour blindness.
    for sight in SIGHTS:
        assert apart("#808080", "#808080", sight) == 0
        assert apart("#404040", "#C0C0C0", sight) == pytest.approx(
            apart("#404040", "#C0C0C0", USUAL), abs=0.5
        )


@pytest.mark.parametrize("colour", [*HIGHLIGHTS, GREY, *LABEL_COLOURS])
def test_every_colour_is_seen_on_every_ground(colour: str) -> None:
    for ground in grounds().values():
        assert contrast(colour, ground) >= 3, ground


@pytest.mark.parametrize("sight", SIGHTS)
def test_any_two_are_told_apart_by_any_reader(sight: str) -> None:
    assert least([*HIGHLIGHTS, GREY], sight) >= 10
    # Ten class colours are shown together: usual sight confuses no two (10 is clear at a glance).
    # Without one kind of cone, any two still differ several times the least visible difference.
    assert least(LABEL_COLOURS, sight) >= (18 if sight == USUAL else 7)


def test_labels_have_other_colours_than_mechanisms() -> None:
    assert between(LABEL_COLOURS, HIGHLIGHTS, USUAL) > 9


def test_a_palette_that_confuses_is_found_out() -> None:
    # Control: this green and this red have equal lightness, and look alike without green cones.
    assert apart("#6B8E23", "#B8732A", USUAL) > 25
    assert apart("#6B8E23", "#B8732A", "deuteranopia") < 10
    assert contrast("#E69F00", grounds()["light"]) < 3


def test_the_renderer_has_no_colours_of_its_own_for_labels() -> None:
    """The payload contains the label colours."""
    for colour in LABEL_COLOURS:
        assert colour.lower() not in assets().js.lower()
