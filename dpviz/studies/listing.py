"""The questions `list_mechanisms` and `list_datasets`: what there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dpviz.auditing.table import listing_rows
from dpviz.datasets import dataset_rows, remote
from dpviz.report.sentences.phrases import text_table
from dpviz.studies import Answer
from dpviz.studies.options import asks


class Listing(Answer):
    """Rows of a list, each a dictionary.

    Attributes
    ----------
    rows : list of dict
        As the command of the same name prints them as JSON.
    columns : tuple of str
        Those that a terminal or a notebook shows.
    """

    def __init__(self, rows: Sequence[dict[str, Any]], noun: str, shown: Sequence[str]) -> None:
        self.rows, self.columns, self._noun = list(rows), tuple(shown), noun

    @property
    def keys(self) -> list[str]:
        """Each key once, in the order of the list."""
        return list(dict.fromkeys(str(row["key"]) for row in self.rows))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def summary(self) -> str:
        """Return how many there are, and their keys."""
        return f"{len(self.keys)} {self._noun}: {', '.join(self.keys)}."

    def printed(self) -> str:
        """Return the columns that a terminal shows."""
        cells = [[_word(row[name]) for name in self.columns] for row in self.rows]
        return text_table(self.columns, cells)

    def table(self) -> pd.DataFrame:
        """Return the rows as a table."""
        return pd.DataFrame(self.rows)

    def data(self) -> list[dict[str, Any]]:
        """Return the rows."""
        return self.rows

    def _shown(self) -> pd.DataFrame:
        return self.table()[list(self.columns)]


def _word(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


@asks("list every mechanism and what holds of it", command="mechanisms")
def list_mechanisms() -> Listing:
    """List every mechanism under both relations, and what holds of its claim.

    Returns
    -------
    Listing
        One row per key and relation: key, label, paper, relation, release (matrix, subspace or
        data), guarantee (pure, approximate or none), status and evidence, at epsilon 1, delta
        1e-6, n 1000, d 10 and k 2. ``to_json()`` writes the bytes of
        ``dpviz mechanisms --format json``.

    See Also
    --------
    compare : Run them.
    audit : Attack one.

    Examples
    --------
    >>> import dpviz
    >>> "wishart_difference" in dpviz.list_mechanisms().keys
    True
    >>> table = dpviz.list_mechanisms().table()
    >>> row = table[(table["key"] == "gaussian") & (table["relation"] == "replace")]
    >>> row["status"].item()
    'holds'
    """
    columns = ("key", "relation", "release", "guarantee", "status", "paper")
    return Listing(listing_rows(), "mechanisms", columns)


@asks("list the built-in and the remote tables", command="datasets")
def list_datasets() -> Listing:
    """List the built-in tables, and the papers' data sets that can be fetched.

    Returns
    -------
    Listing
        One row per table: key, label, description, n and d as loaded, labels, source, licence,
        origin (built-in or remote) and whether it is at hand. ``to_json()`` writes the bytes of
        ``dpviz datasets --format json``.

    See Also
    --------
    compare : Takes a key as its table.

    Examples
    --------
    >>> import dpviz
    >>> dpviz.list_datasets().keys[:2]
    ['digits', 'breast_cancer']
    """
    rows: list[dict[str, Any]] = [
        {**row, "origin": "built-in", "at_hand": True} for row in dataset_rows()
    ]
    rows += remote.dataset_rows()
    columns = ("key", "origin", "at_hand", "n", "d", "labels", "licence")
    return Listing(rows, "tables", columns)
