"""Measure real releases of digits: time, rho, moments over 2,000 releases, captured share.

    python -m benchmarks.release [--releases 2000]

Rows are scaled to a unit bound; epsilon is 1 and delta 1e-6. The system supplies the entropy, so
the last digits differ from run to run.
"""

from __future__ import annotations

import argparse
import math
import time
from fractions import Fraction

import numpy as np
from sklearn.datasets import load_digits

from dpviz.accounting.composition import rho_meeting
from dpviz.accounting.gaussian import log_excess, mu_of
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws
from dpviz.mechanisms import parse_variant
from dpviz.preparation.transform import Transform
from dpviz.releasing.grid import quantised, second_moment
from dpviz.releasing.noise import Law, calibrated, released
from dpviz.studies.waterfall import default_mechanism

BITS = 20


def main() -> None:
    """Measure the releases and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=2_000)
    releases = parser.parse_args().releases
    rows = load_digits().data
    rows = rows[:, rows.std(axis=0) > 0]
    rows = rows - rows.mean(axis=0)
    rows = rows / np.linalg.norm(rows, axis=1).max()
    n, d = rows.shape
    never = np.full(d, math.inf)
    transform = Transform(-never, never, np.zeros(d), np.ones(d))
    noise = calibrated(Law.NORMAL, Budget(1.0, 1e-6), Relation.REPLACE, d, BITS)
    rho = float(Fraction(noise.sensitivity) ** 2 / (2 * Fraction(noise.scale) ** 2))
    print(f"digits: n {n}, d {d}, grid 2^-{BITS}")
    print(f"rho {noise.rho:.10g} by OpenDP, {rho:.10g} in fractions")
    print(f"epsilon {noise.proved.epsilon:.6g} proved, {noise.mapped.epsilon:.6g} by OpenDP's map")
    excess = math.exp(log_excess(1.0, noise.scale, d * (d + 1) // 2))
    continuous = noise.sensitivity / mu_of(Budget(1.0, 1e-6))
    by_map = noise.sensitivity / math.sqrt(2 * rho_meeting(1.0, 1e-6))
    print(
        f"scale {noise.scale / continuous - 1:.1e} above the exact Gaussian's, OpenDP's map asks "
        f"for {by_map / continuous - 1:.1%} above; delta for rounding {excess:.1e}"
    )
    moment = second_moment(quantised(rows, transform, BITS), BITS)
    exact = moment / (n * 4.0**BITS)
    A = rows.T @ rows / n
    best = np.linalg.eigvalsh(A)[-2:].sum()
    unit = n * 4.0**BITS / noise.scale
    inside = np.triu_indices(d, 1)
    sums = np.zeros((2, 3))
    shares = []
    start = time.perf_counter()
    for _ in range(releases):
        estimate = released(moment, noise, n, BITS)
        for row, values in enumerate(
            (70 * unit * np.diag(estimate - exact), 99 * unit * (estimate - exact)[inside])
        ):
            sums[row] += [values.mean(), np.square(values).mean(), (values**4).mean()]
        frame = np.linalg.eigh(estimate)[1][:, ::-1][:, :2]
        shares.append(np.einsum("ij,ij->", frame, A @ frame) / best)
    seconds = (time.perf_counter() - start) / releases
    sums /= releases
    for name, moments, entries in zip(
        ("on the diagonal", "off the diagonal"), sums, (d, d * (d - 1) // 2), strict=True
    ):
        errors = np.sqrt(np.array([1.0, 2.0, 96.0]) / (releases * entries))
        words = ", ".join(
            f"{label} {value:.5f} ({(value - law) / error:+.1f} standard errors from {law:g})"
            for label, value, law, error in zip(
                ("mean", "second", "fourth"), moments, (0.0, 1.0, 3.0), errors, strict=True
            )
        )
        print(f"noise {name}, standardised: {words}")
    mechanism = parse_variant(default_mechanism())
    problem = Problem(n, d, 2, Relation.REPLACE, Domain.ball(d))
    calibration = mechanism.calibrate(problem, noise.proved)
    moments = mechanism.release_many(
        SecondMoment(A, n), calibration, Draws.trials(0, mechanism.key, range(releases))
    )
    V = moments.components
    theirs = np.einsum("tij,tij->t", V, A @ V) / best
    print(
        f"captured share {np.mean(shares):.4f} against {theirs.mean():.4f} of continuous noise at "
        f"the same account"
    )
    print(f"{seconds:.3f} s a release")


if __name__ == "__main__":
    main()
