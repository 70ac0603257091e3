"""Predict from the rows how much structure a release would keep, with its exact pipeline.

The release's own functions read the rows under the schema, and bound, centre and scale them.
`dpviz.releasing.chain` simulates releases. The result is a function of private rows: a working view
for people who may see the rows, not a release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.entries import PRIVATE
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting
from dpviz.core.metrics import chance_share, nothing_to_recover, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import towards
from dpviz.core.params import format_number
from dpviz.core.problem import Budget, Relation
from dpviz.core.seeding import generator
from dpviz.preparation.transform import Transform
from dpviz.releasing.chain import Size, below, between, simulated, turned_to
from dpviz.releasing.grid import (
    OTHER_WEIGHT,
    bits_for,
    bounded,
    center_at,
    row_bound_in,
    transform_of,
    within_limits,
)
from dpviz.releasing.making import declare
from dpviz.releasing.noise import Law, Noise
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.picture import Counting, counting, pictured, shown_of
from dpviz.releasing.records import Codes, TableInput, open_records
from dpviz.releasing.schema import Column, Schema
from dpviz.simulation.goal import RELEASES, SURE, enough, first_enough, may_miss, releases_at

DRAWS = RELEASES
"""Number of simulated releases: 95 of 100 lie between the third from each end, or above the sixth.
"""
EPSILONS = np.geomspace(0.01, 100.0, 231)
"""Candidates for the least epsilon, in steps of 4 %."""
MOST_ROWS = 4_000
"""Maximum number of rows for a prediction; a larger table contributes evenly spread rows."""
LOUD = 0.5
"""Warn if the common centre has at least this share of the rows' squared length."""

