"""What a release would keep, predicted from the rows for exactly the pipeline that it runs.

The rows are read under the schema, bounded, centred and scaled by the programs of the release
itself; noise of its law is drawn from a named stream, continuous in the place of discrete, which
differs by less than anybody can see. What comes of it is a function of private rows: a working view
for who may see them, and no release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.entries import PRIVATE
from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.core.metrics import FLAT, chance_share, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.core.params import format_number
from dpviz.core.problem import Budget, Relation
from dpviz.core.seeding import generator
from dpviz.releasing.grid import (
    OTHER_WEIGHT,
    bounded,
    center_at,
    row_bound_in,
    transform_of,
    within_limits,
)
from dpviz.releasing.making import counts_rows, declare
from dpviz.releasing.noise import COUNT_SHARE, Law, mean_side, sensitivity_l1, sensitivity_l2
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.records import Given, open_records
from dpviz.releasing.schema import Schema
from dpviz.simulation.bounds import noise_edge

DRAWS = 128
MOST_ROWS = 4_000
"""Rows that a prediction looks at; of more of them, evenly spread ones."""
_BITS = 20
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
    readable : float
        Share of releases whose k components all can be told from noise, as `reading.read` does.
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
    readable: float


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
    """

    schema: Schema
    n: int
    cells: FloatArray
    counted: float = 1.0

    @classmethod
    def of(cls, given: Given, schema: Schema) -> SchemaRows:
        """Return the rows of a table; `DpvizError` where it cannot be read so."""
        schema.require()
        records = open_records(given, schema)
        if records.n < 2:
            raise DpvizError(f"the table must have at least 2 rows; it has {records.n}.")
        step, kept, start = math.ceil(records.n / MOST_ROWS), [], 0
        for block in records.blocks():
            # every step-th row of the table, wherever its blocks begin
            kept.append(np.array(block[-start % step :: step], dtype=np.float64))
            start += len(block)
        cells = schema.filled(np.concatenate(kept), cut=False)
        return cls(schema, records.n, cells, start / records.n)

    @cached_property
    def _cut(self) -> FloatArray:
        return self.schema.filled(self.cells)

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
        declared, k, people = declare(options, self.schema), options.k, n or self.n
        how = transform_of(declared)
        d, law = len(how.center), Law.NORMAL if options.stated_delta > 0 else Law.LAPLACE
        if not 1 <= k < d:
            raise InvalidSetting("k", f"a whole number from 1 to {d - 1}", k, "--k")
        scale = how.scale / row_bound_in(declared)
        centred = self.cells / scale
        own = centred.mean(0)
        A = _moment(centred - own)
        values, vectors = np.linalg.eigh(A)
        truth = fix_signs(vectors[:, ::-1][:, :k])
        chance = chance_share(SecondMoment(A, len(centred)), k) if values[-1] > 0 else 1.0
        if chance > 1 - FLAT:
            raise DpvizError("the table has no structure: any directions are as good.")

        def kept(components: FloatArray) -> float:
            share = np.trace(components.T @ A @ components) / values[::-1][:k].sum()
            return float(recovery_of(share, chance))

        around = bounded(self._cut, how)
        paid = options.center == PRIVATE
        within = bounded(self._cut, within_limits(how)) if paid else np.zeros((1, d))
        mean = within.mean(0)

        def moment(noise: FloatArray) -> FloatArray:
            """Return A with noise on the sum of rows and, at its end, on how many count."""
            if not paid:
                return self.counted * _moment(around)
            share = self.counted + noise[d]
            # a released count is at least one row and at most all, as in `released_count`
            off = (self.counted * mean + noise[:d]) / min(max(share, 1 / people), 1.0)
            near = replace(how, center=center_at(off, how))
            return self.counted * _moment(bounded(self._cut, near))

        exact = moment(np.zeros(d + 1))
        found, turned, told = [], np.empty((draws, d, k)), np.empty(draws, dtype=bool)
        for at, (of_mean, of_moment, s) in enumerate(_noise(options, self.schema, law, d, draws)):
            noisy = (moment(of_mean / people) if paid else exact) + of_moment / people
            heights, bases = np.linalg.eigh(noisy)
            components = bases[:, ::-1][:, :k]
            told[at] = (-np.diff(heights[::-1])[:k] > noise_edge(s / people, d)).all()
            found.append(kept(components))
            # a component has no sign of its own: each is turned to the table's side
            signs = np.sign((components * truth).sum(0))
            turned[at] = components * np.where(signs == 0, 1, signs)
        low, high = np.quantile(turned, [0.025, 0.975], axis=0)
        base = how.center / scale
        lengths = np.square(centred - base).sum(1).mean()
        return Outlook(
            options,
            float(np.mean(found)),
            float(np.quantile(found, 0.05, method="lower")),
            kept(np.linalg.eigh(exact)[1][:, ::-1][:, :k]),
            float(np.square(own - base).sum() / lengths) if lengths else 0.0,
            truth,
            low,
            high,
            np.abs((turned * truth).sum(1)).mean(0),
            float(told.mean()),
        )

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

    def best(self, options: ReleaseOptions, *, n: int | None = None) -> Outlook:
        """Return the outlook of the pipeline that is predicted to keep most."""
        few = [self.outlook(each, n=n, draws=DRAWS // 10) for each in self.pipelines(options)]
        most = max(few, key=lambda one: one.recovery)
        return self.outlook(most.options, n=n)

    def least_epsilon(
        self, options: ReleaseOptions, recovery: float, *, n: int | None = None
    ) -> float | None:
        """Return about the least epsilon at which a release keeps so much, two digits, rounded up.

        None where 100 is not enough. The draws are the same at every epsilon.
        """
        low, high = math.log(0.01), math.log(100.0)

        def enough(log_epsilon: float) -> bool:
            asked = replace(options, epsilon=min(math.exp(log_epsilon), 100.0))
            return self.outlook(asked, n=n, draws=DRAWS // 5).recovery >= recovery

        if not enough(high):
            return None
        # two per cent of epsilon, finer than the two digits that are said
        while high - low > 0.02:
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        step = 10.0 ** (math.floor(high / math.log(10)) - 1)
        return float(f"{math.ceil(math.exp(high) / step) * step:.2g}")


def _moment(rows: FloatArray) -> FloatArray:
    found: FloatArray = rows.T @ rows / len(rows)
    return found


def _noise(
    options: ReleaseOptions, schema: Schema, law: Law, d: int, draws: int
) -> Iterator[tuple[FloatArray, FloatArray, float]]:
    """Yield noise on the sum of rows and on X'X, in row bounds: both over n are what is added.

    Where a release tells how many rows count, the noise on that comes after those of the sum. Last
    comes the standard deviation of the noise on X'X off the diagonal.
    """
    relation, rows = Relation(options.relation), schema.rows_a_person or 1
    share = options.mean_share if options.center == PRIVATE else 0.0
    of_count = COUNT_SHARE if counts_rows(options, schema) else 0.0
    left = 1 - share - of_count - options.picture
    # whatever the grid is: it cancels
    length = mean_side(law, relation, d, _BITS, rows, share=share).sensitivity
    of_mean = length / (OTHER_WEIGHT << (2 * _BITS))
    if law is Law.NORMAL:
        mu = mu_of(Budget(options.epsilon, options.stated_delta))
        entry = rows * sensitivity_l2(relation, _BITS) / (OTHER_WEIGHT << (2 * _BITS))
        std = entry / (mu * math.sqrt(left))
        std_mean = of_mean / (mu * math.sqrt(share)) if share else 0.0
        std_count = rows / (mu * math.sqrt(of_count)) if of_count else 0.0
    else:
        entry = rows * sensitivity_l1(relation, d, _BITS) / 4.0**_BITS
        std = entry / (options.epsilon * left)
        std_mean = of_mean / (options.epsilon * share) if share else 0.0
        std_count = rows / (options.epsilon * of_count) if of_count else 0.0
    # one stream a draw, so that every epsilon and every pipeline meets the same noise
    for draw in range(draws):
        rng = generator(0, "a release that may be", draw)
        if law is Law.NORMAL:
            # with its transpose: standard deviation 1 off the diagonal, sqrt 2 on it
            square = rng.standard_normal((d, d)) / math.sqrt(2)
            matrix, vector = square + square.T, rng.standard_normal(d + 1)
        else:
            upper = np.triu(rng.laplace(size=(d, d)))
            matrix, vector = upper + np.triu(upper, 1).T, rng.laplace(size=d + 1)
        # a Laplace of scale 1 has variance 2
        off = std if law is Law.NORMAL else math.sqrt(2) * std
        yield np.append(std_mean * vector[:d], std_count * vector[d]), std * matrix, off
