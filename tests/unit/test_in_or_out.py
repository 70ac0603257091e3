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
    """Return the tap of a player who chooses the nearer centre."""
    (x, _), (out, within) = played.release(place), [one[0] for one in played.picture["centres"]]
    return int(abs(x - within) < abs(x - out))


def right(played: Round, taps: int = TAPS) -> float:
    hits = played.counted({place: guessed(played, place) for place in range(taps)})["hits"]
    assert hits["within"][1] + hits["out"][1] == taps
    return (hits["within"][0] + hits["out"][0]) / taps


def test_the_deal_is_half_and_half_and_named_by_who_deals() -> None:
    worlds = [Round("one").within(place) for place in range(10 * BLOCK)]
    halves = [sum(worlds[at : at + BLOCK]) for at in range(0, len(worlds), BLOCK)]
    assert halves == [BLOCK // 2] * 10
    assert worlds == [Round("one").within(place) for place in range(10 * BLOCK)]
    for other in (Round("two"), Round("one", number=2), Round("one", 2.0)):
        assert worlds != [other.within(place) for place in range(10 * BLOCK)]
        assert Round("one").release(3) != other.release(3)
    assert Round("one").release(3) == Round("one", language="de").release(3)
    deals = {tuple(Round("one").release(place)) for place in range(50)}
    assert len(deals) == 50


def test_the_limit_is_what_the_account_proves() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        game = Round("one", epsilon)
        assert game.limit == pytest.approx(np.exp(epsilon) / (1 + np.exp(epsilon)), rel=1e-12)
    # The binomial sum by hand: two taps, each right with probability p, are both right with p^2.
    game = Round("one", 5.0)
    assert game.limit**2 > 0.95
    assert game.luck(1) == 1
    assert Round("one", 0.1).luck(30) < game.luck(30) == 30


@dataclass(frozen=True)
class Noiseless(type(pure())):  # type: ignore[misc]
    """A mechanism with the same privacy accounting, but without noise."""

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the data unchanged."""
        return Release.of_matrices(np.repeat(data.A[None], draws.size, axis=0), 1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_no_guesser_passes_the_limit_but_where_there_is_no_noise(epsilon: float) -> None:
    game = Round("one", epsilon)
    error = np.sqrt(game.limit * (1 - game.limit) / TAPS)
    assert 0.5 + 2 * error < right(game) < game.limit
    bare = Round("one", epsilon, mechanism=Noiseless())
    assert bare.limit == game.limit
    assert right(bare, TAPS // 10) == 1.0  # Without noise every tap is right.
    hers = float(1_000 * HER @ HER)
    assert bare.release(0) == [pytest.approx(hers if bare.within(0) else 0.0, abs=1), 0]


def test_a_room_deals_to_each_phone_and_counts_by_world() -> None:
    room, game = Room("KELP", "secret"), Round("secret")
    room.play(game)
    assert "release" not in room.for_wall()
    assert room.for_phones()["release"] is None  # A phone without a number gets no release.
    with pytest.raises(RoomClosed, match="no release"):
        room.bet(game.step, "a", 1)
    dealt = [room.for_phones(phone)["release"] for phone in "abcd"]
    assert dealt == [game.release(place) for place in range(4)]
    room.bet(game.step, "a", 1)
    room.bet(game.step, "c", 0)
    room.play(Round("secret"))  # The projector's page reloads.
    assert room.for_phones("c")["release"] == dealt[2]  # A returning phone gets its release again.
    late = room.for_phones("e")["release"]
    assert late == game.release(4)
    room.bet(game.step, "e", 1)
    facts = room.for_wall()
    assert (facts["count"], facts["dealt"], facts["bets"]) == (3, 5, None)
    assert not {"hits", "limit", "luck"} & set(facts)
    room.show()
    hits = {True: [0, 0], False: [0, 0]}
    for place, tap in ((0, True), (2, False), (4, True)):
        world = game.within(place)
        hits[world][0] += tap == world
        hits[world][1] += 1
    facts = room.for_wall()
    assert facts["hits"] == {"within": hits[True], "out": hits[False]}
    assert facts["limitText"] == "74"
    assert facts["luck"] == game.luck(3)
    # A bet after the answers is refused. Another round has all phones, and the lesson can end it.
    with pytest.raises(RoomClosed, match="shows them already"):
        room.bet(game.step, "b", 1)
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
