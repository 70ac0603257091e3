"""Work in a process of its own: the same result, and ended when nobody wants it any more."""

from __future__ import annotations

import operator
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dpviz.core import worker
from dpviz.core.cancelling import cancelled_by
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting, InvalidTable
from dpviz.core.seeding import generator
from dpviz.core.worker import Ended, WorkerProcess
from dpviz.simulation.jobs import Pool, work
from dpviz.simulation.tasks import learners, score_projected
from dpviz.simulation.tasks.scores import Labelled

PATIENCE = 20.0  # seconds; what is waited for takes a moment


class Unwanted(Exception):
    """Nobody wants the work any more."""


def refuse(name: str) -> None:
    raise InvalidSetting("n", "a number", name)


def gone(pid: int) -> bool:
    """Return whether a process has ended, waiting for it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_one_process_does_piece_after_piece() -> None:
    with WorkerProcess() as own:
        first = own.run(os.getpid)
        assert first != os.getpid()
        assert own.run(print, "this is no answer") is None
        large = np.arange(200_000.0)
        np.testing.assert_array_equal(own.run(operator.mul, large, 2.0), 2 * large)
        assert own.run(os.getpid) == first
        with pytest.raises(InvalidSetting, match="n must be a number; got 'x'"):
            own.run(refuse, "x")
        assert own.run(os.getpid) != first  # an error ends it, and the next piece starts another
        last = own.run(os.getpid)
    assert gone(last)


@pytest.mark.parametrize(
    "error",
    [
        InvalidSetting("n", "a number", "x", "--n"),
        CannotRun("gaussian", "no delta"),
        Ended(3),
        InvalidTable("No rows."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back_from_a_worker_as_they_were(error: DpvizError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert (str(back), vars(back)) == (str(error), vars(error))


def test_work_that_nobody_wants_ends() -> None:
    with WorkerProcess() as own:
        pid = own.run(os.getpid)
        began = time.monotonic()

        def stop() -> None:
            raise Unwanted

        with cancelled_by(stop), pytest.raises(Unwanted):
            own.run(time.sleep, 600)
        assert time.monotonic() - began < 5.0
    assert gone(pid)


def test_an_early_end_is_one_sentence() -> None:
    with (
        WorkerProcess() as own,
        pytest.raises(Ended, match=r"^The work ended .* \(status 3\), .*\.$"),
    ):
        own.run(os._exit, 3)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of Unix")
def test_it_ends_with_its_maker() -> None:
    script = (
        "import os, time\n"
        "from dpviz.core.worker import WorkerProcess\n"
        "own = WorkerProcess()\n"
        "print(own.run(os.getpid), flush=True)\n"
        "own.run(time.sleep, 600)\n"
    )
    maker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    pid = int(maker.stdout.readline())
    maker.kill()
    maker.communicate()
    assert gone(pid)


def test_inside_a_browser_it_is_done_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "in_browser", lambda: True)
    with WorkerProcess() as own:
        assert own.run(os.getpid) == os.getpid()


class _Job:
    key, size = "k", 1

    def run(self) -> dict[str, np.ndarray]:
        return {"pid": np.array([float(os.getpid())])}


def test_jobs_may_run_apart() -> None:
    def pid(pool: Pool) -> float:
        *_, last = work([_Job()], pool=pool)
        return float(last.done[0]["pid"][0])

    assert pid(Pool()) == os.getpid()
    assert pid(Pool(apart=True)) != os.getpid()


def test_a_long_fit_goes_apart_and_gives_the_same_score(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = generator(0, "apart")
    train = Labelled(rng.standard_normal((60, 3)), rng.integers(0, 2, 60))
    frames = np.eye(3)[None, :, :2]
    given = ("linear_svm", frames, train, train, 0)
    ticks: list[float] = []

    def score() -> float:
        return float(score_projected(*given, tick=lambda: ticks.append(0.0))[0])

    here = score_projected(*given)[0]
    assert score() == here
    fits = len(ticks)
    assert fits == 3 * learners.FOLDS + 1  # once before each fit, in this process
    monkeypatch.setattr(learners, "_LONG", 100)
    assert score() == here
    assert len(ticks) > fits

    def stop() -> None:
        raise Unwanted

    with pytest.raises(Unwanted):
        score_projected(*given, tick=stop)
    # who does not ask to be told waits in place
    monkeypatch.setattr(worker, "_started", stop)
    assert score_projected(*given)[0] == here


def test_what_counts_as_long() -> None:
    classes = np.arange(2_000) % 50
    svm, kernel = learners.LEARNERS["linear_svm"], learners.LEARNERS["kernel_ridge"]
    assert svm.is_long(np.zeros((2_000, 500)), classes)  # more than three minutes
    assert not svm.is_long(np.zeros((2_000, 10)), classes)
    assert kernel.is_long(np.zeros((2_001, 2)), classes)
    assert not kernel.is_long(np.zeros((2_000, 2)), classes)
