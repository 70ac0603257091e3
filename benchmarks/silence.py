"""The longest stretch of work in which nobody can be told anything, or stop it.

``python -m benchmarks.silence`` draws one release of every mechanism at the limit of a page (1,500
features) for some k, and says how much CPU time passes at most between two places where the work
looks up. Work goes on for ``--most`` seconds at most: long chains look up all the time. Then it
fits every learner of the Tasks page at its limit, and says for how long nobody could stop it or be
told, in seconds of the clock. It ends with 1 if a stretch is longer than 5 seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress

import numpy as np

from dpviz.core.cancelling import cancelled_by
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.mechanisms import ALL
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.cells import plan
from dpviz.simulation.compare import run_cell
from dpviz.simulation.simulate import Cell
from dpviz.simulation.tasks import LEARNERS, score_projected
from dpviz.simulation.tasks.learners import REGRESSION
from dpviz.simulation.tasks.scores import Labelled

LIMIT = 5.0


class _Enough(Exception):
    """The work has gone on for long enough."""


def made(d: int, n: int) -> Table:
    """Return rows of falling spread."""
    rows = generator(0, "silence", d, n).standard_normal((n, d)) * np.linspace(3.0, 0.1, d)
    return Table("silence", rows, tuple(f"c{j}" for j in range(d)))


def longest(cell: Cell, prepared: Prepared, most: float) -> tuple[float, float, int]:
    """Return the longest stretch, the whole time, both in CPU seconds, and how many looks."""
    started = last = time.process_time()
    stretch, looks = 0.0, 0

    def look() -> None:
        nonlocal last, stretch, looks
        now = time.process_time()
        stretch, last, looks = max(stretch, now - last), now, looks + 1
        if now - started > most:
            raise _Enough

    try:
        with cancelled_by(look):
            run_cell(cell, prepared)
            look()
    except _Enough:
        pass
    return stretch, time.process_time() - started, looks


def longest_fit(key: str, rows: int, features: int, classes: int, most: float) -> float:
    """Return the longest wait between two ticks of a page while a learner is tuned."""
    rng = generator(0, "silence", key)
    numbers = LEARNERS[key].kind == REGRESSION
    labels = rng.standard_normal(rows) if numbers else rng.integers(0, classes, rows)
    table = Labelled(rng.standard_normal((rows, features)), labels)
    started = last = time.monotonic()
    stretch = 0.0

    def tick() -> None:
        nonlocal last, stretch
        now = time.monotonic()
        stretch, last = max(stretch, now - last), now
        if now - started > most:
            raise _Enough

    with suppress(_Enough):
        score_projected(key, np.eye(features)[None], table, table, 0, tick=tick)
    return max(stretch, time.monotonic() - last)


def main() -> int:
    """Measure each mechanism at each k."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d", type=int, default=1_500)
    parser.add_argument("--k", type=int, nargs="+", default=[2, 60, 750])
    parser.add_argument("--n", type=int, default=2_000)
    parser.add_argument("--epsilon", type=float, default=0.5, help="below 1 all can run")
    parser.add_argument("--m", default=ALL, help="mechanisms")
    parser.add_argument("--most", type=float, default=8.0, help="seconds of each at most")
    parser.add_argument("--fit", type=float, default=8.0, help="seconds of each fit at most")
    given = parser.parse_args()
    table, over = made(given.d, given.n), []
    for k in given.k:
        named = tuple(given.m.split(","))
        settings = Settings(k=k, trials=1, epsilon=given.epsilon, delta=1e-6, mechanisms=named)
        prepared = prepare(table, settings)
        chosen = plan(prepared, settings, strict=False)
        found = [(longest(cell, prepared, given.most), cell) for cell in chosen.cells]
        found.sort(key=lambda pair: -pair[0][0])
        for (stretch, whole, looks), cell in found[:5]:
            print(
                f"d {given.d}, k {k}: {cell.mechanism.text} looks up after {stretch:.2f} s at most "
                f"({looks} times in {whole:.1f} s)",
                flush=True,
            )
        over += [cell for (stretch, _, _), cell in found if stretch > LIMIT]
        for item in chosen.skipped:
            print(f"d {given.d}, k {k}: {item.mechanism} not run: {item.reason}")
    return int(bool(over) or fits(given.fit) > LIMIT)


def fits(most: float) -> float:
    """Say of each learner how long it is silent at most, at the limit and where it stays in place.

    Returns
    -------
    float
        The longest of all.
    """
    longest_of_all = 0.0
    for key, learner in LEARNERS.items():
        top = learner.most or 20_000
        for rows, features, classes in ((top, 700, 50), (2_000, 500, 50), (2_000, 20, 50)):
            stretch = longest_fit(key, rows, features, classes, most)
            longest_of_all = max(longest_of_all, stretch)
            of = "" if learner.kind == REGRESSION else f", {classes} classes"
            print(f"{key}, {rows:,} rows of {features}{of}: {stretch:.2f} s", flush=True)
    return longest_of_all


if __name__ == "__main__":
    sys.exit(main())
