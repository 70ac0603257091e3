"""Frames of the board: computed once, kept, and sent to the browser while the page stands.

Frames of a built-in table are kept for all sessions, for they hold nothing of anybody's; those of
an upload stay in the session that uploaded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.core.cancelling import check_cancelled
from dpviz.core.number_text import parseable
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.report.sentences.explore import least_words
from dpviz.report.tables import board, scrub
from dpviz.report.tables.payload import Frame
from dpviz.simulation.compare import Comparison
from pages.ui import cached
from pages.ui.first_sight import FRAMES, Shipped, digest_of
from pages.ui.shelves import Kept, apart, public

WORKERS = 2
MOST_PART = 6  # frames computed and sent at once: they share noise
PART_SECONDS = 0.4  # of one part, so that a run that nobody wants any more can stop
MOST_SECONDS = 8.0  # of computing in all; a large table gets fewer frames
MOST_MEASURED = 60.0  # the same by what draws took, which slow samplers make more

_FEED = st.components.v2.component(
    "dpviz_frames", js=(Path(__file__).parent / "frames.js").read_text(encoding="utf-8")
)


def token_of(data_key: tuple[str, ...], settings: Settings) -> str:
    """Return what frames belong to: the data and every setting but epsilon."""
    same = replace(settings, epsilon=1.0)
    return digest_of((data_key, same))


def sent_as(token: str, *, published: bool) -> str:
    """Return what the browser keeps frames by: those of a view that is published are others."""
    return f"{token}/published" if published else token


def _text(frame: Frame) -> bytes:
    return json.dumps(frame, separators=(",", ":"), ensure_ascii=False).encode()


@apart(st.cache_resource, show_spinner=False)
def _frames(_key: tuple[str, ...]) -> Kept[bytes]:
    return Kept(2_000, shipped=FRAMES) if public(_key) else Kept(400)


def keep(
    token: str, data_key: tuple[str, ...], now: Frame, trials: int, passed: Callable[[], Frame]
) -> None:
    """Keep the frame of the reader's epsilon, and that of the path, so that none is made again.

    Parameters
    ----------
    token : str
    data_key : tuple of str
    now : Frame
        With every draw and all that is said of it.
    trials : int
        Draws of it.
    passed : callable
        To the same as it is passed by.
    """
    shelf, here = _frames(data_key), now["epsilon"]
    shelf.keep((token, here, trials), _text(now))
    if shelf.get((token, here)) is None:
        shelf.keep((token, here), _text(passed()))


def at_hand(
    token: str, data_key: tuple[str, ...], epsilon: float, trials: int
) -> tuple[Frame, Plan] | None:
    """Return the frame of the reader's epsilon if it is kept and so is every other, else None."""
    plan, shelf = Plan(scrub.frame_epsilons(None, epsilon), MOST_PART), _frames(data_key)
    every = [(token, one) for one in [*plan.epsilons, scrub.ORDERED_AT]]
    now = shelf.get((token, epsilon, trials))
    if now is None or any(shelf.get(what) is None for what in every):
        return None
    frame: Frame = json.loads(now)
    return frame, plan


def path_settings(settings: Settings) -> Settings:
    """Return the settings of the frames that are passed by: no more draws than those need."""
    return replace(settings, trials=min(settings.trials, scrub.PATH_DRAWS))


def some(
    token: str,
    data_key: tuple[str, ...],
    epsilons: Sequence[float],
    make: Callable[[Sequence[float]], list[Frame]],
) -> list[bytes]:
    """Return frames of the path as JSON, making those that are not kept yet."""
    shelf = _frames(data_key)
    kept = {epsilon: shelf.get((token, epsilon)) for epsilon in epsilons}
    missing = [epsilon for epsilon, frame in kept.items() if frame is None]
    if missing:
        for frame in make(missing):
            kept[frame["epsilon"]] = text = _text(frame)
            shelf.keep((token, frame["epsilon"]), text)
    return [frame for frame in kept.values() if frame is not None]


_TOLD = Shipped[bytes]("told", bytes, bytes)


@apart(st.cache_resource, show_spinner=False)
def _told(_key: tuple[str, ...]) -> Kept[bytes]:
    # a move adds one and predicts nothing again
    return Kept(2_000, shipped=_TOLD) if public(_key) else Kept(400)


def _known(data_key: tuple[str, ...], what: tuple[Any, ...], find: Callable[[], Any]) -> Any:
    """Return what is expected without a draw, found if it is not kept."""
    shelf = _told(data_key)
    text = shelf.get(what)
    if text is None:
        text = json.dumps(find()).encode()
        shelf.keep(what, text)
    return json.loads(text)


