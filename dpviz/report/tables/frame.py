"""Data of the Explore figure at one epsilon, for each mechanism in numbers and in words.

A frame reduces a comparison at one epsilon to the figure's data. Every frame uses the same named
random streams as `compare`. So the frame at the current epsilon holds exactly the numbers of every
other page, and a dot that moves between frames is the same release with more or less noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from dpviz.auditing.attack import both_worlds
from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import (
    Summary,
    chance_distance,
    farthest_distance,
    summarise,
)
from dpviz.core.number_text import decimals, numeral, percent
from dpviz.core.problem import Problem
from dpviz.core.release import Status, Verdict
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.phrases import guess_sentence, guesses_words
from dpviz.report.tables.payload import (
    BoardCell,
    ClaimFacts,
    Frame,
    Headline,
    Line,
    Published,
    Spectrum,
)
from dpviz.report.tables.projection import (
    coordinates,
    packed,
)
from dpviz.simulation.cells import Skipped
from dpviz.simulation.compare import WHY_THE_BASIS, Comparison, Result, first_draws
from dpviz.simulation.picture.scree import TWO_SIDED, Scree
from dpviz.simulation.picture.shown import drowned, mirrored, points, steady

PICTURE_POINTS = 300

MOST_COMPONENTS = 64
"""Number of eigenvalues sent for each mechanism and frame."""

# A snapshot needs only these metrics. Others would cost two more eigenvalue problems per release.
FRAME_METRICS = ("recovery", "captured_share", "projection_distance")

_STEADY = steady(PICTURE_POINTS)
_NAMED_BARS = 5  # A scree plot with more bars has no space for texts.
_MOST_NAMED = 3  # At most this many hidden labels are listed by name.
_WORDS = (
    (0.1, "no better than chance"), (0.5, "partly"), (0.9, "usable"), (math.inf, "nearly all")
)  # fmt: skip


def recovery_words(recovery: float) -> str:
    """Return a recovery in words: no better than chance, partly, usable or nearly all."""
    return next(words for below, words in _WORDS if recovery < below)


class PictureRows:
    """The rows that a projection shows, the same in every frame."""

    def __init__(self, prepared: Measured, k: int) -> None:
        if isinstance(prepared, Prepared):
            self.rows, self.index = prepared.picture(PICTURE_POINTS)
        else:  # A plan has no rows, and a table read in batches shows none.
            self.rows, self.index = np.empty((0, prepared.d)), np.empty(0, dtype=np.intp)
        # Use the same exact components for all snapshots, so that only the release moves.
        self.true = prepared.reference.eigenvectors[:, :k]
        # A projection is never longer than its row, so all points fit into this scale.
        self.scale = float(np.linalg.norm(self.rows, axis=1).max(initial=0.0)) or 1.0

    def places(self, frame: FloatArray, axes: str) -> FloatArray:
        """Return the coordinates of the rows along the directions in ``frame``."""
        return coordinates(self.rows, frame, self.true, axes)

    def packed(self, frame: FloatArray, axes: str = "aligned") -> str:
        """Return the coordinates of `places`, packed for the script."""
        # Store 16 bits per coordinate. They are far finer than a pixel, and a quarter of a double.
        places = self.places(frame, axes)
        return packed(np.round(places / self.scale * 32767), "<i2")


def _four(summary: Summary) -> tuple[float, float, float, float]:
    error = 0.0 if math.isnan(summary.se) else summary.se
    return short(summary.mean), short(summary.low), short(summary.high), short(error)


def short(value: float) -> float:
    """Return a number with as many digits as any screen can show."""
    return float(f"{value:.6g}")


def _spectrum(result: Result, most: int) -> Spectrum:
    released = result.eigenvalues is not None
    values = result.eigenvalues if result.eigenvalues is not None else result.captured_each
    # Eigenvalues are sorted from the largest. Those after the first ones look like noise.
    leading = values[:, :most]
    # Show minimum and maximum, because any single simulated release could be the real one.
    lines = np.stack([np.median(leading, axis=0), leading.min(axis=0), leading.max(axis=0)])
    return {
        "released": released,
        "count": int(leading.shape[1]),
        "text": numeral(float(lines[0, 0]), 3),
        "lines": packed(lines, "<f4"),
    }


def said_of(recovery: float) -> tuple[str, str]:
    """Return a recovery in per cent, below 0 if random directions keep more, and in words."""
    return percent(recovery), recovery_words(recovery)


def _budget(epsilon: float, delta: float) -> str:
    return f"ε {numeral(epsilon, 3)}{_delta(delta)}"


def _delta(delta: float) -> str:
    return f", δ {numeral(delta)}" if delta else ""


def _standing(status: Status) -> ClaimFacts:
    broken = status.verdict in (Verdict.REFUTED, Verdict.OUT_OF_SCOPE)
    return {
        "verdict": str(status.verdict),
        "mark": status.mark,
        "words": status.words,
        "evidence": status.evidence,
        "counts": status.verdict.counts,
        "state": "false" if broken else str(status.verdict),
    }


def _cell(
    result: Result,
    picture: PictureRows,
    draw: int,
    axes: str,
    most: int,
    published: Result | None,
    kinds: tuple[str, ...],
    error: float | None,
    problem: Problem,
) -> BoardCell:
    distances, status, edges = result.metrics["projection_distance"], result.status, result.edges
    middle, spread = float(np.median(distances)), summarise(distances)
    # If k = d, every subspace is the whole space, so recovery is undefined.
    recoveries = result.metrics.get("recovery")
    recovery = None if recoveries is None else summarise(recoveries)
    text, words = ("", "") if recovery is None else said_of(recovery.mean)
    aim = result.hint or ""
    # A hint has the form "words: advice". Beside the recovery, the advice is enough.
    best = [aim.partition(": ")[2]] if aim else []
    before = (result.before or {}).get("recovery")
    return {
        "status": _standing(status),
        "recovery": None if recovery is None else _four(recovery),
        "before": None if before is None else short(float(before.mean())),
        "distances": [float(f"{value:.4g}") for value in distances],
        "distance": (short(middle), short(spread.low), short(spread.high)),
        "spectrum": _spectrum(result, most),
        "edges": None if edges is None else (short(edges[0]), short(edges[1])),
        "threshold": None if result.threshold is None else short(result.threshold),
        "picture": picture.packed(result.components[draw], axes),
        "published": None if published is None else _picture_of(published, kinds, error),
        "texts": {
            "recovery": text,
            "words": words,
            "said": "; ".join([words, *best]),
            "range": []
            if recoveries is None
            else [said_of(float(end))[0] for end in (recoveries.min(), recoveries.max())],
            "before": "" if before is None else f"as released {said_of(float(before.mean()))[0]}",
            "aim": aim,
            "risk": guess_sentence(
                guesses_words(both_worlds(result.spent)), problem.relation, problem.unit
            ),
            "distance": decimals(middle, 2),
            "claim": _claim(result),
            "found": [
                *([] if recovery is None else _draw_rows(result, recovery, decimals(middle, 2))),
                *([] if published is None else _fidelity(published)),
            ],
        },
    }


def _picture_of(result: Result, kinds: tuple[str, ...], error: float | None) -> Published | None:
    """Return the points and notes of a published map, without reading private data."""
    if not result.pictures:
        return None
    picture = result.pictures[0]
    sample, notes = points(picture, _STEADY), []
    codes = None
    if picture.plan.kinds > 1:
        # One byte per label is enough. The value 255 marks a point without a label.
        codes = packed(np.where(sample.colours < 0, 255, np.minimum(sample.colours, 254)), "u1")
        hidden = [f"“{kinds[kind]}”" for kind in drowned(picture)]
        if len(hidden) == len(kinds):
            notes.append("no label can be distinguished")
        elif hidden:
            several = len(hidden) > _MOST_NAMED
            names = f"{len(hidden)} labels" if several else " and ".join(hidden)
            notes.append(f"{names} cannot be distinguished")
    elif len(kinds) > 1:
        notes.append("noise would hide the labels")
    if picture.disk:
        notes.append("the chart shows directions, not lengths")
    if error is not None:
        notes.append(f"noise changes the shape by at most {percent(min(error, 1.0))}")
    return {
        "places": packed(np.round(sample.places / picture.frame * 32767), "<i2"),
        "reach": [short(float(value)) for value in picture.frame],
        "codes": codes,
        "said": notes,
        "scree": _scree(picture.scree),
    }


def _scree(scree: Scree | None) -> tuple[str, list[str]]:
    """Return the published shares of the variance, or empty data if noise hides the shares."""
    if scree is None or not scree.clear:
        return "", []
    # Noise may raise a share above 1, so cap it.
    pairs = np.minimum(np.stack([scree.shares, TWO_SIDED * scree.errors], axis=1), 1.0)
    shares = scree.shares if len(scree.shares) <= _NAMED_BARS else scree.shares[:1]
    texts = [percent(min(float(share), 1.0)) for share in shares]
    return packed(np.round(pairs * 32767), "<i2"), texts


def _fidelity(result: Result) -> list[Line]:
    """Return how well a published map represents the rows, for the working view only."""
    means = {key: float(values.mean()) for key, values in result.metrics.items()}
    if "fidelity" not in means:
        return []
    text = f"{percent(means['fidelity'])} similar to the true points"
    if "class_picture" in means:
        text += f", {percent(means['class_picture'])} of distinguishable labels"
    return [("Published", f"{text}; never printed")]


def _claim(result: Result) -> list[Line]:
    """Return lines of name and text on the claimed and the actual privacy loss."""
    budget, loss = result.claimed, result.spent
    cost = "no ε is known"
    if loss is not None:
        cost = loss.cost.words(3, "ε") + _delta(loss.delta)
    promise = "nothing" if budget is None else _budget(budget.epsilon, budget.delta)
    return [("Claims", promise), ("Spends", cost)]


def _draw_rows(result: Result, recovery: Summary, distance: str) -> list[Line]:
    """Return lines of name and text on what the simulated releases show."""
    (text, words), k = said_of(recovery.mean), result.components.shape[2]
    d = result.components.shape[1]
    low, high = (said_of(value)[0] for value in (recovery.low, recovery.high))
    share = percent(float(result.metrics["captured_share"].mean()))
    angles = np.quantile(np.degrees(result.angles), [0.5, 0.025, 0.975], axis=0).T
    angle_words = [
        f"{decimals(median, 0)}° ({decimals(least, 0)} to {decimals(most, 0)})"
        for median, least, most in angles
    ]
    rows = [
        (
            "Recovers",
            f"{text} ({words}); 95 % of simulated releases from {low} to {high}; {share} of the "
            f"variance that the best {k} components explain",
        ),
        (
            "Distance",
            f"median {distance}; 0 is the true subspace, {decimals(chance_distance(d, k), 2)} a "
            f"random subspace, {decimals(farthest_distance(d, k), 2)} the farthest subspace",
        ),
        ("Principal angles", ", ".join(angle_words)),
    ]
    if result.before is not None and "recovery" in result.before:
        rows.append(("As released", _before(result, text)))
    if result.edges is not None and result.threshold is not None:
        edge, threshold = numeral(result.edges[1]), numeral(result.threshold)
        rows.append(("Noise", f"edge {edge}, threshold {threshold}"))
    return rows


def _before(result: Result, after: str) -> str:
    """Describe the releases before post-processing, at the same epsilon."""
    assert result.before is not None
    was = said_of(float(result.before["recovery"].mean()))[0]
    text = f"recovers {was}, and {after} after post-processing, at the same ε"
    errors = [metrics.get("noise_frobenius") for metrics in (result.before, result.metrics)]
    if errors[0] is not None and errors[1] is not None:
        share = float(errors[1].mean() / errors[0].mean()) if errors[0].any() else 1.0
        text += f"; share of the matrix error that remains: {percent(share)}"
    return f"{text}. {WHY_THE_BASIS}"


def frame(
    prepared: Measured,
    problem: Problem,
    epsilon: float,
    results: Sequence[Result],
    skipped: Sequence[Skipped] = (),
    *,
    draw: int = 0,
    axes: str = "aligned",
    most: int = MOST_COMPONENTS,
    published: Mapping[Mechanism, Result] = MappingProxyType({}),
    errors: Mapping[Mechanism, float] = MappingProxyType({}),
) -> Frame:
    """Return the data of the comparison figure at one epsilon.

    Parameters
    ----------
    prepared : Measured
    problem : Problem
    epsilon : float
    results : sequence of Result
        Results that have at least the metrics `FRAME_METRICS`.
    skipped : sequence of Skipped
    draw : int
        Number of the simulated release to show, from 0.
    axes : {"aligned", "raw"}
        Alignment, as in `dpviz.report.tables.projection.coordinates`.
    most : int
        Maximum number of eigenvalues per mechanism.
    published : mapping
        Results by mechanism if a map of the rows shares the budget
        (`dpviz.simulation.compare.pictured`).
    errors : mapping
        How far noise may distort a map, by mechanism, if reported
        (`dpviz.simulation.compare.errors_of_pictures`).

    Returns
    -------
    Frame
    """
    picture = PictureRows(prepared, problem.k)
    kinds = () if prepared.labels is None else prepared.labels.kinds
    cells = {
        one.mechanism: _cell(
            one,
            picture,
            draw,
            axes,
            most,
            published.get(one.mechanism),
            kinds,
            errors.get(one.mechanism),
            problem,
        )
        for one in results
    }
    return {
        "epsilon": epsilon,
        "draws": max((len(result.components) for result in results), default=0),
        "cells": {mechanism.text: cell for mechanism, cell in cells.items()},
        "skipped": {item.mechanism: item.reason for item in skipped},
        "answer": _headline(problem, epsilon, cells),
    }


def _headline(problem: Problem, epsilon: float, cells: Mapping[Mechanism, BoardCell]) -> Headline:
    """Return the answer at one epsilon; ties are within three standard errors of the best."""
    at = f"At epsilon {numeral(epsilon, 3)}"
    candidates = [
        (cell["recovery"], mechanism.label, cell["texts"])
        for mechanism, cell in cells.items()
        if cell["recovery"] is not None and cell["status"]["counts"]
    ]
    if not candidates:
        why = "no claim of these mechanisms holds"
        if any(cell["status"]["counts"] for cell in cells.values()):
            why = "there is nothing to recover: all directions keep as much as the exact directions"
        return {"recovery": f"{at} {why}.", "risk": None}
    # Sort features only by recovery, so that equal recoveries keep the order of the columns.
    (best, label, texts), *others = sorted(candidates, key=lambda one: -one[0][0])
    ties = [
        other
        for recovery, other, _ in others
        if best[0] - recovery[0] <= 3 * math.hypot(best[3], recovery[3])
    ]
    rivals = f"{len(ties)} others" if len(ties) > 2 else " and ".join(ties)
    tie = f", tied with {rivals}" if ties else ""
    return {
        "recovery": f"{at}, {label} keeps {texts['recovery']} of the structure{tie}.",
        "risk": texts["risk"],
    }


def frame_of(
    comparison: Comparison,
    draws: int | None = None,
    *,
    draw: int = 0,
    axes: str = "aligned",
    published: Mapping[Mechanism, Result] = MappingProxyType({}),
    errors: Mapping[Mechanism, float] = MappingProxyType({}),
) -> Frame:
    """Return the frame of a whole comparison, or of its first releases; see `frame`."""
    results: Sequence[Result] = comparison.results
    if draws is not None:
        results = [first_draws(result, draws) for result in results]
    return frame(
        comparison.prepared,
        comparison.problem,
        comparison.budget.epsilon,
        results,
        comparison.skipped,
        draw=draw,
        axes=axes,
        published=published,
        errors=errors,
    )


def facing(
    published: Mapping[Mechanism, Result], directions: dict[Mechanism, FloatArray]
) -> dict[Mechanism, Result]:
    """Orient published maps like their neighbours along epsilon, using only released directions.

    A direction and its opposite are equivalent, so a neighbour may have the opposite direction.

    Parameters
    ----------
    published : mapping
    directions : dict
        Directions of the neighbouring frames by mechanism; the new directions replace them.
    """
    results = dict(published)
    for mechanism, result in published.items():
        if not result.pictures:
            continue
        picture = result.pictures[0]
        axes = result.components[0][:, : picture.plan.axes]
        flips = (axes * directions.get(mechanism, axes)).sum(axis=0) < 0
        directions[mechanism] = np.where(flips, -axes, axes)
        pictures = (mirrored(picture, flips.tolist()), *result.pictures[1:])
        results[mechanism] = replace(result, pictures=pictures)
    return results
