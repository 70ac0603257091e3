"""Worst-case neighbours: pairs of synthetic tables that differ in one row or one person.

Geometry proposes most pairs. One person's row changes to an orthogonal one (on a box, a corner to
the most nearly orthogonal one), to zero, or along the pair that is worst for an l1 norm. The other
rows are empty, point the same way or elsewhere, tie the k-th and (k+1)-th direction, fill every
direction alike, or differ in length. Random pairs and the search in `dpviz.auditing` add to these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpviz.accounting.boxes import frobenius_reach
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Problem, Relation

_RANDOM_PAIRS = 4
# Each length is this share of the previous one: one row then clearly moves every quantile, but
# rounding does not hide the median.
_SHORTER, _MOST_STEPS = 0.8, 100
# These shares of rows are longer than the usual quantiles; the next rows are shorter by the factor
# `_LOWER`. Each table has few lengths, because each length needs many rows.
_SHARES = {
    "levels": (0.01, 0.05, 0.1, 0.25, 0.5),
    "second levels": (0.02, 0.06, 0.2, 0.6),
    "third levels": (0.03, 0.15, 0.3),
}
_LOWER = 0.01


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables.

    Attributes
    ----------
    name : str
        A description of the tables in words.
    others : ndarray of shape (n - together, d)
        The rows that both tables share.
    first, second : ndarray of shape (d,)
        The row that differs, which is row 0 of each table.
    by_chance : bool
        Whether the rows that differ are random.
    together : int
        Number of rows of one person that differ. All change alike, which moves X'X the farthest.
    """

    name: str
    others: FloatArray
    first: FloatArray
    second: FloatArray
    by_chance: bool = False
    together: int = 1

    @property
    def difference(self) -> FloatArray:
        """Difference D = vv' - ww' of the two tables' X'X; shape (d, d)."""
        change: FloatArray = np.outer(self.first, self.first) - np.outer(self.second, self.second)
        return self.together * change

    def tables(self) -> tuple[SecondMoment, SecondMoment]:
        """Return the two tables' second moments, with their rows."""
        return self._table(self.first), self._table(self.second)

    def _table(self, row: FloatArray) -> SecondMoment:
        rows = np.vstack([*[row] * self.together, self.others])
        rows.setflags(write=False)
        moment = rows.T @ rows / len(rows)
        return SecondMoment((moment + moment.T) / 2, len(rows), rows)

    def longest(self) -> float:
        """Return the largest norm of a row in either table."""
        rows = np.vstack([self.first, self.second, self.others])
        return float(np.sqrt(np.square(rows).sum(axis=1)).max())


def candidates(
    problem: Problem, rng: np.random.Generator, *, additive: bool, rows: bool
) -> list[Pair]:
    """Return the candidate pairs, chosen by geometry and at random.

    Parameters
    ----------
    problem : Problem
        The problem, whose domain is a ball or a box. Under replace every zero-out pair is legal
        too, because the zero row is a legal row.
    rng : Generator
        Generator of the random pairs.
    additive : bool
        Whether the noise is independent of the table. If so, other people do not matter, and only
        the empty table is proposed.
    rows : bool
        Whether the release shows rows, so that opposite rows give different releases.
    """
    d, box = problem.d, problem.domain.kind == "box"
    changes = _box_changes(problem, rows) if box else _changes(problem, rows)
    # If noise does not depend on the table, the other rows do not affect how well it hides a row.
    backgrounds = ("empty",) if additive else tuple(_BACKGROUNDS)
    pairs = [
        Pair(f"{change}, {_BACKGROUNDS[kind]}", _others(kind, v, w, problem), v, w)
        for change, v, w in changes
        for kind in backgrounds
    ]
    if rows and not additive:
        # Removing a row also changes statistics of the row lengths, such as a clipping quantile.
        pairs += [
            Pair(f"{change}, {_LENGTHS[kind]}", _others(kind, v, w, problem), v, w)
            for change, v, w in changes
            for kind in _LENGTHS
            if not w.any()
        ]
    for number in range(_RANDOM_PAIRS):
        if box:
            v, w = rng.choice([-1.0, 1.0], (2, d)) * np.asarray(problem.domain.half_widths)
        else:
            v, w = (row / np.linalg.norm(row) for row in rng.standard_normal((2, d)))
        # Under zero-out, the row of a person who leaves becomes zero.
        if problem.relation is Relation.ZERO_OUT:
            w = np.zeros(d)
        kind = backgrounds[number % len(backgrounds)]
        name = f"a random row changed, {_BACKGROUNDS[kind]}"
        pairs.append(Pair(name, _others(kind, v, w, problem), v, w, True))
    m = problem.together
    if m == 1:
        return pairs
    return [replace(pair, name=f"{m} times {pair.name}", together=m) for pair in pairs]