LONG_TAIL = 0.05
"""Offer a logarithm if a limit clips more than this share of rows."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """Prediction for one release.

    Attributes
    ----------
    options : ReleaseOptions
    recovery, low : float
        Mean recovery over the simulated releases, and the recovery that 95 of 100 of them reach.
    without_noise : float
        Recovery without noise, with the same limits and centre.
    centre_share : float
        Squared length of the mean as a share of the rows' mean squared length, around the stated
        centre.
    truth : ndarray of shape (d, k)
        Exact loadings of the table.
    low_bars, high_bars : ndarray of shape (d, k)
        Limits that contain these loadings in 95 of 100 releases.
    cosines : ndarray of shape (k,)
        Mean |cosine| between each released component and the table's own component.
    readable : ndarray of shape (k,)
        Share of releases in which this and all earlier components can be distinguished from noise
        and from the next component, as in `reading.read`.
    """

    options: ReleaseOptions
    recovery: float
    low: float
    without_noise: float
    centre_share: float
    truth: FloatArray
    low_bars: FloatArray
    high_bars: FloatArray
    cosines: FloatArray
    readable: FloatArray


@dataclass(frozen=True, eq=False)
class SchemaRows:
    """Rows of a table under its schema, for predicting releases.

    Attributes
    ----------
    schema : Schema
    n : int
        Number of rows of the table.
    cells : ndarray of shape (at most `MOST_ROWS`, d)
        Cells as read, not clipped; a missing cell has its typical value.
    counted : float
        Share of the n rows that the release uses; the others exceed a person's limit.
    codes : ndarray of int or None
        Labels of the rows, as indices into the schema's kinds.
    """

    schema: Schema
    n: int
    cells: FloatArray
    counted: float = 1.0
    codes: Codes | None = None

    @classmethod
    def of(cls, table: TableInput, schema: Schema) -> SchemaRows:
        """Return the rows of a table; raise `DpvizError` if the schema cannot read the table."""
        schema.require()
        records = open_records(table, schema)
        if records.n < 2:
            raise DpvizError(f"the table must have at least 2 rows; it has {records.n}.")
        step, kept, labels, start = math.ceil(records.n / MOST_ROWS), [], [], 0
        for block, codes in records.labelled():
            # Every step-th row of the whole table is used, also across the borders of blocks.
            kept.append(np.array(block[-start % step :: step], dtype=np.float64))
            labels.append(codes[-start % step :: step])
            start += len(block)
        cells = schema.filled(np.concatenate(kept), cut=False)
        return cls(schema, records.n, cells, start / records.n, np.concatenate(labels))

    @classmethod
    def of_plan(cls, variances: FloatArray, n: int) -> SchemaRows:
        """Return normal rows with guessed variances, for a table that does not exist yet.

        Each feature is a component, and all limits are four times the largest standard deviation.
        Limits and rows are public.
        """
        few = max(500, 3 * len(variances))
        rows = generator(0, "a plan").standard_normal((few, len(variances)))
        # However few rows stand for all people, their variances are exactly the planned ones.
        rows = np.linalg.qr(rows - rows.mean(0))[0] * np.sqrt(few * variances)
        reach = 4 * math.sqrt(variances.max())
        columns = (Column(f"feature {at + 1}", -reach, reach) for at in range(len(variances)))
        return cls(Schema(tuple(columns)), n, rows)

    @cached_property
    def cut(self) -> FloatArray:
        """Rows that are clipped to the limits."""
        return self.schema.filled(self.cells)

    @cached_property
    def _kept(self) -> dict[ReleaseOptions, _Seen]:
        return {}

    def _seen(self, options: ReleaseOptions) -> _Seen:
        """Return a pipeline's result before noise, which is computed once for all epsilons."""
        pipeline = replace(options, epsilon=1.0)
        if pipeline not in self._kept:
            self._kept[pipeline] = _Seen.of(self, options)
        return self._kept[pipeline]

    @property
    def tails(self) -> dict[str, float]:
        """Return the share of rows above a column's upper limit, if a logarithm could keep them."""
        above = (self.cells > self.schema.limits_used.T[1]).mean(0)
        return {
            column.name: float(share)
            for column, share in zip(self.schema.used, above, strict=True)
            if share > LONG_TAIL and not column.log and (column.low or 0) > 0
        }

    def outlook(
        self, options: ReleaseOptions, *, n: int | None = None, draws: int = DRAWS
    ) -> Outlook:
        """Predict how much structure a release would keep.

        Parameters
        ----------
        options : ReleaseOptions
        n : int, optional
            Number of people in a similar table; by default the table's own number.
        draws : int
        """
        seen = self._seen(options)
        d, k, people = seen.d, options.k, n or self.n
        size = Size.of(options, self.schema, d)
        near = seen.near(np.zeros(d + 1), people) if options.center == PRIVATE else None
        edge = size.edge(d, people, near)
        found, turned, told = [], np.empty((draws, d, k)), np.empty((draws, k))
        moment = partial(seen.moment, people=people)
        made = simulated(moment, size, d, people, k, range(draws))
        for at, (heights, components) in enumerate(made):
            found.append(seen.kept(components))
            turned[at] = turned_to(seen.truth, components)
            # A component counts only if noise of this size cannot swap it with the next component.
            told[at] = np.cumprod(-np.diff(heights) > edge)
        low, high = between(turned)
        return Outlook(
            options,
            float(np.mean(found)),
            -float(below(-np.array(found))),
            seen.without_noise(people),
            seen.centre_share,
            seen.truth,
            low,
            high,
            np.abs((turned * seen.truth).sum(1)).mean(0),
            told.mean(0),
        )

    def sample(
        self,
        options: ReleaseOptions,
        draws: range,
        *,
        n: int | None = None,
        mean_known: bool = False,
    ) -> FloatArray:
        """Return the recovery of each simulated release, as in `outlook`.

        Parameters
        ----------
        options : ReleaseOptions
        draws : range
        n : int, optional
            Argument of `outlook`.
        mean_known : bool
            Whether rows are centred at their exact mean at no cost, which no release may do.
        """
        seen = self._seen(replace(options, center=PRIVATE) if mean_known else options)
        stated = replace(options, center="typical") if mean_known else options
        size, people = Size.of(stated, self.schema, seen.d), n or self.n
        exact = seen.moment(np.zeros(seen.d + 1), people) if mean_known else None

        def moment(noise: FloatArray) -> FloatArray:
            return seen.moment(noise, people) if exact is None else exact

        made = simulated(moment, size, seen.d, people, options.k, draws)
        return np.array([seen.kept(components) for _, components in made])

    def drowns(self, options: ReleaseOptions) -> bool:
        """Return whether a release would refuse the requested map because of noise."""
        try:
            self._counting(options)
        except CannotRun:
            return True
        return False

    def _counting(self, options: ReleaseOptions) -> Counting:
        """Return how a release would count its map, by the release's own function."""
        law = Law.NORMAL if options.stated_delta > 0 else Law.LAPLACE
        return counting(
            options.picture, law, Budget(options.epsilon, options.stated_delta),
            Relation(options.relation), self.n, options.k, self.schema.kinds,
            bits_for(self.n, options.grid), self.schema.rows_a_person or 1,
        )  # fmt: skip

    def map(self, options: ReleaseOptions) -> dict[str, Any]:
        """Return a simulated map of a release, in the form of its privacy card.

        The map belongs to one simulated release: frame and counts follow from simulated components,
        with continuous instead of discrete noise.

        Raises
        ------
        CannotRun
            If noise would hide the map.
        """
        seen, made = self._seen(options), self._counting(options)
        size, d, beside = Size.of(options, self.schema, seen.d), seen.d, []

        def moment(noise: FloatArray) -> FloatArray:
            beside.append(noise)
            return seen.moment(noise, self.n)

        ((heights, vectors),) = simulated(moment, size, d, self.n, d - 1, range(1))
        how = seen.near(beside[0], self.n) if options.center == PRIVATE else seen.how
        noise = SimulatedNoise.of(size, made, Budget(options.epsilon, options.stated_delta))
        n = max(round(self.counted * self.n), 1)
        codes = np.zeros(len(self.cut), dtype=np.intp) if self.codes is None else self.codes
        found = pictured(
            [(self.cut, codes)], how, fix_signs(vectors[:, : options.k]), heights,
            made.among(n), noise, self.schema.label, max(round(n / len(self.cut)), 1),
        )  # fmt: skip
        shown = shown_of({
            "n": self.n, "counted": n, "relation": options.relation,
            "noise": {"law": size.law}, "picture": found,
        })  # fmt: skip
        assert shown is not None  # A release with these fields always has a chart.
        return shown

    def without_noise(self, options: ReleaseOptions) -> float:
        """Return the recovery without any noise, which only the bounds limit."""
        return self._seen(options).without_noise(self.n)

    def pipelines(self, options: ReleaseOptions) -> list[ReleaseOptions]:
        """Return alternative pipelines with other row-norm bounds and centres.

        The row-norm bounds are half and a quarter of the distance to the limits' farthest corner.
        The bounds are public, like the limits.
        """
        unit = replace(options, rows="unit", row_bound="")
        how = transform_of(declare(replace(unit, center="typical"), self.schema))
        reach = np.maximum(how.high - how.center, how.center - how.low)
        corner = float(np.linalg.norm(reach / how.scale))
        bounds = [format_number(float(f"{corner * part:.2g}")) for part in (0.5, 0.25)]
        return [
            replace(each, center=center)
            for each in (
                unit,
                *(replace(options, rows="bound", row_bound=bound) for bound in bounds),
            )
            for center in ("typical", PRIVATE)
        ]

    def least_epsilon(
        self,
        options: ReleaseOptions,
        recovery: float,
        *,
        n: int | None = None,
        near: float = 1.0,
        up_to: float = math.inf,
        mean_known: bool = False,
    ) -> float | None:
        """Return the approximate least epsilon at which 95 of 100 releases reach ``recovery``.

        `dpviz.simulation.least.about` searches in the same way for the idealised preparation.

        Parameters
        ----------
        options : ReleaseOptions
        recovery : float
        n, mean_known
            Arguments of `sample`.
        near : float
            Approximate answer, which only changes the amount of work.
        up_to : float
            Largest epsilon of interest.

        Returns
        -------
        float or None
            Two digits, rounded up; None if epsilon 100 (or ``up_to``) is not enough.
        """
        points = EPSILONS[up_to >= EPSILONS]
        releases = releases_at(len(self.schema.used))

        def reached(place: int) -> bool:
            here = replace(options, epsilon=float(points[place]))
            if options.picture and self.drowns(here):
                return False

            def met(draws: range) -> FloatArray:
                kept = self.sample(here, draws, n=n, mean_known=mean_known)
                return (kept >= recovery).astype(float)

            return enough(met, may_miss(SURE, releases), releases)

        place = first_enough(len(points), reached, int(np.searchsorted(points, near)))
        return None if place == len(points) else towards(float(points[place]), 2, 1)


