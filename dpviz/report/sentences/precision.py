"""Sentences of the Precision page."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpviz.accounting.boxes import frobenius_reach
from dpviz.core.metrics import optimum
from dpviz.core.number_text import numeral, percent
from dpviz.core.problem import (
    Problem,
    Relation,
)
from dpviz.report.sentences.phrases import budget_words, separated
from dpviz.simulation.compare import Comparison, Result

DIRECTIONAL_FAMILY = "directional"


def loss_share(comparison: Comparison) -> float:
    """Return the variance the best k components leave out, as a share of the total."""
    reference = comparison.prepared.reference
    return 1 - optimum(reference, comparison.problem.k) / reference.total


def _gains(comparison: Comparison, uniform: Comparison) -> list[tuple[Result, Result]]:
    """Return (with the allocation, with equal shares) of every result that follows it."""
    before = {result.mechanism.text: result for result in uniform.results}
    return [
        (result, before[result.mechanism.text])
        for result in comparison.results
        if result.mechanism.info.family == DIRECTIONAL_FAMILY
        and result.mechanism.text in before
        and result.mechanism.text == result.mechanism.key  # not a control variant
    ]


def _recovery(result: Result) -> float:
    found = result.summaries.get("recovery")
    return -math.inf if found is None else found.mean


def precision_verdict(comparison: Comparison, uniform: Comparison) -> str:
    """Return whether the allocation was worth it, from the simulated releases, in Markdown."""
    pairs = _gains(comparison, uniform)
    if not pairs:
        return "None of the mechanisms that follow the shares can run here."
    if comparison.problem.allocation.strategy == "uniform":
        return "The shares are equal, so every direction gets the same noise."
    # the best of those that follow the shares speaks for them, before as now: one that gains
    # next to nothing must not hide what a better one has lost
    now, before = (max(results, key=_recovery) for results in zip(*pairs, strict=True))
    share, old = now.summaries.get("recovery"), before.summaries.get("recovery")
    if share is None or old is None:
        return "Nothing can be recovered here: any subspace is as good as the exact one."
    by = "" if now.mechanism == before.mechanism else f", by {before.mechanism.label}"
    said = (
        f"With these shares, {now.mechanism.label} keeps **{percent(share.mean)}**; equal shares "
        f"keep **{percent(old.mean)}**{by}."
    )
    # better by less than the releases vary is not told as a gain
    if not separated(share, old):
        return f"**Not here.** {said} These releases cannot tell the two apart."
    return f"**{'Yes' if share.mean > old.mean else 'Not like this'}.** {said}"


def payoff_caption(comparison: Comparison) -> str:
    """Return how to read the figure of what the allocation gained."""
    return (
        f"Hollow: equal shares. Full: these shares, the mean of {comparison.settings.trials} "
        f"simulated releases. Line below: 95 in 100 of them. {percent(0)} is a random guess, "
        f"{percent(1)} exact PCA."
    )


def _beyond_linear(problem: Problem) -> float:
    """Return how much less Gaussian noise these shares need than a linear budget says.

    Against equal shares; at most sqrt(2), and only under replace, along the features.
    """
    allocation = problem.allocation
    if problem.relation is not Relation.REPLACE or allocation.directions != "features":
        return 1.0
    equal, own = (
        frobenius_reach(shares).value
        for shares in (np.full(problem.d, 1 / problem.d), allocation.shares(problem.d))
    )
    return equal / own


def domain_caption(comparison: Comparison) -> str:
    """Return what the domain means for shaped noise."""
    if comparison.prepared.domain.kind == "box":
        allocation = comparison.problem.allocation
        d, chosen = comparison.problem.d, allocation.chosen
        words = (
            "On the box precision is a budget: what one direction gets, the others lose, "
            "and noise on q of d directions can fall by up to d/q"
        )
        if chosen:
            beyond = _beyond_linear(comparison.problem)
            # against equal shares, of which each direction has 1/d
            times = beyond * d * allocation.tau / len(chosen)
            rest = beyond * d * (1 - allocation.tau) / (d - len(chosen))
            favoured, others = len(chosen), d - len(chosen)
            have = (
                "favoured direction has its" if favoured == 1
                else f"{favoured} favoured directions have their"
            )  # fmt: skip
            theirs = "one its" if others == 1 else f"{others} theirs"
            words += (
                f". Here the {have} noise divided by {numeral(times, 3)}, and the other "
                f"{theirs} multiplied by {numeral(1 / rest, 3)}"
            )
        return words + "."
    return (
        "On the ball any direction may carry a whole row, so no shape of noise beats the isotropic "
        "one. What can still help here is the weighted estimate, which trusts the shares to "
        "say where the variance is. Choose the box in the sidebar to see directions pay."
    )


def noise_caption(table: pd.DataFrame, comparison: Comparison) -> str:
    """Return how unequal the noise is over the directions."""
    if table.empty:
        return "None of these mechanisms has a known noise along each direction here."
    spread = table.groupby("mechanism")["std"].agg(lambda std: std.max() / std.min())
    labels = {r.mechanism.text: r.mechanism.label for r in comparison.results}
    most = str(spread.idxmax())
    # equal shares give the same number but for rounding
    if spread.max() < 1 + 1e-9:
        return "All directions have the same noise: the shares are equal."
    shaded = " Shaded: the favoured directions." if comparison.problem.allocation.chosen else ""
    return (
        f"{labels[most]} puts {numeral(spread.max())} times as much noise on its worst direction "
        f"as on its best.{shaded}"
    )


def prices_caption(prices: pd.DataFrame, falling: pd.DataFrame, comparison: Comparison) -> str:
    """Return how noise along a direction follows its share, and whose does not."""
    labels = {r.mechanism.text: r.mechanism.label for r in comparison.results}
    flat = [key for key in prices["mechanism"].unique() if key not in set(falling["mechanism"])]
    words = "No mechanism here has less noise along a direction for a larger share of the precision"
    if not falling.empty:
        words = (
            "Noise along one direction against its share of the precision, the others dividing "
            "the rest"
        )
        if flat:
            names = ", ".join(labels[str(key)] for key in flat)
            words += f". The same whatever the share, and not drawn: {names}"
    return f"{words}."


def accounts_caption(table: pd.DataFrame, comparison: Comparison) -> str:
    """Return how far the loosest account lies from the tightest."""
    labels = {r.mechanism.text: r.mechanism.label for r in comparison.results}
    ordered = table.sort_values("std")
    least, most = ordered.iloc[0], ordered.iloc[-1]
    factor = most["std"] / least["std"]
    return (
        f"At {budget_words(comparison.budget)} {labels[str(most['mechanism'])]} asks for "
        f"{numeral(factor)} times the noise of {labels[str(least['mechanism'])]} (equal shares): "
        "that is the distance between the loosest account here and the tightest, not a price of "
        "privacy."
    )
