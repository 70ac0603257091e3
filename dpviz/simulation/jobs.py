"""The one engine for long work: keep what is done, go on after a stop, report progress.

Sweeps, tasks and experiments say what a job is; `work` finds what earlier runs kept, runs the rest
here, in processes or on a cluster, and yields after each. Pages bring a storage of their own.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.platform import in_browser
from dpviz.core.resources import one_blas_thread
from dpviz.core.worker import WorkerProcess

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

    def run(self) -> Arrays:
        """Do the work."""


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
DASK = "dask"

START_SECONDS = 4.0
"""What workers cost that are new to each mechanism as well: work they spare less of stays here."""
IDLE_SECONDS = 300.0
"""After which a worker that waits for the next sweep of its maker ends."""

IDLED_OUT = "A worker stopped while some jobs were given"
"""How joblib's warning of such a worker begins."""
MANAGER = "ExecutorManagerThread"
"""What joblib calls its own thread."""

_last_use = (0, -math.inf)  # how many workers were last done, and when
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
    apart : bool
        Whether a single worker is a process of its own, which ends at once where the caller's
        `dpviz.core.cancelling.check_cancelled` raises.

    Raises
    ------
    InvalidSetting
        If the number or the combination is not legal.
    """

    workers: int = 1
    backend: str = "loky"
    scheduler: str | None = None
    apart: bool = False

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

    # joblib leaves out the default where there are no processes; such a run stays in this one
    return sorted({*BACKENDS, *EXTERNAL_BACKENDS, "loky"} - {"sequential"})


@dataclass(frozen=True, eq=False)
class JobStep:
    """Work under way.

    Attributes
    ----------
    progress : Progress
    done : dict of int to arrays
        What each finished job made, by its place among the jobs. It grows as the work goes on.
    """

    progress: Progress
    done: dict[int, Arrays]


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
    jobs: Sequence[Job], store: Storage | None = None, pool: Pool | None = None
) -> Generator[JobStep, None, None]:
    """Run the jobs that are not kept yet; yield before the first and after each.

    A job is in the store before its step is yielded, so a run that was stopped goes on where it
    was. Close the generator to stop.

    Parameters
    ----------
    jobs : sequence of Job
    store : Storage, optional
    pool : Pool, optional
        Who runs them; this process if not given.
    """
    started = time.monotonic()
    pool = Pool() if pool is None else pool
    first = kept(jobs, store)
    done, reused, total = first.done, first.progress.done, first.progress.total
    yield first
    todo = [(place, job) for place, job in enumerate(jobs) if place not in done]
    if not todo:
        return
    finished = reused
    # The workers of a cluster may not see this machine's folders.
    far = pool.backend == DASK
    with closing(_run_all(todo, None if far else store, pool)) as results:
        for place, arrays in results:
            if far and store is not None:
                store.put(jobs[place].key, arrays)
            done[place] = arrays
            finished += jobs[place].size
            seconds = time.monotonic() - started
            left = seconds / (finished - reused) * (total - finished)
            yield JobStep(Progress(finished, total, reused, seconds, left), done)


_Placed = tuple[int, Job]
_Finished = tuple[int, Arrays]


def _run_one(placed: _Placed, store: Storage | None) -> _Finished:
    """Run a job where it is to be run, and keep what it made before handing it over."""
    if not _held:
        _one_blas_thread_for_good()
        _end_with_the_parent()
    place, job = placed
    arrays = job.run()
    if store is not None:
        store.put(job.key, arrays)
    return place, arrays


@cache
def _one_blas_thread_for_good() -> None:
    # A worker may run cells in several threads at once, and a limit that one of them lifts when
    # it is done would be lifted for all. So a worker process keeps it for its life.
    one_blas_thread()


@cache
def _end_with_the_parent() -> None:
    """End this worker soon after the process that started it, also if that was killed."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        # what started it, not what it hangs below now: that may have been killed already
        while parent is not None and os.getppid() == parent.pid:
            time.sleep(1.0)
        os._exit(1)

    if parent is not None:  # a process of this machine, and no thread of the caller's
        threading.Thread(target=watch, name="parent-watch", daemon=True).start()


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


@contextmanager
def sent_whole(classes: Iterable[type]) -> Iterator[None]:
    """Send classes that live outside this package to workers as code, not by name.

    A worker cannot import what was loaded from a path or typed into a notebook.
    """
    ours = __name__.partition(".")[0]
    modules = {sys.modules[cls.__module__] for cls in classes if cls.__module__ in sys.modules}
    strange = {one for one in modules if one.__name__.partition(".")[0] != ours}
    with ExitStack() as after:
        with suppress(ImportError):  # in the browser edition there are no workers
            pickler = import_module("cloudpickle")  # joblib's, and that of a Dask cluster
            for module in strange:
                pickler.register_pickle_by_value(module)
                after.callback(pickler.unregister_pickle_by_value, module)
        yield


