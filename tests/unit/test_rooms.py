"""The house: which room may import from which, without a circle and never from a floor above."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from inspect import isroutine
from pathlib import Path

import pytest

from dpviz.core.files import PACKAGE
from tests.sources import Import, imports
from tools.house import BUDGETS, lines_by_room, over_budget

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
        "accounting auditing core datasets extend lessons mechanisms papers preparation releasing "
        "report simulation"
    ),
    "__init__": "core mechanisms releasing studies",
    "cli": ("auditing core datasets lessons mechanisms papers releasing report simulation studies"),
    "__main__": "cli core",
}
SIMULATION = "dpviz.simulation"
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


def circle(package: Path) -> list[str]:
    """Return the files of one circle of imports, if there is any."""
    files = {}
    for path in package.rglob("*.py"):
        inside = path.relative_to(package.parent).with_suffix("")
        files[".".join(inside.parts).removesuffix(".__init__")] = path
    graph = {}
    for name, path in files.items():
        targets = [
            f"{one.module}.{each}".lstrip(".") for one in imports(path) for each in one.names
        ]
        known = [one if one in files else one.rpartition(".")[0] for one in targets]
        graph[name] = {one for one in known if one in files} - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle(tmp_path: Path) -> None:
    """Not for types alone either: what needs the other's type stands below it, or beside it."""
    assert circle(PACKAGE) == []
    package = tmp_path / "dpviz"
    (package / "core").mkdir(parents=True)
    (package / "__init__.py").write_text("from dpviz.core.one import one\n", encoding="utf-8")
    inside = "if TYPE_CHECKING:\n    import dpviz\n"
    (package / "core" / "one.py").write_text(inside, encoding="utf-8")
    assert set(circle(package)) == {"dpviz", "dpviz.core.one"}


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


def test_no_room_passes_its_budget_of_lines() -> None:
    lines = lines_by_room()
    assert over_budget(lines) == []
    planted = Counter({**lines, "report": BUDGETS["report"] + 1})
    assert [line.partition(":")[0] for line in over_budget(planted)] == ["report"]


# One program assembles a comparison ---------------------------------------------------------------


def assembled_by_hand(package: Path, room: str) -> list[str]:
    """Return where a file makes a comparison, or measures a cell, past the one program."""
    found = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).as_posix()
        if f"{room}/{inside}".startswith(("dpviz/simulation/", "dpviz/papers/")):
            continue  # the program itself; a paper measures cells and compares none
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Comparison"
            taken = isinstance(node, ast.ImportFrom | ast.Attribute) and "run_cell" in (
                [one.name for one in node.names]
                if isinstance(node, ast.ImportFrom)
                else [node.attr]
            )
            if called or taken:
                found.append(f"{room}/{inside}:{node.lineno}")
    return found


def test_one_program_assembles_comparisons(tmp_path: Path) -> None:
    """`dpviz.simulation.compare.compare`, which can be told how a cell is drawn or found."""
    pages = PACKAGE.parent / "pages"
    assert assembled_by_hand(PACKAGE, "dpviz") == []
    assert assembled_by_hand(pages, "pages") == []
    breach = "from dpviz.simulation.compare import run_cell\n\nComparison(plan, results)\n"
    (tmp_path / "planted.py").write_text(breach, encoding="utf-8")
    assert assembled_by_hand(tmp_path, "studies") == [
        "studies/planted.py:1",
        "studies/planted.py:3",
    ]


# Report shows answers -----------------------------------------------------------------------------

READS = {"drowned", "first_draws", "label_words", "mirrored", "points", "steady"}
"""Functions of simulation that read what was released, and draw nothing."""
RELEASES = ("calibrate", "noise_along", "release_many", "released_directions")
"""Methods of a mechanism that price or draw a release."""


def computed_by(package: Path, room: str) -> dict[str, set[str]]:
    """Return what each file of a room takes of simulation, and of the steps of a release."""
    found: dict[str, set[str]] = {}
    for path in sorted((package / room).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        computed = called.intersection(RELEASES)
        for one in imports(path):
            whole = [name for name in one.names if one.plain and name.startswith(SIMULATION)]
            taken = set(whole)
            if one.module.startswith(SIMULATION):
                module = import_module(one.module)
                taken |= {name for name in one.names if isroutine(getattr(module, name))}
            computed |= taken - READS
        if computed:
            found[path.relative_to(package).as_posix()] = computed
    return found


def test_report_draws_and_searches_nothing(tmp_path: Path) -> None:
    """It takes answers: of simulation it knows what they are made of."""
    assert computed_by(PACKAGE, "report") == {}
    (tmp_path / "report").mkdir()
    breach = (
        "def f():\n    from dpviz.simulation.compare import Result, run_cell\n    m.calibrate()\n"
    )
    (tmp_path / "report" / "planted.py").write_text(breach, encoding="utf-8")
    assert computed_by(tmp_path, "report") == {"report/planted.py": {"run_cell", "calibrate"}}


# Pages and commands ask studies -------------------------------------------------------------------

DOOR = ("studies", "core.errors", "core.settings", "report.style", "lessons", "cli", "__init__")
PAST = {"pages": 475, "dpviz/cli": 75}
"""Names that they still take from other rooms: the numbers may only become smaller."""


def past_the_door(folder: Path) -> list[str]:
    """Return the names of the package that a folder's files take past the one door."""
    return [
        f"{path.stem}: {one.module}.{name}"
        for path in sorted(folder.rglob("*.py"))
        for one in imports(path)
        for name in one.names
        if one.module.startswith("dpviz.")
        and not f"{one.module}.{name}".removeprefix("dpviz.").startswith(DOOR)
    ]


def test_ever_fewer_names_are_taken_past_the_studies(tmp_path: Path) -> None:
    for folder, most in PAST.items():
        assert len(past_the_door(PACKAGE.parent / folder)) <= most, folder
    breach = "from dpviz.core.errors import DpvizError\nfrom dpviz.papers import known\n"
    (tmp_path / "planted.py").write_text(breach, encoding="utf-8")
    assert past_the_door(tmp_path) == ["planted: dpviz.papers.known"]
