"""A room of phones that bet: the current question, the bets, and the time when the room ends.

A room exists only in a server's memory: it stores no name, no address and no file. A phone chooses
its own random number, so that a repeated bet counts once.
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
"""Maximum number of phones in a room; the room refuses further phones."""

NAME, KEY, ADDRESS = "DPVIZ_ROOM", "DPVIZ_ROOM_KEY", "DPVIZ_ROOM_ADDRESS"
"""Environment variables by which ``dpviz class`` controls its server."""

_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"  # Letters that look alike are left out.


class RoomClosed(DpvizError):
    """Raised if a room has ended, is full, or does not take this bet now."""


def letters() -> str:
    """Return four random letters, which phones type to enter a room."""
    return "".join(secrets.choice(_LETTERS) for _ in range(4))


@dataclass
class Room:
    """One room with its question and its bets.

    Attributes
    ----------
    name : str
        Name of the room: four letters.
    key : str
        Secret that the projector knows and the phones do not.
    clock : callable
        Clock that returns seconds.
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
        """Whether the room's time is over."""
        return self.clock() - self._opened > LASTS

    @property
    def version(self) -> int:
        """Counter of every change that a phone shows."""
        return self._version

    @property
    def count(self) -> int:
        """Number of bets on the current question."""
        return len(self._bets)

    @property
    def dealt(self) -> int:
        """Number of phones with a release in this round."""
        return len(self._places)

    def knows(self, key: str) -> bool:
        """Return whether a key may control the room."""
        # Compare in constant time, or the time would show how many letters of a key are right.
        return hmac.compare_digest(key.encode(), self.key.encode())

    def ask(
        self,
        step: str,
        question: ShownQuestion | None,
        words: Mapping[str, str] = MappingProxyType({}),
        game: Round | None = None,
    ) -> bool:
        """Ask a step's question and return whether it is new; a new question discards earlier bets.

        Parameters
        ----------
        step : str
        question : ShownQuestion or None
        words : mapping of str to str
            Texts of a phone in the question's language, keyed by the English text.
        game : Round, optional
            Round in which each phone gets its own release.
        """
        with self._lock:
            if self.ended:
                question = game = None
            # Pages are shown repeatedly, so do not delete the bets if the question is the same.
            if (step, question) == (self._step, self._asked):
                return False
            self._step, self._asked, self._words = step, question, words
            self._bets, self._shown = {}, False
            self._round, self._places = game, {}
            self._version += 1
            return True

    def play(self, game: Round, words: Mapping[str, str] = MappingProxyType({})) -> None:
        """Play a round of "in or out": each phone that asks gets one release and may bet on it.

        Parameters
        ----------
        game : Round
        words : mapping of str to str
            Texts of a phone; see `ask`.
        """
        self.ask(game.step, game.question, words, game)

    def bet(self, step: str, phone: str, value: float) -> None:
        """Accept a bet; the phone may change its bet until the bets are shown.

        Raises
        ------
        RoomClosed
            If there is no open question, or the bet is impossible.
        """
        with self._lock:
            if self.ended:
                raise RoomClosed("This class room has ended.")
            if self._asked is None or step != self._step:
                raise RoomClosed("This question is over.")
            if self._shown:
                raise RoomClosed("Bets are closed, because the projector shows them already.")
            if not self._asked.possible(value):
                raise RoomClosed("This answer is not among the possible bets.")
            # A phone that has placed a bet may change it, even if the room is full.
            if phone not in self._bets and len(self._bets) >= PHONES:
                raise RoomClosed("This room is full.")
            if self._round is not None and phone not in self._places:
                raise RoomClosed("This phone has no release to judge in this round.")
            self._bets[phone] = value

    def show(self) -> None:
        """Show the bets; the room then accepts no further bet."""
        with self._lock:
            if self._asked is not None and not self._shown:
                self._shown = True
                self._version += 1

    def for_phones(self, phone: str = "") -> dict[str, Any]:
        """Return a phone's data: question and own bet, never the answer or another phone's bet.

        Parameters
        ----------
        phone : str
            The phone's number. In a round it gets one release, which is the same at every request.
        """
        with self._lock:
            view: dict[str, Any] = {"ended": True} if self.ended else {"step": self._step}
            if self._words:
                view["words"] = dict(self._words)
            question = self._asked
            if question is None or self.ended:
                return view
            if self._round is not None:
                view["picture"] = self._round.picture
                place = self._dealt(phone)
                view["release"] = None if place is None else self._round.release(place)
            if phone in self._bets:
                view["bet"] = self._bets[phone]
            return view | {
                "ask": question.ask,
                "options": list(question.options),
                "axis": None if question.axis is None else list(question.axis),
                "shown": self._shown,
            }

    def _dealt(self, phone: str) -> int | None:
        """Return a phone's place among the releases; None without a number or in a full room."""
        if phone and phone not in self._places and len(self._places) < PHONES:
            self._places[phone] = len(self._places)
        return self._places.get(phone)

    def for_wall(self) -> dict[str, Any]:
        """Return the projector's data: the number of bets, and the bets once they are shown."""
        with self._lock:
            # Sort the bets, because their order of arrival could show who placed which bet.
            bets = sorted(self._bets.values()) if self._shown else None
            view = {"step": self._step, "count": len(self._bets), "bets": bets, "ended": self.ended}
            if self._round is not None:
                view["dealt"] = len(self._places)
            if self._round is not None and self._shown:
                taps = {self._places[phone]: tap for phone, tap in self._bets.items()}
                view |= self._round.counted(taps)
            return view


@cache
def room() -> Room | None:
    """Return this server's room, or None."""
    name, key = os.environ.get(NAME, ""), os.environ.get(KEY, "")
    return Room(name, key) if name and key else None


@cache
def _code(address: str) -> list[str]:
    """Return the QR code of an address: rows of 0 and 1, with a quiet zone four wide."""
    import segno

    code = segno.make_qr(f"http://{address}", error="m", boost_error=False)
    return ["".join(map(str, row)) for row in code.matrix_iter(border=4)]


def entrance(here: Room) -> dict[str, Any]:
    """Return the name, address and QR code of a room, for the projector."""
    address = f"{os.environ.get(ADDRESS, '')}/c/{here.name}"
    return {"name": here.name, "key": here.key, "address": address, "code": _code(address)}


def steered(
    key: str,
    step: str,
    question: ShownQuestion | None,
    words: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, Any], bool] | None:
    """Ask a step's question in the room, if the given key is the room's key.

    Parameters
    ----------
    key : str
    step : str
    question : ShownQuestion or None
        The step's question, or None.
    words : mapping of str to str
        Texts of a phone; see `Room.ask`.

    Returns
    -------
    tuple of dict and bool, or None
        The projector's data, and whether the question is new.
    """
    here = room()
    if here is None or not key or not here.knows(key):
        return None
    new = here.ask(step, question, words)
    return entrance(here), new
