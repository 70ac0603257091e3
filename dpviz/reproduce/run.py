"""Run an experiment part by part: resumable, in one process or in several."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from dpviz.base.arrays import FloatArray
from dpviz.base.blas import one_blas_thread
from dpviz.datasets import remote
from dpviz.reproduce.experiment import Effort, Experiment, Part
from dpviz.reproduce.lines import Agreement, Line
from dpviz.reproduce.measurements import Measurements
from dpviz.run.jobs import Pool, Progress, run_jobs
from dpviz.run.store import Store, source_digest

_SHARED_SETS = 2  # tables kept in memory at a time, per process


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What an experiment found, so far or in the end.

    Attributes
    ----------
    experiment : Experiment
    effort : Effort
    seed : int
    found : Measurements
    absent : tuple of str
        Keys of the data sets that are not at hand; their parts were not run.
    complete : bool
        Whether all other parts were run.
    """

    experiment: Experiment
    effort: Effort
    seed: int
    found: Measurements
    absent: tuple[str, ...]
    complete: bool

    @property
    def lines(self) -> list[Line]:
        """Every reported number beside what was measured, and what was not measured.

        What is neither reported nor measured has no line.
        """
        info = self.experiment.info
        missing = [
            Line(info.place, item.item, item.reported, "", Agreement.NOT_MEASURED, item.reason)
            for item in info.not_measured
        ]
        found = [
            line for line in self.experiment.lines(self.found) if line.reported or line.measured
        ]
        if not self.complete:
            found = [_pending(line) for line in found]
        return [*found, *missing]


def _pending(line: Line) -> Line:
    """Return a line of an unfinished run, which cannot tell yet what is absent."""
    if line.agreement is not Agreement.ABSENT:
        return line
    return replace(line, agreement=Agreement.PENDING, note="Not measured yet.")


@dataclass(frozen=True, eq=False)
class Step:
    """A reproduction under way."""

    progress: Progress
    reproduction: Reproduction


def absent_data(experiment: Experiment) -> tuple[str, ...]:
    """Return the keys of the data sets of an experiment that are not at hand."""
    return tuple(key for key in experiment.data() if not remote.at_hand(key))


def work(
    experiment: Experiment,
    effort: Effort,
    *,
    seed: int = 0,
    store: Store | None = None,
    pool: Pool | None = None,
) -> Generator[Step, None, None]:
    """Run the parts whose data is at hand; yield before the first and after each.

    Parts found in the store are not run again, so a run that was stopped goes
    on where it was. Close the generator to stop.

    Parameters
    ----------
    experiment : Experiment
    effort : Effort
    seed : int
    store : Store, optional
    pool : Pool, optional
        Workers on this machine; default this process.
    """
    started = time.monotonic()
    pool = Pool() if pool is None else pool
    absent = absent_data(experiment)
    parts = [part for part in experiment.parts(effort) if part.data not in absent]
    jobs = [
        PartJob(number, experiment.key, part, seed, _key(experiment, part, seed), store)
        for number, part in enumerate(parts)
    ]
    done: dict[int, Measurements] = {}
    if store is not None:
        for job in jobs:
            kept = store.get(job.key)
            if kept is not None:
                done[job.number] = Measurements.from_arrays(kept)
    reused = len(done)
    todo = [job for job in jobs if job.number not in done]

    def step() -> Step:
        found = Measurements()
        for number in sorted(done):  # the same order however workers finish
            found.add(done[number])
        seconds, computed = time.monotonic() - started, len(done) - reused
        left = seconds / computed * (len(jobs) - len(done)) if computed else None
        progress = Progress(len(done), len(jobs), reused, seconds, left)
        complete = len(done) == len(jobs)
        return Step(progress, Reproduction(experiment, effort, seed, found, absent, complete))

    yield step()
    if todo:
        with closing(run_jobs(todo, pool, run_part)) as results:
            for number, arrays in results:
                done[number] = Measurements.from_arrays(arrays)
                yield step()


def kept(experiment: Experiment, effort: Effort, store: Store | None, seed: int = 0) -> Step:
    """Return what earlier runs left in the store, without running anything."""
    with closing(work(experiment, effort, seed=seed, store=store)) as steps:
        return next(steps)


def reproduce(
    experiment: Experiment,
    effort: Effort,
    *,
    seed: int = 0,
    store: Store | None = None,
    pool: Pool | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Run an experiment to its end; parameters as in `work`."""
    steps: Iterator[Step] = work(experiment, effort, seed=seed, store=store, pool=pool)
    for step in steps:
        last = step
        if progress is not None:
            progress(step.progress)
    return last.reproduction


@dataclass(frozen=True, eq=False)
class PartJob:
    """A part, and what becomes of it; see `dpviz.run.jobs.Job`."""

    number: int
    experiment: str
    part: Part
    seed: int
    key: str
    store: Store | None


def run_part(job: PartJob) -> tuple[int, dict[str, FloatArray]]:
    """Run a part, keep its draws, and return its number and draws."""
    from dpviz.reproduce import experiment

    with one_blas_thread():
        shared = _shared(job.experiment, job.part.data)
        found = experiment(job.experiment).run(job.part, shared, job.seed)
    arrays = found.to_arrays()
    if job.store is not None:
        job.store.put(job.key, arrays)
    return job.number, arrays


@lru_cache(maxsize=_SHARED_SETS)
def _shared(experiment_key: str, data: str) -> Any:
    from dpviz.reproduce import experiment

    return experiment(experiment_key).shared(data)


def _key(experiment: Experiment, part: Part, seed: int) -> str:
    """Return the digest of all that a part's draws depend on."""
    facts = [
        source_digest(),
        _module_digest(experiment.key),
        experiment.key,
        repr(part),
        repr(seed),
        _data_digest(remote.fetch(part.data)) if part.data else "",
    ]
    return hashlib.blake2b("\x1f".join(facts).encode(), digest_size=20).hexdigest()


@cache
def _module_digest(key: str) -> str:
    """Return the digest of an experiment's paper and of what all papers share.

    Other papers are left out, so that a change to one does not spoil the parts of the rest.
    """
    from dpviz.reproduce import experiment

    paper = Path(inspect.getfile(type(experiment(key)))).resolve().parent
    shared = Path(__file__).resolve().parent
    return _digest(sorted({*paper.glob("*.py"), *shared.glob("*.py")}))


@cache
def _data_digest(folder: Path) -> str:
    return _digest(sorted(path for path in folder.rglob("*") if path.is_file()))


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        digest.update(path.name.encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
