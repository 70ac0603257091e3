"""One person dragged, on a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.lessons.person import person_payload
from dpviz.mechanisms import parse_variant
from dpviz.report.figures import person

_KEYS = (Path(__file__).parent / "keys.js").read_text(encoding="utf-8")
_MOUNT = st.components.v2.component(
    "dpviz_person",
    html=person.MARKUP,
    css=person.style(),
    js=f"{_KEYS}\n{person.component_script('passKeys')}",
)


@st.cache_data(max_entries=32, show_spinner=False)
def _payload(
    keys: tuple[str, ...], delta: float, epsilon: float, view: str, seed: int
) -> dict[str, Any]:
    mechanisms = [parse_variant(key) for key in keys]
    return person_payload(mechanisms, delta, epsilon=epsilon, view=view, seed=seed)


def draw(
    key: str,
    mechanisms: Sequence[str],
    delta: float,
    *,
    epsilon: float,
    seed: int,
    view: str = "her",
    locked: bool = False,
    highlight: str = "",
) -> None:
    """Draw both clouds of releases and a row that can be dragged.

    Parameters
    ----------
    key : str
    mechanisms : sequence of str
        Of `dpviz.lessons.person.candidates`.
    delta : float
        Above 0, for those that need one.
    epsilon, seed, view
        As in `dpviz.lessons.person.person_payload`.
    locked : bool
        Whether epsilon and the mechanism stay as they are.
    highlight : str
        The control that stands out: ``epsilon``, ``mechanism``, ``row`` or nothing.
    """
    payload = _payload(tuple(mechanisms), delta, epsilon, view, seed)
    _MOUNT(key=key, data={**payload, "locked": locked, "highlight": highlight})
