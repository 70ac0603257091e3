"""Measure how far results of one seed differ between kinds of processors.

``python -m benchmarks.kernels`` runs one comparison under several BLAS kernels, as OpenBLAS chooses
them for older and newer x86 processors. It prints the largest relative difference of any mean of
any measure. PPCA with k above 1 is left out: its chain depends on the signs of eigenvectors, so
another kernel gives another sample of the same law (docs/browser.md).
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
"""A mean below this value is rounding around 0, so a relative difference is meaningless."""


def answer(kernel: str, *words: str) -> tuple[str, dict[str, Any]]:
    """Return the BLAS kernel that a process used, and the comparison that it printed."""
    code = (
        "import sys; from dpviz.core.resources import kernel; from dpviz.cli import main\n"
        "print(kernel(), file=sys.stderr); sys.exit(main(sys.argv[1:]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, "compare", *words, "--format", "json"],
        env={**os.environ, "OPENBLAS_CORETYPE": kernel},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stderr.splitlines()[0], json.loads(result.stdout)


def apart(first: dict[str, Any], second: dict[str, Any]) -> tuple[float, str]:
    """Return the largest relative difference of two comparisons, and the value that has it."""
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
    """Run the comparisons and print their differences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", default="digits")
    parser.add_argument("--trials", default="20")
    options = parser.parse_args()
    words = (options.table, "--trials", options.trials)
    answers = {}
    for kernel in KERNELS:
        name, answer_here = answer(kernel, *words)
        answers.setdefault(name, answer_here)
    first, *others = answers
    print(f"{options.table}, {options.trials} draws, against {first}")
    for other in others:
        most, where = apart(answers[first], answers[other])
        print(f"{other}: {most:.1e} ({where})")


if __name__ == "__main__":
    main()
