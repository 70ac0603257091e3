"""Questions of pages: `ask` computes an answer once for all runs that ask the same question.

A question is a study's function. If it yields, each answer extends the previous answer, and the
last answer is complete. The function gets the prepared table, if any, and then options by name:

    answer = ask(waterfall, options_of(settings), current, saying="Preparing privately")
    answer = ask(sweep.steps, options, current, draw=chart.interim)

All sessions share answers about a built-in table, or about no table, because these hold nobody's
data. Answers about an upload stay in its session. Only one run computes an answer. Other runs with
the same question wait for it, see partial answers, and occupy no place on the server.
"""

from __future__ import annotations

import io
import math
import pickle
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from inspect import isgeneratorfunction
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import percent
from dpviz.datasets import builtin_tables
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.phrases import duration
from dpviz.simulation.jobs import Storage
from dpviz.simulation.store import Store, default_folder
from pages.ui import limits
from pages.ui.first_sight import Shipped

if TYPE_CHECKING:
    from pages.ui.loading import Current

T = TypeVar("T")

_FOR_ALL, _FOR_ONE = 192 * 2**20, 48 * 2**20  # Answers may take so many bytes: shared, per session.
_PARTS = 20_000  # A session stores at most this many small parts of answers.
_SHOWN_AFTER = 0.5  # The progress line appears only after this many seconds.
_NOTHING = 0.002  # seconds
_IN_USE = 4  # tables
_TOLD = 0.25  # The progress line changes at most once in this many seconds.
_STOP, _RUN = "ask.stopped", "ask.begun"  # These name the question whose button was pressed.


def ask(
    study: Callable[..., Iterator[T]] | Callable[..., T],
    options: Mapping[str, Any],
    table: Current | None = None,
    *,
    draw: Callable[[T], object] | None = None,
    saying: str = "Computing",
    aside: Mapping[str, Any] | None = None,
    begin: bool = True,
    seconds: float | None = None,
    ships: Shipped[T] | None = None,
) -> T:
    """Return a study's answer, which may be stored, computed here, or computed by another run.

    Parameters
    ----------
    study : callable
        Function that takes the prepared table, if one is given, and the options; it returns an
        answer or yields answers. Its module and name are part of the answer's key.
    options : mapping of str to object
        Options: texts, numbers, and tuples or frozen dataclasses of them, with a complete ``repr``.
    table : Current or None
        The table of the question; its `data_key` stands for all facts on which the rows depend.
    draw : callable or None
        Function that draws partial answers, as often as drawing is worth its time.
    saying : str
        Text of the progress line, which appears where `ask` is called. Without a text there is no
        line.
    aside : mapping of str to object, optional
        Options that change no number, such as the folder of finished parts.
    begin : bool
        Whether to compute at once; otherwise a button starts the computation.
    seconds : float, optional
        Time limit in seconds; by default the limit of a page.
    ships : Shipped or None
        Shipped answers about built-in tables with their first settings.

    Returns
    -------
    object
        The complete answer. If the visitor has stopped the study or not yet begun it, the first
        value that the study yields, which must be known without computing.

    Raises
    ------
    DpvizError
        Errors of the study; `NotHere` if there is no answer yet, or the study takes too long.
    """
    what = key_of(study, options, table)
    key = (*what, limits.caps())
    rows = () if table is None else (table.prepared,)
    start = partial(study, *rows, **options, **(aside or {}))
    shelf = _shelf_of(table)
    pacer = Paced(draw) if draw is not None else id
    with _Line(key, saying) as line:
        if shelf.waits(key) and (_state_of(_STOP) == key or not (begin or _state_of(_RUN) == key)):
            # Only a generator can give an answer before it computes.
            yields = isgeneratorfunction(study) or isgeneratorfunction(study.__call__)
            return line.offer(start() if yields else None)
        while True:
            work, mine = shelf.find(key)
            if mine:
                answer = None if ships is None else ships.get(what)
                if answer is not None:
                    shelf.keep(work, answer)
                    return answer
                answer = _make(shelf, work, start, pacer, line, seconds or limits.caps().work)
                if ships is not None:
                    ships.note(what, answer)
                return answer

            def show(work: _Work = work) -> None:
                line(work.share)
                if work.latest is not None:
                    pacer(work.latest)

            limits.wait_for(work.future, show)
            if not work.future.cancelled():  # If cancelled, its own visitor ended the run.
                value: T = work.future.result()
                return value


def key_of(
    study: Callable[..., object], options: Mapping[str, Any], table: Current | None = None
) -> tuple[Hashable, ...]:
    """Return the key of an answer; all keys about one table begin alike."""
    name = f"{study.__module__}.{study.__qualname__}"
    return () if table is None else table.data_key, name, repr(sorted(options.items()))


