"""The comparison figure on a page: the data sent to it, and the events that come back.

The figure is a component inside the page. Its slider, animation and comparison work in the browser;
the page runs again only when the reader releases the slider, pins a setting, opens a column or
requests new releases.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.core.number_text import numeral, parseable, per_cent
from dpviz.core.platform import in_browser
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.figures.board import assets, shown
from dpviz.report.sentences import explore as narrative
from dpviz.report.sentences.explore import least_words
from dpviz.report.tables import board, scrub
from dpviz.report.tables.frame import frame_of
from dpviz.report.tables.payload import Frame, Payload
from dpviz.simulation.cells import plan
from dpviz.simulation.compare import Comparison, errors_of_pictures, pictured, with_others
from dpviz.simulation.expectation import Expectation, expect
from dpviz.studies.board import predicted, snapshot, steps
from dpviz.studies.least import least_epsilons
from pages.ui import limits, state
from pages.ui.ask import ask, key_of, known
from pages.ui.draws import CHUNK_SECONDS, InTime, chunk_size, compared
from pages.ui.first_sight import BOARDS, Shipped, board_key, digest_of
from pages.ui.loading import Current
from pages.ui.looks import IN_A_PAGE

KEY = "board"
LINKS = {"recovery": "Claims", "least": "Trade-offs", "risk": "Claims"}
"""Page that each link in the answer opens."""
SHOWN = {"recovery": "verdicts", "risk": "attacker"}
"""Part of the Claims page that the link opens."""
DELTA_CAUTION = "this delta does not protect"

_ADAPTER = (Path(__file__).parent / "board.js").read_text(encoding="utf-8")
_MOUNT = st.components.v2.component(
    "dpviz_board", css=assets().css + IN_A_PAGE, js=f"{assets().js}\n{_ADAPTER}"
)

# This comparison figure shows only one of its rows.
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

_FEED = st.components.v2.component(
    "dpviz_frames", js=(Path(__file__).parent / "frames.js").read_text(encoding="utf-8")
)


def publishable(prepared: Prepared) -> bool:
    """Return whether a page shows only charts that may be published.

    An upload starts in this view, until the reader requests the working view for it.
    """
    working_file = st.session_state.get("board.working")
    return not board.anybodys(prepared) and working_file != st.session_state["check.file"]


# Simulation ----------------------------------------------------------------------


WORKERS = 2
FIRST_AFTER = 2.0  # If all releases take more seconds than this, show some early.
MOST_PART = 6  # At most this many snapshots are computed together; they share noise.
PART_SECONDS = 0.4  # One part takes at most this many seconds, so that it can be stopped.
MOST_SECONDS = 8.0  # Computing takes this many seconds; a large table gets fewer snapshots.
MOST_MEASURED = 60.0  # The measured time may be this long, because samplers are slow.


@dataclass(frozen=True)
class Opening:
    """Data with which a comparison figure opens.

    Attributes
    ----------
    comparison : Comparison or None
        The comparison so far at the reader's epsilon; None if the data ships with dpviz.
    seconds : float
        Simulation time on one core.
    now, passing : Frame or None
        Snapshots with every release and all texts, and for a moving epsilon; both only for a
        complete comparison.
    share : float
        Finished share of the work.
    """

    comparison: Comparison | None
    seconds: float
    now: Frame | None = None
    passing: Frame | None = None
    share: float = 1.0


def opening(prepared: Prepared, settings: Settings) -> Iterator[Opening]:
    """Yield the growing data with which the figure opens, for `pages.ui.ask.ask`."""
    draw = InTime(settings.trials)
    for comparison in compared(prepared, settings, draw):
        yield Opening(comparison, draw.spent, share=0.95 * comparison.share)
    pictures = pictured(comparison)
    now = frame_of(comparison, published=pictures, errors=errors_of_pictures(pictures))
    passing = now
    if settings.trials > scrub.PATH_DRAWS:
        passing = frame_of(comparison, scrub.PATH_DRAWS, published=pictures)
    yield Opening(comparison, draw.spent, now, passing)


def open_(current: Current, *, early: bool = True) -> Opening:
    """Return the data with which the comparison figure opens.

    Parameters
    ----------
    current : Current
    early : bool
        Whether to show first releases before all are simulated; they are compared with exact PCA.
    """
    settings = current.settings

    def tell(answer: Opening) -> None:
        if early and answer.comparison is not None and answer.comparison.results:
            results = answer.comparison.results
            if _seconds(len(results), settings.trials, current) > FIRST_AFTER:
                first.markdown(narrative.first_draw(results, settings.trials))

    # Reserve a place even if nothing is computed. Without it, all elements below would move, and
    # the browser would close any that are open.
    with st.empty().container():
        first = st.empty()
        result = ask(
            opening, {"settings": settings}, current, draw=tell, saying="Drawing releases",
            ships=_OPENINGS,
        )  # fmt: skip
        first.empty()
    if result.now is None:
        raise limits.NotHere("The simulation of releases was stopped.")
    return result


def comparison_of(current: Current, settings: Settings | None = None) -> Comparison:
    """Return the comparison of a view, or the comparison for another setting of its table."""
    view = current.settings if settings is None else settings
    with st.empty().container():
        saying = "Drawing releases" + ("" if settings is None else f", shares {view.allocation}")
        comparison = ask(compared, {"settings": view}, current, saying=saying)
    if comparison.share < 1:
        raise limits.NotHere("The simulation of releases was stopped.")
    return comparison


def with_shares(current: Current, settings: Settings) -> tuple[Comparison, Comparison]:
    """Return the comparison of a setting with its shares, and with equal shares.

    Noise that ignores the shares is the same in both comparisons and simulated once, so that a
    change of shares does not simulate it again.
    """
    assert current.prepared is not None
    equal = comparison_of(current, replace(settings, allocation="uniform"))
    if settings.allocation == "uniform":
        return equal, equal
    plan_here = plan(current.prepared, settings, strict=False)
    follow = tuple(
        one.text for one in parse_variants(settings.mechanisms) if one.follows_allocation
    )
    if not follow:
        return comparison_of(current, settings), equal
    followers = comparison_of(current, replace(settings, mechanisms=follow))
    return with_others(plan_here, followers, equal), equal


def snapshots(
    prepared: Prepared, settings: Settings, epsilons: tuple[float, ...]
) -> Iterator[list[bytes]]:
    """Yield growing lists of snapshots for a moving epsilon, as JSON, first an empty list."""
    texts: list[bytes] = []
    yield texts
    for frames in steps(prepared, settings, epsilons, workers=WORKERS):
        texts = [*texts, _text(frames[-1])]
        yield texts


def _text(what: object) -> bytes:
    return json.dumps(what, separators=(",", ":"), ensure_ascii=False).encode()


_OPENINGS = Shipped[Opening](
    "openings",
    lambda text: Opening(None, 0.0, *json.loads(text)),
    lambda answer: _text([answer.now, answer.passing]),
)
_SNAPSHOTS = Shipped[list[bytes]](
    "snapshots",
    lambda text: [_text(frame) for frame in json.loads(text)],
    lambda frames: b"[" + b",".join(frames) + b"]",
)
_EXPECTED = Shipped[Any]("expected", json.loads, _text)


# The comparison figure -----------------------------------------------------------


def draw(
    answer: Opening, current: Current, pin: Payload | None, warning: str | None
) -> Callable[[], None]:
    """Draw the figure at the current epsilon; return a function that sends the other snapshots.

    Parameters
    ----------
    answer : Opening
        Result of `open_`.
    current : Current
    pin : Payload or None
        The payload of the pinned setting, from `pinned`.
    warning : str or None
        Problem with the delta, which the page explains below the figure.
    """
    prepared, settings = current.prepared, current.settings
    assert prepared is not None
    path = _path(answer, current)
    token, epsilons = path.token, path.epsilons
    # The snapshot at one fixed epsilon sets the order of mechanisms, so that it never changes.
    with st.empty().container():
        (at,) = map(json.loads, path.some((scrub.ORDERED_AT,)))
    columns = shown(scrub.ordered(parse_variants(settings.mechanisms), at))
    # Send the snapshots after the page, in the same run. With one thread for Python and the page,
    # they would arrive too early. So the browser requests them after it has drawn the first one.
    opens = bool(st.session_state.get("board.wanted")) or (limits.serving() and not in_browser())
    payload = board.payload(
        prepared,
        settings,
        columns,
        epsilons,
        [path.now],
        steps=len(scrub.frame_epsilons()),
        caution=None if warning is None else DELTA_CAUTION,
    )
    # Real rows, and comparisons with them, are sent only if somebody requests this view.
    is_public = publishable(prepared)
    if is_public:
        payload, pin = board.publishable(payload), None
    address = f"{token}/published" if is_public else token
    shape = digest_of((address, epsilons, [column["key"] for column in columns]))
    callbacks: dict[str, Any] = {
        f"on_{name}_change": state.on_change(act) for name, act in _CALLBACKS.items()
    }
    _MOUNT(
        key=KEY,
        data={
            "payload": payload,
            "token": address,
            "wanted": opens,
            "shape": shape,
            "pin": pin,
            "working": not is_public,
            "present": state.get("stage", "explore") == "yes",
            "draws": None if is_public else _draws(answer, current, token),
        },
        **callbacks,
    )
    place = st.container(gap=None)
    limits.give_way()  # A visitor who already has results lets other visitors go first.

    def send(key: str, head: dict[str, Any], frames: Sequence[bytes] = ()) -> None:
        text = _text(head)
        if frames:
            text = text.removesuffix(b"}") + b', "frames": [' + b",".join(frames) + b"]}"
        with place:
            _FEED(data=text, key=key, height=1)

    def follow() -> None:
        if not opens:
            return
        working = st.empty().container()  # The progress line appears in this place.
        if not is_public:
            with working:
                predictions = expected(current, epsilons)
            send("board.frames.expected", {"token": address} | predictions)
        # Repeat the order of the first run, so that sent snapshots are not sent again.
        orders: dict[str, list[tuple[float, ...]]] = st.session_state.setdefault("board.orders", {})
        order = orders.setdefault(token, [])
        order += [part for part in path.outwards(settings.epsilon) if part not in order]
        while len(orders) > 8:
            del orders[next(iter(orders))]
        for number, part in enumerate(order):
            # Sending inside this container lets Streamlit stop an unwanted run.
            with working:
                frames = path.some(part)
            if is_public:
                frames = [_text(board.publishable_frame(json.loads(one))) for one in frames]
            send(
                f"board.frames.{number}",
                {"token": address, "part": f"{number}/{len(part)}"},
                frames,
            )
        BOARDS.note(board_key(settings), payload)

    return follow


@dataclass(frozen=True)
class _Path:
    """The snapshots for a figure's slider: their key, their epsilons, and their source.

    Attributes
    ----------
    current : Current
    settings : Settings
        Settings of the snapshots, with only as many releases as needed and no slow mechanisms.
    late : dict
        Reasons why mechanisms are left out.
    now : Frame
        Snapshot at the reader's epsilon.
    epsilons : list of float
        Epsilons of the snapshots; fewer if simulation is slow.
    size : int
        Number of snapshots computed and sent together.
    """

    current: Current
    settings: Settings
    late: dict[str, str]
    now: Frame
    epsilons: list[float]
    size: int

    @property
    def token(self) -> str:
        """Key of the snapshots: the data and every setting except epsilon."""
        return _token(self.current, self.settings)

    def outwards(self, now: float) -> list[tuple[float, ...]]:
        """Return epsilons to compute and send together, those nearest to the reader's first.

        All readers have the same groups of epsilons, except for epsilons that are not round steps.
        """
        steps, own = scrub.frame_epsilons(), scrub.ORDERED_AT
        round_ = [one for one in self.epsilons if one in steps and one != own]
        parts = [
            tuple(round_[first : first + self.size]) for first in range(0, len(round_), self.size)
        ]
        # The figure already has the snapshot at the reader's own epsilon.
        parts += [(one,) for one in self.epsilons if one == own or one not in (*steps, now)]
        return sorted(parts, key=lambda part: min(abs(math.log(one / now)) for one in part))

    @property
    def ships(self) -> bool:
        """Whether some snapshots ship, so that almost nothing needs simulation."""
        parts = self.outwards(self.settings.epsilon)
        return any(len(part) > 1 and _SNAPSHOTS.has(self.key(part)) for part in parts)

    def key(self, part: tuple[float, ...]) -> Hashable:
        """Return the key of a group of epsilons."""
        return key_of(snapshots, self._options(part), self.current)

    def some(self, part: tuple[float, ...]) -> list[bytes]:
        """Return the snapshots of a group of epsilons as JSON."""
        if len(part) == 1 and Shipped.noting is None:
            # The page has already simulated releases at the reader's own epsilon, so reuse them.
            there = {"settings": replace(self.current.settings, epsilon=part[0])}
            own = known(opening, there, self.current)
            if own is not None and own.passing is not None:
                return [_text(own.passing)]
        texts = ask(
            snapshots, self._options(part), self.current,
            saying=f"Simulating releases at epsilon {numeral(part[0])} to {numeral(part[-1])}",
            ships=_SNAPSHOTS,
        )  # fmt: skip
        if len(texts) < len(part):
            raise limits.NotHere("The charts were stopped before they were complete.")
        if not self.late:
            return texts
        frames = [json.loads(one) for one in texts]
        return [_text(one | {"skipped": one["skipped"] | self.late}) for one in frames]

    def _options(self, part: tuple[float, ...]) -> dict[str, Any]:
        return {"settings": self.settings, "epsilons": part}


def _token(current: Current, settings: Settings) -> str:
    return digest_of((current.data_key, replace(settings, epsilon=1.0)))


def _path(answer: Opening, current: Current) -> _Path:
    """Return the snapshots for the slider of a figure."""
    assert answer.now is not None
    settings = current.settings
    skipped = () if answer.comparison is None else answer.comparison.skipped
    late = {item.mechanism: item.reason for item in skipped if item.late}
    settings_of_path = replace(settings, epsilon=1.0, trials=min(settings.trials, scrub.PATH_DRAWS))
    keys = tuple(one.text for one in parse_variants(settings.mechanisms) if one.text not in late)
    if late:
        settings_of_path = replace(settings_of_path, mechanisms=keys)
    if not keys:
        return _Path(current, settings_of_path, late, answer.now, [settings.epsilon], MOST_PART)
    every = scrub.frame_epsilons(None, settings.epsilon)
    whole = _Path(current, settings_of_path, late, answer.now, every, MOST_PART)
    if Shipped.noting is not None or whole.ships:
        return whole
    # Choose the number of snapshots once per figure, because times differ between epsilons.
    fits: dict[str, tuple[int | None, int]] = st.session_state.setdefault("board.fits", {})
    token = _token(current, settings_of_path)
    if token not in fits:
        fits[token] = _fit(len(keys), settings_of_path.trials, current, answer.seconds)
    fit, size = fits[token]
    epsilons = scrub.frame_epsilons(fit, settings.epsilon)
    return _Path(current, settings_of_path, late, answer.now, epsilons, size)


def _fit(mechanisms: int, trials: int, current: Current, first: float) -> tuple[int | None, int]:
    """Return how many snapshots fit into a page's time, and how many are computed together."""
    seconds = _seconds(mechanisms, trials, current) / WORKERS
    fit = min(
        (
            scrub.frames_affordable(seconds, MOST_SECONDS),
            scrub.frames_affordable(first, MOST_MEASURED),
        ),
        key=lambda fit: math.inf if fit is None else fit,
    )
    return fit, int(min(max(PART_SECONDS / max(seconds, first / 4, 1e-9), 1), MOST_PART))


