"""How a label travels with a row through a data release, and comes out again.

A code writes a label as a few cells that lie where the features lie: in the
cube, or in the unit ball beside them. Reading noisy cells is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Domain
from dpviz.simulation.tasks.learners import Labels

BESIDE = math.sqrt(2.0)
"""On a ball, features and code each have length at most 1, so both over this lie in it."""


class Code(Protocol):
    """Labels as cells in [-1, 1], together of length at most 1 on a ball."""

    @property
    def width(self) -> int:
        """Number of cells."""

    def write(self, labels: Labels) -> FloatArray:
        """Return the cells of labels, shape (n, width)."""

    def read(self, cells: FloatArray) -> Labels:
        """Return the labels that noisy cells stand for, shape (n,)."""


@dataclass(frozen=True)
class NoCode:
    """For clustering, which needs no label: none is released."""

    width: int = 0

    def write(self, labels: Labels) -> FloatArray:
        """Return no cells."""
        return np.empty((len(labels), 0))

    def read(self, cells: FloatArray) -> Labels:
        """Return one label for all."""
        return np.zeros(len(cells), dtype=np.int64)


@dataclass(frozen=True)
class ClassCode:
    """Classes 0 to count - 1: a sign for two, else one cell for each class.

    Attributes
    ----------
    count : int
    low : float
        What the cells of the other classes hold: -1 in a box, 0 in a ball,
        where the code must be short.
    """

    count: int
    low: float

    @property
    def width(self) -> int:
        """Number of cells."""
        return 1 if self.count == 2 else self.count

    def write(self, labels: Labels) -> FloatArray:
        """Return the cells of classes, shape (n, width)."""
        if self.count == 2:
            signs: FloatArray = np.where(labels[:, None] == 1, 1.0, -1.0)
            return signs
        cells: FloatArray = np.where(labels[:, None] == np.arange(self.count), 1.0, self.low)
        return cells

    def read(self, cells: FloatArray) -> Labels:
        """Return the class of the largest cell, or of the sign."""
        found: Labels = (cells[:, 0] > 0).astype(np.int64)
        return found if self.count == 2 else cells.argmax(axis=1)


@dataclass(frozen=True)
class NumberCode:
    """Numbers between public bounds, as one cell in [-1, 1].

    Attributes
    ----------
    low, high : float
        In units of the labels; equal where the label does not vary.
    """

    low: float
    high: float
    width: int = 1

    @property
    def _half(self) -> float:
        return (self.high - self.low) / 2 or 1.0

    def write(self, labels: Labels) -> FloatArray:
        """Return the cells of numbers, clipped to the bounds; shape (n, 1)."""
        cells: FloatArray = (labels - (self.low + self.high) / 2) / self._half
        return np.clip(cells, -1.0, 1.0)[:, None]

    def read(self, cells: FloatArray) -> Labels:
        """Return noisy numbers, clipped to the bounds: beyond them lies nothing but noise."""
        middle = (self.low + self.high) / 2
        found: Labels = np.clip(cells[:, 0], -1.0, 1.0) * self._half + middle
        return found


def joined(rows: FloatArray, cells: FloatArray, domain: Domain) -> FloatArray:
    """Return bounded rows and the cells of their labels as one table in the domain's kind."""
    both: FloatArray = np.hstack([rows, cells])
    if domain.kind == "ball" and cells.shape[1]:
        both /= BESIDE
    return both


def parted(table: FloatArray, d: int, domain: Domain) -> tuple[FloatArray, FloatArray]:
    """Return features and cells in the units they had before `joined`."""
    if domain.kind == "ball" and table.shape[1] > d:
        table = table * BESIDE
    return table[:, :d], table[:, d:]


def joint_domain(domain: Domain, width: int) -> Domain:
    """Return where rows lie once their labels stand beside them."""
    d = domain.d + width
    if not domain.bounded:
        return Domain.unbounded(d)
    return Domain.ball(d) if domain.kind == "ball" else Domain.box(d)
