"""Epsilons of the slider in Explore, their frames, and facts known without simulation."""

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
"""Number of releases in a frame while epsilon moves; the frame at rest gets all releases."""

PLAY = (0.05, 10.0)
"""Range of epsilon on the slider and in the animation."""

FARTHEST = (0.01, 100.0)
"""How far the range may extend towards an epsilon outside the range."""

ORDERED_AT = 1.0
"""Epsilon that determines the order of the columns, so that the order never changes."""

GOAL = 0.9
"""Recovery of the goal line, for which the figure also reports the least epsilon."""

# Renard's series R10 of preferred numbers has ten round steps in each decade.
_STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0)


def frame_epsilons(count: int | None = None, *also: float) -> list[float]:
    """Return the epsilons of the slider: round steps over `PLAY`, ascending.

    Parameters
    ----------
    count : int, optional
        Maximum number of round steps, which are evenly spread and include both ends.
    *also : float
        Epsilons to include, such as the current epsilon. Steps extend towards an epsilon outside
        `PLAY`, as far as `FARTHEST`.
    """
    low, high = PLAY
    low = max(min(low, *also), min(low, FARTHEST[0])) if also else low
    high = min(max(high, *also), max(high, FARTHEST[1])) if also else high
    decades = range(math.floor(math.log10(FARTHEST[0])), math.ceil(math.log10(FARTHEST[1])) + 1)
    steps = [float(f"{step * 10.0**decade:.6g}") for decade in decades for step in _STEPS]
    steps = [step for step in steps if low <= step <= high]
    if count is not None and count < len(steps):
        # The first and the last epsilon always remain, even if there are few steps.
        places = np.linspace(0, len(steps) - 1, max(count, 2)).round().astype(int)
        steps = [steps[place] for place in places]
    return sorted({*steps, *also})


def outwards(epsilons: Sequence[float], now: float) -> list[float]:
    """Return the order for computing epsilons: the current epsilon first, then outwards."""
    # Order epsilons by ratio, as on the slider, so that the nearest snapshots come first.
    return sorted(epsilons, key=lambda epsilon: (abs(math.log(epsilon / now)), epsilon))


def frames_of(
    comparisons: Sequence[Comparison],
    published: Sequence[Mapping[Mechanism, Result]],
    draw: int = 0,
) -> list[Frame]:
    """Return the frames of comparisons along epsilon, with published maps oriented alike.

    Parameters
    ----------
    comparisons : sequence of Comparison
    published : sequence of mapping
        Published results of each comparison, by mechanism (`dpviz.simulation.compare.pictured`).
    draw : int
        Number of the simulated release to show, from 0; see `typical_draw`.
    """
    # Start at the largest epsilon, so that no published chart mirrors its neighbour.
    directions: dict[Mechanism, FloatArray] = {}
    order = sorted(range(len(comparisons)), key=lambda place: -comparisons[place].budget.epsilon)
    pictures = {place: facing(published[place], directions) for place in order}
    return [
        frame_of(one, draw=draw, published=pictures[place]) for place, one in enumerate(comparisons)
    ]


def typical_draw(comparisons: Sequence[Comparison]) -> int:
    """Return the release, from 0, that stays nearest to the first mechanism's mean recovery.

    The comparisons differ only in epsilon. One release serves all, because only the scale of its
    noise changes. Single releases vary: one may cross a value at a tenth of another's epsilon.
    """
    parts = [one.results[0].metrics["recovery"] for one in comparisons if one.results]
    if not parts:
        return 0
    recoveries = np.stack(parts)
    return int(np.abs(recoveries - recoveries.mean(axis=1, keepdims=True)).max(axis=0).argmin())


def draws(comparison: Comparison, most: int = 20) -> dict[str, list[str]]:
    """Return projections of the first releases by mechanism, packed as in a frame."""
    picture = PictureRows(comparison.prepared, comparison.problem.k)
    return {
        result.mechanism.text: [picture.packed(space) for space in result.components[:most]]
        for result in comparison.results
    }


def ordered(mechanisms: Sequence[Mechanism], at: Frame) -> list[Mechanism]:
    """Return mechanisms in the order of the figure's columns.

    Claims that count come first, by recovery. Then come mechanisms that cannot run at this epsilon,
    mechanisms whose claim fails, and last the baselines.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
    at : Frame
        The frame that decides the order, at `ORDERED_AT`.
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
    """Return how many frames fit into the time that a page may take, or None for all frames."""
    most = len(frame_epsilons())
    fit = int(seconds / max(seconds_a_frame, 1e-9))
    # A slider is useful only with at least four snapshots.
    return None if fit >= most else max(fit, 4)
