"""What is possible at small epsilons: recovery of the mechanisms built for it, beside the usual.

``python -m benchmarks.newer`` prints Markdown, and ``--out docs/newer.md`` writes it too. Rows as
they are, centred on their mean; one row replaced, the default delta, k = 2.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import dpviz

TABLES = ("digits", "wine", "breast_cancer")
SCALES = {"none": "as it is", "standardize": "standardised"}
EPSILONS = (0.1, 0.3, 1.0)
WITH_DELTA = (
    "gaussian",
    "adaptive_clip_gaussian",
    "clipped_gaussian",
    "clipped_gaussian[weigh=features]",
    "spherical",
    "spherical[weigh=features]",
    "funnel",
    "funnel[weigh=features]",
    "funnel[weigh=features,sizes=0.1]",
)
PURE = (
    "wishart_difference",
    "knorm",
    "clipped_pure",
    "clipped_pure[weigh=features]",
    "spherical_wishart_difference",
    "spherical_knorm",
    "spherical_knorm[weigh=features]",
    "pure_funnel",
    "pure_funnel[weigh=features,noise=knorm]",
    "screened_wishart_difference",
    "screened_wishart_difference[share=0.25,guess=0.15]",
)

GOALS = (
    ("with delta", "digits", 0.1, 0.27),
    ("with delta", "wine", 0.1, 0.82),
    ("with delta", "breast_cancer", 0.1, 0.94),
    ("pure", "digits", 0.1, 0.15),
    ("pure", "wine", 0.1, 0.6),
    ("pure", "breast_cancer", 0.1, 0.7),
    ("pure", "digits", 1.0, 0.85),
)
"""Kind, table as it is, epsilon, and the least recovery that was asked for."""


def measured(kind: tuple[str, ...], trials: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return recovery and its standard error by variant (rows) and by table and epsilon."""
    means, errors = {}, {}
    for table in TABLES:
        for scale, words in SCALES.items():
            for epsilon in EPSILONS:
                compared = dpviz.compare(
                    table, epsilon=epsilon, k=2, scale=scale, trials=trials, mechanisms=list(kind)
                )
                where = table, words, epsilon
                each = {
                    one.mechanism.text: one.summaries["recovery"]
                    for one in compared.comparison.results
                }
                means[where] = pd.Series({text: one.mean for text, one in each.items()})
                errors[where] = pd.Series({text: one.se for text, one in each.items()})
    order = list(kind)  # as the texts of variants are written
    return pd.DataFrame(means).loc[order], pd.DataFrame(errors).loc[order]


def markdown(found: pd.DataFrame) -> list[str]:
    """Return one table for each way of scaling."""
    lines = []
    for words in SCALES.values():
        part = found.xs(words, axis=1, level=1)
        heads = [f"{table} {epsilon:g}" for table, epsilon in part.columns]
        lines += ["", f"Tables {words}:", "", "| mechanism | " + " | ".join(heads) + " |"]
        lines += ["|---" * (1 + len(heads)) + "|"]
        best = part.max()
        for variant, row in part.iterrows():
            cells = [
                f"**{value:.3f}**" if value >= top - 0.005 else f"{value:.3f}"
                for value, top in zip(row, best, strict=True)
            ]
            lines.append(f"| `{variant}` | " + " | ".join(cells) + " |")
    return lines


def goals(found: dict[str, pd.DataFrame]) -> list[str]:
    """Return a table with a row for each goal and the variant that comes nearest."""
    lines = [
        "| goal | table, as it is | epsilon | best | recovers | standard error | |",
        "|---|---|---|---|---|---|---|",
    ]
    words = SCALES["none"]
    for kind, table, epsilon, least in GOALS:
        column = found[kind][table, words, epsilon]
        best = str(column.idxmax())
        value, error = float(column[best]), float(found[f"{kind} se"][table, words, epsilon][best])
        said = "met" if value >= least else "missed"
        lines.append(
            f"| {kind}, {least:g} | {table} | {epsilon:g} | `{best}` | {value:.3f} | {error:.3f} | "
            f"{said} |"
        )
    return lines


def page(trials: int) -> str:
    """Return docs/newer.md."""
    found: dict[str, pd.DataFrame] = {}
    for kind, variants in (("with delta", WITH_DELTA), ("pure", PURE)):
        found[kind], found[f"{kind} se"] = measured(variants, trials)
    lines = [
        "# What is possible at small epsilons",
        "",
        f"Written by `python -m benchmarks.newer --trials {trials} --out docs/newer.md`. Recovery, "
        "the share of the variance between chance and the best two components that survives, over "
        f"{trials} draws: one row replaced, the default delta, k = 2. Bold is within .005 of the "
        "best.",
        "",
        *goals(found),
        "",
        "## With a delta",
        *markdown(found["with delta"]),
        "",
        "## Pure",
        *markdown(found["pure"]),
        "",
        "Weighing features, the two funnels and screening are for tables whose features differ in "
        "scale, or that have many of them; where features are alike (standardised) they gain "
        "little or lose. None of them is advised by default (docs/defaults.md).",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = page(options.trials)
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
