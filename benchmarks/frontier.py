"""Measure mechanisms' recovery of hard tables at a small epsilon against goals.

Run ``python -m benchmarks.frontier``: it prints one table with the mean recovery of 100 repetitions
and its 95 % interval, and another table with goals. ``--held-out`` adds tables of other packages,
on which no choice was based (`benchmarks.package_tables`); ``--draws`` sets the number of
repetitions.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.defaults import SCALES
from benchmarks.package_tables import Source, real_tables
from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import chance_share, optimum, recovery_of
from dpviz.core.problem import Budget, Problem, Relation, default_delta
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import Prepared, prepare

EPSILON, K = 0.1, 2
PLAIN, SCREENED = "funnel", "funnel[sizes=0.25]"
PURE = ("pure_funnel", "screened_wishart_difference")
BESIDE = ("spherical", "spherical[weigh=features]")
GOALS = {"digits": 0.34, "wine": 0.9, "breast_cancer": 0.97}  # Recovery must reach these values.
NEAR = 0.02  # Screening may lower recovery by this much where it is not needed.
HELD_OUT_STEP = 8


def recoveries(prepared: Prepared, text: str, draws: int) -> FloatArray:
    """Return the recovery of each repetition of a mechanism, shape (draws,)."""
    mechanism, data = parse_variant(text), prepared.moment_with_rows
    pure = mechanism.info.guarantee == "pure"
    budget = Budget(EPSILON, 0.0 if pure else default_delta(data.n))
    problem = Problem(data.n, data.d, K, Relation.REPLACE, prepared.domain)
    calibration = mechanism.calibrate(problem, budget)
    releases = mechanism.release_many(data, calibration, Draws.trials(0, "frontier", range(draws)))
    reference, V = prepared.reference, releases.components
    shares = np.einsum("sik,ij,sjk->s", V, reference.A, V) / optimum(reference, K)
    return np.asarray(recovery_of(shares, chance_share(reference, K)), dtype=np.float64)


def interval(values: FloatArray) -> str:
    """Return the mean and half the width of its normal 95 % interval."""
    return f"{values.mean():.3f} +- {1.96 * values.std(ddof=1) / math.sqrt(len(values)):.3f}"


def prepared_tables(sources: list[Source]) -> Iterator[tuple[Source, str, Prepared]]:
    """Yield each table twice: raw and standardised."""
    for source, scale in product(sources, SCALES):
        names = tuple(f"x{j}" for j in range(source.rows.shape[1]))
        table = Table(source.name, source.rows.copy(), names)
        yield source, scale, prepare(table, Settings(scale=SCALES[scale], row_bound="max"))


def main() -> None:
    """Measure the recoveries and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--held-out", action="store_true", help="tables of other packages too")
    options = parser.parse_args()
    sources = [
        one for one in real_tables(others=options.held_out) if not one.tuning or one.name in GOALS
    ]
    tuning = [one for one in sources if one.name in GOALS]
    others = [one for one in sources if one.origin != "scikit-learn"][::HELD_OUT_STEP]
    texts = (PLAIN, SCREENED, *BESIDE, *PURE)
    print(f"epsilon {EPSILON:g}, k {K}, replace, {options.draws} draws; recovery of the mean")
    print("| table | " + " | ".join(texts) + " | sizes less none |")
    print("|---" * (len(texts) + 2) + "|")
    goals = []
    with one_blas_thread():
        for source, scale, prepared in prepared_tables(tuning + others):
            values = {text: recoveries(prepared, text, options.draws) for text in texts}
            gain = values[SCREENED] - values[PLAIN]
            cells = [interval(values[text]) for text in texts]
            print(f"| {source.name}, {scale} | " + " | ".join([*cells, interval(gain)]) + " |")
            raw = scale == "raw" and source.name in GOALS
            own = float((values[SCREENED] if raw else gain).mean())
            goal = GOALS[source.name] if raw else -NEAR
            goals.append(f"{source.name} {scale}, {'' if raw else 'gain '}{own:.3f}: goal {goal}")
    print("\n".join(goals))


if __name__ == "__main__":
    main()
