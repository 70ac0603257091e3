"""Compare dpviz with three libraries that ship a private PCA: diffprivlib, OpenDP and dppca.

All get the same prepared rows (centred, divided by the largest row norm), the row-norm bound 1, a
known origin and the relation replace. The two Python libraries have their own environments with
pinned versions, made on the first run. ``--dppca FILE`` names R/pc_dir.R of dppca's source. The
measures are the recovery (captured share beyond chance) and the CPU seconds of one fit, from rows
to components, on one thread. A fit above the limit is stopped, and ends its cell after a few.

Run ``python -m benchmarks.peers``: it writes docs/peers.md. ``--keep FILE`` stores the measurements
and resumes from them, ``--minutes`` limits this run, and ``--sides`` measures only dpviz or only
the libraries.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from benchmarks.peers_cells import TABLES, measure
from benchmarks.peers_page import page

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Measure the fits, then write docs/peers.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environments", type=Path, default=ROOT / ".peers")
    parser.add_argument("--keep", type=Path, help="a file of measurements to go on from")
    parser.add_argument("--tables", default=",".join(TABLES), help="which to measure, in order")
    parser.add_argument("--fits", type=int, default=10, help="of a peer, in each cell")
    parser.add_argument("--ours", type=int, default=30, help="fits of ours, in each cell")
    parser.add_argument("--timeout", type=float, default=3.0, help="seconds of CPU of one fit")
    parser.add_argument("--stops", type=int, default=2, help="fits stopped that end a cell")
    parser.add_argument("--dppca", type=Path, help="R/pc_dir.R of dppca; needs Rscript")
    parser.add_argument("--sides", default="ours,peers", help="which sides to measure")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no cell after")
    parser.add_argument("--draw", action="store_true", help="only write what --keep holds")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    cells = (
        json.loads(options.keep.read_text(encoding="utf-8")) if options.draw else measure(options)
    )
    path = options.out / "peers.md"
    path.write_text(page(cells), encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
