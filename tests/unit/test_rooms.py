"""The house: which room may import from which, without a circle and never from a floor above."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dpviz.base.paths import PACKAGE
from tests.sources import Import, imports

# From the ground up: a room imports from lower floors only, and rooms of one floor not from each
# other. A file at the root of the package is a room of its own.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("base",),
    ("datasets", "noise", "values"),
    ("metrics", "privacy", "settings"),
    ("edition", "mechanisms", "prepare"),
    ("paid", "releasing", "theory"),
    ("run",),
    ("claims", "targets", "tasks"),
    ("estimator", "tidy"),
    ("reproduce",),
    ("narrative",),
    ("guide",),
    ("figures",),
    ("answers",),
    ("api",),
    ("__init__", "cli"),
    ("__main__",),
)
# The whole map: what each room imports from. An arrow that goes down is legal once it is here.
ARROWS: dict[str, str] = {
    "base": "errors",
    "datasets": "base errors",
    "noise": "base errors",
    "values": "base errors",
    "metrics": "base values",
    "privacy": "base errors values",
    "settings": "base errors values",
    "edition": "base errors",
    "mechanisms": "base errors noise privacy values",
    "prepare": "base datasets errors settings values",
    "paid": "base errors mechanisms privacy settings values",
    "releasing": "base datasets errors mechanisms privacy settings values",
    "theory": "base errors mechanisms metrics noise prepare settings values",
    "claims": "base datasets errors mechanisms noise paid prepare privacy run settings values",
    "estimator": "base errors mechanisms paid prepare privacy releasing run targets theory values",
    "run": "base datasets errors mechanisms metrics paid prepare privacy settings theory values",
    "targets": "base errors mechanisms metrics paid prepare run settings theory values",
    "tasks": "base datasets errors mechanisms metrics paid prepare run settings values",
    "tidy": (
        "base claims datasets errors mechanisms metrics paid prepare privacy run settings targets "
        "theory values"
    ),
    "reproduce": (
        "base datasets errors mechanisms metrics noise prepare privacy run settings targets "
        "tasks theory values"
    ),
    "narrative": (
        "base claims mechanisms metrics privacy reproduce run settings targets tasks values"
    ),
    "guide": (
        "base claims errors mechanisms metrics narrative noise paid prepare privacy run settings "
        "targets theory tidy values"
    ),
    "figures": (
        "base claims errors guide mechanisms metrics narrative prepare reproduce run settings "
        "tasks tidy values"
    ),
    "answers": (
        "base claims datasets errors figures guide mechanisms metrics narrative paid prepare "
        "releasing reproduce run settings targets tasks tidy values"
    ),
    "api": "answers base claims datasets errors mechanisms prepare run settings targets tidy",
    "__init__": "answers api estimator",
    "cli": (
        "answers api base claims datasets edition errors figures guide mechanisms "
        "narrative prepare releasing reproduce run settings"
    ),
    "__main__": "cli",
}
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(inside: Path) -> str:
    """Return the room of a file, given by its path inside the package."""
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imported(found: Iterable[Import]) -> Iterator[str]:
    """Yield the rooms that a file imports from, inside functions as well."""
    for one in found:
        names: list[str] = []
        if one.plain:
            names = list(one.names)
        elif one.module:
            names = [f"{one.module}.{name}" for name in one.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "dpviz" and rest and not rest.startswith("__version__"):
                yield rest.partition(".")[0]


def arrows(package: Path) -> dict[tuple[str, str], str]:
    """Return every import between rooms, with a file that makes it."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        for room in imported(imports(path)):
            if room != room_of(inside):
                found[room_of(inside), room] = inside.as_posix()
    return found


def climbing(found: dict[tuple[str, str], str]) -> list[str]:
    """Return what does not go down a floor, in words."""
    return [
        f"{file}: {source} imports from {target}"
        for (source, target), file in found.items()
        if FLOOR[target] >= FLOOR[source]
    ]


def test_every_room_has_a_floor_and_every_floor_a_room() -> None:
    rooms = {room_of(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert rooms - {"_app"} == set(FLOOR)


def test_no_import_climbs() -> None:
    found = arrows(PACKAGE)
    assert len(found) > 100  # the walk saw the house
    assert climbing(found) == []


def test_the_map_names_every_arrow() -> None:
    """An arrow that is new, or gone, is to be seen in a review: write it into `ARROWS`."""
    found = arrows(PACKAGE)
    named = {(room, target) for room, targets in ARROWS.items() for target in targets.split()}
    assert {
        f"{room} -> {target} ({found[room, target]})" for room, target in set(found) - named
    } == set()
    assert named - set(found) == set()


@pytest.mark.parametrize(
    ("file", "line", "climbs"),
    [
        ("base/planted.py", "from dpviz.run.cells import evaluate", True),
        ("values/planted.py", "def f():\n    import dpviz.privacy.gaussian", True),
        ("targets/planted.py", "from dpviz.tasks import Task", True),  # one floor
        ("cli/planted.py", "from dpviz.base.params import params_of", False),
    ],
)
def test_an_arrow_that_climbs_is_seen(tmp_path: Path, file: str, line: str, climbs: bool) -> None:
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(f"{line}\n", encoding="utf-8")
    assert bool(climbing(arrows(tmp_path))) == climbs


def test_every_room_says_what_it_is_for() -> None:
    for room in FLOOR:
        path = PACKAGE / room / "__init__.py"
        if path.is_file():
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), room