def _seconds(mechanisms: int, trials: int, current: Current) -> float:
    """Return the approximate simulation time on one core."""
    assert current.prepared is not None
    return mechanisms * trials * CHUNK_SECONDS / chunk_size(current.prepared.d)


# Predictions without simulation --------------------------------------------------


def least(
    data_key: tuple[str, ...], rows: Measured, settings: Settings, recovery: float = scrub.GOAL
) -> str | None:
    """Return the approximate epsilon and mechanism at which a share is recovered, in words."""
    options = {"settings": _undrawn(settings), "recovery": recovery}
    about = Current(settings, rows, data_key, None)  # type: ignore[arg-type]
    saying = "Predicting the smallest epsilon"
    by_kind = ask(least_epsilons, options, about, saying=saying, ships=_EXPECTED)
    return least_words(by_kind, per_cent(numeral(100 * recovery, 4)))


def _undrawn(settings: Settings) -> Settings:
    """Return the settings that affect a prediction, without seed and number of releases."""
    return replace(settings, epsilon=1.0, seed=0, trials=1)


def expected(current: Current, epsilons: list[float]) -> dict[str, Any]:
    """Return predictions without simulation: recoveries, and the least epsilons."""
    undrawn, steps = _undrawn(current.settings), scrub.frame_epsilons()
    along: dict[float, dict[str, Any]] = {}
    # Request the steps of all figures at once, because only their results ship and are shared.
    own = [(one,) for one in epsilons if one not in steps]
    for part in filter(None, (tuple(one for one in epsilons if one in steps), *own)):
        options = {"settings": undrawn, "epsilons": part}
        saying = f"Predicting recovery at epsilon {numeral(part[0])} to {numeral(part[-1])}"
        lines = ask(predicted, options, current, saying=saying, ships=_EXPECTED)
        for place, epsilon in enumerate(part):
            along[epsilon] = {name: line[place] for name, line in lines.items()}
    names = [mechanism.text for mechanism in parse_variants(undrawn.mechanisms)]
    return {
        "part": "expected/" + ",".join(parseable(epsilon, 6) for epsilon in epsilons),
        "epsilons": epsilons,
        "predicted": {
            name: [along[epsilon].get(name) for epsilon in epsilons]
            for name in names
            if any(name in values for values in along.values())
        },
        "least": least(current.data_key, current.prepared, current.settings),
    }


