"""What a release would keep, predicted from the rows for exactly the pipeline that it runs.

The rows are read under the schema, bounded, centred and scaled by the programs of the release
itself; noise of its law is drawn from a named stream, continuous in the place of discrete, which
differs by less than anybody can see. What comes of it is a function of private rows: a working view
for who may see them, and no release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import bdtr

from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.entries import PRIVATE
from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.core.metrics import chance_share, nothing_to_recover, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import towards
from dpviz.core.params import format_number
from dpviz.core.problem import Budget, Relation
from dpviz.core.seeding import generator
from dpviz.preparation.transform import Transform
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
from dpviz.releasing.records import TableInput, open_records
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
    def of(cls, table: TableInput, schema: Schema) -> SchemaRows:
        """Return the rows of a table; `DpvizError` where it cannot be read so."""
        schema.require()
        records = open_records(table, schema)
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
        exact = seen.moment(np.zeros(d + 1), people)
        size = _Size.of(options, self.schema, d)
        edge = noise_edge(size.off / people, d)
        found, turned, told = [], np.empty((draws, d, k)), np.empty(draws, dtype=bool)
        for at in range(draws):
            noisy = seen.noisy(exact, size, _standard(size.law, d, at), people)
            heights, bases = np.linalg.eigh(noisy)
            components = bases[:, ::-1][:, :k]
            found.append(seen.kept(components))
            turned[at] = _turned_to(seen.truth, components)
            # told apart from the next, so that noise of this size does not swap them
            told[at] = (-np.diff(heights[::-1])[:k] > edge).all()
        low, high = np.quantile(turned, [0.025, 0.975], axis=0)
        return Outlook(
            options,
            float(np.mean(found)),
            _surely(found),
            seen.without_noise(people),
            seen.centre_share,
            seen.truth,
            low,
            high,
            np.abs((turned * seen.truth).sum(1)).mean(0),
            float(told.mean()),
        )

    def recoveries(
        self,
        options: ReleaseOptions,
        epsilons: Sequence[float],
        *,
        n: int | None = None,
        draws: int = DRAWS,
    ) -> list[float]:
        """Return the recovery of `outlook` at each epsilon, from the same draws.

        What no epsilon changes is computed once.
        """
        seen = self._seen(options)
        d, k, people = seen.d, options.k, n or self.n
        exact = seen.moment(np.zeros(d + 1), people)
        sizes = [_Size.of(replace(options, epsilon=each), self.schema, d) for each in epsilons]
        found = np.empty((len(sizes), draws))
        for at in range(draws):
            standard = _standard(sizes[0].law, d, at)
            for place, size in enumerate(sizes):
                noisy = seen.noisy(exact, size, standard, people)
                found[place, at] = seen.kept(np.linalg.eigh(noisy)[1][:, ::-1][:, :k])
        return [float(np.mean(kept)) for kept in found]

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
            (kept,) = self.recoveries(
                options, [min(math.exp(log_epsilon), 100.0)], n=n, draws=DRAWS // 5
            )
            return kept >= recovery

        if not enough(high):
            return None
        # two per cent of epsilon, finer than the two digits that are said
        while high - low > 0.02:
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return towards(math.exp(high), 2, 1)


def _surely(found: Sequence[float]) -> float:
    """Return what 95 % of releases keep at least; with enough draws, at confidence .95."""
    # so few draws lie below the true quantile with a probability of .05 at most
    below = int((bdtr(np.arange(len(found)), len(found), 0.05) <= 0.05).sum())
    return float(np.sort(found)[max(below, 1) - 1])


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

    def moment(self, noise: FloatArray, people: int) -> FloatArray:
        """Return the moment with noise on the sum of rows and, at its end, on how many count."""
        counted = self.rows.counted
        if self.around is not None:
            return counted * self.around
        share = counted + noise[self.d]
        # a released count is at least one row and at most all, as in `released_count`
        off = (counted * self.mean + noise[: self.d]) / min(max(share, 1 / people), 1.0)
        near = replace(self.how, center=center_at(off, self.how))
        return counted * _moment(bounded(self.rows.cut, near))

    def noisy(
        self, exact: FloatArray, size: _Size, standard: tuple[FloatArray, FloatArray], people: int
    ) -> FloatArray:
        """Return the moment as one release has it: noise of this size, from one standard draw."""
        vector, matrix = standard
        if self.around is None:
            of_mean = np.append(size.mean * vector[: self.d], size.count * vector[self.d])
            exact = self.moment(of_mean / people, people)
        return exact + size.entry * matrix / people


@dataclass(frozen=True)
class _Size:
    """How large noise is: on the sum of rows, on their count and on X'X, in row bounds.

    Each over n is what is added. `off` is the standard deviation on X'X off the diagonal.
    """

    law: Law
    mean: float
    count: float
    entry: float
    off: float

    @classmethod
    def of(cls, options: ReleaseOptions, schema: Schema, d: int) -> _Size:
        law = Law.NORMAL if options.stated_delta > 0 else Law.LAPLACE
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
        # a Laplace of scale 1 has variance 2
        return cls(law, std_mean, std_count, std, std if law is Law.NORMAL else math.sqrt(2) * std)


def _turned_to(truth: FloatArray, components: FloatArray) -> FloatArray:
    """Return components turned to the table's side, as none has a sign of its own."""
    signs = np.sign((components * truth).sum(0))
    return np.asarray(components * np.where(signs == 0, 1, signs))


def _standard(law: Law, d: int, draw: int) -> tuple[FloatArray, FloatArray]:
    """Return one draw of standard noise: d + 1 numbers for the rows' sum and count, and X'X's."""
    # one stream a draw, so that every epsilon and every pipeline meets the same noise
    rng = generator(0, "a release that may be", draw)
    if law is Law.NORMAL:
        # with its transpose: standard deviation 1 off the diagonal, sqrt 2 on it
        square = rng.standard_normal((d, d)) / math.sqrt(2)
        return rng.standard_normal(d + 1), square + square.T
    upper = np.triu(rng.laplace(size=(d, d)))
    return rng.laplace(size=d + 1), upper + np.triu(upper, 1).T
