"""Is what the algebra says of the peers' samplers seen in their draws?

`benchmarks.peers_page.overspending` derives that one vector of theirs spends more than is claimed.
Here each library draws it many times from two neighbouring tables, all budget on the vector, and
one event is counted in both: the log ratio that the algebra states is above a threshold, chosen
beforehand so that the event has probability 0.1. Limits of Clopper and Pearson make a lower bound
on epsilon of the two counts, whatever the law of the draws is.

Run ``python -m benchmarks.peers_seen`` (minutes): it writes a section of docs/peers.md.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers_half import END, START, section
from benchmarks.peers_page import envelope
from dpviz.auditing.bounds import epsilon_bound, lower_limit, upper_limit
from dpviz.core.seeding import generator
from dpviz.extend.peers import REQUIREMENTS, Worker, python_of

ROOT = Path(__file__).resolve().parents[1]
MARKS = ("<!-- seen: start -->", "<!-- seen: end -->")
EPSILON, MASS, ERROR = 1.0, 0.1, 0.01
FITS = {"diffprivlib": "diffprivlib_vector", "opendp": "opendp_vectors"}


def log_ratio(u: Any, x: int) -> Any:
    """Return ln p(u)/q(u) of the peers' law, u of shape (n, d), C = diag(x, x + 1, 0, ..) in q."""
    M = EPSILON / 4 * np.concatenate([[0.0, 1.0], np.full(u.shape[1] - 2, x + 1.0)])
    W = 1 + 2 * M / envelope(M)
    squares, d = np.square(u), u.shape[1]
    swapped = squares[:, [1, 0, *range(2, d)]]
    return (swapped - squares) @ M + d * np.log((swapped @ W) / (squares @ W))


def expected(d: int, x: int) -> tuple[float, float]:
    """Return the threshold with probability `MASS`, and the other table's probability there.

    By importance from the envelope: 400,000 proposals, so that the probability is known to 1 %.
    """
    M = EPSILON / 4 * np.concatenate([[0.0, 1.0], np.full(d - 2, x + 1.0)])
    W = 1 + 2 * M / envelope(M)
    z = generator(0, "peers", "seen").standard_normal((400_000, d)) / np.sqrt(W)
    u = z / np.linalg.norm(z, axis=1, keepdims=True)
    squares, loss = np.square(u), log_ratio(u, x)
    weight = np.exp(-(squares @ M)) * (squares @ W) ** (-d / 2)
    weight /= weight.sum()
    order = np.argsort(-loss)
    last = int(np.searchsorted(np.cumsum(weight[order]), MASS))
    inside = order[: last + 1]
    return float(loss[order[last]]), float((weight[inside] * np.exp(-loss[inside])).sum())


def bound(first: int, second: int, draws: int) -> float:
    """Return the lower bound on epsilon from two counts, at confidence 1 - `ERROR`."""
    low, high = lower_limit(first, draws, ERROR / 2), upper_limit(second, draws, ERROR / 2)
    return float(epsilon_bound(low, high, 0.0))


def measured(library: str, d: int, x: int, draws: int, folder: Path) -> dict[str, Any]:
    """Count the event in draws from both tables."""
    threshold, other = expected(d, x)
    worker, axes, counts = Worker(python_of(library, folder), FITS[library]), np.eye(d), []
    start = time.monotonic()
    for leads in (0, 1):  # x rows along each of two axes, and one more along the first or second
        rows = axes[[0] * x + [1] * x + [leads]] * (1 - 1e-12)
        found = [
            worker.ask(rows, epsilon=EPSILON, k=1, seed=seed, seconds=10.0)["components"][0]
            for seed in range(draws)
        ]
        counts.append(int((log_ratio(np.array(found), x) > threshold).sum()))
    worker.end()
    return {
        "library": REQUIREMENTS[library][0].replace("==", " "), "d": d, "n": 2 * x + 1,
        "draws": draws, "counts": counts, "algebra": math.log(MASS / other),
        "seen": bound(*counts, draws),
        "hoped": bound(round(MASS * draws), round(other * draws), draws),
        "minutes": (time.monotonic() - start) / 60,
    }  # fmt: skip


def written(rows: list[dict[str, Any]]) -> str:
    """Return the section in Markdown."""
    lines = [
        MARKS[0],
        "## Whether that is seen in their draws",
        "",
        "Two tables of n rows: half along each of two axes, and one row more along the first or "
        f"the second. Epsilon {EPSILON:g}, all on the one vector. Counted is one event, chosen "
        f"beforehand by the algebra with probability {MASS:g}; the bound holds whatever the law is "
        f"(confidence {1 - ERROR:g}). `python -m benchmarks.peers_seen` writes this section. "
        "Any command takes `--plugin dpviz.extend.peers`, which brings both libraries as columns.",
        "",
        "| library | d, n | draws of each | event seen | loss there by algebra | "
        "epsilon by the draws, at least | so many draws would show | above the claim |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        first, second = row["counts"]
        lines.append(
            f"| {row['library']} | {row['d']}, {row['n']} | {row['draws']:,} | {first:,} and "
            f"{second:,} | {row['algebra']:.2f} | {row['seen']:.2f} | {row['hoped']:.2f} | "
            f"{'seen' if row['seen'] > EPSILON else 'not seen'} |"
        )
    return "\n".join([*lines, MARKS[1]]) + "\n"


def main() -> None:
    """Measure, and write the section of docs/peers.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environments", type=Path, default=ROOT / ".peers")
    parser.add_argument("--draws", default="12000,1000", help="of each table, by library")
    options = parser.parse_args()
    each = dict(zip(REQUIREMENTS, map(int, options.draws.split(",")), strict=True))
    rows = [measured(name, 5, 200, draws, options.environments) for name, draws in each.items()]
    path = ROOT / "docs" / "peers.md"
    text = path.read_text(encoding="utf-8").replace(section(path, *MARKS), "")
    halves = section(path, START, END)
    path.write_text(f"{text.replace(halves, '')}\n{written(rows)}{halves}", encoding="utf-8")
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()
