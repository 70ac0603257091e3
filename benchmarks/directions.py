"""Measure what knowing the right directions is worth: the planted example.

``python -m benchmarks.directions`` prints Markdown; ``--out docs/precision.md`` writes it too, and
``--readme docs/mechanisms.md`` puts a summary there. ``python -m dpviz reproduce mvg_figure4``
repeats the paper's finding on real data; see docs/reproduction.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dpviz.core.metrics import Summary
from dpviz.core.number_text import percent
from dpviz.core.resources import one_blas_thread
from dpviz.core.settings import Settings
from dpviz.preparation.load import load_prepared
from dpviz.simulation.compare import compare
from dpviz.studies.precision import EPSILON, EXAMPLES, TAU

START, END = "<!-- directions: start -->", "<!-- directions: end -->"
EXACT = ("directional_gaussian", "directional_wishart_difference")
PLANTED_EPSILON = EPSILON
PLANTED_TAU = TAU
BELIEFS = {
    "equal shares": "uniform",
    "right: both features that vary": EXAMPLES["right"].allocation,
    "half right: one of them": EXAMPLES["half"].allocation,
    "wrong: two that hardly vary": EXAMPLES["wrong"].allocation,
}
ISOTROPIC = "right belief, isotropic noise"


# --- the planted example ----------------------------------------------------------------------


def planted_settings(domain: str, draws: int, epsilon: float = PLANTED_EPSILON) -> Settings:
    """Return the setting of the planted example, but for the allocation."""
    example = EXAMPLES["right" if domain == "box" else "ball"]
    own = Settings(trials=draws, mechanisms=EXACT)
    return replace(example.of(own), epsilon=epsilon, delta=1e-6, allocation="uniform")


def planted(domain: str, draws: int, epsilon: float = PLANTED_EPSILON) -> dict[str, list[Summary]]:
    """Return recovery by belief, one summary for each of `EXACT`."""
    settings = planted_settings(domain, draws, epsilon)
    prepared = load_prepared(settings)

    def shares(allocation: str, mechanisms: Sequence[str]) -> list[Summary]:
        chosen = replace(settings, allocation=allocation, mechanisms=tuple(mechanisms))
        return [r.summaries["recovery"] for r in compare(prepared, chosen).results]

    found = {name: shares(allocation, EXACT) for name, allocation in BELIEFS.items()}
    right = BELIEFS["right: both features that vary"]
    found[ISOTROPIC] = shares(right, [f"{key}[noise=isotropic]" for key in EXACT])
    return found


def interval(summary: Summary) -> str:
    """Return a mean with the 95 % confidence interval of the mean."""
    return f"{summary.mean:.3f} ± {1.96 * summary.se:.3f}"


def planted_table(draws: int, epsilon: float = PLANTED_EPSILON) -> str:
    """Return recovery in the planted example as a Markdown table."""
    lines = [
        "| domain | belief | " + " | ".join(f"`{key}`" for key in EXACT) + " |",
        "|---|---|---|---|",
    ]
    for domain in ("box", "ball"):
        for name, summaries in planted(domain, draws, epsilon).items():
            cells = [
                f"{interval(summary)} ({summary.low:.2f} to {summary.high:.2f})"
                for summary in summaries
            ]
            lines.append(f"| {domain} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


# --- the page ---------------------------------------------------------------------------------

PLANTED_TEXT = """## The planted example

`planted` has 20,000 rows of 20 independent features between public bounds -1 and 1; two of them
vary (half widths 0.45 and 0.35) and eighteen hardly do (0.035). Epsilon {epsilon:g}, delta 1e-6
(the Wishart difference uses none), k 2, replace, tau {tau:g}, {draws} draws. Cells are
recovery (0 is a random subspace, 1 exact PCA): the mean with the 95 % confidence interval of the
mean, and in brackets the range that holds 95 % of the draws.

{table}

What to read from it:

- **On the box the right features are worth a great deal.** Part of the gain is knowing where to
  look (the weighted estimate, last line of the box), the rest is the shaped noise.
- **Wrong features cost more than knowing none.** The noise is pushed onto what matters.
- **On the ball shaped noise buys nothing**: isotropic noise with the same belief does at least as
  well. Knowing where to look still helps where noise is large, because the estimate uses it.
- Compare within a domain. The ball is the easier problem here, because its radius is the largest
  norm of the data, far below the sqrt(20) of the box.
"""

PAPER_TEXT = """## On real data

The paper that proposed the allocation compares right, partly right and wrong directions in its
Figure 4. That figure, and the tables beside it, are redone in
[docs/reproduction.md](reproduction.md) (`python -m dpviz reproduce mvg_figure4 --out DIR`).
"""


def planted_summary(draws: int) -> str:
    """Return four lines on the planted example."""
    box, ball = planted("box", draws), planted("ball", draws)
    right, equal = "right: both features that vary", "equal shares"
    lines = []
    for place, key in enumerate(EXACT):
        before, after, alone = (box[name][place] for name in (equal, right, ISOTROPIC))
        lines.append(
            f"- Box, `{key}`: {percent(before.mean)} with equal shares, {percent(after.mean)} "
            f"knowing the two features; {percent(alone.mean)} with the same knowledge and "
            "isotropic noise."
        )
    wrong = [summary.mean for summary in box["wrong: two that hardly vary"]]
    worse = ", worse than a random subspace" if max(wrong) < 0 else ""
    lines.append(
        f"- Box, two wrong features instead: {percent(wrong[0])} and {percent(wrong[1])}{worse}."
    )
    shaped, plain = ball[right], ball[ISOTROPIC]
    lines.append(
        f"- Ball: {100 * shaped[0].mean:.1f} % and {100 * shaped[1].mean:.1f} % with the right "
        f"features, {100 * plain[0].mean:.1f} % and {100 * plain[1].mean:.1f} % with isotropic "
        "noise: shape buys nothing."
    )
    return "\n".join(lines)


def main() -> None:
    """Print the page, and write it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    parser.add_argument("--readme", type=Path, help="file with the markers of the summary")
    arguments = parser.parse_args()
    with one_blas_thread():
        text = "# What the right directions are worth\n\n"
        text += "Written by `python -m benchmarks.directions --out docs/precision.md`.\n\n"
        text += PLANTED_TEXT.format(
            table=planted_table(arguments.draws),
            draws=arguments.draws,
            epsilon=PLANTED_EPSILON,
            tau=PLANTED_TAU,
        )
        text += "\n" + PAPER_TEXT
        summary = planted_summary(arguments.draws)
    print(text)
    print(summary)
    if arguments.out:
        arguments.out.parent.mkdir(exist_ok=True)
        arguments.out.write_text(text, encoding="utf-8")
    if arguments.readme:
        before, start, rest = arguments.readme.read_text(encoding="utf-8").partition(START)
        _, end, after = rest.partition(END)
        if not (start and end):
            parser.error(f"{arguments.readme} must hold {START} and {END}")
        arguments.readme.write_text(f"{before}{START}\n{summary}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
