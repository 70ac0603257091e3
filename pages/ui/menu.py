"""The pages, found in their folder; the top of each file states its title and its place."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class PageInfo:
    """A page's description, from the dictionary PAGE in its file.

    Attributes
    ----------
    path : Path
        File of the page, whose name is the page's address.
    title, icon : str
    place : int
        Number in the menu, ascending; a new page with the next free number moves no other page.
    group : str
        Heading in the menu; empty for the first pages. Groups have the order of their pages.
    first : bool
        Whether visitors start with this page.
    term : str
        Term at which the page's glossary opens; empty if the page explains its own words.
    own_settings : bool
        Whether the page ignores the shared settings, and therefore hides them.
    own_reading : bool
        Whether the page reads the table by itself, independently of Explore.
    answers_first : bool
        Whether the page's own answers come first; an upload's check then never opens by itself.
    unread : tuple of str
        Settings of the row above that the page does not use.
    releases : bool
        Whether the page exists only if a real release can be made.
    about : str
        The page in a few sentences, for its help text.
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
    about: str = ""


def infos() -> tuple[PageInfo, ...]:
    """Return the description of every page, in the order of the menu."""
    return _pages_in(FOLDER)


@cache
def _pages_in(folder: Path) -> tuple[PageInfo, ...]:
    pages = [_info(path) for path in sorted(folder.glob("*.py"))]
    return tuple(sorted(pages, key=lambda info: info.place))


def _info(path: Path) -> PageInfo:
    """Return a page's description by parsing its file; running the file would draw the page."""
    names = {field.name for field in fields(PageInfo)} - {"path"}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PAGE":
            values = ast.literal_eval(node.value)
            if not {"title", "icon", "place"} <= set(values) <= names:
                raise RuntimeError(f"PAGE of {path.name} needs title, icon and place, of {names}")
            return PageInfo(path, **values)
    raise RuntimeError(f"{path.name} does not define PAGE with title, icon and place")


def info_of(title: str) -> PageInfo:
    """Return the description of the page with a title."""
    return next(info for info in infos() if info.title == title)
