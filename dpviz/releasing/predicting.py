"""What a release would keep, predicted from the rows for exactly the pipeline that it runs.

The rows are read under the schema, bounded, centred and scaled by the programs of the release
itself; releases of them are drawn by `dpviz.releasing.chain`. What comes of it is a function of
private rows: a working view for who may see them, and no release.
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
"""Of which the third and the last but two close 95 of 100, and the sixth 95 from below."""
EPSILONS = np.geomspace(0.01, 100.0, 231)
"""Where a release is looked at for the least epsilon: 4 % apart."""
MOST_ROWS = 4_000
"""Rows that a prediction looks at; of more of them, evenly spread ones."""
LOUD = 0.5
"""Share of the rows' squared length in their common centre from which on that is a warning."""

LONG_TAIL = 0.05
"""Share of rows that a limit cuts from which on a logarithm is offered."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """What one release would keep.

    Attributes
    ----------
    options : ReleaseOptions
    recovery, low : float
        Mean over the draws, and what 95 of 100 releases keep at least.
    without_noise : float
        Recovery with the same limits and centre and no noise at all.
    centre_share : float
        Share of the rows' mean squared length, around the stated centre, that is their mean's.
    truth : ndarray of shape (d, k)
        The table's own loadings.
    low_bars, high_bars : ndarray of shape (d, k)
        Where 95 of 100 releases put them.
    cosines : ndarray of shape (k,)
        Mean |cosine| between each released component and the table's own.
    readable : ndarray of shape (k,)
        Share of releases whose components up to each can all be told from noise and from the next,
        as `reading.read` does.
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
    """Rows of a table under its schema, to predict releases from.

    Attributes
    ----------
    schema : Schema
    n : int
        Of the table.
    cells : ndarray of shape (at most `MOST_ROWS`, d)
        As they are read; what is missing is typical, and nothing is cut.
    counted : float
        Share of the n rows that count; the others are too many of one person.
    codes : ndarray of int or None
        Labels of the rows, as places among the schema's kinds.
    """

    schema: Schema
    n: int
    cells: FloatArray
    counted: float = 1.0
    codes: Codes | None = None

    @classmethod
    def of(cls, table: TableInput, schema: Schema) -> SchemaRows:
        """Return the rows of a table; `DpvizError` where it cannot be read so."""
        schema.require()
        records = open_records(table, schema)
        if records.n < 2:
            raise DpvizError(f"the table must have at least 2 rows; it has {records.n}.")
        step, kept, labels, start = math.ceil(records.n / MOST_ROWS), [], [], 0
        for block, codes in records.labelled():
            # every step-th row of the table, wherever its blocks begin
            kept.append(np.array(block[-start % step :: step], dtype=np.float64))
            labels.append(codes[-start % step :: step])
            start += len(block)
        cells = schema.filled(np.concatenate(kept), cut=False)
        return cls(schema, records.n, cells, start / records.n, np.concatenate(labels))

    @classmethod
    def of_plan(cls, variances: FloatArray, n: int) -> SchemaRows:
        """Return rows of people who are not there yet: normal, with variances that are guessed.

        Each feature is a component, and the limits of all are four times the largest standard
        deviation: public, as everything about them is.
        """
        few = max(500, 3 * len(variances))
        rows = generator(0, "a plan").standard_normal((few, len(variances)))
        # of exactly these variances, however few rows stand for all people
        rows = np.linalg.qr(rows - rows.mean(0))[0] * np.sqrt(few * variances)
        reach = 4 * math.sqrt(variances.max())
        columns = (Column(f"feature {at + 1}", -reach, reach) for at in range(len(variances)))
        return cls(Schema(tuple(columns)), n, rows)

    @cached_property
    def cut(self) -> FloatArray:
        """The rows with what is beyond the limits brought to them."""
        return self.schema.filled(self.cells)

    @cached_property
    def _kept(self) -> dict[ReleaseOptions, _Seen]:
        return {}

    def _seen(self, options: ReleaseOptions) -> _Seen:
        """Return what a pipeline makes of the rows, computed once whatever the epsilon."""
        pipeline = replace(options, epsilon=1.0)
        if pipeline not in self._kept:
            self._kept[pipeline] = _Seen.of(self, options)
        return self._kept[pipeline]

    @property
    def tails(self) -> dict[str, float]:
        """Share of rows that a column's upper limit cuts, where a logarithm could keep them."""
        above = (self.cells > self.schema.limits_used.T[1]).mean(0)
        return {
            column.name: float(share)
            for column, share in zip(self.schema.used, above, strict=True)
            if share > LONG_TAIL and not column.log and (column.low or 0) > 0
        }

    def outlook(
        self, options: ReleaseOptions, *, n: int | None = None, draws: int = DRAWS
    ) -> Outlook:
        """Return what a release would keep.

        Parameters
        ----------
        options : ReleaseOptions
        n : int, optional
            Of as many people of the same kind; by default those of the table.
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
            # told apart from the next, so that noise of this size does not swap them
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
        """Return the recovery of each draw of `outlook`.

        Parameters
        ----------
        options : ReleaseOptions
        draws : range
        n : int, optional
            As in `outlook`.
        mean_known : bool
            Whether rows are centred at their exact mean and nothing is paid for it: no release.
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
        """Return whether a release would refuse to count a picture that is asked for."""
        try:
            self._counting(options)
        except CannotRun:
            return True
        return False

    def _counting(self, options: ReleaseOptions) -> Counting:
        """Return how a picture would be counted, by the program that a release asks."""
        law = Law.NORMAL if options.stated_delta > 0 else Law.LAPLACE
        return counting(
            options.picture, law, Budget(options.epsilon, options.stated_delta),
            Relation(options.relation), self.n, options.k, self.schema.kinds,
            bits_for(self.n, options.grid), self.schema.rows_a_person or 1,
        )  # fmt: skip

    def map(self, options: ReleaseOptions) -> dict[str, Any]:
        """Return a picture that such a release could print, as its card would hold it.

        It is one simulated release: frame and counts follow from simulated components, and noise is
        continuous in the place of discrete.

        Raises
        ------
        CannotRun
            If it would drown.
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
        assert shown is not None  # it was counted above
        return shown

    def without_noise(self, options: ReleaseOptions) -> float:
        """Return the recovery of what is released before any noise: what bounds alone leave."""
        return self._seen(options).without_noise(self.n)

    def pipelines(self, options: ReleaseOptions) -> list[ReleaseOptions]:
        """Return what can be released in the place of something: bounds of rows, and centres.

        Row bounds are half of, and a quarter of, the farthest corner of the stated limits: public
        numbers, as the limits are.
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
        """Return about the least epsilon, of two digits, at which 95 of 100 releases keep so much.

        `dpviz.simulation.least.about` asks the same of the idealised preparation.

        Parameters
        ----------
        options : ReleaseOptions
        recovery : float
        n, mean_known
            As in `sample`.
        near : float
            About where it may be: it changes the work alone.
        up_to : float
            Where nobody asks for more.

        Returns
        -------
        float or None
            Two digits, rounded up; None where 100, or ``up_to``, is not enough.
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
    """The noise of a release that may be: continuous, and the same each time it is asked for."""

    @classmethod
    def of(cls, size: Size, made: Counting, budget: Budget) -> SimulatedNoise:
        """Return noise as large as that of a release."""
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
        """Return whole numbers with rounded noise of a named stream."""
        rng = generator(0, "a map that may be", len(values))
        drawn = rng.standard_normal if self.law is Law.NORMAL else rng.laplace
        noise = np.rint(scale * drawn(size=len(values))).tolist()
        return [value + int(one) for value, one in zip(values, noise, strict=True)]


def _moment(rows: FloatArray) -> FloatArray:
    found: FloatArray = rows.T @ rows / len(rows)
    return found


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a pipeline makes of the rows before any noise.

    Attributes
    ----------
    rows : SchemaRows
    how : Transform
    k : int
    A, truth : ndarray
        The table's own second moment about its mean, and its k first loadings.
    best, chance : float
        Sum of its k largest eigenvalues, and the share of them that directions at random keep.
    mean : ndarray of shape (d,)
        Of the bounded rows whose mean is paid for; zeros where it is not.
    around : ndarray of shape (d, d) or None
        Second moment about a stated centre; None where the centre is paid for.
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
            raise DpvizError("the table has no structure: any directions are as good.")
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
        """Return the recovery of the components of the moment of bounded rows."""
        exact = self.moment(np.zeros(self.d + 1), people)
        return self.kept(np.linalg.eigh(exact)[1][:, ::-1][:, : self.k])

    def near(self, noise: FloatArray, people: int) -> Transform:
        """Return how rows are bounded around a mean with noise on the sum of rows and its count."""
        counted = self.rows.counted
        share = counted + noise[self.d]
        # a released count is at least one row and at most all, as in `released_count`
        off = (counted * self.mean + noise[: self.d]) / min(max(share, 1 / people), 1.0)
        return replace(self.how, center=center_at(off, self.how))

    def moment(self, noise: FloatArray, people: int) -> FloatArray:
        """Return the moment with noise on the sum of rows and, at its end, on how many count."""
        counted = self.rows.counted
        if self.around is not None:
            return counted * self.around
        return counted * _moment(bounded(self.rows.cut, self.near(noise, people)))
