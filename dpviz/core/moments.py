"""The second moment, the only part of a table that most mechanisms see."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.by_length import BlocksAgain, InBlocks, Lengths, ReadAgain, RowChange

THIN_FROM = 300
"""Dimension from which a moment of few rows is stored as its root, not as a d x d matrix."""

THIN_RATIO = 4
"""A moment is thin if d is at least this many times the number of rows."""

_KEPT_ENTRIES = 1 << 21
"""Maximum number of entries of cached moments of the same rows: 16 MB, or one of any size."""


class SecondMoment:
    """A = X'X/n of n bounded rows.

    If d is far above n, the root G with A = G'G is stored instead. Then no exact result
    (eigenvalues, leading components, products) needs a d x d matrix; `A` is computed only when a
    mechanism needs it.

    Parameters
    ----------
    A : ndarray of shape (d, d)
        A symmetric positive semi-definite matrix, in units of the squared row-norm bound (the unit
        ball or the cube). It is read-only from here on.
    n : int
        Number of rows behind the moment.
    rows : ndarray of shape (n, d), optional
        The bounded rows, if available; only mechanisms that declare ``needs_rows`` read them.

    Attributes
    ----------
    n : int
    root : ndarray of shape (r, d) or None
        The root G, if the moment is stored as its root.
    """

    _features = 0  # If 0, the stored array gives the number of features.
    _again: BlocksAgain | None = None

    def __init__(self, A: FloatArray, n: int, rows: FloatArray | None = None) -> None:
        self.n = n
        self._rows: FloatArray | Callable[[], FloatArray] | None = rows
        self._lengths: Lengths | None = None
        self.root: FloatArray | None = None
        self.__dict__["A"] = A
        A.setflags(write=False)

    @classmethod
    def of_root(cls, root: FloatArray, n: int, rows: FloatArray | None = None) -> Self:
        """Return the moment G'G of a root G, shape (r, d)."""
        made = cls.__new__(cls)
        made.n, made._rows, made.root, made._lengths = n, rows, root, None
        root.setflags(write=False)
        return made

    @classmethod
    def of_lengths(cls, lengths: Lengths, d: int) -> Self:
        """Return the moment of rows summed by their lengths; A is computed on first use."""
        made = cls.__new__(cls)
        made.n, made._rows, made.root, made._lengths = lengths.n, None, None, lengths
        made._features = d
        return made

    def with_lengths(self, lengths: Lengths, again: BlocksAgain | None = None) -> SecondMoment:
        """Return the same moment with summaries of its rows by length, and a reader of the rows."""
        made = self.with_n(self.n)
        made._lengths, made._again = lengths, again
        return made

    def with_rows(self, rows: Callable[[], FloatArray]) -> SecondMoment:
        """Return the same moment with rows computed on first use; both share caches."""
        _ = self.lengths, self._shortened
        made = copy(self)
        made._rows = rows
        return made

    @property
    def rows(self) -> FloatArray | None:
        """The bounded rows, or None if they are not in memory."""
        if callable(self._rows):
            self._rows = self._rows()
        return self._rows

    def blocks(self, change: RowChange | None = None) -> Iterator[tuple[int, FloatArray]]:
        """Yield the bounded rows in one pass, as blocks with the number of their first row.

        A block is valid until the next one. Its numbers do not depend on where the rows are stored.

        Parameters
        ----------
        change : callable, optional
            A function from a block to a block of as many rows.
        """
        rows = self.rows
        source = self._again if rows is None else InBlocks(rows)
        assert source is not None
        for start, block in source.blocks():
            yield start, block if change is None else change(block)

    @property
    def has_lengths(self) -> bool:
        """Whether `lengths` is available."""
        return self._lengths is not None or self._rows is not None

    @cached_property
    def lengths(self) -> Lengths:
        """Summaries of the bounded rows by length; available if `has_lengths`."""
        if self._lengths is not None:
            return self._lengths
        assert self.rows is not None
        return ReadAgain(InBlocks(self.rows), *self.rows.shape)

    @cached_property
    def _shortened(self) -> OrderedDict[Hashable, SecondMoment]:
        return OrderedDict()

    def shortened(self, radius: float | None) -> SecondMoment:
        """Return the moment of rows clipped to a radius, as `Lengths.moment` does.

        Simulations at every epsilon need the same few moments, so the latest are cached.
        """
        return self.remembered(radius, lambda: self.lengths.moment(radius))

    def remembered(self, name: Hashable, find: Callable[[], FloatArray]) -> SecondMoment:
        """Return another moment of the same rows, from the cache if a moment has this name."""
        memory = self._shortened
        moment = memory.pop(name, None) or SecondMoment(find(), self.n)
        # Put the latest entry last in the cache, so that the oldest entry is dropped first.
        memory[name] = moment
        while len(memory) > max(1, _KEPT_ENTRIES // self.d**2):
            memory.popitem(last=False)
        return moment

    def with_n(self, n: int, rows: FloatArray | None = None) -> SecondMoment:
        """Return the same A for another number of rows, or with other rows in memory."""
        if self.root is not None:
            return SecondMoment.of_root(self.root, n, rows)
        return SecondMoment(self.A, n, rows)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Make a copy that another process receives as read-only as the original.
        self.__dict__.update(state)
        cached = () if self.root is None and "A" not in state else (self.kept,)
        for array in (*cached, *state.get("span", ())):
            array.setflags(write=False)

    @cached_property
    def A(self) -> FloatArray:
        """The moment as a matrix, shape (d, d)."""
        if self.root is None:
            assert self._lengths is not None
            dense = self._lengths.everything()
            dense.setflags(write=False)
            return dense
        matrix = self.root.T @ self.root
        made: FloatArray = (matrix + matrix.T) / 2
        made.setflags(write=False)
        return made

    @property
    def kept(self) -> FloatArray:
        """The stored array: the root if the moment has one, else the matrix."""
        return self.A if self.root is None else self.root

    @property
    def d(self) -> int:
        """Number of features."""
        return self._features or int(self.kept.shape[1])

    @cached_property
    def span(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, descending, and eigenvectors as columns; zero eigenvalues may be missing.

        Shapes (r,) and (d, r): r is d, or the number of rows of the root.
        """
        if self.root is not None:
            # Use the right singular vectors of G: they are the eigenvectors of G'G, but squaring G
            # would add rounding errors.
            _, lengths, vectors = np.linalg.svd(self.root, full_matrices=False)
            values, vectors = lengths**2, fix_signs(vectors.T)
        else:
            values, vectors = np.linalg.eigh(self.A)
            values, vectors = values[::-1].copy(), fix_signs(vectors[:, ::-1])
        values.setflags(write=False)
        vectors.setflags(write=False)
        return values, vectors

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """Eigenvalues of A, shape (d,), descending."""
        leading = self.span[0]
        if len(leading) == self.d:
            return leading
        values = np.zeros(self.d)
        values[: len(leading)] = leading
        values.setflags(write=False)
        return values

    @cached_property
    def eigenvectors(self) -> FloatArray:
        """Eigenvectors of A as columns, shape (d, d), in the same order."""
        return self.top(self.d)

    def top(self, k: int) -> FloatArray:
        """Return the leading k eigenvectors as columns, shape (d, k), k from 1 to d."""
        basis = self.span[1]
        if k <= basis.shape[1]:
            return basis[:, :k]
        # The remaining eigenvalues are all 0, so any basis of the remaining space is valid.
        rest = np.linalg.qr(basis, mode="complete").Q[:, basis.shape[1] : k]
        vectors: FloatArray = np.concatenate([basis, fix_signs(rest)], axis=1)
        vectors.setflags(write=False)
        return vectors

    def times(self, vectors: FloatArray) -> FloatArray:
        """Return A times vectors of shape (..., d, k)."""
        if self.root is not None:
            product: FloatArray = self.root.T @ (self.root @ vectors)
            return product
        product = self.A @ vectors
        return product

    @property
    def total(self) -> float:
        """Total variance, the trace of A."""
        if self.root is not None:
            return float(np.einsum("ij,ij->", self.root, self.root))
        return float(np.trace(self.A))


def is_thin(rows: int, d: int) -> bool:
    """Return whether rows of d features are few enough to store as a root instead of a matrix."""
    return d >= THIN_FROM and THIN_RATIO * rows <= d
