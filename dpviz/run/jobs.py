"""The one engine for long work: keep what is done, go on after a stop, report progress."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from dpviz.base.arrays import FloatArray
from dpviz.base.blas import one_blas_thread
from dpviz.errors import InvalidSetting
from dpviz.metrics import measure
from dpviz.prepare.prepared import Measured
from dpviz.run.cells import Cell, evaluate
from dpviz.run.store import Store


@dataclass(frozen=True)
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    done, total : int
        Cells.
    reused : int
        Of those done, how many came from the cache.
    seconds : float
        Since the start.
    left : float or None
        Seconds still to go, judged by the cells so far; None before the first.
    """

    done: int
    total: int
    reused: int
    seconds: float
    left: float | None


WORKERS_RANGE = (1, 1_024)
DASK = "dask"

_held = 0  # how many runs of this process keep BLAS on one thread


@dataclass(frozen=True)
class Pool:
    """Who runs the cells.

    Attributes
    ----------
    workers : int
        Processes or threads; with a cluster, how many cells are under way.
    backend : str
        A joblib backend: ``loky``, ``threading``, ``multiprocessing``, ``dask``, ...
    scheduler : str or None
        Address of a Dask scheduler.

    Raises
    ------
    InvalidSetting
        If the number or the combination is not legal.
    """

    workers: int = 1
    backend: str = "loky"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        low, high = WORKERS_RANGE
        if not low <= self.workers <= high:
            raise InvalidSetting(
                "workers", f"a whole number from {low} to {high}", self.workers, "--workers"
            )
        known = _backends()
        if self.backend not in known:
            words = f"one of {', '.join(known)}"
            raise InvalidSetting("backend", words, self.backend, "--backend")
        if (self.backend == DASK) != (self.scheduler is not None):
            given = "none" if self.scheduler is None else self.scheduler
            raise InvalidSetting(
                "scheduler", "given with --backend dask, and only then", given, "--scheduler"
            )


def _backends() -> list[str]:
    from joblib.parallel import BACKENDS, EXTERNAL_BACKENDS

    return sorted({*BACKENDS, *EXTERNAL_BACKENDS} - {"sequential"})


@dataclass(frozen=True, eq=False)
class Job:
    """A cell, the data it needs, and what becomes of it.

    Attributes
    ----------
    number : int
        Place in the work.
    cell : Cell
    measured : Measured
    metrics : tuple of str
        The metrics wanted.
    key : str
        Name in a store.
    store : Store or None
        Where the worker keeps the result before it returns it, so that an
        interruption loses nothing that was finished; None on a cluster, whose
        workers may not see this machine's folders.
    """

    number: int
    cell: Cell
    measured: Measured
    metrics: tuple[str, ...]
    key: str
    store: Store | None = None


Finished = tuple[int, dict[str, FloatArray]]
J = TypeVar("J")


def run_job(job: Job) -> Finished:
    """Run a cell, keep its metrics, and return its number and metrics."""
    if not _held:
        _one_blas_thread_for_good()
    outcome = evaluate(job.cell, job.measured)
    with one_blas_thread():
        metrics = measure(outcome, job.metrics)
    if job.store is not None:
        job.store.put(job.key, metrics)
    return job.number, metrics


@cache
def _one_blas_thread_for_good() -> None:
    # A worker may run cells in several threads at once, and a limit that one of them lifts when
    # it is done would be lifted for all. So a worker process keeps it for its life.
    one_blas_thread()


@contextmanager
def _blas_held() -> Iterator[None]:
    """Keep BLAS on one thread in this process while cells run in it or its threads."""
    global _held
    with one_blas_thread():
        _held += 1
        try:
            yield
        finally:
            _held -= 1


def run_jobs(
    jobs: Sequence[J], pool: Pool, run: Callable[[J], Finished]
) -> Generator[Finished, None, None]:
    """Yield the number and the arrays of each job as it finishes, in any order.

    Parameters
    ----------
    jobs : sequence
    pool : Pool
    run : callable
        What a worker does with a job, such as `run_job`.
    """
    with _blas_held():
        if pool.workers == 1 and pool.backend != DASK:
            for job in jobs:
                yield run(job)
        elif pool.backend == DASK:
            with _cluster(pool):
                yield from _with_joblib(jobs, pool, run)
        else:
            yield from _with_joblib(jobs, pool, run)


def _with_joblib(
    jobs: Sequence[J], pool: Pool, run: Callable[[J], Finished]
) -> Generator[Finished, None, None]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.parallel import get_active_backend

    with parallel_config(backend=pool.backend, n_jobs=pool.workers):
        if not get_active_backend()[0].supports_return_generator:
            # Such a backend hands results over all at once: a few cells at a time, so that an
            # interruption loses no more.
            for start in range(0, len(jobs), 4 * pool.workers):
                part = jobs[start : start + 4 * pool.workers]
                yield from Parallel(batch_size=1)(delayed(run)(job) for job in part)
            return
        # One cell a task: a batch of them would be lost together when interrupted.
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        results = parallel(delayed(run)(job) for job in jobs)
    try:
        # `yield from` would close the results before the warning is silenced.
        for finished in results:  # noqa: UP028
            yield finished
    finally:
        with warnings.catch_warnings():
            # Abandoned tasks are meant to be abandoned, and what is finished is in the store.
            warnings.simplefilter("ignore")
            results.close()


@contextmanager
def _cluster(pool: Pool) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise InvalidSetting(
            "backend",
            "one whose library is installed; dask comes with the extra dpviz[dask]",
            pool.backend,
            "--backend",
        ) from None
    try:
        client = Client(pool.scheduler, timeout="10s")
    except (OSError, ValueError):
        raise InvalidSetting(
            "scheduler",
            "the address of a Dask scheduler that answers, such as tcp://host:8786",
            pool.scheduler,
            "--scheduler",
        ) from None
    with client:
        yield client
