"""Named random streams."""

from __future__ import annotations

import hashlib
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.core.seeding import Draws, generator

LABELS = st.lists(st.text(max_size=4) | st.integers(0, 99), max_size=4).map(tuple)


def first(seed: int, *labels: str | int) -> bytes:
    return generator(seed, *labels).bytes(16)


@given(LABELS, LABELS, st.integers(0, 2**70), st.integers(0, 3))
def test_same_name_same_bytes_and_other_names_other_bytes(
    one: tuple[str | int, ...], two: tuple[str | int, ...], seed: int, more: int
) -> None:
    assert first(seed, *one) == first(seed, *one)
    types = [[(type(label), label) for label in labels] for labels in (one, two)]
    assert (first(seed, *one) == first(seed, *two)) == (types[0] == types[1])
    if more:
        assert first(seed, *one) != first(seed + more, *one)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("ab", "c"), ("a", "bc")),
        (("ab",), ("a", "b")),
        (("1",), (1,)),
        ((), ("",)),
        (("a", 12), ("a", 1, 2)),
    ],
)
def test_names_that_read_alike_differ(
    one: tuple[str | int, ...], two: tuple[str | int, ...]
) -> None:
    assert first(0, *one) != first(0, *two)


def test_streams_do_not_change_between_versions() -> None:
    """A recorded seed gives the same numbers in each version, because NumPy keeps PCG64 stable."""
    assert generator(0, "a").bytes(8).hex() == "b005226fa230a99a"


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**32, 2**128 - 1, 2**128, 2**200 + 3])
def test_streams_begun_together_are_those_begun_alone(seed: int) -> None:
    """Streams made together equal single streams, for seeds of any length and across two blocks."""
    trials = [*range(300), 2**40]
    together = Draws.trials(seed, "x", trials)
    for trial, rng in zip(trials, together.generators, strict=True):
        assert rng.bytes(8) == first(seed, "x", trial)[:8]
    again = Draws.trials(seed, "x", trials)  # Using a stream leaves its stored start unchanged.
    assert again.normal(1).tobytes() == Draws.trials(seed, "x", trials).normal(1).tobytes()


METHODS = ("normal", "exponential", "uniform")


def test_a_stream_begins_where_numpys_seed_sequence_begins_it_each_time() -> None:
    """A name's stored beginning is NumPy's, and sampling does not change it."""
    digest = hashlib.blake2b(b"str:kept\x1fint:7", digest_size=16).digest()
    whole = np.random.SeedSequence(5, spawn_key=struct.unpack("<4I", digest))
    numbers = np.random.Generator(np.random.PCG64(whole)).random(3)
    first, second = generator(5, "kept", 7), generator(5, "kept", 7)
    np.testing.assert_array_equal(first.random(3), numbers)
    np.testing.assert_array_equal(second.random(3), numbers)
    assert pickle.loads(pickle.dumps(first)).random() == first.random()
    with pytest.raises(TypeError, match="a PCG64 generator only"):
        np.random.MT19937(first.bit_generator.seed_seq)


@pytest.mark.parametrize("method", METHODS)
def test_a_trial_is_the_same_alone_and_in_a_batch(method: str) -> None:
    together = getattr(Draws.trials(1, "x", range(5)), method)(2, 3)
    assert together.shape == (5, 2, 3)
    for trial in range(5):
        alone = getattr(Draws.trials(1, "x", [trial]), method)(2, 3)
        assert alone[0].tobytes() == together[trial].tobytes()
    assert len(np.unique(together.reshape(5, -1), axis=0)) == 5


def test_single_splits_into_the_same_streams() -> None:
    draws = Draws.trials(1, "x", [4, 9])
    parts = [part.normal(3) for part in draws.single()]
    np.testing.assert_array_equal(np.concatenate(parts), Draws.trials(1, "x", [4, 9]).normal(3))
    assert [part.numbers for part in draws.single()] == [(4,), (9,)]


def test_batch_shares_one_generator() -> None:
    draws = Draws.batch(generator(0, "b"), 4)
    assert draws.shared
    assert draws.size == 4
    expected = generator(0, "b").standard_normal((4, 2))
    np.testing.assert_array_equal(draws.normal(2), expected)
    assert not Draws.trials(0, "b", range(4)).shared
    assert [part.size for part in draws.single()] == [1, 1, 1, 1]
