"""The question `card`: the privacy card of one release, which a regulator can check."""

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
    "facts_about_everybody": "The release may reveal facts about people in general.",
    "people_who_belong_together": ("A family, or a person with two names, is protected less."),
    "what_insiders_see": "People who work on the rows see them. This card is about the results.",
    "choices_made_after_looking": (
        "The proof fails if limits or columns were chosen from the table."
    ),
}
"""Risks that no epsilon limits."""
KINDS = {
    "claim": str(Kind.UPPER_BOUND),
    "ledger": str(Kind.UPPER_BOUND),
    "use.recovery": str(Kind.PREDICTION),
}
"""Kinds of the numbers in these entries; all other numbers are as released."""
_LISTED = 12
"""Maximum number of columns whose limits a card lists; the release lists all columns."""
WITHHELD = ("data",)
"""Entries of the internal copy that are exact numbers from the rows, absent in a public copy."""


def _text_param(name: str, help: str, example: str) -> Any:
    return text("", label=name.capitalize(), help=help, check=one_line(name), examples=(example,))


@dataclass(frozen=True)
class CardOptions(Declared):
    """Facts about a release that only people know."""

    title: str = _text_param(
        "title", "Name of the release, in your own words.", "Laboratory profile of 639 patients"
    )
    purpose: str = _text_param(
        "purpose", "Purpose of the release, if the release does not state it.", "annual report"
    )
    recipients: str = _text_param("recipients", "Who receives the release.", "the public")
    controller: str = _text_param("controller", "Who is responsible for the data.", "A hospital")


class Assumed(TypedDict):
    """An assumption of a release about what is public, its source, and who confirmed it."""

    what: str
    source: str
    confirmed_by: str


class CardFile(TypedDict):
    """The privacy card of a release, from `dpviz.card`.

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
    """A privacy card: its public copy, or the internal copy.

    Attributes
    ----------
    card : dict
        The card in the form of its file.
    ledger : dpviz.releasing.ledger.Ledger or None
        The ledger that recorded the release.
    """

    card: dict[str, Any]
    ledger: Ledger | None = None

    def summary(self) -> str:
        """Return how strong a suspicion may become, who is protected, and what is reliable."""
        card = self.card
        readable, unit = card["use"]["readable_components"], card["unit"]
        # If rows is None, the sentence says that the release protects a row.
        rows = None if unit["protected"] == "row" else unit["rows"]
        return (
            f"{promise_words(card)} The release {protects(rows)}. {readable} of {card['k']} "
            f"components can be distinguished from noise. {len(card['unconfirmed'])} of "
            f"{len(card['assumptions'])} assumptions are not confirmed."
        )

    def table(self) -> pd.DataFrame:
        """Return the assumptions, their sources, and the persons who confirmed them."""
        return pd.DataFrame(self.card["assumptions"])

    def data(self) -> CardFile:
        """Return the card in the form of its file."""
        return cast(CardFile, self.card)

    def to_html(self) -> str:
        """Return the card as one page of A4."""
        return to_html(self.card)

    def filed(self, what: str) -> bytes:
        """Return the card's file or page, and record the file's digest in the ledger.

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
        """Write the card's file, and beside it the page to print, each whole or not at all.

        Parameters
        ----------
        out : str or path
            Path of the card's file; the page has the same name with ``.html``.
        """
        path = Path(out)
        for place, what in ((path, CARD), (path.with_suffix(".html"), PAGE)):
            with atomic_write(place) as aside:
                aside.write_bytes(self.filed(what))