def eigenvector_pairs(problem: Problem) -> list[Pair]:
    """Return the few pairs on a ball that reveal most through eigenvectors, for slow functions.

    In each pair one row decides which of two directions leads, is the only data, or opposes other
    rows that all point elsewhere.
    """
    return [
        Pair(f"{change}, {_BACKGROUNDS[kind]}", _others(kind, v, w, problem), v, w)
        for change, v, w in _changes(problem, rows=False)
        for kind in ("tied", "empty", "elsewhere")
    ]


def moved(pair: Pair, problem: Problem, step: float, rng: np.random.Generator) -> Pair:
    """Return a legal pair near the given one, with all rows turned a little.

    Parameters
    ----------
    pair : Pair
    problem : Problem
    step : float
        Length of the random step of a unit row.
    rng : Generator
    """
    d = problem.d
    widths = np.asarray(problem.domain.half_widths)

    def nudged(row: FloatArray) -> FloatArray:
        away = row + step * rng.standard_normal(d) / math.sqrt(d)
        if len(widths):
            return np.clip(away, -widths, widths)
        return away / max(1.0, float(np.linalg.norm(away)))

    first = nudged(pair.first)
    zero = problem.relation is Relation.ZERO_OUT or not pair.second.any()
    second = np.zeros(d) if zero else nudged(pair.second)
    # Turn all other rows by one small rotation, which preserves their lengths and spectrum.
    turn, upper = np.linalg.qr(np.eye(d) + step * rng.standard_normal((d, d)) / d)
    others = pair.others @ (turn * np.where(np.diag(upper) < 0, -1.0, 1.0)).T
    if len(widths):  # Scale all rows by one factor, so that they fit into the box.
        others = others / max(1.0, float(np.abs(others / widths).max(initial=0.0)))
    name = pair.name if pair.name.endswith("after a search") else f"{pair.name}, after a search"
    return Pair(name, others, first, second, True, pair.together)


