"""What a board is scrubbed over: which epsilons, their frames, and what is known without a draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.release import Verdict
from dpviz.mechanisms import Mechanism
from dpviz.report.tables.frame import (
    PictureRows,
    facing,
    frame_of,
)
from dpviz.report.tables.payload import Frame
from dpviz.simulation.compare import Comparison, Result

PATH_DRAWS = 20
"""Draws of a frame that is passed by; the one that is let go gets every draw."""

PLAY = (0.05, 10.0)
"""Range of epsilon that the board is scrubbed and played over."""

FARTHEST = (0.01, 100.0)
"""How far that range is carried on towards an epsilon outside it."""

ORDERED_AT = 1.0
"""Epsilon at which the columns are put in order, so that the order holds still."""

GOAL = 0.9
"""The recovery that a line on the board is drawn at, and the least epsilon is said for."""

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


def frames_of(
    seen: Sequence[Comparison],
    published: Sequence[Mapping[Mechanism, Result]],
    draw: int = 0,
) -> list[Frame]:
    """Return the frames of comparisons along epsilon, with published pictures that point alike.

    Parameters
    ----------
    seen : sequence of Comparison
    published : sequence of mapping
        What each of them publishes, by mechanism (`dpviz.simulation.compare.pictured`).
    draw : int
        Which draw is pictured, from 0; see `typical_draw`.
    """
    # from the most exact on, so that no picture that is printed mirrors the one beside it
    directions: dict[Mechanism, FloatArray] = {}
    order = sorted(range(len(seen)), key=lambda place: -seen[place].budget.epsilon)
    turned = {place: facing(published[place], directions) for place in order}
    return [frame_of(one, draw=draw, published=turned[place]) for place, one in enumerate(seen)]


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


def draws(comparison: Comparison, most: int = 20) -> dict[str, list[str]]:
    """Return the picture of each of the first draws by mechanism, packed as in a frame."""
    picture = PictureRows(comparison.prepared, comparison.problem.k)
    return {
        result.mechanism.text: [picture.packed(space) for space in result.components[:most]]
        for result in comparison.results
    }


def ordered(mechanisms: Sequence[Mechanism], at: Frame) -> list[Mechanism]:
    """Return mechanisms in the order of the board.

    Claims that count come first, by recovery; then those that cannot run at this epsilon, those
    that fail, and last the baselines.

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
        status = cell["status"]
        group = 0 if status["counts"] else 3 if status["verdict"] == Verdict.BASELINE else 2
        recovery = cell["recovery"]
        return group, 0.0 if recovery is None else -recovery[0], mechanism.info.order

    return sorted(mechanisms, key=place)


def frames_affordable(seconds_a_frame: float, seconds: float = 8.0) -> int | None:
    """Return how many frames fit the time a page may take, or None for all of them."""
    most = len(frame_epsilons())
    fit = int(seconds / max(seconds_a_frame, 1e-9))
    # fewer than four are no way to be scrubbed along
    return None if fit >= most else max(fit, 4)
