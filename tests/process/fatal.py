"""A job that kills its process, in a module of its own so that a worker imports little."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpviz.simulation.jobs import Arrays


@dataclass(frozen=True)
class Fatal:
    """A job that records its process; some jobs kill the process, the first time or each time."""

    number: int
    folder: Path
    dies: int = 0
    size: int = 1

    @property
    def key(self) -> str:
        """The job's name."""
        return str(self.number)

    def run(self) -> Arrays:
        """Return the process id."""
        deaths = list(self.folder.glob(f"died {self.number} *"))
        if len(deaths) < self.dies:
            (self.folder / f"died {self.number} {len(deaths)}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"process": np.array([float(os.getpid())])}


def gone(process: int) -> bool:
    """Return whether a process ends within 20 seconds."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False