def expect(
    place: Any,
    token: str,
    data_key: tuple[str, ...],
    epsilons: list[float],
    prepared: Prepared,
    settings: Settings,
) -> dict[str, Any]:
    """Send what is expected without a draw: the recovery at each epsilon, and the least epsilons.

    It is the same whatever the seed and the number of draws: a fresh draw finds it there. Returns
    what was sent.
    """
    undrawn = replace(settings, epsilon=1.0, seed=0, trials=1)
    key = token_of(data_key, undrawn)

    def at(epsilon: float) -> Any:
        check_cancelled()
        return scrub.predicted(prepared, undrawn, [epsilon])

    here = [_known(data_key, (key, epsilon), partial(at, epsilon)) for epsilon in epsilons]
    names = [mechanism.text for mechanism in parse_variants(settings.mechanisms)]
    message = {
        "token": token,
        "part": "expected/" + ",".join(parseable(epsilon, 6) for epsilon in epsilons),
        "epsilons": epsilons,
        "predicted": {
            name: [found.get(name, [None])[0] for found in here]
            for name in names
            if any(name in found for found in here)
        },
        "least": _known(
            data_key, (key,), lambda: least_words(scrub.least_epsilons(prepared, undrawn))
        ),
    }
    with place:
        _FEED(data=json.dumps(message).encode(), key="board.frames.expected", height=1)
    return message


@dataclass(frozen=True)
class Plan:
    """Which frames a board gets.

    Attributes
    ----------
    epsilons : list of float
        Fewer where draws are slow.
    part : int
        How many are computed and sent at once.
    """

    epsilons: list[float]
    part: int

    def parts(self, order: Sequence[float]) -> dict[str, Sequence[float]]:
        """Return which frames are sent together, by name, in the order of their epsilons."""
        found = [order[first : first + self.part] for first in range(0, len(order), self.part)]
        # the last part may grow by an epsilon of the reader's
        return {f"{number}/{len(part)}": part for number, part in enumerate(found)}


def plan_of(
    token: str,
    data_key: tuple[str, ...],
    comparison: Comparison,
    prepared: Prepared,
    settings: Settings,
) -> Plan:
    """Return which frames the board gets.

    How many is decided once for a board: its clock is not the next epsilon's.
    """
    fits: dict[str, tuple[int | None, int]] = st.session_state.setdefault("board.fits", {})
    if token not in fits:
        draws = len(comparison.results) * path_settings(settings).trials
        seconds = draws * cached.CHUNK_SECONDS / cached.chunk_size(prepared.d) / WORKERS
        measured = cached.seconds_of(data_key, comparison)
        fit = min(
            (
                scrub.frames_affordable(seconds, MOST_SECONDS),
                scrub.frames_affordable(measured, MOST_MEASURED),
            ),
            key=lambda fit: math.inf if fit is None else fit,
        )
        part = int(min(max(PART_SECONDS / max(seconds, measured / 4, 1e-9), 1), MOST_PART))
        fits[token] = fit, part
        while len(fits) > 50:
            del fits[next(iter(fits))]
    fit, part = fits[token]
    return Plan(scrub.frame_epsilons(fit, settings.epsilon), part)


def feed(
    place: Any,
    token: str,
    data_key: tuple[str, ...],
    plan: Plan,
    now: float,
    make: Callable[[Sequence[float]], list[Frame]],
    *,
    published: bool = False,
) -> None:
    """Compute the frames that are missing, outwards from the present epsilon, and send them.

    Parameters
    ----------
    place : container
        Where the invisible elements stand that carry the frames.
    token : str
    data_key : tuple of str
    plan : Plan
    now : float
        The present epsilon.
    make : callable
        Epsilons to their frames.
    published : bool
        Whether what may be published is all that is sent.
    """
    # The order of the first run is kept, so that a later epsilon sends nothing again.
    orders: dict[str, list[float]] = st.session_state.setdefault("board.orders", {})
    order = orders.setdefault(token, scrub.outwards(plan.epsilons, now))
    order += [epsilon for epsilon in plan.epsilons if epsilon not in order]
    while len(orders) > 8:
        del orders[next(iter(orders))]
    for number, (name, epsilons) in enumerate(plan.parts(order).items()):
        # Sending is also where Streamlit can stop a run that nobody wants any more.
        part = some(token, data_key, epsilons, make)
        if published:
            part = [_text(board.publishable_frame(json.loads(frame))) for frame in part]
        head = (
            json.dumps({"token": sent_as(token, published=published), "part": name})
            .removesuffix("}")
            .encode()
        )
        text = head + b', "frames": [' + b",".join(part) + b"]}"
        with place:
            _FEED(data=text, key=f"board.frames.{number}", height=1)
