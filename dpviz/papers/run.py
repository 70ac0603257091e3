"""Run an experiment part by part: resumable, in one process or in several."""

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

_SHARED_SETS = 2  # tables kept in memory at a time, per process


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


@dataclass(frozen=True, eq=False)
class Findings:
    """What an experiment found: so far, in the end, or in the full run that ships.

    Attributes
    ----------
    experiment : Experiment
    effort : Effort
    seed : int
    found : Measurements or DataFrame
        The draws of a run; of one that ships its points, with `SUMMARY_COLUMNS`.
    absent : tuple of str
        Keys of the data sets that are not at hand; their parts were not run.
    complete : bool
        Whether all other parts were run.
    made : Provenance or None
        Of what ships.
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
        """What was measured, one row per point; see `Measurements.table`."""
        return self.found.table() if isinstance(self.found, Measurements) else self.found

    @cached_property
    def claims(self) -> list[Claim]:
        """One answer for everything that the paper says of it.

        Until a run is finished a claim without data is not yet measured.
        """
        item, found = self.experiment, Found.of(self.found)
        labels = [remote.sets()[key].label for key in self.absent]
        # another experiment's points, on tables that stand in for data that is not at hand
        if item.stand_in:
            found = found.beside(Found.of(shipped_points(item.stand_in)))
        return [answer(said, found, labels, self.complete) for said in item.said]

    @property
    def lines(self) -> list[Line]:
        """Every claim in every panel, beside what was measured there."""
        return [line for claim in self.claims for line in claim.lines]

    @property
    def words(self) -> str:
        """What was measured, when and with what; empty of a run that does not ship."""
        if self.made is None:
            return ""
        stopped = "A full run stopped before its end; what it had not reached is not yet measured"
        how = "Measured in full" if self.complete else stopped
        return f"{how}, {self.made.date}, dpviz {self.made.versions['dpviz']}"

    @property
    def current(self) -> bool:
        """Whether the experiment's code is still the one that was run."""
        return self.made is None or self.made.code == code_digest(self.experiment)


@dataclass(frozen=True, eq=False)
class RunStep:
    """A reproduction under way."""

    progress: Progress
    reproduction: Findings


def absent_data(experiment: Experiment) -> tuple[str, ...]:
    """Return the keys of the data sets of an experiment that are not at hand."""
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
    """Run the parts whose data is at hand; yield before the first and after each.

    Parts found in the store are not run again, so a run that was stopped goes
    on where it was. Close the generator to stop.

    Parameters
    ----------
    experiment : Experiment
    effort : Effort
    seed : int
    store : Store, optional
    workers, apart
        Who runs the parts: see `dpviz.simulation.jobs.work`.
    absent : sequence of str, optional
        Data sets that are not at hand, if somebody has looked.
    """
    absent = absent_data(experiment) if absent is None else tuple(absent)
    # what is absent is left out and told, so that the rest of a paper can be run
    parts = [part for part in experiment.parts(effort) if part.data not in absent]
    keys = _keys(experiment, parts, seed)
    jobs = [PartJob(experiment.key, *one) for one in zip(parts, repeat(seed), keys)]
    read: dict[int, Measurements] = {}
    with closing(engine.work(jobs, store, workers, apart=apart)) as steps:
        for step in steps:
            found = Measurements()
            for place in sorted(step.done):  # the same order however workers finish
                if place not in read:
                    read[place] = Measurements.from_arrays(step.done[place])
                found.add(read[place])
            complete = len(step.done) == len(jobs)
            yield RunStep(
                step.progress, Findings(experiment, effort, seed, found, absent, complete)
            )


def kept(experiment: Experiment, effort: Effort, store: Store | None, seed: int = 0) -> RunStep:
    """Return what earlier runs left in the store, without running anything."""
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
    """Run an experiment to its end; parameters as in `work`."""
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
        """Return the part's draws."""
        from dpviz.papers import experiment

        with one_blas_thread():
            shared = _shared(self.experiment, self.part.data)
            found = experiment(self.experiment).run(self.part, shared, self.seed)
        return found.to_arrays()


@lru_cache(maxsize=_SHARED_SETS)
def _shared(experiment_key: str, data: str) -> Any:
    from dpviz.papers import experiment

    return experiment(experiment_key).shared(data)


def _keys(experiment: Experiment, parts: Sequence[Part], seed: int) -> list[str]:
    """Return for each part the digest of all that its draws depend on."""
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
        # names too: two files that change places are other data
        digest.update(path.name.encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