@asks("make the privacy card of a release, for your files and for checks", CardOptions, once=True,
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
    """Return the privacy card of a release: what is proved, for whom, and the assumptions.

    Parameters
    ----------
    release : str or path
        File of a release.
    ledger : path, optional
        Ledger that recorded the release; the card then includes the ledger's limit.
    sources : path or mapping, optional
        Source of each assumption, and the person who confirmed it: pairs of texts by the number of
        the assumption, from 1, or a JSON file of such pairs.
    table, schema : path or object, optional
        The released table and its schema. With both, the result is the internal copy with exact
        counts of cells, which no public copy may hold.
    sheet : str
        Sheet of a workbook; if empty, the only sheet.
    **options
        Facts that only people know.

    Returns
    -------
    Filed
        ``write_card(out)`` writes the card and a page to print and sign, and records the
        digests of both in the ledger, in which `verify` finds them.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is unknown, or is out of its range.
    DpvizError
        If a file has another format, or the ledger or table does not belong to the release.

    See Also
    --------
    verify : Checks a card against its release and its ledger.
    release : Makes a release.

    Notes
    -----
    All numbers except the counts of the internal copy follow from the release. The structure kept
    is estimated by adding noise of the same distribution to the released matrix once more. The bars
    follow from this distribution to first order.

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
    people = CardOptions(**options)
    path = Path(release)
    result = read_release(path)
    content = from_release(result, path, people)
    confirmations = _sources(sources, len(content["assumptions"]))
    for number, (source, by) in confirmations.items():
        content["assumptions"][number - 1] |= {"source": source, "confirmed_by": by}
    content["unconfirmed"] = [
        number
        for number, one in enumerate(content["assumptions"], start=1)
        if not (one["source"] and one["confirmed_by"])
    ]
    book = None if ledger is None else ledger_at(fspath(ledger))
    if book is not None:
        content["ledger"] |= _of_ledger(book, result)
        for problem in verify(book, [path], whole=False):
            raise DpvizError(problem)
    # Cells can be counted only with the schema that the release used.
    if (table is None) is not (schema is None):
        raise DpvizError("the internal copy of a card needs both the table and its schema.")
    if table is not None and schema is not None:
        # With exact counts of the rows, the card is the internal copy.
        content |= {"copy": "file", "data": _counts(table, schema, sheet, result, book)}
        content["withheld"] = []
    return Filed(dict(content), book)


def from_release(result: Mapping[str, Any], path: Path, people: CardOptions) -> dict[str, Any]:
    """Return the public privacy card of a release, with no assumption confirmed.

    Parameters
    ----------
    result : mapping
        The release as data, in the form of its file.
    path : Path
        File of the release.
    people : CardOptions

    Raises
    ------
    DpvizError
        If the file is not a release, or its release had another purpose.
    """
    try:
        return _public_card(result, path, people)
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


def _public_card(result: Mapping[str, Any], path: Path, people: CardOptions) -> dict[str, Any]:
    proof, unit = result["proved"], result.get("unit", {"protected": "row", "rows": 1})
    ledger, purpose = result["ledger"], result.get("purpose", "")
    # If the release states a purpose, its card must not state a different purpose.
    if purpose and people.purpose not in ("", purpose):
        raise DpvizError(f"the release was made for {purpose!r}; its card cannot state another.")
    reading = read(result)
    return {
        "dpviz_card": CARD_FORMAT,
        "status": RELEASED,
        "copy": "public",
        "kinds": dict(KINDS),
        "title": people.title or result["name"],
        "purpose": purpose or people.purpose,
        "by": result.get("by", ""),
        "recipients": people.recipients,
        "controller": people.controller,
        "released": result["made"],
        "made": now(),
        "n": result["n"],
        "counted": result.get("counted"),
        "d": result["d"],
        "k": result["k"],
        "claim": {
            "epsilon": proof["epsilon"],
            "delta": proof["delta"],
            "rho": proof["rho"],
            "suspicions": suspicions(proof["epsilon"]),
            "odds_more_than_doubled": excess_probability(
                proof["epsilon"], proof["delta"], math.log(2)
            ),
        },
        "ledger": None
        if ledger is None
        else {
            "id": ledger["id"],
            "number": ledger["spends"],
            "head": ledger["head"],
            "epsilon": ledger["epsilon"],
            "delta": ledger["delta"],
            "suspicions": suspicions(ledger["epsilon"]),
        },
        "unit": {**unit, "neighbours": result["relation"]},
        "mechanism": {
            "name": result["mechanism"],
            "proof": proof["source"],
            "noise": result["noise"]["law"],
            "rows": result["declared"].get("rows", "bound"),
            # Add this entry only if the release declares a scale.
            **({"scale": "limits"} if result["declared"].get("scale") else {}),
            "center": "private mean"
            if result.get("mean")
            else result["settings"].get("center", "typical"),
            "sampler": f"OpenDP {result['versions']['opendp']}, entropy of the operating system",
            "floating_point": "covered: whole numbers up to the noise",
        },
        "use": _use(reading),
        "picture": shown_of(result),
        "assumptions": [
            {"what": what, "source": "", "confirmed_by": ""} for what in assumptions_of(result)
        ],
        "unconfirmed": [],
        "not_covered": dict(NOT_COVERED),
        "withheld": list(WITHHELD),
        "release": {"file": path.name, "sha256": sha256(path.read_bytes())},
        "versions": result["versions"] | {"dpviz_card": VERSION},
        "signatures": [
            {"role": role, "name": "", "date": ""}
            for role in ("controller", "data protection officer")
        ],
    }


def assumptions_of(result: Mapping[str, Any]) -> list[str]:
    """Return the assumptions and declarations of a release, which people must confirm.

    Parameters
    ----------
    result : mapping
        The release as data, in the form of its file.
    """
    declaration = result["declared"]
    names, low, high = (declaration[key] for key in ("columns", "low", "high"))

    def listed(values: Sequence[str]) -> str:
        pairs = [f"{name} {value}" for name, value in zip(names, values, strict=True)]
        more = len(pairs) - _LISTED
        return ", ".join(pairs[:_LISTED]) + f", and {more:,} more in the release" * (more > 0)

    pairs = zip(low, high, strict=True)
    limits = [f"{numeral(a, 6)} to {numeral(b, 6)}" for a, b in pairs]
    typical, center = (
        listed([numeral(value, 6) for value in declaration[key]]) for key in ("typical", "center")
    )
    bound = (
        []
        if declaration.get("rows") == UNIT
        else [f"row-norm bound: {numeral(declaration['row_bound'], 6)}"]
    )
    return [
        *result["assumed_public"],
        f"limits: {listed(limits)}",
        f"typical values, which replace missing cells: {typical}",
        "centre: a private mean" if result.get("mean") else f"centre: {center}",
        *bound,
        f"schema digest: {declaration['schema']}",
    ]


def loadings_table(card: Mapping[str, Any]) -> pd.DataFrame:
    """Return the loadings in a card with their error bars, one row per feature."""
    use = card["use"]
    table = pd.DataFrame({"feature": use["features"]})
    for at, (vector, bars) in enumerate(zip(use["loadings"], use["bars"], strict=True), 1):
        table[f"component {at}"] = vector
        table[f"± {at}"] = bars
    return table


def workbook(card: Mapping[str, Any]) -> bytes:
    """Return a workbook with the results of a release: loadings, variances and the claim.

    Raises
    ------
    NotAvailable
        If XlsxWriter is not installed.
    """
    need("xlsxwriter")
    from xlsxwriter import Workbook  # This package is an optional dependency.

    use, claim, file = card["use"], card["claim"], BytesIO()
    readable = use["readable_components"]
    sheets = {
        "loadings": loadings_table(card),
        "variances": pd.DataFrame(
            {
                "component": range(1, len(use["variances"]) + 1),
                "variance": use["variances"],
                "±": use["variance_bars"] + [None] * (len(use["variances"]) - card["k"]),
                "distinguished from noise": [at < readable for at in range(len(use["variances"]))],
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
    # Spreadsheet programs must never take a text that begins with = for a formula.
    with Workbook(file, {"in_memory": True, "strings_to_formulas": False}) as book:
        for name, table in sheets.items():
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, list(table.columns))
            for at, row in enumerate(table.astype(object).to_numpy().tolist(), 1):
                sheet.write_row(at, 0, ["" if pd.isna(cell) else cell for cell in row])
    return file.getvalue()


def suspicions(epsilon: float) -> list[dict[str, float]]:
    """Return the largest possible suspicion after the release, for several prior suspicions."""
    return [{"before": prior, "after": posterior_bound(prior, epsilon)} for prior in PRIORS]


def _use(reading: Reading) -> dict[str, Any]:
    """Return the reliable results of a release; unreliable components have no error bars."""
    # JSON has no NaN, so use null.
    bars, of_variances = (
        [[None if math.isnan(bar) else bar for bar in bars] for bars in each.tolist()]
        for each in (reading.bars.T, reading.variance_bars[np.newaxis])
    )
    return {
        "recovery": reading.recovery,
        "judged_by": "the released numbers",
        "readable_components": reading.readable,
        "confidence": CONFIDENCE,
        "features": list(reading.names),
        "loadings": reading.loadings.T.tolist(),
        "bars": bars,
        "variances": reading.variances.tolist(),
        "variance_bars": of_variances[0],
        "noise_edge": reading.edge,
        "centre_unknown": reading.turned,
        "total_variance": reading.total,
    }


def _of_ledger(book: Ledger, result: Mapping[str, Any]) -> dict[str, Any]:
    contents = book.read()
    if result["ledger"] is None or result["ledger"]["id"] != contents.identity:
        raise DpvizError(f"{book.path.name} has no record of this release.")
    return {
        "file": book.path.name,
        "account": contents.account,
        "purpose": contents.purpose,
        "limit": {"epsilon": contents.limit.epsilon, "delta": contents.limit.delta},
    }


def _sources(
    sources: str | PathLike[str] | Mapping[int, Sequence[str]] | None, assumptions: int
) -> dict[int, tuple[str, str]]:
    """Return the source of each assumption and who confirmed it, by the assumption's number."""
    rule = f"pairs of source and name, by assumption number from 1 to {assumptions}"
    wrong = InvalidSetting("sources", rule, "something else", "--sources")
    pairs: Any = sources
    if isinstance(sources, (str, PathLike)):
        path = Path(sources)
        try:
            pairs = strict_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise DpvizError(f"{printable(path.name)} cannot be read: {error.strerror}.") from None
        except NamedTwice as error:
            raise InvalidSetting("sources", rule, str(error), "--sources") from None
        except ValueError:
            raise wrong from None
    by_number = {}
    try:
        for number, (source, by) in dict({} if pairs is None else pairs).items():
            # JSON keys are texts, but Python callers may pass numbers.
            by_number[int(number)] = (str(source), str(by))
    except (TypeError, ValueError):
        raise wrong from None
    # A number outside the list of assumptions would confirm nothing.
    if not set(by_number) <= set(range(1, assumptions + 1)):
        raise wrong
    for source, by in by_number.values():
        one_line("source")(source)
        one_line("name")(by)
    return by_number


def _counts(
    table: str | PathLike[str] | Table,
    schema: str | PathLike[str] | Schema,
    sheet: str,
    result: Mapping[str, Any],
    book: Ledger | None,
) -> dict[str, Any]:
    """Return exact counts of the table's cells, for the internal copy only."""
    source = table if isinstance(table, Table) else table_input(fspath(table), sheet)
    rules = schema if isinstance(schema, Schema) else Schema.read(Path(schema))
    # With a different schema, other cells would be filled and clipped than in the release.
    if rules.digest != result["declared"]["schema"]:
        raise DpvizError("the release was made with a different schema.")
    # The ledger has a salted digest of the rows, so a different table is detected.
    if book is not None and book.fingerprint(content_of(source)) not in book.read().tables:
        raise DpvizError(f"{book.path.name} is about a different table.")
    return counted(open_records(source, rules).blocks(), rules)


def counted(blocks: Iterable[np.ndarray], schema: Schema) -> dict[str, Any]:
    """Return how many cells a schema fills (by column) and clips, and how many rows change."""
    rows = cut = changes = 0
    fills = np.zeros(len(schema.used), dtype=np.int64)
    low, high, _ = schema.limits.T
    for block in blocks:
        rows_read = schema.filled(block)
        gone = ~np.isfinite(block)
        for j, column in enumerate(schema.used):
            gone[:, j] |= np.isin(block[:, j], column.codes)
        # A missing cell counts as filled and not also as clipped, so each cell is counted once.
        outside = ~gone & ((block < low) | (block > high))
        rows += len(rows_read)
        fills += gone.sum(axis=0)
        cut += int(outside.sum())
        changes += int((gone | outside).any(1).sum())
    columns = zip((column.name for column in schema.used), fills.tolist(), strict=True)
    return {
        "rows": rows,
        "rows_changed": changes,
        "cells_filled": int(fills.sum()),
        "filled_by_column": {name: cells for name, cells in columns if cells},
        "cells_cut": cut,
    }
