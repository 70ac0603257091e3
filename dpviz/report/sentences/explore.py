"""Sentences of Explore: verdicts, captions and notes, computed only from results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from dpviz.core.metrics import chance_distance, farthest_distance
from dpviz.core.number_text import decimals, numeral, per_cent, percent, thousands, towards
from dpviz.core.problem import exposure
from dpviz.core.release import Verdict
from dpviz.core.settings import AS_RELEASED, Settings
from dpviz.datasets.table import NOT_PUBLISHED
from dpviz.preparation.bounding import Prepared
from dpviz.report.sentences.phrases import SEPARATED, bias_note, budget_words, join_words, separated
from dpviz.report.sentences.precision import loss_share
from dpviz.report.tables.payload import Payload
from dpviz.simulation.compare import WHY_THE_BASIS, Comparison, Result

_MODEST = 0.01
"""Share of 1/n above which dpviz warns about a delta."""


_FAILING = {
    Verdict.REFUTED: "is false",
    Verdict.OUT_OF_SCOPE: "fails at this setting, outside its scope",
    Verdict.UNPROVEN: "is not proved for the numbers that are released",
}


def competing(results: Sequence[Result]) -> list[Result]:
    """Return the results with a claim that does not fail here, best first."""
    counting = [r for r in results if r.status.verdict.counts]
    # Rank by captured share, because recovery may be missing. Both give the same order.
    return sorted(counting, key=lambda r: -r.metrics["captured_share"].mean())


def _measure(results: Sequence[Result]) -> str:
    """Return the reported measure: recovery, or the captured share if recovery is missing."""
    return "recovery" if all("recovery" in r.summaries for r in results) else "captured_share"


def verdict(comparison: Comparison) -> str:
    """Return the sentences at the top of the page: structure lost, and by which mechanism."""
    parts = [best(comparison)]
    results = competing(comparison.results)
    if results:
        measure = _measure(results)
        pure = [r for r in results if r.mechanism.info.guarantee == "pure"]
        others = [r for r in results[1:] if not _is_tie(results[0], r, measure)]
        # Add this sentence only if the sentence before it has not named the mechanism.
        if pure and pure[0] is not results[0] and pure[0] not in others[:1]:
            verb, _ = _VERBS[measure]
            mean = pure[0].summaries[measure].mean
            parts.append(f"With no delta at all, {pure[0].mechanism.label} {verb} {percent(mean)}.")
    for names, alone, promise in _failing_claims(comparison):
        parts.append(f"{names} {'is' if alone else 'are'} not counted: {promise}.")
    return " ".join(parts)


_VERBS = {"recovery": ("recovers", "structure"), "captured_share": ("keeps", "variance")}


def best(comparison: Comparison) -> str:
    """Return the sentence on how much structure is kept, and by which mechanism."""
    k, budget = comparison.problem.k, comparison.budget
    results = competing(comparison.results)
    if not comparison.results:
        return "No chosen mechanism can run at this setting; the reasons are below."
    if not results:
        return "No chosen mechanism has a privacy claim that holds at this setting."
    first, measure = results[0], _measure(results)
    verb, can = _VERBS[measure]
    noun = "one component" if k == 1 else f"{k} components"
    text = (
        f"At {budget_words(budget)}, {first.mechanism.label} {verb} "
        f"{percent(first.summaries[measure].mean)} of the {can} that {noun} can show"
    )
    # Report ties first, because a mechanism that leads by chance is not a winner.
    ties = [r for r in results[1:] if _is_tie(first, r, measure)]
    others = [r for r in results[1:] if r not in ties]
    if ties:
        names = join_words(r.mechanism.label for r in ties)
        text += f"; these simulated releases cannot distinguish this mechanism from {names}"
    if others:
        following = others[0].summaries[measure].mean
        text += f"; next comes {others[0].mechanism.label} with {percent(following)}"
    return f"{text}."


def _is_tie(one: Result, other: Result, measure: str) -> bool:
    return not separated(one.summaries[measure], other.summaries[measure])


def _failing_claims(comparison: Comparison) -> Iterator[tuple[str, bool, str]]:
    """Yield mechanisms whose claims fail alike, whether there is only one, and how they fail."""
    for (sense, words), ours in product(_FAILING.items(), (True, False)):
        left_out = [
            r.mechanism.label
            for r in comparison.results
            if r.status.verdict is sense and r.mechanism.ours is ours
        ]
        if left_out:
            alone = len(left_out) == 1
            # There may be no paper about a custom mechanism.
            says = "papers promise" if ours else "author claims" if alone else "authors claim"
            yield join_words(left_out), alone, f"what {'its' if alone else 'their'} {says} {words}"


def failing(comparison: Comparison) -> str:
    """Return which claims are not counted, and which mechanisms cannot run, with reasons."""
    parts = [f"{names}, as {promise}" for names, _, promise in _failing_claims(comparison)]
    parts += [f"{item.mechanism} cannot run, because {item.reason}" for item in comparison.skipped]
    return f"Not counted: {'; '.join(parts)}." if parts else "No claim fails at this setting."


def least_words(
    by_kind: Mapping[str, Mapping[str, Any] | None], share: str = per_cent("90")
) -> str | None:
    """Return the epsilon where ``share`` is recovered (`dpviz.studies.least.least_epsilons`)."""
    least, pure, selection = by_kind["least"], by_kind["pure"], by_kind["chosen"]
    if least is None:
        return None
    parts = [f"Idealised, {RECOVERED} {share} from about ε {_whose(least)}"]
    if pure is not None:
        same = pure["key"] == least["key"]
        parts.append("without a delta too" if same else f"without a delta from ε {_whose(pure)}")
    # Name the number that readers look for in the figure of the Explore page.
    if selection is not None and selection["key"] != least["key"]:
        parts.append(f"with a chosen mechanism from ε {_whose(selection)}")
    return ", ".join(parts)


RECOVERED = "95 of 100 releases recover"
"""The required share of releases, `dpviz.simulation.goal.SURE`, as a phrase."""


def _whose(answer: Mapping[str, Any]) -> str:
    return f"{numeral(towards(answer['epsilon'], 2, 1))} ({answer['label']})"


def delta_note(delta: float, n: int) -> tuple[str, bool]:
    """Return the meaning of a delta for n people, and whether the note is a warning.

    The note is a warning from 0.01/n on. To publish every row with probability delta would be
    allowed, but would then show somebody's row in 1 case of 100 or more.
    """
    if delta == 0:
        return "Delta 0: only mechanisms with a pure guarantee run.", False
    if delta <= _MODEST / n:
        return (
            f"Delta {numeral(delta)}, below {numeral(_MODEST, 6)}/n = {numeral(_MODEST / n)}.",
            False,
        )
    # Describe a mechanism that meets any such delta although it publishes single rows.
    share = exposure(delta, n)
    return (
        f"Delta {numeral(delta)} alone is not protection: a mechanism may publish each of the "
        f"{n:,} rows with this probability. Such a mechanism would expose somebody with "
        f"probability {percent(share)}. Choose delta below {numeral(_MODEST, 6)}/n = "
        f"{numeral(_MODEST / n)}.",
        True,
    )


def too_few_rows(delta: float, n: int) -> str | None:
    """Return the note of the table check on a delta that is too large for n rows, or None."""
    if delta <= _MODEST / n:
        return None
    return (
        f"The table has too few rows for the chosen delta. For {n:,} rows, delta should be at most "
        f"{numeral(_MODEST / n)}; the chosen delta is {numeral(delta)}."
    )


def free_lunch(settings: Settings) -> str | None:
    """Return what post-processing changes, or None if post-processing is off."""
    if settings.post == AS_RELEASED:
        return None
    return (
        "Post-processed at the same ε: features are weighted if their noise is known, and "
        f"negative or surplus variances are removed. {WHY_THE_BASIS}"
    )


def epsilon_note(epsilon: float) -> str | None:
    """Return the meaning of a very small or large epsilon, or None for a usual epsilon."""
    if epsilon < 0.1:
        return (
            "Below epsilon 0.1 the privacy promise is very strong. On most tables the noise at "
            "such an epsilon hides everything except the largest structure."
        )
    if epsilon > 5:
        # Cap the odds at e^700, because larger powers soon exceed the range of doubles.
        odds = math.exp(min(epsilon, 700))
        words = thousands(odds) if odds < 1e6 else numeral(odds)
        return (
            "Above epsilon 5 the privacy promise is weak. One person's row can change the odds of "
            f"a guess by a factor of up to {words}."
        )
    return None


def spectrum_caption(comparison: Comparison) -> str:
    """Return what the eigenspectrum shows, which is how many true components are found."""
    parts = []
    for result in comparison.results:
        words = comparison.components_found(result)
        if words is not None:
            parts.append(f"{result.mechanism.label} {words}")
    if not parts:
        return (
            "No chosen mechanism releases a noisy matrix. Bars show the variance along each "
            "released direction; the variance itself is not released."
        )
    return (
        f"True components found (turned by less than 45 degrees), out of {comparison.problem.d}: "
        f"{', '.join(parts)}. Predicted analytically{bias_note(comparison.problem.d)}."
    )


def distance_caption(comparison: Comparison) -> str:
    """Return what the chart of subspace distances shows."""
    results = competing(comparison.results)
    d, k = comparison.problem.d, comparison.problem.k
    if k == d:
        return "With all components, every subspace is the whole space, so all distances are zero."
    worst, chance = farthest_distance(d, k), chance_distance(d, k)
    if not results:
        return (
            f"Distance 0 is the true subspace, {decimals(chance, 2)} a random subspace, "
            f"{decimals(worst, 2)} the farthest subspace."
        )
    # Rank mechanisms by mean distance, because distance and recovery may give different orders.
    near = min(results, key=lambda r: r.metrics["projection_distance"].mean())
    value = near.metrics["projection_distance"].mean()
    return (
        f"{near.mechanism.label} comes closest to the true subspace, at distance "
        f"{decimals(value, 2)} on average. Distance 0 is the true subspace, {decimals(chance, 2)} "
        f"a random subspace, {decimals(worst, 2)} the farthest subspace."
    )


def projection_caption(comparison: Comparison) -> str:
    """Return what the 2-D projections show and hide."""
    results = competing(comparison.results)
    if comparison.problem.k == 1:
        hidden = "Each strip shows the rows along the released direction, with matched sign."
    else:
        hidden = (
            "Each chart is rotated to match the true axes as closely as possible. Matching the "
            "axes hides any rotation inside the released subspace."
        )
    if not results:
        return hidden
    # An axis released near a right angle has almost nothing in common with the true axis.
    lost = [r for r in results if np.median(r.angles[:, -1]) > math.radians(75)]
    if not lost:
        return f"With every chosen mechanism the structure stays visible in the noise. {hidden}"
    names = join_words(r.mechanism.label for r in lost)
    return (
        f"In half of the releases, {names} turns a direction by more than 75 degrees. A chart of "
        f"such a release shows mostly chance. {hidden}"
    )


def facts(comparison: Comparison) -> str:
    """Return one line on the analysed table and its preparation."""
    prepared, problem = comparison.prepared, comparison.problem
    length = numeral(prepared.row_bound, 4)
    bound = {
        "box": f"features between public bounds, row norms up to sqrt(d) = {length}",
        "ball": f"row norms up to R = {length}",
        # Without a declared bound, never name the longest row, because it is not a bound.
        "unbounded": "no row-norm bound is declared",
    }[prepared.domain.kind]
    left_out = percent(loss_share(comparison))
    return (
        f"{prepared.name}: {problem.n:,} people (rows), {problem.d} features; {bound}. Even "
        f"without privacy, {problem.k} of {problem.d} directions leave out {left_out} of the "
        "variance."
    )


_LONE = 0.9
"""Share of the variance in one feature from which the projection is nearly a line."""


def scaling_hint(prepared: Prepared, settings: Settings) -> str | None:
    """Return the effect of scaling if one unscaled feature holds nearly all variance."""
    spread = np.diag(prepared.reference.A)
    share = float(spread.max() / spread.sum())
    if settings.scale != "none" or prepared.d < 3 or share < _LONE:
        return None
    name = prepared.columns[int(spread.argmax())]
    return (
        f"One feature, {name}, holds {percent(share)} of the variance, so the chart is nearly a "
        "line. Scaling would let the other features count."
    )


def published(comparison: Comparison) -> str:
    """Return the note below charts of an uploaded table without its rows."""
    prepared, problem = comparison.prepared, comparison.problem
    return (
        f"{prepared.name}: {problem.n:,} people (rows), {problem.d} features, read for "
        "exploration. Publish nothing from this page, because one cell can decide whether a row or "
        "a column is used. To publish, use the Release page or the command dpviz published with "
        "--schema. Only the working view shows a comparison with the rows."
    )


def first_draw(results: Sequence[Result], trials: int) -> str:
    """Return the text shown while only each mechanism's first release is ready."""
    # Two decimals are enough for the result of one release.
    each = [
        f"{result.mechanism.label} **{decimals(float(result.metrics['recovery'][0]), 2)}**"
        for result in results
        if "recovery" in result.metrics
    ]
    text = (
        " · ".join(each) if each else ("none, because every subspace of these rows is equally good")
    )
    return f"Recovery of the first of {trials} simulated releases: {text}. More releases follow."


