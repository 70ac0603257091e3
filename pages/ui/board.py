"""The board on a page: what is sent to it, and what comes back.

The board is a component that lives in the page itself. It scrubs, plays and compares in the
browser; the page runs again only when an epsilon is let go, a setting is pinned, a column is
opened, or new draws are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.core.platform import in_browser
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.report.figures.board import assets, shown
from dpviz.report.figures.boardfile import anybodys
from dpviz.report.tables import board, scrub
from dpviz.report.tables.frame import frame_of
from dpviz.report.tables.payload import Frame, Payload
from dpviz.simulation.compare import Comparison
from pages.ui import cached, frames, limits, state
from pages.ui.cached import Late
from pages.ui.first_sight import BOARDS, Shipped, board_key, digest_of
from pages.ui.looks import IN_A_PAGE

KEY = "board"
LINKS = {"recovery": "Claims", "least": "Trade-offs", "risk": "Claims"}
"""Page that each part of the answer opens."""
SHOWN = {"recovery": "verdicts", "risk": "attacker"}
"""What of Claims it shows."""
DELTA_CAUTION = "this delta is no protection"

_ADAPTER = (Path(__file__).parent / "board.js").read_text(encoding="utf-8")
_MOUNT = st.components.v2.component(
    "dpviz_board", css=assets().css + IN_A_PAGE, js=f"{assets().js}\n{_ADAPTER}"
)

# The board with nothing but one of its rows.
_ROW = st.components.v2.component(
    "dpviz_row",
    css=assets().css
    + IN_A_PAGE
    + "\n.dpv:not([data-phone]) { --dpv-picture: 300px; }\n.dpv { --dpv-spectrum: 230px; }\n",
    js=assets().js
    + """
