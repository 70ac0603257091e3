"""The house: which room may import from which, without a circle and never from a floor above."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dpviz.core.files import PACKAGE
from tests.sources import Import, imports
from tools.house import House, components

# From the ground up: a room imports from lower floors only, and rooms of one floor not from each
# other. A file at the root of the package is a room of its own.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("accounting", "datasets", "sampling"),
    ("mechanisms",),
    ("preparation",),
    ("simulation",),
    ("auditing", "releasing"),
    ("extend", "papers"),
    ("report",),
    ("lessons",),
    ("studies",),
    ("__init__", "cli"),
    ("__main__",),
)
# The whole map: what each room imports from. An arrow that goes down is legal once it is here.
ARROWS: dict[str, str] = {
    "accounting": "core",
    "datasets": "core",
    "sampling": "core",
    "mechanisms": "accounting core sampling",
    "preparation": "accounting core datasets mechanisms",
    "simulation": "accounting core datasets mechanisms preparation sampling",
    "auditing": "accounting core datasets mechanisms preparation sampling simulation",
    "releasing": "accounting core datasets mechanisms preparation sampling simulation",
    "extend": "accounting auditing core datasets mechanisms preparation",
    "papers": "accounting core datasets mechanisms preparation sampling simulation",
    "report": ("accounting auditing core datasets mechanisms papers preparation simulation"),
    "lessons": (
        "accounting auditing core datasets mechanisms preparation releasing report "
        "sampling simulation"
    ),
    "studies": (
        "auditing core datasets extend lessons mechanisms papers preparation releasing "
        "report simulation"
    ),
    "__init__": "core mechanisms releasing studies",
    "cli": (
        "auditing core datasets lessons mechanisms papers preparation releasing report "
        "simulation studies"
    ),
    "__main__": "cli core",
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
            room = rest.partition(".")[0]
            if package == "dpviz":  # what is no room is a name of the front door
                yield room if room in FLOOR else "__init__"


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
    assert len(found) > 60  # the walk saw the house
    assert climbing(found) == []


def circles(package: Path) -> list[set[str]]:
    """Return the files that import each other in a circle."""
    return [found for found in components(House(package).imports) if len(found) > 1]


def test_no_files_import_each_other_in_a_circle(tmp_path: Path) -> None:
    """Not for types alone either: what needs the other's type stands below it, or beside it."""
    assert circles(PACKAGE) == []
    package = tmp_path / "dpviz"
    (package / "core").mkdir(parents=True)
    (package / "__init__.py").write_text("from dpviz.core.one import one\n", encoding="utf-8")
    inside = "if TYPE_CHECKING:\n    import dpviz\n"
    (package / "core" / "one.py").write_text(inside, encoding="utf-8")
    assert circles(package) == [{"__init__.py", "core/one.py"}]


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
        ("core/planted.py", "from dpviz.simulation.cells import evaluate", True),
        ("core/planted.py", "def f():\n    import dpviz.accounting.gaussian", True),
        ("auditing/planted.py", "from dpviz.releasing.ledger import Ledger", True),  # one floor
        ("core/planted.py", "import dpviz", True),
        ("studies/planted.py", "from dpviz import __version__", True),
        ("cli/planted.py", "from dpviz.core.params import params_of", False),
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
