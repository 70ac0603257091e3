"""Progress on a terminal."""

from __future__ import annotations

import sys
import time

from dpviz.core.resources import gigabytes
from dpviz.report.sentences.phrases import duration
from dpviz.simulation.jobs import Progress

LONG = 10.0
"""Seconds of a run from which its length is said before it starts."""

MUCH = 1e9
"""Bytes from which the memory of a run is said before it starts."""


_LOG_SECONDS = 10.0
_SEEN_SECONDS = 0.1  # a download has thousands of steps a second


class Line:
    """Shows a long run's progress on stderr: in place for a person, every ten seconds for a log."""

    def __init__(self, noun: str = "cell") -> None:
        self.words = f"no {noun}"
        self._noun, self._shown = noun, time.monotonic()

    def show(self, *step: Progress | int | str) -> None:
        """Show how far a run is: its progress, or (done, total, name), or a name."""
        *counts, last = step
        words = f"{'/'.join(map(str, counts))} {last}".lstrip()
        if isinstance(last, Progress):
            reused = f", {last.reused} of them from the cache" if last.reused else ""
            self.words = words = f"{last.done} of {last.total} {self._noun}s{reused}"
            words += "" if last.left is None else f", about {duration(last.left)} left"
        now, person = time.monotonic(), sys.stderr.isatty()
        if now - self._shown < (_SEEN_SECONDS if person else _LOG_SECONDS):
            return
        self._shown = now
        start, end = ("\r\x1b[K", "") if person else ("", "\n")
        print(f"{start}{words}", end=end, file=sys.stderr, flush=True)


def end_progress() -> None:
    """Clear the line of progress."""
    if sys.stderr.isatty():
        # back to the start, and clear to the end of the line
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def tell_ahead(seconds: float) -> None:
    """Say on stderr how long a run will take, if that is long."""
    if seconds > LONG:
        print(f"this will take about {duration(seconds)}", file=sys.stderr, flush=True)


def tell_memory(size: float) -> None:
    """Say on stderr how much memory a run will take, if that is much."""
    if size > MUCH:
        print(f"this will take about {gigabytes(size)} of memory", file=sys.stderr, flush=True)
