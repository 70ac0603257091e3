"""The sentences: verdicts, captions and notes, from results alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from dpviz.core.metrics import chance_distance, farthest_distance
from dpviz.core.number_text import decimals, numeral, per_cent, percent, thousands
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
"""A delta above this share of 1/n is warned of."""


_FAILING = {
    Verdict.REFUTED: "is false",
    Verdict.OUT_OF_SCOPE: "fails here, outside its scope",
    Verdict.UNPROVEN: "is not proved for what is released here",
}


def competing(results: Sequence[Result]) -> list[Result]:
    """Return the results that make a claim which does not fail here, best first."""
    kept = [r for r in results if r.status.verdict.counts]
    # not by recovery, which is missing where k leaves nothing to recover; both rank alike
    return sorted(kept, key=lambda r: -r.metrics["captured_share"].mean())


def _measure(results: Sequence[Result]) -> str:
    """Return what is told of results: recovery, or where k leaves none the captured share."""
    return "recovery" if all("recovery" in r.summaries for r in results) else "captured_share"


def verdict(comparison: Comparison) -> str:
    """Return the sentences on top of the page: what is lost, and by which mechanism."""
    said = [best(comparison)]
    ranked = competing(comparison.results)
    if ranked:
        measure = _measure(ranked)
        pure = [r for r in ranked if r.mechanism.info.guarantee == "pure"]
        others = [r for r in ranked[1:] if not _tied(ranked[0], r, measure)]
        # said only where the sentence before has not named it
        if pure and pure[0] is not ranked[0] and pure[0] not in others[:1]:
            verb, _ = _VERBS[measure]
            kept = pure[0].summaries[measure].mean
            said.append(f"With no delta at all, {pure[0].mechanism.label} {verb} {percent(kept)}.")
    for names, alone, promise in _not_counted(comparison):
        said.append(f"{names} {'is' if alone else 'are'} not counted: {promise}.")
    return " ".join(said)


_VERBS = {"recovery": ("recovers", "show"), "captured_share": ("keeps", "explain")}


def best(comparison: Comparison) -> str:
    """Return the sentence that says what is kept, and by which mechanism."""
    k, budget = comparison.problem.k, comparison.budget
    ranked = competing(comparison.results)
    if not comparison.results:
        return "None of the chosen mechanisms can run at this setting; why is said below."
    if not ranked:
        return "None of the chosen mechanisms makes a claim that holds here."
    first, measure = ranked[0], _measure(ranked)
    verb, can = _VERBS[measure]
    noun = "one component" if k == 1 else f"{k} components"
    said = (
        f"At {budget_words(budget)}, {first.mechanism.label} {verb} "
        f"{percent(first.summaries[measure].mean)} of what {noun} can {can}"
    )
    # said first: a winner by luck is none
    ties = [r for r in ranked[1:] if _tied(first, r, measure)]
    others = [r for r in ranked[1:] if r not in ties]
    if ties:
        names = join_words(r.mechanism.label for r in ties)
        said += f"; these draws cannot tell it from {names}"
    if others:
        following = others[0].summaries[measure].mean
        said += f"; next comes {others[0].mechanism.label} with {percent(following)}"
    return f"{said}."


def _tied(one: Result, other: Result, measure: str) -> bool:
    return not separated(one.summaries[measure], other.summaries[measure])


def _not_counted(comparison: Comparison) -> Iterator[tuple[str, bool, str]]:
    """Yield the names of those whose claim fails alike, whether it is one, and how it fails."""
    for (sense, words), ours in product(_FAILING.items(), (True, False)):
        left_out = [
            r.mechanism.label
            for r in comparison.results
            if r.status.verdict is sense and r.mechanism.ours is ours
        ]
        if left_out:
            alone = len(left_out) == 1
            # a mechanism of somebody's own need not have a paper
            says = "papers promise" if ours else "author claims" if alone else "authors claim"
            yield join_words(left_out), alone, f"what {'its' if alone else 'their'} {says} {words}"


def failing(comparison: Comparison) -> str:
    """Return the sentence that says whose claim is not counted, and what cannot run, and why."""
    said = [f"{names}, as {promise}" for names, _, promise in _not_counted(comparison)]
    said += [f"{item.mechanism} cannot run, as {item.reason}" for item in comparison.skipped]
    return f"Not counted: {'; '.join(said)}." if said else "No claim that is made here fails."


def least_words(
    found: Mapping[str, Mapping[str, Any] | None], share: str = per_cent("90")
) -> str | None:
    """Return from where so much is recovered (`dpviz.studies.least.least_epsilons`)."""
    least, pure, chosen = found["least"], found["pure"], found["chosen"]
    if least is None:
        return None
    said = [f"Idealised, {RECOVERED} {share} from about ε {_whose(least)}"]
    if pure is not None:
        same = pure["key"] == least["key"]
        said.append("without delta too" if same else f"without delta from {_whose(pure)}")
    # who looks at the board reads the number off it
    if chosen is not None and chosen["key"] != least["key"]:
        said.append(f"on the board from {_whose(chosen)}")
    return ", ".join(said)


RECOVERED = "95 of 100 releases recover"
"""How surely: the share `dpviz.simulation.goal.SURE` of them, in words."""


def _whose(answer: Mapping[str, Any]) -> str:
    return f"{numeral(answer['epsilon'])} ({answer['label']})"


def delta_note(delta: float, n: int) -> tuple[str, bool]:
    """Return what a delta means for so many people, and whether it is a warning.

    It is one from 0.01/n on: publishing every row with probability delta, which keeps any promise
    of that delta, would then show somebody's row in one case of a hundred or more.
    """
    if delta == 0:
        return "Delta 0: only mechanisms with a pure guarantee run.", False
    if delta <= _MODEST / n:
        return (
            f"Delta {numeral(delta)}, below {numeral(_MODEST, 6)}/n = {numeral(_MODEST / n)}.",
            False,
        )
    # the table that publishes single rows at random keeps any delta: what it does is told
    share = exposure(delta, n)
    return (
        f"Delta {numeral(delta)} is no protection by itself: publishing each of the {n:,} rows "
        f"with that probability would keep it, and would expose somebody with probability "
        f"{percent(share)}. Choose it below {numeral(_MODEST, 6)}/n = {numeral(_MODEST / n)}.",
        True,
    )


def too_few_rows(delta: float, n: int) -> str | None:
    """Return what a table's check says of a delta that so few rows cannot bear, or None."""
    if delta <= _MODEST / n:
        return None
    return (
        f"Too few rows for the chosen delta: {n:,} rows ask for one of at most "
        f"{numeral(_MODEST / n)}, and it is {numeral(delta)}."
    )


