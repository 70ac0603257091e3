"""Turns between the sessions of one server: who has used least of late runs next.

Python runs one thread at a time, so many pages that run at once only slow each other down; and
threads share evenly, so that somebody who moves one thing now and then would wait for all that
others ask for again and again. A turn lasts one run of a page. Long work gives way in between, and
nobody holds a place while waiting for what somebody else computes (`pages.ui.ask`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_RATE = 2.0  # runs of one session that begin in a second, while another waits
_FORGOTTEN = 10.0  # seconds after which a third of what a session has used still counts
_LOOK_SECONDS = 0.2


@dataclass(eq=False)
class Turn:
    """One run of a page: whose it is, and since when it holds a place."""

    session: str
    look: Callable[[], object]
    turns: Turns
    began: float = math.inf
    resumes: bool = False
    place: threading.Event = field(default_factory=threading.Event)

    def give_way(self) -> None:
        """Let those go first who wait and have used less."""
        if self.turns.others_first(self):
            with self.paused():
                pass

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hold no place inside, and wait for one afterwards; not where the work inside ends."""
        self.turns.give(self)
        yield
        self.turns.take(self)


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
        self._lock = threading.Lock()
        self._running: list[Turn] = []
        self._waiting: list[Turn] = []
        self._began: dict[str, float] = {}
        self._used: dict[str, tuple[float, float]] = {}

    @contextmanager
    def turn(self, session: str, look: Callable[[], object]) -> Iterator[Turn]:
        """Wait for a place, hold it inside, and give it back.

        Parameters
        ----------
        session : str
        look : callable
            Called again and again while waiting; what it raises ends the waiting.
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
        """Wait for a place; whoever is ended while waiting has to give it back all the same."""
        with self._lock:
            turn.place.clear()
            self._waiting.append(turn)
            self._fill()
        turn.look()
        while not turn.place.wait(_LOOK_SECONDS):
            turn.look()
            with self._lock:
                self._fill()  # who began just now may begin again later

    def give(self, turn: Turn) -> None:
        """Give a place back, or stop waiting for one."""
        with self._lock:
            if turn in self._running:
                self._used[turn.session] = (self._recent(turn), self._clock())
                self._running.remove(turn)
                turn.began = math.inf
            if turn in self._waiting:
                self._waiting.remove(turn)
            for one, (used, at) in list(self._used.items()):
                if used * self._faded(at) < 1e-3:  # long quiet, or gone
                    del self._used[one]
                    self._began.pop(one, None)
            self._fill()

    def others_first(self, turn: Turn) -> bool:
        """Return whether somebody waits who has used less."""
        with self._lock:
            less = self._recent(turn)
            return any(self._recent(one) < less for one in self._ready())

    def _fill(self) -> None:
        """Let those begin who are next, as long as places are free."""
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
        """Return who waits, without those who began just now while others wait."""
        if len({one.session for one in self._waiting}) == 1:
            return self._waiting
        latest = self._clock() - 1 / _RATE
        return [
            one
            for one in self._waiting
            if one.resumes or self._began.get(one.session, latest) <= latest
        ]

    def _recent(self, turn: Turn) -> float:
        """Return the seconds that a session has used, this turn among them; older ones fade."""
        used, at = self._used.get(turn.session, (0.0, 0.0))
        return used * self._faded(at) + max(self._clock() - turn.began, 0.0)

    def _faded(self, at: float) -> float:
        return math.exp((at - self._clock()) / _FORGOTTEN)
