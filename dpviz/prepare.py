"""From a table to bounded rows: the only maker of them.

Whatever is taken from the data on the way (means, scales, the row bound) is
not protected; every such thing is listed in ``Prepared.assumed_public``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.allocation import numbered, parse_allocation
from dpviz.datasets.table import Table
from dpviz.errors import InvalidSetting, InvalidTable
from dpviz.moments import FloatArray, SecondMoment
from dpviz.problem import Budget, Domain, Problem, Relation
from dpviz.seeding import generator
from dpviz.settings import Settings, default_delta

Bounds = Mapping[str, tuple[float, float]]

PICTURE_ROWS = 2_000
_BLOCK = 65_536  # rows at a time: bounds memory beside the table itself


@dataclass(frozen=True, eq=False)
class Transform:
    """How a raw row becomes a bounded one: (x - center) / scale, then the bound.

    Attributes
    ----------
    keep : ndarray of bool, shape (d_raw,)
        Columns that are not constant.
    center, scale : ndarray of shape (d,)
        In units of the table; on a ball, ``scale`` includes the row bound R.
    domain : Domain
    """

    keep: NDArray[np.bool_]
    center: FloatArray
    scale: FloatArray
    domain: Domain

    def unbounded(self, rows: FloatArray) -> FloatArray:
        """Return rows in units of the bound, not yet forced inside it."""
        shifted: FloatArray = (rows[:, self.keep] - self.center) / self.scale
        return shifted

    def bounded(self, rows: FloatArray) -> tuple[FloatArray, int]:
        """Return rows inside the domain, and how many had to be moved there."""
        return _into_domain(self.unbounded(rows), self.domain)


def _into_domain(rows: FloatArray, domain: Domain) -> tuple[FloatArray, int]:
    """Scale long rows down to the ball, or clip cells to the box."""
    # One part in 1e12 over the bound is rounding, not a longer row.
    tolerance = 1 + 1e-12
    if domain.kind == "box":
        outside = (np.abs(rows) > tolerance).any(axis=1)
        return np.clip(rows, -1.0, 1.0), int(outside.sum())
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    outside = norms > tolerance
    # Rounding must not leave a row a last digit outside the ball.
    rows = rows / np.maximum(norms, 1.0)[:, None]
    return rows, int(outside.sum())


@dataclass(frozen=True, eq=False)
class Prepared:
    """Bounded rows, summarised, with everything that was assumed public.

    Attributes
    ----------
    table : Table
    columns : tuple of str
        The d features in use.
    transform : Transform
    row_bound : float
        R in units of the (scaled) table; on a box sqrt(d), in box units.
    moment : SecondMoment
        Of the bounded rows: what mechanisms see.
    reference : SecondMoment
        Of the rows before bounding, in the same units: what results are
        compared with.
    bounded_rows : int
        How many rows were longer than the bound (or left the box).
    notes, assumed_public : tuple of str
    """

    table: Table
    columns: tuple[str, ...]
    transform: Transform
    row_bound: float
    moment: SecondMoment
    reference: SecondMoment
    bounded_rows: int
    notes: tuple[str, ...]
    assumed_public: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.moment.n

    @property
    def d(self) -> int:
        """Number of features."""
        return self.moment.d

    @property
    def domain(self) -> Domain:
        """Where every bounded row lies."""
        return self.transform.domain

    @cached_property
    def moment_with_rows(self) -> SecondMoment:
        """The moment with its bounded rows, for mechanisms that need them."""
        rows, _ = self.transform.bounded(self.table.rows)
        return SecondMoment(self.moment.A, self.moment.n, rows)

    def picture(self, size: int) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return bounded rows to draw, and their row numbers.

        Parameters
        ----------
        size : int
            At most this many rows, a fixed random sample, in table order.
        """
        n = len(self.table.rows)
        index = np.arange(n)
        if size < n:
            index = np.sort(generator(0, "picture", n).choice(n, size=size, replace=False))
        rows, _ = self.transform.bounded(self.table.rows[index])
        return rows, index

    def problem(self, settings: Settings) -> Problem:
        """Return the problem that mechanisms calibrate to.

        Raises
        ------
        InvalidSetting
            If k is too large, or the allocation does not fit the features.
        """
        written = numbered(settings.allocation, self.columns, settings.directions)
        return Problem(
            self.n,
            self.d,
            settings.k,
            Relation(settings.relation),
            self.domain,
            parse_allocation(written, settings.directions),
        )

    def budget(self, settings: Settings) -> Budget:
        """Return the budget, with the default delta resolved for n."""
        delta = default_delta(self.n) if settings.delta is None else settings.delta
        return Budget(settings.epsilon, delta)


