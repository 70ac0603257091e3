"""What a page asks: `ask` answers a question once for all who ask the same.

A question is a function of a study; where it yields, each answer has more than the one before and
the last is whole. It gets options by name, after the prepared table that it is about:

    answer = ask(waterfall, options_of(settings), current, saying="Preparing privately")
    answer = ask(sweep.steps, options, current, draw=chart.interim)

Answers about a built-in table, or about none, hold nothing of anybody's, and all sessions share
them; those about an upload stay in the session that uploaded. One run at a time makes an answer:
who asks the same meanwhile waits for it, sees what it has so far, and holds no place on the server.
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

_FOR_ALL, _FOR_ONE = 192 * 2**20, 48 * 2**20  # bytes of answers: of everybody's, of a session's
_PARTS = 20_000  # of a session, a few numbers each
_SHOWN_AFTER = 0.5  # seconds until the line of progress is there: a shorter wait needs none
_NOTHING = 0.002  # seconds
_IN_USE = 4  # tables
_TOLD = 0.25  # seconds between two messages of it
_STOP, _RUN = "ask.stopped", "ask.begun"  # the question at which the visitor has pressed that


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
    """Return a study's answer: kept, computed here, or by whoever asked the same before.

    Parameters
    ----------
    study : callable
        Takes the prepared table, if one is given, and the options; returns an answer or yields
        answers. Its module and name are a part of what the answer is kept by.
    options : mapping of str to object
        Texts, numbers, and tuples or frozen dataclasses of them, whose ``repr`` says all of them.
    table : Current or None
        What the question is about; its `data_key` stands for all that the rows depend on.
    draw : callable or None
        Takes each answer that is not yet whole, as often as drawing pays off.
    saying : str
        What the line of progress says. It has a place of its own, where `ask` is called; where it
        says nothing, none.
    aside : mapping of str to object, optional
        Options that change no number, such as where finished parts are kept.
    begin : bool
        Whether it is computed at once; else when the visitor presses the button that is offered.
    seconds : float, optional
        What it may take; what a page may if not said.
    ships : Shipped or None
        Answers about built-in tables as they begin, which come with the package.

    Returns
    -------
    object
        The whole answer; what a study yields first, which must be known without computing, where
        the visitor has stopped it or not yet begun it.

    Raises
    ------
    DpvizError
        What the study raises; `NotHere` where there is nothing yet, or it takes too long.
    """
    what = key_of(study, options, table)
    key = (*what, limits.caps())
    rows = () if table is None else (table.prepared,)
    start = partial(study, *rows, **options, **(aside or {}))
    shelf = _shelf_of(table)
    paced = Paced(draw) if draw is not None else id
    with _Line(key, saying) as line:
        if shelf.waits(key) and (_pressed(_STOP) == key or not (begin or _pressed(_RUN) == key)):
            # only what yields knows something before it computes
            yields = isgeneratorfunction(study) or isgeneratorfunction(study.__call__)
            return line.offer(start() if yields else None)
        while True:
            work, mine = shelf.find(key)
            if mine:
                answer = None if ships is None else ships.get(what)
                if answer is not None:
                    shelf.keep(work, answer)
                    return answer
                answer = _make(shelf, work, start, paced, line, seconds or limits.caps().work)
                if ships is not None:
                    ships.note(what, answer)
                return answer

            def show(work: _Work = work) -> None:
                line(work.share)
                if work.latest is not None:
                    paced(work.latest)

            limits.wait_for(work.future, show)
            if not work.future.cancelled():  # else its run was ended, as its visitor moved on
                found: T = work.future.result()
                return found


def key_of(
    study: Callable[..., object], options: Mapping[str, Any], table: Current | None = None
) -> tuple[Hashable, ...]:
    """Return by what an answer is kept; those about one table begin alike."""
    name = f"{study.__module__}.{study.__qualname__}"
    return () if table is None else table.data_key, name, repr(sorted(options.items()))


def known(
    study: Callable[..., Iterator[T]] | Callable[..., T],
    options: Mapping[str, Any],
    table: Current,
    ships: Shipped[T] | None = None,
) -> T | None:
    """Return an answer about a table if it is kept, or ships."""
    key = (*key_of(study, options, table), limits.caps())
    shelf = _shelf_of(table)
    if shelf.waits(key):
        return None if ships is None else ships.get(key_of(study, options, table))
    found: T = shelf.find(key)[0].future.result()
    return found


def clear() -> None:
    """Forget every answer that sessions share, as when a server starts."""
    _EVERYBODYS.clear()


def store(*, public: bool) -> Storage:
    """Return where finished parts of long work are kept.

    Those of public data are on disk, for the next visit too; all else stays in the session.
    """
    return _disk() if public else _memory()


@st.cache_resource(show_spinner=False)
def _disk() -> Storage:
    try:
        return Store(default_folder())
    except InvalidSetting:  # a host without a home: kept while the server runs
        return Store(Path(tempfile.mkdtemp(prefix="dpviz-")))


class _Memory(dict[str, Any]):
    """Parts of a session, the oldest of which go first."""

    def put(self, key: str, metrics: Mapping[str, Any]) -> None:
        """Keep the numbers of a part."""
        self[key] = metrics
        while len(self) > _PARTS:
            del self[next(iter(self))]


@st.cache_resource(scope="session", show_spinner=False)
def _memory() -> Storage:
    return _Memory()


class Rows(NamedTuple):
    """A table that is asked about where no page's `Current` is at hand."""

    prepared: Any
    data_key: tuple[str, ...]