const held = new WeakMap();
export default function ({ data, parentElement }) {
  let mine = held.get(parentElement);
  if (mine) mine.setPayload(data.payload);
  else {
    const root = parentElement.appendChild(document.createElement("div"));
    mine = DpvizBoard.mount(root, data.payload, {
      ...data.options, controls: [], strip: false, answer: false,
    });
    held.set(parentElement, mine);
  }
  return () => {
    mine.destroy();
    held.delete(parentElement);
  };
}
""",
)


def publishable(prepared: Prepared) -> bool:
    """Return whether a page shows what may be published alone.

    An upload's is shown so until the board is asked for its working view; another file is so again.
    """
    asked = st.session_state.get("board.working")
    return not anybodys(prepared) and asked != st.session_state["check.file"]


def draw(
    drawn: Callable[[], Comparison],
    prepared: Prepared,
    data_key: tuple[str, ...],
    settings: Settings,
    pin: Payload | None,
    warning: str | None,
) -> Callable[[], None] | None:
    """Draw the board with the present epsilon; return what sends the other frames, if it is left.

    Where every frame is kept nothing is drawn for it, and they are sent at once.

    Parameters
    ----------
    drawn : callable
        To the comparison at the present setting.
    prepared : Prepared
    data_key : tuple of str
    settings : Settings
    pin : Payload or None
        The payload of the pinned setting, from `pinned`.
    warning : str or None
        What is wrong with the delta, said in full below the board.
    """
    path = _path(drawn, prepared, data_key, settings)
    token, plan, now, make = path.token, path.plan, path.now, path.make
    # The frame of the path at one epsilon decides, wherever the reader is: the order holds still.
    with st.spinner("Putting the columns in order", show_time=True):
        (kept,) = frames.some(token, data_key, [scrub.ORDERED_AT], make)
    at = json.loads(kept)
    columns = shown(scrub.ordered(parse_variants(settings.mechanisms), at))
    # Frames follow the page within the same run. Where Python runs beside the page in one thread
    # they would come before it: there the browser asks for them when it has painted the first.
    wanted = bool(st.session_state.get("board.wanted")) or (limits.serving() and not in_browser())
    payload = board.payload(
        prepared,
        settings,
        columns,
        plan.epsilons,
        [now],
        steps=len(scrub.frame_epsilons()),
        caution=None if warning is None else DELTA_CAUTION,
    )
    # A browser gets real rows and what compares with them where somebody asks for that view.
    published = publishable(prepared)
    if published:
        payload, pin = board.publishable(payload), None
    sent = frames.sent_as(token, published=published)
    shape = digest_of((sent, plan.epsilons, [column["key"] for column in columns]))
    if Shipped.noting is not None:
        parts = plan.parts(scrub.outwards(plan.epsilons, settings.epsilon))
        now_key = (token, settings.epsilon, settings.trials)
        first = {"token": sent, "shape": shape, "now": now_key, "parts": parts}
        BOARDS.note(board_key(settings), first | {"payload": payload | {"frames": []}})
    callbacks: dict[str, Any] = {
        f"on_{name}_change": state.on_change(act) for name, act in _CALLBACKS.items()
    }
    _MOUNT(
        key=KEY,
        data={
            "payload": payload,
            "token": sent,
            "wanted": wanted,
            "shape": shape,
            "pin": pin,
            "working": not published,
            "present": state.get("stage", "explore") == "yes",
            "draws": None if published else _draws(drawn, prepared, token),
        },
        **callbacks,
    )
    place = st.container(gap=None)

    def follow() -> None:
        if wanted and not published:
            told = frames.expect(place, token, data_key, plan.epsilons, prepared, settings)
            BOARDS.note((*board_key(settings), "expected"), told)
        if wanted:
            frames.feed(place, token, data_key, plan, settings.epsilon, make, published=published)

    if not path.whole:
        return follow
    follow()
    return None


@dataclass(frozen=True)
class _Path:
    """The frames of a board: what they belong to, which there are, and what makes others."""

    token: str
    plan: frames.Plan
    now: Frame
    make: Callable[[Sequence[float]], list[Frame]]
    whole: bool


def _path(
    drawn: Callable[[], Comparison],
    prepared: Prepared,
    data_key: tuple[str, ...],
    settings: Settings,
) -> _Path:
    """Return the frames of a board; nothing is drawn where all of them are kept."""
    passed = frames.path_settings(settings)

    def made(epsilons: Sequence[float]) -> list[Frame]:
        return scrub.compute_each(prepared, passed, epsilons, workers=frames.WORKERS)

    token = frames.token_of(data_key, passed)
    kept = frames.at_hand(token, data_key, settings.epsilon, settings.trials)
    if kept is not None:
        return _Path(token, kept[1], kept[0], made, whole=True)
    comparison = drawn()
    late = {item.mechanism: item.reason for item in comparison.skipped if isinstance(item, Late)}
    chosen = [mechanism.text for mechanism in parse_variants(settings.mechanisms)]
    quick = tuple(text for text in chosen if text not in late)
    if late:
        passed = replace(passed, mechanisms=quick)
        token = frames.token_of(data_key, passed)

    def make(epsilons: Sequence[float]) -> list[Frame]:
        if not quick:
            return [board.frame(prepared, settings.k, e, (), comparison.skipped) for e in epsilons]
        found = made(epsilons)
        for frame in found:
            frame["skipped"] |= late
        return found

    plan = frames.plan_of(token, data_key, comparison, prepared, settings)
    now, most = frame_of(comparison, prepared, worth=True), passed.trials
    frames.keep(
        token, data_key, now, settings.trials,
        lambda: frame_of(comparison, prepared, most) if most < settings.trials else now,
    )  # fmt: skip
    return _Path(token, plan, now, make, whole=False)


def pictures(comparison: Comparison, prepared: Prepared, draw: int, axes: str) -> None:
    """Draw the rows in each released space of one draw, from 0, and nothing else."""
    settings = comparison.settings
    frame = frame_of(comparison, prepared, draw=draw, axes=axes)
    columns = shown([result.mechanism for result in comparison.results])
    payload = board.payload(prepared, settings, columns, [settings.epsilon], [frame])
    options = {"rows": ["picture"], "label": "Pictures"}
    _ROW(key="projection", data={"payload": payload, "options": options})


def spectra(comparison: Comparison, data_key: tuple[str, ...], *, linear: bool) -> None:
    """Draw the whole eigenspectrum of each mechanism against the true one."""
    columns = shown([result.mechanism for result in comparison.results])
    expected = cached.predicted_spectra(data_key, comparison)
    payload = board.spectra(comparison, columns, expected, linear=linear)
    options = {"rows": ["spectrum"], "label": "Eigenspectra", "every": True}
    _ROW(key="spectrum", data={"payload": payload, "options": options})


def opened(comparison: Comparison) -> Comparison | None:
    """Return the comparison of nothing but the column that is opened, if one is."""
    key = st.session_state.get("board.opened")
    results = tuple(result for result in comparison.results if result.mechanism.text == key)
    return replace(comparison, results=results) if results else None


def pinned(prepared: Prepared, data_key: tuple[str, ...], settings: Settings) -> Payload:
    """Return the payload of a pinned setting, with its one frame."""
    comparison = cached.comparison(data_key, prepared, settings)
    frame = frame_of(comparison, prepared)
    columns = shown(parse_variants(settings.mechanisms))
    return board.payload(prepared, settings, columns, [settings.epsilon], [frame])


def asked_page() -> str | None:
    """Return the title of the page that a link of the answer asks for, once."""
    found: str | None = st.session_state.pop("board.link", None)
    return found


def _draws(
    drawn: Callable[[], Comparison], prepared: Prepared, token: str
) -> dict[str, Any] | None:
    """Return the picture of every draw, where that was asked for at this setting."""
    number = st.session_state.pop("board.redraw", None)
    if number is None:
        return None
    return {"id": f"{token}/{number}", "pictures": scrub.draws(drawn(), prepared)}


# What the browser sends ----------------------------------------------------------


def _sent(name: str) -> Any:
    return getattr(st.session_state[KEY], name, None)


def _at(epsilon: object) -> None:
    """Take the epsilon that the browser shows along with what it asks for."""
    if isinstance(epsilon, int | float):
        state.put("epsilon", float(epsilon))


def _committed() -> None:
    _at(_sent("commit"))


def _pin() -> None:
    asked = _sent("pin")
    if not isinstance(asked, dict):
        return
    _at(asked.get("epsilon"))
    act = {"pin": state.pin, "unpin": state.unpin, "swap": state.swap}.get(str(asked.get("action")))
    if act is not None:
        act()


def _fresh() -> None:
    _at(_sent("fresh"))
    state.put("seed", state.get("seed") + 1)


def _redraw() -> None:
    _at(_sent("draws"))
    st.session_state["board.redraws"] = st.session_state.get("board.redraws", 0) + 1
    st.session_state["board.redraw"] = st.session_state["board.redraws"]


def _opened() -> None:
    st.session_state["board.opened"] = _sent("open") or None


def _presented() -> None:
    state.put("stage", "yes" if _sent("present") == "yes" else "no", "explore")


def _linked() -> None:
    asked = str(_sent("link"))
    st.session_state["board.link"] = LINKS.get(asked)
    if asked in SHOWN:
        state.put("part", SHOWN[asked], "claims")


def _viewed() -> None:
    st.session_state["board.working"] = (
        st.session_state.get("check.file") if _sent("view") == "working" else None
    )


def _wanted() -> None:
    st.session_state["board.wanted"] = True


_CALLBACKS: dict[str, Callable[[], None]] = {
    "commit": _committed,
    "pin": _pin,
    "fresh": _fresh,
    "draws": _redraw,
    "open": _opened,
    "link": _linked,
    "view": _viewed,
    "present": _presented,
    "want": _wanted,
}
