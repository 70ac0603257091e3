"""Seconds that one draw takes of each mechanism that is slow to draw, on one thread.

``python -m benchmarks.draws [--rows 2000] [--draws 20]`` draws on made rows of 10, 30 and 61
features at epsilon 1, k 2, with what a first draw keeps for later ones (tables of K-norm noise)
already there, and prints a table. Of several runs the least counts. Below it stands the spread of
K-norm noise along a direction over that of the Wishart difference with the same guarantee.
"""

from __future__ import annotations

import argparse
import time

from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms._pure import PureLaw

DIMENSIONS = (10, 30, 61)
VARIANTS = (
    "gaussian",
    "wishart_difference",
    "knorm",
    "spherical_knorm",
    "clipped_pure",
    "funnel",
    "pure_funnel",
    "screened_wishart_difference",
)


def seconds(variant: str, d: int, rows: int, draws: int, runs: int = 3) -> float:
    """Return the CPU seconds of one draw."""
    made = generator(0, "draws", d).standard_normal((rows, d)) / (1 + generator(0, "w").random(d))
    made /= (made**2).sum(axis=1).max() ** 0.5
    data = SecondMoment(made.T @ made / rows, rows, made)
    mechanism = parse_variant(variant)
    calibration = mechanism.calibrate(
        Problem(rows, d, 2, Relation.REPLACE, Domain.ball(d)), Budget(1.0, 1e-6)
    )
    found = []
    for run in range(-1, runs):  # the first one makes tables
        # one generator for all, so that nothing is kept for another epsilon
        streams = Draws.batch(generator(run + 1, "draws", variant), draws)
        start = time.process_time()
        mechanism.release_many(data, calibration, streams)
        found.append(time.process_time() - start)
    return min(found[1:]) / draws


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    print(f"CPU seconds a draw, n {given.rows:,}, {given.draws} draws together\n")
    print("| mechanism | " + " | ".join(f"d {d}" for d in DIMENSIONS) + " |")
    print("|---|" + "---|" * len(DIMENSIONS))
    with one_blas_thread():
        for variant in VARIANTS:
            took = [seconds(variant, d, given.rows, given.draws) for d in DIMENSIONS]
            print(f"| `{variant}` | " + " | ".join(f"{one:.2g}" for one in took) + " |")
        laws = PureLaw.KNORM, PureLaw.WISHART
        spreads = [[law.direction_std(d) for law in laws] for d in DIMENSIONS]
    shown = " | ".join(f"{one / other:.3f}" for one, other in spreads)
    print(f"| spread of K-norm noise over the Wishart difference's | {shown} |")


if __name__ == "__main__":
    main()
