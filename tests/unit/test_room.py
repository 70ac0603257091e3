"""A room of phones: who may bet on each step, who learns the bets, and when the room ends."""

from __future__ import annotations

import pytest

from dpviz.lessons import course
from dpviz.lessons.lesson import ShownQuestion
from dpviz.lessons.room import LASTS, PHONES, Room, RoomClosed

pytestmark = pytest.mark.long


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def asked(lesson: int, step: int) -> ShownQuestion:
    question = course()[lesson - 1].question_at(step - 1)
    assert question is not None
    return question


FLAG, CHOICE = asked(3, 2), asked(1, 2)


@pytest.fixture
def room() -> Room:
    new_room = Room("KELP", "secret", Clock())
    new_room.ask("3.2", FLAG)
    return new_room


def test_only_the_count_is_told_until_the_bets_are_shown(room: Room) -> None:
    room.bet("3.2", "a", 0.3)
    room.bet("3.2", "b", 1.0)
    room.bet("3.2", "a", 0.5)  # This changes the bet, or repeats a bet whose reply was lost.
    assert room.for_wall() == {"step": "3.2", "count": 2, "bets": None, "ended": False}
    facts = room.for_phones()
    assert facts == {
        "step": "3.2", "ask": FLAG.ask, "options": [], "axis": [0.03, 3.0], "shown": False
    }  # fmt: skip
    assert FLAG.right_text not in str(facts)
    assert room.for_phones("a") == facts | {"bet": 0.5}  # After a reload, a phone gets its bet.
    room.show()
    assert room.for_wall()["bets"] == [0.5, 1.0]
    assert "0.5" not in str(room.for_phones())
    with pytest.raises(RoomClosed, match="shows them already"):
        room.bet("3.2", "c", 0.3)


def test_a_new_question_lets_go_of_the_bets(room: Room) -> None:
    room.bet("3.2", "a", 0.3)
    before = room.version
    assert not room.ask("3.2", FLAG)  # The projector shows this step again.
    assert (room.count, room.version) == (1, before)
    assert room.ask("1.2", CHOICE, {"Send": "Senden"})
    assert (room.count, room.version) == (0, before + 1)
    with pytest.raises(RoomClosed, match="This question is over"):
        room.bet("3.2", "a", 0.3)
    for value in (0.5, 3.0, -1.0):
        with pytest.raises(RoomClosed, match="not among the possible bets"):
            room.bet("1.2", "a", value)
    room.bet("1.2", "a", 2.0)
    room.ask("1.1", None)
    assert room.for_phones() == {"step": "1.1"}
    with pytest.raises(RoomClosed):
        room.bet("1.1", "a", 0.0)


def test_it_holds_so_many_phones_and_those_may_still_change_their_minds(room: Room) -> None:
    assert PHONES >= 200
    for phone in range(PHONES):
        room.bet("3.2", str(phone), 0.3)
    with pytest.raises(RoomClosed, match="full"):
        room.bet("3.2", "one more", 0.3)
    room.bet("3.2", "7", 0.4)


def test_only_its_own_key_steers_it(room: Room) -> None:
    assert room.knows("secret")
    assert not room.knows("")
    assert not room.knows("secrét")


def test_it_ends_after_three_hours(room: Room) -> None:
    room.clock.now += LASTS + 1  # type: ignore[attr-defined]
    assert room.for_phones() == {"ended": True}
    with pytest.raises(RoomClosed, match="has ended"):
        room.bet("3.2", "b", 0.3)
