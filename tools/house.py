"""Print the figures of the house: how much there is to hold in mind, and where it is tangled.

``python -m tools.house`` reads the source as text; nothing of the project is run. Each figure has
an aim in mind and none is a goal by itself: fewer ideas, not smaller boxes.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dpviz"
PARTS = {
    "core without papers": ("dpviz", "dpviz/papers"),
    "papers": ("dpviz/papers", ""),
    "pages": ("pages", ""),
    "tests": ("tests", ""),
}
USERS = ("app.py", "pages", "tools", "benchmarks")
"""What uses the package beside itself; tests do not count: they are no reason to stand alone."""
FEW_LINES = 40
# Folders whose files are of a kind that stands by itself, and what marks one where not all are.
_KINDS = {
    "mechanisms": "", "studies": "", "papers/*": "", "metrics": "",
    "datasets/builtin": "TABLES", "datasets/remote": "SETS",
}  # fmt: skip
_BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension)
_MOST_STAYS = 400  # functions that a walk enters before it gives up


@dataclass(frozen=True)
class Function:
    """A function or a method, with the file that it stands in.

    Attributes
    ----------
    file : str
        Path inside the package.
    owner : str
        Name of its class, or empty.
    node : ast.FunctionDef
    """

    file: str
    owner: str
    node: ast.FunctionDef

    @property
    def name(self) -> str:
        """Name with its class."""
        return f"{self.owner}.{self.node.name}" if self.owner else self.node.name

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, without self."""
        given = self.node.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        return names[1:] if self.owner and names[:1] in (["self"], ["cls"]) else names

    @property
    def lines(self) -> int:
        """Lines from the first to the last."""
        return (self.node.end_lineno or self.node.lineno) - self.node.lineno + 1

    @property
    def complexity(self) -> int:
        """One more than the number of branches (McCabe 1976)."""
        found = 1
        for node in ast.walk(self.node):
            found += isinstance(node, _BRANCHES)
            if isinstance(node, ast.BoolOp):
                found += len(node.values) - 1
            elif isinstance(node, ast.Match):
                found += len(node.cases)
        return found


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of_code(path: Path) -> tuple[int, int]:
    """Return lines of code (no docstrings, imports, comments, blanks) and comments of a file."""
    text = path.read_text(encoding="utf-8")
    code: set[int] = set()
    comments = 0
    skip = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments += not token.string.startswith(("# noqa", "# type:", "# fmt:"))
        elif token.type not in skip:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree_of(path)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        if documented and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            code -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            code -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(code), comments


