"""Where results are kept: a built-in table's for all sessions, an upload's in its own alone.

What a first look at a built-in table needs ships with the package (`pages.ui.first_sight`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Generic, TypeVar

from dpviz.datasets import builtin_tables
from pages.ui.first_sight import Shipped

Call = TypeVar("Call", bound=Callable[..., Any])
Item = TypeVar("Item")


def public(key: str | tuple[str, ...]) -> bool:
    """Return whether what is kept by this key belongs to a built-in table."""
    return (key if isinstance(key, str) else key[0]) in builtin_tables()


def apart(cache: Callable[..., Any], *, own: int = 0, **options: Any) -> Callable[[Call], Call]:
    """Return a decorator: `st.cache_data` or `st.cache_resource`, on one shelf of two.

    The function's first argument is the table's key, or begins with it; the key of an upload
    names its file and is no built-in table's (`loading`). What belongs to a built-in table holds
    nothing of anybody's, and the next visitor need not wait for it. ``own`` is ``max_entries`` of
    a session's shelf, where one visitor needs fewer than all.
    """

    def decorate(function: Call) -> Call:
        everybody = cache(**options)(function)
        fewer = {"max_entries": own} if own else {}
        alone = cache(scope="session", **(options | fewer))(function)

        @wraps(function)
        def kept(key: str | tuple[str, ...], *args: Any, **named: Any) -> Any:
            return (everybody if public(key) else alone)(key, *args, **named)

        return kept  # type: ignore[return-value]

    return decorate


class Kept(Generic[Item]):
    """Items by what they depend on; those unused for longest go first.

    Parameters
    ----------
    most : int
        What all may come to.
    size : callable
        What one comes to.
    shipped : Shipped or None
        Where an item is looked for that is not here.
    """

    def __init__(
        self,
        most: int,
        size: Callable[[Item], int] = lambda item: 1,
        shipped: Shipped[Item] | None = None,
    ) -> None:
        self._most, self._size, self._sum = most, size, 0
        self._items: OrderedDict[Hashable, Item] = OrderedDict()
        self._lock = threading.Lock()
        self._shipped = shipped

    def get(self, what: Hashable) -> Item | None:
        """Return an item, if it is kept or ships."""
        with self._lock:
            if what in self._items:
                self._items.move_to_end(what)
                return self._items[what]
        item = None if self._shipped is None else self._shipped.get(what)
        if item is not None:
            self.keep(what, item, fresh=False)
        return item

    def keep(self, what: Hashable, item: Item, *, fresh: bool = True) -> None:
        """Keep an item, and let go of what has not been asked for longest."""
        if fresh and self._shipped is not None:
            self._shipped.note(what, item)
        with self._lock:
            if what in self._items:  # another session made the same meanwhile
                return
            self._items[what] = item
            self._sum += self._size(item)
            while self._sum > self._most:
                self._sum -= self._size(self._items.popitem(last=False)[1])