class _Work:
    """An answer that is made, or was.

    Attributes
    ----------
    future : Future
        Of the whole answer; cancelled where its run was ended.
    latest : object
        What there is so far, if anything.
    size : int
        Bytes of the answer without tables.
    tables : dict of int to int
        Bytes of each table that it holds, by its identity.
    """

    def __init__(self) -> None:
        self.future: Future[Any] = Future()
        self.latest: Any = None
        self.size, self.tables = 0, dict[int, int]()

    @property
    def share(self) -> float:
        """How much of the answer there is."""
        return float(getattr(self.latest, "share", 0.0))


def _make(
    shelf: _Shelf,
    work: _Work,
    start: Callable[[], Any],
    draw: Callable[[Any], object],
    line: _Line,
    seconds: float,
) -> Any:
    """Compute an answer for all who ask."""
    try:
        with limits.deadline(seconds), limits.telling(lambda: line(work.share)):
            answer = found = start()
            for answer in found if isinstance(found, Iterator) else ():
                work.latest = answer
                line(work.share)
                if 0 < work.share < 1:  # nothing is learned yet at 0
                    draw(answer)
        shelf.keep(work, answer)
        return answer
    except limits.TooSlow:
        error = limits.NotHere(f"Not computed: {limits.too_slow(math.inf)}.")
        work.future.set_exception(error)  # kept: the next run would take as long
        raise error from None
    except Exception as failed:
        shelf.drop(work)
        work.future.set_exception(failed)
        raise
    finally:
        if not work.future.done():  # the run was ended
            shelf.drop(work)
            work.future.cancel()
            work.future.set_running_or_notify_cancel()


class _Shelf:
    """Answers by what was asked; those not asked for longest go first.

    Parameters
    ----------
    most : int
        Bytes of all answers, and of tables that they alone hold.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._works: OrderedDict[Hashable, _Work] = OrderedDict()

    def find(self, key: Hashable) -> tuple[_Work, bool]:
        """Return the place of an answer, and whether the caller is to make it."""
        with self._lock:
            mine = key not in self._works
            work = self._works.setdefault(key, _Work())
            self._works.move_to_end(key)
        return work, mine

    def waits(self, key: Hashable) -> bool:
        """Return whether an answer is not whole yet."""
        with self._lock:
            return key not in self._works or not self._works[key].future.done()

    def keep(self, work: _Work, answer: Any) -> None:
        """Keep an answer, and let go of those that have not been asked for longest.

        A table counts once, however many answers hold it; the few asked about last are in use, and
        count nothing.
        """
        work.size, work.tables = _size(answer)
        with self._lock:
            work.latest = None
            work.future.set_result(answer)
            for key, oldest in list(self._works.items()):
                made = [one for one in reversed(self._works.values()) if one.future.done()]
                tables = {of: size for one in made for of, size in one.tables.items()}
                idle = sum(list(tables.values())[_IN_USE:])
                if idle + sum(one.size for one in made) <= self._most:
                    return
                if oldest in made and oldest is not work:
                    del self._works[key]

    def drop(self, work: _Work) -> None:
        """Forget what nothing came of."""
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
    """Return where answers about a table are kept: an upload's in its own session."""
    public = table is None or table.data_key[0] in builtin_tables()
    return _EVERYBODYS if public else _own()