class House:
    """The package as its files, functions and imports.

    Parameters
    ----------
    package : Path
        Beside it stand `USERS`.
    """

    def __init__(self, package: Path = PACKAGE) -> None:
        self.package = package
        self.files = {
            path.relative_to(package).as_posix(): path for path in sorted(package.rglob("*.py"))
        }

    def module_of(self, file: str) -> str:
        """Return the dotted name of a file."""
        name = file.removesuffix(".py").replace("/", ".").removesuffix("__init__").rstrip(".")
        return f"{self.package.name}.{name}".rstrip(".")

    @cached_property
    def modules(self) -> dict[str, str]:
        """File of each dotted name."""
        return {self.module_of(file): file for file in self.files}

    def targets(self, path: Path) -> set[str]:
        """Return the files of the package that a file imports from, inside functions as well."""
        found = set()
        for node in ast.walk(tree_of(path)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                target = self.modules.get(name) or self.modules.get(name.rpartition(".")[0])
                if target:
                    found.add(target)
        return found

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Files that each file imports from."""
        return {file: self.targets(path) - {file} for file, path in self.files.items()}

    @cached_property
    def users(self) -> Counter[str]:
        """How many files of the package import from each."""
        return Counter(target for targets in self.imports.values() for target in targets)

    @cached_property
    def outside(self) -> Counter[str]:
        """How many files of `USERS` import from each."""
        root = self.package.parent
        paths = [path for name in USERS for path in (root / name).rglob("*.py")]
        paths += [root / name for name in USERS if (root / name).is_file()]
        return Counter(target for path in paths for target in self.targets(path))

    def is_a_kind(self, file: str) -> bool:
        """Return whether a file stands by itself, however many use it.

        So does one of a kind that is one file each: a mechanism, a study, an experiment of a paper,
        a measure, a set of tables. What such files share begins with an underscore.
        """
        inside = PurePosixPath(file)
        if inside.name.startswith("_"):
            return False
        for folder, mark in _KINDS.items():
            if inside.parent.match(folder) and len(inside.parts) == folder.count("/") + 2:
                return not mark or mark in bound_at_top(tree_of(self.files[file]))
        return False

    @property
    def with_one_user(self) -> list[str]:
        """Files that one other reaches, and that are no kind of their own."""
        return sorted(
            file
            for file in self.files
            if not file.endswith("__init__.py")
            and self.users[file] + self.outside[file] == 1
            and not self.is_a_kind(file)
        )

    @property
    def small(self) -> list[str]:
        """Files with fewer than `FEW_LINES` lines of code, packages' own files aside."""
        return sorted(
            file
            for file, path in self.files.items()
            if not file.endswith("__init__.py") and lines_of_code(path)[0] < FEW_LINES
        )

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method."""
        found = []
        for file, path in self.files.items():
            for node in ast.walk(tree_of(path)):
                if isinstance(node, ast.ClassDef):
                    found += [
                        Function(file, node.name, inner)
                        for inner in node.body
                        if isinstance(inner, ast.FunctionDef)
                    ]
            found += [
                Function(file, "", node)
                for node in tree_of(path).body
                if isinstance(node, ast.FunctionDef)
            ]
        return found

    @cached_property
    def by_name(self) -> dict[str, list[Function]]:
        """Functions and methods by the name that a call has; a class is its ``__init__``."""
        found: dict[str, list[Function]] = defaultdict(list)
        for one in self.functions:
            found[one.owner if one.node.name == "__init__" else one.node.name].append(one)
        return found

    def called(self, call: ast.Call, file: str) -> Function | None:
        """Return the function that a call in a file is of, where one alone can be meant."""
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        near = [
            one
            for one in self.by_name.get(name, [])
            if one.file == file or one.file in self.imports[file]
        ]
        return near[0] if len(near) == 1 else None

    @cached_property
    def classes(self) -> list[tuple[str, ast.ClassDef]]:
        """Every class with its file."""
        return [
            (file, node)
            for file, path in self.files.items()
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.ClassDef)
        ]

    def room(self, file: str) -> str:
        """Return the room of a file: its folder, or itself at the root of the package."""
        return file.split("/")[0] if "/" in file else file.removesuffix(".py")

    @cached_property
    def rooms(self) -> dict[str, set[str]]:
        """Rooms that each room imports from."""
        found: dict[str, set[str]] = defaultdict(set)
        for file, targets in self.imports.items():
            found[self.room(file)] |= {self.room(target) for target in targets}
        return {room: targets - {room} for room, targets in found.items()}

    @cached_property
    def floors(self) -> dict[str, int]:
        """Floor of each room: one above the highest that it imports from; circles count as one."""
        circles = components(self.rooms)
        of = {room: number for number, circle in enumerate(circles) for room in circle}
        floors: dict[int, int] = {}
        for number, circle in enumerate(circles):  # what is imported comes first
            below = {of[target] for room in circle for target in self.rooms.get(room, ())}
            floors[number] = 1 + max((floors[one] for one in below - {number}), default=-1)
        return {room: floors[of[room]] for room in of}


def components(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the strongly connected components, those that are pointed at first (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = set()
            while node not in circle:
                circle.add(stack.pop())
            found.append(circle)

    for node in graph:
        if node not in index:
            visit(node)
    return found


def bound_at_top(tree: ast.Module) -> set[str]:
    """Return the names that assignments of a module bind."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name for target in targets for name in bound_names(target)}
    return found


def bound_names(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment binds."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


def holds(expression: ast.expr | None, names: set[str]) -> bool:
    """Return whether an expression is one of the names, a part of it, or made from it by a call."""
    if isinstance(expression, ast.Name):
        return expression.id in names
    if isinstance(expression, ast.Attribute):
        return holds(expression.value, names)
    if isinstance(expression, ast.IfExp):
        return holds(expression.body, names) or holds(expression.orelse, names)
    if isinstance(expression, ast.Call):
        given = [*expression.args, *(word.value for word in expression.keywords)]
        return any(isinstance(one, ast.Name) and one.id in names for one in given)
    return False


def carried_by(function: Function, given: str) -> set[str]:
    """Return what a parameter, and what is made of it, is called inside a function."""
    carried = {given}
    for node in ast.walk(function.node):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and holds(node.value, carried):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                carried |= set(bound_names(target))
        elif isinstance(node, ast.For) and holds(node.iter, carried):
            carried |= set(bound_names(node.target))
    return carried


def passed(call: ast.Call, target: Function) -> list[tuple[str, ast.expr]]:
    """Return what a call gives to the parameters of a function, by their names."""
    names = target.parameters
    found = list(zip(names, call.args, strict=False))
    return found + [(word.arg, word.value) for word in call.keywords if word.arg in names]


def walk(house: House, file: str, name: str, parameter: str) -> tuple[set[str], int, int]:
    """Follow one parameter through assignments and calls.

    Returns
    -------
    names : set of str
        What it and what is made of it are called on the way.
    visits, climbs : int
        Rooms entered one after the other, and how often to a higher floor.
    """
    start = next(one for one in house.functions if one.file == file and one.name == name)
    names, seen = {parameter}, {(start.file, start.name, parameter)}
    path = [house.room(file)]

    def enter(function: Function, given: str) -> None:
        carried = carried_by(function, given)
        names.update(carried)
        for node in ast.walk(function.node):
            if not isinstance(node, ast.Call) or len(seen) > _MOST_STAYS:
                continue
            target = house.called(node, function.file)
            if target is None:
                continue
            for other, value in passed(node, target):
                place = (target.file, target.name, other)
                if holds(value, carried) and place not in seen:
                    seen.add(place)
                    path.append(house.room(target.file))
                    enter(target, other)
                    path.append(house.room(function.file))

    enter(start, parameter)
    moves = [(a, b) for a, b in pairwise(path) if a != b]
    climbs = sum(house.floors[b] > house.floors[a] for a, b in moves)
    return names, len({room for _, room in moves}), climbs


def figures() -> dict[str, object]:
    """Return every figure by its words."""
    house = House()
    found: dict[str, object] = {}
    comments = code = 0
    for words, (folder, without) in PARTS.items():
        paths = [
            path
            for path in sorted((ROOT / folder).rglob("*.py"))
            if not without or not path.is_relative_to(ROOT / without)
        ]
        counted = [lines_of_code(path) for path in paths]
        found[f"lines of code: {words}"] = sum(lines for lines, _ in counted)
        if folder == "dpviz":
            code += sum(lines for lines, _ in counted)
            comments += sum(notes for _, notes in counted)
    found["comments per 100 lines of code, dpviz"] = round(100 * comments / code, 1)
    found["files in dpviz"] = len(house.files)
    found["rooms, floors"] = [len(house.floors), max(house.floors.values()) + 1]
    circles = components(house.imports)
    found["largest circle of files"] = max(len(circle) for circle in circles)
    found["modules with one user"] = len(house.with_one_user)
    found["modules with one user in dpviz, of any kind (as counted before)"] = sum(
        count == 1 for file, count in house.users.items() if not file.endswith("__init__.py")
    )
    small = house.small
    found[f"files under {FEW_LINES} lines of code, of them of a kind"] = [
        len(small),
        sum(map(house.is_a_kind, small)),
    ]
    twice = Counter(node.name for _, node in house.classes if not node.name.startswith("_"))
    found["public class names that stand twice"] = sum(count > 1 for count in twice.values())
    longest = max(house.functions, key=lambda one: one.lines)
    hardest = max(house.functions, key=lambda one: one.complexity)
    found["longest function"] = f"{longest.lines} lines, {longest.file}:{longest.name}"
    found["highest complexity"] = f"{hardest.complexity}, {hardest.file}:{hardest.name}"
    names, rooms, climbs = walk(house, *entry(house), "table")
    found["names of `table` from compare, rooms, climbs"] = [len(names), rooms, climbs]
    drawing = {
        one.file
        for one in house.functions
        for node in ast.walk(one.node)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "release_many"
    }
    found["files that call release_many"] = len(drawing)
    return found


def entry(house: House) -> tuple[str, str]:
    """Return the file and the name of the function behind ``dpviz.compare``."""
    for one in house.functions:
        if (one.file, one.name) == ("studies/compare.py", "compare"):
            return one.file, one.name
    raise LookupError("dpviz.compare was not found")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--names", action="store_true", help="name the files that are counted")
    given = parser.parse_args()
    if given.names:
        house = House()
        print("one user:", *house.with_one_user, "", sep="\n")
        print(f"under {FEW_LINES} lines of code:", *house.small, sep="\n")
        return
    found = figures()
    if given.format == "json":
        print(json.dumps(found, indent=1))
        return
    width = max(map(len, found))
    for words, value in found.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        print(f"{words:<{width}}  {shown}")


if __name__ == "__main__":
    main()
