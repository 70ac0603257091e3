"""The answer of `dpviz.list_mechanisms` and `dpviz.list_datasets`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dpviz.report.sentences.phrases import text_table
from dpviz.studies import Answer


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
