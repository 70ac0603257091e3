"""Results of full runs that ship with the package, so that a first visit shows numbers.

One small file an experiment: its claims, its lines and its points, each point as
its mean, interval and range and not as draws. A file says with which code of the
experiment and which versions of the libraries it was measured.
"""

from __future__ import annotations

import ast
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

from dpviz import __version__
from dpviz.reproduce.experiment import Effort, Experiment
from dpviz.reproduce.lines import Agreement, Line, Stated
from dpviz.reproduce.measurements import SUMMARY_COLUMNS, Mean
from dpviz.reproduce.run import Reproduction
from dpviz.reproduce.verdicts import Answer, Claim

FOLDER = Path(__file__).resolve().parent / "results"
_DIGITS = 6  # significant ones, of numbers that are drawn
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
# What says how a chart looks: functions that return these, and constants made of them.
_LOOKS = frozenset({"Chart", "Series"})


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
    lines: list[Line]
    points: pd.DataFrame
    absent: tuple[str, ...]
    complete: bool
    made: Made

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
    """Return the digest of an experiment's file and of what its paper's files share.

    Imports and what only says how a chart looks are left out, as they change no
    number. The core's source is not part of it: the file names the version of the
    package instead.
    """
    own = Path(inspect.getfile(type(experiment))).resolve()
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted({own, *own.parent.glob("_[a-z]*.py")}):
        digest.update(f"{path.name}\0{measuring(path.read_text(encoding='utf-8'))}\0".encode())
    return digest.hexdigest()


def measuring(source: str) -> str:
    """Return the lines of a module without its imports and without what draws its charts."""
    left_out: set[int] = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.FunctionDef(returns=ast.expr() as returns) if _names(returns) & _LOOKS:
                pass
            case ast.Assign(value=value) if node in tree.body and _names(value) & _LOOKS:
                pass
            case _:
                continue
        left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = source.splitlines()
    kept = (line for number, line in enumerate(lines, 1) if number not in left_out)
    return "\n".join(line for line in kept if line.strip())


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


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
    versions = {"dpviz": __version__, **{name: version(name) for name in _LIBRARIES}}
    made = Made(date, code_digest(found.experiment), versions)
    rows = found.points[list(SUMMARY_COLUMNS)].to_numpy(dtype=object).tolist()
    content = {
        "made": asdict(made),
        "seed": found.seed,
        "complete": found.complete,
        "absent": list(found.absent),
        "claims": [asdict(claim) for claim in found.claims],
        "lines": [asdict(line) for line in found.lines],
        "points": rows,
    }
    path = file_of(key, folder)
    text = json.dumps(_plain(content), ensure_ascii=False, separators=(",", ":"))
    # a line for each claim, line and point, so that a change can be read
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


@cache
def _read(experiment: Experiment, path: Path) -> Shipped:
    content = json.loads(path.read_text(encoding="utf-8"))
    points = pd.DataFrame(content["points"], columns=list(SUMMARY_COLUMNS))
    for name in SUMMARY_COLUMNS[3:]:
        points[name] = pd.to_numeric(points[name])
    return Shipped(
        experiment,
        Effort.FULL,
        int(content["seed"]),
        [Claim(**{**claim, "answer": Answer(claim["answer"])}) for claim in content["claims"]],
        [_line(line) for line in content["lines"]],
        points,
        tuple(content["absent"]),
        bool(content["complete"]),
        Made(**content["made"]),
    )


def _line(fields: dict[str, Any]) -> Line:
    stated, mean = fields["stated"], fields["mean"]
    if mean is not None:
        mean = {name: math.nan if value is None else value for name, value in mean.items()}
    return Line(
        fields["panel"],
        fields["item"],
        fields["reported"],
        fields["measured"],
        Agreement(fields["agreement"]),
        fields["note"],
        None if stated is None else Stated(**stated),
        None if mean is None else Mean(**mean),
    )
