"""Bounded rows from a table.

Values taken from the data in the preparation (means, scales, the row-norm bound) are not protected;
all of them are listed in ``assumed_public``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import (
    LARGEST,
    MIDPOINT,
    PRIVATE,
    SMALLEST,
    FeatureBounds,
    FromData,
    Private,
    Public,
    Source,
)
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral, percent
from dpviz.core.params import text_of
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings, categories_in
from dpviz.datasets import Batches, ReadOptions, in_batches
from dpviz.datasets.table import Table
from dpviz.preparation.passes import (
    Batched,
    ColumnFacts,
    InMemory,
    Passes,
    RowsDigest,
    Subsample,
)
from dpviz.preparation.prepared import Measured, PublicLabels
from dpviz.preparation.transform import Transform

PEOPLE = "the number of rows n and the features' names"
PADDED = (
    "the number of rows n of the padded table (part of the budget covers how many are "
    "present), and the features' names"
)


@dataclass(frozen=True, eq=False)
class BoundedTable(Measured):
    """Summarised bounded rows, which can be read again for another bound or fewer rows.

    Attributes
    ----------
    transform : Transform
    passes : Passes
        Access to the rows.
    settings : Settings
        Settings of the preparation; bounds from a file are already read.
    """

    transform: Transform
    passes: Passes
    settings: Settings

    @property
    def has_lengths(self) -> bool:
        """Return True, because another pass over the rows finds their lengths."""
        return True

    @cached_property
    def _with_lengths(self) -> SecondMoment:
        with one_blas_thread():
            return self.moment.with_lengths(*self.passes.lengths(self.transform))

    @cached_property
    def rows_read(self) -> RowsDigest:
        """The digest of the rows before any preparation, from a separate pass."""
        return self.passes.digest()

    @property
    def moment_with_rows(self) -> SecondMoment:
        """The moment with summaries of rows by length, from another pass."""
        return self._with_lengths

    def rebound(self, row_bound: str) -> BoundedTable:
        """Return the same rows prepared with another row-norm bound.

        Raises
        ------
        InvalidSetting
            If the rows lie in a box, whose bounds replace the row-norm bound.
        """
        if self.domain.kind == "box":
            raise InvalidSetting(
                "row-norm bound", "varied only if the domain is ball", row_bound, "--row-bound"
            )
        with one_blas_thread():
            return _Build(self.passes, replace(self.settings, row_bound=row_bound)).rows()

    def stating(self, settings: Settings) -> Settings:
        """Return settings with the bounds of these rows, if the settings name the same bounds."""
        bounds = self.settings.bounds
        if isinstance(bounds, FeatureBounds) and settings.bounds == bounds.text:
            return replace(settings, bounds=bounds)
        return settings

    def light(self, *, with_rows: bool = False) -> Measured:
        """Return the summary that cells need, without the table; bounded rows on request."""
        return self._measured(self.moment_with_rows if with_rows else self.moment)

    def with_n(self, n: int, seed: int, *, with_rows: bool = False) -> Measured:
        """Return the table as if it had n rows, with bound and reference unchanged.

        Parameters
        ----------
        n : int
            Below the table's n, the result is a random subsample, which contains every smaller one
            of the same seed. Above it, the result has the same A with a larger n.
        seed : int
        with_rows : bool
            Whether to include the bounded rows, or summaries of their lengths if they are not in
            memory; not for a larger n.
        """
        if n == self.n:
            return self.light(with_rows=with_rows)
        # A larger n means more people of one population. A stays the same, but rows are unknown.
        if n > self.n:
            if with_rows:
                raise RuntimeError("a table cannot supply rows for more people than it has")
            return self._measured(self.moment.with_n(n))
        chosen = Subsample(seed, self.n, n)
        raw, labels = self.raw, self.labels
        if raw is not None:
            raw = raw[chosen.chosen(0, chosen.total)]
        if labels is not None:
            labels = replace(labels, codes=labels.codes[chosen.chosen(0, chosen.total)])
        with one_blas_thread():
            return replace(
                self._measured(self.passes.sample(self.transform, chosen, with_rows)),
                raw=raw,
                labels=labels,
            )

    def _measured(self, moment: SecondMoment) -> Measured:
        facts = {fact.name: getattr(self, fact.name) for fact in fields(Measured)}
        return Measured(**facts | {"moment": moment})


@dataclass(frozen=True, eq=False)
class Prepared(BoundedTable):
    """Bounded rows of a table in memory.

    Attributes
    ----------
    table : Table
    """

    table: Table

    @property
    def has_rows(self) -> bool:
        """Whether mechanisms that need the rows can run, because rows are in memory."""
        return True

    @property
    def moment_with_rows(self) -> SecondMoment:
        """The moment with its bounded rows, computed on first use."""
        return self._with_lengths.with_rows(partial(self.transform.inside, self.table.rows))

    def light(self, *, with_rows: bool = False) -> Measured:
        """Return the summary that cells need, without the table; bounded rows on request."""
        rows = self.transform.inside(self.table.rows) if with_rows else None
        return self._measured(self.moment if rows is None else self.moment.with_n(self.n, rows))

    def rebound(self, row_bound: str) -> Prepared:
        """Return the same table prepared with another row-norm bound."""
        return _of_table(super().rebound(row_bound), self.table)

    def picture(self, size: int) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return bounded rows to plot, and their row numbers.

        Parameters
        ----------
        size : int
            Maximum number of rows, a fixed random sample in table order.
        """
        n = len(self.table.rows)
        index = np.arange(n)
        if size < n:
            index = np.sort(generator(0, "picture", n).choice(n, size=size, replace=False))
        rows = self.transform.inside(self.table.rows[index])
        return rows, index


