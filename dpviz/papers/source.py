"""Digests of the code behind an experiment's numbers, which identify results and stored parts."""

from __future__ import annotations

import ast
import copy
import hashlib
import inspect
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from dpviz.papers.experiment import Experiment


@cache
def code_digest(experiment: Experiment) -> str:
    """Return the digest of all code in a paper's folder on which an experiment's numbers depend.

    The digest omits code for charts, for the paper's statements and for judging them, because such
    code changes no number. It also omits the core's source: the file names the version of the
    package instead.
    """
    path = Path(inspect.getfile(type(experiment))).resolve()
    return digest_of(path.parent, path.stem, type(experiment).__name__)


_Measuring = tuple[str, list[tuple[str, str]]]
_MEASURING = frozenset({"parts", "run", "shared", "source"})
_SHARED = ("solve.py", "by_statement.py")  # Papers share these files, which can change numbers.


def digest_of(folder: Path, module: str, name: str) -> str:
    """Return the digest of all code in a folder that the measuring methods can reach.

    Parameters
    ----------
    folder : Path
        Folder of the paper.
    module, name : str
        Module and name of the experiment's class.
    """
    paths = [*folder.glob("*.py"), *(folder.parent / name for name in _SHARED)]
    sources = [
        _Module.of(one.stem, one.read_text(encoding="utf-8")) for one in paths if one.is_file()
    ]
    modules = {one.name: one for one in sources}
    texts: dict[str, str] = {}
    queue = [(module, name)]
    visited: set[tuple[str, str]] = set()
    while queue:
        place = queue.pop()
        if place in visited or place[0] not in modules:
            continue
        visited.add(place)
        node = modules[place[0]].defined.get(place[1])
        if node is None:
            continue
        parts = [node]
        if isinstance(node, ast.ClassDef) and _is_experiment(node):
            parts = [one for one in node.body if not _says(one)]
            queue += [one for base in node.bases for one in modules[place[0]].reached(base)]
        for part in parts:
            text, places = modules[place[0]].measures(part)
            queue += places
            texts[f"{place[1]}.{getattr(part, 'name', '')}"] = text
    digest = hashlib.blake2b(digest_size=16)
    for key in sorted(texts):
        digest.update(f"{key}\0{texts[key]}\0".encode())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Module:
    """A file's definitions, the names that it imports from its folder, and cached results."""

    name: str
    defined: dict[str, ast.stmt]
    names: dict[str, tuple[str, str]]
    modules: dict[str, str]
    known: dict[ast.stmt, _Measuring] = field(default_factory=dict)

    @staticmethod
    @lru_cache(maxsize=32)  # Experiments of a paper share files: parse each file once.
    def of(name: str, text: str) -> _Module:
        """Return the module with the given name and text."""
        definitions: dict[str, ast.stmt] = {}
        names: dict[str, tuple[str, str]] = {}
        modules: dict[str, str] = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                definitions[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for part in (part for one in targets for part in ast.walk(one)):
                    if isinstance(part, ast.Name):
                        definitions[part.id] = node
            elif isinstance(node, ast.ImportFrom):
                inside = (node.module or "").rpartition(".")
                for one in node.names:
                    alias = one.asname or one.name
                    names[alias] = (inside[2], one.name)
                    modules[alias] = one.name  # This name is used if the import is a file.
        return _Module(name, definitions, names, modules)

    def measures(self, node: ast.stmt) -> _Measuring:
        """Return the code of a definition that may change numbers, and its names' definitions."""
        if node not in self.known:
            part = _Silent().visit(copy.deepcopy(node))
            places = self.reached(part)
            self.known[node] = ast.unparse(_Unplaced().visit(part)), places
        return self.known[node]

    def reached(self, node: ast.AST) -> list[tuple[str, str]]:
        """Return where the names in a piece of code are defined."""
        places = []
        for part in ast.walk(node):
            match part:
                case ast.Attribute(value=ast.Name(id=called)) if called in self.modules:
                    places.append((self.modules[called], part.attr))
            if isinstance(part, ast.Name):
                places.append((self.name, part.id))
                if part.id in self.names:
                    places.append(self.names[part.id])
        return places


_SAYING = frozenset({"info", "stand_in", "pictures", "named"})


def _is_experiment(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("Experiment") for base in node.bases)


def _says(node: ast.stmt) -> bool:
    """Return whether a part of an experiment's class only states, judges or charts."""
    match node:
        case ast.FunctionDef(name=name):
            return name not in _MEASURING and not name.startswith("_")
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in _SAYING
    return isinstance(node, ast.Expr)


class _Silent(ast.NodeTransformer):
    """Remove code that changes no number: docstrings, types, assertions, class decorators."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        return None

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Name("Any", ast.Load())
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)


class _Unplaced(ast.NodeTransformer):
    """Remove the names of modules, which change no number either."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id.startswith("_"):
            return ast.copy_location(ast.Name(node.attr, ast.Load()), node)
        return self.generic_visit(node)
