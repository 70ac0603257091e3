"""How often the intervals that are printed hold what they say: nominal and measured.

Releases are made by the programs of a release, with rounded noise from a named stream in the place
of OpenDP's, over tables, ways to bound and to centre rows, units and epsilons. Measured is, for

- a release: the bars of loadings and of variances, which hold what the same release without any
  noise would show, and how far noise puts its picture off at most;
- a plan: the bars of loadings, which hold the next release, and what 95 of 100 releases keep.

Ranges of a comparison are no intervals: they say where its own draws lie.

A share counts each release once, by the part of its numbers that lie inside, as those of one
release fail together; behind it stands the interval of Clopper and Pearson for as many trials as
releases.
The exit status is 1 where a share lies 3 points or more from the nominal one.

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
"""By how much a share may miss the nominal one."""

LOADINGS, VARIANCES = "loadings of a release", "variances of a release"
SHAPE = "shape of its picture, off by at most"
PLANNED, SURVIVE = "loadings of a plan", "what survives, at least"


@dataclass(frozen=True)
class Setting:
    """One kind of release.

    Attributes
    ----------
    table : str
        Built in.
    options : ReleaseOptions
    rows_a_person : int
    """

    table: str
    options: ReleaseOptions
    rows_a_person: int = 1

    @property
    def name(self) -> str:
        """All that tells it from the others."""
        said = self.options
        return (
            f"{self.table}, {said.rows}, {said.center}, m {self.rows_a_person}, "
            f"epsilon {said.epsilon:g}{', pure' * (said.stated_delta == 0)}"
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
    """Yield all settings; rows are of length one, or bounded below or at the farthest corner."""
    for name, how, center, m, epsilon, delta in product(
        tables, rows, centers, people, epsilons, deltas
    ):
        # half widths of the limits: no row is longer than sqrt d from the middle, 2 sqrt d from any
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
    """Return a schema with the table's own limits, as if they were public, and its labels."""
    low, high = table.rows.min(0), table.rows.max(0)
    columns = (
        Column(name, *((float(a), float(b)) if a < b else (None, None)), use=bool(a < b))
        for name, a, b in zip(table.columns, low, high, strict=True)
    )
    return Schema(tuple(columns), rows_a_person=rows_a_person, **public_labels(table))


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Draw the noise of releases from a generator: continuous noise of the same scale, rounded."""

    def drawn(law: Law, scale: float, values: list[int]) -> list[int]:
        one = rng.standard_normal if law is Law.NORMAL else rng.laplace
        steps = np.rint(scale * one(size=len(values)))
        return [value + int(step) for value, step in zip(values, steps.tolist(), strict=True)]

    with mock.patch.object(noise, "drawn", drawn):
        yield


def without_noise(planned: Plan) -> tuple[FloatArray, FloatArray]:
    """Return variances and loadings, descending, of the same release without any noise."""
    n, mean = planned.count(), None
    if planned.options.center == "private":
        mean = planned.total() / (n * 2.0**planned.bits)
    declared = planned.centred(mean)
    matrix = planned.moment(declared) * (row_bound_in(declared) ** 2 / (n * 4.0**planned.bits))
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def picture_off(planned: Plan, made: RealRelease) -> float:
    """Return how far noise put a released picture off: beside the same cells without noise."""
    shown, counted = made.picture, planned.counting
    assert shown is not None
    assert counted is not None
    how, found = transform_of(made.declared), []
    for block, codes in planned.records.labelled():
        whole = quantised(planned.schema.filled(block), how, planned.bits)
        found.append(
            picture.along(
                whole, codes, made.components, counted, disk=shown["frame"]["from"] == DISK
            )
        )
    places, codes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    frame = np.array(
        [round(reach * counted.unit) for reach in shown["frame"]["reach"]], dtype=np.int64
    )
    codes = codes if shown["labels"] else np.zeros_like(codes)
    exact = picture.cell_counts(places, codes, frame, counted.plan)
    seen = picture.picture_in(made.to_json())
    assert seen is not None
    return off_by(replace(seen, noisy=exact.astype(float)), seen)


def covered(setting: Setting, releases: int, seed: int = 0) -> dict[str, list[float]]:
    """Return which part of each printed interval's numbers lies inside, a release each."""
    table = load(setting.table)
    schema = schema_of(table, setting.rows_a_person)
    found: dict[str, list[float]] = defaultdict(list)
    try:
        planned = plan(setting.options, table, schema)
    except dpviz.DpvizError:  # its picture would drown
        setting = replace(setting, options=replace(setting.options, picture=0.0))
        planned = plan(setting.options, table, schema)
    values, vectors = without_noise(planned)
    k = setting.options.k
    rows = SchemaRows.of(table, schema)
    outlook, true_rows = rows.outlook(setting.options), rows._seen(setting.options)
    with seeded(generator(seed, "coverage", setting.name)):
        for _ in range(releases):
            made = make(setting.options, table, schema)
            file = made.to_json()
            seen = read(file)
            if seen.readable:
                true = turned_to(seen.loadings, vectors[:, :k])
                held = np.abs(true - seen.loadings) <= seen.bars
                found[LOADINGS].append(float(held[:, : seen.readable].mean()))
                near = np.abs(values[:k] - seen.variances[:k]) <= seen.variance_bars
                found[VARIANCES].append(float(near[: seen.readable].mean()))
            released = turned_to(outlook.truth, made.components)
            between = (outlook.low_bars <= released) & (released <= outlook.high_bars)
            found[PLANNED].append(float(between.mean()))
            kept = true_rows.kept(made.components)
            found[SURVIVE].append(float(kept >= outlook.low))
            if made.picture is not None:
                shown = picture.shown_of(file)
                assert shown is not None
                found[SHAPE].append(float(picture_off(planned, made) <= shown["error"]))
    return found


def row(name: str, shares: Sequence[float]) -> tuple[str, bool]:
    """Return a line of the table, and whether its share is the nominal one within `ALLOWED`."""
    count, share = len(shares), float(np.mean(shares))
    ends = binomtest(round(share * count), count).proportion_ci(0.95)
    sound = abs(share - CONFIDENCE) <= ALLOWED
    said = (name, f"{CONFIDENCE:.2f}", f"{share:.3f}", f"{count:,}")
    return f"| {' | '.join(said)} | {ends.low:.3f} to {ends.high:.3f} |", sound


def pooled(found: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    """Return all releases of each interval together."""
    every: dict[str, list[float]] = defaultdict(list)
    for one in found:
        for name, shares in one.items():
            every[name] += shares
    return every


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where a share is not the nominal one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--tables", nargs="+", default=["iris", "wine", "breast_cancer"])
    parser.add_argument("--each", action="store_true", help="a line for each setting as well")
    chosen = parser.parse_args(argv)
    print(
        "| interval | nominal | measured | releases | 95 % of it |\n| --- | --- | --- | --- | --- |"
    )
    found = []
    for setting in settings(chosen.tables):
        found.append(covered(setting, chosen.releases))
        if chosen.each:
            for name, shares in found[-1].items():
                print(row(f"{name}: {setting.name}", shares)[0], flush=True)
    sound = True
    for name, shares in pooled(found).items():
        said, holds = row(name, shares)
        print(said)
        sound = sound and holds
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
