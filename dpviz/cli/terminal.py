"""Progress and tables on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from dpviz.core.resources import gigabytes
from dpviz.report.sentences.phrases import duration, text_table
from dpviz.simulation.jobs import Progress

LONG = 10.0
"""Seconds of a run from which its length is said before it starts."""

MUCH = 1e9
"""Bytes from which the memory of a run is said before it starts."""


_LOG_SECONDS = 10.0


class Watch:
    """Shows a long run's progress on stderr: in place for a person, in a few lines for a log."""

    def __init__(self, noun: str = "cell") -> None:
        self.words = f"no {noun}"
        self._noun, self._shown = noun, 0.0

    def show(self, progress: Progress) -> None:
        """Take note of the progress, and show it now and then."""
        reused = f", {progress.reused} of them from the cache" if progress.reused else ""
        self.words = f"{progress.done} of {progress.total} {self._noun}s{reused}"
        person = sys.stderr.isatty()
        # a person sees a line move; a log gets a line now and then
        if progress.seconds - self._shown < (0.2 if person else _LOG_SECONDS):
            return
        self._shown = progress.seconds
        left = "" if progress.left is None else f", about {duration(progress.left)} left"
        start, end = ("\r\x1b[K", "") if person else ("", "\n")
        print(f"{start}{self.words}{left}", end=end, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line."""
        end_progress()


class Steps:
    """Shows the steps of a run on stderr: in place for a person, every ten seconds for a log."""

    def __init__(self) -> None:
        self._shown = time.monotonic()

    def show(self, *said: int | str) -> None:
        """Show (done, total, name), or a name."""
        now = time.monotonic()
        if sys.stderr.isatty():
            show_progress(*said)
        elif now - self._shown >= _LOG_SECONDS:
            self._shown = now
            print(_step_words(said), file=sys.stderr, flush=True)


def _step_words(said: Sequence[int | str]) -> str:
    *counts, name = said
    return f"{'/'.join(map(str, counts))} {name}".lstrip()


def show_progress(*said: int | str) -> None:
    """Show progress on stderr, where a person may be watching: (done, total, name) or a name."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{_step_words(said)}", end="", file=sys.stderr, flush=True)


def tell_ahead(seconds: float) -> None:
    """Say on stderr how long a run will take, if that is long."""
    if seconds > LONG:
        print(f"this will take about {duration(seconds)}", file=sys.stderr, flush=True)


def tell_memory(size: float) -> None:
    """Say on stderr how much memory a run will take, if that is much."""
    if size > MUCH:
        print(f"this will take about {gigabytes(size)} of memory", file=sys.stderr, flush=True)


def end_progress() -> None:
    """Clear the line of progress."""
    if sys.stderr.isatty():
        # back to the start, and clear to the end of the line
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of cells under a header, in columns of equal width."""
    print(text_table(header, rows))
