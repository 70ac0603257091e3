"""Imports between subpackages: allowed directions, without circles and never upwards."""

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

# Each subpackage imports only from the levels listed before its own. A file at the package's root
# counts as a subpackage.
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
# These imports between subpackages are allowed. A new import from a lower level is added here.
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
    """Return the subpackage of a file, given by its path inside the package."""
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imported(found: Iterable[Import]) -> Iterator[str]:
    """Yield the subpackages that a file imports from, inside functions as well."""
    for one in found:
        names: list[str] = []
        if one.plain:
            names = list(one.names)
        elif one.module:
            names = [f"{one.module}.{name}" for name in one.names]
        for name in names:
            package, _, rest = name.partition(".")
            room = rest.partition(".")[0]
            if package == "dpviz":  # Names outside the subpackages belong to the root.
                yield room if room in FLOOR else "__init__"


def arrows(package: Path) -> dict[tuple[str, str], str]:
    """Return every import between subpackages, with a file that makes it."""
    arrows_in = {}
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        for room in imported(imports(path)):
            if room != room_of(inside):
                arrows_in[room_of(inside), room] = inside.as_posix()
    return arrows_in


def climbing(found: dict[tuple[str, str], str]) -> list[str]:
    """Return, in words, the imports that do not go down a level."""
    return [
        f"{file}: {source} imports from {target}"
        for (source, target), file in found.items()
        if FLOOR[target] >= FLOOR[source]
    ]


def test_every_room_has_a_floor_and_every_floor_a_room() -> None:
    rooms = {room_of(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert rooms - {"_app"} == set(FLOOR)


def test_no_import_climbs() -> None:
    arrows_in = arrows(PACKAGE)
    assert len(arrows_in) > 60  # The search did find the subpackages.
    assert climbing(arrows_in) == []


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
        modules = [one if one in files else one.rpartition(".")[0] for one in targets]
        graph[name] = {one for one in modules if one in files} - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle(tmp_path: Path) -> None:
    """No files import each other in a circle, not even for types alone."""
    assert circle(PACKAGE) == []
    package = tmp_path / "dpviz"
    (package / "core").mkdir(parents=True)
    (package / "__init__.py").write_text("from dpviz.core.one import one\n", encoding="utf-8")
    inside = "if TYPE_CHECKING:\n    import dpviz\n"
    (package / "core" / "one.py").write_text(inside, encoding="utf-8")
    assert set(circle(package)) == {"dpviz", "dpviz.core.one"}


def test_the_map_names_every_arrow() -> None:
    """`ARROWS` lists each import between subpackages, so that a review sees every change."""
    arrows_in = arrows(PACKAGE)
    names = {(room, target) for room, targets in ARROWS.items() for target in targets.split()}
    assert {
        f"{room} -> {target} ({arrows_in[room, target]})" for room, target in set(arrows_in) - names
    } == set()
    assert names - set(arrows_in) == set()


@pytest.mark.parametrize(
    ("file", "line", "climbs"),
    [
        ("core/planted.py", "from dpviz.simulation.cells import evaluate", True),
        ("core/planted.py", "def f():\n    import dpviz.accounting.gaussian", True),
        ("auditing/planted.py", "from dpviz.releasing.ledger import Ledger", True),
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
    lines_over = Counter({**lines, "report": BUDGETS["report"] + 1})
    assert [line.partition(":")[0] for line in over_budget(lines_over)] == ["report"]


# One program assembles a comparison ---------------------------------------------------------------


def assembled_by_hand(package: Path, room: str) -> list[str]:
    """Return the places that assemble a comparison or measure a setting outside the one program."""
    places = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).as_posix()
        if f"{room}/{inside}".startswith(("dpviz/simulation/", "dpviz/papers/")):
            continue  # Skip the measuring program, and papers, which compare nothing.
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Comparison"
            imports_it = isinstance(node, ast.ImportFrom | ast.Attribute) and "run_cell" in (
                [one.name for one in node.names]
                if isinstance(node, ast.ImportFrom)
                else [node.attr]
            )
            if is_call or imports_it:
                places.append(f"{room}/{inside}:{node.lineno}")
    return places


def test_one_program_assembles_comparisons(tmp_path: Path) -> None:
    """Only `dpviz.simulation.compare.compare` assembles comparisons, by any route."""
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
"""Functions of simulation that read a release and sample nothing."""
RELEASES = ("calibrate", "noise_along", "release_many", "released_directions")
"""Methods of a mechanism that account for or sample a release."""


def computed_by(package: Path, room: str) -> dict[str, set[str]]:
    """Return the names of simulation and of release methods that each file of a subpackage uses."""
    functions: dict[str, set[str]] = {}
    for path in sorted((package / room).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        computations = attributes.intersection(RELEASES)
        for one in imports(path):
            whole = [name for name in one.names if one.plain and name.startswith(SIMULATION)]
            names = set(whole)
            if one.module.startswith(SIMULATION):
                module = import_module(one.module)
                names |= {name for name in one.names if isroutine(getattr(module, name))}
            computations |= names - READS
        if computations:
            functions[path.relative_to(package).as_posix()] = computations
    return functions


def test_report_draws_and_searches_nothing(tmp_path: Path) -> None:
    """The report receives answers, and uses only the types of their contents."""
    assert computed_by(PACKAGE, "report") == {}
    (tmp_path / "report").mkdir()
    breach = (
        "def f():\n    from dpviz.simulation.compare import Result, run_cell\n    m.calibrate()\n"
    )
    (tmp_path / "report" / "planted.py").write_text(breach, encoding="utf-8")
    assert computed_by(tmp_path, "report") == {"report/planted.py": {"run_cell", "calibrate"}}


# Pages and commands call studies ------------------------------------------------------------------

DOOR = ("studies", "core.errors", "core.settings", "report.style", "lessons", "cli", "__init__")
PAST = {"pages": 475, "dpviz/cli": 75}
"""Number of names still imported from other subpackages; the numbers may only decrease."""


def past_the_door(folder: Path) -> list[str]:
    """Return the package names that a folder's files import outside the allowed modules."""
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