@dataclass(frozen=True)
class SimulatedNoise(Noise):
    """The noise of a simulated release, which is continuous and the same on every call."""

    @classmethod
    def of(cls, size: Size, made: Counting, budget: Budget) -> SimulatedNoise:
        """Return noise of the same size as the noise of a release."""
        unit = 4.0**made.bits
        if size.law is Law.NORMAL:
            unit *= OTHER_WEIGHT
            loss = mu_of(budget)
            parts = [math.sqrt(side.share) * loss for side in made.sides]
        else:
            parts = [side.share * budget.epsilon for side in made.sides]
        sides = (
            replace(side, scale=side.sensitivity / part)
            for side, part in zip(made.sides, parts, strict=True)
        )
        return cls(size.law, size.entry * unit, 1, budget, "", budget, 0.0, tuple(sides))

    def added(self, scale: float, values: list[int]) -> list[int]:
        """Return whole numbers with rounded noise from a named stream."""
        rng = generator(0, "a map that may be", len(values))
        drawn = rng.standard_normal if self.law is Law.NORMAL else rng.laplace
        noise = np.rint(scale * drawn(size=len(values))).tolist()
        return [value + int(one) for value, one in zip(values, noise, strict=True)]


def _moment(rows: FloatArray) -> FloatArray:
    found: FloatArray = rows.T @ rows / len(rows)
    return found