def free_lunch(settings: Settings) -> str | None:
    """Return what post-processing does to what is shown, where it is asked for."""
    if settings.post == AS_RELEASED:
        return None
    return (
        "Post-processed: features are weighed where the noise is known, variances are kept from "
        f"being negative and from being too many, at the same ε. {WHY_THE_BASIS}"
    )


def epsilon_note(epsilon: float) -> str | None:
    """Return what a very small or large epsilon means, or None between."""
    if epsilon < 0.1:
        return (
            "Below 0.1 the promise is very strong: on most tables the noise hides everything "
            "but the largest structure."
        )
    if epsilon > 5:
        # e^700 is the last power that is a number
        odds = math.exp(min(epsilon, 700))
        words = thousands(odds) if odds < 1e6 else numeral(odds)
        return (
            f"Above 5 the promise is weak: what one person's row adds to the odds of any guess "
            f"about them can reach a factor of {words}."
        )
    return None


def spectrum_caption(comparison: Comparison) -> str:
    """Return what the eigenspectrum shows: how many true components are found."""
    parts = []
    for result in comparison.results:
        found = comparison.components_found(result)
        if found is not None:
            parts.append(f"{result.mechanism.label} {found}")
    if not parts:
        return (
            "None of the chosen mechanisms releases a noisy matrix; bars show the variance along "
            "each released direction, which is not itself released."
        )
    return (
        f"True components found, turned by less than 45 degrees, out of {comparison.problem.d}: "
        f"{', '.join(parts)}. Predicted without a draw{bias_note(comparison.problem.d)}."
    )


def distance_caption(comparison: Comparison) -> str:
    """Return what the subspace distances show."""
    ranked = competing(comparison.results)
    d, k = comparison.problem.d, comparison.problem.k
    if k == d:
        return "With k = d every subspace is the whole space, so all distances are zero."
    worst, chance = farthest_distance(d, k), chance_distance(d, k)
    if not ranked:
        return (
            f"0 is the true subspace, {decimals(worst, 2)} the farthest, "
            f"{decimals(chance, 2)} pure chance."
        )
    # by the mean distance, which need not rank as recovery does
    near = min(ranked, key=lambda r: r.metrics["projection_distance"].mean())
    value = near.metrics["projection_distance"].mean()
    return (
        f"{near.mechanism.label} comes closest, at {decimals(value, 2)} on average. 0 is the true "
        "subspace, "
        f"{decimals(chance, 2)} is what a random one reaches, {decimals(worst, 2)} the farthest "
        "possible."
    )


def projection_caption(comparison: Comparison) -> str:
    """Return what the 2-D pictures show and what they hide."""
    ranked = competing(comparison.results)
    if comparison.problem.k == 1:
        hidden = "Each strip shows the rows along the released direction, its sign matched."
    else:
        hidden = (
            "Each picture is turned to match the true axes as well as it can be, which hides "
            "rotation inside the released space."
        )
    if not ranked:
        return hidden
    # near a right angle a drawn axis has next to nothing of the true one
    drowned = [r for r in ranked if np.median(r.angles[:, -1]) > math.radians(75)]
    if not drowned:
        return f"In every chosen mechanism the structure survives the noise. {hidden}"
    names = join_words(r.mechanism.label for r in drowned)
    return (
        f"Half the draws of {names} turn a released direction by more than 75 degrees: "
        f"such a picture shows mostly chance. {hidden}"
    )


