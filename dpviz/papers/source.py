"""What code an experiment's numbers come from: results and kept parts are known by its digest."""

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
    """Return the digest of all code of a paper's folder that an experiment's numbers come from.

    What says how a chart looks, what the paper says and how it is judged are left
    out, as they change no number. The core's source is not part of it: the file
    names the version of the package instead.
    """
    path = Path(inspect.getfile(type(experiment))).resolve()
    return digest_of(path.parent, path.stem, type(experiment).__name__)


_Measuring = tuple[str, list[tuple[str, str]]]
_MEASURING = frozenset({"parts", "run", "shared", "source"})
_SHARED = ("solve.py", "by_statement.py")  # of all papers, and they make numbers


def digest_of(folder: Path, module: str, name: str) -> str:
    """Return the digest of what the methods that measure can reach within a folder.

    Parameters
    ----------
    folder : Path
        Of a paper.
    module, name : str
        Of the experiment's class.
    """
    paths = [*folder.glob("*.py"), *(folder.parent / name for name in _SHARED)]
    read = [_Module.of(one.stem, one.read_text(encoding="utf-8")) for one in paths if one.is_file()]
    modules = {one.name: one for one in read}
    texts: dict[str, str] = {}
    asked = [(module, name)]
    seen: set[tuple[str, str]] = set()
    while asked:
        place = asked.pop()
        if place in seen or place[0] not in modules:
            continue
        seen.add(place)
        node = modules[place[0]].defined.get(place[1])
        if node is None:
            continue
        parts = [node]
        if isinstance(node, ast.ClassDef) and _is_experiment(node):
            parts = [one for one in node.body if not _says(one)]
            asked += [one for base in node.bases for one in modules[place[0]].reached(base)]
        for part in parts:
            text, reached = modules[place[0]].measures(part)
            asked += reached
            texts[f"{place[1]}.{getattr(part, 'name', '')}"] = text
    digest = hashlib.blake2b(digest_size=16)
    for key in sorted(texts):
        digest.update(f"{key}\0{texts[key]}\0".encode())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Module:
    """A file's definitions, what its imports of the same folder are called, and what was asked."""

    name: str
    defined: dict[str, ast.stmt]
    names: dict[str, tuple[str, str]]
    modules: dict[str, str]
    known: dict[ast.stmt, _Measuring] = field(default_factory=dict)

    @staticmethod
    @lru_cache(maxsize=32)  # a paper's files, which its experiments share, are parsed once
    def of(name: str, text: str) -> _Module:
        """Return the module of that name and text."""
        defined: dict[str, ast.stmt] = {}
        names: dict[str, tuple[str, str]] = {}
        modules: dict[str, str] = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for part in (part for one in targets for part in ast.walk(one)):
                    if isinstance(part, ast.Name):
                        defined[part.id] = node
            elif isinstance(node, ast.ImportFrom):
                inside = (node.module or "").rpartition(".")
                for one in node.names:
                    called = one.asname or one.name
                    names[called] = (inside[2], one.name)
                    modules[called] = one.name  # where what is imported is a file
        return _Module(name, defined, names, modules)

    def measures(self, node: ast.stmt) -> _Measuring:
        """Return what of a definition may change numbers, and where what it names is defined."""
        if node not in self.known:
            part = _Silent().visit(copy.deepcopy(node))
            reached = self.reached(part)
            self.known[node] = ast.unparse(_Unplaced().visit(part)), reached
        return self.known[node]

    def reached(self, node: ast.AST) -> list[tuple[str, str]]:
        """Return where what a piece of code names is defined."""
        found = []
        for part in ast.walk(node):
            match part:
                case ast.Attribute(value=ast.Name(id=called)) if called in self.modules:
                    found.append((self.modules[called], part.attr))
            if isinstance(part, ast.Name):
                found.append((self.name, part.id))
                if part.id in self.names:
                    found.append(self.names[part.id])
        return found


_SAYING = frozenset({"info", "stand_in", "pictures", "named"})


def _is_experiment(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("Experiment") for base in node.bases)


def _says(node: ast.stmt) -> bool:
    """Return whether a line of an experiment's class measures nothing: it says, judges or draws."""
    match node:
        case ast.FunctionDef(name=name):
            return name not in _MEASURING and not name.startswith("_")
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in _SAYING
    return isinstance(node, ast.Expr)


class _Silent(ast.NodeTransformer):
    """Takes out what changes no number: docstrings, types, assertions, how classes are made."""

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
    """Takes out what modules are called, which changes no number either."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id.startswith("_"):
            return ast.copy_location(ast.Name(node.attr, ast.Load()), node)
        return self.generic_visit(node)
