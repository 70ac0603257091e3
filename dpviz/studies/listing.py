"""The questions `list_mechanisms` and `list_datasets`: the available items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NotRequired

from dpviz.auditing.table import listing_rows
from dpviz.datasets import dataset_rows, remote
from dpviz.studies import Answer
from dpviz.studies.columns import ABSENT, NUMBERS, Column, printed
from dpviz.studies.options import asks


def _words(*names: str, **more: Any) -> tuple[Column, ...]:
    return tuple(Column(name, type=str, **more) for name in names)


def _if_there(name: str, row: dict[str, Any]) -> Any:
    return row.get(name, ABSENT)


@dataclass(frozen=True, eq=False, repr=False)
class Listing(Answer):
    """Available items, with one row for each item.

    Attributes
    ----------
    items : list of dict
        Rows of the list.
    """

    listed: ClassVar[str] = "items"
    alone: ClassVar[bool] = True
    noun: ClassVar[str] = ""

    items: list[dict[str, Any]]

    @property
    def keys(self) -> list[str]:
        """Keys of the items, without repetition, in the order of the list."""
        return list(dict.fromkeys(str(row["key"]) for row in self.items))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def summary(self) -> str:
        """Return the number of items, and their keys."""
        return f"{len(self.keys)} {self.noun}: {', '.join(self.keys)}."

    def printed(self) -> str:
        """Return the columns that a terminal shows."""
        return printed(self.columns, self.items)


class Mechanisms(Listing):
    """Every mechanism under both neighbouring relations."""

    noun: ClassVar[str] = "mechanisms"
    columns: ClassVar[tuple[Column, ...]] = (
        *_words("key"),
        *_words("label", show=NUMBERS),
        *_words("relation", "release", "guarantee", "status", "paper"),
        *_words("evidence", show=NUMBERS),
    )


class Tables(Listing):
    """Every table; remote tables are listed with their origin."""

    noun: ClassVar[str] = "tables"
    columns: ClassVar[tuple[Column, ...]] = (
        *_words("key", "origin"),
        Column("at_hand", type=bool),
        *_words("label", "description", show=NUMBERS),
        Column("n", type=int),
        Column("d", type=int),
        *_words("labels"),
        *_words("source", show=NUMBERS),
        *_words("licence"),
        *(
            Column(name, of=partial(_if_there, name), show=NUMBERS,
                   type=NotRequired[str], help="For remote tables only.")
            for name in ("page", "openml", "papers")
        ),
    )  # fmt: skip


@asks("list every mechanism and its properties", command="mechanisms")
def list_mechanisms() -> Mechanisms:
    """List every mechanism under both neighbouring relations, with the status of its claim.

    Returns
    -------
    Mechanisms
        One row per key and neighbouring relation: key, label, paper, relation, release (matrix,
        subspace or data), guarantee (pure, approximate or none), status and evidence, at epsilon 1,
        delta 1e-6, n 1000, d 10 and k 2. ``to_json()`` writes the bytes of ``dpviz mechanisms
        --format json``.

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
    return Mechanisms(listing_rows())


@asks("list the built-in and the remote tables", command="datasets")
def list_datasets() -> Tables:
    """List the built-in tables, and the papers' data sets that can be fetched.

    Returns
    -------
    Tables
        One row per table: key, label, description, n and d as loaded, labels, source, licence,
        origin (built-in or remote) and whether it is available. ``to_json()`` writes the bytes of
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
    return Tables(rows)
