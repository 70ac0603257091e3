"""dpviz beside diffprivlib and OpenDP on real tables that no default was tuned on.

``python -m benchmarks.peers_half`` takes tables of the test half of `benchmarks.defaults` in the
order of their names' hashes, as they are in the file, at most 2,000 rows of each, prepared as
`benchmarks.peers` does, and writes a section of docs/peers.md. Only pure mechanisms are compared,
at k 2: what is advised without a delta, and those that see what the peers see. ``--keep FILE``
keeps the measurements and goes on from them, ``--minutes`` ends a piece of the run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.package_tables import Source, real_tables
from benchmarks.peers_cells import PEERS, Table, measure_ours, measure_peer
from dpviz import datasets
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.extend.peers import REQUIREMENTS, python_of

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- half: start -->", "<!-- half: end -->"
OURS = {
    "clipped_pure": "advised: clipped",
    "wishart_difference": "Wishart difference",
    "ppca": "PPCA",
}
LABELS = {
    "diffprivlib": "diffprivlib", "opendp": "OpenDP", "opendp_vectors": "OpenDP, all on vectors",
}  # fmt: skip
K, EPSILONS, MOST_ROWS = 2, (1.0,), 2_000


def test_half(count: int) -> list[Source]:
    """Return so many real tables of the test half, in the order of a hash of their names."""
    found = [source for source in real_tables() if not source.tuning]
    found.sort(key=lambda one: hashlib.blake2b(one.name.encode(), digest_size=8).digest())
    return found[:count]


def table_of(source: Source) -> Table:
    """Return a table prepared as the peers' others are, of at most so many rows."""
    rows = source.rows
    if len(rows) > MOST_ROWS:
        rng = generator(0, "peers", source.name)
        rows = rows[np.sort(rng.choice(len(rows), size=MOST_ROWS, replace=False))]
    rows = rows[:, np.ptp(rows, axis=0) > 0]
    return Table.of(datasets.Table(source.name, rows, tuple(f"x{j}" for j in range(rows.shape[1]))))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return every cell, from the file kept where it has them; one epsilon after the other."""
    kept: dict[str, Any] = {"cells": {}, "shapes": {}}
    if options.keep and options.keep.is_file():
        kept = json.loads(options.keep.read_text(encoding="utf-8"))
    pythons = {name: python_of(name, options.environments) for name in REQUIREMENTS}
    tables = {source.name: table_of(source) for source in test_half(options.tables)}
    kept["shapes"] = {name: table.rows.shape for name, table in tables.items()}
    ends = time.monotonic() + 60 * options.minutes
    with one_blas_thread():
        for epsilon in EPSILONS:
            for name, table in tables.items():
                for key in (*OURS, *PEERS):
                    cell = f"{name}/{epsilon:g}/{key}"
                    if cell in kept["cells"]:
                        continue
                    if time.monotonic() > ends:
                        return kept
                    if key in OURS:
                        found = measure_ours(key, table, K, epsilon, options.ours)
                    else:
                        python = pythons[PEERS[key][0]]
                        found = measure_peer(key, table, python, K, epsilon, options)
                    kept["cells"][cell] = found
                    print(cell, found, flush=True)
                    if options.keep:
                        options.keep.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    return kept


def _text(cell: dict[str, Any]) -> str:
    if not cell["fits"]:
        return "failed" if cell["failed"] and not cell["stopped"] else "stopped"
    return f"{cell['recovery']:.2f}" + (f" ({cell['fits']})" if cell["stopped"] else "")


def written(kept: dict[str, Any], options: argparse.Namespace) -> str:
    """Return the section in Markdown, of every setting in which all were measured."""
    cells, keys = kept["cells"], (*OURS, *PEERS)
    whole = [
        (name, epsilon)
        for epsilon in EPSILONS
        for name in kept["shapes"]
        if all(f"{name}/{epsilon:g}/{key}" in cells for key in keys)
    ]
    tables = {name for name, _ in whole}
    ended = ahead = alike = sharper = 0
    for name, epsilon in whole:
        at = {key: cells[f"{name}/{epsilon:g}/{key}"] for key in keys}
        peers = [at[key] for key in PEERS if at[key]["fits"]]
        if not peers:
            continue
        ended += 1
        best = max(peers, key=lambda one: one["recovery"])
        ahead += _ahead(best, at["clipped_pure"])
        see_alike = max((at["wishart_difference"], at["ppca"]), key=lambda one: one["recovery"])
        alike += _ahead(best, see_alike)
        sharper += any(_ahead(at[key], see_alike) for key in ("diffprivlib", "opendp"))
    lines = [
        START,
        f"## {len(tables)} real tables that no default was tuned on",
        "",
        f"Tables of the test half of docs/defaults.md in the order of their names' hashes, as they "
        f"are in the file, at most {MOST_ROWS:,} rows of each, k {K}; mean recovery of "
        f"{options.ours} fits of ours and up to {options.fits} of a peer, of which one above "
        f"{options.timeout:g} s of CPU ends a cell. `python -m benchmarks.peers_half` writes this "
        "section.",
        "",
        f"In {ended} of {len(whole)} settings a fit of a peer ends. There the best peer is ahead "
        "of what is advised without a delta, by more than the error of the difference (1.96 "
        f"standard errors), in {ahead}; of the better of ours that see what it sees in {alike}, in "
        f"{sharper} of them "
        "without all budget on the vectors. What a sharper law spends is said above.",
        "",
        "| table | n, d | epsilon | " + " | ".join((*OURS.values(), *LABELS.values())) + " |",
        "|---" * (3 + len(keys)) + "|",
    ]
    for name, epsilon in sorted(whole):
        n, d = kept["shapes"][name]
        found = " | ".join(_text(cells[f"{name}/{epsilon:g}/{key}"]) for key in keys)
        lines.append(f"| {name} | {n}, {d} | {epsilon:g} | {found} |")
    return "\n".join([*lines, END, ""])


def _ahead(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if one["fits"] < 2:
        return False
    error = math.hypot(one["half"], other["half"])
    return bool(one["recovery"] - other["recovery"] > error)


def section(path: Path, first: str, last: str) -> str:
    """Return the section as it stands in a page, empty where it has none."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    start, end = text.find(first), text.find(last)
    return "" if min(start, end) < 0 else "\n" + text[start:end] + last + "\n"


def main() -> None:
    """Measure, then write the section of docs/peers.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environments", type=Path, default=ROOT / ".peers")
    parser.add_argument("--keep", type=Path, help="a file of measurements to go on from")
    parser.add_argument("--tables", type=int, default=20, help="how many")
    parser.add_argument("--fits", type=int, default=6, help="of a peer, in each cell")
    parser.add_argument("--ours", type=int, default=30, help="fits of ours, in each cell")
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds of CPU of one fit")
    parser.add_argument("--stops", type=int, default=1, help="fits stopped that end a cell")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no cell after")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    kept, path = measure(options), options.out / "peers.md"
    rest = path.read_text(encoding="utf-8").replace(section(path, START, END), "")
    path.write_text(rest + "\n" + written(kept, options), encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
