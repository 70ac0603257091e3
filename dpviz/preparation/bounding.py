"""From a table to bounded rows: the only maker of them.

Whatever is taken from the data on the way (means, scales, the row bound) is
not protected; every such thing is listed in ``assumed_public``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import (
    FROM_DATA,
    MIDPOINT,
    PRIVATE,
    PUBLIC,
    Entries,
    Entry,
    FeatureBounds,
)
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral, percent
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings, categories_in, names_in
from dpviz.datasets.table import Table
from dpviz.preparation.batches import FileBatches
from dpviz.preparation.frames import FrameBatches, SparseRows
from dpviz.preparation.passes import Batched, ColumnFacts, InMemory, Passes
from dpviz.preparation.prepared import Measured, PublicLabels
from dpviz.preparation.sums import Subsample
from dpviz.preparation.transform import Transform

PEOPLE = "the number of rows n and the features' names"
PADDED = (
    "the number of rows n of the padded table, of whom how many are present is paid for, and "
    "the features' names"
)
_LARGE, _SMALL = 1e100, 1e-100  # sizes whose squares, summed, are still ordinary numbers


@dataclass(frozen=True, eq=False)
class BoundedRows(Measured):
    """Bounded rows, summarised, that can be read again for another bound or fewer rows.

    Attributes
    ----------
    transform : Transform
    passes : Passes
        Where the rows are.
    settings : Settings
        What they were prepared with; bounds of a file are read.
    """

    transform: Transform
    passes: Passes
    settings: Settings

    @property
    def has_lengths(self) -> bool:
        """Yes: the rows can be read once more for them."""
        return True

    @cached_property
    def _with_lengths(self) -> SecondMoment:
        with one_blas_thread():
            return self.moment.with_lengths(self.passes.lengths(self.transform))

    @property
    def moment_with_rows(self) -> SecondMoment:
        """The moment with what the rows tell by their lengths, found in a pass of its own."""
        return self._with_lengths

    def again(self, row_bound: str) -> BoundedRows:
        """Return the same rows prepared with another row bound.

        Raises
        ------
        InvalidSetting
            If the rows lie in a box, whose bounds replace the row bound.
        """
        if self.domain.kind == "box":
            raise InvalidSetting(
                "row bound", "varied on a ball; a box has feature bounds", row_bound, "--row-bound"
            )
        with one_blas_thread():
            return _build(self.passes, replace(self.settings, row_bound=row_bound))

    def stating(self, settings: Settings) -> Settings:
        """Return settings that hold the bounds these rows have, where that is whose they name."""
        bounds = self.settings.bounds
        if isinstance(bounds, FeatureBounds) and settings.bounds == bounds.text:
            return replace(settings, bounds=bounds)
        return settings

    def light(self, *, with_rows: bool = False) -> Measured:
        """Return what cells need, without the table; with the bounded rows where asked."""
        return self._measured(self.moment_with_rows if with_rows else self.moment)

    def with_n(self, n: int, seed: int, *, with_rows: bool = False) -> Measured:
        """Return the table as if it had n rows, with the bound and the reference held.

        Parameters
        ----------
        n : int
            Below the table's, a random subsample that contains every smaller
            one of the same seed; above, the same A with a larger n.
        seed : int
        with_rows : bool
            Whether the bounded rows come along, or what their lengths tell where they are not in
            memory; not for a larger n.
        """
        if n == self.n:
            return self.light(with_rows=with_rows)
        if n > self.n:
            if with_rows:
                raise RuntimeError("there are no rows for people who are not in the table")
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
        return Measured(
            self.name,
            self.columns,
            self.domain,
            self.row_bound,
            moment,
            self.reference,
            self.bounded_rows,
            self.notes,
            self.assumed_public,
            raw=self.raw,
            public=self.public,
            labels=self.labels,
        )


@dataclass(frozen=True, eq=False)
class Prepared(BoundedRows):
    """Bounded rows of a table in memory.

    Attributes
    ----------
    table : Table
    """

    table: Table

    @property
    def has_rows(self) -> bool:
        """Whether mechanisms that need the rows can run: they are in memory."""
        return True

    @property
    def moment_with_rows(self) -> SecondMoment:
        """The moment with its bounded rows, which are made when they are asked for."""
        return self._with_lengths.with_rows(partial(self.transform.inside, self.table.rows))

    def light(self, *, with_rows: bool = False) -> Measured:
        """Return what cells need, without the table; with the bounded rows where asked."""
        rows = self.transform.inside(self.table.rows) if with_rows else None
        return self._measured(self.moment if rows is None else self.moment.with_n(self.n, rows))

    def again(self, row_bound: str) -> Prepared:
        """Return the same table prepared with another row bound."""
        return _of_table(super().again(row_bound), self.table)

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
        rows = self.transform.inside(self.table.rows[index])
        return rows, index


CATEGORIES_PUBLIC = "the list of categories of the label, known before anybody looked at the rows"


def prepare(table: Table, settings: Settings) -> Prepared:
    """Centre, scale and bound a table.

    Parameters
    ----------
    table : Table
    settings : Settings
        Reads ``center``, ``scale``, ``row_bound``, ``domain``, ``bounds`` and ``categories``.

    Raises
    ------
    InvalidTable
        If fewer than two columns vary.
    InvalidSetting
        If bounds are missing or not in order, or categories are declared of no label.
    """
    categories = categories_in(settings.categories)
    if categories and table.labels is None:
        raise InvalidSetting(
            "categories", "left out without a label column", settings.categories, "--categories"
        )
    table = replace(table, categories=categories) if categories else table
    with one_blas_thread():
        built = _build(InMemory(table), settings)
    return _of_table(built, table)


def _of_table(built: BoundedRows, table: Table) -> Prepared:
    """Return bounded rows with the table they are of, and its labels where these are public."""
    known: dict[str, Any] = {}
    labels = table.kinds if table.public or table.categories else None
    if labels is not None:
        known["labels"] = PublicLabels(*labels)
    if table.categories:
        known["assumed_public"] = (*built.assumed_public, CATEGORIES_PUBLIC)
    return Prepared(**(vars(built) | known), table=table)


def prepare_batches(
    source: str | Path | FileBatches | FrameBatches | SparseRows | Any,
    settings: Settings,
) -> BoundedRows:
    """Centre, scale and bound rows that do not fit in memory.

    The numbers are those of `prepare` up to rounding. Memory does not grow with
    the number of rows.

    Parameters
    ----------
    source : path, FileBatches, FrameBatches, SparseRows or Dask DataFrame
        A path of a CSV or Parquet file.
    settings : Settings
        As in `prepare`; also ``label``, for a path.

    Raises
    ------
    InvalidTable, InvalidSetting
        As in `prepare`, and where text columns or gaps would need the whole
        table in memory.
    """
    for name, value, flag in (
        ("categorical", settings.categorical, "--categorical"),
        ("missing", settings.missing, "--missing"),
    ):
        if value != "drop":
            raise InvalidSetting(name, "drop for rows that are read in batches", value, flag)
    for name, given, flag in (
        ("codes", settings.codes, "--codes"),
        ("levels", settings.levels, "--levels"),
        ("categories", settings.categories, "--categories"),
        ("person", settings.person, "--person"),
    ):
        if given:
            allowed = "left out for rows that are read in batches"
            raise InvalidSetting(name, allowed, given, flag)
    if isinstance(source, (str, Path)):
        left = names_in(settings.leave_out)
        source = FileBatches(
            source,
            settings.label,
            settings.decimal,
            left,
            encoding=settings.encoding,
            sheet=settings.sheet,
        )
    elif not isinstance(source, (FileBatches, FrameBatches, SparseRows)):
        source = FrameBatches(source)
    with one_blas_thread():
        return _build(
            Batched(source, settings.centring == "none", settings.rows_a_person), settings
        )


def _build(passes: Passes, settings: Settings) -> BoundedRows:
    """Return the bounded rows that passes over the raw ones lead to, step by step.

    Each step adds to the notes, and to what is taken for public, what it changed or took.
    """
    entries = settings.entries
    paid = entries.paid
    facts = passes.facts()
    said, assumed = passes.said()
    notes, public = [*said], [PADDED if "count" in paid else PEOPLE, *assumed]
    keep, columns = _varying(passes, facts, notes, public)
    seen = ColumnFacts(facts.n, facts.low[keep], facts.high[keep], facts.mean[keep])
    limits = _limits(passes, columns, keep, settings, seen, public)
    center = _center(entries, seen, limits, public)
    scale = _scale(passes, keep, settings, seen, limits, notes, public)
    never = np.full(len(columns), np.inf)  # rows of a comparison are not cut
    free = Transform(-never, never, center, scale, math.inf, keep=keep)
    if settings.domain == "box":
        assert limits is not None
        transform = _in_box(free, settings, limits, notes)
        row_bound = transform.domain.radius
    else:
        transform, row_bound = _in_ball(passes, free, settings, seen, public)
    raw = public_part = None
    if paid:
        assert limits is not None
        raw = passes.raw_rows(keep)
        public_part = _public(free, entries, limits, row_bound)
        shares = ", ".join(f"{step} {numeral(entry.share, 6)}" for step, entry in paid.items())
        notes.append(f"Paid for out of the budget, by share: {shares}.")
    if settings.count == PRIVATE and "count" not in paid:
        notes.append("Under replace n is the same for all neighbours: there is nothing to pay for.")
    moment, reference, outside = passes.moments(transform, inside=_nothing_is_cut(settings))
    if outside:
        share = outside / facts.n
        how = "clipped to the box" if settings.domain == "box" else "scaled down to the row bound"
        notes.append(f"{outside:,} of {facts.n:,} rows ({percent(share)}) were {how}.")
    return BoundedRows(
        settings.name or passes.called,
        columns,
        transform.domain,
        row_bound,
        moment,
        reference,
        outside,
        tuple(notes),
        tuple(public),
        transform,
        passes,
        settings,
        raw=raw,
        public=public_part,
    )


def _varying(
    passes: Passes, facts: ColumnFacts, notes: list[str], public: list[str]
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Return which columns vary, shape (d_raw,), and their names."""
    keep = facts.low < facts.high
    columns = tuple(name for name, kept in zip(passes.columns, keep, strict=True) if kept)
    if len(columns) < 2:
        raise InvalidTable(
            f"{passes.name} must have at least 2 numeric columns that vary; it has {len(columns)}."
        )
    _check_sizes(passes.name, columns, facts.low[keep], facts.high[keep])
    if not keep.all():
        constant = int((~keep).sum())
        notes.append(
            f"{constant} constant column{'s were' if constant > 1 else ' was'} left out; "
            f"{len(columns)} features remain."
        )
        public.append("which columns are constant")
    return keep, columns


