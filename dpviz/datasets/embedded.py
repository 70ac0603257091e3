"""Tables that were put beside the app, as the browser edition does with ``--embed``."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from dpviz.core.errors import InvalidTable, printable
from dpviz.core.paths import app_path
from dpviz.datasets.files import read_raw
from dpviz.datasets.table import Table

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
