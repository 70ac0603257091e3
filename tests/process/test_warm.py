"""A fork in the place of a start: what it is asked, says and leaves is as if it were started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

PROBE = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["PROBE"], sys.stdin.read(), __name__)
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("dpviz", "pages", "tests")))
print("said", file=sys.stderr)
sys.exit(7)
"""
WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def test_a_fork_is_asked_and_answers_like_python_itself(warm: Path, tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE, encoding="utf-8")

    def run(python: str) -> tuple[int, str, str]:
        found = subprocess.run(
            [python, "-m", "probe", "a", "b"], cwd=tmp_path, env={**os.environ, "PROBE": "set"},
            input="given", capture_output=True, text=True, check=False,
        )  # fmt: skip
        return found.returncode, found.stdout, found.stderr

    told = run(str(warm))
    assert told == run(sys.executable)
    assert (told[0], told[1].splitlines()[1], told[2]) == (7, "[]", "said\n")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_who_goes_takes_the_fork_along(warm: Path, tmp_path: Path, end: signal.Signals) -> None:
    (tmp_path / "waits.py").write_text(WAITS, encoding="utf-8")
    with subprocess.Popen(
        [warm, "-m", "waits"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as caller:
        assert caller.stdout is not None
        watched = os.pidfd_open(int(caller.stdout.readline()))
        caller.send_signal(end)
        assert caller.wait(30) != 0
        ready, _, _ = select.select([watched], [], [], 30)  # a process that has ended is readable
        assert ready
    os.close(watched)
