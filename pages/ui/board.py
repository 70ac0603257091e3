"""The board on a page: what is sent to it, and what comes back.

The board is a component that lives in the page itself. It scrubs, plays and compares in the
browser; the page runs again only when an epsilon is let go, a setting is pinned, a column is
opened, or new draws are asked for.
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

_FEED = st.components.v2.component(
    "dpviz_frames", js=(Path(__file__).parent / "frames.js").read_text(encoding="utf-8")
)


def publishable(prepared: Prepared) -> bool:
    """Return whether a page shows what may be published alone.

    An upload's is shown so until the board is asked for its working view; another file is so again.
    """
    asked = st.session_state.get("board.working")
    return not board.anybodys(prepared) and asked != st.session_state["check.file"]


# Draws ---------------------------------------------------------------------------


WORKERS = 2
FIRST_AFTER = 2.0  # where all draws take longer, the first of each mechanism is told before
MOST_PART = 6  # snapshots computed and sent at once: they share noise
PART_SECONDS = 0.4  # of one part, so that a run that nobody wants any more can stop
MOST_SECONDS = 8.0  # of computing in all; a large table gets fewer snapshots
MOST_MEASURED = 60.0  # the same by what draws took, which slow samplers make more


@dataclass(frozen=True)
class Opening:
    """What a board opens with.

    Attributes
    ----------
    comparison : Comparison or None
        At the reader's epsilon, so far; None where the rest ships.
    seconds : float
        What the draws took on one core.
    now, passing : Frame or None
        The snapshot with every draw and all that is said of it, and as it is passed by; of a whole
        comparison alone.
    share : float
        How much of it there is.
    """

    comparison: Comparison | None
    seconds: float
    now: Frame | None = None
    passing: Frame | None = None
    share: float = 1.0


def opening(prepared: Prepared, settings: Settings) -> Iterator[Opening]:
    """Yield what the board of a view opens with as it grows, for `pages.ui.ask.ask`."""
    draw = InTime(settings.trials)
    for found in compared(prepared, settings, draw):
        yield Opening(found, draw.spent, share=0.95 * found.share)
    published = pictured(found)
    now = frame_of(found, published=published, errors=errors_of_pictures(published))
    passing = now
    if settings.trials > scrub.PATH_DRAWS:
        passing = frame_of(found, scrub.PATH_DRAWS, published=published)
    yield Opening(found, draw.spent, now, passing)


def open_(current: Current, *, early: bool = True) -> Opening:
    """Return what the board of a view opens with.

    Parameters
    ----------
    current : Current
    early : bool
        Whether first draws may be told before all are there: they compare with the truth.
    """
    settings = current.settings

    def tell(found: Opening) -> None:
        if early and found.comparison is not None and found.comparison.results:
            results = found.comparison.results
            if _seconds(len(results), settings.trials, current) > FIRST_AFTER:
                first.markdown(narrative.first_draw(results, settings.trials))

    # A place that is there also where nothing is computed: else all elements below would move, and
    # the browser would close what is open.
    with st.empty().container():
        first = st.empty()
        found = ask(
            opening, {"settings": settings}, current, draw=tell, saying="Drawing releases",
            ships=_OPENINGS,
        )  # fmt: skip
        first.empty()
    if found.now is None:
        raise limits.NotHere("Drawing releases was stopped.")
    return found


def comparison_of(current: Current, settings: Settings | None = None) -> Comparison:
    """Return the comparison of a view, or of another setting of its table."""
    chosen = current.settings if settings is None else settings
    with st.empty().container():
        saying = "Drawing releases" + ("" if settings is None else f", shares {chosen.allocation}")
        found = ask(compared, {"settings": chosen}, current, saying=saying)
    if found.share < 1:
        raise limits.NotHere("Drawing releases was stopped.")
    return found


def with_shares(current: Current, settings: Settings) -> tuple[Comparison, Comparison]:
    """Return the comparison of a setting with its shares, and with equal ones.

    Noise that follows no shares is the same in both and drawn once, so that moving them draws
    nobody else again.
    """
    assert current.prepared is not None
    equal = comparison_of(current, replace(settings, allocation="uniform"))
    if settings.allocation == "uniform":
        return equal, equal
    chosen = plan(current.prepared, settings, strict=False)
    follow = tuple(
        one.text for one in parse_variants(settings.mechanisms) if one.follows_allocation
    )
    if not follow:
        return comparison_of(current, settings), equal
    moved = comparison_of(current, replace(settings, mechanisms=follow))
    return with_others(chosen, moved, equal), equal


def snapshots(
    prepared: Prepared, settings: Settings, epsilons: tuple[float, ...]
) -> Iterator[list[bytes]]:
    """Yield snapshots of a board that are passed by, as JSON, from none on."""
    made: list[bytes] = []
    yield made
    for found in steps(prepared, settings, epsilons, workers=WORKERS):
        made = [*made, _text(found[-1])]
        yield made


def _text(what: object) -> bytes:
    return json.dumps(what, separators=(",", ":"), ensure_ascii=False).encode()


_OPENINGS = Shipped[Opening](
    "openings",
    lambda text: Opening(None, 0.0, *json.loads(text)),
    lambda found: _text([found.now, found.passing]),
)
_SNAPSHOTS = Shipped[list[bytes]](
    "snapshots",
    lambda text: [_text(frame) for frame in json.loads(text)],
    lambda frames: b"[" + b",".join(frames) + b"]",
)
_EXPECTED = Shipped[Any]("expected", json.loads, _text)


# The board -----------------------------------------------------------------------


def draw(
    found: Opening, current: Current, pin: Payload | None, warning: str | None
) -> Callable[[], None]:
    """Draw the board with the present epsilon; return what sends the other snapshots.

    Parameters
    ----------
    found : Opening
        From `open_`.
    current : Current
    pin : Payload or None
        The payload of the pinned setting, from `pinned`.
    warning : str or None
        What is wrong with the delta, said in full below the board.
    """
    prepared, settings = current.prepared, current.settings
    assert prepared is not None
    path = _path(found, current)
    token, epsilons = path.token, path.epsilons
    # The snapshot at one epsilon decides, wherever the reader is: the order holds still.
    with st.empty().container():
        (at,) = map(json.loads, path.some((scrub.ORDERED_AT,)))
    columns = shown(scrub.ordered(parse_variants(settings.mechanisms), at))
    # Frames follow the page within the same run. Where Python runs beside the page in one thread
    # they would come before it: there the browser asks for them when it has painted the first.
    wanted = bool(st.session_state.get("board.wanted")) or (limits.serving() and not in_browser())
    payload = board.payload(
        prepared,
        settings,
        columns,
        epsilons,
        [path.now],
        steps=len(scrub.frame_epsilons()),
        caution=None if warning is None else DELTA_CAUTION,
    )
    # A browser gets real rows and what compares with them where somebody asks for that view.
    published = publishable(prepared)
    if published:
        payload, pin = board.publishable(payload), None
    sent = f"{token}/published" if published else token
    shape = digest_of((sent, epsilons, [column["key"] for column in columns]))
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
            "draws": None if published else _draws(found, current, token),
        },
        **callbacks,
    )
    place = st.container(gap=None)
    limits.give_way()  # whoever has their numbers, to those who wait for theirs

    def send(key: str, head: dict[str, Any], frames: Sequence[bytes] = ()) -> None:
        text = _text(head)
        if frames:
            text = text.removesuffix(b"}") + b', "frames": [' + b",".join(frames) + b"]}"
        with place:
            _FEED(data=text, key=key, height=1)

    def follow() -> None:
        if not wanted:
            return
        working = st.empty().container()  # where progress stands
        if not published:
            with working:
                told = expected(current, epsilons)
            send("board.frames.expected", {"token": sent} | told)
        # The order of the first run is kept, so that a later epsilon sends nothing again.
        orders: dict[str, list[tuple[float, ...]]] = st.session_state.setdefault("board.orders", {})
        order = orders.setdefault(token, [])
        order += [part for part in path.outwards(settings.epsilon) if part not in order]
        while len(orders) > 8:
            del orders[next(iter(orders))]
        for number, part in enumerate(order):
            # Sending is also where Streamlit can stop a run that nobody wants any more.
            with working:
                frames = path.some(part)
            if published:
                frames = [_text(board.publishable_frame(json.loads(one))) for one in frames]
            send(
                f"board.frames.{number}",
                {"token": sent, "part": f"{number}/{len(part)}"},
                frames,
            )
        BOARDS.note(board_key(settings), payload)

    return follow


@dataclass(frozen=True)
class _Path:
    """The snapshots of a board: what they belong to, which there are, and where they come from.

    Attributes
    ----------
    current : Current
    settings : Settings
        Of what is passed by: no more draws than that needs, without what would take too long.
    late : dict
        Why others are left out.
    now : Frame
        At the reader's epsilon.
    epsilons : list of float
        Fewer where draws are slow.
    size : int
        How many are computed and sent at once.
    """

    current: Current
    settings: Settings
    late: dict[str, str]
    now: Frame
    epsilons: list[float]
    size: int

    @property
    def token(self) -> str:
        """What snapshots belong to: the data and every setting but epsilon."""
        return _token(self.current, self.settings)

    def outwards(self, now: float) -> list[tuple[float, ...]]:
        """Return which are computed and sent together, those nearest to the reader's first.

        Every reader has the same parts, but for epsilons beside the round steps.
        """
        steps, own = scrub.frame_epsilons(), scrub.ORDERED_AT
        round_ = [one for one in self.epsilons if one in steps and one != own]
        parts = [
            tuple(round_[first : first + self.size]) for first in range(0, len(round_), self.size)
        ]
        # the board is sent the reader's own epsilon itself
        parts += [(one,) for one in self.epsilons if one == own or one not in (*steps, now)]
        return sorted(parts, key=lambda part: min(abs(math.log(one / now)) for one in part))

    @property
    def ships(self) -> bool:
        """Whether parts of it ship, so that next to nothing is left to be drawn."""
        parts = self.outwards(self.settings.epsilon)
        return any(len(part) > 1 and _SNAPSHOTS.has(self.key(part)) for part in parts)

    def key(self, part: tuple[float, ...]) -> Hashable:
        """Return by what a part is kept."""
        return key_of(snapshots, self._options(part), self.current)

    def some(self, part: tuple[float, ...]) -> list[bytes]:
        """Return a part of the path as JSON."""
        if len(part) == 1 and Shipped.noting is None:
            # as a reader's own epsilon the page has drawn it itself
            there = {"settings": replace(self.current.settings, epsilon=part[0])}
            own = known(opening, there, self.current)
            if own is not None and own.passing is not None:
                return [_text(own.passing)]
        found = ask(
            snapshots, self._options(part), self.current,
            saying=f"Drawing the board at epsilon {numeral(part[0])} to {numeral(part[-1])}",
            ships=_SNAPSHOTS,
        )  # fmt: skip
        if len(found) < len(part):
            raise limits.NotHere("Drawing the board was stopped.")
        if not self.late:
            return found
        frames = [json.loads(one) for one in found]
        return [_text(one | {"skipped": one["skipped"] | self.late}) for one in frames]

    def _options(self, part: tuple[float, ...]) -> dict[str, Any]:
        return {"settings": self.settings, "epsilons": part}


def _token(current: Current, settings: Settings) -> str:
    return digest_of((current.data_key, replace(settings, epsilon=1.0)))


def _path(found: Opening, current: Current) -> _Path:
    """Return the path of a board."""
    assert found.now is not None
    settings = current.settings
    skipped = () if found.comparison is None else found.comparison.skipped
    late = {item.mechanism: item.reason for item in skipped if item.late}
    passed = replace(settings, epsilon=1.0, trials=min(settings.trials, scrub.PATH_DRAWS))
    chosen = tuple(one.text for one in parse_variants(settings.mechanisms) if one.text not in late)
    if late:
        passed = replace(passed, mechanisms=chosen)
    if not chosen:
        return _Path(current, passed, late, found.now, [settings.epsilon], MOST_PART)
    every = scrub.frame_epsilons(None, settings.epsilon)
    whole = _Path(current, passed, late, found.now, every, MOST_PART)
    if Shipped.noting is not None or whole.ships:
        return whole
    # How many there are is decided once for a board: its clock is not the next epsilon's.
    fits: dict[str, tuple[int | None, int]] = st.session_state.setdefault("board.fits", {})
    token = _token(current, passed)
    if token not in fits:
        fits[token] = _fit(len(chosen), passed.trials, current, found.seconds)
    fit, size = fits[token]
    epsilons = scrub.frame_epsilons(fit, settings.epsilon)
    return _Path(current, passed, late, found.now, epsilons, size)


def _fit(mechanisms: int, trials: int, current: Current, measured: float) -> tuple[int | None, int]:
    """Return how many snapshots fit the time a page may take, and how many are made at once."""
    seconds = _seconds(mechanisms, trials, current) / WORKERS
    fit = min(
        (
            scrub.frames_affordable(seconds, MOST_SECONDS),
            scrub.frames_affordable(measured, MOST_MEASURED),
        ),
        key=lambda fit: math.inf if fit is None else fit,
    )
    return fit, int(min(max(PART_SECONDS / max(seconds, measured / 4, 1e-9), 1), MOST_PART))


def _seconds(mechanisms: int, trials: int, current: Current) -> float:
    """Return about what draws take on one core."""
    assert current.prepared is not None
    return mechanisms * trials * CHUNK_SECONDS / chunk_size(current.prepared.d)


# Without a draw ------------------------------------------------------------------


def least(
    data_key: tuple[str, ...], rows: Measured, settings: Settings, recovery: float = scrub.GOAL
) -> str | None:
    """Return from about which epsilon a share is recovered, in words, and by whom."""
    options = {"settings": _undrawn(settings), "wanted": recovery}
    about = Current(settings, rows, data_key, None)  # type: ignore[arg-type]
    saying = "Predicting the least epsilon"
    found = ask(least_epsilons, options, about, saying=saying, ships=_EXPECTED)
    return least_words(found, per_cent(numeral(100 * recovery, 4)))


def _undrawn(settings: Settings) -> Settings:
    """Return what a prediction depends on: it is the same whatever the seed and the draws."""
    return replace(settings, epsilon=1.0, seed=0, trials=1)


def expected(current: Current, epsilons: list[float]) -> dict[str, Any]:
    """Return what is expected without a draw: recoveries, and the least epsilons."""
    undrawn, steps = _undrawn(current.settings), scrub.frame_epsilons()
    along: dict[float, dict[str, Any]] = {}
    # what all boards have is asked for at once, as only that ships and is shared
    own = [(one,) for one in epsilons if one not in steps]
    for part in filter(None, (tuple(one for one in epsilons if one in steps), *own)):
        options = {"settings": undrawn, "epsilons": part}
        saying = f"Predicting at epsilon {numeral(part[0])} to {numeral(part[-1])}"
        found = ask(predicted, options, current, saying=saying, ships=_EXPECTED)
        for place, epsilon in enumerate(part):
            along[epsilon] = {name: line[place] for name, line in found.items()}
    names = [mechanism.text for mechanism in parse_variants(undrawn.mechanisms)]
    return {
        "part": "expected/" + ",".join(parseable(epsilon, 6) for epsilon in epsilons),
        "epsilons": epsilons,
        "predicted": {
            name: [along[epsilon].get(name) for epsilon in epsilons]
            for name in names
            if any(name in found for found in along.values())
        },
        "least": least(current.data_key, current.prepared, current.settings),
    }


# Rows of it ----------------------------------------------------------------------


def pictures(comparison: Comparison, prepared: Prepared, draw: int, axes: str) -> None:
    """Draw the rows in each released space of one draw, from 0, and nothing else."""
    settings = comparison.settings
    frame = snapshot(comparison, draw=draw, axes=axes)
    columns = shown([result.mechanism for result in comparison.results])
    payload = board.payload(prepared, settings, columns, [settings.epsilon], [frame])
    options = {"rows": ["picture"], "label": "Pictures"}
    _ROW(key="projection", data={"payload": payload, "options": options})


def spectra(comparison: Comparison, *, linear: bool) -> None:
    """Draw the whole eigenspectrum of each mechanism against the true one."""
    ran = [result.mechanism for result in comparison.results]
    found = [expect(comparison.prepared, comparison.settings, mechanism) for mechanism in ran]
    noisy = {
        one.mechanism.text: one.prediction.spectrum.tolist()
        for one in found
        if isinstance(one, Expectation)
    }
    payload = board.spectra(comparison, shown(ran), noisy, linear=linear)
    options = {"rows": ["spectrum"], "label": "Eigenspectra", "every": True}
    _ROW(key="spectrum", data={"payload": payload, "options": options})


def opened(comparison: Comparison) -> Comparison | None:
    """Return the comparison of nothing but the column that is opened, if one is."""
    key = st.session_state.get("board.opened")
    results = tuple(result for result in comparison.results if result.mechanism.text == key)
    return replace(comparison, results=results) if results else None


def pinned(held: Current) -> Payload:
    """Return the payload of a pinned setting, with its one frame."""
    assert held.prepared is not None
    found = open_(held)
    columns = shown(parse_variants(held.settings.mechanisms))
    frames = [found.now] if found.now is not None else []
    epsilons = [held.settings.epsilon]
    return board.payload(held.prepared, held.settings, columns, epsilons, frames)


def asked_page() -> str | None:
    """Return the title of the page that a link of the answer asks for, once."""
    found: str | None = st.session_state.pop("board.link", None)
    return found


def _draws(found: Opening, current: Current, token: str) -> dict[str, Any] | None:
    """Return the picture of every draw, where that was asked for at this setting."""
    number = st.session_state.pop("board.redraw", None)
    if number is None:
        return None
    comparison = found.comparison or comparison_of(current)
    return {"id": f"{token}/{number}", "pictures": scrub.draws(comparison)}


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
