"""The planted example: two of twenty features vary, and what a belief about them is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpviz.core.settings import Settings

EPSILON, TAU = 0.1, 0.8

_PLANTED: dict[str, Any] = {
    "table": "planted", "epsilon": EPSILON, "delta": None, "k": 2, "relation": "replace",
    "center": None, "scale": "none", "row_bound": "max", "directions": "features",
}  # fmt: skip
_BOX: dict[str, Any] = {"domain": "box", "bounds": "known"}
_BALL: dict[str, Any] = {"domain": "ball", "bounds": "max"}


@dataclass(frozen=True)
class Example:
    """A setting in which directions pay, or do not.

    Attributes
    ----------
    label : str
    said : str
        What is believed, and of what.
    changes : mapping
        Fields of `Settings`, with every one that the outcome depends on but draws and seed.
    """

    label: str
    said: str
    changes: Mapping[str, Any] = field(hash=False)

    @property
    def allocation(self) -> str:
        """The belief, as an allocation."""
        return str(self.changes["allocation"])

    def of(self, settings: Settings) -> Settings:
        """Return settings with the example's in place."""
        return replace(settings, **self.changes)


def _example(label: str, said: str, allocation: str, domain: Mapping[str, Any]) -> Example:
    return Example(label, said, {**_PLANTED, **domain, "allocation": allocation})


EXAMPLES: dict[str, Example] = {
    "right": _example(
        "Right", "both features that vary are favoured", f"binary:1,2:{TAU}", _BOX
    ),
    "half": _example(
        "Half right", "one of the two features that vary is favoured", f"binary:1:{TAU}", _BOX
    ),
    "wrong": _example(
        "Wrong", "two features that hardly vary are favoured", f"binary:7,8:{TAU}", _BOX
    ),
    "ball": _example(
        "On the ball", "both features that vary are favoured, but only the norm of a row is public",
        f"binary:1,2:{TAU}", _BALL,
    ),
}  # fmt: skip
"""By key, in the order they are told; the first is where the Precision page opens."""


def shown(settings: Settings) -> str | None:
    """Return the key of the example that settings are, whatever their draws and mechanisms."""
    for key, example in EXAMPLES.items():
        if example.of(settings) == settings:
            return key
    return None
