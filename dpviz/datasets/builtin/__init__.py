"""The tables that come with dpviz: what the modules of this package have in ``TABLES``.

`builtin_tables` lists them without loading any; `load_builtin` makes one.
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
    # a published copy's own tables come last and may not be left out
    return ours | kept_apart(ours, brought) | beside


@cache
def _ours() -> tuple[BuiltIn, ...]:
    """Return the tables of every module of this package, in the order of their places."""
    found = [entry for module in modules_of(__name__) for entry in module.TABLES]
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
    # everybody has them: their rows may be shown
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


# Tables put beside the app ------------------------------------------------------------------------


FOLDER = "data/embedded"
"""Below the folder of ``app.py``."""

INDEX = "tables.json"
_ENDINGS = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True)
class Embedded:
    """A table beside the app.

    Attributes
    ----------
    key : str
        Its name in links and on the command line.
    file : str
    n, d : int
        Rows and features that can be used.
    """

    key: str
    file: str
    n: int
    d: int

    def table(self, folder: Path) -> Table:
        """Return the table, read from its file in a folder."""
        return read_raw(folder / self.file, name=self.key).to_table()


def described(path: Path) -> Embedded:
    """Return how a file is to be embedded, having read it.

    Raises
    ------
    InvalidTable
        If it is no table that can be used, or its name makes no key.
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
    """Return the tables beside the app; none where there is no index."""
    index = (folder or place()) / INDEX
    if not index.is_file():
        return ()
    return tuple(Embedded(**each) for each in json.loads(index.read_text(encoding="utf-8")))


def place() -> Path:
    """Return the folder beside the app where such tables lie."""
    return app_path().parent / FOLDER