def known(
    study: Callable[..., Iterator[T]] | Callable[..., T],
    options: Mapping[str, Any],
    table: Current,
    ships: Shipped[T] | None = None,
) -> T | None:
    """Return an answer about a table if it is stored or shipped."""
    key = (*key_of(study, options, table), limits.caps())
    shelf = _shelf_of(table)
    if shelf.waits(key):
        return None if ships is None else ships.get(key_of(study, options, table))
    value: T = shelf.find(key)[0].future.result()
    return value


def clear() -> None:
    """Forget every answer that sessions share, as at the start of a server."""
    _EVERYBODYS.clear()


def store(*, public: bool) -> Storage:
    """Return the store for finished parts of long work.

    Parts about public data are on disk, for the next visit too; others stay in the session.
    """
    return _disk() if public else _memory()


@st.cache_resource(show_spinner=False)
def _disk() -> Storage:
    try:
        return Store(default_folder())
    except InvalidSetting:  # Without a home folder, store answers until the server stops.
        return Store(Path(tempfile.mkdtemp(prefix="dpviz-")))


class _Memory(dict[str, Any]):
    """Finished parts of a session; the oldest parts are dropped first."""

    def put(self, key: str, metrics: Mapping[str, Any]) -> None:
        """Store the numbers of a part."""
        self[key] = metrics
        while len(self) > _PARTS:
            del self[next(iter(self))]


@st.cache_resource(scope="session", show_spinner=False)
def _memory() -> Storage:
    return _Memory()


class Rows(NamedTuple):
    """A table with its key, for questions that have no page's `Current`."""

    prepared: Any
    data_key: tuple[str, ...]


class _Work:
    """An answer that is being computed, or is complete.

    Attributes
    ----------
    future : Future
        Future of the complete answer; cancelled if its run was ended.
    latest : object
        Latest partial answer, or None.
    size : int
        Size of the answer without tables, in bytes.
    tables : dict of int to int
        Size of each table in the answer in bytes, by the table's identity.
    """

    def __init__(self) -> None:
        self.future: Future[Any] = Future()
        self.latest: Any = None
        self.size, self.tables = 0, dict[int, int]()

    @property
    def share(self) -> float:
        """Finished share of the answer."""
        return float(getattr(self.latest, "share", 0.0))


def _make(
    shelf: _Shelf,
    work: _Work,
    start: Callable[[], Any],
    draw: Callable[[Any], object],
    line: _Line,
    seconds: float,
) -> Any:
    """Compute an answer for all runs that ask for it."""
    try:
        with limits.deadline(seconds), limits.telling(lambda: line(work.share)):
            answer = result = start()
            for answer in result if isinstance(result, Iterator) else ():
                work.latest = answer
                line(work.share)
                if 0 < work.share < 1:  # At a share of 0 there is nothing to draw.
                    draw(answer)
        shelf.keep(work, answer)
        return answer
    except limits.TooSlow:
        error = limits.NotHere(f"Not computed: {limits.too_slow(math.inf)}.")
        work.future.set_exception(error)  # Store the error; repeating would take as long.
        raise error from None
    except Exception as fault:
        shelf.drop(work)
        work.future.set_exception(fault)
        raise
    finally:
        if not work.future.done():  # Somebody ended the run before it finished.
            shelf.drop(work)
            work.future.cancel()
            work.future.set_running_or_notify_cancel()


class _Shelf:
    """Answers by key; the least recently requested answers are dropped first.

    Parameters
    ----------
    most : int
        Maximum bytes of all answers, and of tables that only answers hold.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._works: OrderedDict[Hashable, _Work] = OrderedDict()

    def find(self, key: Hashable) -> tuple[_Work, bool]:
        """Return the entry of an answer, and whether the caller must compute the answer."""
        with self._lock:
            mine = key not in self._works
            work = self._works.setdefault(key, _Work())
            self._works.move_to_end(key)
        return work, mine

    def waits(self, key: Hashable) -> bool:
        """Return whether an answer is not complete yet."""
        with self._lock:
            return key not in self._works or not self._works[key].future.done()

    def keep(self, work: _Work, answer: Any) -> None:
        """Store an answer, and drop the least recently requested answers.

        A table counts once, however many answers hold it. The few most recently requested tables
        are in use, and do not count.
        """
        work.size, work.tables = _size(answer)
        with self._lock:
            work.latest = None
            work.future.set_result(answer)
            for key, oldest in list(self._works.items()):
                complete = [one for one in reversed(self._works.values()) if one.future.done()]
                tables = {of: size for one in complete for of, size in one.tables.items()}
                idle = sum(list(tables.values())[_IN_USE:])
                if idle + sum(one.size for one in complete) <= self._most:
                    return
                if oldest in complete and oldest is not work:
                    del self._works[key]

    def drop(self, work: _Work) -> None:
        """Forget an answer that was not completed."""
        with self._lock:
            self._works = OrderedDict(
                (key, one) for key, one in self._works.items() if one is not work
            )

    def clear(self) -> None:
        """Forget every answer."""
        with self._lock:
            self._works.clear()


_EVERYBODYS = _Shelf(_FOR_ALL)


@st.cache_resource(scope="session", show_spinner=False)
def _own() -> _Shelf:
    return _Shelf(_FOR_ONE)


def _shelf_of(table: Current | None) -> _Shelf:
    """Return the store of answers about a table; an upload has a store in its own session."""
    public = table is None or table.data_key[0] in builtin_tables()
    return _EVERYBODYS if public else _own()


class _Sizes(pickle.Pickler):
    """Pickler that counts an answer's bytes, separately from the tables in the answer."""

    def __init__(self) -> None:
        self.text, self.tables = io.BytesIO(), dict[int, int]()
        super().__init__(self.text)

    def persistent_id(self, one: Any) -> int | None:
        """Record a table instead of its bytes; code counts no bytes."""
        if isinstance(one, FunctionType):
            return 0
        if not isinstance(one, Measured):
            return None
        arrays = one.moment.rows, one.raw, getattr(getattr(one, "table", None), "rows", None)
        self.tables[id(one)] = sum(rows.nbytes for rows in arrays if rows is not None)
        return id(one)


