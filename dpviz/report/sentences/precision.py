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
from dpviz.report.sentences.phrases import budget_words, kept_words, separated
from dpviz.simulation.compare import Comparison, Result

DIRECTIONAL_FAMILY = "directional"


def loss_share(comparison: Comparison) -> float:
    """Return the variance that the best k components leave out, as a share of the total."""
    reference = comparison.prepared.reference
    return 1 - optimum(reference, comparison.problem.k) / reference.total


def _gains(comparison: Comparison, uniform: Comparison) -> list[tuple[Result, Result]]:
    """Pair every result that follows the allocation with its result for equal shares."""
    before = {result.mechanism.text: result for result in uniform.results}
    return [
        (result, before[result.mechanism.text])
        for result in comparison.results
        if result.mechanism.info.family == DIRECTIONAL_FAMILY
        and result.mechanism.text in before
        and result.mechanism.text == result.mechanism.key  # This leaves out control variants.
    ]


def _recovery(result: Result) -> float:
    summary = result.summaries.get("recovery")
    return -math.inf if summary is None else summary.mean


def precision_verdict(comparison: Comparison, uniform: Comparison) -> str:
    """Return whether the allocation helped, by the simulated releases, in Markdown."""
    pairs = _gains(comparison, uniform)
    if not pairs:
        return "No mechanism that follows the chosen shares can run at this setting."
    if comparison.problem.allocation.strategy == "uniform":
        return "The shares are equal, so every direction gets the same noise."
    # Judge the mechanism that keeps most with either shares, each time against itself. If only the
    # current shares counted, a mechanism that gains little could hide a better mechanism's loss.
    now, before = max(pairs, key=lambda pair: max(map(_recovery, pair)))
    share, old = now.summaries.get("recovery"), before.summaries.get("recovery")
    if share is None or old is None:
        return "Nothing can be recovered: every subspace is as good as the exact subspace."
    text = (
        f"With these shares, {now.mechanism.label} keeps **{kept_words(share.mean)}** of the "
        f"structure; with equal shares it keeps **{kept_words(old.mean)}**."
    )
    # Do not report a gain that is smaller than the variation between releases.
    if not separated(share, old):
        return f"**Not here.** {text} These simulated releases show no clear difference."
    return f"**{'Yes' if share.mean > old.mean else 'Not like this'}.** {text}"


def payoff_caption(comparison: Comparison) -> str:
    """Return how to read the figure of gains from the allocation."""
    return (
        "Hollow marks: equal shares. Filled marks: the chosen shares. Each mark is the mean of "
        f"{comparison.settings.trials} simulated releases; the line below it spans 95 % of the "
        f"releases. {percent(0)} is a random guess, {percent(1)} is exact PCA."
    )


def _beyond_linear(problem: Problem) -> float:
    """Return how much less Gaussian noise these shares need than a linear budget states.

    The factor is relative to equal shares. The factor is at most sqrt(2), and 1 except under
    replace with features as directions.
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
    """Return what the bounds on rows mean for noise that depends on the direction."""
    if comparison.prepared.domain.kind == "box":
        allocation = comparison.problem.allocation
        d, low_noise = comparison.problem.d, allocation.chosen
        words = (
            "On the box, all directions share one precision budget: if one direction gains, the "
            "other directions lose. Noise on q of d directions can fall by a factor of at most d/q"
        )
        if low_noise:
            beyond = _beyond_linear(comparison.problem)
            # Compare with equal shares, which give each of the d directions the share 1/d.
            times = beyond * d * allocation.tau / len(low_noise)
            rest = beyond * d * (1 - allocation.tau) / (d - len(low_noise))
            count, others = len(low_noise), d - len(low_noise)
            have = (
                "low-noise direction" if count == 1
                else f"{count} low-noise directions"
            )  # fmt: skip
            theirs = "direction" if others == 1 else f"{others} directions"
            words += (
                f". Here noise along the {have} is divided by {numeral(times, 3)}, and noise along "
                f"the other {theirs} is multiplied by {numeral(1 / rest, 3)}"
            )
        return words + "."
    return (
        "On the ball any direction may carry a whole row, so isotropic noise is best. The "
        "weighted estimate can still help. Choose the box in the sidebar to see low-noise "
        "directions help."
    )


def noise_caption(table: pd.DataFrame, comparison: Comparison) -> str:
    """Return how much the noise differs between directions."""
    if table.empty:
        return "The noise along each direction is not known for any mechanism shown."
    spread = table.groupby("mechanism")["std"].agg(lambda std: std.max() / std.min())
    labels = {r.mechanism.text: r.mechanism.label for r in comparison.results}
    most = str(spread.idxmax())
    # These shares differ from equal shares only by rounding, which must not be reported.
    if spread.max() < 1 + 1e-9:
        return "All directions have the same noise: the shares are equal."
    legend = " Shaded: the low-noise directions." if comparison.problem.allocation.chosen else ""
    return (
        f"{labels[most]} puts {numeral(spread.max())} times as much noise on its worst direction "
        f"as on its best direction.{legend}"
    )


def prices_caption(prices: pd.DataFrame, falling: pd.DataFrame, comparison: Comparison) -> str:
    """Return how noise along a direction follows its share, and which mechanisms do not."""
    labels = {r.mechanism.text: r.mechanism.label for r in comparison.results}
    flat = [key for key in prices["mechanism"].unique() if key not in set(falling["mechanism"])]
    words = "A larger share of the precision does not lower the noise of any mechanism shown"
    if not falling.empty:
        words = (
            "Noise along one direction against its share of the precision; the other directions "
            "divide the rest equally"
        )
        if flat:
            names = ", ".join(labels[str(key)] for key in flat)
            words += f". Not shown, because the share does not change the noise: {names}"
    return f"{words}."


def accounts_caption(table: pd.DataFrame, comparison: Comparison) -> str:
    """Return how far the loosest accounting method lies from the tightest."""
    labels = {r.mechanism.text: r.mechanism.label for r in comparison.results}
    by_noise = table.sort_values("std")
    least, most = by_noise.iloc[0], by_noise.iloc[-1]
    factor = most["std"] / least["std"]
    return (
        f"At {budget_words(comparison.budget)} {labels[str(most['mechanism'])]} needs "
        f"{numeral(factor)} times the noise of {labels[str(least['mechanism'])]} (equal shares). "
        "This factor compares the loosest with the tightest privacy accounting; it is not a cost "
        "of privacy."
    )
