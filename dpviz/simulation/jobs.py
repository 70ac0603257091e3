"""The one engine for long work: keep what is done, go on after a stop, report progress.

Sweeps, tasks and experiments say what a job is; `work` finds what earlier runs kept, runs the rest
here, in processes or on a cluster, and yields after each. Pages bring a storage of their own.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import CannotRun, CannotWrite, InvalidSetting
from dpviz.core.platform import in_browser
from dpviz.core.resources import one_blas_thread
from dpviz.core.worker import LOOK_SECONDS, Ended, Processes, own_process, send

Arrays = dict[str, FloatArray]
"""What a job makes: named arrays."""


class Job(Protocol):
    """One piece of work, small enough to lose.

    Attributes
    ----------
    key : str
        Its name in a store: a digest of all that its arrays depend on.
    size : int
        How much of the progress it counts for.
    """

    @property
    def key(self) -> str:
        """Name in a store."""

    @property
    def size(self) -> int:
        """Share of the progress."""

    def run(self) -> Arrays | CannotRun:
        """Do the work; what is returned in place of arrays says why it fails, and is not kept."""


class Storage(Protocol):
    """Where finished jobs are kept, such as `dpviz.simulation.store.Store`."""

    def get(self, key: str) -> Arrays | None:
        """Return what was kept under a key."""

    def put(self, key: str, metrics: Mapping[str, FloatArray]) -> None:
        """Keep the arrays of a finished job."""


@dataclass(frozen=True)
class Progress:
    """How far the work is.

    Attributes
    ----------
    done, total : int
        Sizes of jobs: cells of a sweep, rounds of a task, parts of an experiment.
    reused : int
        Of those done, how many an earlier run had kept.
    seconds : float
        Since the start.
    left : float or None
        Seconds still to go, judged by the jobs so far; None before the first.
    """

    done: int
    total: int
    reused: int
    seconds: float
    left: float | None


WORKERS_RANGE = (1, 1_024)
UNDER_WAY = 64
"""Jobs that an executor is given at a time, at least: their data waits there."""
ATTEMPTS = 3
"""How often in a row all workers may end with nothing done."""


@dataclass(frozen=True, eq=False)
class JobStep:
    """Work under way.

    Attributes
    ----------
    progress : Progress
    done : dict of int to arrays
        What each finished job made, by its place among the jobs. It grows as the work goes on.
    failed : dict of int to CannotRun
        Why others made nothing; it grows too.
    """

    progress: Progress
    done: dict[int, Arrays]
    failed: dict[int, CannotRun] = field(default_factory=dict)


def kept(jobs: Sequence[Job], store: Storage | None) -> JobStep:
    """Return what earlier runs kept, without running anything."""
    done: dict[int, Arrays] = {}
    for place, job in enumerate(jobs if store is not None else ()):
        arrays = store.get(job.key) if store is not None else None
        if arrays is not None:
            done[place] = arrays
    finished = sum(jobs[place].size for place in done)
    total = sum(job.size for job in jobs)
    return JobStep(Progress(finished, total, finished, 0.0, None), done)


def work(
    jobs: Sequence[Job],
    store: Storage | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    *,
    apart: bool = False,
) -> Generator[JobStep, None, None]:
    """Run the jobs that are not kept yet; yield before the first and after each.

    A job is in the store before its step is yielded, so a run that was stopped goes on where it
    was. Close the generator to stop.

    Parameters
    ----------
    jobs : sequence of Job
    store : Storage, optional
    workers : int
        Processes of this machine; with one the jobs run in this process. With an executor, how
        many jobs it has at a time, if more than `UNDER_WAY`.
    executor : Executor, optional
        Who runs them in place of processes of this machine, such as that of a Dask client.
    apart : bool
        Whether a single worker is a process of its own, which ends at once where the caller's
        `dpviz.core.cancelling.check_cancelled` raises.

    Raises
    ------
    InvalidSetting
        If the number of workers is not legal.
    Ended
        If workers end again and again with no job done between.
    """
    low, high = WORKERS_RANGE
    if not low <= workers <= high:
        allowed = f"a whole number from {low} to {high}"
        raise InvalidSetting("workers", allowed, workers, "--workers")
    started = time.monotonic()
    step = kept(jobs, store)
    done, failed = step.done, step.failed
    reused, total = step.progress.done, step.progress.total
    yield step
    todo = [(place, job) for place, job in enumerate(jobs) if place not in done]
    finished = reused
    with one_blas_thread(), closing(_results(todo, workers, executor, apart)) as results:
        for place, made in results:
            if isinstance(made, CannotRun):
                failed[place] = made
            else:
                if store is not None:
                    _keep(store, jobs[place].key, made)
                done[place] = made
            finished += jobs[place].size
            seconds = time.monotonic() - started
            seconds_to_go = seconds / (finished - reused) * (total - finished)
            yield JobStep(Progress(finished, total, reused, seconds, seconds_to_go), done, failed)


_Placed = tuple[int, Job]
_Finished = tuple[int, Arrays | CannotRun]


def _run(job: Job) -> Arrays | CannotRun:
    return job.run()


def _keep(store: Storage, key: str, arrays: Arrays) -> None:
    """Keep what a job made; where that cannot be, say so and go on: it saves time, no more."""
    try:
        store.put(key, arrays)
    except CannotWrite as error:
        reason = str(error).partition(": ")[2]  # without the name of one cell
        _say_once(f"dpviz: finished parts are not kept for the next run: {reason}")


@cache
def _say_once(sentence: str) -> None:
    if sys.stderr is not None:
        print(sentence, file=sys.stderr, flush=True)


def _results(
    todo: Sequence[_Placed], workers: int, executor: Executor | None, apart: bool
) -> Generator[_Finished, None, None]:
    """Yield the place and the arrays of each job as it finishes, in any order."""
    if apart:
        with own_process() as run:
            for place, job in todo:
                yield place, run(_run, job)
    elif executor is None and (workers == 1 or len(todo) < 2 or in_browser()):
        for place, job in todo:
            yield place, job.run()
    else:
        yield from _elsewhere(deque(todo), workers, executor)


def _elsewhere(
    waiting: deque[_Placed], workers: int, executor: Executor | None
) -> Generator[_Finished, None, None]:
    most = 2 * workers if executor is None else max(workers, UNDER_WAY)
    lost = 0
    while waiting:
        # those of a worker that was killed are gone, and others do what was under way
        with nullcontext(executor) if executor is not None else Processes(workers) as pool:
            under_way: dict[Future[Arrays | CannotRun], _Placed] = {}
            try:
                while waiting or under_way:
                    while waiting and len(under_way) < most:
                        under_way[send(pool, _run, waiting[0][1])] = waiting[0]
                        waiting.popleft()
                    for future in wait(under_way, LOOK_SECONDS, FIRST_COMPLETED).done:
                        made = future.result()
                        place, _ = under_way.pop(future)
                        lost = 0
                        yield place, made
                    check_cancelled()
            except BrokenExecutor:
                waiting.extendleft(under_way.values())
                lost += 1
                if executor is not None or lost == ATTEMPTS:
                    raise Ended from None
            finally:
                for future in under_way:
                    future.cancel()