# Single rows of the figure -------------------------------------------------------


def pictures(comparison: Comparison, prepared: Prepared, draw: int, axes: str) -> None:
    """Draw only the rows of the table in each released subspace of one release, from 0."""
    settings = comparison.settings
    frame = snapshot(comparison, draw=draw, axes=axes)
    columns = shown([result.mechanism for result in comparison.results])
    payload = board.payload(prepared, settings, columns, [settings.epsilon], [frame])
    options = {"rows": ["picture"], "label": "Pictures"}
    _ROW(key="projection", data={"payload": payload, "options": options})


def spectra(comparison: Comparison, *, linear: bool) -> None:
    """Draw the whole eigenspectrum of each mechanism against the true eigenspectrum."""
    ran = [result.mechanism for result in comparison.results]
    values = [expect(comparison.prepared, comparison.settings, mechanism) for mechanism in ran]
    noisy = {
        one.mechanism.text: one.prediction.spectrum.tolist()
        for one in values
        if isinstance(one, Expectation)
    }
    payload = board.spectra(comparison, shown(ran), noisy, linear=linear)
    options = {"rows": ["spectrum"], "label": "Eigenspectra", "every": True}
    _ROW(key="spectrum", data={"payload": payload, "options": options})


def opened(comparison: Comparison) -> Comparison | None:
    """Return the comparison, reduced to the opened column if a column is open."""
    key = st.session_state.get("board.opened")
    results = tuple(result for result in comparison.results if result.mechanism.text == key)
    return replace(comparison, results=results) if results else None


