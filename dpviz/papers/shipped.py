"""Results of full runs that ship with the package, so that a first visit shows numbers.

One small file an experiment: its points, each as its mean, interval and range and
not as draws; answers are derived when it is read. A file says with which code of the
experiment and which versions of the libraries it was measured.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import inspect
import json
import math
import re
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.core import VERSION
from dpviz.papers.experiment import Effort, Experiment
from dpviz.papers.measurements import SUMMARY_COLUMNS, Found
from dpviz.papers.run import Reproduction, answers, lines_of
from dpviz.papers.said import Claim, Line

FOLDER = Path(__file__).resolve().parent / "results"
_DIGITS = 6  # significant ones, of numbers that are drawn
_LIBRARIES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Made:
    """With what results were measured.

    Attributes
    ----------
    date : str
        ISO.
    code : str
        Digest of the experiment's code; see `code_digest`.
    versions : dict of str to str
        Of this package and of the libraries its numbers come from.
    """

    date: str
    code: str
    versions: dict[str, str]

    @property
    def words(self) -> str:
        """The date and the version as text."""
        return f"{self.date}, dpviz {self.versions['dpviz']}"


@dataclass(frozen=True, eq=False)
class Shipped:
    """What a full run found, read from a file; attributes as of `Reproduction`."""

    experiment: Experiment
    effort: Effort
    seed: int
    claims: list[Claim]
    points: pd.DataFrame
    absent: tuple[str, ...]
    complete: bool
    made: Made

    @property
    def lines(self) -> list[Line]:
        """Every claim in every panel, beside what was measured there."""
        return lines_of(self.claims)

    @property
    def words(self) -> str:
        """What was measured, when and with what."""
        how = (
            "Measured in full"
            if self.complete
            else "A full run stopped before its end; what it had not reached is not yet measured"
        )
        return f"{how}, {self.made.words}"

    @property
    def current(self) -> bool:
        """Whether the experiment's code is still the one that was run."""
        return self.made.code == code_digest(self.experiment)


@cache
def code_digest(experiment: Experiment) -> str:
    """Return the digest of all code of a paper's folder that an experiment's numbers come from.

    What says how a chart looks, what the paper says and how it is judged are left
    out, as they change no number. The core's source is not part of it: the file
    names the version of the package instead.
    """
    path = Path(inspect.getfile(type(experiment))).resolve()
    return digest_of(path.parent, path.stem, type(experiment).__name__)


_MEASURING = frozenset({"parts", "run", "shared"})


def digest_of(folder: Path, module: str, name: str) -> str:
    """Return the digest of what the methods that measure can reach within a folder.

    Parameters
    ----------
    folder : Path
        Of a paper.
    module, name : str
        Of the experiment's class.
    """
    modules = {path.stem: _Module.read(path) for path in folder.glob("*.py")}
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
            parts = [
                one
                for one in node.body
                if not isinstance(one, ast.FunctionDef)
                or one.name in _MEASURING
                or one.name.startswith("_")
            ]
            parts = [one for one in parts if not _says(one)]
            asked += [(place[0], part.id) for part in node.bases if isinstance(part, ast.Name)]
        for part in parts:
            texts[f"{place[1]}.{getattr(part, 'name', '')}"] = _plain_source(part)
            asked += modules[place[0]].reached(part)
    digest = hashlib.blake2b(digest_size=16)
    for key in sorted(texts):
        digest.update(f"{key}\0{texts[key]}\0".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Module:
    """A file's definitions, and what its imports of the same folder are called."""

    name: str
    defined: dict[str, ast.stmt]
    names: dict[str, tuple[str, str]]
    modules: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> _Module:
        defined: dict[str, ast.stmt] = {}
        names: dict[str, tuple[str, str]] = {}
        modules: dict[str, str] = {}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
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
        return cls(path.stem, defined, names, modules)

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


def _is_experiment(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("Experiment") for base in node.bases)


def _says(node: ast.stmt) -> bool:
    """Return whether a line of a class is its docstring or says what the paper does."""
    if isinstance(node, ast.Expr):
        return True
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "info"


class _Silent(ast.NodeTransformer):
    """Takes out docstrings and what modules are called, which change no number."""

    def __init__(self) -> None:
        self.inside = False

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id.startswith("_"):
            return ast.copy_location(ast.Name(node.attr, ast.Load()), node)
        return self.generic_visit(node)


def _plain_source(node: ast.AST) -> str:
    return ast.unparse(_Silent().visit(copy.deepcopy(node)))


def file_of(key: str, folder: Path = FOLDER) -> Path:
    """Return the path of an experiment's results."""
    return folder / f"{key}.json"


def ship(found: Reproduction, date: str, folder: Path = FOLDER) -> Path:
    """Write the results of a full run, and whether it was finished.

    Parameters
    ----------
    found : Reproduction
    date : str
        ISO, of the run.
    folder : Path

    Raises
    ------
    ValueError
        If the run was quick: its numbers are those of few draws.
    """
    key = found.experiment.key
    if found.effort is not Effort.FULL:
        raise ValueError(f"{key}: only a full run ships")
    versions = {"dpviz": VERSION, **{name: version(name) for name in _LIBRARIES}}
    made = Made(date, code_digest(found.experiment), versions)
    rows = found.points[list(SUMMARY_COLUMNS)].to_numpy(dtype=object).tolist()
    content = {
        "made": asdict(made),
        "seed": found.seed,
        "complete": found.complete,
        "absent": list(found.absent),
        "points": rows,
    }
    path = file_of(key, folder)
    text = json.dumps(_plain(content), ensure_ascii=False, separators=(",", ":"))
    # a line for each point, so that a change can be read
    text = re.sub(r'(?<=[\[,])(?=\{"(?:item|panel)"|\["[^"]*","[^"]*","[^"]*",)', "\n", text)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers to some digits, none for NaN."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return str(value) if isinstance(value, str) else value
    number = float(value)
    if not math.isfinite(number):
        return None
    if number == round(number) and abs(number) < 1e15:
        return int(number)
    return float(f"{number:.{_DIGITS}g}")


def shipped(experiment: Experiment, folder: Path = FOLDER) -> Shipped | None:
    """Return the results that ship for an experiment, or None where there are none."""
    path = file_of(experiment.key, folder)
    if not path.is_file():
        return None
    return _read(experiment, path)


def shipped_points(key: str) -> pd.DataFrame:
    """Return the points that ship of an experiment, none where it has no results."""
    path = file_of(key)
    return _points(path) if path.is_file() else pd.DataFrame(columns=list(SUMMARY_COLUMNS))


@cache
def _points(path: Path) -> pd.DataFrame:
    content = json.loads(path.read_text(encoding="utf-8"))
    points = pd.DataFrame(content["points"], columns=list(SUMMARY_COLUMNS))
    for name in SUMMARY_COLUMNS[3:]:
        points[name] = pd.to_numeric(points[name])
    return points


@cache
def _read(experiment: Experiment, path: Path) -> Shipped:
    content = json.loads(path.read_text(encoding="utf-8"))
    points = _points(path)
    absent, complete = tuple(content["absent"]), bool(content["complete"])
    claims = answers(experiment, Found.of(points), absent, complete)
    return Shipped(
        experiment,
        Effort.FULL,
        int(content["seed"]),
        claims,
        points,
        absent,
        complete,
        Made(**content["made"]),
    )
