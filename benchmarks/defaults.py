"""Compare default rules for choosing a mechanism by their regret over many tables.

The regret of a choice in one setting is the mean recovery of the best contender with the same kind
of guarantee, minus the choice's own. The best contender is chosen on one half of the repetitions
and both recoveries are read on the other half; then the halves swap roles. With a single half, the
best contender would also be the luckiest. Contenders are sound mechanisms and clipped mechanisms
with other shares of rows to clip, which tests the clipping rule too. Tables are split into two
halves by a hash of their names; rules are chosen on the first half of the tables and reported on
the second. `dpviz.simulation.defaults.advised` is the rule that the core follows.

Run ``python -m benchmarks.defaults``: it writes docs/defaults.md. ``--keep FOLDER`` stores the
measurements, one file a table, and resumes from them, contender by contender. ``--minutes`` limits
this run; the page then lists what is missing. ``--workers`` shares the tables; ``--quick`` takes
every eighth table and fewer repetitions.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.package_tables import Source, made_tables, real_tables
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import lengths_of
from dpviz.core.metrics import chance_share, nothing_to_recover, optimum, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Problem, Relation, default_delta
from dpviz.core.release import Calibration, Verdict
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms._base import Mechanism
from dpviz.mechanisms._clipped import unit_moment
from dpviz.mechanisms.clipped_gaussian import ClippedGaussian
from dpviz.mechanisms.clipped_pure import ClippedPure
from dpviz.preparation.bounding import Prepared, prepare

ROOT = Path(__file__).resolve().parents[1]
SIZES = (500, 2_000, 0)  # These numbers of rows are sampled from a table; 0 means all rows.
BOUNDS = {"longest": "max", "quantile": "quantile:0.9"}
SCALES = {"raw": "none", "z": "standardize"}
KS = (1, 2, 5, 10)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Mechanisms near the best in some setting of the earlier benchmark: one for each distribution of
# the output. Samplers are slow for several components, so they run with one component only.
MECHANISMS = {
    "approximate": (
        "gaussian", "separate_covariance", "wishart_exact", "adaptive_clip_gaussian", "spherical",
        "clipped_gaussian", "funnel",
    ),
    "pure": (
        "wishart_difference", "knorm", "ppca", "ppca[rows=unit]", "spherical_wishart_difference",
        "spherical_knorm", "clipped_pure", "pure_funnel", "screened_wishart_difference",
    ),
}  # fmt: skip
DRAWS, QUICK_DRAWS, QUICK_STEP = 100, 20, 8


@dataclass(frozen=True)
class OtherShare:
    """A clipped mechanism that clips another share of rows than the default rule.

    Attributes
    ----------
    of : Mechanism
    factor : float
        Factor that multiplies the rule's rank.
    share : float
        Share of the rows, which replaces the rule's rank if above 0.
    """

    of: Mechanism
    factor: float = 1.0
    share: float = 0.0

    @property
    def text(self) -> str:
        how = f"a share of {self.share:g}" if self.share else f"{self.factor:g} times the share"
        return f"{self.of.text}, {how}"

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        base = self.of.calibrate(problem, budget)
        if "rank" not in base.values:
            return base
        rank = self.share * problem.n or self.factor * base.values["rank"]
        return replace(
            base, values={**base.values, "rank": min(rank, problem.n / 2), "per_octave": 4.0}
        )


Contender = Mechanism | OtherShare


def others(kind: str) -> list[OtherShare]:
    """Return the same mechanism family with other shares of rows to clip."""
    of = ClippedGaussian() if kind == "approximate" else ClippedPure()
    variants = [OtherShare(of, factor=factor) for factor in (0.5, 2.0)]
    return variants + [OtherShare(of, share=share) for share in (0.5, 0.2, 0.05, 0.01)]


def contenders() -> dict[str, tuple[Contender, ...]]:
    """Return every mechanism to measure, by kind of guarantee."""
    return {kind: (*map(parse_variant, keys), *others(kind)) for kind, keys in MECHANISMS.items()}


@dataclass(frozen=True, eq=False)
class _Place:
    """A table in one preparation, with statistics known without simulation."""

    prepared: Prepared
    data: SecondMoment
    bound: str
    ks: tuple[int, ...]

    def facts(self) -> dict[str, Any]:
        """Return n, d and statistics that explain the regret of a choice.

        ``tail`` is the share of all variance in the longest hundredth of the rows; ``directions``
        is the recovery of the exact components of the row directions at each k.
        """
        assert self.data.rows is not None
        squares = np.sort(np.square(lengths_of(self.data.rows)))[::-1]
        most = max(1, round(len(squares) / 100))
        top = np.linalg.eigh(unit_moment(self.data.rows))[1][None, :, ::-1][:, :, : max(self.ks)]
        return {
            "n": self.data.n,
            "d": self.data.d,
            "bound": self.bound,
            "ks": self.ks,
            "tail": float(squares[:most].sum() / squares.sum()),
            "directions": [one and one[0] for one in self.recoveries(np.repeat(top, 2, axis=0))],
        }

    def recoveries(self, components: FloatArray) -> list[list[float] | None]:
        """Return the mean recovery of the leading components at each k, by half of the repetitions.

        Frames (orthonormal columns) for successive k are nested.
        """
        reference = self.prepared.reference
        along = np.einsum("tij,tij->tj", components, reference.A @ components).cumsum(axis=1)
        rows: list[list[float] | None] = []
        for k in self.ks:
            if k > components.shape[2]:
                rows.append(None)
                continue
            shares = [float(along[half::2, k - 1].mean()) for half in range(2)]
            chance, most = chance_share(reference, k), optimum(reference, k)
            rows.append([round(float(recovery_of(s / most, chance)), 5) for s in shares])
        return rows


def places(source: Source, scale: str) -> Iterator[_Place]:
    """Yield a table in each size and with each row-norm bound."""
    for size in SIZES:
        n = len(source.rows)
        if size >= n:
            continue
        rows = source.rows
        if size:
            rng = generator(0, "defaults", source.name, size)
            rows = rows[np.sort(rng.choice(n, size=size, replace=False))]
            rows = rows[:, np.ptp(rows, axis=0) > 0]
        if rows.shape[1] < 3:
            continue
        table = Table(source.name, rows.copy(), tuple(f"x{j}" for j in range(rows.shape[1])))
        for bound, text in BOUNDS.items():
            prepared = prepare(table, Settings(scale=SCALES[scale], row_bound=text))
            reference = prepared.reference
            fits = (k for k in KS if k < prepared.d)
            ks = [k for k in fits if not nothing_to_recover(chance_share(reference, k))]
            if ks:
                yield _Place(prepared, prepared.moment_with_rows, bound, tuple(ks))


def measured(
    source: Source, scale: str, draws: int, asked: Sequence[str], before: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the mean recovery of contenders in every setting of a table.

    Parameters
    ----------
    source : Source
    scale : str
    draws : int
    asked : sequence of str
        The contenders, as text.
    before : sequence of dict
        Stored measurements of other contenders, setting by setting; empty if there are none.
    """
    rows: list[dict[str, Any]] = []
    for place in places(source, scale):
        facts = place.facts()
        for relation, epsilon in product(Relation, EPSILONS):
            delta = default_delta(place.data.n)
            cells: dict[str, Any] = dict(before[len(rows)]["means"]) if before else {}
            for kind, among in contenders().items():
                budget = Budget(epsilon, delta if kind == "approximate" else 0.0)
                for mechanism in (one for one in among if one.text in asked):
                    cell = _cell(mechanism, place, relation, budget, draws)
                    if cell is not None:
                        cells[mechanism.text] = cell
            rows.append(
                facts | {"relation": str(relation), "epsilon": epsilon, "delta": delta}
                | {"means": cells}
            )  # fmt: skip
    return rows


