"""Progress on a terminal."""

from __future__ import annotations

import sys
import time

from dpviz.core.resources import gigabytes
from dpviz.report.sentences.phrases import duration
from dpviz.simulation.jobs import Progress

LONG = 10.0
"""Show the expected duration from this number of seconds on."""

MUCH = 1e9
"""Show the expected memory from this number of bytes on."""


_LOG_SECONDS = 10.0
_SEEN_SECONDS = 0.1  # Progress is shown at most once in this many seconds.


class Line:
    """Show a long run's progress on stderr: in place on a terminal, every ten seconds in a log."""

    def __init__(self, noun: str = "cell") -> None:
        self.words = f"no {noun}"
        self._noun, self._shown = noun, time.monotonic()

    def show(self, *step: Progress | int | str) -> None:
        """Show the progress of a run, given a `Progress`, (done, total, name) or a name."""
        *counts, last = step
        words = f"{'/'.join(map(str, counts))} {last}".lstrip()
        if isinstance(last, Progress):
            note = f", including {last.reused} from the cache" if last.reused else ""
            self.words = words = f"{last.done} of {last.total} {self._noun}s{note}"
            words += "" if last.left is None else f", about {duration(last.left)} left"
        now, person = time.monotonic(), sys.stderr.isatty()
        if now - self._shown < (_SEEN_SECONDS if person else _LOG_SECONDS):
            return
        self._shown = now
        start, end = ("\r\x1b[K", "") if person else ("", "\n")
        print(f"{start}{words}", end=end, file=sys.stderr, flush=True)


def end_progress() -> None:
    """Clear the progress line."""
    if sys.stderr.isatty():
        # This code moves to the start of the line and clears the line.
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def tell_ahead(seconds: float) -> None:
    """Print the expected duration of a run on stderr, if the run is long."""
    if seconds > LONG:
        print(f"this run will take about {duration(seconds)}", file=sys.stderr, flush=True)


def tell_memory(size: float) -> None:
    """Print the expected memory of a run on stderr, if the run needs much."""
    if size > MUCH:
        print(f"this run will need about {gigabytes(size)} of memory", file=sys.stderr, flush=True)
