"""The pages, found by walking: each file says at its top what it is called and where it stands."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class PageInfo:
    """What a page's file says of itself, in a dictionary called PAGE.

    Attributes
    ----------
    path : Path
        Its name is the page's address.
    title, icon : str
    place : int
        In the menu, ascending; the next free one leaves the others where they are.
    group : str
        Its heading; empty for those that stand first. Groups come in the order of their pages.
    first : bool
        Whether it is the page that a visitor meets.
    term : str
        At which its glossary opens; empty where its own words explain themselves.
    own_settings : bool
        Whether it ignores the shared settings, and so does not show them.
    own_reading : bool
        Whether it reads the table by itself: what Explore makes of it is nothing to it.
    answers_first : bool
        Whether its own answers come first: the check of an uploaded table never opens by itself.
    unread : tuple of str
        What it does not read of the row above it.
    releases : bool
        Whether it is there only where a real release can be made.
    """

    path: Path
    title: str
    icon: str
    place: int
    group: str = ""
    first: bool = False
    term: str = "epsilon"
    own_settings: bool = False
    own_reading: bool = False
    answers_first: bool = False
    unread: tuple[str, ...] = ()
    releases: bool = False


def infos() -> tuple[PageInfo, ...]:
    """Return what every page says of itself, in the order of the menu."""
    return _walked(FOLDER)


@cache
def _walked(folder: Path) -> tuple[PageInfo, ...]:
    found = [_info(path) for path in sorted(folder.glob("*.py"))]
    return tuple(sorted(found, key=lambda info: info.place))


def _info(path: Path) -> PageInfo:
    """Return what a page says of itself; read and not run, as a page draws when it runs."""
    known = {field.name for field in fields(PageInfo)} - {"path"}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PAGE":
            said = ast.literal_eval(node.value)
            if not {"title", "icon", "place"} <= set(said) <= known:
                raise RuntimeError(f"PAGE of {path.name} has title, icon, place and of {known}")
            return PageInfo(path, **said)
    raise RuntimeError(f"{path.name} says no PAGE: what it is called and where it stands")


def info_of(title: str) -> PageInfo:
    """Return what the page with a title says of itself."""
    return next(info for info in infos() if info.title == title)