@dataclass(frozen=True, eq=False)
class _Seen:
    """The result of a pipeline before any noise.

    Attributes
    ----------
    rows : SchemaRows
    how : Transform
    k : int
    A, truth : ndarray
        Second moment of the table about its own mean, and the k first loadings.
    best, chance : float
        Sum of the k largest eigenvalues, and the share of this sum that random directions keep.
    mean : ndarray of shape (d,)
        Mean of the bounded rows if the mean is private, else zeros.
    around : ndarray of shape (d, d) or None
        Second moment about a stated centre; None if the centre is private.
    centre_share : float
    """

    rows: SchemaRows
    how: Transform
    k: int
    A: FloatArray
    truth: FloatArray
    best: float
    chance: float
    mean: FloatArray
    around: FloatArray | None
    centre_share: float

    @classmethod
    def of(cls, rows: SchemaRows, options: ReleaseOptions) -> _Seen:
        declared, k = declare(options, rows.schema), options.k
        how = transform_of(declared)
        d = len(how.center)
        if not 1 <= k < d:
            raise InvalidSetting("k", f"a whole number from 1 to {d - 1}", k, "--k")
        scale = how.scale / row_bound_in(declared)
        centred = rows.cells / scale
        own = centred.mean(0)
        A = _moment(centred - own)
        values, vectors = np.linalg.eigh(A)
        truth = fix_signs(vectors[:, ::-1][:, :k])
        chance = chance_share(SecondMoment(A, len(centred)), k) if values[-1] > 0 else 1.0
        if nothing_to_recover(chance):
            raise DpvizError("the table has no structure for PCA: all directions are equally good.")
        paid = options.center == PRIVATE
        mean = bounded(rows.cut, within_limits(how)).mean(0) if paid else np.zeros(d)
        around = None if paid else _moment(bounded(rows.cut, how))
        base = how.center / scale
        lengths = np.square(centred - base).sum(1).mean()
        return cls(
            rows, how, k, A, truth, values[::-1][:k].sum(), chance, mean, around,
            float(np.square(own - base).sum() / lengths) if lengths else 0.0,
        )  # fmt: skip

    @property
    def d(self) -> int:
        return len(self.mean)

    def kept(self, components: FloatArray) -> float:
        """Return the recovery of k components."""
        share = np.trace(components.T @ self.A @ components) / self.best
        return float(recovery_of(share, self.chance))

    def without_noise(self, people: int) -> float:
        """Return the recovery of the bounded rows' exact components."""
        exact = self.moment(np.zeros(self.d + 1), people)
        return self.kept(np.linalg.eigh(exact)[1][:, ::-1][:, : self.k])

    def near(self, noise: FloatArray, people: int) -> Transform:
        """Return the bounds on rows around a noisy mean, given noise on their sum and count."""
        counted = self.rows.counted
        share = counted + noise[self.d]
        # The count is limited to between one row and all rows, as in `released_count`.
        off = (counted * self.mean + noise[: self.d]) / min(max(share, 1 / people), 1.0)
        return replace(self.how, center=center_at(off, self.how))

    def moment(self, noise: FloatArray, people: int) -> FloatArray:
        """Return the moment, given noise on the sum of rows and, as last entry, on their count."""
        counted = self.rows.counted
        if self.around is not None:
            return counted * self.around
        return counted * _moment(bounded(self.rows.cut, self.near(noise, people)))
