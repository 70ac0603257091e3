"""Shipped results of full runs, which a first visit of the Papers page can show.

Each experiment has one small file of points, each with mean, interval and range, without simulated
values. Answers are derived when the file is read. The file states which code of the experiment and
which library versions were used.
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

_DIGITS = 6  # Number of significant digits of simulated numbers in the file.
_LIBRARIES = ("numpy", "scipy", "scikit-learn")


def file_of(key: str, folder: Path = RESULTS) -> Path:
    """Return the path of an experiment's results."""
    return folder / f"{key}.json"


def ship(found: Findings, date: str, folder: Path = RESULTS) -> Path:
    """Write the results of a full run, and whether the run was finished.

    Parameters
    ----------
    found : Findings
    date : str
        ISO date on which the run ended.
    folder : Path

    Raises
    ------
    ValueError
        If the run was quick, because its numbers come from few simulations.
    """
    key = found.experiment.key
    if found.effort is not Effort.FULL:
        raise ValueError(f"{key}: only results of a full run are stored with dpviz")
    versions = {"dpviz": VERSION, **{name: version(name) for name in _LIBRARIES}}
    # The digest of today's code is stored, so that a reader can detect later changes of the code.
    provenance = Provenance(date, code_digest(found.experiment), versions)
    rows = found.points[list(SUMMARY_COLUMNS)].to_numpy(dtype=object).tolist()
    content = {
        "made": asdict(provenance),
        "seed": found.seed,
        "complete": found.complete,
        "absent": found.absent,
        "points": [[_plain(value) for value in row] for row in rows],
    }
    path = file_of(key, folder)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # Each point has its own line in the file, so that a comparison of versions is readable.
    text = re.sub(r'(?<=[\[,])(?=\{"(?:item|panel)"|\["[^"]*","[^"]*","[^"]*",)', "\n", text)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _plain(value: str | float | None) -> str | float | None:
    """Return a value for JSON: a number to some digits, None for NaN."""
    if value is None or isinstance(value, str):
        return value
    if not math.isfinite(value):
        return None
    whole = value == round(value) and abs(value) < 1e15
    return int(value) if whole else float(f"{value:.{_DIGITS}g}")


def shipped(experiment: Experiment, folder: Path = RESULTS) -> Findings | None:
    """Return the shipped results of an experiment, or None if there are none."""
    path = file_of(experiment.key, folder)
    return _read(experiment, path) if path.is_file() else None


@cache
def _read(experiment: Experiment, path: Path) -> Findings:
    content = json.loads(path.read_text(encoding="utf-8"))
    return Findings(
        experiment, Effort.FULL, content["seed"], shipped_points(path.stem, path.parent),
        tuple(content["absent"]), content["complete"], Provenance(**content["made"]),
    )  # fmt: skip
