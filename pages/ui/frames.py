"""Frames of the board: computed once, kept, and sent to the browser while the page stands.

Frames of a built-in table are kept for all sessions, for they hold nothing of anybody's; those of
an upload stay in the session that uploaded.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.prepare.bounding import Prepared
from dpviz.run.compare import Comparison
from dpviz.settings import Settings
from dpviz.tidy import board
from pages.ui import cached, state

WORKERS = 2
PART = 2  # frames sent at once
MOST_SECONDS = 8.0  # of computing in all; a large table gets fewer frames
MOST_MEASURED = 60.0  # the same by what draws took, which slow samplers make more

_FEED = st.components.v2.component(
    "dpviz_frames", js=(Path(__file__).parent / "frames.js").read_text(encoding="utf-8")
)


def token_of(data_key: tuple[str, ...], settings: Settings) -> str:
    """Return what frames belong to: the data and every setting but epsilon."""
    same = replace(settings, epsilon=1.0)
    return hashlib.blake2b(repr((data_key, same)).encode(), digest_size=12).hexdigest()


@st.cache_data(max_entries=2_000, show_spinner=False)
def _public(token: str, epsilon: float, _make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return _make()


@st.cache_data(scope="session", max_entries=400, show_spinner=False)
def _private(token: str, epsilon: float, _make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return _make()


def one(token: str, epsilon: float, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a frame, kept where the table allows."""
    keep = _private if state.get("table") == state.UPLOAD else _public
    return keep(token, epsilon, make)


@st.cache_data(scope="session", max_entries=60, show_spinner=False)
def predicted(
    token: str, epsilons: tuple[float, ...], _prepared: Prepared, _settings: Settings
) -> dict[str, list[float | None]]:
    """Return the recovery expected without a draw, at each epsilon."""
    return board.predicted(_prepared, _settings, epsilons)


def epsilons_for(
    token: str, comparison: Comparison, prepared: Prepared, settings: Settings
) -> list[float]:
    """Return the epsilons of the board's frames; fewer where draws are slow.

    How many is decided once for a board: its clock is not the next epsilon's.
    """
    fits: dict[str, int | None] = st.session_state.setdefault("board.fits", {})
    if token not in fits:
        count = len(comparison.results)
        seconds = count * settings.trials * cached.CHUNK_SECONDS / cached.chunk_size(prepared.d)
        fits[token] = min(
            (
                board.frames_affordable(seconds / 2, MOST_SECONDS),
                board.frames_affordable(cached.seconds_of(comparison), MOST_MEASURED),
            ),
            key=lambda fit: math.inf if fit is None else fit,
        )
        while len(fits) > 50:
            del fits[next(iter(fits))]
    return board.frame_epsilons(fits[token], settings.epsilon)


@st.cache_data(scope="session", max_entries=60, show_spinner=False)
def least(token: str, _prepared: Prepared, _settings: Settings) -> dict[str, Any]:
    """Return the least epsilons that are predicted to recover most of the structure."""
    return board.least_epsilons(_prepared, _settings)


def feed(
    place: Any,
    token: str,
    settings: Settings,
    epsilons: Sequence[float],
    make: Callable[[float], dict[str, Any]],
) -> None:
    """Compute the frames that are missing, outwards from the present epsilon, and send them.

    Parameters
    ----------
    place : container
        Where the invisible elements stand that carry the frames.
    token : str
    settings : Settings
    epsilons : sequence of float
    make : callable
        Epsilon to its frame.
    """
    # The order of the first run is kept, so that a later epsilon sends nothing again.
    orders: dict[str, list[float]] = st.session_state.setdefault("board.orders", {})
    order = orders.setdefault(token, board.outwards(epsilons, settings.epsilon))
    order += [epsilon for epsilon in epsilons if epsilon not in order]
    while len(orders) > 8:
        del orders[next(iter(orders))]
    part: list[dict[str, Any]] = []
    for number, epsilon in enumerate(order, start=1):
        part.append(one(token, epsilon, functools.partial(make, epsilon)))
        # Of fixed length, so that a part that is sent again is the same part. Sending is also
        # where Streamlit can stop a run that nobody wants any more.
        if len(part) == PART or number == len(order):
            sent = (number - 1) // PART
            text = json.dumps({"token": token, "part": sent, "frames": part}, separators=(",", ":"))
            with place:
                _FEED(data=text.encode(), key=f"board.frames.{sent}", height=1)
            part = []
