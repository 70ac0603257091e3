"""Results of full runs that ship with the package, so that a first visit shows numbers.

One small file an experiment: its points, each as its mean, interval and range and
not as draws; answers are derived when it is read. A file says with which code of the
experiment and which versions of the libraries it was measured.
"""

from __future__ import annotations

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
from dpviz.papers.measurements import RESULTS, SUMMARY_COLUMNS, Found, shipped_points
from dpviz.papers.run import Reproduction, answers, lines_of
from dpviz.papers.said import Claim, Line
from dpviz.papers.source import code_digest

_DIGITS = 6  # significant ones, of numbers that are drawn
_LIBRARIES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Provenance:
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
    made: Provenance

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


def file_of(key: str, folder: Path = RESULTS) -> Path:
    """Return the path of an experiment's results."""
    return folder / f"{key}.json"


def ship(found: Reproduction, date: str, folder: Path = RESULTS) -> Path:
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
    made = Provenance(date, code_digest(found.experiment), versions)
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


def shipped(experiment: Experiment, folder: Path = RESULTS) -> Shipped | None:
    """Return the results that ship for an experiment, or None where there are none."""
    path = file_of(experiment.key, folder)
    if not path.is_file():
        return None
    return _read(experiment, path)


@cache
def _read(experiment: Experiment, path: Path) -> Shipped:
    content = json.loads(path.read_text(encoding="utf-8"))
    points = shipped_points(path.stem, path.parent)
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
        Provenance(**content["made"]),
    )
