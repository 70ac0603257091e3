"""The tables that come with dpviz, from ``TABLES`` in each module of this package.

`builtin_tables` lists the tables without loading any; `load_builtin` loads one table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from dpviz.core.errors import InvalidTable, printable
from dpviz.core.files import app_path
from dpviz.core.plugins import from_outside, kept_apart, modules_of
from dpviz.datasets.files import read_raw
from dpviz.datasets.table import Table


@dataclass(frozen=True)
class BuiltIn:
    """Facts about a built-in table, known before it is loaded.

    Attributes
    ----------
    key : str
        Name on the command line and in links.
    label, description : str
        Title of the table and one sentence about it.
    n, d : int
        Rows and features as loaded, before constant columns are dropped.
    labels : str
        The meaning of the labels, in words.
    source, licence : str
        Citation of the table, and the terms under which its numbers may be used.
    loader : callable
        A function without arguments that builds the table, so every call gives equal bytes.
    place : int
        Position in lists; tables embedded beside the app come last.
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

    Tables of packages and plugins follow dpviz's own; tables embedded beside the app come last.
    """
    ours = {entry.key: entry for entry in _ours()}
    brought = ((one.key, one) for one in from_outside("datasets") if isinstance(one, BuiltIn))
    beside = {entry.key: entry for entry in map(_beside, embedded_tables())}
    # Add the tables of a published copy last, so that no other table replaces them.
    return ours | kept_apart(ours, brought) | beside


@cache
def _ours() -> tuple[BuiltIn, ...]:
    """Return the tables of every module of this package, ordered by `place`."""
    entries = [entry for module in modules_of(__name__) for entry in module.TABLES]
    return tuple(sorted(entries, key=lambda entry: entry.place))


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
    tables = builtin_tables()
    if key not in tables:
        raise InvalidTable(f"table must be one of {', '.join(tables)}; got {key[:60]!r}.")
    # Everybody has the built-in tables, so they are public and their rows may be shown.
    return replace(tables[key].loader(), public=True)


def dataset_rows() -> list[dict[str, str | int]]:
    """Return one row per built-in table for a listing, without loading tables.

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


# Tables embedded beside the app -------------------------------------------------------------------


FOLDER = "data/embedded"
"""Folder of embedded tables, relative to ``app.py``."""

INDEX = "tables.json"
_ENDINGS = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True)
class Embedded:
    """A table file embedded in a published copy, beside the app.

    Attributes
    ----------
    key : str
        Name of the table in links and on the command line.
    file : str
    n, d : int
        Numbers of usable rows and features.
    """

    key: str
    file: str
    n: int
    d: int

    def table(self, folder: Path) -> Table:
        """Return the table, read from its file in a folder."""
        return read_raw(folder / self.file, name=self.key).to_table()


def described(path: Path) -> Embedded:
    """Read a file and return its entry as an embedded table.

    Raises
    ------
    InvalidTable
        If the file is not a usable table, or its name gives no key.
    """
    ending = next((end for end in _ENDINGS if path.name.lower().endswith(end)), None)
    if ending is None or not path.is_file():
        raise InvalidTable(
            "--embed must be the path of a .csv, .csv.gz or .parquet file; "
            f"got {printable(path.name)!r}."
        )
    key = re.sub(r"[^a-z0-9]+", "_", path.name[: -len(ending)].lower()).strip("_")
    if not key:
        raise InvalidTable(
            "the name of a file to embed must have letters or digits; "
            f"got {printable(path.name)!r}."
        )
    table = read_raw(path, name=key).to_table()
    return Embedded(key, key + ending, len(table.rows), len(table.columns))


def index_of(tables: list[Embedded]) -> bytes:
    """Return the index that `embedded_tables` reads."""
    return json.dumps([asdict(each) for each in tables], indent=1).encode()


@cache
def embedded_tables(folder: Path | None = None) -> tuple[Embedded, ...]:
    """Return the tables embedded beside the app; empty without an index."""
    index = (folder or place()) / INDEX
    if not index.is_file():
        return ()
    return tuple(Embedded(**each) for each in json.loads(index.read_text(encoding="utf-8")))


def place() -> Path:
    """Return the folder of embedded tables beside the app."""
    return app_path().parent / FOLDER
