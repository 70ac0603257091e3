"""What the board draws, as JSON: the truth once, and one frame for each epsilon.

A frame is a comparison at one epsilon, boiled down to what the board shows. Every
frame uses the same named streams as `compare`, so the frame at the current epsilon
holds exactly the numbers that every other page shows, and a dot that moves between
frames is the same draw with more or less noise.

`dpviz.report.tables.payload` says what a payload holds. It is assembled once, by `payload`, from
frames.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from dpviz.auditing.attack import both_worlds
from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import in_threads
from dpviz.core.metrics import (
    FLAT,
    Summary,
    chance_distance,
    chance_share,
    farthest_distance,
    recovery_of,
    summarise,
)
from dpviz.core.number_text import decimals, numeral, of_hundred, percent
from dpviz.core.problem import EPSILON_RANGE
from dpviz.core.release import Status, Verdict
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import MOST_SHARED, Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variants
from dpviz.preparation.account import is_numeric
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured, reference_variances
from dpviz.report.sentences.phrases import risk_of
from dpviz.report.tables.payload import (
    BoardCell,
    BoardColumn,
    BoardLimits,
    ClaimFacts,
    Frame,
    Headline,
    Heights,
    Line,
    Payload,
    Published,
    Spectrum,
    Told,
    Truth,
)
from dpviz.report.tables.projection import (
    LABEL_COLOURS,
    LABEL_SHAPES,
    RAMP,
    coordinates,
    labels_of,
    packed,
)
from dpviz.report.tables.ticks import decades, round_ticks
from dpviz.simulation.cells import Skipped, cell_at, plan
from dpviz.simulation.compare import WHY_THE_BASIS, Comparison, Result, first_draws, run_cell
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import Predicted, about
from dpviz.simulation.picture import quality
from dpviz.simulation.picture.account import SHARE
from dpviz.simulation.picture.counting import Picture
from dpviz.simulation.picture.scree import TWO_SIDED, Scree
from dpviz.simulation.picture.shown import drowned, points, steady
from dpviz.simulation.simulate import Cell
from dpviz.theory.predict import predict

VERSION = 4
PICTURE_POINTS = 300
FIRST_COMPONENTS = 15
"""Components of a spectrum that are shown at first."""

MOST_COMPONENTS = 64
"""Eigenvalues sent for each mechanism and frame."""

# The metrics a frame needs; the rest would cost two more eigenvalue problems a draw.
FRAME_METRICS = ("recovery", "captured_share", "projection_distance")

_STEADY = steady(PICTURE_POINTS)
_NAMED_BARS = 5  # of a scree; more have no room for texts
_MOST_NAMED = 3  # labels that drown, by name

PATH_DRAWS = 20
"""Draws of a frame that is passed by; the one that is let go gets every draw."""

PLAY = (0.05, 10.0)
"""Range of epsilon that the board is scrubbed and played over."""

FARTHEST = (0.01, 100.0)
"""How far that range is carried on towards an epsilon outside it."""

ORDERED_AT = 1.0
"""Epsilon at which the columns are put in order, so that the order holds still."""

_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)

FAR = 2.0
"""A mechanism that is not on the board is named where it needs so many times less epsilon."""

GOAL = 0.9
"""The recovery that a line on the board is drawn at, and the least epsilon is said for."""

_GOOD = (Verdict.HOLDS, Verdict.LOOSE)

# Renard's series R10: ten round steps a decade.
_STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0)
_WORDS = ((0.1, "mere chance"), (0.5, "partly"), (0.9, "usable"), (math.inf, "nearly all"))

# How far above and below the truth an eigenvalue axis reaches, in largest eigenvalues: what is
# beyond is marked as beyond, and the truth keeps its place whatever epsilon is.
_ABOVE, _BELOW = 6.0, 2.0
_MOST_MARKS = 20  # the renderer leaves out texts that would touch
_LOUD = 1e3  # the same where the axes are made for what is drawn

LINES = (
    "Noise alone reaches the edge; a lone true variance is all but lost below the threshold and "
    "found ever better above it."
)
"""What the two lines of a spectrum mean; see `dpviz.sampling.limits.FreeNoise.lone_overlap`."""


def recovery_words(recovery: float) -> str:
    """Return a recovery in words: mere chance, partly, usable or nearly all."""
    return next(words for below, words in _WORDS if recovery < below)


def frame_epsilons(count: int | None = None, *also: float) -> list[float]:
    """Return the epsilons of a board: round steps over `PLAY`, ascending.

    Parameters
    ----------
    count : int, optional
        At most this many of the round steps, evenly spread, both ends kept.
    *also : float
        Epsilons that must be there: the current one. Steps are carried on towards one that lies
        outside `PLAY`, as far as `FARTHEST`.
    """
    low, high = PLAY
    low = max(min(low, *also), min(low, FARTHEST[0])) if also else low
    high = min(max(high, *also), max(high, FARTHEST[1])) if also else high
    decades = range(math.floor(math.log10(FARTHEST[0])), math.ceil(math.log10(FARTHEST[1])) + 1)
    steps = [float(f"{step * 10.0**decade:.6g}") for decade in decades for step in _STEPS]
    steps = [step for step in steps if low <= step <= high]
    if count is not None and count < len(steps):
        places = np.linspace(0, len(steps) - 1, max(count, 2)).round().astype(int)
        steps = [steps[place] for place in places]
    return sorted({*steps, *also})


def outwards(epsilons: Sequence[float], now: float) -> list[float]:
    """Return the epsilons in the order to compute them: the current one first, then outwards."""
    return sorted(epsilons, key=lambda epsilon: (abs(math.log(epsilon / now)), epsilon))


class _Picture:
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
        return coordinates(self.rows, frame, self.true, axes)

    def packed(self, frame: FloatArray, axes: str = "aligned") -> str:
        # 16 bits a coordinate are far finer than a pixel, in a quarter of the bytes of a double
        drawn = self.places(frame, axes)
        return packed(np.round(drawn / self.scale * 32767), "<i2")


def _four(summary: Summary) -> tuple[float, float, float, float]:
    error = 0.0 if math.isnan(summary.se) else summary.se
    return _short(summary.mean), _short(summary.low), _short(summary.high), _short(error)


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _spectrum(result: Result, most: int) -> Spectrum:
    released = result.eigenvalues is not None
    values = result.eigenvalues if result.eigenvalues is not None else result.captured_each
    # the largest come first, and all others are noise on any screen
    kept = values[:, :most]
    lines = np.stack([np.median(kept, axis=0), kept.min(axis=0), kept.max(axis=0)])
    return {
        "released": released,
        "count": int(kept.shape[1]),
        "text": numeral(float(lines[0, 0]), 3),
        "lines": packed(lines, "<f4"),
    }


def _said(recovery: float) -> tuple[str, str]:
    """Return a recovery as it is written, in per cent and in words; below chance is nothing."""
    return percent(max(recovery, 0.0)), recovery_words(recovery)


def _budget(epsilon: float, delta: float) -> str:
    return f"ε {numeral(epsilon, 3)}" + (f", δ {numeral(delta)}" if delta else "")


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
    picture: _Picture,
    draw: int,
    axes: str,
    most: int,
    published: Result | None,
    kinds: tuple[str, ...],
    worth: bool,
) -> BoardCell:
    distances, status, edges = result.metrics["projection_distance"], result.status, result.edges
    middle, spread = float(np.median(distances)), summarise(distances)
    worlds = both_worlds(result.spent)
    # Without one where k = d: every subspace is then the whole space.
    drawn = result.metrics.get("recovery")
    recovery = None if drawn is None else summarise(drawn)
    text, words = ("", "") if recovery is None else _said(recovery.mean)
    aim = result.hint or ""
    best = [aim.partition(": ")[2]] if aim else []
    before = (result.before or {}).get("recovery")
    return {
        "status": _standing(status),
        "recovery": None if recovery is None else _four(recovery),
        "before": None if before is None else _short(float(before.mean())),
        "distances": [float(f"{value:.4g}") for value in distances],
        "distance": (_short(middle), _short(spread.low), _short(spread.high)),
        "spectrum": _spectrum(result, most),
        "edges": None if edges is None else (_short(edges[0]), _short(edges[1])),
        "threshold": None if result.threshold is None else _short(result.threshold),
        "picture": picture.packed(result.components[draw], axes),
        "published": None if published is None else _published(published, kinds, worth),
        "texts": {
            "recovery": text,
            "words": words,
            "said": "; ".join([f"{words}, not counted" if status.verdict.fails else words, *best]),
            "range": []
            if drawn is None
            else [_said(float(end))[0] for end in (drawn.min(), drawn.max())],
            "before": "" if before is None else f"as released {_said(float(before.mean()))[0]}",
            "aim": aim,
            "risk": (of_hundred(worlds.out), of_hundred(worlds.within)),
            "distance": decimals(middle, 2),
            "claim": _claim(result),
            "found": [
                *([] if recovery is None else _found(result, recovery, decimals(middle, 2))),
                *([] if published is None else _fidelity(published)),
            ],
        },
    }


def _published(result: Result, kinds: tuple[str, ...], worth: bool) -> Published | None:
    """Return the points of a published picture and what is said of it: nothing private is read."""
    if not result.pictures:
        return None
    picture = result.pictures[0]
    shown, said = points(picture, _STEADY), []
    codes = None
    if picture.plan.kinds > 1:
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
    if worth:
        said += worth_words(picture)
    return {
        "places": packed(np.round(shown.places / picture.frame * 32767), "<i2"),
        "reach": [_short(float(value)) for value in picture.frame],
        "codes": codes,
        "said": said,
        "scree": _scree(picture.scree),
    }


def _scree(scree: Scree | None) -> tuple[str, list[str]]:
    """Return the shares of the variance that are published; empty where noise hides them."""
    if scree is None or not scree.clear:
        return "", []
    pairs = np.minimum(np.stack([scree.shares, TWO_SIDED * scree.errors], axis=1), 1.0)
    named = scree.shares if len(scree.shares) <= _NAMED_BARS else scree.shares[:1]
    texts = [percent(min(float(share), 1.0)) for share in named]
    return packed(np.round(pairs * 32767), "<i2"), texts


def worth_words(picture: Picture) -> list[str]:
    """Return how good a published picture is by simulation from its numbers, in short lines."""
    found = quality.expected(picture, generator(0, "expected", picture.plan.cells))
    if found is None:
        return []
    low, high = (percent(min(end, 1.0)) for end in found.error)
    lines = [f"expected: shape off by {low if low == high else f'{low} to {high}'}"]
    if found.right is not None:
        low, high = (percent(end) for end in found.right)
        lines.append(f"labels right {low if low == high else f'{low} to {high}'}")
    return lines


def _fidelity(result: Result) -> list[Line]:
    """Return how good a published picture is: measured on the rows, so for the working view."""
    found = {key: float(values.mean()) for key, values in result.metrics.items()}
    if "fidelity" not in found:
        return []
    text = f"{percent(found['fidelity'])} like the true points"
    if "class_picture" in found:
        text += f", {percent(found['class_picture'])} of labels that can be told"
    return [("Published", f"{text}; never printed")]


def pictured(comparison: Comparison, prepared: Measured) -> dict[Mechanism, Result]:
    """Return what each mechanism publishes where a picture shares its budget: one draw of it."""
    if not isinstance(prepared, Prepared):
        return {}
    settings = comparison.settings
    if settings.picture:
        return {result.mechanism: result for result in comparison.results}
    paid = math.fsum(settings.paid_shares.values())
    # of what a preparation leaves, and the directions keep what they need
    share = min(SHARE * (1 - paid), MOST_SHARED - paid)
    if share <= 0:
        return {}
    settings, found = replace(settings, picture=share), {}
    for result in comparison.results:
        if not result.status.verdict.counts:
            continue
        # seconds at each of some thirty epsilons: who asks for a picture by the settings waits
        if is_numeric(result.mechanism, comparison.problem, comparison.budget):
            continue
        cell = cell_at(prepared, settings, result.mechanism, range(1))
        if isinstance(cell, Cell):
            found[result.mechanism] = run_cell(cell, prepared, ("fidelity", "class_picture"))
    return found


def _claim(result: Result) -> list[Line]:
    """Return what is promised and spent: name and text."""
    claimed, spent = result.claimed, result.spent
    paid = "no ε is known"
    if spent is not None:
        paid = ("" if spent.exact else "at most ") + _budget(spent.epsilon, spent.delta)
    promised = "nothing" if claimed is None else _budget(claimed.epsilon, claimed.delta)
    return [("Claims", promised), ("Spends", paid)]


def _found(result: Result, recovery: Summary, distance: str) -> list[Line]:
    """Return what the draws show: name and text."""
    (text, words), k = _said(recovery.mean), result.components.shape[2]
    d = result.components.shape[1]
    low, high = (_said(value)[0] for value in (recovery.low, recovery.high))
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
    was = _said(float(result.before["recovery"].mean()))[0]
    said = f"recovers {was}, and {after} after post-processing: the same ε pays for both"
    errors = [metrics.get("noise_frobenius") for metrics in (result.before, result.metrics)]
    if errors[0] is not None and errors[1] is not None:
        share = float(errors[1].mean() / errors[0].mean()) if errors[0].any() else 1.0
        said += f"; what is left of the matrix's error: {percent(share)}"
    return f"{said}. {WHY_THE_BASIS}"


def frame(
    prepared: Measured,
    k: int,
    epsilon: float,
    results: Sequence[Result],
    skipped: Sequence[Skipped] = (),
    *,
    draw: int = 0,
    axes: str = "aligned",
    most: int = MOST_COMPONENTS,
    published: Mapping[Mechanism, Result] = MappingProxyType({}),
    worth: bool = False,
) -> Frame:
    """Return what the board shows at one epsilon.

    Parameters
    ----------
    prepared : Measured
    k : int
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
        By mechanism, what it does where a picture of the rows shares its budget.
    worth : bool
        Whether what it is worth is said of each picture: a simulation, a tenth of a second each.

    Returns
    -------
    Frame
    """
    picture = _Picture(prepared, k)
    kinds = () if prepared.labels is None else prepared.labels.kinds
    cells = {
        one.mechanism: _cell(
            one, picture, draw, axes, most, published.get(one.mechanism), kinds, worth
        )
        for one in results
    }
    return {
        "epsilon": epsilon,
        "draws": max((len(result.components) for result in results), default=0),
        "cells": {mechanism.text: cell for mechanism, cell in cells.items()},
        "skipped": {item.mechanism: item.reason for item in skipped},
        "answer": _headline(epsilon, cells),
    }


def _headline(epsilon: float, cells: Mapping[Mechanism, BoardCell]) -> Headline:
    """Return the answer at one epsilon; who is within three standard errors of the best is tied."""
    at = f"At ε {numeral(epsilon, 3)}"
    counted = [
        (cell["recovery"], mechanism.label, cell["texts"])
        for mechanism, cell in cells.items()
        if cell["recovery"] is not None and cell["status"]["counts"]
    ]
    if not counted:
        return {"recovery": f"{at} no claim of these mechanisms holds.", "risk": None}
    (best, label, texts), *others = sorted(counted, key=lambda one: -one[0][0])
    tied = [
        other
        for recovery, other, _ in others
        if best[0] - recovery[0] <= 3 * math.hypot(best[3], recovery[3])
    ]
    rivals = f"{len(tied)} others" if len(tied) > 2 else " and ".join(tied)
    tie = f", tied with {rivals}" if tied else ""
    return {
        "recovery": f"{at}, {label} recovers {texts['recovery']}{tie}",
        "risk": risk_of(label, texts["risk"], epsilon),
    }


def frame_of(
    comparison: Comparison,
    prepared: Prepared,
    draws: int | None = None,
    *,
    draw: int = 0,
    axes: str = "aligned",
    worth: bool = False,
) -> Frame:
    """Return the frame of a whole comparison, or of its first draws; see `frame`."""
    results: Sequence[Result] = comparison.results
    if draws is not None:
        results = [first_draws(result, draws) for result in results]
    return frame(
        prepared,
        comparison.problem.k,
        comparison.budget.epsilon,
        results,
        comparison.skipped,
        draw=draw,
        axes=axes,
        published=pictured(comparison, prepared),
        worth=worth,
    )


def compute(
    prepared: Prepared,
    settings: Settings,
    epsilon: float,
    *,
    workers: int = 1,
) -> Frame:
    """Return the frame at an epsilon; parameters are those of `compared`."""
    return compute_each(prepared, settings, [epsilon], workers=workers)[0]


def compute_each(
    prepared: Prepared,
    settings: Settings,
    epsilons: Sequence[float],
    *,
    workers: int = 1,
) -> list[Frame]:
    """Return the frames at several epsilons; parameters are those of `compared`."""
    found = compared(prepared, settings, epsilons, workers=workers)
    return [frame_of(comparison, prepared) for comparison in found]


def compared(
    prepared: Prepared,
    settings: Settings,
    epsilons: Sequence[float],
    *,
    workers: int = 1,
) -> list[Comparison]:
    """Return the mechanisms side by side at several epsilons, with nothing but what frames show.

    Threads share the mechanisms of all epsilons, so that none waits for a slow one at each.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
        All but epsilon. What cannot run is skipped, named or not.
    epsilons : sequence of float
    workers : int
        Threads; LAPACK lets others run while it works, and the numbers do not change.
    """
    plans = [
        plan(prepared, replace(settings, epsilon=epsilon), strict=False) for epsilon in epsilons
    ]
    variants: dict[Mechanism, list[Cell]] = {}
    for chosen in plans:
        for cell in chosen.cells:
            variants.setdefault(cell.mechanism, []).append(cell)

    def one(cells: list[Cell]) -> list[Result]:
        return [run_cell(cell, prepared, FRAME_METRICS) for cell in cells]

    # Samplers take the longest: with them last one thread would end alone.
    shared = sorted(
        variants.values(), key=lambda cells: cells[0].mechanism.info.release == "matrix"
    )
    with one_blas_thread():
        parts = in_threads(one, shared, workers)
    found = {
        cell: result
        for cells, results in zip(shared, parts, strict=True)
        for cell, result in zip(cells, results, strict=True)
    }
    return [Comparison(chosen, tuple(found[cell] for cell in chosen.cells)) for chosen in plans]


def drawn(
    prepared: Prepared,
    settings: Settings,
    epsilons: Sequence[float],
    redraws: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
    *,
    draw: int | None = 0,
    also: Callable[[Comparison, int], None] | None = None,
) -> tuple[list[Frame], dict[str, list[str]] | None]:
    """Return a frame for each epsilon, and the pictures of the first draws at the settings' own.

    Each epsilon is drawn once.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    epsilons : sequence of float
    redraws : int
        How many draws to picture; 0 for None in place of pictures.
    progress : callable, optional
        Told (done, total, what comes next) before each frame.
    draw : int or None
        Which draw the frames picture; None for the typical one, see `typical_draw`.
    also : callable, optional
        Given each epsilon's comparison, and the draw that its frame pictures.
    """
    seen, pictures = [], None
    own = [settings.epsilon] if redraws and settings.epsilon not in epsilons else []
    for done, epsilon in enumerate([*epsilons, *own]):
        if progress is not None:
            progress(done, len(epsilons) + len(own), f"epsilon {numeral(epsilon, 6)}")
        (comparison,) = compared(prepared, settings, [epsilon])
        if epsilon in epsilons:
            seen.append(comparison)
        if redraws and epsilon == settings.epsilon:
            pictures = draws(comparison, prepared, redraws)
    chosen = typical_draw(seen) if draw is None else draw
    if also is not None:
        for comparison in seen:
            also(comparison, chosen)
    return [frame_of(comparison, prepared, draw=chosen) for comparison in seen], pictures


def typical_draw(seen: Sequence[Comparison]) -> int:
    """Return the draw, from 0, that stays nearest to the mean recovery of the first mechanism.

    Over all comparisons, which differ in epsilon alone: one draw serves them all, for its noise is
    only scaled, and a single one may cross a value at a tenth of another's epsilon.
    """
    found = [one.results[0].metrics["recovery"] for one in seen if one.results]
    if not found:
        return 0
    drawn = np.stack(found)
    return int(np.abs(drawn - drawn.mean(axis=1, keepdims=True)).max(axis=0).argmin())


def draws(comparison: Comparison, prepared: Prepared, most: int = 20) -> dict[str, list[str]]:
    """Return the picture of each of the first draws by mechanism, packed as in a frame."""
    picture = _Picture(prepared, comparison.problem.k)
    return {
        result.mechanism.text: [picture.packed(space) for space in result.components[:most]]
        for result in comparison.results
    }


def ordered(mechanisms: Sequence[Mechanism], at: Frame) -> list[Mechanism]:
    """Return mechanisms in the order of the board.

    Claims that hold come first, by recovery; then those that cannot run at this epsilon, those
    that are approximate, not proved or false, and last the baselines.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
    at : Frame
        The frame that decides, at `ORDERED_AT`.
    """

    def place(mechanism: Mechanism) -> tuple[int, float, int]:
        cell = at["cells"].get(mechanism.text)
        if cell is None:
            return 1, 0.0, mechanism.info.slot
        group = _GROUPS.get(cell["status"]["verdict"], _LAST_GROUP)
        recovery = cell["recovery"]
        return group, 0.0 if recovery is None else -recovery[0], mechanism.info.slot

    return sorted(mechanisms, key=place)


_GROUPS = {
    str(Verdict.HOLDS): 0,
    str(Verdict.LOOSE): 0,
    str(Verdict.APPROXIMATE): 2,
    str(Verdict.UNPROVEN): 3,
    str(Verdict.BASELINE): 5,
}
_LAST_GROUP = 4


def predicted(
    prepared: Measured, settings: Settings, epsilons: Sequence[float]
) -> dict[str, list[Told | None]]:
    """Return the recovery expected without a draw, at each epsilon, of each mechanism with a law.

    An entry is the recovery, its text and its words; None where the mechanism cannot run.
    """
    k = settings.k
    chance, found = chance_share(prepared.reference, k), {}
    # nothing can be recovered, or a preparation that is bought has no law to predict from
    if 1 - chance < FLAT or prepared.raw is not None:
        return {}
    for mechanism in parse_variants(settings.mechanisms):
        line: list[Told | None] = []
        for epsilon in epsilons:
            here = replace(settings, epsilon=epsilon)
            problem, budget = prepared.problem(here), prepared.budget(here)
            if mechanism.why_not(problem, budget, rows=prepared.serves(mechanism)) is not None:
                line.append(None)
                continue
            noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
            if noise is None:
                line.append(None)
                continue
            expected = predict(prepared.moment.eigenvalues, k, noise, reference_variances(prepared))
            value = float(recovery_of(expected.captured_share, chance))
            line.append((_short(value), *_said(value)))
        if any(value is not None for value in line):
            found[mechanism.text] = line
    return found


def least_epsilons(
    prepared: Measured, settings: Settings, wanted: float = GOAL
) -> dict[str, dict[str, Any] | None]:
    """Return about the least epsilon that recovers a share: on the board, and off it if far less.

    By prediction where the noise has a law, else by a few draws. Each answer is judged at itself:
    a mechanism counts only if its claim holds at the epsilon found. Nothing is said behind a paid
    preparation, which every look would have to repeat.

    Returns
    -------
    dict
        ``approximate`` (any guarantee) and ``pure`` (no delta) of the settings' mechanisms, and
        ``elsewhere``, the least of all others where it is at most 1/`FAR` of those; each with key,
        label and epsilon, or None.
    """
    chance = chance_share(prepared.reference, settings.k)
    if 1 - chance < FLAT or prepared.raw is not None:
        return {"approximate": None, "pure": None, "elsewhere": None}
    goal = Goal.of_recovery(wanted, chance)

    def answers(mechanisms: Iterable[Mechanism], up_to: float = math.inf) -> list[Predicted]:
        found = [about(prepared, settings, one, goal, up_to=up_to) for one in mechanisms]
        held = [one for one in found if one.status and one.status.verdict in _GOOD]
        return sorted(held, key=Predicted.order)

    def first(found: Sequence[Predicted], kinds: tuple[str, ...]) -> dict[str, Any] | None:
        for one in found:
            if one.mechanism.info.guarantee in kinds:
                named = {"key": one.mechanism.text, "label": one.mechanism.label}
                return named | {"epsilon": one.value}
        return None

    chosen = parse_variants(settings.mechanisms)
    here = answers(chosen)
    claiming = (cls() for cls in all_mechanisms().values() if cls.info.guarantee != "none")
    others = [mechanism for mechanism in claiming if mechanism not in chosen]
    least = here[0].value if here else None
    # others are asked only up to where they would be worth naming: most answer at one look
    there = answers(others, EPSILON_RANGE[1] if least is None else least / FAR)
    every = ("pure", "approximate")
    return {
        "approximate": first(here, every),
        "pure": first(here, ("pure",)),
        "elsewhere": first(there, every),
    }


def payload(
    prepared: Measured,
    settings: Settings,
    shown: Sequence[BoardColumn],
    epsilons: Sequence[float],
    frames: Sequence[Frame],
    *,
    expected: Mapping[str, list[Told | None]] | None = None,
    least: str | None = None,
    steps: int | None = None,
    caution: str | None = None,
) -> Payload:
    """Return all that the board needs of one table and setting.

    Parameters
    ----------
    prepared : Measured
        Where its rows are not at hand, there are no pictures.
    settings : Settings
        With the current epsilon.
    shown : sequence of BoardColumn
        In order: those of `columns`, with colours.
    epsilons : sequence of float
        Every epsilon planned.
    frames : sequence of Frame
        Those at hand; others may be added to ``frames`` later.
    expected : mapping, optional
        `predicted` at ``epsilons``.
    least : str, optional
        `least_epsilons` in words.
    steps : int, optional
        How many epsilons there would be if draws were cheap.
    caution : str, optional
        What the answer must not be read without, in a few words.
    """
    k, d = settings.k, prepared.d
    picture = _Picture(prepared, k)
    return {
        "version": VERSION,
        "table": {
            "name": prepared.name,
            "n": prepared.n,
            "d": d,
            "k": k,
            "delta": prepared.budget(settings).delta,
            "relation": settings.relation,
            "draws": settings.trials,
        },
        "now": settings.epsilon,
        "truth": _truth(prepared, picture, k),
        "labels": labels_of(prepared, picture.index),
        "limits": _limits(prepared, picture, k),
        "palette": {
            "labels": list(LABEL_COLOURS),
            "shapes": list(LABEL_SHAPES),
            "ramp": list(RAMP),
        },
        "levels": [
            {"share": share, "text": percent(share) if share < 1 else "", "dotted": share == GOAL}
            for share in (0.0, 0.5, GOAL, 1.0)
        ],
        "chance": {
            "share": percent(chance_share(prepared.reference, k)),
            "distance": chance_distance(d, k),
            "text": decimals(chance_distance(d, k), 2),
        },
        "ribbon": prepared.table.ribbon if isinstance(prepared, Prepared) else None,
        "columns": list(shown),
        "epsilons": list(epsilons),
        "texts": [numeral(epsilon, 3) for epsilon in epsilons],
        "ticks": [
            (tick, numeral(tick), math.log10(tick).is_integer())
            for tick in _TICKS
            if epsilons[0] <= tick <= epsilons[-1]
        ],
        "beyond": (_beyond(epsilons[0] / 2), _beyond(2 * epsilons[-1])),
        "steps": steps,
        "caution": caution,
        "predicted": dict(expected or {}),
        "least": least,
        "frames": list(frames),
    }


def publishable(payload: Payload) -> Payload:
    """Return a payload with what may be published of its table, and nothing else.

    What is kept is listed here, part by part: the setting, what follows from it without the rows,
    and published pictures. Names of labels stay where they are public.

    Parameters
    ----------
    payload : Payload
    """
    labels, limits, chance = payload["labels"], payload["limits"], payload["chance"]
    kinds = labels["kinds"] if labels["public"] else None
    name = labels["name"] if labels["public"] else None
    axis = _heights(1, 0.0, 1.0, None)
    # Whose column is first follows from the recovered shares: by name it says nothing.
    columns = sorted(payload["columns"], key=lambda column: column["label"])
    return {
        "version": VERSION,
        "table": payload["table"],
        "now": payload["now"],
        "truth": {"eigenvalues": [], "picture": "", "heights": None, "text": ""},
        "labels": {
            "name": name,
            "kinds": kinds,
            "codes": None,
            "ends": None,
            "public": labels["public"],
        },
        "limits": {
            "picture": (1.0, 1.0),
            "scale": 1.0,
            "spectrum": {"first": axis, "all": axis},
            "distance": limits["distance"],
            "lines": limits["lines"],
        },
        "palette": payload["palette"],
        "levels": payload["levels"],
        "chance": {"share": "", "distance": chance["distance"], "text": chance["text"]},
        "ribbon": payload["ribbon"],
        "columns": columns,
        "epsilons": payload["epsilons"],
        "texts": payload["texts"],
        "ticks": payload["ticks"],
        "beyond": payload["beyond"],
        "steps": payload["steps"],
        "caution": payload["caution"],
        "predicted": {},
        "least": None,
        "frames": [publishable_frame(frame) for frame in payload["frames"]],
    }


def publishable_frame(frame: Frame) -> Frame:
    """Return a frame with what may be published of it; see `publishable`."""
    cells = {key: _publishable_cell(cell) for key, cell in frame["cells"].items()}
    return {
        "epsilon": frame["epsilon"],
        "draws": frame["draws"],
        "cells": {key: cells[key] for key in sorted(cells)},
        "skipped": frame["skipped"],
        "answer": {"recovery": "", "risk": None},  # it names the best, which only the truth tells
    }


def _publishable_cell(cell: BoardCell) -> BoardCell:
    status, texts = cell["status"], cell["texts"]
    return {
        "status": status,
        "recovery": None,
        "before": None,
        "distances": [],
        "distance": (0.0, 0.0, 0.0),
        "spectrum": {"released": False, "count": 0, "text": "", "lines": ""},
        "edges": None,
        "threshold": None,
        "picture": "",
        "published": cell["published"] if status["counts"] else None,
        "texts": {
            "recovery": "",
            "words": "",
            "said": "",
            "range": [],
            "before": "",
            "aim": "",
            "risk": texts["risk"],
            "distance": "",
            "claim": texts["claim"],
            "found": [],
        },
    }


def _truth(prepared: Measured, picture: _Picture, k: int) -> Truth:
    """Return what exact PCA finds, and its picture."""
    eigenvalues = prepared.reference.eigenvalues
    rows = len(picture.index)
    heights = generator(0, "strip", rows).uniform(-1, 1, rows) if k == 1 else None
    return {
        "eigenvalues": [_short(value) for value in eigenvalues],
        "picture": picture.packed(picture.true),
        "heights": None if heights is None else packed(heights, "<f4"),
        "text": numeral(float(eigenvalues.max()), 3),
    }


def _limits(prepared: Measured, picture: _Picture, k: int) -> BoardLimits:
    """Return the axes that every column and every epsilon share: those of the truth."""
    d, eigenvalues = prepared.d, prepared.reference.eigenvalues
    largest, linear = float(eigenvalues.max()), linear_up_to(eigenvalues)
    limit = 1.12 * np.abs(picture.places(picture.true, "aligned")).max(axis=0, initial=0.0)
    first = min(FIRST_COMPONENTS, d)
    # Noise leaves the first eigenvalues of many positive; of few, the last may turn negative.
    first_low = 0.0 if d > 2 * FIRST_COMPONENTS else -largest / 2
    first_linear = max(linear, float(eigenvalues[:first][-1]))
    return {
        "picture": (_short(float(limit[0])), _short(float(limit[-1] if k > 1 else 1.6))),
        "scale": picture.scale,
        "spectrum": {
            "first": _heights(first, first_low, _ABOVE * largest, first_linear),
            "all": _heights(d, -_BELOW * largest, _ABOVE * largest, linear),
        },
        "distance": farthest_distance(d, k),
        "lines": LINES,
    }


def linear_up_to(eigenvalues: FloatArray) -> float:
    """Return up to where an axis of variances is linear: the typical true one, which is sought."""
    positive = eigenvalues[eigenvalues > 0]
    return max(float(np.median(positive)), float(positive.max()) * 1e-4)


def spectra(
    comparison: Comparison,
    shown: Sequence[BoardColumn],
    expected: Mapping[str, Sequence[float]],
    *,
    linear: bool = False,
) -> Payload:
    """Return a board of whole eigenspectra at one setting, on axes that hold what is drawn.

    Parameters
    ----------
    comparison : Comparison
        Of any table, also of a plan.
    shown : sequence of BoardColumn
    expected : mapping of str to sequence of float
        The noisy eigenvalues that are predicted, by mechanism.
    linear : bool
        Whether the axis is linear all over.
    """
    prepared, settings = comparison.prepared, comparison.settings
    problem, budget = comparison.problem, comparison.budget
    found = frame(
        prepared, problem.k, budget.epsilon, comparison.results, comparison.skipped, most=problem.d
    )
    for key, values in expected.items():
        if key in found["cells"]:
            found["cells"][key]["predicted"] = packed(np.asarray(values, dtype=float), "<f4")
    made = payload(prepared, settings, shown, [budget.epsilon], [found])
    low, high = _reach(comparison)
    turns = None if linear else linear_up_to(prepared.reference.eigenvalues)
    made["limits"]["spectrum"]["all"] = _heights(problem.d, low, high, turns)
    return made


def _reach(comparison: Comparison) -> tuple[float, float]:
    """Return the variances that all spectra of a comparison share.

    One mechanism whose noise is a million times the signal would press all others flat: beyond
    `_LOUD` times the largest true eigenvalue lines leave the axis, unless all of them would.
    """
    largest = float(comparison.prepared.reference.eigenvalues.max())
    reaches = []
    for result in comparison.results:
        values = result.captured_each if result.eigenvalues is None else result.eigenvalues
        lower, upper = result.edges or (0.0, 0.0)
        reaches.append((min(float(values.min()), lower), max(float(values.max()), upper)))
    sizes = [max(high, -low) for low, high in reaches]
    limit = max(_LOUD * largest, min(sizes, default=0.0))
    inside = [reach for reach, size in zip(reaches, sizes, strict=True) if size <= limit]
    low = min([0.0, *(low for low, _ in inside)])
    high = max([largest, *(high for _, high in inside)])
    return low, high


def _heights(count: int, low: float, high: float, linear: float | None) -> Heights:
    """Return an axis of variances: what it spans, where it is linear, and its marks."""
    if linear is None:
        return _axis(count, low, high, None, [_short(mark) for mark in round_ticks(0.0, high)])
    powers = decades(math.log10(linear), math.log10(high), _MOST_MARKS)
    return _axis(count, low, high, linear, [0.0, *powers])


def _axis(
    count: int, low: float, high: float, linear: float | None, marks: Sequence[float]
) -> Heights:
    return {
        "count": count,
        "low": float(low),
        "high": float(high),
        "linear": linear,
        "marks": [(mark, numeral(mark)) for mark in marks],
    }


def _beyond(epsilon: float) -> tuple[float, str] | None:
    """Return a round epsilon to go on to and its text, or None outside `FARTHEST`."""
    text = numeral(epsilon)
    return (float(text), text) if FARTHEST[0] <= float(text) <= FARTHEST[1] else None


def frames_affordable(seconds_a_frame: float, seconds: float = 8.0) -> int | None:
    """Return how many frames fit the time a page may take, or None for all of them."""
    most = len(frame_epsilons())
    fit = int(seconds / max(seconds_a_frame, 1e-9))
    return None if fit >= most else max(fit, 4)