CATEGORIES_PUBLIC = "the list of categories of the label, known before anybody looked at the rows"


def prepare(table: Table, settings: Settings) -> Prepared:
    """Centre, scale and bound a table.

    Parameters
    ----------
    table : Table
    settings : Settings
        Only ``center``, ``scale``, ``row_bound``, ``domain``, ``bounds``, ``categories`` are read.

    Raises
    ------
    InvalidTable
        If fewer than two columns vary.
    InvalidSetting
        If bounds are missing or not in order, or categories are declared without a label.
    """
    categories = categories_in(settings.categories)
    if categories and table.labels is None:
        raise InvalidSetting(
            "categories", "left out without a label column", settings.categories, "--categories"
        )
    table = replace(table, categories=categories) if categories else table
    with one_blas_thread():
        built = _Build(InMemory(table), settings).rows()
    return _of_table(built, table)


def _of_table(built: BoundedTable, table: Table) -> Prepared:
    """Return bounded rows with their table, and its labels if public."""
    public: dict[str, Any] = {}
    labels = table.kinds if table.public or table.categories else None
    if labels is not None:
        public["labels"] = PublicLabels(*labels)
    if table.categories:
        public["assumed_public"] = (*built.assumed_public, CATEGORIES_PUBLIC)
    return Prepared(**(vars(built) | public), table=table)


def prepare_batches(table: Batches | str | Path | Any, settings: Settings) -> BoundedTable:
    """Centre, scale and bound rows that do not fit in memory.

    Results agree with `prepare` up to rounding. Memory does not grow with the number of rows.

    Parameters
    ----------
    table : Batches, path or Dask DataFrame
        A path of a CSV or Parquet file.
    settings : Settings
        The same settings as in `prepare`; also ``label``, for a path.

    Raises
    ------
    InvalidTable, InvalidSetting
        As in `prepare`, or if text columns or missing values would need the whole table in memory.
    """
    if settings.categories:
        allowed = "left out for rows that are read in batches"
        raise InvalidSetting("categories", allowed, settings.categories, "--categories")
    if not isinstance(table, Batches):
        table = in_batches(table, ReadOptions.of(settings))
    with one_blas_thread():
        passes = Batched(table, settings.centring == "none", settings.rows_a_person)
        return _Build(passes, settings).rows()


