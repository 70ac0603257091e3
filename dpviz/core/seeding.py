"""Named random streams: the same seed and names give the same bytes.

A stream's name is (seed, labels...), so adding a mechanism or a trial changes no other numbers.
Nothing in dpviz uses global random state.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray

_WORDS = struct.Struct("<4I")
_BLOCK = 2**8
_TOGETHER = 16  # From this many streams on, arrays are faster than a loop.
# SeedSequence of NumPy uses these constants; NumPy documents its results as fixed (NEP 19).
_FIRST_A, _TIMES_A, _FIRST_B, _TIMES_B = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
_LEFT, _RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_HALF, _POOL = np.uint32(16), 4


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the generator of the stream named by the seed and labels.

    Parameters
    ----------
    seed : int
        Seed, at least 0.
    *labels : str or int
        Name of the stream; every part counts, and ("ab", "c") is not ("a", "bc").
    """
    return _started(_begun(seed, _name(*labels)))


def _name(*labels: str | int) -> str:
    return "\x1f".join([f"{type(label).__name__}:{label}" for label in labels])


def _started(begun: _Beginning) -> np.random.Generator:
    # NumPy's documentation allows any ISeedSequence here, but its type stub does not.
    return np.random.Generator(np.random.PCG64(begun))  # type: ignore[arg-type]


@lru_cache(maxsize=2**14)  # A search uses the same streams at each step, so cache them.
def _begun(seed: int, name: str) -> _Beginning:
    # Use 128 bits of the name's digest, so that two streams practically never collide.
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    whole = np.random.SeedSequence(seed, spawn_key=_WORDS.unpack(digest))
    return _Beginning(np.asarray(whole.generate_state(4, np.uint64), dtype=np.uint64))


@lru_cache(maxsize=2**6)
def _begun_together(seed: int, label: str, trials: tuple[int, ...]) -> list[_Beginning]:
    """Return `_begun` of many trials, by the arithmetic of `SeedSequence` on arrays."""
    names = [_name(label, trial) for trial in trials]
    digests = b"".join(hashlib.blake2b(one.encode(), digest_size=16).digest() for one in names)
    keys = np.frombuffer(digests, "<u4").reshape(len(names), 4).astype(np.uint32)
    pool = [np.full(len(names), word) for word in np.random.SeedSequence(seed).pool]
    longer = max(0, -(-int(seed).bit_length() // 32) - _POOL)
    constant = _FIRST_A * pow(_TIMES_A, _POOL * (_POOL + longer), 2**32) % 2**32
    for key in keys.T:
        for place in range(_POOL):
            hashed = key ^ np.uint32(constant)
            constant = constant * _TIMES_A % 2**32
            hashed *= np.uint32(constant)
            hashed ^= hashed >> _HALF
            mixed = _LEFT * pool[place] - _RIGHT * hashed
            pool[place] = mixed ^ (mixed >> _HALF)
    constant, halves = _FIRST_B, []
    for place in range(2 * _POOL):
        half = pool[place % _POOL] ^ np.uint32(constant)
        constant = constant * _TIMES_B % 2**32
        half *= np.uint32(constant)
        halves.append((half ^ (half >> _HALF)).astype(np.uint64))
    words = [
        low | high << np.uint64(32) for low, high in zip(halves[::2], halves[1::2], strict=True)
    ]
    return [_Beginning(each) for each in np.stack(words, axis=1)]


class _Beginning(ISeedSequence):
    """Stored `SeedSequence` answer to `PCG64`; computing it takes most of a generator's time."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        words.setflags(write=False)
        self._words = words

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> NDArray[np.uint64]:
        """Return the four words that `PCG64` requests."""
        if n_words != len(self._words) or np.dtype(dtype) != self._words.dtype:  # type: ignore[call-overload]
            raise TypeError("a named stream can seed a PCG64 generator only")
        return self._words


@dataclass(frozen=True)
class Draws:
    """Random numbers of a batch of releases, with one leading entry per repetition.

    ``numbers`` are the trial numbers. `trials` gives one named stream per trial, so trial 7 is the
    same in a run of 10 or 1,000. `batch` gives one generator for the whole batch: faster, for
    audits and distribution tests.
    """

    generators: tuple[np.random.Generator, ...]
    numbers: tuple[int, ...]

    @classmethod
    def trials(cls, seed: int, label: str, trials: Sequence[int]) -> Draws:
        """Return one stream for each trial, named (seed, label, trial)."""
        numbers = tuple(int(trial) for trial in trials)
        if len(numbers) < _TOGETHER:
            return cls(tuple(generator(seed, label, trial) for trial in numbers), numbers)
        # Build streams in cached blocks: a longer run starts with the same blocks as a shorter one.
        starts = range(0, len(numbers), _BLOCK)
        blocks = (_begun_together(seed, label, numbers[at : at + _BLOCK]) for at in starts)
        return cls(tuple(_started(each) for block in blocks for each in block), numbers)

    @classmethod
    def batch(cls, rng: np.random.Generator, size: int) -> Draws:
        """Return ``size`` repetitions that share one generator."""
        return cls((rng,), tuple(range(size)))

    @property
    def size(self) -> int:
        """Number of repetitions."""
        return len(self.numbers)

    @cached_property
    def shared(self) -> bool:
        """Whether one generator serves the whole batch."""
        # A single repetition has its own generator, so it does not count as a batch.
        return len(self.generators) != self.size

    def _sample(self, method: str, shape: tuple[int, ...]) -> FloatArray:
        if self.shared:
            drawn: FloatArray = getattr(self.generators[0], method)(size=(self.size, *shape))
            return drawn
        out = np.empty((self.size, *shape))
        for row, rng in zip(out, self.generators, strict=True):
            row[...] = getattr(rng, method)(size=shape)
        return out

    def normal(self, *shape: int) -> FloatArray:
        """Return standard normals of shape (size, *shape)."""
        return self._sample("standard_normal", shape)

    def exponential(self, *shape: int) -> FloatArray:
        """Return standard exponentials of shape (size, *shape)."""
        return self._sample("standard_exponential", shape)

    def uniform(self, *shape: int) -> FloatArray:
        """Return uniforms on [0, 1) of shape (size, *shape)."""
        return self._sample("random", shape)

    def single(self) -> list[Draws]:
        """Return one `Draws` of size 1 for each repetition, for samplers that loop."""
        if self.shared:
            return [Draws(self.generators, (number,)) for number in self.numbers]
        pairs = zip(self.generators, self.numbers, strict=True)
        return [Draws((rng,), (number,)) for rng, number in pairs]