def _run_all(
    jobs: Sequence[_Placed], store: Storage | None, pool: Pool
) -> Generator[_Finished, None, None]:
    """Yield the place and the arrays of each job as it finishes, in any order."""
    with _blas_held():
        if pool.apart and pool.workers == 1 and pool.backend != DASK:
            with WorkerProcess() as own:
                for job in jobs:
                    yield own.run(_run_one, job, store)
        elif in_browser() or (pool.workers == 1 and pool.backend != DASK):
            for job in jobs:
                yield _run_one(job, store)
        elif pool.backend == DASK:
            with _cluster(pool):
                yield from _with_joblib(jobs, store, pool)
        else:
            yield from _with_joblib(jobs, store, pool)


def _with_joblib(
    jobs: Sequence[_Placed], store: Storage | None, pool: Pool
) -> Generator[_Finished, None, None]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.parallel import get_active_backend

    global _last_use
    lone: dict[str, Any] = {}
    if pool.backend == "loky":
        # It says that another worker is started for one that idled out just now. As an error, which
        # it is to whoever wants no warnings, it would end joblib's thread, and nothing would come.
        warnings.filterwarnings("ignore", IDLED_OUT, UserWarning)
        # a worker that has no job yet must end with its parent too
        lone = {"initializer": _end_with_the_parent, "idle_worker_timeout": IDLE_SECONDS}
    waiting, asked = deque(jobs), threading.Event()
    cold = pool.backend == "loky" and not _warm(pool)
    if cold:
        yield from _until_workers_pay(waiting, store, pool)
        if not waiting:
            return

    def handed() -> Iterator[Any]:
        for job in _taken(waiting):
            if begun:  # so a worker is done with one
                asked.set()
            yield delayed(_run_one)(job, store)

    begun = False
    with parallel_config(backend=pool.backend, n_jobs=pool.workers, **lone):
        if not get_active_backend()[0].supports_return_generator:
            # Such a backend hands results over all at once: a few cells at a time, so that an
            # interruption loses no more.
            for start in range(0, len(jobs), 4 * pool.workers):
                part = jobs[start : start + 4 * pool.workers]
                yield from Parallel(batch_size=1)(delayed(_run_one)(job, store) for job in part)
            return
        # One cell a task: a batch of them would be lost together when interrupted.
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        _last_use = (0, -math.inf)
        results = parallel(handed())
    begun = True
    try:
        # While workers start, work goes on here.
        for job in _taken(waiting) if cold else ():
            yield _run_one(job, store)
            if asked.is_set():
                break
        # `yield from` would close the results before the warning is silenced.
        for finished in results:  # noqa: UP028
            yield finished
        _last_use = (pool.workers, time.monotonic())
    finally:
        with warnings.catch_warnings(), _dropped_jobs():
            # Abandoned tasks are meant to be abandoned, and what is finished is in the store.
            warnings.simplefilter("ignore")
            results.close()


@contextmanager
def _dropped_jobs() -> Iterator[None]:
    """Let joblib's thread, ended with its workers, say nothing of a job that came just then.

    It drops all jobs, and then looks up the one that another thread has handed it meanwhile.
    """
    before = threading.excepthook

    def hook(told: threading.ExceptHookArgs) -> None:
        thread = told.thread
        if told.exc_type is not KeyError or thread is None or thread.name != MANAGER:
            before(told)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


def _until_workers_pay(
    waiting: deque[_Placed], store: Storage | None, pool: Pool
) -> Generator[_Finished, None, None]:
    """Do jobs here until those that are left are worth the start of workers, judged by these."""
    spent, done = 0.0, 0
    for job in _taken(waiting):
        began = time.thread_time()  # a busy machine makes the start of workers slow as well
        finished = _run_one(job, store)
        spent, done = spent + time.thread_time() - began, done + 1
        yield finished
        if spent / done * len(waiting) * (1 - 1 / pool.workers) > START_SECONDS:
            return


def _taken(waiting: deque[_Placed]) -> Iterator[_Placed]:
    """Yield what waits until nothing does; others may take from it meanwhile."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


def _warm(pool: Pool) -> bool:
    """Return whether so many workers have worked here, and wait for more."""
    workers, ended = _last_use
    return workers == pool.workers and time.monotonic() - ended < IDLE_SECONDS


@contextmanager
def _cluster(pool: Pool) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise InvalidSetting(
            "backend",
            'one whose library is installed (python -m pip install "dask[dataframe,distributed]")',
            pool.backend,
            "--backend",
        ) from None
    client = None
    with suppress(OSError, ValueError):
        client = Client(pool.scheduler, timeout="10s")
    if client is None:
        # One that found nobody lies in a circle, and closes itself when it is collected. Within the
        # start of the next one, which holds the lock that this takes, that would never end.
        gc.collect()
        raise InvalidSetting(
            "scheduler",
            "the address of a Dask scheduler that answers, such as tcp://host:8786",
            pool.scheduler,
            "--scheduler",
        )
    with client:
        yield client