def _check_sizes(name: str, columns: tuple[str, ...], low: FloatArray, high: FloatArray) -> None:
    """Raise InvalidTable where squares of the numbers would overflow or vanish."""
    legal = (np.maximum(np.abs(low), np.abs(high)) < _LARGE) & (high - low > _SMALL)
    if not legal.all():
        column = columns[int(np.argmin(legal))]
        raise InvalidTable(
            f"{name} must hold numbers below {numeral(_LARGE, 6)} in size that vary by more than "
            f"{numeral(_SMALL, 6)} within a column; column {column[:60]!r} does not: change its "
            "unit."
        )


def _limits(
    passes: Passes,
    columns: tuple[str, ...],
    keep: NDArray[np.bool_],
    settings: Settings,
    seen: ColumnFacts,
    public: list[str],
) -> tuple[FloatArray, FloatArray] | None:
    """Return the bounds of the kept features, shape (d,) each; None where nothing rests on them."""
    stated = settings.entries.bounds
    if stated == Entry():
        return None
    if stated.source == FROM_DATA:
        public.append("the feature bounds (smallest and largest value of each feature)")
        return seen.low, seen.high
    if stated.source == PRIVATE:  # in each draw another range; this is what it stands for
        reach = np.maximum(np.abs(seen.low), np.abs(seen.high)).max()
        return np.full(len(columns), -reach), np.full(len(columns), reach)
    if stated.value == "known":
        if passes.bounds is None:
            raise InvalidSetting(
                "feature bounds",
                "max or a file, as this table has no known ones",
                "known",
                "--bounds",
            )
        return passes.bounds[keep, 0], passes.bounds[keep, 1]
    if isinstance(stated.value, str):  # a file that nobody has read
        raise InvalidSetting(
            "feature bounds", "max, known, private, LOW:HIGH or a file", stated.value, "--bounds"
        )
    low, high = settings.entries.limits(columns, passes.columns)
    return low, high