def pinned(pin: Current) -> Payload:
    """Return the payload of a pinned setting, which has one frame."""
    assert pin.prepared is not None
    answer = open_(pin)
    columns = shown(parse_variants(pin.settings.mechanisms))
    frames = [answer.now] if answer.now is not None else []
    epsilons = [pin.settings.epsilon]
    return board.payload(pin.prepared, pin.settings, columns, epsilons, frames)


def asked_page() -> str | None:
    """Return once the title of the page that a link of the answer names."""
    page: str | None = st.session_state.pop("board.link", None)
    return page


def _draws(answer: Opening, current: Current, token: str) -> dict[str, Any] | None:
    """Return the projection of every release, if the reader requested it at this setting."""
    number = st.session_state.pop("board.redraw", None)
    if number is None:
        return None
    comparison = answer.comparison or comparison_of(current)
    return {"id": f"{token}/{number}", "pictures": scrub.draws(comparison)}


# Messages from the browser -------------------------------------------------------


def _message(name: str) -> Any:
    return getattr(st.session_state[KEY], name, None)


def _at(epsilon: object) -> None:
    """Apply the epsilon that the browser sends with a request."""
    if isinstance(epsilon, int | float):
        state.put("epsilon", float(epsilon))


def _on_commit() -> None:
    _at(_message("commit"))


