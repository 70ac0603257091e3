"""Nested random subsamples of rows, found without holding a permutation.

Row i has a random key that depends on the seed and i alone. The n rows of the
smallest keys are a uniform sample of n rows; for one seed a smaller sample lies
inside a larger one. Keys come from a jump in the stream, so any block of rows
can be asked alone and memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import generator

Keys = NDArray[np.uint64]

_BLOCK = 1 << 20
_DIGITS = 16  # top bits of a key that are counted first


class Subsample:
    """The n rows of a table of ``total`` rows that have the smallest keys.

    Parameters
    ----------
    seed : int
    total : int
        Rows of the table.
    n : int
        Rows wanted, from 1 to ``total``.

    Raises
    ------
    InvalidSetting
        If n is out of range.
    """

    def __init__(self, seed: int, total: int, n: int) -> None:
        if not 1 <= n <= total:
            raise InvalidSetting("n", f"a whole number from 1 to {total}", n)
        self.seed, self.total, self.n = seed, total, n
        counts = np.zeros(1 << _DIGITS, dtype=np.int64)
        for _, keys in self._blocks():
            counts += np.bincount(_top(keys), minlength=len(counts))
        digit = int(np.searchsorted(np.cumsum(counts), n))
        found_keys, found_rows = [], []
        for start, keys in self._blocks():
            rows = np.flatnonzero(_top(keys) == digit)
            found_keys.append(keys[rows])
            found_rows.append(rows + start)
        near, rows = np.concatenate(found_keys), np.concatenate(found_rows)
        missing = n - int(counts[:digit].sum())
        self._limit = np.sort(near)[missing - 1]
        below = int((near < self._limit).sum())
        # Equal keys are as rare as collisions of 64 bits; the first rows win.
        self._ties = rows[near == self._limit][: missing - below]

    def _blocks(self) -> Iterator[tuple[int, Keys]]:
        for start in range(0, self.total, _BLOCK):
            yield start, _keys(self.seed, start, min(start + _BLOCK, self.total))

    def chosen(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return which of the rows from ``start`` to before ``stop`` are in the sample."""
        mask: NDArray[np.bool_] = _keys(self.seed, start, stop) < self._limit
        ties = self._ties[(self._ties >= start) & (self._ties < stop)]
        mask[ties - start] = True
        return mask


def _keys(seed: int, start: int, stop: int) -> Keys:
    bits = generator(seed, "subsample").bit_generator
    assert isinstance(bits, np.random.PCG64)
    bits.advance(start)
    keys: Keys = bits.random_raw(stop - start)
    return keys


def _top(keys: Keys) -> NDArray[np.int64]:
    return (keys >> np.uint64(64 - _DIGITS)).astype(np.int64)
