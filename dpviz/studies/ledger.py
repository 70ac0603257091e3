"""The question `ledger`: what real releases have spent, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.core.number_text import numeral
from dpviz.core.params import format_number, params_of
from dpviz.releasing.ledger import Contents, Ledger, ledger_at
from dpviz.releasing.making import content_of, table_input
from dpviz.releasing.options import LedgerOptions
from dpviz.releasing.schema import Schema
from dpviz.releasing.verifying import verify
from dpviz.report.sentences.phrases import text_table
from dpviz.studies import Answer
from dpviz.studies.options import asks

_COLUMNS = ("number", "when", "mechanism", "epsilon", "delta", "purpose", "by", "release")


class Books(Answer):
    """A ledger as it stood when it was read.

    Attributes
    ----------
    ledger : dpviz.releasing.ledger.Ledger
    contents : dpviz.releasing.ledger.Contents
        Its limit, relation and account, and every spend.
    """

    def __init__(self, ledger: Ledger, contents: Contents) -> None:
        self.ledger, self.contents = ledger, contents
        self._kept = {number: path.name for number, path in ledger.kept().items()}

    def summary(self) -> str:
        """Return what is spent of the limit, and what is left."""
        found = self.contents
        (epsilon, delta), left, limit = found.total, found.left, found.limit
        return (
            f"{self.ledger.path.name}: epsilon {numeral(epsilon, 6)}, delta {numeral(delta, 3)} "
            f"spent of epsilon {numeral(limit.epsilon, 6)}, delta {numeral(limit.delta, 6)}; "
            f"epsilon {numeral(left[0], 6)}, delta {numeral(left[1], 3)} left ({found.account} "
            f"account, relation {found.relation}, unit {found.unit})"
        )

    def printed(self) -> str:
        """Return the summary and a line for each spend, as the command prints them."""
        rows = [
            [
                str(row["number"]),
                row["when"],
                row["mechanism"],
                numeral(row["epsilon"], 6),
                numeral(row["delta"], 3),
                row["purpose"],
                row["by"],
                row["release"],
            ]
            for row in self.table().to_dict("records")
        ]
        return f"{self.summary()}\n{text_table(_COLUMNS, rows)}"

    def table(self) -> pd.DataFrame:
        """Return one row per spend."""
        rows = [
            (
                number,
                spend.when,
                # a spend whose sampler is approximate is no proof, and the list must not hide it
                spend.mechanism + (" (approximate)" if spend.approximate else ""),
                spend.epsilon,
                spend.delta,
                spend.stated_purpose or spend.purpose,
                spend.by,
                # a spend may be written down and its release lost: that is said, and not left empty
                self._kept.get(number, "no file" if spend.releases else ""),
            )
            for number, spend in enumerate(self.contents.spends, start=1)
        ]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def data(self) -> dict[str, Any]:
        """Return the object that ``dpviz ledger FILE --format json`` prints; without its salt."""
        return self.contents.to_json()

    def verify(self, releases: Sequence[str | PathLike[str]] = ()) -> list[str]:
        """Return what does not fit between the ledger and files of releases: nothing, if all does.

        Parameters
        ----------
        releases : sequence of path
            Files of releases, beside those that the ledger keeps itself.
        """
        return verify(self.ledger, [Path(name) for name in releases])

    def bind(self, table: str | PathLike[str], purpose: str = "", sheet: str = "") -> Books:
        """Say that a table, such as a corrected export, holds the same people.

        Parameters
        ----------
        table : str or path
            Built-in table, or a file.
        purpose : str
            Why.
        sheet : str
            Of a workbook, by name; its only one if empty.

        Returns
        -------
        Books
            The ledger with that table.
        """
        mark = self.ledger.fingerprint(content_of(table_input(fspath(table), sheet)))
        return Books(self.ledger, self.ledger.bind(mark, purpose))


@asks(
    "make a ledger with its limit, show it, or check it against releases",
    LedgerOptions,
    once=True,
)
def ledger(
    file: str | PathLike[str],
    *,
    limit: str | tuple[float, float] | None = None,
    schema: str | PathLike[str] | None = None,
    **options: Any,
) -> Books:
    """Read a ledger, or make one with its limit.

    Parameters
    ----------
    file : str or path
        The ledger's file, or the name by which pages know it.
    limit : (float, float) or str, optional
        Epsilon and delta that all releases together may never pass: a new ledger is made, whose
        limit is never changed. Without it the ledger is read.
    schema : path, optional
        For a new ledger, the only schema that may be released from it; any of the same people if
        not said.
    **options
        What else is fixed when a ledger is made.

    Returns
    -------
    Books
        ``table()`` has a row for each spend; ``to_json()`` writes the bytes of
        ``dpviz ledger FILE --format json``; ``verify`` checks it against files of releases.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is none of these, or is out of its range.
    LedgerError
        If there is no ledger, it is damaged, or one is there already.

    See Also
    --------
    release : Makes a release and writes its spend here first.
    account : What a mechanism will spend.

    Notes
    -----
    Basic adds epsilons and deltas up; zcdp adds the rhos of zero-concentrated privacy (Bun and
    Steinke 2016).

    Examples
    --------
    >>> import dpviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = dpviz.ledger(f"{folder}/mine.jsonl", limit=(3, 1e-5))
    ...     found = dpviz.ledger(f"{folder}/mine.jsonl")
    >>> found.data()["left"]["epsilon"]
    3.0
    """
    if limit is None:
        book = ledger_at(fspath(file))
        # a limit is stated once, with all that belongs to it, when the ledger is made
        if options or schema is not None:
            named = next(iter(options), "schema")
            raise params_of(LedgerOptions)["limit"].error(f"none, beside {named}")
    else:
        book = Ledger(Path(file))
        # the option is a text of two numbers; a pair in Python becomes it by the same rule
        text = limit if isinstance(limit, str) else ",".join(map(format_number, map(float, limit)))
        digest = "" if schema is None else Schema.read(Path(schema)).digest
        LedgerOptions(limit=text, **options).create(book, digest)
    return Books(book, book.read())