def _pin() -> None:
    order = _message("pin")
    if not isinstance(order, dict):
        return
    _at(order.get("epsilon"))
    act = {"pin": state.pin, "unpin": state.unpin, "swap": state.swap}.get(str(order.get("action")))
    if act is not None:
        act()


def _fresh() -> None:
    _at(_message("fresh"))
    state.put("seed", state.get("seed") + 1)


def _redraw() -> None:
    _at(_message("draws"))
    st.session_state["board.redraws"] = st.session_state.get("board.redraws", 0) + 1
    st.session_state["board.redraw"] = st.session_state["board.redraws"]


def _on_open() -> None:
    st.session_state["board.opened"] = _message("open") or None


def _on_present() -> None:
    state.put("stage", "yes" if _message("present") == "yes" else "no", "explore")


def _on_link() -> None:
    name = str(_message("link"))
    st.session_state["board.link"] = LINKS.get(name)
    if name in SHOWN:
        state.put("part", SHOWN[name], "claims")


def _on_view() -> None:
    st.session_state["board.working"] = (
        st.session_state.get("check.file") if _message("view") == "working" else None
    )


def _on_want() -> None:
    st.session_state["board.wanted"] = True


_CALLBACKS: dict[str, Callable[[], None]] = {
    "commit": _on_commit,
    "pin": _pin,
    "fresh": _fresh,
    "draws": _redraw,
    "open": _on_open,
    "link": _on_link,
    "view": _on_view,
    "present": _on_present,
    "want": _on_want,
}