class _Build:
    """Results of passes over the raw rows, built step by step.

    Each step records its changes in the notes, and values it takes from the data as assumed public.
    """

    def __init__(self, passes: Passes, settings: Settings) -> None:
        self.passes, self.settings, self.entries = passes, settings, settings.entries
        self.in_box = settings.domain == "box"
        self.facts = passes.facts()
        said, assumed = passes.said()
        self.notes = [*said]
        self.public = [PADDED if "count" in self.entries.private else PEOPLE, *assumed]
        self.keep = self.facts.low < self.facts.high
        self.columns = self._varying()
        # The columns used below vary; columns with one value only are left out.
        low, high, mean = (x[self.keep] for x in (self.facts.low, self.facts.high, self.facts.mean))
        self.seen = ColumnFacts(self.facts.n, low, high, mean)
        self.limits = self._limits()
        center, scale = self._center(), self._scale()
        never = np.full(len(self.columns), np.inf)  # A comparison does not clip values here.
        self.free = Transform(-never, never, center, scale, math.inf, keep=self.keep)

    def rows(self) -> BoundedTable:
        """Return the bounded rows."""
        transform, row_bound = self._in_domain()
        raw, public = self._paid(row_bound)
        # Without a bound, or with a bound taken from the rows, no row lies outside it. A private
        # bound differs in each repetition.
        bound = self.entries.row_bound
        inside = (
            isinstance(self.entries.bounds, FromData)
            if self.in_box
            else isinstance(bound, Private) or bound.value is None
        )
        moment, reference, outside = self.passes.moments(transform, inside)
        if outside:
            share = percent(outside / self.facts.n)
            how = "clipped to the box" if self.in_box else "scaled down to the row-norm bound"
            self.notes.append(f"{outside:,} of {self.facts.n:,} rows ({share}) were {how}.")
        return BoundedTable(
            self.settings.name or self.passes.called,
            self.columns,
            transform.domain,
            row_bound,
            moment,
            reference,
            outside,
            tuple(self.notes),
            tuple(self.public),
            transform,
            self.passes,
            self.settings,
            raw=raw,
            public=public,
        )

    def _varying(self) -> tuple[str, ...]:
        """Return the names of the columns that vary."""
        keep, facts, name = self.keep, self.facts, self.passes.name
        columns = tuple(c for c, varies in zip(self.passes.columns, keep, strict=True) if varies)
        if len(columns) < 2:
            raise InvalidTable(
                f"{name} must have at least 2 numeric columns that vary; it has {len(columns)}."
            )
        # The squares of a column's values must neither overflow nor underflow to 0.
        low, high = facts.low[keep], facts.high[keep]
        legal = (np.maximum(np.abs(low), np.abs(high)) < LARGEST) & (high - low > SMALLEST)
        if not legal.all():
            column = columns[int(np.argmin(legal))]
            raise InvalidTable(
                f"{name} must hold numbers below {numeral(LARGEST, 6)} in size that vary by more "
                f"than {numeral(SMALLEST, 6)} within a column. Change the unit of column "
                f"{column[:60]!r}."
            )
        if not keep.all():
            constant = int((~keep).sum())
            self.notes.append(
                f"{constant} constant column{'s were' if constant > 1 else ' was'} left out; "
                f"{len(columns)} features remain."
            )
            self.public.append("which columns are constant")
        return columns

    def _limits(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the bounds of the features, shape (d,) each; None if no step needs bounds."""
        stated, ranges = self.entries.bounds, self.seen
        if stated == Public():
            return None
        if isinstance(stated, FromData):
            self.public.append("the feature bounds (smallest and largest value of each feature)")
            return ranges.low, ranges.high
        if isinstance(stated, Private):  # Each repetition will find its own bounds.
            reach = np.maximum(np.abs(ranges.low), np.abs(ranges.high)).max()
            return np.full(len(self.columns), -reach), np.full(len(self.columns), reach)
        if stated.value == "known":
            bounds = self.passes.bounds
            if bounds is None:
                allowed = "max or a file, because this table has no known bounds"
                raise InvalidSetting("feature bounds", allowed, "known", "--bounds")
            return bounds[self.keep, 0], bounds[self.keep, 1]
        if isinstance(stated.value, str):  # The text is not the path of a readable file.
            allowed = "max, known, private, LOW:HIGH or a file"
            raise InvalidSetting("feature bounds", allowed, stated.value, "--bounds")
        low, high = self.entries.limits(self.columns, self.passes.columns)
        return low, high

    def _center(self) -> FloatArray:
        """Return the values subtracted from features; the exact mean if the mean is private."""
        stated = self.entries.center
        if not isinstance(stated, Public):
            if isinstance(stated, FromData):
                self.public.append("the feature means")
            return self.seen.mean
        if stated.value == MIDPOINT and self.limits is not None:
            middle: FloatArray = (self.limits[0] + self.limits[1]) / 2
            return middle
        return np.zeros(len(self.columns))

    def _scale(self) -> FloatArray:
        """Return the values that divide features; the exact scale if the scale is private."""
        if self.entries.scale == Public():
            return np.ones(len(self.columns))
        if self.in_box:
            self.notes.append(
                "On a box, features are scaled by their bounds and are not standardised."
            )
            return np.ones(len(self.columns))
        deviations = self.passes.deviations(self.keep)
        if isinstance(self.entries.scale, FromData):
            self.public.append("the feature scales (standard deviations)")
        elif isinstance(self.entries.center, Public) and self.limits is not None:
            # Without a mean, the private scale is the spread about the middle of the bounds.
            middle = (self.limits[0] + self.limits[1]) / 2
            deviations = np.hypot(deviations, self.seen.mean - middle)
        return deviations

    def _in_domain(self) -> tuple[Transform, float]:
        """Return the transform into the domain, and the row-norm bound R, in scaled units.

        Without a declared bound rows stay unchanged, in units of 1.
        """
        if self.in_box:
            transform = self._to_box()
            return transform, transform.domain.radius
        stated = self.entries.row_bound
        if stated == Public():
            return self.free, 1.0
        bound = self._row_bound(stated)
        if isinstance(stated, FromData):
            what = "largest row norm" if stated.value is None else "a quantile of the row norms"
            self.public.append(f"the row-norm bound R ({what})")
        return replace(self.free, scale=self.free.scale * bound, row_bound=1.0), bound

    def _to_box(self) -> Transform:
        """Return the transform that maps the bounds of each feature to [-1, 1]."""
        assert self.limits is not None
        if self.settings.row_bound != "max":
            self.notes.append("On a box, the feature bounds replace the row-norm bound.")
        low, high = self.limits
        half = (high - low) / 2
        if self.entries.center == Public():
            half = np.maximum(np.abs(low), np.abs(high))
        # A feature whose two bounds are equal is 0 for any divisor, so divide it by 1.
        half = np.where(half > 0, half, 1.0)
        return replace(self.free, scale=half, row_bound=1.0, box=True)

    def _row_bound(self, stated: Source) -> float:
        """Return R in scaled units; the largest length if R is private."""
        if isinstance(stated, Public):
            bound = float(stated.value)
        else:
            level = stated.value if isinstance(stated, FromData) else None
            bound = self.passes.row_bound(self.free, level)
            if not 0 < bound < np.inf:
                raise InvalidSetting(
                    "row-norm bound",
                    "above 0 and finite, unlike this quantile of the row norms",
                    "max" if isinstance(stated, Private) else self.settings.row_bound,
                    "--row-bound",
                )
        apart = self._reach(self.seen.low, self.seen.high) - math.log(bound)
        if not (math.log(SMALLEST) < apart < math.log(LARGEST)):
            raise InvalidSetting(
                "row-norm bound",
                f"within a factor of {numeral(LARGEST, 6)} of the row lengths",
                self.settings.row_bound,
                "--row-bound",
            )
        return bound

    def _reach(self, low: FloatArray, high: FloatArray) -> float:
        """Return the log of a feature's farthest distance from the centre, in scaled units.

        The result is a logarithm, because a quotient of extreme numbers overflows.
        """
        farthest = np.maximum(np.abs(low - self.free.center), np.abs(high - self.free.center))
        return math.log((farthest / self.free.scale).max())

    def _paid(self, row_bound: float) -> tuple[FloatArray | None, Transform | None]:
        """Return the raw rows, and the public facts of a private preparation.

        Such a preparation clips rows to their bounds.
        """
        private = self.entries.private
        if private:
            shares = ", ".join(
                f"{step} {numeral(entry.share, 6)}" for step, entry in private.items()
            )
            self.notes.append(f"Shares of the budget that the preparation uses: {shares}.")
        if self.settings.count == PRIVATE and "count" not in private:
            self.notes.append(
                "Under replace, all neighbouring tables have the same n: no private count "
                "is needed."
            )
        if not private:
            return None, None
        assert self.limits is not None
        # Noise grows with the square of the bounds, so its own square must still be finite.
        if self._reach(*self.limits) - math.log(row_bound) > math.log(LARGEST) / 2:
            allowed = f"within a factor {numeral(math.sqrt(LARGEST), 6)} of the rows"
            raise InvalidSetting("bounds", allowed, text_of(self.settings.bounds), "--bounds")
        public = replace(
            self.free,
            low=self.limits[0],
            high=self.limits[1],
            row_bound=math.inf if self.entries.row_bound == Public() else row_bound,
            centered=not isinstance(self.entries.center, Public),
            keep=None,  # Rows in memory hold only the used columns.
        )
        return self.passes.raw_rows(self.keep), public
