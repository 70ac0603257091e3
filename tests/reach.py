"""Find the test files that a change can reach, by their imports.

A changed file reaches a test file that imports it, directly, inside a function or through other
files, or that names it in a text (``monkeypatch.setattr("dpviz.simulation.cells.evaluate", ...)``,
``-m dpviz``). A package that finds its modules while it runs, such as `dpviz.mechanisms`, reaches
all these modules if a file imports the package itself. A test that walks the folders of the project
is always reached. ``python -m tests.reach`` prints the test files reached now; ``make check`` runs
them, and CI runs all tests.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.changes import changed
from tests.sources import Import, imports

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("dpviz", "pages", "browser", "tools", "benchmarks", "tests")
EVERYTHING = (
    "pyproject.toml",
    "requirements.txt",
    "tests/changes.py",
    "tests/conftest.py",
    "tests/reach.py",
)
"""Files whose change may reach any test."""

_FINDS = re.compile(r"\b(import_module|iter_modules|modules_of)\(")
_WALKS = re.compile(
    r"\b(ROOT|PACKAGE|app_path\(\)|parents\[\d\])[^\n]*\n?[^\n]*\.r?glob\(|ls-files"
)
# This pattern matches a text that names a module or ends in the entry point's name.
_QUOTED = re.compile(
    r"""(?<=["'])(?:(?:dpviz|pages|browser|tools|benchmarks|tests)(?:\.\w+)*|[^"'\n]*app\.py)(?=["'])"""
)


def reached(files: Collection[str], root: Path = ROOT) -> set[str]:
    """Return the test files that changed files reach, as paths below the root."""
    graph = needs(root)
    tests = {path for path in graph if Path(path).name.startswith("test_")}
    if set(files) & set(EVERYTHING):
        return tests
    paths = {path for path in files if path.endswith(".py")}
    for path in set(files) - paths:
        paths |= set(_readers(root, path, graph))
    above: dict[str, set[str]] = defaultdict(set)
    for path, below in graph.items():
        for one in below:
            above[one].add(path)
    waiting, visits = list(paths), set(paths)
    while waiting:
        for path in above[waiting.pop()] - visits:
            visits.add(path)
            waiting.append(path)
    always = {path for path in tests if _walks(root / path)}
    return (visits & tests) | always


def _readers(root: Path, path: str, graph: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the files that mention another file's name, or else all files in its folder."""
    name, folder = Path(path).name, str(Path(path).parent)
    saying = [one for one in graph if one.endswith(".py") and name in _text(root / one)]
    yield from saying or [one for one in graph if str(Path(one).parent) == folder]


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@cache
def _walks(path: Path) -> bool:
    return _WALKS.search(_text(path)) is not None


@cache
def needs(root: Path = ROOT) -> dict[str, set[str]]:
    """Return the direct imports of each Python file, as paths below the root.

    A package that finds modules while it runs has a second node, named by its name and a star.
    Files that import the package itself, not just a module in it, depend on the second node.
    """
    paths = [root / "app.py", *(p for name in FOLDERS for p in (root / name).rglob("*.py"))]
    modules = {_name(path.relative_to(root)): path for path in paths}
    graph: dict[str, set[str]] = {}
    for path in paths:
        file = str(path.relative_to(root))
        finds = path.name == "__init__.py" and _FINDS.search(_text(path)) is not None
        # A package's second node has the modules that the package finds or imports on request.
        imports_of = {
            name for one in imports(path) for name in _names(one) if one.at_the_top or not finds
        }
        nodes = {node for name in _said(path) for node in _nodes(name, modules, root, whole=True)}
        graph[file] = {node for name in imports_of for node in _nodes(name, modules, root)}
        if finds:
            inside = path.parent.glob("*.py"), path.parent.glob("*/*.py")
            front = path.parent == root / "dpviz"  # The top package names what it imports late.
            loads = () if front else (str(p.relative_to(root)) for ps in inside for p in ps)
            late = (
                node
                for one in imports(path)
                for name in _names(one)
                for node in _nodes(name, modules, root)
            )
            graph[f"{file}*"] = {file, *nodes, *late, *loads}
        else:
            graph[file] |= nodes
        if file.startswith("tests/"):
            confs = (p / "conftest.py" for p in path.parents if p.is_relative_to(root / "tests"))
            graph[file] |= {str(p.relative_to(root)) for p in confs if p.is_file() and p != path}
    return graph


def _name(path: Path) -> str:
    """Return the dotted name under which a file is imported."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _names(one: Import) -> Iterator[str]:
    """Yield possible meanings of an import statement: a module, or a name in a package."""
    if one.plain:
        yield from one.names
        yield from (f"{name}.anything" for name in one.names)
        return
    yield one.module
    yield from (f"{one.module}.{name}" for name in one.names)


def _said(path: Path) -> Iterator[str]:
    """Yield modules that a file names in texts, for example to patch or start them."""
    starts = "dpviz" not in path.relative_to(ROOT).parts[:1]  # In dpviz, such texts are commands.
    for text in _QUOTED.findall(_text(path)):
        if text == "dpviz" or text.endswith("app.py"):
            yield from (("app",) if text != "dpviz" else ("dpviz.__main__",)) * starts
        else:
            yield text


def _nodes(
    name: str, modules: Mapping[str, Path], root: Path, *, whole: bool = False
) -> Iterator[str]:
    """Yield the nodes for a dotted name: its longest module, and the packages above it."""
    parts = name.split(".")
    module = next(
        (".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in modules),
        None,
    )
    if module is None:
        return
    path = modules[module]
    yield str(path.relative_to(root))
    is_attribute = len(parts) == len(module.split(".")) + 1 and not parts[-1].startswith("__")
    if path.name == "__init__.py" and (whole or is_attribute):
        yield f"{path.relative_to(root)}*"
    for n in range(1, len(module.split("."))):
        above = modules.get(".".join(parts[:n]))
        if above is not None:
            yield str(above.relative_to(root))


if __name__ == "__main__":
    files = changed()
    print("\n".join(sorted(reached(files) if files is not None else ["tests"])))