def prepare(table: Table, settings: Settings, bounds: Bounds | None = None) -> Prepared:
    """Centre, scale and bound a table.

    Parameters
    ----------
    table : Table
    settings : Settings
        Reads ``center``, ``scale``, ``row_bound``, ``domain`` and ``bounds``.
    bounds : mapping of str to (float, float), optional
        Public low and high of each feature, where they were read from a file.

    Raises
    ------
    InvalidTable
        If fewer than two columns vary.
    InvalidSetting
        If bounds are missing or not in order.
    """
    notes = list(table.notes)
    public = ["the number of rows n and the features' names", *table.assumed_public]

    low, high = table.rows.min(axis=0), table.rows.max(axis=0)
    keep = low < high
    columns = tuple(name for name, kept in zip(table.columns, keep, strict=True) if kept)
    if len(columns) < 2:
        raise InvalidTable(
            f"{table.name} must have at least 2 numeric columns that vary; it has {len(columns)}."
        )
    if not keep.all():
        constant = int((~keep).sum())
        notes.append(
            f"{constant} constant column{'s were' if constant > 1 else ' was'} left out; "
            f"{len(columns)} features remain."
        )
        public.append("which columns are constant")

    limits = None
    if settings.domain == "box" or settings.centring == "midpoint":
        limits = _limits(table, columns, keep, settings, bounds, low[keep], high[keep])
        if settings.bounds == "max":
            public.append("the feature bounds (smallest and largest value of each feature)")

    center = np.zeros(len(columns))
    if settings.centring == "mean":
        center = table.rows.mean(axis=0)[keep]
        public.append("the feature means")
    elif settings.centring == "midpoint" and limits is not None:
        center = (limits[0] + limits[1]) / 2

    scale = np.ones(len(columns))
    if settings.scale == "standardize":
        if settings.domain == "box":
            notes.append("On a box, features are scaled by their bounds; standardising is unused.")
        else:
            scale = _standard_deviations(table.rows, keep)
            public.append("the feature scales (standard deviations)")

    d = len(columns)
    if settings.domain == "box" and limits is not None:
        if settings.row_bound != "max":
            notes.append("On a box, the feature bounds replace the row bound.")
        half = (limits[1] - limits[0]) / 2
        if settings.centring == "none":
            half = np.maximum(np.abs(limits[0]), np.abs(limits[1]))
        transform = Transform(keep, center, half, Domain.box(d))
        row_bound = transform.domain.radius
    else:
        unscaled = Transform(keep, center, scale, Domain.ball(d))
        row_bound = _row_bound(table.rows, unscaled, settings.row_bound)
        if settings.row_bound == "max":
            public.append("the row bound R (largest row norm)")
        elif settings.row_bound.startswith("quantile:"):
            public.append("the row bound R (a quantile of the row norms)")
        transform = Transform(keep, center, scale * row_bound, Domain.ball(d))

    moment, reference, outside = _moments(table.rows, transform)
    if outside:
        share = outside / len(table.rows)
        how = "clipped to the box" if settings.domain == "box" else "scaled down to the row bound"
        notes.append(f"{outside:,} of {len(table.rows):,} rows ({share:.1%}) were {how}.")
    return Prepared(
        table,
        columns,
        transform,
        float(row_bound),
        moment,
        reference,
        outside,
        tuple(notes),
        tuple(public),
    )


def _limits(
    table: Table,
    columns: tuple[str, ...],
    keep: NDArray[np.bool_],
    settings: Settings,
    bounds: Bounds | None,
    low: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of the kept features, shape (d,) each."""
    if settings.bounds == "max":
        return low, high
    if settings.bounds == "known":
        if table.bounds is None:
            raise InvalidSetting(
                "feature bounds",
                "max or a file, as this table has no known ones",
                "known",
                "--bounds",
            )
        return table.bounds[keep, 0], table.bounds[keep, 1]
    if bounds is None:
        raise InvalidSetting("feature bounds", "max, known or a file", settings.bounds, "--bounds")
    missing = [name for name in columns if name not in bounds]
    if missing:
        raise InvalidSetting(
            "feature bounds",
            f"given for every feature; {missing[0]!r} is missing",
            settings.bounds,
            "--bounds",
        )
    pairs = np.array([bounds[name] for name in columns], dtype=float)
    for name, (lower, upper) in zip(columns, pairs, strict=True):
        if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
            raise InvalidSetting(
                f"the bounds of {name!r}",
                "finite numbers with low below high",
                f"{lower:g}, {upper:g}",
                "--bounds",
            )
    return pairs[:, 0], pairs[:, 1]


def _blocks(rows: FloatArray) -> Iterator[FloatArray]:
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK]


def _standard_deviations(rows: FloatArray, keep: NDArray[np.bool_]) -> FloatArray:
    """Return population standard deviations of the kept columns, in two passes."""
    mean = rows.mean(axis=0)
    total = np.zeros(rows.shape[1])
    for block in _blocks(rows):
        centred = block - mean
        total += np.einsum("ij,ij->j", centred, centred)
    deviations: FloatArray = np.sqrt(total / len(rows))[keep]
    return deviations


def _row_bound(rows: FloatArray, unscaled: Transform, setting: str) -> float:
    """Return R in the units of ``unscaled`` for a validated setting."""
    prefix, _, value = setting.rpartition(":")
    if prefix == "" and value != "max":
        return float(value)
    norms = np.concatenate(
        [np.linalg.norm(unscaled.unbounded(block), axis=1) for block in _blocks(rows)]
    )
    bound = norms.max() if value == "max" else np.quantile(norms, float(value))
    if not 0 < bound < np.inf:
        raise InvalidSetting(
            "row bound",
            "positive; this quantile of the row norms is zero or not finite",
            setting,
            "--row-bound",
        )
    return float(bound)


def _moments(rows: FloatArray, transform: Transform) -> tuple[SecondMoment, SecondMoment, int]:
    """Return the moment of the bounded rows, of the unbounded rows, and the count moved."""
    d = transform.domain.d
    bounded_sum, free_sum = np.zeros((d, d)), np.zeros((d, d))
    outside = 0
    for block in _blocks(rows):
        free = transform.unbounded(block)
        bounded, moved = _into_domain(free, transform.domain)
        product = bounded.T @ bounded
        bounded_sum += product
        free_sum += free.T @ free if moved else product
        outside += moved
    n = len(rows)
    moment = SecondMoment(_symmetric(bounded_sum / n), n)
    if outside == 0:
        return moment, moment, 0
    return moment, SecondMoment(_symmetric(free_sum / n), n), outside


def _symmetric(matrix: FloatArray) -> FloatArray:
    """Return the matrix made symmetric to the last bit."""
    symmetric: FloatArray = (matrix + matrix.T) / 2
    return symmetric
