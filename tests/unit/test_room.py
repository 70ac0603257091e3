"""A room of phones: who may bet on what, what is told to whom, and when it ends."""

from __future__ import annotations

import pytest

from dpviz.lessons import course
from dpviz.lessons import room as rooms
from dpviz.lessons.lesson import ShownQuestion
from dpviz.lessons.room import LASTS, PHONES, Room, RoomClosed, letters


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def asked(lesson: int, step: int) -> ShownQuestion:
    found = course()[lesson - 1].question_at(step - 1)
    assert found is not None
    return found


FLAG, CHOICE = asked(3, 2), asked(1, 2)


@pytest.fixture
def room() -> Room:
    made = Room("KELP", "secret", Clock())
    made.ask("3.2", FLAG)
    return made


def test_only_the_count_is_told_until_the_bets_are_shown(room: Room) -> None:
    room.bet("3.2", "a", 0.3)
    room.bet("3.2", "b", 1.0)
    room.bet("3.2", "a", 0.5)  # somebody changed their mind, or an answer was lost
    assert room.for_wall() == {"step": "3.2", "count": 2, "bets": None, "ended": False}
    told = room.for_phones()
    assert told == {
        "step": "3.2", "ask": FLAG.ask, "options": [], "axis": [0.03, 3.0], "shown": False
    }  # fmt: skip
    assert FLAG.right_text not in str(told)
    assert room.for_phones("a") == told | {"bet": 0.5}  # its own: it may have been loaded again
    room.show()
    assert room.for_wall()["bets"] == [0.5, 1.0]
    assert "0.5" not in str(room.for_phones())
    with pytest.raises(RoomClosed, match="shown already"):
        room.bet("3.2", "c", 0.3)


@pytest.mark.parametrize("value", [0.0, -1.0, 3.5, float("nan"), float("inf")])
def test_what_is_off_the_axis_is_no_bet(room: Room, value: float) -> None:
    with pytest.raises(RoomClosed, match="cannot be bet on"):
        room.bet("3.2", "a", value)
    assert room.count == 0


def test_a_new_question_lets_go_of_the_bets(room: Room) -> None:
    room.bet("3.2", "a", 0.3)
    before = room.version
    assert not room.ask("3.2", FLAG)  # the projector draws the same step again
    assert (room.count, room.version) == (1, before)
    assert room.ask("1.2", CHOICE, {"Send": "Senden"})
    assert (room.count, room.version) == (0, before + 1)
    with pytest.raises(RoomClosed, match="This question is over"):
        room.bet("3.2", "a", 0.3)
    for value in (0.5, 3.0, -1.0):
        with pytest.raises(RoomClosed, match="cannot be bet on"):
            room.bet("1.2", "a", value)
    room.bet("1.2", "a", 2.0)
    room.ask("1.1", None)
    assert room.for_phones() == {"step": "1.1"}
    with pytest.raises(RoomClosed):
        room.bet("1.1", "a", 0.0)


def test_it_ends_after_three_hours(room: Room) -> None:
    room.bet("3.2", "a", 0.3)
    room.clock.now += LASTS  # type: ignore[attr-defined]
    assert not room.ended
    room.clock.now += 1  # type: ignore[attr-defined]
    assert room.ended
    assert room.for_phones() == {"ended": True}
    room.ask("1.2", CHOICE, {"Room": "Raum"})
    assert room.for_phones() == {"ended": True, "words": {"Room": "Raum"}}
    with pytest.raises(RoomClosed, match="has ended"):
        room.bet("3.2", "b", 0.3)
    assert room.count == 0


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


def test_letters_are_four_that_cannot_be_mistaken() -> None:
    seen = {letters() for _ in range(50)}
    assert all(len(one) == 4 and one.isupper() and not set(one) & set("IOQ") for one in seen)
    assert len(seen) > 40


_MASKS = (
    lambda y, x: (y + x) % 2,
    lambda y, x: y % 2,
    lambda y, x: x % 3,
    lambda y, x: (y + x) % 3,
    lambda y, x: (y // 2 + x // 3) % 2,
    lambda y, x: y * x % 2 + y * x % 3,
    lambda y, x: (y * x % 2 + y * x % 3) % 2,
    lambda y, x: ((y + x) % 2 + y * x % 3) % 2,
)


def decoded(code: list[str]) -> str:
    """Return the text of a QR code of version 2 to 4 with one block, without its corrections."""
    assert all("1" not in row for row in (*code[:4], *code[-4:]))  # the quiet zone
    assert {row[:4] + row[-4:] for row in code} == {"0" * 8}
    grid = [[int(one) for one in row[4:-4]] for row in code[4:-4]]
    size = len(grid)
    masked = int("".join(str(grid[8][x]) for x in (2, 3, 4)), 2) ^ 0b101
    at = size - 7  # of the one alignment pattern

    def plain(y: int, x: int) -> bool:
        finder = (y < 9 and (x < 9 or x >= size - 8)) or (y >= size - 8 and x < 9)
        return finder or 6 in (y, x) or (abs(y - at) <= 2 and abs(x - at) <= 2)

    bits, up = "", True
    for right in (*range(size - 1, 6, -2), 5, 3, 1):
        for y in range(size - 1, -1, -1) if up else range(size):
            for x in (right, right - 1):
                if not plain(y, x):
                    bits += str(grid[y][x] ^ (_MASKS[masked](y, x) == 0))
        up = not up
    assert bits[:4] == "0100"  # bytes
    count = int(bits[4:12], 2)
    return bytes(int(bits[12 + 8 * i : 20 + 8 * i], 2) for i in range(count)).decode()


@pytest.mark.parametrize("address", ["127.0.0.1:8501", "192.168.178.123:12345"])
def test_the_projector_shows_a_code_that_a_camera_reads(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(rooms, "room", lambda: Room("KELP", "secret"))
    monkeypatch.setenv(rooms.ADDRESS, address)
    assert rooms.steered("wrong", "3.2", FLAG) is None
    steers = rooms.steered("secret", "3.2", FLAG)
    assert steers is not None
    shown, new = steers
    assert new
    assert decoded(shown["code"]) == f"http://{address}/c/KELP"
