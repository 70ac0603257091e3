"""Compare predicted with simulated recovery on every built-in table.

``python -m benchmarks.prediction --out docs/prediction.md`` writes a table of differences. For each
built-in table, mechanism and k, it has the predicted minus the simulated share of the optimum at
the worst epsilon, with the simulation's standard error. The page also states how much faster the
prediction is than 100 simulated releases at d = 200.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from dpviz.core.metrics import optimum
from dpviz.core.problem import Budget, default_delta
from dpviz.core.resources import one_blas_thread
from dpviz.core.settings import Settings
from dpviz.datasets.builtin import builtin_tables
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant
from dpviz.preparation.load import load_prepared, planned, spectrum_of
from dpviz.preparation.prepared import Measured, reference_variances
from dpviz.simulation.cells import evaluate
from dpviz.simulation.predict import predict
from dpviz.simulation.simulate import Cell

EPSILONS = (0.3, 1.0, 3.0, 10.0)
COMPONENTS = (1, 2, 5)
ALLOWED = 0.03  # This is the largest allowed difference for 10 or more features.
_ENTRIES = 2_000_000  # This is how many numbers the matrices of one batch contain.


@dataclass(frozen=True)
class Gap:
    """Predicted and simulated share of the optimum in one setting."""

    table: str
    d: int
    mechanism: str
    k: int
    epsilon: float
    predicted: float
    simulated: float
    error: float  # This is the standard error of the simulated mean.

    @property
    def gap(self) -> float:
        """Predicted minus simulated share of the optimum."""
        return self.predicted - self.simulated


def gaps(measured: Measured, mechanism: Mechanism, epsilon: float, draws: int) -> list[Gap]:
    """Return the gap for each k; empty if the mechanism cannot run or has no known law.

    One batch of noise serves every k, because the noise on the matrix does not depend on k.
    """
    ks = [k for k in COMPONENTS if k < measured.d]
    settings = Settings(epsilon=epsilon, k=max(ks), delta=default_delta(measured.n))
    problem, budget = measured.problem(settings), measured.budget(settings)
    if mechanism.why_not(problem, budget, rows=measured.has_rows) is not None:
        return []
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    if noise is None:
        return []
    size = max(1, _ENTRIES // measured.d**2)
    shares_by_k = []
    for first in range(0, draws, size):
        cell = Cell(mechanism, problem, budget, 0, range(first, min(first + size, draws)))
        shares_by_k += [*evaluate(cell, measured).captured_each.cumsum(axis=1)]
    rows = []
    for k in ks:
        best = optimum(measured.reference, k)
        shares = [float(each[k - 1]) / best for each in shares_by_k]
        mean = math.fsum(shares) / draws
        spread = math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / (draws - 1))
        prediction = predict(measured.moment.eigenvalues, k, noise, reference_variances(measured))
        rows.append(
            Gap(
                measured.name, measured.d, mechanism.text, k, epsilon,
                prediction.captured_share, mean, spread / math.sqrt(draws),
            )
        )  # fmt: skip
    return rows


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the median wall time of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def speed(d: int, draws: int) -> list[tuple[str, float, float]]:
    """Return (mechanism, seconds of a prediction, seconds of the simulation) at dimension d."""
    measured = planned(spectrum_of(f"power:d={d},exponent=1,total=0.5"), 100_000)
    settings = Settings(k=2, delta=1e-6)
    problem, budget = measured.problem(settings), Budget(1.0, 1e-6)
    rows = []
    for key in ("gaussian", "wishart_difference", "laplace", "wishart"):
        mechanism = parse_variant(key)
        cell = Cell(mechanism, problem, budget, 0, range(draws))
        noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
        assert noise is not None

        def foretell(noise=noise) -> object:  # type: ignore[no-untyped-def]
            return predict(measured.moment.eigenvalues, problem.k, noise)

        def simulate(cell: Cell = cell) -> object:
            return evaluate(cell, measured).captured_each

        with one_blas_thread():
            rows.append((key, seconds(foretell, 9), seconds(simulate, 3)))
    return rows


def report(gap_list: list[Gap], times: list[tuple[str, float, float]], draws: int) -> str:
    """Return the Markdown page."""
    lines = [
        "# Prediction against simulation",
        "",
        "Each cell is the predicted share of the optimum minus the simulated share. For each k the "
        "cell uses the epsilon out of",
        f"{', '.join(f'{e:g}' for e in EPSILONS)} with the largest difference. The prediction is "
        "analytical (`dpviz/simulation/predict.py`). The",
        f"simulation is a mean of {draws:,} releases, with replace neighbours and the default "
        "delta. The brackets show the chosen",
        "epsilon and the standard error of the simulated mean. "
        "Written by `python -m benchmarks.prediction --out docs/prediction.md`.",
        "",
        f"Predictions should differ from simulations by at most {ALLOWED} if d >= 10.",
        "",
        "| table | d | mechanism | " + " | ".join(f"k = {k}" for k in COMPONENTS) + " |",
        "|---|---|---|" + "---|" * len(COMPONENTS),
    ]
    for table, d, mechanism in dict.fromkeys((g.table, g.d, g.mechanism) for g in gap_list):
        cells = []
        for k in COMPONENTS:
            here = [g for g in gap_list if (g.table, g.mechanism, g.k) == (table, mechanism, k)]
            if here:
                worst = max(here, key=lambda g: abs(g.gap))
                cells.append(f"{worst.gap:+.3f} ({worst.epsilon:g}; {worst.error:.3f})")
            else:
                cells.append("")
        lines.append(f"| {table} | {d} | {mechanism} | " + " | ".join(cells) + " |")
    large = [g for g in gap_list if g.d >= 10]
    if large:
        worst = max(large, key=lambda g: abs(g.gap))
        inside = sum(abs(g.gap) <= ALLOWED for g in large)
        lines += [
            "",
            f"If d >= 10, the difference is at most {ALLOWED} in {inside} of {len(large)} "
            f"settings; the largest difference is {worst.gap:+.3f} ({worst.table}, "
            f"{worst.mechanism}, k {worst.k}, epsilon {worst.epsilon:g}).",
        ]
    lines += [
        "",
        "## Speed at d = 200, k = 2, against 100 draws",
        "",
        "The table shows median times on one BLAS thread.",
        "",
        "| mechanism | prediction | 100 draws | ratio |",
        "|---|---|---|---|",
    ]
    for key, one, many in times:
        lines.append(f"| {key} | {1e3 * one:.1f} ms | {1e3 * many:.0f} ms | {many / one:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the differences and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--out", type=Path, help="file to write; default standard output")
    parser.add_argument("--table", action="append", help="built-in tables; default all")
    arguments = parser.parse_args()
    rows = []
    for table in arguments.table or builtin_tables():
        measured = load_prepared(Settings(table=table))
        for cls in all_mechanisms().values():
            for epsilon in EPSILONS:
                rows += gaps(measured, cls(), epsilon, arguments.draws)
    text = report(rows, speed(200, 100), arguments.draws)
    if arguments.out is None:
        print(text)
    else:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
