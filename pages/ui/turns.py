"""Turns between the sessions of one server: the session with the least recent use runs next.

Python runs one thread at a time, so many pages that run at once only slow each other down. Threads
share evenly, so an occasional visitor would wait for all work that other visitors request again and
again. A turn lasts one run of a page. Long work gives way in between, and no run holds a place
while it waits for the computation of another run (`pages.ui.ask`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_RATE = 2.0  # A session may begin two runs per second while another session waits.
_FORGOTTEN = 10.0  # After 10 seconds, a third of a session's used time still counts.
_LOOK_SECONDS = 0.2


@dataclass(eq=False)
class Turn:
    """One run of a page, with its session and the time at which it got a place."""

    session: str
    look: Callable[[], object]
    turns: Turns
    began: float = math.inf
    resumes: bool = False
    place: threading.Event = field(default_factory=threading.Event)

    def give_way(self) -> None:
        """Let waiting sessions that have used less time go first."""
        if self.turns.others_first(self):
            with self.paused():
                pass

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Give up the place for the enclosed work, then wait for one unless the work is ended."""
        self.turns.give(self)
        yield
        self.turns.take(self)


class Turns:
    """Running pages and waiting pages.

    Parameters
    ----------
    places : int
        Maximum number of pages that run at a time.
    clock : callable
        Seconds.
    """

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._places, self._clock = places, clock
        self._lock = threading.Lock()
        self._running: list[Turn] = []
        self._waiting: list[Turn] = []
        self._began: dict[str, float] = {}
        self._used: dict[str, tuple[float, float]] = {}

    @contextmanager
    def turn(self, session: str, look: Callable[[], object]) -> Iterator[Turn]:
        """Wait for a place, hold it during the enclosed work, and give it back.

        Parameters
        ----------
        session : str
        look : callable
            Function that is called repeatedly while waiting; an exception from it ends the waiting.
        """
        turn = Turn(session, look, self)
        try:
            self.take(turn)
            yield turn
        finally:
            self.give(turn)

    def waiting(self, session: str) -> bool:
        """Return whether a session waits."""
        with self._lock:
            return any(one.session == session for one in self._waiting)

    def take(self, turn: Turn) -> None:
        """Wait for a place; a run that is ended while waiting must still give its place back."""
        with self._lock:
            turn.place.clear()
            self._waiting.append(turn)
            self._fill()
        turn.look()
        while not turn.place.wait(_LOOK_SECONDS):
            turn.look()
            with self._lock:
                self._fill()  # Sessions that have just begun a run may have to wait.

    def give(self, turn: Turn) -> None:
        """Give a place back, or stop waiting for one."""
        with self._lock:
            if turn in self._running:
                self._used[turn.session] = (self._recent(turn), self._clock())
                self._running.remove(turn)
                turn.began = math.inf
            if turn in self._waiting:
                self._waiting.remove(turn)
            for one, (seconds, at) in list(self._used.items()):
                if seconds * self._decay(at) < 1e-3:  # Forget sessions that left or are long idle.
                    del self._used[one]
                    self._began.pop(one, None)
            self._fill()

    def others_first(self, turn: Turn) -> bool:
        """Return whether a waiting session has used less time than this turn's session."""
        with self._lock:
            less = self._recent(turn)
            return any(self._recent(one) < less for one in self._ready())

    def _fill(self) -> None:
        """Start the next turns, as long as places are free."""
        while len(self._running) < self._places:
            turn = min(self._ready(), key=self._recent, default=None)
            if turn is None:
                return
            self._waiting.remove(turn)
            self._running.append(turn)
            turn.began = self._clock()
            if not turn.resumes:
                self._began[turn.session], turn.resumes = turn.began, True
            turn.place.set()

    def _ready(self) -> list[Turn]:
        """Return the waiting turns, without sessions that just began a run while others wait."""
        if len({one.session for one in self._waiting}) == 1:
            return self._waiting
        latest = self._clock() - 1 / _RATE
        return [
            one
            for one in self._waiting
            if one.resumes or self._began.get(one.session, latest) <= latest
        ]

    def _recent(self, turn: Turn) -> float:
        """Return the seconds that a session has used, with this turn; older ones count less."""
        seconds, at = self._used.get(turn.session, (0.0, 0.0))
        return seconds * self._decay(at) + max(self._clock() - turn.began, 0.0)

    def _decay(self, at: float) -> float:
        return math.exp((at - self._clock()) / _FORGOTTEN)
