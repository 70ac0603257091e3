"""A room of phones that bet: what is asked now, who has bet what, and when it ends.

It lives in a server's memory alone: no name, no address and no file. A phone is a number that it
made up itself, so that the same bet sent twice counts once.
"""

from __future__ import annotations

import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from dpviz.core.errors import DpvizError
from dpviz.lessons.in_or_out import Round
from dpviz.lessons.lesson import ShownQuestion

LASTS = 3 * 3600.0
"""Seconds after which a room ends."""

PHONES = 1_000
"""Phones of a room; a further one is refused."""

NAME, KEY, ADDRESS = "DPVIZ_ROOM", "DPVIZ_ROOM_KEY", "DPVIZ_ROOM_ADDRESS"
"""What ``dpviz class`` says to the server that it starts."""

_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"  # none that a hall could take for another


class RoomClosed(DpvizError):
    """A room has ended, is full, or does not take this bet now."""


def letters() -> str:
    """Return four letters that a room is entered by."""
    return "".join(secrets.choice(_LETTERS) for _ in range(4))


@dataclass
class Room:
    """One room.

    Attributes
    ----------
    name : str
        Four letters.
    key : str
        What the projector knows and the phones do not.
    clock : callable
        To seconds.
    """

    name: str
    key: str
    clock: Callable[[], float] = time.monotonic
    _opened: float = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _step: str = field(init=False, default="")
    _asked: ShownQuestion | None = field(init=False, default=None)
    _bets: dict[str, float] = field(init=False, default_factory=dict)
    _words: Mapping[str, str] = field(init=False, default_factory=dict)
    _round: Round | None = field(init=False, default=None)
    _places: dict[str, int] = field(init=False, default_factory=dict)
    _shown: bool = field(init=False, default=False)
    _version: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._opened = self.clock()

    @property
    def ended(self) -> bool:
        """Whether its time is over."""
        return self.clock() - self._opened > LASTS

    @property
    def version(self) -> int:
        """Grows with every change of what a phone sees."""
        return self._version

    @property
    def count(self) -> int:
        """How many have bet."""
        return len(self._bets)

    @property
    def dealt(self) -> int:
        """How many have a release of this round."""
        return len(self._places)

    def knows(self, key: str) -> bool:
        """Return whether somebody may steer the room."""
        # takes as long for any guess: nobody finds the key letter by letter
        return hmac.compare_digest(key.encode(), self.key.encode())

    def ask(
        self,
        step: str,
        asked: ShownQuestion | None,
        words: Mapping[str, str] = MappingProxyType({}),
        played: Round | None = None,
    ) -> bool:
        """Ask a step's question, and return whether it is new: then it lets go of the bets before.

        Parameters
        ----------
        step : str
        asked : ShownQuestion or None
        words : mapping of str to str
            What a phone says in the question's language, by the English of it.
        played : Round, optional
            Where each phone is asked of a release of its own.
        """
        with self._lock:
            if self.ended:
                asked = played = None
            # pages are drawn again and again: the same question keeps its bets
            if (step, asked) == (self._step, self._asked):
                return False
            self._step, self._asked, self._words = step, asked, words
            # a bet on what was asked before is none on this
            self._bets, self._shown = {}, False
            self._round, self._places = played, {}
            self._version += 1
            return True

    def play(self, played: Round, words: Mapping[str, str] = MappingProxyType({})) -> None:
        """Play a round of in or out: each phone that asks is dealt one release and may say which.

        Parameters
        ----------
        played : Round
        words : mapping of str to str
            As `ask` takes them.
        """
        self.ask(played.step, played.question, words, played)

    def bet(self, step: str, phone: str, value: float) -> None:
        """Take a bet; the same phone may change its mind until the bets are shown.

        Raises
        ------
        RoomClosed
            If there is nothing to bet on, or not this.
        """
        with self._lock:
            if self.ended:
                raise RoomClosed("This room has ended.")
            if self._asked is None or step != self._step:
                raise RoomClosed("This question is over.")
            if self._shown:
                raise RoomClosed("The bets are shown already.")
            if not self._asked.possible(value):
                raise RoomClosed("This cannot be bet on.")
            # a phone that has bet may change its mind in a full room
            if phone not in self._bets and len(self._bets) >= PHONES:
                raise RoomClosed("This room is full.")
            if self._round is not None and phone not in self._places:
                raise RoomClosed("This phone has no release.")
            self._bets[phone] = value

    def show(self) -> None:
        """Show the bets; none is taken any more."""
        with self._lock:
            if self._asked is not None and not self._shown:
                self._shown = True
                self._version += 1

    def for_phones(self, phone: str = "") -> dict[str, Any]:
        """Return what a phone is told: the question and its own bet, never the answer or another's.

        Parameters
        ----------
        phone : str
            Its own number. In a round it is dealt a release, the same each time that it asks.
        """
        with self._lock:
            told: dict[str, Any] = {"ended": True} if self.ended else {"step": self._step}
            if self._words:
                told["words"] = dict(self._words)
            asked = self._asked
            if asked is None or self.ended:
                return told
            if self._round is not None:
                told["picture"] = self._round.picture
                place = self._dealt(phone)
                told["release"] = None if place is None else self._round.release(place)
            if phone in self._bets:
                told["bet"] = self._bets[phone]
            return told | {
                "ask": asked.ask,
                "options": list(asked.options),
                "axis": None if asked.axis is None else list(asked.axis),
                "shown": self._shown,
            }

    def _dealt(self, phone: str) -> int | None:
        """Return the place of a phone in the deal; None without a number, or where it is full."""
        if phone and phone not in self._places and len(self._places) < PHONES:
            self._places[phone] = len(self._places)
        return self._places.get(phone)

    def for_wall(self) -> dict[str, Any]:
        """Return what the projector is told: how many have bet, and what once it is shown."""
        with self._lock:
            # sorted: an order of arrival would tell whose is whose
            bets = sorted(self._bets.values()) if self._shown else None
            told = {"step": self._step, "count": len(self._bets), "bets": bets, "ended": self.ended}
            if self._round is not None:
                told["dealt"] = len(self._places)
            if self._round is not None and self._shown:
                taps = {self._places[phone]: tap for phone, tap in self._bets.items()}
                told |= self._round.counted(taps)
            return told


@cache
def room() -> Room | None:
    """Return this server's room, if it has one."""
    name, key = os.environ.get(NAME, ""), os.environ.get(KEY, "")
    return Room(name, key) if name and key else None


@cache
def _code(address: str) -> list[str]:
    """Return the QR code of an address: rows of 0 and 1, a quiet zone of four around."""
    import segno

    made = segno.make_qr(f"http://{address}", error="m", boost_error=False)
    return ["".join(map(str, row)) for row in made.matrix_iter(border=4)]


def entrance(found: Room) -> dict[str, Any]:
    """Return what a projector shows of how a room is entered."""
    address = f"{os.environ.get(ADDRESS, '')}/c/{found.name}"
    return {"name": found.name, "key": found.key, "address": address, "code": _code(address)}


def steered(
    key: str,
    step: str,
    asked: ShownQuestion | None,
    words: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, Any], bool] | None:
    """Ask a step's question of the room, if the key is its own.

    Parameters
    ----------
    key : str
    step : str
    asked : ShownQuestion or None
        Its question, if it has one.
    words : mapping of str to str
        As `Room.ask` takes them.

    Returns
    -------
    tuple of dict and bool, or None
        What the projector shows, and whether the question is new.
    """
    found = room()
    if found is None or not key or not found.knows(key):
        return None
    new = found.ask(step, asked, words)
    return entrance(found), new
