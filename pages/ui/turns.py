"""Turns between the sessions of one server: who has used least of late runs next.

Python runs one thread at a time, so many pages that run at once only slow each other down; and
threads share evenly, so that somebody who moves one thing now and then would wait for all that
others ask for again and again. A turn lasts one run of a page. Long work gives way in between.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_RATE = 2.0  # runs of one session that begin in a second, while another waits
_FORGOTTEN = 10.0  # seconds after which a third of what a session has used still counts
_COURTESY = 1.0  # seconds that who gives way waits at most
_LOOK_SECONDS = 0.2


@dataclass(eq=False)
class _Turn:
    """One run of a page: whose it is, and since when it holds a place."""

    session: str
    began: float = math.inf


class Turns:
    """Whose page runs now, and who waits.

    Parameters
    ----------
    places : int
        How many run at a time.
    clock : callable
        Seconds.
    """

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._places, self._clock = places, clock
        self._news = threading.Condition()
        self._running: list[_Turn] = []
        self._waiting: list[_Turn] = []
        self._began: dict[str, float] = {}
        self._used: dict[str, tuple[float, float]] = {}

    @contextmanager
    def turn(self, session: str, look: Callable[[], object]) -> Iterator[Callable[[], None]]:
        """Wait for a place, hold it inside, and give it back.

        Parameters
        ----------
        session : str
        look : callable
            Called again and again while waiting; what it raises ends the waiting.

        Yields
        ------
        callable
            Lets somebody go first who waits and has used less, and goes on within a second: who
            calls it may hold a lock that the others need.
        """
        turn = _Turn(session)
        self._take(turn, look, math.inf)
        try:
            yield lambda: self._give_way(turn)
        finally:
            self._give(turn)

    def waiting(self, session: str) -> bool:
        """Return whether a session waits."""
        return any(one.session == session for one in self._waiting)

    def _take(self, turn: _Turn, look: Callable[[], object], patience: float) -> None:
        end = self._clock() + patience
        with self._news:
            self._waiting.append(turn)
        try:
            while True:
                look()
                with self._news:
                    now = self._clock()
                    if self._next() is turn or now >= end:
                        self._running.append(turn)
                        turn.began = self._began[turn.session] = now
                        return
                    self._news.wait(min(_LOOK_SECONDS, max(end - now, 0.0)))
        finally:
            with self._news:
                self._waiting.remove(turn)
                self._news.notify_all()

    def _give(self, turn: _Turn) -> None:
        with self._news:
            if turn in self._running:
                self._used[turn.session] = (self._recent(turn), self._clock())
                self._running.remove(turn)
            for one, (used, at) in list(self._used.items()):
                if used * self._faded(at) < 1e-3:  # long quiet, or gone
                    del self._used[one], self._began[one]
            self._news.notify_all()

    def _give_way(self, turn: _Turn) -> None:
        with self._news:
            less = self._recent(turn)
            if not any(self._recent(one) < less for one in self._ready()):
                return
        self._give(turn)
        self._take(turn, lambda: None, _COURTESY)

    def _next(self) -> _Turn | None:
        """Return who takes the next place, if one is free."""
        ready = self._ready() if len(self._running) < self._places else []
        return min(ready, key=self._recent, default=None)

    def _ready(self) -> list[_Turn]:
        """Return who waits, without those who began just now while others wait."""
        if len({one.session for one in self._waiting}) == 1:
            return self._waiting
        latest = self._clock() - 1 / _RATE
        return [one for one in self._waiting if self._began.get(one.session, latest) <= latest]

    def _recent(self, turn: _Turn) -> float:
        """Return the seconds that a session has used, this turn among them; older ones fade."""
        used, at = self._used.get(turn.session, (0.0, 0.0))
        return used * self._faded(at) + max(self._clock() - turn.began, 0.0)

    def _faded(self, at: float) -> float:
        return math.exp((at - self._clock()) / _FORGOTTEN)
