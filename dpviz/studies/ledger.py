"""The question `ledger`: what real releases have spent, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from dpviz.core.number_text import numeral
from dpviz.core.params import format_number, params_of
from dpviz.core.problem import Budget
from dpviz.releasing.ledger import Contents, Ledger, Spend, ledger_at
from dpviz.releasing.making import content_of, table_input
from dpviz.releasing.options import LedgerOptions
from dpviz.releasing.schema import Schema
from dpviz.releasing.verifying import verify
from dpviz.studies import Answer
from dpviz.studies.columns import ASIDE, EVERYWHERE, PAIR, Column, printed
from dpviz.studies.options import asks

_SEEN = EVERYWHERE - {"json"}

SPENDS = (
    Column("number", type=int, show=_SEEN),
    Column("when", of=lambda line: line.spend.when, type=str, show=_SEEN),
    # a spend whose sampler is approximate is no proof, and the list must not hide it
    Column("mechanism", type=str, show=_SEEN, of=lambda line: line.spend.mechanism
           + (" (approximate)" if line.spend.approximate else "")),
    Column("epsilon", of=lambda line: line.spend.epsilon, digits=6, show=_SEEN,
           help="The use of its budget."),
    Column("delta", of=lambda line: line.spend.delta, digits=3, show=_SEEN),
    Column("purpose", of=lambda line: line.spend.stated_purpose or line.spend.purpose, type=str,
           show=_SEEN),
    Column("by", of=lambda line: line.spend.by, type=str, show=_SEEN),
    Column("release", type=str, show=_SEEN),
)  # fmt: skip


class Line(NamedTuple):
    """A spend of a ledger, at what it counts for, and the file of its release."""

    number: int
    spend: Spend
    release: str


@dataclass(frozen=True, eq=False, repr=False)
class Books(Answer):
    """A ledger as it stood when it was read; without its salt.

    Attributes
    ----------
    rows_ : int or None
        Most rows of a person that all spends count for; null until somebody says.
    spends : list of dict
        Each as it stands in the ledger, and the epsilon that it counts for.
    ledger : dpviz.releasing.ledger.Ledger
    contents : dpviz.releasing.ledger.Contents
        Its limit, relation and account, and every spend.
    lines : tuple of Line
    """

    listed: ClassVar[str] = "lines"
    columns: ClassVar[tuple[Column, ...]] = SPENDS

    limit: Budget
    account: str
    relation: str
    unit: str
    rows_: int | None
    schema: str
    purpose: str
    total: Annotated[Any, PAIR]
    left: Annotated[Any, PAIR]
    spends: list[dict[str, Any]]
    ledger: Annotated[Ledger, ASIDE]
    contents: Annotated[Contents, ASIDE]
    lines: Annotated[tuple[Line, ...], ASIDE]

    @classmethod
    def of(cls, ledger: Ledger, found: Contents) -> Books:
        """Return the answer that a ledger's contents are."""
        files = {number: path.name for number, path in ledger.kept().items()}
        return cls(
            found.limit,
            found.account,
            str(found.relation),
            str(found.unit),
            found.rows,
            found.schema,
            found.purpose,
            found.total,
            found.left,
            [{**spend.to_json(), "counts": priced.epsilon}
             for spend, priced in zip(found.spends, found.priced, strict=True)],
            ledger,
            found,
            tuple(
                # a spend may be written down and its release lost: that is said, not left empty
                Line(number, spend, files.get(number, "no file" if spend.releases else ""))
                for number, spend in enumerate(found.priced, start=1)
            ),
        )  # fmt: skip

    def summary(self) -> str:
        """Return what is spent of the limit, and what is left."""
        found = self.contents
        (epsilon, delta), left, limit = found.total, found.left, found.limit
        return (
            f"{self.ledger.path.name}: epsilon {numeral(epsilon, 6)}, delta {numeral(delta, 3)} "
            f"spent of epsilon {numeral(limit.epsilon, 6)}, delta {numeral(limit.delta, 6)}; "
            f"epsilon {numeral(left[0], 6)}, delta {numeral(left[1], 3)} left ({found.account} "
            f"account, relation {found.relation}, unit {found.who})"
        )

    def printed(self) -> str:
        """Return the summary and a line for each spend, as the command prints them."""
        return f"{self.summary()}\n{printed(self.columns, self.lines)}"

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
        return Books.of(self.ledger, self.ledger.bind(mark, purpose))


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
    return Books.of(book, book.read())