def convergence(result: Result) -> str | None:
    """Return what the Markov chains of an approximate sampler show, or None for exact sampling."""
    stats = result.diagnostics
    if not stats:
        return None
    sweeps = f"{decimals(stats['gibbs_sweeps'], 0)} Gibbs sweeps"
    # Comparing the two starts of the sampler needs two chains for each start.
    if "start_gap_last" not in stats:
        return (
            f"{result.mechanism.label}: {sweeps}. Comparing the starting points needs at least "
            "four simulated releases."
        )
    words = (
        f"{result.mechanism.label}: half the chains start at the exact components, half at random "
        "components. The mean scores of the two halves differ by "
        f"{decimals(abs(stats['start_gap_first']), 1)} standard errors at the start and by "
        f"{decimals(abs(stats['start_gap_last']), 1)} after {sweeps}"
    )
    if "split_rhat" in stats:
        words += f"; split R-hat {decimals(stats['split_rhat'], 2)}"
    close = abs(stats["start_gap_last"]) < SEPARATED
    return words + (
        ". The starting point no longer matters."
        if close
        else (". The starting point still matters: use more sweeps.")
    )


def published_words(payload: Payload, prepared: Prepared) -> str:
    """Return the contents, cost and assumptions of a file of charts, and if it may be published."""
    (frame,) = payload["frames"]
    count = sum(cell["published"] is not None for cell in frame["cells"].values())
    delta = payload["table"]["delta"]
    each = f"epsilon {numeral(frame['epsilon'], 6)}, delta {numeral(delta, 6)}"
    total = f"epsilon {numeral(count * frame['epsilon'], 6)}, delta {numeral(count * delta, 6)}"
    open_ = payload["publishable"]
    pictures = (
        f"{count} {'published' if open_ else 'noisy'} {'picture' if count == 1 else 'pictures'}"
    )
    words = (
        f"This file contains no row and no exact result: {pictures}, "
        f"{'each ' * (count > 1)}at {each}"
    )
    if count > 1:
        words += f", together at most {total}"
    if not open_:
        words = f"{NOT_PUBLISHED} {words}"
    labels = ["the names of the labels"] if payload["labels"]["kinds"] else []
    public = "; ".join([*prepared.assumed_public, *labels])
    return (
        f"{words}. Each further file has the same privacy cost again. The noise is floating-point; "
        f"for a real release use dpviz release. Assumed public: {public}."
    )