def _center(
    entries: Entries,
    seen: ColumnFacts,
    limits: tuple[FloatArray, FloatArray] | None,
    public: list[str],
) -> FloatArray:
    """Return what is subtracted from each feature; where a mean is paid for, the exact one."""
    if entries.center.source != PUBLIC:
        if entries.center.source == FROM_DATA:
            public.append("the feature means")
        return seen.mean
    if entries.center.value == MIDPOINT and limits is not None:
        middle: FloatArray = (limits[0] + limits[1]) / 2
        return middle
    return np.zeros(len(seen.mean))


def _scale(
    passes: Passes,
    keep: NDArray[np.bool_],
    settings: Settings,
    seen: ColumnFacts,
    limits: tuple[FloatArray, FloatArray] | None,
    notes: list[str],
    public: list[str],
) -> FloatArray:
    """Return what features are divided by; where a scale is paid for, the exact one."""
    entries = settings.entries
    if entries.scale == Entry():
        return np.ones(len(seen.mean))
    if settings.domain == "box":
        notes.append("On a box, features are scaled by their bounds; standardising is unused.")
        return np.ones(len(seen.mean))
    deviations = passes.deviations(keep)
    if entries.scale.source == FROM_DATA:
        public.append("the feature scales (standard deviations)")
    elif entries.center.source == PUBLIC and limits is not None:
        # without a mean what is private is the spread about the middle of the bounds
        deviations = np.hypot(deviations, seen.mean - (limits[0] + limits[1]) / 2)
    return deviations


