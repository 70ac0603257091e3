"""Run an experiment part by part; a run can be resumed, in one process or in several."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.core.resources import one_blas_thread
from dpviz.datasets import remote
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Found, Measurements, shipped_points
from dpviz.papers.said import Claim, Line, answer
from dpviz.papers.source import code_digest
from dpviz.simulation import jobs as engine
from dpviz.simulation.jobs import Arrays, Progress, Storage
from dpviz.simulation.store import Store, source_digest

_SHARED_SETS = 2  # Maximum number of tables in memory at a time, in each process.


@dataclass(frozen=True)
class Provenance:
    """Date, code and versions of a run.

    Attributes
    ----------
    date : str
        ISO.
    code : str
        Digest of the experiment's code, from `code_digest`.
    versions : dict of str to str
        Versions of this package and of the libraries on which its numbers depend.
    """

    date: str
    code: str
    versions: dict[str, str]


@dataclass(frozen=True, eq=False)
class Findings:
    """Results of an experiment: from a partial run, a finished run, or the shipped full run.

    Attributes
    ----------
    experiment : Experiment
    effort : Effort
    seed : int
    found : Measurements or DataFrame
        Simulated values of a run or, if the run is shipped, its points with `SUMMARY_COLUMNS`.
    absent : tuple of str
        Keys of unavailable data sets, whose parts were not run.
    complete : bool
        Whether all parts with available data were run.
    made : Provenance or None
        Record of the run, for shipped results only.
    """

    experiment: Experiment
    effort: Effort
    seed: int
    found: Measurements | pd.DataFrame
    absent: tuple[str, ...]
    complete: bool
    made: Provenance | None = None

    @property
    def points(self) -> pd.DataFrame:
        """Table of the measurements, with one row per point; see `Measurements.table`."""
        return self.found.table() if isinstance(self.found, Measurements) else self.found

    @cached_property
    def claims(self) -> list[Claim]:
        """One answer for each of the paper's statements.

        Until a run is finished, a claim without data counts as not yet measured.
        """
        item, means = self.experiment, Found.of(self.found)
        labels = [remote.sets()[key].label for key in self.absent]
        # If the data are unavailable, a shipped experiment on replacement tables adds its points.
        if item.stand_in:
            means = means.beside(Found.of(shipped_points(item.stand_in)))
        return [answer(said, means, labels, self.complete) for said in item.said]

    @property
    def lines(self) -> list[Line]:
        """Every claim in every panel, with the value measured in the panel."""
        return [line for claim in self.claims for line in claim.lines]

    @property
    def words(self) -> str:
        """Extent, date and version of a shipped run; empty for other runs."""
        if self.made is None:
            return ""
        warning = "A full run stopped before its end; what it had not reached is not yet measured"
        how = "Measured in full" if self.complete else warning
        return f"{how}, {self.made.date}, dpviz {self.made.versions['dpviz']}"

    @property
    def current(self) -> bool:
        """Whether the experiment's code has not changed since the run."""
        return self.made is None or self.made.code == code_digest(self.experiment)


@dataclass(frozen=True, eq=False)
class RunStep:
    """One step in the progress of an experiment."""

    progress: Progress
    reproduction: Findings


def absent_data(experiment: Experiment) -> tuple[str, ...]:
    """Return the keys of an experiment's data sets that are not available."""
    return tuple(key for key in experiment.data() if not remote.at_hand(key))


def work(
    experiment: Experiment,
    effort: Effort,
    *,
    seed: int = 0,
    store: Storage | None = None,
    workers: int = 1,
    apart: bool = False,
    absent: Sequence[str] | None = None,
) -> Generator[RunStep, None, None]:
    """Run the parts whose data is available; yield before the first part and after each part.

    Parts found in the store are not run again, so a stopped run continues at the point of its end.
    Close the generator to stop the run.

    Parameters
    ----------
    experiment : Experiment
    effort : Effort
    seed : int
    store : Store, optional
    workers, apart
        Processes in which the parts run: see `dpviz.simulation.jobs.work`.
    absent : sequence of str, optional
        Keys of unavailable data sets, if already known.
    """
    absent = absent_data(experiment) if absent is None else tuple(absent)
    # Parts without data are left out and listed, so that the rest of the paper can be run.
    parts = [part for part in experiment.parts(effort) if part.data not in absent]
    keys = _keys(experiment, parts, seed)
    jobs = [PartJob(experiment.key, *one) for one in zip(parts, repeat(seed), keys)]
    measurements: dict[int, Measurements] = {}
    with closing(engine.work(jobs, store, workers, apart=apart)) as steps:
        for step in steps:
            points = Measurements()
            for place in sorted(step.done):  # The order does not depend on the workers' speed.
                if place not in measurements:
                    measurements[place] = Measurements.from_arrays(step.done[place])
                points.add(measurements[place])
            complete = len(step.done) == len(jobs)
            yield RunStep(
                step.progress, Findings(experiment, effort, seed, points, absent, complete)
            )


def kept(experiment: Experiment, effort: Effort, store: Store | None, seed: int = 0) -> RunStep:
    """Return what earlier runs left in the store; no part is run."""
    with closing(work(experiment, effort, seed=seed, store=store)) as steps:
        return next(steps)


def reproduce(
    experiment: Experiment,
    effort: Effort,
    *,
    seed: int = 0,
    store: Store | None = None,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Findings:
    """Run an experiment to its end, with the parameters of `work`."""
    for step in work(experiment, effort, seed=seed, store=store, workers=workers):
        last = step
        if progress is not None:
            progress(step.progress)
    return last.reproduction


@dataclass(frozen=True, eq=False)
class PartJob:
    """A part of an experiment; see `dpviz.simulation.jobs.Job`."""

    experiment: str
    part: Part
    seed: int
    key: str
    size: int = 1

    def run(self) -> Arrays:
        """Return the simulated values of the part."""
        from dpviz.papers import experiment

        with one_blas_thread():
            data = _shared(self.experiment, self.part.data)
            points = experiment(self.experiment).run(self.part, data, self.seed)
        return points.to_arrays()


@lru_cache(maxsize=_SHARED_SETS)
def _shared(experiment_key: str, data: str) -> Any:
    from dpviz.papers import experiment

    return experiment(experiment_key).shared(data)


def _keys(experiment: Experiment, parts: Sequence[Part], seed: int) -> list[str]:
    """Return for each part the digest of everything on which its values depend."""
    same = (source_digest(), code_digest(experiment), experiment.key)
    data = {key: _data_digest(remote.fetch(key)) for key in {part.data for part in parts} if key}
    facts = ((*same, repr(part), repr(seed), data.get(part.data, "")) for part in parts)
    return [hashlib.blake2b("\x1f".join(f).encode(), digest_size=20).hexdigest() for f in facts]


@cache
def _data_digest(folder: Path) -> str:
    return _digest(sorted(path for path in folder.rglob("*") if path.is_file()))


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        # File names are hashed too, because files that swap their names are different data.
        digest.update(path.name.encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
