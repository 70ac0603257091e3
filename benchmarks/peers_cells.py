"""The cells of `benchmarks.peers`: environments of the peers, and fits of theirs and ours."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import REQUIREMENTS, VERSIONS, Worker, python_of
from dpviz import datasets
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import prepare

PEERS = {
    "diffprivlib": ("diffprivlib", f"diffprivlib {VERSIONS['diffprivlib']}"),
    "opendp": ("opendp", f"OpenDP {VERSIONS['opendp']}"),
    "opendp_vectors": ("opendp", "OpenDP, all budget on vectors"),
}
OURS = {
    "wishart_difference": "dpviz, Wishart difference",
    "ppca": "dpviz, PPCA",
    "spherical_wishart_difference": "dpviz, spherical Wishart difference",
    "gaussian": "dpviz, Gaussian (delta 1e-5)",
    "spherical": "dpviz, spherical (delta 1e-5)",
}
TABLES = ("digits", "breast_cancer", "wine")
KS = (1, 2, 5, 10)
EPSILONS = (0.3, 1.0, 3.0, 10.0)
DELTA = 1e-5


@dataclass(frozen=True, eq=False)
class Table:
    """A prepared table and what recovery is measured against."""

    name: str
    rows: Any
    A: Any
    values: Any

    @classmethod
    def load(cls, name: str) -> Table:
        return cls.of(datasets.load(name))

    @classmethod
    def of(cls, table: datasets.Table) -> Table:
        prepared = prepare(table, Settings())
        rows = np.asarray(prepared.moment_with_rows.rows)
        # an ulp inside the ball, so that nobody's check trips on rounding
        rows = rows / max(1.0, float(np.linalg.norm(rows, axis=1).max())) * (1 - 1e-12)
        A = rows.T @ rows / len(rows)
        return cls(table.name, rows, A, np.linalg.eigvalsh(A)[::-1])

    def recovery(self, components: Any) -> float:
        """Return (share - chance)/(1 - chance) of (k, d) components, orthonormalised."""
        V = np.linalg.qr(np.asarray(components).T).Q
        k, d = len(components), len(self.values)
        best = float(self.values[:k].sum())
        share = float(np.trace(V.T @ self.A @ V)) / best
        chance = k / d * float(self.values.sum()) / best
        return (share - chance) / (1 - chance)


def known_law(library: str, python: Path) -> dict[str, Any]:
    """Return what a library draws where the law is known."""
    worker = Worker(python, library)
    found = worker.ask()
    worker.end()
    del found["outcome"]
    return found


# --- measuring --------------------------------------------------------------------------------


def summary(recoveries: list[float], seconds: list[float]) -> dict[str, Any]:
    """Return mean, interval of the mean and median seconds."""
    if not recoveries:
        return {"fits": 0}
    mean = float(np.mean(recoveries))
    half = (
        1.96 * float(np.std(recoveries, ddof=1)) / math.sqrt(len(recoveries))
        if len(recoveries) > 1
        else math.nan
    )
    return {
        "fits": len(recoveries),
        "recovery": mean,
        "half": half,
        "seconds": float(np.median(seconds)),
    }


def measure_peer(
    peer: str, table: Table, python: Path, k: int, epsilon: float, options: Any
) -> dict[str, Any]:
    """Return one cell of a peer."""
    recoveries, seconds, stopped, failed, done = [], [], 0, [], 0
    worker = Worker(python, peer)
    while done < options.fits and stopped < options.stops:
        if worker.ended:
            worker = Worker(python, peer)
        row = worker.ask(table.rows, epsilon=epsilon, k=k, seed=done, seconds=options.timeout)
        done += 1
        if row["outcome"] == "fit":
            recoveries.append(table.recovery(row["components"]))
            seconds.append(row["seconds"])
        elif row["outcome"] == "time-out":
            stopped += 1  # and the worker is gone
        else:
            failed.append(row["kind"])
    worker.end()
    found = {"stopped": stopped, "failed": failed, "limit": options.timeout, "stops": options.stops}
    return summary(recoveries, seconds) | found


def measure_ours(text: str, table: Table, k: int, epsilon: float, fits: int) -> dict[str, Any]:
    """Return one cell of ours; each fit starts from the rows and is cold."""
    mechanism = parse_variant(text)
    n, d = table.rows.shape
    problem = Problem(n, d, k, Relation.REPLACE, Domain.ball(d))
    budget = Budget(epsilon, DELTA if mechanism.info.guarantee == "approximate" else 0.0)
    mechanism.check(problem, budget)
    recoveries, seconds = [], []
    for trial in range(fits):
        draws = Draws.trials(0, mechanism.key, [trial])
        start = time.process_time()
        A = table.rows.T @ table.rows / n
        data = SecondMoment((A + A.T) / 2, n, table.rows)
        release = mechanism.release_many(data, mechanism.calibrate(problem, budget), draws)
        seconds.append(time.process_time() - start)
        recoveries.append(table.recovery(release.components[0].T))
    return summary(recoveries, seconds) | {"stopped": 0, "failed": []}


def measure(options: Any) -> dict[str, Any]:
    """Return every cell, from the file kept where it has them."""
    kept: dict[str, Any] = {"cells": {}, "law": {}}
    if options.keep and options.keep.is_file():
        kept = json.loads(options.keep.read_text(encoding="utf-8"))

    def keep() -> None:
        if options.keep:
            options.keep.write_text(json.dumps(kept, indent=1), encoding="utf-8")

    pythons = {name: python_of(name, options.environments) for name in REQUIREMENTS}
    for name in REQUIREMENTS:
        if name not in kept["law"]:
            kept["law"][name] = known_law(name, pythons[name])
            keep()
    ends = time.monotonic() + 60 * options.minutes
    sides = {"ours": tuple(OURS), "peers": tuple(PEERS)}
    keys = [key for side in options.sides.split(",") for key in sides[side]]
    for name in options.tables.split(","):
        table = Table.load(name)
        with one_blas_thread():
            for k in KS:
                for epsilon in EPSILONS:
                    for key in keys:
                        cell = f"{name}/{k}/{epsilon:g}/{key}"
                        if cell in kept["cells"]:
                            continue
                        if time.monotonic() > ends:
                            return kept
                        if key in OURS:
                            found = measure_ours(key, table, k, epsilon, options.ours)
                        else:
                            found = measure_peer(
                                key, table, pythons[PEERS[key][0]], k, epsilon, options
                            )
                        kept["cells"][cell] = found
                        print(cell, {n: v for n, v in found.items() if v}, flush=True)
                        keep()
    return kept
