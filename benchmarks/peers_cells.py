"""The fits of `benchmarks.peers`, and the environments of the two libraries."""

from __future__ import annotations

import functools
import json
import math
import subprocess
import tempfile
import time
from collections import defaultdict
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
DPPCA = {"dppca": "dppca 0.1.0.9000"}
OURS = {
    "wishart_difference": "dpviz, Wishart difference",
    "ppca": "dpviz, PPCA",
    "screened_wishart_difference": "dpviz, screened Wishart difference",
    "gaussian": "dpviz, Gaussian",
    "spherical": "dpviz, spherical",
    "funnel": "dpviz, funnel",
}
TABLES = tuple(datasets.builtin_tables())
KS = (1, 2, 5)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-5
DPPCA_SECONDS = 300.0
"""Time of all fits of dppca to one table; its loop over pairs of rows is quadratic in n."""


@dataclass(frozen=True, eq=False)
class Table:
    """A prepared table and the reference for recovery."""

    name: str
    rows: Any
    A: Any
    values: Any

    @classmethod
    @functools.cache
    def load(cls, name: str) -> Table:
        return cls.of(datasets.load(name))

    @property
    def ks(self) -> list[int]:
        """The numbers of components that leave at least one feature out."""
        return [k for k in KS if k < len(self.values)]

    @classmethod
    def of(cls, table: datasets.Table) -> Table:
        prepared = prepare(table, Settings())
        rows = np.asarray(prepared.moment_with_rows.rows)
        # Shrink rows by 1e-12, so that rounding does not fail a library's check of row norms.
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
    """Return a library's samples from a known law."""
    worker = Worker(python, library)
    law = worker.ask()
    worker.end()
    del law["outcome"]
    return law


# --- measuring --------------------------------------------------------------------------------


def summary(recoveries: list[float], seconds: list[float]) -> dict[str, Any]:
    """Return the mean, the half width of its interval and the median seconds."""
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
    """Return a library's measurements in one setting."""
    recoveries, seconds, stops, failures, fits = [], [], 0, [], 0
    worker = Worker(python, peer)
    while fits < options.fits and stops < options.stops:
        if worker.ended:
            worker = Worker(python, peer)
        row = worker.ask(table.rows, epsilon=epsilon, k=k, seed=fits, seconds=options.timeout)
        fits += 1
        if row["outcome"] == "fit":
            recoveries.append(table.recovery(row["components"]))
            seconds.append(row["seconds"])
        elif row["outcome"] == "time-out":
            stops += 1  # Count the worker's end because a time-out ends the worker too.
        else:
            failures.append(row["kind"])
    worker.end()
    rest = {"stopped": stops, "failed": failures, "limit": options.timeout, "stops": options.stops}
    return summary(recoveries, seconds) | rest


def measure_ours(text: str, table: Table, k: int, epsilon: float, fits: int) -> dict[str, Any]:
    """Return the measurements of dpviz in one setting; each fit starts from the rows."""
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


def measure_dppca(table: Table, options: Any) -> dict[str, Any]:
    """Return the measurements of dppca in every setting of a table, by the file of ``--dppca``."""
    shared = {"stopped": 0, "failed": []}
    fits: dict[str, Any] = defaultdict(lambda: ([], []))
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        np.savetxt(file, table.rows, delimiter=",", fmt="%.17g")
        file.flush()
        words = [options.dppca, file.name, f"{DELTA:g}", options.fits]
        words += [",".join(map(str, values)) for values in (table.ks, EPSILONS)]
        program = Path(__file__).parent / "libraries" / "dppca.R"
        command = ["Rscript", str(program), *map(str, words)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=DPPCA_SECONDS)
            for line in done.stdout.splitlines():
                k, epsilon, seconds, *V = map(float, line.split())
                recoveries, times = fits[f"{k:g}/{epsilon:g}"]
                recoveries.append(table.recovery(np.reshape(V, (int(k), -1))))
                times.append(seconds)
            shared["failed"] = ["error"] if done.returncode else []
        except subprocess.TimeoutExpired:
            shared["stopped"] = 1
    settings = (f"{k}/{epsilon:g}" for k in table.ks for epsilon in EPSILONS)
    return {f"{table.name}/{s}/dppca": summary(*fits[s]) | shared for s in settings}


def measure(options: Any) -> dict[str, Any]:
    """Return the measurements in all settings, from the stored file if it has them."""
    store: dict[str, Any] = {"cells": {}, "law": {}}
    if options.keep and options.keep.is_file():
        store = json.loads(options.keep.read_text(encoding="utf-8"))

    def keep() -> None:
        if options.keep:
            options.keep.write_text(json.dumps(store, indent=1), encoding="utf-8")

    pythons = {name: python_of(name, options.environments) for name in REQUIREMENTS}
    for name in REQUIREMENTS:
        if name not in store["law"]:
            store["law"][name] = known_law(name, pythons[name])
            keep()
    ends = time.monotonic() + 60 * options.minutes
    sides = {"ours": tuple(OURS), "peers": tuple(PEERS)}
    keys = [key for side in options.sides.split(",") for key in sides[side]]
    for name in options.tables.split(","):
        table = Table.load(name)
        if options.dppca and f"{name}/1/1/dppca" not in store["cells"]:
            store["cells"] |= measure_dppca(table, options)
            keep()
        with one_blas_thread():
            for k in table.ks:
                for epsilon in EPSILONS:
                    for key in keys:
                        cell = f"{name}/{k}/{epsilon:g}/{key}"
                        if cell in store["cells"]:
                            continue
                        if time.monotonic() > ends:
                            return store
                        if key in OURS:
                            cell_values = measure_ours(key, table, k, epsilon, options.ours)
                        else:
                            cell_values = measure_peer(
                                key, table, pythons[PEERS[key][0]], k, epsilon, options
                            )
                        store["cells"][cell] = cell_values
                        print(cell, {n: v for n, v in cell_values.items() if v}, flush=True)
                        keep()
    return store
