"""Compare the nominal and the measured coverage of printed intervals.

The release program makes releases with rounded noise from a named stream instead of OpenDP's noise.
The settings vary tables, ways to bound and centre rows, units and epsilons. The measured intervals
are, for

- a release: the error bars of loadings and variances, which should cover the values of the same
  release without noise, and the largest error that noise makes in the published 2-D map;
- a plan: the error bars of loadings, which should cover the next release, and the recovery that 95
  of 100 releases should reach.

Ranges of a comparison are not intervals: they show the spread of its repetitions.

A share counts each release once, by the part of its numbers inside the interval, because the
numbers of one release fail together. The Clopper-Pearson interval of a share has as many trials as
releases. The exit status is 1 if a share lies 3 points or more from the nominal one.

    python -m benchmarks.coverage --releases 200
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from unittest import mock

import numpy as np
from scipy.stats import binomtest

import dpviz
from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator
from dpviz.datasets import Table, load
from dpviz.releasing import noise, picture
from dpviz.releasing.chain import CONFIDENCE, turned_to
from dpviz.releasing.grid import quantised, row_bound_in, transform_of
from dpviz.releasing.making import Plan, RealRelease, make, plan
from dpviz.releasing.noise import Law
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.predicting import SchemaRows
from dpviz.releasing.reading import read
from dpviz.releasing.schema import Column, Schema, public_labels
from dpviz.simulation.picture.account import DISK
from dpviz.simulation.picture.quality import off_by

ALLOWED = 0.03
"""Largest allowed difference between a measured and a nominal share."""

LOADINGS, VARIANCES = "loadings of a release", "variances of a release"
SHAPE = "shape of its picture, off by at most"
PLANNED, SURVIVE = "loadings of a plan", "what survives, at least"


@dataclass(frozen=True)
class Setting:
    """One kind of release to measure.

    Attributes
    ----------
    table : str
        Name of a built-in table.
    options : ReleaseOptions
    rows_a_person : int
    """

    table: str
    options: ReleaseOptions
    rows_a_person: int = 1

    @property
    def name(self) -> str:
        """Label that distinguishes this setting from all others."""
        options = self.options
        return (
            f"{self.table}, {options.rows}, {options.center}, m {self.rows_a_person}, "
            f"epsilon {options.epsilon:g}{', pure' * (options.stated_delta == 0)}"
        )


def settings(
    tables: Sequence[str] = ("iris", "wine", "breast_cancer"),
    rows: Sequence[str] = ("unit", "short", "whole"),
    centers: Sequence[str] = ("typical", "private"),
    people: Sequence[int] = (1, 3),
    epsilons: Sequence[float] = (1.0, 5.0, 20.0),
    deltas: Sequence[float] = (1e-6, 0.0),
    picture: float = 0.3,
) -> Iterator[Setting]:
    """Yield all settings: rows of length one, or a norm bound below or at the farthest corner."""
    for name, how, center, m, epsilon, delta in product(
        tables, rows, centers, people, epsilons, deltas
    ):
        # In half widths, rows are within sqrt(d) of the middle, and within 2 sqrt(d) of any point.
        corner = math.sqrt(load(name).rows.shape[1])
        bound = {"unit": "", "short": f"{corner / 2:.3g}", "whole": f"{2 * corner:.3g}"}[how]
        options = ReleaseOptions(
            rows="unit" if how == "unit" else "bound",
            row_bound=bound,
            scale="limits",
            center=center,
            epsilon=epsilon,
            delta=delta,
            k=2,
            picture=picture,
            accept=("epsilon-above-10",) if epsilon > 10 else (),
        )
        yield Setting(name, options, m)


def schema_of(table: Table, rows_a_person: int) -> Schema:
    """Return a schema with the table's own limits, treated as public, and its labels."""
    low, high = table.rows.min(0), table.rows.max(0)
    columns = (
        Column(name, *((float(a), float(b)) if a < b else (None, None)), use=bool(a < b))
        for name, a, b in zip(table.columns, low, high, strict=True)
    )
    return Schema(tuple(columns), rows_a_person=rows_a_person, **public_labels(table))


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Sample the noise of releases from a generator: continuous, rounded, and of the same scale."""

    def drawn(law: Law, scale: float, values: list[int]) -> list[int]:
        one = rng.standard_normal if law is Law.NORMAL else rng.laplace
        steps = np.rint(scale * one(size=len(values)))
        return [value + int(step) for value, step in zip(values, steps.tolist(), strict=True)]

    with mock.patch.object(noise, "drawn", drawn):
        yield


def without_noise(planned: Plan) -> tuple[FloatArray, FloatArray]:
    """Return descending variances, and loadings, of the same release without noise."""
    n, mean = planned.count(), None
    if planned.options.center == "private":
        mean = planned.total() / (n * 2.0**planned.bits)
    transform = planned.centred(mean)
    matrix = planned.moment(transform) * (row_bound_in(transform) ** 2 / (n * 4.0**planned.bits))
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def picture_off(planned: Plan, made: RealRelease) -> float:
    """Return the error of a released 2-D map: its change from the map without noise."""
    drawing, counting = made.picture, planned.counting
    assert drawing is not None
    assert counting is not None
    how, blocks = transform_of(made.declared), []
    for block, codes in planned.records.labelled():
        whole = quantised(planned.schema.filled(block), how, planned.bits)
        blocks.append(
            picture.along(
                whole, codes, made.components, counting, disk=drawing["frame"]["from"] == DISK
            )
        )
    places, codes = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    frame = np.array(
        [round(reach * counting.unit) for reach in drawing["frame"]["reach"]], dtype=np.int64
    )
    codes = codes if drawing["labels"] else np.zeros_like(codes)
    exact = picture.cell_counts(places, codes, frame, counting.plan)
    picture_here = picture.picture_in(made.to_json())
    assert picture_here is not None
    return off_by(replace(picture_here, noisy=exact.astype(float)), picture_here)


def covered(setting: Setting, releases: int, seed: int = 0) -> dict[str, list[float]]:
    """Return, for each release and interval, the part of its numbers inside the interval."""
    table = load(setting.table)
    schema = schema_of(table, setting.rows_a_person)
    shares: dict[str, list[float]] = defaultdict(list)
    try:
        planned = plan(setting.options, table, schema)
    except dpviz.DpvizError:  # This error means that the noise hides the picture.
        setting = replace(setting, options=replace(setting.options, picture=0.0))
        planned = plan(setting.options, table, schema)
    values, vectors = without_noise(planned)
    k = setting.options.k
    rows = SchemaRows.of(table, schema)
    outlook, true_rows = rows.outlook(setting.options), rows._seen(setting.options)
    with seeded(generator(seed, "coverage", setting.name)):
        for _ in range(releases):
            release = make(setting.options, table, schema)
            file = release.to_json()
            reading = read(file)
            if reading.readable:
                true = turned_to(reading.loadings, vectors[:, :k])
                inside = np.abs(true - reading.loadings) <= reading.bars
                shares[LOADINGS].append(float(inside[:, : reading.readable].mean()))
                near = np.abs(values[:k] - reading.variances[:k]) <= reading.variance_bars
                shares[VARIANCES].append(float(near[: reading.readable].mean()))
            truth = turned_to(outlook.truth, release.components)
            between = (outlook.low_bars <= truth) & (truth <= outlook.high_bars)
            shares[PLANNED].append(float(between.mean()))
            recovery = true_rows.kept(release.components)
            shares[SURVIVE].append(float(recovery >= outlook.low))
            if release.picture is not None:
                drawing = picture.shown_of(file)
                assert drawing is not None
                shares[SHAPE].append(float(picture_off(planned, release) <= drawing["error"]))
    return shares


def row(name: str, shares: Sequence[float]) -> tuple[str, bool]:
    """Return one table row, and whether its share is nominal within `ALLOWED`."""
    count, share = len(shares), float(np.mean(shares))
    ends = binomtest(round(share * count), count).proportion_ci(0.95)
    sound = abs(share - CONFIDENCE) <= ALLOWED
    cells = (name, f"{CONFIDENCE:.2f}", f"{share:.3f}", f"{count:,}")
    return f"| {' | '.join(cells)} | {ends.low:.3f} to {ends.high:.3f} |", sound


def pooled(parts: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    """Return, for each interval, the results of all releases together."""
    every: dict[str, list[float]] = defaultdict(list)
    for one in parts:
        for name, shares in one.items():
            every[name] += shares
    return every


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a share is not the nominal one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--tables", nargs="+", default=["iris", "wine", "breast_cancer"])
    parser.add_argument("--each", action="store_true", help="a line for each setting as well")
    options = parser.parse_args(argv)
    print(
        "| interval | nominal | measured | releases | 95 % of it |\n| --- | --- | --- | --- | --- |"
    )
    all_shares = []
    for setting in settings(options.tables):
        all_shares.append(covered(setting, options.releases))
        if options.each:
            for name, shares in all_shares[-1].items():
                print(row(f"{name}: {setting.name}", shares)[0], flush=True)
    sound = True
    for name, shares in pooled(all_shares).items():
        line, holds = row(name, shares)
        print(line)
        sound = sound and holds
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
