"""What the board shows at one epsilon: a cell for each mechanism, in numbers and in words.

A frame is a comparison at one epsilon, boiled down to what the board shows. Every
frame uses the same named streams as `compare`, so the frame at the current epsilon
holds exactly the numbers that every other page shows, and a dot that moves between
frames is the same draw with more or less noise.
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
"""Eigenvalues sent for each mechanism and frame."""

# The metrics a frame needs; the rest would cost two more eigenvalue problems a draw.
FRAME_METRICS = ("recovery", "captured_share", "projection_distance")

_STEADY = steady(PICTURE_POINTS)
_NAMED_BARS = 5  # of a scree; more have no room for texts
_MOST_NAMED = 3  # labels that drown, by name
_WORDS = ((0.1, "mere chance"), (0.5, "partly"), (0.9, "usable"), (math.inf, "nearly all"))


def recovery_words(recovery: float) -> str:
    """Return a recovery in words: mere chance, partly, usable or nearly all."""
    return next(words for below, words in _WORDS if recovery < below)


class PictureRows:
    """The rows of a picture: the same in every frame."""

    def __init__(self, prepared: Measured, k: int) -> None:
        if isinstance(prepared, Prepared):
            self.rows, self.index = prepared.picture(PICTURE_POINTS)
        else:  # a plan has no rows, and a table that is read in batches shows none
            self.rows, self.index = np.empty((0, prepared.d)), np.empty(0, dtype=np.intp)
        # one for all frames: what moves on the board is the release
        self.true = prepared.reference.eigenvectors[:, :k]
        # No projection of a row is longer than the row: nothing is ever cut off.
        self.scale = float(np.linalg.norm(self.rows, axis=1).max(initial=0.0)) or 1.0

    def places(self, frame: FloatArray, axes: str) -> FloatArray:
        """Return where the rows lie in a frame of directions."""
        return coordinates(self.rows, frame, self.true, axes)

    def packed(self, frame: FloatArray, axes: str = "aligned") -> str:
        """Return those places as the script reads them."""
        # 16 bits a coordinate are far finer than a pixel, in a quarter of the bytes of a double
        drawn = self.places(frame, axes)
        return packed(np.round(drawn / self.scale * 32767), "<i2")


def _four(summary: Summary) -> tuple[float, float, float, float]:
    error = 0.0 if math.isnan(summary.se) else summary.se
    return short(summary.mean), short(summary.low), short(summary.high), short(error)


def short(value: float) -> float:
    """Return a number with as many digits as any screen can show."""
    return float(f"{value:.6g}")


def _spectrum(result: Result, most: int) -> Spectrum:
    released = result.eigenvalues is not None
    values = result.eigenvalues if result.eigenvalues is not None else result.captured_each
    # the largest come first, and all others are noise on any screen
    kept = values[:, :most]
    # the range of all draws: one of them is what a release is
    lines = np.stack([np.median(kept, axis=0), kept.min(axis=0), kept.max(axis=0)])
    return {
        "released": released,
        "count": int(kept.shape[1]),
        "text": numeral(float(lines[0, 0]), 3),
        "lines": packed(lines, "<f4"),
    }


def said_of(recovery: float) -> tuple[str, str]:
    """Return a recovery in per cent, below 0 where chance keeps more, and in words."""
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
) -> BoardCell:
    distances, status, edges = result.metrics["projection_distance"], result.status, result.edges
    middle, spread = float(np.median(distances)), summarise(distances)
    # Without one where k = d: every subspace is then the whole space.
    drawn = result.metrics.get("recovery")
    recovery = None if drawn is None else summarise(drawn)
    text, words = ("", "") if recovery is None else said_of(recovery.mean)
    aim = result.hint or ""
    # a hint is "words: advice", and beside the recovery the advice is enough
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
        "published": None if published is None else _published(published, kinds, error),
        "texts": {
            "recovery": text,
            "words": words,
            "said": "; ".join([words, *best]),
            "range": []
            if drawn is None
            else [said_of(float(end))[0] for end in (drawn.min(), drawn.max())],
            "before": "" if before is None else f"as released {said_of(float(before.mean()))[0]}",
            "aim": aim,
            "risk": guesses_words(both_worlds(result.spent)),
            "distance": decimals(middle, 2),
            "claim": _claim(result),
            "found": [
                *([] if recovery is None else _found(result, recovery, decimals(middle, 2))),
                *([] if published is None else _fidelity(published)),
            ],
        },
    }


def _published(result: Result, kinds: tuple[str, ...], error: float | None) -> Published | None:
    """Return the points of a published picture and what is said of it: nothing private is read."""
    if not result.pictures:
        return None
    picture = result.pictures[0]
    shown, said = points(picture, _STEADY), []
    codes = None
    if picture.plan.kinds > 1:
        # a byte a point: 255 is a point without a label
        codes = packed(np.where(shown.colours < 0, 255, np.minimum(shown.colours, 254)), "u1")
        hidden = [f"“{kinds[kind]}”" for kind in drowned(picture)]
        if len(hidden) == len(kinds):
            said.append("no label can be told apart")
        elif hidden:
            several = len(hidden) > _MOST_NAMED
            names = f"{len(hidden)} labels" if several else " and ".join(hidden)
            said.append(f"{names} cannot be told apart")
    elif len(kinds) > 1:
        said.append("labels would drown")
    if picture.disk:
        said.append("shows directions, not lengths")
    if error is not None:
        said.append(f"noise: shape off by at most {percent(min(error, 1.0))}")
    return {
        "places": packed(np.round(shown.places / picture.frame * 32767), "<i2"),
        "reach": [short(float(value)) for value in picture.frame],
        "codes": codes,
        "said": said,
        "scree": _scree(picture.scree),
    }


def _scree(scree: Scree | None) -> tuple[str, list[str]]:
    """Return the shares of the variance that are published; empty where noise hides them."""
    if scree is None or not scree.clear:
        return "", []
    # noise may carry a share beyond all there is
    pairs = np.minimum(np.stack([scree.shares, TWO_SIDED * scree.errors], axis=1), 1.0)
    named = scree.shares if len(scree.shares) <= _NAMED_BARS else scree.shares[:1]
    texts = [percent(min(float(share), 1.0)) for share in named]
    return packed(np.round(pairs * 32767), "<i2"), texts


def _fidelity(result: Result) -> list[Line]:
    """Return how good a published picture is: measured on the rows, so for the working view."""
    found = {key: float(values.mean()) for key, values in result.metrics.items()}
    if "fidelity" not in found:
        return []
    text = f"{percent(found['fidelity'])} like the true points"
    if "class_picture" in found:
        text += f", {percent(found['class_picture'])} of labels that can be told"
    return [("Published", f"{text}; never printed")]


def _claim(result: Result) -> list[Line]:
    """Return what is promised and spent: name and text."""
    claimed, spent = result.claimed, result.spent
    cost = "no ε is known"
    if spent is not None:
        cost = spent.cost.words(3, "ε") + _delta(spent.delta)
    promised = "nothing" if claimed is None else _budget(claimed.epsilon, claimed.delta)
    return [("Claims", promised), ("Spends", cost)]


def _found(result: Result, recovery: Summary, distance: str) -> list[Line]:
    """Return what the draws show: name and text."""
    (text, words), k = said_of(recovery.mean), result.components.shape[2]
    d = result.components.shape[1]
    low, high = (said_of(value)[0] for value in (recovery.low, recovery.high))
    share = percent(float(result.metrics["captured_share"].mean()))
    angles = np.quantile(np.degrees(result.angles), [0.5, 0.025, 0.975], axis=0).T
    turned = [
        f"{decimals(median, 0)}° ({decimals(least, 0)} to {decimals(most, 0)})"
        for median, least, most in angles
    ]
    found = [
        (
            "Recovers",
            f"{text} ({words}); the central 95 % of the draws from {low} to {high}; {share} of "
            f"the variance that the best {k} explain",
        ),
        (
            "Distance",
            f"median {distance}; 0 is the true space, {decimals(chance_distance(d, k), 2)} chance, "
            f"{decimals(farthest_distance(d, k), 2)} the farthest",
        ),
        ("Principal angles", ", ".join(turned)),
    ]
    if result.before is not None and "recovery" in result.before:
        found.append(("As released", _before(result, text)))
    if result.edges is not None and result.threshold is not None:
        edge, threshold = numeral(result.edges[1]), numeral(result.threshold)
        found.append(("Noise", f"edge {edge}, threshold {threshold}"))
    return found


def _before(result: Result, after: str) -> str:
    """Return what the same releases were before post-processing, at the same epsilon."""
    assert result.before is not None
    was = said_of(float(result.before["recovery"].mean()))[0]
    said = f"recovers {was}, and {after} after post-processing: the same ε pays for both"
    errors = [metrics.get("noise_frobenius") for metrics in (result.before, result.metrics)]
    if errors[0] is not None and errors[1] is not None:
        share = float(errors[1].mean() / errors[0].mean()) if errors[0].any() else 1.0
        said += f"; what is left of the matrix's error: {percent(share)}"
    return f"{said}. {WHY_THE_BASIS}"


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
    """Return what the board shows at one epsilon.

    Parameters
    ----------
    prepared : Measured
    problem : Problem
    epsilon : float
    results : sequence of Result
        With the metrics `FRAME_METRICS` at least.
    skipped : sequence of Skipped
    draw : int
        Whose picture is shown, from 0.
    axes : {"aligned", "raw"}
        As in `dpviz.report.tables.projection.coordinates`.
    most : int
        Eigenvalues of each mechanism.
    published : mapping
        By mechanism, what it does where a picture of the rows shares its budget
        (`dpviz.simulation.compare.pictured`).
    errors : mapping
        By mechanism, how far noise may put that picture off, where it is to be said
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
    """Return the answer at one epsilon; who is within three standard errors of the best is tied."""
    at = f"At epsilon {numeral(epsilon, 3)}"
    counted = [
        (cell["recovery"], mechanism.label, cell["texts"])
        for mechanism, cell in cells.items()
        if cell["recovery"] is not None and cell["status"]["counts"]
    ]
    if not counted:
        why = "no claim of these mechanisms holds"
        if any(cell["status"]["counts"] for cell in cells.values()):
            why = "there is nothing to recover: any directions keep as much as the exact ones"
        return {"recovery": f"{at} {why}.", "risk": None}
    # by recovery alone, and equal ones in the order of the columns
    (best, label, texts), *others = sorted(counted, key=lambda one: -one[0][0])
    tied = [
        other
        for recovery, other, _ in others
        if best[0] - recovery[0] <= 3 * math.hypot(best[3], recovery[3])
    ]
    rivals = f"{len(tied)} others" if len(tied) > 2 else " and ".join(tied)
    tie = f", tied with {rivals}" if tied else ""
    return {
        "recovery": f"{at}, {label} keeps {texts['recovery']} of the structure{tie}.",
        "risk": guess_sentence(texts["risk"], problem.relation, problem.unit),
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
    """Return the frame of a whole comparison, or of its first draws; see `frame`."""
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
    """Turn published pictures to point as their neighbours do: released directions alone decide.

    A direction and its opposite are one, and a neighbour may have chosen the other.

    Parameters
    ----------
    published : mapping
    directions : dict
        Of the neighbours' pictures by mechanism; these take their place.
    """
    found = dict(published)
    for mechanism, result in published.items():
        if not result.pictures:
            continue
        picture = result.pictures[0]
        axes = result.components[0][:, : picture.plan.axes]
        turned = (axes * directions.get(mechanism, axes)).sum(axis=0) < 0
        directions[mechanism] = np.where(turned, -axes, axes)
        pictures = (mirrored(picture, turned.tolist()), *result.pictures[1:])
        found[mechanism] = replace(result, pictures=pictures)
    return found
