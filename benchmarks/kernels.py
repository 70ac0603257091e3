"""How far the same seed's numbers lie apart on processors of different kinds.

``python -m benchmarks.kernels`` runs one comparison under several BLAS kernels, as OpenBLAS picks
them for older and newer x86 processors, and prints the largest relative difference of any mean of
any measure. PPCA with k above 1 is left out: its chain turns with the signs of eigenvectors, so
another kernel draws again from the same law (docs/browser.md).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

KERNELS = ("Nehalem", "Sandybridge", "Haswell", "SkylakeX")
REDRAWN = ("ppca",)
SMALLEST = 1e-6
"""Below this a mean is rounding around 0, and nothing to be relative to."""


def answer(kernel: str, *words: str) -> tuple[str, dict[str, Any]]:
    """Return the kernel that a process really used, and what a comparison printed there."""
    code = (
        "import sys; from dpviz.core.resources import kernel; from dpviz.cli import main\n"
        "print(kernel(), file=sys.stderr); sys.exit(main(sys.argv[1:]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, "compare", *words, "--format", "json"],
        env={**os.environ, "OPENBLAS_CORETYPE": kernel},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stderr.splitlines()[0], json.loads(run.stdout)


def apart(first: dict[str, Any], second: dict[str, Any]) -> tuple[float, str]:
    """Return the largest relative difference of two comparisons, and where it is."""
    most, where = 0.0, ""
    for one, other in zip(first["results"], second["results"], strict=True):
        if one["mechanism"] in REDRAWN:
            continue
        for name, values in one["metrics"].items():
            a, b = values["mean"], other["metrics"][name]["mean"]
            size = max(abs(a), abs(b))
            if size > SMALLEST and abs(a - b) / size > most:
                most, where = abs(a - b) / size, f"{one['mechanism']}, {name}"
    return most, where


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", default="digits")
    parser.add_argument("--trials", default="20")
    given = parser.parse_args()
    words = (given.table, "--trials", given.trials)
    found = {}
    for kernel in KERNELS:
        used, printed = answer(kernel, *words)
        found.setdefault(used, printed)
    first, *others = found
    print(f"{given.table}, {given.trials} draws, against {first}")
    for other in others:
        most, where = apart(found[first], found[other])
        print(f"{other}: {most:.1e} ({where})")


if __name__ == "__main__":
    main()
