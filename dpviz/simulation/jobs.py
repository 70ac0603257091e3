"""The engine for long work: store finished parts, resume after a stop, report progress.

Sweeps, tasks and experiments define their jobs. `work` loads results of earlier runs, runs other
jobs here, in processes or on a cluster, and yields after each job. Pages have their own storage.
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
"""The result of a job: named arrays."""


class Job(Protocol):
    """One piece of work, small enough to repeat if it is lost.

    Attributes
    ----------
    key : str
        Name in a store: a digest of everything that the arrays depend on.
    size : int
        Weight of the job in the progress.
    """

    @property
    def key(self) -> str:
        """Name of the job in a store."""

    @property
    def size(self) -> int:
        """Weight of the job in the progress."""

    def run(self) -> Arrays | CannotRun:
        """Return the arrays, or the reason why the job cannot run, which is not stored."""


class Storage(Protocol):
    """A store of finished jobs, such as `dpviz.simulation.store.Store`."""

    def get(self, key: str) -> Arrays | None:
        """Return the arrays stored under a key, if any."""

    def put(self, key: str, metrics: Mapping[str, FloatArray]) -> None:
        """Store the arrays of a finished job."""


@dataclass(frozen=True)
class Progress:
    """Progress of the work.

    Attributes
    ----------
    done, total : int
        Sums of job sizes: cells of a sweep, rounds of a task, parts of an experiment.
    reused : int
        Part of ``done`` that earlier runs already stored.
    seconds : float
        Seconds since the start.
    left : float or None
        Seconds still to go, estimated from the jobs so far; None before the first job.
    """

    done: int
    total: int
    reused: int
    seconds: float
    left: float | None


WORKERS_RANGE = (1, 1_024)
UNDER_WAY = 64
"""Least number of jobs, with their data, that an executor holds at a time."""
ATTEMPTS = 3
"""How many times in a row all workers may end without a finished job."""


@dataclass(frozen=True, eq=False)
class JobStep:
    """State of the work.

    Attributes
    ----------
    progress : Progress
    done : dict of int to arrays
        Arrays of each finished job, by the job's index; grows as the work goes on.
    failed : dict of int to CannotRun
        Reasons why the other jobs failed; grows as the work goes on.
    """

    progress: Progress
    done: dict[int, Arrays]
    failed: dict[int, CannotRun] = field(default_factory=dict)


def kept(jobs: Sequence[Job], store: Storage | None) -> JobStep:
    """Return the results that earlier runs stored, without running anything."""
    results: dict[int, Arrays] = {}
    for place, job in enumerate(jobs if store is not None else ()):
        arrays = store.get(job.key) if store is not None else None
        if arrays is not None:
            results[place] = arrays
    count = sum(jobs[place].size for place in results)
    total = sum(job.size for job in jobs)
    return JobStep(Progress(count, total, count, 0.0, None), results)


def work(
    jobs: Sequence[Job],
    store: Storage | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    *,
    apart: bool = False,
) -> Generator[JobStep, None, None]:
    """Run the jobs that are not stored yet; yield before the first and after each.

    A job is stored before its step is yielded, so a stopped run resumes where it was. Close the
    generator to stop.

    Parameters
    ----------
    jobs : sequence of Job
    store : Storage, optional
    workers : int
        Number of processes on this machine; 1 means this process. With an executor, the number of
        jobs that it has at a time, if more than `UNDER_WAY`.
    executor : Executor, optional
        An executor that runs the jobs instead of this machine's processes, such as Dask's.
    apart : bool
        Whether a single worker has its own process, which ends at once if the caller's
        `dpviz.core.cancelling.check_cancelled` raises.

    Raises
    ------
    InvalidSetting
        If the number of workers is not legal.
    Ended
        If workers end repeatedly without finishing a job.
    """
    low, high = WORKERS_RANGE
    if not low <= workers <= high:
        rule = f"a whole number from {low} to {high}"
        raise InvalidSetting("workers", rule, workers, "--workers")
    start = time.monotonic()
    step = kept(jobs, store)
    done, failures = step.done, step.failed
    from_store, total = step.progress.done, step.progress.total
    yield step
    todo = [(place, job) for place, job in enumerate(jobs) if place not in done]
    count = from_store
    with one_blas_thread(), closing(_results(todo, workers, executor, apart)) as results:
        for place, answer in results:
            if isinstance(answer, CannotRun):
                failures[place] = answer
            else:
                if store is not None:
                    _keep(store, jobs[place].key, answer)
                done[place] = answer
            count += jobs[place].size
            seconds = time.monotonic() - start
            seconds_to_go = seconds / (count - from_store) * (total - count)
            yield JobStep(
                Progress(count, total, from_store, seconds, seconds_to_go), done, failures
            )


_Placed = tuple[int, Job]
_Finished = tuple[int, Arrays | CannotRun]


def _run(job: Job) -> Arrays | CannotRun:
    return job.run()


def _keep(store: Storage, key: str, arrays: Arrays) -> None:
    """Store a job's arrays; on failure only warn, because storing only saves time."""
    try:
        store.put(key, arrays)
    except CannotWrite as error:
        reason = str(error).partition(": ")[2]  # Drop the cell's name from the message.
        _say_once(f"dpviz: finished parts are not kept for the next run: {reason}")


@cache
def _say_once(sentence: str) -> None:
    if sys.stderr is not None:
        print(sentence, file=sys.stderr, flush=True)


def _results(
    todo: Sequence[_Placed], workers: int, executor: Executor | None, apart: bool
) -> Generator[_Finished, None, None]:
    """Yield the index and the arrays of each job as it finishes, in any order."""
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
        # If a worker process was killed, new processes repeat the jobs that were running.
        with nullcontext(executor) if executor is not None else Processes(workers) as pool:
            under_way: dict[Future[Arrays | CannotRun], _Placed] = {}
            try:
                while waiting or under_way:
                    while waiting and len(under_way) < most:
                        under_way[send(pool, _run, waiting[0][1])] = waiting[0]
                        waiting.popleft()
                    for future in wait(under_way, LOOK_SECONDS, FIRST_COMPLETED).done:
                        answer = future.result()
                        place, _ = under_way.pop(future)
                        lost = 0
                        yield place, answer
                    check_cancelled()
            except BrokenExecutor:
                waiting.extendleft(under_way.values())
                lost += 1
                if executor is not None or lost == ATTEMPTS:
                    raise Ended from None
            finally:
                for future in under_way:
                    future.cancel()
