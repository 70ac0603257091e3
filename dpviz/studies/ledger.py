"""The question `ledger`: the budget that real releases have used, and the remaining budget."""

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
    # An approximate sampler proves no privacy, so mark such entries in the list.
    Column("mechanism", type=str, show=_SEEN, of=lambda line: line.spend.mechanism
           + (" (approximate)" if line.spend.approximate else "")),
    Column("epsilon", of=lambda line: line.spend.epsilon, digits=6, show=_SEEN,
           help="Epsilon that the entry uses."),
    Column("delta", of=lambda line: line.spend.delta, digits=3, show=_SEEN),
    Column("purpose", of=lambda line: line.spend.stated_purpose or line.spend.purpose, type=str,
           show=_SEEN),
    Column("by", of=lambda line: line.spend.by, type=str, show=_SEEN),
    Column("release", type=str, show=_SEEN),
)  # fmt: skip


class Line(NamedTuple):
    """A ledger's entry, its privacy loss for a person of the ledger, and its release's file."""

    number: int
    spend: Spend
    release: str


@dataclass(frozen=True, eq=False, repr=False)
class Books(Answer):
    """The contents of a ledger when it was read, without its salt.

    Attributes
    ----------
    rows_ : int or None
        Maximum number of rows of one person that all entries cover; null until somebody states it.
    spends : list of dict
        The entries of the ledger, each with its epsilon for a person of the ledger.
    ledger : dpviz.releasing.ledger.Ledger
    contents : dpviz.releasing.ledger.Contents
        The ledger's limit, neighbouring relation and accounting, and every entry.
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
    def of(cls, ledger: Ledger, contents: Contents) -> Books:
        """Return the answer for the contents of a ledger."""
        files = {number: path.name for number, path in ledger.kept().items()}
        return cls(
            contents.limit,
            contents.account,
            str(contents.relation),
            str(contents.unit),
            contents.rows,
            contents.schema,
            contents.purpose,
            contents.total,
            contents.left,
            [{**spend.to_json(), "counts": price.epsilon}
             for spend, price in zip(contents.spends, contents.priced, strict=True)],
            ledger,
            contents,
            tuple(
                # If a release's file is missing, write "no file" instead of an empty cell.
                Line(number, spend, files.get(number, "no file" if spend.releases else ""))
                for number, spend in enumerate(contents.priced, start=1)
            ),
        )  # fmt: skip

    def summary(self) -> str:
        """Return the used and the remaining part of the limit."""
        contents = self.contents
        (epsilon, delta), rest, limit = contents.total, contents.left, contents.limit
        return (
            f"{self.ledger.path.name}: epsilon {numeral(epsilon, 6)}, delta {numeral(delta, 3)} "
            f"used of epsilon {numeral(limit.epsilon, 6)}, delta {numeral(limit.delta, 6)}; "
            f"epsilon {numeral(rest[0], 6)}, delta {numeral(rest[1], 3)} left ({contents.account} "
            f"account, relation {contents.relation}, unit {contents.who})"
        )

    def printed(self) -> str:
        """Return the summary and a line for each entry, as the command prints them."""
        return f"{self.summary()}\n{printed(self.columns, self.lines)}"

    def verify(self, releases: Sequence[str | PathLike[str]] = ()) -> list[str]:
        """Return mismatches between the ledger and files of releases; empty if all of them match.

        Parameters
        ----------
        releases : sequence of path
            Files of releases, in addition to the releases that the ledger stores itself.
        """
        return verify(self.ledger, [Path(name) for name in releases])

    def bind(self, table: str | PathLike[str], purpose: str = "", sheet: str = "") -> Books:
        """Declare that a table, such as a corrected export, holds the same people.

        Parameters
        ----------
        table : str or path
            Built-in table, or a file.
        purpose : str
            Why.
        sheet : str
            Sheet of a workbook; if empty, the only sheet.

        Returns
        -------
        Books
            The ledger after adding the table.
        """
        mark = self.ledger.fingerprint(content_of(table_input(fspath(table), sheet)))
        return Books.of(self.ledger, self.ledger.bind(mark, purpose))


@asks(
    "create a ledger with a limit, show it, or check it against releases", LedgerOptions, once=True
)
def ledger(
    file: str | PathLike[str],
    *,
    limit: str | tuple[float, float] | None = None,
    schema: str | PathLike[str] | None = None,
    **options: Any,
) -> Books:
    """Read a ledger, or create one with a limit.

    Parameters
    ----------
    file : str or path
        The ledger's file, or the name of the ledger on pages.
    limit : (float, float) or str, optional
        Epsilon and delta that all releases together may never exceed. If a limit is stated, a new
        ledger is created, whose limit never changes; otherwise the ledger is read.
    schema : path, optional
        For a new ledger, the only schema that its releases may have; by default any schema of the
        same people.
    **options
        Other properties that are fixed when the ledger is created.

    Returns
    -------
    Books
        ``table()`` has a row for each entry; ``to_json()`` writes the bytes of ``dpviz ledger FILE
        --format json``; ``verify`` checks the ledger against files of releases.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is unknown, or is out of its range.
    LedgerError
        If the ledger is missing or damaged, or a ledger to create exists already.

    See Also
    --------
    release : Makes a release and writes its spend here first.
    account : What a mechanism will spend.

    Notes
    -----
    The accounting ``basic`` adds epsilons and deltas; ``zcdp`` adds the rhos of zero-concentrated
    privacy (Bun and Steinke 2016).

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
        # Limit, schema and other properties are stated only once, when a ledger is created.
        if options or schema is not None:
            name = next(iter(options), "schema")
            raise params_of(LedgerOptions)["limit"].error(f"none, beside {name}")
    else:
        book = Ledger(Path(file))
        # The option expects a text of two numbers, so convert a pair of numbers to text.
        text = limit if isinstance(limit, str) else ",".join(map(format_number, map(float, limit)))
        digest = "" if schema is None else Schema.read(Path(schema)).digest
        LedgerOptions(limit=text, **options).create(book, digest)
    return Books.of(book, book.read())
