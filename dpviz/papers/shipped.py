"""Results of full runs that ship with the package, so that a first visit shows numbers.

One small file an experiment: its points, each as its mean, interval and range and
not as draws; answers are derived when it is read. A file says with which code of the
experiment and which versions of the libraries it was measured.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path

from dpviz.core import VERSION
from dpviz.papers.experiment import Effort, Experiment
from dpviz.papers.measurements import RESULTS, SUMMARY_COLUMNS, shipped_points
from dpviz.papers.run import Findings, Provenance
from dpviz.papers.source import code_digest

_DIGITS = 6  # significant ones, of numbers that are drawn
_LIBRARIES = ("numpy", "scipy", "scikit-learn")


def file_of(key: str, folder: Path = RESULTS) -> Path:
    """Return the path of an experiment's results."""
    return folder / f"{key}.json"


def ship(found: Findings, date: str, folder: Path = RESULTS) -> Path:
    """Write the results of a full run, and whether it was finished.

    Parameters
    ----------
    found : Findings
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
    # the code as it is now: who reads can tell whether it has changed since
    made = Provenance(date, code_digest(found.experiment), versions)
    rows = found.points[list(SUMMARY_COLUMNS)].to_numpy(dtype=object).tolist()
    content = {
        "made": asdict(made),
        "seed": found.seed,
        "complete": found.complete,
        "absent": found.absent,
        "points": [[_plain(value) for value in row] for row in rows],
    }
    path = file_of(key, folder)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # a line for each point, so that a change can be read
    text = re.sub(r'(?<=[\[,])(?=\{"(?:item|panel)"|\["[^"]*","[^"]*","[^"]*",)', "\n", text)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _plain(value: str | float | None) -> str | float | None:
    """Return a cell as JSON can hold it: a number to some digits, none for NaN."""
    if value is None or isinstance(value, str):
        return value
    if not math.isfinite(value):
        return None
    whole = value == round(value) and abs(value) < 1e15
    return int(value) if whole else float(f"{value:.{_DIGITS}g}")


def shipped(experiment: Experiment, folder: Path = RESULTS) -> Findings | None:
    """Return the results that ship for an experiment, or None where there are none."""
    path = file_of(experiment.key, folder)
    return _read(experiment, path) if path.is_file() else None


@cache
def _read(experiment: Experiment, path: Path) -> Findings:
    content = json.loads(path.read_text(encoding="utf-8"))
    return Findings(
        experiment, Effort.FULL, content["seed"], shipped_points(path.stem, path.parent),
        tuple(content["absent"]), content["complete"], Provenance(**content["made"]),
    )  # fmt: skip
