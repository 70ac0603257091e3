"""In or out: the deal is fair and named, taps are counted by world, and the limit is proved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dpviz.core.moments import SecondMoment
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.lessons.cast import pure
from dpviz.lessons.in_or_out import BLOCK, Round
from dpviz.lessons.person import HER
from dpviz.lessons.room import PHONES, Room, RoomClosed

pytestmark = pytest.mark.long

TAPS = 2_000


def guessed(played: Round, place: int) -> int:
    """Return the tap of who takes the nearer centre."""
    (x, _), (out, within) = played.release(place), [one[0] for one in played.picture["centres"]]
    return int(abs(x - within) < abs(x - out))


def right(played: Round, taps: int = TAPS) -> float:
    found = played.counted({place: guessed(played, place) for place in range(taps)})["hits"]
    assert found["within"][1] + found["out"][1] == taps
    return (found["within"][0] + found["out"][0]) / taps


def test_the_deal_is_half_and_half_and_named_by_who_deals() -> None:
    worlds = [Round("one").within(place) for place in range(10 * BLOCK)]
    halves = [sum(worlds[at : at + BLOCK]) for at in range(0, len(worlds), BLOCK)]
    assert halves == [BLOCK // 2] * 10
    assert worlds == [Round("one").within(place) for place in range(10 * BLOCK)]
    for other in (Round("two"), Round("one", number=2), Round("one", 2.0)):
        assert worlds != [other.within(place) for place in range(10 * BLOCK)]
        assert Round("one").release(3) != other.release(3)
    assert Round("one").release(3) == Round("one", language="de").release(3)
    drawn = {tuple(Round("one").release(place)) for place in range(50)}
    assert len(drawn) == 50


def test_the_limit_is_what_the_account_proves() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        played = Round("one", epsilon)
        assert played.limit == pytest.approx(np.exp(epsilon) / (1 + np.exp(epsilon)), rel=1e-12)
    # sum of binomial terms, by hand: of 2 taps at p both are right with p^2
    played = Round("one", 5.0)
    assert played.limit**2 > 0.95
    assert played.luck(1) == 1
    assert Round("one", 0.1).luck(30) < played.luck(30) == 30


@dataclass(frozen=True)
class Noiseless(type(pure())):  # type: ignore[misc]
    """The same account and no noise."""

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return what it saw."""
        return Release.of_matrices(np.repeat(data.A[None], draws.size, axis=0), 1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_no_guesser_passes_the_limit_but_where_there_is_no_noise(epsilon: float) -> None:
    played = Round("one", epsilon)
    error = np.sqrt(played.limit * (1 - played.limit) / TAPS)
    assert 0.5 + 2 * error < right(played) < played.limit
    bare = Round("one", epsilon, mechanism=Noiseless())
    assert bare.limit == played.limit
    assert right(bare, TAPS // 10) == 1.0  # one of two numbers, as there is no noise
    hers = float(1_000 * HER @ HER)
    assert bare.release(0) == [pytest.approx(hers if bare.within(0) else 0.0, abs=1), 0]


def test_a_room_deals_to_each_phone_and_counts_by_world() -> None:
    room, played = Room("KELP", "secret"), Round("secret")
    room.play(played)
    assert "release" not in room.for_wall()
    assert room.for_phones()["release"] is None  # who has no number is dealt nothing
    with pytest.raises(RoomClosed, match="no release"):
        room.bet(played.step, "a", 1)
    dealt = [room.for_phones(phone)["release"] for phone in "abcd"]
    assert dealt == [played.release(place) for place in range(4)]
    room.bet(played.step, "a", 1)
    room.bet(played.step, "c", 0)
    room.play(Round("secret"))  # the projector is loaded again
    assert room.for_phones("c")["release"] == dealt[2]  # and a phone comes back
    late = room.for_phones("e")["release"]
    assert late == played.release(4)
    room.bet(played.step, "e", 1)
    told = room.for_wall()
    assert (told["count"], told["dealt"], told["bets"]) == (3, 5, None)
    assert not {"hits", "limit", "luck"} & set(told)
    room.show()
    hits = {True: [0, 0], False: [0, 0]}
    for place, tap in ((0, True), (2, False), (4, True)):
        world = played.within(place)
        hits[world][0] += tap == world
        hits[world][1] += 1
    told = room.for_wall()
    assert told["hits"] == {"within": hits[True], "out": hits[False]}
    assert told["limitText"] == "74"
    assert told["luck"] == played.luck(3)
    # Who comes too late is told so; a further round deals to all, and the lesson takes it back.
    with pytest.raises(RoomClosed, match="shown already"):
        room.bet(played.step, "b", 1)
    room.play(Round("secret", number=2))
    assert room.for_phones("a")["release"] not in dealt
    assert (room.count, room.dealt) == (0, 1)
    room.ask("1.1", None)
    assert room.for_phones("a") == {"step": "1.1"}


def test_a_full_room_deals_no_more() -> None:
    room = Room("KELP", "secret")
    room.play(Round("secret"))
    for phone in range(PHONES):
        assert room.for_phones(str(phone))["release"] is not None
    assert room.for_phones("one more")["release"] is None
