"""Work in its own process gives the same result, and ends when nobody needs it."""

from __future__ import annotations

import operator
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dpviz.core.cancelling import cancelled_by
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting, InvalidTable
from dpviz.core.worker import Ended, own_process
from tests.process.fatal import gone


class Unwanted(Exception):
    """Raised when nobody needs the work."""


def refuse(name: str) -> None:
    raise InvalidSetting("n", "a number", name)


def test_one_process_does_piece_after_piece() -> None:
    with own_process() as run:
        first = run(os.getpid)
        assert first != os.getpid()
        assert run(print, "this is no answer") is None
        large = np.arange(200_000.0)
        np.testing.assert_array_equal(run(operator.mul, large, 2.0), 2 * large)
        assert run(os.getpid) == first
        with pytest.raises(InvalidSetting, match="n must be a number; got 'x'"):
            run(refuse, "x")
        assert run(os.getpid) == first
    assert gone(first)


@pytest.mark.parametrize(
    "error",
    [
        InvalidSetting("n", "a number", "x", "--n"),
        CannotRun("gaussian", "no delta"),
        Ended(),
        InvalidTable("No rows."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back_from_a_worker_as_they_were(error: DpvizError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert (str(back), vars(back)) == (str(error), vars(error))


def test_work_that_nobody_wants_ends() -> None:
    with own_process() as run:
        pid = run(os.getpid)
        began = time.monotonic()

        def stop() -> None:
            raise Unwanted

        with cancelled_by(stop), pytest.raises(Unwanted):
            run(time.sleep, 600)
        assert time.monotonic() - began < 5.0
    assert gone(pid)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of Unix")
def test_it_ends_with_its_maker() -> None:
    script = (
        "import os, time\n"
        "from dpviz.core.worker import own_process\n"
        "with own_process() as run:\n"
        "    print(run(os.getpid), flush=True)\n"
        "    run(time.sleep, 600)\n"
    )
    maker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    pid = int(maker.stdout.readline())
    maker.kill()
    maker.communicate()
    assert gone(pid)
