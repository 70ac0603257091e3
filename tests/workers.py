"""Workers have every job, however little there is to do: for tests that are about workers.

``python -m tests.workers sweep …`` is the command line with it.
"""

from __future__ import annotations

import sys

import pytest

from dpviz.core.plugins import with_plugins


def every_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no sweep begin in its own process."""
    from dpviz.simulation import jobs  # after plugins

    monkeypatch.setattr(jobs, "_warm", lambda _: True)


if __name__ == "__main__":
    sys.argv[1:] = with_plugins(sys.argv[1:])
    every_job(pytest.MonkeyPatch())
    from dpviz.cli import main

    sys.exit(main())
