"""The question `card`: what one release may be filed with, on a page that a regulator can check."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import numpy as np
import pandas as pd

from dpviz.auditing.attack import excess_probability, posterior_bound
from dpviz.core import VERSION
from dpviz.core.entries import UNIT
from dpviz.core.errors import DpvizError, InvalidSetting, printable
from dpviz.core.files import NamedTwice, atomic_write, strict_json
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, text
from dpviz.core.platform import need
from dpviz.core.problem import protects
from dpviz.core.quantity import Kind
from dpviz.datasets import Table
from dpviz.releasing.chain import CONFIDENCE
from dpviz.releasing.ledger import CARD, PAGE, Ledger, ledger_at, sha256
from dpviz.releasing.making import content_of, table_input
from dpviz.releasing.options import one_line
from dpviz.releasing.outputs import read_release
from dpviz.releasing.picture import shown_of
from dpviz.releasing.reading import Reading, read
from dpviz.releasing.records import open_records
from dpviz.releasing.schema import Schema
from dpviz.releasing.verifying import verify
from dpviz.report.privacy_card import CARD_FORMAT, RELEASED, promise_words, to_html
from dpviz.studies import Answer, now
from dpviz.studies.options import asks

PRIORS = (0.01, 0.1, 0.5)
NOT_COVERED = {
    "facts_about_everybody": "The release may show what is true of everybody, and so of each "
    "person, in the table or not.",
    "people_who_belong_together": "A family, or one person under two names, is protected less.",
    "what_insiders_see": "People who work on the rows see them; this card is about what was "
    "published.",
    "choices_made_after_looking": "Limits or columns picked from the table would break the proof.",
}
"""What no epsilon covers."""
KINDS = {
    "claim": str(Kind.UPPER_BOUND),
    "ledger": str(Kind.UPPER_BOUND),
    "use.recovery": str(Kind.PREDICTION),
}
"""What the numbers of an entry are; all others are as released."""
_LISTED = 12
"""Columns whose limits a card lists; the release has all."""
WITHHELD = ("data",)
"""Entries of the file copy that are exact numbers from the rows, which a public copy leaves out."""


def _said(name: str, help: str, example: str) -> Any:
    return text("", label=name.capitalize(), help=help, check=one_line(name), examples=(example,))


@dataclass(frozen=True)
class CardOptions(Declared):
    """What only people know of a release."""

    title: str = _said(
        "title",
        "Name of what was released, in your own words.",
        "Laboratory profile of 639 patients",
    )
    purpose: str = _said(
        "purpose", "Purpose of the release, if the release does not state it.", "annual report"
    )
    recipients: str = _said("recipients", "Who gets it.", "the public")
    controller: str = _said("controller", "Who answers for the data.", "A hospital")


class Assumed(TypedDict):
    """What a release takes for public, from where it is known, and who confirmed it."""

    what: str
    source: str
    confirmed_by: str


class CardFile(TypedDict):
    """What a release is filed with: `dpviz.card`.

    Attributes
    ----------
    kinds : What the numbers of an entry are: a bound, or a prediction.
    ledger : What paid for it; null for a release that no ledger paid for.
    picture : What is drawn and said of the release's picture; null without one.
    unconfirmed : Numbers of the assumptions, from 1, that nobody confirmed.
    data : Exact counts, in the copy for the file alone.
    counted : About how many of the n rows count, where a release told; else null.
    """

    dpviz_card: int
    status: str
    copy: str
    kinds: dict[str, str]
    title: str
    purpose: str
    by: str
    recipients: str
    controller: str
    released: str
    made: str
    n: int
    counted: int | None
    d: int
    k: int
    claim: dict[str, Any]
    ledger: dict[str, Any] | None
    unit: dict[str, str | int | None]
    mechanism: dict[str, str]
    use: dict[str, Any]
    picture: dict[str, Any] | None
    assumptions: list[Assumed]
    unconfirmed: list[int]
    not_covered: dict[str, str]
    withheld: list[Any]
    release: dict[str, str]
    versions: dict[str, str]
    signatures: list[dict[str, str]]
    data: NotRequired[dict[str, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Filed(Answer):
    """A privacy card: its public copy, or the copy for the file.

    Attributes
    ----------
    card : dict
        As its file holds it.
    ledger : dpviz.releasing.ledger.Ledger or None
        That paid for the release.
    """

    card: dict[str, Any]
    ledger: Ledger | None = None

    def summary(self) -> str:
        """Return what a suspicion may become, who is protected, and what can be read."""
        found = self.card
        readable, unit = found["use"]["readable_components"], found["unit"]
        # None is what a sentence takes for a row that is a person
        rows = None if unit["protected"] == "row" else unit["rows"]
        return (
            f"{promise_words(found)} It {protects(rows)}. {readable} "
            f"of {found['k']} components can be told from noise, and {len(found['unconfirmed'])} "
            f"of {len(found['assumptions'])} assumptions are not confirmed by anybody."
        )

    def table(self) -> pd.DataFrame:
        """Return what is assumed, from where, and who confirmed it."""
        return pd.DataFrame(self.card["assumptions"])

    def data(self) -> CardFile:
        """Return the card as its file holds it."""
        return cast(CardFile, self.card)

    def to_html(self) -> str:
        """Return the card as one page of A4."""
        return to_html(self.card)

    def filed(self, what: str) -> bytes:
        """Return the file of the card or of its page, and enter its digest in the ledger.

        Parameters
        ----------
        what : {"card", "page"}

        Raises
        ------
        LedgerError
            If the ledger cannot be written.
        """
        content = (f"{self.to_json()}\n" if what == CARD else self.to_html()).encode()
        if self.ledger is not None:
            self.ledger.close(self.card["ledger"]["number"], what, content)
        return content

    def write_card(self, out: str | PathLike[str]) -> None:
        """Write the card's file, and beside it the page to print; each whole or not at all.

        Parameters
        ----------
        out : str or path
            The card's file; the page has its name, with ``.html``.
        """
        path = Path(out)
        for place, what in ((path, CARD), (path.with_suffix(".html"), PAGE)):
            with atomic_write(place) as aside:
                aside.write_bytes(self.filed(what))


@asks("make the privacy card of a release, to be filed and checked", CardOptions, once=True,
      command="release card")  # fmt: skip
def card(
    release: str | PathLike[str],
    *,
    ledger: str | PathLike[str] | None = None,
    sources: str | PathLike[str] | Mapping[int, Sequence[str]] | None = None,
    table: str | PathLike[str] | Table | None = None,
    schema: str | PathLike[str] | Schema | None = None,
    sheet: str = "",
    **options: Any,
) -> Filed:
    """Return the card of a release: what is proved, of whom, under which assumptions.

    Parameters
    ----------
    release : str or path
        File of a release.
    ledger : path, optional
        That paid for it: its limit stands on the card then.
    sources : path or mapping, optional
        From where each assumption is known, and who confirmed it: pairs of texts by the number of
        the assumption, from 1, or a JSON file of them.
    table, schema : path or object, optional
        The table that was released, and its schema: then this is the copy for the file, with exact
        counts of its cells, which no public copy may hold.
    sheet : str
        Of a workbook, by name; its only one if empty.
    **options
        What only people know.

    Returns
    -------
    Filed
        ``write_card(out)`` writes the card and a page to print and sign, and enters the digests
        of both in the ledger, by which `verify` knows them.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is none of these, or is out of its range.
    DpvizError
        If a file is none of these, or the ledger or table is that of another release.

    See Also
    --------
    verify : Checks a card against its release and its ledger.
    release : Makes a release.

    Notes
    -----
    All numbers but the counts of the file copy follow from the release: what is left of the
    structure by adding noise of the same law to the released matrix once more, and bars by
    the law of the noise to first order.

    Examples
    --------
    >>> import dpviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = dpviz.ledger(f"{folder}/mine.jsonl", limit=(3, 1e-5)).ledger
    ...     out = f"{folder}/release.json"
    ...     made = dpviz.release("digits", ledger=book, out=out, row_bound=60, delta=1e-6)
    ...     found = dpviz.card(out, ledger=book.path, title="Digits", controller="A school")
    >>> found.data()["unit"]["protected"]
    'row'
    """
    said = CardOptions(**options)
    path = Path(release)
    found = read_release(path)
    made = from_release(found, path, said)
    confirmed = _sources(sources, len(made["assumptions"]))
    for number, (source, by) in confirmed.items():
        made["assumptions"][number - 1] |= {"source": source, "confirmed_by": by}
    made["unconfirmed"] = [
        number
        for number, one in enumerate(made["assumptions"], start=1)
        if not (one["source"] and one["confirmed_by"])
    ]
    book = None if ledger is None else ledger_at(fspath(ledger))
    if book is not None:
        made["ledger"] |= _of_ledger(book, found)
        for problem in verify(book, [path], whole=False):
            raise DpvizError(problem)
    # cells can be counted only as the release read them
    if (table is None) is not (schema is None):
        raise DpvizError("the copy for the file needs both the table and its schema.")
    if table is not None and schema is not None:
        # exact counts of the rows: from here on it is the copy that stays in the house
        made |= {"copy": "file", "data": _counts(table, schema, sheet, found, book)}
        made["withheld"] = []
    return Filed(dict(made), book)


def from_release(found: Mapping[str, Any], path: Path, said: CardOptions) -> dict[str, Any]:
    """Return the public card of a release, before anybody confirmed anything.

    Parameters
    ----------
    found : mapping
        The release, as its file holds it.
    path : Path
        Its file.
    said : CardOptions

    Raises
    ------
    DpvizError
        If it is no release, or was made for another purpose.
    """
    try:
        return _public_card(found, path, said)
    except DpvizError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        AssertionError,
    ):
        raise DpvizError(f"{path.name} is not a release of this version of dpviz.") from None


def _public_card(found: Mapping[str, Any], path: Path, said: CardOptions) -> dict[str, Any]:
    proved, unit = found["proved"], found.get("unit", {"protected": "row", "rows": 1})
    paid, purpose = found["ledger"], found.get("purpose", "")
    # the release states its purpose, and its file is not to be reworded by a card
    if purpose and said.purpose not in ("", purpose):
        raise DpvizError(f"the release was made for {purpose!r}, and its card cannot say another.")
    seen = read(found)
    return {
        "dpviz_card": CARD_FORMAT,
        "status": RELEASED,
        "copy": "public",
        "kinds": dict(KINDS),
        "title": said.title or found["name"],
        "purpose": purpose or said.purpose,
        "by": found.get("by", ""),
        "recipients": said.recipients,
        "controller": said.controller,
        "released": found["made"],
        "made": now(),
        "n": found["n"],
        "counted": found.get("counted"),
        "d": found["d"],
        "k": found["k"],
        "claim": {
            "epsilon": proved["epsilon"],
            "delta": proved["delta"],
            "rho": proved["rho"],
            "suspicions": suspicions(proved["epsilon"]),
            "odds_more_than_doubled": excess_probability(
                proved["epsilon"], proved["delta"], math.log(2)
            ),
        },
        "ledger": None
        if paid is None
        else {
            "id": paid["id"],
            "number": paid["spends"],
            "head": paid["head"],
            "epsilon": paid["epsilon"],
            "delta": paid["delta"],
            "suspicions": suspicions(paid["epsilon"]),
        },
        "unit": {**unit, "neighbours": found["relation"]},
        "mechanism": {
            "name": found["mechanism"],
            "proof": proved["source"],
            "noise": found["noise"]["law"],
            "rows": found["declared"].get("rows", "bound"),
            # where they are: a card says nothing new of a release without
            **({"scale": "limits"} if found["declared"].get("scale") else {}),
            "center": "private mean"
            if found.get("mean")
            else found["settings"].get("center", "typical"),
            "sampler": f"OpenDP {found['versions']['opendp']}, entropy of the operating system",
            "floating_point": "covered: whole numbers up to the noise",
        },
        "use": _use(seen),
        "picture": shown_of(found),
        "assumptions": [
            {"what": what, "source": "", "confirmed_by": ""} for what in assumptions_of(found)
        ],
        "unconfirmed": [],
        "not_covered": dict(NOT_COVERED),
        "withheld": list(WITHHELD),
        "release": {"file": path.name, "sha256": sha256(path.read_bytes())},
        "versions": found["versions"] | {"dpviz_card": VERSION},
        "signatures": [
            {"role": role, "name": "", "date": ""}
            for role in ("controller", "data protection officer")
        ],
    }


def assumptions_of(found: Mapping[str, Any]) -> list[str]:
    """Return what a release assumes and what was declared for it, each to be confirmed by somebody.

    Parameters
    ----------
    found : mapping
        The release, as its file holds it.
    """
    declared = found["declared"]
    names, low, high = (declared[key] for key in ("columns", "low", "high"))

    def listed(values: Sequence[str]) -> str:
        said = [f"{name} {value}" for name, value in zip(names, values, strict=True)]
        more = len(said) - _LISTED
        return ", ".join(said[:_LISTED]) + f", and {more:,} more in the release" * (more > 0)

    pairs = zip(low, high, strict=True)
    limits = [f"{numeral(a, 6)} to {numeral(b, 6)}" for a, b in pairs]
    typical, center = (
        listed([numeral(value, 6) for value in declared[key]]) for key in ("typical", "center")
    )
    bound = (
        [] if declared.get("rows") == UNIT else [f"row bound: {numeral(declared['row_bound'], 6)}"]
    )
    return [
        *found["assumed_public"],
        f"limits: {listed(limits)}",
        f"typical values, which stand for missing cells: {typical}",
        "centre: a private mean, paid for" if found.get("mean") else f"centre: {center}",
        *bound,
        f"schema digest: {declared['schema']}",
    ]


def loadings_table(card: Mapping[str, Any]) -> pd.DataFrame:
    """Return the loadings on a card with their bars: a row for each feature."""
    use = card["use"]
    table = pd.DataFrame({"feature": use["features"]})
    for at, (vector, bars) in enumerate(zip(use["loadings"], use["bars"], strict=True), 1):
        table[f"component {at}"] = vector
        table[f"± {at}"] = bars
    return table


def workbook(card: Mapping[str, Any]) -> bytes:
    """Return what can be read from a release as a workbook: loadings, variances, what is claimed.

    Raises
    ------
    NotAvailable
        If XlsxWriter is not installed.
    """
    need("xlsxwriter")
    from xlsxwriter import Workbook  # here: an extra

    use, claim, held = card["use"], card["claim"], BytesIO()
    readable = use["readable_components"]
    sheets = {
        "loadings": loadings_table(card),
        "variances": pd.DataFrame(
            {
                "component": range(1, len(use["variances"]) + 1),
                "variance": use["variances"],
                "±": use["variance_bars"] + [None] * (len(use["variances"]) - card["k"]),
                "told from noise": [at < readable for at in range(len(use["variances"]))],
            }
        ),
        "claim": pd.DataFrame(
            {
                "what": ["epsilon", "delta", "protects one", *("purpose", "by", "released")],
                "said": [claim["epsilon"], claim["delta"], card["unit"]["protected"]]
                + [card[name] for name in ("purpose", "by", "released")],
            }
        ),
    }
    # a text that begins with = stays a text
    with Workbook(held, {"in_memory": True, "strings_to_formulas": False}) as book:
        for name, table in sheets.items():
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, list(table.columns))
            for at, row in enumerate(table.astype(object).to_numpy().tolist(), 1):
                sheet.write_row(at, 0, ["" if pd.isna(cell) else cell for cell in row])
    return held.getvalue()


def suspicions(epsilon: float) -> list[dict[str, float]]:
    """Return what a suspicion may become at most, for a few that somebody may begin with."""
    return [{"before": prior, "after": posterior_bound(prior, epsilon)} for prior in PRIORS]


def _use(seen: Reading) -> dict[str, Any]:
    """Return what can be read from a release; components that cannot be have no bars."""
    # JSON has no NaN
    bars, of_variances = (
        [[None if math.isnan(bar) else bar for bar in found] for found in each.tolist()]
        for each in (seen.bars.T, seen.variance_bars[np.newaxis])
    )
    return {
        "recovery": seen.recovery,
        "judged_by": "the released numbers",
        "readable_components": seen.readable,
        "confidence": CONFIDENCE,
        "features": list(seen.names),
        "loadings": seen.loadings.T.tolist(),
        "bars": bars,
        "variances": seen.variances.tolist(),
        "variance_bars": of_variances[0],
        "noise_edge": seen.edge,
        "centre_unknown": seen.turned,
        "total_variance": seen.total,
    }


def _of_ledger(book: Ledger, found: Mapping[str, Any]) -> dict[str, Any]:
    contents = book.read()
    if found["ledger"] is None or found["ledger"]["id"] != contents.identity:
        raise DpvizError(f"{book.path.name} did not pay for this release.")
    return {
        "file": book.path.name,
        "account": contents.account,
        "purpose": contents.purpose,
        "limit": {"epsilon": contents.limit.epsilon, "delta": contents.limit.delta},
    }


def _sources(
    given: str | PathLike[str] | Mapping[int, Sequence[str]] | None, assumptions: int
) -> dict[int, tuple[str, str]]:
    """Return where from and by whom each assumption is confirmed, by its number."""
    allowed = f"pairs of source and name by the numbers 1 to {assumptions} of assumptions"
    wrong = InvalidSetting("sources", allowed, "something else", "--sources")
    pairs: Any = given
    if isinstance(given, (str, PathLike)):
        path = Path(given)
        try:
            pairs = strict_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise DpvizError(f"{printable(path.name)} cannot be read: {error.strerror}.") from None
        except NamedTwice as error:
            raise InvalidSetting("sources", allowed, str(error), "--sources") from None
        except ValueError:
            raise wrong from None
    found = {}
    try:
        for number, (source, by) in dict({} if pairs is None else pairs).items():
            # JSON has texts for keys, Python may hand numbers over
            found[int(number)] = (str(source), str(by))
    except (TypeError, ValueError):
        raise wrong from None
    # a number without its assumption would be a confirmation of nothing
    if not set(found) <= set(range(1, assumptions + 1)):
        raise wrong
    for source, by in found.values():
        one_line("source")(source)
        one_line("name")(by)
    return found


def _counts(
    table: str | PathLike[str] | Table,
    schema: str | PathLike[str] | Schema,
    sheet: str,
    found: Mapping[str, Any],
    book: Ledger | None,
) -> dict[str, Any]:
    """Return exact counts of the table's cells: they are for the file, and nobody else."""
    given = table if isinstance(table, Table) else table_input(fspath(table), sheet)
    declared = schema if isinstance(schema, Schema) else Schema.read(Path(schema))
    # another schema would fill and cut other cells than those that were released
    if declared.digest != found["declared"]["schema"]:
        raise DpvizError("the release was made under another schema than this one.")
    # the ledger knows the rows by a salted digest, so that another table is noticed
    if book is not None and book.fingerprint(content_of(given)) not in book.read().tables:
        raise DpvizError(f"{book.path.name} is about another table than this one.")
    return counted(open_records(given, declared).blocks(), declared)


def counted(blocks: Iterable[np.ndarray], schema: Schema) -> dict[str, Any]:
    """Return how many cells a schema fills, by column, and cuts, and how many rows that changes."""
    rows = cut = changed = 0
    filled = np.zeros(len(schema.used), dtype=np.int64)
    low, high, _ = schema.limits.T
    for block in blocks:
        used = schema.filled(block)
        gone = ~np.isfinite(block)
        for j, column in enumerate(schema.used):
            gone[:, j] |= np.isin(block[:, j], column.codes)
        # a missing cell is filled and not cut: each is counted once
        outside = ~gone & ((block < low) | (block > high))
        rows += len(used)
        filled += gone.sum(axis=0)
        cut += int(outside.sum())
        changed += int((gone | outside).any(1).sum())
    columns = zip((column.name for column in schema.used), filled.tolist(), strict=True)
    return {
        "rows": rows,
        "rows_changed": changed,
        "cells_filled": int(filled.sum()),
        "filled_by_column": {name: cells for name, cells in columns if cells},
        "cells_cut": cut,
    }