def _changes(problem: Problem, rows: bool) -> list[tuple[str, FloatArray, FloatArray]]:
    d = problem.d
    axes, zero = np.eye(d), np.zeros(d)
    even = np.ones(d) / math.sqrt(d)
    changes = [
        ("a unit row zeroed", axes[0], zero),
        ("an even row zeroed", even, zero),
    ]
    if problem.relation is Relation.ZERO_OUT:
        return changes
    # This pair has the largest l1 norm of vv' - ww'; see `dpviz.accounting.sensitivity.l1_entries`.
    angles = np.where(np.arange(d) < d // 2, math.pi / 8, 5 * math.pi / 8)
    v, w = np.cos(angles - math.pi / 4), np.cos(angles + math.pi / 4)
    changes.append(("a unit row replaced by an orthogonal one", axes[0], axes[1]))
    changes.append(("an even row turned", v / np.linalg.norm(v), w / np.linalg.norm(w)))
    if rows:
        changes.append(("a unit row reversed", axes[0], -axes[0]))
        changes.append(("an even row reversed", even, -even))
    return changes


def _box_changes(problem: Problem, rows: bool) -> list[tuple[str, FloatArray, FloatArray]]:
    d = problem.d
    corner, zero = np.array(problem.domain.half_widths), np.zeros(d)
    axis = corner * np.eye(d)[0]
    changes = [("a corner zeroed", corner, zero), ("one feature's bound zeroed", axis, zero)]
    if problem.relation is Relation.ZERO_OUT:
        return changes
    # This pair changes A most in the Frobenius and nuclear norms; see `dpviz.accounting.boxes`.
    changes.append(
        (
            "a corner replaced by the most nearly orthogonal one",
            corner,
            corner * frobenius_reach(np.square(corner)).row,
        )
    )
    changes.append(("a corner replaced by one feature's bound", corner, axis))
    if rows:
        changes.append(("a corner reversed", corner, -corner))
    return changes


_BACKGROUNDS = {
    "empty": "no other data",
    "same": "the other rows like the first row",
    "elsewhere": "the other rows like the second row, or elsewhere",
    "tied": "two directions tied",
    "isotropic": "the other rows alike in all directions",
}
_LENGTHS = {
    "falling": "each other row shorter than the row before",
    "levels": "a few of the others long, more short, most shorter still",
    "second levels": "a few of the others long, more short, most shorter still, by other shares",
    "third levels": "a few of the others long, more short, most shorter still, by third shares",
}


def _others(kind: str, v: FloatArray, w: FloatArray, problem: Problem) -> FloatArray:
    """Return the rows that both tables share."""
    count, d = problem.n - problem.together, problem.d
    rows = np.zeros((count, d))
    axes = _axes(v, w)
    if problem.domain.kind == "box":
        # Make each row as long as the box allows along its axis. The first two axes get the same
        # length, so that their eigenvalues can tie.
        widths = np.asarray(problem.domain.half_widths)
        reach = (widths / np.maximum(np.abs(axes), 1e-12)).min(axis=1)
        reach[:2] = reach[:2].min()
        axes *= reach[:, None]
    if kind == "same":
        rows[:] = axes[0]
    elif kind == "elsewhere":
        rows[:] = axes[1]
    elif kind == "isotropic":
        rows[:] = axes[np.arange(count) % d]
    elif kind == "falling":
        steps = np.minimum(np.arange(1, count + 1), _MOST_STEPS)
        rows[:] = axes[np.arange(count) % d] * _SHORTER ** steps[:, None]
    elif kind in _SHARES:
        # Rows of different lengths point in different directions, so a lower quantile is visible.
        level = np.searchsorted(_SHARES[kind], np.arange(2, count + 2) / problem.n)
        rows[:] = axes[level % d] * _LOWER ** level[:, None]
    elif kind == "tied":
        # k - 1 directions stand out clearly; rows v and w decide which direction is number k.
        ahead = min(problem.k - 1, d - 2)
        each = count // (2 + 2 * ahead)
        for place in range(ahead):
            rows[2 * each * (1 + place) : 2 * each * (2 + place)] = axes[2 + place]
        rows[:each], rows[each : 2 * each] = axes[0], axes[1]
        if not w.any() and each:
            # Remove half a row along v: then v leads if the person is in the table, otherwise not.
            rows[0] *= math.sqrt(0.5)
    return rows


def _axes(v: FloatArray, w: FloatArray) -> FloatArray:
    """Return d orthonormal rows: first v's direction, then w's part orthogonal to v."""
    start = np.stack([v, w, *np.eye(len(v))])
    axes: list[FloatArray] = []
    for row in start:
        rest = row - sum((axis * (axis @ row) for axis in axes), np.zeros(len(v)))
        length = float(np.linalg.norm(rest))
        if length > 1e-9 and len(axes) < len(v):
            axes.append(rest / length)
    return np.array(axes)
