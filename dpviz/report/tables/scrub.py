"""What a board is scrubbed over: which epsilons, their frames, and what is known without a draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import in_threads
from dpviz.core.metrics import chance_share, nothing_to_recover, recovery_of
from dpviz.core.number_text import numeral
from dpviz.core.problem import EPSILON_RANGE
from dpviz.core.release import Verdict
from dpviz.core.resources import one_blas_thread
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured, reference_variances
from dpviz.report.tables.frame import (
    FRAME_METRICS,
    PictureRows,
    frame_of,
    said_of,
    short,
)
from dpviz.report.tables.payload import (
    Frame,
    Told,
)
from dpviz.simulation.cells import plan
from dpviz.simulation.compare import Comparison, Result, run_cell
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import Predicted, about
from dpviz.simulation.predict import predict
from dpviz.simulation.simulate import Cell

PATH_DRAWS = 20
"""Draws of a frame that is passed by; the one that is let go gets every draw."""

PLAY = (0.05, 10.0)
"""Range of epsilon that the board is scrubbed and played over."""

FARTHEST = (0.01, 100.0)
"""How far that range is carried on towards an epsilon outside it."""

ORDERED_AT = 1.0
"""Epsilon at which the columns are put in order, so that the order holds still."""

FAR = 2.0
"""A mechanism that is not on the board is named where it needs so many times less epsilon."""

GOAL = 0.9
"""The recovery that a line on the board is drawn at, and the least epsilon is said for."""

_GOOD = (Verdict.HOLDS, Verdict.LOOSE)

# Renard's series R10: ten round steps a decade.
_STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0)


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
        # both ends stay, however few
        places = np.linspace(0, len(steps) - 1, max(count, 2)).round().astype(int)
        steps = [steps[place] for place in places]
    return sorted({*steps, *also})


def outwards(epsilons: Sequence[float], now: float) -> list[float]:
    """Return the epsilons in the order to compute them: the current one first, then outwards."""
    # by ratio, as the slider has it: what is dragged to first is there first
    return sorted(epsilons, key=lambda epsilon: (abs(math.log(epsilon / now)), epsilon))


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
    # pictured and not kept: redraws are of the settings' own epsilon, which need be no frame
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
    # from the most exact on, so that no picture that is printed mirrors the one beside it
    facing: dict[Mechanism, FloatArray] = {}
    order = sorted(range(len(seen)), key=lambda place: -epsilons[place])
    frames = {place: frame_of(seen[place], prepared, draw=chosen, facing=facing) for place in order}
    return [frames[place] for place in range(len(seen))], pictures


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
    picture = PictureRows(prepared, comparison.problem.k)
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
            return 1, 0.0, mechanism.info.order
        group = _GROUPS.get(cell["status"]["verdict"], _LAST_GROUP)
        recovery = cell["recovery"]
        return group, 0.0 if recovery is None else -recovery[0], mechanism.info.order

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
    # a preparation that is bought has no law to predict from
    if nothing_to_recover(chance) or prepared.raw is not None:
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
            line.append((short(value), *said_of(value)))
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
    if nothing_to_recover(chance) or prepared.raw is not None:
        return {"approximate": None, "pure": None, "elsewhere": None}
    goal = Goal.of_recovery(wanted, chance)

    def answers(mechanisms: Iterable[Mechanism], up_to: float = math.inf) -> list[Predicted]:
        found = [about(prepared, settings, one, goal, up_to=up_to) for one in mechanisms]
        # judged at the epsilon that was found: a claim may hold there and fail elsewhere
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


def frames_affordable(seconds_a_frame: float, seconds: float = 8.0) -> int | None:
    """Return how many frames fit the time a page may take, or None for all of them."""
    most = len(frame_epsilons())
    fit = int(seconds / max(seconds_a_frame, 1e-9))
    # fewer than four are no way to be scrubbed along
    return None if fit >= most else max(fit, 4)
