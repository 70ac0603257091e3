"""Where results are kept: a built-in table's for all sessions, an upload's in its own alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from dpviz.datasets import builtin_tables

Call = TypeVar("Call", bound=Callable[..., Any])


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
            table = key if isinstance(key, str) else key[0]
            return (everybody if table in builtin_tables() else alone)(key, *args, **named)

        return kept  # type: ignore[return-value]

    return decorate