def _size(answer: Any) -> tuple[int, dict[int, int]]:
    """Return the size of an answer without its tables, and the size of each table."""
    sizes = _Sizes()
    sizes.dump(answer)
    return sizes.text.tell(), sizes.tables


class _Line:
    """The progress line of an answer, with the button that stops it."""

    def __init__(self, key: Hashable, saying: str) -> None:
        self._key, self._saying = key, saying
        self._place, self._began = st.empty() if saying else None, time.monotonic()
        self._next = self._began + _SHOWN_AFTER
        self._bar: DeltaGenerator | None = None
        self._kept = False

    def __enter__(self) -> _Line:
        return self

    def _row(self) -> tuple[DeltaGenerator, DeltaGenerator]:
        """Return the place of the progress bar, and the row for the button after the bar.

        The buttons Run and Stop share a place; otherwise the pressed one would stay until the end.
        """
        assert self._place is not None
        row = self._place.container(horizontal=True, vertical_alignment="center")
        return row.empty(), row

    def offer(self, answers: Iterator[Any] | None) -> Any:
        """Return the part known without computing, or raise; offer to compute the rest."""
        first = None if answers is None else next(answers)
        share = getattr(first, "share", 0.0)
        if share < 1 and self._place is not None:
            self._kept = True
            _, row = self._row()
            row.button(
                f"Go on ({percent(share)} done)" if share else "Run it",
                key=f"ask.run.{self._saying}",
                type="primary",
                icon=":material/play_arrow:",
                on_click=_press,
                args=(_RUN, self._key),
            )
        if first is None:
            raise limits.NotHere(f"{self._saying} was stopped.")
        return first

    def __call__(self, share: float) -> None:
        """Show the progress, if the work takes longer than a moment."""
        limits.look_up()
        now = time.monotonic()
        # Limit the number of updates, because each one makes the browser draw the page again.
        if self._place is None or now < self._next:
            return
        self._next, since = now + _TOLD, now - self._began
        if self._bar is None:
            self._bar, row = self._row()
            row.button(
                "Stop",
                key=f"ask.stop.{self._saying}.{hash(self._key)}",
                icon=":material/stop:",
                on_click=_press,
                args=(_STOP, self._key),
            )
        rest = f", about {duration(since / share - since)} left" if 0 < share < 1 else ""
        self._bar.progress(min(share, 1.0), f"{self._saying}: {duration(since)}{rest}")

    def __exit__(self, kind: type[BaseException] | None, *failed: object) -> None:
        is_over = kind is not None and not issubclass(kind, Exception)  # Streamlit ended the run.
        if not (self._place is None or self._kept or is_over):
            self._place.empty()


def _press(which: str, key: Hashable) -> None:
    """Note a press of Stop or Run; only the later press counts."""
    st.session_state[_STOP], st.session_state[_RUN] = None, None
    st.session_state[which] = key


def _state_of(which: str) -> Hashable:
    return st.session_state.get(which)


class Paced:
    """Draw at once, and then again after a pause that depends on the drawing time."""

    def __init__(self, draw: Callable[[Any], object]) -> None:
        self._draw, self._next = draw, 0.0

    def __call__(self, answer: Any) -> None:
        """Draw an answer, unless the pause has not yet passed."""
        began = time.monotonic()
        if began >= self._next:
            self._draw(answer)
            end = time.monotonic()
            took = end - began
            # After a very quick call nothing was drawn, so the browser needs no pause.
            self._next = end + (0.0 if took < _NOTHING else max(1.0, 3 * took))