def _cell(
    mechanism: Contender,
    place: _Place,
    relation: Relation,
    budget: Budget,
    draws: int,
) -> list[list[float] | None] | None:
    """Return the recoveries of one contender at each k, or None if it is not sound."""
    plain = mechanism.of if isinstance(mechanism, OtherShare) else mechanism
    one = plain.info.family == "subspace"
    k = 1 if one else max(place.ks)
    if one and place.ks[0] != 1:
        return None
    problem = Problem(place.data.n, place.data.d, k, relation, place.prepared.domain)
    if plain.why_not(problem, budget) is not None or not sound(plain, problem, budget):
        return None
    calibration = mechanism.calibrate(problem, budget)
    if isinstance(mechanism, OtherShare) and "rank" not in calibration.values:
        return None  # The calibration has no rank, so there is no other share to clip.
    # Use the same random streams for all: most mechanisms sample noise first, so noise is equal.
    stream = Draws.trials(0, "defaults", range(draws))
    release = plain.release_many(place.data, calibration, stream)
    return place.recoveries(release.components)


def sound(mechanism: Mechanism, problem: Problem, budget: Budget) -> bool:
    """Return whether the privacy claim holds, exactly or up to a sampler's convergence."""
    return mechanism.status(problem, budget).verdict in (
        Verdict.HOLDS, Verdict.LOOSE, Verdict.APPROXIMATE,
    )  # fmt: skip


def kept(
    source: Source, scale: str, draws: int, folder: Path, until: float
) -> dict[str, Any] | None:
    """Return a table's measurements, stored or new; None if time runs out before the end."""
    path = folder / f"{source.origin}-{source.name}-{scale}-{draws}.json"
    table: dict[str, Any] = {"asked": [], "cells": []}
    if path.is_file():
        table = json.loads(path.read_text(encoding="utf-8"))
    names = [one.text for among in contenders().values() for one in among]
    missing = [text for text in names if text not in table["asked"]]
    if missing:
        if time.time() >= until:
            return None
        with one_blas_thread():
            cells = measured(source, scale, draws, missing, table["cells"])
        table = {
            "name": source.name,
            "origin": source.origin,
            "tuning": source.tuning,
            "scale": scale,
            "asked": names,
            "cells": cells,
        }
        part = path.with_suffix(".part")
        part.write_text(json.dumps(table), encoding="utf-8")
        part.replace(path)
        print(f"{source.name} {scale}", flush=True)
    return table


def main() -> None:
    """Measure, then write docs/defaults.md."""
    from benchmarks.defaults_page import page

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "defaults")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="every eighth table, fewer draws")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after")
    options = parser.parse_args()
    until = time.time() + 60 * options.minutes
    options.keep.mkdir(parents=True, exist_ok=True)
    draws = QUICK_DRAWS if options.quick else DRAWS
    sources = [*real_tables(), *made_tables()][:: QUICK_STEP if options.quick else 1]
    jobs = [(source, scale) for source in sources for scale in SCALES]
    # Start the largest table first, so that no worker runs alone at the end.
    jobs.sort(key=lambda job: -math.prod(job[0].rows.shape) * job[0].rows.shape[1])
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        futures = [pool.submit(kept, *job, draws, options.keep, until) for job in jobs]
        tables = [one.result() for one in futures]
    results = [table for table in tables if table is not None]
    path = options.out / "defaults.md"
    path.write_text(page(results, draws, len(tables) - len(results)), encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
