"""Write docs/palette.md, the numbers behind the colours: ``python -m tools.palette``.

Contrast is WCAG 2.1's, distance is CIEDE2000, and sight without one kind of cone is simulated after
Brettel, Viénot and Mollon (1997), which covers all three; Machado, Oliveira and Fernandes (2009) is
a second opinion on the two that it is made for. ``--check`` compares instead of writing and exits
with 1 where they differ.
"""

from __future__ import annotations

import itertools
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from coloraide import Color

from dpviz.core.files import app_path
from dpviz.mechanisms import all_mechanisms
from dpviz.report.figures.theme import GREY, HIGHLIGHTS
from dpviz.report.tables.projection import LABEL_COLOURS, LABEL_SHAPES
from tools.generated import write_or_check

PATH = Path(__file__).resolve().parent.parent / "docs" / "palette.md"
USUAL = "usual sight"
SIGHTS = {
    USUAL: None,
    "protanopia": ("protan", "brettel"),
    "deuteranopia": ("deutan", "brettel"),
    "tritanopia": ("tritan", "brettel"),
    "protanopia, Machado": ("protan", "machado"),
    "deuteranopia, Machado": ("deutan", "machado"),
}
SHOWN_FIRST = 6  # colours of the mechanisms that are shown before a user chooses


def grounds() -> dict[str, str]:
    """Return the colours that charts stand on, by theme and place."""
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
    """Return how far apart two colours are to a kind of sight, CIEDE2000."""
    return float(_seen(one, sight).delta_e(_seen(other, sight), method="2000"))


def least(colours: Sequence[str], sight: str) -> float:
    """Return the least distance of any two of the colours."""
    return min(apart(one, other, sight) for one, other in itertools.combinations(colours, 2))


def between(some: Sequence[str], others: Sequence[str], sight: str) -> float:
    """Return the least distance of one of some from one of the others."""
    return min(apart(one, other, sight) for one, other in itertools.product(some, others))


def names() -> dict[str, str]:
    """Return the label of the mechanism that has each highlighted colour."""
    found = {cls.info.highlight: cls.info.label for cls in all_mechanisms().values()}
    return {colour: found[place] for place, colour in enumerate(HIGHLIGHTS, start=1)}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def distances() -> dict[str, list[float]]:
    """Return the least distance within each set of colours, for each kind of sight."""
    first = HIGHLIGHTS[:SHOWN_FIRST]
    sets = {
        "the six shown first": [least(first, sight) for sight in SIGHTS],
        "those and the grey": [least([*first, GREY], sight) for sight in SIGHTS],
        "all eight": [least(HIGHLIGHTS, sight) for sight in SIGHTS],
        "all eight and the grey": [least([*HIGHLIGHTS, GREY], sight) for sight in SIGHTS],
        "the ten labels": [least(LABEL_COLOURS, sight) for sight in SIGHTS],
        "a label from a mechanism": [
            between(LABEL_COLOURS, HIGHLIGHTS, sight) for sight in SIGHTS
        ],
    }  # fmt: skip
    # no shape helps between these.
    alike = [
        (one, other)
        for one, other in itertools.combinations(range(len(LABEL_COLOURS)), 2)
        if (other - one) % len(LABEL_SHAPES) == 0
    ]
    sets["two labels of one shape"] = [
        min(apart(LABEL_COLOURS[one], LABEL_COLOURS[other], sight) for one, other in alike)
        for sight in SIGHTS
    ]
    return sets


def document() -> str:
    """Return the page."""
    found, stand = names(), grounds()

    def swatch(colour: str) -> str:
        return f'<span style="color:{colour}">■</span> `{colour}`'

    def contrasts(colour: str) -> list[str]:
        return [f"{contrast(colour, ground):.1f}" for ground in stand.values()]

    kinds = [sight for sight in SIGHTS if sight in (USUAL, "protanopia", "deuteranopia",
                                                    "tritanopia")]  # fmt: skip
    pairs = [
        (f"{found[one]} and {found[other]}", [apart(one, other, sight) for sight in kinds])
        for one, other in itertools.combinations(HIGHLIGHTS, 2)
    ]
    pairs.sort(key=lambda pair: min(pair[1]))
    return "\n".join(
        [
            "# Palette",
            "",
            "A colour is a mechanism, the same on the board, in every chart and in every file; "
            "grey, thin and named beside its line is any other mechanism. The picture's points "
            "are coloured by their label, with other colours and a shape each. Whether a claim "
            "holds is said by words and a mark, never by colour alone.",
            "",
            "`python -m tools.palette` writes this page; a test computes it again.",
            "",
            "## Contrast with the grounds",
            "",
            "WCAG 2.1 asks for 3 of what is drawn.",
            "",
            *_table(
                ["colour", "of", *stand],
                [[swatch(colour), found[colour], *contrasts(colour)] for colour in HIGHLIGHTS]
                + [[swatch(GREY), "every other mechanism, the truth", *contrasts(GREY)]]
                + [
                    [swatch(colour), f"label {place}", *contrasts(colour)]
                    for place, colour in enumerate(LABEL_COLOURS, start=1)
                ],
            ),
            "",
            "## Least distance of two colours",
            "",
            "CIEDE2000; 1 is just seen side by side, 10 at a glance. Labels are told from "
            "mechanisms by their place and shape too.",
            "",
            *_table(
                ["of any two of", *SIGHTS],
                [
                    [name, *(f"{value:.1f}" for value in values)]
                    for name, values in distances().items()
                ],
            ),
            "",
            "## Every two mechanisms",
            "",
            "The nearest first.",
            "",
            *_table(
                ["two mechanisms", *kinds],
                [[name, *(f"{value:.0f}" for value in values)] for name, values in pairs],
            ),
            "",
        ]
    )


def main() -> int:
    """Write or check the page."""
    return write_or_check(__doc__, PATH, document())


if __name__ == "__main__":
    sys.exit(main())