class _Sizes(pickle.Pickler):
    """Counts an answer's bytes, and the tables in it apart."""

    def __init__(self) -> None:
        self.text, self.tables = io.BytesIO(), dict[int, int]()
        super().__init__(self.text)

    def persistent_id(self, one: Any) -> int | None:
        """Note a table in the place of its bytes; code takes none."""
        if isinstance(one, FunctionType):
            return 0
        if not isinstance(one, Measured):
            return None
        held = one.moment.rows, one.raw, getattr(getattr(one, "table", None), "rows", None)
        self.tables[id(one)] = sum(rows.nbytes for rows in held if rows is not None)
        return id(one)


def _size(answer: Any) -> tuple[int, dict[int, int]]:
    """Return the bytes of an answer without its tables, and those of each table."""
    sizes = _Sizes()
    sizes.dump(answer)
    return sizes.text.tell(), sizes.tables


class _Line:
    """The line that says how far an answer is, and what stops it."""

    def __init__(self, key: Hashable, saying: str) -> None:
        self._key, self._saying = key, saying
        self._place, self._began = st.empty() if saying else None, time.monotonic()
        self._next = self._began + _SHOWN_AFTER
        self._bar: DeltaGenerator | None = None
        self._kept = False

    def __enter__(self) -> _Line:
        return self

    def _row(self) -> tuple[DeltaGenerator, DeltaGenerator]:
        """Return the place of the bar, and the row in which a button follows it.

        Run and Stop take the same place: else the one that was pressed stays until the run ends.
        """
        assert self._place is not None
        row = self._place.container(horizontal=True, vertical_alignment="center")
        return row.empty(), row

    def offer(self, answers: Iterator[Any] | None) -> Any:
        """Return what is known without computing, if anything is, and offer to compute the rest."""
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
        """Say how far it is, once that takes longer than a moment."""
        limits.look_up()
        now = time.monotonic()
        # each message makes the browser draw the page again
        if self._place is None or now < self._next:
            return
        self._next, since = now + _TOLD, now - self._began
        if self._bar is None:
            self._bar, row = self._row()
            row.button(
                "Stop",
                key=f"ask.stop.{self._saying}.{hash(self._key)}",  # two may say the same
                icon=":material/stop:",
                on_click=_press,
                args=(_STOP, self._key),
            )
        left = f", about {duration(since / share - since)} left" if 0 < share < 1 else ""
        self._bar.progress(min(share, 1.0), f"{self._saying}: {duration(since)}{left}")

    def __exit__(self, kind: type[BaseException] | None, *failed: object) -> None:
        ended = kind is not None and not issubclass(kind, Exception)  # by Streamlit
        if not (self._place is None or self._kept or ended):
            self._place.empty()


def _press(which: str, key: Hashable) -> None:
    """Note a press of Stop or Run: of two the later one counts."""
    st.session_state[_STOP], st.session_state[_RUN] = None, None
    st.session_state[which] = key


def _pressed(which: str) -> Hashable:
    return st.session_state.get(which)


class Paced:
    """Draws at once, and then again whenever the last drawing has paid off."""

    def __init__(self, draw: Callable[[Any], object]) -> None:
        self._draw, self._next = draw, 0.0

    def __call__(self, answer: Any) -> None:
        """Draw an answer, if it is time."""
        began = time.monotonic()
        if began >= self._next:
            self._draw(answer)
            ended = time.monotonic()
            took = ended - began
            # what takes no time has drawn next to nothing, and costs the browser as little
            self._next = ended + (0.0 if took < _NOTHING else max(1.0, 3 * took))
