"""How the noise's spectral norm grows with d, beside what the papers state.

``python -m benchmarks.noise_growth [--draws 40]`` prints a table of fitted
exponents for d from 10 to 400. Stated: Jiang et al. 2016, Table 1.
"""

from __future__ import annotations

import argparse

import numpy as np

from dpviz.mechanisms import all_mechanisms
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.theory import JIANG_TABLE_1, Growth, noise_growth

DIMENSIONS = (10, 20, 40, 80, 150, 250, 400)


def table(growths: list[tuple[str, Growth]]) -> str:
    """Return the exponents as a Markdown table."""
    lines = [
        "| mechanism | fitted exponent | standard error | stated (power of d) | norm at d = 400 |",
        "|---|---|---|---|---|",
    ]
    for label, growth in growths:
        stated = JIANG_TABLE_1.get(label)
        said = f"{stated.label} ({stated.exponent:g})" if stated else ""
        lines.append(
            f"| {growth.mechanism} | {growth.exponent:.3f} | {growth.exponent_error:.3f} "
            f"| {said} | {growth.norms[-1]:.4g} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure every mechanism that adds a scaled standard noise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mechanism", action="append", help="keys; default all additive ones")
    arguments = parser.parse_args()
    growths = []
    for key, cls in all_mechanisms().items():
        mechanism = cls()
        chosen = not arguments.mechanism or key in arguments.mechanism
        if chosen and isinstance(mechanism, AdditiveMechanism):
            rng = np.random.default_rng(arguments.seed)
            growth = noise_growth(mechanism, DIMENSIONS, rng, draws=arguments.draws)
            growths.append((mechanism.info.label, growth))
    print(table(growths))


if __name__ == "__main__":
    main()