def facts(comparison: Comparison) -> str:
    """Return one line that says what is analysed."""
    prepared, problem = comparison.prepared, comparison.problem
    length = numeral(prepared.row_bound, 4)
    bound = {
        "box": f"features between public bounds, rows within sqrt(d) = {length}",
        "ball": f"row norms up to R = {length}",
        # there is a longest row here too, and it bounds nothing
        "unbounded": "no row bound is declared",
    }[prepared.domain.kind]
    left_out = percent(loss_share(comparison))
    return (
        f"{prepared.name}: {problem.n:,} people (rows), {problem.d} features; {bound}. Even "
        f"without privacy, {problem.k} of {problem.d} directions leave out {left_out} of the "
        "variance."
    )


_LONE = 0.9
"""Share of the variance from which one feature makes the picture a line."""


def scaling_hint(comparison: Comparison) -> str | None:
    """Return what scaling would change, where one unscaled feature holds nearly all variance."""
    prepared = comparison.prepared
    spread = np.diag(prepared.reference.A)
    share = float(spread.max() / spread.sum())
    if comparison.settings.scale != "none" or prepared.d < 3 or share < _LONE:
        return None
    name = prepared.columns[int(spread.argmax())]
    return (
        f"One feature, {name}, holds {percent(share)} of the variance, so the picture is nearly a "
        "line. Scaling would let the other features count."
    )


def published(comparison: Comparison) -> str:
    """Return what is said below pictures of an upload without its rows."""
    prepared, problem = comparison.prepared, comparison.problem
    return (
        f"{prepared.name}: {problem.n:,} people (rows), {problem.d} features, read as they are "
        "explored: one cell can leave a row or a column out, so nothing here is to be published. "
        "Release reads the file under a schema and makes what may be; so does dpviz published with "
        "--schema. What compares with the rows is in the working view alone."
    )


def first_draw(results: Sequence[Result], trials: int) -> str:
    """Return what is shown while all draws but the first of each mechanism are still to come."""
    # two decimals: one draw tells no more
    seen = [
        f"{result.mechanism.label} **{decimals(float(result.metrics['recovery'][0]), 2)}**"
        for result in results
        if "recovery" in result.metrics
    ]
    listed = " · ".join(seen) if seen else "none, as any subspace of these rows is as good"
    return f"First of {trials} draws, recovery: {listed}. The others follow."


def convergence(result: Result) -> str | None:
    """Return what the chains of an approximate sampler show, or None for exact draws."""
    found = result.diagnostics
    if not found:
        return None
    sweeps = f"{decimals(found['gibbs_sweeps'], 0)} Gibbs sweeps"
    # starts are compared in halves of two chains each
    if "start_gap_last" not in found:
        return (
            f"{result.mechanism.label}: {sweeps}; fewer than four draws, too few to compare starts."
        )
    words = (
        f"{result.mechanism.label}: half the chains start at the exact components, half at random "
        f"ones. Their mean scores differ by {decimals(abs(found['start_gap_first']), 1)} standard "
        f"errors at the start and by {decimals(abs(found['start_gap_last']), 1)} after {sweeps}"
    )
    if "split_rhat" in found:
        words += f"; split R-hat {decimals(found['split_rhat'], 2)}"
    close = abs(found["start_gap_last"]) < SEPARATED
    return words + (
        ". The start no longer shows." if close else ". The start still shows: use more sweeps."
    )


def published_words(payload: Payload, prepared: Prepared) -> str:
    """Return what a file of pictures holds, costs and rests on, and whether it may be published."""
    (frame,) = payload["frames"]
    count = sum(cell["published"] is not None for cell in frame["cells"].values())
    delta = payload["table"]["delta"]
    each = f"epsilon {numeral(frame['epsilon'], 6)}, delta {numeral(delta, 6)}"
    total = f"epsilon {numeral(count * frame['epsilon'], 6)}, delta {numeral(count * delta, 6)}"
    open_ = payload["publishable"]
    pictures = (
        f"{count} {'published' if open_ else 'noisy'} {'picture' if count == 1 else 'pictures'}"
    )
    words = f"No row and no exact result is in here: {pictures}, {'each ' * (count > 1)}at {each}"
    if count > 1:
        words += f", together at most {total}"
    if not open_:
        words = f"{NOT_PUBLISHED} {words}"
    labels = ["the names of labels"] if payload["labels"]["kinds"] else []
    public = "; ".join([*prepared.assumed_public, *labels])
    return (
        f"{words}. Another file costs as much again. Noise is in floating-point numbers; "
        f"a release is made by dpviz release. Assumed public: {public}."
    )
