"""The tables that come with dpviz: what the modules of this package have in ``TABLES``.

`builtin_tables` lists them without loading any; `load_builtin` makes one.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module

from dpviz.core.errors import InvalidTable
from dpviz.core.plugins import from_outside, kept_apart
from dpviz.datasets.embedded import Embedded, embedded_tables, place
from dpviz.datasets.table import Table


@dataclass(frozen=True)
class BuiltIn:
    """What is known about a built-in table before it is loaded.

    Attributes
    ----------
    key : str
        Name on the command line and in links.
    label, description : str
        Title and one sentence for people.
    n, d : int
        Rows and features as loaded, before constant columns are dropped.
    labels : str
        What the labels are, in words.
    source, licence : str
        Citation, and the terms under which the numbers may be used.
    loader : callable
        Makes the table; takes no argument, so equal calls give equal bytes.
    place : int
        Where it stands in lists; those that were put beside the app come last.
    """

    key: str
    label: str
    description: str
    n: int
    d: int
    labels: str
    source: str
    licence: str
    loader: Callable[[], Table]
    place: int = 1_000


def builtin_tables() -> dict[str, BuiltIn]:
    """Return every built-in table by key, in the order shown; loads nothing.

    After ours come those of packages and plugins, and those that were put beside the app.
    """
    ours = {entry.key: entry for entry in _ours()}
    brought = ((one.key, one) for one in from_outside("datasets") if isinstance(one, BuiltIn))
    beside = {entry.key: entry for entry in map(_beside, embedded_tables())}
    return ours | kept_apart(ours, brought) | beside


@cache
def _ours() -> tuple[BuiltIn, ...]:
    """Return the tables of every module of this package, in the order of their places."""
    modules = [import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)]
    found = [entry for module in modules for entry in module.TABLES]
    return tuple(sorted(found, key=lambda entry: entry.place))


def _beside(entry: Embedded) -> BuiltIn:
    return BuiltIn(
        entry.key,
        entry.file,
        "A table that came with this copy of dpviz.",
        entry.n,
        entry.d,
        "none",
        "put here by whoever published this copy",
        "not stated",
        lambda: entry.table(place()),
    )


def load_builtin(key: str) -> Table:
    """Return a built-in table, or raise InvalidTable for an unknown key."""
    known = builtin_tables()
    if key not in known:
        raise InvalidTable(f"table must be one of {', '.join(known)}; got {key[:60]!r}.")
    return replace(known[key].loader(), public=True)


def dataset_rows() -> list[dict[str, str | int]]:
    """Return one row per built-in table for a listing; loads nothing.

    The keys of a row are ``key``, ``label``, ``description``, ``n``, ``d``,
    ``labels``, ``source`` and ``licence``.
    """
    return [
        {
            "key": entry.key,
            "label": entry.label,
            "description": entry.description,
            "n": entry.n,
            "d": entry.d,
            "labels": entry.labels,
            "source": entry.source,
            "licence": entry.licence,
        }
        for entry in builtin_tables().values()
    ]
