"""Named random streams: same seed and names, same bytes.

A stream's name is (seed, labels...), so adding a mechanism or a trial changes
nobody else's numbers. Nothing in dpviz draws from global state.
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


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the generator of the stream named by the seed and labels.

    Parameters
    ----------
    seed : int
        At least 0.
    *labels : str or int
        The stream's name; every part counts, and ("ab", "c") is not ("a", "bc").
    """
    name = "\x1f".join(f"{type(label).__name__}:{label}" for label in labels)
    # NumPy documents any ISeedSequence here; its stub names one kind
    return np.random.Generator(np.random.PCG64(_begun(seed, name)))  # type: ignore[arg-type]


@lru_cache(maxsize=2**14)  # a search begins the same streams at every point
def _begun(seed: int, name: str) -> _Beginning:
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    whole = np.random.SeedSequence(seed, spawn_key=_WORDS.unpack(digest))
    return _Beginning(np.asarray(whole.generate_state(4, np.uint64), dtype=np.uint64))


class _Beginning(ISeedSequence):
    """What a `SeedSequence` answers to `PCG64`: to find it takes most of a generator's time."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        words.setflags(write=False)
        self._words = words

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> NDArray[np.uint64]:
        """Return the four words that `PCG64` asks for."""
        if n_words != len(self._words) or np.dtype(dtype) != self._words.dtype:  # type: ignore[call-overload]
            raise TypeError("a named stream begins a PCG64 and nothing else")
        return self._words


@dataclass(frozen=True)
class Draws:
    """The randomness of a batch of releases: one leading entry per draw.

    ``numbers`` are the trial numbers. Made by `trials` (one named stream per
    trial, so trial 7 is the same whether 10 or 1,000 are drawn) or by `batch`
    (one generator for the whole batch: faster, for audits and law tests).
    """

    generators: tuple[np.random.Generator, ...]
    numbers: tuple[int, ...]

    @classmethod
    def trials(cls, seed: int, label: str, trials: Sequence[int]) -> Draws:
        """Return one stream for each trial, named (seed, label, trial)."""
        numbers = tuple(int(trial) for trial in trials)
        return cls(tuple(generator(seed, label, trial) for trial in numbers), numbers)

    @classmethod
    def batch(cls, rng: np.random.Generator, size: int) -> Draws:
        """Return ``size`` draws that share one generator."""
        return cls((rng,), tuple(range(size)))

    @property
    def size(self) -> int:
        """Number of draws."""
        return len(self.numbers)

    @cached_property
    def shared(self) -> bool:
        """Whether one generator serves the whole batch."""
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
        """Return one `Draws` of size 1 per draw, for samplers that loop."""
        if self.shared:
            return [Draws(self.generators, (number,)) for number in self.numbers]
        pairs = zip(self.generators, self.numbers, strict=True)
        return [Draws((rng,), (number,)) for rng, number in pairs]