def _in_box(
    free: Transform, settings: Settings, limits: tuple[FloatArray, FloatArray], notes: list[str]
) -> Transform:
    """Return the transform that maps the bounds of each feature to [-1, 1]."""
    if settings.row_bound != "max":
        notes.append("On a box, the feature bounds replace the row bound.")
    half = (limits[1] - limits[0]) / 2
    if settings.entries.center == Entry():
        half = np.maximum(np.abs(limits[0]), np.abs(limits[1]))
    return replace(free, scale=half, row_bound=1.0, box=True)


def _in_ball(
    passes: Passes, free: Transform, settings: Settings, seen: ColumnFacts, public: list[str]
) -> tuple[Transform, float]:
    """Return the transform into the unit ball, and the row bound R, in scaled units.

    Where none is declared rows stay as they are, and their own unit is 1.
    """
    stated = settings.entries.row_bound
    if stated == Entry():
        return free, 1.0
    bound = _row_bound(passes, free, stated, settings.row_bound)
    farthest = np.maximum(np.abs(seen.low - free.center), np.abs(seen.high - free.center))
    # in logarithms, for a quotient of extremes overflows
    apart = math.log((farthest / free.scale).max()) - math.log(bound)
    if not (math.log(_SMALL) < apart < math.log(_LARGE)):
        raise InvalidSetting(
            "row bound",
            f"within a factor {numeral(_LARGE, 6)} of the lengths of the rows",
            settings.row_bound,
            "--row-bound",
        )
    if stated.source == FROM_DATA:
        what = "largest row norm" if stated.value == "max" else "a quantile of the row norms"
        public.append(f"the row bound R ({what})")
    return replace(free, scale=free.scale * bound, row_bound=1.0), bound


def _public(
    free: Transform, entries: Entries, limits: tuple[FloatArray, FloatArray], row_bound: float
) -> Transform:
    """Return what is public about a paid preparation, in which rows are cut to their bounds."""
    return replace(
        free,
        low=limits[0],
        high=limits[1],
        row_bound=math.inf if entries.row_bound == Entry() else row_bound,
        centered=entries.center.source != PUBLIC,
        keep=None,  # the rows at hand have no other columns
    )


def _nothing_is_cut(settings: Settings) -> bool:
    """Return whether no row can lie beyond the bound, as it was taken from the rows."""
    entries = settings.entries
    if settings.domain == "box":
        return entries.bounds.source == FROM_DATA
    # a bound that is paid for is another in each draw, and none cuts nothing
    return entries.row_bound.source == PRIVATE or entries.row_bound.value in ("max", None)


def _row_bound(passes: Passes, unscaled: Transform, stated: Entry, written: str) -> float:
    """Return R in the units of ``unscaled``; where it is paid for, the largest length."""
    if stated.source == PUBLIC:
        return float(stated.value)
    quantile = stated.value if stated.source == FROM_DATA and stated.value != "max" else None
    bound = passes.row_bound(unscaled, quantile)
    if not 0 < bound < np.inf:
        raise InvalidSetting(
            "row bound",
            "positive; this quantile of the row norms is zero or not finite",
            "max" if stated.source == PRIVATE else written,
            "--row-bound",
        )
    return bound
