"""The rows of one split: rows that the release uses, training rows and test rows.

After a projection, the mean, the scale and the row-norm bound come from the rows that the subspace
is computed from; n in the calibration is their number. If these steps are private, each trial has
its own. Training and test rows get the same preparation without the bound, which protects nobody
there. In a data release the steps come from the released rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Domain
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets.table import Table
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.prepared import Measured
from dpviz.preparation.transform import Transform
from dpviz.simulation.tasks.learners import CLUSTERING, REGRESSION, Labels, Learner
from dpviz.simulation.tasks.scores import Labelled, split
from dpviz.simulation.tasks.task import APART, PROJECTION, Task

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Sides:
    """Row numbers of one split.

    Attributes
    ----------
    private : ndarray of int
        Rows that the release uses.
    train, test : ndarray of int
        Training and test rows, at most `Task.most` rows each.
    """

    private: Rows
    train: Rows
    test: Rows


def sides(task: Task, n: int, seed: int, number: int, learned: int | None = None) -> Sides:
    """Return the rows of one split, which does not depend on labels.

    Parameters
    ----------
    task : Task
    n, seed, number : int
        Number of rows, seed of the stream and split number.
    learned : int, optional
        Maximum number of training rows, besides the task's own limit.

    Raises
    ------
    InvalidSetting
        If a part would be empty.
    """
    parts = split(n, task.shares, generator(seed, "task", "split", number))
    train, test = parts[-2][: min(task.most, learned or n)], parts[-1][: task.most]
    if task.source != PROJECTION:
        return Sides(train, train, test)
    return Sides(parts[0] if task.subspace == APART else parts[-2], train, test)


@dataclass(frozen=True, eq=False)
class Projecting:
    """One split of the rows for a task after a projection.

    Attributes
    ----------
    measured : Measured
        Summary of the rows from which the subspace is computed, without the rows themselves.
    transform : Transform
        Preparation of the subspace's rows; if it is private, its exact counterpart.
    private : ndarray of int
        Numbers of the subspace's rows, for mechanisms that need the rows themselves.
    sides : Sides
    train, test : Labelled
        Training and test rows, prepared without the bound.
    """

    measured: Measured
    transform: Transform
    private: Rows
    sides: Sides
    train: Labelled
    test: Labelled

    def prepared(self, table: Table, transform: Transform) -> tuple[Labelled, Labelled]:
        """Return training and test rows with the preparation of one trial."""
        return (
            Labelled(transform.unbounded(table.rows[self.sides.train]), self.train.labels),
            Labelled(transform.unbounded(table.rows[self.sides.test]), self.test.labels),
        )

    def with_rows(self, table: Table) -> Measured:
        """Return the moment that mechanisms see, including the bounded rows."""
        rows = self.transform.inside(table.rows[self.private])
        moment = SecondMoment(self.measured.moment.A, self.measured.n, rows)
        return replace(self.measured, moment=moment)


@dataclass(frozen=True, eq=False)
class Releasing:
    """One split of a task learned from a data release.

    Attributes
    ----------
    measured : Measured
        Second moment of the bounded rows with label cells, stored with these rows.
    d : int
        Number of features; the cells of the label come after them.
    code : Code
        The encoding of labels.
    transform : Transform
        Preparation of the features; if it is private, its exact counterpart.
    sides : Sides
    train, test : Labelled
        Clean rows, prepared without the bound, in the units of the released features.
    """

    measured: Measured
    d: int
    code: Code
    transform: Transform
    sides: Sides
    train: Labelled
    test: Labelled

    def beside(self, rows: FloatArray) -> FloatArray:
        """Return bounded features with the cells of the training labels beside them."""
        return joined(rows, self.code.write(self.train.labels), Domain.ball(self.d))

    def prepared_test(self, table: Table, transform: Transform) -> Labelled:
        """Return the test rows with the preparation of one trial."""
        return Labelled(transform.unbounded(table.rows[self.sides.test]), self.test.labels)

    def read(self, values: FloatArray) -> Labelled:
        """Split a released table, shape (n, d + width), into rows and labels."""
        if self.measured.domain.kind == "ball" and self.code.width:
            values = values * BESIDE
        return Labelled(values[:, : self.d], self.code.read(values[:, self.d :]))


def _prepared(table: Table, rows: Rows, settings: Settings) -> Prepared:
    # Use the table's own order, so that sums do not depend on the random order of the split.
    part = replace(table, rows=table.rows[np.sort(rows)], labels=None, label_name=None)
    return prepare(part, settings)


def _clean(table: Table, labels: Labels, rows: Rows, transform: Transform) -> Labelled:
    return Labelled(transform.unbounded(table.rows[rows]), labels[rows])


def projecting(table: Table, labels: Labels, chosen: Sides, settings: Settings) -> Projecting:
    """Return the data of one split of a task after a projection."""
    ready = _prepared(table, chosen.private, settings)
    with one_blas_thread():
        _ = ready.moment.eigenvectors, ready.reference.eigenvectors
    return Projecting(
        ready.light(),
        ready.transform,
        np.sort(chosen.private),
        chosen,
        _clean(table, labels, chosen.train, ready.transform),
        _clean(table, labels, chosen.test, ready.transform),
    )


def releasing(
    table: Table,
    labels: Labels,
    chosen: Sides,
    settings: Settings,
    learner: Learner,
    label_bounds: tuple[float, float] | None,
) -> Releasing:
    """Return the data of one split of a task learned from a data release.

    Parameters
    ----------
    table : Table
    labels : ndarray of shape (n,)
        Labels: classes 0, 1, ..., or numbers.
    chosen : Sides
    settings : Settings
    learner : Learner
    label_bounds : (float, float) or None
        Public bounds of a numeric label, in units of ``labels``; None means the training labels'
        range.
    """
    ready = _prepared(table, chosen.train, settings)
    order = np.sort(chosen.train)
    train = _clean(table, labels, order, ready.transform)
    code = _code(learner, labels, train.labels, ready.domain.kind, label_bounds)
    rows = ready.transform.inside(table.rows[order])
    both = joined(rows, code.write(train.labels), ready.domain)
    with one_blas_thread():
        A = both.T @ both / len(both)
    moment = SecondMoment((A + A.T) / 2, len(both), both)
    d, kind = ready.d + code.width, ready.domain.kind
    joint = Domain.ball(d) if kind == "ball" else Domain.box(d)
    domain = joint if ready.domain.bounded else Domain.unbounded(d)
    names = tuple(f"label {number}" for number in range(1, code.width + 1))
    moments = Measured(
        ready.name,
        (*ready.columns, *names),
        domain,
        domain.radius,
        moment,
        moment,
        ready.bounded_rows,
        ready.notes,
        ready.assumed_public,
        raw=ready.raw,
        public=ready.public,
    )
    test = _clean(table, labels, chosen.test, ready.transform)
    return Releasing(moments, ready.d, code, ready.transform, chosen, train, test)


def _code(
    learner: Learner,
    labels: Labels,
    train: Labels,
    domain: str,
    bounds: tuple[float, float] | None,
) -> Code:
    if learner.kind == CLUSTERING:
        return Code(learner.kind, 0)
    if learner.kind == REGRESSION:
        low, high = (float(train.min()), float(train.max())) if bounds is None else bounds
        return Code(learner.kind, 1, low, high)
    # The number of classes is public, so it must not depend on the classes in a split.
    count = int(labels.max()) + 1
    return Code(learner.kind, 1 if count == 2 else count, low=-1.0 if domain == "box" else 0.0)


def canonical(labels: NDArray[Any], learner: Learner) -> tuple[Labels, float]:
    """Return labels in the form that learners use, and the unit of numeric labels.

    Classes become 0, 1, ... in sorted order; numbers are divided by their
    standard deviation over the whole table.
    """
    if learner.kind != REGRESSION:
        codes: Labels = np.unique(labels, return_inverse=True)[1].ravel()
        return codes, 1.0
    numbers = labels.astype(np.float64)
    unit = float(numbers.std())
    return numbers / unit, unit


# Labels as numbers that are released with the features --------------------------------------------


BESIDE = math.sqrt(2.0)
"""On a ball, features and code each have length at most 1; divided by this, they fit together."""


@dataclass(frozen=True)
class Code:
    """Labels as cells in [-1, 1], with a joint length of at most 1 on a ball.

    Clustering needs no label, so none is released. A numeric label is one cell. Two classes are the
    sign of one cell, and more classes have one cell each.

    Attributes
    ----------
    kind : {"classification", "regression", "clustering"}
    width : int
        Number of cells.
    low, high : float
        Public bounds of a number, equal if it does not vary. ``low`` is also the value in the cells
        of all other classes: -1 in a box, 0 in a ball, where the length of the code is limited.
    """

    kind: str
    width: int
    low: float = 0.0
    high: float = 0.0

    @property
    def _middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def _half(self) -> float:
        return (self.high - self.low) / 2 or 1.0

    def write(self, labels: Labels) -> FloatArray:
        """Return the cells of labels, shape (n, width); numbers are clipped to their bounds."""
        if self.kind == REGRESSION:
            cells: FloatArray = np.clip((labels - self._middle) / self._half, -1.0, 1.0)[:, None]
            return cells
        values = np.array([1]) if self.width == 1 else np.arange(self.width)
        others = -1.0 if self.width == 1 else self.low
        classes: FloatArray = np.where(labels[:, None] == values, 1.0, others)
        return classes

    def read(self, cells: FloatArray) -> Labels:
        """Return the labels that noisy cells represent, shape (n,).

        Numbers are clipped to their bounds, because values beyond them are only noise. The largest
        cell, or the sign, gives the class.
        """
        if self.kind == REGRESSION:
            numbers: Labels = np.clip(cells[:, 0], -1.0, 1.0) * self._half + self._middle
            return numbers
        if self.width == 0:
            return np.zeros(len(cells), dtype=np.int64)
        return (cells[:, 0] > 0).astype(np.int64) if self.width == 1 else cells.argmax(axis=1)


def joined(rows: FloatArray, cells: FloatArray, domain: Domain) -> FloatArray:
    """Join bounded rows and their label cells into one table in the domain's kind."""
    both: FloatArray = np.hstack([rows, cells])
    if domain.kind == "ball" and cells.shape[1]:
        both /= BESIDE
    return both
